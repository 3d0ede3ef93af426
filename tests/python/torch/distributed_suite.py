"""Runs torch's own tests of torch.distributed on a backend.

    distributed_suite.py [--backend NAME] [--device cpu|cuda] [--ranks N] [--jobs N] [--list FILE]
                         [--results FILE] [--minutes N] [--record FILE] [TEST...]

The tests are those of torch.testing._internal.distributed.distributed_test. This process imports torch
once and forks the ranks of each test. Tests that ask which backend they run on hear "gloo" on the CPU
and "nccl" on GPUs, so that "tutti" runs what these run. On GPUs, tests that
torch marks as not for nccl are left out, unless they are named here or in the file of --list. Each rank has a GPU of its own where there are
enough of them. Otherwise all ranks of a test share one, which shared_gpu.py hides from the test. One
line per test: passed, skipped or failed. The exit status is 0 if none has failed.

--jobs: so many tests at a time. --list: only tests of this file (the first word of a line that is no
comment). --results: a line for each test is added to this file, and a test that is in it is not run
again: so a run can go on where another one ended. --minutes: starts no test later than that. --record:
writes the names of all tests that passed.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
import traceback
import unittest
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

SECONDS = 120  # that a test may take; some train for a minute where ranks share a GPU
SKIPPED = 77


class LikeAnother(str):
    """The name of a backend that tests take for that of another one where they compare it."""

    other: str

    def __new__(cls, name: str, other: str) -> "LikeAnother":
        made = super().__new__(cls, name)
        made.other = other
        return made

    def __eq__(self, other: object) -> bool:
        return other == self.other or str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def load(backend: str, ranks: int, device: str = "cpu") -> Any:
    """The class of the tests, whose ranks run on `backend`."""
    like = "gloo" if device == "cpu" or backend == "gloo" else "nccl"
    os.environ.update(BACKEND=like, WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", OMP_NUM_THREADS="1")
    os.environ.setdefault("TEMP_DIR", tempfile.gettempdir())
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # CUDA is for the forked ranks
    import torch
    import torch._dynamo  # which DistributedDataParallel loads late
    from torch.testing._internal.distributed import distributed_test as suite

    import tutti.torch  # noqa: F401  registers the backend

    torch.set_num_threads(1)
    suite.BACKEND = LikeAnother(backend, like)
    if ranks > 2 and device == "cpu":
        os.environ["BACKEND"] = "mpi"  # others want 8 ranks for the tests of groups

    class Tests(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
        pass

    return Tests


def on_backend(options: dict[str, Any], backend: str) -> dict[str, Any]:
    """Options of new_group(): a group that would be of nccl is of the backend."""
    return options | {"backend": str(backend)} if options.get("backend") == "nccl" else options


def run_rank(tests: Any, name: str, rank: int, place: Path) -> None:
    """Runs a test as one rank, in a process of its own."""
    import torch.distributed as dist
    from torch.testing._internal import common_utils
    from torch.testing._internal.distributed import distributed_test as suite

    ranks = int(os.environ["WORLD_SIZE"])
    if suite.BACKEND == "nccl":  # tests also ask for groups of "nccl" by name
        new_group = dist.new_group
        dist.new_group = lambda *ranks, **options: new_group(*ranks, **on_backend(options, suite.BACKEND))
    case = tests(name)
    case.rank, case.file_name = rank, str(place / "store")
    suite.INIT_METHOD = f"file://{place}/again"  # of tests that make a second group
    dist.init_process_group(
        str(suite.BACKEND), init_method=f"file://{place}/store", rank=rank,
        world_size=ranks, timeout=timedelta(seconds=SECONDS),
    )
    case._barrier()
    common_utils.set_rng_seed()
    getattr(case, name)()
    case._barrier()
    if dist.is_initialized():
        dist.destroy_process_group()


def take_gpu(rank: int, ranks: int) -> None:
    """A GPU of the rank's own among those it sees, or the only one."""
    import torch

    if torch.cuda.device_count() < ranks:
        import shared_gpu

        shared_gpu.share(ranks)
    torch.cuda.set_device(rank)


