"""What calls give: of functions, classes and modules, and of the methods of a value."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.functions import GENERATING_CALL
from torchlint.semantics.knowledge.torch_signatures import METHODS, MODULES
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
    with_tensors,
)
from torchlint.semantics.values.library_calls import Libraries
from torchlint.semantics.values.signatures import ELEMENTWISE, REDUCTIONS, argument

if TYPE_CHECKING:
    from torchlint.semantics.values.evaluator import Kinds
    from torchlint.semantics.values.module_profile import Program
    from torchlint.semantics.values.signatures import Operands
    from torchlint.semantics.values.usage import Evidence

_STRING_METHODS = frozenset("join format strip split lower upper replace startswith endswith".split())
# Tokenizers and networks have these as well; a text and bytes are given the name of an encoding.
_CODING = frozenset(("encode", "decode"))
_TUPLE_MODULES = frozenset("LSTM GRU RNN RNNBase".split())
# What gives several tensors, or whatever it is made to: `network: nn.Module` may be any module.
_ANY_RESULT = frozenset("MultiheadAttention LSTMCell Module".split())
_PREPARING = apis.PREPARING_METHODS | apis.LOADER_PREPARING_METHODS
_MOST_CHOICES = 8
_LOADED = sequence_of(BATCH.on(Device.MAYBE))
# Methods that give the same values in another type, or outside of the graph.
_CASTS = frozenset("float double half bfloat16 long int short bool detach clone contiguous".split())


def _applied(partial: cst.Call, call: cst.Call) -> cst.Call:
    """The call that a call of what `functools.partial` gives comes to."""
    wrapped, *first = partial.args
    given = [*call.args, *first]
    # What the call says by keyword comes before what was said already.
    named = [argument for argument in given if argument.keyword is not None or argument.star == "**"]
    return cst.Call(wrapped.value, [*(argument for argument in (*first, *call.args) if argument not in named), *named])


class Results:
    """The results of calls in one module."""

    def __init__(self, kinds: Kinds, operands: Operands, evidence: Evidence, program: Program) -> None:
        self.names = kinds.names
        self.classes = kinds.classes
        self.kinds = kinds
        self.operands = operands
        self.evidence = evidence
        self.program = program
        self.libraries = Libraries(kinds, operands, program)
        # Calls that stand for others are made once: of one that is new each time the questions would be, without end.
        self._of_each: dict[cst.Call, list[cst.Call]] = {}
        self._of_partials: dict[tuple[cst.Call, cst.Call], cst.Call] = {}

    def value(self, node: cst.Call) -> Value:
        """What a call gives; where nothing in this file tells, by what other files say of what is called."""
        qualified = self.names.qualified(node.func)
        value = self._from_here(node, qualified)
        if value is UNKNOWN:
            value = self._from_elsewhere(node, qualified)
        return self._from_one_of(node) if value is UNKNOWN and qualified is None else value

    def _from_one_of(self, node: cst.Call) -> Value:
        """What is given by a name that stands for one of several: `Loader = DataLoader if finite else Endless`."""
        if not isinstance(node.func, cst.Name | cst.IfExp):
            return UNKNOWN
        return self.kinds.settled(("one of", node), UNKNOWN, self._given_by_each, node)

    def _given_by_each(self, node: cst.Call) -> Value:
        calls = self._of_each.get(node)
        if calls is None:
            calls = self._of_each[node] = [cst.Call(choice, node.args) for choice in self._choices(node.func)]
        values = [self.value(call) for call in calls]
        return join(values) if len(values) > 1 and all(values) else UNKNOWN

    def _choices(self, node: cst.BaseExpression) -> list[cst.Name | cst.Attribute]:
        """The names of what an expression stands for, written in its branches; none where one of them is no name."""
        found: list[cst.Name | cst.Attribute] = []
        waiting, seen = [node], {node}
        while waiting:
            current = waiting.pop()
            further: list[cst.BaseExpression | None]
            if isinstance(current, cst.IfExp):
                further = [current.body, current.orelse]
            elif isinstance(current, cst.Name | cst.Attribute) and self.names.qualified(current) is not None:
                found.append(current)
                further = []
            else:
                further = [each.value for each in self.names.reaching(current)] if isinstance(current, cst.Name) else []
                if not further:
                    return []
            for each in further:
                if each is None or len(found) > _MOST_CHOICES:
                    return []
                if each not in seen:
                    seen.add(each)
                    waiting.append(each)
        return found

    def _from_elsewhere(self, node: cst.Call, qualified: str | None) -> Value:
        if qualified is None and isinstance(node.func, cst.Name) and not self.names.reaching(node.func):
            names = [f"{module}.{node.func.value}" for module in self.names.star_imports]
        elif qualified is None and isinstance(node.func, cst.Attribute):
            value = self.kinds.elsewhere.returned_by(self.kinds.value(node.func.value), node.func.attr.value)
            return self._placed(value, node) if value else UNKNOWN
        else:
            names = [qualified] if qualified is not None and "." in qualified else []
        for name in names:
            value = self.kinds.elsewhere.returned(name)
            if value:
                return self.program.built(node, self._placed(value, node))
        return UNKNOWN

    def _placed(self, value: Value, node: cst.Call) -> Value:
        """What another file says that a call gives, where nothing tells on which device: maybe where arguments are.

        What may be anywhere is where the call says, if it names a device.
        """
        named = [
            given.devices
            for given in (self.kinds.value(argument.value) for argument in node.args)
            if given.kind is Kind.DEVICE and given.proven
        ]
        if len(named) == 1:
            return with_tensors(
                value, lambda part: part.on(named[0]) if part.device in (Device.UNKNOWN, Device.MAYBE) else part
            )
        devices = self.kinds.computed_on(node)
        return with_tensors(value, lambda part: part.on(devices) if part.devices is Device.UNKNOWN else part)

    def _from_here(self, node: cst.Call, qualified: str | None) -> Value:
        if qualified is not None:
            value = self.libraries.value(node, qualified)
            if value is not None:
                return value
        if isinstance(node.func, cst.Attribute):
            value = self._method_call(node, node.func)
            if value:
                return value
        called = self.kinds.value(node.func)
        if called.kind is Kind.CLASS and isinstance(called.definition, cst.ClassDef):
            return self.program.built(node, self.kinds.instance(called.definition))
        if called.kind is Kind.CLASS and called.qualified.startswith("torch.nn."):
            return self.program.built(node, Value(Kind.MODULE, qualified=called.qualified))
        if called.kind is Kind.FUNCTION and isinstance(called.definition, cst.FunctionDef):
            return self.kinds.returns(called.definition)
        if isinstance(called.definition, cst.Call) and self._is_of_a_function(called.definition):
            key = called.definition, node
            if key not in self._of_partials:
                self._of_partials[key] = _applied(*key)
            return self.value(self._of_partials[key])
        if called.kind is Kind.MODULE:
            result = self._module_result(called)
            return (
                result.on(Device.CPU) if called.device is Device.UNKNOWN and self._is_given_on_the_cpu(node) else result
            )
        if called.kind is Kind.DTYPE and called.device is not Device.UNKNOWN:
            return tensor(called.devices)  # `Tensor = torch.cuda.FloatTensor if on_gpu else torch.FloatTensor`
        if called.kind is Kind.OBJECT and isinstance(called.definition, cst.ClassDef):
            method = self.classes.method(called.definition, "__call__")
            return self.kinds.returns(method) if method is not None else UNKNOWN
        return UNKNOWN

    def _is_of_a_function(self, partial: cst.Call) -> bool:
        """Whether a call of `functools.partial` wraps, at last, anything else than itself."""
        return self.kinds.settled(("partial", partial), False, self._ends, partial)  # noqa: FBT003

    def _ends(self, partial: cst.Call) -> bool:
        wrapped = self.kinds.value(partial.args[0].value).definition
        return not isinstance(wrapped, cst.Call) or self._is_of_a_function(wrapped)

    def _module_result(self, module: Value) -> Value:
        if isinstance(module.definition, cst.ClassDef):
            forward = self.classes.method(module.definition, "forward")
            result = self.kinds.returns(forward) if forward is not None else UNKNOWN
        else:
            result = self.kinds.elsewhere.returned_by(module, "forward")
        if result:
            if module.device is Device.UNKNOWN:
                return with_tensors(result, lambda part: part if part.proven else off_cpu(part))
            return with_tensors(result.on(module.devices), lambda part: part.on(module.devices))
        last = module.qualified.rpartition(".")[2]
        if last in _TUPLE_MODULES:
            return sequence(tensor(module.devices), tensor(module.devices, rank=Rank.CALLED))
        if module.qualified.startswith("torch.nn.") and last in MODULES and last not in _ANY_RESULT:
            return tensor(module.devices, scalar=module.scalar)
        is_a_loss = module.scalar and module.proven
        return tensor(module.devices, rank=Rank.PROVEN if is_a_loss else Rank.CALLED, scalar=module.scalar)

    def _is_given_on_the_cpu(self, node: cst.Call) -> bool:
        """`model(x.cpu())`, which computes where it is: what a loader yields may be moved by the model itself."""
        match node.args:
            case [cst.Arg(value=cst.Call(func=cst.Attribute(attr=cst.Name(value="cpu" | "to"))) as first), *_]:
                value = self.kinds.value(first)
                return value.kind is Kind.TENSOR and value.device is Device.CPU
        return False

    def _method_call(self, node: cst.Call, func: cst.Attribute) -> Value:
        name = func.attr.value
        owner = self.kinds.value(func.value)
        if name in ("cuda", "cpu", "to"):
            return self._moved(node, name, owner)
        if name in _PREPARING and not apis.ENGINE_PACKAGES.isdisjoint(self.names.imported):
            return self._prepared(node, name)
        if name in apis.GATHERING_METHODS and owner.kind in (Kind.UNKNOWN, Kind.OBJECT) and node.args:
            given = self._first(node)
            is_given_tensors = given.kind in (Kind.TENSOR, Kind.SEQUENCE, Kind.MAPPING)
            if is_given_tensors and not apis.ENGINE_PACKAGES.isdisjoint(self.names.imported):
                return with_tensors(given, lambda part: replace(part, scalar=False))
        if owner.kind is Kind.TENSOR:
            result = self._tensor_method(node, name, owner)
            if result or owner.proven:
                return result
        if owner.kind is Kind.MODULE:
            return self._module_method(node, name, owner)
        if isinstance(owner.definition, cst.ClassDef):
            method = self.classes.method(owner.definition, name)
            return self.kinds.returns(method) if method is not None else UNKNOWN
        match owner.kind:
            case Kind.NDARRAY:
                if name == "tolist":
                    return sequence_of(NUMBER).likely()  # of one without axes, a number
                return NUMBER if name == "item" else NDARRAY
            case Kind.STRING:
                return sequence_of(STRING) if name == "split" else STRING
            case Kind.MAPPING:
                if name == "items":
                    return sequence_of(sequence(UNKNOWN, owner.item or UNKNOWN))
                if name == "values":
                    return sequence_of(owner.item or UNKNOWN)
                if name in ("get", "pop"):
                    return owner.item or UNKNOWN
                return UNKNOWN
            case Kind.DISTRIBUTION:
                gives = name in ("sample", "rsample", "log_prob", "entropy", "mode", "cdf")
                return tensor(owner.devices) if gives else UNKNOWN
            case Kind.SCALER:
                return self.operands.first(node) if name == "scale" else UNKNOWN
            case Kind.SEQUENCE:
                return item_of(owner) if name == "pop" else UNKNOWN
            case Kind.UNKNOWN:
                return self._unknown_method(node, name)
        return UNKNOWN

    def _prepared(self, node: cst.Call, name: str) -> Value:
        """What Accelerate and Fabric return of what they are given, in its order: on the device."""
        values = [
            self.kinds.value(argument.value) for argument in node.args if not argument.star and not argument.keyword
        ]
        if len(values) < len(node.args):
            return UNKNOWN
        if name in apis.LOADER_PREPARING_METHODS:
            values = [_LOADED for _ in values]
        given = [_LOADED if value.kind is Kind.LOADER else value.on(value.devices | Device.MAYBE) for value in values]
        return given[0] if len(given) == 1 else sequence(*given)

    def _unknown_method(self, node: cst.Call, name: str) -> Value:
        """A method of something unknown: some methods only a tensor has."""
        if name in apis.TENSOR_ONLY_METHODS and self.evidence.shows_a_tensor(name, node):
            return self.operands.coded(METHODS.get(name, "?"), TENSOR, node)
        if name == "view" and self.evidence.marked(name, node) != name:
            return TENSOR
        if name in apis.TENSOR_METHODS_OF_NUMBERS and self._takes_numbers(node, name):
            return tensor(rank=Rank.CALLED, scalar=name == "norm" and not node.args)
        if name in _STRING_METHODS and name != "split" and self._first(node).kind is not Kind.TENSOR:
            return STRING
        if name in _CODING and all(isinstance(argument.value, cst.SimpleString) for argument in node.args):
            return STRING
        if name == "numel" or (name in apis.TENSOR_SHAPE_METHODS and (node.args or name == "dim")):
            return NUMBER
        if name == "size":
            return sequence_of(NUMBER).likely()
        if name == "item":
            return NUMBER
        if name == "numpy":
            return NDARRAY
        if GENERATING_CALL.suggests(name) and (given := self._first(node)).kind is Kind.TENSOR:
            return tensor(given.devices, rank=Rank.CALLED)  # text comes of text
        if name in ("tolist", "parameters"):
            return sequence_of(TENSOR if name == "parameters" else NUMBER)
        if name == "named_parameters":
            return sequence_of(sequence(STRING, TENSOR))
        return UNKNOWN

    def _takes_numbers(self, node: cst.Call, name: str) -> bool:
        """Whether a call is one of a tensor that computes with itself: `x.abs()`, `x.pow(2)`, and no `ops.abs(x)`."""
        if name not in ("norm", "pow"):
            return not node.args
        return all(self.kinds.value(argument.value).kind is Kind.NUMBER for argument in node.args[:1])

    def _moved(self, node: cst.Call, name: str, owner: Value) -> Value:
        if owner and owner.kind not in (Kind.TENSOR, Kind.MODULE):
            return owner if owner.kind in (Kind.OBJECT, Kind.MAPPING) else UNKNOWN
        base = owner or UNKNOWN
        if name == "cpu":
            device = Device.CPU
        elif name == "cuda":
            device = Device.ACCELERATOR
        else:
            device = self._destination(node, owner)
        if not base:
            # Only tensors and modules move, and what is unknown here is far more often the tensor.
            return tensor(device, rank=Rank.CALLED) if name != "to" or device is not Device.UNKNOWN else UNKNOWN
        return base.on(device)

    def _destination(self, node: cst.Call, owner: Value) -> Device:
        explicit = argument(node, "device")
        if explicit is None and node.args and node.args[0].keyword is None:
            explicit = node.args[0].value
        if explicit is None:
            return owner.devices
        value = self.kinds.value(explicit)
        if value.kind is Kind.DTYPE:
            return owner.devices
        if value.kind is Kind.TENSOR:
            return value.devices
        return self.operands.device(explicit)

    def _tensor_method(self, node: cst.Call, name: str, owner: Value) -> Value:
        if name == "numpy":
            return NDARRAY
        if GENERATING_CALL.suggests(name) and (given := self._first(node)).kind is Kind.TENSOR:
            return tensor(given.devices, rank=Rank.CALLED)  # text comes of text
        if name == "tolist":
            return sequence_of(NUMBER)
        if name == "size":
            return NUMBER if node.args else sequence_of(NUMBER)
        if name == "stride":
            return NUMBER if node.args else sequence_of(NUMBER)
        if name == "type":
            if not node.args:
                return STRING
            given = self.operands.first(node)
            is_placed = given.kind is Kind.DTYPE and given.device is not Device.UNKNOWN
            return owner.on(given.devices) if is_placed else owner
        if name == "norm":
            return tensor(owner.devices, scalar=not node.args)
        if name in ("split", "nonzero", "unique", "where"):
            if name == "split":
                return sequence_of(tensor(owner.devices))
            return tensor(owner.devices)
        if name in ("type_as", "to_dense", "index_put"):
            first = self.operands.first(node)
            return tensor(first.devices if name == "type_as" else owner.devices)
        code = METHODS.get(name)
        if code is None:
            return UNKNOWN
        if name in _CASTS or (name in ELEMENTWISE and not node.args):
            return tensor(owner.devices, scalar=owner.scalar)
        reduces = name in REDUCTIONS and not node.args
        return self.operands.coded(code, owner, node, scalar=reduces)

    def _module_method(self, node: cst.Call, name: str, owner: Value) -> Value:
        if name in ("train", "eval", "float", "half", "double", "bfloat16", "requires_grad_", "apply", "share_memory"):
            return owner
        if name == "parameters":
            return sequence_of(tensor(owner.devices))
        if name == "named_parameters":
            return sequence_of(sequence(STRING, tensor(owner.devices)))
        if name in ("modules", "children"):
            return sequence_of(Value(Kind.MODULE, owner.devices))
        if name == "state_dict":
            return mapping_of(tensor(owner.devices))
        if isinstance(owner.definition, cst.ClassDef):
            method = self.classes.method(owner.definition, name)
            if method is not None:
                return self.kinds.returns(method)
        if name == "forward" or (
            GENERATING_CALL.suggests(name) and self._first(node).kind in (Kind.TENSOR, Kind.UNKNOWN)
        ):
            return tensor(owner.devices, rank=Rank.CALLED)
        return UNKNOWN

    def _first(self, node: cst.Call) -> Value:
        return self.kinds.value(node.args[0].value) if node.args else UNKNOWN
