"""What the summarizer makes of texts."""

from __future__ import annotations

import json
import time
import unittest

import summarizer

TALE = """# The night train

The night train left the harbour at ten. Mr. Alder, the guard, walked through its coaches with a lantern. No passenger
spoke, e.g. to ask about the weather, although the storm had taken two bridges already.

At midnight the train stopped before the third bridge. The guard climbed down and found that the river had carried away
the middle of the bridge. He ran back along the train and told the driver. The driver let the train roll back.

Nobody was lost! Years later the guard still kept the lantern. A train is only as good as its bridges.
"""


class Sentences(unittest.TestCase):
    def test_sentences_end_where_a_reader_ends_them(self):
        for text, expected in [
            ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
            ("Mr. A. Smith met Dr. Who. They spoke.", ["Mr. A. Smith met Dr. Who.", "They spoke."]),
            ("Use tools, e.g. Make. Done.", ["Use tools, e.g. Make.", "Done."]),
            ('"Go." He went. (He ran.) Gone.', ['"Go."', "He went.", "(He ran.)", "Gone."]),
            ("Version 3.9 is old. It works.", ["Version 3.9 is old.", "It works."]),
            ("it ends. but not here. Here.", ["it ends. but not here.", "Here."]),
            ("Über uns. Ärger droht.", ["Über uns.", "Ärger droht."]),
            ("一句话。第二句。", ["一句话。", "第二句。"]),
            ("a line\nbroken in two.\n\nAnother", ["a line broken in two.", "Another"]),
            ("- first item\n- second **item** here\n12. third", ["first item", "second **item** here", "third"]),
            ("Before.\n```\ncode(). Not text.\n```\nAfter.\n| a | b |\n|---|---|\n", ["Before.", "After."]),
            ("... --- !!!", []),
            ("", []),
        ]:
            with self.subTest(text):
                self.assertEqual(summarizer.sentences(text)[1], expected)

    def test_a_title_is_no_sentence(self):
        for text in ("# Title\n\nText here.", "Title\n=====\nText here.", "Title\n-----\n\nText here."):
            with self.subTest(text):
                self.assertEqual(summarizer.sentences(text), ("Title", ["Text here."]))


class Summaries(unittest.TestCase):
    def test_the_summary_is_sentences_of_the_text_in_their_order(self):
        result = summarizer.summarize(TALE)
        flat = " ".join(TALE.split())
        places = [flat.index(sentence) for sentence in result["summary"]]
        self.assertEqual(places, sorted(places))
        self.assertEqual(len(places), 3)
        self.assertEqual(result["summary"][0], "The night train left the harbour at ten.")

    def test_keywords_are_what_the_text_is_about(self):
        self.assertEqual(set(summarizer.summarize(TALE)["keywords"][:3]), {"train", "bridge", "guard"})

    def test_counts_are_those_of_the_text(self):
        result = summarizer.summarize("One two three. Four five.")
        self.assertEqual((result["words"], result["sentences"]), (5, 2))

    def test_what_is_said_twice_is_shown_once(self):
        text = "Bridges carry trains over rivers every single day. " * 6 + "Guards carry lanterns through dark coaches."
        self.assertIn("Guards carry lanterns through dark coaches.", summarizer.summarize(text)["summary"])

    def test_the_index_is_bounded_and_its_greatest_weight_is_1(self):
        text = ". ".join(f"Word{number} stands here" for number in range(1000))
        index = summarizer.summarize(text)["index"]
        self.assertEqual((len(index), max(index.values())), (100, 1.0))
        self.assertNotIn("the", index)

    def test_odd_texts_have_a_summary_too(self):
        for text in ("word", "the of and", "x" * 100_000, "a " * 50_000, "🙂 ok.", "12 34. 56 78."):
            with self.subTest(text[:20]):
                result = summarizer.summarize(text)
                self.assertEqual(len(result["summary"]), 1)
                self.assertLess(len(json.dumps(result)), 10_000)

    def test_the_same_text_gives_the_same_result(self):
        self.assertEqual(summarizer.summarize(TALE), summarizer.summarize(TALE))

    def test_a_large_text_ticks_all_along(self):
        ticks = []
        text = " ".join(f"Sentence number {n} talks about topic{n % 97} and bridges." for n in range(5000))
        summarizer.summarize(text, lambda: ticks.append(time.monotonic()))
        self.assertGreaterEqual(len(ticks), 5000)


class Addresses(unittest.TestCase):
    def test_only_http_addresses_are_taken(self):
        for url in ("https://host", "host:80", "http://", "http:///path"):
            with self.subTest(url), self.assertRaisesRegex(ValueError, "no http://HOST:PORT"):
                summarizer.Library(url, "worker")


if __name__ == "__main__":
    unittest.main()
