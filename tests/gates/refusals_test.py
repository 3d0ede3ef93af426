"""Negative controls of the gates: each rule, broken in a small tree, must be refused by name."""

import tempfile
import unittest
from pathlib import Path

import check_budgets
import check_documents
import check_doors
import check_layers

RULE = """```include-rule
base   ->
memory -> base drivers
drivers -> base
api    -> base memory algorithms/catalogue.hpp
algorithms -> base
```"""


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("ARCHITECTURE.md", RULE)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def assert_refused(self, findings: list[str], *words: str) -> None:
        self.assertEqual(len(findings), 1, findings)
        for word in words:
            self.assertIn(word, findings[0])


class Layers(Tree):
    def refuses(self, name: str, text: str, *words: str) -> None:
        self.assertEqual(check_layers.check(self.root), [])
        self.write(name, text)
        self.assert_refused(check_layers.check(self.root), *words)

    def test_allowed(self):
        self.write("src/api/call.cpp", '#include "algorithms/catalogue.hpp"\n#include "base/try.hpp"\n')
        self.assertEqual(check_layers.check(self.root), [])

    def test_upward(self):
        self.refuses("src/base/log.cpp", '#include "memory/heap.hpp"\n', "base must not", ":1:")

    def test_other_header_of_a_room_with_one_door(self):
        self.refuses("src/api/call.cpp", '#include "algorithms/ring.hpp"\n', "algorithms/ring.hpp")

    def test_unknown_room(self):
        self.refuses("src/utils/all.hpp", "", "utils")

    def test_circle_in_the_rule(self):
        self.refuses("ARCHITECTURE.md", RULE.replace("base   ->", "base -> memory"), "circle")

    def test_public_header_with_a_dependency(self):
        self.refuses("include/tutti/a.hpp", "#include <fmt/core.h>\n", "fmt/core.h")

    def test_public_header_that_sees_src(self):
        self.refuses("include/tutti/a.hpp", '#include "base/log.hpp"\n', "base/log.hpp")

    def test_example_that_sees_src(self):
        self.refuses("examples/a.cpp", '#include "base/log.hpp"\n', "include/ alone")


class Doors(Tree):
    def refuses(self, text: str, *words: str, name: str = "src/memory/heap.cpp") -> None:
        self.write(name, text)
        self.assert_refused(check_doors.check(self.root), *words)

    def accepts(self, text: str, name: str = "src/memory/heap.cpp") -> None:
        self.write(name, text)
        self.assertEqual(check_doors.check(self.root), [])

    def test_own_names_comments_and_strings(self):
        self.accepts('cuda_driver();  // cudaMalloc(x)\nlog("cuMemMap() said");\nchannel.send(1);\n'
                     "communicator.abort(reason);\nVoid Communicator::abort(std::string_view);\n")

    def test_drivers_may(self):
        self.accepts("cudaMalloc(&p, 1); ::socket(1, 2, 3);\n", name="src/drivers/cuda.cpp")

    def test_calls_that_break_captures(self):
        name = "src/drivers/cuda_memory.cpp"
        relaxed = "Status RealCuda::free(int at) {\n  const RelaxedCapture relaxed;\n  return cudaFree(at);\n}\n"
        self.accepts(relaxed + "Status RealCuda::launch(int a) { return cudaLaunch(a); }\n", name=name)
        self.refuses(relaxed.replace("  const RelaxedCapture relaxed;\n", ""), "free", ":1:", name=name)
        self.refuses(relaxed + "Status RealCuda::set_device(int a) { return cudaSetDevice(a); }\n",
                     "set_device", ":5:", name=name)

    def test_cuda(self):
        self.refuses("\ncudaMalloc(&p, 1);\n", "cudaMalloc", ":2:")

    def test_driver_library(self):
        self.refuses("cuMemCreate(&p);\n", "cuMemCreate")

    def test_nccl(self):
        self.refuses("ncclAllReduce(a);\n", "ncclAllReduce")

    def test_matmul_libraries(self):
        self.refuses("cublasLtMatmul(handle);\n", "cublasLtMatmul")
        self.refuses("cblas_sgemm(order);\n", "cblas_sgemm")

    def test_socket(self):
        self.refuses("int fd = ::socket(1, 2, 3);\n", "socket")

    def test_shared_memory(self):
        self.refuses("memfd_create(name, 0);\n", "memfd_create")

    def test_machine_header(self):
        self.refuses("#include <sys/socket.h>\n", "sys/socket.h")

    def test_multicast_in_assembly(self):
        self.refuses('asm("multimem.red.add" ::);\n', "multimem", name="include/tutti/device/a.cuh")

    def test_exit(self):
        self.refuses("std::exit(1);\n", "exit")

    def test_abort(self):
        self.refuses("std::abort();\n", "abort")

    def test_throw(self):
        self.refuses("throw 1;\n", "throw")


