"""The one request to stop that a process can get, shared by the agent's side and the runner's."""

from __future__ import annotations

import threading


class StopRequest:
    """An event, and whether the agent's code looks at it at all."""

    def __init__(self) -> None:
        """Not asked for, and not watched."""
        self.event = threading.Event()
        self.watched = False

    def watch(self) -> threading.Event:
        """The event, for somebody who will act on it."""
        self.watched = True
        return self.event


#: This process's.
request = StopRequest()
