"""Ranks of a test that form a group of torch.distributed, or have a communicator."""

import contextlib
import tempfile
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
from forked import run_ranks

import tutti
import tutti.torch


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
