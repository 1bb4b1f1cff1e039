"""The documentation site: it shows what the repository's pages say, each rule has its page, and every link leads somewhere."""

from __future__ import annotations

import importlib.util
import posixpath
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
from markdown_it import MarkdownIt
from website import build, links, markup, rules

from torchlint import evidence
from torchlint.registry import all_rules
from torchlint.rule import SITE, Rule

ROOT = Path(__file__).parents[1]
RULES = all_rules()
PAGES = {"docs/a.md": markup.Page("a.md", "Page A"), "rules/sync/read.md": markup.Page("rules/read.md", "read")}
# What the head of a rule's page says, and the site otherwise.
HEAD = ("group: ", "fix: ", "default: ", "since: ", "status: ", "torch: ", "compiled code: ", "yields to: ")


# From GitHub's Markdown to the generator's


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("docs/a.md", "docs/look.svg", "rules/sync/read.md", "tools/run.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def translated(text: str, tree: Path, source: str = "docs/a.md") -> str:
    return markup.translated(text, source, PAGES[source].path, PAGES, tree)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](../rules/sync/read.md)", "[a](rules/read.md)"),
        ("[a](../rules/sync/read.md#fix-safety)", "[a](rules/read.md#fix-safety)"),
        ("[a](#here) [b](https://example.org/a.md)", "[a](#here) [b](https://example.org/a.md)"),
        ("[a](../tools/run.py)", "[a](https://github.com/torchlint/torchlint/blob/main/tools/run.py)"),
        ("[rules/sync/read.md](../rules/sync/read.md)", "[read](rules/read.md)"),
        ("[`read.md`](../rules/sync/read.md)", "[`read.md`](rules/read.md)"),
        ("[a](../tools)", "[a](https://github.com/torchlint/torchlint/tree/main/tools)"),
        ("![a](look.svg)", "![a](pictures/docs/look.svg)"),
        ("`[a](none.md)`", "`[a](none.md)`"),
        ("## Fix `a` / [b](look.svg)", "## Fix `a` / [b](pictures/docs/look.svg) {#fix-a--b}"),
        ("## A\n\n## A", "## A {#a}\n\n## A {#a-1}"),
        ("## [0.1.0]", "## 0.1.0 {#010}"),
        ("- a\n  - b", "- a\n    - b"),
        ("1. a\n\n   b", "1. a\n\n    b"),
        ("a\n\n    [a](none.md)", "a\n\n    [a](none.md)"),
        ("```python bad\na\nb  # <- c\n```", '``` python title="slow" hl_lines="2"\na\nb  # <- c\n```'),
        ("```toml a.toml\n[a](b)\n```", '``` toml title="a.toml"\n[a](b)\n```'),
        ("```\na\n```", "``` text\na\n```"),
        ("- a\n\n  ```python\n  if a:\n      b\n  ```", "- a\n\n    ``` python\n    if a:\n        b\n    ```"),
        ("<!-- begin: a -->\n\nb", "b"),
    ],
)
def test_markdown_is_translated(text: str, expected: str, tree: Path) -> None:
    assert translated(text, tree) == f"{expected}\n"


def test_a_link_from_a_page_of_a_folder_is_relative_to_it(tree: Path) -> None:
    text = translated("[a](../../docs/a.md) ![b](../../docs/look.svg)", tree, "rules/sync/read.md")
    assert text == "[a](../a.md) ![b](../pictures/docs/look.svg)\n"


def test_a_link_to_nothing_is_an_error(tree: Path) -> None:
    with pytest.raises(markup.BrokenLinkError, match=r"docs/a\.md: there is no none\.md"):
        translated("[a](none.md)", tree)


