"""The waits that maintainers of serving engines fixed, in files of their shape (tests/serving): each is named.

A line ends in `# <- rule` for a warning and in `# <- rule?` for a note.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from laws import active, marks, places, unmarked

from torchlint.registry import all_rules

FILES = sorted((Path(__file__).parent / "serving").glob("*.py"))
# What no rule names yet, by file: a copy to where another tensor is, which may be the CPU; a list that indexes; a list
# in `copy_`.
AWAITED = {
    "allowed_tokens": {"copy-through-pageable-memory?"},
    "logits_indices": {"host-index-for-device-tensor?"},
    "positions_for_graphs": {"list-to-device-in-hot-path?"},
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_all_that_is_marked_is_named(path: Path) -> None:
    code = path.read_text("utf-8")
    wanted = Counter(marks(code))
    known = {rule.name for rule in all_rules()}
    rules = {name.rstrip("?") for _, name in wanted} & known
    found = Counter(places(unmarked(code), active(*rules))) if rules else Counter()
    assert wanted, path
    assert {name for _, name in wanted - found} <= AWAITED.get(path.stem, set())


def test_there_are_twenty() -> None:
    assert len(FILES) >= 20
