"""Ignore comments: what they silence, what is said of those that silence nothing, how they are written."""

from __future__ import annotations

import ast
import codecs
import importlib
import inspect
import itertools
from collections.abc import Iterator, Sequence

import pytest
import toys

from torchlint.finding import Applicability, Diagnostic, Finding, Result, Span, edited
from torchlint.settings import Settings
from torchlint.source import SourceFile
from torchlint.suppress import add_ignores, apply

ALL = Settings(tuple(rule.name for rule in toys.RULES))


def with_ignores(source: SourceFile, findings: Sequence[Finding], reason: str | None) -> str:
    return add_ignores(source, findings, reason).text


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    toys.install(monkeypatch)


def found(text: str) -> Iterator[Finding]:
    """A finding of `slow-call` at each `slow(`, of `host-read` at each `.item(`."""
    for rule, needle in ((toys.SLOW, "slow("), (toys.READ, ".item(")):
        place = text.find(needle)
        while place >= 0:
            yield Finding(rule.name, rule.code, Span(place, place + len(needle)), "toy")
            place = text.find(needle, place + 1)


def run(text: str, settings: Settings = ALL) -> tuple[Finding, ...]:
    """What is reported of a text: its own findings unless silenced, and those about its comments."""
    return apply(SourceFile("a.py", text), Result(tuple(found(text))), settings).findings


def rules(text: str, settings: Settings = ALL) -> list[str]:
    return [finding.rule for finding in run(text, settings)]


def fixed(text: str, settings: Settings = ALL) -> str:
    """The text without the ignores that `unused-ignore` can take out."""
    edits = [edit for finding in run(text, settings) if finding.fix is not None for edit in finding.fix.edits]
    assert all(finding.fix.applicability is Applicability.SAFE for finding in run(text, settings) if finding.fix)
    return edited(text, edits)


