"""`python -m torchlint` and the console script."""

from __future__ import annotations

import gc
import sys

INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


def main() -> None:
    """Run the command line and exit."""
    # Looking for cycles in what is loaded, now and when the process ends, is a tenth of a short run. `pool` collects
    # what a long one leaves.
    gc.disable()
    try:
        from torchlint.cli import run  # within reach of Ctrl-C

        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("torchlint: interrupted\n")
        status = INTERRUPTED
    gc.freeze()
    sys.exit(status)


if __name__ == "__main__":
    main()
