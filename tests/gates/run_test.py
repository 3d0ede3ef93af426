"""What tests/run.py makes of results: nothing that failed may be lost, nor counted as passed."""

import contextlib
import io
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import run

PASSES = "[==========] 3 tests from 1 test suite ran. (0 ms total)\n[  PASSED  ] 3 tests.\n"
SKIPS = "a_test.cpp:27: Skipped\nno GPU\n" + PASSES
FAILS = "[  FAILED  ] Groups/Joining.InTime/1\n" + PASSES


class Report(unittest.TestCase):
    def of(self, *cases: tuple) -> tuple[int, str]:
        """(failures, what was printed) of (name, status, output, skipped)."""
        suite = ElementTree.Element("testsuite")
        for name, status, output, skipped in cases:
            case = ElementTree.SubElement(suite, "testcase", name=name, status=status)
            ElementTree.SubElement(case, "system-out").text = output
            if skipped:
                ElementTree.SubElement(case, "skipped")
        known = {"unit.Joining": [str(run.ROOT / "build/x/bin/unit"), "--gtest_brief=1"], "script": ["sh"]}
        with (tempfile.TemporaryDirectory() as folder,
              mock.patch.object(run, "commands_of", lambda preset: known),
              contextlib.redirect_stdout(io.StringIO()) as printed):
            results = Path(folder) / "results.xml"
            results.write_bytes(ElementTree.tostring(suite))
            return run.report("x", results), printed.getvalue()

    def test_cases_of_a_suite_are_counted(self):
        failures, text = self.of(("unit.A", "run", PASSES, False), ("script", "run", "fine", False))
        self.assertEqual(failures, 0)
        self.assertIn("\n4 passed, 0 failed, 0 skipped\n", text)

    def test_a_failure_is_told_with_the_command_that_repeats_it(self):
        failures, text = self.of(("unit.Joining", "fail", FAILS, False), ("script", "fail", "no", False))
        self.assertEqual(failures, 2)
        self.assertIn("build/x/bin/unit --gtest_filter='Groups/Joining.InTime/1'", text)
        self.assertIn("ctest --preset x --output-on-failure -R '^script$'", text)
        self.assertIn("2 failed", text)

    def test_a_reason_is_told_once(self):
        _, text = self.of(("unit.A", "run", SKIPS, False), ("unit.B", "run", SKIPS, False),
                          ("script", "notrun", "looked around\nno spin", True))
        self.assertIn("skipped 2: no GPU", text)
        self.assertIn("skipped 1: no spin", text)
        self.assertIn("\n4 passed, 0 failed, 3 skipped\n", text)

    def test_lines_of_ctest(self):
        line = " 12/320 Test  #27: unit.Joining .......................***Failed    0.31 sec"
        self.assertEqual(run.ENDED.match(line).groups(), ("unit.Joining", "***Failed", "0.31"))
        line = "  1/320 Test   #3: a.b ....   Passed    1.00 sec"
        self.assertEqual(run.ENDED.match(line).groups(), ("a.b", "Passed", "1.00"))


if __name__ == "__main__":
    unittest.main()