@pytest.mark.parametrize(
    "text",
    [
        "x = slow()  # torchlint: ignore[slow-call]\n",
        "x = slow()  # torchlint: ignore[TL101]\n",
        "x = slow()  # torchlint: ignore[tl101]\n",
        "x = slow()  # torchlint:ignore [ slow-call ]\n",
        "x = slow()  #torchlint: ignore[slow-call]",
        "x = slow()  # torchlint: ignore[slow-call]  # once an epoch\n",
        "x = slow()  # torchlint: ignore[slow-call] once an epoch\n",
        "x = slow()  # note  # torchlint: ignore[slow-call]  # type: ignore[no-any]\n",
        "x = slow() + y.item()  # torchlint: ignore[slow-call, TL301]\n",
        "x = slow() + y.item()  # torchlint: ignore[slow-call TL301]\n",
        "x = slow() + y.item()  # torchlint: ignore[slow-call]  # torchlint: ignore[host-read]\n",
        "# torchlint: ignore[slow-call]\nx = slow()\n",
        "# torchlint: ignore[slow-call]\n# torchlint: ignore[host-read]\nx = slow() + y.item()\n",
        "# torchlint: ignore[slow-call]\n\n# another comment\n\nx = slow()\n",
        "# torchlint: ignore[slow-call]\nx = slow() + y.item()  # torchlint: ignore[host-read]\n",
        "def f():\n    # torchlint: ignore[slow-call]\n    return slow()\n",
        "if x:\n    pass\n# torchlint: ignore[slow-call]\nelif slow():\n    pass\n",
        # any row of a statement
        "x = f(\n    slow(),\n    1,  # torchlint: ignore[slow-call]\n)\n",
        "x = f(  # torchlint: ignore[slow-call]\n    1,\n    slow(),\n)\n",
        "x = f(\n    1,\n    slow(),\n)  # torchlint: ignore[slow-call]\n",
        "x = f(\n    # torchlint: ignore[slow-call]\n    slow(),\n)\n",
        "# torchlint: ignore[slow-call]\nx = f(\n    1,\n    slow(),\n)\n",
        "x = 1 + \\\n    slow()  # torchlint: ignore[slow-call]\n",
        'x = """\n""" + slow()  # torchlint: ignore[slow-call]\n',
        'x = slow("""\n""")  # torchlint: ignore[slow-call]\n',
        "x = slow(); y = 2  # torchlint: ignore[slow-call]\n",
        "if slow(): pass  # torchlint: ignore[slow-call]\n",
        "if slow():  # torchlint: ignore[slow-call]\n    pass\n",
        # the whole file
        "# torchlint: file-ignore[slow-call]\nx = slow()\ny = slow()\n",
        "x = slow()\ny = slow()\n# torchlint: file-ignore[TL101]\n",
        # what flake8 and ruff write
        "x = slow()  # noqa: TL101\n",
        "x = slow()  # noqa:tl101\n",
        "x = slow()  # NoQA: E501, TL101\n",
        "x = slow()  # noqa: E501 TL101\n",
        "x = slow()  # type: ignore # noqa: TL101 and why\n",
        "x = slow()  # noqa\n",
        "x = slow()  # NOQA\n",
        "x = slow()  # noqa: because\n",
        "x = f(\n    slow(),\n)  # noqa: TL101\n",
        "x = f(\n    slow(),  # noqa\n)\n",
        "x = 1 + slow() + \\\n    1  # noqa\n",
        'x = slow() + """\n\n"""  # noqa\n',
    ],
)
def test_silences(text: str) -> None:
    assert rules(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "x = slow()\n",
        "x = slow()  # noqa: E501\n",
        "x = slow()  # noqa123\n",
        "x = slow()  # see torchlint: ignore[slow-call]\n",
        "x = slow()  # ruff: noqa: TL101\n",
        "# noqa: E501\nx = slow()\n",
        "# noqa\nx = slow()\n",
        # of a bare one that is meant for another row
        "x = f(\n    slow(),\n    'too long',  # noqa\n)\n",
        "x = f(\n    slow(),\n)  # noqa\n",
        "x = slow('# torchlint: ignore[slow-call]')\n",
        "x = slow('# noqa')\n",
        "x = '''\n# torchlint: ignore[slow-call]\n''' + slow()\n",
        "x = f'''{slow()}\n# torchlint: ignore[slow-call]\n'''\n",
        "x = f'''{\nslow()  # torchlint: ignore[slow-call]\n}'''\n",
        "x = slow()  # torchlint: nonsense[slow-call]\n",
        "x = slow()  # torchlint: ignored[slow-call]\n",
        "x = slow()  # torchlint: ignore-file[slow-call]\n",
    ],
)
def test_does_not_silence(text: str) -> None:
    assert rules(text) == ["slow-call"]


@pytest.mark.parametrize(
    "text",
    [
        "if x:  # torchlint: ignore[slow-call]\n    slow()\n",
        "# torchlint: ignore[slow-call]\nif x:\n    slow()\n",
        "x = slow()\n# torchlint: ignore[slow-call]\n",
        "x = slow()\n# torchlint: ignore[slow-call]\ny = 1\n",
        "# torchlint: ignore[slow-call]\ny = 1\nx = slow()\n",
        "x = slow()  # torchlint: ignore[host-read]\n",
        "x = slow()  # torchlint: ignore\n",
        "x = slow()  # torchlint: ignore[]\n",
        "x = slow()  # torchlint: ignore[slow-call\n",
        "x = slow()  # torchlint: file-ignore\n",
        "x = slow()  # torchlint: ignore[slow-cal]\n",
        "x = slow()  # torchlint: ignore[toys]\n",
        "x = slow()  # torchlint: ignore[TL1]\n",
        "x = slow()  # torchlint: ignore[ALL]\n",
        "# noqa: TL101\nx = slow()\n",
        "@g  # torchlint: ignore[slow-call]\ndef f(x=slow()):\n    pass\n",
    ],
)
def test_silences_nothing_and_is_reported(text: str) -> None:
    assert sorted(rules(text)) == ["slow-call", "unused-ignore"]


def test_file_ignore_leaves_other_rules() -> None:
    assert rules("# torchlint: file-ignore[slow-call]\nx = slow()\ny = x.item()\n") == ["host-read"]


def test_rules_that_are_not_active_are_not_judged() -> None:
    text = "x = 1  # torchlint: ignore[slow-call, host-read]\n"
    assert rules(text, Settings(("unused-ignore",))) == []
    assert fixed(text, Settings(("unused-ignore", "host-read"))) == "x = 1  # torchlint: ignore[slow-call]\n"
    assert rules(text, Settings(("slow-call", "host-read"))) == []


