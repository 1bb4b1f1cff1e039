"""`python -m torchlint` and the console script."""

from __future__ import annotations

import sys

INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


def main() -> None:
    """Run the command line and exit."""
    try:
        from torchlint.cli import run  # within reach of Ctrl-C

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.stderr.write("torchlint: interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
