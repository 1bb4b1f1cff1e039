"""An array or tensor that stays the same, and is copied to the device again at every call."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Doubt, Flag, Message, Method, Rule

RULE = Rule(
    name="table-moved-per-call",
    code="TL210",
    group="transfer",
    summary="An array or tensor that never changes is copied to the GPU again at every call.",
    since="0.2.0",
    yields_to=(
        "tensor-attribute-not-buffer",
        "float64-leak",
        "host-factory-then-move",
        "constant-tensor-in-hot-path",
    ),
    eager=True,
    doubts=(
        (Doubt.DEVICE_UNKNOWN, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.WAITS_ANYWAY, "Where the CPU waits anyway, to wait for a copy costs next to nothing."),
        (Doubt.RUNS_ONCE, "One copy takes no time worth a word."),
        (Doubt.RARE, "A copy now and then takes no time worth a word."),
    ),
)
_AGAIN = Message(
    "again",
    "`{copy}` copies the same {what} to the device again{often}, and blocks the CPU",
    help="{advice}",
)
_FROM_ARRAYS = ("torch.from_numpy", "torch.tensor", "torch.as_tensor")
_CASTS = frozenset("float double half bfloat16 long int bool to type unsqueeze view reshape".split())


@RULE.on(Method("to"), Method("cuda"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a move of what an object has held, or a module has known, since the start."""
    assert isinstance(node.func, cst.Attribute)
    source = _source(node.func.value, context)
    if source is None or context.has_unpacking(node) or (source is node.func.value and _is_local(source, context)):
        return
    from torchlint.analyses.data.batch_moves import is_to_accelerator

    given = context.argument(node, "device", 0)
    if is_to_accelerator(node, context):
        yield from _flag(node, source, (), context)
    elif isinstance(given, cst.Attribute) and given.attr.value == "device":
        yield from _flag(node, source, (Doubt.DEVICE_UNKNOWN,), context)


@RULE.on(Call("torch.tensor"), Call("torch.as_tensor"))
def check_made(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a tensor that is made of such an array right on the device."""
    from torchlint.semantics.values.lattice import Device

    source, device = context.argument(node, "data", 0), context.argument(node, "device")
    if not isinstance(source, (cst.Name, cst.Attribute)) or device is None or context.has_unpacking(node):
        return
    if context.device(device) is not Device.CPU:
        yield from _flag(node, source, (), context)


def _source(node: cst.BaseExpression, context: Context) -> cst.BaseExpression | None:
    """What is moved, as it was before it was made into a tensor, or cast: a name or an attribute."""
    while isinstance(node, cst.Call):
        match node:
            case cst.Call(func=func, args=[cst.Arg(value=data, keyword=None, star=""), *_]) if (
                context.qualified_name(func) in _FROM_ARRAYS
            ):
                if context.argument(node, "device") is not None or context.argument(node, "pin_memory") is not None:
                    return None
                node = data
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name))) if name in _CASTS:
                node = owner
            case _:
                return None
    return node if isinstance(node, (cst.Name, cst.Attribute)) else None


def _is_local(source: cst.BaseExpression, context: Context) -> bool:
    """Whether the function around binds the name, as a parameter too: cheap to ask, unlike where a value is from."""
    if not isinstance(source, cst.Name):
        return False
    function = context.function(source)
    return function is None or any(context.tree.within(binder, function) for binder in context.binders(source))


def _flag(node: cst.Call, source: cst.BaseExpression, doubts: tuple[Doubt, ...], context: Context) -> Iterator[Flag]:
    from torchlint.analyses.data.sample_code import is_for_samples
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.analyses.execution.occasions import is_made_once
    from torchlint.edits.messages import how_often

    function = context.function(node)
    if not isinstance(function, cst.FunctionDef) or function.name.value == "__init__":
        return
    what = _kept(source, function, context)
    if not what or is_for_samples(node, context) or is_made_once(node, context) or _is_kept_by_object(node, context):
        return
    advice = "make it a buffer of the module" if _is_of_a_module(node, context) else "move it once and keep it there"
    yield Flag(
        node,
        _AGAIN.of(copy=context.shown(node), what=what, often=how_often(node, context), advice=advice),
        doubts=(*doubts, *rate_doubts(node, context)),
    )


def _is_of_a_module(node: cst.CSTNode, context: Context) -> bool:
    class_ = context.tree.enclosing_class(node)
    return class_ is not None and context.classes.is_module(class_)


def _is_kept_by_object(moved: cst.Call, context: Context) -> bool:
    """Whether what is moved stays where it came from, `self.table = self.table.to(device)`, so that it moves once."""
    match context.parent(moved):
        case cst.Assign(targets=targets):
            return any(isinstance(target.target, (cst.Attribute, cst.Subscript)) for target in targets)
    return False


def _kept(source: cst.BaseExpression, function: cst.FunctionDef, context: Context) -> str:
    """What it is that was made at the start, as the object was or the module, and is not written to; empty if it isn't.

    `array` or `tensor`, all of them on the CPU.
    """
    from torchlint.semantics.flow.origins import Through

    origins = context.origins(source, Through.ATTRIBUTES | Through.PARAMETERS)
    kinds = [_since_the_start(value, function, context) for value in origins.nodes]
    found = [kind for kind in kinds if kind]
    # A helper may be given other arrays as well: what holds for most of its callers is said of it.
    is_passed = context.parameter(source) is not None
    if not found or _is_written_to(source, context) or len(found) * 2 < len(kinds):
        return ""
    if not is_passed and (len(found) < len(kinds) or not origins.is_whole):
        return ""
    return "array" if "array" in found else "tensor"


def _since_the_start(value: cst.BaseExpression, function: cst.FunctionDef, context: Context) -> str:
    """What this makes on the CPU as an object is made, or a module: `array`, `tensor`, or nothing."""
    maker = context.function(value)
    if maker is function or (maker is None and context.loop(value) is not None):
        return ""
    if isinstance(context.parent(value), cst.Param):
        return ""  # a default, which is there for who passes nothing
    is_init = isinstance(maker, cst.FunctionDef) and maker.name.value == "__init__"
    if maker is not None and not is_init and not context.tree.within(function, maker.body):
        return ""
    kind = _on_the_host(value, context)
    # In a module it may be a buffer, which goes where its module goes.
    return "" if kind == "tensor" and _is_of_a_module(value, context) else kind


def _on_the_host(value: cst.BaseExpression, context: Context) -> str:
    from torchlint.analyses.tensors.factories import factory
    from torchlint.semantics.values.lattice import Device, Kind

    found = context.value(value)
    if found.kind is Kind.NDARRAY and found.proven:
        return "array"
    is_made = isinstance(value, cst.Call) and (
        factory(value, context) is not None or context.qualified_name(value.func) in _FROM_ARRAYS
    )
    return "tensor" if is_made and found.kind is Kind.TENSOR and found.device is Device.CPU else ""


def _is_written_to(source: cst.BaseExpression, context: Context) -> bool:
    """Whether elements of it, or of what goes by its name, are assigned somewhere."""
    from torchlint.semantics.names.bindings import final_part

    targets = [target.target for node in context.tree.of(cst.Assign) for target in node.targets]
    targets += [node.target for node in context.tree.of(cst.AugAssign)]
    name = final_part(source)
    return any(isinstance(target, cst.Subscript) and final_part(target.value) == name for target in targets)
