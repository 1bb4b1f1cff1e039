"""Every class of numerics: what passes, and what must not."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from torchlint.verify.inside import distribution
from torchlint.verify.inside.capture import Capture
from torchlint.verify.inside.classes import CLASSES
from torchlint.verify.inside.compare import blind_to, can_fail, compare, main
from torchlint.verify.inside.distance import Tolerance, measure, tolerance
from torchlint.verify.inside.randomness import DrawOnCpu, seed_everything

TOLERANT = ["close", "nondeterministic", "mapped-state", "shape", "alias", "stdout"]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """On a busy machine the threads of small operations wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def captured(*steps: object, stdout: str | None = None, inputs: object = None, seed: int = 0) -> Capture:
    """What a program would leave that returns these values, one a step, and draws nothing."""
    seed_everything(seed)
    capture = Capture()
    for value in steps:
        capture.add(value, inputs=inputs)
    capture.stdout = stdout
    return capture


def verdict(before: object, after: object, numerics_class: str, **options: Any) -> str:  # noqa: ANN401 - as `compare`
    result = compare(captured(before), captured(after), numerics_class, **options)
    json.dumps(result, allow_nan=False)
    assert result["reason"]
    return str(result["verdict"])


def one_off(tensor: torch.Tensor) -> torch.Tensor:
    """The first element by one unit in the last place."""
    changed = tensor.clone()
    changed.view(-1)[0] = torch.nextafter(changed.view(-1)[0], torch.tensor(math.inf, dtype=tensor.dtype))
    return changed


def changed(tensor: torch.Tensor, value: float) -> torch.Tensor:
    result = tensor.clone(memory_format=torch.contiguous_format)
    result.reshape(-1)[1] = value
    return result


X = normal(8, 16)
MODEL = {"loss": torch.tensor(2.5), "logits": X, "count": 3, "name": "a", "nothing": None, "empty": torch.ones(0, 4)}


@pytest.mark.parametrize("numerics_class", sorted(CLASSES))
def test_the_same_is_the_same_in_every_class(numerics_class: str) -> None:
    copy = {key: value.clone() if isinstance(value, torch.Tensor) else value for key, value in MODEL.items()}
    assert verdict(MODEL, copy, numerics_class) == "same"


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (X.double(), "is float64, was float32"),
        (X.reshape(16, 8), "has shape (16, 8), had (8, 16)"),
        (X.tolist()[0][0], "is a float, was a tensor"),
        (nn.Parameter(X), "is a parameter, was a tensor"),
        (X.numpy(), "is a numpy.ndarray, was a tensor"),
        ([X], "is a list, was a tensor"),
        (None, "is a None, was a tensor"),
    ],
)
@pytest.mark.parametrize("numerics_class", sorted(CLASSES))
def test_another_type_or_shape_is_wrong_in_every_class(after: object, words: str, numerics_class: str) -> None:
    result = compare(captured({"x": X}), captured({"x": after}), numerics_class)
    assert (result["verdict"], result["reason"]) == ("wrong", f"step0['x'] {words}")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (1.5, torch.tensor(1.5, dtype=torch.float64), "step0 is a tensor, was a float"),
        (1, 1.0, "step0 is a float, was a int"),
        (True, 1, "step0 is a int, was a bool"),
        ((1, 2), [1, 2], "step0 is a list, was a tuple"),
        ({"a": 1}, {"b": 1}, "step0['a'] is missing; step0['b'] is new"),
        ([1, 2], [1], "step0[1] is missing"),
        ("a", "b", "step0 is 'b', was 'a'"),
        ([[X] * 5] * 2, [[X.double()] * 5] * 2, "step0[0][0] is float64, was float32; "),
    ],
)
def test_what_changed_is_named(before: object, after: object, words: str) -> None:
    result = compare(captured(before), captured(after), "close")
    assert result["verdict"] == "wrong"
    assert result["reason"].startswith(words)
    assert "more" not in words or "and 7 more" in result["reason"]


def test_a_tensor_on_another_device_is_wrong() -> None:
    before, after = captured(X), captured(X)
    before.facts["step0"] = type(before.facts["step0"])("tensor", "value", "cuda:0", layout="contiguous")
    assert compare(before, after, "exact")["reason"] == "step0 is on cpu, was on cuda:0"


