"""DLPack by ctypes: reading the arrays of other libraries, and exporting memory to them.

Capsules without and with a version (DLPack 1.0) are both known. numpy takes only the latter as
arrays that may be written.
"""

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from tutti import dtypes
from tutti.errors import InvalidArgumentError

CPU = 1
CUDA = 2
CUDA_HOST = 3
CUDA_MANAGED = 13

_READ_ONLY = 1  # a flag of DLManagedTensorVersioned
_TENSOR = b"dltensor"
_VERSIONED = b"dltensor_versioned"

# Type codes of DLPack and bits, by number of dtypes.
_TYPES = {
    dtypes.FLOAT64: (2, 64),
    dtypes.FLOAT32: (2, 32),
    dtypes.FLOAT16: (2, 16),
    dtypes.BFLOAT16: (4, 16),
    dtypes.FLOAT8_E4M3: (10, 8),
    dtypes.FLOAT8_E5M2: (12, 8),
    dtypes.INT8: (0, 8),
    dtypes.UINT8: (1, 8),
    dtypes.INT32: (0, 32),
    dtypes.UINT32: (1, 32),
    dtypes.INT64: (0, 64),
    dtypes.UINT64: (1, 64),
}
_NUMBERS = {pair: number for number, pair in _TYPES.items()}


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("id", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_python = ctypes.pythonapi
# Prototypes of their own: the attributes of ctypes.pythonapi belong to the whole program.
_new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", _python))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python)
)
_has_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _python)
)
# For a capsule that is being destroyed, which must not become an object again.
_dying_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python)
)
_dying_has_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _python)
)


class Read(NamedTuple):
    """What a capsule says. The memory is valid as long as the capsule lives."""

    address: int
    shape: tuple[int, ...]
    dtype: int
    device_kind: int
    device: int
    contiguous: bool
    read_only: bool


def read(capsule: Any) -> Read:
    """Reads a capsule, which stays as it is. InvalidArgumentError for types that tutti does not
    have."""
    read_only = False
    if _has_name(capsule, _VERSIONED):
        versioned = _ManagedVersioned.from_address(_pointer_of(capsule, _VERSIONED))
        tensor, read_only = versioned.tensor, bool(versioned.flags & _READ_ONLY)
    else:
        tensor = _Managed.from_address(_pointer_of(capsule, _TENSOR)).tensor
    pair = (tensor.dtype.code, tensor.dtype.bits)
    if tensor.dtype.lanes != 1 or pair not in _NUMBERS:
        raise InvalidArgumentError(
            f"tutti has no elements of DLPack's type code {pair[0]} with {pair[1]} bits and "
            f"{tensor.dtype.lanes} lanes; it has {', '.join(dtypes.NAMES)}"
        )
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    return Read(
        (tensor.data or 0) + tensor.byte_offset,
        shape,
        _NUMBERS[pair],
        tensor.device.kind,
        tensor.device.id,
        is_contiguous(shape, strides),
        read_only,
    )


def is_contiguous(shape: Sequence[int], strides: Sequence[int] | None) -> bool:
    """Whether elements lie in row-major order without gaps. Strides in elements."""
    if strides is None or 0 in shape:
        return True
    step = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != step:
            return False
        step *= length
    return True


# What exported capsules and their tensors need, by the address of the managed tensor.
_exported: dict[int, Any] = {}


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # type: ignore[untyped-decorator]
def _delete(managed: int) -> None:
    _exported.pop(managed, None)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # type: ignore[untyped-decorator]
def _destroy_capsule(capsule: int) -> None:
    """Nobody took the tensor: who does renames the capsule and calls the deleter later."""
    for name in (_TENSOR, _VERSIONED):
        if _dying_has_name(capsule, name):
            _exported.pop(_dying_pointer_of(capsule, name), None)


# Other libraries may call both while the interpreter ends: they are never freed.
for _callback in (_delete, _destroy_capsule):
    _python.Py_IncRef(ctypes.py_object(_callback))


def export(
    address: int,
    shape: tuple[int, ...],
    dtype: int,
    device: tuple[int, int],
    owner: Any,
    versioned: bool,
) -> Any:
    """A capsule of row-major memory at `address`, which keeps `owner` alive. `device`: kind and
    id."""
    managed: Any = _ManagedVersioned(major=1) if versioned else _Managed()
    sizes = (ctypes.c_int64 * len(shape))(*shape)
    steps = (ctypes.c_int64 * len(shape))()
    step = 1
    for i in reversed(range(len(shape))):
        steps[i] = step
        step *= shape[i]
    code, bits = _TYPES[dtype]
    managed.deleter = ctypes.cast(_delete, ctypes.c_void_p)
    tensor = managed.tensor
    tensor.data = address
    tensor.device = _Device(*device)
    tensor.ndim = len(shape)
    tensor.dtype = _Type(code, bits, 1)
    tensor.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
    tensor.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
    at = ctypes.addressof(managed)
    _exported[at] = (managed, sizes, steps, owner)
    name = _VERSIONED if versioned else _TENSOR
    return _new_capsule(at, name, ctypes.cast(_destroy_capsule, ctypes.c_void_p))
