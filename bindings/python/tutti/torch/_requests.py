"""The operations of c10d as batches: which buffers they read and write, and which calls they are."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tutti.dtypes import AVG, MAX, MIN, PROD, SUM, pre_mul_sum, pre_mul_sum_at
from tutti.errors import InvalidArgumentError, UnsupportedError
from tutti.torch._runner import Batch, Call
from tutti.torch._tensors import NUMBERS, moved_as, reduced_as

_OPS = {"SUM": SUM, "AVG": AVG, "PRODUCT": PROD, "MIN": MIN, "MAX": MAX}


def op_of(reduce_op: Any, kept: list[Tensor]) -> Any:
    """The reduction of the C API that c10d's ReduceOp means. A factor in memory goes to `kept`."""
    state = reduce_op.__getstate__() if hasattr(reduce_op, "op") else (reduce_op, 1)
    kind: Any = state[0]
    factor: Any = state[1]
    if kind.name == "PREMUL_SUM":
        if isinstance(factor, Tensor):
            kept.append(factor)
            return pre_mul_sum_at(factor.data_ptr())
        return pre_mul_sum(float(factor))
    if kind.name not in _OPS:
        raise UnsupportedError(
            f"tutti does not reduce by {kind.name}: it has SUM, AVG, PRODUCT, MIN, MAX and PREMUL_SUM"
        )
    return _OPS[kind.name]


def _readable(tensor: Tensor) -> Tensor:
    if tensor.layout is not torch.strided:
        raise UnsupportedError(f"a dense tensor is needed, not {tensor.layout}: call .to_dense()")
    return tensor.detach().contiguous().resolve_neg()


class _Buffers:
    """Collects what a batch keeps and copies while its calls are made."""

    def __init__(self, result: Sequence[Tensor]) -> None:
        self.result = list(result)
        self.kept: list[Tensor] = []
        self.copies: list[tuple[Tensor, Tensor]] = []

    def read(self, tensor: Tensor) -> Tensor:
        found = _readable(tensor)
        self.kept.append(found)
        return found

    def read_all(self, tensors: Sequence[Tensor]) -> Tensor:
        """One buffer with all of them, one after another."""
        return self.read(torch.cat([_readable(tensor).reshape(-1) for tensor in tensors]))

    def write(self, tensor: Tensor, *, read: bool = False) -> Tensor:
        """Where the result is written: the tensor itself, or memory that is copied to it later. `read`:
        it has an input, too."""
        if tensor.layout is torch.strided and tensor.is_contiguous() and not tensor.is_neg():
            self.kept.append(tensor)
            return tensor
        between = self.read(tensor) if read else torch.empty_like(_readable(tensor))
        self.kept.append(between)
        self.copies.append((tensor, between))
        return between

    def write_all(self, tensors: Sequence[Tensor]) -> Tensor:
        """One buffer for all of them, which is copied to them later."""
        lengths = [tensor.numel() for tensor in tensors]
        first = tensors[0]
        between = torch.empty(sum(lengths), dtype=first.dtype, device=first.device)
        self.kept.append(between)
        for tensor, part in zip(tensors, between.split(lengths), strict=True):
            self.copies.append((tensor, part.view(tensor.shape)))
        return between

    def batch(self, *calls: Call) -> Batch:
        return Batch(list(calls), self.result, self.copies, self.kept)


def _check_alike(tensors: Sequence[Tensor], what: str) -> None:
    dtypes = {tensor.dtype for tensor in tensors}
    devices = {tensor.device for tensor in tensors}
    if len(dtypes) > 1 or len(devices) > 1:
        raise InvalidArgumentError(
            f"{what} need tensors of one type on one device, not of "
            f"{', '.join(map(str, sorted(map(str, dtypes))))} on "
            f"{', '.join(sorted(map(str, devices)))}"
        )


def _check_size(name: str, larger: Tensor, smaller: Tensor, size: int) -> None:
    if larger.numel() != smaller.numel() * size:
        raise InvalidArgumentError(
            f"{name}: one tensor has {larger.numel()} elements, but {size} ranks with "
            f"{smaller.numel()} elements each make {smaller.numel() * size}"
        )
    _check_alike([larger, smaller], name)


def all_reduce(tensors: Sequence[Tensor], reduce_op: Any, options: Any) -> Batch:
    buffers, calls = _Buffers(tensors), []
    for tensor in tensors:
        op = op_of(reduce_op, buffers.kept)
        place = buffers.write(tensor, read=True)
        at = place.data_ptr()
        count, dtype, op = reduced_as(place, op)
        calls.append(_all_reduce(at, count, dtype, op, options))
    return buffers.batch(*calls)


def _all_reduce(at: int, count: int, dtype: int, op: Any, options: Any) -> Call:
    return lambda raw, stream: raw.all_reduce(at, at, count, dtype, op, stream, options)


