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
        from torchlint.syntax.parsing import own_process

        own_process()
        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("torchlint: interrupted\n")
        status = INTERRUPTED
    gc.freeze()
    sys.exit(status)


def _leave_out_working_directory() -> None:
    """Take from Python's path what `python -m` put there: it may hold what is linted, and none of that may run."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):  # else there is nothing to take
        del sys.path[:1]


if __name__ == "__main__":
    _leave_out_working_directory()
    main()
