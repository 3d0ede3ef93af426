"""Matrix products of what all ranks have: all_gather_matmul() of include/tutti/all_gather_matmul.hpp,
which has the rules for algorithms, symmetric memory, captures and order."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from tutti import dtypes
from tutti._library import library, text_of
from tutti._structs import AllGatherMatmul, MatmulProduct
from tutti._structs import MatmulPlan as PlanStruct
from tutti.buffers import Buffer, new_like, read, shape_of, stream_number
from tutti.collectives import made
from tutti.errors import InvalidArgumentError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tutti.raw import Raw

_LAYOUTS = {"row": 0, "column": 1}
_NAME = "all_gather_matmul"


@dataclass(frozen=True)
class MatmulPlan:
    """What a matrix product runs."""

    algorithm: str  #: "unfused", "fused", ...; empty: nothing to do
    config: str  #: what it consists of
    why: str  #: what decided


class MatmulOptions(TypedDict, total=False):
    """What else all_gather_matmul() takes. `m`, the layout and the algorithm are equal on every
    rank."""

    m: int | None  #: rows of the gathered A; None: `size` times those of this rank's shard
    bias: Any  #: [n], or a list of them; None: none
    gathered: Any  #: [m, k]: receives the gathered A, which may hold the shard in place
    workspace: Any  #: [m, k], which is overwritten; None: a new array where one is needed
    b_layout: str  #: "row": B is [k, n]; "column": it is [n, k], as the weight of a linear layer
    algorithm: str | None  #: "unfused", "fused", "pipelined_shift", ...; None: by measurement
    transport: str | None  #: of "fused": "copy_engine" or "pull"; None: chosen
    timeout: float | None  #: seconds; None: the communicator's


@dataclass
class _Call:
    """The struct of a call, its outputs, and what the struct points at."""

    struct: AllGatherMatmul
    outputs: list[Any]
    kept: list[Any]


def _as_list(given: Any, count: int) -> list[Any]:
    """One for each product."""
    made = list(given) if isinstance(given, (list, tuple)) else [given] * count
    if len(made) != count:
        raise InvalidArgumentError(f"{_NAME}: {count} products need {count}, not {len(made)}")
    return made


class Matmuls:
    """The matrix products of a communicator."""

    raw: "Raw"
    rank: int
    size: int
    device: int

    def all_gather_matmul(
        self, a: Any, b: Any, output: Any = None, *, stream: Any = None,
        **options: "Unpack[MatmulOptions]",
    ) -> Any:  # fmt: skip
        """Collective. C = A x B + bias, where A, [m, k], is all ranks' shards `a`, [rows, k].

        With s = ceil(m / size) rank r has the rows from r * s to (r + 1) * s of A, so the last
        ranks may have fewer. Types: bf16, fp16 or fp32, equal for all arrays. `b`: a matrix, or a
        list of up to 8, as of query, key and value, which gives a list of outputs [m, n].
        `stream` and `output` as in the collectives; `a` of an array that lies in symmetric memory
        at one place on every rank is read in place by the algorithms that can.

        InvalidArgumentError: shapes, types or devices that do not fit. UnsupportedError: the
        algorithm that is named cannot run here. In both cases nothing was enqueued.
        """
        call = self._matmul_call(a, b, output, options, stream)
        if library.tutti_all_gather_matmul(self.raw.handle, ctypes.byref(call.struct)):
            self.raw.fail()
        return call.outputs if isinstance(b, (list, tuple)) else call.outputs[0]

    def all_gather_matmul_plan(
        self, a: Any, b: Any, output: Any = None, **options: "Unpack[MatmulOptions]"
    ) -> MatmulPlan:
        """What the call would run on this rank. It runs nothing, and prepares the product for
        captures."""
        call, plan = self._matmul_call(a, b, output, options, 0), PlanStruct()
        if library.tutti_all_gather_matmul_plan(
            self.raw.handle, ctypes.byref(call.struct), ctypes.byref(plan)
        ):
            self.raw.fail()
        return MatmulPlan(text_of(plan.algorithm), text_of(plan.config), text_of(plan.why))

    def _matmul_call(
        self, a: Any, b: Any, output: Any, options: MatmulOptions, stream: Any
    ) -> _Call:
        matrices = b if isinstance(b, (list, tuple)) else [b]
        shape, shard, wanted = shape_of(a), read(a), options.get("m")
        self._check_device(shard[3])
        m = shape[0] * self.size if wanted is None else wanted
        if len(shape) != 2 or shape[0] != self._rows_of(m):
            raise InvalidArgumentError(
                f"{_NAME}: the shard of rank {self.rank} is a matrix of {self._rows_of(m)} of "
                f"{m} rows, not an array of shape {shape}: say `m` where ranks differ"
            )
        layout = options.get("b_layout", "row")
        if layout not in _LAYOUTS:
            raise InvalidArgumentError(f'unknown layout "{layout}": it is row or column')
        products, outputs, kept = self._products(a, shard, m, matrices, output, options)
        more = (MatmulProduct * (len(products) - 1))(*products[1:])
        limits = made({"timeout": options.get("timeout")})
        algorithm, transport = options.get("algorithm"), options.get("transport")
        struct = AllGatherMatmul(
            a=shard[0], m=m, k=shape[1], product=products[0], more_count=len(more),
            more=ctypes.addressof(more), dtype=shard[2], b_layout=_LAYOUTS[layout],
            stream=0 if self.device < 0 else stream_number(stream, a, self.device),
            algorithm=algorithm.encode() if algorithm else None,
            transport=transport.encode() if transport else None,
            timeout_ms=limits.timeout_ms if limits else 0,
        )  # fmt: skip
        kept += [more, *self._add_memory(struct, a, shard, options)]
        return _Call(struct, outputs, kept)

    def _rows_of(self, m: int) -> int:
        part = -(-m // self.size)
        return max(0, min(m, (self.rank + 1) * part) - self.rank * part)

    def _products(
        self, a: Any, shard: Buffer, m: int, b: Sequence[Any], output: Any, options: MatmulOptions
    ) -> tuple[list[MatmulProduct], list[Any], list[Any]]:
        """The products, their outputs, and what must live until the call has been made."""
        k = shape_of(a)[1]
        products: list[MatmulProduct] = []
        kept: list[Any] = [shard]
        biases, outputs = _as_list(options.get("bias"), len(b)), _as_list(output, len(b))
        if not b:
            raise InvalidArgumentError(f"{_NAME}: no matrix B is given")
        by_rows = options.get("b_layout", "row") == "row"
        for i, matrix in enumerate(b):
            shape = shape_of(matrix)
            if len(shape) != 2 or shape[0 if by_rows else 1] != k:
                form = f"[{k}, n]" if by_rows else f"[n, {k}]"
                raise InvalidArgumentError(f"{_NAME}: B is {form} here, not {list(shape)}")
            n = shape[1 if by_rows else 0]
            if outputs[i] is None:
                outputs[i] = new_like(a, (m, n))
            found = self._operand("B", matrix, shard, k * n)
            into = self._operand("the output", outputs[i], shard, m * n, True)
            kept += [found, into]
            products.append(MatmulProduct(found[0], into[0], 0, n, 0, 0))
            if biases[i] is not None:
                kept.append(self._operand("the bias", biases[i], shard, n))
                products[i].bias = kept[-1][0]
        return products, outputs, kept

    def _operand(
        self, what: str, array: Any, shard: Buffer, count: int, write: bool = False
    ) -> Buffer:
        """A buffer on the communicator's device, of the shard's type and so many elements."""
        found = read(array, write)
        self._check_device(found[3])
        if found[2] != shard[2]:
            raise InvalidArgumentError(
                f"{_NAME}: {what} has the type {dtypes.NAMES[found[2]]}, but the shard "
                f"{dtypes.NAMES[shard[2]]}"
            )
        if found[1] != count:
            raise InvalidArgumentError(
                f"{_NAME}: {what} has {found[1]} elements, but needs {count}"
            )
        return found

    def _add_memory(
        self, struct: AllGatherMatmul, a: Any, shard: Buffer, options: MatmulOptions
    ) -> list[Any]:
        """Where A is gathered."""
        m, k = struct.m, struct.k
        gathered, workspace = options.get("gathered"), options.get("workspace")
        kept: list[Any] = []
        if gathered is not None:
            kept.append(self._operand("`gathered`", gathered, shard, m * k, True))
            struct.gathered = kept[-1][0]
        elif workspace is None and self.size > 1 and m * k:
            workspace = new_like(a, (m, k))
        if workspace is not None:
            kept.append(self._operand("`workspace`", workspace, shard, m * k, True))
            struct.workspace = kept[-1][0]
            struct.workspace_bytes = m * k * dtypes.SIZES[shard[2]]
        return kept

    def _check_device(self, device: int) -> None:
        raise NotImplementedError