def test_nothing_is_judged_after_a_crash() -> None:
    source = SourceFile("a.py", "x = 1  # torchlint: ignore[slow-call]\n")
    result = Result(diagnostics=(Diagnostic("E000", "internal-error", "slow-call failed"),))
    assert apply(source, result, ALL) == result


def test_unused_ignore_can_be_ignored_itself() -> None:
    assert rules("x = 1  # torchlint: ignore[slow-call, unused-ignore]\n") == []
    assert rules("x = 1  # torchlint: ignore[slow-call]  # noqa: TL001\n") == []
    assert rules("# torchlint: ignore[unused-ignore]\n# torchlint: ignore[slow-call]\nx = 1\n") == []
    assert rules("# torchlint: file-ignore[slow-call, TL001]\nx = 1\n") == []
    assert rules("x = 1  # torchlint: ignore[nonsense, unused-ignore]\n") == []
    assert rules("x = 1  # torchlint: ignore[unused-ignore]\n") == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # torchlint: ignore[slow-call]\n", "x = 1\n"),
        ("x = 1  # torchlint: ignore[slow-call]", "x = 1"),
        ("x = 1\t#torchlint:ignore[slow-call]   \n", "x = 1\n"),
        ("x = 1  # torchlint: ignore[slow-call, host-read]\n", "x = 1\n"),
        ("x = 1  # note  # torchlint: ignore[slow-call]\n", "x = 1  # note\n"),
        ("x = 1  # torchlint: ignore[slow-call]  # type: ignore\n", "x = 1  # type: ignore\n"),
        ("x = 1  # torchlint: ignore[slow-call] once an epoch\n", "x = 1  # once an epoch\n"),
        ("x = 1  # note # torchlint: ignore[slow-call] # type: ignore\n", "x = 1  # note # type: ignore\n"),
        ("x = 1\n    # torchlint: ignore[slow-call]\ny = 2\n", "x = 1\ny = 2\n"),
        ("x = 1\n# torchlint: ignore[slow-call]", "x = 1\n"),
        ("# torchlint: ignore[slow-call]  # why\ny = 2\n", "# why\ny = 2\n"),
        ("f(\n    # torchlint: ignore[slow-call]\n    1,\n)\n", "f(\n    1,\n)\n"),
        ("\f# torchlint: ignore[slow-call]\nx = 1\n", "\f\nx = 1\n"),
        ("# torchlint: file-ignore[slow-call]\nx = 1\n", "x = 1\n"),
        ("x = 1\r\n# torchlint: ignore[slow-call]\r\ny = 2  # torchlint: ignore[slow-call]\r\n", "x = 1\r\ny = 2\r\n"),
        ("x = slow()  # torchlint: ignore[slow-call, host-read]\n", "x = slow()  # torchlint: ignore[slow-call]\n"),
        ("x = slow()  # torchlint: ignore[host-read, slow-call]\n", "x = slow()  # torchlint: ignore[slow-call]\n"),
        (
            "x = slow()  # torchlint: ignore[host-read,plain-call,slow-call,TL402 , TL301]  # why\n",
            "x = slow()  # torchlint: ignore[slow-call]  # why\n",
        ),
        (
            "x = slow() + y.item()  # torchlint: ignore[slow-call, plain-call, TL301]\n",
            "x = slow() + y.item()  # torchlint: ignore[slow-call, TL301]\n",
        ),
        ("x = 1  # torchlint: ignore[slow-call, nonsense]\n", "x = 1  # torchlint: ignore[nonsense]\n"),
        ("x = 1  # noqa: TL101\n", "x = 1\n"),
        ("x = 1  # noqa: E501, TL101\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # noqa: TL101,E501\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # noqa: TL101 because\n", "x = 1  # because\n"),
        ("x = 1  # noqa: E501\ny = 2  # noqa\n# noqa: TL101\n", "x = 1  # noqa: E501\ny = 2  # noqa\n"),
    ],
)
def test_the_fix_takes_out_what_silences_nothing(before: str, after: str) -> None:
    assert fixed(before) == after
    assert [finding for finding in run(after) if finding.fix is not None] == []


