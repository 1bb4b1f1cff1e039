"""What is done to arrays and numbers and could be done to tensors: each call with the function of torch for it."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.apis import LEGACY_TENSORS
from torchlint.semantics.values.lattice import Kind


class Work(NamedTuple):
    """A call that computes with `data`; `name` is torch's own for it, empty where there would be nothing to call.

    Sizes, axes, types and bounds are no data: who reads those from the device needs them on the CPU.
    """

    name: str
    data: tuple[cst.BaseExpression, ...]


# Factories of the same numbers wherever they run.
FRESH = frozenset("zeros ones full eye empty arange linspace zeros_like ones_like full_like empty_like".split())
# Factories that take data.
DATA_FACTORIES = frozenset({"tensor", "as_tensor", "asarray", "from_numpy"})
# Attributes that hold the same values, and those that hold none of them.
SAME = frozenset({"T", "mT", "data", "real", "imag"})
SHAPE = frozenset({"shape", "ndim", "dtype", "size", "dim", "device", "numel", "nbytes", "itemsize"})

# Left out is what depends on the device in more than speed: draws, decompositions, what is not deterministic there
# (`cumsum`, `bincount`), what takes no large tensors (`quantile`), what means something else (`median`).
_SAME_NAME = (
    "flip fliplr flipud reshape squeeze swapaxes moveaxis rot90 roll tile ravel exp log log2 log10 log1p expm1 sqrt "
    "square abs sign floor ceil round sin cos tan arctan tanh sinh cosh isnan isinf isfinite nan_to_num sum mean max "
    "min amax amin argmax argmin prod any all logical_not diag triu tril clip"
).split()
_PAIRED = (
    "maximum minimum dot matmul outer hypot arctan2 floor_divide equal not_equal greater greater_equal less less_equal "
    "logical_and logical_or logical_xor multiply subtract divide true_divide add"
).split()
_JOINING = "stack vstack hstack dstack concatenate".split()
_RENAMED = {"clip": "clamp", "concatenate": "cat"}
_NUMPY = {
    **{name: _RENAMED.get(name, name) for name in _SAME_NAME},
    **dict.fromkeys("array asarray asanyarray ascontiguousarray copy float32 float64 int64 int32 uint8".split(), ""),
    "transpose": "permute",
    "expand_dims": "unsqueeze",
    "repeat": "repeat_interleave",
    "absolute": "abs",
    "fabs": "abs",
    "around": "round",
    "rint": "round",
    "argsort": "argsort",
    "sort": "sort",
}
_TORCH = frozenset(
    {*_SAME_NAME, "clamp", "permute", "transpose", "t", "unsqueeze", "flatten", "clone", "detach", "neg", "sigmoid"}
)
_TORCH_PAIRED = frozenset({*_PAIRED, "pow", "mul", "sub", "div", "eq", "ne", "gt", "ge", "lt", "le", "mm", "bmm"})
_MATH = frozenset("sqrt log exp floor ceil sin cos tan tanh fabs log2 log10 log1p".split())
_BUILTINS = {"abs": "abs", "round": "round", "list": "", "tuple": "", "float": "", "int": "", "bool": ""}

_METHODS = {
    **dict.fromkeys(
        "cpu numpy detach clone copy contiguous astype to type float half long int bool byte short tolist item view "
        "reshape flatten ravel squeeze unsqueeze transpose permute swapaxes t expand expand_as requires_grad_".split(),
        "",
    ),
    **{name: name for name in "abs sqrt exp log sum mean max min amax amin prod argmax argmin any all round".split()},
    **{name: name for name in "floor ceil sigmoid tanh softmax flip tile repeat neg square".split()},
    **dict.fromkeys("clip clamp clamp_min clamp_max".split(), "clamp"),
}
# Methods called with an axis, an index and what to put there.
_INDEXED = {"scatter_": "scatter", "scatter": "scatter", "index_fill_": "index_fill", "index_fill": "index_fill"}
_PLACE_OF_VALUE = 2
_PAIRED_METHODS = frozenset("add sub mul div pow eq ne gt ge lt le dot matmul mm bmm maximum minimum".split())


def work(call: cst.Call, context: Context) -> Work | None:
    """What a call does to data; None where torch has nothing of the kind, or nothing that is alike everywhere."""
    if context.has_unpacking(call):
        return None
    name = context.qualified_name(call.func)
    if name is not None:
        module, _, last = name.rpartition(".")
        found = _of_function(module, last, call, context)
        if found is not None:
            return found
    return _of_method(call, context)


def _of_function(module: str, name: str, call: cst.Call, context: Context) -> Work | None:
    given = tuple(argument.value for argument in call.args if argument.keyword is None)
    if not given:
        return None
    match module:
        case "torch" | "numpy" if name in FRESH:
            is_on_cpu = context.argument(call, "device") is None and context.argument(call, "generator") is None
            is_like = name.endswith("_like")
            return Work(f"torch.{name}" if is_like else "", given[:1] if is_like else ()) if is_on_cpu else None
        case "torch.autograd" if name == "Variable":
            return Work("", given[:1])
        case "numpy" if name in _NUMPY:
            own = _NUMPY[name]
            return Work(f"torch.{own}" if own else "", given[:1])
        case "torch" if name in _TORCH:
            return Work(f"torch.{name}", given[:1])
        case "torch" if name in DATA_FACTORIES or name in LEGACY_TENSORS:
            is_on_cpu = context.argument(call, "device") is None and len(given) == 1
            return Work("", given) if is_on_cpu else None
        case "numpy" | "torch" if name in _PAIRED or (module == "torch" and name in _TORCH_PAIRED):
            return Work(f"torch.{name}", given[:2]) if len(given) > 1 else None
        case "numpy" | "torch" if name in _JOINING or name == "cat":
            return Work(f"torch.{_RENAMED.get(name, name)}", given[:1])
        case "numpy" | "torch" if name == "where" and len(given) == len(call.args) == 3:
            return Work("torch.where", given)
        case "math" if name in _MATH:
            return Work(f"torch.{'abs' if name == 'fabs' else name}", given)
        case "" if name in _BUILTINS:
            return Work(f"torch.{_BUILTINS[name]}" if _BUILTINS[name] else "", given[:1])
    return None


def _of_method(call: cst.Call, context: Context) -> Work | None:
    func = call.func
    if not isinstance(func, cst.Attribute):
        return None
    name = func.attr.value
    if name == "to" and not _is_cast(call, context):
        return None
    if name in _METHODS:
        own = _METHODS[name]
        return Work(f"torch.{own}" if own else "", (func.value,))
    if name in _INDEXED and len(call.args) > _PLACE_OF_VALUE and all(given.keyword is None for given in call.args):
        return Work(f"torch.{_INDEXED[name]}", (func.value, *(given.value for given in call.args[1:])))
    if name in _PAIRED_METHODS and call.args:
        return Work(f"torch.{name}", (func.value, call.args[0].value))
    return None


def _is_cast(call: cst.Call, context: Context) -> bool:
    dtype = context.argument(call, "dtype", 0)
    return len(call.args) == 1 and dtype is not None and context.kind(dtype) is Kind.DTYPE
