"""Where an agent's code comes from, and that nothing else gets in."""

from __future__ import annotations

import io
import os
import zipfile

from .manager import AgentTest, memfd


class Verified(AgentTest):
    def run_bytes(self, module: str, data: bytes, **options):
        """Runs a module from a descriptor, as the manager does for verified code."""
        fd = memfd(data)
        self.addCleanup(os.close, fd)
        return self.finish(self.run_agent(module, env={"AGENTD_MODULE_FD": str(fd)}, pass_fds=[fd], **options))

    def test_the_bytes_run_and_not_the_path(self):
        path = self.write("def start(): print('from the path')")
        self.assertEqual(self.run_bytes(path, b"def start(): print('verified', __file__)"), (0, f"verified {path}\n", ""))

    def test_the_path_need_not_exist(self):
        self.assertEqual(self.run_bytes("/nowhere/agent.py", b"print(__file__)"), (0, "/nowhere/agent.py\n", ""))

    def test_tracebacks_show_the_verified_source(self):
        path = self.write("def start():\n    the_altered_line()\n")
        for case, text in [
            ("main thread", b"def start():\n    verified_line()\n"),
            ("another", b"import threading\ndef start():\n    t = threading.Thread(target=lambda: verified_line())\n"
                        b"    t.start(); t.join()\n"),
        ]:
            with self.subTest(case):
                err = self.run_bytes(path, text)[2]
                self.assertIn("verified_line()", err)
                self.assertNotIn("altered", err)

    def test_siblings_of_the_module_cannot_be_imported(self):
        self.write("print('intruder')", "helper.py")
        path = self.write("")
        code, out, err = self.run_bytes(path, b"import helper\ndef start(): pass", cwd=self.folder)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("No module named 'helper'", err)

    def test_neither_variable_nor_descriptor_reaches_children(self):
        source = b"""
import os, subprocess
def start():
    print("AGENTD_MODULE_FD" in os.environ)
    print(subprocess.run(["/bin/sh", "-c", "ls /proc/self/fd | wc -l; echo $NOTIFY_SOCKET"],
                         close_fds=False, capture_output=True, text=True).stdout.split())
"""
        self.assertEqual(self.run_bytes("/x/agent.py", source), (0, "False\n['4']\n", ""))

    def test_a_package_comes_whole_from_its_zip(self):
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            archive.writestr("team/__init__.py", "")
            archive.writestr("team/lead.py", "from .member import name\ndef start(): print(name())")
            archive.writestr("team/member.py", "def name(): import team.late; return team.late.NAME")
            archive.writestr("team/late.py", "NAME = 'zipped'")
        self.write("NAME = 'intruder'", "team/late.py")
        self.assertEqual(self.run_bytes("team.lead", data.getvalue(), cwd=self.folder), (0, "zipped\n", ""))

    def test_a_descriptor_that_is_none_is_refused(self):
        path = self.write("print('never')")
        for value in ("", "x", "1", "-3", "999"):
            with self.subTest(value):
                code, out, err = self.finish(self.run_agent(path, env={"AGENTD_MODULE_FD": value}))
                self.assertEqual((code, out), (2, ""))
                self.assertIn("AGENTD_MODULE_FD", err)


class FromPath(AgentTest):
    def test_what_cannot_be_loaded_is_named_with_exit_code_2(self):
        for module, reason in [
            ("/nowhere/agent.py", "/nowhere/agent.py cannot be read: No such file or directory"),
            ("agent.py", "neither an absolute path nor a dotted module name"),
            ("no.such.module", "module no.such.module is not found"),
            (self.write("def start(:\n", "broken.py"), "SyntaxError: invalid syntax"),
            (self.write("import no_such_thing\ndef start(): pass", "needy.py"), "No module named 'no_such_thing'"),
            (self.write("", "agent.txt"), "does not end in .py"),
        ]:
            with self.subTest(module):
                code, _, err = self.finish(self.run_agent(module))
                self.assertEqual((code, self.manager.pending()), (2, []))
                self.assertIn(reason, err)

    def test_an_agent_named_like_a_standard_module_does_not_replace_it(self):
        path = self.write("def start():\n    import queue\n    print(queue.Queue.__name__)", "queue.py")
        self.assertEqual(self.finish(self.run_agent(path)), (0, "Queue\n", ""))

    def test_a_dotted_module_comes_from_the_python_path(self):
        self.write("", "team/__init__.py")
        self.write("def start(): print(__name__)", "team/lead.py")
        process = self.run_agent("team.lead", env={"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual(self.finish(process), (0, "team.lead\n", ""))

    def test_a_dotted_script_runs_as_main(self):
        self.write("", "team/__init__.py")
        self.write("if __name__ == '__main__': print(__package__)", "team/job.py")
        process = self.run_agent("team.job", env={"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual(self.finish(process), (0, "team\n", ""))

    def test_nothing_is_imported_from_the_working_directory(self):
        self.write("print('intruder')", "helper.py")
        path = self.write("import helper\ndef start(): pass", "agents/agent.py")
        code, out, _ = self.finish(self.run_agent(path, cwd=self.folder))
        self.assertEqual((code, out), (2, ""))
