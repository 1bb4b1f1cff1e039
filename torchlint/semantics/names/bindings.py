"""What a name means at a place: scopes, bindings, the bindings that reach a use, qualified names."""

from __future__ import annotations

import builtins
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from operator import attrgetter, itemgetter

import libcst as cst

from torchlint.semantics.knowledge.conventions.packages import STAR_IMPORTED
from torchlint.semantics.names.reaching import Reaching
from torchlint.semantics.names.scopes import Binder, Binding, Bodied, ComprehensionNode, Scope, ScopeNode
from torchlint.semantics.names.spelling import dotted, final_part, last_part, method_name
from torchlint.syntax.tree import Comprehension, Tree

__all__ = [
    "Binder",
    "Binding",
    "Names",
    "Scope",
    "canonical",
    "dotted",
    "final_part",
    "last_part",
    "method_name",
    "parameters",
]

_BUILTINS = frozenset(dir(builtins))
_FIRST = itemgetter(0)
_EFFECT = attrgetter("effect")
# Where the same thing has several homes, its documented one.
_CANONICAL_PREFIXES = (
    ("torch.utils.data.dataloader.", "torch.utils.data."),
    ("torch.utils.data.dataset.", "torch.utils.data."),
    ("torch.autograd.variable.", "torch.autograd."),
    ("torch.autograd.grad_mode.", "torch."),
    ("torch.nn.parallel.data_parallel.", "torch.nn.parallel."),
    ("torch.nn.parallel.distributed.", "torch.nn.parallel."),
    ("torch.optim.lr_scheduler.", "torch.optim.lr_scheduler."),
    ("pytorch_lightning.", "lightning.pytorch."),
    ("lightning.LightningModule", "lightning.pytorch.LightningModule"),
    ("lightning.LightningDataModule", "lightning.pytorch.LightningDataModule"),
    ("lightning.Trainer", "lightning.pytorch.Trainer"),
)


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """The documented home of a qualified name."""
    if name.startswith("torch.nn.modules.") and name.count(".") >= 4:
        return "torch.nn." + name.rpartition(".")[2]
    for prefix, home in _CANONICAL_PREFIXES:
        if name.startswith(prefix):
            return home + name[len(prefix) :]
    return name


