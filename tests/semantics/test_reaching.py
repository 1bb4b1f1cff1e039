"""Which bindings reach a use: each shape of control flow by hand, and programs at random that say what they saw."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import libcst as cst
import pytest
from flowing import Programs, context_of, observed, predicted
from looking import look

from torchlint.semantics.names.bindings import Names
from torchlint.semantics.names.narrowing import Narrowing
from torchlint.syntax.tree import Tree

SHAPES = {
    # Branches that do not go on.
    "return": ("def f():\n    x = 1\n    if a:\n        x = 2\n        return\n    LOOK(x)", "1"),
    "return in an inner branch": ("def f():\n    x = 1\n    if a:\n        x = 2\n        if b: return\n    LOOK(x)", "1 2"),
    "raise": ("x = 1\nif a:\n    x = 2\n    raise E\nLOOK(x)", "1"),
    "continue": ("for i in y:\n    x = 1\n    if a:\n        x = 2\n        continue\n    LOOK(x)", "1"),
    "behind a loop after continue": ("x = 0\nfor i in y:\n    x = 1\n    if a:\n        x = 2\n        continue\nLOOK(x)", "0 1 2"),
    "break": ("x = 0\nfor i in y:\n    x = 1\n    if a:\n        x = 2\n        break\n    LOOK(x)", "1"),
    "sys.exit": ("import sys\nx = 1\nif a:\n    x = 2\n    sys.exit(1)\nLOOK(x)", "1"),
    "exit by another name": ("from sys import exit as leave\nx = 1\nif a:\n    x = 2\n    leave()\nLOOK(x)", "1"),
    "exit": ("x = 1\nif a:\n    x = 2\n    exit()\nLOOK(x)", "1"),
    "an exit of one's own": ("def exit(): ...\nx = 1\nif a:\n    x = 2\n    exit()\nLOOK(x)", "1 2"),
    "os._exit": ("import os\nx = 1\nif a:\n    x = 2\n    os._exit(1)\nLOOK(x)", "1"),
    "NoReturn": ("def die() -> NoReturn: ...\nx = 1\nif a:\n    x = 2\n    die()\nLOOK(x)", "1"),
    "assert False": ("x = 1\nif a:\n    x = 2\n    assert False\nLOOK(x)", "1"),
    # Branches that do.
    "one arm": ("x = 1\nif a:\n    x = 2\nLOOK(x)", "1 2"),
    "both arms": ("x = 1\nif a:\n    x = 2\nelse:\n    x = 3\nLOOK(x)", "2 3"),
    "all arms": ("x = 1\nif a:\n    x = 2\nelif b:\n    x = 3\nelse:\n    x = 4\nLOOK(x)", "2 3 4"),
    "all arms but one": ("x = 1\nif a:\n    x = 2\nelif b:\n    x = 3\nLOOK(x)", "1 2 3"),
    "the other arm": ("x = 1\nif a:\n    x = 2\nelse:\n    LOOK(x)", "1"),
    "the other arm in a loop": ("x = 1\nfor i in y:\n    if a:\n        x = 2\n    else:\n        LOOK(x)", "1 2"),
    "if True": ("x = 1\nif True:\n    x = 2\nLOOK(x)", "2"),
    # What is None holds nothing else that it was bound to.
    "not None": ("x = f()\nif x is not None:\n    x = 2\nLOOK(x)", "2"),
    "None": ("x = f()\nif x is None:\n    g()\nelse:\n    x = 2\nLOOK(x)", "2"),
    "not None, and more": ("x = f()\nif x is not None and a:\n    x = 2\nLOOK(x)", "f() 2"),
    "None or more": ("x = f()\nif not (x is None or a):\n    x = 2\nLOOK(x)", "f() 2"),
    "where it is None": ("x = f()\nif x is None:\n    LOOK(x)\n    x = 2", "f()"),
    "None from the beginning": ("x = None\nif a:\n    x = f()\nif x is not None:\n    x = 2\nLOOK(x)", "None 2"),
    "None on a way that leaves": ("x = f()\nif x is None:\n    x = 2\nLOOK(x)", "f() 2"),
    "None in a loop": ("x = f()\nfor i in y:\n    if x is not None:\n        x = 2\n    LOOK(x)", "2"),
    "not None twice": ("x = f()\nif x is not None:\n    x = 2\nif x is not None:\n    x = 3\nLOOK(x)", "3"),
    "falsy": ("x = f()\nif x:\n    x = 2\nLOOK(x)", "f() 2"),
    "another's binding": (
        "x = f()\ndef h():\n    global x\n    x = 3\nif x is not None:\n    x = 2\nLOOK(x)",
        "3 2",
    ),
    # Patterns.
    "match": ("x = 1\nmatch a:\n    case 1:\n        x = 2\n    case 2:\n        x = 3\nLOOK(x)", "1 2 3"),
    "exhaustive match": ("x = 1\nmatch a:\n    case 1:\n        x = 2\n    case _:\n        x = 3\nLOOK(x)", "2 3"),
    "exhaustive by a capture": ("x = 1\nmatch a:\n    case 1:\n        x = 2\n    case b:\n        x = 3\nLOOK(x)", "2 3"),
    "a guard": ("x = 1\nmatch a:\n    case 1:\n        x = 2\n    case _ if b:\n        x = 3\nLOOK(x)", "1 2 3"),
    # Exceptions.
    "try": ("x = 0\ntry:\n    x = f()\nexcept E:\n    LOOK(x)", "0"),
    "further down in a try": ("x = 0\ntry:\n    x = 1\n    f()\nexcept E:\n    LOOK(x)", "0 1"),
    "behind a try": ("x = 0\ntry:\n    x = f()\nexcept E:\n    pass\nLOOK(x)", "0 f()"),
    "a handler that leaves": ("x = 0\ntry:\n    x = f()\nexcept E:\n    raise\nLOOK(x)", "f()"),
    "else of try": ("x = 0\ntry:\n    x = f()\nexcept E:\n    x = 2\nelse:\n    LOOK(x)", "f()"),
    "in finally": ("x = 0\ntry:\n    x = f()\nfinally:\n    LOOK(x)", "0 f()"),
    "behind finally": ("x = 0\ntry:\n    x = f()\nfinally:\n    g()\nLOOK(x)", "f()"),
    "bound in finally": ("x = 0\ntry:\n    x = f()\nexcept E:\n    x = 1\nfinally:\n    x = 2\nLOOK(x)", "2"),
    "finally behind return": ("def f():\n    x = 1\n    try:\n        x = 2\n        return\n    finally:\n        LOOK(x)", "2"),
    "a return through finally": (
        "def f():\n    x = 1\n    try:\n        if a:\n            x = 2\n            return\n    finally:\n        g()\n    LOOK(x)",
        "1",
    ),
    "a break through finally": (
        "x = 0\nwhile True:\n    x = 1\n    try:\n        if a:\n            x = 2\n            break\n    finally:\n        g()\nLOOK(x)",
        "2",
    ),
    "a handler around another": (
        "x = 0\ntry:\n    try:\n        x = 1\n        f()\n    except A:\n        x = 2\nexcept B:\n    LOOK(x)",
        "0 1",
    ),
    # Loops.
    "while True": ("x = 0\nwhile True:\n    x = 1\n    if a:\n        break\nLOOK(x)", "1"),
    "while a": ("x = 0\nwhile a:\n    x = 1\n    if b:\n        break\nLOOK(x)", "0 1"),
    "for": ("x = 0\nfor i in y:\n    x = 1\nLOOK(x)", "0 1"),
    "for else": ("x = 0\nfor i in y:\n    x = 1\n    break\nelse:\n    LOOK(x)", "0"),
    "bound in else": ("x = 0\nfor i in y:\n    if a:\n        x = 1\n        break\nelse:\n    x = 2\nLOOK(x)", "1 2"),
    "rebinds in the loop": ("x = f()\nfor i in y:\n    x = LOOK(x).cpu()", "f() LOOK(x).cpu()"),
    "to a fixpoint": (
        "x = y = z = 0\nwhile a:\n    LOOK(x)\n    x = 1\n    if b:\n        x = 2\n        continue\n    while c:\n        x = 3\n",
        "0 1 2 3",
    ),
    "the target": ("x = 0\nfor x in y:\n    LOOK(x)", "y"),
    "the target behind": ("x = 0\nfor x in y:\n    pass\nLOOK(x)", "0 y"),
    "the iterable": ("x = 0\nfor x in LOOK(x):\n    pass", "0"),
    # With.
    "with that may swallow": ("x = 0\nwith a:\n    x = f()\nLOOK(x)", "0 f()"),
    "with that does not": ("x = 0\nwith open(a) as b:\n    x = f()\nLOOK(x)", "f()"),
    "with of torch": ("import torch\nx = 0\nwith torch.no_grad():\n    x = f()\nLOOK(x)", "f()"),
    "suppress": ("from contextlib import suppress\nx = 0\nwith suppress(E):\n    x = f()\nLOOK(x)", "0 f()"),
    "a manager of one's own": (
        "class C:\n    def __exit__(self, *_):\n        self.a = 1\nx = 0\nwith C():\n    x = f()\nLOOK(x)",
        "f()",
    ),
    "a manager of one's own that swallows": (
        "class C:\n    def __exit__(self, *_):\n        return True\nx = 0\nwith C():\n    x = f()\nLOOK(x)",
        "0 f()",
    ),
    "a generator as manager": (
        "@contextmanager\ndef c():\n    yield\nx = 0\nwith c():\n    x = f()\nLOOK(x)",
        "f()",
    ),
    "a generator as manager that swallows": (
        "@contextmanager\ndef c():\n    try:\n        yield\n    except E:\n        pass\nx = 0\nwith c():\n    x = f()\nLOOK(x)",
        "0 f()",
    ),
    "one of two managers": ("m = open(b) if a else no()\nx = 0\nwith m:\n    x = f()\nLOOK(x)", "0 f()"),
    "with as": ("x = 0\nwith open(a) as x, g(LOOK(x)):\n    pass", "open(a)"),
    # Names that end, and names that are only declared.
    "del": ("x = 1\nif a:\n    x = 2\n    del x\nLOOK(x)", "1"),
    "del in the other branch": ("x = 1\nif a:\n    del x\nelse:\n    LOOK(x)\nx = 2", "1"),
    "del of several": ("x = 1\nif a:\n    x = 2\n    del y, (x, z)\nLOOK(x)", "1"),
    "behind a del": ("x = 1\ndel x\nx = 2\nLOOK(x)", "2"),
    "except as": ("x = 1\ntry:\n    f()\nexcept E as x:\n    pass\nLOOK(x)", "1"),
    "an annotation": ("x = 1\nx: int\nLOOK(x)", "1"),
    # Expressions.
    "walrus": ("x = 1\n(x := 2)\nLOOK(x)", "2"),
    "walrus in a test": ("x = 1\nif (x := f()):\n    LOOK(x)", "f()"),
    "walrus behind and": ("x = 1\nif a and (x := 2):\n    LOOK(x)", "2"),
    "walrus behind and, else": ("x = 1\nif a and (x := 2):\n    pass\nelse:\n    LOOK(x)", "1 2"),
    "walrus behind or": ("x = 1\na or (x := 2)\nLOOK(x)", "1 2"),
    "walrus in the test of a conditional": ("x = 1\ny = LOOK(x) if (x := 2) else 3", "2"),
    "walrus in a comprehension": ("x = 1\ny = [LOOK(x) for i in z if (x := 2)]", "2"),
    "behind a comprehension": ("x = 1\ny = [i for i in z if (x := 2)]\nLOOK(x)", "1 2"),
    "a comprehension": ("x = 1\nx = 2\ny = [LOOK(x) for i in z]", "2"),
    "augmented": ("x = 1\nif a:\n    x += 2\nLOOK(x)", "1 2"),
    # Functions and classes inside.
    "a nested function": ("def f():\n    x = 1\n    x = 2\n    def g():\n        LOOK(x)\n    x = 3\n", "2 3"),
    "a nested function in a loop": ("def f():\n    x = 0\n    for i in y:\n        def g():\n            LOOK(x)\n        x = 1\n", "0 1"),
    "a nested function in a loop, before": (
        "def f():\n    x = 0\n    x = 1\n    for i in y:\n        x = 2\n        def g():\n            LOOK(x)\n",
        "2",
    ),
    "a lambda": ("def f():\n    x = 1\n    g = lambda: LOOK(x)\n    x = 2\n", "1 2"),
    "a generator kept": ("def f():\n    x = 1\n    g = (LOOK(x) for i in y)\n    x = 2\n", "1 2"),
    "a generator used up": ("def f():\n    x = 1\n    any(LOOK(x) for i in y)\n    x = 2\n", "1"),
    "nonlocal": ("def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2\n    x = 3\n    LOOK(x)", "2 3"),
    "global": ("x = 1\ndef g():\n    global x\n    x = 2\nx = 3\nLOOK(x)", "2 3"),
    "a class body": ("x = 1\nx = 2\nclass C:\n    y = LOOK(x)\nx = 3", "2"),
    "a class body that may bind": ("x = 1\nclass C:\n    if a:\n        x = 2\n    y = LOOK(x)", "1 2"),
    "a class body that binds": ("x = 1\nclass C:\n    x = LOOK(x)", "1"),
    "a class body in a function": ("x = 1\ndef f():\n    x = 2\n    class C:\n        x = LOOK(x)", "1"),
    # Where nothing gets, all of them.
    "unreachable": ("def f():\n    x = 1\n    x = 2\n    return\n    y = 1\n    if a:\n        x = 3\n    LOOK(x)", "1 2 3"),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_what_reaches_a_use(shape: str) -> None:
    code, values = SHAPES[shape]
    node, context = look(code)
    assert isinstance(node, cst.Name)
    found = [context.code(binding.value) for binding in context.reaching(node) if binding.value is not None]
    assert found == values.split()


# Programs that say what they saw


def test_all_that_programs_see_reaches() -> None:
    seen_at_all = 0
    for seed in range(120):
        text = Programs(seed, size=5 + seed % 12).program()
        seen, _ = observed(text, 200, seed)
        missing = seen - predicted(text)
        assert not missing, f"program {seed}: {sorted(missing)}\n{text}"
        seen_at_all += len(seen)
    assert seen_at_all > 500


def test_nothing_reaches_that_no_way_brings() -> None:
    """Programs all of whose ways are gone, in which every name is always bound and no function sees later bindings."""
    complete = 0
    for seed in range(60):
        text = Programs(seed, size=4 + seed % 5, plain=True).program()
        seen, is_all = observed(text, 600, seed)
        if is_all:
            complete += 1
            used = {use for use, _ in seen}  # nothing is known of what is never reached
            more = {(use, binding) for use, binding in predicted(text) if use in used} - seen
            assert not more, f"program {seed}: {sorted(more)}\n{text}"
    assert complete > 30


# The growth of the work


def straight(count: int) -> str:
    return "def f(x):\n" + "    x = g(x)\n    use(x)\n" * count


def branches(count: int) -> str:
    rows = (f"    x{n} = 1\n    if a: x{n} = 2\n    use(x{n})\n" for n in range(count))
    return "def f(a):\n" + "".join(rows)


def distant_uses(count: int) -> str:
    first = "".join(f"    x{n} = 1\n    if a: x{n} = 2\n" for n in range(count))
    return "def f(a):\n" + first + "".join(f"    use(x{n})\n" for n in range(count))


def chain(count: int) -> str:
    arms = "".join(f"    elif a == {n}:\n        x = {n}\n        use(x)\n" for n in range(count))
    return "def f(a):\n    x = 0\n    if a: pass\n" + arms + "    use(x)\n"


def chain_of_names(count: int) -> str:
    arms = "".join(
        f"    elif a == {n}:\n        x{n} = 1\n        if b: x{n} = 2\n        use(x{n})\n" for n in range(count)
    )
    return "def f(a):\n    if a: pass\n" + arms


def tries(count: int) -> str:
    rows = (f"    try:\n        x{n} = g()\n        x{n} = h()\n    except E:\n        x{n} = 0\n    finally:\n        use(x{n})\n" for n in range(count))  # fmt: skip
    return "def f(a):\n" + "".join(rows)


def one_try(count: int) -> str:
    rows = "".join(f"        x{n} = g()\n        x{n} = h(x{n})\n" for n in range(count))
    return f"def f(a):\n    try:\n{rows}    except E:\n        pass\n" + "".join(
        f"    use(x{n})\n" for n in range(count)
    )


def deep_branches(count: int) -> str:
    rows = "".join(f"{' ' * n} if a:\n{' ' * n}  x = g(x)\n" for n in range(count))
    return "def f(x, a):\n" + rows + " use(x)\n"


def deep(count: int) -> str:
    """Python nests at most twenty loops and `with`."""
    rows, pad = "", "    "
    for n in range(count):
        rows += f"{pad}{('if a', 'for i in y', 'while a', 'with a')[n % 4]}:\n{pad} x = g(x)\n"
        pad += " "
    return "def f(x, y, a):\n" + rows + "    use(x)\n"


def finals(count: int) -> str:
    rows, pad = "", "    "
    for _ in range(count):
        rows += f"{pad}try:\n{pad} x = g()\n{pad}finally:\n"
        pad += " "
    return f"def f(x):\n{rows}{pad}use(x)\n"


GROWING = [(one, 40) for one in (straight, branches, distant_uses, chain, chain_of_names, tries, one_try)]


@pytest.mark.parametrize(
    ("made", "count"),
    [*GROWING, (deep, 2), (finals, 5), (deep_branches, 9)],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_ten_times_as_long_takes_ten_times_the_steps(made: Callable[[int], str], count: int) -> None:
    once, often = steps(made(count)), steps(made(10 * count))
    assert often < 12 * once


def steps(text: str) -> int:
    """How many lines run to find what reaches each name of a program."""
    tree = Tree(cst.parse_module(text))
    names = Names(tree)
    lines = 0

    def note(_frame: FrameType, _event: str, _argument: object) -> Callable[..., Any]:
        nonlocal lines
        lines += 1
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        for name in tree.of(cst.Name):
            names.reaching(name)
    finally:
        sys.settrace(before)
    return lines


def test_two_thousand_arms() -> None:
    text = chain(2000) + "    LOOK(x)\n"
    context = context_of(text)
    use = context.names.spelt("x")[-1]
    assert len(context.reaching(use)) == 2001


# Narrowing

CONDITIONS = {
    "in the branch": ("def f(x):\n    if isinstance(x, T):\n        LOOK(x)", ["isinstance(x, T)"]),
    "in the other one": ("def f(x):\n    if isinstance(x, T):\n        pass\n    else:\n        LOOK(x)", ["not isinstance(x, T)"]),
    "behind it": ("def f(x):\n    if isinstance(x, T):\n        pass\n    LOOK(x)", []),
    "an early exit": ("def f(x):\n    if x is None:\n        return\n    LOOK(x)", ["not x is None"]),
    "an early exit, negated": ("def f(x):\n    if not isinstance(x, T):\n        raise E\n    LOOK(x)", ["isinstance(x, T)"]),
    "assert": ("def f(x):\n    assert isinstance(x, T)\n    LOOK(x)", ["isinstance(x, T)"]),
    "bound in between": ("def f(x):\n    assert isinstance(x, T)\n    x = g(x)\n    LOOK(x)", []),
    "bound in a branch in between": ("def f(x):\n    assert isinstance(x, T)\n    if a:\n        x = g(x)\n    LOOK(x)", []),
    "bound in a branch that leaves": (
        "def f(x):\n    assert isinstance(x, T)\n    if a:\n        x = g(x)\n        return x\n    LOOK(x)",
        ["isinstance(x, T)"],
    ),
    "bound further down in a loop": ("def f(x):\n    assert isinstance(x, T)\n    for i in y:\n        LOOK(x)\n        x = g(x)", []),
    "tested in each turn": ("def f(y):\n    for x in y:\n        if x.is_cuda:\n            continue\n        LOOK(x)", ["not x.is_cuda"]),
    "tested in an earlier turn": ("def f(y):\n    for x in y:\n        LOOK(x)\n        if x is None:\n            break", []),
    "and": ("def f(x):\n    if x and isinstance(x, T):\n        LOOK(x)", ["x", "isinstance(x, T)"]),
    "not and": ("def f(x):\n    if not (x is None or x.is_cuda):\n        LOOK(x)", ["not x is None", "not x.is_cuda"]),
    "or": ("def f(x):\n    if x or isinstance(x, T):\n        LOOK(x)", []),
    "in the same test": ("def f(x):\n    if isinstance(x, T) and g(LOOK(x)):\n        pass", ["isinstance(x, T)"]),
    "behind or": ("def f(x):\n    return x is None or LOOK(x)", ["not x is None"]),
    "a conditional": ("def f(x):\n    return 1 if x is None else LOOK(x)", ["not x is None"]),
    "a comprehension": ("y = [LOOK(x) for x in z if isinstance(x, T)]", ["isinstance(x, T)"]),
    "a comprehension's own name": ("def f(x):\n    if x:\n        return [LOOK(x) for x in z]", []),
    "two, the nearest first": (
        "def f(x):\n    if x is None:\n        return\n    while x.is_cuda:\n        LOOK(x)",
        ["x.is_cuda", "not x is None"],
    ),
    "a function inside": ("def f(x):\n    if x is None:\n        return\n    def g():\n        LOOK(x)", []),
    "a name from outside": ("def f():\n    if X is None:\n        return\n    LOOK(X)\nX = 1", ["not X is None"]),
    "a name that others bind": ("def f():\n    if X is None:\n        return\n    LOOK(X)\ndef g():\n    global X\n    X = 1", []),
    "a guard": ("def f(x):\n    match y:\n        case 1 if x is None:\n            LOOK(x)", ["x is None"]),
}  # fmt: skip


@pytest.mark.parametrize("shape", CONDITIONS)
def test_which_conditions_hold(shape: str) -> None:
    code, expected = CONDITIONS[shape]
    node, context = look(code)
    assert isinstance(node, cst.Name)
    found = Narrowing(context.names).conditions(node)
    assert [f"{'' if holds else 'not '}{context.code(test)}" for test, holds in found] == expected
