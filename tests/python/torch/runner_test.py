"""How operations reach streams and threads: by streams that only write down what they are asked."""

import contextlib
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tutti.torch import _runner, _work
from tutti.torch._lane import Lane

DEVICE = torch.device("cuda", 0)


class Stream:
    """A stream that logs. Its events are numbered."""

    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name, self.cuda_stream = log, name, name

    def record_event(self) -> Any:
        name = f"event{sum('records' in line for line in self.log)}"
        event = SimpleNamespace(name=name, device=DEVICE)
        event.query = lambda: True
        self.log.append(f"{self.name} records {event.name}")
        return event

    def wait_event(self, event: Any) -> None:
        self.log.append(f"{self.name} waits for {event.name}")


class Tensor:
    is_cuda, device = True, DEVICE

    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name = log, name

    def record_stream(self, stream: Stream) -> None:
        self.log.append(f"{self.name} lives for {stream.name}")


@pytest.fixture
def log(monkeypatch: Any) -> list[str]:
    lines: list[str] = []
    current = Stream(lines, "current")

    @contextlib.contextmanager
    def within(stream: Stream) -> Iterator[None]:
        lines.append(f"in {stream.name}")
        yield
        lines.append("out")

    fake = SimpleNamespace(
        current_stream=lambda device: current,
        Stream=lambda device, priority=0: Stream(lines, "side"),
        stream=within,
        Event=object,
    )
    monkeypatch.setattr(_runner.torch, "cuda", fake)
    monkeypatch.setattr(_work.torch, "cuda", fake)
    return lines


def batch(log: list[str]) -> _runner.Batch:
    def call(raw: Any, stream: Any) -> None:
        log.append(f"{raw} on {stream}")

    return _runner.Batch([call], [Tensor(log, "output")], [], [Tensor(log, "input")])


def runner(make: Any = lambda: SimpleNamespace(raw="call"), **options: Any) -> _runner.CudaRunner:
    return _runner.CudaRunner("test", DEVICE, make, **options)


def test_a_synchronous_operation_runs_in_the_current_stream(log: list[str]) -> None:
    work = runner().start(batch(log), False)
    assert log == ["in current", "call on current", "current records event0", "out"]
    assert work.is_completed() and work.is_success()


def test_an_asynchronous_operation_runs_in_a_stream_of_the_group(log: list[str]) -> None:
    work = runner().start(batch(log), True)
    assert log == [
        "current records event0",
        "output lives for side",
        "input lives for side",
        "side waits for event0",
        "in side",
        "call on side",
        "side records event1",
        "out",
    ]
    work.wait()
    assert log[-1] == "current waits for event1"


def test_a_work_without_a_result_is_waited_for(log: list[str]) -> None:
    """As of a rank that sends its part of a gather."""
    empty = _runner.Batch([lambda raw, stream: None], [], [], [Tensor(log, "input")])
    work = runner().start(empty, True)
    work.wait()
    assert log[-1] == "current waits for event1"


def test_a_message_does_not_wait_for_its_communicator(log: list[str]) -> None:
    """The first message returns before the peer has come. Later ones are submitted at once."""
    come = threading.Event()

    def make() -> Any:
        assert come.wait(10)
        return SimpleNamespace(raw="call", close=lambda: None)

    messages = runner(make, threaded=True)
    first = messages.start(batch(log), True)
    assert not first.is_completed() and "call on side" not in log
    come.set()
    first.wait()
    assert log.index("side waits for event0") < log.index("call on side")
    assert log[-1] == "current waits for event1"
    assert messages.start(batch(log), True).is_completed()
    messages.close()


def test_a_failure_is_that_of_the_wait(log: list[str]) -> None:
    attempts = []

    def make() -> Any:
        attempts.append(1)
        raise ValueError("nobody has come")

    failing = runner(make)
    for _ in range(2):  # no rank tries again
        work = failing.start(batch(log), True)
        assert work.is_completed() and not work.is_success()
        with pytest.raises(ValueError, match="nobody has come"):
            work.wait()
    assert attempts == [1]


def test_a_lane_keeps_the_order_of_calls() -> None:
    """Posted calls run in order, one that waits runs after them, and one that a call makes comes next."""
    lane, order, start = Lane("test"), list[str](), threading.Event()

    def first() -> None:
        assert start.wait(10)
        order.append("first")
        lane.post(lambda: order.append("made by first"))

    lane.post(first)
    lane.post(lambda: order.append("second"))
    assert order == []
    start.set()
    lane.run(lambda: order.append("waiting"))
    assert order == ["first", "made by first", "second", "waiting"]
    lane.post(lambda: order.append("last"))
    lane.close()
    assert order[-1] == "last"
