"""How often functions run because their author says so: `hot` in the configuration, or a comment on a function."""

from __future__ import annotations

import re

from torchlint.finding import Frequency

# What the comment may say: the words with which a run reports how often a line runs.
WORDS = {
    "per-epoch": Frequency.EPOCH,
    "per-batch": Frequency.BATCH,
    "per-sample": Frequency.SAMPLE,
}
COMMENT = re.compile(r"#\s*torchlint:\s*(?P<verb>hot)(?![\w-])(?:\s*\[(?P<names>[^\]#]*)\])?")
# An entry of `hot`, as far as a pattern can say it.
PATTERN = r"^[^:]+(\.py|\.ipynb)?:[^\W\d]\w*(\.[^\W\d]\w*)*$"
_FILES = (".py", ".ipynb")


def said(comment: str) -> Frequency | None:
    """How often a comment says that its function runs; None where it says nothing that can be understood."""
    match = COMMENT.search(comment)
    return WORDS.get((match["names"] or "").strip()) if match is not None else None


def is_entry(text: str) -> bool:
    """Whether this is `package.module:Class.method` or `train.py:fit`: a module or a file, and a function in it."""
    home, colon, function = text.rpartition(":")
    if not colon or not all(part.isidentifier() for part in function.split(".")):
        return False
    return is_file(home) or all(part.isidentifier() for part in home.split("."))


def is_file(home: str) -> bool:
    """Whether what stands before the colon is the path of a file, and not the name of a module."""
    return home.endswith(_FILES)


def module_ends(home: str) -> tuple[str, str]:
    """How the paths of the files end that may be a module: as a file, and as a package."""
    path = "/" + home.replace(".", "/")
    return f"{path}.py", f"{path}/__init__.py"
