"""What an agent can say and ask."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import unittest

from agentd import listen, logs, notify

from .manager import DEADLINE, RUNNER, AgentTest


class Notify(AgentTest):
    def test_paths_and_abstract_names_are_addresses(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as abstract:
            abstract.bind(f"\0agentd-kit-{os.getpid()}")
            abstract.settimeout(DEADLINE)
            self.assertTrue(notify.Notifier(f"@agentd-kit-{os.getpid()}").send("READY=1"))
            self.assertEqual(abstract.recv(100), b"READY=1")
        self.assertTrue(notify.Notifier(self.manager.address).send("A=1", "B=2"))
        self.assertEqual(self.manager.receive(), ["A=1", "B=2"])

    def test_other_addresses_are_refused_by_name(self):
        for address in ("relative/path", "@", "vsock:2:1"):
            with self.subTest(address), self.assertRaisesRegex(ValueError, address):
                notify.Notifier(address)

    def test_without_a_manager_nothing_happens(self):
        self.assertFalse(notify.Notifier(None).send("READY=1"))

    def test_a_manager_that_went_away_does_not_end_the_agent(self):
        code, out, err = self.live(
            """
            import os
            from agentd import agent
            def start():
                os.unlink(os.environ["ADDRESS"])
                agent.ready(); agent.ready()
                print("alive")
            """,
            env={"ADDRESS": self.manager.address},
        )
        self.assertEqual((code, out), (0, "alive\n"))
        self.assertEqual(err.count("cannot send"), 1)

    def test_a_full_queue_never_holds_up_status_and_beats(self):
        sender = notify.Notifier(self.manager.address)
        for _ in range(100_000):
            if not sender.send("STATUS=flood", must_arrive=False):
                return
        self.fail("the queue never filled")

    def test_a_status_is_one_line_whatever_it_holds(self):
        self.live("from agentd import agent\ndef start(): agent.status('a\\nREADY=0\\rb')")
        self.assertEqual(self.manager.pending()[-1], ["STATUS=a READY=0 b"])

    def test_progress_is_a_number_that_counts(self):
        code, _, err = self.live("from agentd import agent\ndef start():\n    agent.progress(3)\n    agent.progress(-1)")
        self.assertEqual(self.manager.pending()[-1], ["X_AGENTD_PROGRESS=3"])
        self.assertEqual(code, 1)


class Watchdog(AgentTest):
    def test_waiting_beats_and_a_hang_does_not(self):
        process = self.run_agent(
            self.write(
                """
                import time
                from agentd import agent
                def start():
                    agent.wait(0.5)
                    agent.status("hang")
                    time.sleep(3600)
                """
            ),
            env={"WATCHDOG_USEC": "200000"},
        )
        beats = self.manager.receive_until("STATUS=hang").count(["WATCHDOG=1"])
        self.assertGreaterEqual(beats, 3)
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        self.assertEqual(self.manager.pending(), [])

    def test_beats_are_at_most_four_an_interval(self):
        self.live(
            "from agentd import agent\ndef start():\n    for _ in range(1000): agent.alive()",
            env={"WATCHDOG_USEC": "3600000000"},
        )
        self.assertEqual(self.manager.pending(), [["READY=1"], ["WATCHDOG=1"]])

    def test_a_watchdog_of_another_process_is_not_ours(self):
        for env in ({}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "5", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "x"}):
            with self.subTest(env):
                out = self.live("from agentd import agent\nprint(agent.watchdog_interval())", env=env)[1]
                self.assertEqual(out, "None\n")


class Listen(unittest.TestCase):
    def setUp(self):
        self.reader, self.writer = socket.socketpair()
        self.addCleanup(self.reader.close)
        self.addCleanup(self.writer.close)

    def test_only_what_is_meant_for_this_process_counts(self):
        for case, environ in [
            ("nothing", {}),
            ("no pid", {"LISTEN_FDS": "1"}),
            ("another process", {"LISTEN_FDS": "1", "LISTEN_PID": "1"}),
            ("none", {"LISTEN_FDS": "0", "LISTEN_PID": "77"}),
        ]:
            with self.subTest(case):
                self.assertEqual(listen.passed(environ, 77), [])

    def test_nonsense_is_refused_by_name(self):
        for environ, reason in [
            ({"LISTEN_FDS": "x", "LISTEN_PID": "77"}, "LISTEN_FDS='x' is not a number"),
            ({"LISTEN_FDS": "1", "LISTEN_PID": "self"}, "LISTEN_PID='self' is not a number"),
            ({"LISTEN_FDS": "-1", "LISTEN_PID": "77"}, "LISTEN_FDS='-1' is not a number"),
            ({"LISTEN_FDS": "1", "LISTEN_PID": "77", "LISTEN_FDNAMES": "a:b"}, "does not name 1 descriptors"),
        ]:
            with self.subTest(environ), self.assertRaisesRegex(ValueError, reason):
                listen.passed(environ, 77)

    def test_a_descriptor_that_is_not_open_is_an_error(self):
        with self.assertRaisesRegex(OSError, "is not open"):
            listen.passed({"LISTEN_FDS": "2000", "LISTEN_PID": "77"}, 77)


class Passed(AgentTest):
    def test_a_connection_made_before_the_start_is_served(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            client = socket.create_connection(server.getsockname(), timeout=DEADLINE)
            self.addCleanup(client.close)
            path = self.write(
                """
                from agentd import agent
                def start():
                    [listener] = agent.listeners("web")
                    assert agent.listeners() == [listener] and agent.listeners("other") == []
                    assert agent.listen_fds() == [3]
                    listener.accept()[0].sendall(b"hello")
                """
            )
            # A shell puts the listener where the protocol wants it and says for which process it is.
            script = f'LISTEN_PID=$$ exec "$@" 3<&{server.fileno()} {server.fileno()}<&-'
            command = [sys.executable, "-u", str(RUNNER), "--module", path]
            process = subprocess.run(
                ["/bin/sh", "-c", script, "sh", *command], pass_fds=[server.fileno()], timeout=DEADLINE,
                env={"LISTEN_FDS": "1", "LISTEN_FDNAMES": "web"}, capture_output=True, text=True, check=False,
            )
            self.assertEqual((process.returncode, process.stderr), (0, ""))
            self.assertEqual(client.recv(100), b"hello")


class Environment(AgentTest):
    def test_credentials_are_read_by_name_only(self):
        (self.folder / "token").write_bytes(b"s3cret")
        code, out, _ = self.live(
            """
            from agentd import agent
            def start():
                print(agent.credential("token"))
                for name in ("", "..", "a/b", "missing"):
                    try: agent.credential(name)
                    except (ValueError, OSError) as error: print(type(error).__name__)
            """,
            env={"CREDENTIALS_DIRECTORY": str(self.folder)},
        )
        self.assertEqual(out.split(), ["b's3cret'", "ValueError", "ValueError", "ValueError", "FileNotFoundError"])

    def test_the_state_directory_is_the_units_first(self):
        for env, expected in [
            ({}, "/fallback"),
            ({"STATE_DIRECTORY": "/a:/b"}, "/a"),
            ({"STATE_DIRECTORY": "/a", "AGENTD_STATE_DIRECTORY": "/own"}, "/own"),
        ]:
            with self.subTest(env):
                out = self.live("from agentd import agent\nprint(agent.state_directory('/fallback'))", env=env)[1]
                self.assertEqual(out, expected + "\n")

    def test_children_do_not_inherit_the_agents_voice(self):
        out = self.live(
            "import os\nfrom agentd import agent\nprint([k for k in os.environ if k[:6] in ('NOTIFY', 'WATCHD', 'LISTEN')])",
            env={"WATCHDOG_USEC": "1000000", "LISTEN_FDS": "0", "LISTEN_PID": "1", "LISTEN_FDNAMES": ""},
        )[1]
        self.assertEqual(out, "[]\n")


class Log(AgentTest):
    def test_every_line_has_its_priority(self):
        self.assertEqual(logs.render(4, "a\nb", prefixed=True), "<4>a\n<4>b\n")
        self.assertEqual(logs.render(4, "", prefixed=True), "<4>\n")

    def test_levels_have_names_and_numbers(self):
        self.assertEqual([logs.priority(level) for level in ("err", "error", "warning", "debug", 0)], [3, 3, 4, 7, 0])
        for level in ("loud", 8, -1):
            with self.subTest(level), self.assertRaises(ValueError):
                logs.priority(level)

    def test_the_logging_module_speaks_in_priorities(self):
        err = self.live(
            """
            import logging
            from agentd.logs import Handler
            logging.basicConfig(handlers=[Handler()], level=logging.DEBUG, format="%(message)s")
            for call in (logging.critical, logging.error, logging.warning, logging.info, logging.debug):
                call("x")
            """
        )[2]
        self.assertEqual(err, "<2>x\n<3>x\n<4>x\n<6>x\n<7>x\n")

    def test_a_print_is_one_write(self):
        reader, writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with reader, writer:
            path = self.write("print('one', 'line', end='.\\n')")
            subprocess.run([sys.executable, "-u", str(RUNNER), "--module", path], stdout=writer, check=True,
                           env={}, timeout=DEADLINE)
            self.assertEqual(reader.recv(100), b"one line.\n")


if __name__ == "__main__":
    unittest.main()
