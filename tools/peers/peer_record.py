"""What a peer's bench shares with `tutti bench`: options, exact inputs, statistics and the format of results.

Nothing here needs a GPU or a package. Times are microseconds, sizes bytes, bandwidths GB/s (1e9 bytes).
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import re
from pathlib import Path

DTYPES = {"bf16": ("bfloat16", 2), "fp16": ("float16", 2), "fp32": ("float32", 4)}  # torch's name, bytes
PERIOD = 1021  # elements; prime, so that a slice at a wrong place is seen
WHOLE_NUMBERS = 256  # up to this every whole number is exact in bf16


def parse_bytes(text: str) -> int:
    """Bytes of "1K", "64KiB", "1.5M" or "4096" (units of 1024). ArgumentTypeError for anything else."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([kKMGT])(?:i?B)?|B)?\s*", text)
    size = float(match[1]) * 1024 ** " KMGT".index((match[2] or " ").upper()) if match else 0.5
    if size != int(size):
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; write bytes or a unit of 1024, such as 64K")
    return int(size)


def format_bytes(size: int) -> str:
    """The shortest exact text: 64K, 1M, 1000."""
    for letter, unit in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)


def sizes_of(options: argparse.Namespace) -> list[int]:
    """Bytes of each message, whole elements, no size twice. ValueError where there is none or one is too small."""
    sizes = options.bytes or []
    if not sizes:
        least = options.min_bytes if options.min_bytes is not None else min(1024, options.max_bytes or 1024)
        most = options.max_bytes if options.max_bytes is not None else max(64 << 20, least)
        while 0 < least <= most and options.factor >= 2:
            sizes.append(least)
            least *= options.factor
    element = DTYPES[options.dtype][1]
    sizes = list(dict.fromkeys(size - size % element for size in sizes))
    if not sizes or min(sizes) == 0:
        raise ValueError("no sizes: --min-bytes <= --max-bytes, at least one element, and --factor 2 or more")
    return sizes


def whole_number(least: int):
    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is no whole number from {least} on")
        return int(text)
    return parse


def parser_of(description: str) -> argparse.ArgumentParser:
    """Of options as `tutti bench` names them. A bench may add some of its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-b", "--min-bytes", type=parse_bytes, help="smallest message: 1K")
    parser.add_argument("-e", "--max-bytes", type=parse_bytes, help="largest message: 64M")
    parser.add_argument("-f", "--factor", type=whole_number(2), help="from one size to the next: 2")
    parser.add_argument("--bytes", type=lambda text: [parse_bytes(part) for part in text.split(",")],
                        help="messages instead of a sweep: 512K,1M")
    parser.add_argument("-d", "--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--graph-operations", type=whole_number(1), default=10, help="operations per sample: 10")
    parser.add_argument("-n", "--iterations", "--samples", dest="samples", type=whole_number(1), default=50)
    parser.add_argument("-w", "--warmup", type=whole_number(0), default=10, help="samples that do not count: 10")
    parser.add_argument("--timeout", type=whole_number(1), default=120, help="seconds a size may take: 120")
    parser.add_argument("--output", type=Path, help="write the results: torch.json")
    return parser


def parse_arguments(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """The options, and `sizes` (bytes) besides. Exits with 2 where they are wrong."""
    options = parser.parse_args(words)
    if options.bytes and (options.min_bytes, options.max_bytes, options.factor) != (None, None, None):
        parser.error("sizes come from one of --min-bytes/--max-bytes/--factor or --bytes")
    options.factor = options.factor or 2
    try:
        options.sizes = sizes_of(options)
    except ValueError as error:
        parser.error(str(error))
    return options


def cancels(ranks: int, applications: int, dtype: str) -> bool:
    """Whether inputs add up to zero: where `applications` sums, one of the other, would not stay exact."""
    if ranks == 1 or applications == 1:
        return False
    is_shift = ranks & (ranks - 1) == 0 and dtype != "fp16"
    return not is_shift or math.log2(ranks) * (applications - 1) >= 110


def mixed(*words: int) -> int:
    """64 bits that depend on all of `words` (splitmix64)."""
    key = 0
    for word in words:
        key = (key + word + 0x9E3779B97F4A7C15) % 2**64
        key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        key = (key ^ key >> 27) * 0x94D049BB133111EB % 2**64
        key ^= key >> 31
    return key


@functools.lru_cache(maxsize=64)
def input_values(rank: int, ranks: int, iteration: int, zero_sum: bool = False) -> tuple[int, ...]:
    """PERIOD whole numbers of a rank; all multiples of their sum up to `ranks` are exact in bf16."""
    most = min(64, max(1, WHOLE_NUMBERS // max(1, ranks * (ranks - 1))))
    source = rank // 2 if zero_sum else rank
    sign = 1 if not zero_sum else 0 if rank | 1 >= ranks else 1 - 2 * (rank % 2)
    return tuple(sign * (mixed(source, iteration, i) % (2 * most + 1) - most) for i in range(PERIOD))


def expected_values(ranks: int, iteration: int, applications: int, zero_sum: bool) -> list[float]:
    """PERIOD sums over all ranks, each summed again `applications` - 1 times where every rank holds it."""
    columns = zip(*(input_values(rank, ranks, iteration, zero_sum) for rank in range(ranks)))
    return [float(sum(column)) * float(ranks) ** (0 if zero_sum else applications - 1) for column in columns]


def summarize(samples: list[float]) -> dict[str, float]:
    """p50, p90, p99 by nearest rank, min, max, n. ValueError where there are no samples."""
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    at = {f"p{p}": ordered[max(1, math.ceil(p * len(ordered) / 100)) - 1] for p in (50, 90, 99)}
    return {**{name: round(value, 3) for name, value in at.items()},
            "min": round(ordered[0], 3), "max": round(ordered[-1], 3), "n": len(ordered)}


def slowest_rank(per_rank: list[list[float]]) -> list[float]:
    """Element k is the largest of the ranks' k-th samples. ValueError where ranks took different numbers."""
    if len({len(samples) for samples in per_rank}) != 1:
        raise ValueError("the ranks took different numbers of samples")
    return [max(of_ranks) for of_ranks in zip(*per_rank)]


