"""tools/peers/torch_symm_mem.py without GPUs: its figures, its measuring loop over a fake torch, and `tutti report` as
the reader of what it writes. TUTTI_COMMAND names the command."""

import contextlib
import io
import json
import math
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from argparse import ArgumentTypeError
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/peers/torch_symm_mem.py"
sys.path.insert(0, str(SCRIPT.parent))

import peer_record  # noqa: E402
import torch_bench  # noqa: E402
import torch_symm_mem  # noqa: E402
from fake_torch import FakeTorch  # noqa: E402

RANK = {"LOCAL_RANK": "0", "RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
MEASURED = ROOT / "results/h200x2/all_reduce.json"


def options(*words: str):
    return peer_record.parse_arguments(peer_record.parser_of(""), list(words))


class Options(unittest.TestCase):
    def refused(self, *words: str) -> str:
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
            options(*words)
        self.assertEqual(end.exception.code, 2)
        return said.getvalue()

    def test_sizes_with_units(self):
        for text, size in (("4096", 4096), ("64K", 65536), ("1.5M", 1572864), ("2GiB", 2 << 30), ("1kB", 1024)):
            self.assertEqual(peer_record.parse_bytes(text), size, text)
        for text in ("", "K", "-1", "1.3", "64Q", "1 2"):
            with self.assertRaises(ArgumentTypeError, msg=text):
                peer_record.parse_bytes(text)
        self.assertEqual([peer_record.format_bytes(size) for size in (1000, 1536, 65536, 1 << 20)],
                         ["1000", "1536", "64K", "1M"])

    def test_a_sweep_is_that_of_tutti_bench(self):
        self.assertEqual(options("-b", "1K", "-e", "16K", "-f", "4").sizes, [1024, 4096, 16384])
        self.assertEqual(options("--min-bytes", "1K", "--max-bytes", "5K").sizes, [1024, 2048, 4096])
        self.assertEqual((options().sizes[0], options().sizes[-1]), (1024, 64 << 20))
        self.assertEqual(options("--min-bytes", "128M").sizes, [128 << 20])
        self.assertEqual(options("--max-bytes", "512").sizes, [512])

    def test_messages_are_whole_elements_once(self):
        self.assertEqual(options("--bytes", "1K,1025,2K").sizes, [1024, 2048])

    def test_what_makes_no_sense_is_refused(self):
        self.assertIn("--bytes", self.refused("--bytes", "1K", "--factor", "2"))
        self.assertIn("from 2 on", self.refused("--factor", "1"))
        for words in (("--min-bytes", "2K", "--max-bytes", "1K"), ("--bytes", "1"), ("--min-bytes", "0")):
            self.assertIn("no sizes", self.refused(*words))
        self.refused("--samples", "0")
        self.refused("--dtype", "int8")

    def test_without_torchrun_it_says_so(self):
        with mock.patch.dict(os.environ, clear=True), contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(torch_symm_mem.main([]), torch_bench.USAGE)
        self.assertIn("torchrun", said.getvalue())


class Inputs(unittest.TestCase):
    def test_every_partial_sum_is_exact_in_bf16(self):
        for ranks in range(1, 9):
            of_ranks = [peer_record.input_values(rank, ranks, 1) for rank in range(ranks)]
            for column in zip(*of_ranks):
                most = max(abs(sum(column)) * max(1, ranks - 1), sum(map(abs, column)))
                self.assertLessEqual(most, 256, ranks)

    def test_ranks_and_iterations_differ(self):
        for ranks in (2, 8):
            seen = [peer_record.input_values(rank, ranks, iteration) for rank in range(ranks) for iteration in (0, 1)]
            for k, one in enumerate(seen):
                for other in seen[:k]:
                    same = sum(a == b for a, b in zip(one, other))
                    self.assertLess(same, peer_record.PERIOD / 2)

    def test_expected_is_what_repeated_sums_leave(self):
        for ranks, operations in ((2, 3), (8, 10), (6, 4), (3, 1)):
            zero_sum = peer_record.cancels(ranks, operations, "bf16")
            held = [peer_record.input_values(rank, ranks, 0, zero_sum) for rank in range(ranks)]
            for _ in range(operations):
                held = [[sum(column) for column in zip(*held)]] * ranks
            self.assertEqual(peer_record.expected_values(ranks, 0, operations, zero_sum), list(map(float, held[0])))

    def test_inputs_cancel_where_sums_would_grow_beyond_the_type(self):
        self.assertFalse(peer_record.cancels(8, 10, "bf16"))
        self.assertFalse(peer_record.cancels(6, 1, "fp16"))
        for case in ((6, 10, "bf16"), (8, 100, "bf16"), (8, 10, "fp16")):
            self.assertTrue(peer_record.cancels(*case), case)
        self.assertTrue(any(peer_record.input_values(0, 6, 0, True)))
        self.assertFalse(any(peer_record.expected_values(6, 0, 1000, True)))


class Figures(unittest.TestCase):
    def test_percentiles_are_samples_by_nearest_rank(self):
        self.assertEqual(peer_record.summarize([5, 3, 1, 4, 2]),
                         {"p50": 3, "p90": 5, "p99": 5, "min": 1, "max": 5, "n": 5})
        self.assertEqual(peer_record.summarize(list(range(1, 51)))["p50"], 25)
        self.assertEqual(peer_record.summarize(list(range(1, 101)))["p90"], 90)
        with self.assertRaises(ValueError):
            peer_record.summarize([])

    def test_the_slowest_rank_of_each_sample_counts(self):
        self.assertEqual(peer_record.slowest_rank([[1, 9, 2], [5, 3, 4]]), [5, 9, 4])
        with self.assertRaises(ValueError):
            peer_record.slowest_rank([[1], [1, 2]])

    def test_bandwidths_are_those_of_nccl_tests(self):
        ranks = [{"samples_us": [10.0], "wrong": rank % 2} for rank in range(8)]
        row = peer_record.row_of(("torch_nccl", True), 1 << 20, ranks, options())
        self.assertEqual((row["algbw_gbps"], row["busbw_gbps"]), (104.858, 183.501))  # x 2 * 7 / 8
        self.assertEqual((row["ranks"], row["count"], row["wrong"]), (8, 1 << 19, 4))


class Loop(unittest.TestCase):
    """The whole of main() as rank 0 of two."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.fake, self.said = Path(folder.name), FakeTorch(), ""
        environment = mock.patch.dict(os.environ, {**RANK, "NCCL_NVLS_ENABLE": "1"})
        environment.start()
        self.addCleanup(environment.stop)

    def run_main(self, *words: str) -> int:
        self.output = self.folder / "torch.json"
        words = ["--graph-operations", "3", "--samples", "5", "--warmup", "2", *words, "--output", str(self.output)]
        self.fake.install(self)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            try:
                return torch_symm_mem.main(words)
            finally:
                self.said = said.getvalue()

    def rows(self) -> dict:
        return {(row["algorithm"], row["bytes"]): row for row in json.loads(self.output.read_text())["rows"]}

    def test_rows_are_those_of_tutti_bench(self):
        self.assertEqual(self.run_main("--bytes", "1K,16K"), 0, self.said)
        record, known = json.loads(self.output.read_text()), json.loads(MEASURED.read_text())
        self.assertEqual((record["schema"], record["tutti"]), (known["schema"], known["tutti"]))
        self.assertEqual({*known["environment"], "torch"}, {*record["environment"], "calibration"})
        self.assertEqual(len(record["rows"]), 6)
        for row in record["rows"]:
            self.assertEqual(list(row), list(known["rows"][0]))
            self.assertEqual([row[key] for key in ("ranks", "graph_operations", "wrong", "chosen", "in_place")],
                             [2, 3, 0, False, row["algorithm"] != "torch_one_shot"])
        self.assertIs(record["environment"]["multicast"], False)
        self.assertIn("--nproc-per-node 2 tools/peers/torch_symm_mem.py", record["environment"]["command"])

    def test_a_sample_is_the_replay_over_its_operations_and_warmup_does_not_count(self):
        self.fake.time_ms = lambda name, k: 0.9 if k < 2 else 0.003 * (k - 1)  # 3, 6, 9, 12, 15 us
        self.fake.peer = lambda mine: mine if isinstance(mine, str) else [
            {"samples_us": [2.5] * 5, "wrong": 0} for _ in mine]
        self.assertEqual(self.run_main("--bytes", "1K"), 0, self.said)
        for row in self.rows().values():  # the slower of 1, 2, 3, 4, 5 and 2.5
            self.assertEqual(row["time_us"], {"p50": 3.0, "p90": 5.0, "p99": 5.0, "min": 2.5, "max": 5.0, "n": 5})
            self.assertEqual(row["per_rank_p50_us"], [3.0, 2.5])

    def test_contenders_take_turns_behind_a_barrier(self):
        self.run_main("--bytes", "1K")
        log, one, two = self.fake.log, "one_shot_all_reduce_out", "two_shot_all_reduce_"
        turn = [step for name in (one, two, "nccl") for step in ("barrier", "event", name, "event")]
        self.assertEqual(log[:27], [one] * torch_bench.RUN_AHEAD + turn * 2)  # 2 rounds of warm-up
        for k, step in enumerate(log):
            if step == "event" and log[k + 2:k + 3] == ["event"] and log[k + 1] != "barrier":
                self.assertEqual(log[k - 1], "barrier")
        self.assertEqual(log.count("barrier"), 3 * (2 + 5))

    def test_a_wrong_element_is_counted_and_said(self):
        def spoil(name, values):
            return [values[0] + 1, *values[1:]] if name == "one_shot_all_reduce_out" else values
        self.fake.spoil, self.fake.peer = spoil, lambda mine: mine if isinstance(mine, str) else [
            {**each, "wrong": 0} for each in mine]
        self.assertEqual(self.run_main("--bytes", "1K"), torch_bench.WRONG)
        self.assertEqual({name: row["wrong"] for (name, _), row in self.rows().items()},
                         {"torch_one_shot": 2, "torch_two_shot": 0, "torch_nccl": 0})  # first and last replay
        self.assertIn("WRONG RESULT: torch_one_shot, 1024 bytes: 2 elements", self.said)

    def test_what_is_left_over_does_not_pass(self):
        self.fake.spoil = lambda name, values: None  # nothing is ever written
        self.assertEqual(self.run_main("--bytes", "1K"), torch_bench.WRONG)
        rows = self.rows()
        self.assertEqual(rows["torch_one_shot", 1024]["wrong"], 2 * 2 * 512)  # ranks, checks: poison everywhere
        self.assertGreater(rows["torch_nccl", 1024]["wrong"], 512)

    def test_the_last_replay_is_checked_with_other_inputs(self):
        first = {}
        self.fake.spoil = lambda name, values: first.setdefault(name, values) if name.startswith("one") else values
        self.assertEqual(self.run_main("--bytes", "1K"), torch_bench.WRONG)
        self.assertGreater(self.rows()["torch_one_shot", 1024]["wrong"], 512)

    def test_nan_is_wrong(self):
        self.fake.spoil = lambda name, values: [*values[:-1], math.nan]
        self.assertEqual(self.run_main("--bytes", "1K", "--samples", "1"), torch_bench.WRONG)
        self.assertEqual([row["wrong"] for row in self.rows().values()], [2, 2, 2])

    def test_an_operation_that_torch_lacks_is_left_out_once(self):
        self.fake.missing = {"two_shot_all_reduce_"}
        self.assertEqual(self.run_main("--bytes", "1K,2K"), 0)
        self.assertEqual({name for name, _ in self.rows()}, {"torch_one_shot", "torch_nccl"})
        self.assertEqual(self.said.count("# torch_two_shot left out at 1K: AttributeError"), 1, self.said)
        self.assertEqual(self.said.count("left out"), 1)

    def test_what_fails_at_a_size_runs_at_others(self):
        self.fake.limit = {"one_shot_all_reduce_out": 512}
        self.assertEqual(self.run_main("--bytes", "1K,2K,512"), 0)
        self.assertEqual([size for name, size in self.rows() if name == "torch_one_shot"], [1024, 512])
        self.assertIn("left out at 2K: RuntimeError: CUDA out of memory in one_shot_all_reduce_out\n", self.said)

    def test_sizes_that_do_not_fit_are_left_out(self):
        self.fake.limit = {"empty": 600}
        self.assertEqual(self.run_main("--bytes", "4K,1K"), 0)
        self.assertEqual({size for _, size in self.rows()}, {1024})
        self.fake.limit = {"empty": 1}
        self.assertEqual(self.run_main("--bytes", "4K,1K"), torch_bench.WRONG)  # nothing ran

    def test_what_another_rank_lacks_is_left_out_here(self):
        reasons = iter(["", "", "", "no such thing"])  # memory, inputs, one_shot, two_shot
        self.fake.peer = lambda mine: next(reasons, "") if isinstance(mine, str) else mine
        self.assertEqual(self.run_main("--bytes", "1K"), 0)
        self.assertEqual({name for name, _ in self.rows()}, {"torch_one_shot", "torch_nccl"})
        self.assertIn("# torch_two_shot left out at 1K: no such thing", self.said)

    def test_multicast_is_off_whatever_the_environment_says(self):
        self.run_main("--bytes", "1K")
        self.assertEqual({name: os.environ[name] for name in torch_bench.NO_MULTICAST},
                         torch_bench.NO_MULTICAST)  # setUp had NCCL_NVLS_ENABLE=1

    def test_buffers_that_torch_maps_for_multicast_are_refused(self):
        self.fake.multicast_ptr = 4096
        with self.assertRaisesRegex(RuntimeError, "multicast"):
            self.run_main("--bytes", "1K")

    def tearDown(self):
        self.assertEqual(self.fake.streams, [])


class Process(unittest.TestCase):
    """The script as torchrun starts it, over a torch that does one thing."""

    def run_script(self, torch: str, timeout_s: int, **environment: str) -> subprocess.CompletedProcess:
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "torch"
            package.mkdir()
            (package / "__init__.py").write_text(textwrap.dedent(torch))
            return subprocess.run(
                [sys.executable, "-B", str(SCRIPT), "--bytes", "1K", "--timeout", str(timeout_s)], timeout=600,
                capture_output=True, text=True, env={**os.environ, **RANK, **environment, "PYTHONPATH": folder})

    def test_multicast_is_off_before_torch_is_loaded(self):
        done = self.run_script("""
            import json, os, sys
            print(json.dumps(dict(os.environ)))
            sys.exit(7)
            """, 300, NCCL_NVLS_ENABLE="1", TORCH_SYMM_MEM_DISABLE_MULTICAST="0", NVSHMEM_DISABLE_NVLS="0")
        self.assertEqual(done.returncode, 7, done.stderr)
        seen = json.loads(done.stdout)
        self.assertEqual((seen["NCCL_NVLS_ENABLE"], seen["TORCH_SYMM_MEM_DISABLE_MULTICAST"],
                          seen["NVSHMEM_DISABLE_NVLS"]), ("0", "1", "1"))

    def test_what_hangs_is_ended_with_a_text(self):
        done = self.run_script("import time\ntime.sleep(3600)\n", 1)
        self.assertEqual(done.returncode, torch_bench.TIMED_OUT, done.stderr)
        self.assertIn("rank 0: setting up took more than 1 s", done.stderr)


class Reader(Loop):
    """What is written, read by the command itself."""

    def setUp(self):
        super().setUp()
        self.machine = self.folder / "results/h200x2"
        self.machine.mkdir(parents=True)
        (self.folder / "README.md").write_text("<!-- headline from results/none.json: -->\n<!-- end of headline -->\n")
        self.assertEqual(self.run_main("--bytes", "1K,512", "--graph-operations", "20"), 0, self.said)

    def report(self, torch: str) -> subprocess.CompletedProcess:
        (self.machine / "torch.json").write_text(torch)
        command = [os.environ["TUTTI_COMMAND"], "report", "--results", str(self.folder / "results"),
                   "--docs", str(self.folder / "benchmarks.md"), "--readme", str(self.folder / "README.md")]
        return subprocess.run(command, capture_output=True, text=True, timeout=600)

    def page(self) -> str:
        return (self.folder / "benchmarks.md").read_text()

    def test_alone_it_has_a_section(self):
        done = self.report(self.output.read_text())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("## torch on h200x2", self.page())
        self.assertIn("| torch_one_shot | torch_two_shot (in place) | torch_nccl (in place) |", self.page())
        self.assertIn("torch 2.11.0+cu130", self.page())

    def measured(self, *algorithms: str) -> dict[str, float]:
        """Leaves those of what was measured next to torch's. Their times at 1 KiB, in us."""
        record = json.loads(MEASURED.read_text())
        record["rows"] = [row for row in record["rows"] if row["algorithm"] in algorithms]
        (self.machine / MEASURED.name).write_text(json.dumps(record))
        return {row["algorithm"]: row["time_us"]["p50"] for row in record["rows"] if row["bytes"] == 1024}

    def test_it_is_shown_next_to_tutti(self):
        time = self.measured("one_shot", "one_shot_push", "nccl")
        done = self.report(self.output.read_text())
        self.assertEqual(done.returncode, 0, done.stderr)
        table = self.page().split("graph of 20 operations")[1].split("**all_reduce")[0]
        self.assertIn("| one_shot | one_shot_push | nccl | torch_one_shot | torch_two_shot (in place) | "
                      "torch_nccl (in place) |", table)
        speed_up = time["nccl"] / time["one_shot_push"]
        bandwidth = 1024 / time["one_shot_push"] / 1000
        self.assertIn(f"| 1K | {speed_up:.2f}x | nccl | {bandwidth:.1f} | {time['one_shot']:.2f} | "
                      f"**{time['one_shot_push']:.2f}** | {time['nccl']:.2f} | "
                      "50.00 | 50.00 | 50.00 |", table)  # 1 ms over 20 operations
        self.assertIn("| 512 | n/a | torch_nccl | n/a | n/a | n/a | n/a | 50.00 | 50.00 | 50.00 |", table)
        self.assertIn(f"From `{self.machine}/torch.json`: torch_one_shot, torch_two_shot (in place)", table)
        self.assertNotIn("## torch on h200x2", self.page())
        self.assertIn("torch symm_mem</text>", (self.folder / "benchmarks/h200x2_all_reduce_2_speedup.svg").read_text())

    def test_a_record_that_lacks_a_key_is_refused(self):
        text = self.output.read_text()
        for part in ("row", "environment"):
            whole = json.loads(text)
            for key in whole["rows"][0] if part == "row" else whole["environment"]:
                record = json.loads(text)
                del (record["rows"][0] if part == "row" else record["environment"])[key]
                done = self.report(json.dumps(record))
                optional = key in ("launch", "torch", "why_no_multicast")
                self.assertEqual(done.returncode, 0 if optional else 2, f"{key}: {done.stderr}")
                if not optional:
                    self.assertIn("torch.json", done.stderr)
                    self.assertIn(f"'{key}'", done.stderr)


def load_tests(loader, tests, pattern):
    """Reader inherits what Loop sets up, not its tests."""
    suite = unittest.TestSuite()
    for case in (Options, Inputs, Figures, Loop, Process):
        suite.addTests(loader.loadTestsFromTestCase(case))
    suite.addTests(Reader(name) for name in vars(Reader) if name.startswith("test_"))
    return suite


if __name__ == "__main__":
    unittest.main()
