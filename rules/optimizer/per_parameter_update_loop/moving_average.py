"""Loops that move the parameters of one model a little towards those of another, pair by pair."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.syntax.tree import descendants

_ONE = cst.Integer("1")


@dataclass(frozen=True, slots=True)
class Blend:
    """`targets` become `keep` times themselves plus `take` times `sources`; both are `model.parameters()`.

    `is_lerp`: one kernel does both, with `take` as the weight.
    """

    targets: cst.BaseExpression
    sources: cst.BaseExpression
    keep: cst.BaseExpression
    take: cst.BaseExpression
    is_lerp: bool


def blend(loop: cst.For) -> Blend | None:
    """What a loop over pairs of parameters does to them; None where it does anything else."""
    match loop:
        case cst.For(
            target=cst.Tuple(
                elements=[cst.Element(value=cst.Name() as first), cst.Element(value=cst.Name() as second)]
            ),
            iter=cst.Call(func=cst.Name(value="zip"), args=[cst.Arg(value=left), cst.Arg(value=right), *rest]),
            body=cst.IndentedBlock(body=lines),
            orelse=None,
            asynchronous=None,
        ) if all(argument.keyword is not None for argument in rest):
            pass
        case _:
            return None
    if not (_are_parameters(left) and _are_parameters(right)) or first.value == second.value:
        return None
    statements = [
        part
        for line in lines
        for part in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])
        if not isinstance(part, cst.Pass)
    ]
    for target, source, targets, sources in (
        (first.value, second.value, left, right),
        (second.value, first.value, right, left),
    ):
        state = _Update(target, source)
        if all(state.follow(statement) for statement in statements) and state.keep and state.take:
            return Blend(targets, sources, state.keep, state.take, state.is_lerp)
    return None


def _are_parameters(node: cst.BaseExpression) -> bool:
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="parameters")), args=[]):
            return True
    return False


class _Update:
    """What the statements of the loop have done to the target so far."""

    def __init__(self, target: str, source: str) -> None:
        self.target = target
        self.source = source
        self.keep: cst.BaseExpression | None = None
        self.take: cst.BaseExpression | None = None
        self.is_lerp = False

    def follow(self, statement: cst.CSTNode) -> bool:
        """Whether the statement only changes the target, and how is known."""
        match statement:
            case cst.Expr(value=cst.Call() as call):
                return self._called(call)
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value="data")) as to)], value=value
            ):
                return self._is(to, self.target) and self._sum(value)
            case cst.AugAssign(target=to, operator=cst.MultiplyAssign(), value=value):
                return self._is(to, self.target) and isinstance(to, cst.Attribute) and self._multiplied(value)
            case cst.AugAssign(target=to, operator=cst.AddAssign(), value=value):
                return self._is(to, self.target) and isinstance(to, cst.Attribute) and self._added(value, None)
        return False

    def _called(self, call: cst.Call) -> bool:
        """Follow `t.mul_(…).add_(…)`, `t.copy_(…)` and `t.lerp_(…)`."""
        match call:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method)), args=args):
                pass
            case _:
                return False
        if not self._is(owner, self.target) and not (isinstance(owner, cst.Call) and self._called(owner)):
            return False
        match method, args:
            case "mul_", [cst.Arg(value=factor)]:
                return self._multiplied(factor)
            case "add_", [cst.Arg(value=value, keyword=None)]:
                return self._added(value, None)
            case "add_", [cst.Arg(value=value, keyword=None), cst.Arg(value=factor, keyword=cst.Name(value="alpha"))]:
                return self._added(value, factor)
            case "add_", [cst.Arg(value=factor, keyword=None), cst.Arg(value=value, keyword=None)]:
                return self._added(value, factor)  # the order of old
            case "copy_", [cst.Arg(value=value)]:
                return self._sum(value)
            case "lerp_", [cst.Arg(value=value, keyword=None), cst.Arg(value=weight)]:
                return self._lerped(value, weight)
        return False

    def _multiplied(self, factor: cst.BaseExpression) -> bool:
        if self.keep is not None or self.take is not None or self._mentions(factor):
            return False
        self.keep = factor
        return True

    def _added(self, value: cst.BaseExpression, factor: cst.BaseExpression | None) -> bool:
        if self.take is not None or self.keep is None:
            return False
        weight = self._weight(value, self.source)
        if weight is None or (factor is not None and (weight is not _ONE or self._mentions(factor))):
            return False
        self.take = weight if factor is None else factor
        return True

    def _sum(self, value: cst.BaseExpression) -> bool:
        """Follow `t = keep * t + take * s`, in whatever order."""
        match value:
            case cst.BinaryOperation(left=left, operator=cst.Add(), right=right) if self.keep is None:
                for mine, other in ((left, right), (right, left)):
                    keep, take = self._weight(mine, self.target), self._weight(other, self.source)
                    if keep is not None and take is not None and keep is not _ONE:
                        self.keep, self.take = keep, take
                        return True
        return False

    def _lerped(self, value: cst.BaseExpression, weight: cst.BaseExpression) -> bool:
        if not self._is(value, self.source) or self.keep is not None or self._mentions(weight):
            return False
        rest = cst.BinaryOperation(_ONE, cst.Subtract(), weight if _is_tight(weight) else _bracketed(weight))
        self.keep, self.take, self.is_lerp = rest, weight, True
        return True

    def _weight(self, node: cst.BaseExpression, name: str) -> cst.BaseExpression | None:
        """The factor with which a parameter is multiplied here."""
        if self._is(node, name):
            return _ONE
        match node:
            case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
                for factor, value in ((left, right), (right, left)):
                    if self._is(value, name) and not self._mentions(factor):
                        return factor
        return None

    def _is(self, node: cst.BaseExpression, name: str) -> bool:
        """Whether this is the parameter: `p`, `p.data`, `p.detach()`."""
        match node:
            case cst.Name(value=value):
                return value == name
            case cst.Attribute(value=inner, attr=cst.Name(value="data")):
                return self._is(inner, name)
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="detach")), args=[]):
                return self._is(inner, name)
        return False

    def _mentions(self, node: cst.BaseExpression) -> bool:
        names = (self.target, self.source)
        return any(isinstance(part, cst.Name) and part.value in names for part in (node, *descendants(node)))


def _is_tight(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BaseNumber)) or bool(node.lpar)


def _bracketed(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=(cst.LeftParen(),), rpar=(cst.RightParen(),))


def on_lists(found: Blend, torch: str, context: Context) -> tuple[str, ...]:
    """The statements that do it for all parameters at once."""
    targets, sources = context.bare_code(found.targets), context.bare_code(found.sources)
    if found.is_lerp:
        return (f"{torch}._foreach_lerp_(list({targets}), list({sources}), {context.bare_code(found.take)})",)
    taken = "" if found.take is _ONE else f", alpha={context.bare_code(found.take)}"
    return (
        f"{torch}._foreach_mul_(list({targets}), {context.bare_code(found.keep)})",
        f"{torch}._foreach_add_(list({targets}), list({sources}){taken})",
    )