# The links of what was built


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<a href="b/">b</a><a href="b/#in">b</a><a href="#own">o</a><p id="own">', []),
        ('<a href="https://example.org/none">b</a><a href="mailto:a@example.org">b</a>', []),
        (f'<a href="{SITE}b/">b</a><a href="/torchlint/b/#in">b</a>', []),
        ('<a href="none/">b</a>', ["index.html: none/ leads to no file"]),
        (f'<a href="{SITE}none/">b</a>', [f"index.html: {SITE}none/ leads to no file"]),
        ('<a href="b/#none">b</a>', ["index.html: b/#none leads to no heading"]),
        ('<a href="#none">b</a>', ["index.html: #none leads to no heading"]),
        ('<img src="none.png">', ["index.html: none.png leads to no file"]),
        (
            '<script src="https://example.org/a.js"></script>',
            ["index.html: loads https://example.org/a.js from elsewhere"],
        ),
        (
            '<link rel="stylesheet" href="//example.org/a.css">',
            ["index.html: loads //example.org/a.css from elsewhere"],
        ),
    ],
)
def test_what_is_wrong_with_a_link_is_said(body: str, said: list[str], tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "index.html").write_text('<h1 id="in">B</h1>')
    (tmp_path / "index.html").write_text(f"<html><body>{body}</body></html>")
    assert links.problems(tmp_path, SITE) == said


# The rules


def test_each_rule_has_a_value_of_each_facet() -> None:
    known = {facet.name: set(facet.values) for facet in rules.facets(RULES)}
    for rule in RULES:
        held = rules.values(rule)
        assert held.keys() == known.keys()
        assert all(held[name] and set(held[name]) <= known[name] for name in known), rule.name


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ([("sim", 1, 0), ("cuda", 1, 1)], "gpu"),
        ([("sim", 1, 0), ("cuda", 1, 0)], "cuda"),
        ([("cuda", 0, 0), ("sim", 1, 0)], "sim"),
        ([("cpu", 1, 1)], "none"),
    ],
)
def test_the_best_evidence_is_said(
    held: list[tuple[str, int, int]], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        SimpleNamespace(device=SimpleNamespace(type=kind), counts=counts, time=time) for kind, counts, time in held
    ]
    monkeypatch.setattr(evidence, "is_measurable", lambda _: True)
    monkeypatch.setattr(evidence, "pair", lambda _: None)
    monkeypatch.setattr(evidence, "is_stale", lambda *_: False)
    monkeypatch.setattr(evidence, "evidence_of", lambda _: [SimpleNamespace(measurements=found)])
    assert rules.measured(RULES[0]) == said


def test_the_table_can_be_narrowed_down_without_a_script() -> None:
    table, style = rules.table(RULES), rules.stylesheet(RULES)
    assert len(re.findall(r'<li class="tl-rule"', table)) == len(RULES)
    for facet in rules.facets(RULES):
        for value in facet.values:
            assert f'id="tl-{facet.name}-{value}"' in table
            assert f'body:has(#tl-{facet.name}-{value}:checked) .tl-rule:not([data-{facet.name}~="{value}"])' in style
    assert "<script" not in table


def test_a_page_says_when_a_finding_is_a_note_and_when_the_rule_is_silent() -> None:
    for rule in RULES:
        page = rules.markdown(rule, {}, RULES)
        assert page.count("\n## Warning, note or silence\n") == bool(rule.doubts)
        for doubt, reason in rule.doubts:
            assert f"- {doubt.sentence}" + (f". {reason}" if reason else "") in page


def test_what_readers_said_is_on_the_page() -> None:
    read = rules.verdicts((ROOT / "docs" / "precision.md").read_text("utf-8"))
    assert len(read) > 90
    (rule,) = (rule for rule in RULES if rule.name == "item-in-train-loop")
    right, wrong, doubtful = read["TL301"].split(" / ")
    assert f">{right} right, {wrong} wrong, {doubtful} doubtful<" in rules.markdown(rule, read, RULES)


def test_each_page_for_people_is_on_the_site() -> None:
    held = build.files()
    written = {
        path.relative_to(ROOT).as_posix()
        for folder in (ROOT, ROOT / "docs", ROOT / "docs" / "case_studies", ROOT / "editors")
        for path in folder.glob("*.md")
    }
    assert written <= set(held)
    assert len({page.path for page in held.values()}) == len(held)


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_NEWS", ("changelog.md", "docs/none.md"))
    monkeypatch.setattr(build, "ROOT", tmp_path)
    for file in build.files():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("[a](nowhere.md)\n")
    with pytest.raises(build.BuildError, match=r"there is no nowhere\.md"):
        build.build(tmp_path / "out")
    assert not (tmp_path / "out").exists()


# The site


