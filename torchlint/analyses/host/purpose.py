"""What a value read from the device is used for: to be logged some time, or to decide what runs next."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from torchlint.facts import Purpose
from torchlint.semantics.context import Context
from torchlint.semantics.flow.guards import Role
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.functions import (
    COLLECTING_METHOD,
    CPU_OPERATION,
    CTC,
    DECODING_METHOD,
    SHOWING_FUNCTION,
)
from torchlint.semantics.knowledge.conventions.packages import HOST_LIBRARY
from torchlint.semantics.names.applied import applied
from torchlint.semantics.names.bindings import Binding, dotted, final_part
from torchlint.semantics.names.loop_headers import walks_keys
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import Comprehension, descendants, speaks_of

_CONVERSIONS = frozenset(
    "float int round abs min max sum str bool format repr array asarray sqrt exp log isclose mean".split()
)
_ARITHMETIC = frozenset(
    "add add_ sub sub_ mul mul_ div div_ fill_ clamp clamp_ pow pow_ lerp lerp_ addcmul_ addcdiv_ maximum minimum "
    "true_divide rsub mean sum".split()
)


@query(bottom=Purpose.OTHER)
def purpose(read: cst.CSTNode, context: Context) -> Purpose:
    """What the value of the expression is used for."""
    child: cst.CSTNode = read
    for above in context.ancestors(read):
        match above:
            case cst.Call() if child is not above.func:
                found = Purpose.NEEDED if _is_told_to_ctc(child, above) else _passed_to(above, context)
                if found is Purpose.OTHER and _is_asked(above, context):
                    return Purpose.NEEDED
                if found is not None:
                    return found
            case cst.Index() | cst.Slice():
                return Purpose.NEEDED
            case cst.DictComp(key=key) | cst.DictElement(key=key) if child is key:
                return Purpose.NEEDED
            case cst.If() | cst.While() | cst.IfExp() if child is above.test:
                return (
                    Purpose.DEFER
                    if isinstance(above, cst.If) and _keeps_the_best(above, read, context)
                    else Purpose.NEEDED
                )
            case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot())]):
                return Purpose.DEFER  # `total is not None` asks for no number
            case cst.Assert() | cst.CompIf():
                return Purpose.NEEDED
            case cst.CompFor(target=target, iter=walked) if child is walked:
                element = target.elements[1].value if child is not read and isinstance(target, cst.Tuple) else target
                if isinstance(element, cst.Name) and _used(element, above, context) is Purpose.NEEDED:
                    return Purpose.NEEDED
            case cst.For():
                return Purpose.OTHER
            case cst.Return():
                return _returned(above, context)
            case cst.Assign() | cst.AnnAssign() | cst.AugAssign():
                return _assigned(above, context)
            case cst.Lambda():
                found_by = applied(above, context.tree, context.names)
                return Purpose.OTHER if found_by is None else _of_each(found_by.call, context)
            case cst.NamedExpr() | cst.BaseSmallStatement() | cst.BaseCompoundStatement():
                return Purpose.OTHER
        child = above
    return Purpose.OTHER


def _of_each(call: cst.Call, context: Context) -> Purpose:
    """What all is used for that a lambda gives: of `map` what that is used for, and what `sorted` goes by is needed."""
    return purpose(call, context) if context.qualified_name(call.func) == "map" else Purpose.NEEDED


def _is_asked(call: cst.Call, context: Context) -> bool:
    """Whether a condition asks for what an object answers: `if stopper.is_done(loss.item())`."""
    if not isinstance(call.func, cst.Attribute) or context.qualified_name(call.func) is not None:
        return False  # `any([loss.item() > limit])`
    child: cst.CSTNode = call
    for above in context.ancestors(call):
        match above:
            case cst.UnaryOperation() | cst.BooleanOperation() | cst.Comparison() | cst.ComparisonTarget():
                child = above
            case cst.If(test=test) | cst.While(test=test) | cst.IfExp(test=test):
                return child is test
            case _:
                return False
    return False


def _is_told_to_ctc(argument: cst.CSTNode, call: cst.Call) -> bool:
    """Whether a CTC loss is told the texts or the lengths, which cuDNN and others want on the CPU."""
    return argument is not call.args[0] and CTC.suggests(final_part(call.func).lower())


def _passed_to(call: cst.Call, context: Context) -> Purpose | None:
    """What a call makes of its argument; None where it only converts it."""
    name = context.qualified_name(call.func) or ""
    root, _, _ = name.partition(".")
    last = final_part(call.func)
    if HOST_LIBRARY.suggests(root) or SHOWING_FUNCTION.suggests(last) or (root == "numpy" and last.startswith("save")):
        return Purpose.NEEDED
    if CPU_OPERATION.suggests(last):
        return Purpose.NEEDED  # an operation that only the CPU has
    if context.frequencies.stepping.is_step(call):
        return Purpose.NEEDED  # what is done next, an environment has to be told
    if isinstance(call.func, cst.Attribute) and context.kind(call.func.value) is Kind.TENSOR:
        return Purpose.DEFER if last in _ARITHMETIC else Purpose.NEEDED
    if root == "torch" and last in ("tensor", "as_tensor", "full", "full_like"):
        return Purpose.OTHER
    if root == "torch":
        return Purpose.DEFER if last in _ARITHMETIC else Purpose.NEEDED
    if COLLECTING_METHOD.suggests(last):
        return Purpose.DEFER
    if last in _CONVERSIONS or root in ("math", "numpy") or name == "enumerate":
        return None
    if last == "range":
        return Purpose.NEEDED
    return Purpose.OTHER


def _keeps_the_best(statement: cst.If, read: cst.CSTNode, context: Context) -> bool:
    """`if loss.item() < best: best = loss.item()`."""
    code = context.code(read).strip("()")
    return any(
        isinstance(node, cst.Assign) and context.code(node.value).strip("()") == code
        for node in descendants(statement.body)
    )


def _returned(statement: cst.Return, context: Context) -> Purpose:
    """A training step's return value is what gets logged; of another function's, its callers tell."""
    function = context.function(statement)
    if not isinstance(function, cst.FunctionDef):
        return Purpose.OTHER
    found = {purpose(call, context) for call in context.calls.callers(function)}
    if Purpose.NEEDED not in found and context.frequencies.steps(function.body):
        return Purpose.DEFER
    found |= {Purpose(call.purpose) for call in context.elsewhere.callers(function)}
    return next((known for known in (Purpose.NEEDED, Purpose.DEFER) if known in found), Purpose.OTHER)


def _assigned(statement: cst.Assign | cst.AnnAssign | cst.AugAssign, context: Context) -> Purpose:
    targets = (
        [target.target for target in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
    )
    found: set[Purpose] = set()
    for target in targets:
        match target:
            case cst.Name():
                found.add(_used(target, statement, context))
            case cst.Tuple(elements=elements):
                found.update(
                    _used(part.value, statement, context) for part in elements if isinstance(part.value, cst.Name)
                )
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]):
                found.add(Purpose.DEFER)
            case _:
                found.add(Purpose.DEFER if isinstance(statement, cst.AugAssign) else Purpose.OTHER)
    if Purpose.NEEDED in found:
        return Purpose.NEEDED
    if Purpose.DEFER in found or isinstance(statement, cst.AugAssign):
        return Purpose.DEFER
    return Purpose.OTHER


def _used(name: cst.Name, statement: cst.CSTNode, context: Context) -> Purpose:
    """What the name is used for where the loop around the assignment repeats."""
    region = context.loop(statement) or context.function(statement) or context.tree.module
    found: set[Purpose] = set()
    for use in _reads_of(name.value, statement, region, context):
        found.add(_use(use, context))
    if Purpose.NEEDED in found:
        return Purpose.NEEDED
    return Purpose.DEFER if Purpose.DEFER in found else Purpose.OTHER


def _use(use: cst.Name, context: Context) -> Purpose:
    parent = context.parent(use)
    if isinstance(parent, cst.BinaryOperation):
        other = parent.right if parent.left is use else parent.left
        if context.kind(other) is Kind.TENSOR:
            return Purpose.DEFER
    return purpose(use, context)


def _reads_of(name: str, statement: cst.CSTNode, region: cst.CSTNode, context: Context) -> list[cst.Name]:
    return [
        node
        for node in context.uses.of(name, statement)
        if context.names.is_read(node) and context.tree.within(node, region)
    ]


def is_averaged(copy: cst.Call, context: Context) -> bool:
    """Whether a copy on the CPU only goes into a meter or a running total, directly or through its name.

    `meter.update(x.cpu().numpy())`, `total += x.cpu().sum()`; not a list that the copies are collected in.
    """
    statement = context.tree.statement(copy)
    for call in context.around(copy, cst.Call, within=statement):
        match call.func:
            case cst.Attribute(value=meter, attr=cst.Name(value="update" | "add")):
                return _may_be_meter(meter, context) and not _compares(call.args, context)
    match statement:
        case cst.AugAssign(value=value):
            return _reduces(value)
        case cst.Assign(targets=targets, value=value):
            names = {node.value for target in targets for node in descendants(target) if isinstance(node, cst.Name)}
        case _:
            return False
    loop = context.frequencies.batch_loop(copy)
    if loop is None or not names or _is_looked_into(names, loop):
        return False
    for node in descendants(loop.body):
        match node:
            case cst.Call(func=cst.Attribute(value=meter, attr=cst.Name(value="update" | "add")), args=args):
                if any(isinstance(argument.value, cst.Name) and argument.value.value in names for argument in args):
                    return _may_be_meter(meter, context) and not _compares(args, context)
            case cst.AugAssign(value=added) if _reduces(added) or _reduces(value):
                # In an inner loop something is worked out of the copy, class by class.
                if context.loop(node) is loop and speaks_of(added, names):
                    return True
    return False


def _may_be_meter(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is no dictionary or set, which keeps what it is given."""
    return context.kind(node) not in (Kind.MAPPING, Kind.SEQUENCE)