class Names:
    """Scopes and bindings of one module."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._scopes: dict[cst.CSTNode, Scope] = {}
        # Where in source order another scope begins, or goes on behind another, and which.
        self._begins: list[int] = [0]
        self._scope_from: list[Scope] = []
        self._read: dict[str, list[cst.Name]] = {}
        # The bindings of a scope's names, and the uses of bindings by their identity, each put together once.
        self._bound: dict[tuple[Scope, str], tuple[Binding, ...]] = {}
        self._using: dict[str, dict[int, list[cst.Name]]] = {}
        self._reaching: dict[cst.Name, tuple[Binding, ...]] = {}
        self._captured: dict[tuple[str, int], bool] = {}
        self.flow = Reaching(tree, self.scope_of, self.lookup)
        self._qualified: dict[cst.CSTNode, str | None] = {}
        self.star_imports: list[str] = []
        self.module = self._scopes[tree.module] = Scope(tree.module, None)
        self._scope_from.append(self.module)
        self._find_scopes()
        self._bind_all()

    # Scopes

    def _scope(self, node: ScopeNode) -> Scope:
        found = self._scopes.get(node)
        if found is None:
            found = self._scopes[node] = Scope(node, self.scope_of(node))
        return found

    def _find_scopes(self) -> None:
        """Note from which place in source order on names are looked up in which scope."""
        stack = [(self.tree.end(self.tree.module), self.module)]
        for start, end, node in sorted(self._stretches(), key=_FIRST):
            while stack[-1][0] < start:
                self._begins.append(stack.pop()[0] + 1)
                self._scope_from.append(stack[-1][1])
            around = stack[-1][1]
            if node is None:
                assert around.parent is not None
                scope = around.parent
            else:
                scope = self._scopes[node] = Scope(node, around)
            stack.append((end, scope))
            self._begins.append(start)
            self._scope_from.append(scope)
        for end, _ in stack[:0:-1]:
            stack.pop()
            self._begins.append(end + 1)
            self._scope_from.append(stack[-1][1])

    def _stretches(self) -> Iterator[tuple[int, int, ScopeNode | None]]:
        """Where scopes begin and end; None for the outermost iterable of one, which belongs to the scope around it."""
        of, place, end = self.tree.of, self.tree.place, self.tree.end
        bodied: list[Bodied] = [*of(cst.FunctionDef), *of(cst.Lambda), *of(cst.ClassDef)]
        for node in bodied:
            yield place(node.body), end(node), node
        comprehensions: list[ComprehensionNode] = [
            *of(cst.ListComp), *of(cst.SetComp), *of(cst.DictComp), *of(cst.GeneratorExp)
        ]  # fmt: skip
        for comprehension in comprehensions:
            yield place(comprehension) + 1, end(comprehension), comprehension
            iterable = comprehension.for_in.iter
            yield place(iterable), end(iterable), None

    def scope_of(self, node: cst.CSTNode) -> Scope:
        """The scope in which a name at this place is looked up."""
        return self._scope_from[bisect_right(self._begins, self.tree.places.get(id(node), 0)) - 1]

    def class_scope(self, node: cst.ClassDef) -> Scope:
        """The scope of a class body."""
        return self._scope(node)

    # Bindings

    def _bind_all(self) -> None:
        of = self.tree.of
        for node in of(cst.Global):
            self.scope_of(node).globals.update(item.name.value for item in node.names)
        for outer in of(cst.Nonlocal):
            self.scope_of(outer).nonlocals.update(item.name.value for item in outer.names)
        for assign in of(cst.Assign):
            for target in assign.targets:
                self._bind_target(target.target, assign, assign.value, Binder.ASSIGN)
        for annotated in of(cst.AnnAssign):
            binder = Binder.ANNOTATION if annotated.value is None else Binder.ASSIGN
            self._bind_target(annotated.target, annotated, annotated.value, binder)
        for augmented in of(cst.AugAssign):
            self._bind_target(augmented.target, augmented, augmented.value, Binder.AUGMENTED)
        for walrus in of(cst.NamedExpr):
            self._bind_walrus(walrus)
        self._bind_blocks()
        self._bind_imports()
        for bindings in (found for scope in self._scopes.values() for found in scope.bindings.values()):
            bindings.sort(key=_EFFECT)

    def _bind_blocks(self) -> None:
        """Names bound by loops, `with`, functions, classes, handlers and patterns."""
        of = self.tree.of
        for loop in of(cst.For):
            self._bind_target(loop.target, loop, loop.iter, Binder.LOOP, self.tree.place(loop.body))
        for comp in of(cst.CompFor):
            self._bind_target(comp.target, comp, comp.iter, Binder.LOOP, self.tree.place(comp), self._comp_scope(comp))
        for with_ in of(cst.With):
            for item in with_.items:
                if item.asname is not None:
                    effect = self.tree.end(item)
                    self._bind_target(item.asname.name, with_, item.item, Binder.CONTEXT, effect)
        functions: list[cst.FunctionDef | cst.Lambda] = [*of(cst.FunctionDef), *of(cst.Lambda)]
        for function in functions:
            self._bind_function(function)
        for class_ in of(cst.ClassDef):
            self._add(class_.name.value, Binder.CLASS, class_, None, self.tree.end(class_), scope=self.scope_of(class_))
        handlers: list[cst.ExceptHandler | cst.ExceptStarHandler] = [
            *of(cst.ExceptHandler),
            *of(cst.ExceptStarHandler),
        ]
        for handler in handlers:
            if handler.name is not None:
                self._bind_target(handler.name.name, handler, None, Binder.OTHER, self.tree.place(handler.body))
        patterns: list[cst.MatchAs | cst.MatchStar] = [*of(cst.MatchAs), *of(cst.MatchStar)]
        for pattern in patterns:
            if pattern.name is not None:
                self._add(pattern.name.value, Binder.OTHER, pattern, None, self.tree.place(pattern))

    def _bind_imports(self) -> None:
        of = self.tree.of
        for import_ in of(cst.Import):
            self._bind_imported(import_.names, import_, "")
        for from_ in of(cst.ImportFrom):
            self._bind_from(from_)

    def _comp_scope(self, comp: cst.CompFor) -> Scope:
        node = self.tree.parent(comp)
        while not isinstance(node, Comprehension):
            assert node is not None
            node = self.tree.parent(node)
        return self._scope(node)

    def _bind_walrus(self, walrus: cst.NamedExpr) -> None:
        scope = self.scope_of(walrus)
        while isinstance(scope.node, Comprehension) and scope.parent is not None:
            scope = scope.parent
        self._bind_target(walrus.target, walrus, walrus.value, Binder.ASSIGN, scope=scope)

    def _bind_function(self, function: cst.FunctionDef | cst.Lambda) -> None:
        if isinstance(function, cst.FunctionDef):
            end = self.tree.end(function)
            self._add(function.name.value, Binder.FUNCTION, function, None, end, scope=self.scope_of(function))
        inside = self._scope(function)
        effect = self.tree.place(function.body)
        for parameter in parameters(function):
            self._add(parameter.name.value, Binder.PARAMETER, parameter, parameter.default, effect, scope=inside)

    def _bind_from(self, from_: cst.ImportFrom) -> None:
        base = "." * len(from_.relative) + (dotted(from_.module) or "")
        if isinstance(from_.names, cst.ImportStar):
            self.star_imports.append(base)
            return
        self._bind_imported(from_.names, from_, base if base.endswith(".") else f"{base}.")

    def _bind_imported(self, aliases: Iterable[cst.ImportAlias], node: cst.CSTNode, prefix: str) -> None:
        end, scope = self.tree.end(node), self.scope_of(node)
        for alias in aliases:
            full = prefix + (dotted(alias.name) or "")
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                name = alias.asname.name.value
            else:
                name = full.removeprefix(prefix).partition(".")[0]
                full = prefix + name
            self._add(name, Binder.IMPORT, node, None, end, target=full, scope=scope)

    def _bind_target(
        self,
        target: cst.CSTNode,
        node: cst.CSTNode,
        value: cst.BaseExpression | None,
        binder: Binder,
        effect: int | None = None,
        scope: Scope | None = None,
        path: tuple[int, ...] = (),
    ) -> None:
        match target:
            case cst.Name(value=name):
                self._add(
                    name, binder, node, value, self.tree.end(node) if effect is None else effect, path, scope=scope
                )
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                effect = self.tree.end(node) if effect is None else effect
                starred = next(
                    (place for place, part in enumerate(elements) if isinstance(part, cst.StarredElement)), None
                )
                for place, element in enumerate(elements):
                    step = place if starred is None or place < starred else -1 if place == starred else -2
                    self._bind_target(element.value, node, value, binder, effect, scope, (*path, step))

    def _add(
        self,
        name: str,
        binder: Binder,
        node: cst.CSTNode,
        value: cst.BaseExpression | None,
        effect: int,
        path: tuple[int, ...] = (),
        target: str = "",
        scope: Scope | None = None,
    ) -> None:
        scope = own = scope or self.scope_of(node)
        if name in scope.globals:
            scope = self.module
        elif name in scope.nonlocals and scope.parent is not None:
            scope = self._owner(name, scope.parent) or scope
        binding = Binding(name, binder, node, value, effect, path, target, scope is not own)
        scope.bindings.setdefault(name, []).append(binding)

    def _owner(self, name: str, scope: Scope | None) -> Scope | None:
        while scope is not None:
            if name in scope.bindings and not scope.is_class:
                return scope
            scope = scope.parent
        return None

    # Uses

    def lookup(self, node: cst.Name) -> tuple[Scope | None, tuple[Binding, ...]]:
        """The scope that owns the name at this use, and all its bindings there."""
        name = node.value
        scope: Scope | None = self.scope_of(node)
        first = scope
        while scope is not None:
            if name in scope.globals:
                scope = self.module
            found = self._bound.get((scope, name))
            if found is None and name in scope.bindings:
                found = self._bound[scope, name] = tuple(scope.bindings[name])
            if found and (scope is first or not scope.is_class):
                return scope, found
            scope = scope.parent
        return None, ()

    def uses(self, binding: Binding) -> list[cst.Name]:
        """The places that read what the binding gives its name, or change it in place, in source order."""
        if binding.name not in self._using:
            using = self._using[binding.name] = {}
            for name in self._looked_up(binding.name):
                for read in self.reaching(name):
                    using.setdefault(id(read), []).append(name)
        return self._using[binding.name].get(id(binding), [])

    def _looked_up(self, text: str) -> list[cst.Name]:
        """Every name of this text that is read or changed in place."""
        found = self._read.get(text)
        if found is None:
            found = self._read[text] = [
                name
                for name in self.spelt(text)
                if self.is_read(name) or isinstance(self.tree.parent(name), cst.AugAssign)
            ]
        return found

    def spelt(self, text: str) -> list[cst.Name]:
        """Every node that is a name of this text, whatever it stands for, in source order."""
        return self._spelt.get(text, [])

    def is_captured(self, text: str, scope: Scope) -> bool:
        """Whether a function or class inside a scope looks at its name; what a comprehension does is done there."""
        key = text, id(scope)
        found = self._captured.get(key)
        if found is None:
            found = self._captured[key] = any(
                self.lookup(name)[0] is scope and self._scope_around(name) is not scope for name in self.spelt(text)
            )
        return found

    def _scope_around(self, name: cst.Name) -> Scope:
        """The scope that a name stands in; of a comprehension, the one around that."""
        scope = self.scope_of(name)
        while isinstance(scope.node, Comprehension) and scope.parent is not None:
            scope = scope.parent
        return scope

    @cached_property
    def _spelt(self) -> dict[str, list[cst.Name]]:
        found: dict[str, list[cst.Name]] = {}
        for name in self.tree.of(cst.Name):
            found.setdefault(name.value, []).append(name)
        return found

    def reaching(self, node: cst.Name) -> tuple[Binding, ...]:
        """The bindings whose value the name may hold at this use, in source order."""
        found = self._reaching.get(node)
        if found is None:
            scope, found = self.lookup(node)
            if scope is not None and (len(found) > 1 or scope.is_class):
                found = self._flowing(node, scope, found)
            self._reaching[node] = found
        return found

    def _flowing(self, node: cst.Name, scope: Scope, bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
        found, unbound = self.flow.bindings(node, scope, bindings)
        if not (unbound and scope.is_class):
            return found or bindings
        # A name that a class body binds, but has not yet, is looked up in the module: functions around it are left out.
        others = tuple(self.module.bindings.get(node.value, ()))
        if len(others) > 1:
            others = self.flow.bindings(node, self.module, others)[0]
        return tuple(sorted((*found, *others), key=_EFFECT)) or bindings

    def is_read(self, node: cst.Name) -> bool:
        """Whether the name stands for its value here, not as a target, a parameter, a keyword or an attribute."""
        parent = self.tree.parent(node)
        match parent:
            case cst.Attribute(attr=attr) if attr is node:
                return False
            case cst.Arg(keyword=keyword) if keyword is node:
                return False
            case cst.Param(name=name) if name is node:
                return False
            case cst.FunctionDef() | cst.ClassDef() | cst.ImportAlias() | cst.AsName() | cst.NameItem():
                return False
        child: cst.CSTNode = node
        while isinstance(parent, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
            child, parent = parent, self.tree.parent(parent)
        return getattr(parent, "target", None) is not child

    # Qualified names

    def qualified(self, node: cst.CSTNode) -> str | None:
        """`torch.nn.Conv2d` for whatever expression names it here; None where it isn't certain.

        Builtins go by their bare name, relative imports with their dots.
        """
        # Chains of names may be longer than the interpreter's stack is deep.
        asked: list[cst.CSTNode] = []
        result: str | cst.CSTNode | None = node
        while isinstance(result, cst.CSTNode):
            if result in self._qualified:
                result = self._qualified[result]
                break
            self._qualified[result] = None  # a name that is defined through itself has none
            asked.append(result)
            try:
                result = self._qualify(result)
            except RecursionError:
                for each in asked:
                    del self._qualified[each]
                raise
        for each in reversed(asked):
            if isinstance(each, cst.Attribute) and result:
                result = canonical(f"{result}.{each.attr.value}")
            self._qualified[each] = result
        return result

    def _qualify(self, node: cst.CSTNode) -> str | cst.CSTNode | None:
        """The name of a node, or another node whose name it has; that of an attribute begins with that of its value."""
        if isinstance(node, cst.Attribute):
            return node.value
        if not isinstance(node, cst.Name):
            return None
        bindings = self.reaching(node)
        if not bindings:
            return self._unbound(node.value)
        if len(bindings) == 1:
            return canonical(bindings[0].target) if bindings[0].binder is Binder.IMPORT else self._alias(bindings)
        imports = [binding for binding in bindings if binding.binder is Binder.IMPORT]
        if not imports:
            return self._alias(bindings)
        if self._replaces(imports[-1], imports[:-1]):
            imports = imports[-1:]
        targets = {binding.target for binding in imports}
        fallbacks = [binding for binding in bindings if binding.binder is not Binder.IMPORT]
        if len(targets) != 1 or not all(self._is_fallback(binding, imports) for binding in fallbacks):
            return self._preferred(targets) if not fallbacks else None
        return canonical(targets.pop())

    def _replaces(self, last: Binding, others: list[Binding]) -> bool:
        """Whether an import runs each time that one of the others has run: it stands on a line below them."""
        line = self.tree.parent(last.node)
        suite = self.tree.parent(line) if line is not None else None
        return isinstance(suite, (cst.Module, cst.IndentedBlock)) and all(
            self.tree.within(other.node, suite) for other in others
        )

    @staticmethod
    def _preferred(targets: set[str]) -> str | None:
        """Of imports that stand in for each other the one whose last part they share, torch's own first."""
        if len({target.rpartition(".")[2] for target in targets}) != 1:
            return None
        torch = sorted(target for target in targets if target.startswith("torch."))
        return canonical(torch[0]) if torch else None

    @staticmethod
    def _alias(bindings: tuple[Binding, ...]) -> cst.CSTNode | None:
        """Follow `DataLoader = torch.utils.data.DataLoader` by one step."""
        if len(bindings) != 1 or bindings[0].binder is not Binder.ASSIGN or bindings[0].path:
            return None
        value = bindings[0].value
        return value if isinstance(value, (cst.Name, cst.Attribute)) else None

    def _is_fallback(self, binding: Binding, imports: list[Binding]) -> bool:
        """`torch = None` where an import failed: on a way that does not pass the imports."""
        return binding.binder in (Binder.ASSIGN, Binder.CLASS, Binder.FUNCTION) and any(
            isinstance(self.tree.parent(above), (cst.ExceptHandler, cst.If, cst.Else))
            and not any(self.tree.within(each.node, above) for each in imports)
            for above in self.tree.ancestors(binding.node)
        )

    def _unbound(self, name: str) -> str | None:
        if name in _BUILTINS or (name == "torch" and self._binds_no_torch):
            return name
        for module in self.star_imports:
            if module.startswith("torch") and name in _STAR_NAMES.get(module, ()):
                return canonical(f"{module}.{name}")
        # A star import from elsewhere in the project brings along what that module imports.
        return _BROUGHT_ALONG[name] if self.star_imports and STAR_IMPORTED.suggests(name) else None

    @cached_property
    def _binds_no_torch(self) -> bool:
        """Whether parts of torch are imported, and no scope has a `torch`: `import torch.nn as nn` binds none."""
        return "torch" in self.imported and not any("torch" in scope.bindings for scope in self._scopes.values())

    # Convenience

    @cached_property
    def imported(self) -> frozenset[str]:
        """The top-level packages that the module imports, `torch` among them."""
        found = {
            binding.target.partition(".")[0]
            for scope in self._scopes.values()
            for bindings in scope.bindings.values()
            for binding in bindings
            if binding.binder is Binder.IMPORT
        }
        return frozenset(found | {name.partition(".")[0] for name in self.star_imports})


