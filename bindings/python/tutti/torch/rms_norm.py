"""torch.ops.tutti.all_reduce_residual_rms_norm: what follows a row-parallel matrix product, fused.

    y, residual = torch.ops.tutti.all_reduce_residual_rms_norm(x, residual, weight, group, 1e-6)

    residual_output = all_reduce(input) + residual
    output = residual_output / sqrt(mean(residual_output^2) + epsilon) * weight     (per token)

`input` and `residual` are [..., hidden], `weight` is [hidden]; hidden is a multiple of 8 from 1024
to 16384; fp16, bf16 or fp32, all of one type. `group` is a name of tutti.torch.register(), or of a
process group on the backend "tutti".

- all_reduce_residual_rms_norm(...) returns (output, residual_output).
- all_reduce_residual_rms_norm_(...) writes them to `input` and `residual`.
- all_reduce_residual_rms_norm_out(..., scale, output, residual_output) writes them to these
  tensors. If `output` is fp8, it is the result divided by `scale`.

InvalidArgumentError: shapes or types that do not fit, or tensors that are not contiguous.
"""

from typing import Any

import torch

from tutti.errors import InvalidArgumentError
from tutti.torch._tensors import check_dense, current_stream, number_of
from tutti.torch.groups import get

_of_torch: Any = torch.library  # which has no types
_library = _of_torch.Library("tutti", "FRAGMENT")
_ARGUMENTS = "Tensor weight, str group, float epsilon=1e-6"
_library.define(
    f"all_reduce_residual_rms_norm(Tensor input, Tensor residual, {_ARGUMENTS}) -> (Tensor, Tensor)"
)
_library.define(
    f"all_reduce_residual_rms_norm_(Tensor(a!) input, Tensor(b!) residual, {_ARGUMENTS}) -> ()"
)
_library.define(
    f"all_reduce_residual_rms_norm_out(Tensor input, Tensor residual, {_ARGUMENTS}, "
    "float scale=1.0, *, Tensor(a!) output, Tensor(b!) residual_output) -> ()"
)


def _write(
    input: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    group: str,
    epsilon: float = 1e-6,
    scale: float = 1.0,
    *,
    output: torch.Tensor,
    residual_output: torch.Tensor,
) -> None:
    device = check_dense(input, residual, weight, output, residual_output)
    hidden = weight.numel()
    shapes = {tuple(t.shape) for t in (input, residual, output, residual_output)}
    types = {t.dtype for t in (input, residual, weight, residual_output)}
    if len(shapes) > 1 or weight.dim() != 1 or input.dim() == 0 or input.shape[-1] != hidden:
        raise InvalidArgumentError(
            "input, residual and outputs are [..., hidden] and weight is [hidden], not "
            f"{shapes} and {tuple(weight.shape)}"
        )
    if len(types) > 1:
        raise InvalidArgumentError(f"input, residual and weight have one type, not {types}")
    communicator = get(group, device)
    same = output.dtype == input.dtype
    communicator.raw.all_reduce_residual_rms_norm(
        input.data_ptr(), residual.data_ptr(), weight.data_ptr(), residual_output.data_ptr(),
        output.data_ptr(), input.numel() // hidden, hidden, number_of(input),
        -1 if same else number_of(output), epsilon, scale, current_stream(device),
    )  # fmt: skip


def _new(
    input: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    group: str,
    epsilon: float = 1e-6,
) -> tuple[torch.Tensor, torch.Tensor]:
    output, residual_output = torch.empty_like(input), torch.empty_like(residual)
    _write(input, residual, weight, group, epsilon, output=output, residual_output=residual_output)
    return output, residual_output


def _in_place(
    input: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    group: str,
    epsilon: float = 1e-6,
) -> None:
    _write(input, residual, weight, group, epsilon, output=input, residual_output=residual)


for _device in ("CPU", "CUDA"):
    _library.impl("all_reduce_residual_rms_norm", _new, _device)
    _library.impl("all_reduce_residual_rms_norm_", _in_place, _device)
    _library.impl("all_reduce_residual_rms_norm_out", _write, _device)


def _fake(
    input: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    group: str,
    epsilon: float = 1e-6,
) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(input), torch.empty_like(residual)


def _fake_of_nothing(*_: Any, **__: Any) -> None:
    """Both other variants return nothing."""


_of_torch.register_fake("tutti::all_reduce_residual_rms_norm", _fake, lib=_library)
for _name in ("all_reduce_residual_rms_norm_", "all_reduce_residual_rms_norm_out"):
    _of_torch.register_fake(f"tutti::{_name}", _fake_of_nothing, lib=_library)
