"""The backend "tutti" of torch.distributed.

    import tutti.torch                                  # registers it
    dist.init_process_group("tutti")                    # tensors on the CPU and on GPUs
    dist.init_process_group("cpu:gloo,cuda:tutti")      # the same: torch then leaves gloo out

A process group makes a communicator for tensors on the CPU, and one for tensors on a GPU, when the
first such tensor comes. Results have the same bits as those of tutti.Communicator.

- Operations run in the order of their calls. On the CPU an asynchronous one runs in a thread; on a GPU
  in a stream of the group, and Work.wait() makes the current stream wait for it.
- Each sender and receiver have a communicator of their own for their messages, in a thread (CPU) or
  stream (GPU) of its own: messages overtake collectives and messages to others. It is made by the
  first message; docs/guides/python.md says how much memory that takes. Tags are ignored, as
  NCCL ignores them; a receiver must name its sender. A rank may send to itself (isend and irecv).
- SUM, AVG, PRODUCT, MIN, MAX and PREMUL_SUM; BAND, BOR and BXOR are refused (UnsupportedError). Of bool
  SUM and MAX are "any", PRODUCT and MIN "all". Operations that do not reduce take every type.
- Failures are those of tutti (tutti.TuttiError). One that ended a communicator fails all later calls.
"""

import contextlib
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

import tutti
from tutti.errors import InvalidArgumentError, UnsupportedError
from tutti.torch import _requests as requests
from tutti.torch import groups
from tutti.torch._meeting import Meeting
from tutti.torch._own import OwnMessages
from tutti.torch._runner import Batch, Coalescing, CudaRunner, HostRunner, Runner, joined
from tutti.torch._sparse import sparse_all_reduce
from tutti.torch._untraced import with_untraced_operations
from tutti.torch._work import Work

_Base: Any = dist.ProcessGroup  # whose overloads for single tensors are left out here
_CPU = torch.device("cpu")
_SUM = dist.ReduceOp.SUM
_SECONDS = 1800.0  # torch's default


def _one(tensors: "Sequence[Tensor] | Tensor") -> Tensor:
    if isinstance(tensors, Tensor):
        return tensors
    if len(tensors) != 1:
        raise InvalidArgumentError(f"one tensor is needed, not {len(tensors)}")
    return tensors[0]


