"""Sphinx: the documents as a site (`./dev docs`). Its source folder is the root of the repository, so that
a relative link between Markdown files means the same on the site and on a code host."""

import re
from pathlib import Path

from pygments.lexers.special import TextLexer

ROOT = Path(__file__).resolve().parent.parent

project = "tutti"
release = re.search(r'TUTTI_VERSION_STRING "([^"]+)"',
                    (ROOT / "include/tutti/version.hpp").read_text()).group(1)
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md"]
exclude_patterns = ["build", "install", ".git"]
extensions = ["myst_parser", "breathe"]
smartquotes = False  # commands and options stay as they are typed

myst_heading_anchors = 4  # the anchors that code hosts make
breathe_projects = {"tutti": str(ROOT / "build/docs/xml")}
breathe_default_project = "tutti"
breathe_default_members = ("members",)

html_theme = "furo"
html_title = f"tutti {release}"
html_extra_path = ["site"]  # index.html, which leads to docs/index.html


def setup(app):
    app.add_lexer("include-rule", TextLexer)  # ARCHITECTURE.md's, which gates.layers reads