class TestExact:
    @pytest.mark.parametrize(
        "after",
        [one_off(X), changed(X, math.nan), changed(X, math.inf), X[torch.arange(7, -1, -1)]],
        ids=["one unit in the last place", "nan", "inf", "rows in another order"],
    )
    def test_any_bit_counts(self, after: torch.Tensor) -> None:
        assert verdict(X, after, "exact") == "wrong"

    def test_how_many_and_how_far_is_said(self) -> None:
        result = compare(captured(X), captured(changed(X, 9.0)), "exact")
        assert result["reason"].startswith("step0: 1 of 128 elements differ, by at most ")
        assert result["worst_tensor"] == "step0"
        assert result["bit_equal"] == 0

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
    def test_types_of_every_width(self, dtype: torch.dtype) -> None:
        x = X.to(dtype)
        assert verdict(x, x.clone(), "exact") == "same"
        assert verdict(x, x * (1 + 2 * torch.finfo(dtype).eps), "exact") == "wrong"

    @pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool, torch.uint8])
    def test_integers(self, dtype: torch.dtype) -> None:
        x = torch.tensor([0, 1, 0], dtype=dtype)
        assert verdict(x, x.clone(), "exact") == "same"
        assert verdict(x, 1 - x.to(torch.int64).to(dtype) if dtype != torch.bool else ~x, "exact") == "wrong"

    def test_integers_beyond_the_precision_of_floats(self) -> None:
        assert verdict(torch.tensor([2**60]), torch.tensor([2**60 + 1]), "exact") == "wrong"
        assert verdict(torch.tensor([2**60]), torch.tensor([2**60 + 1]), "close") == "wrong"

    def test_any_nan_is_nan_and_the_zeros_are_two(self) -> None:
        nan = torch.tensor([0x7FC00000, 0x7FC00001], dtype=torch.int32).view(torch.float32)
        assert (
            verdict(nan[:1].repeat(2).index_put((torch.tensor(0),), X[0, 0]), torch.stack([X[0, 0], nan[1]]), "exact")
            == "same"
        )
        assert verdict(torch.tensor([0.0, 1.0]), torch.tensor([-0.0, 1.0]), "exact") == "wrong"

    def test_nothing_but_nan_says_nothing(self) -> None:
        assert verdict(torch.full((3,), math.nan), torch.full((3,), math.nan), "exact") == "not-checked"


