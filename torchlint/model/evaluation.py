"""Code that only evaluates a model: what marks it, and whether anything in it needs a gradient."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from torchlint.model.grad import GradMode
from torchlint.model.names import dotted
from torchlint.model.tree import descendants, descendants_in_scope
from torchlint.model.values import Kind

if TYPE_CHECKING:
    from torchlint.model.context import Context

Line: TypeAlias = "cst.SimpleStatementLine | cst.BaseCompoundStatement"

_EVALUATING_WORDS = frozenset(
    "validate validation valid val vali test testing evaluate evaluation eval predict prediction inference infer "
    "sample detect recognize demo".split()
)
# Functions that train whatever else their name says, or that exist for their gradient.
_TRAINING_WORDS = frozenset(
    "train training fit finetune optimize optimise adapt attack adversarial adv pgd fgsm backward attribute "
    "explain saliency gradcam hessian jacobian fisher perturb meta".split()
)
_GRADIENT_METHODS = frozenset(
    "backward manual_backward requires_grad_ retain_grad register_hook register_full_backward_hook "
    "register_backward_hook zero_grad enable_grad vjp jvp jacrev jacfwd saved_tensors_hooks".split()
)
# What records the forward pass on purpose, or wants it as it is.
_TRACING = re.compile(r"onnx|\btrace\b|\.trace|trace_module|\bscript\b|export|add_graph|make_dot|draw_graph|fx\.|quantiz")
_DETACHING = frozenset(
    "item tolist numpy detach detach_ argmax argmin argsort size dim numel eq ne lt le gt ge long int bool byte "
    "nonzero get_device type is_cuda equal allclose isnan isfinite".split()
)
_PLAIN_FUNCTIONS = frozenset("float int bool len str repr round print range isinstance type id format".split())
_PLAIN_ATTRIBUTES = frozenset("data shape device dtype is_cuda ndim requires_grad indices".split())
_KEEPING = frozenset("append extend add push put store insert appendleft".split())
_NO_PARAMETERS = re.compile(
    r"(Loss|Softmax\w*|LogSoftmax|Sigmoid|Tanh|ReLU6?|GELU|ELU|SELU|SiLU|Dropout\w*|\w*Pool\d?d?|Upsample\w*|Flatten|"
    r"Unflatten|Identity|\w*Pad\dd|PixelShuffle|CosineSimilarity|PairwiseDistance|Softplus|Hard\w+|Fold|Unfold)$"
)
_CRITERION = re.compile(r"crit|loss|metric|lpips|ssim|psnr|accuracy|transform|augment|normali[sz]e|process", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Consecutive lines of one block that evaluate a model with autograd on, and its calls there in source order.

    `function` is the function that does nothing else, None where the lines are a part of something bigger.
    """

    lines: tuple[Line, ...]
    calls: tuple[cst.Call, ...]
    function: cst.FunctionDef | None = None


def evaluations(node: cst.FunctionDef | cst.Module, context: Context) -> Iterator[Evaluation]:
    """The evaluations that a function, or a module outside of its functions, holds."""
    if isinstance(node, cst.FunctionDef):
        if _is_out(node, context):
            return
        if _evaluates_by_name(node) and not takes_gradients(node, context):
            found = _whole(node, context)
            if found is not None:
                yield found
            return
    seen: set[cst.CSTNode] = set()
    for line in _switches(node, context):
        found = _behind(line, node, context)
        if found is not None and found.calls[0] not in seen:
            seen.update(found.calls)
            yield found


def _is_out(function: cst.FunctionDef, context: Context) -> bool:
    """Whether the function is none that evaluates: a model's own code, training, or made to look at things."""
    name = function.name.value
    if name in ("forward", "__init__", "__call__", "training_step") or _words(name) & _TRAINING_WORDS:
        return True
    if function.asynchronous is not None or context.frequencies.is_diagnostic(function.body):
        return True
    owner = context.classes.owner(function)
    if owner is not None and context.classes.is_module(owner):
        return not any(_switches(function, context))
    return any(_is_strange(item.decorator) for item in function.decorators)


def _is_strange(decorator: cst.BaseExpression) -> bool:
    """Whether a decorator may set the grad mode, or compiles or collects the function."""
    name = (dotted(decorator.func if isinstance(decorator, cst.Call) else decorator) or "").lower()
    return any(word in name for word in ("grad", "eval", "infer", "fixture", "pytest", "jit", "script", "export"))


