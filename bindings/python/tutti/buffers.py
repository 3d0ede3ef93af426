"""What an array is to the library: an address, a number of elements, a type and a device.

Arrays are torch tensors, numpy arrays (with the types of ml_dtypes), tutti.Array, objects with
__cuda_array_interface__ or __dlpack__, and everything with the buffer protocol: bytearray,
array.array, ctypes arrays, memoryview. They must be contiguous, in row-major order. What does not
fit is refused before the library is called.
"""

import ctypes
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from tutti import dlpack, dtypes
from tutti.errors import InvalidArgumentError

HOST = -1
UNKNOWN_CUDA = -2  # on some GPU: __cuda_array_interface__ does not say which

#: Address, number of elements, number of the type, device, and what keeps the memory alive.
Buffer: TypeAlias = tuple[int, int, int, int, Any]
_Reader: TypeAlias = Callable[[Any, bool], Buffer]


def read(array: Any, write: bool = False) -> Buffer:
    """The buffer of an array. `write`: it will be written, so memory that is read-only is refused.

    InvalidArgumentError says what is wrong with it.
    """
    kind = type(array)
    return (_readers.get(kind) or _reader_for(kind))(array, write)


def _not_contiguous(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{what} is not contiguous: pass a contiguous copy of it, in row-major order"
    )


