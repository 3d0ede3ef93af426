"""Just enough of torch to drive the benches of tools/peers without GPUs: rank 0 of `ranks`, times as scripted.

Operations add up what every rank would have put in (`input_values`); what ranks hold alike is multiplied.
"""

import contextlib
import math
import sys
import types

from peer_record import PERIOD, input_values


class Storage:
    def __init__(self, cells: list):
        self.cells, self.alike = cells, False  # alike: every rank holds the same


class Tensor:
    """A slice of a storage, with a handful of torch's methods."""

    def __init__(self, storage: Storage, count: int):
        self.storage, self.count = storage, count

    def values(self) -> list:
        return self.storage.cells[:self.count]

    def numel(self) -> int:
        return self.count

    def data_ptr(self) -> int:
        FakeTorch.tensors[id(self)] = self
        return id(self)

    def __getitem__(self, part: slice) -> "Tensor":
        return Tensor(self.storage, min(part.stop, self.count))

    def write(self, values: list, alike: bool) -> None:
        assert len(values) == self.count, "tensors of different sizes"
        self.storage.cells[:self.count], self.storage.alike = values, alike

    def copy_(self, other: "Tensor") -> None:
        self.write(other.values(), False)

    def fill_(self, value: float) -> None:
        self.write([value] * self.count, False)

    def repeat(self, times: int) -> "Tensor":
        return Tensor(Storage(self.values() * times), self.count * times)

    def __ne__(self, other: "Tensor") -> "Tensor":
        return Tensor(Storage([a != b for a, b in zip(self.values(), other.values())]), self.count)

    def sum(self) -> int:
        return sum(self.values())


class Graph:
    def __init__(self, fake):
        self.fake, self.operations = fake, []

    def replay(self) -> None:
        assert self.fake.streams, "a replay on the default stream"
        self.fake.log.append(self.operations[0][0])
        for _, run in self.operations:
            run()

    def reset(self) -> None:
        self.operations = []


class Event:
    def __init__(self, fake):
        self.fake, self.at = fake, None

    def record(self, stream) -> None:
        self.at = len(self.fake.log)
        self.fake.log.append("event")

    def elapsed_time(self, end: "Event") -> float:
        """ms, as scripted for the one replay between the two."""
        assert self.fake.synchronized, "a time is asked for before the stream is done"
        replayed = self.fake.log[self.at + 1:end.at]
        assert len(replayed) == 1, replayed
        name, taken = replayed[0], self.fake.taken
        taken[name] = taken.get(name, 0) + 1
        return self.fake.time_ms(name, taken[name] - 1)


