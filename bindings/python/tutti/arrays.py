"""Arrays in symmetric memory."""

import ctypes
import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tutti import dlpack, dtypes
from tutti._handles import refuse_to_pickle
from tutti.buffers import HOST, elements_of
from tutti.errors import InvalidArgumentError
from tutti.memory import Block, SymmetricMemory

if TYPE_CHECKING:
    from tutti.communicator import Communicator

_TYPESTR = {
    "float64": "<f8",
    "float32": "<f4",
    "float16": "<f2",
    "int8": "|i1",
    "uint8": "|u1",
    "int32": "<i4",
    "uint32": "<u4",
    "int64": "<i8",
    "uint64": "<u8",
}


class Array:
    """A row-major array in symmetric memory, or in a part of it.

    It has no arithmetic: torch(), numpy(), and the protocols of DLPack, numpy and CUDA give views
    for that, which keep the memory allocated. All collectives take it as it is.
    """

    __slots__ = ("address", "device", "dtype", "elements", "memory", "shape")

    def __init__(
        self, memory: SymmetricMemory | Block, shape: Sequence[int], dtype: Any, offset: int = 0
    ) -> None:
        """`offset` in bytes. InvalidArgumentError if the array does not lie within the memory."""
        self.memory = memory
        self.shape = tuple(map(int, shape))
        self.dtype = dtypes.number_of(dtype)  #: a number of tutti.dtypes
        self.elements = elements_of(self.shape)
        self.device = memory.device  #: CUDA ordinal; -1: the host
        self.address = memory.data + offset
        if offset < 0 or offset + self.nbytes > memory.bytes or min(self.shape, default=0) < 0:
            raise InvalidArgumentError(
                f"an array of {self.nbytes} bytes at {offset} does not fit into "
                f"{memory.bytes} bytes"
            )

    @property
    def nbytes(self) -> int:
        """Bytes of this rank's part."""
        return self.elements * dtypes.SIZES[self.dtype]

    @property
    def dtype_name(self) -> str:
        """As torch and ml_dtypes spell it."""
        return dtypes.NAMES[self.dtype]

    def __dlpack_device__(self) -> tuple[int, int]:
        return (dlpack.CPU, 0) if self.device == HOST else (dlpack.CUDA, self.device)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule. Order the consumer's stream after the writer's yourself: an array knows no
        stream. BufferError for another device or a copy, which it does not make."""
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("an array in symmetric memory is exported in place alone")
        versioned = max_version is not None and max_version[0] >= 1
        device = self.__dlpack_device__()
        return dlpack.export(self.address, self.shape, self.dtype, device, self.memory, versioned)

    def _interface(self, protocol: str) -> dict[str, Any]:
        if (self.device == HOST) != (protocol == "__array_interface__"):
            raise AttributeError(f"an array on {self._place()} has no {protocol}")
        if self.dtype_name not in _TYPESTR:
            raise AttributeError(f"{protocol} has no {self.dtype_name}: use DLPack or torch()")
        return {
            "shape": self.shape,
            "typestr": _TYPESTR[self.dtype_name],
            "data": (self.address, False),
            "version": 3,
        }

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._interface("__array_interface__")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self._interface("__cuda_array_interface__"), "stream": None}

    def torch(self) -> Any:
        """A torch.Tensor that shares the memory, and keeps it."""
        torch = importlib.import_module("torch")
        name = self.dtype_name
        if not name.startswith("float8"):
            return torch.from_dlpack(self)
        return torch.from_dlpack(Array(self.memory, self.shape, "uint8", self._offset())).view(
            getattr(torch, name)
        )

    def numpy(self) -> Any:
        """A numpy.ndarray that shares the memory, and keeps it; bfloat16 and float8 need
        ml_dtypes."""
        if self.device != HOST:
            raise InvalidArgumentError("numpy has no memory of GPUs: use torch(), or copy it")
        numpy = importlib.import_module("numpy")
        name = self.dtype_name
        kind = name if name in _TYPESTR else getattr(importlib.import_module("ml_dtypes"), name)
        plain = (ctypes.c_byte * self.nbytes).from_address(self.address)
        plain._tutti_memory = self.memory  # type: ignore[attr-defined]  # numpy keeps `plain`
        return numpy.frombuffer(plain, dtype=kind).reshape(self.shape)

    def _offset(self) -> int:
        return self.address - self.memory.data

    def _place(self) -> str:
        return "the host" if self.device == HOST else f"GPU {self.device}"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<tutti.Array {self.dtype_name} {list(self.shape)} on {self._place()}>"

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        refuse_to_pickle("array in symmetric memory")


def empty(shape: int | Sequence[int], dtype: Any, communicator: "Communicator") -> Array:
    """Collective. A new array in symmetric memory of its own, which is freed with the last view of
    it.

    Shape and type are equal on every rank; its content is not defined. `dtype`: a torch.dtype,
    numpy.dtype, or name. ResourceExhaustedError on every rank if one runs out of memory.
    """
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    size = elements_of(shape) * dtypes.SIZES[dtypes.number_of(dtype)]
    return Array(communicator.allocate(max(size, 1)), shape, dtype)
