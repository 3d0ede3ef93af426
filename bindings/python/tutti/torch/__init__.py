"""tutti for torch: the backend "tutti" of torch.distributed, and operators torch.ops.tutti.*."""

from tutti.torch.c10d import ProcessGroup, register_backend

register_backend()

__all__ = ["ProcessGroup"]
