"""Symmetric memory with the names of torch.distributed._symmetric_memory.

    x = symm_mem.empty(1024, dtype=torch.bfloat16, group=communicator)
    memory = symm_mem.rendezvous(x, communicator)
    memory.barrier()
    peer = memory.get_buffer(1, x.shape, x.dtype)   # rank 1's part, as a tensor

`group` is a communicator, a name of tutti.torch.register(), or a process group of torch that has
one. Tensors of empty() are zero-copy in all operations of the group's communicator after
rendezvous().

What differs from torch: memory is of one group, since its communicator allocates it. Signals of all
handles of one group share its 64 channels. There is no signal pad to read, because kernels of the
user get signals from tutti's device API, and nothing of multimem, which has never run on hardware.
torch's own symm_mem operations, such as one_shot_all_reduce, do not know this memory: use
torch.ops.tutti.

A torch.cuda.MemPool of symmetric memory is not offered: its allocator has to be two C functions
that need no Python lock, and libtutti has none with that form. Take memory from empty() or
tutti.Pool.
"""

import math
from collections.abc import Sequence
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import torch

from tutti._structs import SIGNAL_CHANNELS
from tutti.communicator import Communicator
from tutti.errors import InvalidArgumentError, UnsupportedError
from tutti.memory import LocalMemory, SymmetricMemory
from tutti.torch._tensors import current_stream
from tutti.torch.groups import get
from tutti.torch.tensors import tensor_at


class _Allocation:
    """What empty() has allocated, and its handles by communicator. Its tensors keep it."""

    def __init__(self, memory: LocalMemory) -> None:
        self.memory = memory
        self.handles: dict[Communicator, Handle] = {}


_allocations: WeakValueDictionary[int, _Allocation] = WeakValueDictionary()  # by address


def empty(
    *size: Any,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    group: Any,
) -> torch.Tensor:
    """A tensor in memory that rendezvous() can make symmetric. Local, outside captures.

    `size` is a number of integers, or one sequence. `dtype`: torch's default type if None.
    `device`: if None, that of the communicator, or torch's default device if `group` is no
    communicator. The content is not defined. The memory lives as long as the tensor, its views and
    its handles.

    InvalidArgumentError: another device than the communicator's, or no elements.
    ResourceExhaustedError: no memory; the communicator stays usable.
    """
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], Sequence) else size
    named = torch.get_default_device() if device is None else torch.device(device)
    communicator = _communicator(group, named)
    own = _device(communicator)
    wanted = own if device is None else named
    if wanted.type != own.type or wanted.index not in (None, own.index):
        raise InvalidArgumentError(f"device {wanted}, but the group's communicator is on {own}")
    dtype = dtype or torch.get_default_dtype()
    size_bytes = math.prod(shape) * dtype.itemsize
    if size_bytes <= 0:
        raise InvalidArgumentError(f"symmetric memory of shape {shape}: it needs an element")
    made = _Allocation(communicator.allocate_local(size_bytes))
    _allocations[made.memory.data] = made
    return tensor_at(made.memory.data, shape, dtype, own, made)


def rendezvous(tensor: torch.Tensor, group: Any) -> "Handle":
    """Makes the memory of `tensor` symmetric. Collective, outside captures; every rank gives a
    tensor of the same size that empty() has made for this group, or a view of one.

    The handle addresses the whole memory of the tensor that empty() has returned. A second call
    with the same memory returns the same handle, without communication.

    InvalidArgumentError: memory that is not from empty().
    """
    communicator = _communicator(group, tensor.device)
    found = _allocations.get(tensor.untyped_storage().data_ptr())
    if found is None:
        raise InvalidArgumentError(
            "rendezvous() of a tensor that tutti.torch.symm_mem.empty() has not made"
        )
    handle = found.handles.get(communicator)
    if handle is None:
        handle = Handle(communicator, communicator.register(found.memory))
        found.handles[communicator] = handle
    return handle


