"""The operators torch.ops.tutti.*: collectives that torch.compile keeps in its graphs.

    all_reduce(Tensor input, str op, str group) -> Tensor
    all_reduce_(Tensor(a!) tensor, str op, str group) -> ()
    all_reduce_out(Tensor input, str op, str group, Tensor(a!) out) -> ()
    all_gather, reduce_scatter, all_to_all, broadcast: the same forms

Every rank of the group calls an operator, in the same order, with equal shapes and types. `op`: "sum",
"prod", "min", "max" or "avg". `group`: a name of tutti.torch.register(), or of a process group on the
backend "tutti". Shapes: all_gather makes of [n, ...] [ranks * n, ...]; reduce_scatter the reverse;
all_to_all splits and joins the first dimension.

Passing `out` by position takes a quarter of a microsecond less than by keyword.

On a GPU they run in torch's current stream, also in captures of CUDA graphs. Tensors are staged, as
memory of torch moves. Operators have no gradients. InvalidArgumentError: a tensor is not contiguous,
tensors lie on two devices, shape or type do not fit; nothing was done.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor

from tutti import dtypes
from tutti.errors import InvalidArgumentError
from tutti.raw import Raw
from tutti.torch.groups import cpu_raws, cuda_raws, size_of
from tutti.torch._tensors import NUMBERS, check_dense, number_of

_library = torch.library.Library("tutti", "DEF")
_cuda_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", lambda _: 0)


_number_of = NUMBERS.get


def _check(input: Tensor, reduces: bool) -> tuple[int, int]:
    """What an operator reads: the number of its type, and how many of these an element has. Refuses
    what it cannot read."""
    check_dense(input)
    if reduces:
        return number_of(input), 1
    number = NUMBERS.get(input.dtype)
    return (dtypes.UINT8, input.element_size()) if number is None else (number, 1)


def _refuse_out(input: Tensor, out: Tensor, count: int) -> NoReturn:
    """Says what is wrong with `out`, which needs `count` elements: a quick check has failed."""
    check_dense(input, out)
    if input.dtype != out.dtype:
        raise InvalidArgumentError(f"the input has elements of {input.dtype}, but out {out.dtype}")
    raise InvalidArgumentError(
        f"out has {out.numel()} elements, but needs {count} for an input of {tuple(input.shape)}"
    )


def _rows(input: Tensor, group: str, name: str) -> int:
    """The rows of one part of a tensor that is split among the ranks."""
    size = size_of(group)
    if not input.dim() or input.shape[0] % size:
        raise InvalidArgumentError(
            f"{name}: the first dimension of {tuple(input.shape)} is no multiple of {size}, the "
            "number of ranks"
        )
    return input.shape[0] // size


def _gathered(input: Tensor, group: str) -> Tensor:
    rows, *rest = input.shape if input.dim() else (1,)
    return input.new_empty((rows * size_of(group), *rest))


def _scattered(input: Tensor, group: str) -> Tensor:
    return input.new_empty((_rows(input, group, "reduce_scatter"), *input.shape[1:]))


def _exchanged(input: Tensor, group: str) -> Tensor:
    _rows(input, group, "all_to_all")
    return torch.empty_like(input)


def _all_gather(raw: Raw, at: int, to: int, count: int, number: int, _: Any, stream: int) -> None:
    raw.all_gather(at, to, count, number, stream)


def _all_to_all(
    raw: Raw, at: int, to: int, count: int, number: int, size: int, stream: int
) -> None:
    raw.all_to_all(at, to, count // size, number, stream)


def _times(count: int, size: int) -> int:
    return count * size


def _part(count: int, size: int) -> int:
    return count // size if count % size == 0 else -1


def _whole(count: int, size: int) -> int:
    return count if count % size == 0 else -1


@dataclass(frozen=True)
class Collective:
    """What the operators of one collective have in common."""

    name: str
    argument: str  # between the tensor and the group; without, `run` gets the number of ranks
    #: Of raw functions, addresses, elements, type, argument and stream. It counts the smaller tensor.
    run: Callable[[Any, int, int, int, int, Any, int], None]
    empty: Callable[[Tensor, str], Tensor] | None = None  # memory for an output; None: as the input
    count: Callable[[int, int], int] | None = None  # elements of the output; None: of the input
    reduces: bool = False
    in_place: bool = False

    def new(self, input: Tensor, group: str) -> Tensor:
        """Memory for an output."""
        return torch.empty_like(input) if self.empty is None else self.empty(input, group)


COLLECTIVES = (
    Collective("all_reduce", "str op, ", Raw.all_reduce, reduces=True, in_place=True),
    Collective("reduce_scatter", "str op, ", Raw.reduce_scatter, _scattered, _part, reduces=True),
    Collective("all_gather", "", _all_gather, _gathered, _times),
    Collective("all_to_all", "", _all_to_all, _exchanged, _whole),
    Collective("broadcast", "int root, ", Raw.broadcast, in_place=True),
)


def define(library: torch.library.Library, of: Collective) -> None:
    """Defines the operators of a collective, with their kernels and their fakes."""
    end = f"{of.argument}str group"
    tags = (torch.Tag.pt2_compliant_tag,)
    library.define(f"{of.name}(Tensor input, {end}) -> Tensor", tags=tags)
    library.define(f"{of.name}_out(Tensor input, {end}, Tensor(a!) out) -> ()", tags=tags)
    if of.in_place:
        library.define(f"{of.name}_(Tensor(a!) tensor, {end}) -> ()", tags=tags)
    for key, raws in (("CPU", cpu_raws), ("CUDA", cuda_raws)):
        for name, kernel in _named(of, *_kernels(of, raws)).items():
            library.impl(name, kernel, key)
    for name, fake in _named(of, *_fakes(of)).items():
        torch.library.register_fake(f"{library.ns}::{name}", fake, lib=library)


Function = Callable[..., Any]


def _named(
    of: Collective, functional: Function, out_variant: Function, in_place: Function
) -> dict[str, Function]:
    """Functions by operator, with the parameters of its schema."""
    if of.argument:
        found = {of.name: functional, f"{of.name}_out": out_variant}
        return {**found, f"{of.name}_": in_place} if of.in_place else found

    def without(input: Tensor, group: str) -> Tensor:
        return functional(input, size_of(group), group)  # type: ignore[no-any-return]

    def out_without(input: Tensor, group: str, out: Tensor) -> None:
        out_variant(input, size_of(group), group, out)

    return {of.name: without, f"{of.name}_out": out_without}


def _kernels(of: Collective, raws: Any) -> tuple[Function, Function, Function]:
    """What runs on one type of device. Each line is a tenth of a microsecond."""
    run, reduces, count_of = of.run, of.reduces, of.count
    new = torch.empty_like if of.empty is None else None
    stream_of = _cuda_stream if raws.device_type == "cuda" else None

    def functional(input: Tensor, argument: Any, group: str) -> Tensor:
        number, scale = _number_of(input.dtype), 1
        if number is None or not input.is_contiguous():
            number, scale = _check(input, reduces)
        out = new(input) if new else of.new(input, group)
        run(
            raws[group], input.data_ptr(), out.data_ptr(),
            (out if reduces else input).numel() * scale, number, argument,
            stream_of(input.get_device()) if stream_of else 0,
        )  # fmt: skip
        return out

    def out_variant(input: Tensor, argument: Any, group: str, out: Tensor) -> None:
        dtype, scale = input.dtype, 1
        number = _number_of(dtype)
        if number is None or not input.is_contiguous():
            number, scale = _check(input, reduces)
        count, device = input.numel(), input.get_device()
        room = count_of(count, size_of(group)) if count_of else count
        if (
            out.numel() != room
            or out.dtype is not dtype
            or out.get_device() != device
            or not out.is_contiguous()
        ):
            _refuse_out(input, out, room)
        run(
            raws[group], input.data_ptr(), out.data_ptr(), (room if reduces else count) * scale,
            number, argument, stream_of(device) if stream_of else 0,
        )  # fmt: skip

    def in_place(tensor: Tensor, argument: Any, group: str) -> None:
        number, scale = _number_of(tensor.dtype), 1
        if number is None or not tensor.is_contiguous():
            number, scale = _check(tensor, reduces)
        at = tensor.data_ptr()
        stream = stream_of(tensor.get_device()) if stream_of else 0
        run(raws[group], at, at, tensor.numel() * scale, number, argument, stream)

    return functional, out_variant, in_place


def _fakes(of: Collective) -> tuple[Function, Function, Function]:
    """What a compiler runs, on tensors without data: it looks names up, and makes no communicator."""

    def functional(input: Tensor, argument: Any, group: str) -> Tensor:
        _check(input, of.reduces)
        return of.new(input, group)

    def out_variant(input: Tensor, argument: Any, group: str, out: Tensor) -> None:
        _check(input, of.reduces)
        room = of.count(input.numel(), size_of(group)) if of.count else input.numel()
        check_dense(input, out)
        if out.numel() != room or out.dtype != input.dtype:
            _refuse_out(input, out, room)

    def in_place(tensor: Tensor, argument: Any, group: str) -> None:
        _check(tensor, of.reduces)

    return functional, out_variant, in_place


for _collective in COLLECTIVES:
    define(_library, _collective)
