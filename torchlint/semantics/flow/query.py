"""Predicates that ask themselves, of another node: each answered once, and at rest where they depend on each other."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlint.semantics.values.fixpoint import Questions

QuestionT = TypeVar("QuestionT", bound="Callable[..., Any]")


def query(*, bottom: object) -> Callable[[QuestionT], QuestionT]:
    """Make a question of a function of a node, the context, and whatever else can be hashed.

    It may ask itself, and others that ask it, without counting how deep: what depends on its own answer is taken for
    `bottom` first, and asked again until no answer changes (`Questions.settled`). So `bottom` is what the function
    gives where nothing is known, mostly False or None. The function must hang on its arguments alone, and return: what
    it yields could not be remembered.
    """

    def decorate(find: QuestionT) -> QuestionT:
        @wraps(find)
        def ask(subject: object, context: Any, *more: object) -> object:  # noqa: ANN401 - the context knows this package
            questions: Questions = context.kinds
            return questions.settled((find, subject, *more), bottom, lambda _: find(subject, context, *more), subject)

        return cast("QuestionT", ask)

    return decorate
