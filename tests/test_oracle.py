"""The model against LibCST's own metadata providers, which cost too much to use but are right."""

from __future__ import annotations

import importlib.util
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from libcst.metadata import (
    ExpressionContext,
    ExpressionContextProvider,
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    QualifiedNameProvider,
    QualifiedNameSource,
)
from programs import program

from torchlint.semantics.names.bindings import Names, canonical, dotted
from torchlint.source import SourceFile
from torchlint.syntax.parsing import parse
from torchlint.syntax.positions import Spans
from torchlint.syntax.tree import Tree

TORCH = (
    "amp/grad_scaler.py",
    "nn/modules/container.py",
    "nn/modules/dropout.py",
    "nn/modules/flatten.py",
    "nn/modules/linear.py",
    "nn/parallel/data_parallel.py",
    "nn/utils/clip_grad.py",
    "nn/utils/memory_format.py",
    "optim/adamw.py",
    "optim/lbfgs.py",
    "optim/sgd.py",
    "optim/swa_utils.py",
    "utils/checkpoint.py",
    "utils/data/dataset.py",
    "utils/data/distributed.py",
    "utils/data/sampler.py",
)
PROGRAMS = range(12)
STANDARD = ("contextlib.py", "dataclasses.py", "difflib.py", "textwrap.py", "tokenize.py")


def _files() -> list[Path]:
    torch = importlib.util.find_spec("torch")
    package = Path(torch.origin).parent if torch and torch.origin else Path("missing")
    standard = Path(sysconfig.get_path("stdlib"))
    fixtures = Path(str(files("torchlint.fixtures")))
    pairs = sorted(path for path in fixtures.glob("*/*.py") if path.name != "fast.py")  # which is as its slow.py is
    found = [*pairs, *(standard / name for name in STANDARD)]
    return found + [path for name in TORCH if (path := package / name).is_file()]


def _sources() -> Iterator[object]:
    """Files and seeds of programs. One file in ten is read everywhere, all of them in CI."""
    for number, path in enumerate(_files()):
        marks = [pytest.mark.slow] * (number % 10 > 0)
        yield pytest.param(
            lambda path=path: SourceFile.from_bytes(path.name, path.read_bytes()),
            marks=marks,
            id="/".join(path.parts[-2:]),
        )
    for seed in PROGRAMS:
        yield pytest.param(lambda seed=seed: SourceFile("program.py", program(seed)), id=f"program {seed}")


class Oracle:
    """One parsed file with what LibCST says of it."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.module = cst.parse_module(self.source.text)
        self.tree = Tree(self.module)
        providers = (ExpressionContextProvider, ParentNodeProvider, PositionProvider, QualifiedNameProvider)
        facts: Any = MetadataWrapper(self.module, unsafe_skip_copy=True).resolve_many(providers)
        self.contexts, self.parents, self.positions, self.names = (facts[provider] for provider in providers)

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Start and end in code points."""
        starts = self.source.line_starts
        place = self.positions[node]
        return starts[place.start.line - 1] + place.start.column, starts[place.end.line - 1] + place.end.column


@pytest.mark.parametrize("read", [*_sources()])
def test_what_libcst_says(read: Callable[[], SourceFile], subtests: pytest.Subtests) -> None:
    oracle = Oracle(read())
    for check in (
        *(has_its_parents, leaves_no_code_out, is_in_source_order, has_its_positions, has_positions_that_do_not_depend),
        *(has_qualified_names, is_parsed_alike),
    ):
        with subtests.test(check.__name__):
            check(oracle)


def has_its_parents(oracle: Oracle) -> None:
    for node in oracle.tree.nodes:
        assert oracle.tree.parent(node) is oracle.parents.get(node), oracle.module.code_for_node(node)


def leaves_no_code_out(oracle: Oracle) -> None:
    statements = (cst.BaseStatement, cst.BaseSmallStatement, cst.BaseSuite)
    code = (*statements, cst.BaseExpression, cst.Arg, cst.Param, cst.Decorator)
    wanted = {node for node in oracle.parents if isinstance(node, code)}
    assert wanted <= set(oracle.tree.nodes)
    assert sum(map(len, oracle.tree.by_type.values())) == len(set(oracle.tree.nodes)) == len(oracle.tree.nodes)


