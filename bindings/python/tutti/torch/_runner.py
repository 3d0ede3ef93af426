"""Runs what operations of c10d ask of a communicator: on the CPU in a lane, on a GPU in a stream."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

import tutti
from tutti.torch._lane import Lane
from tutti.torch._work import Work

#: A call of the C API: of the communicator's raw functions and a stream.
Call = Callable[[Any, int], None]


@dataclass
class Batch:
    """One operation: calls that are submitted together, then copies to where the caller wants them."""

    calls: list[Call]
    result: list[torch.Tensor]
    copies: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)  # to, from
    kept: Sequence[torch.Tensor] = ()  # inputs and memory between
    source: int = -1  # of a message

    def execute(self, raw: Any, stream: int) -> None:
        if len(self.calls) == 1:
            self.calls[0](raw, stream)
        else:
            with tutti.group():
                for call in self.calls:
                    call(raw, stream)
        if self.copies:
            with torch.inference_mode():  # tensors that require gradients are written, too
                for target, source in self.copies:
                    target.copy_(source)


def joined(batches: list[Batch]) -> Batch:
    """All of them as one."""
    return Batch(
        [call for batch in batches for call in batch.calls],
        [tensor for batch in batches for tensor in batch.result],
        [copy for batch in batches for copy in batch.copies],
        [tensor for batch in batches for tensor in batch.kept],
    )


class Runner:
    """Runs batches of one communicator, which `make` makes when the first batch comes."""

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        self.name = name
        self._make = make
        self._communicator: Any = None
        self._failure: Exception | None = None
        self._making = threading.Lock()
        self._lane = Lane(name)

    def communicator(self) -> Any:
        """The communicator; the first call is collective. If that failed, so does every later one: the
        ranks cannot meet twice at one place."""
        if self._communicator is None:
            with self._making:
                if self._failure is not None:
                    raise self._failure
                if self._communicator is None:
                    try:
                        self._communicator = self._make()
                    except Exception as failure:
                        self._failure = failure
                        raise
        return self._communicator

    @property
    def made(self) -> Any:
        """The communicator, or None if nothing has needed it."""
        return self._communicator

    def start(self, batch: Batch, asynchronous: bool) -> Work:
        raise NotImplementedError

    def close(self) -> None:
        """Ends what runs, and leaves the group."""
        self._lane.close()
        if self._communicator is not None:
            self._communicator.close()

    def abort(self, reason: str) -> None:
        if self._communicator is not None:
            self._communicator.abort(reason)


class HostRunner(Runner):
    """Runs batches on the CPU. An asynchronous one runs in a thread of the lane, in its turn."""

    def start(self, batch: Batch, asynchronous: bool) -> Work:
        work = Work(batch.result, batch.source)
        if asynchronous:
            self._lane.post(lambda: self._run(batch, work))
        else:
            self._lane.run(lambda: self._run(batch, work))
        return work

    def _run(self, batch: Batch, work: Work) -> None:
        error = None
        try:
            batch.execute(self.communicator().raw, 0)
        except Exception as failure:  # it belongs to the waiting thread
            error = failure
        work.finish(error)


class CudaRunner(Runner):
    """Runs batches on a GPU: in the current stream, or, if asynchronous, in a stream of its own.

    `threaded`: the first batch may wait for a rank that does not come before a later call of this
    rank, as with messages. Then the lane's thread submits until the communicator is made.
    """

    def __init__(
        self, name: str, device: torch.device, make: Callable[[], Any], threaded: bool = False
    ) -> None:
        super().__init__(name, make)
        self._device = device
        self._threaded = threaded
        self._stream: torch.cuda.Stream | None = None

    def start(self, batch: Batch, asynchronous: bool) -> Work:
        work = Work(batch.result, batch.source)
        current = torch.cuda.current_stream(self._device)
        if not asynchronous:
            self._lane.run(lambda: self._submit(batch, work, current))
            return work
        if self._stream is None:
            self._stream = torch.cuda.Stream(self._device, priority=-1)
        side = self._stream
        ready = current.record_event()
        for tensor in (*batch.result, *batch.kept):
            tensor.record_stream(side)

        def submit() -> None:
            side.wait_event(ready)
            self._submit(batch, work, side)

        if self._threaded and self._communicator is None:
            self._lane.post(submit)
        else:
            self._lane.run(submit)
        return work

    def _submit(self, batch: Batch, work: Work, stream: torch.cuda.Stream) -> None:
        error, event = None, None
        try:
            with torch.cuda.stream(stream):
                batch.execute(self.communicator().raw, stream.cuda_stream)
                event = stream.record_event()
        except Exception as failure:  # it belongs to the waiting thread
            error = failure
        work.finish(error, event)


class Coalescing(threading.local):
    """The batches of a thread between _start_coalescing() and _end_coalescing()."""

    def __init__(self) -> None:
        self.batches: list[Batch] | None = None
        self.runner: Runner | None = None

    def take(self) -> tuple[list[Batch], Runner | None]:
        """Ends it."""
        batches, runner = self.batches or [], self.runner
        self.batches, self.runner = None, None
        return batches, runner
