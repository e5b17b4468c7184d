"""The summarizer: an agent that takes documents from the library, works through them, and hands back what they say.

It chooses whole sentences (an extractive summary): those closest to what the text as a whole is about, and not close to
each other. Words are weighed by TF-IDF with each sentence as a document. It knows English's small words; in other
languages the weighing alone has to find them.

Environment: ``LIBRARY_URL`` (default http://127.0.0.1:8080) and ``SUMMARIZER_PACE``, seconds to rest after each
sentence (default 0), for machines that have something better to do.
"""

from __future__ import annotations

import collections
import http.client
import json
import math
import os
import re
import socket
import time
import urllib.parse
from typing import Callable

from agentd import agent

Vector = dict  # of word to weight

#: How many words, at most, say what a document is about, and can be searched for.
KEYWORDS, INDEXED = 10, 100

#: The longest sentence that a summary shows, in characters.
LONGEST = 400

#: What is longer is data, not a word.
LONGEST_WORD = 64

SMALL_WORDS = frozenset(
    """a about above after again against all almost also although always am among an and another any are as at be because
    been before being below between both but by can cannot could did do does doing done down during each either else ever
    every few for from further get got had has have having he her here hers herself him himself his how however i if in
    into is it its itself just less let like made make many may me might more most much must my myself neither never no
    nor not now of off often on once one only onto or other our ours ourselves out over own per quite rather said same
    say says she should since so some still such than that the their theirs them themselves then there these they this
    those though through thus to too two under until up upon us very was we well were what when where whether which while
    who whom whose why will with within without would yet you your yours yourself yourselves""".split()
)

ABBREVIATIONS = frozenset("e.g i.e etc vs cf dr mr mrs ms prof st jr sr no fig vol al approx inc ltd co dept est".split())

_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_BOUNDARY = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[`]?[^\W_a-z])|(?<=[。！？])")
_HEADING = re.compile(r"#{1,6}\s+(.*\S)")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s+")
_RULE = re.compile(r"[\s=\-*_~`]*")
_FENCE = re.compile(r"\s*(?:```|~~~)")

#: Openings that lean on the sentence before.
LEANING = frozenset("he she it they this that these those but so then there him her them such".split())


def paragraphs(text: str) -> tuple[str, list[str]]:
    """The title, if the text begins with one, and its paragraphs, with the marks of Markdown taken off."""
    title, blocks, lines, in_code = "", [], [], False

    def close() -> None:
        if lines:
            blocks.append(" ".join(lines))
            lines.clear()

    for line in text.splitlines():
        heading, item = _HEADING.fullmatch(line.strip()), _ITEM.match(line)
        if _FENCE.match(line):
            in_code = not in_code
        if in_code or line.lstrip().startswith("|"):  # Code and tables have no sentences.
            close()
        elif _RULE.fullmatch(line):
            if line.strip() and len(lines) == 1 and not title and not blocks:
                title = lines.pop()  # It was underlined.
            close()
        elif heading:
            close()
            title = title or heading.group(1)
        else:
            if item:
                close()
            lines.append(line[item.end() :].strip() if item else line.strip())
    close()
    return title, blocks


def sentences(text: str) -> tuple[str, list[str]]:
    """The title and the sentences in their order."""
    title, blocks = paragraphs(text)
    found: list[str] = []
    for block in blocks:
        start = 0
        for match in _BOUNDARY.finditer(block):
            piece = block[start : match.start()]
            last = piece.rstrip(".").rsplit(None, 1)[-1:] or [""]
            ends_in_initial = len(last[0]) == 1 and last[0].isupper() and piece.endswith(".")
            if ends_in_initial or (piece.endswith(".") and last[0].lower().lstrip("(") in ABBREVIATIONS):
                continue
            found.append(block[start : match.end()].strip())
            start = match.end()
        found.append(block[start:].strip())
    return title, [sentence for sentence in found if _WORD.search(sentence)]


def words(text: str) -> list[str]:
    """The words in small letters, without a possessive's ending."""
    return [re.sub(r"['’]s$", "", word.lower()) for word in _WORD.findall(text)]


