"""./dev installs no Debian package without saying so first and, on a terminal, asking."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What ./dev itself runs. clang-format and clang-tidy are missing.
USED = ("bash", "dirname", "find", "sort", "xargs")
# In place of apt-get and sudo: the one notes its arguments, the other runs them.
APT = '#!/bin/sh\necho "$@" >>"$0.log"\n'
SUDO = '#!/bin/sh\nexec "$@"\n'
COMMAND = "apt-get install --no-install-recommends clang-format clang-tidy"


class Ensure(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        for name in USED + ("env",):
            (self.folder / name).symlink_to(shutil.which(name))
        for name, text in (("apt-get", APT), ("sudo", SUDO)):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def run_dev(self, *arguments: str, answer: str | None = None, **environment: str) -> tuple[int, str]:
        """(exit code, output). With an answer, on a terminal where it is typed."""
        environment = {"PATH": str(self.folder)} | environment
        command = [shutil.which("bash"), str(ROOT / "dev"), *arguments]
        if answer is None:
            ran = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            return ran.returncode, ran.stdout
        ours, theirs = pty.openpty()
        os.write(ours, f"{answer}\n".encode())
        ran = subprocess.run(command, env=environment, stdin=theirs, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.close(ours)
        os.close(theirs)
        return ran.returncode, ran.stdout

    def installed(self) -> str:
        log = self.folder / "apt-get.log"
        return log.read_text() if log.exists() else ""

    def assert_installs(self, *arguments: str, **how: str) -> None:
        code, text = self.run_dev(*arguments, **how)
        self.assertIn(COMMAND, text)
        self.assertIn("update", self.installed())
        self.assertIn("--no-install-recommends clang-format clang-tidy\n", self.installed())
        # The stub installs nothing, which is noticed.
        self.assertEqual(code, 1)
        self.assertIn("still missing after the installation: clang-format clang-tidy", text)

    def assert_installs_nothing(self, *arguments: str, **how: str) -> str:
        code, text = self.run_dev(*arguments, **how)
        self.assertEqual(code, 1)
        self.assertIn(COMMAND, text)
        self.assertEqual(self.installed(), "")
        return text

    def test_without_a_terminal_it_says_what_to_run(self):
        self.assertIn("--yes", self.assert_installs_nothing("check-format"))

    def test_yes_is_taken_anywhere(self):
        self.assert_installs("--yes", "check-format")

    def test_yes_after_the_command(self):
        self.assert_installs("check-format", "--yes")

    def test_variable_for_machines(self):
        self.assert_installs("check-format", DEV_YES="1")

    def test_answer_no(self):
        self.assert_installs_nothing("check-format", answer="n")

    def test_empty_answer_is_no(self):
        self.assert_installs_nothing("check-format", answer="")

    def test_answer_yes(self):
        self.assert_installs("check-format", answer="y")


if __name__ == "__main__":
    unittest.main()
