"""Tensors over memory of tutti: of this rank, or of a peer."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

from tutti import dlpack, dtypes


def tensor_at(
    address: int, shape: Sequence[int], dtype: torch.dtype, device: torch.device, owner: Any
) -> torch.Tensor:
    """A contiguous tensor whose elements are at `address`. It keeps `owner` as long as it lives,
    and so do its views.

    DLPack says which device the tensor is on. The CUDA array interface would leave that to the
    driver, which names a peer's GPU for a peer's memory.
    """
    size = math.prod(shape) * dtype.itemsize
    if size == 0:
        return torch.empty(tuple(shape), dtype=dtype, device=device)
    where = (dlpack.CUDA, device.index) if device.type == "cuda" else (dlpack.CPU, 0)
    capsule = dlpack.export(address, (size,), dtypes.UINT8, where, owner, versioned=False)
    flat: torch.Tensor = from_dlpack(capsule)
    return flat.view(dtype).view(tuple(shape))
