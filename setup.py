"""Finds the packages, and packs what they hold beside code: the pages of `rules`, and all of `fixtures`.

The two folders install as `torchlint.rules` and `torchlint.fixtures` where torchlint is editable. In a wheel the pages
and the fixtures are two files, which `torchlint.shipped` reads.

With SOURCE_DATE_EPOCH set, the same tree gives the same wheel and source distribution, byte for byte.
"""

from __future__ import annotations

import ast
import bz2
import gzip
import io
import json
import os
import re
import shutil
import tarfile
import tokenize
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

REPOSITORY = "https://github.com/torchlint/torchlint"


class Build(build_py):
    """What is built: the code, and beside it the pages and the fixtures, each of them as one file."""

    def run(self) -> None:
        """Build; what is editable finds pages and fixtures where they are."""
        if not self.editable_mode:  # what an earlier build left would be built again
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if not self.editable_mode:
            for folder, target in self._packed().items():
                self.mkpath(str(target.parent))
                target.write_bytes(packed(Path(folder), "*.md" if folder == "rules" else "*"))
            for file in Path(self.build_lib).rglob("*.py"):
                code = uncommented(file.read_bytes().decode())
                is_told = file.parent.relative_to(self.build_lib).parts[1:2] not in _UNTOLD
                file.write_bytes((code if is_told else undocumented(code)).encode())

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:  # noqa: FBT001, FBT002 - setuptools calls it so
        """The paths of all that is built."""
        return [
            *super().get_outputs(include_bytecode),
            *([] if self.editable_mode else map(str, self._packed().values())),
        ]

    def _packed(self) -> dict[str, Path]:
        return {folder: Path(self.build_lib, "torchlint", f"{folder}.json.bz2") for folder in ("fixtures", "rules")}


class Source(sdist):
    """A source distribution that says nothing of who made it, when and where."""

    def make_archive(self, base_name: str, format: str, *args: str | None, **kwargs: str | None) -> str:  # noqa: A002
        """Pack the folder `base_dir`, in which all is by now."""
        moment, folder = os.environ.get("SOURCE_DATE_EPOCH"), kwargs.get("base_dir")
        if moment is None or folder is None or format != "gztar":
            return super().make_archive(base_name, format, *args, **kwargs)

        def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
            entry.mtime, entry.mode = int(moment), mode(entry.mode, is_folder=entry.isdir())
            entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, "", ""
            return entry

        with (
            Path(f"{base_name}.tar.gz").open("wb") as file,
            gzip.GzipFile("", "wb", 9, file, int(moment)) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            archive.add(folder, filter=plain)  # sorted by name
        return f"{base_name}.tar.gz"


class Wheel(bdist_wheel):
    """A wheel in which files have the mode that git gives them, whatever the umask was."""

    def write_wheelfile(self, *args: str, **kwargs: str) -> None:
        """Write the last file before the folder is packed."""
        super().write_wheelfile(*args, **kwargs)
        for path in Path(self.bdist_dir).rglob("*"):
            path.chmod(mode(path.stat().st_mode, is_folder=path.is_dir()))


def mode(found: int, *, is_folder: bool) -> int:
    """The mode that git would give: of the owner's rights whether it can be run, and nothing else."""
    return 0o755 if is_folder or found & 0o100 else 0o644


# What a rule says itself, too: the title of its page, the list below, and the summary.
_HEAD = re.compile(r"\A# .*\n\n(?:- .*\n)+\n.*\n\n")
# What is generated in a page's section of evidence.
_MEASURED = re.compile(r"^(## Evidence\n\n)(?:(?!^## ).)*?`torchlint verify --rule [\w-]+`\n", re.MULTILINE | re.DOTALL)


def packed(folder: Path, pattern: str) -> bytes:
    """The POSIX paths of the files below a folder, and their texts: the same bytes for the same files.

    Files of one kind stand together, and so do the sections of pages, where they compress better. The head of a page is
    left out, and what it tells of evidence: `explain` takes both from the rule and the evidence itself.
    """
    texts = {
        path.relative_to(folder).as_posix(): _HEAD.sub("", _MEASURED.sub(r"\1", path.read_bytes().decode()))
        for path in sorted(folder.rglob(pattern), key=lambda path: (path.suffix, path))
        if path.is_file() and "__pycache__" not in path.parts
    }
    parts = [re.split(r"(?m)^(?=## )", text) if pattern == "*.md" else [text] for text in texts.values()]
    return bz2.compress(json.dumps([[*texts], *zip(*parts, strict=True)], ensure_ascii=False).encode())


# Packages of which `explain` shows nothing, and the modules beside them: it gives the docstrings of what rules ask.
_UNTOLD = [(), *((name,) for name in ("corpus", "lsp", "notebook", "report", "traces", "verify"))]


def undocumented(code: str) -> str:
    """Code without the docstrings of what is private, which are for those who change it, line by line the same."""
    lines = code.splitlines(keepends=True)
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name.startswith("_") and len(node.body) > 1:
            text = node.body[0]
            if ast.get_docstring(node) is not None and text.end_lineno is not None:
                lines[text.lineno - 1 : text.end_lineno] = ["\n"] * (text.end_lineno - text.lineno + 1)
    return "".join(lines)


def uncommented(code: str) -> str:
    """Code without its comments, which are for those who change it: line by line the same, as tracebacks show it."""
    lines = code.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() + "\n"
    return "".join(lines)


def readme() -> str:
    """What README.md begins with, for a package index, where a relative link leads nowhere, and where the rest is."""

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link["label"].startswith("!") else "blob"
        return f"{link['label']}({REPOSITORY}/{kind}/main/{link['target']})"

    text, _, rest = Path(__file__).with_name("README.md").read_text("utf-8").partition("What a name holds")
    text += "## Install" + rest.partition("## Install")[2].partition("In a checkout:")[0]
    text += "The [README](README.md) says more of its use, [docs/rules.md](docs/rules.md) has all rules.\n"
    text = re.sub(r":\n\n```diff\n.*?\n```\n", ".\n", re.sub(r"<!-- .* -->\n\n", "", text), flags=re.DOTALL)
    # What a run prints is in the picture.
    text = re.sub(r"```console\n\$ torchlint check .*?```\n\nWithout `[^`]*` each", "Each", text, flags=re.DOTALL)
    return re.sub(r"(?P<label>!?\[[^\]]*\])\((?!https?:|#)(?P<target>[^)]+)\)", absolute, text)


setup(
    cmdclass={"bdist_wheel": Wheel, "build_py": Build, "sdist": Source},
    long_description=readme(),
    long_description_content_type="text/markdown",
    packages=[
        *find_packages(include=["torchlint", "torchlint.*"]),
        "torchlint.fixtures",
        "torchlint.rules",
        *(f"torchlint.rules.{name}" for name in find_packages("rules")),
    ],
)
