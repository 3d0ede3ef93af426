"""What host_campaign and host_tables share: the cells of a campaign on one host, what runs in each, and its rows.

Nothing here starts a program. Times are microseconds, sizes bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median, median_low
from types import SimpleNamespace

import peer_record

K, M = 1 << 10, 1 << 20
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter",
               "send_recv", "barrier", "all_gather_v", "reduce_scatter_v", "all_to_all_v")
RANKS = (2, 4, 8, 16)
SIZES = (K, 4 * K, 8 * K, 16 * K, 64 * K, 256 * K, M, 4 * M, 16 * M)
QUICK = (K, 4 * K, 64 * K, M, 16 * M)  # of all_reduce
LAUNCHES = 10
PEER_SECONDS = 2  # that one size may take in a launch of a peer
PROGRAMS = ("symmetric", "plain", "openmpi")  # the first two: tutti with such buffers
TWO_MODES = 1.5  # launches that are so far apart are of two modes


@dataclass(frozen=True)
class Cell:
    collective: str
    ranks: int

    @property
    def pattern(self) -> str:
        return f"{self.collective},{self.ranks}"

    @property
    def name(self) -> str:
        return f"{self.collective}_{self.ranks}"


@dataclass(frozen=True)
class Launch:
    """One start of one program."""
    program: str
    sizes: tuple[int, ...]
    samples: int


def all_cells(quick: bool) -> list[Cell]:
    return [Cell(collective, ranks) for collective in (COLLECTIVES[:1] if quick else COLLECTIVES) for ranks in RANKS]


def matches(cell: Cell, pattern: str) -> bool:
    """`pattern`: COLLECTIVE,RANKS; what is left out or empty matches all."""
    return all(part in ("", own) for part, own in zip(pattern.split(","), cell.pattern.split(",")))


def rounds(cell: Cell, quick: bool, cores: int) -> list[Launch]:
    """What runs again and again: each program once with the small sizes, and once with the large ones."""
    sizes = QUICK if quick else SIZES
    small = tuple(size for size in sizes if size <= 64 * K)
    large = tuple(size for size in sizes if size > 64 * K)
    few = cell.ranks > cores  # then calls take as long as the system's scheduler lets ranks wait
    groups = [(small, 100 if few else 500), (large, 20 if few else 50)]
    programs = PROGRAMS
    if cell.collective == "barrier":  # has no buffers
        groups, programs = [((0,), groups[0][1])], ("symmetric", "openmpi")
    return [Launch(program, *group) for group in groups for program in programs]


def estimate_s(cell: Cell, launch: Launch, cores: int) -> float:
    """How long a launch takes, roughly. The constants were measured on two cores with other load."""
    call = 5e-6 if cell.ranks <= cores else 1e-4 * cell.ranks
    once = sum(2 * call + size * (1 + 0.5 * cell.ranks) / 4e9 for size in launch.sizes)
    return 0.3 + 0.05 * cell.ranks + launch.samples * once


def bus_share(collective: str, ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth, by nccl-tests' formulas, as `tutti bench` has it."""
    if collective in ("broadcast", "reduce", "send_recv"):
        return 1.0
    lengths = (ranks + 1) / (2 * ranks) if collective.endswith("_v") else 1.0
    return (2 if collective == "all_reduce" else 1) * lengths * (ranks - 1) / ranks


def peer_rows(text: str, cell: Cell) -> list[dict]:
    """The rows that all ranks of a peer printed. ValueError where one is missing."""
    rows = []
    for (name, size), of_ranks in peer_record.printed_rows(text, cell.ranks).items():
        row = peer_record.row_of((name, False), size, of_ranks, SimpleNamespace(dtype="fp32", graph_operations=0))
        op = "sum" if "reduce" in cell.collective else "none"
        row.update(collective=cell.collective, op=op, backend="host", buffers="plain", mode="eager",
                   busbw_gbps=round(row["algbw_gbps"] * bus_share(cell.collective, cell.ranks), 3))
        rows.append(row)
    return rows


def summary(rows: list[dict]) -> dict:
    """One row of the rows of several launches: that of the launch whose p50 is the median (the faster one of two),
    with all launches' p50 in their order, and their wrong elements added up."""
    times = [row["time_us"]["p50"] for row in rows]
    middle = rows[times.index(median_low(times))]
    return {**middle, "wrong": sum(row["wrong"] for row in rows), "launches_us": times}


@dataclass(frozen=True)
class Modes:
    """Medians of launches: of all, of the fast ones and of the slow ones, with their numbers. With one mode all are
    alike, and no launch is slow."""
    median: float
    fast: float
    slow: float
    fast_launches: int
    slow_launches: int


def modes_of(launches_us: list[float]) -> Modes:
    """Cuts where neighbours are farthest apart, if they are far."""
    ordered, middle = sorted(launches_us), median(launches_us)
    ratios = [later / earlier for earlier, later in zip(ordered, ordered[1:])]
    if not ratios or max(ratios) < TWO_MODES:
        return Modes(middle, middle, middle, len(ordered), 0)
    cut = ratios.index(max(ratios)) + 1
    return Modes(middle, median(ordered[:cut]), median(ordered[cut:]), cut, len(ordered) - cut)
