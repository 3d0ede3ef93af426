"""Compiled kernels as lists of steps, from either of two listings: machine code (cuobjdump), or PTX.

A step is what the rules of check_kernels.py can speak about: a memory access with width and scope, a
fence, a branch. Other instructions are left out.
"""

import dataclasses
import re
from collections.abc import Iterable


@dataclasses.dataclass
class Step:
    at: int  # where it is: the address of the instruction, or the number of its line
    kind: str  # load store local fence proxy_fence bulk_load bulk_store multicast branch acquire product registers
    text: str
    bytes: int = 0  # of an access
    scope: str = ""  # of an access or a fence: sys gpu cta; empty: an ordinary access
    acquires: bool = False
    coherent: bool = True
    target: int = 0  # of a branch
    used_at: int = 0  # of a load, in machine code: where the first instruction is that reads its value


@dataclasses.dataclass
class Function:
    name: str
    steps: list[Step] = dataclasses.field(default_factory=list)
    stack_bytes: int = 0

    def loops(self) -> list[tuple[int, int]]:
        """From the target of each backward branch to the branch."""
        return [(step.target, step.at) for step in self.steps
                if step.kind == "branch" and step.target <= step.at]

    def within(self, loop: tuple[int, int]) -> list[Step]:
        return [step for step in self.steps if loop[0] <= step.at <= loop[1]]


# --- machine code -------------------------------------------------------------------------------

_SASS_FUNCTION = re.compile(r"Function : (\S+)")
_SASS_STEP = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);")
_SASS_WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}
_SASS_BULK_STORES = ("UBLKCP.G.S", "UBLKRED.G.S", "UTMASTG", "UTMAREDG")
_SASS_BULK_LOADS = ("UBLKCP.S.G", "UTMALDG")


def _sass_access(at: int, opcode: str) -> Step:
    parts = opcode.split(".")
    scope = parts[parts.index("STRONG") + 1].lower() if "STRONG" in parts else ""
    width = next((_SASS_WIDTHS[part] for part in parts if part in _SASS_WIDTHS), 4)
    kind = "load" if parts[0].startswith("LD") else "store"
    return Step(at, kind, opcode, width, scope, coherent="CONSTANT" not in parts)


def _sass_step(at: int, opcode: str, operands: str) -> Step | None:
    base = opcode.split(".")[0]
    if base in ("LDG", "LD", "STG", "ST"):
        return _sass_access(at, opcode)
    if base in ("LDL", "STL"):
        return Step(at, "local", opcode)
    if base == "MEMBAR":
        return Step(at, "fence", opcode, scope=opcode.split(".")[-1].lower())
    if opcode.startswith("FENCE.VIEW.ASYNC"):
        return Step(at, "proxy_fence", opcode)
    if opcode.startswith(_SASS_BULK_STORES):
        return Step(at, "bulk_store", opcode)
    if opcode.startswith(_SASS_BULK_LOADS):
        return Step(at, "bulk_load", opcode)
    if base == "HGMMA":  # of a warpgroup, by tensor cores
        return Step(at, "product", opcode)
    if base == "USETMAXREG":
        return Step(at, "registers", opcode)
    if base == "LDGMC" or base.startswith("RED"):  # multimem.red looks like any other reduction
        return Step(at, "multicast", opcode)
    if opcode.startswith("CCTL.IV"):  # forgets what the cache holds: the second half of an acquire
        return Step(at, "acquire", opcode)
    target = re.search(r"0x([0-9a-f]+)\s*$", operands.strip())
    if base == "BRA" and target:
        return Step(at, "branch", opcode, target=int(target[1], 16))
    return None


def _mark_acquires(steps: list[Step]) -> None:
    """A load directly before an invalidation acquires."""
    for step, following in zip(steps, steps[1:]):
        step.acquires = step.kind == "load" and following.kind == "acquire"


def _registers(operands: str) -> set[int]:
    return {int(number) for number in re.findall(r"\bR(\d+)", operands)}


