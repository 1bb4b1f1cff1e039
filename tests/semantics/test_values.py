"""Values are a lattice: the laws of `join`, and functions of values that know no more of what less is known of."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from looking import look

from torchlint.semantics.values.lattice import (
    BATCH,
    BOTTOM,
    DTYPE,
    NDARRAY,
    NONE,
    NUMBER,
    STRING,
    TENSOR,
    TOP,
    UNKNOWN,
    Device,
    Kind,
    Rank,
    Value,
    arithmetic,
    as_far_as_told,
    item_of,
    join,
    mapping_of,
    off_cpu,
    overridable,
    part_of,
    sequence,
    sequence_of,
    tensor,
    turn_of,
)

DEVICES = [Device(places) for places in range(1, 8)]
DEFINITIONS = [None, cst.Pass(), cst.Break()]
PATHS = [(0,), (1,), (7,), (-1,), (0, 0), (1, -1), (-1, 0)]

a_rank, a_device = st.sampled_from(Rank), st.sampled_from(DEVICES)
OF_NO_KIND = st.sampled_from([BOTTOM, UNKNOWN, TOP])
GIVING_WAY = st.sampled_from([UNKNOWN, NONE, NUMBER, NONE.likely(), NUMBER.likely()])
TENSORS = st.builds(Value, st.just(Kind.TENSOR), a_device, rank=a_rank, batch=st.booleans(), scalar=st.booleans())
STRINGS = st.builds(Value, st.just(Kind.STRING), a_device, rank=a_rank)
MODULES = st.builds(
    Value,
    st.just(Kind.MODULE),
    a_device,
    qualified=st.sampled_from(["", "torch.nn.Linear", "torch.nn.LSTM"]),
    definition=st.sampled_from(DEFINITIONS),
    rank=a_rank,
    scalar=st.booleans(),
)
OTHERS = st.builds(Value, st.sampled_from(sorted(set(Kind) - {Kind.UNKNOWN}, key=str)), rank=a_rank)
CONSTANTS = st.sampled_from([NUMBER, NONE, DTYPE, NDARRAY, STRING, BATCH, TENSOR])


def containers(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    parts = st.lists(inner, min_size=2, max_size=2) | st.lists(inner, max_size=3)
    return st.one_of(parts.map(lambda given: sequence(*given)), inner.map(sequence_of), inner.map(mapping_of))


VALUES = st.recursive(
    st.one_of(OF_NO_KIND, CONSTANTS, OTHERS, TENSORS, MODULES, STRINGS),
    lambda inner: containers(inner) | st.lists(inner, min_size=2, max_size=3).map(join),
    max_leaves=6,
)


def alike(values: st.SearchStrategy[Value]) -> st.SearchStrategy[tuple[Value, Value, Value]]:
    """Three of these values, some of them joined with what gives way to them."""
    ways = values | st.tuples(values, GIVING_WAY).map(join) | GIVING_WAY
    return st.tuples(ways, ways, ways)


# Most values contradict each other, so that nothing but TOP would come of three of any kind.
THREE = st.one_of(
    st.tuples(VALUES, VALUES, VALUES),
    *map(alike, (TENSORS, MODULES, STRINGS, containers(TENSORS), containers(containers(TENSORS | GIVING_WAY)))),
)
# What rules and the evaluator make of one value.
FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "item_of": item_of,
    "turn_of": turn_of,
    "off_cpu": off_cpu,
    "overridable": overridable,
    "likely": Value.likely,
    "as_far_as_told": lambda value: as_far_as_told(value, NUMBER),
    **{f"part_of {path}": lambda value, path=path: part_of(value, path) for path in PATHS},  # type: ignore[misc]
    **{f"on {place!r}": lambda value, place=place: value.on(place) for place in DEVICES},  # type: ignore[misc]
    **{f"ranked {rank!r}": lambda value, rank=rank: value.ranked(rank) for rank in Rank},  # type: ignore[misc]
}
MAKERS: dict[str, Callable[[Value], Value]] = {
    "sequence": sequence,
    "one of two": lambda value: sequence(value, NUMBER),
    "one of many": lambda value: sequence(value, *[NUMBER] * 40),
    "deep": lambda value: sequence(sequence(sequence(sequence(value, value)))),
    "sequence_of": sequence_of,
    "mapping_of": mapping_of,
}
laws = settings(deadline=None, derandomize=True, max_examples=200)


def is_below(one: Value, other: Value) -> bool:
    """Whether all that the other one says holds of the first, which may say more."""
    return join([one, other]) == other


@laws
@given(THREE)
def test_join_is_associative(values: tuple[Value, Value, Value]) -> None:
    one, two, three = values
    assert join([join([one, two]), three]) == join([one, join([two, three])]) == join([one, two, three])


@laws
@given(THREE)
def test_join_is_commutative(values: tuple[Value, Value, Value]) -> None:
    one, other, _ = values
    assert join([one, other]) == join([other, one])


@laws
@given(VALUES)
def test_join_is_idempotent(value: Value) -> None:
    again = join([value, tensor(), value])  # an equal object, and not the same
    assert join([value, value]) == value
    assert join([again, value]) == again


@laws
@given(VALUES)
def test_bottom_changes_nothing_and_top_everything(value: Value) -> None:
    assert join([value, BOTTOM]) == join([BOTTOM, value]) == value
    assert join([value, TOP]) is join([TOP, value]) is TOP


@laws
@given(THREE)
def test_join_is_monotone_and_the_least_upper_bound(values: tuple[Value, Value, Value]) -> None:
    one, two, more = values
    assert is_below(one, join([one, two]))
    assert is_below(join([one, two]), join([one, join([two, more])]))
    bound = join([one, two, more])
    assert is_below(join([one, two]), bound)


def test_what_ways_say_of_a_class_stays_where_they_agree() -> None:
    here, there = cst.Pass(), cst.Pass()
    one = Value(Kind.MODULE, qualified="torch.nn.ReLU", definition=here)
    same, other = one.on(Device.CPU), Value(Kind.MODULE, qualified="torch.nn.Linear", definition=there)
    assert (join([one, same]).qualified, join([one, same]).definition) == ("torch.nn.ReLU", here)
    assert (join([one, other]).qualified, join([one, other]).definition) == ("", None)
    assert join([sequence_of(STRING), Value(Kind.SEQUENCE)]).item == join([STRING, UNKNOWN])


def test_bottom_what_is_not_told_and_top_are_three() -> None:
    assert len({BOTTOM, UNKNOWN, TOP}) == 3
    assert is_below(BOTTOM, UNKNOWN)
    assert is_below(UNKNOWN, TOP)
    assert join([]) is BOTTOM
    assert not any((BOTTOM, UNKNOWN, TOP))
    assert join([TENSOR, STRING]) is TOP


@laws
@given(THREE)
@example((sequence(TENSOR, TENSOR), sequence_of(TENSOR), TENSOR))
@example((UNKNOWN, sequence(TENSOR, TENSOR), TENSOR))
@example((tensor(Device.CPU), tensor(Device.MAYBE), TENSOR))
@example((Value(Kind.STRING, Device.CPU), Value(Kind.STRING, Device.UNKNOWN), STRING))
def test_who_knows_less_of_a_value_knows_no_more_of_what_comes_of_it(values: tuple[Value, Value, Value]) -> None:
    value, other, _ = values
    less = join([value, other])
    assert [name for name, function in FUNCTIONS.items() if not is_below(function(value), function(less))] == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_comes_of_nothing_and_anything_of_a_contradiction(name: str) -> None:
    in_a_list = name.startswith("part_of") and "-1" in name
    assert item_of(FUNCTIONS[name](BOTTOM)) is BOTTOM if in_a_list else FUNCTIONS[name](BOTTOM) is BOTTOM
    assert item_of(FUNCTIONS[name](TOP)) is TOP if in_a_list else FUNCTIONS[name](TOP) is TOP


@laws
@given(THREE)
def test_so_does_a_container_of_it(values: tuple[Value, Value, Value]) -> None:
    value, other, _ = values
    less = join([value, other])
    assert [name for name, maker in MAKERS.items() if not is_below(maker(value), maker(less))] == []


@laws
@given(THREE | st.tuples(VALUES, VALUES, VALUES))
@example((sequence_of(STRING), NUMBER, TENSOR))
@example((NUMBER, NONE, TENSOR))
@example((tensor(Device.CPU), tensor(Device.CPU), tensor(Device.ACCELERATOR)))
def test_so_does_what_an_operator_gives(values: tuple[Value, Value, Value]) -> None:
    left, right, other = values
    assert is_below(arithmetic(left, right), arithmetic(join([left, other]), right))
    assert is_below(arithmetic(left, right), arithmetic(left, join([right, other])))


@laws
@given(VALUES)
def test_an_operator_gives_nothing_of_nothing(value: Value) -> None:
    assert arithmetic(BOTTOM, value) is arithmetic(value, BOTTOM) is BOTTOM


@laws
@given(THREE)
def test_a_word_for_the_devices_says_no_more_than_they_do(values: tuple[Value, Value, Value]) -> None:
    """Only what is on the CPU on each way is said to be there, and so for an accelerator."""
    one, other, _ = values
    both = join([one, other])
    if both and one.kind is other.kind:
        for place in (Device.CPU, Device.ACCELERATOR):
            assert (both.device is place) == (one.devices is other.devices is place)


@pytest.mark.parametrize(
    ("ways", "read"),
    [
        ([NUMBER, TENSOR], TENSOR),  # `loss = 0` before `loss = loss + …`
        ([NONE, TENSOR], TENSOR),
        ([NONE, STRING], STRING),
        ([NONE, NUMBER, TENSOR], TENSOR),
        ([NONE], NONE),
        ([tensor(Device.CPU), tensor(Device.ACCELERATOR)], tensor(Device.MAYBE)),
        ([tensor(Device.UNKNOWN), tensor(Device.ACCELERATOR)], tensor(Device.MAYBE)),
        ([tensor(Device.UNKNOWN), tensor(Device.CPU)], tensor(Device.UNKNOWN)),
        ([TENSOR, tensor(rank=Rank.USED)], tensor(rank=Rank.USED)),
        ([tensor(rank=Rank.CALLED), tensor(rank=Rank.USED)], tensor(rank=Rank.CALLED)),
        ([UNKNOWN, TENSOR], TENSOR.likely()),
        ([TENSOR, STRING], UNKNOWN),
        ([TENSOR, STRING, TENSOR], UNKNOWN),
    ],
)
def test_what_is_read_of_a_value(ways: list[Value], read: Value) -> None:
    value = join(ways)
    assert (value.kind, value.device, value.proven) == (read.kind, read.device, read.proven) or not (value or read)


def test_a_value_may_be_of_a_loader_and_is_of_one_element_on_all_ways_or_not() -> None:
    one, other = join([BATCH, TENSOR]), join([tensor(scalar=True), TENSOR])
    assert one.batch
    assert not other.scalar


def test_the_parts_of_tuples_of_several_lengths_are_not_told_apart() -> None:
    value = join([sequence(TENSOR, NUMBER), sequence(TENSOR, NUMBER, STRING)])
    assert value.items == ()
    assert join([sequence(TENSOR, NUMBER), sequence(TENSOR, TENSOR)]).items == (TENSOR, join([NUMBER, TENSOR]))


def test_what_gives_way_leaves_what_is_computed_sure() -> None:
    for way in (NONE, NUMBER):
        computed = arithmetic(join([way, TENSOR]), NUMBER)
        assert (computed.kind, computed.proven) == (Kind.TENSOR, True)
    assert arithmetic(TENSOR, tensor(rank=Rank.CALLED)).proven
    assert not arithmetic(join([TENSOR, UNKNOWN]), NUMBER).proven


LOOPS = {
    "moved away and back": ("x = torch.ones(3).cuda()\nfor _ in r:\n    LOOK(x)\n    x = x.cpu()", Device.MAYBE),
    "moved to where it was": (
        "x = torch.ones(3).cuda()\nfor _ in r:\n    LOOK(x)\n    x = x.cuda()",
        Device.ACCELERATOR,
    ),
    "computed in turn": (
        "x = torch.ones(3).cuda()\ny = x\nfor _ in r:\n    x = torch.cat([y, x])\n    y = x.relu()\nLOOK(y)",
        Device.ACCELERATOR,
    ),
    "computed from a CPU tensor": (
        "x = torch.ones(3).cuda()\nfor _ in r:\n    x = torch.as_tensor(x) + torch.ones(1)\nLOOK(x)",
        Device.ACCELERATOR,
    ),
    "through functions": (
        """
