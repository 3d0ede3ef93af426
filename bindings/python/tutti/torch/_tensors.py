"""What the torch layer asks of tensors: their numbers for the C API, checks, streams."""

from typing import Any

import torch

from tutti import dtypes
from tutti.errors import InvalidArgumentError, UnsupportedError

#: The number of each type that tutti reduces.
NUMBERS: dict[torch.dtype, int] = {
    getattr(torch, name): number for number, name in enumerate(dtypes.NAMES) if hasattr(torch, name)
}


def number_of(tensor: torch.Tensor) -> int:
    """The number of the tensor's type. InvalidArgumentError if tutti has no such type."""
    number = NUMBERS.get(tensor.dtype)
    if number is None:
        return dtypes.number_of(tensor.dtype)  # which says what there is
    return number


def moved_as(tensor: torch.Tensor) -> tuple[int, int]:
    """Number of elements and their type, for an operation that copies bits.

    A type that tutti does not have, such as bool or complex64, goes as its bytes.
    """
    number = NUMBERS.get(tensor.dtype)
    if number is None:
        return tensor.numel() * tensor.element_size(), dtypes.UINT8
    return tensor.numel(), number


#: Reductions of bool, which goes as uint8: the sum is "any", the product "all".
_OPS_OF_BOOL = {
    dtypes.SUM: dtypes.MAX,
    dtypes.MAX: dtypes.MAX,
    dtypes.PROD: dtypes.MIN,
    dtypes.MIN: dtypes.MIN,
}


def reduced_as(tensor: torch.Tensor, op: Any) -> tuple[int, int, Any]:
    """Number of elements, their type, and the reduction, for an operation that reduces.

    Complex tensors are pairs of real numbers, which sums, averages and multiples of sums respect.
    """
    dtype = tensor.dtype
    number = NUMBERS.get(dtype)
    if number is not None:
        return tensor.numel(), number, op
    if dtype == torch.bool and type(op) is int and op in _OPS_OF_BOOL:
        return tensor.numel(), dtypes.UINT8, _OPS_OF_BOOL[op]
    if dtype.is_complex:
        if op in (dtypes.PROD, dtypes.MIN, dtypes.MAX):
            raise UnsupportedError(f"{dtype} has sums and averages only: reduce its parts apart")
        real = torch.view_as_real(tensor[:0] if tensor.dim() else tensor.reshape(1)[:0])
        return 2 * tensor.numel(), number_of(real), op
    if dtype == torch.bool:
        raise UnsupportedError("bool has no average: convert the tensor to a number first")
    return tensor.numel(), number_of(tensor), op


def check_dense(*tensors: torch.Tensor) -> torch.device:
    """The one device on which all these tensors lie, contiguous. InvalidArgumentError otherwise."""
    device = tensors[0].device
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            raise InvalidArgumentError(f"a dense tensor is needed, not {tensor.layout}")
        if tensor.device != device:
            raise InvalidArgumentError(
                f"all tensors of a call lie on one device, not on {device} and {tensor.device}"
            )
        if not tensor.is_contiguous():
            raise InvalidArgumentError(
                f"a tensor of shape {tuple(tensor.shape)} and strides {tensor.stride()} is not "
                "contiguous: call .contiguous() first"
            )
    return device


def current_stream(device: torch.device) -> int:
    """The address of torch's current stream on a device; 0 on the CPU."""
    if device.type == "cpu":
        return 0
    return int(torch._C._cuda_getCurrentRawStream(device.index))
