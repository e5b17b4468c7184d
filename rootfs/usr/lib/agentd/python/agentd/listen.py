"""Descriptors handed over by the manager, sd_listen_fds(3)."""

from __future__ import annotations

import os
from typing import Mapping, NamedTuple

#: The first descriptor that is handed over (SD_LISTEN_FDS_START).
FIRST = 3


class Passed(NamedTuple):
    """One descriptor and the name that its socket unit gave it."""

    fd: int
    name: str


def passed(environ: Mapping[str, str], pid: int) -> list[Passed]:
    """The descriptors that are for process ``pid``; none if they are for another, or there are none.

    Raises ``ValueError`` naming the variable that makes no sense, and ``OSError`` for a descriptor that is not open.
    """
    if "LISTEN_FDS" not in environ or "LISTEN_PID" not in environ:
        return []
    if _number(environ, "LISTEN_PID") != pid:
        return []
    count = _number(environ, "LISTEN_FDS")
    names = environ.get("LISTEN_FDNAMES", "").split(":") if environ.get("LISTEN_FDNAMES") else ["unknown"] * count
    if len(names) != count:
        raise ValueError(f"LISTEN_FDNAMES={environ['LISTEN_FDNAMES']!r} does not name {count} descriptors")
    found = [Passed(FIRST + index, name) for index, name in enumerate(names)]
    for item in found:
        try:
            os.set_inheritable(item.fd, False)
        except OSError as error:
            raise OSError(error.errno, f"descriptor {item.fd} of LISTEN_FDS={count} is not open") from error
    return found


def _number(environ: Mapping[str, str], key: str) -> int:
    """A variable that is a decimal number; int() alone would also take ' 3' and '1_0'."""
    value = environ[key]
    if not (value.isascii() and value.isdigit()):
        raise ValueError(f"{key}={value!r} is not a number")
    return int(value)
