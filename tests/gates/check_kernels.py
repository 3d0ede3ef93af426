"""Compiled kernels keep what their source promises: scopes, wide accesses, loads ahead, fences, registers.

Reads the machine code of a CUDA build with cuobjdump and nvdisasm, which are the toolkit's or those that
./dev gets (disassembler.txt); else its PTX, compiled once more, and the report of ptxas, which show
neither where a kernel spills nor in which order it loads.

multimem.st and multimem.red look like ordinary stores and reductions in machine code. Kernels have no
ordinary reductions, so those are refused; multimem.st is refused in the source (check_doors.py) and in
PTX, and none of them can do anything without a multicast object, which cuMulticast* alone make.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from kernel_listing import Function, read_frames, read_ptx, read_sass, read_stacks

ROOT = Path(__file__).resolve().parents[2]
RANKS = 8  # kMaxCudaRanks: the wide loop has one access per rank


# Bytes of stack that polls for integers have, over all of a kernel. In the wide loop there is no access to
# local memory; outside it a few values are put aside, above all over the calls of look_up() and fail(), which
# are out of line so that the loop has the registers.
STACK_OF_INTEGERS = 5 * 32


class Promise(NamedTuple):
    """KernelPromises (src/algorithms/descriptor.hpp): tutti_describe prints them."""
    loads: int = 0
    stores: int = 0
    barriers: int = 0
    narrow: int = 0
    loops: int = 1
    stack_bytes: int = 32
    block_fences: bool = False
    local: int = 0
    bulk_loads: bool = False
    bulk_stores: bool = False


Promises = dict[str, Promise]  # by the body's struct


def read_promises(text: str) -> Promises:
    return {body: Promise(**promises) for body, promises in json.loads(text).items()}


INTEGERS = r"signed char|unsigned char|(unsigned )?(int|long)( long)?"


class Kernel(NamedTuple):
    """What the name of an algorithm's kernel says."""
    body: str
    element: str
    op: str
    ranks: int  # exactly so many; 0: any number

    def __str__(self) -> str:
        exact = f", {self.ranks} ranks" if self.ranks else ""
        return f"{self.body}<{self.element}, {self.op}{exact}>"


def demangle(names: list[str]) -> list[str]:
    said = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    return said.stdout.splitlines()


def kernel_of(name: str) -> Kernel | None:
    """None for what is no algorithm's own kernel: local_kernel comes behind one."""
    match = re.search(r"(?<!local)_kernel<tutti::(\w+), tutti::Reduction<(?:tutti::)?([\w ]+), tutti::(\w+)>, (\d+)>", name)
    return Kernel(*match.groups()[:3], int(match[4])) if match else None


def promise_of(kernel: Kernel, promises: Promises) -> Promise:
    """A kernel for so many ranks has as many accesses, and puts nothing aside. Packets of integers take twice
    as many, and with them registers: more is put aside. The largest and smallest of 8-bit floats find three
    registers too few where all ranks' shares are pushed and reduced in one kernel."""
    promise = promises[kernel.body]
    if kernel.body == "AllReduceTwoShotStaged" and re.fullmatch(r"Float8\w+ M(ax|in)",
                                                                f"{kernel.element} {kernel.op}"):
        promise = promise._replace(local=3)
    if kernel.ranks:
        promise = promise._replace(loads=promise.loads - RANKS + kernel.ranks, stack_bytes=0, local=0)
    polls = promise.narrow > 0 and promise.stores == 0
    if not polls or not re.fullmatch(INTEGERS, kernel.element):
        return promise
    return promise._replace(loads=2 * (promise.loads - 1) + 1, stack_bytes=STACK_OF_INTEGERS)


# --- the rules: each takes a function and yields what is wrong with it ------------------------------


def check_any(function: Function):
    """Rules for every function."""
    fenced = False
    for step in function.steps:
        fenced = fenced or step.kind == "proxy_fence"
        if step.kind == "multicast":
            yield f"{step.text}: multicast, or a reduction in memory"
        if step.kind == "load" and not step.coherent:
            yield f"{step.text}: serves what was cached before a peer wrote it"
        if step.kind == "bulk_store" and not fenced:
            yield f"{step.text}: no proxy fence before it, so it may read its source too early"


