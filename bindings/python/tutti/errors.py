"""Failures: one exception for each code of the C API, with the fields of tutti_failure_t."""

import ctypes
from typing import Any, NoReturn

from tutti._library import library
from tutti._structs import Failure


class TuttiError(Exception):
    """A failure of the library. Each code has a class of its own.

    Ranks are -1, numbers 0 and `operation` is empty where they are not known. Failures of this
    package itself, for example a list where an array is needed, have the same classes.
    """

    #: The number of the code, and of tutti_status_t.
    code: int = -1
    #: Whether the communicator has ended: each later call of it fails, too.
    ends_communicator: bool = False

    def __init__(self, text: str, **fields: Any) -> None:
        super().__init__(text)
        #: What happened, and what to do about it.
        self.text = text
        #: "all_reduce/two_shot #42 (1048576 x bf16, sum)"
        self.operation: str = fields.get("operation", "")
        #: The number of the operation in its communicator, from 1.
        self.sequence: int = fields.get("sequence", 0)
        #: The rank whose wait failed, or was ended by the failure.
        self.waiting_rank: int = fields.get("waiting_rank", -1)
        #: The rank that it waited for.
        self.missing_rank: int = fields.get("missing_rank", -1)
        #: The rank that told this one of the failure, or whose process ended.
        self.failed_rank: int = fields.get("failed_rank", -1)
        #: The flag, signal, signature or count that the wait expected.
        self.expected: int = fields.get("expected", 0)
        #: What it saw instead.
        self.seen: int = fields.get("seen", 0)

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors, unlike communicators, may go to other processes."""
        fields = {name: value for name, value in vars(self).items() if name != "text"}
        return _rebuilt, (type(self), self.text, fields)


def _rebuilt(kind: type[TuttiError], text: str, fields: dict[str, Any]) -> TuttiError:
    error = kind(text, **fields)
    vars(error).update(fields)
    return error


class InvalidArgumentError(TuttiError, ValueError):
    """Invalid arguments, registered memory that was freed among them: nothing was done, the
    communicator stays usable. As Communicator.failure, what a replayed graph did wrong."""

    code = 1


class UnsupportedError(TuttiError):
    """Valid, but this machine, build or algorithm cannot do it."""

    code = 2


class UnavailableError(TuttiError):
    """A library, device or peer is missing."""

    code = 3


class WaitTimeoutError(TuttiError):
    """A timeout passed."""

    code = 4
    ends_communicator = True


class PeerFailedError(TuttiError):
    """A peer's process ended or failed."""

    code = 5
    ends_communicator = True


class MismatchError(TuttiError):
    """Ranks disagree about an operation."""

    code = 6
    ends_communicator = True


class AbortedError(TuttiError):
    """Aborted here or on a peer."""

    code = 7
    ends_communicator = True


class ResourceExhaustedError(TuttiError):
    """Out of memory, descriptors, shared memory or channels."""

    code = 8


class PermissionDeniedError(TuttiError):
    """A peer did not prove that it belongs to the group."""

    code = 9


class SystemFailedError(TuttiError):
    """The operating system failed."""

    code = 10


class CudaError(TuttiError):
    """CUDA failed."""

    code = 11
    ends_communicator = True


class NcclError(TuttiError):
    """NCCL failed."""

    code = 12
    ends_communicator = True


class InternalError(TuttiError):
    """A defect in tutti."""

    code = 13
    ends_communicator = True


#: The class of each code.
BY_CODE: dict[int, type[TuttiError]] = {
    kind.code: kind
    for kind in (
        InvalidArgumentError,
        UnsupportedError,
        UnavailableError,
        WaitTimeoutError,
        PeerFailedError,
        MismatchError,
        AbortedError,
        ResourceExhaustedError,
        PermissionDeniedError,
        SystemFailedError,
        CudaError,
        NcclError,
        InternalError,
    )
}


def error_of(failure: Failure) -> TuttiError:
    """The exception that says what a tutti_failure_t says."""
    kind = BY_CODE.get(failure.code, TuttiError)
    error = kind(
        (failure.text or b"").decode("utf-8", "replace"),
        operation=(failure.operation or b"").decode("utf-8", "replace"),
        sequence=failure.sequence,
        waiting_rank=failure.waiting_rank,
        missing_rank=failure.missing_rank,
        failed_rank=failure.failed_rank,
        expected=failure.expected,
        seen=failure.seen,
    )
    error.code = failure.code
    return error


def raise_last() -> NoReturn:
    """Raises the latest failure of this thread."""
    failure = Failure()
    library.tutti_last_failure(ctypes.byref(failure))
    raise error_of(failure)


def check(code: int) -> None:
    """Raises the failure of a call that returned `code`, unless that is 0."""
    if code:
        raise_last()