class TestClose:
    @pytest.mark.parametrize("numerics_class", TOLERANT)
    def test_rounding_passes(self, numerics_class: str) -> None:
        assert verdict(X, one_off(X), numerics_class) == "same-within-class"
        assert verdict(X, X * (1 + 1e-6), numerics_class) == "same-within-class"

    @pytest.mark.parametrize("numerics_class", TOLERANT)
    @pytest.mark.parametrize(
        "after",
        [X * 1.0001, X + 1e-4, changed(X, math.nan), changed(X, math.inf), X.flip(0), torch.zeros_like(X)],
        ids=["scaled", "shifted", "nan", "inf", "rows in another order", "zeros"],
    )
    def test_more_does_not(self, after: torch.Tensor, numerics_class: str) -> None:
        assert verdict(X, after, numerics_class) == "wrong"

    @pytest.mark.parametrize(("dtype", "factor"), [(torch.float16, 1e-2), (torch.bfloat16, 0.1), (torch.float64, 1e-6)])
    def test_tolerances_are_those_of_the_type(self, dtype: torch.dtype, factor: float) -> None:
        x = X.to(dtype)
        assert verdict(x, x * (1 + factor), "close") == "wrong"
        assert verdict(x, one_off(x) if dtype is torch.float64 else changed(x, x.view(-1)[1]), "close") != "wrong"

    @pytest.mark.parametrize("times", [lambda x: x, lambda x: [x] * 80, lambda x: (1, {"a": x})])
    def test_python_numbers_were_read_from_float32(self, times: Callable[[float], object]) -> None:
        assert verdict(times(0.7), times(0.7 * (1 + 1e-6)), "close") == "same-within-class"
        assert verdict(times(0.7), times(0.7 * (1 + 1e-4)), "close") == "wrong"

    @pytest.mark.parametrize("numerics_class", TOLERANT)
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (X * 1e-9, X * 2e-9),
            (X * 1e-9, torch.zeros_like(X)),
            (torch.tensor(1e-9), torch.tensor(2e-9)),
            (torch.tensor(0.0), torch.tensor(1e-9)),
            (1e-9, 2e-9),
            ({"loss": torch.tensor(2.5), "gradient": X * 1e-8}, {"loss": torch.tensor(2.5), "gradient": X * 1.1e-8}),
            (1 + normal(64, dtype=torch.float64) * 1e-9, 1 + normal(64, seed=1, dtype=torch.float64) * 1e-9),
        ],
        ids=["scaled", "zeros", "scalar", "zero", "python", "beside a loss", "variation"],
    )
    def test_an_error_that_hides_under_the_tolerance_is_never_the_same(
        self, before: object, after: object, numerics_class: str
    ) -> None:
        assert verdict(before, after, numerics_class) == "not-checked"
        assert verdict(before, after, "exact") == "wrong"

    def test_small_numbers_that_agree_are_the_same(self) -> None:
        assert verdict(X * 1e-9, X * 1e-9 * (1 + 1e-6), "close") == "same-within-class"
        assert verdict(torch.ones(9), one_off(torch.ones(9)), "close") == "same-within-class"

    def test_what_can_hardly_show_an_error_is_named(self) -> None:
        result = compare(
            captured([X, X * 1e-9, torch.ones(3), 1e-9]), captured([X, X * 1e-9, torch.ones(3), 1e-9]), "close"
        )
        assert result["degenerate"] == {"step0[1]": "hardly varies", "step0[2]": "constant", "step0[3]": "tiny"}

    def test_float64_decides_where_both_are_inexact(self) -> None:
        x, y = normal(4, 4096, dtype=torch.float64) * 100, normal(4096, seed=1, dtype=torch.float64)
        cancelled = x - x.mean(1, keepdim=True)
        exact = cancelled @ y * 1e-3
        noise = 2e-4 * normal(2, 4)
        before, after, wrong = exact.float() + noise[0], exact.float() + noise[1], exact.float() + 10 * noise[1]
        assert verdict(before, after, "close") == "wrong"
        fp64 = (captured(exact), captured(exact * (1 + 1e-12)))
        assert verdict(before, after, "close", fp64=fp64) == "same-within-class"
        assert verdict(before, wrong, "close", fp64=fp64) == "wrong"
        assert verdict(before, after, "close", fp64=(captured(exact), captured(exact * 1.001))) == "wrong"
        assert verdict(before, after, "exact", fp64=fp64) == "wrong"

    def test_single_numbers_are_judged_by_float64_together(self) -> None:
        """Of one number each, an error of three times another says nothing."""
        exact = normal(40, 1, dtype=torch.float64)
        off, other = 1e-3 * normal(40, 1, seed=1), 1e-3 * normal(40, 1, seed=2)
        assert float((other / off).abs().max()) > 20
        before, after = ([*(exact + each).float()] for each in (off, other))
        fp64 = (captured([*exact]), captured([*(exact * (1 + 1e-12))]))
        assert verdict(before, after, "close") == "wrong"
        assert verdict(before, after, "close", fp64=fp64) == "same-within-class"
        assert verdict(before, [*(exact + 4 * other).float()], "close", fp64=fp64) == "wrong"
        one_wrong = (fp64[0], captured([*exact[:39], exact[39] * 1.001]))
        assert verdict(before, after, "close", fp64=one_wrong) == "wrong"

    def test_a_lucky_run_of_the_slow_program_is_no_measure(self) -> None:
        """Of a program in which rounding decides which way it goes on, nudged runs say how far that leads."""
        exact = normal(64, dtype=torch.float64)
        far = [(exact + 1e-3 * normal(64, seed=seed)).float() for seed in (1, 2, 3)]
        before, fp64 = exact.float(), (captured(exact), captured(exact))
        assert verdict(before, far[0], "close", fp64=fp64) == "wrong"
        nudged = [captured(far[1]), captured(before)]
        assert verdict(before, far[0], "close", fp64=fp64, nudged=nudged) == "same-within-class"
        assert verdict(before, far[0], "close", fp64=fp64, nudged=[captured(before)]) == "wrong"
        further = (exact + 1e-2 * normal(64, seed=4)).float()
        assert verdict(before, further, "close", fp64=fp64, nudged=nudged) == "wrong"
        another = (fp64[0], captured(exact * 1.0001))
        assert verdict(before, far[0], "close", fp64=another, nudged=nudged) == "wrong"

    def test_a_large_tensor_does_not_hide_among_inexact_ones(self) -> None:
        exact = normal(2, 64, dtype=torch.float64)
        before = [(exact[0] + 1e-2 * normal(64)).float(), exact[1].float()]
        after = [(exact[0] + 1e-2 * normal(64, seed=1)).float(), (exact[1] + 1e-4 * normal(64, seed=2)).float()]
        fp64 = (captured([*exact]), captured([*exact]))
        assert verdict(before, [after[0], before[1]], "close", fp64=fp64) == "same-within-class"
        assert verdict(before, after, "close", fp64=fp64) == "wrong"

    def test_float64_says_nothing_of_integers_and_of_other_random_numbers(self) -> None:
        exact = normal(64, dtype=torch.float64)
        before, after = (exact + 1e-3 * normal(64)).float(), (exact + 1e-3 * normal(64, seed=1)).float()
        fp64 = (captured([exact, torch.arange(9)]), captured([exact, torch.arange(9)]))
        assert verdict([before, torch.arange(9)], [after, torch.arange(9)], "close", fp64=fp64) == "same-within-class"
        assert verdict([before, torch.arange(9)], [after, torch.arange(9).flip(0)], "close", fp64=fp64) == "wrong"
        drawn = captured([exact, torch.arange(9)])
        drawn.rng = [dict.fromkeys(step, "another") for step in drawn.rng]
        said = compare(
            captured([before, torch.arange(9)]), captured([after, torch.arange(9)]), "close", fp64=(drawn, drawn)
        )
        assert said["verdict"] == "wrong"
        assert said["reason"].endswith("in float64 other random numbers are drawn")


