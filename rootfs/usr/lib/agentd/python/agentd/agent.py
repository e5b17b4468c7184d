"""What an agent says to its manager, and what it gets from it.

    from agentd import agent

    def start(stop):
        while not agent.wait(5):          # True once the agent shall stop
            agent.status("looking for work")

The environment's part of the contract is taken out of ``os.environ`` when this module is imported: programs that the
agent starts must not speak in its name.
"""

from __future__ import annotations

import os
import socket
import threading
import time

from . import listen, stop
from .logs import log
from .notify import Notifier, one_line

__all__ = [
    "alive", "credential", "listen_fds", "listeners", "log", "progress", "ready", "reloading", "state_directory",
    "status", "stop_event", "stopping", "wait", "watchdog_interval",
]

_TAKEN = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES")
_environ = {key: os.environ.pop(key) for key in _TAKEN if key in os.environ}
_notifier = Notifier(_environ.get("NOTIFY_SOCKET"))
_last_beat = float("-inf")
_listeners: list[socket.socket] | None = None


def ready(text: str | None = None) -> None:
    """Says that the agent is up. The runner says it for you once ``init()`` has returned."""
    _notifier.send("READY=1", *([f"STATUS={one_line(text)}"] if text else []))


def status(text: str) -> None:
    """Sets the line that ``agentctl status`` shows. A busy manager may miss it; the next one counts."""
    _notifier.send(f"STATUS={one_line(text)}", must_arrive=False)


def stopping() -> None:
    """Says that the agent is about to end. The runner says it for you."""
    _notifier.send("STOPPING=1")


def reloading() -> None:
    """Says that the agent reads its configuration again; ``ready()`` ends it. The runner says both for you."""
    _notifier.send("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")


def progress(count: int) -> None:
    """Says how much work is done so far: a number that grows with each piece, never a clock."""
    if count < 0:
        raise ValueError(f"progress {count} is negative")
    _notifier.send(f"X_AGENTD_PROGRESS={count}", must_arrive=False)


def watchdog_interval() -> float | None:
    """The longest silence in seconds that ``WatchdogSec`` allows this process, or None without a watchdog."""
    usec = _environ.get("WATCHDOG_USEC", "")
    owner = _environ.get("WATCHDOG_PID", "")
    if not usec.isdigit() or int(usec) == 0 or (owner and owner != str(os.getpid())):
        return None
    return int(usec) / 1e6


def alive() -> None:
    """Tells the watchdog that work goes on. Call it on each pass of the agent's own loop, as often as you like.

    It sends at most four beats an interval. Never call it from a thread that only beats: an agent that hangs would
    look well.
    """
    global _last_beat
    interval, now = watchdog_interval(), time.monotonic()
    if interval is not None and now - _last_beat >= interval / 4:
        if _notifier.send("WATCHDOG=1", must_arrive=False):
            _last_beat = now


def stop_event() -> threading.Event:
    """The event that is set when the agent shall stop; the same that ``start(stop)`` is given."""
    return stop.request.watch()


def wait(seconds: float | None = None) -> bool:
    """Waits this long, or until the agent shall stop (then True). Beats meanwhile: an idle agent is alive."""
    event = stop_event()
    deadline = float("inf") if seconds is None else time.monotonic() + seconds
    while True:
        alive()
        left = deadline - time.monotonic()
        step = min(left, (watchdog_interval() or float("inf")) / 2)
        if event.wait(None if step == float("inf") else max(step, 0.0)):
            return True
        if step == left:
            return False


def listen_fds(name: str | None = None) -> list[int]:
    """The descriptors that the manager handed over, in order; only those of one ``FileDescriptorName`` if given."""
    return [item.fd for item in listen.passed(_environ, os.getpid()) if name in (None, item.name)]


def listeners(name: str | None = None) -> list[socket.socket]:
    """The same as sockets. Each call returns the same objects; they are open and bound, ready for ``accept()``."""
    global _listeners
    passed = listen.passed(_environ, os.getpid())
    if _listeners is None:
        _listeners = [socket.socket(fileno=item.fd) for item in passed]
    return [sock for sock, item in zip(_listeners, passed) if name in (None, item.name)]


def credential(name: str) -> bytes:
    """The content of a credential (``LoadCredential``). Raises ``OSError`` or ``ValueError`` that says which."""
    if not name or "/" in name or name in (".", ".."):
        raise ValueError(f"{name!r} is no credential's name")
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder:
        raise FileNotFoundError(f"credential {name!r}: CREDENTIALS_DIRECTORY is not set; the unit loads none")
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def state_directory(default: str) -> str:
    """Where the agent keeps what must survive it: the unit's ``StateDirectory``, else ``default``. Not created."""
    own = os.environ.get("AGENTD_STATE_DIRECTORY") or os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    return own or default
