"""Sphinx: the documents as a site (`./dev docs`). Its source folder is the root of the repository, so that
a relative link between Markdown files means the same on the site and on a code host."""

import re
from pathlib import Path

from breathe.directives.file import DoxygenFileDirective
from pygments.lexers.special import TextLexer

ROOT = Path(__file__).resolve().parent.parent

project = "tutti"
release = re.search(r'TUTTI_VERSION_STRING "([^"]+)"',
                    (ROOT / "include/tutti/c/version.h").read_text()).group(1)
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "examples/*.md"]
exclude_patterns = ["build", "install", ".git"]
extensions = ["myst_parser", "breathe"]
highlight_language = "none"  # of a block that names no language
smartquotes = False  # commands and options stay as they are typed
suppress_warnings = ["duplicate_declaration.cpp"]  # namespace tutti, on each page of the API

myst_heading_anchors = 4  # the anchors that code hosts make
breathe_projects = {"tutti": str(ROOT / "build/docs/xml")}
breathe_default_project = "tutti"
breathe_default_members = ("members",)

html_theme = "furo"
html_title = f"tutti {release}"
html_show_copyright = False
html_extra_path = ["site/index.html"]  # leads to docs/index.html
html_static_path = ["site/wide.css"]
html_css_files = ["wide.css"]


class Header(DoxygenFileDirective):
    """`{header} status.hpp`: what a public header declares, functions first, without private members."""

    def run(self):
        self.options["sections"] = (
            "briefdescription detaileddescription innernamespace func public-func public-static-func "
            "public-attrib enum typedef var define public-type innerclass")
        return super().run()


def setup(app):
    app.add_directive("header", Header)
    app.add_lexer("include-rule", TextLexer)  # ARCHITECTURE.md's, which gates.layers reads
