"""Messages that a rank sends to itself: no communicator is needed."""

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tutti.errors import InvalidArgumentError
from tutti.torch._work import Work


@dataclass
class _Waiting:
    sends: bool
    tensor: Tensor
    work: Work
    ready: Any  # on a GPU the event after which the tensor is ready


class OwnMessages:
    """What a rank sends to itself is received in the same order. Both works end once both have come."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._lock = threading.Lock()

    def start(self, sends: bool, tensor: Tensor, seconds: float) -> Work:
        """Sends or receives. A wait for the other half ends after `seconds`."""
        work = Work([tensor], -1 if sends else self._rank, seconds)
        with self._lock:
            waiting = self._waiting.setdefault(str(tensor.device), deque())
            if not waiting or waiting[0].sends == sends:
                ready = torch.cuda.current_stream(tensor.device).record_event() if tensor.is_cuda else None
                waiting.append(_Waiting(sends, tensor, work, ready))
                return work
            first = waiting.popleft()
        source, target = (tensor, first.tensor) if sends else (first.tensor, tensor)
        error, event = None, None
        try:
            event = _copy(source, target, first.ready)
        except Exception as failure:  # it belongs to whoever waits
            error = failure
        first.work.finish(error, event)
        work.finish(error, event)
        return work


def _copy(source: Tensor, target: Tensor, ready: Any) -> Any:
    """The event after which the copy has been made on a GPU."""
    if source.numel() != target.numel() or source.dtype != target.dtype:
        raise InvalidArgumentError(
            f"a message of a rank to itself: {source.numel()} elements of {source.dtype} are sent, but "
            f"{target.numel()} of {target.dtype} received"
        )
    if ready is not None:
        torch.cuda.current_stream(source.device).wait_event(ready)
    with torch.inference_mode():
        target.copy_(source.detach().reshape(target.shape))
    return torch.cuda.current_stream(source.device).record_event() if source.is_cuda else None
