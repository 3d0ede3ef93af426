"""Runs the tests of a build and tells a person what came: run.py PRESET [--jobs N] [CTEST ARGUMENTS]

One line for each test that ran; in the end the output of those that failed, each with the command
that repeats it, what was skipped and why, and one line of counts.
"""

import argparse
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENDED = re.compile(r"\s*\d+/\d+ Test\s+#\d+: (\S+) \.*\s*(.*?)\s+([\d.]+) sec\s*$")
CASES = re.compile(r"^\[==========\] (\d+) tests? from .* ran", re.MULTILINE)
FAILED_CASE = re.compile(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", re.MULTILINE)
# GoogleTest prints where a case was skipped, and the reason below.
SKIPPED_CASE = re.compile(r"^\S+:\d+: Skipped\n(.*)$", re.MULTILINE)
MOST_OUTPUT = 20_000  # of a test that failed, in characters: its end


def run_ctest(preset: str, jobs: int, rest: list[str], results: Path) -> int:
    results.unlink(missing_ok=True)
    command = ["ctest", "--preset", preset, "--parallel", str(jobs), "--output-junit", str(results),
               "--test-output-size-passed", "100000", "--test-output-size-failed", "1000000", *rest]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace") as ctest:
        silent = []
        for line in ctest.stdout:
            if ended := ENDED.match(line):
                name, how, seconds = ended.groups()
                print(f"{how.strip('*').lower():<10} {float(seconds):7.1f} s  {name}", flush=True)
            else:
                silent.append(line)
    if not results.exists():
        sys.stdout.writelines(silent[-40:])
    return ctest.returncode


def commands_of(preset: str) -> dict[str, list[str]]:
    shown = subprocess.run(["ctest", "--preset", preset, "--show-only=json-v1"], cwd=ROOT,
                           stdout=subprocess.PIPE, text=True, check=True).stdout
    return {test["name"]: test.get("command", []) for test in json.loads(shown)["tests"]}


def repeat(preset: str, name: str, command: list[str], output: str) -> str:
    """What to type to see it fail again."""
    cases = sorted(set(FAILED_CASE.findall(output)))
    if cases and command:
        return f"{Path(command[0]).relative_to(ROOT)} --gtest_filter='{':'.join(cases)}'"
    return f"ctest --preset {preset} --output-on-failure -R '^{re.escape(name)}$'"


def report(preset: str, results: Path) -> int:
    passed, failures, skipped = 0, [], Counter()
    for test in ElementTree.parse(results).getroot().iter("testcase"):
        output = test.findtext("system-out") or ""
        cases = sum(map(int, CASES.findall(output))) or 1
        reasons = SKIPPED_CASE.findall(output)
        if test.get("status") == "fail":
            failures.append((test.get("name"), output))
            reasons = []
            cases = max(cases - 1, 0)  # about: those of its suite that did pass
        elif test.find("skipped") is not None:
            reasons = [(output.strip().splitlines() or ["it says no reason"])[-1]]
            cases = 1
        skipped.update(reasons)
        passed += cases - len(reasons)
    commands = commands_of(preset) if failures else {}
    for name, output in failures:
        print(f"\n-------- {name} failed\n{output.strip()[-MOST_OUTPUT:]}")
    if failures:
        print("\nTo repeat what failed:")
        for name, output in failures:
            print(f"  {repeat(preset, name, commands.get(name, []), output)}")
    for reason, number in skipped.most_common():
        print(f"skipped {number}: {reason}")
    print(f"\n{passed} passed, {len(failures)} failed, {skipped.total()} skipped")
    return len(failures)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("preset")
    arguments.add_argument("--jobs", type=int, default=2)
    given, rest = arguments.parse_known_args()
    results = ROOT / "build" / given.preset / "results.xml"
    status = run_ctest(given.preset, given.jobs, rest, results)
    if not results.exists():
        return status or 1
    return int(report(given.preset, results) > 0 or status != 0)


if __name__ == "__main__":
    sys.exit(main())
