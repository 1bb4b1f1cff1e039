"""Graphs of bodies: which places follow which, under which condition, and what dominates what."""

from __future__ import annotations

import random
from itertools import pairwise

import libcst as cst
import pytest

from torchlint.syntax.control_flow import ENTRY, EXIT, ControlFlow, Graph
from torchlint.syntax.dominance import Dominance, Landmarks
from torchlint.syntax.tree import Tree


def graph_of(code: str) -> tuple[Graph, Tree]:
    """The graph of a module in which `stop()` never returns and `quiet` swallows."""
    tree = Tree(cst.parse_module(code))
    flow = ControlFlow(
        tree,
        lambda call: isinstance(call.func, cst.Name) and call.func.value == "stop",
        lambda item: isinstance(item.item, cst.Name) and item.item.value == "quiet",
    )
    return flow.graph(tree.module), tree


def followers(code: str) -> dict[str, str]:
    """For each call of one letter those that may come next, `$` for the end of the body."""
    graph, tree = graph_of(code)
    calls: dict[int, list[tuple[int, str]]] = {}
    for call in tree.of(cst.Call):
        if isinstance(call.func, cst.Name) and len(call.func.value) == 1:
            place = tree.place(call)
            for block in graph.at(place):
                calls.setdefault(block, []).append((place, call.func.value))
    found: dict[str, set[str]] = {}
    for block, inside in calls.items():
        names = [name for _, name in sorted(inside)]
        for name, following in pairwise(names):
            found.setdefault(name, set()).add(following)
        seen = {block}
        stack = list(graph.successors[block])
        while stack:
            target = stack.pop()
            if target == EXIT:
                found.setdefault(names[-1], set()).add("$")
            elif target in calls:
                found.setdefault(names[-1], set()).add(min(calls[target])[1])
            elif target not in seen:
                stack += graph.successors[target]
            seen.add(target)
        found.setdefault(names[-1], set())
    return {name: "".join(sorted(following)) for name, following in sorted(found.items())}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a()\nb()", {"a": "b", "b": "$"}),
        ("if a():\n    b()\nc()", {"a": "bc", "b": "c", "c": "$"}),
        ("if a():\n    b()\nelif c():\n    d()\nelse:\n    e()\nf()", {"a": "bc", "b": "f", "c": "de", "d": "f", "e": "f", "f": "$"}),
        ("while a():\n    b()\nc()", {"a": "bc", "b": "a", "c": "$"}),
        ("while True:\n    a()\n    if b():\n        break\nc()", {"a": "b", "b": "ac", "c": "$"}),
        ("while a():\n    if b(): continue\n    if c(): break\nelse:\n    d()\ne()", {"a": "bd", "b": "ac", "c": "ae", "d": "e", "e": "$"}),
        ("for x in a():\n    b()\nelse:\n    c()", {"a": "bc", "b": "bc", "c": "$"}),
        ("a()\nraise\nb()", {"a": "", "b": "$"}),
        ("if a():\n    stop()\nb()", {"a": "b", "b": "$"}),
        ("assert a(), b()\nc()", {"a": "bc", "b": "", "c": "$"}),
        ("try:\n    x = a()\n    y = b()\nexcept E:\n    c()\nd()", {"a": "bc", "b": "d", "c": "d", "d": "$"}),
        ("try:\n    x = a()\nexcept E:\n    c()\nelse:\n    b()\nd()", {"a": "b", "b": "d", "c": "d", "d": "$"}),
        ("try:\n    x = a()\nfinally:\n    b()\nc()", {"a": "b", "b": "$c", "c": "$"}),
        ("with quiet:\n    x = a()\n    y = b()\nc()", {"a": "bc", "b": "c", "c": "$"}),
        ("with open:\n    x = a()\n    y = b()\nc()", {"a": "b", "b": "c", "c": "$"}),
        ("match a():\n    case 1:\n        b()\n    case _:\n        c()\nd()", {"a": "bc", "b": "d", "c": "d", "d": "$"}),
        ("match a():\n    case 1:\n        b()\n    case 2 if c():\n        d()\ne()", {"a": "bce", "b": "e", "c": "de", "d": "e", "e": "$"}),
        ("(x := a()) and b()\nc()", {"a": "bc", "b": "c", "c": "$"}),
    ],
)  # fmt: skip
def test_what_follows(code: str, expected: dict[str, str]) -> None:
    assert followers(code) == expected


def test_each_way_through_a_finally_has_a_copy() -> None:
    code = "for i in y:\n    try:\n        if a:\n            break\n        if b:\n            continue\n    finally:\n        f()\n"
    graph, tree = graph_of(code)
    call = next(call for call in tree.of(cst.Call) if isinstance(call.func, cst.Name) and call.func.value == "f")
    assert len(graph.at(tree.place(call))) == 4  # by its end, by an exception, by `break`, by `continue`


