"""What becomes of a model's output: which names hold its graph, and whether that leaves the function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.names.bindings import dotted
from torchlint.syntax.tree import children

DETACHING = frozenset(
    "item tolist numpy detach detach_ argmax argmin argsort size dim numel eq ne lt le gt ge long int bool byte "
    "nonzero get_device type is_cuda equal allclose isnan isfinite multinomial bernoulli".split()
)
PLAIN_FUNCTIONS = frozenset("float int bool len str repr round print range isinstance type id format".split())
PLAIN_ATTRIBUTES = frozenset("data shape device dtype is_cuda ndim requires_grad indices".split())
_KEEPING = frozenset("append extend add push put store insert appendleft".split())


class Flow:
    """Follows the names that hold outputs with a graph through statements, in order and once.

    `escapes` says that one is returned, yielded or stored on an object, `detaches` that the graph of one is dropped:
    by a method among `detaching`, or a function that takes numbers. Where it `is_strict`, what a branch binds a name
    to leaves to it what it held before, and what changes a tensor in place keeps it.
    """

    def __init__(
        self,
        context: Context,
        runs_model: Callable[[cst.Call], bool],
        detaching: frozenset[str] = DETACHING,
        *,
        is_strict: bool = False,
    ) -> None:
        self.context = context
        self.runs_model = runs_model
        self.detaching = detaching
        self.is_strict = is_strict
        self._branches = 0
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
            case (
                cst.SimpleStatementLine(body=body) | cst.IndentedBlock(body=body) | cst.SimpleStatementSuite(body=body)
            ):
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
            case cst.If():
                self._branches += 1
                self._statement(node.body)
                self._orelse(node)
                self._branches -= 1
            case cst.With() | cst.Else() | cst.Finally():
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
                if self._any([argument.value for argument in args]):
                    if method in _KEEPING:
                        self._bind(owner, attached=True)
                    elif self.is_strict and method.endswith("_"):
                        self.escapes = True  # into a tensor that may be anybody's
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
                elif not (self.is_strict and self._branches):
                    self.attached.discard(name)

    def _is_attached(self, node: cst.CSTNode) -> bool:
        """Whether the expression gives something that holds the graph of a model's output."""
        match node:
            case cst.Name(value=name):
                return name in self.attached
            case cst.Attribute(value=value, attr=cst.Name(value=name)):
                return self._any([value], keeps=name not in PLAIN_ATTRIBUTES)
            case cst.Call():
                return self._call(node)
            case cst.Comparison():
                self._any([node.left, *(part.comparator for part in node.comparisons)], keeps=False)
                return False
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
                return self._any(list(_parts(node)))
        return False

    def _call(self, node: cst.Call) -> bool:
        """Whether the call gives an output with its graph: a model's own, or one made from such a thing."""
        given = [argument.value for argument in node.args]
        if self.runs_model(node):
            self._any(given)
            return True
        func = node.func
        if not isinstance(func, cst.Attribute):
            return self._any(given, keeps=(dotted(func) or "") not in PLAIN_FUNCTIONS)
        qualified = self.context.qualified_name(func) or ""
        drops = func.attr.value in self.detaching or qualified.startswith(("numpy.", "math.", "cv2."))
        return self._any([func.value, *given], keeps=not drops)

    def _any(self, nodes: Sequence[cst.CSTNode], *, keeps: bool = True) -> bool:
        """Whether one of the expressions holds a graph that what is made of them keeps. All of them are followed."""
        attached = False
        for node in nodes:
            attached = self._is_attached(node) or attached
        self.detaches = self.detaches or (attached and not keeps)
        return attached and keeps


def _parts(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in children(node):
        if isinstance(child, cst.BaseExpression):
            yield child
        elif isinstance(child, (cst.Element, cst.StarredElement, cst.DictElement)):
            yield child.value
