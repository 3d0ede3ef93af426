"""Runs ranks: threads of this process, or processes of their own. Every wait has a deadline."""

import multiprocessing
import threading
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import tutti

DEADLINE_S = 30  # of tutti's waits; joins have more, so that the failure comes first


def threads(size: int, rank_of: Callable[[tutti.Communicator], Any], timeout: float = DEADLINE_S) -> list[Any]:
    """What each rank returns. The first exception of a rank is raised, and ends the other ranks."""
    results: list[Any] = [None] * size
    errors: list[BaseException] = []

    def run(communicator: tutti.Communicator) -> None:
        try:
            results[communicator.rank] = rank_of(communicator)
        except BaseException as error:
            errors.append(error)
            communicator.abort(f"rank {communicator.rank}: {error}")

    with ExitStack() as stack:
        ranks = tutti.Communicator.in_process(size, backend="host", timeout=timeout)
        running = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in ranks]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(timeout + 10)
            assert not thread.is_alive(), "a rank hangs"
        for rank in ranks:
            stack.callback(rank.close)
    if errors:
        raise errors[0]
    return results


def _process(rank_of: Callable[..., Any], text: str, rank: int, size: int, pipe: Any) -> None:
    try:
        pipe.send((rank_of(text, rank, size), None))
    except BaseException:
        pipe.send((None, traceback.format_exc()))


def processes(
    size: int, rank_of: Callable[[str, int, int], Any], method: str = "fork", dying: tuple[int, ...] = ()
) -> list[Any]:
    """What rank_of(text of an id, rank, size) returns in each process. `dying` ranks return
    nothing."""
    context = multiprocessing.get_context(method)
    text = str(tutti.UniqueId.create())
    started, pipes = [], []
    for rank in range(size):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_process, args=(rank_of, text, rank, size, theirs), daemon=True)
        process.start()
        theirs.close()
        started.append(process)
        pipes.append(ours)
    results = []
    try:
        for rank, pipe in enumerate(pipes):
            if rank in dying:
                results.append(None)
                continue
            assert pipe.poll(DEADLINE_S + 10), f"rank {rank} hangs"
            result, error = pipe.recv()
            assert error is None, f"rank {rank}:\n{error}"
            results.append(result)
    finally:
        for process in started:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
        for pipe in pipes:
            pipe.close()
    return results
