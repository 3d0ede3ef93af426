"""The structs of the C API (include/tutti/c), as ctypes declares them.

A class has the name of its C struct without `tutti_` and `_t`: tutti_all_reduce_t is AllReduce.
What the C headers set in tutti_NAME_init() is in `_defaults_`. tests/python/core compares all of it
with the stored list of the binary interface, so that no field is forgotten.
"""

import ctypes
from typing import Any, ClassVar

_size = ctypes.c_size_t
_pointer = ctypes.c_void_p
_int = ctypes.c_int
_text = ctypes.c_char_p

MAX_PEERS = 16
MAX_MATMUL_PRODUCTS = 8
SIGNAL_CHANNELS = 64
FLOAT32 = 1
BFLOAT16 = 3


#: What a number of each type may be: ctypes itself would cut off what does not fit.
RANGES: dict[Any, range] = {
    _int: range(-(2**31), 2**31),
    ctypes.c_int64: range(-(2**63), 2**63),
    ctypes.c_uint64: range(2**64),
    _size: range(2**64),
}


def check_range(what: str, value: Any, numbers: range) -> None:
    """OverflowError where a number does not fit."""
    if isinstance(value, int) and value not in numbers:
        raise OverflowError(f"{what}{value} is not between {numbers[0]} and {numbers[-1]}")


class Struct(ctypes.Structure):
    """A struct of the C API. Its first field, `size`, says which version of it this is. Numbers that
    do not fit into a field are an OverflowError."""

    _defaults_: ClassVar[dict[str, Any]] = {}
    _ranges_: ClassVar[dict[str, range]] = {}

    def __init_subclass__(cls) -> None:
        kinds = {name: kind for name, kind, *_ in getattr(cls, "_fields_", [])}
        cls._ranges_ = {name: RANGES[kind] for name, kind in kinds.items() if kind in RANGES}

    def __init__(self, **values: Any) -> None:
        super().__init__(size=ctypes.sizeof(self), **{**self._defaults_, **values})

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._ranges_:
            check_range(f"{name}: ", value, self._ranges_[name])
        super().__setattr__(name, value)


class ScalarValue(ctypes.Union):
    _fields_ = [("f64", ctypes.c_double), ("i64", ctypes.c_int64), ("u64", ctypes.c_uint64)]


class Scalar(ctypes.Structure):
    _fields_ = [("dtype", _int), ("value", ScalarValue)]


class ReduceOp(ctypes.Structure):
    """A reduction with its parameter."""

    _fields_ = [("kind", _int), ("scalar", Scalar), ("device_scalar", _pointer)]
    __hash__ = object.__hash__  # of an object, not of its value


class UniqueIdStruct(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 128)]


class Failure(Struct):
    _fields_ = [
        ("size", _size),
        ("code", _int),
        ("waiting_rank", _int),
        ("missing_rank", _int),
        ("failed_rank", _int),
        ("sequence", ctypes.c_uint64),
        ("expected", ctypes.c_uint64),
        ("seen", ctypes.c_uint64),
        ("text", _text),
        ("operation", _text),
    ]
    _defaults_ = {"waiting_rank": -1, "missing_rank": -1, "failed_rank": -1}


class CommunicatorOptions(Struct):
    _fields_ = [
        ("size", _size),
        ("backend", _int),
        ("device", _int),
        ("deterministic", _int),
        ("timeout_ms", ctypes.c_int64),
    ]
    _defaults_ = {"device": -1}


class CommunicatorInfo(Struct):
    _fields_ = [
        ("size", _size),
        ("rank", _int),
        ("ranks", _int),
        ("backend", _int),
        ("device", _int),
    ]


class Counters(Struct):
    _fields_ = [
        ("size", _size),
        ("allocations", ctypes.c_uint64),
        ("registrations", ctypes.c_uint64),
        ("exchanges", ctypes.c_uint64),
    ]


class Query(Struct):
    _fields_ = [
        ("size", _size),
        ("count", _size),
        ("hidden", _size),
        ("algorithm", _text),
        ("op", ReduceOp),
        ("dtype", _int),
        ("symmetric", _int),
        ("in_place", _int),
        ("sm_budget", _int),
        ("counts_on_device", _int),
        ("captured", _int),
    ]
    _defaults_ = {"dtype": FLOAT32, "symmetric": 1, "sm_budget": -1}


