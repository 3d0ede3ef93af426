"""Every Markdown table became a table: no page of the rendered site shows its pipes to the reader."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

# What separates the head of a table from its lines: |---|:--| with any number of columns.
RULE = re.compile(r"\|?\s*:?-{2,}:?\s*\|[\s|:-]*")
CODE = {"pre", "code", "script", "style"}


class Text(HTMLParser):
    """The visible text of a page, without code."""

    def __init__(self):
        super().__init__()
        self.depth = 0
        self.lines = [""]

    def handle_starttag(self, tag, attributes):
        self.depth += tag in CODE

    def handle_endtag(self, tag):
        self.depth -= tag in CODE

    def handle_data(self, data):
        if self.depth:
            return
        first, *others = data.split("\n")
        self.lines[-1] += first
        self.lines += others


def check(site: Path) -> list[str]:
    findings = []
    for page in sorted(site.rglob("*.html")):
        text = Text()
        text.feed(page.read_text())
        findings += [f"{page.relative_to(site)}: a table that was not rendered, at \"{before}\""
                     for before, line in zip(text.lines, text.lines[1:]) if RULE.fullmatch(line.strip())]
    return findings


if __name__ == "__main__":
    found = check(Path(sys.argv[1]))
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(found)} finding(s): every table is rendered")
    sys.exit(1 if found else 0)
