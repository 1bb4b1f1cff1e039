"""Finds the packages; the folders `rules` and `fixtures` install as `torchlint.rules` and `torchlint.fixtures`."""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["torchlint", "torchlint.*"]),
        "torchlint.fixtures",
        "torchlint.rules",
        *(f"torchlint.rules.{name}" for name in find_packages("rules")),
    ]
)
