"""May what has failed run once more, alone? Prints the names if so, else why not, and fails.

    second_chance.py RESULTS.xml TESTS.json     (ctest --output-junit, --show-only=json-v1)

Tests labelled `wall_clock` wait for processes and clocks, and can lose against a crowded machine.
They alone may, and not where a sanitizer has spoken: what it saw once is there.
"""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree

LABEL = "wall_clock"
MOST = 3  # more than that is no accident
SANITIZER = re.compile(r"(WARNING|ERROR|FATAL): \w+Sanitizer|: runtime error: ")


def failed_tests(results: str) -> dict[str, str]:
    """Names and outputs of the tests that failed."""
    cases = ElementTree.fromstring(results).iter("testcase")
    return {case.get("name"): case.findtext("system-out", "")
            for case in cases if case.get("status") not in ("run", "notrun", "disabled")}


def labelled_tests(tests: str) -> set[str]:
    names = set()
    for test in json.loads(tests)["tests"]:
        labels = [p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"]
        if labels and LABEL in labels[0]:
            names.add(test["name"])
    return names


def why_not(results: str, tests: str) -> str:
    """Empty where all that failed may run again."""
    failed = failed_tests(results)
    if not failed:
        return "no test failed: something else did"
    if len(failed) > MOST:
        return f"{len(failed)} tests failed"
    labelled = labelled_tests(tests)
    for name, output in failed.items():
        if name not in labelled:
            return f"{name} does not depend on the clock"
        if SANITIZER.search(output):
            return f"{name}: a sanitizer found something"
    return ""


def main() -> int:
    results, tests = (open(name, encoding="utf-8", errors="replace").read() for name in sys.argv[1:3])
    reason = why_not(results, tests)
    print(f"no second chance: {reason}" if reason else "\n".join(failed_tests(results)))
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