def fold_plurals(counts: collections.Counter) -> dict[str, str]:
    """Maps a word to its singular where the text itself has both."""
    return {word: word[:-1] for word in counts if len(word) > 3 and word.endswith("s") and word[:-1] in counts}


def summarize(text: str, tick: Callable[[], None] = lambda: None) -> dict:
    """What the library wants to know about a text. ``tick`` is called for each sentence."""
    title, parts = sentences(text)
    tokens = [words(part) for part in parts]
    everything = collections.Counter(word for line in tokens for word in line)
    singular = fold_plurals(everything)
    bags = [
        collections.Counter(singular.get(word, word) for word in line if _says_something(word))
        for line in tokens
    ]
    rarity = _rarity(bags)
    vectors = []
    for bag in bags:
        vectors.append(_unit({word: (1 + math.log(count)) * rarity[word] for word, count in bag.items()}))
        tick()
    weights = _weights(bags, rarity)
    chosen = _choose(parts, vectors, set(words(title)), tick)
    return {
        "summary": [_shorten(parts[index]) for index in chosen],
        "keywords": [word for word, _ in weights if not word.isdigit()][:KEYWORDS],
        "index": {word: round(weight, 4) for word, weight in weights[:INDEXED]},
        "words": sum(everything.values()),
        "sentences": len(parts),
    }


def _says_something(word: str) -> bool:
    return word not in SMALL_WORDS and 1 < len(word) <= LONGEST_WORD


def _rarity(bags: list[collections.Counter]) -> dict[str, float]:
    """The inverse document frequency of each word, smoothed so that it is never zero."""
    spread = collections.Counter(word for bag in bags for word in bag)
    return {word: math.log((1 + len(bags)) / (1 + count)) + 1 for word, count in spread.items()}


def _weights(bags: list[collections.Counter], rarity: dict[str, float]) -> list[tuple[str, float]]:
    """All words by weight, the greatest first and 1. Frequency counts damped, or long texts would have one topic."""
    total = collections.Counter()
    for bag in bags:
        total.update(bag)
    raw = {word: (1 + math.log(count)) * math.sqrt(count) * rarity[word] for word, count in total.items()}
    most = max(raw.values(), default=1.0)
    return sorted(((word, weight / most) for word, weight in raw.items()), key=lambda pair: (-pair[1], pair[0]))


def _choose(parts: list[str], vectors: list[Vector], title: set[str], tick: Callable[[], None]) -> list[int]:
    """The indices of the sentences to show, by maximal marginal relevance, in the order of the text."""
    centre = _unit(_sum(vectors))
    relevance = []
    for index, vector in enumerate(vectors):
        score = _dot(vector, centre)
        score *= 1.4 if index == 0 else 1.0  # Writers say first what matters.
        score *= 1 + 0.1 * min(3, len(title.intersection(vector)))
        score *= min(1.0, len(vector) / 5)  # A short exclamation is close to everything.
        score *= 0.7 if words(parts[index])[0] in LEANING else 1.0
        relevance.append(score)
    wanted = max(1, min(7, round(math.sqrt(len(parts)) * 0.8))) if parts else 0
    overlap, chosen = [0.0] * len(parts), []
    while len(chosen) < wanted:
        left = [index for index in range(len(parts)) if index not in chosen]
        best = max(left, key=lambda index: relevance[index] * (1 - overlap[index]))
        chosen.append(best)
        for index in left:
            overlap[index] = max(overlap[index], _dot(vectors[index], vectors[best]))
        tick()
    return sorted(chosen)


def _unit(vector: Vector) -> Vector:
    length = math.sqrt(sum(weight * weight for weight in vector.values()))
    return {word: weight / length for word, weight in vector.items()} if length else {}


def _sum(vectors: list[Vector]) -> Vector:
    total: Vector = collections.defaultdict(float)
    for vector in vectors:
        for word, weight in vector.items():
            total[word] += weight
    return total


def _dot(one: Vector, other: Vector) -> float:
    if len(other) < len(one):
        one, other = other, one
    return sum(weight * other.get(word, 0.0) for word, weight in one.items())


def _shorten(sentence: str) -> str:
    if len(sentence) <= LONGEST:
        return sentence
    return sentence[:LONGEST].rsplit(" ", 1)[0] + " …"


