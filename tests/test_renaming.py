"""Law 4 for all names that people choose: under names that say nothing, and with comments of any words, none is lost."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from functools import cache
from itertools import islice
from pathlib import Path

import laws
import pytest
from programs import program
from renaming import commented, opaque_names, renamed
from test_conventions import CONVENTIONS, documented_names
from test_pages import RULES, examples

from torchlint.semantics.knowledge.conventions import comments, texts
from torchlint.semantics.knowledge.conventions.convention import Convention

FIXTURES = Path(__file__).parents[1] / "fixtures"
TEXTS = {
    f"{path.parent.name}/{path.name}": laws.unmarked(path.read_text(encoding="utf-8"))
    for path in sorted(FIXTURES.glob("*/*.py"))
    if path.name in ("slow.py", "ok.py", "fast.py")
} | {
    f"{rule.name}, example {number}, {kind}": laws.unmarked(code)
    for rule in RULES
    for number, example in enumerate(examples(rule), 1)
    for kind, code in (("bad", example.bad), ("good", example.good))
    if code is not None
}
# Words of which some convention makes something in code, and in a comment nothing may.
WORDS = (
    "sdpa flash_attn xformers scaled_dot_product autocast float16 bf16 amp apex deepspeed accelerator. lightning fabric "
    "mps xla npu channels_last memory_format torch.backends cudnn deterministic no_sync float64 double scaler prepare( "
    "stream( rms_norm( F.silu nn.SiLU nn.GELU load_state_dict from_pretrained fuse_modules torch.quantization rand "
    "shuffle worker_info .backward( .step( zero_grad( train cuda gpu device .to( set_default_device DataLoader mnist "
    "perf_counter profiler elapsed create_graph register_hook sparse=True gradcheck jit volatile __main__ eval( globals() "
    "_format( nn.Module epoch max_epochs=1 capture_scalar_outputs add_param_group import compile # %% # In[1] fallback "
    "empty_cache cuda.is_available() cuda.manual_seed( FullyShardedDataParallel collate register_forward_hook optim PIL "
    "get_ipython( raises is_pinned set_device PackedSequence register_module_ .rand fp32_precision .eval( "
    "set_default_validate_args get_worker_info"
)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * name.endswith(("/ok.py", "/fast.py"))) for name in TEXTS],
)
def test_no_finding_is_lost(name: str) -> None:
    """Under other names and with comments at once; where that changes anything, with each alone."""
    text = TEXTS[name]
    new = renamed(text, documented_names()).text
    assert shape(ast.parse(new)) == shape(ast.parse(text)), new
    before = found(text)
    if found_commented(new) != before:
        lost = before - found(new)
        assert not lost, f"lost {lost}\n{new}"
        assert found_commented(text) == before, "comments decide something"


def found_commented(text: str) -> Counter[tuple[int, str]]:
    """What is found in a text with comments, in the rows of the text.

    Those of a line may say that it is meant; these say other things, of any kind, in other places too.
    """
    new, places = commented(text, unmeant(), WORDS)
    return Counter({(places.index(row) + 1, rule): times for (row, rule), times in found(new).items()})


def found(text: str) -> Counter[tuple[int, str]]:
    """How often each rule finds something in each row, as a warning or a note, in a text that can be read."""
    settings = laws.active(*(rule.name for rule in RULES))
    result = laws.lint(text, settings)
    assert not result.diagnostics, result.diagnostics
    return Counter((row, rule.rstrip("?")) for row, rule in laws.places(text, settings))


def shape(tree: ast.Module) -> str:
    """The program without its names."""
    for node in ast.walk(tree):
        for field in ("id", "arg", "name", "attr"):
            if isinstance(getattr(node, field, None), str):
                setattr(node, field, "")
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = []
    return ast.dump(tree)


@cache
def unmeant() -> str:
    """Those of the words by which no comment of a line means anything; the name of a layer would."""
    meant = [each for each in vars(comments).values() if isinstance(each, Convention)]
    words = [word for word in WORDS.split() if not word.startswith(("nn.", "F."))]
    return " ".join(word for word in words if not any(each.suggests(word) for each in meant))


def test_the_words_are_those_that_code_is_asked_for() -> None:
    """Each convention over texts would hear these comments, if it listened."""
    asked = [each for each in vars(texts).values() if isinstance(each, Convention)]
    assert [each.id for each in asked if not each.suggests(WORDS) and not each.suggests(WORDS.lower())] == []


def test_new_names_say_nothing() -> None:
    for name in islice(opaque_names(set()), 400):
        for each in (name, name.capitalize()):
            assert not [id_ for id_, convention in CONVENTIONS.items() if convention.suggests(each)], each


# The renamer


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("def f(a, b=1):\n    c = a + b\n    return c\n\nf(2, b=3)\n", "def 0(1, 2=1):\n    3 = 1 + 2\n    return 3\n\n0(2, 2=3)\n"),
        ("import torch\nx = torch.ones(3, device=x)\n", "import torch\n0 = torch.ones(3, device=0)\n"),
        ("class A(B):\n    y = 1\n    def go(self, x):\n        return self.y + x\n", "class 0(B):\n    y = 1\n    def 1(self, 2):\n        return self.y + 2\n"),
        ("x = 1\nprint(f'{x + 1:>{x}} x')\n", "0 = 1\nprint(f'{0 + 1:>{0}} x')\n"),
        ("def f(x):\n    global y\n    y = x\n", "def 0(1):\n    global y\n    y = 1\n"),
        ("x = [y for y in z if y]\n", "0 = [1 for 1 in z if 1]\n"),
        ("def f(x): return x\ng = map(f, x=1)\n", "def 0(x): return x\n1 = map(0, x=1)\n"),
        ("__all__ = ['f']\ndef f(): pass\n", "__all__ = ['f']\ndef f(): pass\n"),
        ("def f(input, len):\n    return input, len\n", "def 0(input, len):\n    return input, len\n"),
        ("class A:\n    def forward(self, x): return x\n    def mine(self): return self.forward(1)\n", "class 0:\n    def forward(self, 1): return 1\n    def 2(self): return self.forward(1)\n"),
        ("try: pass\nexcept E as e: print(e)\n", "try: pass\nexcept E as e: print(e)\n"),
        ("def f(x):\n    def g():\n        nonlocal x\n        x = 1\n    return g\n", "def 0(x):\n    def 1():\n        nonlocal x\n        x = 1\n    return 1\n"),
        ("x = lambda y: (z := y)\n", "0 = lambda 1: (2 := 1)\n"),
    ],
)  # fmt: skip
def test_renamed(text: str, new: str) -> None:
    """Names are numbered here in the order in which they come."""
    result = renamed(text, {"forward"})
    numbers: dict[str, str] = {}
    given = {each for names in result.names.values() for each in names}

    def numbered(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], str(len(numbers))) if match[0] in given else match[0]

    assert re.sub(r"\w+", numbered, result.text) == new


RUNS = """
import functools
total = 0
class Counter:
    step = 2
    def __init__(self, start, *others, scale=1, **more):
        self.value = start * scale + sum(others) + more.get("extra", 0)
    def moved(self, by):
        def inner():
            nonlocal by
            by += self.step
            return f"{by:>{self.value}} {by!r} of {[by for by in range(by)]}"
        return inner()
    @property
    def doubled(self): return self.value * 2
