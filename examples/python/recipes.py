"""Variants of all_reduce over symmetric memory, written in Python, and timed beside tutti's own.

tutti run -n 2 python3 recipes.py [--sizes 1024 65536]      (or torchrun)

torch's recipes for symmetric memory have the same variants as Triton kernels. Here each one is a
few lines of torch on views of the other ranks' memory, between barriers:

  one-shot   every rank reads the whole vector of every rank, and adds all of them
  two-shot   every rank adds its own part of all vectors, then the ranks read each other's parts

They show how symmetric memory is used, not how fast it can be: each line of torch is a kernel.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch

import tutti
import tutti.torch
from tutti.torch import symm_mem


def one_shot(memory: symm_mem.Handle, output: torch.Tensor) -> None:
    memory.barrier()  # all inputs are written
    shape, dtype = output.shape, output.dtype
    parts = [memory.get_buffer(rank, shape, dtype) for rank in range(memory.world_size)]
    torch.sum(torch.stack(parts), dim=0, out=output)
    memory.barrier()  # all inputs are read


def two_shot(memory: symm_mem.Handle, output: torch.Tensor) -> None:
    count = output.numel() // memory.world_size
    memory.barrier()  # all inputs are written
    own = [
        memory.get_buffer(rank, (count,), output.dtype, memory.rank * count)
        for rank in range(memory.world_size)
    ]
    own[memory.rank].copy_(torch.stack(own).sum(dim=0))
    memory.barrier()  # all sums are written
    for rank in range(memory.world_size):
        sums = memory.get_buffer(rank, (count,), output.dtype, rank * count)
        output[rank * count : (rank + 1) * count].copy_(sums)
    memory.barrier()  # all sums are read


def median_us(call: Callable[[], object], device: torch.device, repeats: int) -> float:
    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    times = []
    for _ in range(repeats):
        wait()
        start = time.perf_counter()
        call()
        wait()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def measure(
    group: tutti.Communicator, count: int, device: torch.device
) -> tuple[list[float], bool]:
    """Microseconds of each variant, and whether all results are right."""
    x = symm_mem.empty((count,), dtype=torch.float32, device=device, group=group)
    memory = symm_mem.rendezvous(x, group)
    output = torch.empty_like(x)
    variants: list[Callable[[], object]] = [
        lambda: one_shot(memory, output),
        lambda: two_shot(memory, output),
        lambda: group.all_reduce(x, output=output),
    ]
    expected = float(group.size * (group.size + 1) // 2)
    correct, times = True, []
    for variant in variants:
        x.fill_(group.rank + 1.0)
        variant()
        correct = correct and bool((output == expected).all())
        times.append(median_us(variant, device, repeats=20))
    return times, correct


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 65536, 1048576])
    sizes = parser.parse_args().sizes
    correct = True
    with tutti.Communicator.from_environment() as group:
        device = (
            torch.device("cuda", group.device) if group.backend == "cuda" else torch.device("cpu")
        )
        if group.rank == 0:
            print(f"{group.size} ranks, {group.backend}, float32, median us")
            print(f"{'elements':>10} {'one-shot':>10} {'two-shot':>10} {'tutti':>10}")
        for count in sizes:
            times, right = measure(group, count - count % group.size, device)
            correct = correct and right
            if group.rank == 0:
                print(f"{count:>10} " + " ".join(f"{time:>10.1f}" for time in times))
    if not correct:
        print(f"rank {group.rank}: a result is wrong", file=sys.stderr)
    return 0 if correct else 1


if __name__ == "__main__":
    sys.exit(main())
