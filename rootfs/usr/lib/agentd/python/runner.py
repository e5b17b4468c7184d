"""Runs a Python module as an agent: ``runner.py --module NAME``.

NAME is the absolute path of a ``.py`` file or a dotted module name. Exit codes: 0 a clean end, 1 the agent failed,
2 it could not be loaded.
"""

from __future__ import annotations

import sys
import threading

from agentd import life


def main() -> int:
    """Checks the arguments, makes the output line by line, and lives the agent's life."""
    if len(sys.argv) != 3 or sys.argv[1] != "--module":
        print("usage: runner.py --module /PATH/FILE.py | PACKAGE.MODULE", file=sys.stderr)
        return life.NOT_LOADED
    # With python -u each part of a print() is a write of its own; whole lines are what a log wants.
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True, write_through=False)
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    threading.excepthook = life.show_thread_failure
    return life.Life(sys.argv[2]).run()


if __name__ == "__main__":
    sys.exit(main())
