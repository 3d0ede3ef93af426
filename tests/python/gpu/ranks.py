"""Starts ranks as processes that share the machine's GPUs, and runs a check on each.

A check is a function of a communicator on CUDA. It raises, or returns a line for people.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

Check = Callable[[Any], str]

#: Seconds that a wait of tutti, and that a whole check, may take. Processes take turns on a GPU.
WAIT_S, CHECK_S = 60, 240


def _run(answer: Connection, check: Check, text: str, rank: int, size: int) -> None:
    import torch

    import tutti

    try:
        device = rank % torch.cuda.device_count()
        torch.cuda.set_device(device)
        torch.zeros(1, device="cuda")
        with tutti.Communicator(
            text, rank, size, backend="cuda", device=device, timeout=WAIT_S
        ) as communicator:
            line = check(communicator)
        answer.send((True, line))
    except BaseException:
        answer.send((False, traceback.format_exc()))


def folder() -> str:
    """A folder that all ranks of the check share."""
    return os.environ["CHECK_FOLDER"]


def run(check: Check, size: int) -> bool:
    """Whether the check passed on every rank. Prints one line, or what was raised."""
    with tempfile.TemporaryDirectory() as shared:
        os.environ["CHECK_FOLDER"] = shared
        return _run_all(check, size)


def _run_all(check: Check, size: int) -> bool:
    import tutti

    spawn = multiprocessing.get_context("spawn")
    text = str(tutti.UniqueId.create())
    started, pipes, processes = time.monotonic(), [], []
    for rank in range(size):
        reader, writer = spawn.Pipe(duplex=False)
        process = spawn.Process(target=_run, args=(writer, check, text, rank, size), daemon=True)
        process.start()
        writer.close()
        pipes.append(reader)
        processes.append(process)
    answers = [_answer(reader, started + CHECK_S) for reader in pipes]
    for process in processes:
        process.kill()
        process.join()
    passed = all(good for good, _ in answers)
    seconds = time.monotonic() - started
    print(
        f"{'ok' if passed else 'FAILED'}  {check.__name__}, {size} ranks, {seconds:.1f} s", end=""
    )
    print(f": {answers[0][1]}" if passed else "", flush=True)
    for rank, (good, value) in enumerate(answers):
        if not good:
            print(f"rank {rank}: {value}", flush=True)
    return passed


def _answer(reader: Connection, end: float) -> tuple[bool, str]:
    if not reader.poll(max(0.0, end - time.monotonic())):
        return False, f"no answer within {CHECK_S} s"
    try:
        good, value = reader.recv()
    except EOFError:
        return False, "the process ended without an answer"
    return bool(good), str(value)


def main(*checks: Check) -> None:
    """Runs all checks, or those that the command line names, with --ranks N (2)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("names", nargs="*", metavar="CHECK")
    arguments = parser.parse_args()
    known = {check.__name__: check for check in checks}
    for name in arguments.names:
        if name not in known:
            parser.error(f"there is no check {name}; there are {', '.join(known)}")
    os.environ.setdefault("TUTTI_SHARE_GPUS", "1")
    os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
    passed = [run(known[name], arguments.ranks) for name in arguments.names or known]
    sys.exit(0 if all(passed) else 1)
