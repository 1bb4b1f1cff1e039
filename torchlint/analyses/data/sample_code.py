"""Code that makes samples: datasets, samplers, transforms and collators, on the host."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.analyses.data.datasets import is_put_on_device
from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.functions import COLLATOR, TRANSFORM_CLASS
from torchlint.semantics.knowledge.conventions.values import IMAGE_AND_TARGET, SEEN_TARGET
from torchlint.syntax.tree import descendants


def is_in_a_dataset(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node stands in a dataset, sampler or collator that puts nothing on an accelerator: on the host."""
    return any(
        _prepares(above, context) and not any(is_put_on_device(part, context) for part in descendants(above.body))
        for above in _definitions(node, context)
    )


def _definitions(node: cst.CSTNode, context: Context) -> Iterator[cst.ClassDef | cst.FunctionDef]:
    return context.around(node, cst.ClassDef, cst.FunctionDef)


@query(bottom=False)
def is_for_samples(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node stands there, or in a function that nothing else is known to call."""
    if is_in_a_dataset(node, context):
        return True
    function = context.function(node)
    if not isinstance(function, cst.FunctionDef):
        return False
    here = context.calls.callers(function)
    if not all(is_for_samples(call, context) for call in here):
        return False
    others = context.elsewhere.callers(function)
    return bool(here or others) and all(call.prepares for call in others)


def _prepares(owner: cst.ClassDef | cst.FunctionDef, context: Context) -> bool:
    """Whether a loader calls this for its samples: a dataset, a sampler, what alters samples or joins them."""
    if COLLATOR.suggests(owner.name.value):
        return True
    if not isinstance(owner, cst.ClassDef):
        return False
    return context.classes.is_dataset(owner) or context.classes.is_sampler(owner) or _alters_samples(owner, context)


def _alters_samples(class_: cst.ClassDef, context: Context) -> bool:
    """Whether this is a transform of samples, as torchvision has them: called with an image and what is to be seen."""
    if any(context.code(base.value) != "object" for base in class_.bases):
        return False  # those of distributions work anywhere
    call = context.classes.method(class_, "__call__")
    if call is None:
        return False
    given = {parameter.name.value for parameter in call.params.params}
    return TRANSFORM_CLASS.suggests(class_.name.value) or (
        SEEN_TARGET.suggests_any(given) and IMAGE_AND_TARGET.suggests_any(given)
    )
