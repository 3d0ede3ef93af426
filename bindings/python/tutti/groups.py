"""Groups of calls: several operations in one submission."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from tutti._library import library
from tutti.errors import check


class _Group(threading.local):
    """The group of a thread: how deep it is nested, and the arrays that its operations use."""

    depth = 0

    def __init__(self) -> None:
        self.kept: list[Any] = []


current = _Group()


@contextlib.contextmanager
def group() -> Iterator[None]:
    """Operations of this thread within the block are recorded, and submitted together at its end.

    Groups nest; the outermost one submits. Messages of a group run concurrently, so two ranks that
    send to each other put send() and recv() into one. Arrays that a group uses are kept until its
    end, and outputs are valid after it. The first failure is raised, after all operations were
    tried; its communicator's `failure` has the ranks. If the block raises, what was recorded is
    still submitted, since other ranks may wait for it, and the exception of the block goes on.
    """
    check(library.tutti_group_start())
    current.depth += 1
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):
            _end()
        raise
    _end()


def _end() -> None:
    current.depth -= 1
    try:
        check(library.tutti_group_end())
    finally:
        if current.depth == 0:
            current.kept.clear()
