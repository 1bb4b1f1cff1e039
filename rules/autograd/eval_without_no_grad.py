"""A model evaluated with autograd on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Flag, Node, Rule

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.context import Context

RULE = Rule(
    name="eval-without-no-grad",
    code="TL401",
    group="autograd",
    summary="A model is evaluated with autograd on, which keeps every activation for a backward pass that never comes.",
    since="0.1.0",
    fix=(Applicability.UNSAFE,),
    yields_to=("volatile-has-no-effect",),
)
# `.eval()` and `.train(False)`, and the names of functions that evaluate.
_TOKENS = (b".eval", b".train", b"val", b"test", b"pred", b"infer", b"sample", b"detect", b"recognize", b"demo")


@RULE.on(Node("FunctionDef", _TOKENS), Node("Module", _TOKENS))
def check(node: cst.FunctionDef | cst.Module, context: Context) -> Iterator[Flag]:
    """Flag the first call of a model in each stretch of code that only evaluates it."""
    from torchlint.semantics.names.bindings import dotted

    from ._shared.evaluation import Evaluations
    from ._shared.no_grad import without_grad

    for evaluation in context[Evaluations].within(node):
        call = evaluation.calls[0]
        model = dotted(call.func) or "the model"
        title, edits = without_grad(evaluation, context)
        yield Flag(
            call,
            f"`{model}(…)` records a graph that nothing here uses, and keeps its activations in memory; `.eval()` does "
            "not turn that off, `torch.no_grad()` does",
            title=title,
            edits=edits,
        )
