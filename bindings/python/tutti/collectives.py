"""Collectives and messages on arrays.

Every rank calls the function, in the same order, with equal arguments except for arrays, the
stream, the multiplier of pre_mul_sum() and the timeout. On the host a call returns when the output
is valid; on CUDA once the operation is enqueued on the stream.

`input`, `output`: arrays as tutti.buffers takes them, contiguous, of the same type. They must be
where the communicator is: on its GPU, or on the host. `output` None: a new array of the input's
kind. `stream`: of the operation on a GPU; None: the current stream of torch or cupy for their
arrays, otherwise the default stream. An array that is freed while the operation uses it in another
stream than that of its allocator must be kept by the caller. The host ignores it.

InvalidArgumentError and UnsupportedError: nothing was done on this rank, and the communicator stays
usable; the other ranks wait for this one. After another failure every call raises that one.
"""

import ctypes
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from tutti import buffers, dtypes
from tutti._structs import CallOptions, DeviceCounts
from tutti.buffers import Buffer, read, stream_number
from tutti.errors import InvalidArgumentError
from tutti.groups import current

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tutti.raw import Raw


class Options(TypedDict, total=False):
    """Options of one call. They are equal on every rank, except the timeout."""

    algorithm: str | None  #: "two_shot" or "all_reduce/two_shot"; None: chosen
    timeout: float | None  #: seconds; None: the communicator's
    sm_budget: int | None  #: SMs that the operation may use; 0: copy engines only; None: no limit
    chunk_bytes: int  #: bytes of one pass of a staged operation; 0: as planned
    blocks: int  #: of the grid (CUDA), or sequential parts (host); 0: as planned
    threads: int  #: per block (CUDA); 0: as planned


@functools.lru_cache(maxsize=256)
def _made(
    algorithm: str | None = None,
    timeout: float | None = None,
    sm_budget: int | None = None,
    chunk_bytes: int = 0,
    blocks: int = 0,
    threads: int = 0,
) -> CallOptions:
    if timeout is not None and not 0 < timeout < 2**53:
        raise InvalidArgumentError(f"a timeout is a number of seconds above 0, not {timeout}")
    if sm_budget is not None and sm_budget < 0:
        raise InvalidArgumentError(f"an SM budget is 0 or more, not {sm_budget}; None: no limit")
    return CallOptions(
        algorithm=algorithm.encode() if algorithm else None,
        timeout_ms=0 if timeout is None else max(1, round(timeout * 1000)),
        sm_budget=-1 if sm_budget is None else sm_budget,
        chunk_bytes=chunk_bytes,
        blocks=blocks,
        threads=threads,
    )


def made(options: Options) -> CallOptions | None:
    """Options for the C API. Equal ones share a struct, which nobody changes."""
    return _made(**options) if options else None


def _count_of(name: str, count: int, parts: int) -> int:
    if count % parts:
        raise InvalidArgumentError(f"{name}: {count} elements cannot be divided by {parts} ranks")
    return count // parts


