"""What the other files of a project say about the functions of one: who calls them, how often, with what."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import NamedTuple, TypeAlias

# Named tuples: they are made in a tenth of the time that a dataclass takes, at each start.
from torchlint.finding import Frequency, Span, Wanted

# A function by its name, a method as `Class.method`, one of what an object holds as `Class.held.method`.
FunctionName: TypeAlias = str
# What the name of a method begins with that may be one of any object.
ANY = "*."
# The same, of a method whose name no other file gives to one.
SOLE = "1."
# What the name of something of the project begins with, wherever it is spoken of: `@folder/file.py:Class`.
PLACED = "@"


class Passed(NamedTuple):
    """What a call passes for one parameter: `place` counts positional arguments, `keyword` names others.

    `kind` and `device` are names in `torchlint.semantics.values.lattice`. So is `item`, the kind of what a sequence
    holds, where that is known for certain. `constant` is what is passed in Python's spelling, where it is `True`,
    `False`, `None` or a short text. `made` is the class or function of the project that is called to make it, by its
    qualified name in the file that passes it; for who hears of it `@path:Class`. `proven`: no name says what it is.
    """

    place: int | None
    keyword: str
    kind: str
    device: str
    item: str = ""
    constant: str = ""
    made: str = ""
    proven: bool = False


class Purpose(Enum):
    """What becomes of a value. DEFER: it is collected, logged or only computed with; NEEDED: the host acts on it.

    SERVED is said of networks: one that gets its weights where it is made, and then only answers.
    """

    DEFER = "defer"
    NEEDED = "needed"
    SERVED = "served"
    OTHER = "other"


class Called(NamedTuple):
    """One call from another file. `where` is its path and row; `arguments` is None where `*` or `**` hides some.

    `grad` is the value of a `torchlint.semantics.execution.grad_mode.GradMode`, `purpose`, what is done with the
    result, that of a `Purpose`. `prepares`: it is made where samples are, on the CPU. `thinned`: only some iterations
    of a loop over batches make it, `if step % 5 == 0`.
    """

    where: str
    frequency: Frequency
    grad: str
    purpose: str
    arguments: tuple[Passed, ...] | None = None
    prepares: bool = False
    thinned: bool = False


class Wrapper(NamedTuple):
    """What a call must pass so that the one layer whose output the new instance gives has no bias.

    `layer` is the qualified name of torch's class. `parameter` decides on the bias, at its `place` behind `self`, None
    if only by keyword; where it is left out, `default` says whether there is one. `features` is the parameter for the
    features that a linear layer gives, "" where none is. Where it `expects_bias`, code beside the class fails without.
    """

    layer: str
    parameter: str
    place: int | None
    default: bool
    features: str = ""
    features_place: int | None = None
    expects_bias: bool = False


class Described(NamedTuple):
    """A class or a function that another file, at this path, defines.

    `bases` are the qualified names of those that no file of the project defines. `work` is the value of a
    `torchlint.analyses.data.datasets.Work`, what making one sample takes; None if the class is no dataset, or if the
    function does not return one of samples in memory or of a stream. `wrapper` says what layer it is around, if it is
    around one and gives its output. `uses_device` says of a function that it puts something on an accelerator, and
    `bare` of a network that it records no graph of its own.
    """

    path: str
    bases: tuple[str, ...] = ()
    work: int | None = None
    wrapper: Wrapper | None = None
    uses_device: bool = False
    bare: bool = False


class Returned(NamedTuple):
    """What a call of a function or class of another file gives: a `torchlint.semantics.values.lattice.Value`.

    `kind` is the name of its `Kind`; `devices`, `rank` and `also` are the numbers of its flags. `qualified` names what
    a library defines: a name of that file's own would say nothing elsewhere. `methods` are what those of an instance
    give, as far as that is known; of one of a module, `records` says that it calls a part of it with autograd on.
    """

    kind: str
    devices: int
    rank: int
    also: int = 0
    batch: bool = False
    scalar: bool = False
    qualified: str = ""
    item: Returned | None = None
    items: tuple[Returned, ...] = ()
    methods: tuple[tuple[str, Returned], ...] = ()
    records: bool = False


class Facts(NamedTuple):
    """What other files say of one: the calls of its functions, and the classes that it imports. Part of cache keys.

    `returns` is what calls of imported functions and classes give. All hold what a lint asked about and is known,
    sorted. `never_pins` says, where that was asked, that the files which work with this one make loaders and none
    speaks of pinning what they give; `unused` are those of its definitions, of what was asked about, that no file
    brings of those which bring others. `readers` are imported functions that only read what they are given, and how.
    """

    calls: tuple[tuple[FunctionName, tuple[Called, ...]], ...] = ()
    classes: tuple[tuple[str, Described], ...] = ()
    never_pins: bool = False
    returns: tuple[tuple[str, Returned], ...] = ()
    unused: tuple[str, ...] = ()
    readers: tuple[tuple[str, str], ...] = ()

    def of(self, function: FunctionName) -> tuple[Called, ...]:
        """The calls of one function."""
        return next((found for name, found in self.calls if name == function), ())

    def described(self, name: str) -> Described | None:
        """What is known of a class, by the qualified name that it has in the file."""
        return next((found for known, found in self.classes if known == name), None)

    def returned(self, name: str) -> Returned | None:
        """What a call gives of a function or class, by the qualified name that it has in the file."""
        return next((found for known, found in self.returns if known == name), None)

    def returned_for(self, names: Collection[str]) -> tuple[tuple[str, Returned], ...]:
        """What calls give of these alone, as far as it is known."""
        return tuple(each for each in self.returns if each[0] in names)

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return any(self)


class Asked(NamedTuple):
    """What is asked of one file: its calls of functions, by the qualified names they have there; its definitions.

    `classes` are its own classes and functions, which are described alike; with `returns`, what calls give of
    each of them.
    """

    calls: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    returns: bool = False

    def __bool__(self) -> bool:
        """Whether anything is asked."""
        return bool(self.calls or self.classes or self.returns)

    def without(self, other: Asked) -> Asked:
        """What is asked here and not there."""
        calls = tuple(name for name in self.calls if name not in other.calls)
        classes = tuple(name for name in self.classes if name not in other.classes)
        return Asked(calls, classes, self.returns and not other.returns)


class Answers(NamedTuple):
    """What one file says to what it was `asked`, and what it would have to know of others to say it for certain.

    What its functions and classes give hangs on nothing but what others' give that it calls: on those that it
    `passes_on`, by the qualified names that they have in the file. Who calls those that are `handed` objects would tell
    what these are.
    """

    calls: tuple[tuple[str, tuple[Called, ...]], ...] = ()
    classes: tuple[tuple[str, Described], ...] = ()
    questions: Wanted = Wanted()
    asked: Asked = Asked()
    returns: tuple[tuple[str, Returned], ...] = ()
    passes_on: tuple[str, ...] = ()
    handed: tuple[FunctionName, ...] = ()

    def apart(self) -> tuple[Answers, ...]:
        """The answers to each kind of question by themselves: neither hangs on the other."""
        parts = (
            self._replace(asked=self.asked._replace(returns=False), returns=(), passes_on=()),
            Answers(asked=Asked(returns=self.asked.returns), returns=self.returns, passes_on=self.passes_on),
        )
        return tuple(part for part in parts if part.asked)


class Telling(NamedTuple):
    """What the model knows of one line, in words. `held` are the names on it, each with what it holds.

    `questions` are those whose answers it hangs on.
    """

    frequency: str
    why: tuple[str, ...]
    grad: str
    held: tuple[tuple[str, str], ...]
    questions: Wanted = Wanted()


class LoopFact(NamedTuple):
    """A loop over batches: where it stands, its head, in which function (empty: in none), and whether it trains.

    `entered` are the functions of the file that it calls, directly or through others. A loop that does not train may
    evaluate, or make something.
    """

    span: Span
    head: Span
    function: str
    trains: bool
    entered: tuple[Span, ...] = ()


NOTHING = Facts()