@pytest.mark.parametrize("text", ["x = 1  # torchlint: ignore\n", "x = 1  # torchlint: ignore[slow-cal]\n"])
def test_no_fix_where_the_author_must_choose(text: str) -> None:
    assert fixed(text) == text


def messages(text: str) -> list[str]:
    return [finding.message for finding in run(text) if finding.rule == "unused-ignore"]


def test_messages() -> None:
    assert messages("x = 1  # torchlint: ignore[slow-cal]\n") == ["unknown rule `slow-cal`; did you mean `slow-call`?"]
    assert messages("x = 1  # torchlint: ignore\n") == [
        "`# torchlint: ignore` ignores nothing until it names rules; write `# torchlint: ignore[rule-name]`"
    ]
    assert messages("x = 1  # torchlint: ignore[slow-call]\n") == [
        "`# torchlint: ignore` names `slow-call`, which finds nothing here"
    ]
    assert messages("# torchlint: file-ignore[TL101, host-read]\n") == [
        "`# torchlint: file-ignore` names `TL101` and `host-read`, which find nothing in this file"
    ]
    assert messages("x = 1  # noqa: TL101\n") == ["`# noqa` names `TL101`, which finds nothing here"]
    assert messages("x = 1  # noqa: TL999\n")[0].startswith("unknown rule `TL999`")


def test_the_span_is_the_name_or_the_instruction() -> None:
    text = "x = slow()  # torchlint: ignore[slow-call, host-read]  # why\n"
    (finding,) = run(text)
    assert text[finding.span.start : finding.span.end] == "host-read"
    text = "x = 1  # torchlint: ignore[slow-call, host-read]  # why\n"
    (finding,) = run(text)
    assert text[finding.span.start : finding.span.end] == "# torchlint: ignore[slow-call, host-read]"


def test_findings_stay_sorted() -> None:
    text = "# torchlint: ignore[host-read]\nx = slow()  # torchlint: ignore[host-read]\ny = slow()\n"
    starts = [finding.span.start for finding in run(text)]
    assert starts == sorted(starts)
    assert len(starts) == 4


@pytest.mark.parametrize(
    "text",
    [
        "x = (slow()  # torchlint: ignore[slow-call]\n",
        "if x:\n        slow()  # torchlint: ignore[slow-call]\n    y\n",
        "x = slow()  # torchlint: ignore[slow-call]\n'''\n",
    ],
)
def test_what_cannot_be_tokenized_is_left_alone(text: str) -> None:
    assert rules(text) == ["slow-call"]
    assert with_ignores(SourceFile("a.py", text), tuple(found(text)), None) == text


