"""The operations of a communicator on addresses and numbers: what the layers above call.

Addresses, streams and counts are integers; `dtype` is a number of tutti.dtypes; `op` a name, a
number or a ReduceOp; `options` a CallOptions or None. Nothing is checked here but what the library
checks. A failure is raised as a TuttiError. Each call releases the GIL.

A call packs its arguments into bytes of its own, so threads do not share them, and this takes a
third of the time of filling a ctypes struct.
"""

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tutti import _structs
from tutti._handles import Handle
from tutti._library import library
from tutti._structs import CallOptions, DeviceCounts
from tutti.dtypes import PACKED_OPS, packed_op

_CODES = {
    ctypes.c_void_p: "Q",
    ctypes.c_size_t: "Q",
    ctypes.c_uint64: "Q",
    ctypes.c_int64: "q",
    ctypes.c_int: "i",
    ctypes.c_float: "f",
}


def packer(kind: type[ctypes.Structure]) -> Callable[..., bytes]:
    """A function that makes the bytes of a struct of its fields, in order. Nested structs are
    bytes."""
    text = "="  # no struct of the C API has a gap
    for name, of in kind._fields_:  # type: ignore[misc]
        text += _CODES.get(of, f"{getattr(kind, name).size}s")
    made = struct.Struct(text)
    assert made.size == ctypes.sizeof(kind)
    return made.pack


def _of(name: str, kind: type[ctypes.Structure]) -> tuple[Callable[..., int], Any, int]:
    return getattr(library, f"tutti_{name}"), packer(kind), ctypes.sizeof(kind)


_all_reduce, _pack_all_reduce, _ALL_REDUCE = _of("all_reduce", _structs.AllReduce)
_all_gather, _pack_all_gather, _ALL_GATHER = _of("all_gather", _structs.AllGather)
_reduce_scatter, _pack_reduce_scatter, _REDUCE_SCATTER = _of(
    "reduce_scatter", _structs.ReduceScatter
)
_all_to_all, _pack_all_to_all, _ALL_TO_ALL = _of("all_to_all", _structs.AllToAll)
_broadcast, _pack_rooted, _ROOTED = _of("broadcast", _structs.Broadcast)
_gather, _scatter = library.tutti_gather, library.tutti_scatter  # structs as that of broadcast
_reduce, _pack_reduce, _REDUCE = _of("reduce", _structs.Reduce)
_all_gather_v, _pack_all_gather_v, _ALL_GATHER_V = _of("all_gather_v", _structs.AllGatherV)
_reduce_scatter_v, _pack_reduce_scatter_v, _REDUCE_SCATTER_V = _of(
    "reduce_scatter_v", _structs.ReduceScatterV
)
_all_to_all_v, _pack_all_to_all_v, _ALL_TO_ALL_V = _of("all_to_all_v", _structs.AllToAllV)
_send, _pack_message, _MESSAGE = _of("send", _structs.Send)
_recv = library.tutti_recv
_barrier, _pack_barrier, _BARRIER = _of("barrier", _structs.Barrier)
_put, _pack_put, _PUT = _of("put", _structs.Put)
_put_signal = library.tutti_put_signal
_get, _pack_get, _GET = _of("get", _structs.Get)
_signal, _pack_signal, _SIGNAL = _of("signal", _structs.Signal)
_wait_signal, _pack_wait, _WAIT = _of("wait_signal", _structs.WaitSignal)
_rms_norm, _pack_rms_norm, _RMS_NORM = _of(
    "all_reduce_residual_rms_norm", _structs.AllReduceResidualRmsNorm
)
_NO_COUNTS = bytes(ctypes.sizeof(DeviceCounts))


def _at(options: CallOptions | None) -> int:
    return 0 if options is None else ctypes.addressof(options)


def _counts(counts: Sequence[int] | ctypes.Array[ctypes.c_size_t] | None) -> tuple[Any, int]:
    """An array, and its address."""
    if counts is None:
        return None, 0
    if not isinstance(counts, ctypes.Array):
        counts = (ctypes.c_size_t * len(counts))(*counts)
    return counts, ctypes.addressof(counts)


