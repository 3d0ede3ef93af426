"""Ctrl-C during a wait.

Python runs the handler of SIGINT in the main thread once that returns from C, so by itself a rank
that waits for another one would not see it before its deadline. Two things end such a wait:

- Calls that create a communicator run in a helper thread (interruptible()), and the main thread
  waits for that.
- For all other calls a thread listens to signal.set_wakeup_fd(). If the main thread is in a call of
  this package a moment after SIGINT, its communicators are aborted, the call returns, and Python
  raises KeyboardInterrupt. This costs nothing until a signal comes.

The second one is left out if the program has a handler of its own for SIGINT, or uses the wakeup
descriptor itself, as asyncio does while it has handlers of signals: then waits end at their
deadline.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

_PACKAGE = str(Path(__file__).resolve().parent)
_GRACE_S = 0.2  # how long a call may last after SIGINT before it counts as a wait


class _Watcher:
    """The thread that hears of SIGINT, and the descriptors that it hears by."""

    def __init__(self) -> None:
        self.sockets: tuple[socket.socket, socket.socket] | None = None
        self.abort_all: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Called in the main thread, whose right alone it is to set the descriptor."""
        reader, writer = socket.socketpair()
        writer.setblocking(False)
        previous = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        if previous != -1:  # the program's own, which stays
            signal.set_wakeup_fd(previous)
            reader.close()
            writer.close()
            return
        self.sockets = reader, writer
        threading.Thread(
            target=self.listen, args=(reader,), daemon=True, name="tutti-sigint"
        ).start()

    def listen(self, reader: socket.socket) -> None:
        while received := reader.recv(1):
            if received[0] == signal.SIGINT and _main_is_in_a_wait():
                self.abort_all()

    def forget(self) -> None:
        """In the child of a fork, which must not write into the parent's descriptor."""
        if self.sockets is not None:
            previous = signal.set_wakeup_fd(-1)
            if previous != self.sockets[1].fileno():
                signal.set_wakeup_fd(previous)
            for each in self.sockets:
                each.close()
            self.sockets = None


def _frame_of_main() -> FrameType | None:
    """What the main thread runs now."""
    return sys._current_frames().get(threading.main_thread().ident or 0)


def _main_is_in_a_wait() -> bool:
    """Whether it has been in one call of this package all the time."""
    before = _frame_of_main()
    time.sleep(_GRACE_S)
    return (
        before is not None
        and _frame_of_main() is before
        and before.f_code.co_filename.startswith(_PACKAGE)
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )


_watcher = _Watcher()
os.register_at_fork(after_in_child=_watcher.forget)


def watch(abort_all: Callable[[], None]) -> None:
    """From here on Ctrl-C ends waits of the main thread by `abort_all`."""
    _watcher.abort_all = abort_all
    if _watcher.sockets is None and threading.current_thread() is threading.main_thread():
        _watcher.start()


def interruptible(function: Callable[[], T], undo: Callable[[T], None]) -> T:
    """Runs a function that waits so that Ctrl-C ends the wait of the main thread.

    The function goes on in its thread until its own deadline. If it succeeds after the
    interruption, `undo` gets what it has returned.
    """
    if threading.current_thread() is not threading.main_thread():
        return function()
    results: list[T] = []
    errors: list[BaseException] = []
    done, lock, abandoned = threading.Event(), threading.Lock(), threading.Event()

    def work() -> None:
        try:
            result = function()
        except BaseException as error:
            errors.append(error)
        else:
            with lock:
                if not abandoned.is_set():
                    results.append(result)
            if abandoned.is_set() and not results:
                undo(result)
        done.set()

    threading.Thread(target=work, daemon=True, name="tutti-create").start()
    try:
        done.wait()
    except BaseException:
        with lock:
            abandoned.set()
        for result in results:
            undo(result)
        raise
    if errors:
        raise errors[0]
    return results[0]
