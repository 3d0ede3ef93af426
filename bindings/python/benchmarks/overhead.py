"""What a call from Python costs above the same call from C.

    PYTHONPATH=bindings/python python bindings/python/benchmarks/overhead.py
    [build/host-release/bin/tutti_c_overhead]

One rank on the host reduces one element, which is all overhead. The least of many rounds is what no
other program has disturbed. The argument is the program that measures the call from C; without it
only the times from Python are printed.
"""

import array
import importlib.util
import re
import subprocess
import sys
import time
from collections.abc import Callable

import tutti

CALLS, ROUNDS = 500, 301


def nanoseconds_of(call: Callable[[], object]) -> float:
    """Of one call, without the loop around it."""
    return least(call) - least(lambda: None)


def least(call: Callable[[], object]) -> float:
    rounds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(CALLS):
            call()
        rounds.append((time.perf_counter_ns() - begin) / CALLS)
    return min(rounds)


def calls_of(communicator: tutti.Communicator) -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    all_reduce, raw_all_reduce = communicator.all_reduce, communicator.raw.all_reduce
    plain, target = array.array("f", [1.0]), array.array("f", [0.0])
    one, other = (tutti.empty(1, "float32", communicator) for _ in range(2))
    source, address = plain.buffer_info()[0], target.buffer_info()[0]
    calls: dict[str, Callable[[], object]] = {
        "Communicator.raw.all_reduce, addresses": lambda: raw_all_reduce(
            source, address, 1, 1, "sum"
        ),
        "Communicator.all_reduce, tutti.Array": lambda: all_reduce(one, other),
        "the same with an option": lambda: all_reduce(one, other, algorithm="two_shot"),
    }
    if importlib.util.find_spec("torch"):
        import torch

        tensor, result = torch.ones(1), torch.zeros(1)
        calls["Communicator.all_reduce, torch tensors"] = lambda: all_reduce(tensor, result)
        calls["the same in place"] = lambda: all_reduce(tensor, tensor, "max")
        calls["the same, new output"] = lambda: all_reduce(tensor)
    if importlib.util.find_spec("numpy"):
        import numpy

        values, sums = numpy.ones(1, "f4"), numpy.zeros(1, "f4")
        calls["Communicator.all_reduce, numpy arrays"] = lambda: all_reduce(values, sums)
    calls["Communicator.all_reduce, array.array"] = lambda: all_reduce(plain, target)
    return calls


def nanoseconds_of_c(program: str) -> float:
    shown = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = re.search(r"\bC (\d+\.\d+) \(", shown)
    if found is None:
        raise SystemExit(f"{program} does not print the time of a call from C")
    return float(found.group(1))


def main() -> None:
    from_c = nanoseconds_of_c(sys.argv[1]) if len(sys.argv) > 1 else None
    print(f"all_reduce of one rank, ns per call, least of {ROUNDS} rounds of {CALLS} calls")
    if from_c is not None:
        print(f"{'from C':45}{from_c:7.0f}")
    (communicator,) = tutti.Communicator.in_process(1, backend="host")
    with communicator:
        for name, call in calls_of(communicator).items():
            taken = nanoseconds_of(call)
            above = "" if from_c is None else f"  (+{taken - from_c:.0f})"
            print(f"{name:45}{taken:7.0f}{above}")


if __name__ == "__main__":
    main()