def _communicator(group: Any, device: torch.device) -> Communicator:
    if isinstance(group, Communicator):
        return group
    made: Communicator = get(group if isinstance(group, str) else group.group_name, device)
    return made


def _device(communicator: Communicator) -> torch.device:
    if communicator.backend == "host":
        return torch.device("cpu")
    return torch.device("cuda", communicator.device)


class Handle:
    """Symmetric memory of all ranks of a group. Closing its communicator ends its use."""

    def __init__(self, communicator: Communicator, memory: SymmetricMemory) -> None:
        self._communicator = communicator
        self._memory = memory
        self._device = _device(communicator)
        #: This rank, and the number of ranks.
        self.rank = communicator.rank
        self.world_size = communicator.size
        #: Bytes of one rank's part.
        self.buffer_size = memory.bytes
        #: Where each rank's part is, as an address of this rank.
        self.buffer_ptrs = [memory.peer(rank) for rank in range(communicator.size)]

    def get_buffer(
        self,
        rank: int,
        sizes: Sequence[int],
        dtype: torch.dtype,
        storage_offset: int = 0,
    ) -> torch.Tensor:
        """The part of `rank` as a contiguous tensor, from element `storage_offset` on. Local.

        Order accesses of several ranks by barrier() or signals. InvalidArgumentError: no such rank,
        or elements outside of the memory.
        """
        if not 0 <= rank < self.world_size:
            raise InvalidArgumentError(f"rank {rank} of {self.world_size}")
        start = storage_offset * dtype.itemsize
        end = start + math.prod(sizes) * dtype.itemsize
        if start < 0 or end > self.buffer_size or min(sizes, default=0) < 0:
            raise InvalidArgumentError(
                f"bytes {start} to {end} of a memory that has {self.buffer_size}"
            )
        return tensor_at(self.buffer_ptrs[rank] + start, sizes, dtype, self._device, self)

    def get_remote_tensor(
        self, peer: int, sizes: Sequence[int], dtype: torch.dtype
    ) -> torch.Tensor:
        """get_buffer() from the first element on."""
        return self.get_buffer(peer, sizes, dtype)

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """Later work of the current stream starts when the earlier work of all ranks' streams has
        ended, and sees what it wrote. On the host the call waits. Every rank calls it.

        It sends one signal on `channel` to every other rank and waits for theirs, so barriers on
        several channels may run at the same time. `timeout_ms`: 0 is the communicator's timeout.
        """
        self._check(channel)
        stream = current_stream(self._device)
        peers = [(self.rank + step) % self.world_size for step in range(1, self.world_size)]
        for peer in peers:
            self._communicator.raw.signal(peer, channel, stream)
        for peer in peers:
            self._communicator.raw.wait_signal(peer, channel, 1, stream, timeout_ms)

    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Sends one signal to `dst_rank` after the earlier work of the current stream. It never
        waits, whatever `timeout_ms` says: channels count signals."""
        self._check(channel)
        self._communicator.raw.signal(dst_rank, channel, current_stream(self._device))

    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Later work of the current stream waits for one further signal from `src_rank`, and sees
        what that rank wrote before it. On the host the call waits. `timeout_ms`: 0 is the
        communicator's timeout. A timeout is a WaitTimeoutError, on CUDA in
        communicator.status()."""
        self._check(channel)
        stream = current_stream(self._device)
        self._communicator.raw.wait_signal(src_rank, channel, 1, stream, timeout_ms)

    @property
    def multicast_ptr(self) -> NoReturn:
        """UnsupportedError."""
        raise UnsupportedError(
            "tutti gives out no multicast addresses: its kernels for NVLink multicast have never "
            "run on hardware, and are off. Use buffer_ptrs"
        )

    @staticmethod
    def has_multicast_support() -> bool:
        """False."""
        return False

    @staticmethod
    def _check(channel: int) -> None:
        if not 0 <= channel < SIGNAL_CHANNELS:
            raise InvalidArgumentError(
                f"channel {channel}: channels are 0 to {SIGNAL_CHANNELS - 1}"
            )
