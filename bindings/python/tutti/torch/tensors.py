"""Tensors over memory of tutti: of this rank, or of a peer."""

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import torch


class _OnDevice:
    """Device memory in the form that torch.as_tensor() takes without a copy."""

    def __init__(self, address: int, size: int, owner: Any) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 2,
        }


def tensor_at(
    address: int, shape: Sequence[int], dtype: torch.dtype, device: torch.device, owner: Any
) -> torch.Tensor:
    """A contiguous tensor whose elements are at `address`. It keeps `owner` as long as it lives, and
    so do its views."""
    size = math.prod(shape) * dtype.itemsize
    if size == 0:
        return torch.empty(tuple(shape), dtype=dtype, device=device)
    if device.type == "cuda":
        flat = torch.as_tensor(_OnDevice(address, size, owner), device=device).view(dtype)
    else:
        memory = (ctypes.c_char * size).from_address(address)
        memory.owner = owner  # type: ignore[attr-defined]
        flat = torch.frombuffer(memory, dtype=dtype)
    return flat.view(tuple(shape))
