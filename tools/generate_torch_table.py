"""Write semantics/knowledge/torch_signatures.py from torch's own stubs: what each function and tensor method returns.

usage: python tools/generate_torch_table.py   (with torch installed; `check` itself needs none)
"""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGET = Path(__file__).parents[1] / "torchlint" / "semantics" / "knowledge" / "torch_signatures.py"

TENSOR = "T"
NUMBER = "n"
SEQUENCE = "S"  # of tensors, length unknown
SIZE = "z"
NONE = "-"
OTHER = "?"
_SIMPLE = {
    "Tensor": TENSOR,
    "Self": TENSOR,
    "_int": NUMBER,
    "_float": NUMBER,
    "_bool": NUMBER,
    "_complex": NUMBER,
    "int": NUMBER,
    "float": NUMBER,
    "bool": NUMBER,
    "Number": NUMBER,
    "Number | _complex": NUMBER,
    "_int | SymInt": NUMBER,
    "Size": SIZE,
    "None": NONE,
    "List[Tensor]": SEQUENCE,
    "list[Tensor]": SEQUENCE,
    "tuple[Tensor, ...]": SEQUENCE,
}


# Methods that torch/_tensor.py defines in Python, without annotations; the stubs know nothing of them.
_IN_PYTHON = {
    "istft": TENSOR,
    "lu": OTHER,
    "norm": TENSOR,
    "stft": TENSOR,
    "unflatten": TENSOR,
    "unique": OTHER,
    "unique_consecutive": OTHER,
}


# Private methods that programs call all the same.
_OF_SPARSE = frozenset({"_indices", "_nnz", "_values"})
# What operators are made of, by backend, and views that copy: no program calls them.
_INTERNAL = tuple(
    "_ choose_qparams cudnn_ fake_quantize fbgemm_ fused_moving miopen_ mkldnn_ native_ quantized_".split()
)


def _torch_folder() -> Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise SystemExit("torch is not installed")
    return Path(spec.origin).parent


def _named_tuples(folder: Path) -> dict[str, int]:
    sizes = {}
    for node in ast.parse((folder / "return_types.pyi").read_text()).body:
        match node:
            case ast.ClassDef(name=name, bases=[ast.Subscript(slice=ast.Tuple(elts=items))]):
                sizes[f"torch.return_types.{name}"] = len(items)
    return sizes


def _code(returns: str, tuples: dict[str, int]) -> str:
    if returns in _SIMPLE:
        return _SIMPLE[returns]
    if returns in tuples:
        return str(tuples[returns])
    if returns.startswith("tuple[") and set(returns[6:-1].split(", ")) == {"Tensor"}:
        return str(returns.count("Tensor"))
    return OTHER


def _functions(body: list[ast.stmt], tuples: dict[str, int]) -> dict[str, str]:
    codes: dict[str, set[str]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.returns is not None and not node.name.startswith("__"):
            codes.setdefault(node.name, set()).add(_code(ast.unparse(node.returns), tuples))
    return {name: _joined(found) for name, found in codes.items()}


def _methods_in_python(folder: Path) -> dict[str, str]:
    """What the methods return that are written in Python. Raises `SystemExit` where one is not there any more."""
    module = ast.parse((folder / "_tensor.py").read_text())
    tensor = next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    there = {node.name for node in tensor.body if isinstance(node, ast.FunctionDef)}
    if missing := sorted(_IN_PYTHON.keys() - there):
        raise SystemExit(f"torch.Tensor has no method {', '.join(missing)}")
    return _IN_PYTHON


def _joined(found: set[str]) -> str:
    """One code for all overloads; `T/2` is a tensor without `dim` and a pair with it."""
    found = found - {NONE} or found
    if len(found) == 1:
        return next(iter(found))
    tuples = sorted(code for code in found if code.isdigit())
    if found == {TENSOR, *tuples} and len(tuples) == 1:
        return f"{TENSOR}/{tuples[0]}"
    if found <= {TENSOR, OTHER}:
        return TENSOR
    return OTHER


def _tables() -> Iterator[tuple[str, str, dict[str, str] | list[str]]]:
    folder = _torch_folder()
    tuples = _named_tuples(folder)
    stub = ast.parse((folder / "_C" / "__init__.pyi").read_text())
    base = next(node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == "TensorBase")
    methods = _functions(base.body, tuples) | _methods_in_python(folder)
    yield (
        "METHODS",
        "What each method of torch.Tensor returns.",
        {name: code for name, code in methods.items() if not name.startswith("_") or name in _OF_SPARSE},
    )
    functions = _functions(ast.parse((folder / "_C" / "_VariableFunctions.pyi").read_text()).body, tuples)
    yield (
        "FUNCTIONS",
        "What each function of the torch namespace returns.",
        {name: code for name, code in functions.items() if not (name.startswith(_INTERNAL) or name.endswith("_copy"))},
    )
    functional = _functions(ast.parse((folder / "nn" / "functional.pyi").read_text()).body, tuples)
    yield (
        "FUNCTIONAL",
        "What each function of torch.nn.functional returns.",
        {name: TENSOR if code == OTHER else code for name, code in functional.items() if not name.startswith("_")},
    )
    yield "MODULES", "The modules of torch.nn.", _exported(folder / "nn" / "modules" / "__init__.py")
    yield (
        "OPTIMIZERS",
        "The optimizers of torch.optim.",
        [name for name in _exported(folder / "optim" / "__init__.py") if name[0].isupper()],
    )


def _exported(path: Path) -> list[str]:
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return sorted(ast.literal_eval(value))
    raise SystemExit(f"{path.name}: no __all__")


def render() -> str:
    """The text of the table's module."""
    parts = [
        (
            '"""What torch\'s functions return, written by tools/generate_torch_table.py from torch\'s own stubs.\n\n'
            "T a tensor, a digit so many tensors, T/2 a tensor without `dim` and a pair with it, S a sequence of\n"
            'tensors, n a Python number, z a torch.Size, - None, ? anything else.\n"""\n'
        )
    ]
    tables = [*_tables()]
    methods, functions = (dict(table) for _, _, table in tables[:2] if isinstance(table, dict))
    both = {name: code for name, code in methods.items() if functions.get(name) == code}
    parts.append(
        f"\n# What methods of torch.Tensor and functions of torch return alike.\n_BOTH = {{\n{_rows(both)}}}\n"
    )
    for name, doc, table in tables:
        if isinstance(table, dict):
            is_like_both = both.items() <= table.items()
            own = {key: code for key, code in table.items() if not (is_like_both and key in both)}
            rows = ("    **_BOTH,\n" if is_like_both else "") + _rows(own)
            parts.append(f"\n# {doc}\n{name}: dict[str, str] = {{\n{rows}}}\n")
        else:
            parts.append(f'\n# {doc}\n{name}: frozenset[str] = frozenset("{" ".join(table)}".split())\n')
    return "".join(parts)


def _rows(table: dict[str, str]) -> str:
    by_code: dict[str, list[str]] = {}
    for key, code in table.items():
        by_code.setdefault(code, []).append(key)
    return "".join(
        f'    **dict.fromkeys("{" ".join(sorted(names))}".split(), "{code}"),\n'
        for code, names in sorted(by_code.items())
    )


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