def _words(name: str) -> set[str]:
    return set(name.lower().split("_"))


def _evaluates_by_name(function: cst.FunctionDef) -> bool:
    return bool(_words(function.name.value) & _EVALUATING_WORDS)


# What marks an evaluation


def _switches(node: cst.FunctionDef | cst.Module, context: Context) -> Iterator[Line]:
    """The lines that put a model into evaluation mode: `model.eval()`, `net = Net().eval()`, `model.train(False)`."""
    for inner in descendants_in_scope(node):
        if isinstance(inner, cst.SimpleStatementLine) and inner is not node and _mode(inner) is False:
            if context.tree.function(inner) is (node if isinstance(node, cst.FunctionDef) else None):
                yield inner


def _mode(line: cst.CSTNode) -> bool | None:
    """What a line switches a model to: True for training, False for evaluation, None if it switches nothing."""
    if not isinstance(line, cst.SimpleStatementLine):
        return None
    for inner in descendants_in_scope(line):
        match inner:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="eval")), args=[]):
                return False
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="train")), args=args) if len(args) < 2:
                return not (args and isinstance(args[0].value, cst.Name) and args[0].value.value == "False")
    return None


def _behind(line: Line, node: cst.FunctionDef | cst.Module, context: Context) -> Evaluation | None:
    """The evaluation from the line that switches to it up to the end of the block, or to where training goes on."""
    block = context.parent(line)
    if not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return None
    lines: list[Line] = []
    for other in list(block.body)[list(block.body).index(line) + 1 :]:
        if _mode(other) is True:
            break
        lines.append(other)
    calls = [call for part in lines for call in _recorded(part, context)]
    if not calls or any(takes_gradients(part, context) for part in lines):
        return None
    flow = _Flow(context)
    flow.run(lines)
    if flow.escapes or _is_used_behind(flow, lines, node, context):
        return None
    return Evaluation(tuple(lines), tuple(calls))


def _whole(function: cst.FunctionDef, context: Context) -> Evaluation | None:
    """The function, if it evaluates by its name and hands out nothing that still has a graph."""
    if not isinstance(function.body, cst.IndentedBlock):
        return None
    calls = tuple(_recorded(function.body, context))
    if not calls:
        return None
    switched = any(True for _ in _switches(function, context))
    flow = _Flow(context)
    flow.run(function.body.body)
    if not switched and (flow.escapes or not _shows_use(function, calls, flow, context)):
        return None
    if flow.escapes and any(_trains(call, context) for call in context.calls.callers(function)):
        return None
    return Evaluation(tuple(function.body.body), calls, function)  # type: ignore[arg-type]


def _shows_use(function: cst.FunctionDef, calls: Sequence[cst.Call], flow: _Flow, context: Context) -> bool:
    """Whether more than the name speaks for an evaluation: a loop over inputs, or an output that is only looked at."""
    if any(context.loop(call) is not None for call in calls):
        return True
    owner = context.classes.owner(function)
    return flow.detaches and (owner is None or all(not isinstance(base, str) for base in context.classes.bases(owner)))


def _trains(call: cst.Call, context: Context) -> bool:
    function = context.function(call)
    return takes_gradients(function if function is not None else context.tree.module, context)


def _is_used_behind(
    flow: _Flow, lines: Sequence[Line], node: cst.FunctionDef | cst.Module, context: Context
) -> bool:
    """Whether code that takes gradients uses, outside of the lines, what a model gave in them."""
    if not takes_gradients(node, context):
        return False
    inside = {inner for line in lines for inner in descendants(line)}
    return any(
        isinstance(inner, cst.Name) and inner.value in flow.ever and inner not in inside for inner in descendants(node)
    )


# Calls of models


def _recorded(node: cst.CSTNode, context: Context) -> Iterator[cst.Call]:
    """The calls of models that run with autograd on, in source order."""
    for call in descendants_in_scope(node):
        if isinstance(call, cst.Call) and is_model_call(call, context) and context.grad(call) is GradMode.ON:
            yield call


def is_model_call(call: cst.Call, context: Context) -> bool:
    """Whether the call runs a model with parameters: no criterion, no activation, none that is frozen."""
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value == "forward":
        func = func.value
    name = dotted(func) or ""
    if not call.args or _CRITERION.search(name.rpartition(".")[2]) or isinstance(func, cst.Call):
        return False
    value = context.value(func)
    if value.kind is not Kind.MODULE or _NO_PARAMETERS.search(value.qualified):
        return False
    return name.rpartition(".")[2] not in _frozen(context)


