"""Every C++ block of the documents compiles: each one is a piece of a program, compiled on its own after the
public headers. Blocks that need MPI's or CUDA's headers are left out where these are not installed."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRELUDE = "#include <tutti/device/peers.hpp>\n#include <tutti/tutti.hpp>\n#include <cstdio>\n"
COMPILE = ["c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", "-x", "c++", "-"]
FOREIGN = {"cuda_runtime.h": r"\bcuda[A-Z]\w+", "mpi.h": r"\bMPI_\w+"}


def folders(root: Path) -> list[str]:
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    mpi = sorted(Path("/usr/lib").glob("*-linux-gnu/openmpi/include"))
    return [f"-I{root}/include", "-isystem", f"{cuda}/include", *(f"-isystem{path}" for path in mpi)]


def compiles(source: str, options: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run([*COMPILE, *options], input=source, capture_output=True, text=True, check=False)


def blocks(root: Path):
    """(document, line, text) of each block."""
    for document in [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]:
        text = document.read_text()
        for match in BLOCK.finditer(text):
            yield document.relative_to(root), text.count("\n", 0, match.start(1)) + 1, match.group(1)


def check(root: Path) -> list[str]:
    options = folders(root)
    installed = {header: compiles(f"#include <{header}>\n", options).returncode == 0 for header in FOREIGN}

    def finding(block) -> str:
        document, line, text = block
        needed = [header for header, pattern in FOREIGN.items() if re.search(pattern, text)]
        if missing := [header for header in needed if not installed[header]]:
            print(f"{document}:{line}: not compiled, there is no {missing[0]}")
            return ""
        includes = "".join(f"#include <{header}>\n" for header in needed)
        outcome = compiles(f'{includes}{PRELUDE}#line {line} "{document}"\n{text}', options)
        return "" if outcome.returncode == 0 else f"{document}:{line}: {outcome.stderr.strip()}"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [text for text in pool.map(finding, blocks(root)) if text]


if __name__ == "__main__":
    found = check(Path(__file__).resolve().parents[2])
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(found)} finding(s): the documents' C++ compiles")
    sys.exit(1 if found else 0)