class Refused(Exception):
    """The library said no to one request: it has the status and the reason."""

    def __init__(self, status: int, reason: str):
        super().__init__(f"the library answers {status}: {reason}")
        self.status = status


class Library:
    """The library's side for workers, over one connection that is kept."""

    def __init__(self, url: str, worker: str):
        """``url`` is http://HOST:PORT."""
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"LIBRARY_URL={url!r} is no http://HOST:PORT")
        self._worker = worker
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=60)
        self._waiting = self._hung_up = False

    def lease(self, wait: float) -> dict | None:
        """Waits for a document; None if none came, or somebody hung up."""
        query = urllib.parse.urlencode({"worker": self._worker, "wait": f"{max(1, int(wait))}s"})
        self._waiting = True
        try:
            if self._connection.sock is None:
                self._connection.connect()
            # Looked at after there is a connection, as hang_up() looks for one after it has set this.
            return None if self._hung_up else self._post(f"/work/lease?{query}", None)
        finally:
            self._waiting = False

    def renew(self, work: dict) -> None:
        """Keeps a document for a full lease from now."""
        self._post(f"/work/{work['id']}/renew", {"lease": work["lease"]})

    def finish(self, work: dict, result: dict) -> None:
        """Hands in a result, or ``{"error": REASON}``."""
        self._post(f"/work/{work['id']}/result", {"lease": work["lease"], **result})

    def hang_up(self) -> None:
        """Ends the wait for a document, and lets a result that is under way arrive. For another thread than the rest."""
        self._hung_up = True
        sock = self._connection.sock
        if self._waiting and sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # It has just been closed: nobody waits.

    def _post(self, path: str, body: dict | None) -> dict | None:
        data = b"" if body is None else json.dumps(body).encode()
        try:
            self._connection.request("POST", path, data, {"Content-Type": "application/json"})
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        if response.status >= 300:
            raise Refused(response.status, answer.decode("utf-8", "replace").strip())
        return json.loads(answer) if answer else None


library: Library
pace = 0.0


def init() -> None:
    """Reads the settings."""
    global library, pace
    worker = os.environ.get("AGENTD_UNIT", "summarizer").removesuffix(".service")
    library = Library(os.environ.get("LIBRARY_URL", "http://127.0.0.1:8080"), worker)
    pace = float(os.environ.get("SUMMARIZER_PACE", "0"))


def start(stop) -> None:
    """Works until told to stop, and finishes what it has then. A library that is away for a moment is waited for."""
    done = 0
    while not stop.is_set():
        try:
            agent.alive()
            agent.status(f"{done} documents done, waiting for the next")
            work = library.lease(wait=min(20.0, (agent.watchdog_interval() or 60.0) / 3))
            if work is not None:
                work_through(work)
                done += 1
                agent.progress(done)
        except (OSError, http.client.HTTPException, Refused) as error:
            if not stop.is_set():
                agent.status(f"cannot work: {error}")
                agent.log("warning", f"{error}; trying again in a second")
                agent.wait(1)


def stop() -> None:
    """Ends the wait for the next document."""
    library.hang_up()


def work_through(work: dict) -> None:
    """One document, from its text to its result. A lease that is lost meanwhile drops what was done."""
    agent.status(f"reading {work['name']} ({len(work['text'])} characters, attempt {work['attempt']})")
    agent.log("debug", f"reading {work['id']} ({work['name']})")
    renewed = time.monotonic()

    def tick() -> None:
        nonlocal renewed
        agent.alive()
        if pace:
            time.sleep(pace)
        if time.monotonic() - renewed > work["seconds"] / 3:
            library.renew(work)
            renewed = time.monotonic()

    try:
        result = summarize(work["text"], tick)
    except (OSError, http.client.HTTPException, Refused):
        raise
    except Exception as error:
        agent.log("err", f"cannot summarize {work['id']}: {type(error).__name__}: {error}")
        result = {"error": f"{type(error).__name__}: {error}"}
    library.finish(work, result)
    agent.log("info", f"summarized {work['id']} ({work['name']}): {', '.join(result.get('keywords', [])[:5])}")