def become_rank(tests: Any, name: str, rank: int, place: Path, gpus: str | None) -> None:
    """The life of a forked process: never returns."""
    output = os.open(place / f"rank{rank}", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    status = 1
    try:
        if gpus is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = gpus
            take_gpu(rank, int(os.environ["WORLD_SIZE"]))
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


@dataclass
class Running:
    """A test whose ranks have been started."""

    name: str
    folder: tempfile.TemporaryDirectory[str]
    processes: list[int]
    start: float
    deadline: float
    statuses: dict[int, int] = field(default_factory=dict)

    def look(self) -> bool:
        """Whether all ranks have ended. Those that have not by the deadline are killed, and all are
        5 s after one fails."""
        for process in set(self.processes) - set(self.statuses):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                self.statuses[process] = os.waitstatus_to_exitcode(status)
                if self.statuses[process] not in (0, SKIPPED):
                    self.deadline = min(self.deadline, time.monotonic() + 5)
            elif time.monotonic() > self.deadline:
                os.kill(process, signal.SIGKILL)
        return len(self.statuses) == len(self.processes)

    def result(self) -> tuple[str, str]:
        """"passed", "skipped" or "failed", and what the ranks have printed."""
        statuses = [self.statuses[process] for process in self.processes]
        place = Path(self.folder.name)
        printed = "\n".join(f"rank {rank}: {status}\n{(place / f'rank{rank}').read_text()}"
                            for rank, status in enumerate(statuses))
        self.folder.cleanup()
        if all(status == SKIPPED for status in statuses):
            return "skipped", printed
        passed = all(status in (0, SKIPPED) for status in statuses)
        return "passed" if passed else "failed", printed


def start_test(tests: Any, name: str, ranks: int, gpus: str | None) -> Running:
    from torch.testing._internal.distributed.distributed_test import Barrier

    folder: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory()
    place = Path(folder.name)
    for part in ("barrier", "test_dir", "init_dir"):
        (place / part).mkdir()
    os.environ["TEMP_DIR"] = folder.name
    Barrier.init()
    sys.stdout.flush()
    processes = []
    for rank in range(ranks):
        process = os.fork()
        if process == 0:
            become_rank(tests, name, rank, place, gpus)
        processes.append(process)
    now = time.monotonic()
    return Running(name, folder, processes, now, now + SECONDS)


def gpus() -> int:
    """How many GPUs there are, asked of NVML, after which a forked process can still use CUDA."""
    import torch

    return torch.cuda.device_count()


def gpus_of(job: int, ranks: int) -> str:
    """What the tests of a job see: as many GPUs as ranks, or one for all of them."""
    count = gpus()
    if count < ranks:
        return str(job % max(count, 1))
    first = job % (count // ranks) * ranks
    return ",".join(str(index) for index in range(first, first + ranks))


class Results:
    """How each test ended, on standard output and in a file."""

    def __init__(self, file: Path | None) -> None:
        self.file, self.of = file, dict[str, str]()
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                outcome, name = line.split()
                self.of[name] = outcome

    def add(self, test: Running) -> None:
        outcome, printed = test.result()
        self.of[test.name] = outcome
        print(f"{outcome:8} {time.monotonic() - test.start:5.1f} s  {test.name}", flush=True)
        if outcome == "failed":
            print(printed[-6000:], flush=True)
        if self.file is not None:
            with self.file.open("a") as lines:
                lines.write(f"{outcome} {test.name}\n")

    def names(self, outcome: str) -> list[str]:
        return sorted(name for name, found in self.of.items() if found == outcome)


def run_tests(tests: Any, names: list[str], results: Results, options: argparse.Namespace) -> None:
    """Each job runs one test after another."""
    left = [name for name in names if name not in results.of]
    end = time.monotonic() + 60 * options.minutes
    running: dict[int, Running] = {}
    while left or running:
        if time.monotonic() > end:
            left = []
        for job in range(options.jobs):
            if job in running and running[job].look():
                results.add(running.pop(job))
            if job not in running and left:
                gpus = gpus_of(job, options.ranks) if options.device == "cuda" else None
                running[job] = start_test(tests, left.pop(0), options.ranks, gpus)
        time.sleep(0.01)


def all_names(tests: Any, device: str) -> list[str]:
    """All tests. On GPUs those are left out that torch marks as not for the backend; on the CPU they run,
    too: some work, though gloo lacks what they ask."""
    methods = {name: getattr(tests, name) for name in sorted(dir(tests)) if name.startswith("test_")}
    if device == "cpu":
        return list(methods)
    return [name for name, method in methods.items() if not getattr(method, "__unittest_skip__", False)]


def names_in(file: Path) -> list[str]:
    lines = file.read_text().splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def record(file: Path, passed: list[str], options: argparse.Namespace) -> None:
    import torch

    where = "the CPU" if options.device == "cpu" else "GPUs"
    head = (f"# Passed on {options.backend} with torch {torch.__version__}, {options.ranks} ranks "
            f"on {where}: written by distributed_suite.py --record\n")
    file.write_text(head + "".join(f"{name}\n" for name in passed))


def main(command_line: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--list", type=Path)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--record", type=Path)
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args(command_line)
    tests = load(options.backend, options.ranks, options.device)
    if options.device == "cuda" and gpus() == 0:
        parser.error("--device cuda needs a GPU that NVML shows")
    names = options.tests or (
        names_in(options.list) if options.list
        else all_names(tests, options.device)
    )
    results = Results(options.results)
    run_tests(tests, names, results, options)
    counts = {outcome: len(results.names(outcome)) for outcome in ("passed", "skipped", "failed")}
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    if options.record:
        record(options.record, results.names("passed"), options)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
