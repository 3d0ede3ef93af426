"""What an operator costs above the call of the C API: overhead.py [--device cpu|cuda]

A group of one rank and 8 elements: there is nothing to move. Microseconds per call, the best of 200
rounds. "torch": torch's own share, which is an operator of the same form whose kernel does nothing,
but for the new tensor that a functional one returns. "ours": what is left without it and without the
call of the C API.
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


def empty_operators(key: str) -> Any:
    """Operators that do nothing, with the schemas of the three forms of all_reduce."""
    library = torch.library.Library("tutti_overhead", "DEF")
    library.define("place(Tensor(a!) tensor, str op, str group) -> ()")
    library.define("out(Tensor input, str op, str group, Tensor(a!) out) -> ()")
    library.define("new(Tensor input, str op, str group) -> Tensor")
    library.impl("place", lambda tensor, op, group: None, key)
    library.impl("out", lambda input, op, group, out: None, key)
    library.impl("new", lambda input, op, group: torch.empty_like(input), key)
    return library, torch.ops.tutti_overhead


def measure_operators(x: torch.Tensor, out: torch.Tensor, call: float, call_out: float) -> None:
    """`call`, `call_out`: of the C API, in place and out of place."""
    kept, empty = empty_operators("CUDA" if x.is_cuda else "CPU")
    ops, key = torch.ops.tutti, (x, "sum", "overhead")
    place, place_0 = ops.all_reduce_.default, empty.place.default
    into, into_0 = ops.all_reduce_out.default, empty.out.default
    new, new_0 = ops.all_reduce.default, empty.new.default
    forms: list[tuple[str, Callable[[], Any], Callable[[], Any], float]] = [
        ("all_reduce_", lambda: place(*key), lambda: place_0(*key), call),
        ("all_reduce_out", lambda: into(*key, out), lambda: into_0(*key, out), call_out),
        ("all_reduce_out by keyword", lambda: into(*key, out=out), lambda: into_0(*key, out=out),
         call_out),
        ("all_reduce", lambda: new(*key), lambda: new_0(*key), call_out),
    ]  # fmt: skip
    print(f"\n{'torch.ops.tutti':40} {'us':>8} {'above C':>8} {'torch':>8} {'ours':>8}")
    for name, ours, of_torch, within in forms:
        whole, share = microseconds(ours), microseconds(of_torch)
        above = whole - within
        print(f"{name:40} {whole:8.2f} {above:8.2f} {share:8.2f} {above - share:8.2f}")
    del kept


def measure(communicator: Any, x: torch.Tensor) -> None:
    out = torch.empty_like(x)
    at, to = x.data_ptr(), out.data_ptr()
    stream = torch.cuda.current_stream().cuda_stream if x.is_cuda else 0
    size, pack = raw_calls._ALL_REDUCE, raw_calls._pack_all_reduce
    packed = pack(size, at, at, 8, PACKED_OPS["sum"], stream, 0, 1, 0)
    moved = pack(size, at, to, 8, PACKED_OPS["sum"], stream, 0, 1, 0)
    raw, function = communicator.raw, library.tutti_all_reduce
    handle = raw.handle
    bare = microseconds(lambda: library.tutti_data_type_size(0))
    call = microseconds(lambda: function(handle, packed)) - bare
    call_out = microseconds(lambda: function(handle, moved)) - bare
    rows = [
        ("the call of the C API, in place", call),
        ("the call of the C API, out of place", call_out),
        ("ctypes: a call that does nothing", bare),
        ("raw.all_reduce(), in place",
         microseconds(lambda: raw.all_reduce(at, at, 8, 1, "sum", stream))),
        ("raw.all_reduce(), out of place",
         microseconds(lambda: raw.all_reduce(at, to, 8, 1, "sum", stream))),
        ("torch: empty_like()", microseconds(lambda: torch.empty_like(x))),
    ]  # fmt: skip
    if x.is_cuda:
        look_up = torch._C._cuda_getCurrentRawStream
        rows.append(("torch: the current stream", microseconds(lambda: look_up(x.get_device()))))
    for name, time_us in rows:
        print(f"{name:40} {time_us:8.2f}")
    measure_operators(x, out, call, call_out)


if __name__ == "__main__":
    main()
