"""Communicators: one rank's membership in a group."""

import atexit
import contextlib
import ctypes
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from tutti import _structs
from tutti._handles import refuse_to_pickle
from tutti._interrupts import interruptible, watch
from tutti._library import library
from tutti._structs import CommunicatorInfo, CommunicatorOptions, Failure, UniqueIdStruct
from tutti.collectives import Collectives
from tutti.errors import InvalidArgumentError, TuttiError, check, error_of
from tutti.matmuls import Matmuls
from tutti.memory import Allocations
from tutti.one_sided import OneSided
from tutti.plan import Plans
from tutti.raw import Raw

_BACKENDS = {"auto": 0, "host": 1, "cuda": 2}
_BACKEND_NAMES = ("auto", "host", "cuda")


class UniqueId:
    """Identifies a group before it exists: where its ranks meet, and the secret that proves
    membership.

    One rank makes it, and sends str(id) to the others, which use from_text(). It can be pickled.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @classmethod
    def create(cls) -> "UniqueId":
        """An id for ranks on this host."""
        made = UniqueIdStruct()
        check(library.tutti_unique_id_create(ctypes.byref(made)))
        return cls(made.text.decode())

    @classmethod
    def create_tcp(cls, host: str, port: int = 0) -> "UniqueId":
        """An id for ranks on several hosts. Rank 0 listens on `host`:`port`; 0: a free port of this
        machine, which must be rank 0's."""
        made = UniqueIdStruct()
        check(library.tutti_unique_id_create_tcp(host.encode(), port, ctypes.byref(made)))
        return cls(made.text.decode())

    @classmethod
    def from_text(cls, text: str) -> "UniqueId":
        """The id whose str() this is."""
        cls(text).struct()
        return cls(text)

    def struct(self) -> UniqueIdStruct:
        """The id for the C API. InvalidArgumentError if it is none."""
        made = UniqueIdStruct()
        check(library.tutti_unique_id_from_text(self._text.encode(), ctypes.byref(made)))
        return made

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<tutti.UniqueId {self._text[:12]}...>"  # the rest is a secret

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UniqueId) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


@dataclass(frozen=True)
class Counters:
    """What a rank has created since its communicator was created."""

    allocations: int  #: of symmetric memory
    registrations: int  #: of the user's memory
    exchanges: int  #: messages between all ranks through the bootstrap


def milliseconds(seconds: float | None) -> int:
    """For the C API; 0: the default. InvalidArgumentError unless above 0."""
    if seconds is None:
        return 0
    if not 0 < seconds < 2**53:
        raise InvalidArgumentError(f"a timeout is a number of seconds above 0, not {seconds}")
    return max(1, round(seconds * 1000))


def _options(
    backend: str, device: int, timeout: float | None, deterministic: bool
) -> CommunicatorOptions:
    if backend not in _BACKENDS:
        raise InvalidArgumentError(f'unknown backend "{backend}": it is auto, host or cuda')
    return CommunicatorOptions(
        backend=_BACKENDS[backend],
        device=device,
        deterministic=deterministic,
        timeout_ms=milliseconds(timeout),
    )


def _destroy(handle: int) -> None:
    library.tutti_communicator_destroy(handle)


