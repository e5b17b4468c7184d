"""Log lines with a priority, sd-daemon(3): ``<N>`` at the start of a line, N as in syslog(3)."""

from __future__ import annotations

import logging
import sys

#: Names of the priorities, by number.
LEVELS = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")

_OTHER_NAMES = {"error": 3, "warn": 4, "critical": 2}


def priority(level: int | str) -> int:
    """The number of a level given by name or number. Raises ``ValueError`` for anything else."""
    if isinstance(level, int) and 0 <= level < len(LEVELS):
        return level
    if isinstance(level, str) and level in LEVELS:
        return LEVELS.index(level)
    if isinstance(level, str) and level in _OTHER_NAMES:
        return _OTHER_NAMES[level]
    raise ValueError(f"no log level {level!r}; use one of {', '.join(LEVELS)} or 0 to 7")


def render(level: int, text: str, prefixed: bool) -> str:
    """The text as whole lines, each with its priority: the log takes each line for itself."""
    prefix = f"<{level}>" if prefixed else ""
    return "".join(f"{prefix}{line}\n" for line in text.splitlines() or [""])


def log(level: int | str, text: str) -> None:
    """Writes the text to standard error at a level such as ``"warning"`` (a terminal gets no prefix)."""
    number = priority(level)
    # One write for all lines, so that those of other threads do not come in between.
    sys.stderr.write(render(number, text, prefixed=not sys.stderr.isatty()))
    sys.stderr.flush()


class Handler(logging.Handler):
    """Makes the standard ``logging`` module speak in priorities: ``logging.basicConfig(handlers=[Handler()])``."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record."""
        try:
            log(_from_logging(record.levelno), self.format(record))
        except Exception:  # As logging's own handlers do: a log line must not end the program.
            self.handleError(record)


def _from_logging(levelno: int) -> int:
    """The syslog priority of one of logging's levels."""
    for least, number in ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6)):
        if levelno >= least:
            return number
    return 7
