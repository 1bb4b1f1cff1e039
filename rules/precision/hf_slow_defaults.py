"""A `Trainer` of transformers whose arguments leave it with float32 and without workers, as the defaults are."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Flag, Message, Rule, Status

RULE = Rule(
    name="hf-slow-defaults",
    code="TL661",
    group="precision",
    summary="The default arguments of the Hugging Face `Trainer` train in float32 and load in the main process.",
    since="0.2.0",
    status=Status.PREVIEW,
    default=False,
)
_DEFAULTS = Message(
    "defaults",
    "the `Trainer` computes in float32 and loads batches in the main process",
    help="pass `bf16=True`, where the GPU has it, and `dataloader_num_workers`",
)

# Arguments with which somebody has decided on the precision, the loading, the device, or all of it elsewhere.
_DECIDED = frozenset(
    "bf16 fp16 half_precision_backend tf32 dataloader_num_workers deepspeed fsdp fsdp_config use_cpu no_cuda "
    "use_mps_device parallelism_config accelerator_config jit_mode_eval do_train bf16_full_eval fp16_full_eval".split()
)
# What a model is loaded with that is not float32 anyway.
_NARROW = frozenset({"torch_dtype", "dtype", "load_in_8bit", "load_in_4bit", "quantization_config"})
# So many samples are trained on in no time.
_FEW = 128


@RULE.on(Call("transformers.TrainingArguments"), Call("transformers.Seq2SeqTrainingArguments"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag arguments that name neither a precision nor workers, in a file that trains with them."""
    if context.has_unpacking(node) or any(
        argument.keyword is not None and argument.keyword.value in _DECIDED for argument in node.args
    ):
        return
    if (
        not _trains(node, context)
        or _tries_out(context)
        or any(_is_narrow(call, context) for call in context.tree.of(cst.Call))
    ):
        return
    yield Flag(
        node,
        _DEFAULTS.of(),
    )


def _trains(arguments: cst.Call, context: Context) -> bool:
    """Whether the arguments are given to what takes them as a `Trainer` does, and something here is trained."""
    calls = context.tree.of(cst.Call)
    if not any(isinstance(call.func, cst.Attribute) and call.func.attr.value == "train" for call in calls):
        return False
    return any(_is_a_trainers(place.node, context) for place in context.sinks.of(arguments).found)


def _is_a_trainers(node: cst.BaseExpression, context: Context) -> bool:
    """`Trainer(model, arguments)`, `SFTTrainer(model=model, args=arguments)`."""
    argument = context.parent(node)
    call = context.parent(argument) if isinstance(argument, cst.Arg) else None
    return isinstance(call, cst.Call) and context.argument(call, "args", 1) is node


def _tries_out(context: Context) -> bool:
    """Whether the script takes a few samples of its data: `rows.select(range(100))`."""
    return any(_selects_few(call) for call in context.tree.of(cst.Call))


def _selects_few(call: cst.Call) -> bool:
    match call:
        case cst.Call(
            func=cst.Attribute(attr=cst.Name(value="select")),
            args=[cst.Arg(value=cst.Call(func=cst.Name(value="range"), args=[cst.Arg(value=cst.Integer() as number)]))],
        ):
            return number.evaluated_value <= _FEW
    return False


def _is_narrow(call: cst.Call, context: Context) -> bool:
    """Whether the call loads a model in another type, may do so, or makes it one of half precision."""
    if not isinstance(call.func, cst.Attribute):
        return False
    if call.func.attr.value in ("half", "bfloat16"):
        return True
    names = {argument.keyword.value for argument in call.args if argument.keyword is not None}
    return call.func.attr.value == "from_pretrained" and (context.has_unpacking(call) or not names.isdisjoint(_NARROW))