class _Uses:
    """Finds the first use of what each load brings, over a function's instructions in their order."""

    def __init__(self):
        self.loads: dict[int, Step] = {}  # by the register that waits for them

    def see(self, at: int, opcode: str, operands: str, step: Step | None) -> None:
        first, _, others = operands.partition(",")
        stores = opcode.startswith("ST")
        writes = set() if stores else _registers(first)
        for register in _registers(operands if stores else others):
            if load := self.loads.pop(register, None):
                load.used_at = load.used_at or at
        for register in writes:
            self.loads.pop(register, None)
        if step and step.kind == "load":
            self.loads |= {register + k: step for register in writes for k in range(max(1, step.bytes // 4))}


def read_sass(lines: Iterable[str]) -> list[Function]:
    """The functions of `cuobjdump -sass`."""
    functions = []
    for line in lines:
        if header := _SASS_FUNCTION.search(line):
            functions.append(Function(header[1]))
            uses = _Uses()
        elif functions and (match := _SASS_STEP.match(line)):
            at, opcode, operands = int(match[1], 16), match[2], match[3]
            step = _sass_step(at, opcode, operands)
            functions[-1].steps += [step] if step else []
            uses.see(at, opcode, operands, step)
    for function in functions:
        _mark_acquires(function.steps)
    return functions


def read_stacks(text: str) -> dict[str, int]:
    """Bytes of stack by function, from `cuobjdump -res-usage`."""
    return {name: int(stack) + int(local) for name, stack, local in
            re.findall(r"Function (\S+):\s+REG:\d+ STACK:(\d+) SHARED:\d+ LOCAL:(\d+)", text)}


# --- PTX ----------------------------------------------------------------------------------------

_PTX_FUNCTION = re.compile(r"(?:\.entry|\.func(?:\s+\(.*?\))?)\s+([\w$]+)")
_PTX_LABEL = re.compile(r"^(\$[\w$]+):")
_PTX_STEP = re.compile(r"^\s*(?:@!?%p\d+\s+)?([a-z][\w.:]*)\s*([^;]*);")
_PTX_ELEMENT = re.compile(r"(?:\.v(\d))?\.[busf](\d+)$")
_PTX_ELSEWHERE = {"param", "shared", "const"}


def _ptx_access(at: int, opcode: str) -> Step | None:
    parts = re.split(r"[.:]+", opcode)
    if "local" in parts:
        return Step(at, "local", opcode)
    if _PTX_ELSEWHERE & set(parts):
        return None
    element = _PTX_ELEMENT.search(opcode)
    width = int(element[1] or 1) * int(element[2]) // 8 if element else 0
    scope = next((part for part in parts if part in ("sys", "gpu", "cta")), "")
    return Step(at, "load" if parts[0] == "ld" else "store", opcode, width, scope,
                "acquire" in parts, "nc" not in parts)


def _ptx_step(at: int, opcode: str, operands: str, labels: dict[str, int]) -> Step | None:
    base = opcode.split(".")[0]
    if base in ("ld", "st"):
        return _ptx_access(at, opcode)
    if opcode.startswith("fence.proxy.async"):
        return Step(at, "proxy_fence", opcode)
    if base == "membar" or re.match(r"fence\.(sc|acq_rel|acquire|release)", opcode):
        scope = {"gl": "gpu"}.get(opcode.split(".")[-1], opcode.split(".")[-1])
        return Step(at, "fence", opcode, scope=scope)
    if re.match(r"cp\.(reduce\.)?async\.bulk\.(tensor\.\w+\.)?global", opcode):
        return Step(at, "bulk_store", opcode)
    if re.match(r"cp\.async\.bulk\.(tensor\.\w+\.)?shared::\w+\.global", opcode):
        return Step(at, "bulk_load", opcode)
    if opcode.startswith("wgmma.mma_async"):
        return Step(at, "product", opcode)
    if base == "setmaxnreg":
        return Step(at, "registers", opcode)
    if base == "multimem":
        return Step(at, "multicast", opcode)
    if base == "bra" and operands.strip() in labels:
        return Step(at, "branch", opcode, target=labels[operands.strip()])
    return None


def read_ptx(text: str) -> list[Function]:
    """The functions of a PTX file that have a body."""
    functions, lines = [], text.splitlines()
    labels = {match[1]: at for at, line in enumerate(lines) if (match := _PTX_LABEL.match(line))}
    for at, line in enumerate(lines):
        if (".entry" in line or ".func" in line) and (header := _PTX_FUNCTION.search(line)):
            functions.append(Function(header[1]))
        elif functions and (match := _PTX_STEP.match(line)):
            step = _ptx_step(at, match[1], match[2], labels)
            functions[-1].steps += [step] if step else []
    return [function for function in functions if function.steps]  # others are only declared


def read_frames(text: str) -> dict[str, int]:
    """Bytes of stack by function, from the report of `ptxas -v`."""
    return {name: int(frame) for name, frame in
            re.findall(r"Function properties for (\S+)\s+(\d+) bytes stack frame", text)}
