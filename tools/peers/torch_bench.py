"""What the benches of all-reduces of torch's tensors share: ranks of torchrun, graphs that are timed in turns as
`tutti bench` times its own, exact checks, and results in its format.

A bench is a subclass of RankBench, and run() its main program. Nothing here uses NVLink multicast.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import faulthandler
import importlib
import math
import os
import re
import socket
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from peer_record import DTYPES, PERIOD, cancels, expected_values, format_bytes, input_values, record_text, row_of

NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
ROUNDS_AT_ONCE, RUN_AHEAD = 16, 3  # as tutti bench: enqueued ahead; untimed replays that give the host a lead
WRONG, USAGE, TIMED_OUT = 1, 2, 3


class Watchdog:
    """Ends the process, with a text, where one step takes longer than `seconds`: collectives may wait forever."""

    def __init__(self, seconds: int, rank: int):
        self.seconds, self.rank, self.timer = seconds, rank, None

    def begin(self, step: str) -> None:
        self.end()
        self.timer = threading.Timer(self.seconds, self._expire, [step])
        self.timer.daemon = True
        self.timer.start()
        # Needs no interpreter: ends what hangs in a call that keeps the interpreter's lock.
        faulthandler.dump_traceback_later(self.seconds + 10, exit=True, file=sys.__stderr__)

    def end(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        if self.timer:
            self.timer.cancel()

    def _expire(self, step: str) -> None:
        print(f"rank {self.rank}: {step} took more than {self.seconds} s: a rank or a GPU hangs, or --timeout "
              "gives it too little", file=sys.__stderr__, flush=True)
        os._exit(TIMED_OUT)


@dataclass
class Contender:
    """One algorithm at one size, on this rank."""
    algorithm: str
    in_place: bool
    graph: object  # of --graph-operations operations
    samples_us: list[float] = field(default_factory=list)
    wrong: int = 0  # elements


def import_torch():
    """torch, with multicast switched off, whatever the environment said before."""
    os.environ.update(NO_MULTICAST)
    importlib.import_module("torch.distributed._symmetric_memory")
    return importlib.import_module("torch")


def describe_environment(torch, ranks: int, command: list[str]) -> dict:
    """What was measured on. `command`: the program and its options."""
    kernel_module = Path("/proc/driver/nvidia/version")
    driver = re.search(r"\s(\d+\.\d+[.\d]*)\s", kernel_module.read_text()) if kernel_module.exists() else None
    command = ["torchrun", "--nproc-per-node", str(ranks), f"tools/peers/{command[0]}", *command[1:]]
    return {"host": socket.gethostname(), "gpu": torch.cuda.get_device_name(0), "gpus": torch.cuda.device_count(),
            "driver": driver[1] if driver else "unknown", "cuda": torch.version.cuda or "",
            "nccl": ".".join(map(str, torch.cuda.nccl.version())), "torch": torch.__version__, "multicast": False,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "command": " ".join(command), "why_no_multicast": "this program switches it off"}


class RankBench:
    """This rank's buffers, stream and clock. Every rank makes the same calls in the same order.

    Subclasses name their ALGORITHMS, each with whether it runs in place, and what enqueues one: operation().
    """
    ALGORITHMS: dict[str, bool] = {}
    BUFFERS = "symmetric"  # as results name the kind of memory

    def __init__(self, torch, options: argparse.Namespace):
        self.torch, self.options, self.dist = torch, options, torch.distributed
        self.dtype, self.element_bytes = getattr(torch, DTYPES[options.dtype][0]), DTYPES[options.dtype][1]
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(self.device)
        self.dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=options.timeout))
        self.rank, self.ranks = self.dist.get_rank(), self.dist.get_world_size()
        self.hosts = self.dist.new_group(backend="gloo")
        self.stream = torch.cuda.Stream()
        self.said: set[tuple[str, str]] = set()
        self.zero_sum = cancels(self.ranks, options.graph_operations, options.dtype)  # of the inputs in place
        self.sizes = self.allocate(options.sizes)

    def say(self, text: str) -> None:
        if self.rank == 0:
            print(text, flush=True)

    def gather(self, mine) -> list:
        """`mine` of every rank, in the order of ranks."""
        everyone = [None] * self.ranks
        self.dist.all_gather_object(everyone, mine, group=self.hosts)
        return everyone

    def attempt(self, what: str, size: int, action):
        """What `action` returns; None where it fails on any rank, for a reason that is said once."""
        made, mine = None, ""
        try:
            made = action()
        except (AttributeError, RuntimeError, TypeError) as error:  # no such operation; no memory; another signature
            mine = f"{type(error).__name__}: {str(error).strip() or 'no text'}".splitlines()[0]
        reason = next(filter(None, self.gather(mine)), "")
        if reason and (what, reason) not in self.said:
            self.said.add((what, reason))
            self.say(f"# {what} left out at {format_bytes(size)}: {reason}")
        return None if reason else made

    def allocate(self, sizes: list[int]) -> list[int]:
        """Makes both buffers, symmetric, for the largest size that fits on every rank; returns the sizes that do.
        RuntimeError where torch maps them for multicast all the same."""
        memory, self.group = self.dist._symmetric_memory, self.dist.group.WORLD.group_name
        for largest in sorted(sizes, reverse=True):
            count = largest // self.element_bytes
            pair = self.attempt("everything", largest, lambda: [
                memory.empty(count, dtype=self.dtype, device=self.device) for _ in range(2)])
            if pair is None:
                continue
            handles = [memory.rendezvous(buffer, self.group) for buffer in pair]
            if any(handle.multicast_ptr for handle in handles):
                raise RuntimeError("torch mapped its buffers for NVLink multicast although that is switched off")
            self.barrier, self.buffers = handles[0].barrier, pair
            return [size for size in sizes if size <= largest]
        return []

    def operation(self, algorithm: str):
        """What enqueues one all-reduce on the current stream. AttributeError where there is no such one here."""
        raise NotImplementedError

    def warm_up(self, run) -> None:
        """What is loaded or connected at the first call is not for a capture."""
        with self.torch.cuda.stream(self.stream):
            run()

    def registering(self, algorithm: str):
        """The context of a capture, at whose end its buffers are known to all ranks."""
        return contextlib.nullcontext()

    def facts(self) -> dict:
        """What else results say of the environment."""
        return {}

    def close(self) -> None:
        """After the last replay."""

    def capture(self, algorithm: str) -> Contender:
        run, graph = self.operation(algorithm), self.torch.cuda.CUDAGraph()
        self.warm_up(run)
        with self.registering(algorithm):
            with self.torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                for _ in range(self.options.graph_operations):
                    run()
        return Contender(algorithm, self.ALGORITHMS[algorithm], graph)

    def fill(self, iteration: int) -> bool:
        """From now on results are expected of other inputs than before. True, if it does not raise."""
        def tiled(period):
            tensor = self.torch.tensor(period, dtype=self.dtype, device=self.device)
            return tensor.repeat(-(-self.source.numel() // PERIOD))[:self.source.numel()]

        operations = self.options.graph_operations
        with self.torch.cuda.stream(self.stream):
            self.source.copy_(tiled(input_values(self.rank, self.ranks, iteration)))
            self.fresh = tiled(input_values(self.rank, self.ranks, iteration, self.zero_sum))  # for in place
            self.target.copy_(self.fresh)
            self.expected = {False: tiled(expected_values(self.ranks, iteration, 1, False)),
                             True: tiled(expected_values(self.ranks, iteration, operations, self.zero_sum))}
        return True

    def sample(self, contenders: list[Contender], rounds: int, restore: bool = False) -> None:
        """`rounds` samples of each, A B A B. The barrier on the stream lets the devices start together. `restore`:
        the target holds poison before, or where that is the input, the input."""
        marks = []
        with self.torch.cuda.stream(self.stream):
            for _ in range(RUN_AHEAD):
                contenders[0].graph.replay()
            for contender in contenders * rounds:
                start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
                if restore and contender.in_place:
                    self.target.copy_(self.fresh)
                elif restore:
                    self.target.fill_(math.nan)
                self.barrier()
                start.record(self.stream)
                contender.graph.replay()
                end.record(self.stream)
                marks.append((contender, start, end))
        self.stream.synchronize()
        for contender, start, end in marks:  # elapsed_time is in ms
            contender.samples_us.append(start.elapsed_time(end) * 1e3 / self.options.graph_operations)

    def sample_many(self, contenders: list[Contender], rounds: int) -> None:
        while rounds > 0:
            self.sample(contenders, min(rounds, ROUNDS_AT_ONCE))
            rounds -= ROUNDS_AT_ONCE

    def sample_checked(self, contenders: list[Contender]) -> None:
        """One sample of each, its result compared exactly."""
        for contender in contenders:
            self.sample([contender], 1, restore=True)
            with self.torch.cuda.stream(self.stream):
                contender.wrong += int((self.target != self.expected[contender.in_place]).sum())

    def measure(self, size: int) -> list[dict]:
        """The rows of a message of `size` bytes: the first and the last sample of each are checked."""
        self.source, self.target = (buffer[:size // self.element_bytes] for buffer in self.buffers)
        if not self.attempt("everything", size, lambda: self.fill(0)):
            return []
        made = [self.attempt(name, size, lambda: self.capture(name)) for name in self.ALGORITHMS]
        contenders = list(filter(None, made))
        if not contenders:
            return []
        self.sample_many(contenders, self.options.warmup)
        for contender in contenders:
            contender.samples_us.clear()
        self.sample_checked(contenders)
        if self.options.samples > 1:
            self.sample_many(contenders, self.options.samples - 2)
            self.fill(1)  # fresh: what is left over cannot pass
            self.sample_checked(contenders)
        taken = self.gather([{"samples_us": each.samples_us, "wrong": each.wrong} for each in contenders])
        for contender in contenders:
            contender.graph.reset()
        return [row_of((each.algorithm, each.in_place), size, list(of_ranks), self.options,
                       self.BUFFERS)
                for each, of_ranks in zip(contenders, zip(*taken))]

    def show(self, row: dict) -> None:
        self.say(f"{format_bytes(row['bytes']):>8}  {row['algorithm']:<24}{row['time_us']['p50']:>10.2f} us"
                 f"{row['busbw_gbps']:>9.1f} GB/s{'  in place' if row['in_place'] else ''}")
        if row["wrong"]:
            self.say(f"WRONG RESULT: {row['algorithm']}, {row['bytes']} bytes: {row['wrong']} elements")


def write(path: Path, text: str) -> None:
    """All of it or nothing."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(text)
    beside.replace(path)


def run(bench_of: type[RankBench], options: argparse.Namespace, command: list[str]) -> int:
    """A bench's main program, which torchrun started with `command`. Returns the exit status."""
    if "LOCAL_RANK" not in os.environ or os.environ.get("LOCAL_WORLD_SIZE") != os.environ.get("WORLD_SIZE"):
        print("start it with torchrun --nproc-per-node N, on one machine", file=sys.stderr)
        return USAGE
    watchdog = Watchdog(options.timeout, int(os.environ["LOCAL_RANK"]))
    watchdog.begin("setting up")
    torch = import_torch()
    bench, rows = bench_of(torch, options), []
    for size in bench.sizes:
        watchdog.begin(f"measuring {format_bytes(size)}")
        added = bench.measure(size)
        for row in added:
            bench.show(row)
        rows += added
    watchdog.begin("ending")
    if options.output and rows and bench.rank == 0:
        environment = {**describe_environment(torch, bench.ranks, command), **bench.facts()}
        write(options.output, record_text(environment, rows))
    bench.close()
    bench.dist.destroy_process_group()
    watchdog.end()
    return WRONG if not rows or any(row["wrong"] for row in rows) else 0
