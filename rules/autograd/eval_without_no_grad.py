"""A model evaluated with autograd on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Method, Node, Rule

if TYPE_CHECKING:
    import libcst as cst

    from ._shared.evaluation import Evaluation

RULE = Rule(
    name="eval-without-no-grad",
    code="TL401",
    group="autograd",
    summary="A model is evaluated with autograd on, which builds a graph that is never used.",
    since="0.1.0",
    fix=(Applicability.UNSAFE,),
    unsafe="tensors made under `torch.no_grad()` have no graph",
    yields_to=("volatile-has-no-effect",),
    doubts=(
        (Doubt.USE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.RARE, ""),
        (Doubt.RUNS_ONCE, ""),
        (Doubt.DEVICE_UNKNOWN, ""),
        (Doubt.SMALL, "A model that is tried out on made up inputs takes no memory that anybody misses."),
    ),
)
_KEPT = Message(
    "never-used",
    "`{model}(…)` builds an autograd graph that is never used",
    help="run it under `torch.no_grad()`; `.eval()` does not turn autograd off",
)
_DROPPED = Message(
    "dropped",
    "`{model}(…)` builds an autograd graph that every use of its output drops",
    help="run it under `torch.no_grad()`",
)
_FOLLOWS = Message(
    "follows",
    "`{model}(…)` builds an autograd graph, and no optimizer trains `{model}`",
    help="run it under `torch.no_grad()`",
)
_MIXED = Message(
    "mixed",
    "`{model}(…)` builds an unused autograd graph unless `{test}`",
    help="run it under `torch.set_grad_enabled({test})`",
)
_DROPS = ("detach", "item", "argmax", "multinomial", "numpy", "tolist", "sample")
# `.eval()` and `.train(False)`, and the names of functions that evaluate.
_TOKENS = (b".eval", b".train", b"val", b"test", b"pred", b"infer", b"sample", b"detect", b"recognize", b"demo")


@RULE.on(Node("FunctionDef", _TOKENS), Node("Module", _TOKENS))
def check(node: cst.FunctionDef | cst.Module, context: Context) -> Iterator[Flag]:
    """Flag the first call of a model in each stretch of code that only evaluates it."""
    from ._shared.evaluation import Evaluations

    for evaluation in context[Evaluations].within(node):
        yield _flag(_KEPT, evaluation, evaluation.doubts, context, is_fixed=not evaluation.doubts)


@RULE.on(*map(Method, _DROPS), Call("torch.argmax"), Call("torch.multinomial"), Node("Attribute", (b".data",)))
def check_dropped(node: cst.Call | cst.Attribute, context: Context) -> Iterator[Flag]:
    """Flag each call of a model of whose output nothing is used with its graph."""
    if hasattr(node, "attr") and node.attr.value != "data":
        return
    from torchlint.analyses.execution.hot import rate_doubts

    from ._shared.evaluation import Evaluations
    from ._shared.unused_graphs import is_alone, is_entered_unseen, unused_graphs

    for evaluation in unused_graphs(node, context):
        doubts = rate_doubts(evaluation.calls[0], context)
        if Doubt.UNCALLED not in doubts and is_entered_unseen(evaluation.calls[0], context):
            doubts = (*doubts, Doubt.UNCALLED)
        # What else the statement computes may want its graph.
        is_one = len(evaluation.calls) == 1 and context[Evaluations].is_model_call(evaluation.calls[0])
        is_fixed = not doubts and is_one and is_alone(evaluation.calls[0], context)
        flag = _flag(_DROPPED, evaluation, doubts, context, is_fixed=is_fixed)
        yield replace(flag, places=evaluation.calls[1:])


@RULE.on(Node("Module", (b"copy", b".load_state_dict", b"zip(")))
def check_followers(node: cst.Module, context: Context) -> Iterator[Flag]:
    """Flag the first call, in each function, of a network that only follows one that is trained."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.semantics.names.bindings import dotted

    from ._shared.training_graphs import Followers

    firsts: dict[object, Flag] = {}
    for call, is_fed in context[Followers].calls():
        home = context.function(call)
        if home in firsts:
            firsts[home] = replace(firsts[home], places=(*firsts[home].places, call))
            continue
        doubts = ((Doubt.USE_UNKNOWN,) if is_fed else ()) + rate_doubts(call, context)
        name = (dotted(call.func) or "the model").removesuffix(".forward")
        firsts[home] = Flag(call, _FOLLOWS.of(model=name), doubts=doubts)
    yield from firsts.values()


@RULE.on(Node("For", (b"backward",)))
def check_mixed(node: cst.For, context: Context) -> Iterator[Flag]:
    """Flag the first model that a loop calls which trains or evaluates, as an option says, with autograd on."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.semantics.names.bindings import dotted

    from ._shared.training_graphs import MixedLoops

    found = context[MixedLoops].mixed(node)
    if found is not None:
        said = context.shown(found.test)
        opposite = said.removeprefix("not ") if said.startswith("not ") else f"not {said}"
        claim = _MIXED.of(model=dotted(found.call.func) or "the model", test=said if found.holds else opposite)
        yield Flag(found.call, claim, doubts=(*found.doubts, *rate_doubts(found.call, context)))


def _flag(
    claim: Message, evaluation: Evaluation, doubts: tuple[Doubt, ...], context: Context, *, is_fixed: bool
) -> Flag:
    from torchlint.semantics.names.bindings import dotted

    from ._shared.no_grad import without_grad

    call = evaluation.calls[0]
    title, edits = without_grad(evaluation, context) if is_fixed else ("", ())
    return Flag(call, claim.of(model=dotted(call.func) or "the model"), title=title, edits=edits, doubts=doubts)
