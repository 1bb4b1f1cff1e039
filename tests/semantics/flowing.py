"""Small programs that say at each use of a name which binding it sees, and running them along every way.

`v(7)` makes a value that remembers 7, `see(3, x)` notes that use 3 saw it. What a program asks (conditions, turns of
loops, whether a call raises, whether a context manager ends an exception) is decided by a list of choices, so that all
ways through it can be gone, as far as their number allows.
"""

from __future__ import annotations

import contextlib
import functools
import random
import re
import sys
from collections.abc import Callable, Iterator
from textwrap import indent
from types import CodeType, TracebackType
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.settings import Settings
from torchlint.source import SourceFile
from torchlint.syntax.tree import Tree, descendants

if TYPE_CHECKING:
    from typing_extensions import Self

    from torchlint.semantics.names.bindings import Binding

# Uses and the bindings that they see, by their numbers.
Pairs = set[tuple[int, int]]

# What makes a value that remembers its argument.
_MAKERS = frozenset({"v", "each", "keep", "tag", "makes"})
_MOST_RAISED = 3
_MOST_TURNS = 4
_STEP = "    "


class Programs:
    """Makes programs of all kinds of statements; the same of the same seed."""

    def __init__(self, seed: int, size: int, *, plain: bool = False) -> None:
        self.random = random.Random(seed)  # noqa: S311 - any programs
        self.left = size
        self.number = 0
        self.loops = 0
        self.finals = 0
        self.is_module = False
        # Names are always bound, so that no use ends a way, no function sees later bindings, and a `try` catches all or
        # nothing, and no two patterns match the same: tests are opaque, kinds of exceptions are not told apart.
        self.plain = plain
        # Whether names are bound by statements alone, and end nowhere: what precedes a use is then found without a graph.
        self.by_statements = self.random.random() < 0.4

    def program(self) -> str:
        """The body of a module, or of a function that is called."""
        self.is_module = self.random.random() < 0.25
        first = f"x = v({self.next()})\ny = v({self.next()})\n" if self.plain else ""
        body = self.suite(0, most=5, first=first) + self.use()
        if not self.is_module:
            body = f"def program(x=v({self.next()})):\n{indent(body, _STEP)}program()\n"
        return f"import contextlib\nimport sys\n{body}"

    def next(self) -> int:
        self.number += 1
        return self.number

    def name(self) -> str:
        return "x" if self.random.random() < 0.75 else "y"

    def use(self) -> str:
        return f"see({self.next()}, {self.name()})\n"

    def suite(self, depth: int, most: int = 3, first: str = "") -> str:
        lines = [first] if first else []
        for _ in range(self.random.randint(1, most)):
            lines.append(self.statement(depth))
            if self.random.random() < 0.5:
                lines.append(self.use())
        return "".join(lines)

    def statement(self, depth: int) -> str:
        self.left -= 1
        simple: list[Callable[[], str]] = [self.assign, self.assign, self.assign, self.use, self.expression]
        simple += [self.jump, self.jump, self.bind]
        nested = [self.if_, self.if_, self.for_, self.while_, self.try_, self.try_, self.with_, self.match, self.nested]
        if depth > 3 or self.left < 0 or self.random.random() < 0.45:
            return self.random.choice(simple)()
        return self.random.choice(nested)(depth + 1)

    # Statements without a body

    def assign(self) -> str:
        return f"{self.name()} = v({self.next()})\n"

    def bind(self) -> str:
        name, number = self.name(), self.next()
        kinds = (
            f"{name} += v({number})\n",
            f"{name}, _ = v({number}), c()\n",
            f"_ = {name} = v({number})\n",
            self.assign() if self.plain or self.by_statements else f"del {name}\n",
            f"import made_{number} as {name}\n",
            f"@makes({number})\ndef {name}(): pass\n",
            f"@makes({number})\nclass {name}: pass\n",
            f"{name}: V = v({number})\n",
        )
        return self.random.choice(kinds)

    def expression(self) -> str:
        if self.by_statements:
            return self.use()
        name, a, b, d = self.name(), self.next(), self.next(), self.next()
        kinds = (
            f"c() and ({name} := v({a})) and see({b}, {name})\n",
            f"c() or ({name} := v({a})) or see({b}, {name})\n",
            f"see({b}, {name}) if ({name} := v({a})) else see({d}, {name})\n",
            f"(({name} := v({a})) if c() else see({b}, {name})), see({d}, {name})\n",
            f"[see({b}, {name}) for _ in each(0) if ({name} := v({a}))]\n",
            f"[(see({b}, {name}), ({name} := v({a}))) for _ in each(0) for _ in each(0) if c()]\n",
            f"c() < ({name} := v({a})) < see({b}, {name})\n",
            f"assert ({name} := v({a})) and not c(), see({b}, {name})\n",
            f"any(see({b}, {name}) for _ in each(0))\n",
        )
        return self.random.choice(kinds)

    def jump(self) -> str:
        kinds = ["raise E\n", "sys.exit()\n", "raise Other\n", "pass\n" if self.is_module else "return\n"]
        if self.loops:
            kinds += ["break\n"] * 3 + ([] if self.finals else ["continue\n"] * 3)
        return self.random.choice(kinds)

    # Statements with one

    def if_(self, depth: int) -> str:
        text = f"if {self.condition()}:\n{self.indented(depth)}"
        while self.random.random() < 0.3:
            text += f"elif {self.condition()}:\n{self.indented(depth)}"
        return text + (f"else:\n{self.indented(depth)}" if self.random.random() < 0.5 else "")

    def condition(self) -> str:
        if self.by_statements:
            return "c()"
        name = self.name()
        kinds = ("c()", "c()", "not c()", f"({name} := v({self.next()}))", f"c() and not ({name} := v({self.next()}))")
        return self.random.choice((*kinds, f"c() or ({name} := v({self.next()})) and c()"))

    def for_(self, depth: int) -> str:
        target = self.random.choice(("_", self.name(), f"({self.name()}, _)"))
        items = f"each({self.next()})" if "," not in target else f"each({self.next()}, 2)"
        return f"for {target} in {items}:\n{self.turn(depth)}{self.otherwise(depth)}"

    def while_(self, depth: int) -> str:
        if self.random.random() < 0.5:
            return f"while True:\n{self.turn(depth, 'if c(): break' + chr(10) + 'turn()' + chr(10))}"
        return f"while {self.condition()}:\n{self.turn(depth)}{self.otherwise(depth)}"

    def turn(self, depth: int, first: str = "") -> str:
        outer, self.finals = self.finals, 0
        self.loops += 1
        # A use at the beginning sees what the turn before has bound.
        text = self.indented(depth, (first or "turn()\n") + (self.use() if self.random.random() < 0.5 else ""))
        self.loops -= 1
        self.finals = outer
        return text

    def otherwise(self, depth: int) -> str:
        return f"else:\n{self.indented(depth)}" if self.random.random() < 0.3 else ""

    def try_(self, depth: int) -> str:
        text = f"try:\n{self.indented(depth, 'risk()' + chr(10))}"
        has_final = self.random.random() < 0.5
        if not has_final or self.random.random() < 0.6:
            some = (["E"], ["E", "Other"], ["Exception"], ["BaseException"])
            for kind in ["BaseException"] if self.plain else self.random.choice(some):
                if not (self.plain or self.by_statements) and self.random.random() < 0.3:
                    name = self.name()
                    text += f"except {kind} as {name}:\n{self.indented(depth, f'tag({name}, {self.next()}){chr(10)}')}"
                else:
                    text += f"except {kind}:\n{self.indented(depth)}"
            if self.random.random() < 0.3:
                text += f"else:\n{self.indented(depth)}"
        if has_final:
            self.finals += 1
            text += f"finally:\n{self.indented(depth)}"
            self.finals -= 1
        return text

    def with_(self, depth: int) -> str:
        name = self.name()
        swallowing, plain = f"keep({self.next()}) as {name}", f"contextlib.nullcontext(v({self.next()})) as {name}"
        items = self.random.choice((swallowing, plain, f"keep(0), {plain}", f"{plain}, keep(0)"))
        return f"with {items}:\n{self.indented(depth)}"

    def match(self, depth: int) -> str:
        name, number = self.name(), self.next()
        pattern = self.random.choice((name, f"[{name}, 1] | [2, {name}]", f"[{name}, 1]"))
        text = f"match some():\n    case {pattern} if tag({name}, {number}):\n{self.case(depth)}"
        if not self.plain and self.random.random() < 0.3:
            text += f"    case [_, _]:\n{self.case(depth)}"
        if self.random.random() < 0.5:
            tagged = f"tag({name}, {self.next()})\n"
            last = (f"    case _:\n{self.case(depth)}", f"    case {name}:\n{self.case(depth, tagged)}")
            text += self.random.choice(last)
        return text

    def case(self, depth: int, first: str = "") -> str:
        return indent(self.indented(depth, first), _STEP)

    def nested(self, depth: int) -> str:
        number, name = self.next(), self.name()
        if self.plain:
            return f"class C{number}:\n{indent(f'{name} = v({number}){chr(10)}see({self.next()}, {name}){chr(10)}', _STEP)}"
        if self.random.random() < 0.3:
            return f"class C{number}:\n{indent(self.use() + self.assign() + self.use(), _STEP)}"
        kind = "global" if self.is_module else "nonlocal"
        binds = ""
        if self.random.random() < 0.3:
            # The name is bound around it whatever else is in the program.
            binds = f"{kind} {name}\n{self.use()}{name} = v({self.next()})\n"
        body = indent(binds + self.use(), _STEP)
        before = f"{name} = v({self.next()})\n" if binds else ""
        call = f"f{number}()\n"
        return f"{before}def f{number}():\n{body}{self.suite(depth)}{call}{self.suite(depth)}{call}"

    def indented(self, depth: int, first: str = "") -> str:
        return indent(self.suite(depth, first=first), _STEP)


