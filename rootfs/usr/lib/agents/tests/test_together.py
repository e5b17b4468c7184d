"""The agents together, as processes: the real library, the real summarizer, and what is left when one is killed."""

from __future__ import annotations

import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

from . import AGENTS, KIT

#: How long anything may take on a loaded machine, in seconds. Nothing waits this long unless it is broken.
DEADLINE = 90

TEXT = "The train stopped before the bridge. The guard warned the driver. The driver let the train roll back."


class Process:
    """A child whose standard error can be waited on, line by line."""

    def __init__(self, command: list[str], environ: dict[str, str]):
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._child = subprocess.Popen(
            command, env={"PATH": os.environ["PATH"], **environ}, cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._child.stderr:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def wait_for(self, part: str) -> str:
        """The next line that has this part."""
        while True:
            line = self._lines.get(timeout=DEADLINE)
            if line is None:
                raise AssertionError(f"the process ended before it said {part!r}")
            if part in line:
                return line

    def end(self, number: int = signal.SIGTERM) -> int:
        """Sends a signal and gives the exit status."""
        if self._child.poll() is None:
            self._child.send_signal(number)
        status = self._child.wait(timeout=DEADLINE)
        self._reader.join(timeout=DEADLINE)
        self._child.stderr.close()
        return status


class Together(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.build.cleanup)
        cls.binary = os.path.join(cls.build.name, "library")
        command = ["go", "build", "-o", cls.binary, "./library"]
        subprocess.run(command, cwd=AGENTS, check=True, env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"})

    def setUp(self):
        state = tempfile.TemporaryDirectory()
        self.addCleanup(state.cleanup)
        self.state = pathlib.Path(state.name)
        self.url = self.start_library()

    def start_library(self, *flags: str, address: str = "127.0.0.1:0") -> str:
        """Starts the library and gives its address."""
        self.library = Process(
            [self.binary, "-listen", address, *flags], {"STATE_DIRECTORY": str(self.state / "library")}
        )
        self.addCleanup(self.library.end, signal.SIGKILL)
        return "http://" + self.library.wait_for(" on 127.0.0.1:").rsplit(" ", 1)[1]

    def start_agent(self, name: str, **environ: str) -> Process:
        """Starts a Python agent through the kit's runner."""
        module = str(AGENTS / name / f"{name}.py")
        process = Process(
            [sys.executable, "-u", str(KIT / "runner.py"), "--module", module],
            {"LIBRARY_URL": self.url, "STATE_DIRECTORY": str(self.state / name), **environ},
        )
        self.addCleanup(process.end, signal.SIGKILL)
        return process

    def get(self, path: str):
        with urllib.request.urlopen(self.url + path, timeout=DEADLINE) as response:
            return json.load(response)

    def send(self, text: str, name: str = "tale") -> str:
        request = urllib.request.Request(f"{self.url}/documents?name={name}", text.encode(), method="POST")
        with urllib.request.urlopen(request, timeout=DEADLINE) as response:
            return json.load(response)["id"]

    def summary(self, document: str) -> dict:
        """Waits for a document's summary."""
        for _ in range(DEADLINE // 30):
            answer = self.get(f"/documents/{document}/summary?wait=30s")
            if "summary" in answer:
                return answer
        raise AssertionError(f"no summary: {answer}")

    def test_a_document_comes_back_summarized_and_searchable(self):
        summarizer = self.start_agent("summarizer", AGENTD_UNIT="summarizer.service")
        document = self.send(TEXT)
        result = self.summary(document)
        self.assertEqual(result["worker"], "summarizer")
        self.assertIn("train", result["keywords"])
        self.assertEqual([hit["id"] for hit in self.get("/search?q=bridge")], [document])
        self.assertEqual(summarizer.end(), 0)

    def test_a_worker_killed_in_mid_document_does_it_again_once(self):
        document = self.send(TEXT)
        first = self.start_agent("summarizer", SUMMARIZER_PACE="3600")
        self.library.wait_for(f"{document} goes to summarizer (attempt 1)")
        self.assertEqual(first.end(signal.SIGKILL), -signal.SIGKILL)
        self.start_agent("summarizer")
        self.assertEqual(self.summary(document)["sentences"], 3)
        self.assertEqual(self.get(f"/documents/{document}")["attempts"], 2)
        self.assertEqual(self.get("/healthz"), {"queued": 0, "leased": 0, "done": 1, "failed": 0})

    def test_a_library_killed_loses_nothing_and_the_worker_finds_it_again(self):
        summarizer = self.start_agent("summarizer")
        before = self.summary(self.send(TEXT))
        self.assertEqual(self.library.end(signal.SIGKILL), -signal.SIGKILL)
        summarizer.wait_for("trying again")
        self.url = self.start_library(address=self.url.removeprefix("http://"))
        [known] = self.get("/documents")
        self.assertEqual(self.get(f"/documents/{known['id']}/summary"), before)
        self.assertEqual(self.summary(self.send("Another text. It is new."))["sentences"], 2)

    def test_a_stop_ends_the_wait_for_work_at_once(self):
        summarizer = self.start_agent("summarizer")
        self.summary(self.send(TEXT))
        self.assertEqual(summarizer.end(), 0)
        self.assertEqual(self.library.end(), 0)

    def test_a_stop_in_mid_document_finishes_the_document(self):
        summarizer = self.start_agent("summarizer", SUMMARIZER_PACE="0.3")
        document = self.send(TEXT)
        summarizer.wait_for(f"reading {document}")
        self.assertEqual(summarizer.end(), 0)
        self.assertEqual(self.get(f"/documents/{document}")["state"], "done")

    def test_the_housekeeper_writes_the_days_digest(self):
        self.start_agent("summarizer")
        self.summary(self.send(TEXT, "tale.txt"))
        housekeeper = self.start_agent("housekeeper")
        housekeeper.wait_for("1 of 1 documents in the digest")
        self.assertEqual(housekeeper.end(0), 0)
        [digest] = (self.state / "housekeeper").glob("digest-*.md")
        self.assertIn("## tale.txt", digest.read_text())

    def test_a_housekeeper_without_a_library_fails_and_says_so(self):
        self.library.end()
        housekeeper = self.start_agent("housekeeper")
        housekeeper.wait_for("Connection refused")
        self.assertEqual(housekeeper.end(0), 1)


if __name__ == "__main__":
    unittest.main()