class Collectives:
    """The collectives of a communicator."""

    raw: "Raw"
    rank: int
    size: int
    device: int
    backend: str

    def all_reduce(
        self, input: Any, output: Any = None, op: Any = "sum", *, stream: Any = None,
        **options: "Unpack[Options]",
    ) -> Any:  # fmt: skip
        """Every rank receives the reduction of all ranks' inputs. `output` may be `input`.

        `op`: "sum", "prod", "min", "max", "avg" or tutti.pre_mul_sum(scalar).
        """
        source = read(input, output is input)
        if output is None:
            output = self._new(input, source)
        target = source if output is input else read(output, True)
        address, count, dtype, device, _ = source
        if device != self.device or target[1:4] != source[1:4]:
            self._check("all_reduce", source, target, count, count)
        self.raw.all_reduce(
            address, target[0], count, dtype, op,
            0 if device == -1 else stream_number(stream, input, self.device),
            made(options) if options else None,
        )  # fmt: skip
        if current.depth:
            current.kept += (source, target)
        return output

    def all_gather(
        self, input: Any, output: Any = None, *, stream: Any = None, **options: "Unpack[Options]"
    ) -> Any:
        """Every rank receives all ranks' inputs, in rank order: `size` times as many elements. A
        new output has `size` times the first dimension of the input. `input` may be its own part of
        `output`."""
        source = read(input)
        output = self._gathered(input, source) if output is None else output
        target = read(output, True)
        count = source[1]
        self._check("all_gather", source, target, count, count * self.size)
        number = self._stream(stream, input, source)
        self.raw.all_gather(source[0], target[0], count, source[2], number, made(options))
        self._keep(source, target)
        return output

    def reduce_scatter(
        self, input: Any, output: Any = None, op: Any = "sum", *, rows: int = 1, stream: Any = None,
        **options: "Unpack[Options]",
    ) -> Any:  # fmt: skip
        """Rank r receives part r of the reduction of all ranks' inputs. A new output has the first
        dimension of the input divided by `size`. `rows` above 1: the input is a matrix of so many
        rows that is split by columns. `output` may be its own part of `input`, unless `rows` is
        above 1."""
        source = read(input)
        count = _count_of("reduce_scatter", source[1], self.size)
        if output is None:
            output = self._new(input, source, self._scattered_shape(input, count, rows))
        target = read(output, True)
        self._check("reduce_scatter", source, target, source[1], count)
        number = self._stream(stream, input, source)
        self.raw.reduce_scatter(
            source[0], target[0], count, source[2], op, number, made(options), rows
        )
        self._keep(source, target)
        return output

    def all_to_all(
        self, input: Any, output: Any = None, *, stream: Any = None, **options: "Unpack[Options]"
    ) -> Any:
        """Rank r receives part r of every rank's input, in rank order. Not in place."""
        source = read(input)
        if output is None:
            output = self._new(input, source)
        target = read(output, True)
        count = _count_of("all_to_all", source[1], self.size)
        self._check("all_to_all", source, target, source[1], source[1])
        number = self._stream(stream, input, source)
        self.raw.all_to_all(source[0], target[0], count, source[2], number, made(options))
        self._keep(source, target)
        return output

    def broadcast(
        self, input: Any, output: Any = None, root: int = 0, *, stream: Any = None,
        **options: "Unpack[Options]",
    ) -> Any:  # fmt: skip
        """Every rank receives the root's input. `output` None: `input` itself, which is overwritten
        on the other ranks. With an output, only the root needs an input."""
        output = input if output is None else output
        target = read(output, True)
        source = read(input) if self.rank == root else None
        count = target[1]
        self._check("broadcast", source or target, target, count, count)
        number = self._stream(stream, output, target)
        address = source[0] if source else 0
        self.raw.broadcast(address, target[0], count, target[2], root, number, made(options))
        self._keep(source, target)
        return output

    def reduce(
        self, input: Any, output: Any = None, op: Any = "sum", root: int = 0, *,
        stream: Any = None, **options: "Unpack[Options]",
    ) -> Any:  # fmt: skip
        """The root receives the reduction of all ranks' inputs; returns None on the other ranks,
        where `output` is ignored. On the root it may be `input`."""
        source, target = read(input), None
        count = source[1]
        if self.rank == root:
            if output is None:
                output = self._new(input, source)
            target = read(output, True)
        self._check("reduce", source, target or source, count, count)
        number = self._stream(stream, input, source)
        address = target[0] if target else 0
        self.raw.reduce(source[0], address, count, source[2], op, root, number, made(options))
        self._keep(source, target)
        return output if target else None

    def gather(
        self, input: Any, output: Any = None, root: int = 0, *, stream: Any = None,
        **options: "Unpack[Options]",
    ) -> Any:  # fmt: skip
        """The root receives all ranks' inputs, in rank order; returns None on the other ranks,
        where `output` is ignored. A new output is as that of all_gather(). Not in place."""
        source, target = read(input), None
        count = source[1]
        if self.rank == root:
            output = self._gathered(input, source) if output is None else output
            target = read(output, True)
        self._check("gather", source, target or source, count, count * (self.size if target else 1))
        number = self._stream(stream, input, source)
        address = target[0] if target else 0
        self.raw.gather(source[0], address, count, source[2], root, number, made(options))
        self._keep(source, target)
        return output if target else None

    def scatter(
        self, input: Any, output: Any, root: int = 0, *, stream: Any = None,
        **options: "Unpack[Options]",
    ) -> Any:  # fmt: skip
        """Rank r receives part r of the root's input, into `output`. `input` is ignored on the
        other ranks, and may be None there. Not in place."""
        target = read(output, True)
        source = read(input) if self.rank == root else None
        count = target[1]
        self._check(
            "scatter", source or target, target, count * (self.size if source else 1), count
        )
        number = self._stream(stream, output, target)
        address = source[0] if source else 0
        self.raw.scatter(address, target[0], count, target[2], root, number, made(options))
        self._keep(source, target)
        return output

    def all_gather_v(
        self, input: Any, counts: Sequence[int], output: Any = None, *, stream: Any = None,
        **options: "Unpack[Options]",
    ) -> Any:  # fmt: skip
        """Every rank receives all ranks' inputs, in rank order and without gaps. `counts`: elements
        of each rank, equal on every rank. A new output is flat. `input` may be its own part of
        `output`."""
        self._check_counts("all_gather_v", counts)
        source, total = read(input), sum(counts)
        output = self._new(input, source, (total,)) if output is None else output
        target = read(output, True)
        self._check("all_gather_v", source, target, counts[self.rank], total)
        number = self._stream(stream, input, source)
        self.raw.all_gather_v(source[0], target[0], counts, source[2], number, made(options))
        self._keep(source, target)
        return output

    def reduce_scatter_v(
        self, input: Any, counts: Sequence[int], output: Any = None, op: Any = "sum", *,
        stream: Any = None, **options: "Unpack[Options]",
    ) -> Any:  # fmt: skip
        """Rank r receives part r, of counts[r] elements, of the reduction of all ranks' inputs. A
        new output is flat. `output` may be its own part of `input`."""
        self._check_counts("reduce_scatter_v", counts)
        source, own = read(input), counts[self.rank]
        output = self._new(input, source, (own,)) if output is None else output
        target = read(output, True)
        self._check("reduce_scatter_v", source, target, sum(counts), own)
        number = self._stream(stream, input, source)
        self.raw.reduce_scatter_v(
            source[0], target[0], counts, source[2], op, number, made(options)
        )
        self._keep(source, target)
        return output

    def all_to_all_v(
        self, input: Any, send_counts: Sequence[int], recv_counts: Sequence[int], max_count: int,
        output: Any = None, *, stream: Any = None, **options: "Unpack[Options]",
    ) -> Any:  # fmt: skip
        """Rank r sends send_counts[j] elements to rank j and receives recv_counts[j] elements from
        it, in rank order and without gaps. `max_count`: an upper bound of all counts of all ranks,
        equal on every rank. A new output is flat. Not in place."""
        self._check_counts("all_to_all_v", send_counts)
        self._check_counts("all_to_all_v", recv_counts)
        source, total = read(input), sum(recv_counts)
        output = self._new(input, source, (total,)) if output is None else output
        target = read(output, True)
        self._check("all_to_all_v", source, target, sum(send_counts), total)
        number = self._stream(stream, input, source)
        self.raw.all_to_all_v(
            source[0], target[0], send_counts, recv_counts, max_count, source[2], number,
            made(options),
        )  # fmt: skip
        self._keep(source, target)
        return output

    def send(
        self, buffer: Any, peer: int, *, stream: Any = None, **options: "Unpack[Options]"
    ) -> None:
        """Sends an array to one rank, which calls recv(). Only these two ranks call. It may wait
        until the peer receives: two ranks that send to each other use tutti.group()."""
        source = read(buffer)
        self._check("send", source, source, source[1], source[1])
        number = self._stream(stream, buffer, source)
        self.raw.send(source[0], source[1], source[2], peer, number, made(options))
        self._keep(source, None)

    def recv(
        self, buffer: Any, peer: int, *, stream: Any = None, **options: "Unpack[Options]"
    ) -> Any:
        """Receives the next message of `peer`, of the same size and type, and returns `buffer`."""
        target = read(buffer, True)
        self._check("recv", target, target, target[1], target[1])
        number = self._stream(stream, buffer, target)
        self.raw.recv(target[0], target[1], target[2], peer, number, made(options))
        self._keep(None, target)
        return buffer

    def barrier(self, *, stream: Any = None, **options: "Unpack[Options]") -> None:
        """Work after the barrier, on any rank's stream, starts when the work before it has ended on
        all ranks. On the host it returns when all ranks have called it."""
        number = 0 if self.device == -1 else stream_number(stream, None, self.device)
        self.raw.barrier(number, made(options))

    def _stream(self, stream: Any, array: Any, buffer: Buffer) -> int:
        return 0 if buffer[3] == -1 else stream_number(stream, array, self.device)

    def _keep(self, source: Buffer | None, target: Buffer | None) -> None:
        if current.depth:
            current.kept += (source, target)

    def _new(self, array: Any, buffer: Buffer, shape: tuple[int, ...] | None = None) -> Any:
        """A new array like this one, or of another shape."""
        self._check_device(buffer[3])
        return buffers.new_like(array, buffers.shape_of(array) if shape is None else shape)

    def _gathered(self, array: Any, buffer: Buffer) -> Any:
        shape = buffers.shape_of(array) or (1,)
        return self._new(array, buffer, (shape[0] * self.size, *shape[1:]))

    def _scattered_shape(self, array: Any, count: int, rows: int) -> tuple[int, ...]:
        shape = buffers.shape_of(array)
        if rows > 1:
            return (rows, count // rows)
        return (shape[0] // self.size, *shape[1:]) if shape[0] % self.size == 0 else (count,)

    def _check_device(self, device: int) -> None:
        if device == self.device or (device == buffers.UNKNOWN_CUDA and self.device >= 0):
            return
        there, here = (
            "the host" if each == -1 else f"GPU {each}" if each >= 0 else "a GPU"
            for each in (device, self.device)
        )  # fmt: skip
        raise InvalidArgumentError(f"an array is on {there}, but the communicator is on {here}")

    def _check_counts(self, name: str, counts: Sequence[int]) -> None:
        if len(counts) != self.size or min(counts, default=0) < 0:
            raise InvalidArgumentError(
                f"{name}: counts are {self.size} numbers from 0, one for each rank, not "
                f"{list(counts)}"
            )

    def _check(self, name: str, source: Buffer, target: Buffer, inputs: int, outputs: int) -> None:
        """InvalidArgumentError unless both arrays are where the communicator is, of one type, and
        of so many elements."""
        self._check_device(source[3])
        self._check_device(target[3])
        if source[2] != target[2]:
            raise InvalidArgumentError(
                f"{name}: the input has the type {dtypes.NAMES[source[2]]}, but the output "
                f"{dtypes.NAMES[target[2]]}"
            )
        for which, buffer, wanted in (("input", source, inputs), ("output", target, outputs)):
            if buffer[1] != wanted:
                raise InvalidArgumentError(
                    f"{name}: the {which} has {buffer[1]} elements, but needs {wanted}"
                )


def device_counts(given: Any, found: Any, max_count: int) -> DeviceCounts:
    """Counts that the device reads when the operation runs, for the v-forms of Communicator.raw.

    `given`, `found`: arrays of int64 or uint64; `found` receives a count per rank, or is None.
    `max_count`: above 0, equal on every rank. The arrays stay allocated until the operation has
    ended.
    """
    addresses = []
    for array in (given, found):
        address, _, dtype, _, _ = read(array) if array is not None else (0, 0, dtypes.INT64, 0, 0)
        if dtype not in (dtypes.INT64, dtypes.UINT64):
            raise InvalidArgumentError(f"counts are int64 or uint64, not {dtypes.NAMES[dtype]}")
        addresses.append(address)
    return DeviceCounts(*map(ctypes.c_void_p, addresses), max_count)
