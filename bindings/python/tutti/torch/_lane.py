"""Runs the calls of one communicator one after another, in the caller's thread or its own."""

import queue
import threading
from collections.abc import Callable


class Lane:
    """An order of calls. A call that nobody waits for runs in the lane's thread, which is made for the
    first such call. Calls run in the order in which they came, whoever runs them. Only a call that comes
    from the lane's thread, because the result of another one has led to it, runs at once: before those
    that came later than that one, on every rank."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._waiting = 0  # posted and not ended
        self._idle = threading.Condition()
        self._entry = threading.Lock()  # one caller decides at a time
        self._thread: threading.Thread | None = None

    def post(self, call: Callable[[], None]) -> None:
        """Runs `call`, which raises nothing, in the lane's thread."""
        if threading.current_thread() is self._thread:
            call()
            return
        with self._entry:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()
            with self._idle:
                self._waiting += 1
            self._calls.put(call)

    def run(self, call: Callable[[], None]) -> None:
        """Runs `call` here, after those that were posted before."""
        if threading.current_thread() is self._thread:
            call()
            return
        with self._entry:
            self.drain()
            call()

    def drain(self) -> None:
        """Waits until all posted calls have ended."""
        if self._waiting:
            with self._idle:
                self._idle.wait_for(lambda: not self._waiting)

    def close(self) -> None:
        """Ends the thread after the posted calls."""
        with self._entry:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._calls.put(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            finally:
                with self._idle:
                    self._waiting -= 1
                    if not self._waiting:
                        self._idle.notify_all()