def row_of(what: tuple[str, bool], size: int, per_rank: list[dict], options: argparse.Namespace,
           buffers: str = "symmetric") -> dict:
    """A row of tutti.bench/1. `what`: algorithm, whether in place; `size` in bytes; `per_rank`: {"samples_us": [...],
    "wrong": elements} of each rank. ValueError where these do not fit together."""
    ranks = len(per_rank)
    time_us = summarize(slowest_rank([each["samples_us"] for each in per_rank]))
    algbw = size / time_us["p50"] / 1e3 if time_us["p50"] > 0 else 0.0
    return {"collective": "all_reduce", "algorithm": what[0], "backend": "cuda", "ranks": ranks,
            "dtype": options.dtype, "op": "sum", "bytes": size, "count": size // DTYPES[options.dtype][1],
            "in_place": what[1], "buffers": buffers, "mode": "graph",
            "graph_operations": options.graph_operations, "chained": False, "cache": "hot", "launch": "processes",
            "blocks": 0, "threads": 0, "chunk_bytes": 0, "time_us": time_us,
            "per_rank_p50_us": [summarize(each["samples_us"])["p50"] for each in per_rank], "copy_us": 0.0,
            "algbw_gbps": round(algbw, 3), "busbw_gbps": round(algbw * 2 * (ranks - 1) / ranks, 3),
            "wrong": sum(each["wrong"] for each in per_rank), "chosen": False}


def printed_rows(text: str, ranks: int) -> dict[tuple[str, int], list[dict]]:
    """What the ranks of a peer printed (peer_bench.hpp), by contender and size, rank by rank. ValueError where one is
    missing."""
    taken: dict[tuple[str, int], dict[int, dict]] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 9 and words[0] == "row":
            wrong, sent, busy, every = map(int, words[4:8])
            taken.setdefault((words[1], int(words[2])), {})[int(words[3])] = {
                "wrong": wrong, "sent": sent, "busy": busy, "all": every,
                "samples_us": [float(us) for us in words[8].split(",")]}
    for (name, size), of_ranks in taken.items():
        if sorted(of_ranks) != list(range(ranks)):
            raise ValueError(f"{name}, {size} bytes: {len(of_ranks)} of {ranks} ranks printed a row")
    if not taken:
        raise ValueError("no rank printed a row")
    return {what: [of_ranks[rank] for rank in range(ranks)] for what, of_ranks in taken.items()}


def write_record(path: Path, record: dict) -> None:
    """A file as `tutti bench --output` writes it, all of it or nothing."""
    head = {key: value for key, value in record.items() if key not in ("environment", "rows")}
    rows = ",\n  ".join(json.dumps(row) for row in record["rows"])
    beside = path.with_name(path.name + ".new")
    beside.write_text(f'{json.dumps(head)[:-1]},\n "environment": {json.dumps(record["environment"])},\n'
                      f' "rows": [\n  {rows}\n]}}\n')
    beside.replace(path)


def record_text(environment: dict, rows: list[dict]) -> str:
    """A file of results, one line per row. `tutti` is the version of the tree this script is part of."""
    header = Path(__file__).resolve().parents[2] / "include/tutti/c/version.h"
    version = re.search(r'VERSION_STRING "(.*)"', header.read_text()) if header.exists() else None
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    return (f'{{"schema": "tutti.bench/1", "tutti": {json.dumps(version[1] if version else "unknown")},\n '
            f'"environment": {json.dumps(environment)},\n "rows": [\n  {lines}\n]}}\n')