class Blocks(HTMLParser):
    """The text of each paragraph, item, cell, heading and piece of code."""

    ENDS = frozenset("blockquote dd div dl dt h1 h2 h3 h4 li ol p pre table td th tr ul".split())
    LEFT_OUT = frozenset("button form label nav script style".split())

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._text, self._left_out, self._anchors = "", 0, 0
        self.feed(text)
        self._end()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.ENDS:
            self._end()
        self._left_out += tag in self.LEFT_OUT
        self._anchors += tag == "a" and ("class", "headerlink") in attrs

    def handle_endtag(self, tag: str) -> None:
        if tag in self.ENDS:
            self._end()
        self._left_out -= tag in self.LEFT_OUT
        self._anchors -= tag == "a" and self._anchors

    def handle_data(self, data: str) -> None:
        if not self._left_out and not self._anchors:
            self._text += data

    def _end(self) -> None:
        if text := "".join(self._text.split()):
            self.found.append(text)
        self._text = ""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed: `pip install -e '.[docs]'`")
    out = tmp_path_factory.mktemp("site") / "out"
    build.build(out)
    return out


def shown(site: Path, page: str) -> str:
    """The part of a page that is its text."""
    folder, name = page.removesuffix(".md"), "index.html"
    path = site / f"{folder}.html" if folder.endswith("index") else site / folder / name
    text = path.read_text("utf-8")
    return text[text.index("<article") : text.index("</article>")]


def wanted(file: str, text: str) -> Iterator[str]:
    """What GitHub shows of a file and the site has to show, too."""
    for block in Blocks(MarkdownIt("commonmark").enable("table").render(text)).found:
        is_head = file.startswith("rules/") and (
            block.startswith(tuple(map(squeezed, HEAD))) or re.search(r"\(TL\d+\)$", block)
        )
        if not is_head:
            yield block


def retitled(text: str, file: str) -> str:
    """The text with the title of a page where a link shows its path."""
    held = build.files()

    def title(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), link["target"]))
        return f"[{held[target].title}]({link['target']})" if target in held else link[0]

    return re.sub(r"\[[\w./]+(?:\.md|/)\]\((?P<target>[\w./]+\.md)\)", title, text)


def squeezed(text: str) -> str:
    return "".join(text.split())


# Building takes seconds; on one worker it is done once.
@pytest.mark.slow
@pytest.mark.xdist_group("website")
class TestSite:
    def test_it_shows_what_the_repository_says(self, site: Path) -> None:
        for file, page in build.files().items():
            if page.path == "rules/index.md":
                continue
            text = (ROOT / file).read_text("utf-8")
            found = set(Blocks(shown(site, page.path)).found)
            text = re.sub(r"^(#+ )\[([^\]]+)\]$", r"\1\2", text, flags=re.MULTILINE)
            text = retitled(text, file)
            lost = [block for block in wanted(file, text) if block not in found]
            assert not lost, f"{file}: {lost[0]}"

    def test_each_rule_has_its_page_at_its_address_and_at_its_code(self, site: Path) -> None:
        for rule in RULES:
            assert rule.url.startswith(SITE)
            page = (site / rule.url.removeprefix(SITE) / "index.html").read_text("utf-8")
            assert f'<link rel="canonical" href="{rule.url}"' in page
            assert_page(rule, page)
            moved = (site / "rules" / rule.code / "index.html").read_text("utf-8")
            assert f"url=../{rule.name}/" in moved

    def test_no_page_loads_or_asks_anything_elsewhere(self, site: Path) -> None:
        assert links.problems(site, SITE) == []
        for path in site.rglob("*.html"):
            assert 'data-md-component="source"' not in path.read_text("utf-8"), "it asks GitHub for stars"

    def test_it_can_be_read_without_a_script(self, site: Path) -> None:
        table = (site / "rules" / "index.html").read_text("utf-8")
        without = re.sub(r"<script\b.*?</script>", "", table, flags=re.DOTALL)
        assert all(f'href="{rule.name}/"' in without for rule in RULES)


def assert_page(rule: Rule, page: str) -> None:
    headings = re.findall(r'<h2 id="([\w-]+)">', page)
    assert headings[0].startswith(("why", "what")), headings
    assert {"example", "evidence"} <= set(headings) or rule.name == "unused-ignore", headings
    assert any(heading.startswith("when-not-to-use") for heading in headings), headings
    if rule.fix:
        assert "fix-safety" in headings, "the pointer in editors leads there"
