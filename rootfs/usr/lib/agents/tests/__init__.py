"""Tests of the Python agents; they find the agents and the kit where the image has them, beside each other."""

import pathlib
import sys

AGENTS = pathlib.Path(__file__).resolve().parent.parent
KIT = AGENTS.parent / "agentd" / "python"

for folder in (KIT, AGENTS / "summarizer", AGENTS / "housekeeper"):
    sys.path.insert(0, str(folder))
