"""Made-up samples in the place of torchvision's datasets, so that a program runs where there is nothing to download."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType

from torchlint.verify.inside.synthetic import standin
from torchlint.verify.inside.synthetic.datasets import KINDS, make_up, shorten

ENVIRONMENT = "TORCHLINT_SYNTHETIC_DATA"


def replace_datasets() -> None:
    """Do so if the environment asks for it: `TORCHLINT_SYNTHETIC_DATA` is the number of samples of each dataset.

    Of a torchvision that loads, the datasets are made up in the place of reading them, and all else is its own. Where
    there is none, a stand-in takes its place. Raises `ValueError`.
    """
    asked = os.environ.get(ENVIRONMENT)
    if not asked:
        return
    if not asked.isdigit() or not int(asked):
        raise ValueError(f"{ENVIRONMENT} is {asked!r}, and not a number of samples")
    datasets, why = _torchvision()
    if datasets is None:
        datasets = standin.install(why)
    for name in KINDS:
        if hasattr(datasets, name):
            make_up(getattr(datasets, name), int(asked))
    shorten(datasets.FakeData, int(asked))


def _torchvision() -> tuple[ModuleType | None, str]:
    """The module of its datasets; or none, and why."""
    try:
        return importlib.import_module("torchvision.datasets"), ""
    except Exception as error:  # noqa: BLE001 - one that was built for another torch fails in many ways
        missing = isinstance(error, ModuleNotFoundError) and error.name == "torchvision"
        why = "is not installed" if missing else f"does not load: {type(error).__name__}: {error}"
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    return None, f"torchvision {why}".splitlines()[0]
