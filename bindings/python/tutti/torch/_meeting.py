"""How the ranks of a process group make a communicator: they meet through the group's store."""

import os
import socket
import time
from typing import Any

from torch._C._distributed_c10d import PrefixStore

import tutti
from tutti.errors import WaitTimeoutError


def _this_host() -> str:
    """Equal for ranks that can meet without a network address."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    return f"{boot}/{os.stat('/proc/self/ns/net').st_ino}/{os.stat('/proc/self/ns/ipc').st_ino}"


def _own_address() -> str:
    """The address of this host towards the one that the launcher names."""
    towards = os.environ.get("MASTER_ADDR") or "192.0.2.1"  # an address for documents
    try:
        found = socket.getaddrinfo(towards, 1, type=socket.SOCK_DGRAM)[0]
        with socket.socket(found[0], socket.SOCK_DGRAM) as probe:
            probe.connect(found[4])
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()


def _get(store: Any, key: str, seconds: float) -> str:
    """What is stored. It asks again and again: a blocking get() would lock the store for all threads."""
    deadline, pause = time.monotonic() + seconds, 0.0005
    while not store.check([key]):
        if time.monotonic() > deadline:
            raise WaitTimeoutError(
                f"another rank has not come to make a communicator within {seconds} s: "
                f"the store has no {key}. Have all ranks of the group called the same operation?"
            )
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    return bytes(store.get(key)).decode()


class Meeting:
    """Makes communicators of a process group or of two of its ranks."""

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self._store = PrefixStore("tutti/", store)
        self._rank, self._size = rank, size
        if size > 1:
            self._store.set(f"host/{rank}", _this_host())

    def make(self, name: str, ranks: list[int], seconds: float, **options: Any) -> Any:
        """A communicator of `ranks`, which all call this with the same `name`, once in the life of the
        store. Waits at most `seconds`."""
        if len(ranks) == 1:
            return tutti.Communicator(tutti.UniqueId.create(), 0, 1, timeout=seconds, **options)
        place = ranks.index(self._rank)
        if place == 0:
            self._store.set(f"id/{name}", str(self._new_id(ranks, seconds)))
        text = _get(self._store, f"id/{name}", seconds)
        unique = tutti.UniqueId.from_text(text)
        return tutti.Communicator(unique, place, len(ranks), timeout=seconds, **options)

    def _new_id(self, ranks: list[int], seconds: float) -> Any:
        hosts = {_get(self._store, f"host/{rank}", seconds) for rank in ranks}
        if len(hosts) == 1:
            return tutti.UniqueId.create()
        return tutti.UniqueId.create_tcp(_own_address())