class Budgets(Tree):
    def refuses(self, text: str, *words: str) -> None:
        self.write("src/base/a.cpp", text)
        self.assert_refused(check_budgets.check(self.root), *words)

    def test_within(self):
        self.write("src/base/a.cpp", "int f(int a, int b) {\n" + "  a += b;\n" * 50 + "  return a;\n}\n")
        self.assertEqual(check_budgets.check(self.root), [])

    def test_long_file(self):
        self.write("src/base/small.cpp", "\n")
        self.write("src/base/smaller.cpp", "\n")
        self.refuses("// a\n" * 501, "501 lines")

    def test_long_function(self):
        self.refuses("int f() {\n" + "  g();\n" * 60 + "  return 0;\n}\n", "f has 63 lines")

    def test_many_parameters(self):
        self.refuses("void f(int a, int b, int c, int d, std::pair<int, int> e, int f) {}\n", "6 parameters")

    def test_wide_line(self):
        self.refuses("// " + "a" * 98 + "\n", "101 columns")


class Documents(Tree):
    def setUp(self):
        super().setUp()
        self.write("examples/multi_process.cpp", "int main() {}\n")
        self.write("examples/python/all_reduce.py", "import tutti\n")
        self.write("README.md", "```cpp\nint main() {}\n```\n```python\nimport tutti\n```\n")
        self.write("SECURITY.md", "`Bootstrap.DropsNoise`\n")
        self.write("tests/a_test.cpp", "TEST(Bootstrap, DropsNoise) {}\n")
        self.assertEqual(check_documents.check(self.root), [])

    def refuses(self, name: str, text: str, *words: str) -> None:
        self.write(name, text)
        self.assert_refused(check_documents.check(self.root), *words)

    def test_other_example(self):
        self.refuses("examples/multi_process.cpp", "int main() { return 1; }\n", "README.md")

    def test_other_python_example(self):
        self.refuses("examples/python/all_reduce.py", "import torch\n", "README.md", "python")

    def test_setting_without_text(self):
        self.refuses("src/base/knob_table.cpp", '{"TUTTI_NEW", kInt}', "settings.md", "TUTTI_NEW")

    def test_code_without_text(self):
        self.refuses("include/tutti/status.hpp", "  kNew,  // why\n", "errors.md", "kNew")

    def test_row_without_text(self):
        self.refuses("src/algorithms/all_reduce/new.hpp", '.id = "all_reduce/new"', "all_reduce/new")

    def test_test_that_is_gone(self):
        self.refuses("tests/a_test.cpp", "TEST(Bootstrap, Renamed) {}\n", "Bootstrap.DropsNoise")

    def test_threat_without_a_test(self):
        self.refuses("SECURITY.md", "| threat | test |\n|---|---|\n| noise | |\n", "noise")

    def test_broken_json(self):
        self.refuses("results/a/b.json", "{,}", "b.json")

    def test_result_without_schema(self):
        self.refuses("results/a/b.json", "{}", "schema")


if __name__ == "__main__":
    unittest.main()
