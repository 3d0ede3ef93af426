"""Which communicator a name means. The operators torch.ops.tutti.* take names, since compiled programs
hold no objects.

    tutti.torch.register("tp", communicator)           # one of tutti.Communicator
    name = tutti.torch.register_process_group(group)   # one of torch.distributed, on any backend
    torch.ops.tutti.all_reduce(x, "sum", "tp")

A name means one communicator for tensors on the CPU, one for tensors on a GPU, or both, of the same
ranks. A process group whose backend is "tutti" has its own name without being registered.
"""

import weakref
from typing import Any

import torch
import torch.distributed as dist

from tutti.errors import InvalidArgumentError, UnavailableError
from tutti.torch._meeting import Meeting

_DEVICES = {"host": "cpu", "cuda": "cuda"}


class _Raws(dict[str, Any]):
    """The raw functions of each name's communicator, for tensors on one type of device. A name that is
    missed is looked for among torch's process groups."""

    def __init__(self, device_type: str) -> None:
        super().__init__()
        self.device_type = device_type

    def __missing__(self, name: str) -> Any:
        raw = _from_torch(name, self.device_type).raw
        self[name] = raw
        return raw


_communicators: dict[tuple[str, str], Any] = {}
_sizes: dict[str, int] = {}
#: What register_process_group() was called for.
_groups: dict[str, "weakref.ref[Any]"] = {}
#: By name; what operators on the CPU and on CUDA use.
cpu_raws, cuda_raws = _Raws("cpu"), _Raws("cuda")


def register(name: str, *communicators: Any) -> None:
    """From now on `name` means these communicators: one on the host, one on CUDA, or one of each.

    InvalidArgumentError if the name already means others, or the communicators differ in rank or size.
    """
    for communicator in communicators:
        device = _DEVICES[communicator.backend]
        for (other, place), known in list(_communicators.items()):
            if other != name or known is communicator or known.closed:
                continue
            if place == device:
                raise InvalidArgumentError(
                    f'the name "{name}" already means {known!r}: unregister() it, or use another '
                    "name"
                )
            if (known.rank, known.size) != (communicator.rank, communicator.size):
                raise InvalidArgumentError(
                    f'"{name}" would mean {known!r} and {communicator!r}, which are not the same '
                    "ranks"
                )
        _sizes[name] = communicator.size
        _communicators[name, device] = communicator
        (cuda_raws if device == "cuda" else cpu_raws)[name] = communicator.raw


def unregister(name: str) -> None:
    """Forgets a name. Its communicators stay open."""
    for device in ("cpu", "cuda"):
        _communicators.pop((name, device), None)
    cpu_raws.pop(name, None)
    cuda_raws.pop(name, None)
    _sizes.pop(name, None)
    _groups.pop(name, None)


def get(name: str, device: "torch.device | str" = "cpu") -> Any:
    """The communicator that `name` means for tensors on `device`. InvalidArgumentError if none."""
    device_type = torch.device(device).type
    found = _communicators.get((name, device_type))
    return found if found is not None else _from_torch(name, device_type)


def size_of(name: str) -> int:
    """The number of ranks. It makes nothing, so shapes can be derived while a program is compiled."""
    size = _sizes.get(name)
    if size is None:
        group = _torch_group(name)
        if group is None:
            raise InvalidArgumentError(f'no group is called "{name}": call tutti.torch.register()')
        size = int(group.size())
    return size


def register_process_group(group: Any = None, device: "torch.device | str | None" = None) -> str:
    """Collective over the group. Makes a communicator of its ranks and registers it; returns the name,
    which is the group's in torch. `group` None: the default group.

    `device`: of the tensors; None: the CPU, and on a machine with GPUs torch's current device too.
    Does nothing where the group's backend is "tutti", or for a device for which this was called. The
    communicators, get(name), outlive the group: close them, or leave it to the end of the process.
    """
    from tutti.torch.c10d import ProcessGroup

    group = dist.group.WORLD if group is None else group
    if group is None:
        raise UnavailableError("call torch.distributed.init_process_group() first")
    name: str = group.group_name
    if isinstance(group, ProcessGroup):
        return name
    made_for = _groups.get(name)
    if made_for is not None and made_for() is not group:  # that group was destroyed
        unregister(name)
    _groups[name] = weakref.ref(group)
    devices = [torch.device("cpu")] if device is None else [torch.device(device)]
    if device is None and torch.cuda.is_available():
        devices.append(torch.device("cuda", torch.cuda.current_device()))
    meeting = None
    for place in devices:
        if (name, place.type) in _communicators:
            continue
        meeting = meeting or Meeting(_store_of(group), group.rank(), group.size())
        where: dict[str, Any] = {"backend": "host"}
        if place.type == "cuda":
            where = {"backend": "cuda", "device": place.index or 0}
        ranks = list(range(group.size()))
        register(name, meeting.make(f"{place.type} ops", ranks, _SECONDS, **where))
    return name


_SECONDS = 600.0


def _store_of(group: Any) -> Any:
    from torch.distributed import distributed_c10d

    return distributed_c10d._get_process_group_store(group)


def _torch_group(name: str) -> Any:
    """torch's process group of that name, or None."""
    from torch.distributed import distributed_c10d

    if not dist.is_initialized():
        return None
    try:
        resolve: Any = vars(distributed_c10d)["_resolve_process_group"]
        return resolve(name)
    except (RuntimeError, ValueError):
        return None


def _from_torch(name: str, device_type: str) -> Any:
    """The communicator of a process group on the backend "tutti"."""
    from tutti.torch.c10d import ProcessGroup

    group = _torch_group(name)
    if isinstance(group, ProcessGroup):
        device = torch.device(device_type)
        if device_type == "cuda":
            device = torch.device("cuda", torch.cuda.current_device())
        communicator = group.communicator(device)
        _communicators[name, device_type] = communicator
        return communicator
    known = sorted({name for name, _ in _communicators})
    raise InvalidArgumentError(
        f'no communicator for tensors on {device_type} is called "{name}": call '
        f"tutti.torch.register(). Known names: {', '.join(known) or 'none'}"
    )
