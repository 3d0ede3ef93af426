"""The life of a communicator: creation, split, failures and their fields, shrink, abort, the
end."""

import array
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading
import time

import pytest
from core_ranks import DEADLINE_S, processes, threads

import tutti


def ones() -> array.array:
    return array.array("f", [1.0] * 10)


def reduced(text: str, rank: int, size: int) -> float:
    with tutti.Communicator(text, rank, size, backend="host", timeout=DEADLINE_S) as communicator:
        assert (communicator.rank, communicator.size, communicator.device) == (rank, size, -1)
        return communicator.all_reduce(ones())[9]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method: str) -> None:
    assert processes(2, reduced, method) == [2.0, 2.0]


def test_an_id_over_tcp() -> None:
    unique = tutti.UniqueId.create_tcp("127.0.0.1")
    made: list[float] = []
    rank = threading.Thread(target=lambda: made.append(reduced(str(unique), 1, 2)))
    rank.start()
    assert reduced(unique, 0, 2) == 2.0
    rank.join(DEADLINE_S)
    assert made == [2.0]
    with pytest.raises(tutti.InvalidArgumentError):
        tutti.UniqueId.from_text("no id")


def test_from_environment() -> None:
    port = tutti.UniqueId.create_tcp("127.0.0.1")  # holds a free port until this process ends
    del port
    program = (
        "import array, tutti\n"
        "with tutti.Communicator.from_environment(backend='host', timeout=20) as c:\n"
        "    print(c.all_reduce(array.array('f', [c.rank + 1.0]))[0])\n"
    )
    command = [sys.executable, "-m", "tutti", "run", "-n", "2", "--", sys.executable, "-B", "-c", program]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEADLINE_S)
    assert ran.returncode == 0, ran.stdout
    assert ran.stdout.count("3.0") == 2, ran.stdout


def test_refusals_of_creation() -> None:
    for arguments, text in (
        (dict(backend="gpu"), 'unknown backend "gpu"'),
        (dict(timeout=0), "above 0"),
        (dict(timeout=-1.0), "above 0"),
    ):
        with pytest.raises(tutti.InvalidArgumentError, match=text):
            tutti.Communicator.in_process(2, **arguments)
    with pytest.raises(tutti.InvalidArgumentError, match="1 elements for 2 ranks"):
        tutti.Communicator.in_process(2, [0])
    with pytest.raises(tutti.InvalidArgumentError):
        tutti.Communicator.in_process(-1, backend="host")
    with pytest.raises(tutti.InvalidArgumentError):
        tutti.Communicator(tutti.UniqueId.create(), 2, 2, backend="host")
    with pytest.raises(tutti.WaitTimeoutError, match="rank"):
        tutti.Communicator(tutti.UniqueId.create(), 0, 2, backend="host", timeout=0.2)


def test_split() -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        part = communicator.split(communicator.rank % 2, key=-communicator.rank)
        with part:
            assert part.size == 2
            assert part.rank == {0: 1, 2: 0, 1: 1, 3: 0}[communicator.rank]
            assert part.all_reduce(array.array("i", [communicator.rank]))[0] == [2, 4][communicator.rank % 2]
        assert part.closed
        lone = communicator.split(None if communicator.rank else 0)
        assert (lone is None) == (communicator.rank > 0)
        if lone:
            lone.close()

    threads(4, rank_of)


def test_a_closed_communicator() -> None:
    (communicator,) = tutti.Communicator.in_process(1, backend="host")
    with communicator as same:
        assert same is communicator
        assert not communicator.closed
    communicator.close()
    communicator.abort("does nothing")
    assert communicator.closed
    assert "closed" in repr(communicator)
    for attempt in (
        lambda: communicator.all_reduce(ones()), communicator.status, communicator.prepare, communicator.counters,
        lambda: communicator.set_timeout(3), lambda: communicator.split(0), lambda: communicator.allocate(8),
        lambda: communicator.plan("all_reduce", 1), communicator.barrier, lambda: tutti.Pool(communicator),
        communicator.shrink, lambda: communicator.failure,
    ):
        with pytest.raises(tutti.InvalidArgumentError, match="it has been closed"):
            attempt()