class TestLowerPrecision:
    def test_a_product_in_bfloat16_is_correct_where_elements_are_not_close(self) -> None:
        a, b = normal(512, 512), normal(512, 512, seed=1)
        exact, rounded = a @ b, (a.bfloat16() @ b.bfloat16()).float()
        assert verdict(exact, rounded, "close") == "wrong"
        assert verdict(exact, rounded, "lower-precision") == "same-within-class"
        assert verdict(exact.bfloat16(), rounded.bfloat16(), "close") == "wrong"

    @pytest.mark.parametrize(
        "after",
        [
            X * 1.01,
            X * 0.99,
            X + 0.02,
            changed(X, math.inf),
            X.flip(0),
            -X,
            torch.zeros_like(X),
            X + 0.05 * normal(8, 16, seed=1),
        ],
        ids=["scaled", "scaled down", "shifted", "inf", "rows in another order", "negated", "zeros", "noise"],
    )
    def test_what_rounding_does_not_do_is_wrong(self, after: torch.Tensor) -> None:
        assert verdict(X, after, "lower-precision") == "wrong"

    @pytest.mark.parametrize("scale", [1e-200, 1e-9, 1e9, 1e200])
    def test_no_scale_hides_an_error(self, scale: float) -> None:
        x = X.double() * scale
        assert verdict(x, x * 1.1, "lower-precision") == "wrong"
        assert verdict(x, x * (1 + 1e-3 * X.sin()), "lower-precision") == "same-within-class"

    def test_the_type_may_become_narrower_only(self) -> None:
        assert verdict(X, X.bfloat16(), "lower-precision") == "same-within-class"
        assert verdict(X.double(), X, "lower-precision") == "same-within-class"
        assert verdict(X.bfloat16(), X, "lower-precision") == "wrong"
        assert verdict(X, X.int(), "lower-precision") == "wrong"

    def test_integers_stay(self) -> None:
        assert verdict(torch.arange(9), torch.arange(9).flip(0), "lower-precision") == "wrong"

    def test_float64_decides_where_the_slow_program_is_as_far_off(self) -> None:
        """What is left where numbers of bfloat16 cancel is off by more than 1 % in both programs."""
        exact = normal(64, dtype=torch.float64)
        first, second = (0.02 * normal(64, seed=seed) for seed in (1, 2))
        before, after = (exact + first).float(), (exact + second).float()
        fp64 = (captured(exact), captured(exact * (1 + 1e-12)))
        assert verdict(before, after, "lower-precision") == "wrong"
        assert verdict(before, after, "lower-precision", fp64=fp64) == "same-within-class"
        assert verdict(before, exact.float() + 5 * second, "lower-precision", fp64=fp64) == "wrong"
        assert verdict(exact.float(), after, "lower-precision", fp64=fp64) == "wrong"
        another = (fp64[0], captured(exact * 1.001))
        assert verdict(before, after, "lower-precision", fp64=another) == "wrong"


def drawn(draw: Callable[[], object], *, shift: int = 0, on_cpu: bool = False, seed: int = 0) -> Capture:
    """Two steps of a program that draws, after `shift` numbers more than another one."""
    seed_everything(seed)
    capture = Capture()
    torch.rand(shift)
    for _ in range(2):
        if on_cpu:
            with DrawOnCpu():
                capture.add(draw())
        else:
            capture.add(draw())
    return capture


