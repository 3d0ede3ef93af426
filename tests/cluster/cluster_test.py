"""tools/cluster without root: the plan of a campaign, rows of peers, and the tables of a sample."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = Path(__file__).resolve().parent / "sample"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools/cluster"))

import network_results  # noqa: E402
from network_results import Cell, K, M  # noqa: E402


def script(name: str):
    """A program without the ending .py, as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools/cluster" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


tables, campaign = script("tables"), script("campaign")
ALGORITHMS = {"auto", "network_one_shot", "network_doubling", "network_direct", "network_ring",
              "network_ring_bidirectional", "hierarchical"}
PROGRAMS = {"tutti", "openmpi", "openmpi_yield", "gloo"}


def printed(ranks: int, wrong: str = "0", ticks: str = "80 100") -> str:
    return "\n".join(f"noise\nrow gloo_ring 1024 {rank} {wrong} {5000 + rank} {ticks} {10 + rank},30,{20 - rank}"
                     for rank in range(ranks))


class Plan(unittest.TestCase):
    def test_cells_have_names_of_their_own(self):
        cells = network_results.all_cells()
        self.assertEqual(len({cell.name for cell in cells}), len(cells))
        self.assertEqual(Cell("200mbit", 8, "2ms").name, "all_reduce_200mbit_8_2ms")
        self.assertEqual(Cell("1gbit", 4, "0", 2).name, "all_reduce_1gbit_4x2")

    def test_a_pattern_leaves_out_what_matches_all(self):
        cells = network_results.all_cells()
        chosen = {pattern: [cell.name for cell in cells if network_results.matches(cell, pattern)]
                  for pattern in ("200mbit,8,2ms", ",4x2", ",,2ms", "")}
        self.assertEqual(chosen["200mbit,8,2ms"], ["all_reduce_200mbit_8_2ms"])
        self.assertEqual(chosen[",4x2"], ["all_reduce_200mbit_4x2", "all_reduce_1gbit_4x2"])
        self.assertEqual((len(chosen[",,2ms"]), len(chosen[""])), (9, len(cells)))

    def test_every_size_is_measured_once_by_each_library(self):
        for cell in network_results.all_cells():
            planned = network_results.launches(cell, ALGORITHMS, PROGRAMS)
            for program in PROGRAMS - {"openmpi"} if cell.per_host == 1 else {"tutti"}:
                measured = [(size, name) for launch in planned if launch.program == program
                            for size in launch.sizes for name in launch.algorithms]
                self.assertEqual(sorted({size for size, _ in measured}), cell.sizes(), (cell, program))
                self.assertEqual(len(set(measured)), len(measured), (cell, program))
            for launch in planned:
                self.assertTrue(launch.program != "tutti" or set(launch.algorithms) <= ALGORITHMS)
                self.assertGreater(network_results.estimate_s(cell, launch), 0.5)

    def test_what_sends_to_all_stops_at_small_sizes(self):
        planned = network_results.launches(Cell("1gbit", 8, "0"), ALGORITHMS, {"tutti"})
        for launch in planned:
            self.assertEqual("network_one_shot" in launch.algorithms, max(launch.sizes) <= 64 * K)

    def test_wrong_arguments_are_refused(self):
        for words in (["/no/tutti", "f"], [sys.executable, "f", "--only", "3mbit"]):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as end:
                campaign.parse(words)
            self.assertEqual(end.exception.code, 2)


class PeerRows(unittest.TestCase):
    def test_the_slowest_rank_of_each_sample_counts(self):
        row, = network_results.peer_rows(printed(3), 3)
        self.assertEqual((row["algorithm"], row["bytes"], row["ranks"], row["wrong"]), ("gloo_ring", 1024, 3, 0))
        self.assertEqual(row["time_us"], {"p50": 20, "p90": 30, "p99": 30, "min": 12, "max": 30, "n": 3})
        self.assertEqual((row["sent_bytes"], row["cpu_share"], row["backend"]), (5002, 0.8, "host"))

    def test_too_few_ticks_tell_no_share(self):
        row, = network_results.peer_rows(printed(2, ticks="9 10"), 2)
        self.assertNotIn("cpu_share", row)

    def test_wrong_results_are_counted(self):
        row, = network_results.peer_rows(printed(2, wrong="3"), 2)
        self.assertEqual(row["wrong"], 6)

    def test_missing_ranks_are_an_error(self):
        for text, ranks in ((printed(2), 3), ("nothing", 2)):
            with self.assertRaises(ValueError):
                network_results.peer_rows(text, ranks)

    def test_marks(self):
        self.assertEqual(network_results.marked({"cpu_share": 0.71, "drops": 9}, 0),
                         {"cpu_share": 0.71, "cpu_bound": True})
        self.assertEqual(network_results.marked({"cpu_share": 0.7}, 2), {"cpu_share": 0.7, "drops": 2})

    def test_what_is_written_is_read_again(self):
        record = json.loads((SAMPLE / "all_reduce_1gbit_2.json").read_text())
        with tempfile.TemporaryDirectory() as folder:
            network_results.peer_record.write_record(Path(folder) / "a.json", record)
            self.assertEqual((Path(folder) / "a.json").read_text(), (SAMPLE / "all_reduce_1gbit_2.json").read_text())


class Tables(unittest.TestCase):
    def test_of_the_sample(self):
        self.assertEqual(tables.render(SAMPLE) + "\n", (SAMPLE / "tables.md").read_text())

    def test_parts_of_the_rate(self):
        results = tables.Results(SAMPLE)
        part = tables.part(results, ("200mbit", 8, "2ms"), "network_ring", 4 * M)
        self.assertAlmostEqual(part, 2 * 7 / 8 * 4 * M * 8 / 0.3 / 200e6)

    def test_dropped_frames_reject_a_measurement(self):
        results = tables.Results(SAMPLE)
        self.assertEqual(results.forced(("1gbit", 2, "0"), 16 * M), "openmpi_yield_4")  # 5 is faster, and has drops
        self.assertEqual(results.mark(("1gbit", 2, "0"), "openmpi_yield_5", 16 * M), "+")

    def test_a_crossover_is_where_it_stays_behind(self):
        for gains, where in (({K: 5.0, M: -3.0}, "1M"), ({K: 5.0, M: -1.9}, "none"), ({K: -3.0, M: 1.0}, "none"),
                             ({K: 1.0, 64 * K: -4.0, M: -1.0}, "64K"), ({K: None}, "none")):
            self.assertEqual(tables.crossover(gains), where, gains)

    def test_a_folder_without_results_is_refused(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(tables.main([folder]), 2)
        self.assertIn("campaign", said.getvalue())


class Page(unittest.TestCase):
    def test_the_documents_have_the_tables_of_the_results(self):
        page = (ROOT / "docs/internals/network_tables.md").read_text()
        self.assertIn(tables.render(ROOT / "results/namespaces"), page,
                      "write them again: tools/cluster/tables results/namespaces")


if __name__ == "__main__":
    unittest.main()
