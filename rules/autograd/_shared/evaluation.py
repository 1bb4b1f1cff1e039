"""Code that only evaluates a model: what marks it, and whether anything in it needs a gradient."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import libcst as cst

from torchlint.analyses.execution.occasions import is_trial
from torchlint.analyses.layers.bare import is_bare
from torchlint.analyses.tensors.factories import NAMES
from torchlint.finding import Doubt, Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.execution.grad_mode import GradMode
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.knowledge.apis import LOADING_FUNCTIONS
from torchlint.semantics.knowledge.conventions.functions import EVALUATING_WORD, GRADIENT_WORD, TRACING_CALL
from torchlint.semantics.knowledge.conventions.packages import OTHER_MODELS
from torchlint.semantics.knowledge.conventions.values import NO_MODEL
from torchlint.semantics.knowledge.marks import LEGACY_MODE
from torchlint.semantics.names.bindings import dotted
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants, descendants_in_scope

from .output_flow import Flow

Line: TypeAlias = "cst.SimpleStatementLine | cst.BaseCompoundStatement"
Unit: TypeAlias = "cst.FunctionDef | cst.Module"

_GRADIENT_METHODS = frozenset(
    "backward manual_backward requires_grad_ retain_grad register_hook register_full_backward_hook "
    "register_backward_hook zero_grad enable_grad vjp jvp jacrev jacfwd saved_tensors_hooks".split()
)
_NO_PARAMETERS = re.compile(
    r"(Loss|Softmax\w*|LogSoftmax|Sigmoid|Tanh|ReLU6?|GELU|ELU|SELU|SiLU|Dropout\w*|\w*Pool\d?d?|Upsample\w*|Flatten|"
    r"Unflatten|Identity|\w*Pad\dd|PixelShuffle|CosineSimilarity|PairwiseDistance|Softplus|Hard\w+|Fold|Unfold)$"
)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Consecutive lines of one block that evaluate a model with autograd on, and its calls there in source order.

    `function` is the function that does nothing else, None where the lines are a part of something bigger. `doubts` say
    why somebody may want the graph, or why it may not matter.
    """

    lines: tuple[Line, ...]
    calls: tuple[cst.Call, ...]
    function: cst.FunctionDef | None = None
    doubts: tuple[Doubt, ...] = ()