class PlanStruct(Struct):
    _fields_ = [
        ("size", _size),
        ("algorithm", _pointer),
        ("text", _pointer),
        ("chunk_bytes", _size),
        ("blocks", _int),
        ("threads", _int),
        ("source", _int),
        ("emulated", _int),
        ("alone", _int),
        ("stream_barrier", _int),
    ]


class CallOptions(Struct):
    """Options of one call. `algorithm` is bytes."""

    _fields_ = [
        ("size", _size),
        ("algorithm", _text),
        ("timeout_ms", ctypes.c_int64),
        ("chunk_bytes", _size),
        ("blocks", _int),
        ("threads", _int),
        ("sm_budget", _int),
        ("reserved", _int),
    ]
    _defaults_ = {"sm_budget": -1}


class DeviceCounts(ctypes.Structure):
    _fields_ = [("given", _pointer), ("found", _pointer), ("max_count", _size)]


def _call(*fields: tuple[str, Any], last: str = "reserved") -> list[tuple[str, Any]]:
    """The fields of a collective: its own ones, and those that all collectives have behind them."""
    common = [("stream", _pointer), ("options", _pointer), ("dtype", _int), (last, _int)]
    return [("size", _size), *fields, *common]


_input = ("input", _pointer)
_output = ("output", _pointer)
_buffer = ("buffer", _pointer)
_count = ("count", _size)
_counts = ("counts", _pointer)
_device_counts = ("device_counts", DeviceCounts)
_op = ("op", ReduceOp)


class Call(Struct):
    """Arguments of a collective or a message."""

    _defaults_ = {"dtype": FLOAT32}


class AllReduce(Call):
    _fields_ = _call(_input, _output, _count, _op)


class AllGather(Call):
    _fields_ = _call(_input, _output, _count)


class ReduceScatter(Call):
    _fields_ = _call(_input, _output, _count, ("rows", _size), _op)
    _defaults_ = {"dtype": FLOAT32, "rows": 1}


class AllToAll(Call):
    _fields_ = _call(_input, _output, _count)


class Broadcast(Call):
    _fields_ = _call(_input, _output, _count, last="root")


class Reduce(Call):
    _fields_ = _call(_input, _output, _count, _op, last="root")


class Gather(Call):
    _fields_ = _call(_input, _output, _count, last="root")


class Scatter(Call):
    _fields_ = _call(_input, _output, _count, last="root")


class AllGatherV(Call):
    _fields_ = _call(_input, _output, _counts, _device_counts)


class ReduceScatterV(Call):
    _fields_ = _call(_input, _output, _counts, _device_counts, _op)


class AllToAllV(Call):
    _fields_ = _call(
        _input,
        _output,
        ("send_counts", _pointer),
        ("recv_counts", _pointer),
        ("max_count", _size),
        _device_counts,
    )


class Send(Call):
    _fields_ = _call(_buffer, _count, last="peer")


class Recv(Call):
    _fields_ = _call(_buffer, _count, last="peer")


class Barrier(Struct):
    _fields_ = [("size", _size), ("stream", _pointer), ("options", _pointer)]


class AllReduceResidualRmsNorm(Struct):
    _fields_ = [
        ("size", _size),
        _input,
        ("residual", _pointer),
        ("weight", _pointer),
        ("residual_output", _pointer),
        _output,
        ("tokens", _size),
        ("hidden", _size),
        ("stream", _pointer),
        ("options", _pointer),
        ("dtype", _int),
        ("output_dtype", _int),
        ("epsilon", ctypes.c_float),
        ("scale", ctypes.c_float),
    ]
    _defaults_ = {"dtype": BFLOAT16, "output_dtype": -1, "epsilon": 1e-6, "scale": 1.0}


class Put(Struct):
    _fields_ = [
        ("size", _size),
        ("from_", _pointer),
        ("to", _pointer),
        _count,
        ("stream", _pointer),
        ("dtype", _int),
        ("peer", _int),
        ("mover", _int),
        ("channel", _int),
    ]
    _defaults_ = {"dtype": FLOAT32}


