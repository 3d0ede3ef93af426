"""Ranks as processes that are forked from the test, so that torch is imported once."""

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

#: Seconds that all ranks of a test have together.
DEADLINE = 90


def _run(answer: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    try:
        answer.send((True, function(*arguments)))
    except BaseException:
        answer.send((False, traceback.format_exc()))
    answer.close()
    os._exit(0)  # neither pytest's own exit handlers nor those of torch


def run_ranks(size: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What function(rank, *arguments) returned on each rank. Fails if a rank raises, dies or
    hangs."""
    fork = multiprocessing.get_context("fork")
    pipes = [fork.Pipe(duplex=False) for _ in range(size)]
    processes = [
        fork.Process(target=_run, args=(writer, function, (rank, *arguments)), daemon=True)
        for rank, (_, writer) in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    for _, writer in pipes:
        writer.close()
    try:
        return _collect([reader for reader, _ in pipes])
    finally:
        for process in processes:
            process.kill()
            process.join()


def _collect(readers: list[Connection]) -> list[Any]:
    answers: dict[int, Any] = {}
    end = time.monotonic() + DEADLINE
    while len(answers) < len(readers):
        waiting = [reader for rank, reader in enumerate(readers) if rank not in answers]
        ready = wait(waiting, timeout=max(0.0, end - time.monotonic()))
        assert ready, f"ranks {sorted(set(range(len(readers))) - set(answers))} did not end in time"
        for reader in ready:
            rank = readers.index(reader)
            try:
                good, value = reader.recv()
            except EOFError:
                good, value = False, "the process ended without an answer"
            assert good, f"rank {rank}: {value}"
            answers[rank] = value
    return [answers[rank] for rank in range(len(readers))]
