"""What an operator costs above the call of the C API: overhead.py [--device cpu|cuda]

A group of one rank and 8 elements: there is nothing to move. Microseconds per call, the best of 200
rounds. torch's own share is that of an operator whose kernel does nothing, and of the new tensor that
a functional operator returns. The last column is without the call of the C API, which the function
contains.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch

import tutti
import tutti.torch
from tutti import raw as raw_calls
from tutti._library import library
from tutti.dtypes import PACKED_OPS

ROUNDS, CALLS = 200, 1000


def microseconds(call: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - start)
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
    return best / CALLS * 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    device = parser.parse_args().device
    backend = "host" if device == "cpu" else "cuda"
    with tutti.Communicator(tutti.UniqueId.create(), 0, 1, backend=backend) as communicator:
        tutti.torch.register("overhead", communicator)
        measure(communicator, torch.ones(8, device=device))


def measure(communicator: Any, x: torch.Tensor) -> None:
    out, group = torch.empty_like(x), "overhead"
    at, to, key = x.data_ptr(), out.data_ptr(), "CUDA" if x.is_cuda else "CPU"
    stream = torch.cuda.current_stream().cuda_stream if x.is_cuda else 0
    size, pack = raw_calls._ALL_REDUCE, raw_calls._pack_all_reduce
    packed = pack(size, at, at, 8, PACKED_OPS["sum"], stream, 0, 1, 0)
    moved = pack(size, at, to, 8, PACKED_OPS["sum"], stream, 0, 1, 0)
    handle, function = communicator.raw.handle, library.tutti_all_reduce
    nothing = torch.library.Library("tutti_overhead", "DEF")
    nothing.define("nothing_(Tensor(a!) tensor, str op, str group) -> ()")
    nothing.impl("nothing_", lambda tensor, op, group: None, key)
    empty, ops = torch.ops.tutti_overhead.nothing_.default, torch.ops.tutti
    bare = microseconds(lambda: library.tutti_data_type_size(0))
    call = microseconds(lambda: function(handle, packed)) - bare
    call_out = microseconds(lambda: function(handle, moved)) - bare
    rows = [
        ("the call of the C API, in place", call, 0.0),
        ("the call of the C API, out of place", call_out, 0.0),
        ("ctypes: a call that does nothing", bare, 0.0),
        ("communicator.raw.all_reduce()",
         microseconds(lambda: communicator.raw.all_reduce(at, at, 8, 1, "sum", stream)), call),
        ("torch: an operator that does nothing", microseconds(lambda: empty(x, "sum", group)), 0.0),
        ("torch: empty_like()", microseconds(lambda: torch.empty_like(x)), 0.0),
        ("torch.ops.tutti.all_reduce_",
         microseconds(lambda: ops.all_reduce_.default(x, "sum", group)), call),
        ("torch.ops.tutti.all_reduce_out",
         microseconds(lambda: ops.all_reduce_out.default(x, "sum", group, out=out)), call_out),
        ("torch.ops.tutti.all_reduce",
         microseconds(lambda: ops.all_reduce.default(x, "sum", group)), call_out),
    ]
    for name, time_us, within in rows:
        beyond = f"{time_us - within:8.2f}" if within else ""
        print(f"{name:40} {time_us:8.2f} {beyond}")


if __name__ == "__main__":
    main()
