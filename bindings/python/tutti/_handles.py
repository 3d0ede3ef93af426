"""Handles of the C API, and when they may not be used: after closing, after a fork, in pickles."""

import os
import weakref
from typing import Any, NoReturn

from tutti.errors import InvalidArgumentError, UnsupportedError, raise_last


class Handle:
    """What the C API refers to by a handle: 0 once it is closed."""

    __slots__ = ("__weakref__", "closed_because", "handle")

    #: What it is, in texts.
    what = "handle"

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.closed_because = "it has been closed"
        _open.add(self)

    def fail(self) -> NoReturn:
        """Raises why the latest call of this thread has failed."""
        self.check_open()
        raise_last()

    def check_open(self) -> None:
        """InvalidArgumentError if it is closed."""
        if not self.handle:
            raise InvalidArgumentError(f"this {self.what} cannot be used: {self.closed_because}")

    def release(self) -> int:
        """The handle, which is closed for all others from now on."""
        handle, self.handle = self.handle, 0
        return handle

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        refuse_to_pickle(self.what)


_open: weakref.WeakSet[Handle] = weakref.WeakSet()


def refuse_to_pickle(what: str) -> NoReturn:
    """UnsupportedError: what belongs to one process cannot be copied into another."""
    raise UnsupportedError(
        f"a {what} cannot be pickled or copied: it belongs to this process. Send str(UniqueId) to "
        "the other process and create a Communicator there"
    )


def _forked() -> None:
    """In the child of a fork: the sockets, threads and mappings behind each handle are the
    parent's."""
    for handle in list(_open):
        handle.handle = 0
        handle.closed_because = (
            "it was made before this process was forked, and belongs to the parent. Create a "
            "communicator in the child, or start processes with the method `spawn`"
        )


os.register_at_fork(after_in_child=_forked)