class TestRng:
    def test_one_draw_more_changes_every_other_class(self) -> None:
        before, after = drawn(lambda: torch.randn(100)), drawn(lambda: torch.randn(100), shift=1)
        for numerics_class in sorted(CLASSES - {"rng"}):
            assert compare(before, after, numerics_class)["verdict"] == "wrong"
        result = compare(before, after, "rng")
        assert (result["verdict"], result["rng_stream"]) == ("same-within-class", "differs")

    def test_numbers_that_come_next_count_where_the_class_promises_them(self) -> None:
        before, after = drawn(lambda: X), drawn(lambda: X, shift=1)
        for numerics_class in ("exact", "close", "nondeterministic", "alias", "stdout"):
            result = compare(before, after, numerics_class)
            assert (result["verdict"], result["rng_stream"]) == ("wrong", "differs")
            assert "the streams differ after step 0" in result["reason"]
        assert compare(before, after, "mapped-state")["verdict"] == "same-within-class"

    def test_a_program_whose_own_stream_varies_is_not_blamed_on_the_fix(self) -> None:
        before, again, after = (drawn(lambda: X, seed=seed) for seed in range(3))
        assert compare(before, after, "close", again=again)["verdict"] == "same-within-class"

    @pytest.mark.parametrize(
        "other",
        [
            lambda: torch.randn(500) * 1.5,
            lambda: torch.rand(500),
            lambda: torch.randn(500) + 0.5,
            lambda: torch.zeros(500),
        ],
        ids=["scale", "shape", "shift", "zeros"],
    )
    def test_another_distribution_is_wrong(self, other: Callable[[], object]) -> None:
        assert compare(drawn(lambda: torch.randn(500)), drawn(other, shift=1), "rng")["verdict"] == "wrong"

    def test_a_permutation_is_one_of_the_same_numbers(self) -> None:
        before = drawn(lambda: torch.randperm(200))
        assert compare(before, drawn(lambda: torch.randperm(200), shift=1), "rng")["verdict"] == "same-within-class"
        result = compare(before, drawn(lambda: torch.randint(200, (200,)), shift=1), "rng")
        assert result["verdict"] == "wrong"
        assert "no permutation" in result["reason"]

    def test_rows_in_another_order_are_the_same_numbers(self) -> None:
        assert compare(drawn(lambda: X), drawn(lambda: X.flip(0), shift=1), "rng")["verdict"] == "same-within-class"

    def test_few_numbers_have_no_distribution(self) -> None:
        result = compare(drawn(lambda: torch.randn(4)), drawn(lambda: torch.randn(4), shift=1), "rng")
        assert result["verdict"] == "not-checked"

    def test_from_the_same_draws_the_same_must_follow(self) -> None:
        before = drawn(lambda: torch.randn(500), on_cpu=True)
        assert (
            compare(before, drawn(lambda: torch.randn(500) * (1 + 1e-7), on_cpu=True), "rng")["verdict"]
            == "same-within-class"
        )
        after = drawn(lambda: torch.randn(500).flip(0), on_cpu=True)
        assert compare(before, after, "rng")["verdict"] == "wrong"
        after.escaped = ["aten._cudnn_rnn.default"]
        assert compare(before, after, "rng")["verdict"] == "same-within-class"


class TestNondeterministic:
    NOISE = 1e-3 * normal(4, 8, 16, seed=5)

    def runs(self, error: float = 0.0) -> tuple[Capture, Capture, dict[str, Any]]:
        before, again, after, after_again = (captured(X + noise) for noise in self.NOISE)
        after.values["step0"] += error
        after_again.values["step0"] += error
        return before, after, {"again": again, "after_again": after_again}

    def test_what_a_program_differs_from_itself_by_is_allowed(self) -> None:
        before, after, again = self.runs()
        assert compare(before, after, "nondeterministic", **again)["verdict"] == "same-within-class"
        assert compare(before, after, "nondeterministic")["verdict"] == "wrong"

    def test_more_is_not(self) -> None:
        before, after, again = self.runs(error=0.1)
        assert compare(before, after, "nondeterministic", **again)["verdict"] == "wrong"

    def test_noise_as_large_as_the_values_decides_nothing(self) -> None:
        before, again, after = (captured(normal(64, seed=seed)) for seed in range(3))
        assert compare(before, after, "nondeterministic", again=again)["verdict"] == "not-checked"

    @pytest.mark.parametrize("numerics_class", ["exact", "close", "lower-precision"])
    def test_no_other_class_can_be_checked_on_a_program_that_varies(self, numerics_class: str) -> None:
        before, again = captured(X), captured(X + 0.1 * normal(8, 16, seed=1))
        result = compare(before, captured(X), numerics_class, again=again)
        assert (result["verdict"], result["aa_bit_equal"]) == ("not-checked", False)

    def test_a_fix_that_makes_a_program_vary_is_wrong(self) -> None:
        result = compare(captured(X), captured(X), "exact", again=captured(X), after_again=captured(one_off(X)))
        assert (result["verdict"], result["aa_bit_equal"]) == ("wrong", True)