def is_in_source_order(oracle: Oracle) -> None:
    last = 0
    for node in oracle.tree.nodes:
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):  # begins behind its decorators for LibCST, before for us
            continue
        if isinstance(node, (cst.BaseExpression, cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            start, _ = oracle.span(node)
            assert start >= last, oracle.module.code_for_node(node)
            last = start


def has_its_positions(oracle: Oracle) -> None:
    spans = Spans(oracle.tree, oracle.tree.nodes, oracle.source.text)
    assert spans.faithful
    for node in oracle.tree.nodes:
        span = spans.inner(node)
        assert (span.start, span.end) == oracle.span(node), oracle.module.code_for_node(node)
        if isinstance(node, cst.BaseExpression):
            outer = spans.outer(node)
            code = oracle.source.text[outer.start : outer.end]
            # Alone, a node is generated without the indentation of the block around it.
            assert code.split() == oracle.module.code_for_node(node).split()


def has_positions_that_do_not_depend(oracle: Oracle) -> None:
    nodes = oracle.tree.nodes
    for node in nodes[:: len(nodes) // 10 + 1]:
        span = Spans(oracle.tree, [node], oracle.source.text).inner(node)
        assert (span.start, span.end) == oracle.span(node), oracle.module.code_for_node(node)


def has_qualified_names(oracle: Oracle) -> None:
    names = Names(oracle.tree)
    captures: list[cst.MatchAs | cst.MatchStar] = [*oracle.tree.of(cst.MatchAs), *oracle.tree.of(cst.MatchStar)]
    patterns = {capture.name.value for capture in captures if capture.name is not None}
    compared = 0
    for node in oracle.tree.of(cst.Name, cst.Attribute):
        if oracle.contexts.get(node) is not ExpressionContext.LOAD or dotted(node) is None:
            continue
        above = list(oracle.tree.ancestors(node))
        if any(isinstance(parent, (cst.Import, cst.ImportFrom)) for parent in above):
            continue
        if isinstance(above[0], cst.Arg) and above[0].keyword is node:
            continue
        first = _first(node)
        if first.value in patterns:  # of which the provider knows nothing
            continue
        found = oracle.names.get(node, ())
        found = found() if callable(found) else found
        expected = {_plain(name.name) for name in found if name.source is not QualifiedNameSource.LOCAL}
        is_local = any(name.source is QualifiedNameSource.LOCAL for name in found)
        mine = names.qualified(node)
        if mine is None:
            # Several imports, or an import and a local name: we are not certain, and say so.
            assert is_local or len(expected) != 1, oracle.module.code_for_node(node)
        elif not is_local:  # what local names stand for, the provider does not follow
            # Of `dict.fromkeys` the provider names only `dict`.
            named = expected & {_plain(mine), mine.partition(".")[0]}
            # What is bound further down has no name for the provider.
            assert named or (not expected and names.reaching(first)[0].effect > oracle.tree.place(node)), (
                mine,
                expected,
            )
            compared += 1
    assert compared or not oracle.tree.of(cst.Name)


def _first(node: cst.CSTNode) -> cst.Name:
    """`a` of `a.b.c`."""
    while isinstance(node, cst.Attribute):
        node = node.value
    assert isinstance(node, cst.Name)
    return node


def _plain(name: str) -> str:
    return canonical(name.removeprefix("builtins."))


@pytest.mark.parametrize("text", ["x = 1\n", "x = (\n"])
def test_nodes_made_by_hand_are_checked_after_a_parse(text: str) -> None:
    with suppress(cst.ParserSyntaxError):
        parse(text)
    with pytest.raises(cst.CSTValidationError):
        cst.Name("")


def is_parsed_alike(oracle: Oracle) -> None:
    assert parse(oracle.source.text).deep_equals(oracle.module)