def parameters(function: cst.FunctionDef | cst.Lambda) -> Iterator[cst.Param]:
    """All parameters in order, `*args` and `**kwargs` too."""
    params = function.params
    yield from params.posonly_params
    yield from params.params
    if isinstance(params.star_arg, cst.Param):
        yield params.star_arg
    yield from params.kwonly_params
    if params.star_kwarg is not None:
        yield params.star_kwarg


def _star_names() -> dict[str, frozenset[str]]:
    from torchlint.semantics.knowledge.torch_signatures import MODULES, OPTIMIZERS

    return {
        "torch.nn": MODULES | {"functional", "init", "Module", "Parameter", "DataParallel", "parallel"},
        "torch.optim": OPTIMIZERS,
        "torch.utils.data": frozenset({"DataLoader", "Dataset", "IterableDataset", "TensorDataset"}),
    }


_STAR_NAMES = _star_names()
_BROUGHT_ALONG = {
    "torch": "torch",
    "nn": "torch.nn",
    "np": "numpy",
    "F": "torch.nn.functional",
    "optim": "torch.optim",
    "DataLoader": "torch.utils.data.DataLoader",
    "Dataset": "torch.utils.data.Dataset",
    "TensorDataset": "torch.utils.data.TensorDataset",
    "Variable": "torch.autograd.Variable",
}
