"""Each rule's pair is a workload: sizes to measure at, a class that its numbers hold, and a state that it advances."""

from __future__ import annotations

import ast
import copy
import fnmatch
import gc
import itertools
import multiprocessing
import random
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
import torch

from torchlint.registry import all_rules

if TYPE_CHECKING:
    from torchlint.rule import Rule

FIXTURES = files("torchlint.fixtures")
MEASURED = [rule for rule in all_rules() if rule.checks]
CLASSES = "exact close lower-precision rng nondeterministic mapped-state shape alias stdout".split()
METRICS = "time memory syncs copies launches".split()
SIZES = ["smoke", "gpu", "nohelp"]

pytestmark = [
    # Workers are what one rule is about; a machine may have fewer cores than they would like, and threads by then.
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    # People hand losses to a logger as they are.
    pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True to a scalar"),
]


@pytest.fixture(autouse=True)
def apart() -> Iterator[None]:
    """Fork workers, which cannot import the files by name, and let no process group outlive its test.

    A worker that collects garbage of the process it was forked from can wait forever for a lock of one of its threads.
    """
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("fork", force=True)
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    multiprocessing.set_start_method(before, force=True)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


OF_EACH_RULE = pytest.mark.parametrize("rule", MEASURED, ids=lambda rule: rule.name)
FIRST_OF_GROUPS = [next(group) for _, group in itertools.groupby(MEASURED, lambda rule: rule.group)]
# Each of them runs in CI, one of each group everywhere.
RUN_OF_EACH_RULE = pytest.mark.parametrize(
    "rule",
    [pytest.param(rule, id=rule.name, marks=[pytest.mark.slow] * (rule not in FIRST_OF_GROUPS)) for rule in MEASURED],
)


class Pair:
    """One of the two files of a rule, run at smoke size on the CPU."""

    def __init__(self, rule: Rule, name: str, module: str = "fixture") -> None:
        path = FIXTURES / rule.module / f"{name}.py"
        self.names: dict[str, Any] = {"__name__": module, "__file__": str(path)}
        exec(compile(path.read_bytes(), str(path), "exec"), self.names)  # noqa: S102 - our own fixtures

    def set_up(self, seed: int) -> Any:  # noqa: ANN401 - a workload's state is its own
        random.seed(seed)
        torch.manual_seed(seed)
        return self.names["setup"]("cpu", "smoke")

    def outputs(self, state: object, runs: int) -> list[Any]:
        """What each of some runs returned, as it was then."""
        return [copy.deepcopy(self.names["run"](state)) for _ in range(runs)]


def literal(rule: Rule, name: str) -> Any:  # noqa: ANN401 - what the assertions are about
    """What the controller reads of a file that it does not run."""
    tree = ast.parse((FIXTURES / rule.module / f"{name}.py").read_text("utf-8"))
    (value,) = (
        statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "WORKLOAD"
    )
    return ast.literal_eval(value)


@OF_EACH_RULE
def test_a_workload_says_what_it_measures(rule: Rule) -> None:
    workload = literal(rule, "slow")
    assert workload == literal(rule, "fast")
    assert set(workload) - {"dropped", "free", "devices", "slow_is_wrong"} == {"numerics", "metric", "sizes", "nohelp"}
    assert workload["numerics"] in CLASSES
    assert workload["metric"] in METRICS
    assert list(workload["sizes"])[:3] == SIZES
    assert all(name.startswith("nohelp-") for name in list(workload["sizes"])[3:])
    keys = {tuple(size) for size in workload["sizes"].values()}
    assert len(keys) == 1, "all sizes say the same things"
    assert workload["nohelp"].endswith(".")
    assert "\n" not in workload["nohelp"]
    assert workload.get("devices", 2) > 1, "one goes without saying"
    assert workload.get("slow_is_wrong", True) is True, "that it is right goes without saying"
    mapped = workload["numerics"] == "mapped-state"
    assert mapped == ("dropped" in workload)
    assert mapped or "free" not in workload


@RUN_OF_EACH_RULE
def test_slow_and_fast_agree(rule: Rule) -> None:
    workload, slow, fast = literal(rule, "slow"), Pair(rule, "slow"), Pair(rule, "fast")
    mapped = workload["numerics"] == "mapped-state"
    state = slow.set_up(1)
    start, draws = copy.deepcopy([*parts(state)]), torch.get_rng_state()
    before, left = slow.outputs(state, 3), torch.get_rng_state()
    state = fast.set_up(1)
    if mapped:
        for source, target in zip(modules(start), modules(state), strict=True):
            load(source, target, workload["dropped"])
    else:
        assert same(start, [*parts(state)], exactly=True), "both begin alike"
        assert torch.equal(draws, torch.get_rng_state()), "both have drawn as many random numbers"
    after = fast.outputs(state, 3)
    assert mapped or torch.equal(left, torch.get_rng_state())
    exactly, free = workload["numerics"] == "exact", workload.get("free", ())
    roughly = workload["numerics"] == "lower-precision"
    for one, other in zip(before, after, strict=True):
        assert same(one, other, exactly=exactly, roughly=roughly, free=free)


@pytest.mark.slow
@OF_EACH_RULE
def test_outputs_depend_on_inputs_and_state(rule: Rule) -> None:
    slow = Pair(rule, "slow")
    for one, other in itertools.combinations([*slow.outputs(slow.set_up(1), 2), *slow.outputs(slow.set_up(2), 2)], 2):
        assert not same(one, other)


