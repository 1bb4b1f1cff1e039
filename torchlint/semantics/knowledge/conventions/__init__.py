"""The ways in which people call things, as data: what a name, a word or a comment suggests, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlint.semantics.knowledge.conventions.convention import Convention


def every() -> dict[str, Convention]:
    """All conventions by their ids, sorted."""
    from torchlint.semantics.knowledge.conventions import (  # a run needs a part of them, and no list
        comments,
        conditions,
        counts,
        functions,
        packages,
        texts,
        values,
    )
    from torchlint.semantics.knowledge.conventions.convention import Convention

    found = {
        each.id: each
        for module in (comments, conditions, counts, functions, packages, texts, values)
        for each in vars(module).values()
        if isinstance(each, Convention)
    }
    return dict(sorted(found.items()))
