"""Ranks of a test as processes that are forked from it, so that torch is imported once."""

import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch

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
