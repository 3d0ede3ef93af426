"""The sum of sparse tensors, such as gradients of embeddings."""

from typing import Any

import torch
from torch import Tensor

from tutti.dtypes import SUM
from tutti.errors import UnsupportedError
from tutti.torch._requests import op_of
from tutti.torch._runner import Batch
from tutti.torch._tensors import moved_as


def sparse_all_reduce(tensor: Tensor, reduce_op: Any, size: int) -> Batch:
    """The tensor becomes the sum of all ranks' tensors, coalesced. Ranks gather each other's indices and
    values. CPU only: on a GPU the host would have to wait for the numbers of elements."""
    if tensor.is_cuda or op_of(reduce_op, []) != SUM:
        raise UnsupportedError(
            "sparse tensors are summed, on the CPU: call .to_dense() for other reductions and GPUs"
        )

    def call(raw: Any, stream: int) -> None:
        own = tensor.detach().coalesce()
        values = own.values().contiguous()
        counts = torch.empty(size, dtype=torch.int64)
        count = torch.tensor([values.shape[0]])
        raw.all_gather(count.data_ptr(), counts.data_ptr(), 1, moved_as(count)[1], stream)
        lengths = counts.tolist()
        # Indices are columns: transposed, those of a rank lie together.
        indices = _gather_rows(raw, own.indices().t().contiguous(), lengths, stream).t()
        gathered = torch.sparse_coo_tensor(
            indices, _gather_rows(raw, values, lengths, stream), tensor.shape
        )
        with torch.no_grad():
            tensor.copy_(gathered.coalesce())

    return Batch([call], [tensor])


def _gather_rows(raw: Any, rows: Tensor, lengths: list[int], stream: int) -> Tensor:
    """The rows of all ranks, one rank's after another's."""
    gathered = rows.new_empty((sum(lengths), *rows.shape[1:]))
    if sum(lengths):
        total, dtype = moved_as(gathered)
        counts = [length * (total // sum(lengths)) for length in lengths]
        raw.all_gather_v(rows.data_ptr(), gathered.data_ptr(), counts, dtype, stream)
    return gathered
