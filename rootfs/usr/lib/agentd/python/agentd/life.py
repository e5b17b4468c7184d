"""The life of a Python agent: import, init(), READY=1, start(stop), and how it ends.

The agent's code runs in the main thread, as Python programs expect (signals, asyncio, child processes). Threads of the
runner's own act on signals: setting an event from a signal handler could deadlock with a main thread that is just
waiting on it, and a reload() that hangs must not hold up the stop.
"""

from __future__ import annotations

import importlib
import inspect
import os
import queue
import signal
import sys
import threading
import time
import traceback
import types
from typing import Any, Callable

from . import agent, load, stop
from .logs import log
from .signals import Signals

#: Exit codes: the agent failed; its code could not be loaded.
FAILED, NOT_LOADED = 1, 2

_STOPS = (signal.SIGTERM, signal.SIGINT)

#: How long the main thread has to see a signal before it is sent again, in seconds.
_REPEAT = 0.1

_HERE = os.path.dirname(__file__)


class UsageError(Exception):
    """A life-cycle function that cannot be called as it stands."""


class Life:
    """One run of one agent."""

    def __init__(self, name: str):
        """``name`` is the absolute path of a ``.py`` file or a dotted module name."""
        self._name = name
        self._module: types.ModuleType | None = None
        self._started = False
        self._left = False
        self._signals = Signals(self._in_main_thread)
        self._reloads: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._end_lock = threading.Lock()
        self._end_code: int | None = None

    def run(self) -> int:
        """Lives it to the end and gives the exit code. An exception of the agent's is shown, not raised."""
        for number in _STOPS:
            self._signals.catch(number)
        threading.Thread(target=self._await_signals, name="agentd-signals", daemon=True).start()
        try:
            return self._live()
        except SystemExit as error:
            return _exit_code(error)

    def _live(self) -> int:
        try:
            source = load.find(self._name)
            is_script = source.is_script
            if not is_script:
                self._import(source)
        except (load.LoadError, UsageError) as error:
            log("err", f"agent {self._name} cannot be loaded: {error}")
            return NOT_LOADED
        except Exception as error:
            _show(error)
            log("err", f"agent {self._name} cannot be imported: {type(error).__name__}: {error}")
            return NOT_LOADED
        try:
            return self._run_script(source) if is_script else self._run_functions()
        except Exception as error:
            _show(error)
            return FAILED

    def _run_script(self, source: load.Source) -> int:
        self._begin()
        source.run_script()
        return 0

    def _import(self, source: load.Source) -> None:
        self._module = source.import_module()
        for name in load.LIFE_CYCLE:
            _check(name, self._function(name))
        if self._function("reload"):
            # Without reload() SIGHUP keeps its default: a manager sees in SigCgt that it is not handled.
            self._signals.catch(signal.SIGHUP)

    def _run_functions(self) -> int:
        init, start = self._function("init"), self._function("start")
        if init:
            init()
        # Watched before the agent is ready: a stop that comes at once finds somebody who looks at the event.
        waits = start is None and any(self._function(name) for name in load.LIFE_CYCLE)
        arguments = [stop.request.watch()] if waits or (start and _parameters(start)) else []
        self._begin()
        if start:
            start(*arguments)
        elif waits:
            stop.request.event.wait()
        return self._end()

    def _begin(self) -> None:
        """From here on the agent is up."""
        self._started = True
        if self._function("reload"):
            threading.Thread(target=self._await_reloads, name="agentd-reload", daemon=True).start()
        agent.ready()

    def _end(self) -> int:
        """The agent's own stop(), once, on each orderly way out; who comes second waits for the first."""
        function = self._function("stop")
        with self._end_lock:
            if self._end_code is None:
                stop.request.event.set()
                self._end_code = 0
                try:
                    if function:
                        function()
                except Exception as error:
                    _show(error)
                    self._end_code = FAILED
            return self._end_code

    def _is_heard(self) -> bool:
        """Whether the agent's code would see a request to stop."""
        return self._started and (stop.request.watched or self._function("stop") is not None)

    def _in_main_thread(self, number: int) -> None:
        if number in _STOPS and not self._is_heard() and not self._left:
            # Leave through the code that runs, so that its finally blocks do.
            self._left = True
            agent.stopping()
            raise SystemExit(0)

    def _await_signals(self) -> None:
        while True:
            number = self._signals.next()
            if number == signal.SIGHUP:
                self._reloads.put(number)
            elif self._is_heard():
                agent.stopping()
                stop.request.event.set()
                self._end()
                return
            else:
                time.sleep(_REPEAT)
                if not self._left:
                    self._signals.repeat(number)

    def _await_reloads(self) -> None:
        while True:
            self._reloads.get()
            while not self._reloads.empty():  # Several requests before we came here are one.
                self._reloads.get()
            if stop.request.event.is_set():
                return
            self._reload()

    def _reload(self) -> None:
        agent.reloading()
        try:
            self._function("reload")()
        except Exception as error:
            _show(error)
            agent.ready(f"reload failed: {error!r}; running on as before")
        else:
            agent.ready()

    def _function(self, name: str) -> Callable[..., Any] | None:
        """One of the module's life-cycle functions, if it has it."""
        found = getattr(self._module, name, None)
        return found if callable(found) else None


def _check(name: str, function: Callable[..., Any] | None) -> None:
    """Refuses what would do nothing, or fail only later when it is needed."""
    if function is None:
        return
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"{name}() is a coroutine; make it a plain function that calls asyncio.run()")
    if name == "start":
        _parameters(function)
        return
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise UsageError(f"{name}() must be callable without arguments: {error}") from error


def _parameters(start: Callable[..., Any]) -> int:
    """How many arguments start() is given: the stop event, or nothing."""
    for count in (1, 0):
        try:
            inspect.signature(start).bind(*[None] * count)
        except TypeError:
            continue
        except ValueError:  # Written in C without a signature: it is given the event.
            pass
        return count
    raise UsageError("start() must take one argument, the stop event, or none")


def _exit_code(error: SystemExit) -> int:
    """As the interpreter does: a number is the code, a text is printed and means 1."""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    log("err", str(error.code))
    return FAILED


def _show(error: BaseException) -> None:
    """The traceback from the agent's first line on: the frames that led there help nobody."""
    frames = error.__traceback__
    while frames is not None and _is_machinery(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    log("err", "".join(traceback.format_exception(type(error), error, frames)).rstrip("\n"))


def _is_machinery(file: str) -> bool:
    """Whether a frame belongs to the runner or to import."""
    return file.startswith("<frozen ") or os.path.dirname(file) in (_HERE, os.path.dirname(importlib.__file__))


def show_thread_failure(failure: Any) -> None:
    """For threading.excepthook: the interpreter's own would read the source from disk again."""
    if failure.exc_type is not SystemExit and failure.exc_value is not None:
        log("err", f"exception in thread {failure.thread.name if failure.thread else '?'}:")
        _show(failure.exc_value)
