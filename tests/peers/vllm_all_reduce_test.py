"""tools/peers/vllm_all_reduce.py without GPUs and without vLLM: a fake torch, and a fake of both all-reduces."""

import contextlib
import ctypes
import io
import json
import os
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/peers"))

import torch_bench  # noqa: E402
import vllm_all_reduce  # noqa: E402
from fake_torch import FakeTorch  # noqa: E402

RANK = {"LOCAL_RANK": "0", "RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
OWN, PEER = b"o" * 64, b"p" * 64


class FakeLibrary:
    """vllm_all_reduce.cu: its inputs have to be registered between their capture and their replay."""

    def __init__(self, fake: FakeTorch):
        self.fake, self.inputs, self.connected, self.registered = fake, [], b"", []
        self.run, self.broken = fake.operation("vllm"), ""

    @staticmethod
    def vllm_version() -> bytes:
        return b"0.33.0"

    def status(self, name: str) -> int:
        return -1 if name == self.broken else 0

    def vllm_open(self, rank, ranks, staging, handle, made) -> int:
        handle.raw = OWN
        return self.status("vllm_open")

    def vllm_connect(self, made, handles) -> int:
        self.connected = handles
        return self.status("vllm_connect")

    def vllm_all_reduce(self, made, reference, stream) -> int:
        asked = reference._obj
        assert (asked.dtype, stream.value) == (b"bf16", 7)
        source, target = (self.fake.tensors[address] for address in (asked.input, asked.output))
        assert source.numel() == asked.count
        self.inputs.append(source)
        self.run(source, target)
        return self.status("vllm_all_reduce")

    def vllm_captured(self, made) -> int:
        return len(self.inputs)

    def vllm_handles(self, made, handles, offsets) -> int:
        for k in range(len(self.inputs)):
            handles[64 * k:64 * (k + 1)], offsets[k] = OWN, 256 * k
        return self.status("vllm_handles")

    def vllm_register(self, made, handles, offsets) -> int:
        self.fake.log.append("vllm knows its inputs")
        self.registered.append((handles, list(offsets)))
        self.inputs.clear()
        return self.status("vllm_register")


class FakeCustomAllreduce:
    disabled = False

    def __init__(self, group, device):
        assert group == "gloo group"

    def all_reduce(self, source, out) -> None:
        FakeCustomAllreduce.run(source, out)

    @contextlib.contextmanager
    def capture(self):
        yield
        FakeCustomAllreduce.log.append("tutti knows its inputs")

    def close(self) -> None:
        FakeCustomAllreduce.log.append("closed")


def of_peer(mine):
    """What the other rank says in place of `mine`: handles and offsets of its own."""
    if mine == OWN:
        return PEER
    if isinstance(mine, tuple) and isinstance(mine[0], bytes):
        return mine[0].replace(b"o", b"p"), [offset + 1 for offset in mine[1]]
    return mine


class Loop(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output, self.fake, self.said = Path(folder.name) / "vllm.json", FakeTorch(), ""
        self.fake.peer = of_peer
        self.library = FakeLibrary(self.fake)
        FakeCustomAllreduce.run, FakeCustomAllreduce.log = self.fake.operation("tutti"), self.fake.log
        of_tutti = types.SimpleNamespace(CustomAllreduce=FakeCustomAllreduce)
        for patch in (mock.patch.dict(os.environ, RANK), mock.patch.object(ctypes, "CDLL", lambda path: self.library),
                      mock.patch.dict(sys.modules, {"tutti": types.SimpleNamespace(vllm=of_tutti),
                                                    "tutti.vllm": of_tutti})):
            patch.start()
            self.addCleanup(patch.stop)

    def run_main(self, *words: str) -> int:
        self.fake.install(self)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            try:
                return vllm_all_reduce.main(["--library", "folder/libvllm.so", "--bytes", "1K", "--graph-operations", "3",
                                             "--samples", "5", "--warmup", "2", *words, "--output", str(self.output)])
            finally:
                self.said = said.getvalue()

    def test_both_are_rows_of_registered_buffers(self):
        self.assertEqual(self.run_main(), 0, self.said)
        rows = {row["algorithm"]: row for row in json.loads(self.output.read_text())["rows"]}
        self.assertEqual(set(rows), {"vllm_custom_allreduce", "tutti_custom_allreduce"})
        for row in rows.values():
            self.assertEqual((row["buffers"], row["in_place"], row["wrong"], row["time_us"]["n"]),
                             ("registered", False, 0, 5))
        environment = json.loads(self.output.read_text())["environment"]
        self.assertEqual((environment["vllm"], environment["torch"]), ("0.33.0", "2.11.0+cu130"))
        self.assertIn("--library libvllm.so", environment["command"])  # not where it lies
        self.assertEqual(self.fake.log[-1], "closed")

    def test_vllm_knows_the_inputs_of_all_ranks_before_a_replay(self):
        self.run_main()
        self.assertEqual(self.library.connected, OWN + PEER)
        self.assertEqual(self.library.registered, [(OWN * 3 + PEER * 3, [0, 256, 512, 1, 257, 513])])
        for name in ("vllm", "tutti"):
            self.assertLess(self.fake.log.index(f"{name} knows its inputs"), self.fake.log.index(name))

    def test_what_vllm_refuses_is_left_out(self):
        self.library.broken = "vllm_register"
        self.assertEqual(self.run_main(), 0)
        self.assertIn("vllm_custom_allreduce left out at 1K: RuntimeError: vllm_register failed", self.said)
        self.assertEqual([row["algorithm"] for row in json.loads(self.output.read_text())["rows"]],
                         ["tutti_custom_allreduce"])

    def test_a_wrong_sum_is_counted(self):
        self.fake.spoil = lambda name, values: [values[0] + 1, *values[1:]] if name == "vllm" else values
        self.assertEqual(self.run_main(), torch_bench.WRONG)
        self.assertIn("WRONG RESULT: vllm_custom_allreduce", self.said)


if __name__ == "__main__":
    unittest.main()
