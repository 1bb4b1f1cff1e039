"""What a client may set."""

from __future__ import annotations

import pytest

from torchlint.config import Overrides
from torchlint.lsp.settings import KEYS, ClientSettings


def test_nothing_is_set() -> None:
    given: tuple[object, ...] = (
        None,
        {},
        [],
        "select",
        {"select": None, "configuration": "", "run": None, "logLevel": "debug"},
    )
    for values in given:
        assert ClientSettings.of(values) == (ClientSettings(), [])


def test_all_is_set() -> None:
    values = {
        "configuration": "strict.toml",
        "select": ["TL3"],
        "extendSelect": ["TL201"],
        "ignore": ["TL301"],
        "preview": True,
        "includeTests": False,
        "run": "onSave",
        "enable": False,
    }
    assert values.keys() == KEYS
    overrides = Overrides(
        config=("strict.toml",),
        select=("TL3",),
        extend_select=("TL201",),
        ignore=("TL301",),
        preview=True,
        include_tests=False,
    )
    assert ClientSettings.of(values) == (ClientSettings(overrides, "onSave", enable=False), [])


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"select": "TL3"}, "`torchlint.select` is 'TL3'; it has to be a list of rules"),
        ({"ignore": [1]}, "`torchlint.ignore` is [1]; it has to be a list of rules"),
        ({"preview": "yes"}, "`torchlint.preview` is 'yes'; it has to be a boolean"),
        ({"configuration": 3}, "`torchlint.configuration` is 3; it has to be a string"),
        ({"run": "always"}, "`torchlint.run` is 'always'; it can be `onType` or `onSave`"),
    ],
)
def test_what_is_wrong_counts_as_not_set(values: dict[str, object], problem: str) -> None:
    assert ClientSettings.of(values) == (ClientSettings(), [problem])
