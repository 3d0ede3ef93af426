"""One-sided operations: copies into and out of a peer's symmetric memory, and signals.

Only the calling rank takes part. Before a rank reads what a peer has put, it waits for a signal
that the peer sent after the put.
"""

import ctypes
from typing import TYPE_CHECKING, Any

from tutti import dtypes
from tutti._library import library
from tutti._structs import DevicePeers
from tutti.buffers import Buffer, read, stream_number
from tutti.errors import InvalidArgumentError
from tutti.groups import current

if TYPE_CHECKING:
    from tutti.memory import SymmetricMemory
    from tutti.raw import Raw

_MOVERS = {"auto": 0, "kernel": 1, "copy_engine": 2}


def _mover(name: str) -> int:
    if name not in _MOVERS:
        raise InvalidArgumentError(f'unknown mover "{name}": it is auto, kernel or copy_engine')
    return _MOVERS[name]


class OneSided:
    """The one-sided operations of a communicator. `mover`: what copies on CUDA: "auto", "kernel" or
    "copy_engine". Channels are numbers from 0 to 63, from each rank to each rank."""

    raw: "Raw"
    device: int

    def put(
        self, source: Any, target: Any, peer: int, *, stream: Any = None, mover: str = "auto"
    ) -> None:
        """Copies `source` into the memory of `peer` that corresponds to `target`, an array in
        symmetric memory of this rank, of the same type and size."""
        found, place = self._pair("put", source, target)
        number = self._number(stream, source)
        self.raw.put(found[0], place[0], found[1], found[2], peer, number, _mover(mover))

    def put_signal(
        self, source: Any, target: Any, peer: int, channel: int, *, stream: Any = None,
        mover: str = "auto",
    ) -> None:  # fmt: skip
        """put(), and then a signal to `peer` on `channel`, also if the arrays are empty."""
        found, place = self._pair("put_signal", source, target)
        number = self._number(stream, source)
        self.raw.put_signal(
            found[0], place[0], found[1], found[2], peer, channel, number, _mover(mover)
        )

    def get(
        self, source: Any, target: Any, peer: int, *, stream: Any = None, mover: str = "auto"
    ) -> Any:
        """Copies the memory of `peer` that corresponds to `source`, an array in symmetric memory of
        this rank, into `target`, which it returns."""
        place, found = self._pair("get", source, target)
        number = self._number(stream, target)
        self.raw.get(place[0], found[0], found[1], found[2], peer, number, _mover(mover))
        return target

    def signal(self, peer: int, channel: int, *, stream: Any = None) -> None:
        """Sends one signal to `peer`, after all earlier work of the stream."""
        self.raw.signal(peer, channel, self._number(stream, None))

    def wait_signal(
        self, peer: int, channel: int, times: int = 1, *, stream: Any = None,
        timeout: float | None = None,
    ) -> None:  # fmt: skip
        """Waits until `times` further signals from `peer` arrive on `channel`, and consumes them.
        On CUDA it is the stream that waits. `timeout` in seconds; None: the communicator's."""
        limit = 0 if timeout is None else max(1, round(timeout * 1000))
        self.raw.wait_signal(peer, channel, times, self._number(stream, None), limit)

    def device_peers(self, memory: "SymmetricMemory") -> DevicePeers:
        """What your own kernels need to access `memory` of all ranks, and signals: the parameter of
        a kernel that uses tutti/device/peers.hpp. Valid as long as communicator and memory are."""
        peers = DevicePeers()
        if library.tutti_device_peers(self.raw.handle, memory.handle, ctypes.byref(peers)):
            self.raw.fail()
        return peers

    def _number(self, stream: Any, array: Any) -> int:
        return 0 if self.device == -1 else stream_number(stream, array, self.device)

    def _pair(self, name: str, source: Any, target: Any) -> tuple[Buffer, Buffer]:
        first, second = read(source), read(target, True)
        for each in (first, second):
            self._check_device(each[3])
        if first[1:3] != second[1:3]:
            texts = [f"{each[1]} elements of {dtypes.NAMES[each[2]]}" for each in (first, second)]
            raise InvalidArgumentError(f"{name}: the source has {texts[0]}, the target {texts[1]}")
        if current.depth:
            current.kept += (first, second)
        return first, second

    def _check_device(self, device: int) -> None:
        raise NotImplementedError