class FakeTorch:
    """`missing`: operations that this torch lacks. `limit`: {operation or "empty": most elements}. `spoil(name,
    values)`: what an operation leaves instead of `values`. `time_ms(name, k)`: of the k-th timed replay. `peer(mine)`:
    what every other rank gathers in place of `mine`. `log`: barriers, events and replays, in order. `tensors`: by the address that was asked for."""

    tensors: dict = {}

    def __init__(self, ranks: int = 2):
        self.ranks, self.missing, self.limit, self.multicast_ptr = ranks, set(), {}, 0
        self.spoil = lambda name, values: values
        self.time_ms = lambda name, k: 1.0
        self.peer = lambda mine: mine
        self.log, self.taken, self.streams, self.capturing, self.synchronized = [], {}, [], None, False

    def operation(self, name: str):
        def run(source: Tensor, target: Tensor) -> None:
            if source.numel() > self.limit.get(name, source.numel()):
                raise RuntimeError(f"CUDA out of memory in {name}\nand more lines")
            if self.capturing:
                self.capturing.operations.append((name, lambda: self.reduce(name, source, target)))
            else:
                self.reduce(name, source, target)
        return run

    def reduce(self, name: str, source: Tensor, target: Tensor) -> None:
        assert self.streams, "an operation on the default stream"
        self.synchronized = False
        left = self.spoil(name, self.sums(source))
        if left is not None:
            target.write(left, True)

    def sums(self, source: Tensor) -> list:
        if source.storage.alike:
            return [value * self.ranks for value in source.values()]
        for iteration, zero_sum in ((0, False), (0, True), (1, False), (1, True)):
            of_ranks = [input_values(rank, self.ranks, iteration, zero_sum) for rank in range(self.ranks)]
            if source.values()[:PERIOD] == [float(value) for value in of_ranks[0][:source.numel()]]:
                period = [float(sum(column)) for column in zip(*of_ranks)]
                return (period * (source.numel() // PERIOD + 1))[:source.numel()]
        return [math.nan] * source.numel()  # what is added up are not inputs

    def empty(self, count: int, dtype, device) -> Tensor:
        if count > self.limit.get("empty", count):
            raise RuntimeError("CUDA out of memory")
        return Tensor(Storage([0.0] * count), count)

    def gather(self, into: list, mine, group) -> None:
        assert group == "gloo group"
        into[:] = [mine] + [self.peer(mine) for _ in range(self.ranks - 1)]

    @contextlib.contextmanager
    def on_stream(self, stream):
        self.streams.append(stream)
        try:
            yield
        finally:
            self.streams.pop()

    @contextlib.contextmanager
    def capture(self, graph: Graph, stream, capture_error_mode: str):
        self.capturing = graph
        with self.on_stream(stream):
            try:
                yield
            finally:
                self.capturing = None

    def finish(self) -> None:
        self.synchronized = True

    def modules(self) -> dict:
        """What belongs into sys.modules."""
        namespace = types.SimpleNamespace
        one_shot, two_shot, nccl = map(self.operation, ("one_shot_all_reduce_out", "two_shot_all_reduce_", "nccl"))
        operations = {"one_shot_all_reduce_out": lambda source, op, group, out: one_shot(source, out),
                      "two_shot_all_reduce_": lambda target, op, group: two_shot(target, target)}
        handle = namespace(barrier=lambda: self.log.append("barrier"), multicast_ptr=self.multicast_ptr)
        memory = namespace(empty=self.empty, rendezvous=lambda buffer, group: handle)
        distributed = namespace(
            _symmetric_memory=memory, group=namespace(WORLD=namespace(group_name="world")),
            init_process_group=lambda backend, timeout: None, get_rank=lambda: 0, get_world_size=lambda: self.ranks,
            new_group=lambda backend: f"{backend} group", all_gather_object=self.gather,
            all_reduce=lambda tensor: nccl(tensor, tensor), destroy_process_group=lambda: None)
        cuda = namespace(
            set_device=lambda device: None, current_stream=lambda: namespace(cuda_stream=7),
            Stream=lambda: namespace(synchronize=self.finish), stream=self.on_stream,
            CUDAGraph=lambda: Graph(self), graph=self.capture, Event=lambda enable_timing: Event(self),
            get_device_name=lambda index: "NVIDIA H200", device_count=lambda: self.ranks,
            nccl=namespace(version=lambda: (2, 28, 9)))
        torch = namespace(
            cuda=cuda, distributed=distributed, empty=self.empty, bfloat16="bf16", device=lambda kind, index: (kind, index),
            tensor=lambda values, dtype, device: Tensor(Storage([float(value) for value in values]), len(values)),
            ops=namespace(symm_mem=namespace(**{name: call for name, call in operations.items()
                                                if name not in self.missing})),
            version=namespace(cuda="13.0"), __version__="2.11.0+cu130")
        return {"torch": torch, "torch.distributed": distributed, "torch.distributed._symmetric_memory": memory}

    def install(self, test) -> None:
        """Until `test` ends, `import torch` gives this."""
        for name, module in self.modules().items():
            before = sys.modules.get(name)
            sys.modules[name] = module
            test.addCleanup(sys.modules.pop if before is None else sys.modules.__setitem__,
                            name, *(() if before is None else (before,)))
