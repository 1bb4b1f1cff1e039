"""What a check may ask about the module it looks at."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import libcst as cst

from torchlint.facts import NOTHING
from torchlint.semantics.execution.declarations import Declarations
from torchlint.semantics.execution.frequency import Frequencies
from torchlint.semantics.execution.grad_mode import GradMode, Grads
from torchlint.semantics.flow.destinations import Destinations, Sinks
from torchlint.semantics.flow.guards import Guard, Role, Suite, Surroundings
from torchlint.semantics.flow.instances import Constructions
from torchlint.semantics.flow.origins import Origins, Sources, Through
from torchlint.semantics.flow.uses import Uses
from torchlint.semantics.names.bindings import Binding, Names
from torchlint.semantics.names.classes import Classes
from torchlint.semantics.values.call_graph import Calls
from torchlint.semantics.values.evaluator import Kinds
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.semantics.values.module_profile import Program
from torchlint.semantics.values.other_files import Elsewhere
from torchlint.syntax.control_flow import Condition
from torchlint.syntax.positions import Spans, code_inside
from torchlint.syntax.tree import INDENTED, descendants
from torchlint.syntax.uncommented import uncommented

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torchlint.facts import Described, Facts
    from torchlint.finding import Frequency
    from torchlint.semantics.values.lattice import Value
    from torchlint.settings import OptionValue, Settings
    from torchlint.source import SourceFile
    from torchlint.syntax.tree import Tree

AnalysisT = TypeVar("AnalysisT")
NodeT = TypeVar("NodeT", bound=cst.CSTNode)

_LONGEST_SHOWN = 60
_SEMANTICS = __name__.rpartition(".")[0]


class _Configured(Protocol):
    """What has options: a rule."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> tuple[tuple[str, OptionValue], ...]: ...


