"""Lets several ranks share one GPU in tests that give each rank the GPU of its own number.

A test sees as many GPUs as there are ranks. Each index of a GPU that it gives torch becomes 0.
"""

import os
import sys
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

GPU = torch.device("cuda", 0)


def on_the_gpu(value: Any, may_be_index: bool) -> Any:
    """The GPU where `value` names one, as device, text or index; otherwise `value`."""
    if isinstance(value, torch.device):
        return GPU if value.type == "cuda" else value
    if isinstance(value, str) and value.startswith("cuda"):
        return GPU
    return GPU if may_be_index and type(value) is int else value


class OnTheGpu(TorchFunctionMode):
    """Devices, and tensors that are made on a GPU or sent to one."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function is torch.device:
            return on_the_gpu(function(*args, **(kwargs or {})), False)
        sends = function in (torch.Tensor.cuda, torch.Tensor.to)
        placed = (on_the_gpu(value, sends) for value in args)
        named = {name: on_the_gpu(value, name == "device") for name, value in (kwargs or {}).items()}
        return function(*placed, **named)


def first_of(index_of: Any) -> Any:
    """One of torch's functions that turn what names a GPU into its index: every GPU is the first."""

    def index(*arguments: Any, **options: Any) -> Any:
        return min(index_of(*arguments, **options), 0)  # negative: no GPU

    return index


def share(ranks: int) -> None:
    """From now on this process sees `ranks` GPUs, which are one."""
    os.environ["TUTTI_SHARE_GPUS"] = "1"
    torch.cuda.device_count = lambda: ranks
    name = "_get_device_index"
    ours = {made: first_of(made) for made in (getattr(torch._utils, name), getattr(torch.cuda._utils, name))}
    for module in [module for module in sys.modules.values() if getattr(module, "__name__", "").startswith("torch")]:
        made = vars(module).get(name)
        if made in ours:  # each module that has imported one of them
            setattr(module, name, ours[made])
    OnTheGpu().__enter__()
