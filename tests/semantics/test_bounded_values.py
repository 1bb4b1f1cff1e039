"""No value grows with the code that makes it, and what a line costs does not depend on how many there are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from textwrap import indent
from types import FrameType

import libcst as cst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchlint.linter import lint
from torchlint.registry import all_rules
from torchlint.semantics.context import Context
from torchlint.semantics.values.lattice import (
    MOST_PARTS,
    NUMBER,
    UNKNOWN,
    Value,
    join,
    mapping_of,
    sequence,
    sequence_of,
)
from torchlint.settings import Settings
from torchlint.source import SourceFile
from torchlint.syntax.tree import Tree

# Each makes `v` of `p` and `o`, the names that two such lines above it have bound.
OPERATORS = (
    "{p} + {p}", "{p} + {o}", "{p} @ {p}", "{p} * {o}", "{p} < {p}", "({p}, {p})", "[{p}, {o}]", "[{p}, *{p}, *{o}]",
    "{{'a': {p}, 'b': {o}}}", "{{'a': {{'b': {p}}}, **{o}}}", "{p} or [{o}]", "{p} if q else ({p}, {o})",
    "[{p} for _ in {o}]", "{{i: {p} for i in {o}}}", "({p}[0], {o}[1])", "{p}[1:]", "zip({p}, {o})", "enumerate({p})",
    "dict(a={p}, b={o})", "list({p})", "max({p}, {o})", "torch.stack({p})", "(n := {p} + {o})", "{p}.copy()",
)  # fmt: skip
BINDERS = (
    "{v} = {e}", "({v} := {e})", "{v} = {p}\n{v} += {e}", "with {e} as {v}: pass", "for {v} in {e}: pass",
    "for {v} in [{e}, {e}]: pass", "{v}, _ = ({e}, {p}), {o}", "_, *{v} = {e}, {e}, {e}",
    "{v} = []\n{v}.append({e})\n{v}.append({p})", "def {v}(a={p}): return {e}", "def f{v}(a): return {e}\n{v} = f{v}({o})",
    "{v} = lambda: {e}", "if q:\n    {v} = {e}\nelse:\n    {v} = {p}",
)  # fmt: skip
PLACES = ("{}", "while q:\n{}", "def f(v0, v1):\n{}\nf([1], f([2], [3]))", "class A:\n    def f(self, v0, v1):\n{}")
# What `MOST_PARTS` allows: a container has one more part for what all of them are, and the innermost nothing else.
LARGEST = 2
for _most in reversed(MOST_PARTS):
    LARGEST = 1 + (_most + 1) * LARGEST


def size(value: Value) -> int:
    """The values that it holds, itself among them, counted no further than is allowed."""
    found, waiting = 0, [value]
    while waiting and found <= LARGEST:
        found += 1
        inner = waiting.pop()
        waiting += inner.items
        waiting += [inner.item] if inner.item is not None else []
    return found


def steps(work: Callable[[], object]) -> int:
    """The calls of functions in Python that something takes: a measure that is the same on each machine."""
    number = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal number
        number += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return number


def chain(lines: list[tuple[str, str]], length: int, place: str) -> str:
    """So many lines, each with what the two before it have bound."""
    made = ["v0, v1 = [1, 2], [[3], 4]"]
    for number, (binder, operator) in zip(range(length), lines * length, strict=False):
        names = {"v": f"v{number + 2}", "p": f"v{number + 1}", "o": f"v{number}"}
        made.append(binder.format(e=operator.format(**names), **names))
    made.append(f"v0, v1 = v{length}, v{length + 1}")
    inner = "\n".join(made)
    for _ in range(place.count("    ") + ("\n{}" in place)):
        inner = indent(inner, "    ")
    return "import torch\n" + place.format(inner) + "\n"


def asked(text: str) -> tuple[int, list[Value]]:
    """What it takes to say what every expression holds, and what they hold."""
    context = Context(Tree(cst.parse_module(text)), SourceFile("snippet.py", text), Settings(()))
    nodes = [node for node in context.tree.nodes if isinstance(node, (cst.BaseExpression, cst.FunctionDef))]
    values: list[Value] = []
    return steps(lambda: values.extend(map(context.value, nodes))), values


@settings(deadline=None, derandomize=True, max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from(BINDERS), st.sampled_from(OPERATORS)), min_size=1, max_size=3),
    st.sampled_from(PLACES),
)
def test_values_are_bounded_and_so_is_the_cost_of_a_line(lines: list[tuple[str, str]], place: str) -> None:
    _, values = asked(chain(lines, 12, place))
    assert max(map(size, values)) <= LARGEST
    costs = [asked(chain(lines, length, place))[0] for length in (6, 12, 24)]
    # In a loop all lines depend on each other, so that some answers are worked out a few times.
    assert costs[2] - costs[1] <= 3 * (costs[1] - costs[0]), costs


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("operator", ["{p} + {p}", "({p}, {p})"])
def test_a_check_of_thirty_two_lines_costs_twice_that_of_sixteen(operator: str, place: str) -> None:
    """With all rules, one of which asks what the last one holds."""

    def cost(length: int) -> int:
        lines = chain([("{v} = {e}", operator)], length, place)
        source = SourceFile("snippet.py", f"{lines}for x in v{length}:\n    print(x.cuda().item())\n")
        return steps(lambda: lint(source, settings_of_all))

    settings_of_all = Settings(tuple(rule.name for rule in all_rules()))
    cost(4)  # what is loaded once
    costs = [cost(4), cost(8)]
    for length in (16, 32):
        costs.append(cost(length))
        assert costs[-1] - costs[-2] <= 3 * (costs[-2] - costs[-3])


def test_parts_are_told_apart_up_to_a_limit() -> None:
    few = sequence(*[NUMBER] * (MOST_PARTS[0] - 1), sequence(UNKNOWN))
    assert len(few.items) == MOST_PARTS[0]
    many = sequence(*few.items, NUMBER)
    assert many == sequence_of(join(few.items))
    assert len(sequence(sequence(*[NUMBER] * MOST_PARTS[1])).items[0].items) == MOST_PARTS[1]
    assert sequence(sequence(*[NUMBER] * (MOST_PARTS[1] + 1))).items[0] == sequence_of(NUMBER)


def test_containers_are_followed_to_a_limit() -> None:
    value = NUMBER
    for _ in range(2 * len(MOST_PARTS)):
        value = mapping_of(value)
    depth = 0
    while value.item is not None:
        value, depth = value.item, depth + 1
    assert depth == len(MOST_PARTS) + 1
    assert value is UNKNOWN
