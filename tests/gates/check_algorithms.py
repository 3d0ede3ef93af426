"""The table of docs/reference/algorithms.md is the one that descriptors give; --write puts it there."""

import argparse
import subprocess
import sys
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/reference/algorithms.md"
BEGIN, END = "<!-- algorithms: check_algorithms.py --write -->\n", "<!-- end of algorithms -->\n"


def with_table(text: str, table: str) -> str:
    """`text` with `table` between its markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{DOCUMENT.name}: a marker of its table is missing")
    return before + begin + table + end + after


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", help="tutti_describe of a build")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    table = subprocess.run([options.tool, "table"], check=True, capture_output=True, text=True).stdout
    text = DOCUMENT.read_text()
    wanted = with_table(text, table)
    if options.write:
        DOCUMENT.write_text(wanted)
    elif wanted != text:
        for line in sorted(set(text.splitlines()) ^ set(wanted.splitlines())):
            print(f"{'missing' if line in wanted.splitlines() else 'not so'}: {line}")
        print(f"{DOCUMENT.name}: its table is not what descriptors say: run this with --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
