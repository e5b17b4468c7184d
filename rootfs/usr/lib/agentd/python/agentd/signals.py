"""Signals for a program whose main thread belongs to somebody else.

A Python handler runs only when the main thread takes its next step, and one that has just begun to wait takes none. The
interpreter's C handler, though, writes the number into a pipe at once (signal.set_wakeup_fd); a thread reads it there.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Callable


class Signals:
    """The caught signals of this process; a forked child gets the default dispositions back."""

    def __init__(self, at_once: Callable[[int], None]):
        """``at_once`` also sees each signal, in the main thread between any two of its steps."""
        self._at_once = at_once
        self._caught: set[int] = set()
        self._mask = threading.local()
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._writer, False)  # set_wakeup_fd() insists; a full pipe has news enough.
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        os.register_at_fork(before=self._hold, after_in_parent=self._release, after_in_child=self._forget)

    def catch(self, number: int) -> None:
        """Catches a signal from now on."""
        self._caught.add(number)
        signal.signal(number, self._handle)

    def next(self) -> int:
        """Waits for the next signal that is ours. Of other handlers' signals the pipe hears too."""
        while True:
            number = os.read(self._reader, 1)[0]
            if number in self._caught:
                return number

    @staticmethod
    def repeat(number: int) -> None:
        """Sends it to the main thread again, which may have begun to sleep just before it saw the first."""
        ident = threading.main_thread().ident
        if ident is not None:
            signal.pthread_kill(ident, number)

    def _handle(self, number: int, _frame: object) -> None:
        current = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(current, warn_on_full_buffer=False)
        if current != self._writer:
            # An event loop has put its own pipe there, so ours heard nothing.
            os.write(self._writer, bytes([number]))
        self._at_once(number)

    def _hold(self) -> None:
        """Before a fork: a signal to the child must not come before its dispositions are the default again."""
        self._mask.saved = signal.pthread_sigmask(signal.SIG_BLOCK, self._caught)

    def _release(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask.saved)

    def _forget(self) -> None:
        """In the child: a signal ends it, and never reaches the parent through the pipe that both have."""
        for number in self._caught:
            if signal.getsignal(number) == self._handle:
                signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        self._release()
