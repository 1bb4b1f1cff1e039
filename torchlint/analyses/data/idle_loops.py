"""Loops over batches that take few, compute nothing with them, or so much that nothing else counts beside it."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.conventions.counts import SHOWN_NUMBER
from torchlint.semantics.knowledge.conventions.functions import WRITING_METHOD
from torchlint.semantics.knowledge.marks import GRADIENT_TAKEN
from torchlint.syntax.tree import descendants

# What looks at values, describes or stores them, by the module that it comes from.
_LOOKING = (
    "numpy.",
    "math.",
    "time.",
    "random.",
    "datetime.",
    "logging.",
    "matplotlib.",
    "os.",
    "sys.",
    "collections.",
    "cv2.",
    "PIL.",
    "imageio.",
    "soundfile.",
    "json.",
    "pickle.",
)
_BUILTINS = frozenset(
    "abs bool bytes dict dir divmod enumerate filter float format getattr hasattr id int isinstance len list map max "
    "min next open print range repr reversed round set slice sorted str sum tuple type zip".split()
)
# Methods that no model has: of tensors and arrays, text, files, lists and bars.
_METHODS = frozenset(
    "add all any append astype bool clear close contiguous copy count cpu cuda debug detach dim double endswith "
    "extend flatten float flush format get half imshow index info int item items join keys long lower mean median "
    "numel numpy permute pop ravel replace reshape save set_description set_postfix size split squeeze startswith "
    "std strip sum title to tobytes tolist transpose type unsqueeze values var view warning write".split()
)

_MANY = 32


def computes_nothing(loop: cst.For, context: Context) -> bool:
    """Whether the loop gives its batches to no model, nor to anything else that may be one.

    `pass` alone stands for code that is to be written there.
    """
    parts = [part for part in descendants(loop.body) if isinstance(part, cst.BaseSmallStatement)]
    if all(isinstance(part, cst.Pass) for part in parts):
        return False
    return not any(_may_compute(node, context) for node in descendants(loop.body))


def takes_few(loop: cst.For, context: Context) -> bool:
    """Whether a loop that runs once and trains nothing ends with so many batches: `if i == shown: break`."""
    if context.loop(loop) is not None or GRADIENT_TAKEN.is_in(context.uncommented(loop.body)):
        return False
    match loop:
        case cst.For(
            target=cst.Tuple(elements=[cst.Element(value=cst.Name(value=counter)), *_]),
            iter=cst.Call(func=cst.Name(value="enumerate")),
        ):
            return any(_ends_at_few(line, counter, context) for line in loop.body.body)
    return False


def _ends_at_few(line: cst.CSTNode, counter: str, context: Context) -> bool:
    """Whether this is `if i == 8: break`, or with a name of what is only shown for the number."""
    match line:
        case cst.If(
            test=cst.Comparison(left=cst.Name(value=name), comparisons=[cst.ComparisonTarget(comparator=number)]),
            body=cst.IndentedBlock(body=[*_, cst.SimpleStatementLine(body=[cst.Break()])]),
        ) if name == counter:
            if isinstance(number, cst.Integer):
                return number.evaluated_value < _MANY
            return SHOWN_NUMBER.suggests(context.uncommented(number))
    return False


def generates(loop: cst.For, context: Context) -> bool:
    """Whether the loop writes text with a language model, token by token, for each of its batches."""
    calls = [node for node in descendants(loop.body) if isinstance(node, cst.Call)]
    methods = [(call, call.func.attr.value) for call in calls if isinstance(call.func, cst.Attribute)]
    return not any(name == "backward" for _, name in methods) and any(
        WRITING_METHOD.suggests(name) and not context.frequencies.is_rate_limited(call) for call, name in methods
    )


def _may_compute(node: cst.CSTNode, context: Context) -> bool:
    match node:
        case cst.Yield() | cst.Await() | cst.MatrixMultiply() | cst.MatrixMultiplyAssign():
            return True
        case cst.Call(func=func):
            name = context.qualified_name(func)
            if name is not None:
                return name not in _BUILTINS and not name.startswith(_LOOKING) and not name.endswith("Error")
            return not (isinstance(func, cst.Attribute) and func.attr.value in _METHODS)
    return False
