"""tools/peers/host_campaign without Open MPI: its plan, its rows, the modes of launches, and the tables of a sample."""

import contextlib
import importlib.machinery
import importlib.util
import io
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools/peers"))

import host_results  # noqa: E402
from host_results import Cell, K, M, Modes  # noqa: E402
from peer_record import write_record  # noqa: E402


def script(name: str):
    """A program without the ending .py, as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools/peers" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


tables, campaign = script("host_tables"), script("host_campaign")


def printed(ranks: int, wrong: int = 0) -> str:
    return "\n".join(f"row openmpi 1024 {rank} {wrong} 0 0 0 {10 + rank},30,{20 - rank}" for rank in range(ranks))


def rows(collective: str, size: int, times: dict[str, list[float]]) -> list[dict]:
    """Summaries of launches of 2 ranks, with these medians."""
    row, = host_results.peer_rows(printed(2), Cell(collective, 2))
    made = []
    for program, launches in times.items():
        launched = [{**row, "bytes": size, "time_us": {**row["time_us"], "p50": p50}} for p50 in launches]
        own = {"algorithm": "two_shot", "buffers": program} if program != "openmpi" else {}
        made.append({**host_results.summary(launched), **own})
    return made


def write(folder: str, made: list[dict]) -> Path:
    path = Path(folder) / "host" / "all_reduce_2.json"
    path.parent.mkdir()
    write_record(path, {"schema": "tutti.bench/1", "tutti": "0", "environment": {"host": "h"}, "rows": made})
    return path


class Plan(unittest.TestCase):
    def test_every_program_measures_every_size_once_a_round(self):
        for quick, sizes in ((False, host_results.SIZES), (True, host_results.QUICK)):
            for cell in host_results.all_cells(quick):
                planned = host_results.rounds(cell, quick, 2)
                barrier = cell.collective == "barrier"
                for program in ("symmetric", "openmpi") if barrier else host_results.PROGRAMS:
                    measured = [size for each in planned if each.program == program for size in each.sizes]
                    self.assertEqual(measured, [0] if barrier else list(sizes), (cell, program))

    def test_programs_take_turns(self):
        planned = [each.program for each in host_results.rounds(Cell("reduce", 4), False, 2)]
        self.assertEqual(planned, 2 * ["symmetric", "plain", "openmpi"])

    def test_more_ranks_than_cores_take_longer(self):
        cost = {ranks: sum(host_results.estimate_s(Cell("reduce", ranks), each, 2)
                           for each in host_results.rounds(Cell("reduce", ranks), False, 2)) for ranks in (2, 16)}
        self.assertGreater(cost[16], 2 * cost[2])

    def test_a_pattern_leaves_out_what_matches_all(self):
        chosen = {pattern: sum(host_results.matches(cell, pattern) for cell in host_results.all_cells(False))
                  for pattern in ("all_gather,8", ",8", "all_gather", "", "all_gather,3")}
        self.assertEqual(list(chosen.values()), [1, 13, 4, 52, 0])

    def test_wrong_arguments_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            peer = Path(folder) / "openmpi_host"
            for words in ([], ["--only", "all_reduce,3"], ["--quick", "--only", "reduce"], ["--launches", "0"]):
                with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as end:
                    campaign.parse([sys.executable, folder, "--peers", folder, *words])
                self.assertEqual(end.exception.code, 2)
                peer.write_text("#!/bin/sh\n")
                peer.chmod(0o700)
            self.assertEqual(len(campaign.parse([sys.executable, folder, "--peers", folder, "--quick"]).cells), 4)


class Rows(unittest.TestCase):
    def test_the_slowest_rank_of_each_sample_counts(self):
        row, = host_results.peer_rows(printed(3), Cell("all_to_all_v", 3))
        self.assertEqual((row["collective"], row["ranks"], row["op"]), ("all_to_all_v", 3, "none"))
        self.assertEqual(row["time_us"], {"p50": 20, "p90": 30, "p99": 30, "min": 12, "max": 30, "n": 3})
        self.assertAlmostEqual(row["busbw_gbps"], 1024 / 20e3 * 2 / 3 * 4 / 6, 3)

    def test_missing_ranks_are_an_error(self):
        for text, ranks in ((printed(2), 3), ("nothing", 2)):
            with self.assertRaises(ValueError):
                host_results.peer_rows(text, Cell("reduce", ranks))

    def test_a_summary_is_of_the_median_launch(self):
        launches = [{"time_us": {"p50": p50, "max": 10 * p50}, "wrong": 1} for p50 in (9.0, 2.0, 3.0, 8.0)]
        self.assertEqual(host_results.summary(launches),
                         {"time_us": {"p50": 3.0, "max": 30.0}, "wrong": 4, "launches_us": [9.0, 2.0, 3.0, 8.0]})

    def test_modes(self):
        self.assertEqual(host_results.modes_of([1.0, 3.0, 1.2, 3.2, 2.9]), Modes(2.9, 1.1, 3.0, 2, 3))
        self.assertEqual(host_results.modes_of([1.0, 1.4, 1.9]), Modes(1.4, 1.4, 1.4, 3, 0))
        self.assertEqual(host_results.modes_of([4.0]), Modes(4.0, 4.0, 4.0, 1, 0))


class Tables(unittest.TestCase):
    def render(self, made: list[dict]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            return tables.render(write(folder, made).parent)

    def test_ratios_are_to_the_median_and_to_both_modes(self):
        text = self.render(rows("all_reduce", K, {"symmetric": [1.1, 1.2, 1.3], "openmpi": [1.0, 2.0, 2.2]}) +
                           rows("all_reduce", 4 * K, {"symmetric": [1.0], "openmpi": [1.0]}))
        self.assertIn("| 2 ranks, symmetric buffers | 0.60 (fast 1.20, slow 0.57), reached: 1.0 | "
                      "1.00, **missed**: 0.8 | not measured |", text)
        self.assertIn("| all_reduce, 2 ranks, 1K | 1.00 | 1 | 2.10 | 2 |", text)

    def test_what_takes_longer_is_marked_and_counted(self):
        text = self.render(rows("reduce", K, {"symmetric": [1.3], "plain": [1.2], "openmpi": [1.0]}) +
                           rows("reduce", M, {"symmetric": [0.5], "openmpi": [100.0]}))
        self.assertIn("## 2 ranks, symmetric buffers, times of Open MPI: 1 above 1.2\n\n|  | 1K | 1M |\n"
                      "| --- | ---: | ---: |\n| reduce | **1.30** | 0.01 |", text)
        self.assertIn("## 2 ranks, plain buffers, times of Open MPI: 0 above 1.2", text)
        self.assertIn("| reduce, Open MPI | 1.00 | 100 |", text)

    def test_a_folder_without_results_is_refused(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(tables.main([folder]), 2)
        self.assertIn("host_campaign", said.getvalue())


class Page(unittest.TestCase):
    def test_the_documents_have_the_tables_of_the_results(self):
        folder = ROOT / "results/host"
        if not any(folder.glob("*.json")):
            self.skipTest("results/host holds no results of host_campaign")
        self.assertIn(tables.render(folder), (ROOT / "docs/internals/host_tables.md").read_text(),
                      "write them again: tools/peers/host_tables results/host")


if __name__ == "__main__":
    unittest.main()
