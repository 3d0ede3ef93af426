"""What campaign and tables share: the cells of a campaign, what runs in each, and rows of results.

Nothing here starts a program. Times are microseconds, sizes bytes, rates bits per second.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))

import peer_record  # noqa: E402

K, M = 1 << 10, 1 << 20
RATES = {"unshaped": 0, "200mbit": 200_000_000, "1gbit": 1_000_000_000}
DELAYS = {"0": 0, "0.5ms": 500, "2ms": 2000}  # one way
HOSTS = (2, 4, 8)
SAMPLES, WARMUP = 10, 1
PEER_SECONDS = 2  # that a peer's algorithm may take at one size
CPU_BOUND = 0.7  # of all cores
FEWEST_TICKS = 20  # of 10 ms, that a share of the cores is told from
# Rings fill no port with messages of several hosts. The others do, so that frames may be dropped.
RINGS = ("auto", "network_ring", "network_ring_bidirectional")
OTHERS = ("network_direct", "network_tree")
# Algorithms that send more than the others run up to this size.
UP_TO = {"network_one_shot": 64 * K, "network_doubling": 256 * K}
HIERARCHICAL = ("auto", "hierarchical", "network_ring")


@dataclass(frozen=True)
class Cell:
    rate: str
    hosts: int
    delay: str
    per_host: int = 1

    @property
    def ranks(self) -> int:
        return self.hosts * self.per_host

    @property
    def pattern(self) -> str:
        hosts = f"{self.hosts}" if self.per_host == 1 else f"{self.hosts}x{self.per_host}"
        return f"{self.rate},{hosts},{self.delay}"

    @property
    def name(self) -> str:
        return "all_reduce_" + self.pattern.removesuffix(",0").replace(",", "_")

    def sizes(self) -> list[int]:
        if self.per_host > 1:
            return [K, 64 * K, M, 4 * M]
        largest = 4 * M if self.rate == "200mbit" or (self.rate, self.delay) == ("unshaped", "2ms") else 16 * M
        every = (K, 8 * K, 64 * K, 256 * K, 512 * K, M, 4 * M, 16 * M)
        less = (K, 64 * K, 256 * K, M, 4 * M, 16 * M)
        return [size for size in (every if self.delay == "0" else less) if size <= largest]


@dataclass(frozen=True)
class Launch:
    """One start of one program."""
    program: str  # "tutti", "openmpi", "openmpi_yield" or "gloo"
    algorithms: tuple[str, ...]
    sizes: tuple[int, ...]


def all_cells() -> list[Cell]:
    plain = [Cell(rate, hosts, delay) for delay in DELAYS for rate in RATES for hosts in HOSTS]
    return plain + [Cell(rate, hosts, "0", 2) for rate in ("200mbit", "1gbit") for hosts in (2, 4)]


def matches(cell: Cell, pattern: str) -> bool:
    """`pattern`: RATE,HOSTS,DELAY; what is left out or empty matches all. Four hosts with two ranks each: 4x2."""
    return all(part in ("", own) for part, own in zip(pattern.split(","), cell.pattern.split(",")))


def launches(cell: Cell, known: set[str], programs: set[str]) -> list[Launch]:
    """What runs in a cell: large sizes one by one, so that a repeated launch repeats little."""
    if cell.per_host > 1:
        return [Launch("tutti", HIERARCHICAL, (size,)) for size in cell.sizes()]
    small = [size for size in cell.sizes() if size <= 64 * K]
    groups = [small] + [[size] for size in cell.sizes() if size > 64 * K]
    planned = []
    for sizes in groups:
        is_small = sizes is small
        others = (*OTHERS, *(name for name, most in UP_TO.items() if max(sizes) <= most))
        for names in [(*RINGS, *others)] if is_small else [RINGS, others]:
            planned.append(Launch("tutti", tuple(name for name in names if name in known), tuple(sizes)))
        brief = cell.delay != "0"
        forced = ("2", "3") if is_small else ("2", "3", "4", "5", "6")
        # With fewer cores than ranks, spinning ranks hold up those that have work.
        if cell.hosts == 2 or (is_small and not brief):
            planned.append(Launch("openmpi", ("default", *forced), tuple(sizes)))
        planned.append(Launch("openmpi_yield", ("default", *forced), tuple(sizes)))
        planned.append(Launch("gloo", ("ring",), tuple(sizes)))
    return [each for each in planned if each.program in programs]


def _passes(name: str, ranks: int) -> tuple[float, float]:
    """Messages that a rank's link carries, and steps one after the other: roughly, for estimates."""
    around = 2 * (ranks - 1) / ranks
    known = {"network_one_shot": (ranks - 1, 1), "network_doubling": (ranks.bit_length() - 1, ranks.bit_length() - 1),
             "network_direct": (around, 2), "network_ring_bidirectional": (around, 1.5 * (ranks - 1)),
             "default": (2 * around, 2 * ranks), "3": (2 * around, ranks), "network_tree": (around, 4)}
    return known.get(name, (around, 2 * (ranks - 1)))


def estimate_s(cell: Cell, launch: Launch) -> float:
    """How long a launch takes on two cores. The constants were measured on one machine with other load."""
    total = 0.5 + 0.1 * cell.ranks
    is_peer = launch.program != "tutti"
    step = 2e-3 if is_peer and launch.program != "openmpi_yield" and cell.hosts > 2 else 1e-4 * cell.ranks
    rate = min(RATES[cell.rate] or 8e9, 16e9 / cell.ranks)
    for size in launch.sizes:
        for name in launch.algorithms:
            carried, steps = _passes(name, cell.ranks)
            once = carried * size * 8 / rate + steps * (DELAYS[cell.delay] * 1e-6 + step)
            whole = (SAMPLES + WARMUP) * once
            total += min(whole, max(PEER_SECONDS, 3 * once) + 2 * once) if is_peer else whole
    return total


def peer_rows(text: str, ranks: int) -> list[dict]:
    """The rows that all ranks of a peer printed together (peer_bench.hpp). ValueError where one is missing."""
    rows = []
    for (name, size), of_ranks in peer_record.printed_rows(text, ranks).items():
        row = peer_record.row_of((name, False), size, of_ranks, SimpleNamespace(dtype="fp32", graph_operations=0))
        row.update(backend="host", buffers="plain", mode="eager", sent_bytes=max(own["sent"] for own in of_ranks))
        shares = [own["busy"] / own["all"] for own in of_ranks if own["all"] >= FEWEST_TICKS]
        if shares:
            row["cpu_share"] = round(max(shares), 3)
        rows.append(row)
    return rows


def marked(row: dict, drops: int) -> dict:
    """`row` with what limits its worth: whether cores were busy, and frames that were dropped meanwhile."""
    row = {key: value for key, value in row.items() if key not in ("cpu_bound", "drops")}
    if row.get("cpu_share", 0) > CPU_BOUND:
        row["cpu_bound"] = True
    if drops > 0:
        row["drops"] = drops
    return row
