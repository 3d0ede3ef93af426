#!/usr/bin/env python3
"""Measures the host's shipped tuning table: the algorithms of collectives between processes of this machine.

    python3 tools/tuning/host_table.py build/host-release/bin/tutti src/planning/tables/host.json [--launches N]
        [--only COLLECTIVE,RANKS]...

`tutti tune` measures in one launch. Between two launches of the same program, cores of a virtual machine may be twice
as far apart, which changes what is fastest. So this runs `tutti bench --algorithms all` several times, all collectives
and numbers of ranks in turn, and takes the algorithm whose times have the smallest geometric mean. Among algorithms
within 1.5 % of the fastest it takes the first one of the catalogue. Entries of the same collective and number of ranks
are replaced after every launch. --only may be repeated; what it leaves out matches all: "all_reduce,2", ",4". Nothing
else may run meanwhile.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from table_file import replace_entries  # noqa: E402

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter",
               "all_gather_v", "reduce_scatter_v", "all_to_all_v")
K, M = 1 << 10, 1 << 20
SIZES = (K, 4 * K, 16 * K, 64 * K, 256 * K, M, 4 * M, 16 * M)
LARGEST = {2: 16 * M, 4: 16 * M, 8: 4 * M, 16: M}  # by number of ranks
MANY, FEW = 60, 12  # samples of a launch, up to 256K and above
MOST_S = 120  # that a launch may take
MARGIN = 1.015  # of the fastest
ONE_PASS = M  # of staging: what takes several passes through it, `auto` takes from no table


def launch(tutti, collective, ranks, sizes, samples):
    """The time of each algorithm, by size: {1024: {"push": 0.7, ...}}, in the order of the catalogue."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "bench.json")
        subprocess.run([tutti, "bench", collective, "--backend", "host", "--ranks", str(ranks), "--dtype", "fp32",
                        "--algorithms", "all", "--bytes", ",".join(map(str, sizes)), "-n", str(samples), "-w", "5",
                        "--output", output], check=True, stdout=subprocess.DEVNULL, timeout=MOST_S)
        with open(output, encoding="utf-8") as file:
            record = json.load(file)
    times = {size: {} for size in sizes}
    for row in record["rows"]:
        if row["wrong"]:
            raise RuntimeError(f"{collective}/{row['algorithm']}, {ranks} ranks, {row['bytes']} bytes: wrong results")
        times[row["bytes"]][row["algorithm"]] = row["time_us"]["p50"]
    return times, record["environment"]["date"][:10]


def mean_times(launches):
    """By algorithm, the geometric mean of its times, of algorithms that ran in all launches. Their ratios are the means
    of the ratios within a launch."""
    common = [name for name in launches[0] if all(name in times for times in launches)]
    return {name: statistics.geometric_mean(times[name] for times in launches) for name in common}


def is_staged_in_passes(collective, name, size):
    """Peers copy out of the root's staging, as only the root knows its input."""
    return collective in ("broadcast", "scatter") and name == "copy_engine" and size > ONE_PASS


def entries(collective, ranks, cell, date):
    low = 0
    for size, launches in sorted(cell.items()):
        means = {name: time for name, time in mean_times(launches).items()
                 if not is_staged_in_passes(collective, name, size)}
        if not means:
            continue
        ordered = sorted(means, key=means.get)
        first = next(name for name in means if means[name] <= MARGIN * means[ordered[0]])
        following = [name for name in ordered if name != first]
        few = size > 256 * K
        entry = {"collective": collective, "backend": "host", "ranks": ranks, "cores": os.cpu_count(),
                 "min_bytes": low, "max_bytes": size, "algorithm": f"{collective}/{first}", "blocks": 0,
                 "threads": 0, "chunk_bytes": 0,
                 "time_us": round(means[first], 3)}
        if following:
            entry |= {"runner_up": f"{collective}/{following[0]}", "runner_up_us": round(means[following[0]], 3)}
        yield entry | {"date": date, "samples": len(launches) * (FEW if few else MANY)}
        low = size + 1


def measure_round(tutti, found):
    """Adds a launch to each of {(collective, ranks): {size: [times of a launch, ...]}}. The date."""
    date = ""
    for (collective, ranks), cell in found.items():
        sizes = [size for size in SIZES if size <= LARGEST[ranks]]
        for samples, some in ((MANY, [size for size in sizes if size <= 256 * K]),
                              (FEW, [size for size in sizes if size > 256 * K])):
            times, date = launch(tutti, collective, ranks, some, samples)
            for size, row in times.items():
                cell.setdefault(size, []).append(row)
    return date


def write_table(file_name, found, date):
    made = [entry for (collective, ranks), cell in found.items() for entry in entries(collective, ranks, cell, date)]
    replace_entries(file_name, made, lambda entry: (entry["collective"], entry["ranks"]) in found)


def matches(cell, pattern):
    return all(part in ("", str(own)) for part, own in zip(pattern.split(","), cell))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tutti")
    parser.add_argument("table", help="is changed, or made")
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--only", action="append", metavar="COLLECTIVE,RANKS")
    options = parser.parse_args()
    cells = [(collective, ranks) for collective in COLLECTIVES for ranks in LARGEST
             if any(matches((collective, ranks), each) for each in options.only or [""])]
    if not cells or options.launches < 1:
        parser.error("nothing to measure")
    found = {cell: {} for cell in cells}
    for number in range(options.launches):
        date = measure_round(options.tutti, found)
        write_table(options.table, found, date)
        print(f"launch {number + 1} of {options.launches}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
