#!/usr/bin/env python3
"""Puts what a result file measured into a tuning table, as `tutti tune` would have written it.

    python3 tools/tuning/entries_of_results.py results/h200x2/send_recv.json --ranks 2 \\
        --table src/planning/tables/h200.json

Of each size at which two rows or more were measured in graphs, out of place, on buffers of one kind: the fastest, with
the grid of the file's run, its median, and the next one. What is not 2 % better is no reason to leave what comes first.
Of two rings, the one that is behind is the next one: no other entry says which way round is faster.
Entries of the same collective, GPU, number of ranks and kind of buffers are replaced. Rows that no table may name are
left out.
"""
import argparse
import json
import sys

sys.dont_write_bytecode = True

from table_file import replace_entries  # noqa: E402

NEVER = {"nccl_window", "nccl_copy_engine"}
MARGIN = 1.02
RINGS = {"ring", "ring_bidirectional"}


def cells(results, ranks, buffers):
    found = {}
    for row in results["rows"]:
        is_meant = row["mode"] == "graph" and row["buffers"] == buffers and not row["in_place"]
        if is_meant and row["ranks"] == ranks and not row["wrong"] and row["algorithm"] not in NEVER:
            found.setdefault(row["bytes"], []).append(row)
    return {size: rows for size, rows in sorted(found.items()) if len(rows) > 1}


def median(row):
    return row["time_us"]["p50"]


def best_first(rows):
    best = min(rows, key=median)
    if median(rows[0]) <= MARGIN * median(best):
        best = rows[0]
    rest = [row for row in rows if row is not best]
    other_ring = [row for row in rest if {row["algorithm"], best["algorithm"]} == RINGS]
    return best, min(other_ring or rest, key=median)


def entries(results, ranks, buffers):
    environment = results["environment"]
    low = None
    for size, rows in cells(results, ranks, buffers).items():
        if low is None:
            low = 0 if size <= 4096 else size // 2 + 1
        best, following = best_first(rows)
        yield {
            "collective": best["collective"], "backend": best["backend"], "gpu": environment["gpu"],
            "ranks": ranks, **({"buffers": "plain"} if buffers == "plain" else {}),
            "min_bytes": low, "max_bytes": size,
            "algorithm": f"{best['collective']}/{best['algorithm']}",
            "blocks": 0, "threads": 0, "chunk_bytes": 0, "time_us": median(best),
            "runner_up": f"{following['collective']}/{following['algorithm']}",
            "runner_up_us": median(following), "date": environment["date"][:10],
            "driver": environment["driver"], "samples": best["time_us"]["n"]}
        low = size + 1


def kind(entry):
    return entry["collective"], entry["backend"], entry["gpu"], entry["ranks"], entry.get("buffers", "symmetric")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", help="a file of `tutti bench`")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--table", required=True, help="the table that is changed")
    parser.add_argument("--buffers", choices=["symmetric", "plain"], default="symmetric")
    arguments = parser.parse_args()
    with open(arguments.results, encoding="utf-8") as file:
        made = list(entries(json.load(file), arguments.ranks, arguments.buffers))
    if not made:
        parser.error(f"{arguments.results}: no size at which two rows were measured on "
                     f"{arguments.ranks} ranks")
    replace_entries(arguments.table, made, lambda entry: kind(entry) == kind(made[0]))
    print(f"{len(made)} entries of {made[0]['collective']} on {arguments.ranks} ranks, {arguments.buffers} buffers")


if __name__ == "__main__":
    main()
