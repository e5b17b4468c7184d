"""The client's side of sd_notify(3): one datagram of KEY=VALUE lines to the manager's socket."""

from __future__ import annotations

import socket
import sys

#: How long a message that must arrive may wait for a manager that is busy, in seconds.
PATIENCE = 5.0


class Notifier:
    """Sends notifications to one socket. It never raises: an agent must outlive its manager's restart."""

    def __init__(self, address: str | None):
        """``address`` is the value of ``NOTIFY_SOCKET``: a path, or ``@name`` for an abstract socket, or nothing."""
        self._address = _parse(address) if address else None
        self._complained = False

    @property
    def enabled(self) -> bool:
        """Whether somebody asked for notifications."""
        return self._address is not None

    def send(self, *lines: str, must_arrive: bool = True) -> bool:
        """Sends the lines in one datagram and tells whether the manager's queue took it.

        With ``must_arrive`` it waits up to ``PATIENCE`` for room; without, a full queue drops it at once, so that a
        manager that stands still never holds up the agent's work.
        """
        if self._address is None:
            return False
        payload = "\n".join(lines).encode("utf-8", "backslashreplace")
        try:
            # A socket for each message: it cannot leak to children, and survives a manager that binds anew.
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.settimeout(PATIENCE if must_arrive else 0.0)
                sock.sendto(payload, self._address)
        except BlockingIOError:
            return False
        except OSError as error:
            self._complain(lines[0], error)
            return False
        self._complained = False
        return True

    def _complain(self, line: str, error: OSError) -> None:
        """Says it once until the next success: a watchdog beat a second would flood the log."""
        if not self._complained:
            self._complained = True
            print(f"<4>cannot send {line!r} to NOTIFY_SOCKET: {error}", file=sys.stderr, flush=True)


def _parse(address: str) -> str:
    """Turns the variable's value into what the socket calls take, unix(7)."""
    if address.startswith("@") and len(address) > 1:
        return "\0" + address[1:]
    if address.startswith("/"):
        return address
    raise ValueError(f"NOTIFY_SOCKET={address!r} is neither an absolute path nor an abstract name (@name)")


def one_line(text: str) -> str:
    """The text as the value of one line: a line break would begin another assignment."""
    return " ".join(text.splitlines())