class Get(Struct):
    _fields_ = [
        ("size", _size),
        ("from_", _pointer),
        ("to", _pointer),
        _count,
        ("stream", _pointer),
        ("dtype", _int),
        ("peer", _int),
        ("mover", _int),
        ("reserved", _int),
    ]
    _defaults_ = {"dtype": FLOAT32}


class Signal(Struct):
    _fields_ = [("size", _size), ("stream", _pointer), ("peer", _int), ("channel", _int)]


class WaitSignal(Struct):
    _fields_ = [
        ("size", _size),
        ("stream", _pointer),
        ("times", ctypes.c_uint64),
        ("timeout_ms", ctypes.c_int64),
        ("peer", _int),
        ("channel", _int),
    ]
    _defaults_ = {"times": 1}


class DevicePeers(ctypes.Structure):
    """What a kernel of the user takes as its parameter: tutti/device/peers.hpp."""

    _fields_ = [
        ("rank", _int),
        ("ranks", _int),
        ("bytes", _size),
        ("at", _pointer * MAX_PEERS),
        ("signals", ctypes.c_uint64 * (MAX_PEERS + 5)),
    ]


class MemoryInfo(Struct):
    _fields_ = [("size", _size), ("data", _pointer), ("bytes", _size), ("zero_copy", _size)]


class LocalMemoryInfo(Struct):
    _fields_ = [("size", _size), ("data", _pointer), ("bytes", _size)]


class BlockInfo(Struct):
    _fields_ = [("size", _size), ("data", _pointer), ("bytes", _size)]


class PoolUse(Struct):
    _fields_ = [
        ("size", _size),
        ("blocks", _size),
        ("taken_bytes", _size),
        ("free_bytes", _size),
    ]


class MatmulProduct(ctypes.Structure):
    _fields_ = [
        ("b", _pointer),
        ("c", _pointer),
        ("bias", _pointer),
        ("n", _size),
        ("ldb", _size),
        ("ldc", _size),
    ]


class Matmul(Struct):
    _fields_ = [
        ("size", _size),
        ("a", _pointer),
        ("m", _size),
        ("k", _size),
        ("lda", _size),
        ("product", MatmulProduct),
        ("more", _pointer),
        ("more_count", _size),
        ("algorithm", _text),
        ("tile", _text),
        ("dtype", _int),
        ("b_layout", _int),
        ("backend", _int),
        ("reserved", _int),
    ]
    _defaults_ = {"dtype": BFLOAT16}


class MatmulPlan(Struct):
    _fields_ = [
        ("size", _size),
        ("algorithm", _pointer),
        ("config", _pointer),
        ("why", _pointer),
    ]


class PipelineOptions(Struct):
    _fields_ = [
        ("size", _size),
        ("protocol", _text),
        ("mover", _text),
        ("streams", _int),
        ("tiles", _int),
        ("inter_stream_order", _int),
        ("reserved", _int),
    ]
    _defaults_ = {"streams": 4, "tiles": 8}


class AllGatherMatmul(Struct):
    _fields_ = [
        ("size", _size),
        ("a", _pointer),
        ("m", _size),
        ("k", _size),
        ("lda", _size),
        ("product", MatmulProduct),
        ("more", _pointer),
        ("more_count", _size),
        ("gathered", _pointer),
        ("workspace", _pointer),
        ("workspace_bytes", _size),
        ("stream", _pointer),
        ("algorithm", _text),
        ("transport", _text),
        ("pipeline", _pointer),
        ("timeout_ms", ctypes.c_int64),
        ("dtype", _int),
        ("b_layout", _int),
    ]
    _defaults_ = {"dtype": BFLOAT16}


class ShardedLayer(ctypes.Structure):
    _fields_ = [("shard", _pointer), ("count", _size), ("dtype", _int)]


class ShardedOptions(Struct):
    _fields_ = [
        ("size", _size),
        ("gather", _pointer),
        ("reduce", _pointer),
        ("depth", _size),
    ]
    _defaults_ = {"depth": 2}
