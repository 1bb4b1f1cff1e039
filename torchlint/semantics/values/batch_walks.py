"""Loops that take batches, by what they do with them: they move them between devices, or run a network on them."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.values import DTYPE_NAME
from torchlint.semantics.names.bindings import Names, last_part
from torchlint.semantics.names.loop_headers import iterables
from torchlint.syntax.tree import Tree, descendants, descendants_in_scope

# What leaves a batch what it is: `x.float().to(device)`, `batch.items()`.
_SAME = frozenset("items values float long half double int contiguous squeeze unsqueeze view reshape permute".split())
_OF_LIBRARIES = ("torch.", "numpy.", "builtins.")
# Methods of lists, which take anything.
_KEEPING = frozenset("append extend add put insert".split())
# What is called on networks and on nothing else.
_OF_NETWORKS = frozenset("parameters named_parameters eval load_state_dict state_dict named_modules".split())


_NAMES = (cst.Name, cst.Attribute, cst.Subscript)


class Found(NamedTuple):
    """What loops over batches go over, and what they call with them."""

    walked: frozenset[cst.CSTNode] = frozenset()
    called: frozenset[cst.CSTNode] = frozenset()


class BatchWalks:
    """The loops of one module that go over batches, whatever anything is called."""

    def __init__(self, tree: Tree, names: Names) -> None:
        self.tree = tree
        self.names = names

    @property
    def walked(self) -> frozenset[cst.CSTNode]:
        """The expressions that such loops go over, without what only passes on: `x` of `enumerate(x)`."""
        return self._found.walked

    @property
    def called(self) -> frozenset[cst.CSTNode]:
        """What such loops call with what they take, or with what came of that: a network, or a criterion."""
        return self._found.called

    @cached_property
    def _found(self) -> Found:
        walked: set[cst.CSTNode] = set()
        called: set[cst.CSTNode] = set()
        for loop in self.tree.of(cst.For):
            found = self._taking(loop)
            if found is not None:
                called |= found.called
                walked |= found.walked
                walked |= {iterated for iterated in iterables(loop.iter) if isinstance(iterated, _NAMES)}
        return Found(frozenset(walked), frozenset(called))

    @cached_property
    def _networks(self) -> frozenset[str]:
        """The names on which something is called that only networks have."""
        return frozenset(
            call.func.value.value
            for call in self.tree.of(cst.Call)
            if isinstance(call.func, cst.Attribute)
            and isinstance(call.func.value, cst.Name)
            and call.func.attr.value in _OF_NETWORKS
        )

    def _taking(self, loop: cst.For) -> Found | None:
        """What the loop calls with a batch, and what else it takes batches of; None for loops that take none.

        It moves a batch to a device and computes with it, or calls a network with it, or goes backward.

        `for x in tensors: found.append(x.cuda())` moves a list, and `for part in models: part.cuda()` models.
        """
        given = {node.value for node in descendants(loop.target) if isinstance(node, cst.Name)}
        nodes = list(descendants_in_scope(loop.body))
        calls = [node for node in nodes if isinstance(node, cst.Call)]
        is_step = any(
            isinstance(call.func, cst.Attribute) and call.func.attr.value in apis.BACKWARD_METHODS for call in calls
        )
        if not any(
            is_step or self._is_move(call) or self._is_brought_back(call) or _root(call.func) in self._networks
            for call in calls
        ):
            return None
        moved = set(given) if is_step else set()
        called: set[cst.CSTNode] = set()
        begun: set[cst.CSTNode] = set()
        computes = False
        for node in nodes:
            match node:
                case cst.Call():
                    if self._takes(node, given, moved):
                        called.add(node.func)
                case cst.BinaryOperation(left=left, right=right):
                    computes |= self._moves(left, given) or self._moves(right, given)
                case cst.Assign(targets=targets, value=value):
                    bound = {
                        part.value
                        for target in targets
                        if not isinstance(target.target, (cst.Attribute, cst.Subscript))
                        for part in descendants(target.target)
                        if isinstance(part, cst.Name)
                    }
                    for part in descendants(value):
                        if isinstance(part, cst.CompFor) and _root(part.iter) in given:
                            given |= {name.value for name in descendants(part.target) if isinstance(name, cst.Name)}
                    if any(
                        self._moves(part, given) or (isinstance(part, cst.Call) and self._takes(part, given, moved))
                        for part in descendants(value)
                    ):
                        moved |= bound
                    elif _root(value) in given:
                        given |= bound
                    elif (first := _first_of(value)) is not None:
                        given |= bound
                        begun.add(first)
        return Found(frozenset(begun), frozenset(called)) if called or computes else None

    def _takes(self, call: cst.Call, given: set[str], moved: set[str]) -> bool:
        """Whether something is called with what is on the device, and no function of a library."""
        name = self.names.qualified(call.func) or ""
        if self._is_move(call) or name.startswith(_OF_LIBRARIES) or ("." not in name and name):
            return False
        root = _root(call.func)
        if not isinstance(call.func, (cst.Name, cst.Attribute)) or not root or root in given | moved:
            return False
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _KEEPING:
            return False
        is_network = (isinstance(call.func, cst.Name) and root in self._networks) or self._is_brought_back(
            self._outer(call)
        )
        return any(
            _root(argument.value) in moved
            or (is_network and _root(argument.value) in given)
            or (isinstance(argument.value, cst.Call) and self._takes(argument.value, given, moved))
            or any(self._moves(part, given) for part in descendants(argument.value))
            for argument in call.args
        )

    def _outer(self, call: cst.Call) -> cst.CSTNode | None:
        """`model(x).cpu()` of `model(x)`."""
        above = self.tree.parent(call)
        return self.tree.parent(above) if isinstance(above, cst.Attribute) else None

    @staticmethod
    def _is_brought_back(call: cst.CSTNode | None) -> bool:
        """`model(x).cpu()`, which only tensors have."""
        match call:
            case cst.Call(
                func=cst.Attribute(value=cst.Call(func=cst.Name()), attr=cst.Name(value="cpu" | "detach")), args=[]
            ):
                return True
        return False

    def _moves(self, node: cst.CSTNode, given: set[str]) -> bool:
        return (
            isinstance(node, cst.Call)
            and self._is_move(node)
            and isinstance(node.func, cst.Attribute)
            and _root(node.func.value) in given
        )

    def _is_move(self, call: cst.Call) -> bool:
        """`x.cuda()` or `x.to(…)`, where that is no type and not the CPU."""
        match call:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="cuda"))):
                return True
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="to")), args=[cst.Arg(value=to), *_]):
                if isinstance(to, cst.SimpleString):
                    return to.evaluated_value != "cpu"
                is_named = isinstance(to, (cst.Name, cst.Attribute))
                return is_named and self.names.qualified(to) is None and not DTYPE_NAME.suggests(last_part(to))
        return False


def _first_of(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`x` of `next(iter(x))`."""
    match node:
        case cst.Call(
            func=cst.Name(value="next"),
            args=[cst.Arg(value=cst.Call(func=cst.Name(value="iter"), args=[cst.Arg(value=begun)]))],
        ):
            return begun if isinstance(begun, _NAMES) else None
    return None


def _root(node: cst.BaseExpression) -> str:
    """`x` of `x[0].float()`; nothing where anything else is done with it."""
    while True:
        match node:
            case cst.Name(value=name):
                return name
            case cst.Subscript(value=inner):
                node = inner
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=method))) if method in _SAME:
                node = inner
            case cst.Attribute(value=inner, attr=cst.Name(value=name)) if name not in apis.TENSOR_ATTRIBUTES:
                node = inner
            case cst.Tuple(elements=[cst.Element(value=inner), *_]):
                node = inner
            case _:
                return ""
