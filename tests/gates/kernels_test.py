"""Negative controls of check_kernels.py: each rule, broken in a listing or in a kernel, is refused."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import check_kernels
from check_kernels import Promise
from kernel_listing import read_frames, read_ptx, read_sass, read_stacks

NAME = "_ZN5tutti11team_kernelINS_16AllReduceOneShotENS_9ReductionI{}NS_3SumEEELi0EEEvNS_10KernelArgsE"
FLOAT, BYTE, HALF = "f", "a", "NS_4HalfE"

POLLS = Promise(loads=8, narrow=1, local=2)
PROMISES = {
    "AllReduceOneShot": Promise(loads=8, stores=1, barriers=2),
    "AllReduceOneShotPush": POLLS,
    "AllReduceTwoShotTma": Promise(loads=8, barriers=2, stack_bytes=64, block_fences=True, bulk_loads=True,
                                   bulk_stores=True),
    "ReduceScatterPushPerPeer": Promise(loads=8, stores=8, barriers=2, stack_bytes=128, block_fences=True,
                                        bulk_loads=True),
    "AllGatherPullTma": Promise(stores=1, barriers=2, block_fences=True, bulk_loads=True, bulk_stores=True),
    "AllGatherPush": Promise(loads=1, stores=8, barriers=2),
}


def check_functions(functions):
    return check_kernels.check_functions(functions, PROMISES)


def renamed(functions, body: str):
    """As the kernel of another body."""
    for function in functions:
        function.name = function.name.replace("16AllReduceOneShot", f"{len(body)}{body}")
    return functions


# What one_shot's kernel is made of, as far as the rules go. L: is where the wide loop begins.
SASS = """
LDG.E.64.STRONG.GPU R64, desc[UR6][R64.64]
LDG.E.128.STRONG.SYS R56, desc[UR4][R88.64]
CCTL.IVALL
L:
LDG.E.128.STRONG.SYS R56, desc[UR4][R88.64] * 8
STG.E.128.STRONG.SYS desc[UR4][R74.64], R56
BRA L
MEMBAR.ALL.SYS
STG.E.128.STRONG.SYS desc[UR4][R74.64], R56
LDG.E.128.STRONG.SYS R56, desc[UR4][R88.64]
CCTL.IVALL
EXIT
"""
PTX = """
ld.param.u64 %rd1, [param_0]
ld.relaxed.gpu.global.u64 %rd457, [%rd257]
ld.acquire.sys.global.v2.u64 {%rd455, %rd456}, [%rd260]
L:
ld.relaxed.sys.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1] * 8
st.relaxed.sys.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}
bra L
fence.acq_rel.sys
st.relaxed.sys.global.v2.u64 [%rd1], {%rd1, %rd2}
ld.acquire.sys.global.v2.u64 {%rd455, %rd456}, [%rd260]
ret
"""


def repeated(text: str) -> list[str]:
    lines = []
    for line in text.strip().splitlines():
        instruction, _, times = line.partition(" * ")
        lines += [instruction] * int(times or 1)
    return lines


def sass(text: str, element: str = FLOAT):
    lines, address, start = [f"\t\tFunction : {NAME.format(element)}"], 0, 0
    for line in repeated(text):
        if line == "L:":
            start = address
            continue
        line = line.replace("BRA L", f"@P0 BRA {start:#x}")
        lines.append(f"        /*{address:04x}*/                   {line} ;      /* 0x0000000000000000 */")
        address += 16
    return read_sass(lines)


def ptx(text: str, element: str = FLOAT):
    lines = [line if line == "L:" else f"\t{line};" for line in repeated(text)]
    body = "\n".join(lines).replace("L:", "$L__BB0_1:").replace("bra L", "@%p1 bra \t$L__BB0_1")
    return read_ptx(f".entry {NAME.format(element)}(\n)\n{{\n{body}\n}}\n")


class Listings(unittest.TestCase):
    def setUp(self):
        self.assertEqual(check_functions(sass(SASS)), [])
        self.assertEqual(check_functions(ptx(PTX)), [])

    def refuses(self, functions, *words: str) -> None:
        findings = check_functions(functions)
        self.assertEqual(len(findings), 1, findings)
        for word in words:
            self.assertIn(word, findings[0])

    def test_flag_store_of_narrower_scope(self):
        self.refuses(sass(SASS.replace("MEMBAR.ALL.SYS\nSTG.E.128.STRONG.SYS", "MEMBAR.ALL.SYS\nSTG.E.128.STRONG.GPU")),
                     "STRONG.GPU", "system scope")
        self.refuses(ptx(PTX.replace("st.relaxed.sys.global.v2", "st.relaxed.gpu.global.v2")), "st.relaxed.gpu")

    def test_ordinary_flag_store(self):
        self.refuses(ptx(PTX.replace("st.relaxed.sys.global.v2", "st.global.v2")), "st.global.v2.u64")

    def test_ordinary_byte(self):
        self.refuses(sass(SASS + "LDG.E.U8 R2, desc[UR4][R2.64]"), "LDG.E.U8:", "system scope")
        self.refuses(ptx(PTX + "st.global.u8 [%rd1], %rs1"), "st.global.u8")

    def test_poll_without_acquire(self):
        self.refuses(sass(SASS.replace("CCTL.IVALL\nEXIT", "EXIT")), "1 acquiring flag loads, 2 barriers")
        self.refuses(ptx(PTX.replace("ld.acquire", "ld.relaxed", 1)), "1 acquiring flag loads, 2 barriers")

    def test_no_fence(self):
        self.refuses(sass(SASS.replace("MEMBAR.ALL.SYS\n", "")), "no release fence")
        self.refuses(ptx(PTX.replace("fence.acq_rel.sys\n", "")), "no release fence")

    def test_fence_between_warps(self):
        """Is for kernels that promise it, and no fence for peers."""
        ring = Promise(loads=8, stores=1, barriers=2, block_fences=True)
        for one_shot in (sass(SASS + "MEMBAR.ALL.CTA"), ptx(PTX + "fence.acq_rel.cta")):
            self.refuses(one_shot, "not of system scope")
            self.assertEqual(list(check_kernels.check_scopes(one_shot[0], ring)), [])
        for unfenced in (sass(SASS.replace("MEMBAR.ALL.SYS", "MEMBAR.ALL.CTA")),
                         ptx(PTX.replace("fence.acq_rel.sys", "fence.acq_rel.cta"))):
            self.assertEqual(list(check_kernels.check_scopes(unfenced[0], ring)),
                             ["has no release fence of system scope"])

    def test_fence_of_narrower_scope(self):
        self.refuses(sass(SASS.replace("MEMBAR.ALL.SYS", "MEMBAR.ALL.GPU")), "MEMBAR.ALL.GPU")
        self.refuses(ptx(PTX.replace("fence.acq_rel.sys", "fence.acq_rel.gpu")), "fence.acq_rel.gpu")
        self.refuses(ptx(PTX.replace("fence.acq_rel.sys", "membar.gl")), "membar.gl")

    def test_narrow_loop(self):
        self.refuses(sass(SASS.replace("SYS R56, desc[UR4][R88.64] * 8", "SYS R56, desc[UR4][R88.64] * 7")),
                     "no loop with 8 loads")
        self.refuses(ptx(PTX.replace("v4.u32 {%r1, %r2, %r3, %r4}, [%rd1] * 8", "v2.u32 {%r1, %r2}, [%rd1] * 16")),
                     "no loop with 8 loads")

    def test_narrow_access_beside_the_wide_ones(self):
        self.refuses(sass(SASS.replace("BRA L", "LDG.E R2, desc[UR4][R2.64]\nBRA L")), "LDG.E: narrow")
        self.refuses(ptx(PTX.replace("bra L", "ld.global.u32 %r1, [%rd1]\nbra L")), "ld.global.u32: narrow")

    def test_narrow_access_around_the_wide_loop(self):
        functions = sass(SASS.replace("BRA L", "BRA L\nLDG.E.STRONG.SYS R2, desc[UR4][R2.64]\nBRA 0x20"))
        loops = [[step.bytes for step in functions[0].within(loop)] for loop in functions[0].loops()]
        self.assertEqual([4 in widths for widths in loops], [False, True])
        self.assertEqual(check_functions(functions), [])

    def test_multicast(self):
        self.refuses(sass(SASS + "LDGMC.E.ADD.F32x4.RN.STRONG.SYS R8, [R2.64+URZ]"), "LDGMC", "multicast")
        self.refuses(sass(SASS + "REDG.E.ADD.F32.FTZ.RN.STRONG.SYS desc[UR4][R2.64], R8"), "REDG")
        for name in ("multimem.ld_reduce.relaxed.sys.global.add.v4.f32", "multimem.st.relaxed.sys.global.v4.f32",
                     "multimem.red.relaxed.sys.global.add.f32"):
            self.refuses(ptx(PTX + f"{name} {{%f1}}, [%rd1]"), name)

    def test_load_that_is_not_coherent(self):
        self.refuses(sass(SASS + "LDG.E.CONSTANT R0, desc[UR4][R2.64]"), "CONSTANT", "cached")
        self.refuses(ptx(PTX + "ld.global.nc.u32 %r1, [%rd1]"), "ld.global.nc", "cached")

    def test_bulk_store_without_a_proxy_fence(self):
        for store in ("UBLKCP.G.S [UR6], [UR4], UR5", "UBLKRED.G.S.ADD [UR6], [UR4], UR5", "UTMASTG.2D [UR4], [UR6]"):
            self.refuses(sass(SASS + store), "proxy fence", store.split()[0])
            self.refuses(sass(SASS + store + "\nFENCE.VIEW.ASYNC.S"), "proxy fence")
            self.assertEqual(check_functions(sass(SASS + "FENCE.VIEW.ASYNC.S\n" + store)), [])
        for store in ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 256",
                      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 256",
                      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [%r3]"):
            self.refuses(ptx(PTX + store), "proxy fence", store.split()[0])
            self.assertEqual(check_functions(ptx(PTX + "fence.proxy.async.shared::cta\n" + store)), [])

    def test_use_before_the_last_load(self):
        early = SASS.replace("[R88.64] * 8", "[R88.64] * 7\n{}\nLDG.E.128.STRONG.SYS R60, desc[UR4][R88.64]")
        for use in ("FADD R4, R4, R58", "@P0 DADD R56, R56, R4", "STL [R1], R57"):
            self.assertIn("used before its last one is issued",
                          "".join(check_functions(sass(early.format(use)))))
        for other in ("FADD R4, R4, R60", "FADD R58, R4, R4\nFADD R4, R58, R4"):  # later; another value
            self.assertEqual(check_functions(sass(early.format(other))), [])

    def test_spill_in_the_wide_loop(self):
        spilling = SASS.replace("BRA L", "STL [R1], R2\nLDL R2, [R1]\nBRA L")
        for element in (FLOAT, BYTE, HALF):
            self.refuses(sass(spilling, element), "2 accesses to local memory")
        self.refuses(ptx(PTX.replace("bra L", "st.local.u32 [%rd1], %r1\nbra L")), "1 accesses to local memory")

    def test_spill_elsewhere(self):
        self.assertEqual(check_functions(sass(SASS + "STL [R1], R2")), [])

    def test_stack(self):
        name = NAME.format(FLOAT)
        usage = f" Function {name}:\n  REG:121 STACK:{{}} SHARED:0 LOCAL:0 CONSTANT[0]:1176 TEXTURE:0\n"
        report = f"ptxas info    : Function properties for {name}\n    {{}} bytes stack frame, 0 bytes spill stores\n"
        for read, text, functions in ((read_stacks, usage, sass(SASS)), (read_frames, report, ptx(PTX))):
            functions[0].stack_bytes = read(text.format(32))[name]
            self.assertEqual(check_functions(functions), [])
            functions[0].stack_bytes = read(text.format(40))[name]
            self.refuses(functions, "40 bytes of stack")

    def test_packets(self):
        def push(text: str, element: str = FLOAT):
            return renamed(sass(text, element), "AllReduceOneShotPush")

        load, count = "LDG.E.128.STRONG.SYS R56, desc[UR4][R88.64]", "LDG.E.64.STRONG.GPU R64, desc[UR6][R64.64]"
        poll = f"L:\n{load} * {{}}\n{count}\nBRA L\nEXIT"
        for element, loads in ((FLOAT, 8), (HALF, 8), (BYTE, 15)):
            self.assertEqual(check_functions(push(poll.format(loads), element)), [])
            self.refuses(push(poll.format(loads - 1), element), f"no loop with {loads} loads")
            aside = poll.format(loads).replace("BRA L", "STL [R1], R2\nLDL R2, [R1]\nBRA L")
            self.assertEqual(check_functions(push(aside, element)), [])
            self.refuses(push(aside.replace("BRA L", "LDL R2, [R1]\nBRA L"), element), "3 accesses to local memory")
            functions = push(poll.format(loads), element)
            functions[0].stack_bytes = 96
            if element == BYTE:
                self.assertEqual(check_functions(functions), [])
                functions[0].stack_bytes = 168
            self.refuses(functions, "bytes of stack")
        early = poll.format(7).replace(count, f"IADD3 R2, R56, R3, R4\n{load.replace('R56', 'R60')}\n{count}")
        self.refuses(push(early), "used before its last one is issued")

    def test_no_bulk_copies(self):
        def tma(read, text: str):
            return renamed(read(text), "AllReduceTwoShotTma")

        machine = SASS.replace("STG.E.128.STRONG.SYS desc[UR4][R74.64], R56\nBRA L", "STS.128 [R2], R56\nBRA L")
        words = PTX.replace("st.relaxed.sys.global.v4.u32 [%rd1]", "st.shared.v4.u32 [%r1]")
        for read, text, fence, load, store in (
                (sass, machine, "FENCE.VIEW.ASYNC.S", "UBLKCP.S.G [UR6], [UR4], UR5", "UBLKCP.G.S [UR6], [UR4], UR5"),
                (ptx, words, "fence.proxy.async.shared::cta",
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 256, [%r2]",
                 "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 256")):
            self.assertEqual(check_functions(tma(read, "\n".join((text, fence, load, store)))), [])
            self.refuses(tma(read, "\n".join((text, fence, load))), "no bulk_store")
            self.refuses(tma(read, "\n".join((text, fence, store))), "no bulk_load")

    def test_bulk_loads_alone(self):
        """Of a kernel whose stores are plain."""
        def push(text: str):
            return renamed(sass(text), "ReduceScatterPushPerPeer")

        store = "STG.E.128.STRONG.SYS desc[UR4][R74.64], R56\nBRA L"
        moves = SASS.replace(store, store.replace("R56\n", "R56 * 8\n"))
        loads = "FENCE.VIEW.ASYNC.S\nUBLKCP.S.G [UR6], [UR4], UR5"
        self.assertEqual(check_functions(push(f"{moves}\n{loads}")), [])
        self.refuses(push(moves), "no bulk_load")

    def test_stores_from_shared_memory(self):
        """What bulk copies brought is stored in a loop of its own, which looks nothing up in global memory."""
        def fetch(text: str):
            return renamed(sass("\n".join((text, "FENCE.VIEW.ASYNC.S", "UBLKCP.S.G [UR6], [UR4], UR5",
                                           "UBLKCP.G.S [UR6], [UR4], UR5"))), "AllGatherPullTma")

        load = next(line for line in SASS.splitlines() if "R88.64] * 8" in line)
        stores = SASS.replace(load, "LDS.128 R56, [R4]")
        self.assertEqual(check_functions(fetch(stores)), [])
        looks_up = stores.replace("LDS.128 R56, [R4]", "LDS.128 R56, [R4]\nLD.E.64 R6, desc[UR4][R8.64]")
        self.refuses(fetch(looks_up), "no loop with 0 loads and 1 stores")

    def test_moving_kernel(self):
        """One that moves bits stores to every rank what it loads once."""
        def push(text: str, body: str = "AllGatherPush"):
            return renamed(sass(text, "h"), body)

        load, store = "R88.64] * 8", "STG.E.128.STRONG.SYS desc[UR4][R74.64], R56\nBRA L"
        moves = SASS.replace(load, "R88.64]").replace(store, store.replace("R56\n", "R56 * 8\n"))
        self.assertEqual(check_functions(push(moves)), [])
        self.refuses(push(moves.replace("R56 * 8", "R56 * 7")), "no loop with 1 loads and 8 stores")
        self.refuses(push(moves, "AllGatherShove"), "AllGatherShove", "says nothing of what it promises")

    def test_kernels_with_a_second_parameter(self):
        for kind, beside in (("18team_beside_kernel", "NS_11PieceCountsE"), ("14message_kernel", "NS_8MessagesE")):
            functions = sass(SASS)
            functions[0].name = functions[0].name.replace("11team_kernel", kind) + beside
            self.refuses(renamed(functions, "AllGatherShove"), "says nothing of what it promises")

    def test_kernel_behind_an_algorithms_own(self):
        """Promises nothing, but keeps the rules for every function."""
        def local(text: str):
            functions = renamed(sass(text), "Normalise")
            functions[0].name = functions[0].name.replace("11team_kernel", "12local_kernel")
            return functions + sass(SASS)

        self.assertEqual(check_functions(local("EXIT")), [])
        self.refuses(local("LDG.E.CONSTANT R0, desc[UR4][R2.64]\nEXIT"), "cached")

    def test_missing_kernel(self):
        self.assertEqual(check_kernels.check_all_found(sass(SASS), {"AllReduceOneShot": POLLS, "Gone": POLLS}),
                         ["Gone: has no kernel"])

    def test_promises_of_descriptors(self):
        self.assertEqual(check_kernels.read_promises('{"A": {"loads": 8, "stack_bytes": 64}}'),
                         {"A": Promise(loads=8, stack_bytes=64)})

    def test_nothing_to_check(self):
        self.refuses([], "nothing was checked")


class Matmuls(unittest.TestCase):
    NAME = ("_ZN5tutti17own_matmul_kernelINS_5TilesILi128ELb0EJLi256ELi112EEEENS_4HalfENS_8OpenGateENS_13StoreEpilogueEEE"
            "vv")
    TILES = {128: {256, 112}}
    SASS = """