def check_scopes(function: Function, promise: Promise):
    """Peers' words are flags and data. Flags, and data where it can be, are accessed 16 bytes at a time;
    nothing of this GPU's own is. What barriers publish is fenced."""
    for step in function.steps:
        if step.kind in ("load", "store") and (step.bytes == 16 or step.bytes < 4) and step.scope != "sys":
            yield f"{step.text}: not of system scope"
        within_block = promise.block_fences and step.scope == "cta"
        if step.kind == "fence" and step.scope != "sys" and not within_block:
            yield f"{step.text}: not of system scope"
    if promise.barriers > 0 and not any(step.kind == "fence" and step.scope != "cta" for step in function.steps):
        yield "has no release fence of system scope"


def check_polls(function: Function, promise: Promise):
    polls = sum(step.kind == "load" and step.bytes == 16 and step.acquires for step in function.steps)
    if polls < promise.barriers:
        yield f"{polls} acquiring flag loads, {promise.barriers} barriers"


def wide_loops(function: Function, promise: Promise):
    """Of loops in one another the innermost: those around it have what is not wide, too."""
    def has_promised(loop: tuple[int, int]) -> bool:
        steps = function.within(loop)
        wide = [step.kind for step in steps if step.bytes == 16]
        # The loop that takes flags back stores alone, too, but looks up where they are.
        looks_up = promise.loads == 0 and any(step.kind == "load" for step in steps)
        return wide.count("load") == promise.loads and wide.count("store") == promise.stores and not looks_up

    loops = [loop for loop in function.loops() if has_promised(loop)]
    for loop in loops:
        if not any(other != loop and loop[0] <= other[0] and other[1] <= loop[1] for other in loops):
            yield function.within(loop)


def check_width(function: Function, promise: Promise):
    loops = list(wide_loops(function, promise))
    if len(loops) < promise.loops:
        yield (f"{len(loops) or 'no'} loop with {promise.loads} loads and {promise.stores} stores of 16 bytes")
    for steps in loops:
        narrow = [step for step in steps if step.kind in ("load", "store") and step.bytes != 16]
        for step in narrow[promise.narrow:]:
            yield f"{step.text}: narrow, in the wide loop"


def check_flight(function: Function, promise: Promise):
    """A trip waits for the link once: all of its loads are on their way when the first is used."""
    for steps in wide_loops(function, promise):
        loads = [step for step in steps if step.kind == "load" and step.bytes == 16]
        early = sum(bool(load.used_at) and load.at < load.used_at < loads[-1].at for load in loads)
        if early:
            yield f"{early} loads of the wide loop are used before its last one is issued"


def check_registers(function: Function, promise: Promise):
    for steps in wide_loops(function, promise):
        spills = sum(step.kind == "local" for step in steps)
        if spills > promise.local:
            yield f"{spills} accesses to local memory in the wide loop"
    if function.stack_bytes > promise.stack_bytes:
        yield f"{function.stack_bytes} bytes of stack, {promise.stack_bytes} are allowed"


def check_bulk(function: Function, promise: Promise):
    kinds = {step.kind for step in function.steps}
    for kind, promised in (("bulk_load", promise.bulk_loads), ("bulk_store", promise.bulk_stores)):
        if promised and kind not in kinds:
            yield f"has no {kind}, and promises bulk copies"


def check_kernel(function: Function, kernel: Kernel, promises: Promises):
    if kernel.body not in promises:
        yield "a new kernel: its header says nothing of what it promises"
        return
    for check in (check_scopes, check_polls, check_width, check_flight, check_registers, check_bulk):
        yield from check(function, promise_of(kernel, promises))