class Communicator(Collectives, Matmuls, OneSided, Allocations, Plans):
    """One rank of a group. Its collectives take arrays; `raw` has the same ones for addresses.

    Creation waits for all ranks, at most for the timeout. Any thread may use a communicator, one
    collective at a time. It belongs to the process that created it. Close it, or use it as a
    context manager. At the end of the program those that are still open are closed, or aborted if
    an exception ended it.
    """

    raw: Raw
    rank: int  #: this rank, from 0
    size: int  #: the number of ranks
    backend: str  #: "host" or "cuda"
    device: int  #: the CUDA ordinal; -1 on the host

    def __init__(
        self,
        id: UniqueId | str,
        rank: int,
        size: int,
        *,
        backend: str = "auto",
        device: int = -1,
        timeout: float | None = None,
        deterministic: bool = False,
    ) -> None:
        """Collective.

        `backend`: "auto" (CUDA if every rank has a GPU of its own), "host" or "cuda". `device`: the
        CUDA ordinal; -1: by the local rank. `timeout`: of every wait, in seconds; None:
        TUTTI_TIMEOUT_MS. `deterministic`: only algorithms that reduce in the order of ranks.

        WaitTimeoutError names the missing ranks, MismatchError what differs; UnsupportedError and
        UnavailableError say why the backend cannot run here.
        """
        options = _options(backend, device, timeout, deterministic)
        unique = (id if isinstance(id, UniqueId) else UniqueId(id)).struct()

        def create() -> int:
            handle = ctypes.c_void_p()
            check(
                library.tutti_communicator_create(
                    ctypes.byref(unique), rank, size, ctypes.byref(options), ctypes.byref(handle)
                )
            )
            return handle.value or 0

        self._open(interruptible(create, _destroy))

    @classmethod
    def from_environment(
        cls,
        *,
        backend: str = "auto",
        device: int = -1,
        timeout: float | None = None,
        deterministic: bool = False,
    ) -> "Communicator":
        """Collective. Rank, size and meeting point come from the environment that torchrun, Open
        MPI, SLURM, PMI or `tutti run` sets."""
        options = _options(backend, device, timeout, deterministic)

        def create() -> int:
            handle = ctypes.c_void_p()
            check(
                library.tutti_communicator_create_from_environment(
                    ctypes.byref(options), ctypes.byref(handle)
                )
            )
            return handle.value or 0

        return cls._of(interruptible(create, _destroy))

    @classmethod
    def in_process(
        cls,
        size: int,
        devices: Sequence[int] | None = None,
        *,
        backend: str = "auto",
        timeout: float | None = None,
        deterministic: bool = False,
    ) -> "list[Communicator]":
        """All `size` ranks in this process; element r is rank r, for a thread of its own. On CUDA
        rank r uses devices[r], or device r modulo the number of GPUs."""
        if devices is not None and len(devices) != size:
            raise InvalidArgumentError(f"`devices` has {len(devices)} elements for {size} ranks")
        options = _options(backend, -1, timeout, deterministic)
        chosen = None if devices is None else (ctypes.c_int * size)(*devices)
        handles = (ctypes.c_void_p * max(size, 0))()
        check(
            library.tutti_communicator_create_in_process(
                chosen, size, ctypes.byref(options), handles
            )
        )
        return [cls._of(handle or 0) for handle in handles]

    @classmethod
    def _of(cls, handle: int) -> "Communicator":
        made = cls.__new__(cls)
        made._open(handle)
        return made

    def _open(self, handle: int) -> None:
        info = CommunicatorInfo()
        check(library.tutti_communicator_info(handle, ctypes.byref(info)))
        self.rank, self.size, self.device = info.rank, info.ranks, info.device
        self.backend = _BACKEND_NAMES[info.backend]
        self._closing = threading.Lock()  # no thread may close a handle that another one uses
        self.raw = Raw(handle)
        _open.add(self)
        watch(_abort_all)

    @property
    def closed(self) -> bool:
        """Whether close() was called, or this process is the child of a fork."""
        return not self.raw.handle

    def close(self) -> None:
        """Waits for this rank's operations, at most for the timeout; then it has left the group.

        Graph replays must have ended, and no thread may be in a call: abort() ends such calls.
        Memory may be freed later. Does nothing the second time.
        """
        with self._closing:
            handle = self.raw.release()
        if handle:
            check(library.tutti_communicator_destroy(handle))

    def abort(self, reason: str = "") -> None:
        """Ends all operations on every rank with an AbortedError. From any thread, also while
        another one waits in a call. Does nothing once the communicator is closed."""
        with self._closing:
            if self.raw.handle:
                check(library.tutti_communicator_abort(self.raw.handle, reason.encode()))

    @property
    def failure(self) -> TuttiError | None:
        """The first failure that ended the communicator, or None. From any thread; never blocks."""
        failure = Failure()
        with self._closing:
            self.raw.check_open()
            check(library.tutti_communicator_failure(self.raw.handle, ctypes.byref(failure)))
        if not failure.code:
            return None
        error = error_of(failure)
        error.ends_communicator = True  # whatever its class says
        return error

    def status(self) -> None:
        """Raises the failure, if there is one. On CUDA an operation can fail after its call."""
        if (failure := self.failure) is not None:
            raise failure

    def set_timeout(self, seconds: float) -> None:
        """Changes the timeout of this rank's waits, also of those in progress, but for setup that is
        in progress (allocation, split, the first operation). From any thread."""
        with self._closing:
            self.raw.check_open()
            check(library.tutti_communicator_set_timeout(self.raw.handle, milliseconds(seconds)))

    def split(self, color: int | None, key: int = 0) -> "Communicator | None":
        """Collective. Ranks with the same color form a new group, ordered by (key, rank). A rank
        whose color is None or negative takes part in the call and gets None."""
        part = ctypes.c_void_p()
        color = -1 if color is None else color
        if library.tutti_communicator_split(self.raw.handle, color, key, ctypes.byref(part)):
            self.raw.fail()
        return Communicator._of(part.value) if part.value else None

    def shrink(self, within: float | None = None) -> "tuple[Communicator, list[int]]":
        """A new communicator of the ranks that are left, and the ranks that are missing, ascending.

        Typically after a failure. Every rank that can go on calls it; ranks that do not within
        `within` seconds (None: the timeout) are missing. This communicator stays open: close both.
        PeerFailedError: the others have gone on without this rank.
        """
        self.raw.check_open()
        handle, limit = self.raw.handle, milliseconds(within)
        missing, count = (ctypes.c_int * self.size)(), ctypes.c_int()

        def shrink() -> int:
            left = ctypes.c_void_p()
            check(
                library.tutti_communicator_shrink(
                    handle, limit, ctypes.byref(left), missing, ctypes.byref(count)
                )
            )
            return left.value or 0

        return Communicator._of(interruptible(shrink, _destroy)), list(missing[: count.value])

    def prepare(self, nccl: bool = False) -> None:
        """Collective. Allocates what the first operation would allocate otherwise; `nccl`: also
        what NCCL's algorithms cannot create inside a capture (UnavailableError without NCCL)."""
        function = library.tutti_prepare_nccl if nccl else library.tutti_communicator_prepare
        if function(self.raw.handle):
            self.raw.fail()

    @contextlib.contextmanager
    def capture(self) -> "Iterator[Communicator]":
        """Collective at both ends. Around the capture of CUDA graphs: buffers of captured
        operations that are not symmetric are registered at the end, so that replays are
        zero-copy."""
        if library.tutti_start_capture(self.raw.handle):
            self.raw.fail()
        try:
            yield self
        except BaseException:
            library.tutti_finish_capture(self.raw.handle)  # the other ranks wait for this one
            raise
        if library.tutti_finish_capture(self.raw.handle):
            self.raw.fail()

    def counters(self) -> Counters:
        """What this rank has created so far."""
        counters = _structs.Counters()
        if library.tutti_communicator_counters(self.raw.handle, ctypes.byref(counters)):
            self.raw.fail()
        return Counters(counters.allocations, counters.registrations, counters.exchanges)

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Closes it. After an exception it is aborted first, so that the other ranks need not
        wait."""
        if error is not None and not self.closed:
            self.abort(f"{type(error).__name__}: {error}")
        try:
            self.close()
        except TuttiError:
            if error is None:
                raise

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        refuse_to_pickle("communicator")

    def __del__(self) -> None:
        if getattr(self, "raw", None) is not None and not self.closed:
            warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=2, source=self)
            with contextlib.suppress(TuttiError):
                self.close()

    def __repr__(self) -> str:
        state = " closed" if self.closed else ""
        place = self.backend if self.device < 0 else f"cuda:{self.device}"
        return f"<tutti.Communicator rank {self.rank} of {self.size} on {place}{state}>"


_open: weakref.WeakSet[Communicator] = weakref.WeakSet()


def _abort_all() -> None:
    for communicator in list(_open):
        with contextlib.suppress(TuttiError):
            communicator.abort("interrupted: SIGINT (Ctrl-C) during a wait")


@atexit.register
def _close_all() -> None:
    """Leaves all groups in order, while the interpreter still works. After an exception that nobody
    caught it aborts them instead: the other ranks hear the reason at once."""
    uncaught = getattr(sys, "last_type", None)
    for communicator in list(_open):
        with contextlib.suppress(TuttiError):
            if uncaught is not None:
                communicator.abort(f"the program ended by {uncaught.__name__}")
            communicator.close()
