"""tutti in place of vLLM's CustomAllreduce.

The class has the methods that vLLM calls: should_custom_ar(), custom_all_reduce(), capture(),
close() and `disabled`. It takes what tutti's own algorithms run, and leaves the rest to vLLM, whose
next choice is NCCL.

    # in every worker, before its start
    from vllm.distributed.device_communicators import custom_all_reduce
    custom_all_reduce.CustomAllreduce = tutti.vllm.CustomAllreduce

vLLM passes a process group and a device. Other programs pass a communicator.
"""

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist

from tutti import dtypes
from tutti.communicator import Communicator, UniqueId
from tutti.errors import InvalidArgumentError, TuttiError
from tutti.torch._meeting import _this_host
from tutti.torch._tensors import current_stream, number_of

_log = logging.getLogger("tutti.vllm")


class CustomAllreduce:
    """All-reduce of one tensor-parallel group, eager and in CUDA graphs.

    One thread at a time. All ranks call the same methods in the same order, with tensors of equal
    shape and type.
    """

    def __init__(
        self,
        group: dist.ProcessGroup | Communicator,
        device: int | str | torch.device | None = None,
        max_size: int | None = None,
        **_: Any,
    ) -> None:
        """Collective. `group` is a communicator, which stays the caller's, or a process group on
        CPU (gloo) whose ranks are those of the tensor-parallel group; then a communicator is
        created.

        `max_size`: bytes of the largest tensor that tutti takes; None: no limit but tutti's choice.
        Further arguments of vLLM's class are ignored. If no communicator can be created here, on
        any rank, `disabled` is True on all of them, and the log has the reason.
        """
        self._max_size = max_size
        self._choices: dict[tuple[int, torch.dtype, bool, bool], bool] = {}
        self._capturing = False
        self._owned = not isinstance(group, Communicator)
        self._communicator: Communicator | None = None
        #: Whether custom_all_reduce() always returns None.
        self.disabled = True
        made = group if isinstance(group, Communicator) else _create(group, device)
        if made is not None and made.size > 1:
            self._communicator = made
            self._device = torch.device("cpu")
            if made.backend == "cuda":
                self._device = torch.device("cuda", made.device)
            self.disabled = False

    @property
    def communicator(self) -> Communicator | None:
        """The communicator; None if this object is disabled."""
        return self._communicator

    def should_custom_ar(self, inp: torch.Tensor) -> bool:
        """Whether tutti takes the sum of this tensor: it is contiguous, on this rank's device, and
        tutti's plan for its size runs an algorithm of tutti's own. Equal on every rank."""
        if self.disabled or inp.device != self._device or not inp.is_contiguous():
            return False
        in_graph = inp.is_cuda and torch.cuda.is_current_stream_capturing()
        key = (inp.numel(), inp.dtype, in_graph, self._capturing)
        choice = self._choices.get(key)
        if choice is None:
            choice = self._choices[key] = self._choose(inp, in_graph)
        return choice

    def _choose(self, inp: torch.Tensor, in_graph: bool) -> bool:
        size = inp.numel() * inp.itemsize
        if size == 0 or (self._max_size is not None and size > self._max_size):
            return False
        assert self._communicator is not None
        try:
            plan = self._communicator.plan(
                "all_reduce",
                count=inp.numel(),
                dtype=inp.dtype,
                symmetric=in_graph and self._capturing,  # registered at the end
                captured=in_graph and not self._capturing,
            )
        except TuttiError:
            return False  # a type that tutti has not, or nothing that runs here
        return not plan.algorithm.startswith("all_reduce/nccl")

    def custom_all_reduce(self, input: torch.Tensor) -> torch.Tensor | None:
        """The sum over all ranks as a new tensor, or None if tutti does not take it.

        On CUDA the sum is enqueued on the current stream. In a capture within capture(), input and
        output belong to the graph, and are registered when capture() ends.
        """
        if not self.should_custom_ar(input):
            return None
        output = torch.empty_like(input)
        self.all_reduce(input, out=output)
        return output

    def all_reduce(self, inp: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        """Writes the sum over all ranks to `out`, whatever should_custom_ar() says of it."""
        communicator = self._open()
        stream, dtype = current_stream(inp.device), number_of(inp)
        communicator.raw.all_reduce(
            inp.data_ptr(), out.data_ptr(), inp.numel(), dtype, dtypes.SUM, stream
        )
        return out

    @contextlib.contextmanager
    def capture(self) -> Iterator[None]:
        """Collective. Around the captures of any number of graphs. At its end the buffers of all
        captured calls are registered, so that replays are zero-copy: replay no graph before.

        Eager calls within it run as outside. On the host, which has no graphs, it does nothing. If
        the block raises, its graphs must not be replayed.
        """
        if self._capturing:
            raise InvalidArgumentError("capture() within capture()")
        self._capturing = True
        communicator = self._communicator
        try:
            if communicator is None or communicator.backend == "host":
                yield
            else:
                with communicator.capture():
                    yield
        finally:
            self._capturing = False

    def close(self) -> None:
        """Ends the communicator, if this object has created it. Graphs must not be replayed any
        more. A second call does nothing."""
        communicator, self._communicator = self._communicator, None
        self.disabled = True
        if communicator is not None and self._owned:
            communicator.close()

    def _open(self) -> Communicator:
        if self._communicator is None:
            raise InvalidArgumentError("this CustomAllreduce is disabled or closed")
        return self._communicator


def _create(group: dist.ProcessGroup, device: Any) -> Communicator | None:
    """A communicator of the ranks of `group`: on every rank, or on none."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if size == 1:
        return None
    offers: list[Any] = [None] * size
    dist.all_gather_object(offers, (_this_host(), str(UniqueId.create())), group=group)
    if len({host for host, _ in offers}) > 1:
        _log.info("tutti is disabled: the ranks are on several hosts")
        return None
    backend, ordinal = _place(device)
    made, reason = None, ""
    try:
        made = Communicator(offers[0][1], rank, size, backend=backend, device=ordinal)
    except TuttiError as error:
        reason = error.text
    reasons: list[Any] = [""] * size
    dist.all_gather_object(reasons, reason, group=group)
    failed = [place for place, text in enumerate(reasons) if text]
    if not failed:
        return made
    if made is not None:
        made.close()
    _log.warning("tutti is disabled: rank %d says: %s", failed[0], reasons[failed[0]])
    return None


def _place(device: Any) -> tuple[str, int]:
    """The backend, and the ordinal of the GPU."""
    device = (
        torch.device("cuda", device) if isinstance(device, int) else torch.device(device or "cpu")
    )
    if device.type == "cpu":
        return "host", -1
    return "cuda", torch.cuda.current_device() if device.index is None else device.index