def broadcast(tensor: Tensor, root: int, options: Any) -> Batch:
    buffers = _Buffers([tensor])
    place = buffers.write(tensor, read=True)
    at = place.data_ptr()
    count, dtype = moved_as(place)
    return buffers.batch(
        lambda raw, stream: raw.broadcast(at, at, count, dtype, root, stream, options)
    )


def reduce(tensor: Tensor, reduce_op: Any, root: int, rank: int, options: Any) -> Batch:
    buffers = _Buffers([tensor])
    place = buffers.write(tensor, read=True) if rank == root else buffers.read(tensor)
    at = place.data_ptr()
    count, dtype, op = reduced_as(place, op_of(reduce_op, buffers.kept))
    return buffers.batch(
        lambda raw, stream: raw.reduce(at, at, count, dtype, op, root, stream, options)
    )


def all_gather(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], size: int, options: Any
) -> Batch:
    """Each output takes the inputs of all ranks at its place, one after another."""
    buffers, calls = _Buffers(outputs), []
    for output, input in zip(outputs, inputs, strict=True):
        _check_size("all_gather", output, input, size)
        source, target = buffers.read(input), buffers.write(output)
        count, dtype = moved_as(source)
        calls.append(_all_gather(source.data_ptr(), target.data_ptr(), count, dtype, options))
    return buffers.batch(*calls)


def _all_gather(source: int, target: int, count: int, dtype: int, options: Any) -> Call:
    return lambda raw, stream: raw.all_gather(source, target, count, dtype, stream, options)


def all_gather_lists(
    outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], rank: int, options: Any
) -> Batch:
    """outputs[i][r] takes inputs[i] of rank r. Ranks may have inputs of different sizes."""
    buffers, calls = _Buffers([tensor for parts in outputs for tensor in parts]), []
    for parts, input in zip(outputs, inputs, strict=True):
        _check_alike([*parts, input], "all_gather")
        if parts[rank].numel() != input.numel():
            raise InvalidArgumentError(
                f"all_gather: output {rank} has {parts[rank].numel()} elements, but the input of "
                f"this rank {rank} has {input.numel()}"
            )
        source, target = buffers.read(input), buffers.write_all(parts)
        scale = 1 if source.dtype in NUMBERS else source.element_size()
        counts = [part.numel() * scale for part in parts]
        dtype = moved_as(source)[1]
        places = source.data_ptr(), target.data_ptr()
        if len(set(counts)) == 1:
            calls.append(_all_gather(*places, counts[0], dtype, options))
        else:
            calls.append(_all_gather_v(*places, counts, dtype, options))
    return buffers.batch(*calls)


def _all_gather_v(source: int, target: int, counts: list[int], dtype: int, options: Any) -> Call:
    return lambda raw, stream: raw.all_gather_v(source, target, counts, dtype, stream, options)


def reduce_scatter(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], reduce_op: Any, size: int, options: Any
) -> Batch:
    """Each output takes this rank's part of the reduction of its input."""
    buffers, calls = _Buffers(outputs), []
    for output, input in zip(outputs, inputs, strict=True):
        _check_size("reduce_scatter", input, output, size)
        op = op_of(reduce_op, buffers.kept)
        source, target = buffers.read(input), buffers.write(output)
        count, dtype, op = reduced_as(target, op)
        calls.append(
            _reduce_scatter(source.data_ptr(), target.data_ptr(), (count, dtype, op), options)
        )
    return buffers.batch(*calls)


def _reduce_scatter(source: int, target: int, what: tuple[int, int, Any], options: Any) -> Call:
    return lambda raw, stream: raw.reduce_scatter(source, target, *what, stream, options)


def reduce_scatter_lists(
    outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], reduce_op: Any, rank: int,
    options: Any,
) -> Batch:  # fmt: skip
    """outputs[i] takes the reduction of inputs[i][rank] of all ranks. Parts may differ in size."""
    buffers, calls = _Buffers(outputs), []
    for output, parts in zip(outputs, inputs, strict=True):
        _check_alike([*parts, output], "reduce_scatter")
        if parts[rank].numel() != output.numel():
            raise InvalidArgumentError(
                f"reduce_scatter: the output has {output.numel()} elements, but input {rank} of this "
                f"rank {rank} has {parts[rank].numel()}"
            )
        op = op_of(reduce_op, buffers.kept)
        source, target = buffers.read_all(parts), buffers.write(output)
        count, dtype, op = reduced_as(target, op)
        places = source.data_ptr(), target.data_ptr()
        if len({part.numel() for part in parts}) == 1:
            calls.append(_reduce_scatter(*places, (count, dtype, op), options))
        else:
            scale = 2 if target.is_complex() else 1
            counts = [part.numel() * scale for part in parts]
            calls.append(_reduce_scatter_v(*places, (counts, dtype, op), options))
    return buffers.batch(*calls)