def test_what_is_not_closed_is_told() -> None:
    made = tutti.Communicator.in_process(1, backend="host")
    with pytest.warns(ResourceWarning, match="was not closed"):
        del made
        gc.collect()


def test_an_exception_in_the_block_aborts() -> None:
    def rank_of(communicator: tutti.Communicator) -> str:
        if communicator.rank == 0:
            with pytest.raises(KeyError), communicator:
                raise KeyError("lost")
            return ""
        with pytest.raises(tutti.TuttiError) as raised:
            communicator.all_reduce(ones())
        return raised.value.text

    assert "lost" in threads(2, rank_of)[1]


def test_abort_from_another_thread() -> None:
    def rank_of(communicator: tutti.Communicator) -> float:
        communicator.prepare()
        if communicator.rank == 1:
            time.sleep(0.2)
            communicator.abort("enough")
            return 0.0
        started = time.monotonic()
        with pytest.raises(tutti.AbortedError, match="enough") as raised:
            communicator.all_reduce(ones())
        assert raised.value.code == 7
        assert raised.value.ends_communicator
        assert isinstance(communicator.failure, tutti.AbortedError)
        with pytest.raises(tutti.AbortedError, match="enough"):
            communicator.status()
        return time.monotonic() - started

    assert threads(2, rank_of)[0] < 10


def test_the_gil_is_released_in_waits() -> None:
    def rank_of(communicator: tutti.Communicator) -> int:
        communicator.barrier()
        if communicator.rank == 0:
            communicator.barrier()  # waits for rank 1, which needs the GIL to get there
            return 0
        steps, end = 0, time.monotonic() + 0.3
        while time.monotonic() < end:
            steps += 1
        communicator.barrier()
        return steps

    assert threads(2, rank_of)[1] > 1000


def test_a_timeout_names_the_ranks() -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        communicator.prepare()
        assert communicator.all_reduce(ones())[0] == 2.0
        assert communicator.failure is None
        communicator.status()
        if communicator.rank == 1:
            return
        communicator.set_timeout(0.2)
        with pytest.raises(tutti.WaitTimeoutError) as raised:
            communicator.all_reduce(ones())
        error = raised.value
        assert (error.waiting_rank, error.missing_rank, error.sequence) == (0, 1, 2)
        assert error.operation.startswith("all_reduce/")
        assert error.expected != error.seen
        assert str(error) == error.text
        assert "rank 1" in error.text
        copied = pickle.loads(pickle.dumps(error))
        assert type(copied) is tutti.WaitTimeoutError
        assert vars(copied) == vars(error)

    threads(2, rank_of)


def test_a_mismatch_is_told() -> None:
    def rank_of(communicator: tutti.Communicator) -> str:
        communicator.prepare()
        with pytest.raises(tutti.TuttiError) as raised:
            communicator.all_reduce(ones(), op=["sum", "max"][communicator.rank])
        return type(raised.value).__name__

    assert "MismatchError" in threads(2, rank_of)


def survive(text: str, rank: int, size: int) -> tuple[list[int], float, str]:
    communicator = tutti.Communicator(text, rank, size, backend="host", timeout=DEADLINE_S)
    communicator.barrier()
    if rank == 1:
        os._exit(0)
    with communicator:
        with pytest.raises(tutti.PeerFailedError) as raised:
            while True:
                communicator.all_reduce(ones())
        assert raised.value.failed_rank == 1 or raised.value.missing_rank == 1
        left, missing = communicator.shrink(within=10)
        with left:
            return missing, left.all_reduce(ones())[0], type(communicator.failure).__name__