def _is_looked_into(names: set[str], loop: cst.For | cst.While) -> bool:
    """Whether a meter is asked for more than an average of the copy: `meters[0].get_predictions(output)`."""
    return any(
        isinstance(node, cst.Call)
        and DECODING_METHOD.suggests(final_part(node.func))
        and any(isinstance(argument.value, cst.Name) and argument.value.value in names for argument in node.args)
        for node in descendants(loop.body)
    )


def _compares(args: Sequence[cst.Arg], context: Context) -> bool:
    """`metric.update(truth, predicted)`, of two arrays: what comes of it is worked out on the host."""
    kinds = [context.kind(argument.value) for argument in args]
    return sum(kind in (Kind.NDARRAY, Kind.TENSOR) for kind in kinds) > 1


def _reduces(value: cst.CSTNode) -> bool:
    """Whether the expression makes one number of a tensor."""
    return any(
        isinstance(node, cst.Call)
        and isinstance(node.func, (cst.Attribute, cst.Name))
        and (node.func.attr if isinstance(node.func, cst.Attribute) else node.func).value in _REDUCTIONS
        for node in descendants(value)
    )


_REDUCTIONS = frozenset("sum mean item float int max min".split())


def is_known_already(read: cst.CSTNode, tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the read stands in a branch that was taken because of the tensor: the CPU has waited by then."""
    wanted = dotted(tensor)
    return any(_asks_for(condition.test, wanted, context) for condition in context.conditions(read))


def _asks_for(test: cst.BaseExpression, wanted: str | None, context: Context) -> bool:
    return wanted is not None and any(
        dotted(node) == wanted and _is_looked_at(node, context) for node in descendants(test)
    )


def _is_looked_at(node: cst.CSTNode, context: Context) -> bool:
    """Whether a condition needs the value of the tensor, not its shape or whether it is there."""
    match context.parent(node):
        case cst.Attribute(attr=cst.Name(value=name)) as attribute if attribute.attr is not node:
            return name in ("item", "any", "all", "max", "min", "sum", "isnan", "data")
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator)]):
            return not isinstance(operator, (cst.Is, cst.IsNot))
        case cst.Arg() as argument:
            call = context.parent(argument)
            called = (context.qualified_name(call.func) or "") if isinstance(call, cst.Call) else ""
            return called.startswith(("torch.isnan", "torch.isinf", "torch.isfinite", "math.", "float", "numpy."))
        case cst.ComparisonTarget() | cst.If() | cst.BooleanOperation() | cst.UnaryOperation():
            return True
    return False


def is_measured(copy: cst.CSTNode, context: Context) -> bool:
    """Whether a function of one's own is given an array, and its result is kept: a measure that works in NumPy."""
    match copy:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="numpy"))):
            argument = context.parent(copy)
            call = context.parent(argument) if isinstance(argument, cst.Arg) else None
            if not isinstance(call, cst.Call) or not isinstance(context.parent(call), cst.Assign):
                return False
            name = context.qualified_name(call.func)
            is_function = name is not None or isinstance(call.func, cst.Name)
            return is_function and not (name or "").startswith(("numpy.", "torch."))
    return False


