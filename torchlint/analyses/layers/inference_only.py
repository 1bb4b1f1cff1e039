"""Networks that a program only uses: whoever makes one loads its weights at once, and puts it into evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.facts import Purpose
from torchlint.semantics.context import Context
from torchlint.semantics.flow.instances import MODULE_METHODS
from torchlint.semantics.names.bindings import dotted

_TRAINS = frozenset({"train", "parameters", "named_parameters"})


def is_only_served(class_: cst.ClassDef, context: Context, seen: tuple[cst.ClassDef, ...] = ()) -> bool:
    """Whether everybody who makes the class, in this file or another, only lets it answer.

    A part of a network is served where all the networks around it are. Nobody at all tells nothing.
    """
    if class_ in seen:
        return True
    found = [call.purpose == Purpose.SERVED.value for call in context.elsewhere.makers(class_)]
    for use in context.uses.of(class_.name.value, class_):
        site = context.parent(use)
        above = context.parent(site) if isinstance(site, cst.Arg) else None
        if isinstance(site, cst.Call) and site.func is use:
            owner = context.tree.enclosing_class(site)
            is_part = owner is not None and context.classes.is_module(owner)
            found.append(
                is_only_served(owner, context, (*seen, class_))
                if owner is not None and is_part
                else is_served(site, context)
            )
        elif isinstance(above, cst.ClassDef):
            found.append(is_only_served(above, context, (*seen, class_)))
        elif not (isinstance(above, cst.Call) and context.code(above.func) == "super"):
            return False
    return bool(found) and all(found)


def is_served(made: cst.Call, context: Context) -> bool:
    """Whether a new network is given weights where it is made, and is then for answers alone."""
    whole: cst.CSTNode = made
    while isinstance(method := context.parent(whole), cst.Attribute) and method.attr.value in MODULE_METHODS:
        call = context.parent(method)
        if not isinstance(call, cst.Call) or call.func is not method:
            return False
        whole = call
    match context.parent(whole):
        case cst.Assign(targets=[cst.AssignTarget(target=(cst.Name() | cst.Attribute()) as target)]):
            methods = set(_methods(target, context))
            return {"load_state_dict", "eval"} <= methods and methods.isdisjoint(_TRAINS)
    return False


def _methods(network: cst.Name | cst.Attribute, context: Context) -> Iterator[str]:
    """The methods that the function around an assignment calls on what it assigns: `eval` of `net.cuda().eval()`."""
    name, region = dotted(network), context.function(network)
    for attribute in context.tree.of(cst.Attribute):
        owner: cst.CSTNode = attribute.value
        while isinstance(owner, cst.Call) and isinstance(owner.func, cst.Attribute):
            owner = owner.func.value
        if dotted(owner) == name and context.function(attribute) is region:
            yield attribute.attr.value
