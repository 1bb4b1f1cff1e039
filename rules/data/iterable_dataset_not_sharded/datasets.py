"""Iterable datasets that give all of their samples to whoever iterates over them, each worker of a loader included."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.texts import DRAWS_SAMPLES, SHARES_SAMPLES
from torchlint.semantics.knowledge.conventions.values import SAMPLE_SOURCE
from torchlint.semantics.names.bindings import last_part
from torchlint.semantics.names.loop_headers import iterables
from torchlint.syntax.tree import descendants


def construction(dataset: cst.BaseExpression, context: Context) -> cst.Call | None:
    """The call that made a dataset, where it is the only one that may have."""
    made = context.stands_for(dataset)
    return made if isinstance(made, cst.Call) else None


def repeats_in_workers(dataset: cst.Call, context: Context) -> bool:
    """Whether the class of a dataset, all in this module, goes over something finite and never asks for whom."""
    class_ = context.value(dataset).definition
    if not isinstance(class_, cst.ClassDef) or not isinstance(dataset.func, cst.Name):
        return False
    own = [part for part in context.classes.lineage(class_) if not isinstance(part, str)]
    others = [base for base in context.classes.lineage(class_) if isinstance(base, str)]
    if not any(base.rpartition(".")[2] == "IterableDataset" for base in others):
        return False
    if any(not base.startswith(("torch.utils.data.", "typing.", "object", "abc.")) for base in others):
        return False
    if any(_asks_for_its_part(part, context) for part in own):
        return False
    iterate = context.classes.method(class_, "__iter__")
    return iterate is not None and not iterate.decorators and _goes_over_all(iterate, context)


def _asks_for_its_part(class_: cst.ClassDef, context: Context) -> bool:
    """Whether code of a dataset asks which worker or process it runs in, or draws what it gives."""
    names = (context.qualified_name(node.func) or "" for node in descendants(class_) if isinstance(node, cst.Call))
    return any(name.startswith(_OF_PARTS) for name in names)


_OF_PARTS = ("torch.utils.data.get_worker_info", "torch.distributed.", "random.", "numpy.random.", "torch.rand")


def is_named_otherwise(dataset: cst.Call, context: Context) -> bool:
    """Whether names and words in the class of a dataset speak of parts, of chance, or of samples from elsewhere."""
    class_ = context.value(dataset).definition
    if not isinstance(class_, cst.ClassDef):
        return False
    own = [part for part in context.classes.lineage(class_) if not isinstance(part, str)]
    code = "".join(context.uncommented(part) for part in own)
    if SHARES_SAMPLES.suggests(code) or DRAWS_SAMPLES.suggests(code):
        return True
    iterate = context.classes.method(class_, "__iter__")
    return iterate is not None and any(
        SAMPLE_SOURCE.suggests(node.attr.value) and context.classes.self_class(node.value) is not None
        for node in descendants(iterate.body)
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name)
    )


def _goes_over_all(iterate: cst.FunctionDef, context: Context) -> bool:
    """Whether `__iter__` is one walk over lines, numbers or what an attribute holds, and returns when it has ended."""
    nodes = list(descendants(iterate.body))
    if any(isinstance(node, (cst.While, cst.Try)) for node in nodes):
        return False
    walked: list[cst.BaseExpression] = []
    for node in nodes:
        match node:
            case cst.For(iter=iterated) if any(isinstance(part, cst.Yield) for part in descendants(node)):
                walked.append(iterated)
            case cst.From(item=iterated):
                walked.append(iterated)
            case cst.Return(value=cst.Call(func=cst.Name(value="iter" | "map"), args=[*_, cst.Arg(value=iterated)])):
                walked.append(iterated)
    return bool(walked) and all(_is_all_there(part, context) for whole in walked for part in iterables(whole))


@query(bottom=False)
def _is_all_there(node: cst.BaseExpression, context: Context) -> bool:
    """Whether what is gone through is a file, numbers, or what an attribute holds, or was taken from such."""
    match node:
        case cst.Name():
            origins = context.origins(node, Through.PARTS | Through.ELEMENTS | Through.CONTEXTS)
            return origins.is_complete and all(_is_all_there(origin.node, context) for origin in origins.found)
        case cst.Attribute(value=cst.Name() as owner, attr=cst.Name()):
            return context.classes.self_class(owner) is not None
        case cst.Subscript(value=owner):
            return _is_all_there(owner, context)
        case cst.Call(args=args):
            name = context.qualified_name(node.func) or ""
            if name in ("open", "io.open", "gzip.open", "range", "sorted"):
                return True
            if name in ("csv.reader", "csv.DictReader", "list", "tuple", "len", "reversed", "enumerate", "zip", "iter"):
                return all(_is_all_there(argument.value, context) for argument in args[:1])
            return last_part(node.func) in ("readlines", "splitlines")
    return False