def _reduce_scatter_v(
    source: int, target: int, what: tuple[list[int], int, Any], options: Any
) -> Call:
    return lambda raw, stream: raw.reduce_scatter_v(source, target, *what, stream, options)


def gather(
    outputs: Sequence[Tensor], input: Tensor, root: int, size: int, options: Any
) -> Batch:
    """`outputs`: a tensor per rank on the root, nothing elsewhere."""
    buffers = _Buffers(outputs)
    source = buffers.read(input)
    target = 0
    if outputs:
        _check_alike([*outputs, input], "gather")
        if len(outputs) != size or any(part.numel() != input.numel() for part in outputs):
            raise InvalidArgumentError(
                f"gather: the root needs {size} outputs with the {input.numel()} elements of the input"
            )
        target = buffers.write_all(outputs).data_ptr()
    at = source.data_ptr()
    count, dtype = moved_as(source)
    return buffers.batch(
        lambda raw, stream: raw.gather(at, target, count, dtype, root, stream, options)
    )


def scatter(output: Tensor, inputs: Sequence[Tensor], root: int, size: int, options: Any) -> Batch:
    """`inputs`: a tensor per rank on the root, nothing elsewhere."""
    buffers = _Buffers([output])
    target = buffers.write(output)
    source = 0
    if inputs:
        _check_alike([*inputs, output], "scatter")
        if len(inputs) != size or any(part.numel() != output.numel() for part in inputs):
            raise InvalidArgumentError(
                f"scatter: the root needs {size} inputs with the {output.numel()} elements of the "
                "output"
            )
        source = buffers.read_all(inputs).data_ptr()
    at = target.data_ptr()
    count, dtype = moved_as(target)
    return buffers.batch(
        lambda raw, stream: raw.scatter(source, at, count, dtype, root, stream, options)
    )


def all_to_all(output: Tensor, input: Tensor, size: int, options: Any) -> Batch:
    """Equal parts."""
    buffers = _Buffers([output])
    if input.numel() % size or input.numel() != output.numel():
        raise InvalidArgumentError(
            f"all_to_all: input and output, of {input.numel()} and {output.numel()} elements, need "
            f"equal sizes that are multiples of {size}, the number of ranks, or split sizes"
        )
    _check_alike([output, input], "all_to_all")
    source, target = buffers.read(input), buffers.write(output)
    places = source.data_ptr(), target.data_ptr()
    count, dtype = moved_as(source)
    return buffers.batch(
        lambda raw, stream: raw.all_to_all(*places, count // size, dtype, stream, options)
    )


def all_to_all_lists(outputs: Sequence[Tensor], inputs: Sequence[Tensor], rank: int) -> Batch:
    """outputs[r] takes inputs[this rank] of rank r: messages, since no rank knows all sizes."""
    buffers, calls = _Buffers(outputs), list[Call]()
    _check_alike([*outputs, *inputs], "all_to_all")
    if outputs[rank].numel() != inputs[rank].numel():
        raise InvalidArgumentError(
            f"all_to_all: rank {rank} sends {inputs[rank].numel()} elements to itself, but "
            f"receives {outputs[rank].numel()}"
        )
    for peer, (output, input) in enumerate(zip(outputs, inputs, strict=True)):
        if peer == rank:
            buffers.copies.append((output, buffers.read(input).view(output.shape)))
            continue
        if input.numel():
            source = buffers.read(input)
            calls.append(_send(source.data_ptr(), *moved_as(source), peer))
        if output.numel():
            target = buffers.write(output)
            calls.append(_recv(target.data_ptr(), *moved_as(target), peer))
    return buffers.batch(*calls)


def _send(at: int, count: int, dtype: int, peer: int) -> Call:
    return lambda raw, stream: raw.send(at, count, dtype, peer, stream)


def _recv(at: int, count: int, dtype: int, peer: int) -> Call:
    return lambda raw, stream: raw.recv(at, count, dtype, peer, stream)


def send(tensor: Tensor, peer: int) -> Batch:
    """`peer`: its rank in the communicator that runs this."""
    buffers = _Buffers([tensor])
    source = buffers.read(tensor)
    return buffers.batch(_send(source.data_ptr(), *moved_as(source), peer))


def recv(tensor: Tensor, peer: int, source: int) -> Batch:
    """`peer`: its rank in the communicator that runs this; `source`: that in the process group."""
    buffers = _Buffers([tensor])
    target = buffers.write(tensor)
    batch = buffers.batch(_recv(target.data_ptr(), *moved_as(target), peer))
    batch.source = source
    return batch


def barrier(device: torch.device, options: Any) -> Batch:
    result = torch.empty(0, device=device)
    return Batch([lambda raw, stream: raw.barrier(stream, options)], [result])