def is_copied_before(copy: cst.Call, context: Context) -> bool:
    """Whether statements above it in the same block have copied each tensor that the copy is made of.

    `names.extend(hits.cpu())` and then `total += (hits > 0).cpu().sum()`: the CPU has waited by then.
    """
    wanted = {
        node.value for node in descendants(copy) if isinstance(node, cst.Name) and context.kind(node) is Kind.TENSOR
    }
    line = context.enclosing(copy, cst.SimpleStatementLine)
    block = context.parent(line) if line is not None else None
    if not wanted or not isinstance(block, cst.IndentedBlock):
        return False
    for earlier in block.body:
        if earlier is line:
            break
        for node in descendants(earlier):
            match node:
                case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="cpu" | "tolist"))):
                    wanted.discard(name)
    return not wanted


def is_element_read(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether a loop reads a tensor element by element: `t[i].item()`, `v.item()` for `v` in `t` or of `t[i]`.

    One `tolist()` before the loop would bring them all, whatever they are used for.
    """
    value = context.stands_for(tensor) if isinstance(tensor, cst.Name) else None
    tensor = value if isinstance(value, cst.Subscript) else tensor
    loop = _innermost(tensor, context)
    return loop is not None and _is_element(tensor, loop, context) and not walks_keys(loop)


def _is_element(tensor: cst.BaseExpression, loop: cst.For | Comprehension, context: Context) -> bool:  # type: ignore[valid-type]
    targets = _targets(loop)
    match tensor:
        case cst.Subscript(value=base, slice=parts):
            indexed = any(speaks_of(part, targets) for part in parts)
            return indexed and _is_outside(base, loop, context)
        case cst.BinaryOperation(left=left, right=right):
            return is_element_read(left, context) and is_element_read(right, context)
        case cst.Name(value=name) if name in targets:
            return any(
                binding.value is not None and _iterates_tensor(binding, context) for binding in context.reaching(tensor)
            )
    return False


def is_appended(read: cst.CSTNode, context: Context) -> bool:
    """Whether the value goes into a list as it is: `chosen.append(index.item())`, `chosen += [index.item()]`."""
    match context.parent(read):
        case cst.Arg() as argument:
            call = context.parent(argument)
            return (
                isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == "append"
            )
        case cst.Element() as element:
            listed = context.parent(element)
            added = context.parent(listed) if isinstance(listed, cst.List) and len(listed.elements) == 1 else None
            return isinstance(added, cst.AugAssign) and isinstance(added.operator, cst.AddAssign)
    return False


def _innermost(node: cst.CSTNode, context: Context) -> cst.For | Comprehension | None:  # type: ignore[valid-type]
    for guard in context.guards(node):
        if guard.role is Role.LOOP:
            return guard.node if isinstance(guard.node, cst.For) else None
        if guard.role is Role.EACH and isinstance(guard.node, Comprehension):
            return guard.node
    return None


def _targets(loop: cst.CSTNode) -> set[str]:
    target = loop.target if isinstance(loop, cst.For) else loop.for_in.target  # type: ignore[attr-defined]
    return {node.value for node in descendants(target) if isinstance(node, cst.Name)}


def _is_outside(base: cst.BaseExpression, loop: cst.CSTNode, context: Context) -> bool:
    """Whether what is indexed is there before the loop, and is a tensor, or nobody knows what."""
    names = [node for node in descendants(base) if isinstance(node, cst.Name)]
    root = dotted(base)
    if root is None or not names:
        return False
    return context.kind(base) in (Kind.TENSOR, Kind.UNKNOWN) and not context.is_bound_in(names[0], loop)


def _iterates_tensor(binding: Binding, context: Context) -> bool:
    assert binding.value is not None
    value = context.value(binding.value)
    match binding.value:
        case cst.Call(func=cst.Name(value="zip"), args=args) if binding.path and 0 <= binding.path[0] < len(args):
            return context.kind(args[binding.path[0]].value) is Kind.TENSOR
        case cst.Call(func=cst.Name(value="enumerate" | "zip" | "reversed"), args=args):
            return any(context.kind(argument.value) is Kind.TENSOR for argument in args)
    return value.kind is Kind.TENSOR and not value.batch
