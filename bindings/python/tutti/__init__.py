"""Collectives on symmetric memory, on GPUs and on the host: tutti from Python."""

from tutti import _library, dtypes
from tutti._library import library_path
from tutti._structs import CallOptions, ReduceOp
from tutti.arrays import Array, empty
from tutti.collectives import device_counts
from tutti.communicator import Communicator, Counters, UniqueId
from tutti.dtypes import pre_mul_sum, pre_mul_sum_at
from tutti.errors import (
    AbortedError,
    CudaError,
    InternalError,
    InvalidArgumentError,
    MismatchError,
    NcclError,
    PeerFailedError,
    PermissionDeniedError,
    ResourceExhaustedError,
    SystemFailedError,
    TuttiError,
    UnavailableError,
    UnsupportedError,
    WaitTimeoutError,
)
from tutti.groups import group
from tutti.matmuls import MatmulPlan
from tutti.memory import Block, LocalMemory, Pool, SymmetricMemory
from tutti.plan import Plan

__version__: str = _library.library.tutti_version().decode()

__all__ = [
    "AbortedError",
    "Array",
    "Block",
    "CallOptions",
    "Communicator",
    "Counters",
    "CudaError",
    "InternalError",
    "InvalidArgumentError",
    "LocalMemory",
    "MatmulPlan",
    "MismatchError",
    "NcclError",
    "PeerFailedError",
    "PermissionDeniedError",
    "Plan",
    "Pool",
    "ReduceOp",
    "ResourceExhaustedError",
    "SymmetricMemory",
    "SystemFailedError",
    "TuttiError",
    "UnavailableError",
    "UniqueId",
    "UnsupportedError",
    "WaitTimeoutError",
    "device_counts",
    "dtypes",
    "empty",
    "group",
    "library_path",
    "pre_mul_sum",
    "pre_mul_sum_at",
]