class Context:
    """The facts about one module, each computed when it is first asked for.

    `names`, `classes`, `program`, `kinds`, `calls`, `frequencies` and `grads` are the parts of the semantics, for what
    has no shorthand here. `context[Layers]` is an analysis, made of this context when it is first asked for. `facts`
    are what other files say.
    """

    def __init__(self, tree: Tree, source: SourceFile, settings: Settings, facts: Facts = NOTHING) -> None:
        self.facts = facts
        self.tree = tree
        self.source = source
        self.settings = settings
        self._analyses: dict[type[Any], object] = {}

    def __getitem__(self, analysis: type[AnalysisT]) -> AnalysisT:
        """The analysis of this module: one object for each type, which is made of the context alone."""
        found = self._analyses.get(analysis)
        if found is None:
            make: Callable[[Context], AnalysisT] = analysis
            found = self._analyses[analysis] = make(self)
        assert isinstance(found, analysis)
        return found

    @contextmanager
    def beside(self, facts: Facts) -> Iterator[Context]:
        """A context of the same module, as long as it is asked, where these are what other files say.

        What is found there hangs on nothing that was asked here, and the other way round.
        """
        other = Context(self.tree, self.source, self.settings, facts)
        other.names, other.program = self.names, self.program  # they say the same, whatever is known of other files
        try:
            yield other
        finally:
            other.release(self.names, self.program)

    def release(self, *kept: object) -> None:
        """Let go of all that was worked out: parts that know each other stay in memory until the collector comes."""
        given = {id(one) for one in (self.tree, self.source, self.settings, self.facts, *kept)}
        parts: list[object] = [self, *self._analyses.values()]
        while parts:
            part = parts.pop()
            held = vars(part)
            parts += [one for one in held.values() if id(one) not in given and _is_part(one, part)]
            held.clear()

    @cached_property
    def names(self) -> Names:
        """Scopes, bindings and qualified names."""
        return Names(self.tree)

    @cached_property
    def classes(self) -> Classes:
        """Bases, methods and attributes of classes."""
        return Classes(self.tree, self.names, self.facts)

    @cached_property
    def program(self) -> Program:
        """What the module as a whole says."""
        return Program(self.tree, self.names, self.source.text)

    @cached_property
    def elsewhere(self) -> Elsewhere:
        """Callers in other files."""
        return Elsewhere(self.tree, self.classes, self.facts)

    @cached_property
    def kinds(self) -> Kinds:
        """Values of expressions."""
        kinds = Kinds(self.tree, self.names, self.classes, self.program, self.elsewhere)
        kinds.calls = Calls(self.tree, self.names, self.classes, kinds)
        return kinds

    @cached_property
    def calls(self) -> Calls:
        """The call graph within the module."""
        calls = self.kinds.calls
        assert calls is not None
        return calls

    @cached_property
    def frequencies(self) -> Frequencies:
        """Loops, entry points, rate limits."""
        declarations = Declarations(self.tree, self.source.text, self.settings.hot)
        return Frequencies(self.tree, self.names, self.classes, self.kinds, self.calls, self.elsewhere, declarations)

    @cached_property
    def grads(self) -> Grads:
        """Grad modes."""
        return Grads(self.tree, self.names, self.classes, self.calls, self.elsewhere)

    @cached_property
    def constructions(self) -> Constructions:
        """Which calls constructed a module."""
        return Constructions(self.tree, self.names, self.classes, self.calls, self.uses)

    @cached_property
    def uses(self) -> Uses:
        """Where names and attributes are read."""
        return Uses(self.tree, self.names, self.classes, self.kinds)

    @cached_property
    def sources(self) -> Sources:
        """Where values come from."""
        return Sources(self.tree, self.names, self.classes, self.calls, self.uses)

    @cached_property
    def sinks(self) -> Sinks:
        """Where values go."""
        return Sinks(self.tree, self.names, self.uses)

    @cached_property
    def surroundings(self) -> Surroundings:
        """What stands around nodes."""
        return Surroundings(self.tree)

    # Shorthands

    def value(self, node: cst.CSTNode) -> Value:
        """What an expression may hold."""
        return self.kinds.value(node)

    def kind(self, node: cst.CSTNode) -> Kind:
        """The kind of what an expression holds."""
        return self.kinds.value(node).kind

    def device(self, node: cst.CSTNode) -> Device:
        """Where what an expression holds lives."""
        return self.kinds.value(node).device

    def is_tensor(self, node: cst.CSTNode) -> bool:
        """Whether an expression is known to hold a tensor."""
        return self.kind(node) is Kind.TENSOR

    def is_an_object(self, name: cst.Name) -> bool:
        """Whether a class of another library made what a name may hold."""
        return any(map(self.kinds.evidence.is_an_object, self.reaching(name)))

    def is_on_gpu(self, node: cst.CSTNode) -> bool:
        """Whether what an expression holds is known to live on an accelerator, at least wherever there is one."""
        return self.device(node) in (Device.MAYBE, Device.ACCELERATOR)

    def option(self, rule: _Configured, name: str) -> OptionValue:
        """What is configured for an option of a rule, or its default. Raises `KeyError` for one that it lacks."""
        return self.settings.option(rule.name, name, dict(rule.options)[name])

    def frequency(self, node: cst.CSTNode) -> Frequency:
        """How often a node runs."""
        return self.frequencies.frequency(node)

    def grad(self, node: cst.CSTNode) -> GradMode:
        """The grad mode in which a node runs."""
        return self.grads.mode(node)

    def qualified_name(self, node: cst.CSTNode) -> str | None:
        """`torch.nn.Conv2d` for an expression that names it, through any import; None where it isn't certain."""
        return self.names.qualified(node)

    def reaching(self, name: cst.Name) -> tuple[Binding, ...]:
        """The bindings whose value the name may hold here."""
        return self.names.reaching(name)

    def origins(self, node: cst.BaseExpression, through: Through = Through.NAMES) -> Origins:
        """Where the value of an expression may come from: through names, and whatever else is to be looked through."""
        return self.sources.of(node, through)

    def stands_for(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """The one expression that a name is bound to, by one assignment as a whole; a node that is no name, itself."""
        return self.sources.stands_for(node)

    def bound_to(self, name: cst.Name, through: Through = Through.NAMES) -> Origins:
        """What the bindings of a name give it, as it is written there: the first step of its origins."""
        return self.sources.bound_to(name, through)

    def ingredients(
        self, node: cst.CSTNode, *, bound_by: Callable[[cst.CSTNode], bool] | None = None
    ) -> Iterator[cst.CSTNode]:
        """All nodes that go into what a node computes, through the names that such statements bind, or any."""
        return self.sources.ingredients(node, bound_by=bound_by)

    def destinations(
        self,
        node: cst.BaseExpression,
        through: Through = Through.NAMES,
        *,
        handed_on: Callable[[cst.BaseExpression, cst.CSTNode], cst.BaseExpression | None] | None = None,
    ) -> Destinations:
        """Where the value of an expression goes: through names, and whatever else is to be looked through.

        `handed_on` gives, for an expression and what takes it, the expression that has the value from there.
        """
        return self.sinks.of(node, through, handed_on=handed_on)

    def readers(self, name: cst.Name) -> tuple[cst.Name, ...]:
        """Every place that may read what a name holds here, or change it in place, itself among them."""
        return self.sinks.readers(name)

    def binders(self, name: cst.Name) -> tuple[cst.CSTNode, ...]:
        """What may have bound the name: statements, loops, parameters, functions; each is a value of its own."""
        return tuple(binding.node for binding in self.names.reaching(name))

    def is_bound_in(self, name: cst.Name, node: cst.CSTNode) -> bool:
        """Whether what the name holds may have been bound by a node, or within it."""
        return any(self.tree.within(binder, node) for binder in self.binders(name))

    def is_bound_before(self, name: cst.Name, node: cst.CSTNode) -> bool:
        """Whether the name holds at a node, as far as the order of the source tells, what it holds here."""
        place = self.tree.place(node)
        return all(binding.effect < place for binding in self.names.reaching(name))

    def holds_the_same(self, one: cst.Name, other: cst.Name) -> bool:
        """Whether two names hold what the same statements bound, which may have run more than once."""
        return self.names.reaching(one) == self.names.reaching(other)

    def parameter(self, node: cst.BaseExpression) -> cst.Param | None:
        """The parameter that a name stands for; None for what is, or may be, anything else."""
        bound = self.names.reaching(node) if isinstance(node, cst.Name) else ()
        return bound[0].node if len(bound) == 1 and isinstance(bound[0].node, cst.Param) else None

    def guards(
        self, node: cst.CSTNode, *, within: cst.CSTNode | None = None, across_functions: bool = False
    ) -> Iterator[Guard]:
        """The conditions, loops, handlers and `with` under which a node runs, nearest first, as far as its function."""
        return self.surroundings.guards(node, within=within, across_functions=across_functions)

    def conditions(
        self, node: cst.CSTNode, *, within: cst.CSTNode | None = None, across_functions: bool = False
    ) -> Iterator[Condition]:
        """The tests of `if` and of conditional expressions that a node runs under, each with whether it holds there."""
        for guard in self.surroundings.guards(node, within=within, across_functions=across_functions):
            if guard.test is not None and isinstance(guard.node, (cst.If, cst.IfExp)):
                yield Condition(guard.test, guard.role is Role.TAKEN)

    def enclosing(self, node: cst.CSTNode, *kinds: type[NodeT], within: cst.CSTNode | None = None) -> NodeT | None:
        """The nearest node of these types around a node, as far as the one `within` which it has to be."""
        return next(self.surroundings.around(node, *kinds, within=within), None)

    def around(self, node: cst.CSTNode, *kinds: type[NodeT], within: cst.CSTNode | None = None) -> Iterator[NodeT]:
        """The nodes of these types around a node, nearest first."""
        return self.surroundings.around(node, *kinds, within=within)

    def suites(self, node: cst.CSTNode) -> Iterator[Suite]:
        """The blocks around a node, each with the line of it that holds the node, as far as its function's body."""
        return self.surroundings.suites(node)

    def is_above(self, node: cst.CSTNode, other: cst.CSTNode) -> bool:
        """Whether a line stands above another node in a block that holds it, and so runs before it each time."""
        return self.surroundings.is_above(node, other)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node directly above."""
        return self.tree.parent(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes above, nearest first."""
        return self.tree.ancestors(node)

    def loop(self, node: cst.CSTNode) -> cst.For | cst.While | None:
        """The innermost loop in whose body the node stands, within its function."""
        return self.frequencies.loop(node)

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | cst.Lambda | None:
        """The function in whose body the node stands."""
        return self.tree.function(node)

    def argument(self, call: cst.Call, keyword: str, place: int | None = None) -> cst.BaseExpression | None:
        """The argument passed by keyword or at this position (counted from 0); None if there is none.

        A call with `*args` or `**kwargs` may pass it unseen: see `has_unpacking`.
        """
        for argument in call.args:
            if argument.keyword is not None and argument.keyword.value == keyword:
                return argument.value
        if place is None or place >= len(call.args):
            return None
        plain = all(argument.keyword is None and not argument.star for argument in call.args[: place + 1])
        return call.args[place].value if plain else None

    @staticmethod
    def has_unpacking(call: cst.Call) -> bool:
        """Whether the call passes `*args` or `**kwargs`."""
        return any(argument.star for argument in call.args)

    def code(self, node: cst.CSTNode) -> str:
        """The source of a node, its own parentheses included; further lines of an expression keep their indentation."""
        code = self.tree.module.code_for_node(node)
        if "\n" not in code or not isinstance(node, (cst.BaseExpression, cst.Arg)):
            return code
        # An expression that was made of others stands where they do.
        place = next((part for part in (node, *descendants(node)) if self.tree.parent(part) is not None), None)
        return code if place is None else self.code_at(node, place)

    def uncommented(self, node: cst.CSTNode) -> str:
        """The source of a node without comments, docstrings and messages: what alone may suggest something."""
        return uncommented(self.code(node))

    def code_at(self, node: cst.CSTNode, place: cst.CSTNode) -> str:
        """The source of a new statement in the place of one that stands in this module, indented as that is."""
        blocks = [above for above in self.tree.ancestors(place) if isinstance(above, INDENTED)]
        return code_inside(self.tree.module, reversed(blocks), node)

    def bare_code(self, node: cst.BaseExpression) -> str:
        """The source of an expression without its own parentheses."""
        return self.code(node.with_changes(lpar=(), rpar=()))

    def shown(self, node: cst.BaseExpression) -> str:
        """The source of an expression for a message: on one line, without comments, its end cut if it is long."""
        text = " ".join(re.sub(r"#[^\n]*\n", " ", self.bare_code(node)).split())
        return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"

    def described(self, node: cst.BaseExpression) -> Described | None:
        """What another file says of the class or function that this names; None if this one, or nobody, defines it."""
        name = self.qualified_name(node)
        if name is not None and "." in name:
            return self.elsewhere.described(name)
        if not isinstance(node, cst.Name) or self.reaching(node):
            return None
        found = [self.elsewhere.described(f"{module}.{node.value}") for module in self.names.star_imports]
        return next((described for described in found if described is not None), None)

    def spans(self, wanted: Iterable[cst.CSTNode]) -> Spans:
        """Where nodes stand in the text."""
        return Spans(self.tree, wanted, self.source.text)


def _is_part(one: object, holder: object) -> bool:
    """Whether an object belongs to the semantics, or to the package of the analysis that holds it."""
    package = type(holder).__module__.rpartition(".")[0]
    return type(one).__module__.startswith((_SEMANTICS, package)) and hasattr(one, "__dict__")
