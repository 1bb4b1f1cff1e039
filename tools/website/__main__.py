"""Build the documentation site.

usage: python -m tools.website OUT

Everything on it is made from the Markdown and the rules that the repository holds. Exit status 1: a link leads
nowhere, or the generator warns; each such thing is one line. It takes what `pip install -e '.[docs]'` installs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .build import BuildError, build


def main() -> int:
    """Build the site in the folder that is named, which must be new or hold a site."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, help="the folder of the site; what is in it is replaced")
    out = parser.parse_args().out
    try:
        pages = build(out)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{pages} pages in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
