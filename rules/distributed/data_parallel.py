"""`nn.DataParallel`: one Python process that copies the model to every GPU at each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Call, Flag, Node, Rule
from torchlint.semantics.knowledge.conventions.functions import PARALLEL_CLASS

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

RULE = Rule(
    name="data-parallel",
    code="TL701",
    group="distributed",
    summary="`nn.DataParallel` drives all GPUs from one Python process and copies the model to each at every step.",
    since="0.1.0",
)

_WRAPPERS = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"})
_NAME = "DataParallel"
_ADVICE = "`DistributedDataParallel` keeps one process and one copy per GPU"
_BESIDE = "the `DistributedDataParallel` of this file does better on one machine, too: start it with `torchrun`"
_NO_GRADIENTS = "to evaluate, leave it out, or start a process per GPU with its part of the data"


@RULE.on(Call("torch.nn.DataParallel"), Call("torch.nn.parallel.DataParallel"))
def check_wrapper(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the construction of the wrapper."""
    from ._shared.replicas import is_one_by_default, is_one_device, is_only_saved  # they load LibCST

    class_ = context.tree.enclosing_class(node)
    if class_ is not None and PARALLEL_CLASS.suggests(class_.name.value):
        return  # a strategy of a framework, for those who ask for it
    devices = context.argument(node, "device_ids", 1)
    if is_one_device(devices):
        yield Flag(
            node,
            "`DataParallel` over one device checks every parameter and scatters the inputs at each step, "
            "and runs nothing in parallel; leave it out",
        )
        return
    if is_one_by_default(devices, context) or is_only_saved(node, context):
        return
    told = "`DataParallel` copies the model to every GPU and gathers the outputs on one at each step"
    yield Flag(node, f"{told}; {_advice(node, context)}")


@RULE.on(Call("torch.nn.parallel.data_parallel"))
def check_call(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the function that does the same for one forward pass."""
    from ._shared.replicas import is_one_device

    if is_one_device(context.argument(node, "device_ids", 2)):
        return  # the function calls the module itself then
    yield Flag(node, f"`data_parallel` copies the module to every GPU at each call; {_advice(node, context)}")


@RULE.on(Node("ClassDef", (b"DataParallel",)))
def check_subclass(node: cst.ClassDef, context: Context) -> Iterator[Flag]:
    """Flag what constructs a class derived from the wrapper; the class alone copies nothing.

    One of the same name is a library's variant, offered beside others.
    """
    if node.name.value == "DataParallel" or _WRAPPERS.isdisjoint(
        base for base in context.classes.lineage(node) if isinstance(base, str)
    ):
        return
    for use in context.uses.of(node.name.value, node):
        call = context.parent(use)
        if isinstance(call, cst.Call) and call.func is use and context.tree.enclosing_class(call) is not node:
            yield _derived(call, f"`{node.name.value}`", context)


@RULE.on(Node("Call", (b"DataParallel",)))
def check_imported(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the construction of a class of another file that is derived from the wrapper."""
    match node.func:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)) if name.endswith(_NAME) and name != _NAME:
            described = context.described(node.func)
            if described is not None and not _WRAPPERS.isdisjoint(described.bases):
                yield _derived(node, f"`{name}` of {described.path}", context)


@RULE.on(Call("lightning.pytorch.Trainer"))
def check_trainer(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the same behind Lightning's flag, which version 2.0 removed."""
    for keyword in ("strategy", "accelerator", "distributed_backend"):
        chosen = context.argument(node, keyword)
        if isinstance(chosen, cst.SimpleString) and chosen.evaluated_value == "dp":
            yield Flag(
                node,
                f'`{keyword}="dp"` copies the model to every GPU and gathers the outputs on one at each step; '
                'choose `strategy="ddp"`',
            )
            return


def _derived(call: cst.Call, what: str, context: Context) -> Flag:
    told = f"{what} is a `DataParallel`, which copies the model to every GPU at each step; {_advice(call, context)}"
    return Flag(call, told)


def _advice(node: cst.Call, context: Context) -> str:
    """What to do instead."""
    from ._shared.replicas import has_distributed_beside, only_evaluates

    if only_evaluates(node, context):
        return _NO_GRADIENTS
    return _BESIDE if has_distributed_beside(context) else _ADVICE
