"""The name that values of a loop are kept under: what it held before, who looks at it, and when."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from torchlint.analyses.tensors.aliasing import reflects
from torchlint.finding import Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.flow.guards import Role
from torchlint.semantics.names.bindings import Binding, final_part
from torchlint.syntax.tree import descendants_in_scope

# What a name is followed through: each read would be named in the fix of each other.
_MOST = 32


@dataclass(frozen=True, slots=True)
class Keeper:
    """A local name that the values are kept under, at `place`, and the outermost loop over batches around it."""

    place: cst.Name
    loop: cst.For | cst.While
    context: Context

    @classmethod
    def of(cls, place: cst.Name, read: cst.Call, context: Context) -> Keeper | None:
        """The name, if nothing but the plain statements of one function or module can reach what it holds."""
        loop = around = context.frequencies.batch_loop(read)
        while around is not None:
            loop, around = around, context.frequencies.batch_loop(around)
        scope = context.names.scope_of(place)
        if (
            loop is None
            or scope.is_class
            or context.names.lookup(place)[0] is not scope
            or place.value in scope.globals
        ):
            return None
        if context.frequency(loop) >= Frequency.BATCH:
            return None
        found = cls(place, loop, context)
        return None if found._is_captured() or found._is_reflected() or len(found.bindings) > _MOST else found

    @property
    def name(self) -> str:
        """The name itself."""
        return self.place.value

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """What the name may hold where a value is added to it, and where values were added to it before that."""
        names = self.context.names
        waiting = [self.place]
        found: dict[Binding, None] = {}
        while waiting and len(found) <= _MOST:
            new = [binding for binding in names.reaching(waiting.pop()) if binding not in found]
            found.update(dict.fromkeys(new))
            for binding in new:
                if isinstance(binding.node, (cst.AugAssign, cst.Assign)):
                    parts = (binding.node, *descendants_in_scope(binding.node))
                    waiting += [part for part in parts if isinstance(part, cst.Name) and self._is_read_again(part)]
        return tuple(sorted(found, key=lambda binding: binding.effect))

    def _is_read_again(self, name: cst.Name) -> bool:
        """Whether this is the name, where a statement goes on from what it holds."""
        is_target = isinstance(self.context.parent(name), cst.AugAssign)
        return name.value == self.name and (is_target or self.context.names.is_read(name))

    def end(self) -> cst.CSTNode:
        """The statement to put a conversion behind: the loop, or the last conversion that stands right behind it."""
        end: cst.CSTNode = self.loop
        block = self.context.parent(self.loop)
        if isinstance(block, (cst.IndentedBlock, cst.Module)):
            place = next(place for place, line in enumerate(block.body) if line is self.loop)
            for line in block.body[place + 1 :]:
                if not _is_conversion(line):
                    break
                end = line
        return end

    def _is_captured(self) -> bool:
        """Whether a function inside looks at the name: it may do so at any time."""
        names = self.context.names
        return names.is_captured(self.name, names.scope_of(self.place))

    def _is_reflected(self) -> bool:
        """Whether the function looks at its names by other means."""
        scope = self.context.names.scope_of(self.place).node
        return isinstance(scope, cst.FunctionDef) and any(reflects(node) for node in descendants_in_scope(scope.body))

    def uses(self, bindings: tuple[Binding, ...]) -> list[cst.Name]:
        """The places where the name may hold what one of the bindings gave it, targets of `+=` among them.

        Where an exception may leave the loop and be caught, all behind it: which bindings were skipped is not known.
        """
        place = self.context.tree.place
        names = self.context.names
        found = {use: None for binding in bindings for use in names.uses(binding)}
        if self._exits():
            scope, everything = names.lookup(self.place)
            for use in (use for binding in everything for use in names.uses(binding)):
                if place(use) > place(self.loop) and names.lookup(use)[0] is scope:
                    found[use] = None
        return sorted(found, key=place)

    def _exits(self) -> list[cst.Try | cst.TryStar | cst.With]:
        """The statements around the loop that catch what is raised in it, or do something about it."""
        return [
            guard.node
            for guard in self.context.guards(self.loop)
            if (isinstance(guard.node, (cst.Try, cst.TryStar)) and guard.role is Role.TRY)
            or (isinstance(guard.node, cst.With) and _suppresses(guard.node))
        ]

    def is_inside(self, node: cst.CSTNode) -> bool:
        """Whether a node stands in the loop."""
        return self.context.tree.within(node, self.loop)

    def may_come_early(self, use: cst.Name) -> bool:
        """Whether the use may run before what stands below the loop: in it, or after an exception that left it."""
        if self.is_inside(use):
            return True
        for exit_ in self._exits():
            if self.context.tree.within(use, exit_):
                if not self.context.tree.within(use, exit_.body):
                    return True
            elif isinstance(exit_, cst.With) or exit_.handlers:
                return True
        return False

    def is_bound_before(self, bindings: list[Binding]) -> bool:
        """Whether one of the bindings is made on every way into the loop."""
        return any(self.context.is_above(binding.node, self.loop) for binding in bindings)


def _is_conversion(line: cst.CSTNode) -> bool:
    """`total = float(total)`, or `losses = torch.stack(losses).tolist() if losses else []`."""
    match line:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value)], leading_lines=[]
        ):
            match value:
                case cst.Call(func=cst.Name(value="int" | "float"), args=[cst.Arg(value=cst.Name(value=converted))]):
                    return converted == name
                case cst.IfExp(test=cst.Name(value=converted), body=cst.Call(), orelse=cst.List(elements=[])):
                    return converted == name
    return False


# What goes on after the loop where it fails within: `contextlib.suppress`, and those of pytest and unittest.
_SWALLOW = frozenset("assertRaises raises suppress".split())


def _suppresses(statement: cst.With) -> bool:
    return any(isinstance(item.item, cst.Call) and final_part(item.item.func) in _SWALLOW for item in statement.items)
