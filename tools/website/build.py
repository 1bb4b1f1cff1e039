"""From the repository to the site: the pages as Markdown, the generator's settings, its run, a look at the links."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlint.registry import all_rules
from torchlint.rule import SITE

from . import links, rules
from .markup import REPOSITORY, BrokenLinkError, Page, pictures, translated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchlint.rule import Rule

ROOT = Path(__file__).parents[2]
_ASSETS = Path(__file__).parent / "assets"
_STYLE = "assets/site.css"
_SCRIPT = "assets/site.js"

# What the site is made of besides the pages of the rules: where it stands in the menu, its page, its file.
MENU: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "Use",
        (
            ("Command line", "command-line.md", "docs/command_line.md"),
            ("Configuration", "configuration.md", "docs/configuration.md"),
            ("CI", "ci.md", "docs/ci.md"),
            ("Editors", "editors.md", "editors/README.md"),
            ("VS Code", "vscode.md", "editors/vscode/README.md"),
            ("Where the time goes", "profile.md", "docs/profile.md"),
            ("Files in Parquet", "corpus.md", "docs/corpus.md"),
            ("Verify a fix", "verify.md", "docs/verify.md"),
            ("Security", "security.md", "SECURITY.md"),
        ),
    ),
    (
        "Evidence",
        (
            ("How it knows", "how-it-knows.md", "docs/how_it_knows.md"),
            ("Precision", "precision.md", "docs/precision.md"),
            ("What experts fixed", "hindsight.md", "docs/hindsight.md"),
            ("Comparison with peers", "peers.md", "docs/peers.md"),
            ("Advice and rules", "coverage.md", "docs/coverage.md"),
            ("Results before a GPU", "before-gpu.md", "docs/before_gpu.md"),
            ("Case study", "case-study-anomaly-detection.md", "docs/case_studies/anomaly_detection.md"),
            ("Speed", "speed.md", "benchmarks/results.md"),
            ("How cost grows", "growth.md", "benchmarks/growth.md"),
        ),
    ),
    (
        "Extend",
        (
            ("Write a rule", "contributing.md", "CONTRIBUTING.md"),
            ("Rule packs", "packs.md", "docs/packs.md"),
            ("Architecture", "architecture.md", "ARCHITECTURE.md"),
        ),
    ),
)
_ICON = "editors/vscode/images/icon.png"
_HOME = ("index.md", "README.md")
_TABLE = ("rules/index.md", "docs/rules.md")
_NEWS = ("changelog.md", "CHANGELOG.md")
# What stands beside a page that has no use for it there, or needs the room for a table.
_HIDDEN = {_HOME[0]: "navigation", _NEWS[0]: "navigation", "precision.md": "toc", "coverage.md": "toc"}


class BuildError(Exception):
    """What is wrong with the site, a line for each thing."""


def build(out: Path) -> int:
    """Build the site in `out`, in the place of what is there, and return how many pages it has. Raises `BuildError`."""
    known = all_rules()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        try:
            write_sources(work / "docs", known)
        except BrokenLinkError as error:
            raise BuildError(str(error)) from None
        (work / "mkdocs.yml").write_text(json.dumps(settings(known), indent=2), encoding="utf-8")
        command = (sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", "mkdocs.yml")
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"{done.stdout}{done.stderr}".strip())
        site = work / "site"
        _add_codes(site, known)
        if found := links.problems(site, SITE):
            raise BuildError("\n".join(found))
        if out.exists():
            shutil.rmtree(out)
        shutil.copytree(site, out)
    return len(list(out.rglob("*.html")))


def files() -> dict[str, Page]:
    """Which page of the site each file of the repository is."""
    alone = ("Home", *_HOME), ("Rules", *_TABLE), ("Changelog", *_NEWS)
    own = {file: Page(page, title) for entries in (alone, *dict(MENU).values()) for title, page, file in entries}
    return own | {f"rules/{rule.path}": Page(rules.page_of(rule), rule.name) for rule in all_rules()}


def write_sources(docs: Path, known: Sequence[Rule]) -> None:
    """Write the Markdown of all pages, and what they show, below `docs`."""
    held = files()
    shown = {_ICON}
    precision = rules.verdicts((ROOT / "docs/precision.md").read_text("utf-8"))
    texts = {rule: rules.markdown(rule, precision, known) for rule in known}
    for file, page in held.items():
        text = (ROOT / file).read_text("utf-8")
        shown |= pictures(text, file)
        if file == _TABLE[1]:
            text = _with_table(text, known)
        hidden = _HIDDEN.get(page.path, "")
        head = f"---\nhide: [{hidden}]\n---\n" if hidden else ""
        _write(docs / page.path, head + translated(text, file, page.path, held, ROOT))
    for rule, text in texts.items():
        _write(docs / rules.page_of(rule), translated(text, f"rules/{rule.path}", rules.page_of(rule), held, ROOT))
    for picture in shown:
        _write(docs / "pictures" / picture, (ROOT / picture).read_bytes())
    _write(docs / _STYLE, (_ASSETS / "site.css").read_text("utf-8") + rules.stylesheet(known))
    _write(docs / _SCRIPT, (_ASSETS / "site.js").read_text("utf-8"))


def settings(known: Sequence[Rule]) -> dict[str, Any]:
    """What the generator is told, in the form of a `mkdocs.yml`."""
    menu: list[dict[str, Any]] = [{"Home": _HOME[0]}]
    groups = [
        {title: [{rule.name: rules.page_of(rule)} for rule in known if rule.group == group]}
        for group, title in rules.GROUPS.items()
    ]
    entries = {section: [{title: page} for title, page, _ in pages] for section, pages in MENU}
    menu += [{"Use": entries["Use"]}, {"Rules": [_TABLE[0], *groups]}]
    menu += [{section: pages} for section, pages in entries.items() if section != "Use"]
    menu.append({"Changelog": _NEWS[0]})
    return {
        "site_name": "torchlint",
        "site_url": SITE,
        "site_description": "Finds lines that stall or starve your GPU, says how often they run, and fixes many.",
        "copyright": "Apache-2.0",
        "docs_dir": "docs",
        "site_dir": "site",
        "theme": {
            "name": "material",
            # Nothing is loaded from elsewhere; so there is no `repo_url` either, which asks GitHub for stars.
            "font": False,
            "logo": f"pictures/{_ICON}",
            "favicon": f"pictures/{_ICON}",
            "features": [
                "content.code.copy",
                "navigation.indexes",
                "navigation.prune",
                "navigation.tabs",
                "navigation.top",
                "search.highlight",
                "toc.follow",
            ],
            "palette": [
                {"media": "(prefers-color-scheme)", **_colours("brightness-auto", "Use light colours")},
                {
                    "media": "(prefers-color-scheme: light)",
                    "scheme": "default",
                    **_colours("brightness-7", "Use dark colours"),
                },
                {
                    "media": "(prefers-color-scheme: dark)",
                    "scheme": "slate",
                    **_colours("brightness-4", "Use the colours of the system"),
                },
            ],
        },
        # Parts of dotted names are words, too: `item` finds `loss.item()`.
        "plugins": [{"search": {"separator": r"""[\s\-.,:;!?()\[\]{}<>=*+/'"`]+"""}}],
        "markdown_extensions": [
            "attr_list",
            "tables",
            {"toc": {"permalink": True}},
            {"pymdownx.highlight": {"anchor_linenums": False}},
            "pymdownx.superfences",
        ],
        "validation": {
            "anchors": "warn",
            "absolute_links": "warn",
            "unrecognized_links": "warn",
            "omitted_files": "warn",
        },
        "extra": {"social": [{"icon": "fontawesome/brands/github", "link": REPOSITORY, "name": "torchlint on GitHub"}]},
        "extra_css": [_STYLE],
        "extra_javascript": [_SCRIPT],
        "nav": menu,
    }


def _colours(icon: str, title: str) -> dict[str, Any]:
    return {"primary": "custom", "accent": "custom", "toggle": {"icon": f"material/{icon}", "name": title}}


def _with_table(text: str, known: Sequence[Rule]) -> str:
    before, _, rest = text.partition("<!-- begin: rules -->")
    return f"{before}{rules.table(known)}{rest.partition('<!-- end: rules -->')[2]}"


def _add_codes(site: Path, known: Sequence[Rule]) -> None:
    """A page at the code of each rule that leads to the page at its name: a code never changes."""
    for rule in known:
        address = f"../{rule.name}/"
        _write(
            site / "rules" / rule.code / "index.html",
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{rule.code}</title>'
            f'<meta http-equiv="refresh" content="0; url={address}"><link rel="canonical" href="{rule.url}">'
            f'</head><body><p><a href="{address}">{rule.code} is {rule.name}</a></p></body></html>\n',
        )


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