VARIANTS = {
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "CR": lambda text: text.replace("\n", "\r"),
    "form feed": lambda text: "\f" + text.replace("\ny", "\n\fy"),
    "vertical tab and separators in a string": lambda text: 's = "\v\x1c\x85\u2028"\n' + text,
    "no final newline": lambda text: text.rstrip("\n"),
    "tab": lambda text: text.replace("    ", "\t"),
    "non-ASCII": lambda text: 's = "é€😀"; ' + text,
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_kind_of_text(variant: str) -> None:
    text = VARIANTS[variant](
        "x = slow()  # torchlint: ignore[slow-call]\n"
        "y = x.item()\n"
        "def f():\n"
        "    # torchlint: ignore[slow-call]\n"
        "    return slow()\n"
        "z = x.item()  # torchlint: ignore[TL101]\n"
    )
    assert [finding.rule for finding in run(text)] == ["host-read", "host-read", "unused-ignore"]
    silent = with_ignores(SourceFile("a.py", text), run(text), None)
    assert rules(silent) == []
    assert with_ignores(SourceFile("a.py", silent), run(silent), None) == silent


def test_a_byte_order_mark_moves_nothing() -> None:
    source = SourceFile.from_bytes("a.py", codecs.BOM_UTF8 + b"x = slow()  # torchlint: ignore[slow-call]\n")
    assert apply(source, Result(tuple(found(source.text))), ALL) == Result()


def test_a_file_without_a_comment_of_ours_is_not_tokenized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenize.generate_tokens", None)
    assert rules("x = slow()  # note\n") == ["slow-call"]
    assert rules("x = 1  # noqa\ny = 2  # noqa: E501\n") == []


LONG = "x" * 110


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = slow()\n", "x = slow()  # torchlint: ignore[slow-call]\n"),
        ("x = slow()", "x = slow()  # torchlint: ignore[slow-call]"),
        ("x = slow()  \n", "x = slow()  # torchlint: ignore[slow-call]\n"),
        ("x = slow()  # note\n", "x = slow()  # note  # torchlint: ignore[slow-call]\n"),
        ("x = slow() + slow()\n", "x = slow() + slow()  # torchlint: ignore[slow-call]\n"),
        ("x = y.item() + slow()\n", "x = y.item() + slow()  # torchlint: ignore[slow-call, host-read]\n"),
        ("if slow():\n    pass\n", "if slow():  # torchlint: ignore[slow-call]\n    pass\n"),
        ("f(\n    1,\n    slow(),\n)\n", "f(\n    1,\n    slow(),  # torchlint: ignore[slow-call]\n)\n"),
        (
            "f(\n    slow(),\n    y.item(),\n)\n",
            "f(\n    slow(),  # torchlint: ignore[slow-call, host-read]\n    y.item(),\n)\n",
        ),
        # merged
        (
            "x = y.item() + slow()  # torchlint: ignore[host-read]  # why\n",
            "x = y.item() + slow()  # torchlint: ignore[host-read, slow-call]  # why\n",
        ),
        (
            "# torchlint: ignore[TL301]\nx = y.item() + slow()\n",
            "# torchlint: ignore[TL301, slow-call]\nx = y.item() + slow()\n",
        ),
        ("x = slow()  # torchlint: ignore\n", "x = slow()  # torchlint: ignore[unused-ignore, slow-call]\n"),
        # above
        ("x = 1 + \\\n    slow()\n", "x = 1 + \\\n    slow()  # torchlint: ignore[slow-call]\n"),
        (
            "if x:\n    y = slow() + \\\n        1\n",
            "if x:\n    # torchlint: ignore[slow-call]\n    y = slow() + \\\n        1\n",
        ),
        ('x = slow("""\na""")\n', '# torchlint: ignore[slow-call]\nx = slow("""\na""")\n'),
        ('x = f"""\n{slow()}\n"""\n', '# torchlint: ignore[slow-call]\nx = f"""\n{slow()}\n"""\n'),
        (f"{LONG} = slow()\n", f"# torchlint: ignore[slow-call]\n{LONG} = slow()\n"),
        (
            f"if x:\n\tf(\n\t\t1,\n\t\t{LONG}=slow(),\n\t)\n",
            f"if x:\n\t# torchlint: ignore[slow-call]\n\tf(\n\t\t1,\n\t\t{LONG}=slow(),\n\t)\n",
        ),
        (f"{LONG} = slow()\r\n", f"# torchlint: ignore[slow-call]\r\n{LONG} = slow()\r\n"),
        (
            f"#!/usr/bin/env python\n# coding: utf-8\n{LONG} = slow()\n",
            f"#!/usr/bin/env python\n# coding: utf-8\n# torchlint: ignore[slow-call]\n{LONG} = slow()\n",
        ),
        # a comment between statements is itself at fault
        ("x = 1\n# noqa: TL101\n", "x = 1\n# torchlint: ignore[unused-ignore]\n# noqa: TL101\n"),
        (
            "# torchlint: file-ignore[slow-call]\nx = 1\n",
            "# torchlint: ignore[unused-ignore]\n# torchlint: file-ignore[slow-call]\nx = 1\n",
        ),
        ("x = 1  # noqa: TL101\n", "x = 1  # noqa: TL101  # torchlint: ignore[unused-ignore]\n"),
    ],
)
def test_add_ignores(before: str, after: str) -> None:
    source = SourceFile("a.py", before)
    assert with_ignores(source, run(before), None) == after
    compile(after, "a.py", "exec")
    assert rules(after) == []
    assert with_ignores(SourceFile("a.py", after), tuple(found(after)), None) == after


