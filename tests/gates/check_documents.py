"""Documents agree with the code: examples, settings, errors, algorithms, tests, JSON."""

import json
import re
from pathlib import Path

from source_tree import main

GTEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")


def check_example(root: Path, language: str, example: str) -> list[str]:
    """The README's first block of a language is an example, word for word."""
    block = re.search(rf"```{language}\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    if block and block.group(1) == (root / example).read_text():
        return []
    return [f"README.md: its first {language} block is not {example}"]


def check_listed(root: Path, source: str, pattern: str, document: str) -> list[str]:
    """Everything `pattern` finds in `source` (a glob) stands in `document`, between backticks."""
    names = sorted({name for path in root.glob(source) for name in re.findall(pattern, path.read_text())})
    path = root / document
    text = path.read_text() if path.exists() else ""
    return [f"{document}: nothing about `{name}`" for name in names if f"`{name}`" not in text]


def check_tests_named(root: Path) -> list[str]:
    """Each test that SECURITY.md names exists."""
    known = {f"{suite}.{case}" for path in (root / "tests").rglob("*.cpp")
             for suite, case in GTEST.findall(path.read_text())}
    cmake = "\n".join(path.read_text() for path in (root / "tests").rglob("CMakeLists.txt"))
    known |= set(re.findall(r"NAME\s+([\w.]+)", cmake))
    named = re.findall(r"`([A-Za-z]\w*\.\w[\w.]*)`", (root / "SECURITY.md").read_text())
    suffixes = (".hpp", ".cpp", ".md", ".py", ".txt", ".conf")
    gone = [f"SECURITY.md: there is no test {name}" for name in named
            if name not in known and not name.endswith(suffixes)]
    return gone + check_threats_tested(root)


def check_threats_tested(root: Path) -> list[str]:
    """Each row of the table of threats names a test in its last column."""
    rows = [line for line in (root / "SECURITY.md").read_text().splitlines() if line.startswith("| ")]
    return [f"SECURITY.md: no test for \"{row.split('|')[1].strip()}\"" for row in rows
            if not row.startswith("| threat") and "`" not in row.split("|")[-2]]


def check_json(root: Path) -> list[str]:
    findings = []
    for folder in (".", "src", "results"):
        pattern = "*.json" if folder == "." else "**/*.json"
        for path in sorted((root / folder).glob(pattern)):
            name = path.relative_to(root)
            try:
                value = json.loads(path.read_text())
            except ValueError as error:
                findings.append(f"{name}: {error}")
                continue
            if folder == "results" and not str(value.get("schema", "")).startswith("tutti."):
                findings.append(f"{name}: has no tutti schema")
    return findings


def check(root: Path) -> list[str]:
    return [
        *check_example(root, "cpp", "examples/multi_process.cpp"),
        *check_example(root, "python", "examples/python/all_reduce.py"),
        *check_listed(root, "src/base/knob_table.cpp", r'\{"(TUTTI_\w+)"', "docs/reference/settings.md"),
        *check_listed(root, "include/tutti/status.hpp", r"(?m)^  (k[A-Z]\w+),", "docs/troubleshooting/errors.md"),
        *check_listed(root, "src/algorithms/*/*.hpp", r'\.id = "(\w+/\w+)"', "docs/reference/algorithms.md"),
        *check_tests_named(root),
        *check_json(root),
    ]


if __name__ == "__main__":
    main(check, "documents agree with the code")
