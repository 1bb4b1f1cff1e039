"""A model evaluated with autograd on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Flag, Node, Rule

if TYPE_CHECKING:
    from torchlint.model.context import Context

RULE = Rule(
    name="eval-without-no-grad",
    code="TL401",
    group="autograd",
    summary="A model is evaluated with autograd on: every call keeps its activations for a backward pass that never comes.",
    since="0.1.0",
    fix=(Applicability.UNSAFE,),
)
_TOKENS = (b".eval(", b".train(", b"val", b"test", b"pred", b"infer", b"sample", b"detect", b"recognize", b"demo")


@RULE.on(Node("FunctionDef", _TOKENS), Node("Module", _TOKENS))
def check(node: cst.FunctionDef | cst.Module, context: Context) -> Iterator[Flag]:
    """Flag the first call of a model in code that only evaluates it."""
    from torchlint.model.evaluation import evaluations

    if context.is_test:
        return
    for evaluation in evaluations(node, context):
        call = evaluation.calls[0]
        yield Flag(call, "x")
