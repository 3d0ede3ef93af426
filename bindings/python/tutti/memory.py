"""Symmetric memory, memory that can become symmetric, and pools."""

import contextlib
import ctypes
import warnings
from typing import TYPE_CHECKING, Any

from tutti import _structs, buffers, dtypes
from tutti._handles import Handle
from tutti._library import library
from tutti.errors import TuttiError, check

if TYPE_CHECKING:
    from tutti.raw import Raw


class _Owned(Handle):
    """Memory that is returned when the object goes, unless it was returned before."""

    __slots__ = ("bytes", "data", "device")
    _free: Any = None

    data: int  #: this rank's address
    bytes: int  #: of one rank's part
    device: int  #: CUDA ordinal; -1: the host

    def free(self) -> None:
        """Local. Returns the memory; also after its communicator is closed. On a GPU all work on it
        has ended. Views that are left must not be used. Does nothing the second time."""
        if handle := self.release():
            check(type(self)._free(handle))

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def __del__(self) -> None:
        with contextlib.suppress(TuttiError):
            self.free()

    def __repr__(self) -> str:
        state = "" if self.handle else ", freed"
        return f"<tutti.{type(self).__name__} of {self.bytes} bytes{state}>"


class SymmetricMemory(_Owned):
    """Memory that every rank can address: zero-copy for all operations.

    Communicator.allocate() and Communicator.register() make it.
    """

    __slots__ = ("kept", "zero_copy")
    what = "symmetric memory"
    _free = library.tutti_memory_free

    def __init__(self, handle: int, device: int, kept: Any = None) -> None:
        super().__init__(handle)
        info = _structs.MemoryInfo()
        check(library.tutti_memory_info(handle, ctypes.byref(info)))
        self.data, self.bytes, self.device = info.data or 0, info.bytes, device
        self.zero_copy = bool(info.zero_copy)  #: whether peers can address it
        self.kept = kept  # the memory that was registered

    def peer(self, rank: int) -> int:
        """The address at which this rank sees the part of `rank`. InvalidArgumentError: no such
        rank; UnsupportedError: peers cannot address the memory."""
        address = ctypes.c_void_p()
        if library.tutti_memory_peer(self.handle, rank, ctypes.byref(address)):
            self.fail()
        return address.value or 0


class LocalMemory(_Owned):
    """Memory of one rank, which can be registered so that peers address it.

    Communicator.allocate_local() makes it. While a registration of it is left, freeing waits for
    that.
    """

    __slots__ = ()
    what = "local memory"
    _free = library.tutti_local_memory_free

    def __init__(self, handle: int, device: int) -> None:
        super().__init__(handle)
        info = _structs.LocalMemoryInfo()
        check(library.tutti_local_memory_info(handle, ctypes.byref(info)))
        self.data, self.bytes, self.device = info.data or 0, info.bytes, device


class Block(_Owned):
    """A block of a pool, as symmetric memory is."""

    __slots__ = ()
    what = "block"
    _free = library.tutti_block_free

    def __init__(self, handle: int, device: int) -> None:
        super().__init__(handle)
        info = _structs.BlockInfo()
        check(library.tutti_block_info(handle, ctypes.byref(info)))
        self.data, self.bytes, self.device = info.data or 0, info.bytes, device

    def give_back(self, stream: Any = None) -> None:
        """Returns the block. The next holder's stream waits for all work that is on `stream` now.
        After an error (a capture, CUDA) the block is still taken."""
        number = 0 if self.device < 0 else buffers.stream_number(stream, None, self.device)
        if library.tutti_block_give_back(self.handle, number):
            self.fail()
        self.release()

    def __del__(self) -> None:
        if self.handle:
            text = f"{self!r} was not given back: ranks return blocks in the same order"
            warnings.warn(text, ResourceWarning, stacklevel=2, source=self)
        super().__del__()


class Pool(Handle):
    """A pool of symmetric memory, whose blocks are reused without communication.

    Every rank takes and returns blocks in the same order, and its calls do not run at the same
    time.
    """

    __slots__ = ("device",)
    what = "pool"

    def __init__(self, communicator: "Allocations") -> None:
        super().__init__(0)
        handle = ctypes.c_void_p()
        if library.tutti_pool_create(communicator.raw.handle, ctypes.byref(handle)):
            communicator.raw.fail()
        self.handle = handle.value or 0
        self.device: int = communicator.device

    def take(self, bytes: int, stream: Any = None) -> Block:
        """A block of `bytes` bytes per rank: a free one of that size, or one that all ranks
        allocate together."""
        number = 0 if self.device < 0 else buffers.stream_number(stream, None, self.device)
        block = ctypes.c_void_p()
        if library.tutti_pool_take(self.handle, bytes, number, ctypes.byref(block)):
            self.fail()
        return Block(block.value or 0, self.device)

    def trim(self) -> None:
        """Local. Returns free blocks to the communicator."""
        if library.tutti_pool_trim(self.handle):
            self.fail()

    def use(self) -> dict[str, int]:
        """`blocks`: how many there are, taken and free; `taken_bytes` and `free_bytes`."""
        use = _structs.PoolUse()
        if library.tutti_pool_use(self.handle, ctypes.byref(use)):
            self.fail()
        return {"blocks": use.blocks, "taken_bytes": use.taken_bytes, "free_bytes": use.free_bytes}

    def close(self) -> None:
        """Frees its blocks. Those that are taken stay valid until they are freed."""
        if handle := self.release():
            check(library.tutti_pool_destroy(handle))

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(TuttiError):
            self.close()


class Allocations:
    """How a communicator makes memory."""

    raw: "Raw"
    device: int

    def allocate(self, bytes: int) -> SymmetricMemory:
        """Collective, outside captures. `bytes` bytes on every rank; above 0, equal on every rank.
        ResourceExhaustedError on every rank names the rank that ran out of memory."""
        memory = ctypes.c_void_p()
        if library.tutti_memory_allocate(self.raw.handle, bytes, ctypes.byref(memory)):
            self.raw.fail()
        return SymmetricMemory(memory.value or 0, self.device)

    def register(self, array: Any) -> SymmetricMemory:
        """Collective, outside captures. Makes the memory of an array, or LocalMemory, symmetric.

        The result keeps the array. `zero_copy` says whether peers can address it; on the host those
        in other processes can only if it is local memory.
        """
        if isinstance(array, LocalMemory):
            address, size = array.data, array.bytes
        else:
            address, count, dtype, device, _ = buffers.read(array, write=True)
            self._check_device(device)
            size = count * dtypes.SIZES[dtype]
        memory = ctypes.c_void_p()
        if library.tutti_memory_register(self.raw.handle, address, size, ctypes.byref(memory)):
            self.raw.fail()
        return SymmetricMemory(memory.value or 0, self.device, array)

    def allocate_local(self, bytes: int) -> LocalMemory:
        """Local. Memory of this rank alone; register() makes it symmetric."""
        memory = ctypes.c_void_p()
        if library.tutti_local_memory_allocate(self.raw.handle, bytes, ctypes.byref(memory)):
            self.raw.fail()
        return LocalMemory(memory.value or 0, self.device)

    def _check_device(self, device: int) -> None:
        raise NotImplementedError
