"""`nn.DataParallel`: one Python process that copies the model to every GPU at each step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Doubt
from torchlint.rule import Call, Context, Flag, Message, Node, Rule
from torchlint.semantics.knowledge.conventions.functions import PARALLEL_CLASS

RULE = Rule(
    name="data-parallel",
    code="TL701",
    group="distributed",
    summary="`nn.DataParallel` drives all GPUs from one Python process and copies the model to each at every step.",
    since="0.1.0",
    doubts=((Doubt.OPTION_DECIDES, ""),),
)
_ONE_DEVICE = Message(
    "one-device",
    "`DataParallel` over one device costs time at every step and parallelizes nothing",
    help="leave it out",
)
_COPIES = Message(
    "copies",
    "`DataParallel` copies the model to every GPU and gathers the outputs on one at every step",
    help="{advice}",
)
_FUNCTION = Message("function", "`data_parallel` copies the module to every GPU at every call", help="{advice}")
_TRAINER = Message(
    "trainer",
    '`{keyword}="dp"` copies the model to every GPU and gathers the outputs on one at every step',
    help='choose `strategy="ddp"`',
)
_DERIVED = Message(
    "derived", "{what} is a `DataParallel`, which copies the model to every GPU at every step", help="{advice}"
)

_WRAPPERS = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"})
_NAME = "DataParallel"
_ADVICE = "use `DistributedDataParallel`, which keeps one process and one copy per GPU"
_BESIDE = "use the `DistributedDataParallel` of this file on one machine, too: start it with `torchrun`"
_NO_GRADIENTS = "leave it out, or start a process per GPU with its part of the data"


@RULE.on(Call("torch.nn.DataParallel"), Call("torch.nn.parallel.DataParallel"))
def check_wrapper(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the construction of the wrapper."""
    from ._shared.replicas import is_one_by_default, is_one_device, is_only_saved  # they load LibCST

    class_ = context.tree.enclosing_class(node)
    is_asked_for = class_ is not None and PARALLEL_CLASS.suggests(class_.name.value)  # the strategy of a framework
    devices = context.argument(node, "device_ids", 1)
    if is_one_device(devices):
        yield Flag(
            node,
            _ONE_DEVICE.of(),
        )
        return
    if is_one_by_default(devices, context) or is_only_saved(node, context):
        return
    doubts = (Doubt.OPTION_DECIDES,) if is_asked_for else ()
    yield Flag(node, _COPIES.of(advice=_advice(node, context)), doubts=doubts)


@RULE.on(Call("torch.nn.parallel.data_parallel"))
def check_call(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the function that does the same for one forward pass."""
    from ._shared.replicas import is_one_device

    if is_one_device(context.argument(node, "device_ids", 2)):
        return  # the function calls the module itself then
    yield Flag(node, _FUNCTION.of(advice=_advice(node, context)))


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
                _TRAINER.of(keyword=keyword),
            )
            return


def _derived(call: cst.Call, what: str, context: Context) -> Flag:
    return Flag(call, _DERIVED.of(what=what, advice=_advice(call, context)))


def _advice(node: cst.Call, context: Context) -> str:
    """What to do instead."""
    from ._shared.replicas import has_distributed_beside, only_evaluates

    if only_evaluates(node, context):
        return _NO_GRADIENTS
    return _BESIDE if has_distributed_beside(context) else _ADVICE