def _read_only(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{what} is read-only and cannot be an output")


_torch_numbers = dtypes.numbers


def _read_torch(tensor: Any, _write: bool) -> Buffer:
    if not tensor.is_contiguous():
        shape, strides = tuple(tensor.shape), tensor.stride()
        raise _not_contiguous(f"the tensor of shape {shape}, strides {strides}")
    if tensor.is_neg():
        raise InvalidArgumentError("the tensor is a negative view: pass tensor.resolve_neg()")
    device = tensor.get_device()
    if device < 0 and not tensor.is_cpu:
        raise InvalidArgumentError(f"the tensor is on {tensor.device}: tutti has cpu and cuda")
    return tensor.data_ptr(), tensor.numel(), _torch_numbers[tensor.dtype], device, tensor


def _read_numpy(array: Any, write: bool) -> Buffer:
    flags = array.flags
    if not flags.c_contiguous:
        raise _not_contiguous(f"the array of shape {array.shape}, strides {array.strides}")
    if write and not flags.writeable:
        raise _read_only("the array")
    if not array.dtype.isnative:
        raise InvalidArgumentError("the array has another byte order than this machine")
    number = dtypes.numbers[array.dtype]
    return array.__array_interface__["data"][0], array.size, number, HOST, array


def _read_own(array: Any, _write: bool) -> Buffer:
    return array.address, array.elements, array.dtype, array.device, array


def _read_cuda_interface(array: Any, write: bool) -> Buffer:
    interface = array.__cuda_array_interface__
    address, read_only = interface["data"]
    shape, strides, text = interface["shape"], interface.get("strides"), interface["typestr"]
    number, itemsize = _number_of_typestr(text)
    if strides is not None:
        strides = [stride // itemsize for stride in strides]
    if not dlpack.is_contiguous(shape, strides):
        raise _not_contiguous(f"the array of shape {tuple(shape)}")
    if write and read_only:
        raise _read_only("the array")
    return address or 0, elements_of(shape), number, UNKNOWN_CUDA, array


def _number_of_typestr(text: str) -> tuple[int, int]:
    kind, itemsize = text[1], int(text[2:])
    name = {"f": "float", "i": "int", "u": "uint"}.get(kind, text) + str(8 * itemsize)
    return dtypes.number_of(name), itemsize


# DLPack's number of the default stream. Whoever made the array lets that stream wait for it; a call
# on another stream has to be ordered behind the default stream by its caller.
_DEFAULT_STREAM = 1


def _read_dlpack(array: Any, write: bool) -> Buffer:
    kind, _ = array.__dlpack_device__()
    on_gpu = {"stream": _DEFAULT_STREAM} if kind in (dlpack.CUDA, dlpack.CUDA_MANAGED) else {}
    try:
        capsule = array.__dlpack__(max_version=(1, 0), **on_gpu)
    except TypeError:  # from before DLPack 1.0
        capsule = array.__dlpack__(**on_gpu)
    found = dlpack.read(capsule)
    if not found.contiguous:
        raise _not_contiguous(f"the array of shape {found.shape}")
    if write and found.read_only:
        raise _read_only("the array")
    if found.device_kind in (dlpack.CUDA, dlpack.CUDA_MANAGED):
        device = found.device
    elif found.device_kind in (dlpack.CPU, dlpack.CUDA_HOST):
        device = HOST
    else:
        raise InvalidArgumentError(
            f"the array is on DLPack's device {found.device_kind}: tutti has CPU and CUDA"
        )
    return found.address, elements_of(found.shape), found.dtype, device, (array, capsule)


class _PyBuffer(ctypes.Structure):
    """Py_buffer, with room for what later versions may add."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("rest", ctypes.c_byte * 256),
    ]


_get_buffer = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int
)(("PyObject_GetBuffer", ctypes.pythonapi))
_release_buffer = ctypes.PYFUNCTYPE(None, ctypes.POINTER(_PyBuffer))(
    ("PyBuffer_Release", ctypes.pythonapi)
)


def _address_of_view(view: memoryview) -> int:
    found = _PyBuffer()
    _get_buffer(view, found, 0)
    address = found.buf or 0
    _release_buffer(found)
    return address


def number_of_format(view: memoryview) -> int:
    """The type of the elements of a memoryview."""
    code = view.format.lstrip("@=<" if sys.byteorder == "little" else "@=>!")
    family = {"d": "float", "f": "float", "e": "float", "c": "uint", "B": "uint", "b": "int"}
    integers = {**dict.fromkeys("hilqn", "int"), **dict.fromkeys("HILQN", "uint")}
    name = {**family, **integers}.get(code)
    return dtypes.number_of(f"{name}{8 * view.itemsize}" if name else f"'{view.format}'")


def _read_plain(array: Any, write: bool) -> Buffer:
    try:
        view = memoryview(array)
    except TypeError:
        raise InvalidArgumentError(
            f"{type(array).__name__} is no array: pass a torch tensor, a numpy array, or an object "
            "with __dlpack__, __cuda_array_interface__ or the buffer protocol"
        ) from None
    if not view.c_contiguous:
        raise _not_contiguous("the buffer")
    if write and view.readonly:
        raise _read_only("the buffer")
    count = view.nbytes // max(1, view.itemsize)
    return _address_of_view(view), count, number_of_format(view), HOST, view


def elements_of(shape: Any) -> int:
    """The number of elements of a shape."""
    count = 1
    for length in shape:
        count *= length
    return count


_readers: dict[type, _Reader] = {}


def kind_of(kind: type) -> str:
    """ "torch", "numpy", "cupy", "tutti", or "" for a type of arrays that only protocols tell."""
    for base in kind.__mro__:
        module, name = base.__module__.partition(".")[0], base.__name__
        if (module, name) in (("torch", "Tensor"), ("numpy", "ndarray"), ("cupy", "ndarray")):
            return module
        if (base.__module__, name) == ("tutti.arrays", "Array"):
            return "tutti"
    return ""


def _reader_for(kind: type) -> _Reader:
    known = {"torch": _read_torch, "numpy": _read_numpy, "tutti": _read_own}
    if (reader := known.get(kind_of(kind))) is not None:
        pass
    elif hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__"):
        reader = _read_dlpack
    elif hasattr(kind, "__cuda_array_interface__"):
        reader = _read_cuda_interface
    else:
        reader = _read_plain
    _readers[kind] = reader
    return reader


def stream_number(stream: Any, array: Any, device: int) -> int:
    """The stream of a call on a GPU, as a number.

    `stream`: a number, an object with __cuda_stream__, or a stream of torch, cupy or numba. None:
    the current stream of torch or cupy for their arrays, the stream that __cuda_array_interface__
    names, otherwise the default stream, which waits for arrays that come by DLPack.
    """
    if stream is None:
        return _current_stream(array, device)
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        found = stream.__cuda_stream__
        return int((found() if callable(found) else found)[1])
    for name in ("cuda_stream", "ptr", "handle"):
        if (value := getattr(stream, name, None)) is not None:
            return int(getattr(value, "value", value) or 0)
    raise InvalidArgumentError(
        f"{type(stream).__name__} is no stream: pass a number or an object with __cuda_stream__"
    )


def _current_stream(array: Any, device: int) -> int:
    kind = kind_of(type(array))
    if kind == "torch":
        return int(sys.modules["torch"]._C._cuda_getCurrentRawStream(device))
    if kind == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    interface = getattr(array, "__cuda_array_interface__", None)
    return int((interface or {}).get("stream") or 0)


def new_like(array: Any, shape: tuple[int, ...]) -> Any:
    """A new array of the kind, type and device of `array`. Its content is not defined."""
    kind = kind_of(type(array))
    if kind == "torch":
        return array.new_empty(shape)
    if kind in ("numpy", "cupy"):
        return sys.modules[kind].empty(shape, dtype=array.dtype)
    if kind == "tutti" or _readers[type(array)] is not _read_plain:
        raise InvalidArgumentError(
            f"the result of a {type(array).__name__} needs an output: pass `output`"
        )
    view = memoryview(array)
    made = memoryview(bytearray(elements_of(shape) * view.itemsize))
    code: Any = view.format.lstrip("@=<")
    return made if code == "B" else made.cast(code)


def shape_of(array: Any) -> tuple[int, ...]:
    """The shape of an array; what tells none is flat."""
    shape = getattr(array, "shape", None)
    return (read(array)[1],) if shape is None else tuple(shape)
