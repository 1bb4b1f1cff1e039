"""Draw docs/terminal.svg: what torchlint says of the README's example, in the colours of a terminal.

usage: python tools/generate_picture.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "terminal.svg"
COMMAND = ("check", "--select", "TL201,TL301", "train.py")
_COLUMNS = 92
_ADVANCE, _LINE, _MARGIN, _BAR = 8.4, 19, 18, 34
_COLOURS = {
    "31": "#f47067",
    "32": "#8ddb8c",
    "36": "#76e3ea",
    "91": "#ff938a",
    "93": "#daaa3f",
    "94": "#6cb6ff",
    "96": "#56d4dd",
}
_SGR = re.compile(r"\x1b\[([0-9;]*)m")


def picture() -> str:
    """The drawing."""
    lines = [f"\x1b[1m$ torchlint {' '.join(COMMAND)}\x1b[0m", *_said().splitlines()]
    width = round(_COLUMNS * _ADVANCE + 2 * _MARGIN)
    height = _BAR + _LINE * len(lines) + _MARGIN
    style = "font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>torchlint {escape(' '.join(COMMAND))}</title>",
        f'<rect width="{width}" height="{height}" rx="9" fill="#22272e"/>',
        *(
            f'<circle cx="{20 + 20 * at}" cy="17" r="6" fill="{ink}"/>'
            for at, ink in enumerate(("#ff5f57", "#febc2e", "#28c840"))
        ),
        f'<g style="{style}" fill="#cdd9e5" xml:space="preserve">',
    ]
    for row, line in enumerate(lines):
        spans = "".join(_spans(line))
        if spans:
            parts.append(f'<text x="{_MARGIN}" y="{_BAR + _LINE * row + 13}">{spans}</text>')
    return "\n".join((*parts, "</g>", "</svg>", ""))


def _said() -> str:
    """What the command prints, with its colours."""
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FORCE_", "TORCHLINT_"))}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(code[1], encoding="utf-8")
        command = [sys.executable, "-m", "torchlint", *COMMAND, "--no-cache", "--isolated", "--color", "always"]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    return done.stdout


def _spans(line: str) -> Iterator[str]:
    """The pieces of a line, each in its colour; a column is where it stands, whatever font there is."""
    inks: list[str] = []
    column = 0
    for index, piece in enumerate(_SGR.split(line)):
        if index % 2:
            inks = [] if piece in ("", "0") else piece.split(";")
        elif piece:
            blanks = len(piece) - len(piece.lstrip(" "))
            text = piece.strip(" ")
            if text:
                colour = next((f' fill="{_COLOURS[ink]}"' for ink in inks if ink in _COLOURS), "")
                weight = ' font-weight="bold"' if "1" in inks else ""
                dim = ' opacity="0.65"' if "2" in inks else ""
                place = _MARGIN + (column + blanks) * _ADVANCE
                length = f'textLength="{len(text) * _ADVANCE:.1f}" lengthAdjust="spacingAndGlyphs"'
                yield f'<tspan x="{place:.1f}" {length}{colour}{weight}{dim}>{escape(text)}</tspan>'
            column += len(piece)


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
