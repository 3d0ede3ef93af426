"""Negative controls of `./dev docs`: Sphinx with docs/conf.py, check_site.py and check_snippets.py refuse a tree
with one fault. Runs where Sphinx is."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from sphinx.cmd.build import build_main

import check_site
import check_snippets

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = ROOT / "docs"
INDEX = "# Home\n\n```{toctree}\na\n```\n"
PAGE = "# A page\n\nSee [home](index.md#home).\n"


class Site(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "docs").mkdir()
        self.write("index", INDEX)
        self.write("a", PAGE)

    def write(self, name: str, text: str) -> None:
        (self.root / f"docs/{name}.md").write_text(text)

    def build(self) -> str:
        """What Sphinx says of the tree; nothing where it accepts it."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            outcome = build_main(["-c", str(CONFIGURATION), "-W", "--keep-going", "-q", "--no-color",
                                  str(self.root), str(self.root / "html")])
        self.assertEqual(outcome != 0, "WARNING" in said.getvalue(), said.getvalue())
        return said.getvalue()

    def refuses(self, name: str, text: str, *words: str) -> None:
        self.write(name, text)
        said = self.build()
        self.assertEqual(said.count("WARNING"), 1, said)
        for word in words:
            self.assertIn(word, said)

    def test_a_tree_without_faults(self):
        self.assertEqual(self.build(), "")
        self.assertEqual(check_site.check(self.root / "html"), [])

    def test_link_to_no_page(self):
        self.refuses("a", PAGE + "And [that](nowhere.md).\n", "docs/a.md", "nowhere")

    def test_link_to_no_file(self):
        self.refuses("a", PAGE + "And [that](../src/nowhere.cpp).\n", "docs/a.md", "nowhere.cpp")

    def test_link_to_no_anchor(self):
        self.refuses("a", PAGE + "And [that](index.md#nothing).\n", "docs/a.md", "nothing")

    def test_page_in_no_table_of_contents(self):
        self.refuses("b", "# Lost\n", "docs/b.md", "toctree")

    def test_picture_that_is_not_there(self):
        self.refuses("a", PAGE + "![plot](plot.svg)\n", "docs/a.md", "plot.svg")

    def test_function_that_no_header_has(self):
        self.refuses("a", PAGE + "```{doxygenfunction} tutti::nothing\n```\n", "docs/a.md", "nothing")

    def test_table_without_an_empty_line_before_it(self):
        self.write("a", PAGE + "- a list\n| x | y |\n|---|---|\n| 1 | 2 |\n")
        self.assertEqual(self.build(), "")
        findings = check_site.check(self.root / "html")
        self.assertEqual(len(findings), 1, findings)
        self.assertIn("docs/a.html", findings[0])
        self.assertIn("| x | y |", findings[0])

    def test_code_that_does_not_compile(self):
        (self.root / "include").symlink_to(ROOT / "include")
        code = "```cpp\ntutti::Status f(tutti::Communicator& group) { return tutti::barrier(group); }\n```\n"
        self.write("a", PAGE + code)
        self.assertEqual(check_snippets.check(self.root), [])
        self.write("a", PAGE + code.replace("barrier", "barier"))
        findings = check_snippets.check(self.root)
        self.assertEqual(len(findings), 1, findings)
        self.assertIn("docs/a.md:5", findings[0])
        self.assertIn("barier", findings[0])


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # deprecations inside Sphinx
