"""The life-cycle, driven through real processes and real signals."""

from __future__ import annotations

import signal
import time
import unittest

from .manager import AgentTest


class Start(AgentTest):
    def test_ready_is_said_after_init_and_before_start(self):
        code, out, _ = self.live(
            """
            from agentd import agent
            def init(): agent.status("init")
            def start(): agent.status("start")
            """
        )
        self.assertEqual(code, 0)
        self.assertEqual(self.manager.pending(), [["STATUS=init"], ["READY=1"], ["STATUS=start"]])

    def test_a_start_that_returns_at_once_ends_the_agent_cleanly(self):
        self.assertEqual(self.live("def start(stop): print('done')"), (0, "done\n", ""))

    def test_stop_is_called_when_start_returns(self):
        self.assertEqual(self.live("def start(): pass\ndef stop(): print('cleaned')"), (0, "cleaned\n", ""))

    def test_an_init_that_fails_never_becomes_ready(self):
        code, _, err = self.live("def init(): raise RuntimeError('no database')\ndef start(): pass")
        self.assertEqual((code, self.manager.pending()), (1, []))
        self.assertIn("RuntimeError: no database", err)

    def test_a_start_that_raises_is_told_with_its_line_and_exit_code_1(self):
        code, out, err = self.live("def start(stop):\n    print('last words')\n    return 1 / 0\n")
        self.assertEqual((code, out), (1, "last words\n"))
        self.assertIn("<3>    return 1 / 0", err)
        self.assertIn("<3>ZeroDivisionError: division by zero", err)
        self.assertNotIn("life.py", err)

    def test_exit_codes_of_sys_exit_are_kept(self):
        for source, expected in [
            ("import sys\ndef start(): sys.exit(7)", 7),
            ("import sys\ndef init(): sys.exit(0)\ndef start(): print('never')", 0),
            ("import sys\nsys.exit(5)", 5),
            ("import sys\nsys.exit(0)\ndef start(): print('never')", 0),
            ("import sys\ndef start(): sys.exit('told')", 1),
        ]:
            with self.subTest(source):
                code, out, _ = self.live(source)
                self.assertEqual((code, out), (expected, ""))

    def test_functions_that_cannot_be_called_are_refused_before_init(self):
        for source, reason in [
            ("async def start(stop): pass", "start() is a coroutine"),
            ("def start(stop, more): pass", "start() must take one argument"),
            ("def start(): pass\ndef stop(now): pass", "stop() must be callable without arguments"),
        ]:
            with self.subTest(source):
                code, _, err = self.live("def init(): print('never')\n" + source)
                self.assertEqual((code, self.manager.pending()), (2, []))
                self.assertIn(reason, err)

    def test_an_agent_without_start_lives_until_it_is_stopped(self):
        process = self.run_agent(self.write("def init(): print('up')\ndef stop(): print('down')"))
        self.manager.receive_until("READY=1")
        self.assertEqual(self.stop(process), (0, "up\ndown\n", ""))

    def test_the_working_directory_is_left_alone(self):
        code, out, _ = self.live("import os\ndef start(): print(os.getcwd())", cwd="/usr")
        self.assertEqual((code, out), (0, "/usr\n"))


class Script(AgentTest):
    def test_a_script_is_ready_before_it_runs_and_is_main(self):
        code, out, _ = self.live(
            """
            from agentd import agent
            agent.status("working")
            if __name__ == "__main__":
                print("main")
            """
        )
        self.assertEqual((code, out), (0, "main\n"))
        self.assertEqual(self.manager.pending(), [["READY=1"], ["STATUS=working"]])

    def test_a_script_that_never_looks_is_left_through_its_finally_blocks(self):
        process = self.run_agent(
            self.write(
                """
                import time
                from agentd import agent
                try:
                    agent.status("in")
                    time.sleep(3600)
                finally:
                    print("tidied")
                """
            )
        )
        self.manager.receive_until("STATUS=in")
        self.assertEqual(self.stop(process), (0, "tidied\n", ""))

    def test_a_script_that_waits_is_told_by_wait(self):
        process = self.run_agent(
            self.write("from agentd import agent\nagent.status('in') or agent.wait() and print('told')")
        )
        self.manager.receive_until("STATUS=in")
        self.assertEqual(self.stop(process)[0], 0)