def run(items, offset=1):
    global total
    for place, (item, other) in enumerate(items):
        total += (kept := item + offset) * other
        items = {key: value for key, value in zip("ab", [kept, place])}
    counted = Counter(3, 1, scale=2, extra=total)
    try:
        assert counted.doubled < 0, counted.moved(by=1)
    except AssertionError as error:
        told = str(error)
    lift = functools.partial(run_once, offset=offset)
    return told, items, [lift(item) for item in range(2)], sorted([3, 1], key=lambda item: -item)
def run_once(item, offset): return item - offset
result = run([(1, 2), (3, 4)], offset=5)
"""


def test_it_computes_the_same() -> None:
    new = renamed(RUNS, {"get"})
    before: dict[str, object] = {}
    after: dict[str, object] = {}
    exec(RUNS, before)  # noqa: S102 - it is written above
    exec(new.text, after)  # noqa: S102 - as above
    (name,) = new.names["result"]
    assert after[name] == before["result"]
    assert {"Counter", "run", "items", "place", "moved", "kept", "lift"} <= new.names.keys()


@pytest.mark.parametrize("seed", range(8))
def test_the_program_is_the_same(seed: int) -> None:
    text = program(seed)
    assert shape(ast.parse(renamed(text, documented_names()).text)) == shape(ast.parse(text))


# Real programs


@pytest.mark.slow
@pytest.mark.skipif("TORCHLINT_PROGRAMS" not in os.environ, reason="`TORCHLINT_PROGRAMS` names no folder of programs")
def test_real_programs_lose_few() -> None:
    """Of the findings in the programs of a folder, at most one in ten rests on names alone."""
    before: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for path in sorted(Path(os.environ["TORCHLINT_PROGRAMS"]).rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if "torch" not in text or not (there := found(text)):
            continue
        new = renamed(text, documented_names()).text
        before.update(Counter(rule for _, rule in there.elements()))
        lost.update(Counter(rule for _, rule in (there - found(new)).elements()))
    assert sum(lost.values()) <= sum(before.values()) / 10, lost.most_common()
