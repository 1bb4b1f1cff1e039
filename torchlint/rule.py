"""The vocabulary of a rule's author: what a rule is, what it looks at, what it yields."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from torchlint.finding import Applicability, Doubt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import libcst as cst

    from torchlint.semantics import context

__all__ = [
    "API",
    "OLDEST_TORCH",
    "Applicability",
    "Call",
    "Check",
    "Context",
    "Doubt",
    "Flag",
    "Insert",
    "InsertBelow",
    "Interest",
    "Message",
    "Method",
    "Node",
    "NodeEdit",
    "Replace",
    "Rule",
    "Said",
    "Status",
]


API = 1
"""The version of what docs/packs.md promises to authors of rule packs; another number means that it has changed."""

Context: TypeAlias = "context.Context"
"""What a check asks for facts, for annotations: a name alone, since it loads LibCST."""

# Where the documentation is published.
SITE = "https://torchlint.github.io/torchlint/"

# What every rule's advice works with.
OLDEST_TORCH = (2, 0)


# Doubts of two kinds, of which one alone leaves something to do, and both together nothing.
_NEEDED = frozenset({Doubt.VALUE_DECIDES, Doubt.HOST_NEEDS_IT})
_UNSEEN = frozenset({Doubt.RATE_UNKNOWN, Doubt.UNCALLED, Doubt.NAMED_RARE})


class Status(Enum):
    """Where a rule stands in its life; preview rules run only when asked for."""

    STABLE = "stable"
    PREVIEW = "preview"
    DEPRECATED = "deprecated"


@dataclass(frozen=True, slots=True)
class Method:
    """A call of a method of this name on anything: `Method("item")` is `….item(…)`.

    In files that hold one of `beside`, where that is given.
    """

    name: str
    beside: tuple[bytes, ...] = ()

    @property
    def tokens(self) -> tuple[bytes, ...]:
        """Bytes one of which a file must hold for this interest to occur in it."""
        return self.beside or (self.name.encode(),)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of this qualified name, through any import or alias: `Call("torch.cat")`, `Call("float")`."""

    name: str

    @property
    def tokens(self) -> tuple[bytes, ...]:
        """Bytes one of which a file must hold for this interest to occur in it."""
        module, _, last = self.name.rpartition(".")
        # A builtin is called by its own name; `float` alone also stands in every `torch.float32`.
        return (last.encode(),) if module else (f"{last}(".encode(), f"{last} (".encode())


@dataclass(frozen=True, slots=True)
class Node:
    """Any node of the LibCST type of this name, in files that hold one of `tokens` (empty: in every file).

    The type goes by its name so that a rule's module loads without LibCST: `Node("For", b"range(")`.
    """

    type: str
    tokens: tuple[bytes, ...] = ()


Interest: TypeAlias = "Method | Call | Node"


@dataclass(frozen=True, slots=True)
class Replace:
    """Put `code` in the place of `node`, its own parentheses included."""

    node: cst.CSTNode
    code: str


@dataclass(frozen=True, slots=True)
class Insert:
    """Put `code` directly before or behind `node`."""

    node: cst.CSTNode
    code: str
    before: bool = False


@dataclass(frozen=True, slots=True)
class InsertBelow:
    """Put the statement `code` on a line of its own below the statement `node`, indented as that is."""

    node: cst.CSTNode
    code: str


NodeEdit: TypeAlias = "Replace | Insert | InsertBelow"


class Said(NamedTuple):
    """What is said in one case: a headline, one sentence of advice, and the id of the message that both come from."""

    headline: str
    help: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """What a rule says in one case, as templates: `Message("reads", "`{read}` synchronizes", help="read it later")`.

    The headline says in one clause what happens and how often, the help in one imperative sentence what to do. Neither
    ends in a period. The id is unique among the messages of its rule.
    """

    id: str
    headline: str
    help: str = ""

    def of(self, **values: object) -> Said:
        """What is said with these values, which go in by name."""
        return Said(self.headline.format_map(values), self.help.format_map(values), self.id)