# Running them


class _Numbered:
    """What remembers a number, and takes that of what is added."""

    k = 0

    def __iadd__(self, other: _Numbered) -> _Numbered:  # noqa: PYI034 - the name is bound to the other
        return other


class _E(_Numbered, Exception):  # noqa: N818 - short, as in the programs
    pass


class _Other(_Numbered, Exception):  # noqa: N818
    pass


class _Row(_Numbered, list[object]):  # type: ignore[misc]  # what is added replaces it
    pass


class _Overrun(BaseException):
    """More turns than a way may have; what is caught in the program ends by itself."""


class _Way:
    """One run: each choice is the next of those given, or the first there is."""

    def __init__(self, choices: list[int], choose: Callable[[int], int]) -> None:
        self.choices = choices
        self.options: list[int] = []
        self.choose = choose
        self.raised = self.turns = 0
        self.risky = False
        self.seen: Pairs = set()

    def choice(self, count: int) -> int:
        place = len(self.options)
        self.options.append(count)
        if place == len(self.choices):
            self.choices.append(self.choose(count))
        return self.choices[place]

    def risk(self) -> None:
        if self.risky and self.raised < _MOST_RAISED:
            kind = self.choice(3)
            if kind:
                self.raised += 1
                raise _E if kind == 1 else _Other

    def turn(self) -> None:
        self.turns += 1
        if self.turns > _MOST_TURNS:
            raise _Overrun

    def run(self, text: str) -> None:
        self.risky = "try:" in text or "keep(" in text
        way = self

        class V(_Numbered):
            def __init__(self, k: int) -> None:
                self.k = k

            def __bool__(self) -> bool:
                return bool(way.choice(2))

            def __lt__(self, other: object) -> bool:
                return True

            def __gt__(self, other: object) -> bool:
                return bool(way.choice(2))

        class Keep(V):
            def __enter__(self) -> Self:
                return self

            def __exit__(
                self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
            ) -> bool:
                return kind is not None and kind is not _Overrun and bool(way.choice(2))

        def v(k: int) -> V:
            way.risk()
            return V(k)

        def keep(k: int) -> Keep:
            way.risk()
            return Keep(k)

        def c() -> bool:
            way.risk()
            return way.turns > _MOST_TURNS or bool(way.choice(2))

        def each(k: int, parts: int = 1) -> Iterator[object]:
            way.risk()
            for _ in range(2):
                way.risk()
                if not way.choice(2):
                    return
                yield V(k) if parts == 1 else (V(k), 0)

        def see(use: int, value: _Numbered) -> bool:
            way.seen.add((use, value.k))
            way.risk()
            return True

        def tag(value: _Numbered, k: int) -> bool:
            value.k = k
            way.risk()
            return bool(way.choice(2))

        def some() -> object:
            way.risk()
            return (V(0), _Row([V(0), 1]), _Row([2, V(0)]))[way.choice(3)]

        def makes(k: int) -> Callable[[object], V]:
            return lambda _: v(k)

        made = {name: V(int(name.removeprefix("made_"))) for name in re.findall(r"made_\d+", text)}
        before = {name: sys.modules[name] for name in made if name in sys.modules}
        sys.modules.update(made)
        scope = {
            "v": v, "keep": keep, "c": c, "each": each, "see": see, "tag": tag, "some": some, "makes": makes, "V": V,
            "E": _E, "Other": _Other, "risk": way.risk, "turn": way.turn,
        }  # fmt: skip
        try:
            with contextlib.suppress(_E, _Other, _Overrun, AssertionError, NameError, SystemExit):
                exec(compiled(text), scope)  # noqa: S102 - it is made above
        finally:
            for name in made:
                del sys.modules[name]
            sys.modules.update(before)