def f(x, n):
    LOOK(x)
    return g(x, n)
def g(x, n):
    return x if n == 0 else f(x.relu(), n - 1)
f(torch.ones(3).cuda(), 3)""",
        Device.ACCELERATOR,
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_settle_at_what_all_their_turns_tell(name: str) -> None:
    code, device = LOOPS[name]
    node, context = look(f"import torch\n{code}\n")
    value = context.value(node)
    assert (value.kind, value.device, value.proven) == (Kind.TENSOR, device, True)


@pytest.mark.parametrize(
    "code",
    [
        "while q:\n    x = x + 1\nLOOK(x)",
        "def f(x):\n    return f(x - 1)\nLOOK(f(3))",
        "def f():\n    return g()\ndef g():\n    return f()\nLOOK(g())",
        "x = None\nLOOK(x[0])",
        "xs = []\nfor x in xs:\n    xs.append(f(x))\nLOOK(xs[0])",
        "x = 0\nfor y in x:\n    LOOK(y)",
    ],
)
def test_what_nothing_leads_to_is_unknown_and_not_bottom(code: str) -> None:
    node, context = look(f"import torch\n{code}\n")
    assert context.value(node) is UNKNOWN


@pytest.mark.parametrize(
    ("code", "kind", "scalar"),
    [
        ("def f(thing):\n    thing.backward()\n    LOOK(thing)", Kind.TENSOR, True),
        ("def f(thing):\n    thing.backward(retain_graph=True)\n    LOOK(thing)", Kind.TENSOR, True),
        ("def f(thing):\n    thing.backward(None, True)\n    LOOK(thing)", Kind.TENSOR, True),
        ("def f(thing):\n    thing.backward(gradient=g)\n    LOOK(thing)", Kind.TENSOR, False),
        ("def f(thing):\n    thing.backward(torch.ones_like(thing))\n    LOOK(thing)", Kind.TENSOR, False),
        ("def f(model, x):\n    thing = model(x)\n    thing.backward()\n    LOOK(thing)", Kind.TENSOR, True),
        ("def f(accelerator, thing):\n    accelerator.backward(thing)\n    LOOK(accelerator)", Kind.UNKNOWN, False),
        ("def f(thing, one):\n    thing.backward(one)\n    LOOK(thing)", Kind.UNKNOWN, False),
        ("def f(thing, one):\n    thing.backward(torch.mean(one))\n    LOOK(thing)", Kind.UNKNOWN, False),
        ("def f(layer, one):\n    layer.backward(one)\n    LOOK(one)", Kind.UNKNOWN, False),
        ("import accelerate\ndef f(thing, one):\n    thing.backward(one)\n    LOOK(one)", Kind.TENSOR, True),
        ("import deepspeed\ndef f(engine, one):\n    engine.backward(one)\n    LOOK(one)", Kind.TENSOR, True),
        ("import deepspeed\ndef f(engine, one):\n    engine.backward(one)\n    LOOK(engine)", Kind.UNKNOWN, False),
        (
            "class A:\n    def f(self, one):\n        self.manual_backward(one)\n        LOOK(one)",
            Kind.TENSOR,
            True,
        ),
        (
            "class A:\n    def f(self, one):\n        self.fabric.backward(one)\n        LOOK(self.fabric)",
            Kind.UNKNOWN,
            False,
        ),
    ],
)
def test_what_goes_backward_is_a_tensor_of_one_element(code: str, kind: Kind, *, scalar: bool) -> None:
    node, context = look(f"import torch\n{code}\n")
    value = context.value(node)
    assert (value.kind, value.scalar) == (kind, scalar)
    if value:
        assert value.rank is Rank.USED


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("x.gather(1, i)", Kind.TENSOR),
        ("x.gather(dim=1, index=i)", Kind.TENSOR),
        ("x.gather(i)", Kind.UNKNOWN),  # `accelerator.gather(loss)`
        ("x.gather((i, j))", Kind.UNKNOWN),
        ("x.scatter(0, i, y)", Kind.TENSOR),
        ("x.scatter(i, j, c='red')", Kind.UNKNOWN),  # of a plot
        ("x.expand(n, -1)", Kind.TENSOR),
        ("x.expand(y.shape[0])", Kind.TENSOR),
        ("x.expand(state)", Kind.UNKNOWN),  # of a search tree
        ("x.unbind(0)", Kind.TENSOR),
        ("x.unbind('<Key>')", Kind.UNKNOWN),
        ("x.relu()", Kind.TENSOR),
        ("x.relu(y)", Kind.UNKNOWN),  # of a namespace that is handed in
        ("x.matmul(y)", Kind.TENSOR),
        ("x.matmul(y, z)", Kind.UNKNOWN),
        ("x.detach()", Kind.TENSOR),
        ("x.softmax(-1)", Kind.TENSOR),
    ],
)
def test_a_method_of_tensors_shows_one_if_it_is_called_as_theirs(call: str, kind: Kind) -> None:
    node, context = look(f"import torch\ndef f(x, i, y):\n    {call}\n    LOOK(x)\n")
    assert context.kind(node) is kind
    result, context = look(f"import torch\ndef f(a, i, y):\n    LOOK(a.x.{call[2:]})\n")
    assert (context.kind(result) is Kind.UNKNOWN) == (kind is Kind.UNKNOWN)


def test_the_use_of_a_name_tells_what_it_holds_where_nothing_leads_to_it() -> None:
    node, context = look(
        "def f():\n    global x\n    while q:\n        x = g(x)\n        x.backward()\n        LOOK(x)\n"
    )
    assert context.kind(node) is Kind.TENSOR