class Evaluations:
    """The evaluations in one module."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._found: dict[Unit, tuple[Evaluation, ...]] = {}

    def within(self, unit: Unit) -> tuple[Evaluation, ...]:
        """The evaluations that a function holds, or a module outside of its functions."""
        found = self._found.get(unit)
        if found is None:
            self._found[unit] = ()  # a recursive function is none of its own helpers
            found = self._found[unit] = tuple(self._find(unit))
        return found

    def _find(self, unit: Unit) -> Iterator[Evaluation]:
        words = _words(unit.name.value) if isinstance(unit, cst.FunctionDef) else set()
        named = EVALUATING_WORD.suggests_any(words)
        if not named and unit not in self._switches:
            return
        if "torch" not in self.context.names.imported or self._is_off:
            return
        if isinstance(unit, cst.FunctionDef):
            if self._is_out(unit):
                return
            if named and not self.takes_gradients(unit):
                found = self._whole(unit)
                if found is not None and not self._is_of_a_module(unit) and not self.is_entered_without(unit):
                    yield found
                return
        seen: set[cst.CSTNode] = set()
        for line in self._switches.get(unit, ()):
            found = self._behind(line, unit)
            if found is not None and found.calls[0] not in seen:
                seen.update(found.calls)
                if not isinstance(unit, cst.FunctionDef) or not self.is_entered_without(unit):
                    yield replace(found, doubts=(*found.doubts, *self._doubts(found.calls)))

    def _doubts(self, calls: tuple[cst.Call, ...]) -> Iterator[Doubt]:
        """Why a graph may not be worth a word: of a trial, or of one pass that no GPU takes part in."""
        if all(map(self._is_a_trial, calls)):
            yield Doubt.SMALL
        elif all(map(self._runs_once_on_the_cpu, calls)):
            yield from (Doubt.RUNS_ONCE, Doubt.DEVICE_UNKNOWN)

    def is_entered_without(self, function: cst.FunctionDef) -> bool:
        """Whether all that seem to call a method, by its name, have turned autograd off: `net.predict(x)`.

        Where the object comes from, no file of the project says.
        """
        if self.context.classes.owner(function) is None or self.context.calls.callers(function):
            return False
        if self.context.elsewhere.callers(function):
            return False
        found = self.context.elsewhere.namesakes(function)
        return bool(found) and all(call.grad == GradMode.OFF.value for call in found)

    @cached_property
    def _is_off(self) -> bool:
        """Whether a statement anywhere turns autograd off for all that comes after it."""
        return any(
            isinstance(self.context.parent(call), cst.Expr)
            and (dotted(call.func) or "").endswith("set_grad_enabled")
            and any(isinstance(argument.value, cst.Name) and argument.value.value == "False" for argument in call.args)
            for call in self.context.tree.of(cst.Call)
        )

    def _is_out(self, function: cst.FunctionDef) -> bool:
        """Whether the function is none that evaluates: a model's own code, or code for gradients or for looking at."""
        name = function.name.value
        if name in ("forward", "__init__", "__call__") or GRADIENT_WORD.suggests_any(_words(name)):
            return True
        if function.asynchronous is not None or self.context.frequencies.is_diagnostic(function.body):
            return True
        if self.is_of_a_test_case(function):
            return True
        owner = self.context.classes.owner(function)
        if owner is None or function in self._switches or not self.context.classes.is_module(owner):
            return False
        # What a module does itself is its caller's to decide on, unless all of them are in sight.
        return not self.context.calls.callers(function) or bool(self.context.elsewhere.callers(function))

    def _is_of_a_module(self, function: cst.FunctionDef) -> bool:
        """Whether the method is one of a module by a base that another file defines."""
        owner = self.context.classes.owner(function)
        if owner is None or function in self._switches:
            return False
        bases = [base for base in self.context.classes.lineage(owner) if isinstance(base, str) and base]
        known = [found for base in bases if (found := self.context.elsewhere.described(base)) is not None]
        return any("torch.nn.Module" in found.bases for found in known)

    def is_of_a_test_case(self, function: cst.FunctionDef) -> bool:
        """Whether a `unittest.TestCase` holds the function, itself or in a method: it runs a model to look at it."""
        return any(
            isinstance(base, str) and base.rpartition(".")[2] == "TestCase"
            for class_ in self.context.around(function, cst.ClassDef)
            for base in self.context.classes.lineage(class_)
        )

    # What marks an evaluation

    @cached_property
    def _switches(self) -> dict[Unit, list[Line]]:
        """The lines of each function that put a model into evaluation mode: `model.eval()`, `net = Net().eval()`."""
        found: dict[Unit, list[Line]] = {}
        for call in self.context.tree.of(cst.Call):
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("eval", "train"):
                line = self.context.tree.line(call)
                unit = self.context.function(call) or self.context.tree.module
                if (
                    isinstance(line, cst.SimpleStatementLine)
                    and not isinstance(unit, cst.Lambda)
                    and _mode(line) is False
                ):
                    lines = found.setdefault(unit, [])
                    if line not in lines:
                        lines.append(line)
        return found

    def _behind(self, line: Line, unit: Unit) -> Evaluation | None:
        """The evaluation from the line that switches to it up to the end of the block, or to where training goes on."""
        block = self.context.parent(line)
        if not isinstance(block, (cst.IndentedBlock, cst.Module)):
            return None
        behind = list(block.body)[list(block.body).index(line) + 1 :]
        end = next((place for place, other in enumerate(behind) if _mode(other) is True), len(behind))
        lines = lines_of(behind[:end])
        calls = tuple(call for part in lines for call in self._recorded(part) if not self._warms_up(call))
        if not calls or any(self.takes_gradients(part) for part in lines):
            return None
        flow = self._flow(lines)
        if self.is_used_elsewhere(flow, lines, unit):
            return None
        whole = block is unit.body and not self._trains(unit)
        goes_on = flow.escapes or self._is_read_elsewhere(flow.attached, lines, unit)
        doubts = (Doubt.USE_UNKNOWN,) if goes_on else ()
        return Evaluation(lines, calls, unit if whole and isinstance(unit, cst.FunctionDef) else None, doubts)

    def _whole(self, function: cst.FunctionDef) -> Evaluation | None:
        """The function, if it evaluates by its name and hands out nothing that a gradient is taken of."""
        if not isinstance(function.body, cst.IndentedBlock):
            return None
        calls = tuple(call for call in self._recorded(function.body) if not self._warms_up(call))
        if not calls:
            return None
        lines = lines_of(function.body.body)
        flow = self._flow(lines)
        callers = self.context.calls.callers(function)
        # A name alone says little: callers in other files may have turned autograd off.
        is_sure = function in self._switches or (
            bool(callers) and not flow.escapes and self._looks_at_outputs(function, calls, flow)
        )
        if not is_sure:
            return None
        if flow.escapes and any(self._trains(call) for call in callers):
            return None
        return Evaluation(lines, calls, function)

    def _looks_at_outputs(self, function: cst.FunctionDef, calls: Sequence[cst.Call], flow: Flow) -> bool:
        """Whether more than the name speaks for an evaluation: a loop over inputs, or an output that is read."""
        if any(self.context.loop(call) is not None for call in calls):
            return True
        if all(self._is_made_up(part.value) for part in calls[0].args):
            return False  # a look at the shapes
        owner = self.context.classes.owner(function)
        inherits = owner is not None and any(isinstance(base, str) for base in self.context.classes.bases(owner))
        return flow.detaches and not inherits

    def _is_made_up(self, node: cst.BaseExpression) -> bool:
        """Whether an input is made from nothing: `torch.randn(1, 3, 32, 32)`, or a name for it."""
        if isinstance(node, cst.Name):
            return self.context.kinds.settled(("made up", node), False, self._is_bound_to_made_up, node)  # noqa: FBT003
        if isinstance(node, cst.IfExp):
            return self._is_made_up(node.body) and self._is_made_up(node.orelse)
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and self._is_made_up(node.func.value):
            return True
        return isinstance(node, cst.Call) and self.context.qualified_name(node.func) in NAMES

    def _is_bound_to_made_up(self, name: cst.Name) -> bool:
        found = [origin.node for origin in self.context.origins(name, Through.PARTS).found]
        return bool(found) and all(isinstance(value, cst.Call) and self._is_made_up(value) for value in found)

    def _flow(self, lines: Sequence[Line]) -> Flow:
        flow = Flow(self.context, self._runs_model)
        flow.run(lines)
        return flow

    def is_used_elsewhere(self, flow: Flow, lines: Sequence[Line], unit: Unit) -> bool:
        """Whether code that takes gradients uses, outside of the lines, what a model gave in them."""
        return bool(flow.ever) and self.takes_gradients(unit) and self._is_read_elsewhere(flow.ever, lines, unit)

    def _is_read_elsewhere(self, names: set[str], lines: Sequence[Line], unit: Unit) -> bool:
        """Whether one of the names, as the lines leave it, is read outside of them."""
        if not names:
            return False
        inside = {inner for line in lines for inner in descendants(line)}
        return any(
            isinstance(inner, cst.Name)
            and inner.value in names
            and inner not in inside
            and self.context.names.is_read(inner)
            and self._may_come_from(inner, inside)
            for inner in descendants(unit)
        )

    def _may_come_from(self, name: cst.Name, inside: set[cst.CSTNode]) -> bool:
        """Whether the name may hold what was bound there, or a container that was filled there."""
        bindings = self.context.names.lookup(name)[1]
        if not any(binding.node in inside for binding in bindings):
            return True
        return any(binder in inside for binder in self.context.binders(name))

    def _is_a_trial(self, call: cst.Call) -> bool:
        """Whether the model runs once, and nobody wants what it gives: to warm up, for its hooks, for the shapes."""
        is_rare = self._is_rare(call)
        if is_rare and all(self._is_made_up(argument.value) for argument in call.args) and is_trial(call, self.context):
            return True
        if not is_rare or not self.is_model_call(call):
            return False
        if self.context.loop(call) is not None:
            return False
        match self.context.parent(call):
            case cst.Expr():
                return True
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as assign:
                uses = list(self.context.uses.of(name, assign))
                is_made_up = all(self._is_made_up(argument.value) for argument in call.args)
                return not uses or (is_made_up and all(self._is_asked_for_shape(use) for use in uses))
        return False

    def _is_rare(self, call: cst.Call) -> bool:
        return self.context.frequency(call) <= Frequency.ONCE or self.context.frequencies.is_rate_limited(call)

    def _runs_once_on_the_cpu(self, call: cst.Call) -> bool:
        return self._is_rare(call) and self.is_model_call(call) and self._stays_on_the_cpu(call.func)

    def _warms_up(self, call: cst.Call) -> bool:
        """Whether the model runs on made up data, in no loop, and nobody asks for what it gives."""
        if self.context.loop(call) is not None or not call.args:
            return False
        if not all(self._is_made_up(argument.value) for argument in call.args):
            return False
        above = self.context.parent(call)
        while isinstance(above, cst.IfExp):
            above = self.context.parent(above)
        match above:
            case cst.Expr():
                return True
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
                return not self.context.uses.of(name, above)
        return False

    def _stays_on_the_cpu(self, model: cst.BaseExpression) -> bool:
        """Whether the file makes the model, and never speaks of another device."""
        if self.context.program.mentions_accelerator or not isinstance(model, cst.Name):
            return self.context.device(model) is Device.CPU
        if self.context.function(model) is None and any(map(self.context.classes.is_module, self._classes)):
            return True
        found = self.context.bound_to(model, Through.PARTS).found
        return bool(found) and all(isinstance(origin.node, cst.Call) for origin in found)

    @cached_property
    def _classes(self) -> list[cst.ClassDef]:
        return self.context.tree.of(cst.ClassDef)

    def _is_asked_for_shape(self, node: cst.CSTNode) -> bool:
        parent = self.context.parent(node)
        return isinstance(parent, cst.Attribute) and parent.attr.value in ("shape", "size")

    # Calls of models

    def _recorded(self, node: cst.CSTNode) -> Iterator[cst.Call]:
        """The calls that run a model with autograd on, in source order."""
        for call in descendants_in_scope(node):
            if isinstance(call, cst.Call) and self._runs_model(call) and self.context.grad(call) is GradMode.ON:
                yield call

    def _runs_model(self, call: cst.Call) -> bool:
        """Whether the call runs a model, itself or in a function that is no evaluation of its own."""
        if self.is_model_call(call):
            return True
        target = self.context.calls.target(call)
        if target is None or target.name.value in ("__init__", "forward") or self.within(target):
            return False
        if LEGACY_MODE.is_in(self.context.program.code) and LEGACY_MODE.is_in(self.context.uncommented(target)):
            return False  # another rule speaks of it
        return any(
            isinstance(inner, cst.Call) and self.is_model_call(inner) and self.context.grad(inner) is GradMode.ON
            for inner in descendants_in_scope(target.body)
        )

    def is_model_call(self, call: cst.Call) -> bool:
        """Whether the call runs a model with parameters: no criterion, no activation, none that is frozen."""
        func = call.func
        if isinstance(func, cst.Attribute) and (func.attr.value == "forward" or self.is_recording_method(func)):
            func = func.value
        name = (dotted(func) or "").rpartition(".")[2]
        if not call.args or NO_MODEL.suggests(name) or isinstance(func, cst.Call) or name in self._frozen:
            return False
        if self.context.kind(call.args[0].value) is Kind.MODULE:
            return False  # it does something with a model: `ema.copy_to(model)`
        if self.is_loaded(func):
            return True
        value = self.context.value(func)
        if value.kind not in (Kind.MODULE, Kind.UNKNOWN) or is_bare(func, self.context):
            return False  # also asked where nothing is known yet, since it is another file that knows
        return value.kind is Kind.MODULE and not _NO_PARAMETERS.search(value.qualified) and not self._is_foreign(func)

    def is_recording_method(self, method: cst.BaseExpression) -> bool:
        """Whether this is a method of a module of another file that calls a part of it with autograd on."""
        if not isinstance(method, cst.Attribute):
            return False
        owner = self.context.value(method.value)
        return owner.kind is Kind.MODULE and self.context.elsewhere.records(owner, method.attr.value)

    def is_loaded(self, func: cst.BaseExpression) -> bool:
        """Whether it is what a file holds, and is called: a model that was saved whole, `torch.load("model.pt")`.

        Several may have been saved together: `policy, value = pickle.load(file)`.
        """
        if not isinstance(func, cst.Name) or not self._is_any_loaded:
            return False
        value = self.context.value(func)
        may_be = value.kind in (Kind.UNKNOWN, Kind.OBJECT) or (value.kind is Kind.MODULE and not value.proven)
        return may_be and (self._is_unpacked(func) or self.context.origins(func, Through.PARTS).every(self._loads))

    def _is_unpacked(self, func: cst.Name) -> bool:
        binders = self.context.binders(func)
        return bool(binders) and all(isinstance(each, cst.Assign) and self._is_load(each.value) for each in binders)

    @cached_property
    def _is_any_loaded(self) -> bool:
        return any(map(self._is_load, self.context.tree.of(cst.Call)))

    def _loads(self, made: cst.BaseExpression) -> bool:
        """`torch.load(path)`, and the same moved or set to a mode: `model.to(device)`, `model.eval()`."""
        match made:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="to" | "cuda" | "cpu" | "eval"))):
                found = [each for each in self.context.origins(owner).nodes if each is not made]
                return bool(found) and all(map(self._is_load, found))
        return self._is_load(made)

    def _is_load(self, made: cst.CSTNode) -> bool:
        return isinstance(made, cst.Call) and self.context.qualified_name(made.func) in LOADING_FUNCTIONS

    def _is_foreign(self, func: cst.BaseExpression) -> bool:
        """Whether a library made the model that takes care of autograd itself."""
        made = [origin.node for origin in self.context.origins(func, Through.PARTS | Through.ATTRIBUTES).found]
        names = [self.context.qualified_name(value.func) or "" for value in made if isinstance(value, cst.Call)]
        return any(OTHER_MODELS.suggests(name.partition(".")[0]) for name in names)

    @cached_property
    def _frozen(self) -> frozenset[str]:
        """The last names of what is frozen anywhere in the file, and so records nothing."""
        found: list[cst.CSTNode] = []
        for call in self.context.tree.of(cst.Call):
            match call:
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="requires_grad_"))):
                    if _gives(call, "False"):
                        found += self._held_by(owner, call)
        for loop in self.context.tree.of(cst.For):
            match loop.iter:
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="parameters" | "named_parameters"))):
                    if any(_requires_grad(inner, "False") for inner in descendants(loop.body)):
                        found.append(owner)
        return frozenset((dotted(owner) or "").rpartition(".")[2] for owner in found) - {""}

    def _held_by(self, owner: cst.BaseExpression, call: cst.Call) -> Iterator[cst.CSTNode]:
        """The `net` of `net.eval().requires_grad_(False)` and of `net = load().requires_grad_(False).to(device)`."""
        while isinstance(owner, cst.Call) and isinstance(owner.func, cst.Attribute):
            owner = owner.func.value
        yield owner
        above = self.context.parent(call)
        while isinstance(above, (cst.Attribute, cst.Call)):
            above = self.context.parent(above)
        if isinstance(above, cst.Assign):
            yield from (target.target for target in above.targets)

    # Uses of gradients

    def _trains(self, node: cst.CSTNode) -> bool:
        """Whether the function around the node, or the module around it, takes gradients."""
        function = node if isinstance(node, cst.FunctionDef) else self.context.function(node)
        return self.takes_gradients(function if function is not None else self.context.tree.module)

    def trains_with(self, call: cst.Call) -> bool:
        """Whether the loop over batches or the function around a call takes a gradient."""
        around = self.context.frequencies.batch_loop(call) or self.context.function(call)
        return around is not None and self.takes_gradients(around.body)

    def takes_gradients(self, node: cst.CSTNode) -> bool:
        """Whether anything below the node, or in functions of this file that it calls, takes or prepares a gradient."""
        return self.context.kinds.settled(("gradients", node), False, self._finds_gradients, node)  # noqa: FBT003

    def _finds_gradients(self, node: cst.CSTNode) -> bool:
        targets: list[cst.FunctionDef] = []
        for inner in descendants(node):
            match inner:
                case cst.Call():
                    if self._is_gradient_call(inner):
                        return True
                    target = self.context.calls.target(inner)
                    if target is not None:
                        targets.append(target)
                case cst.Assign() if _requires_grad(inner, "True"):
                    return True
                case cst.Attribute(attr=cst.Name(value="grad")):
                    return True
                case cst.Arg(keyword=cst.Name(value="requires_grad"), value=cst.Name(value="True")):
                    return True
        return any(self.takes_gradients(target.body) for target in dict.fromkeys(targets))

    def _is_gradient_call(self, call: cst.Call) -> bool:
        func = call.func
        last = func.attr.value if isinstance(func, cst.Attribute) else (dotted(func) or "")
        if last in _GRADIENT_METHODS:
            return not (last == "requires_grad_" and _gives(call, "False"))
        if last == "step" and isinstance(func, cst.Attribute):
            return self.context.kind(func.value) in (Kind.OPTIMIZER, Kind.SCALER)
        if last == "train" and isinstance(func, cst.Attribute) and len(call.args) < 2:
            return False
        qualified = self.context.qualified_name(func) or ""
        if qualified.startswith(("torch.func.", "torch.autograd.functional.")):
            return True
        return GRADIENT_WORD.suggests_any(_words(last)) or TRACING_CALL.suggests(dotted(func) or "")


def lines_of(statements: Sequence[cst.BaseStatement]) -> tuple[Line, ...]:
    """The statements of a block."""
    return tuple(line for line in statements if isinstance(line, (cst.SimpleStatementLine, cst.BaseCompoundStatement)))


def _words(name: str) -> set[str]:
    return set(name.lower().split("_"))


def _mode(line: cst.CSTNode) -> bool | None:
    """What a line switches a model to: True for training, False for evaluation, None if it switches nothing."""
    if not isinstance(line, cst.SimpleStatementLine):
        return None
    for inner in descendants_in_scope(line):
        match inner:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="eval")), args=[]):
                return False
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="train")), args=args) if len(args) < 2:
                return not _gives(inner, "False")
    return None


def _gives(call: cst.Call, name: str) -> bool:
    return any(isinstance(argument.value, cst.Name) and argument.value.value == name for argument in call.args)


def _requires_grad(node: cst.CSTNode, value: str) -> bool:
    """Whether a node sets `requires_grad` to this."""
    match node:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value="requires_grad")))]):
            return isinstance(node.value, cst.Name) and node.value.value == value
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="requires_grad_"))):
            return _gives(node, value)
    return False