def check_functions(functions: list[Function], promises: Promises) -> list[str]:
    """One line per finding and function, in their order; equal ones once."""
    findings, kernels = {}, set()
    for function, name in zip(functions, demangle([function.name for function in functions])):
        kernel = kernel_of(name)
        if kernel:
            kernels.add(kernel.body)
        for finding in (*check_any(function), *(check_kernel(function, kernel, promises) if kernel else ())):
            findings[f"{kernel or name}: {finding}"] = None
    if not kernels:
        findings["no kernel of any algorithm found: nothing was checked"] = None
    return list(findings)


Widths = dict[int, set[int]]  # of own_matmul's tiles, by their rows


def check_matmul(function: Function, widths: set[int]):
    """Tensor cores multiply what TMA loads, once for both blocks of a cluster; sums stay in registers, of which
    the producer's warps give theirs to the consumers. A kernel has the products of all widths of its tiles."""
    kinds = [step.kind for step in function.steps]
    loads = [step for step in function.steps if step.kind == "bulk_load"]
    products = " ".join(step.text for step in function.steps if step.kind == "product")
    found = {int(width) for width in re.findall(r"64[xn](\d+)[xk]16", products)}
    if found != widths:
        yield f"has warpgroups' products of {sorted(found)} columns, its tiles have {sorted(widths)}"
    if not loads:
        yield "has no bulk tensor loads"
    elif not any("multicast" in step.text.lower() for step in loads):
        yield "loads nothing for both blocks of a cluster"
    if kinds.count("registers") != 2:
        yield f"{kinds.count('registers')} changes of a warpgroup's registers, 2 are intended"
    if "local" in kinds or function.stack_bytes > 0:
        yield f"{kinds.count('local')} accesses to local memory, {function.stack_bytes} bytes of stack"


def check_gate(function: Function):
    """What arrives while the kernel runs is acquired, by a thread whose code comes first, and fenced by the one that
    loads, before TMA reads it."""
    acquired = fenced = False
    for step in function.steps:
        if step.kind == "bulk_load":
            acquired = False
        acquired = acquired or step.acquires and step.scope == "sys"
        fenced = fenced or acquired and step.kind == "proxy_fence"
    if not fenced:
        yield "has no acquiring load of system scope with a proxy fence before the next bulk load"


def rows_of(matmul: str) -> int:
    return int(re.search(r"Tiles<(\d+)", matmul)[1])


def check_matmuls(functions: list[Function], tiles: Widths, variants: int) -> list[str]:
    """`variants`: kernels for tiles of so many rows, one for each type, gate and layout of B."""
    names = demangle([function.name for function in functions])
    matmuls = {name: function for name, function in zip(names, functions) if "own_matmul_kernel<" in name}
    findings = [f"{name}: {finding}" for name, function in matmuls.items()
                for finding in (*check_matmul(function, tiles.get(rows_of(name), set())),
                                *(check_gate(function) if re.search("ArrivalGate|KGroupGate", name) else ()))]
    for rows in tiles:
        found = sum(rows_of(name) == rows for name in matmuls)
        if found != variants:
            findings.append(f"{found} kernels of own_matmul for tiles of {rows} rows, {variants} are expected")
    return findings


def matmul_tiles(source: str) -> Widths:
    tiles: Widths = {}
    for rows, width in re.findall(r'^    \{"(\d+)x(\d+)"', source, re.MULTILINE):
        tiles.setdefault(int(rows), set()).add(int(width))
    return tiles


def matmul_variants(build: Path) -> int:
    """A source for each gate and each of 2 types, with both layouts of B; a sample has one type of each gate."""
    commands = (build / "compile_commands.json").read_text()
    sources = set(re.findall(r"own_\w+16\.cu", commands))
    return len(sources) if "-DTUTTI_SAMPLE_KERNELS" in commands else 2 * len(sources)


def check_all_found(functions: list[Function], promises: Promises) -> list[str]:
    """Nothing is promised of kernels that are not there."""
    found = {kernel.body for name in demangle([function.name for function in functions])
             if (kernel := kernel_of(name))}
    return [f"{body}: has no kernel" for body in promises if body not in found]


def check_multicast_names(binaries: list[Path]) -> list[str]:
    """Neither as a symbol nor as a string to look one up by."""
    return [f"{path.name}: names {name.decode()}" for path in binaries
            for name in sorted(set(re.findall(rb"cuMulticast\w*", path.read_bytes())))]