@lru_cache(maxsize=4)
def _frozen(context: Context) -> frozenset[str]:
    """The last names of what is frozen anywhere in the file, and so records nothing."""
    found: set[str] = set()
    for call in context.tree.of(cst.Call):
        match call:
            case cst.Call(
                func=cst.Attribute(value=owner, attr=cst.Name(value="requires_grad_")),
                args=[cst.Arg(value=cst.Name(value="False"))],
            ):
                found.add((dotted(owner) or "").rpartition(".")[2])
            case cst.Call(func=func, args=[cst.Arg(value=owner), *_, cst.Arg(value=cst.Name(value="False"))]) if (
                "grad" in (dotted(func) or "")
            ):
                found.add((dotted(owner) or "").rpartition(".")[2])
            case cst.Call(func=func, args=[cst.Arg(value=owner), *_]) if "freeze" in (dotted(func) or ""):
                found.add((dotted(owner) or "").rpartition(".")[2])
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method))) if "freeze" in method:
                found.add((dotted(owner) or "").rpartition(".")[2])
    for loop in context.tree.of(cst.For):
        match loop.iter:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="parameters" | "named_parameters"))):
                if any(_sets_requires_grad(inner, "False") for inner in descendants(loop.body)):
                    found.add((dotted(owner) or "").rpartition(".")[2])
    return frozenset(found - {""})


def _sets_requires_grad(node: cst.CSTNode, value: str) -> bool:
    match node:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value="requires_grad")))]):
            return isinstance(node.value, cst.Name) and node.value.value == value
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="requires_grad_")), args=args):
            return (value == "True" and not args) or any(
                isinstance(argument.value, cst.Name) and argument.value.value == value for argument in args
            )
    return False


# Uses of gradients


def takes_gradients(node: cst.CSTNode, context: Context, depth: int = 3) -> bool:
    """Whether anything below the node, or in functions of this file that it calls, takes or prepares a gradient."""
    return _takes_gradients(node, context, depth)


@lru_cache(maxsize=512)
def _takes_gradients(node: cst.CSTNode, context: Context, depth: int) -> bool:
    targets: list[cst.FunctionDef] = []
    for inner in descendants(node):
        match inner:
            case cst.Call():
                if _is_gradient_call(inner, context):
                    return True
                target = context.calls.target(inner) if depth else None
                if target is not None:
                    targets.append(target)
            case cst.Assign() if _sets_requires_grad(inner, "True"):
                return True
            case cst.Attribute(attr=cst.Name(value="grad")) if dotted(inner) not in ("torch.autograd.grad",):
                return True
            case cst.Arg(keyword=cst.Name(value="requires_grad"), value=cst.Name(value="True")):
                return True
    return any(_takes_gradients(target.body, context, depth - 1) for target in dict.fromkeys(targets))


def _is_gradient_call(call: cst.Call, context: Context) -> bool:
    func = call.func
    last = func.attr.value if isinstance(func, cst.Attribute) else (dotted(func) or "")
    if last in _GRADIENT_METHODS:
        return not (last == "requires_grad_" and _sets_requires_grad(call, "False"))
    if last == "step" and isinstance(func, cst.Attribute):
        return context.kind(func.value) in (Kind.OPTIMIZER, Kind.SCALER)
    words = _words(last)
    if last in ("train", "eval") and isinstance(func, cst.Attribute) and len(call.args) < 2:
        return False
    if words & _TRAINING_WORDS or (context.qualified_name(func) or "").startswith(("torch.autograd.", "torch.func.")):
        return not (context.qualified_name(func) or "").endswith(("Variable", "no_grad", "inference_mode", "profile"))
    return _TRACING.search(dotted(func) or "") is not None


# What becomes of an output


