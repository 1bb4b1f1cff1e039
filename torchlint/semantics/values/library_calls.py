"""What functions and classes of torch, of other packages and of Python give when they are called."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.functions import NO_PROCESSOR
from torchlint.semantics.knowledge.torch_signatures import FUNCTIONAL, FUNCTIONS, MODULES, OPTIMIZERS
from torchlint.semantics.names.bindings import dotted, final_part
from torchlint.semantics.values.lattice import (
    BATCH,
    NDARRAY,
    NUMBER,
    STRING,
    TENSOR,
    UNKNOWN,
    Device,
    Kind,
    Rank,
    Value,
    item_of,
    join,
    mapping_of,
    off_cpu,
    sequence,
    sequence_of,
    tensor,
    turn_of,
)
from torchlint.semantics.values.signatures import argument, reduces

if TYPE_CHECKING:
    from torchlint.semantics.values.evaluator import Kinds
    from torchlint.semantics.values.module_profile import Program
    from torchlint.semantics.values.signatures import Operands

_NO_ACCELERATOR = (Device.CPU, Device.UNKNOWN)
_NUMBER_BUILTINS = frozenset(
    "int float bool len round complex hash id ord isinstance issubclass callable hasattr divmod pow".split()
)
_STRING_BUILTINS = frozenset("str repr format chr ascii hex bin oct input".split())
# What reads a sound from a file, beside its rate.
_READERS = {"torchaudio.load": tensor(Device.CPU), "librosa.load": NDARRAY, "soundfile.read": NDARRAY}
_TEXT_DATASETS = frozenset({"data.Dataset", "data.TabularDataset", "legacy.data.Dataset", "legacy.data.TabularDataset"})
# What of NumPy people call for numbers, too.
_OF_NUMBERS = frozenset("prod ceil floor sqrt log exp".split())
# NumPy's scalars, which index as numbers do; made of an array they are one.
_OF_ONE_NUMBER = frozenset(
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 intp int_ float16 float32 float64 double single half".split()
)

# Where NumPy's drawing functions are told the size of what they draw; without one they draw a number.
_SIZED_AT = {
    "random.choice": 1,
    "random.normal": 2,
    "random.randint": 2,
    "random.random": 0,
    "random.random_sample": 0,
    "random.uniform": 2,
}
# What NumPy reduces an array to, unless it is told an axis.
_TO_ONE_NUMBER = frozenset("argmax argmin count_nonzero max mean median min std sum var".split())


def _is_one_number(node: cst.Call, name: str) -> bool:
    """`np.random.choice(ids)`, `np.argmax(scores)`: what indexes as a number does."""
    if any(argument.star for argument in node.args):
        return False
    named = {argument.keyword.value for argument in node.args if argument.keyword is not None}
    placed = len(node.args) - len(named)
    if name in _TO_ONE_NUMBER:
        return placed == 1 and named.isdisjoint({"axis", "keepdims", "out"})
    return name in _SIZED_AT and placed <= _SIZED_AT[name] and "size" not in named


class Libraries:
    """The results of calls of what is not defined in the module."""

    def __init__(self, kinds: Kinds, operands: Operands, program: Program) -> None:
        self.kinds = kinds
        self.operands = operands
        self.program = program

    def value(self, node: cst.Call, qualified: str) -> Value | None:
        """What a call of something imported gives; None: nothing is known of it."""
        root, _, rest = qualified.partition(".")
        if not rest:
            return self._builtin(node, qualified)
        if root == "torch":
            value = self._torch(node, rest)
            if value is not None:
                return value
        if root in ("numpy", "cupy"):
            return self._numpy(node, rest) if root == "numpy" else NDARRAY
        if qualified in _READERS:
            return sequence(_READERS[qualified], NUMBER)
        if root in ("cv2", "skimage", "sklearn", "scipy"):
            return NDARRAY
        if root == "math" or qualified in ("time.time", "time.perf_counter", "random.randint", "random.randrange"):
            return NUMBER
        if root == "random" and rest in ("sample", "choices"):
            return sequence_of(item_of(self.operands.first(node)))
        if root == "copy":
            copied = self.operands.first(node)
            return off_cpu(copied) if copied.kind is Kind.MODULE else copied  # the copy may be moved by itself
        if root in ("json", "pickle", "PIL", "pandas", "os", "pathlib", "argparse", "yaml", "csv", "re", "random"):
            return Value(Kind.OBJECT, Device.CPU)
        if qualified == "functools.partial" and node.args and not node.args[0].star:
            return Value(Kind.FUNCTION, definition=node)
        if qualified in apis.LOADERS:
            return self._loader(node, qualified)
        if qualified == "deepspeed.initialize":
            return sequence(*map(Value, (Kind.MODULE, Kind.OPTIMIZER, Kind.LOADER, Kind.SCHEDULER)))
        if root == "torchvision":
            return self._torchvision(rest)
        if root == "torchtext" and rest in _TEXT_DATASETS:
            return Value(Kind.DATASET, Device.CPU, qualified=qualified)
        if qualified in apis.RANGES:
            return sequence_of(NUMBER)
        if qualified in apis.PASS_THROUGH:
            return self.operands.first(node)
        if root in ("transformers", "timm", "diffusers", "segmentation_models_pytorch") and (
            rest.endswith(("from_pretrained", "create_model")) and not NO_PROCESSOR.suggests(rest)
        ):
            return self.program.built(node, Value(Kind.MODULE))
        return None

    def _numpy(self, node: cst.Call, name: str) -> Value:
        if name in _OF_NUMBERS:
            of_array = name != "prod" and self.operands.first(node).kind is Kind.NDARRAY
            return NDARRAY if of_array else NUMBER
        if name in _OF_ONE_NUMBER:
            given = self.operands.first(node)
            return NUMBER if given.kind is Kind.NUMBER and not given.untold else NDARRAY
        return NUMBER if _is_one_number(node, name) else NDARRAY

    def _loader(self, node: cst.Call, qualified: str) -> Value:
        """A loader; with `collate_fn=list` it gives lists of samples."""
        collate = argument(node, "collate_fn")
        is_of_lists = collate is not None and self.kinds.names.qualified(collate) in ("list", "tuple")
        return Value(Kind.LOADER, qualified=qualified, item=sequence_of(UNKNOWN) if is_of_lists else None)

    def _torchvision(self, rest: str) -> Value | None:
        if rest.startswith("models."):
            return Value(Kind.MODULE)
        if rest.startswith("datasets."):
            return Value(Kind.DATASET, Device.CPU, qualified=f"torchvision.{rest}")
        return None

    def _builtin(self, node: cst.Call, name: str) -> Value | None:
        arguments = [argument.value for argument in node.args if argument.keyword is None and not argument.star]
        values = [self.kinds.value(argument) for argument in arguments]
        first = values[0] if values else UNKNOWN
        if name in _NUMBER_BUILTINS:
            return NUMBER
        if name in _STRING_BUILTINS:
            return STRING
        if name == "range":
            return sequence_of(NUMBER)
        if name == "enumerate":
            if not first and arguments and self.kinds.is_loader_like(arguments[0]):
                return sequence_of(sequence(NUMBER, BATCH))
            return sequence_of(sequence(NUMBER, turn_of(first)))
        if name == "zip":
            if len(node.args) == 1 and node.args[0].star == "*":  # `zip(*scores.sort())`
                pair = self.kinds.value(node.args[0].value)
                return sequence_of(sequence(*map(turn_of, pair.items)) if pair.items else sequence_of(UNKNOWN))
            return sequence_of(
                sequence(*(self._zipped(value, node_) for value, node_ in zip(values, arguments, strict=True)))
            )
        if name in ("abs", "min", "max", "sum"):
            if first.kind is Kind.TENSOR and len(values) == 1:
                return tensor(first.devices)
            if len(values) == 1 and first.kind is Kind.SEQUENCE:
                return item_of(first)
            if len(values) > 1 and all(value.kind in (Kind.NUMBER, Kind.NDARRAY) for value in values):
                return NUMBER  # what is compared with another holds one number
            return join(values) if values else UNKNOWN
        if name in ("next", "__next__"):
            return item_of(first)
        if name == "dict":
            named = [self.kinds.value(argument.value) for argument in node.args if argument.keyword]
            return mapping_of(join(named) if named else UNKNOWN)
        if name == "map" and len(values) > 1:
            return sequence_of(NUMBER if dotted(arguments[0]) in ("int", "float", "len") else UNKNOWN)
        if name in apis.PASS_THROUGH:
            if first.kind is Kind.TENSOR and name in ("list", "tuple", "sorted", "reversed"):
                return sequence_of(turn_of(first))
            return first if arguments else sequence_of(UNKNOWN)
        if name == "getattr":
            return UNKNOWN
        if name in ("open", "super", "print", "type"):
            return Value(Kind.OBJECT)
        return None

    def _zipped(self, value: Value, node: cst.CSTNode) -> Value:
        return BATCH if not value and self.kinds.is_loader_like(node) else turn_of(value)

    def _torch(self, node: cst.Call, rest: str) -> Value | None:
        """What a call of something in torch gives, by its name behind `torch.`; None: nothing is known of it."""
        value = self._torch_tensor(node, rest)
        return value if value is not None else self._torch_object(node, rest)

    def _torch_tensor(self, node: cst.Call, rest: str) -> Value | None:
        """What a factory or an operation gives."""
        if rest in ("device", "torch.device"):
            return Value(Kind.DEVICE, self.operands.device(node.args[0].value) if node.args else Device.UNKNOWN)
        if rest == "accelerator.current_accelerator":
            return Value(Kind.DEVICE, Device.ACCELERATOR)
        if rest in apis.FACTORIES or rest in apis.LEGACY_TENSORS:
            return self._factory(node, rest)
        if rest.startswith("cuda.") and rest.endswith("Tensor"):
            return tensor(Device.ACCELERATOR)
        if rest == "from_numpy" or (rest.startswith("sparse.") and rest[7:] in apis.LEGACY_TENSORS):
            return tensor(Device.CPU)
        if rest.endswith("_like"):
            template = self.operands.first(node)
            device = argument(node, "device")
            return tensor(self.operands.device(device) if device is not None else template.devices)
        if rest in FUNCTIONS or rest in apis.TORCH_PYTHON:
            return self.operands.coded(
                FUNCTIONS.get(rest, "?") if FUNCTIONS.get(rest, "?") != "?" else apis.TORCH_PYTHON.get(rest, "?"),
                UNKNOWN,
                node,
                scalar=self.operands.gives_one_element(node, rest),
            )
        if rest.startswith("nn.functional.") and rest[14:] in FUNCTIONAL:
            code = FUNCTIONAL[rest[14:]]
            scalar = ("loss" in rest or "entropy" in rest) and reduces(node)
            return self.operands.coded("T" if code == "T/2" else code, UNKNOWN, node, scalar=scalar)
        if rest.startswith("nn.functional.") and rest[14:] in apis.FUNCTIONAL_BUILTINS:
            return self.operands.coded("T", UNKNOWN, node)
        if rest.startswith(("linalg.", "special.", "fft.")):
            return self.operands.coded("T", UNKNOWN, node).likely()
        if rest in ("nn.Parameter", "nn.parameter.Parameter"):
            return off_cpu(self.operands.first(node) or TENSOR)  # it moves with its module
        if rest == "autograd.Variable":
            return self.operands.first(node) or TENSOR
        if rest in ("nn.utils.clip_grad_norm_", "nn.utils.get_total_norm"):
            return tensor(item_of(self.operands.first(node)).devices, scalar=True)
        return None

    def _torch_object(self, node: cst.Call, rest: str) -> Value | None:
        """What a constructor of anything else gives."""
        if rest.startswith("nn.") and rest[3:] in MODULES:
            # Of one of several losses it is known that it gives one number, too.
            made = Value(Kind.MODULE, qualified=f"torch.{rest}", scalar=rest.endswith("Loss") and reduces(node))
            return self.program.built(node, made)
        if rest == "nn.parallel.DistributedDataParallel" and self.operands.first(node).device is Device.CPU:
            return Value(Kind.MODULE, Device.CPU)
        if rest in ("nn.DataParallel", "nn.parallel.DataParallel", "nn.parallel.DistributedDataParallel"):
            return Value(Kind.MODULE, Device.MAYBE)
        if rest.startswith("optim.lr_scheduler."):
            return Value(Kind.SCHEDULER)
        if rest.startswith("optim.") and rest[6:] in OPTIMIZERS:
            return Value(Kind.OPTIMIZER, qualified=f"torch.{rest}")
        if f"torch.{rest}" in apis.LOADERS:
            return self._loader(node, f"torch.{rest}")
        if f"torch.{rest}" in apis.SCALERS:
            return Value(Kind.SCALER)
        if rest.startswith("utils.data."):
            return Value(Kind.DATASET, Device.CPU, qualified=f"torch.{rest}")
        if rest.startswith("distributions."):
            given = [self.kinds.value(argument.value) for argument in node.args]
            devices = {value.devices for value in given if value.kind is Kind.TENSOR}
            return Value(
                Kind.DISTRIBUTION, devices.pop() if len(devices) == 1 else Device.UNKNOWN, qualified=f"torch.{rest}"
            )
        if rest == "compile":
            return self.operands.first(node)
        if rest in ("hub.load", "jit.load", "jit.script", "jit.trace"):
            return Value(Kind.MODULE)
        if rest.startswith(("cuda.", "distributed.get", "distributed.is_", "backends.", "is_")):
            return NUMBER if "is_" in rest or "count" in rest or "rank" in rest or "size" in rest else None
        return Value(Kind.OBJECT) if rest == "load" else None

    def _factory(self, node: cst.Call, name: str) -> Value:
        device = argument(node, "device")
        if device is not None:
            return tensor(self.operands.device(device))
        if name in ("as_tensor", "asarray", "tensor"):
            given = self.operands.first(node)
            # What is made a tensor may well have been none: how the same name is used then says nothing.
            if given.kind is Kind.TENSOR and (name != "tensor" or given.rank is Rank.PROVEN):
                return given
            if name != "tensor":
                return tensor(Device.CPU)
        is_by_default = name == "Tensor" or name not in apis.LEGACY_TENSORS
        return tensor(self._default_device if is_by_default and self.program.changes_default_device else Device.CPU)

    @cached_property
    def _default_device(self) -> Device:
        """Where factories make tensors that are told nothing, in a file that says so: `set_default_device("cuda")`."""
        for call in self.kinds.tree.of(cst.Call):
            name = final_part(call.func)
            if (
                name in apis.DEFAULT_DEVICE_SETTERS
                and call.args
                and self.kinds.names.qualified(call.func) == f"torch.{name}"
            ):
                given = call.args[0].value
                named = self.kinds.names.qualified(given)
                text = given.raw_value if isinstance(given, cst.SimpleString) else named
                is_type = text is not None and text.startswith("torch.cuda.")
                is_place = name == "set_default_device" and self.operands.device(given) not in _NO_ACCELERATOR
                if is_type or is_place:
                    return Device.MAYBE
        return Device.UNKNOWN