class Stop(AgentTest):
    def test_stop_sets_the_event_calls_stop_and_exits_0(self):
        process = self.run_agent(
            self.write(
                """
                def start(stop):
                    stop.wait()
                    print("start ends")
                def stop():
                    print("stop ends")
                """
            )
        )
        self.manager.receive_until("READY=1")
        code, out, err = self.stop(process)
        self.assertEqual((code, sorted(out.splitlines()), err), (0, ["start ends", "stop ends"], ""))
        self.assertEqual(self.manager.pending(), [["STOPPING=1"]])

    def test_a_stop_as_soon_as_it_is_ready_still_lets_start_tidy_up(self):
        for _ in range(20):
            process = self.run_agent(self.write("def start(stop): stop.wait(); print('tidied')"))
            self.manager.receive_until("READY=1")
            self.assertEqual(self.stop(process), (0, "tidied\n", ""))

    def test_a_busy_wait_on_the_event_never_deadlocks_with_the_signal(self):
        source = self.write("def start(stop):\n    while not stop.wait(0.0001): pass")
        processes = [self.run_agent(source) for _ in range(10)]
        for _ in processes:
            self.manager.receive_until("READY=1")
        for process in processes:
            self.assertEqual(self.stop(process), (0, "", ""))

    def test_a_stop_that_raises_is_shown_and_fails_the_agent(self):
        process = self.run_agent(self.write("def start(stop): stop.wait()\ndef stop(): raise OSError('disk full')"))
        self.manager.receive_until("READY=1")
        code, _, err = self.stop(process)
        self.assertEqual(code, 1)
        self.assertIn("OSError: disk full", err)

    def test_a_start_without_event_and_stop_is_left_by_force(self):
        process = self.run_agent(self.write("import time\ndef start():\n    time.sleep(3600)"))
        self.manager.receive_until("READY=1")
        self.assertEqual(self.stop(process), (0, "", ""))

    def test_a_stop_during_init_ends_it_without_ready(self):
        process = self.run_agent(
            self.write("import time\nfrom agentd import agent\ndef init():\n    agent.status('in')\n    time.sleep(3600)")
        )
        self.manager.receive_until("STATUS=in")
        self.assertEqual(self.stop(process), (0, "", ""))
        self.assertEqual(self.manager.pending(), [["STOPPING=1"]])

    def test_a_signal_to_a_forked_child_ends_the_child_alone(self):
        process = self.run_agent(
            self.write(
                """
                import os, signal, time
                def start(stop):
                    for _ in range(100):
                        child = os.fork()
                        if child == 0:
                            time.sleep(3600)
                        os.kill(child, signal.SIGTERM)
                        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM
                    print(stop.is_set())
                """
            )
        )
        self.assertEqual(self.finish(process), (0, "False\n", ""))


class Reload(AgentTest):
    def test_reload_runs_in_the_live_process_between_reloading_and_ready(self):
        process = self.run_agent(
            self.write(
                """
                count = 0
                def start(stop): stop.wait(); print(count)
                def reload():
                    global count
                    count += 1
                """
            )
        )
        self.manager.receive_until("READY=1")
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        process.send_signal(signal.SIGHUP)
        reloading = self.manager.receive()
        self.assertEqual(reloading[0], "RELOADING=1")
        self.assertGreaterEqual(int(reloading[1].removeprefix("MONOTONIC_USEC=")), before)
        self.assertEqual(self.manager.receive(), ["READY=1"])
        self.assertEqual(self.stop(process), (0, "1\n", ""))

    def test_a_reload_that_fails_is_shown_and_the_agent_runs_on(self):
        process = self.run_agent(self.write("def start(stop): stop.wait()\ndef reload(): raise ValueError('bad file')"))
        self.manager.receive_until("READY=1")
        process.send_signal(signal.SIGHUP)
        last = self.manager.receive_until("READY=1")[-1]
        self.assertIn("reload failed: ValueError('bad file')", last[1])
        code, _, err = self.stop(process)
        self.assertEqual(code, 0)
        self.assertIn("ValueError: bad file", err)

    def test_a_reload_that_hangs_does_not_hold_up_the_stop(self):
        process = self.run_agent(
            self.write("import time\ndef start(stop): stop.wait()\ndef reload(): time.sleep(3600)")
        )
        self.manager.receive_until("READY=1")
        process.send_signal(signal.SIGHUP)
        self.manager.receive()
        self.assertEqual(self.stop(process)[0], 0)

    def test_hangup_is_caught_exactly_when_there_is_a_reload(self):
        bit = 1 << (signal.SIGHUP - 1)
        for source, expected in [("def reload(): pass", bit), ("", 0)]:
            with self.subTest(source):
                process = self.run_agent(self.write(source + "\ndef start(stop): stop.wait()"))
                self.manager.receive_until("READY=1")
                with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                    caught = next(line for line in file if line.startswith("SigCgt:"))
                self.assertEqual(int(caught.split()[1], 16) & bit, expected)
                self.stop(process)


if __name__ == "__main__":
    unittest.main()