class _Flow:
    """Follows the names that hold outputs with a graph through statements, in order and once.

    `escapes` says that one is returned, yielded or stored on an object, `detaches` that the graph of one is dropped.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.attached: set[str] = set()
        self.ever: set[str] = set()
        self.escapes = False
        self.detaches = False

    def run(self, lines: Sequence[cst.CSTNode]) -> None:
        """Follow the statements; bodies of loops twice, for what they carry from turn to turn."""
        for line in lines:
            self._statement(line)

    def _statement(self, node: cst.CSTNode) -> None:
        match node:
            case cst.SimpleStatementLine(body=body) | cst.IndentedBlock(body=body) | cst.SimpleStatementSuite(body=body):
                self.run(body)
            case cst.For():
                if self._is_attached(node.iter):
                    self._bind(node.target, attached=True)
                self._statement(node.body)
                self._statement(node.body)
                self._orelse(node)
            case cst.While():
                self._statement(node.body)
                self._statement(node.body)
                self._orelse(node)
            case cst.If() | cst.With() | cst.Else() | cst.Finally():
                self._statement(node.body)
                self._orelse(node)
            case cst.Try():
                self._statement(node.body)
                for handler in node.handlers:
                    self._statement(handler.body)
                self._orelse(node)
                if node.finalbody is not None:
                    self._statement(node.finalbody)
            case cst.Assign():
                attached = self._is_attached(node.value)
                for target in node.targets:
                    self._bind(target.target, attached=attached)
            case cst.AnnAssign() if node.value is not None:
                self._bind(node.target, attached=self._is_attached(node.value))
            case cst.AugAssign():
                if self._is_attached(node.value):
                    self._bind(node.target, attached=True)
            case cst.Return() if node.value is not None:
                self.escapes = self._is_attached(node.value) or self.escapes
            case cst.Expr():
                self._expression(node.value)

    def _orelse(self, node: cst.CSTNode) -> None:
        orelse = getattr(node, "orelse", None)
        if orelse is not None:
            self._statement(orelse)

    def _expression(self, node: cst.BaseExpression) -> None:
        match node:
            case cst.Yield(value=cst.BaseExpression() as value):
                self.escapes = self._is_attached(value) or self.escapes
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method)), args=args):
                if any([self._is_attached(argument.value) for argument in args]) and method in _KEEPING:
                    self._bind(owner, attached=True)
            case _:
                self._is_attached(node)

    def _bind(self, target: cst.CSTNode, *, attached: bool) -> None:
        match target:
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                for element in elements:
                    self._bind(element.value, attached=attached)
            case cst.Subscript(value=value):
                if attached:
                    self._bind(value, attached=True)
            case cst.Attribute():
                self.escapes = self.escapes or attached
            case cst.Name(value=name):
                if attached:
                    self.attached.add(name)
                    self.ever.add(name)
                else:
                    self.attached.discard(name)

    def _is_attached(self, node: cst.CSTNode) -> bool:
        """Whether the expression gives something that holds the graph of a model's output."""
        match node:
            case cst.Name(value=name):
                return name in self.attached
            case cst.Attribute(value=value, attr=cst.Name(value=name)):
                return self._kept(self._is_attached(value), name not in _PLAIN_ATTRIBUTES)
            case cst.Call():
                return self._call(node)
            case cst.Comparison():
                return self._kept(self._any([node.left, *(part.comparator for part in node.comparisons)]), False)
            case cst.Subscript(value=value):
                return self._is_attached(value)
            case cst.Lambda():
                return False
            case cst.ListComp() | cst.SetComp() | cst.GeneratorExp():
                if self._is_attached(node.for_in.iter):
                    self._bind(node.for_in.target, attached=True)
                return self._is_attached(node.elt)
            case cst.DictComp():
                if self._is_attached(node.for_in.iter):
                    self._bind(node.for_in.target, attached=True)
                return self._is_attached(node.value)
            case cst.BaseExpression():
                return self._any([part for part in _parts(node)])
        return False

    def _call(self, node: cst.Call) -> bool:
        arguments = self._any([argument.value for argument in node.args])
        if is_model_call(node, self.context):
            return True
        func = node.func
        if isinstance(func, cst.Attribute):
            qualified = self.context.qualified_name(func) or ""
            receiver = self._is_attached(func.value)
            plain = func.attr.value in _DETACHING or qualified.startswith(("numpy.", "math.", "cv2."))
            return self._kept(receiver or arguments, not plain)
        return self._kept(arguments, (dotted(func) or "") not in _PLAIN_FUNCTIONS)

    def _kept(self, attached: bool, keeps: bool) -> bool:
        if attached and not keeps:
            self.detaches = True
        return attached and keeps

    def _any(self, nodes: Sequence[cst.CSTNode]) -> bool:
        return any([self._is_attached(node) for node in nodes])


def _parts(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    from torchlint.model.tree import children

    for child in children(node):
        if isinstance(child, cst.BaseExpression):
            yield child
        elif isinstance(child, (cst.Element, cst.StarredElement, cst.DictElement)):
            yield child.value