class TestNoise:
    """Of programs that differ from themselves, though their class does not say so."""

    SIZE = 1e-6

    def runs(self, *errors: float, size: float = SIZE, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - of `compare`
        noise = size * normal(4, 8, 16, seed=5)
        before, again = captured([X + noise[0], X]), captured([X + noise[1], X])
        found = []
        for error in errors:
            after, after_again = captured([X + noise[2] + error, X]), captured([X + noise[3] + error, X])
            found.append(compare(before, after, "exact", again=again, after_again=after_again, **options))
        return found

    def test_it_is_written_down_and_allowed_and_an_error_is_still_seen(self) -> None:
        right, wrong, small = self.runs(0.0, 1e-3, 2e-5)
        assert (right["verdict"], right["aa_bit_equal"]) == ("same-within-class", False)
        assert "the slow program differs from itself in 1 values, by at most" in right["reason"]
        assert (wrong["verdict"], small["verdict"]) == ("wrong", "wrong")

    def test_an_error_smaller_than_the_largest_noise_is_seen_by_all_elements_together(self) -> None:
        spike = torch.zeros_like(X)
        spike[3, 3] = 0.02
        before, again = captured(X), captured(X + spike + self.SIZE * normal(8, 16, seed=5))
        after = captured(X + 0.01)
        said = compare(before, after, "exact", again=again)
        assert said["verdict"] == "wrong"
        assert "on the whole" in said["reason"]

    def test_what_does_not_vary_is_exact(self) -> None:
        noise = self.SIZE * normal(2, 8, 16, seed=5)
        before, again = (captured([X + each, X]) for each in noise)
        said = compare(before, captured([X + noise[0], one_off(X)]), "exact", again=again)
        assert said["verdict"] == "wrong"
        assert "step0[1]" in said["reason"]

    def test_integers_do_not_vary_by_noise(self) -> None:
        before, again = captured([X, torch.arange(9)]), captured([X, torch.arange(9).flip(0)])
        assert compare(before, before, "exact", again=again)["verdict"] == "not-checked"

    def test_single_numbers_vary_by_what_such_numbers_vary_by(self) -> None:
        exact = normal(30, 1)
        before, again, after = (captured([*(exact + 1e-6 * normal(30, 1, seed=seed))]) for seed in (1, 2, 3))
        assert compare(before, after, "exact", again=again)["verdict"] == "same-within-class"
        wrong = captured(
            [
                *(exact + 1e-6 * normal(30, 1, seed=3)),
            ]
        )
        wrong.values["step0[7]"] += 1e-3
        assert compare(before, wrong, "exact", again=again)["verdict"] == "wrong"

    def test_a_comparison_under_noise_has_to_be_able_to_fail(self) -> None:
        before, again = (captured(X + self.SIZE * normal(8, 16, seed=seed)) for seed in (5, 6))
        assert blind_to(before, captured(X * 1.01), captured(X * 1.01), "exact", again=again) == []
        assert blind_to(before, captured(X), captured(X), "exact", again=again) == [
            "another seed",
            "parameters off by 1 %",
        ]

    def test_lower_precision_allows_for_noise_anyway(self) -> None:
        before, again, after = (captured(X + self.SIZE * normal(8, 16, seed=seed)) for seed in (5, 6, 7))
        assert compare(before, after, "lower-precision", again=again)["verdict"] == "same-within-class"


class TestShape:
    def test_padding_is_cut_off(self) -> None:
        padded = torch.cat([X, torch.full((8, 3), 7.0)], dim=1)
        assert verdict(X, padded, "shape") == "same-within-class"
        assert verdict(X, padded, "close") == "wrong"
        assert verdict(X, padded + 1e-3, "shape") == "wrong"
        assert verdict(padded, X, "shape") == "wrong"
        assert verdict(X, padded[None], "shape") == "wrong"

    def test_the_slice_is_the_declared_one(self) -> None:
        before, after = changed(X.t(), 9.0).t(), torch.cat([X, X], dim=1)
        assert verdict({"logits": before}, {"logits": after}, "shape") == "wrong"
        kept = {"logits": [1, None]}
        assert verdict({"logits": before}, {"logits": after}, "shape", shape_slices=kept) == "same-within-class"

    def test_parameters_are_left_out(self) -> None:
        before, after = {"x": X, "model": nn.Linear(3, 7)}, {"x": X.clone(), "model": nn.Linear(3, 8)}
        assert verdict(before, after, "shape") == "same"
        assert verdict(before, after, "close") == "wrong"


class TestAlias:
    def test_memory_that_is_shared_now_is_named(self) -> None:
        base = X.clone()
        apart, together = captured({"a": base, "b": base[:4].clone()}), captured({"a": base, "b": base[:4]})
        for first, second, words in ((apart, together, "now share"), (together, apart, "no longer share")):
            result = compare(first, second, "alias")
            assert result["verdict"] == "same-within-class"
            assert result["aliased"] == [f"step0['a'] and step0['b'] {words} memory"]
            for numerics_class in ("exact", "close", "mapped-state"):
                assert compare(first, second, numerics_class)["verdict"] == "wrong"

    def test_so_is_memory_shared_with_what_came_in(self) -> None:
        source = X.clone()
        before, after = captured(source.clone(), inputs={"x": source}), captured(source, inputs={"x": source})
        assert compare(before, after, "exact")["verdict"] == "wrong"
        assert compare(before, after, "alias")["aliased"] == ["input['x'] and step0 now share memory"]

    def test_an_expanded_tensor_shares_with_itself(self) -> None:
        row = X[:1]
        result = compare(captured(row.repeat(4, 1)), captured(row.clone().expand(4, 16)), "alias")
        assert result["aliased"] == ["the elements of step0 now share memory"]
        assert verdict(row.repeat(4, 1), row.clone().expand(4, 16), "exact") == "wrong"


class TestStdout:
    LINES = "epoch 0\nloss 0.5000 in 12 ms\n"

    def result(self, after: str, numerics_class: str, again: Capture | None = None) -> dict[str, Any]:
        return compare(captured(X, stdout=self.LINES), captured(X, stdout=after), numerics_class, again=again)

    def test_lines_that_differ_are_shown(self) -> None:
        after = "epoch 0\nloss tensor(0.5000) in 12 ms\n"
        result = self.result(after, "stdout")
        assert result["verdict"] == "same-within-class"
        assert result["stdout"] == ["- loss 0.5000 in 12 ms", "+ loss tensor(0.5000) in 12 ms"]
        for numerics_class in ("exact", "close", "rng"):
            assert self.result(after, numerics_class)["verdict"] == "wrong"

    def test_lines_that_are_gone_are_wrong(self) -> None:
        assert self.result("epoch 0\n", "close")["verdict"] == "wrong"
        assert self.result("", "exact")["verdict"] == "wrong"

    def test_printed_numbers_count_if_the_program_prints_them_again(self) -> None:
        after = self.LINES.replace("12", "13")
        assert self.result(after, "exact")["verdict"] == "wrong"
        assert self.result(after, "close")["verdict"] == "wrong"
        assert self.result(after, "lower-precision")["verdict"] == "same"
        assert self.result(after, "exact", again=captured(X, stdout=after))["verdict"] == "same"
        assert self.result(after, "close", again=captured(X, stdout=after))["verdict"] == "same"

    @pytest.mark.parametrize(
        ("old", "new", "same"),
        [
            ("loss 0.1234", "loss 0.1235", True),
            ("loss 0.1234", "loss 0.1237", False),
            ("loss 123.45678", "loss 123.46999", True),
            ("12 of 100 right", "13 of 100 right", False),
            ("loss 1.5e-07", "loss 1.6e-07", True),
            ("loss nan", "loss nan", True),
            ("loss nan", "loss 1.0", False),
        ],
    )
    def test_printed_numbers_may_be_rounded_otherwise(self, old: str, new: str, same: bool) -> None:  # noqa: FBT001
        result = compare(captured(X, stdout=f"{old}\n"), captured(X, stdout=f"{new}\n"), "close")
        assert (result["verdict"] == "same") == same, result["reason"]

    def test_a_flood_is_cut(self) -> None:
        result = self.result("line\n" * 10_000, "stdout")
        assert len(result["stdout"]) == 41
        assert result["stdout"][-1].startswith("... and ")


def test_an_unknown_class_is_refused() -> None:
    with pytest.raises(ValueError, match="no class of numerics is called 'closer'"):
        compare(captured(X), captured(X), "closer")


def test_nothing_to_compare_is_not_checked() -> None:
    assert verdict(None, None, "exact") == "not-checked"
    result = compare(captured(object()), captured(object()), "exact")
    assert (result["verdict"], result["skipped"]) == ("not-checked", ["step0: object"])


def test_texts_alone_are_compared() -> None:
    assert verdict({"a": "text"}, {"a": "text"}, "close") == "same"
    assert verdict({"a": "text"}, {"a": "test"}, "close") == "wrong"


def test_what_was_left_out_is_said() -> None:
    result = compare(captured([X, object()]), captured([X, object()]), "exact")
    assert result["verdict"] == "same"
    assert result["reason"] == "all 1 values are bit-equal; not compared: step0[1]: object"


def test_a_run_with_fewer_steps_is_wrong() -> None:
    assert compare(captured(X, X), captured(X), "close")["verdict"] == "wrong"


def test_a_gradient_that_is_no_longer_required_is_listed() -> None:
    result = compare(captured(X.clone().requires_grad_()), captured(X), "exact")
    assert (result["verdict"], result["requires_grad"]) == ("same", ["step0"])


def test_large_tensors_are_measured_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = Tolerance(1e-6, 1e-5, 1e-7)
    after = X + 1e-5 * normal(8, 16, seed=1)
    whole = measure(X, after, allowed)
    monkeypatch.setattr("torchlint.verify.inside.distance._CHUNK", 7)
    parts = measure(X, after, allowed)
    assert (parts.count, parts.over, parts.largest) == (whole.count, whole.over, whole.largest)
    assert parts.relative == pytest.approx(whole.relative, rel=1e-12)
    assert whole.relative == pytest.approx(float((X - after).double().norm() / X.double().norm()), rel=1e-12)
    assert whole.spread == pytest.approx(float(X.double().std(correction=0)), rel=1e-12)
    assert whole.gain == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_tolerances_are_those_of_torch_testing(dtype: torch.dtype, factor: float) -> None:
    allowed = tolerance(dtype)
    expected = torch.linspace(1, 2, 50, dtype=torch.float64).to(dtype).double()
    actual = expected * (1 + factor * allowed.relative) + factor * allowed.absolute
    options = {"rtol": allowed.relative, "atol": allowed.absolute}
    documented = torch.testing._comparison.default_tolerances(dtype)  # noqa: SLF001 - the table behind `assert_close`
    assert documented == (allowed.relative, allowed.absolute)
    assert (measure(expected, actual, allowed).over <= 1) == torch.allclose(actual, expected, **options)


def test_the_test_of_distributions_holds_its_level() -> None:
    values = [distribution.kolmogorov_smirnov(normal(200, seed=i), normal(200, seed=1000 + i)) for i in range(200)]
    for level in (0.01, 0.05, 0.5):
        assert sum(value < level for value in values) / len(values) == pytest.approx(
            level, abs=3 * math.sqrt(level / 200)
        )
    # The two-sample values of a table: D = 1.36 * sqrt(2 / n) at 5 %.
    size = 10_000
    shifted = torch.arange(size) + 1.36 * math.sqrt(2 / size) * size
    assert distribution.kolmogorov_smirnov(torch.arange(size).double(), shifted) == pytest.approx(0.05, abs=0.003)


class Program:
    """A linear layer on random data; `scale` is a mistake in its weights, `out` shrinks what it returns."""

    def __init__(self, out: float = 1.0, fixed: torch.Tensor | None = None) -> None:
        self.out = out
        self.fixed = fixed

    def run(self, seed: int = 0, scale: float = 1.0) -> Capture:
        seed_everything(seed)
        weight, x = torch.randn(16, 16) * scale, torch.randn(8, 16)
        seed_everything(seed)
        capture = Capture()
        for _ in range(2):
            capture.add({"y": (x @ weight) * self.out if self.fixed is None else self.fixed, "shape": tuple(x.shape)})
        return capture


@pytest.mark.parametrize("numerics_class", sorted(CLASSES))
def test_the_comparison_of_a_healthy_program_can_fail(numerics_class: str) -> None:
    program = Program()
    assert can_fail(program.run(), program.run(seed=1), program.run(scale=1.01), numerics_class)


@pytest.mark.parametrize("program", [Program(out=1e-9), Program(fixed=torch.zeros(3)), Program(out=0.0)])
@pytest.mark.parametrize("numerics_class", sorted(CLASSES - {"exact", "lower-precision"}))
def test_that_of_one_that_returns_next_to_nothing_cannot(program: Program, numerics_class: str) -> None:
    runs = program.run(), program.run(seed=1), program.run(scale=1.01)
    assert not can_fail(*runs, numerics_class)
    assert blind_to(*runs, numerics_class) == ["another seed", "parameters off by 1 %"]


def test_other_random_streams_alone_are_no_sign_that_it_can() -> None:
    program = Program(fixed=X)
    assert blind_to(program.run(), program.run(seed=1), None, "exact") == ["another seed"]


def test_files_are_compared_and_controls_asked(tmp_path: Path) -> None:
    def file(name: str, capture: Capture) -> str:
        capture.save(tmp_path / name)
        return str(tmp_path / name)

    program = Program()
    config = {
        "class": "close",
        "before": file("before", program.run()),
        "after": file("after", program.run()),
        "again": file("again", program.run()),
        "other_seed": file("other", program.run(seed=1)),
        "scaled": file("scaled", program.run(scale=1.01)),
        "dropped": [],
        "free": [],
    }
    result = main(config)
    assert (result["verdict"], result["aa_bit_equal"], result["blind_to"]) == ("same", True, [])
    assert result["independent"] == ["step0['shape'][0]", "step0['shape'][1]", "step1['shape'][0]", "step1['shape'][1]"]
    json.dumps(result, allow_nan=False)
    result = main(config | {"scaled": config["before"]})
    assert result["verdict"] == "not-checked"
    assert result["reason"] == "the comparison cannot fail: it does not see parameters off by 1 %"
    assert main(config | {"scaled": None, "other_seed": None})["verdict"] == "same"
    assert main(config | {"after": config["scaled"], "scaled": config["before"]})["verdict"] == "wrong"
    reference = [file("a64", program.run()), file("b64", program.run())]
    assert main(config | {"fp64": reference, "after": config["scaled"]})["verdict"] == "wrong"