USETMAXREG.DEALLOC.CTAPOOL 0x28
UTMALDG.2D [UR8], [UR4]
UTMALDG.2D.MULTICAST [UR8], [UR4], UR6
USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8
HGMMA.64x256x16.F32 R24, gdesc[UR12], R24
HGMMA.64x112x16.F32 R24, gdesc[UR12], R24
"""
    PTX = """
setmaxnreg.dec.sync.aligned.u32 40
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4]
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1]
setmaxnreg.inc.sync.aligned.u32 232
wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {%f1}, %rd1, %rd2, p, 1, 1, 0, 0
wgmma.mma_async.sync.aligned.m64n112k16.f32.f16.f16 {%f1}, %rd1, %rd2, p, 1, 1, 0, 0
"""

    def findings(self, read, text: str, tiles=None, variants: int = 1) -> list[str]:
        functions = read(text)
        functions[0].name = self.NAME
        return check_kernels.check_matmuls(functions, tiles or self.TILES, variants)

    def test_each_rule(self):
        for read, text, spill in ((sass, self.SASS, "STL [R1], R2"), (ptx, self.PTX, "st.local.u32 [%rd1], %r1")):
            self.assertEqual(self.findings(read, text), [])
            lines = text.strip().splitlines()
            for gone, word in ((lines[4:], "products of [] columns, its tiles have [112, 256]"),
                               (lines[5:], "products of [256] columns, its tiles have [112, 256]"),
                               (lines[1:3], "no bulk tensor loads"), (lines[2:3], "nothing for both blocks"),
                               (lines[:1], "1 changes of a warpgroup's")):
                left = "\n".join(line for line in lines if line not in gone)
                self.assertIn(word, self.findings(read, left)[0])
            self.assertIn("1 accesses to local memory", self.findings(read, f"{text}{spill}")[0])

    def test_gate(self):
        name = self.NAME.replace("8OpenGate", "11ArrivalGate")
        for read, text, acquire, fence in (
                (sass, self.SASS, "LD.E.STRONG.SYS R4, desc[UR4][R2.64]\nCCTL.IVALL\n", "FENCE.VIEW.ASYNC.S\n"),
                (ptx, self.PTX, "ld.acquire.sys.u32 %r1, [%rd1]\n", "fence.proxy.async\n")):
            lines = text.strip().splitlines(keepends=True)

            def findings(*before: str) -> list[str]:
                functions = read("".join((lines[0], *before, *lines[1:])))
                functions[0].name = name
                return check_kernels.check_matmuls(functions, self.TILES, 1)

            self.assertEqual(findings(acquire, fence), [])
            for wrong in ((acquire,), (fence,), (fence, acquire), ()):
                self.assertIn("no acquiring load of system scope", findings(*wrong)[0])

    def test_missing_kernel(self):
        self.assertEqual(self.findings(sass, self.SASS, variants=2),
                         ["1 kernels of own_matmul for tiles of 128 rows, 2 are expected"])
        self.assertEqual(self.findings(sass, self.SASS, self.TILES | {256: {128}}),
                         ["0 kernels of own_matmul for tiles of 256 rows, 1 are expected"])
        self.assertEqual(check_kernels.check_matmuls(sass(SASS), self.TILES, 0), [])

    def test_tiles_of_the_source(self):
        self.assertEqual(check_kernels.matmul_tiles('    {"128x256", 128, 256, 4},\n    {"128x112", 128, 112, 6},\n'
                                                    '    {"256x128", 256, 128, 4},\n'),
                         {128: {256, 112}, 256: {128}})


class Names(unittest.TestCase):
    def test_multicast(self):
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "libtutti.so"
            library.write_bytes(b"\x7fELF\0cuMemCreate\0TUTTI_MULTICAST\0")
            self.assertEqual(check_kernels.check_multicast_names([library]), [])
            library.write_bytes(b"\x7fELF\0cuMulticastCreate\0")
            self.assertEqual(check_kernels.check_multicast_names([library]),
                             ["libtutti.so: names cuMulticastCreate"])


KERNELS = """
__global__ void multimem(float* p) {
  float x;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];" : "=f"(x) : "l"(p) : "memory");
  asm volatile("multimem.red.relaxed.sys.global.add.f32 [%0], %1;" ::"l"(p), "f"(x) : "memory");
}
__global__ void bulk(char* to, const char* from, unsigned bytes) {
  extern __shared__ __align__(128) char part[];
  part[threadIdx.x] = from[threadIdx.x];
  if (bytes != 0) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  const unsigned source = static_cast<unsigned>(__cvta_generic_to_shared(part));
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(source), "r"(bytes));
}
"""


class Compiled(unittest.TestCase):
    """What the tools of this machine make of such kernels."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.compile("faulty", KERNELS.replace("if (bytes != 0) asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");", ""))
        cls.compile("fenced", KERNELS)

    @classmethod
    def compile(cls, name: str, text: str) -> None:
        (cls.folder / f"{name}.cu").write_text(text)
        for kind in ("ptx", "cubin"):
            subprocess.run([os.environ.get("CUDACXX") or check_kernels.find_tool("nvcc"), "-arch=sm_90a", f"-{kind}",
                            f"{name}.cu", "-o", f"{name}.{kind}"], cwd=cls.folder, check=True)

    def check(self, faulty, fenced) -> None:
        findings = "\n".join(check_functions(faulty))
        for word in ("multimem(float*): ", "bulk(char*, char const*, unsigned int): ", "proxy fence"):
            self.assertIn(word, findings)
        self.assertNotIn("proxy fence", "\n".join(check_functions(fenced)))

    def test_ptx(self):
        self.check(*(read_ptx((self.folder / f"{name}.ptx").read_text()) for name in ("faulty", "fenced")))

    def test_machine_code(self):
        tool = check_kernels.find_tool("cuobjdump")
        if not tool or not check_kernels.find_tool("nvdisasm"):
            self.skipTest("no cuobjdump and nvdisasm")
        self.check(*(check_kernels.from_machine_code(self.folder / f"{name}.cubin", tool) for name in ("faulty", "fenced")))


if __name__ == "__main__":
    unittest.main()
