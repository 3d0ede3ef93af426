"""Ranks of a test: processes forked from one that has torch loaded, since importing it takes seconds."""

import contextlib
import os
import pickle
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch._dynamo.backends.debugging
import torch._functorch.aot_autograd  # what a compiler loads late is loaded once, before ranks are forked
import torch.distributed as dist
import torch.distributed.fsdp
import torch.testing._internal.optests  # of opcheck

import tutti
import tutti.torch

SECONDS = 400.0 if "TUTTI_TEST_INDUCTOR" in os.environ else 60.0
torch.set_num_threads(1)


class RankFailedError(AssertionError):
    """A rank raised, ended or did not end; the text has all ranks' words."""


def run_ranks(size: int, body: Callable[..., Any], *arguments: Any, seconds: float = SECONDS) -> Any:
    """Runs body(rank, *arguments) in `size` processes, at most for `seconds`. What the ranks returned,
    in order. RankFailedError if one fails."""
    processes = [_fork(rank, body, arguments) for rank in range(size)]
    deadline = time.monotonic() + seconds
    outcomes = []
    for process, pipe in processes:
        outcomes.append(_read(pipe, deadline))
        os.kill(process, signal.SIGKILL)  # it has said all it had to say, or is late
        os.waitpid(process, 0)
    if any(not passed for passed, _ in outcomes):
        raise RankFailedError(
            "".join(f"\nrank {rank}: {what}" for rank, (_, what) in enumerate(outcomes))
        )
    return [what for _, what in outcomes]


def _fork(rank: int, body: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[int, int]:
    pipe, end = os.pipe()
    process = os.fork()
    if process:
        os.close(end)
        return process, pipe
    os.close(pipe)
    try:
        outcome = True, body(rank, *arguments)
    except BaseException:
        outcome = False, traceback.format_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    with os.fdopen(end, "wb") as file:
        file.write(pickle.dumps(outcome))
    os._exit(0)


def _read(pipe: int, deadline: float) -> tuple[bool, Any]:
    words = b""
    with os.fdopen(pipe, "rb") as file:
        while True:
            ready, _, _ = select.select([file], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return False, "has not ended in time"
            part = os.read(file.fileno(), 1 << 20)
            if not part:
                return pickle.loads(words) if words else (False, "ended without a word")
            words += part


@contextlib.contextmanager
def process_group(
    rank: int, size: int, store: str, backend: str = "tutti", seconds: float = 30
) -> Iterator[Any]:
    """The default group of torch.distributed, while the block runs. `store`: a new file's name."""
    dist.init_process_group(
        backend, init_method=f"file://{store}", rank=rank, world_size=size,
        timeout=timedelta(seconds=seconds),
    )
    try:
        yield dist.group.WORLD
    finally:
        dist.destroy_process_group()


def in_group(size: int, body: Callable[..., Any], *arguments: Any, backend: str = "tutti") -> Any:
    """run_ranks() of body(rank, *arguments) inside process_group()."""

    def rank_body(rank: int, store: str) -> Any:
        with process_group(rank, size, store, backend):
            return body(rank, *arguments)

    with tempfile.TemporaryDirectory() as folder:
        return run_ranks(size, rank_body, str(Path(folder) / "store"))


def with_communicator(size: int, body: Callable[..., Any], *arguments: Any) -> Any:
    """run_ranks() of body(communicator, *arguments), registered as "tests"."""
    unique = str(tutti.UniqueId.create())

    def rank_body(rank: int) -> Any:
        with tutti.Communicator(unique, rank, size, backend="host", timeout=30) as communicator:
            tutti.torch.register("tests", communicator)
            return body(communicator, *arguments)

    return run_ranks(size, rank_body)