def test_copies_do_not_multiply() -> None:
    code = (
        "".join(f"{' ' * depth}try:\n{' ' * depth} g()\n{' ' * depth}finally:\n" for depth in range(15))
        + " " * 15
        + "f()\n"
    )
    graph, _ = graph_of(code)
    assert len(graph.successors) < 1500


def test_conditions_stand_on_edges() -> None:
    graph, tree = graph_of("if a:\n    f()\nelse:\n    g()\n")
    f, g = (graph.at(tree.place(call))[0] for call in tree.of(cst.Call))
    (test,) = [branch.test for branch in tree.of(cst.If)]
    assert graph.conditions[f] == (test, True)
    assert graph.conditions[g] == (test, False)
    assert graph.predecessors[f] == graph.predecessors[g] == [ENTRY]


def test_deep_nesting_and_long_chains_are_no_recursion() -> None:
    chain = "if a:\n    f()\n" + "elif b:\n    f()\n" * 2000
    assert len(graph_of(chain)[0].conditions) == 2 * 2001
    deep = "".join(f"{' ' * depth}if a:\n" for depth in range(90)) + " " * 90 + "f()\n"
    assert len(graph_of(deep)[0].conditions) == 2 * 90
    walruses = "x = " + "(" * 150 + "(y := 1)" + " + 1)" * 150 + "\n"
    assert EXIT in graph_of(walruses)[0].successors[-1]


# Dominance


def random_graph(seed: int) -> Graph:
    """The graph of a random program of branches, loops and handlers."""
    chosen = random.Random(seed)  # noqa: S311 - any programs

    def suite(depth: int, pad: str) -> str:
        text = ""
        for _ in range(chosen.randint(1, 3)):
            kind = chosen.choice("if while for try with simple jump".split()) if depth < 4 else "simple"
            body = suite(depth + 1, pad + "    ") if kind not in ("simple", "jump") else ""
            match kind:
                case "if":
                    text += f"{pad}if a:\n{body}{pad}else:\n{suite(depth + 1, pad + '    ')}"
                case "while":
                    text += f"{pad}while {chosen.choice(('a', 'True'))}:\n{body}{pad}    if b: break\n"
                case "for":
                    text += f"{pad}for x in y:\n{body}{pad}    if b: continue\n"
                case "try":
                    text += f"{pad}try:\n{pad}    z = f()\n{body}{pad}except E:\n{pad}    g()\n{pad}finally:\n{pad}    h()\n"
                case "with":
                    text += f"{pad}with quiet:\n{body}"
                case "jump":
                    text += f"{pad}if c: {chosen.choice(('raise', 'stop()'))}\n"
                case _:
                    text += f"{pad}x = f()\n"
        return text

    return graph_of(suite(0, ""))[0]


def reachable(graph: Graph, without: int | None = None) -> set[int]:
    found: set[int] = set()
    stack = [ENTRY] if without != ENTRY else []
    while stack:
        block = stack.pop()
        if block not in found and block != without:
            found.add(block)
            stack += graph.successors[block]
    return found


@pytest.mark.parametrize("seed", range(25))
def test_dominators_are_what_all_ways_pass(seed: int) -> None:
    graph = random_graph(seed)
    dominance = Dominance(graph)
    blocks = reachable(graph)
    assert set(dominance.order) == blocks
    dominated = {block: blocks - reachable(graph, without=block) for block in blocks}
    chosen = random.Random(seed)  # noqa: S311
    some = set(chosen.sample(sorted(blocks), min(len(blocks), 6)))
    landmarks = Landmarks(dominance, some)
    for block in blocks:
        first, last = dominance.first[block], dominance.last[block]
        assert {other for other in blocks if first <= dominance.first[other] <= last} == dominated[block]
        above = [landmark for landmark in some if block in dominated[landmark]]
        nearest = max(above, key=lambda landmark: dominance.first[landmark]) if above else None
        assert landmarks.nearest(block) == nearest
        sources = {landmarks.nearest(source) for source in dominance.predecessors[block]} - {None}
        assert landmarks.before(block) == sources
        frontier = {
            other
            for other in blocks - {EXIT}
            if any(source in dominated[block] for source in dominance.predecessors[other])
            and (other not in dominated[block] or other == block)
        }
        assert frontier <= dominance.meetings([block])


def test_many_ways_into_one_block_are_counted_together() -> None:
    graph, _ = graph_of("try:\n" + "".join(f"    x{n} = f()\n" for n in range(50)) + "except E:\n    g()\n")
    dominance = Dominance(graph)
    blocks = dominance.order
    landmarks = Landmarks(dominance, blocks[::9])
    for block in blocks:
        sources = {landmarks.nearest(source) for source in dominance.predecessors[block]} - {None}
        assert landmarks.before(block) == sources
