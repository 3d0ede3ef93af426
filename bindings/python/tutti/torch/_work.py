"""The handle of an operation that c10d has started."""

import threading
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from tutti.errors import WaitTimeoutError
from tutti.torch._untraced import with_untraced_operations


@with_untraced_operations
class Work(dist.Work):
    """An operation that runs, or has run. It ends once, by finish().

    On the CPU, wait() returns when the result is valid. On a GPU it makes the current stream wait for
    the result, as NCCL's does; synchronize() too. With a timeout, wait() blocks on a GPU as well.
    """

    def __init__(
        self, result: list[torch.Tensor], source: int = -1, patience: float | None = None
    ) -> None:
        """`patience`: seconds that a wait without timeout takes at most, where nothing else ends it."""
        super().__init__()
        self._patience = patience
        self._result = result
        self._source = source
        self._ended = threading.Event()
        self._error: Exception | None = None
        self._event: torch.cuda.Event | None = None
        self._future: torch.futures.Future[Any] | None = None
        self._lock = threading.Lock()

    def finish(
        self, error: Exception | None = None, event: torch.cuda.Event | None = None
    ) -> None:
        """Ends it, with an error, or on a GPU with the event after which the result is valid."""
        with self._lock:
            self._error, self._event = error, event
            future = self._future
            self._ended.set()
        if future is not None:
            self._fill(future)

    def _fill(self, future: "torch.futures.Future[Any]") -> None:
        if self._error is not None:
            future.set_exception(self._error)
        elif self._event is None:
            future.set_result(self._result)
        else:  # the future records events of its own, in a stream that has the result
            stream = torch.cuda.Stream(self._event.device)
            stream.wait_event(self._event)
            with torch.cuda.stream(stream):
                future.set_result(self._result)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Waits, and raises the failure of the operation. WaitTimeoutError after `timeout`, unless 0."""
        seconds = timeout.total_seconds()
        longest = seconds if seconds > 0 else self._patience
        if not self._ended.wait(longest):
            raise WaitTimeoutError(f"the operation has not ended after {longest} s")
        if self._error is not None:
            raise self._error
        if self._event is not None:
            torch.cuda.current_stream(self._event.device).wait_event(self._event)
            if seconds > 0:
                self._event.synchronize()
        return True

    def synchronize(self) -> None:
        self.wait()

    def block_current_stream(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        """Whether it has ended; on a GPU, whether the GPU has come to its end."""
        return self._ended.is_set() and (self._event is None or self._event.query())

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def result(self) -> list[torch.Tensor]:
        """The output tensors, after a wait."""
        self.wait()
        return self._result

    def get_future(self) -> "torch.futures.Future[Any]":
        """A future of the list of output tensors."""
        with self._lock:
            future = self._future
            if future is None:
                devices: list[Any] = [t.device for t in self._result[:1] if t.is_cuda]
                future = self._future = torch.futures.Future(devices=devices)
                ended = self._ended.is_set()
            else:
                ended = False
        if ended:
            self._fill(future)
        return future

    def source_rank(self) -> int:
        """The rank that has sent what recv() has received."""
        return self._source

    _source_rank = source_rank
