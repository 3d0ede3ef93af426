"""FSDP2 on tutti: all-gathers by the GPU's copy engines, and reduce-scatters, in symmetric memory.

    model = ...
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    tutti.torch.fsdp.attach(model, communicator)

From then on FSDP2 takes its communication buffers from a tutti.Pool, and tutti gathers parameters
and reduces gradients. From the second iteration on nothing is allocated, registered or exchanged:
`communicator.counters()` shows it.

- Gathers use no SM on GPUs, so they run concurrently with the matrix products. They are in place.
- Reductions need SMs. tutti chooses their algorithm; `reduce_sm_budget` limits their SMs.
- CPU tensors use a communicator of the host backend, CUDA tensors one of that GPU.
- FSDP2's other collectives stay with torch: the all-reduce of hybrid sharding, for example.
- Buffers of a pool cannot be taken inside a CUDA graph capture: capture no FSDP2 step.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule

from tutti import dtypes
from tutti._structs import CallOptions
from tutti.collectives import made
from tutti.communicator import Communicator
from tutti.errors import InvalidArgumentError
from tutti.memory import Block, Pool
from tutti.torch._requests import op_of
from tutti.torch._tensors import current_stream, number_of
from tutti.torch._work import Work
from tutti.torch.tensors import tensor_at


def attach(
    module: torch.nn.Module,
    communicator: Communicator,
    *,
    pool: Pool | None = None,
    gather_sm_budget: int | None = 0,
    reduce_sm_budget: int | None = None,
) -> Pool:
    """Makes every FSDP2 module in `module`, and itself, gather and reduce on tutti.

    The communicator has the ranks that the parameters are sharded over. Buffers come from `pool`, a
    pool of this communicator, or from a new one; it is returned. `gather_sm_budget` and
    `reduce_sm_budget` say how many SMs an operation may use: None is no limit, 0 is copy engines
    alone, which cannot reduce. All ranks give the same values. Call it after fully_shard(), before
    the first forward pass, outside captures; it enqueues nothing.

    InvalidArgumentError: there is no FSDP2 module in `module`. The first forward pass raises it if
    the ranks are not those of the communicator, or parameters lie on another device. Failures of
    operations are raised by the forward or backward pass.
    """
    parts: list[Any] = [part for part in module.modules() if isinstance(part, FSDPModule)]
    if not parts:
        raise InvalidArgumentError("attach() found no FSDP2 module: call fully_shard() before")
    pool = pool or Pool(communicator)
    buffers = _Buffers(communicator, pool)
    gather = AllGather(buffers, made({"sm_budget": gather_sm_budget}))
    reduce = ReduceScatter(buffers, made({"sm_budget": reduce_sm_budget}))
    for part in parts:
        part.set_custom_all_gather(gather)
        part.set_custom_reduce_scatter(reduce)
    return pool


class _Returned(deque[tuple[Block, int]]):
    """Blocks whose tensors are gone, with the stream of each.

    Tensors die on any thread, even within a call of the pool. So a block only joins this queue
    then, and _Buffers returns the queue to the pool, in order.
    """

    closed = False

    def close(self) -> None:
        """Frees these blocks, and those that come later."""
        self.closed = True
        while self:
            self.popleft()[0].free()


class _Taken:
    """Owns a block for the tensors that are made of it."""

    def __init__(self, queue: _Returned, block: Block, stream: int) -> None:
        self._queue, self._block, self._stream = queue, block, stream

    def __del__(self) -> None:
        self._queue.append((self._block, self._stream))
        if self._queue.closed:
            self._queue.close()


class _Buffers:
    """Tensors in blocks of a pool.

    A block belongs to the stream that was current when its tensor was made, as memory of torch's
    own allocator does: whoever uses the tensor on another stream orders that before the tensor
    dies.
    """

    def __init__(self, communicator: Communicator, pool: Pool) -> None:
        self.communicator = communicator
        self._pool = pool
        self._returned = _Returned()
        self._lock = threading.Lock()

    def __del__(self) -> None:
        self._returned.close()

    def allocate(
        self, size: Sequence[int | torch.SymInt], dtype: torch.dtype, device: torch.device
    ) -> torch.Tensor:
        self._check(device)
        shape = [int(extent) for extent in size]
        bytes_ = math.prod(shape) * dtype.itemsize
        if bytes_ == 0:
            return torch.empty(shape, dtype=dtype, device=device)
        stream = current_stream(device)
        block = self._take(bytes_, stream)
        return tensor_at(block.data, shape, dtype, device, _Taken(self._returned, block, stream))

    def _take(self, bytes_: int, stream: int) -> Block:
        with self._lock:
            while self._returned:
                block, of = self._returned.popleft()
                block.give_back(of)
            return self._pool.take(bytes_, stream)

    def _check(self, device: torch.device) -> None:
        own = self.communicator
        expected = "cpu" if own.backend == "host" else f"cuda:{own.device}"
        found = str(device)
        if device.type == "cuda" and device.index is None:
            found = f"cuda:{torch.cuda.current_device()}"
        if found != expected:
            raise InvalidArgumentError(
                f"parameters on {found}, but the communicator's backend is {own.backend}, whose "
                f"tensors are on {expected}"
            )


class _Operation:
    """What both of FSDP2's operations have in common."""

    def __init__(self, buffers: _Buffers, options: CallOptions | None) -> None:
        self._buffers = buffers
        self._options = options
        self._raw = buffers.communicator.raw
        self._checked: dist.ProcessGroup | None = None
        self._beside: torch.cuda.Stream | None = None

    def allocate(
        self, size: Sequence[int | torch.SymInt], *, dtype: torch.dtype, device: torch.device
    ) -> torch.Tensor:
        """A tensor in symmetric memory, whose block returns to the pool when the tensor dies."""
        return self._buffers.allocate(size, dtype, device)

    def _check(self, group: dist.ProcessGroup) -> None:
        if group is self._checked:
            return
        own = self._buffers.communicator
        if (group.size(), group.rank()) != (own.size, own.rank):
            raise InvalidArgumentError(
                f"FSDP2 calls as rank {group.rank()} of {group.size()}, but the communicator "
                f"of attach() is rank {own.rank} of {own.size}: attach each part of the model to a "
                "communicator of the ranks that it is sharded over"
            )
        self._checked = group

    def _start(
        self, call: Callable[[int], None], output: torch.Tensor, async_op: bool
    ) -> Work | None:
        """Runs call(stream). An asynchronous operation of a GPU has a stream of its own."""
        device, event = output.device, None
        if async_op and device.type == "cuda":
            if self._beside is None:
                self._beside = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            self._beside.wait_stream(torch.cuda.current_stream(device))
            call(self._beside.cuda_stream)
            event = self._beside.record_event()
        else:
            call(current_stream(device))
        if not async_op:
            return None
        work = Work([output])
        work.finish(event=event)
        return work


class AllGather(_Operation):
    """FSDP2's AllGather (set_custom_all_gather)."""

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        async_op: bool = False,
    ) -> dist.Work | None:
        self._check(group)
        source, target = input_tensor.data_ptr(), output_tensor.data_ptr()
        # Bytes: a gather moves every type, also those that tutti cannot reduce.
        count = input_tensor.numel() * input_tensor.itemsize

        def call(stream: int) -> None:
            self._raw.all_gather(source, target, count, dtypes.UINT8, stream, self._options)

        return self._start(call, output_tensor, async_op)


class ReduceScatter(_Operation):
    """FSDP2's ReduceScatter (set_custom_reduce_scatter)."""

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        op: Any,
        async_op: bool = False,
    ) -> dist.Work | None:
        self._check(group)
        source, target = input_tensor.data_ptr(), output_tensor.data_ptr()
        count, dtype = output_tensor.numel(), number_of(input_tensor)
        self._factor: list[torch.Tensor] = []  # lives until the next call
        reduction = op_of(op, self._factor)

        def call(stream: int) -> None:
            self._raw.reduce_scatter(source, target, count, dtype, reduction, stream, self._options)

        return self._start(call, output_tensor, async_op)
