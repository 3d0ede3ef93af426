"""What the gates share: the files of a tree, their text without comments, and how a gate ends."""

import argparse
import re
import sys
from pathlib import Path

CODE_SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh", ".h", ".c"}
CODE_FOLDERS = ("include", "src", "bindings", "tools", "tests", "examples")

_TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|(?P<raw>R"(?P<mark>[^(]*)\(.*?\)(?P=mark)")|"""
    r"""(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
    re.DOTALL,
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def code_files(root: Path, *folders: str):
    """Source files below the folders (default: all code), in a stable order."""
    for folder in folders or CODE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in CODE_SUFFIXES and path.is_file():
                yield path


def _blank(match: re.Match) -> str:
    """Keeps line ends, so that line numbers stay true."""
    lines = "\n" * match.group(0).count("\n")
    quoted = match.group("raw") or match.group("text")
    return f'""{lines}' if quoted else f" {lines}"


def without_comments_and_strings(text: str) -> str:
    # A digit separator (1'000) is no character literal.
    text = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", text)
    return _TOKENS.sub(_blank, text)


def includes(text: str):
    """(line, quoted?, path) of each #include."""
    for match in _INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1) == '"', match.group(2)


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def main(check, text: str) -> None:
    """Runs `check(root) -> list of findings`; exits with 1 if there are any."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    root = parser.parse_args().root
    findings = check(root)
    for finding in findings:
        print(finding)
    print(f"{len(findings)} finding(s): {text}")
    sys.exit(1 if findings else 0)
