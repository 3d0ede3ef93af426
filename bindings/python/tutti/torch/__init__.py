"""tutti for torch: the backend "tutti" of torch.distributed (c10d), and the operators
torch.ops.tutti.* (ops, rms_norm), which take the name of a group (groups)."""

from tutti.torch import ops, rms_norm
from tutti.torch.c10d import ProcessGroup, register_backend
from tutti.torch.groups import get, register, register_process_group, unregister

register_backend()

__all__ = [
    "ProcessGroup",
    "get",
    "ops",
    "register",
    "register_process_group",
    "rms_norm",
    "unregister",
]
