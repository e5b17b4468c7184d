"""The housekeeper's digests."""

from __future__ import annotations

import datetime
import pathlib
import tempfile
import unittest

import housekeeper


class Digest(unittest.TestCase):
    def test_it_tells_of_each_finished_and_each_failed_document(self):
        documents = [
            {"id": "1", "name": "tale", "state": "done"},
            {"id": "2", "name": "poison", "state": "failed", "failure": "nobody could"},
            {"id": "3", "name": "new", "state": "queued"},
        ]
        summaries = {"1": {"summary": ["A train.", "A bridge."], "keywords": ["train", "bridge"]}}
        self.assertEqual(
            housekeeper.digest(datetime.date(2030, 1, 2), documents, summaries),
            "# The library on 2030-01-02\n\n3 documents: 1 done, 1 failed, 1 queued.\n\n"
            "## tale\n\nA train.\nA bridge.\n\n*train, bridge*\n\n## poison\n\nSet aside: nobody could\n",
        )

    def test_an_empty_library_has_a_digest(self):
        self.assertIn("0 documents: empty.", housekeeper.digest(datetime.date(2030, 1, 2), [], {}))


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_only_the_newest_digests_stay(self):
        for day in ("2030-01-09", "2030-01-10", "2029-12-31"):
            (self.folder / f"digest-{day}.md").touch()
        (self.folder / "notes.md").touch()
        (self.folder / ".new-broken").touch()
        self.assertEqual(housekeeper.prune(self.folder, 2), 1)
        self.assertEqual(
            sorted(path.name for path in self.folder.iterdir()),
            ["digest-2030-01-09.md", "digest-2030-01-10.md", "notes.md"],
        )

    def test_a_file_is_replaced_whole(self):
        path = self.folder / "digest.md"
        for text in ("first", "second"):
            housekeeper.replace(path, text)
            self.assertEqual(path.read_text(), text)
        self.assertEqual([entry.name for entry in self.folder.iterdir()], ["digest.md"])


if __name__ == "__main__":
    unittest.main()
