"""Times an all_reduce at the rank that comes last, when the others have waited for it.

torchrun --standalone --nproc-per-node 4 late_rank.py [--delays US,..] [--bytes N,..] [--samples N]
                                                      [--output FILE]

Rank 0's GPU spins for a while before the operation. The other ranks begin at once and wait. Rank 0 times the operation
alone, so the time should not depend on how late rank 0 is. Times are in us, medians of the samples. For each size and
delay, tutti is timed first, then NCCL. Prints a table; --output writes it as JSON.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

import tutti


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def spins_per_us() -> float:
    """Cycles that torch.cuda._sleep() takes for a microsecond."""
    cycles = 10_000_000
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    for _ in range(2):  # the first one loads the kernel
        ends[0].record()
        torch.cuda._sleep(cycles)
        ends[1].record()
        ends[1].synchronize()
    return cycles / (ends[0].elapsed_time(ends[1]) * 1000)


def time_of(operation: Callable[[], object], spins: int, samples: int) -> float:
    """Median of what rank 0 measures, in us."""
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    taken = []
    for _ in range(samples + 3):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        if dist.get_rank() == 0 and spins > 0:
            torch.cuda._sleep(spins)
        ends[0].record()
        operation()
        ends[1].record()
        ends[1].synchronize()
        taken.append(ends[0].elapsed_time(ends[1]) * 1000)
    return statistics.median(taken[3:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--delays", type=numbers, default=[100, 200, 300, 400, 700, 1500, 3000], metavar="US,..")
    parser.add_argument("--bytes", type=numbers, default=[1 << 10, 1 << 18, 1 << 23], metavar="N,..")
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()

    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    per_us = spins_per_us()
    cells = []
    with tutti.Communicator.from_environment(device=torch.cuda.current_device()) as group:
        for size in options.bytes:
            ours = tutti.empty(size // 2, torch.bfloat16, group)
            theirs = torch.zeros(size // 2, dtype=torch.bfloat16, device="cuda")
            arms = {"tutti": lambda ours=ours: group.all_reduce(ours, ours),
                    "nccl": lambda theirs=theirs: dist.all_reduce(theirs)}
            for delay in options.delays:
                cell: dict[str, float] = {"bytes": size, "delay_us": delay}
                for name, operation in arms.items():
                    cell[name] = round(time_of(operation, int(delay * per_us), options.samples), 1)
                cells.append(cell)
                if dist.get_rank() == 0:
                    print(f"{size:>10} {delay:>6} us late   tutti {cell['tutti']:>8}   nccl {cell['nccl']:>8}")
    if dist.get_rank() == 0 and options.output:
        record = {
            "schema": "tutti.late_rank/1",
            "gpu": torch.cuda.get_device_name(),
            "ranks": dist.get_world_size(),
            "torch": torch.__version__,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())),
            "tutti": tutti.__version__,
            "dtype": "bf16",
            "samples": options.samples,
            "median_us": cells,
        }
        options.output.write_text(json.dumps(record, indent=1) + "\n")
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
