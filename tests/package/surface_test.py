"""Negative controls of surface.py: what is missing and what is too much is refused by name.

    surface_test.py INCLUDE LIBRARY OBJECT...

The libraries are stand-ins that export what LIBRARY exports, but for one symbol.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import surface

INCLUDE, LIBRARY, *OBJECTS = map(Path, sys.argv[1:])


class Surface(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        lines = surface.output_of("nm", "-D", "--defined-only", "--format=posix", str(LIBRARY))
        self.exports = [line.split()[0].split("@@")[0] for line in lines]

    def library(self, exports: list[str]) -> Path:
        source, library = self.folder / "stand_in.s", self.folder / "stand_in.so"
        source.write_text("".join(f".globl {name}\n{name}: .byte 0\n" for name in exports))
        subprocess.run([os.environ.get("CXX", "c++"), "-shared", "-nostdlib", source, "-o", library],
                       check=True)
        return library

    def headers(self, name: str, old: str, new: str) -> Path:
        copy = self.folder / "include"
        shutil.copytree(INCLUDE, copy)
        header = copy / "tutti" / name
        self.assertIn(old, header.read_text())
        header.write_text(header.read_text().replace(old, new))
        return copy

    def assert_refused(self, findings: list[str], *words: str) -> None:
        self.assertEqual(len(findings), 1, findings)
        for word in words:
            self.assertIn(word, findings[0])

    def test_a_stand_in_for_the_whole_library_is_accepted(self):
        self.assertEqual(surface.check(INCLUDE, self.library(self.exports), *OBJECTS), [])

    def test_a_missing_export(self):
        for name in ("tutti::all_gather_v", "tutti::UniqueId::create_tcp", "tutti::SymmetricPool::use"):
            parts = "".join(f"{len(part)}{part}" for part in name.split("::"))
            exports = [export for export in self.exports if parts not in export]
            self.assertEqual(len(exports), len(self.exports) - 1)
            findings = surface.check(INCLUDE, self.library(exports), *OBJECTS)
            self.assert_refused(findings, name, "not exported")

    def test_a_missing_export_of_c(self):
        exports = [export for export in self.exports if export != "tutti_put_signal"]
        findings = surface.check(INCLUDE, self.library(exports), *OBJECTS)
        self.assert_refused(findings, "tutti_put_signal", "not exported")

    def test_an_export_too_many(self):
        for symbol, name in (("_ZN5tutti6secretEv", "tutti::secret()"),
                             ("_ZNSt6vectorIiSaIiEE17_M_default_appendEm", "std::vector<int"),
                             ("tutti_secret", "tutti_secret"), ("cudaMalloc", "cudaMalloc")):
            findings = surface.check(INCLUDE, self.library([*self.exports, symbol]), *OBJECTS)
            self.assert_refused(findings, name, "not called")

    def test_a_function_that_is_not_called(self):
        include = self.headers("version.hpp", "TUTTI_API", "TUTTI_API int build_number();\nTUTTI_API")
        self.assert_refused(surface.check(include, LIBRARY, *OBJECTS), "tutti::build_number", "declare 1")

    def test_a_function_of_c_that_is_not_called(self):
        include = self.headers("c/types.h", "TUTTI_API", "TUTTI_API int tutti_build(void);\nTUTTI_API")
        self.assert_refused(surface.check(include, LIBRARY, *OBJECTS), "tutti_build", "declare 1")

    def test_an_overload_that_is_not_called(self):
        include = self.headers("tuning.hpp", "struct Plan {", "std::string to_string(int);\nstruct Plan {")
        self.assert_refused(surface.check(include, LIBRARY, *OBJECTS), "tutti::to_string", "calls 7")

    def test_a_member_that_is_not_called(self):
        include = self.headers("communicator.hpp", "void abort(", "void flush();\n  void abort(")
        self.assert_refused(surface.check(include, LIBRARY, *OBJECTS), "Communicator::flush", "calls 0")

    def test_a_call_that_is_not_declared(self):
        include = self.headers("symmetric_pool.hpp", "TUTTI_API void trim();", "")
        self.assert_refused(surface.check(include, LIBRARY, *OBJECTS), "SymmetricPool::trim", "declare 0")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
