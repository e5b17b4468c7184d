"""A manager for tests: a real notification socket, and real agents run by the real runner."""

from __future__ import annotations

import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

RUNNER = pathlib.Path(__file__).resolve().parent.parent / "runner.py"

#: How long anything may take on a loaded machine, in seconds. Nothing waits this long unless it is broken.
DEADLINE = 60.0


class Manager:
    """Binds ``NOTIFY_SOCKET`` in a folder of its own and reads what arrives."""

    def __init__(self, folder: pathlib.Path):
        self.address = str(folder / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.bind(self.address)
        self._socket.settimeout(DEADLINE)

    def receive(self) -> list[str]:
        """The lines of the next message."""
        return self._socket.recv(65536).decode().split("\n")

    def receive_until(self, line: str) -> list[list[str]]:
        """All messages up to the first that has this line."""
        messages = [self.receive()]
        while line not in messages[-1]:
            messages.append(self.receive())
        return messages

    def pending(self) -> list[list[str]]:
        """What has arrived already."""
        messages = []
        while select.select([self._socket], [], [], 0)[0]:
            messages.append(self.receive())
        return messages

    def close(self) -> None:
        self._socket.close()


class AgentTest(unittest.TestCase):
    """A folder, a manager, and agents that end with the test."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.manager = Manager(self.folder)
        self.addCleanup(self.manager.close)

    def write(self, source: str, name: str = "agent.py") -> str:
        """Writes an agent's file and gives its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
        return str(path)

    def run_agent(self, module: str, env: dict[str, str] | None = None, **popen) -> subprocess.Popen:
        """Starts the runner as the manager does. Its output is read by ``finish``."""
        environ = {"PATH": os.environ["PATH"], "NOTIFY_SOCKET": self.manager.address, **(env or {})}
        process = subprocess.Popen(
            [sys.executable, "-u", str(RUNNER), "--module", module],
            env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            **{"cwd": "/", **popen},
        )
        self.addCleanup(_end, process)
        return process

    def finish(self, process: subprocess.Popen) -> tuple[int, str, str]:
        """Waits for the end: exit code, standard output, standard error."""
        out, err = process.communicate(timeout=DEADLINE)
        return process.returncode, out, err

    def live(self, source: str, **options) -> tuple[int, str, str]:
        """Runs an agent that ends by itself."""
        return self.finish(self.run_agent(self.write(source), **options))

    def stop(self, process: subprocess.Popen) -> tuple[int, str, str]:
        """Stops it as a manager does."""
        process.send_signal(signal.SIGTERM)
        return self.finish(process)


def memfd(data: bytes) -> int:
    """An inheritable descriptor with the bytes, its offset at the end, as after they were hashed."""
    fd = os.memfd_create("module")
    os.write(fd, data)
    return fd


def _end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.kill()
        process.communicate(timeout=DEADLINE)
    for stream in (process.stdout, process.stderr):
        stream.close()