# --- evidence ----------------------------------------------------------------------------------------


def find_tool(name: str) -> str | None:
    folders = [Path(os.environ.get("CUDACXX", "nvcc")).parent,
               Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin",
               *ROOT.glob("build/disassembler/nvidia/*/bin")]
    return shutil.which(name) or next((str(folder / name) for folder in folders
                                       if (folder / name).exists()), None)


def run(*command: str, folder: Path | None = None) -> str:
    # cuobjdump looks for nvdisasm on PATH.
    path = os.pathsep.join((os.environ.get("PATH", ""), str(Path(command[0]).parent)))
    said = subprocess.run(command, cwd=folder, env=os.environ | {"PATH": path}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if said.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)[:200]} failed:\n{said.stdout[-2000:]}")
    return said.stdout


def from_machine_code(binary: Path, cuobjdump: str) -> list[Function]:
    stacks = read_stacks(run(cuobjdump, "-res-usage", str(binary)))
    functions = read_sass(run(cuobjdump, "-sass", str(binary)).splitlines())
    for function in functions:
        function.stack_bytes = stacks[function.name]
    return functions


def ptx_command(command: str, output: Path) -> list[str]:
    """A build's command that compiles to an object, as one that compiles to PTX alone."""
    words = [re.sub(r"code=\[?sm_(\w+?)\]?$", r"code=compute_\1", word) for word in shlex.split(command)]
    del words[words.index("-o"):words.index("-o") + 2]
    words[words.index("-c")] = "-ptx"
    return [*words, "-o", str(output)]


def from_ptx(entry: dict, scratch: Path) -> list[Function]:
    ptx = scratch / (entry["file"].replace("/", "_") + ".ptx")  # files of several folders have the same name
    command = ptx_command(entry["command"], ptx)
    if "ccache" in command[0]:
        del command[0]
    run(*command, folder=Path(entry["directory"]))
    functions = read_ptx(ptx.read_text())
    target = re.search(r"^\.target (\w+)", ptx.read_text(), re.MULTILINE)[1]
    frames = read_frames(run(str(Path(command[0]).parent / "ptxas"), f"-arch={target}", "-v", str(ptx),
                             "-o", os.devnull))
    for function in functions:
        function.stack_bytes = frames.get(function.name, 0)
    return functions


def gather(build: Path, scratch: Path) -> tuple[str, list[Function]]:
    """What there is to say about the kernels of the library and of the command."""
    cuobjdump = find_tool("cuobjdump")
    if cuobjdump and find_tool("nvdisasm"):
        tutti = build / "bin/tutti"
        binary = tutti if tutti.exists() else build / "lib/libtutti.so"
        return f"machine code of {binary.name}", from_machine_code(binary, cuobjdump)
    entries = [entry for entry in json.loads((build / "compile_commands.json").read_text())
               if entry["file"].endswith(".cu") and "/tests/" not in entry["file"]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(lambda entry: from_ptx(entry, scratch), entries))
    return (f"PTX of {len(entries)} files, report of ptxas (no cuobjdump and nvdisasm here)",
            [function for part in parts for function in part])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True, help="folder of a CUDA build")
    build = parser.parse_args().build
    binaries = [path for path in (*sorted(build.glob("lib/libtutti.*")), build / "bin/tutti") if path.is_file()]
    if not binaries:
        print(f"{build}: neither lib/libtutti.* nor bin/tutti; build them first")
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        evidence, functions = gather(build, Path(scratch))
    promises = read_promises(run(str(build / "bin/tutti_describe"), "promises"))
    findings = [*check_functions(functions, promises), *check_all_found(functions, promises),
                *check_matmuls(functions, matmul_tiles((ROOT / "src/matmul/tiles.hpp").read_text()),
                               matmul_variants(build)),
                *check_multicast_names(binaries)]
    print(*findings, sep="\n", end="\n" if findings else "")
    print(f"{len(findings)} finding(s) in {len(functions)} functions: {evidence}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