def test_add_ignores_with_a_reason() -> None:
    text = "x = slow()\n"
    silent = with_ignores(SourceFile("a.py", text), run(text), " old \n code ")
    assert silent == "x = slow()  # torchlint: ignore[slow-call]  # old code\n"
    assert rules(silent) == []


def test_add_ignores_without_findings_changes_nothing() -> None:
    text = "x = 1\r\ny = 2\n"
    assert with_ignores(SourceFile("a.py", text), (), "why") == text


def _starts(text: str, step: int) -> list[int]:
    """Where every so manyth name or call of a text starts, in the order of the tree."""
    source = SourceFile("a.py", text)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Call, ast.Name))]
    places = [(node.lineno, node.col_offset) for node in nodes[::step]]
    return [
        source.line_starts[row - 1] + len(source.line(row).encode()[:column].decode(errors="ignore"))
        for row, column in places
    ]


def _found_at(starts: list[int]) -> tuple[Finding, ...]:
    pairs = zip(starts, itertools.cycle((toys.SLOW, toys.READ)), strict=False)
    return tuple(Finding(rule.name, rule.code, Span(start, start), "toy") for start, rule in pairs)


@pytest.mark.parametrize("name", ["argparse", "contextlib", "dataclasses", "inspect", "textwrap", "tokenize", "typing"])
@pytest.mark.parametrize("reason", [None, "known"])
def test_add_ignores_to_real_files(name: str, reason: str | None) -> None:
    text = inspect.getsource(importlib.import_module(name))
    noted = apply(SourceFile("a.py", text), Result(), ALL).findings
    findings = _found_at(_starts(text, 23))
    silent = with_ignores(SourceFile("a.py", text), findings, reason)
    assert silent != text
    assert ast.dump(ast.parse(silent)) == ast.dump(ast.parse(text))
    moved = _found_at(_starts(silent, 23))
    source = SourceFile("a.py", silent)
    assert len(apply(source, Result(moved), ALL).findings) == len(noted)
    assert with_ignores(source, moved, reason) == silent
    unused = apply(source, Result(), ALL).findings
    assert len(unused) > len(noted)
    if reason is None:
        edits = [edit for finding in unused if finding.fix is not None for edit in finding.fix.edits]
        assert edited(silent, edits) == text


@pytest.mark.parametrize("rows", ["# two\n", "# torchlint: ignore[slow-call]\n"])
def test_no_comment_becomes_the_declaration_of_an_encoding(rows: str) -> None:
    text = f"# torchlint: ignore[slow-call]\n{rows}# coding: latin-1\ns = 'é'\n"
    new = fixed(text)
    assert "torchlint" not in new
    assert SourceFile.from_bytes("a.py", new.encode()).text == new


@pytest.mark.parametrize(
    "text",
    [
        "def f():  # torchlint: hot[per-batch]\n    pass\n",
        "async def f(): pass  # torchlint:hot[ per-sample ]  # by the server\n",
        "# torchlint: hot[per-epoch]\ndef f():\n    pass\n",
        "class A:\n    # torchlint: hot[per-batch]\n    @g\n    def f(self):\n        pass\n",
        "def f(\n    x,  # torchlint: hot[per-batch]\n):\n    pass\n",
    ],
)
def test_a_declaration_on_a_function_is_fine(text: str) -> None:
    assert rules(text) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f():  # torchlint: hot[per-step]\n    pass\n", "`per-step` is not known"),
        ("def f():  # torchlint: hot[per-batch, per-epoch]\n    pass\n", "`per-batch, per-epoch` is not known"),
        ("def f():  # torchlint: hot\n    pass\n", "nothing is declared"),
        ("x = 1  # torchlint: hot[per-batch]\n", "belongs on its `def` line"),
        ("def f():\n    x = 1  # torchlint: hot[per-batch]\n", "belongs on its `def` line"),
        ("x = 1\n# torchlint: hot[per-batch]\n", "belongs on its `def` line"),
    ],
)
def test_a_declaration_that_declares_nothing_is_reported(text: str, words: str) -> None:
    (finding,) = run(text)
    assert finding.rule == "unused-ignore"
    assert words in finding.message
    assert text[finding.span.start :].startswith("# torchlint: hot")
