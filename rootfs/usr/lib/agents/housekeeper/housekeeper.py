"""The housekeeper: a timer's agent that writes down once a day what the library has learned, and throws old notes away.

It runs, writes ``digest-YYYY-MM-DD.md`` into its state directory, and ends. Running it again on one day writes the same
file anew. Environment: ``LIBRARY_URL`` (default http://127.0.0.1:8080), ``HOUSEKEEPER_KEEP``, the number of digests to
keep (default 30).
"""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import tempfile
import urllib.parse
import urllib.request

from agentd import agent

#: How long one answer of the library may take, in seconds.
PATIENCE = 10


def start() -> None:
    """One day's round."""
    url = os.environ.get("LIBRARY_URL", "http://127.0.0.1:8080").rstrip("/")
    keep = int(os.environ.get("HOUSEKEEPER_KEEP", "30"))
    if keep < 1:
        raise ValueError(f"HOUSEKEEPER_KEEP={keep} would keep nothing, not even today's digest")
    folder = pathlib.Path(agent.state_directory("/var/lib/agents/housekeeper"))
    folder.mkdir(parents=True, exist_ok=True)
    documents = fetch(f"{url}/documents")
    summaries = {
        entry["id"]: fetch(f"{url}/documents/{urllib.parse.quote(entry['id'])}/summary")
        for entry in documents
        if entry["state"] == "done"
    }
    day = datetime.datetime.now(datetime.timezone.utc).date()
    replace(folder / f"digest-{day}.md", digest(day, documents, summaries))
    dropped = prune(folder, keep)
    agent.log("info", f"{len(summaries)} of {len(documents)} documents in the digest of {day}; {dropped} old ones dropped")


def fetch(url: str) -> list | dict:
    """The library's answer to one GET."""
    with urllib.request.urlopen(url, timeout=PATIENCE) as response:
        return json.load(response)


def digest(day: datetime.date, documents: list[dict], summaries: dict[str, dict]) -> str:
    """The text of a day's digest."""
    states: dict[str, int] = {}
    for entry in documents:
        states[entry["state"]] = states.get(entry["state"], 0) + 1
    counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "empty"
    lines = [f"# The library on {day}", "", f"{len(documents)} documents: {counts}.", ""]
    for entry in documents:
        summary = summaries.get(entry["id"])
        if summary:
            lines += [f"## {entry['name']}", "", *summary["summary"], "", "*" + ", ".join(summary["keywords"]) + "*", ""]
        elif entry["state"] == "failed":
            lines += [f"## {entry['name']}", "", f"Set aside: {entry.get('failure', 'no reason given')}", ""]
    return "\n".join(lines)


def replace(path: pathlib.Path, text: str) -> None:
    """Writes a file whole or not at all, whenever the power goes."""
    fd, scratch = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def prune(folder: pathlib.Path, keep: int) -> int:
    """Removes all digests but the newest, and what a broken-off write left; gives how many digests went."""
    for scratch in folder.glob(".new-*"):
        scratch.unlink()
    old = sorted(folder.glob("digest-*.md"))[:-keep]
    for path in old:
        path.unlink()
    return len(old)
