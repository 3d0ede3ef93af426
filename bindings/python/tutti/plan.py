"""What a call would run, and why."""

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from tutti import dtypes
from tutti._library import library, text_of
from tutti._structs import PlanStruct, Query, ReduceOp

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tutti.raw import Raw


@dataclass(frozen=True)
class Plan:
    """What a call runs."""

    algorithm: str  #: "all_reduce/two_shot"
    text: str  #: all of it, as one line for people
    #: Bytes of one chunk of a ring, of one part that a copy engine copies, or of one pass of a staged operation; 0: it
    #: is not divided, or as the staging memory allows.
    chunk_bytes: int
    blocks: int  #: of the grid (CUDA); sequential parts (host)
    threads: int  #: per block (CUDA)
    source: str  #: what decided: "call", "override", "user_file", "user_cache", "shipped", ...
    emulated: bool  #: the NVLink switch is emulated
    alone: bool  #: one rank: no kernel runs
    stream_barrier: bool  #: the ranks synchronize by stream memory operations


class Circumstances(TypedDict, total=False):
    """What else a plan depends on."""

    hidden: int  #: of all_reduce_residual_rms_norm
    algorithm: str | None  #: as the option of a call
    symmetric: bool  #: the buffers are symmetric memory; default True
    in_place: bool
    sm_budget: int | None
    counts_on_device: bool  #: v-forms
    captured: bool  #: inside a capture whose buffers will not be registered


def _query(count: int, dtype: Any, op: Any, given: Circumstances) -> Query:
    query = Query(count=count, dtype=dtypes.number_of(dtype))
    query.op = ReduceOp.from_buffer_copy(dtypes.packed_op(op))
    for name, value in given.items():
        if name not in Circumstances.__annotations__:
            raise TypeError(f"a plan does not depend on {name!r}")
        if name == "algorithm":
            value = value.encode() if isinstance(value, str) else None
        elif name == "sm_budget" and value is None:
            value = -1
        setattr(query, name, value)
    return query


class Plans:
    """The planning of a communicator. Both functions run nothing."""

    raw: "Raw"

    def plan(
        self, collective: str, count: int, dtype: Any = "float32", op: Any = "sum",
        **given: "Unpack[Circumstances]",
    ) -> Plan:  # fmt: skip
        """What a call would run. `collective`: "all_reduce", "broadcast", ...

        `count`: elements of the larger buffer: `size` times one rank's for all_gather, gather,
        reduce_scatter, scatter and all_to_all; `size` times the largest count for the v-forms.
        """
        query, made = _query(count, dtype, op, given), PlanStruct()
        if library.tutti_plan(
            self.raw.handle, collective.encode(), ctypes.byref(query), ctypes.byref(made)
        ):
            self.raw.fail()
        return Plan(
            text_of(made.algorithm),
            text_of(made.text),
            made.chunk_bytes,
            made.blocks,
            made.threads,
            library.tutti_plan_source_name(made.source).decode(),
            bool(made.emulated),
            bool(made.alone),
            bool(made.stream_barrier),
        )

    def explain(
        self, collective: str, count: int, dtype: Any = "float32", op: Any = "sum",
        **given: "Unpack[Circumstances]",
    ) -> str:  # fmt: skip
        """A text with one line per algorithm: chosen, possible or excluded, with the reason and the
        predicted or measured time. Arguments as those of plan()."""
        query, text = _query(count, dtype, op, given), ctypes.c_void_p()
        if library.tutti_explain(
            self.raw.handle, collective.encode(), ctypes.byref(query), ctypes.byref(text)
        ):
            self.raw.fail()
        return text_of(text)
