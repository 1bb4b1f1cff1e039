"""Convolutions over images of one size, for which nobody lets cuDNN try its algorithms."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Context, Flag, Message, Method, Rule, Status
from torchlint.semantics.knowledge.conventions.texts import BENCHMARK_SETTLED, VARYING_SIZES
from torchlint.semantics.knowledge.marks import LOADING_TEXT

RULE = Rule(
    name="cudnn-benchmark-off",
    code="TL620",
    group="precision",
    summary="Convolutions run algorithms that cuDNN guesses, though all images have one size.",
    since="0.2.0",
    status=Status.PREVIEW,
    default=False,
)
_UNTRIED = Message(
    "untried",
    "cuDNN guesses an algorithm for each convolution, though all images have one size",
    help="set `torch.backends.cudnn.benchmark = True`, to try them at the first batch",
)

# So many convolutions make a network of them.
_SOME = 3


@RULE.on(Method("backward"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the backward pass of a script that trains convolutions on a device and has images of one size."""
    from .._shared.training_script import convolves, is_first_step, is_tiny
    from .image_sizes import has_one_size

    text = context.program.code
    if not LOADING_TEXT.is_in(text) or BENCHMARK_SETTLED.suggests(text) or VARYING_SIZES.suggests(text):
        return
    if is_tiny(context) or not has_one_size(context) or not (convolves(context) or _calls_a_maker(context)):
        return
    if is_first_step(node, context):
        yield Flag(
            node,
            _UNTRIED.of(),
        )


def _calls_a_maker(context: Context) -> bool:
    """Whether a function of the file that gives a convolution is called several times."""
    import libcst as cst  # only for files that come so far

    makers = [
        context.function(call)
        for call in context.tree.of(cst.Call)
        if context.qualified_name(call.func) == "torch.nn.Conv2d" and isinstance(context.parent(call), cst.Return)
    ]
    return any(
        isinstance(maker, cst.FunctionDef) and len(list(context.calls.callers(maker))) >= _SOME for maker in makers
    )