@dataclass(frozen=True, slots=True)
class Flag:
    """What a check yields: the node to point at, what happens there, and how to mend it.

    A `message` that is a text is a headline alone; that of a `Message` has its advice with it. The `title` is that of
    the fix. `about` are further nodes that the message speaks of: a rule that yields to this one is silent on them too.
    So it is on `places`, further nodes of which the same is to be said, for the same cause. What is claimed is true;
    `doubts` say why it may not be worth acting on, and make it a note. Flags of one rule that are alike `within` the
    same definition are reported as one: the layers of a network, say.
    """

    node: cst.CSTNode
    message: str | Said
    title: str = ""
    edits: tuple[NodeEdit, ...] = ()
    applicability: Applicability = Applicability.UNSAFE
    about: tuple[cst.CSTNode, ...] = ()
    places: tuple[cst.CSTNode, ...] = ()
    within: cst.ClassDef | cst.FunctionDef | None = None
    doubts: tuple[Doubt, ...] = ()


Check: TypeAlias = "Callable[[Any, Context], Iterator[Flag]]"


@dataclass(frozen=True)
class Rule:
    """A rule's metadata; its checks register with `on`.

    `fix` names every applicability that a fix of this rule may carry, best first; empty: it only reports. `unsafe` says
    in a clause what a fix that is unsafe may change.
    `options` maps the name of each option to its default. `yields_to` names the rules that say the same more
    precisely: where one of them has flagged the same code, or anything on the same line, this one is silent. A rule
    that is `eager` advises what `torch.compile` does by itself, and is silent in compiled functions. `torch` is the
    oldest release in which the advice holds: a configuration whose `target-torch` is older switches the rule off.
    `page` is the address where the page of a pack's rule is published; that of ours follows from its name.
    `doubts` are those that its flags may carry, each with the reason for which it makes them worthless, and the rule
    silent; empty, where it makes them notes.
    """

    name: str
    code: str
    group: str
    summary: str
    since: str
    status: Status = Status.STABLE
    default: bool = True
    fix: tuple[Applicability, ...] = ()
    unsafe: str = ""
    options: tuple[tuple[str, str | int | float | bool], ...] = ()
    yields_to: tuple[str, ...] = ()
    eager: bool = False
    torch: tuple[int, int] = OLDEST_TORCH
    page: str = ""
    doubts: tuple[tuple[Doubt, str], ...] = ()
    checks: list[tuple[Interest, Check]] = field(default_factory=list, repr=False, compare=False)

    def on(self, *interests: Interest) -> Callable[[Check], Check]:
        """Register the decorated check for each interest."""

        def register(check: Check) -> Check:
            self.checks.extend((interest, check) for interest in interests)
            return check

        return register

    @property
    def module(self) -> str:
        """The name of its module, page and fixture folder."""
        return self.name.replace("-", "_")

    @property
    def interests(self) -> Iterable[Interest]:
        """What the rule's checks look at."""
        return (interest for interest, _ in self.checks)

    def worthless(self, flag: Flag) -> tuple[Doubt, str] | None:
        """The doubt for which nothing is said of what a check found, and why; None where it is said."""
        for doubt, reason in self.doubts:
            if reason and doubt in flag.doubts:
                return doubt, reason
        needed = next((doubt for doubt in flag.doubts if doubt in _NEEDED), None)
        if needed is not None and not _UNSEEN.isdisjoint(flag.doubts):
            return needed, "Of what is needed, and not known to recur, there is nothing to say."
        return None

    @property
    def path(self) -> str:
        """Where the file of its page stands in the folder of rules, with POSIX separators."""
        return f"{self.group}/{self.module}.md"

    @property
    def url(self) -> str:
        """Where its page is published."""
        return self.page or f"{SITE}rules/{self.name}/"