class Raw(Handle):
    """The operations of one communicator. `handle` is the C API's; 0 once the communicator is
    closed."""

    __slots__ = ()
    what = "communicator"

    def all_reduce(
        self, input: int, output: int, count: int, dtype: int, op: Any, stream: int = 0,
        options: CallOptions | None = None,
    ) -> None:  # fmt: skip
        """`count` elements each; `output` may be `input`."""
        if _all_reduce(
            self.handle,
            _pack_all_reduce(
                _ALL_REDUCE, input, output, count, PACKED_OPS.get(op) or packed_op(op), stream,
                0 if options is None else ctypes.addressof(options), dtype, 0,
            ),
        ):  # fmt: skip
            self.fail()

    def all_gather(
        self, input: int, output: int, count: int, dtype: int, stream: int = 0,
        options: CallOptions | None = None,
    ) -> None:  # fmt: skip
        """`count` elements of one rank; the output has size * count."""
        call = _pack_all_gather(_ALL_GATHER, input, output, count, stream, _at(options), dtype, 0)
        if _all_gather(self.handle, call):
            self.fail()

    def reduce_scatter(
        self, input: int, output: int, count: int, dtype: int, op: Any, stream: int = 0,
        options: CallOptions | None = None, rows: int = 1,
    ) -> None:  # fmt: skip
        """`count` elements of one rank's output; the input has size * count. `rows` above 1:
        columns of a matrix are split."""
        packed = PACKED_OPS.get(op) or packed_op(op)
        call = _pack_reduce_scatter(
            _REDUCE_SCATTER, input, output, count, rows, packed, stream, _at(options), dtype, 0
        )
        if _reduce_scatter(self.handle, call):
            self.fail()

    def all_to_all(
        self, input: int, output: int, count: int, dtype: int, stream: int = 0,
        options: CallOptions | None = None,
    ) -> None:  # fmt: skip
        """`count` elements from one rank to another; both buffers have size * count."""
        call = _pack_all_to_all(_ALL_TO_ALL, input, output, count, stream, _at(options), dtype, 0)
        if _all_to_all(self.handle, call):
            self.fail()

    def broadcast(
        self, input: int, output: int, count: int, dtype: int, root: int, stream: int = 0,
        options: CallOptions | None = None,
    ) -> None:  # fmt: skip
        """`count` elements; `input` matters on the root alone, and may be `output` there."""
        call = _pack_rooted(_ROOTED, input, output, count, stream, _at(options), dtype, root)
        if _broadcast(self.handle, call):
            self.fail()

    def reduce(
        self, input: int, output: int, count: int, dtype: int, op: Any, root: int, stream: int = 0,
        options: CallOptions | None = None,
    ) -> None:  # fmt: skip
        """`count` elements; `output` matters on the root alone, and may be `input` there."""
        packed = PACKED_OPS.get(op) or packed_op(op)
        call = _pack_reduce(
            _REDUCE, input, output, count, packed, stream, _at(options), dtype, root
        )
        if _reduce(self.handle, call):
            self.fail()

    def gather(
        self, input: int, output: int, count: int, dtype: int, root: int, stream: int = 0,
        options: CallOptions | None = None,
    ) -> None:  # fmt: skip
        """`count` elements of one rank; `output`, of size * count, matters on the root alone."""
        call = _pack_rooted(_ROOTED, input, output, count, stream, _at(options), dtype, root)
        if _gather(self.handle, call):
            self.fail()

    def scatter(
        self, input: int, output: int, count: int, dtype: int, root: int, stream: int = 0,
        options: CallOptions | None = None,
    ) -> None:  # fmt: skip
        """`count` elements of one rank; `input`, of size * count, matters on the root alone."""
        call = _pack_rooted(_ROOTED, input, output, count, stream, _at(options), dtype, root)
        if _scatter(self.handle, call):
            self.fail()

    def all_gather_v(
        self, input: int, output: int, counts: Any, dtype: int, stream: int = 0,
        options: CallOptions | None = None, device_counts: DeviceCounts | None = None,
    ) -> None:  # fmt: skip
        """`counts`: a count per rank, a sequence or a ctypes array of c_size_t; None with counts
        from the device."""
        kept, address = _counts(counts)
        device = _NO_COUNTS if device_counts is None else bytes(device_counts)
        call = _pack_all_gather_v(
            _ALL_GATHER_V, input, output, address, device, stream, _at(options), dtype, 0
        )
        if _all_gather_v(self.handle, call):
            self.fail()
        del kept

    def reduce_scatter_v(
        self, input: int, output: int, counts: Any, dtype: int, op: Any, stream: int = 0,
        options: CallOptions | None = None, device_counts: DeviceCounts | None = None,
    ) -> None:  # fmt: skip
        """`counts` as in all_gather_v()."""
        kept, address = _counts(counts)
        device = _NO_COUNTS if device_counts is None else bytes(device_counts)
        packed = PACKED_OPS.get(op) or packed_op(op)
        call = _pack_reduce_scatter_v(
            _REDUCE_SCATTER_V, input, output, address, device, packed, stream, _at(options), dtype,
            0,
        )  # fmt: skip
        if _reduce_scatter_v(self.handle, call):
            self.fail()
        del kept

    def all_to_all_v(
        self, input: int, output: int, send_counts: Any, recv_counts: Any, max_count: int,
        dtype: int, stream: int = 0, options: CallOptions | None = None,
        device_counts: DeviceCounts | None = None,
    ) -> None:  # fmt: skip
        """Counts as in all_gather_v(). `max_count`: an upper bound of all counts of all ranks,
        equal on every rank."""
        sent, send_address = _counts(send_counts)
        received, recv_address = _counts(recv_counts)
        device = _NO_COUNTS if device_counts is None else bytes(device_counts)
        call = _pack_all_to_all_v(
            _ALL_TO_ALL_V, input, output, send_address, recv_address, max_count, device, stream,
            _at(options), dtype, 0,
        )  # fmt: skip
        if _all_to_all_v(self.handle, call):
            self.fail()
        del sent, received

    def send(
        self, buffer: int, count: int, dtype: int, peer: int, stream: int = 0,
        options: CallOptions | None = None,
    ) -> None:  # fmt: skip
        """Sends `count` elements to `peer`."""
        call = _pack_message(_MESSAGE, buffer, count, stream, _at(options), dtype, peer)
        if _send(self.handle, call):
            self.fail()

    def recv(
        self, buffer: int, count: int, dtype: int, peer: int, stream: int = 0,
        options: CallOptions | None = None,
    ) -> None:  # fmt: skip
        """Receives `count` elements of `peer`."""
        call = _pack_message(_MESSAGE, buffer, count, stream, _at(options), dtype, peer)
        if _recv(self.handle, call):
            self.fail()

    def barrier(self, stream: int = 0, options: CallOptions | None = None) -> None:
        """Work after it starts when the work before it has ended on all ranks."""
        if _barrier(self.handle, _pack_barrier(_BARRIER, stream, _at(options))):
            self.fail()

    def all_reduce_residual_rms_norm(
        self, input: int, residual: int, weight: int, residual_output: int, output: int,
        tokens: int, hidden: int, dtype: int, output_dtype: int = -1, epsilon: float = 1e-6,
        scale: float = 1.0, stream: int = 0, options: CallOptions | None = None,
    ) -> None:  # fmt: skip
        """residual_output = all_reduce(input) + residual; output = its RMSNorm * weight. `hidden`:
        a multiple of 8, from 1024 to 16384. `output_dtype`: an 8-bit type, or -1."""
        call = _pack_rms_norm(
            _RMS_NORM, input, residual, weight, residual_output, output, tokens, hidden, stream,
            _at(options), dtype, output_dtype, epsilon, scale,
        )  # fmt: skip
        if _rms_norm(self.handle, call):
            self.fail()

    def put(
        self, source: int, target: int, count: int, dtype: int, peer: int, stream: int = 0,
        mover: int = 0,
    ) -> None:  # fmt: skip
        """Copies elements into the symmetric memory of `peer`, at this rank's address `target`."""
        call = _pack_put(_PUT, source, target, count, stream, dtype, peer, mover, 0)
        if _put(self.handle, call):
            self.fail()

    def put_signal(
        self, source: int, target: int, count: int, dtype: int, peer: int, channel: int,
        stream: int = 0, mover: int = 0,
    ) -> None:  # fmt: skip
        """put(), and then a signal on `channel`, also if `count` is 0."""
        call = _pack_put(_PUT, source, target, count, stream, dtype, peer, mover, channel)
        if _put_signal(self.handle, call):
            self.fail()

    def get(
        self, source: int, target: int, count: int, dtype: int, peer: int, stream: int = 0,
        mover: int = 0,
    ) -> None:  # fmt: skip
        """Copies elements from the symmetric memory of `peer`, at this rank's address `source`."""
        call = _pack_get(_GET, source, target, count, stream, dtype, peer, mover, 0)
        if _get(self.handle, call):
            self.fail()

    def signal(self, peer: int, channel: int, stream: int = 0) -> None:
        """Sends one signal to `peer`, after all earlier work of the stream."""
        if _signal(self.handle, _pack_signal(_SIGNAL, stream, peer, channel)):
            self.fail()

    def wait_signal(
        self, peer: int, channel: int, times: int = 1, stream: int = 0, timeout_ms: int = 0
    ) -> None:
        """Waits for `times` further signals from `peer` on `channel`, and consumes them."""
        call = _pack_wait(_WAIT, stream, times, timeout_ms, peer, channel)
        if _wait_signal(self.handle, call):
            self.fail()