@with_untraced_operations  # DistributedDataParallel calls them while a compiled program runs
class ProcessGroup(_Base):  # type: ignore[misc]
    """A process group whose operations tutti runs. torch makes it; users call torch.distributed."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta | None = None) -> None:
        super().__init__(rank, size)
        self._name = self._desc = ""
        self._store = store
        self._rank, self._size = rank, size
        self._seconds = timeout.total_seconds() if timeout is not None else _SECONDS
        self._meeting = Meeting(store, rank, size)
        self._runners: dict[str, Runner] = {}
        self._channels: dict[tuple[str, int, int], Runner] = {}
        self._coalescing = Coalescing()
        self._own = OwnMessages(rank)
        # DistributedDataParallel's C++ code may be the only one to hold a work of a small tensor (inputs
        # are uneven). Without its Python half a work would neither wait nor have a future.
        self._held: deque[Work] = deque(maxlen=16)

    # What torch asks a process group; without backends of its own the base class knows none of it.

    def getBackendName(self) -> str:  # noqa: N802
        return "tutti"

    def name(self) -> str:
        return "tutti"

    def getGroupName(self) -> str:  # noqa: N802
        return self._name

    def setGroupName(self, name: str) -> None:  # noqa: N802
        self._name = name

    def getGroupDesc(self) -> str:  # noqa: N802
        return self._desc

    def setGroupDesc(self, desc: str) -> None:  # noqa: N802
        self._desc = desc

    _set_group_name, _set_group_desc = setGroupName, setGroupDesc
    group_name = property(getGroupName, setGroupName)
    group_desc = property(getGroupDesc, setGroupDesc)
    supports_splitting = False
    supports_coalescing = True

    @property
    def _device_types(self) -> list[torch.device]:
        return [_CPU, torch.device("cuda")] if torch.cuda.is_available() else [_CPU]

    def _get_backend(self, device: torch.device) -> "ProcessGroup":
        return self

    def get_group_store(self) -> Any:
        return self._store

    # Who runs an operation.

    def communicator(self, device: torch.device) -> Any:
        """The communicator for tensors on `device`. The first call is collective."""
        return self._runner(device).communicator()

    def _make(self, name: str, ranks: list[int], device: torch.device) -> Any:
        where = {"device": device.index} if device.type == "cuda" else {}
        backend = "host" if device.type == "cpu" else "cuda"
        return self._meeting.make(name, ranks, self._seconds, backend=backend, **where)

    def _runner(self, device: torch.device) -> Runner:
        runner = self._runners.get(str(device))
        if runner is None:
            runner = self._new_runner(device)
        return runner

    def _new_runner(self, device: torch.device) -> Runner:
        everyone = list(range(self._size))
        if device.type == "cpu":
            made: Runner = HostRunner(
                f"tutti {self._name}", lambda: self._make("cpu", everyone, device)
            )
        elif device.type == "cuda":
            others = [name for name in self._runners if name.startswith("cuda")]
            if others:
                raise UnsupportedError(f"this group uses {others[0]} on this rank, not {device}")

            def make() -> Any:
                communicator = self._make("cuda", everyone, device)
                communicator.prepare()  # a capture may come before any other operation
                return communicator

            made = CudaRunner(f"tutti {self._name}", device, make)
        else:
            raise UnsupportedError(f"tutti has no operations for tensors on {device}")
        return self._runners.setdefault(str(device), made)

    def _channel(self, device: torch.device, sender: int, receiver: int) -> Runner:
        key = (str(device), sender, receiver)
        channel = self._channels.get(key)
        if channel is None:
            name = f"{device.type} {sender} to {receiver}"

            def make() -> Any:
                return self._make(name, [sender, receiver], device)

            if device.type == "cpu":
                channel = HostRunner(f"tutti {self._name} {name}", make)
            else:
                channel = CudaRunner(f"tutti {self._name} {name}", device, make, threaded=True)
            channel = self._channels.setdefault(key, channel)
        return channel

    def _start(self, device: torch.device, batch: Batch, opts: Any = None) -> Work:
        runner, coalescing = self._runner(device), self._coalescing
        if coalescing.batches is not None:
            if coalescing.runner not in (None, runner):
                raise InvalidArgumentError("operations are coalesced on one device only")
            coalescing.runner = runner
            coalescing.batches.append(batch)
            work = Work(batch.result, batch.source)
            work.finish()  # so that a wait within the block passes; the work of the block counts
            return work
        asynchronous = True if opts is None else opts.asyncOp
        work = runner.start(batch, asynchronous)
        if asynchronous:
            if len(batch.result) == 1 and batch.result[0].numel() <= 1024:
                self._held.append(work)
        elif (error := work.exception()) is not None:
            raise error
        return work

    def _options(self, opts: Any) -> Any:
        """The call's timeout, if it has one."""
        if opts is None or opts.timeout.total_seconds() <= 0:
            return None
        milliseconds = max(1, round(opts.timeout.total_seconds() * 1000))
        return tutti.CallOptions(timeout_ms=milliseconds)

    def _start_coalescing(self, device: torch.device) -> None:
        self._coalescing.batches = []

    def _end_coalescing(self, device: torch.device) -> Work | None:
        batches, runner = self._coalescing.take()
        return runner.start(joined(batches), True) if runner is not None else None

    # The operations.

    def allreduce(
        self, tensors: Any, opts: Any = None, op: Any = None, timeout: timedelta | None = None
    ) -> Work:
        if isinstance(opts, (dist.ReduceOp, dist.ReduceOp.RedOpType)):
            opts, op = None, opts
        reduce_op = op if op is not None else opts.reduceOp if opts is not None else _SUM
        tensor = _one(tensors)
        if tensor.is_sparse:
            batch = sparse_all_reduce(tensor, reduce_op, self._size)
        else:
            batch = requests.all_reduce([tensor], reduce_op, self._options(opts))
        return self._start(tensor.device, batch, opts)

    def allreduce_coalesced(self, tensors: Sequence[Tensor], opts: Any = None) -> Work:
        reduce_op = opts.reduceOp if opts is not None else _SUM
        batch = requests.all_reduce(tensors, reduce_op, self._options(opts))
        return self._start(tensors[0].device, batch, opts)

    def broadcast(
        self, tensors: Any, opts: Any = None, root: int = 0, timeout: timedelta | None = None
    ) -> Work:
        tensor = _one(tensors)
        if isinstance(opts, int):
            opts, root = None, opts
        root = root if opts is None else opts.rootRank
        batch = requests.broadcast(tensor, root, self._options(opts))
        return self._start(tensor.device, batch, opts)

    def reduce(self, tensors: Any, opts: Any) -> Work:
        tensor = _one(tensors)
        batch = requests.reduce(
            tensor, opts.reduceOp, opts.rootRank, self._rank, self._options(opts)
        )
        return self._start(tensor.device, batch, opts)

    def allgather(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        """outputs[i][r] takes inputs[i] of rank r."""
        for parts in outputs:
            if len(parts) != self._size:
                raise InvalidArgumentError(
                    f"all_gather needs {self._size} outputs, one per rank, not {len(parts)}"
                )
        batch = requests.all_gather_lists(outputs, inputs, self._rank, self._options(opts))
        return self._start(inputs[0].device, batch, opts)

    def allgather_coalesced(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        """outputs[r][i] takes inputs[i] of rank r."""
        if len(outputs) != self._size or any(len(parts) != len(inputs) for parts in outputs):
            raise InvalidArgumentError(
                f"all_gather_coalesced needs {self._size} lists of {len(inputs)} outputs"
            )
        by_input = [[parts[i] for parts in outputs] for i in range(len(inputs))]
        return self.allgather(by_input, inputs, opts)

    def _allgather_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        return self.allgather_into_tensor_coalesced([output], [input], opts)

    def allgather_into_tensor_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        batch = requests.all_gather(outputs, inputs, self._size, self._options(opts))
        return self._start(inputs[0].device, batch, opts)

    def reduce_scatter(
        self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any = None
    ) -> Work:
        for parts in inputs:
            if len(parts) != self._size:
                raise InvalidArgumentError(
                    f"reduce_scatter needs {self._size} inputs, one per rank, not {len(parts)}"
                )
        reduce_op = opts.reduceOp if opts is not None else _SUM
        batch = requests.reduce_scatter_lists(
            outputs, inputs, reduce_op, self._rank, self._options(opts)
        )
        return self._start(outputs[0].device, batch, opts)

    def _reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        return self.reduce_scatter_tensor_coalesced([output], [input], opts)

    def reduce_scatter_tensor_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        reduce_op = opts.reduceOp if opts is not None else _SUM
        batch = requests.reduce_scatter(
            outputs, inputs, reduce_op, self._size, self._options(opts)
        )
        return self._start(outputs[0].device, batch, opts)

    def alltoall_base(
        self, output: Tensor, input: Tensor, output_splits: Sequence[int],
        input_splits: Sequence[int], opts: Any = None,
    ) -> Work:  # fmt: skip
        if not output_splits and not input_splits:
            batch = requests.all_to_all(output, input, self._size, self._options(opts))
            return self._start(output.device, batch, opts)
        outputs = self._split("output", output, output_splits)
        return self.alltoall(outputs, self._split("input", input, input_splits), opts)

    def _split(self, what: str, tensor: Tensor, sizes: Sequence[int]) -> list[Tensor]:
        """Parts of a tensor per rank: as many rows as `sizes` says, or equally many."""
        rows = tensor.shape[0] if tensor.dim() else 1
        if not sizes and rows % self._size == 0:
            sizes = [rows // self._size] * self._size
        if len(sizes) != self._size or sum(sizes) != rows:
            raise InvalidArgumentError(
                f"all_to_all: split sizes of the {what} are one per rank, {self._size}, and make its "
                f"{rows} rows together, not {list(sizes)}"
            )
        return list(tensor.split(list(sizes)))

    def alltoall(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        if len(outputs) != self._size or len(inputs) != self._size:
            raise InvalidArgumentError(
                f"all_to_all needs {self._size} inputs and outputs, one per rank, not "
                f"{len(inputs)} and {len(outputs)}"
            )
        batch = requests.all_to_all_lists(outputs, inputs, self._rank)
        return self._start(outputs[0].device, batch, opts)

    def gather(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any
    ) -> Work:
        input = _one(inputs)
        parts = outputs[0] if outputs and self._rank == opts.rootRank else []
        batch = requests.gather(parts, input, opts.rootRank, self._size, self._options(opts))
        return self._start(input.device, batch, opts)

    def scatter(
        self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any
    ) -> Work:
        output = _one(outputs)
        parts = inputs[0] if inputs and self._rank == opts.rootRank else []
        batch = requests.scatter(output, parts, opts.rootRank, self._size, self._options(opts))
        return self._start(output.device, batch, opts)

    def send(self, tensors: Sequence[Tensor], peer: int, tag: int = 0) -> Work:
        tensor = _one(tensors)
        if peer == self._rank:
            return self._own.start(True, tensor, self._seconds)
        if self._coalescing.batches is not None:
            return self._start(tensor.device, requests.send(tensor, peer))
        channel = self._channel(tensor.device, self._rank, peer)
        return channel.start(requests.send(tensor, 1), True)

    def recv(self, tensors: Sequence[Tensor], peer: int, tag: int = 0) -> Work:
        tensor = _one(tensors)
        if peer == self._rank:
            return self._own.start(False, tensor, self._seconds)
        if self._coalescing.batches is not None:
            return self._start(tensor.device, requests.recv(tensor, peer, peer))
        channel = self._channel(tensor.device, peer, self._rank)
        return channel.start(requests.recv(tensor, 0, peer), True)

    def recv_anysource(self, tensors: Sequence[Tensor], tag: int = 0) -> Work:
        raise UnsupportedError("tutti receives from a rank that is named: give recv() its source")

    def barrier(self, opts: Any = None) -> Work:
        """All ranks have come, and their earlier work in the current stream of a GPU has ended."""
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.current_stream().synchronize()
        return self._start(_CPU, requests.barrier(_CPU, self._options(opts)), opts)

    # The names that later versions of torch have for some of them.
    all_gather_single = _allgather_base
    reduce_scatter_single = _reduce_scatter_base
    all_to_all_single = alltoall_base

    # The end.

    def set_timeout(self, timeout: timedelta) -> None:
        """Changes the timeout of all waits, also of those in progress."""
        self._seconds = timeout.total_seconds()
        for runner in self._everything():
            if runner.made is not None:
                runner.made.set_timeout(self._seconds)

    _set_default_timeout = set_timeout

    def _everything(self) -> list[Runner]:
        return [*self._runners.values(), *self._channels.values()]

    def shutdown(self) -> None:
        """Ends what runs, and leaves the communicators."""
        with contextlib.ExitStack() as stack:  # one that fails leaves none open
            for runner in self._everything():
                stack.callback(runner.close)
        self._runners.clear()
        self._channels.clear()
        groups.unregister(self._name)  # a later group may have the name

    def abort(self) -> None:
        """Ends all operations on every rank with an AbortedError."""
        for runner in self._everything():
            runner.abort("the process group was aborted")


def _create(opts: Any, _options: Any) -> ProcessGroup:
    return ProcessGroup(opts.store, opts.group_rank, opts.group_size, opts.timeout)


def register_backend() -> None:
    """Makes "tutti" a backend of torch.distributed, unless it is one."""
    if "TUTTI" not in dist.Backend._plugins:
        dist.Backend.register_backend(
            "tutti", _create, extended_api=True, devices=["cpu", "cuda"]
        )
