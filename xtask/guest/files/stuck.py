"""Beats while it waits, and has a child of its own, so that a test can stop it and see both brought down."""

import subprocess

from agentd import agent


def start(stop):
    child = subprocess.Popen(["/usr/lib/agentd-test/busybox", "sleep", "123456"])
    with open("/dev/console", "w") as console:
        print(f"STUCK lives, child {child.pid}", file=console)
    agent.wait()