@functools.lru_cache(maxsize=1)
def compiled(text: str) -> CodeType:
    return compile(text, "program", "exec", dont_inherit=True)


def observed(text: str, most: int, seed: int) -> tuple[Pairs, bool]:
    """What is seen on all ways, and whether these are all of them: else more are taken at random."""
    seen: Pairs = set()
    choices: list[int] = []
    for _ in range(most):
        way = _Way(choices, lambda count: 0)  # noqa: ARG005
        way.run(text)
        seen |= way.seen
        choices = way.choices
        while choices and choices[-1] == way.options[len(choices) - 1] - 1:
            choices.pop()
        if not choices:
            return seen, True
        choices[-1] += 1
    any_ = random.Random(seed)  # noqa: S311
    for _ in range(most):
        way = _Way([], lambda count: any_.randrange(count) if any_.random() < 0.5 else 0)
        way.run(text)
        seen |= way.seen
    return seen, False


# Reading them


def context_of(text: str) -> Context:
    source = SourceFile("program.py", text)
    return Context(Tree(cst.parse_module(text)), source, Settings(()))


def predicted(text: str) -> Pairs:
    """The bindings that reach each use."""
    context = context_of(text)
    found: Pairs = set()
    for call in context.tree.of(cst.Call):
        match call:
            case cst.Call(
                func=cst.Name(value="see"),
                args=[cst.Arg(value=cst.Integer(value=use)), cst.Arg(value=cst.Name() as name)],
            ):
                found |= {
                    (int(use), number_of(binding, context))
                    for binding in context.reaching(name)
                    if not isinstance(binding.node, cst.AnnAssign) or binding.node.value is not None
                }
    return found


def number_of(binding: Binding, context: Context) -> int:
    """What a binding makes its value remember."""
    if binding.target:
        return int(binding.target.removeprefix("made_"))
    node = binding.node
    where: cst.CSTNode | None = binding.value
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        where = node.decorators[0]
    elif isinstance(node, cst.ExceptHandler):
        where = node.body.body[0]
    elif isinstance(node, cst.MatchAs):
        case = next(above for above in context.tree.ancestors(node) if isinstance(above, cst.MatchCase))
        where = case.guard if case.guard is not None else case.body.body[0]
    assert where is not None
    for call in descendants(where):
        match call:
            case cst.Call(func=cst.Name(value=maker), args=arguments) if maker in _MAKERS:
                for argument in arguments:
                    if isinstance(argument.value, cst.Integer):
                        return int(argument.value.value)
    raise AssertionError(context.code(node))