@pytest.mark.slow
@OF_EACH_RULE
def test_it_can_be_run_again_and_again(rule: Rule) -> None:
    """Neither grows nor fades, though a measurement calls it thousands of times."""
    for name in ("slow", "fast"):
        pair = Pair(rule, name)
        state = pair.set_up(1)
        (first,) = pair.outputs(state, 1)
        size = weight(state)
        *_, last, latest = pair.outputs(state, 50)
        assert weight(state) == size
        assert not same(last, latest)
        for output in (first, latest):
            values = torch.cat([leaf.double().flatten() for leaf in tensors(output)])
            assert values.isfinite().all()
            assert values.std() > 1e-3


@pytest.mark.slow
@OF_EACH_RULE
def test_both_files_run_as_scripts(rule: Rule) -> None:
    for name in ("slow", "fast"):
        Pair(rule, name, "__main__")


def test_a_wrong_result_is_seen() -> None:
    """The comparison can fail: on a number, a tensor, a weight, a length, and a key."""
    model = torch.nn.Linear(2, 2)
    wrong = copy.deepcopy(model)
    with torch.no_grad():
        wrong.weight.mul_(1.01)
    assert same([1.0, {"a": model}], [1.0, {"a": copy.deepcopy(model)}], exactly=True)
    assert not same(model, wrong)
    assert not same(1.0, 1.01)
    assert same(1.0, 1.01, roughly=True)
    assert not same(1.0, 1.1, roughly=True)
    assert not same([1.0], [1.0, 1.0])
    assert not same({"a": 1}, {"b": 1})
    assert same(1.0, 1.0 + 1e-9)
    assert not same(1.0, 1.0 + 1e-9, exactly=True)


# What a workload returns: nested tuples, lists and dicts of tensors, modules, numbers, strings and None


def same(one: object, other: object, *, exactly: bool = False, roughly: bool = False, free: Sequence[str] = ()) -> bool:
    """Whether two outputs agree, within the rounding of their types unless exactly, or of bfloat16 if roughly.

    `free` keys of a state may differ.
    """
    match one, other:
        case torch.nn.Module(), torch.nn.Module():
            left, right = one.state_dict(), other.state_dict()
            shared = [key for key in right if not any(fnmatch.fnmatchcase(key, pattern) for pattern in free)]
            return right.keys() <= left.keys() and all(
                same(left[key], right[key], exactly=exactly, roughly=roughly) for key in shared
            )
        case torch.Tensor(), torch.Tensor():
            if exactly:
                return bool(one.dtype == other.dtype and torch.equal(one, other))
            try:
                torch.testing.assert_close(one, other, **({"rtol": 2e-2, "atol": 1e-2} if roughly else {}))
            except AssertionError:
                return False
            return True
        case dict(), dict():
            return one.keys() == other.keys() and same(
                [*one.values()], [*other.values()], exactly=exactly, roughly=roughly, free=free
            )
        case ((list() | tuple()), (list() | tuple())):
            return len(one) == len(other) and all(
                same(a, b, exactly=exactly, roughly=roughly, free=free) for a, b in zip(one, other, strict=True)
            )
        case float(), float() if not exactly:
            return same(torch.tensor(one), torch.tensor(other), roughly=roughly)
        case ((float() | int() | str() | None), _):
            return type(one) is type(other) and one == other
    return False


def load(source: torch.nn.Module, target: torch.nn.Module, dropped: list[str]) -> None:
    """Give the fast model what the slow one has, less what the fix takes away."""
    kept = target.state_dict()
    given = source.state_dict()
    gone = given.keys() - kept.keys()
    assert gone == {key for key in given if any(fnmatch.fnmatchcase(key, pattern) for pattern in dropped)}
    target.load_state_dict({key: given[key] for key in kept})


def parts(value: object) -> Iterator[object]:
    """What of a state can be compared."""
    return (leaf for leaf in leaves(value) if isinstance(leaf, (torch.nn.Module, torch.Tensor, int, float, str)))


def modules(value: object) -> list[torch.nn.Module]:
    return [leaf for leaf in leaves(value) if isinstance(leaf, torch.nn.Module)]


def tensors(value: object) -> Iterator[torch.Tensor]:
    """The numbers in an output, those of modules too."""
    for leaf in leaves(value):
        match leaf:
            case torch.nn.Module():
                yield from leaf.state_dict().values()
            case torch.Tensor():
                yield leaf
            case float() | int():
                yield torch.tensor(leaf)


def weight(value: object) -> int:
    """How much a state holds: elements of its tensors, and everything else it keeps in containers and attributes."""
    seen: set[int] = set()
    total, waiting = 0, [value]
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        total += found.numel() if isinstance(found, torch.Tensor) else 1
        match found:
            case dict():
                waiting += found.values()
            case list() | tuple() | set():
                waiting += found
            case _ if hasattr(found, "__dict__") and not isinstance(found, (type, torch.Tensor)):
                waiting += vars(found).values()
    return total


def leaves(value: object) -> Iterator[object]:
    match value:
        case dict():
            yield from leaves([*value.values()])
        case list() | tuple():
            for inner in value:
                yield from leaves(inner)
        case _:
            yield value