def test_shrink_after_the_end_of_a_process() -> None:
    results = processes(3, survive, dying=(1,))
    assert results == [([1], 2.0, "PeerFailedError"), None, ([1], 2.0, "PeerFailedError")]


def test_use_after_fork_is_refused() -> None:
    (communicator,) = tutti.Communicator.in_process(1, backend="host")
    with communicator:
        memory, pool = communicator.allocate(64), tutti.Pool(communicator)
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:  # no exception may reach pytest in the child
            outcome = []
            for attempt in (lambda: communicator.all_reduce(ones()), communicator.status,
                            lambda: memory.peer(0), lambda: pool.take(8)):
                try:
                    attempt()
                    outcome.append("it ran")
                except tutti.InvalidArgumentError as error:
                    outcome.append("refused" if "forked" in str(error) else str(error))
            memory.free()  # the parent's: nothing happens
            communicator.close()
            try:
                (own,) = tutti.Communicator.in_process(1, backend="host")
                outcome.append(str(own.all_reduce(ones())[0]))
                own.close()
            except BaseException as error:
                outcome.append(repr(error))
            os.write(write_end, ",".join(outcome).encode())
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            assert pipe.read() == "refused,refused,refused,refused,1.0"
        os.waitpid(child, 0)
        assert communicator.all_reduce(ones())[0] == 1.0
        memory.free()
        pool.close()


def test_the_host_captures_nothing() -> None:
    (communicator,) = tutti.Communicator.in_process(1, backend="host")
    with communicator, pytest.raises(tutti.UnsupportedError, match="host"), communicator.capture():
        raise AssertionError


def test_numbers_that_do_not_fit_are_refused() -> None:
    with tutti.Communicator.in_process(1, backend="host")[0] as communicator:
        refusals = (OverflowError, ctypes.ArgumentError)
        with pytest.raises(refusals, match="4294967296"):
            communicator.split(2**32, 0)
        with pytest.raises(refusals, match="18446744073709551616"):
            communicator.allocate(2**64)
        with pytest.raises(refusals, match="-1"):
            communicator.allocate(-1)
        with pytest.raises(refusals, match="blocks"):
            communicator.all_reduce(ones(), blocks=2**32)
        with pytest.raises(refusals, match="count"):
            communicator.plan("all_reduce", 2**64)
        with pytest.raises(TypeError, match="'in_places'"):
            communicator.plan("all_reduce", 1, in_places=True)  # type: ignore[call-arg]
        with communicator.split(0, 0) as part:
            assert part.size == 1


def test_plan_explain_and_counters() -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        before = communicator.counters()
        communicator.prepare()
        after = communicator.counters()
        assert after.allocations == before.allocations + 1
        plan = communicator.plan("all_reduce", 1000, "bfloat16", "max", algorithm="two_shot")
        assert (plan.algorithm, plan.source) == ("all_reduce/two_shot", "call")
        assert plan.text.startswith("all_reduce/two_shot")
        assert not plan.alone
        text = communicator.explain("all_gather", 1000, "float32", sm_budget=None, symmetric=False)
        assert "all_gather/" in text
        assert "\n" in text
        with pytest.raises(tutti.InvalidArgumentError, match="no_such"):
            communicator.plan("no_such", 1)

    threads(2, rank_of)


def test_an_exception_that_ends_the_program_aborts() -> None:
    unique = str(tutti.UniqueId.create())
    program = f"""
import tutti
group = tutti.Communicator({unique!r}, 1, 2, backend="host", timeout=60)
raise KeyError("lost")
"""
    with subprocess.Popen([sys.executable, "-B", "-c", program], stderr=subprocess.DEVNULL) as process:
        with tutti.Communicator(unique, 0, 2, backend="host", timeout=60) as group:
            with pytest.raises(tutti.AbortedError, match="ended by KeyError"):
                group.all_reduce(ones())
        assert process.wait(DEADLINE_S) == 1
