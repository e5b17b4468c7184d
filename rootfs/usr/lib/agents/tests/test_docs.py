"""The agents in docs/agents.md, run as they are printed."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from . import AGENTS, KIT
from .test_together import DEADLINE

DOCS = AGENTS.parents[3] / "docs" / "agents.md"


def block(language: str, number: int = 0) -> str:
    """One block of code of the page, with the kit where it is here."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    return found[number].replace("/usr/lib/agentd", str(KIT.parent))


@unittest.skipUnless(DOCS.exists(), "an image has no docs; the repository does")
class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_and_stop(self, command: list[str]) -> None:
        """Lets it come up, stops it, and looks for its last words."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(self.folder / "notify"))
            manager.settimeout(DEADLINE)
            environ = {"PATH": os.environ["PATH"], "NOTIFY_SOCKET": str(self.folder / "notify")}
            with subprocess.Popen(command, cwd="/", env=environ, stdout=subprocess.PIPE, text=True) as process:
                for expected in (b"READY=1", b"STATUS=counted to 1", b"X_AGENTD_PROGRESS=1"):
                    self.assertEqual(manager.recv(100), expected)
                process.send_signal(signal.SIGTERM)
                out = process.communicate(timeout=DEADLINE)[0]
        self.assertEqual(process.returncode, 0)
        self.assertRegex(out, r"^stopped at \d+\n$")

    def test_the_python_agent_runs(self):
        module = self.folder / "counter.py"
        module.write_text(block("python"))
        self.run_and_stop([sys.executable, "-u", str(KIT / "runner.py"), "--module", str(module)])

    def test_the_go_agent_builds_and_runs(self):
        (self.folder / "main.go").write_text(block("go"))
        (self.folder / "go.mod").write_text(block("text"))
        environ = {**os.environ, "CGO_ENABLED": "0"}
        subprocess.run(["go", "build", "-o", "counter", "."], cwd=self.folder, env=environ, check=True)
        self.run_and_stop([str(self.folder / "counter")])
