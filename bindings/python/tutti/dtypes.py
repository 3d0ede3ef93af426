"""Element types and reductions, as numbers of the C API, and their names elsewhere."""

import ctypes
from numbers import Integral
from typing import Any

from tutti._structs import ReduceOp
from tutti.errors import InvalidArgumentError

FLOAT64 = 0
FLOAT32 = 1
FLOAT16 = 2
BFLOAT16 = 3
FLOAT8_E4M3 = 4
FLOAT8_E5M2 = 5
INT8 = 6
UINT8 = 7
INT32 = 8
UINT32 = 9
INT64 = 10
UINT64 = 11

SUM = 0
PROD = 1
MIN = 2
MAX = 3
AVG = 4
PRE_MUL_SUM = 5

#: The name of each number, as torch, numpy and ml_dtypes spell it.
NAMES = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "int8",
    "uint8",
    "int32",
    "uint32",
    "int64",
    "uint64",
)
#: Bytes of one element, by number.
SIZES = (8, 4, 2, 2, 1, 1, 1, 1, 4, 4, 8, 8)
#: The number of each name; also those of `tutti bench`.
BY_NAME = {
    **{name: number for number, name in enumerate(NAMES)},
    "fp64": FLOAT64,
    "fp32": FLOAT32,
    "fp16": FLOAT16,
    "bf16": BFLOAT16,
    "fp8_e4m3": FLOAT8_E4M3,
    "fp8_e5m2": FLOAT8_E5M2,
}
_OPS = {"sum": SUM, "prod": PROD, "min": MIN, "max": MAX, "avg": AVG}


class _Numbers(dict[Any, int]):
    """Types of torch, numpy and ml_dtypes, each looked up by its name when it comes first."""

    def __missing__(self, dtype: Any) -> int:
        name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or str(dtype)
        number = BY_NAME.get(name.removeprefix("torch."))
        if number is None and isinstance(dtype, type):  # numpy.float32, ml_dtypes.bfloat16
            number = BY_NAME.get(dtype.__name__)
        if number is None:
            raise InvalidArgumentError(
                f"tutti has no elements of type {name}; it has {', '.join(NAMES)}. Movement alone, "
                "such as all_gather, does not look at bits: view the data as uint8"
            )
        self[dtype] = number
        return number


#: The number of each type, by the type itself.
numbers: dict[Any, int] = _Numbers()


def number_of(dtype: Any) -> int:
    """The number of a type: a torch.dtype, numpy.dtype, scalar type, name, or the number itself.

    InvalidArgumentError if tutti has no such type.
    """
    return dtype if type(dtype) is int and 0 <= dtype < len(NAMES) else numbers[dtype]


def pre_mul_sum(scalar: float, dtype: str = "float64") -> ReduceOp:
    """A sum of each rank's input times that rank's `scalar`: an int or a float.

    `dtype` says how the number is handed over: float64, int64 or uint64. An int is int64, or uint64
    if it does not fit; InvalidArgumentError if it fits neither.
    """
    op = ReduceOp(kind=PRE_MUL_SUM)
    if isinstance(scalar, Integral) and dtype == "float64":
        dtype = "int64" if int(scalar) < 2**63 else "uint64"
    op.scalar.dtype = number_of(dtype)
    limits = {INT64: (-(2**63), 2**63), UINT64: (0, 2**64)}.get(op.scalar.dtype)
    if limits and not limits[0] <= int(scalar) < limits[1]:
        raise InvalidArgumentError(f"the scalar {scalar} does not fit into {dtype}")
    if op.scalar.dtype == FLOAT64:
        op.scalar.value.f64 = scalar
    elif op.scalar.dtype == INT64:
        op.scalar.value.i64 = int(scalar)
    elif op.scalar.dtype == UINT64:
        op.scalar.value.u64 = int(scalar)
    else:
        raise InvalidArgumentError(f"a scalar is float64, int64 or uint64, not {dtype}")
    return op


def pre_mul_sum_at(address: int) -> ReduceOp:
    """The same with the scalar in memory of this rank's device: one element of the call's type."""
    return ReduceOp(kind=PRE_MUL_SUM, device_scalar=address)


#: The bytes of tutti_reduce_op_t of each name and number without a parameter.
PACKED_OPS: dict[Any, bytes] = {
    **{kind: bytes(ReduceOp(kind=kind)) for kind in _OPS.values()},
    **{name: bytes(ReduceOp(kind=kind)) for name, kind in _OPS.items()},
}


def packed_op(op: Any) -> bytes:
    """The bytes of tutti_reduce_op_t: of a name, of a number, or of a ReduceOp."""
    if isinstance(op, ReduceOp):
        return ctypes.string_at(ctypes.addressof(op), ctypes.sizeof(op))
    found = PACKED_OPS.get(op) if isinstance(op, (str, int)) else None
    if found is None:
        raise InvalidArgumentError(
            f"unknown reduction {op!r}: use sum, prod, min, max, avg or tutti.pre_mul_sum(scalar)"
        )
    return found
