"""Runs torch's own tests of torch.distributed on a backend, on the CPU.

    distributed_suite.py [--backend tutti|gloo] [--ranks N] [--list FILE] [--record FILE] [TEST...]

The tests are those of torch.testing._internal.distributed.distributed_test. This process imports torch
once and forks the ranks of each test. Tests that ask which backend they run on hear "gloo", so that
"tutti" runs what gloo runs. One line per test: passed, skipped or failed. The exit
status is 0 if none has failed. --list: only tests of this file (the first word of a line that is no
comment). --record: writes the names of the tests that passed.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
import traceback
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any

SECONDS = 60  # that a test may take
SKIPPED = 77


class LikeGloo(str):
    """The name of a backend that tests take for gloo where they compare it."""

    def __eq__(self, other: object) -> bool:
        return other == "gloo" or str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def load(backend: str, ranks: int) -> Any:
    """The class of the tests, whose ranks run on `backend`."""
    os.environ.update(BACKEND="gloo", WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", OMP_NUM_THREADS="1")
    os.environ.setdefault("TEMP_DIR", tempfile.gettempdir())
    import torch
    import torch._dynamo  # which DistributedDataParallel loads late
    from torch.testing._internal.distributed import distributed_test as suite

    import tutti.torch  # noqa: F401  registers the backend

    torch.set_num_threads(1)
    suite.BACKEND = LikeGloo(backend)
    if ranks > 2:
        os.environ["BACKEND"] = "mpi"  # others want 8 ranks for the tests of groups

    class Tests(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
        pass

    return Tests


def run_rank(tests: Any, name: str, rank: int, place: Path) -> None:
    """Runs a test as one rank, in a process of its own."""
    import torch.distributed as dist
    from torch.testing._internal import common_utils
    from torch.testing._internal.distributed import distributed_test as suite

    case = tests(name)
    case.rank, case.file_name = rank, str(place / "store")
    suite.INIT_METHOD = f"file://{place}/again"  # of tests that make a second group
    dist.init_process_group(
        str(suite.BACKEND), init_method=f"file://{place}/store", rank=rank,
        world_size=int(os.environ["WORLD_SIZE"]), timeout=timedelta(seconds=SECONDS),
    )
    case._barrier()
    common_utils.set_rng_seed()
    getattr(case, name)()
    case._barrier()
    if dist.is_initialized():
        dist.destroy_process_group()


def become_rank(tests: Any, name: str, rank: int, place: Path) -> None:
    """The life of a forked process: never returns."""
    output = os.open(place / f"rank{rank}", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    status = 1
    try:
        run_rank(tests, name, rank, place)
        status = 0
    except unittest.SkipTest as reason:
        print(reason, flush=True)
        status = SKIPPED
    except SystemExit as ended:  # how tests skip that want a GPU
        status = SKIPPED if ended.code else 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def wait_for(processes: list[int], seconds: float) -> list[int]:
    """Exit statuses. A process that has not ended by then is killed, and all are 5 s after one fails."""
    deadline, statuses = time.monotonic() + seconds, dict[int, int]()
    while len(statuses) < len(processes):
        for process in set(processes) - set(statuses):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                statuses[process] = os.waitstatus_to_exitcode(status)
                if statuses[process] not in (0, SKIPPED):
                    deadline = min(deadline, time.monotonic() + 5)
            elif time.monotonic() > deadline:
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)
    return [statuses[process] for process in processes]


def run_test(tests: Any, name: str, ranks: int) -> tuple[str, str]:
    """"passed", "skipped" or "failed", and what the ranks have printed."""
    from torch.testing._internal.distributed.distributed_test import Barrier

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for part in ("barrier", "test_dir", "init_dir"):
            (place / part).mkdir()
        os.environ["TEMP_DIR"] = folder
        Barrier.init()
        processes = []
        for rank in range(ranks):
            process = os.fork()
            if process == 0:
                become_rank(tests, name, rank, place)
            processes.append(process)
        statuses = wait_for(processes, SECONDS)
        printed = "\n".join(f"rank {rank}: {status}\n{(place / f'rank{rank}').read_text()}"
                            for rank, status in enumerate(statuses))
    if all(status == SKIPPED for status in statuses):
        return "skipped", printed
    return "passed" if all(status in (0, SKIPPED) for status in statuses) else "failed", printed


def names_in(file: Path) -> list[str]:
    lines = file.read_text().splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def main(command_line: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--list", type=Path)
    parser.add_argument("--record", type=Path)
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args(command_line)
    tests = load(arguments.backend, arguments.ranks)
    names = arguments.tests or (
        names_in(arguments.list) if arguments.list
        else sorted(name for name in dir(tests) if name.startswith("test_"))
    )
    results: dict[str, list[str]] = {"passed": [], "skipped": [], "failed": []}
    for name in names:
        start = time.monotonic()
        outcome, printed = run_test(tests, name, arguments.ranks)
        results[outcome].append(name)
        print(f"{outcome:8} {time.monotonic() - start:5.1f} s  {name}", flush=True)
        if outcome == "failed":
            print(printed[-6000:], flush=True)
    print(", ".join(f"{len(found)} {outcome}" for outcome, found in results.items()))
    if arguments.record:
        import torch

        head = (f"# Passed on {arguments.backend} with torch {torch.__version__}, {arguments.ranks} ranks "
                f"on the CPU: written by distributed_suite.py --record\n")
        passed = "".join(f"{name}\n" for name in results["passed"])
        arguments.record.write_text(head + passed)
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
