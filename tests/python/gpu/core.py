"""The core on GPUs, with nothing installed but the driver: ranks are threads, which share a GPU if need be.

    TUTTI_SHARE_GPUS=1 CUDA_DEVICE_MAX_CONNECTIONS=32 CUDA_MODULE_LOADING=EAGER \\
        PYTHONPATH=bindings/python python3 tests/python/gpu/core.py --ranks 2

Prints one line per check, which begins with `ok` or `FAILED`, and ends with code 0 if all have passed.
"""

import argparse
import array
import ctypes
import sys
import threading
import traceback
from collections.abc import Callable

import tutti
from tutti import buffers, dlpack

cuda = ctypes.CDLL("libcuda.so.1")
DEADLINE_S = 30


def call(name: str, *arguments: object) -> None:
    code = getattr(cuda, name)(*arguments)
    assert code == 0, f"{name}: {code}"


def stream_on(device: int) -> int:
    """A stream of the device, whose primary context is current from here on."""
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuStreamCreate", ctypes.byref(stream), 1)  # not ordered with the default stream
    return stream.value or 0


def write(target: tutti.Array, values: list[float], stream: int) -> None:
    host = array.array("f", values)
    address = ctypes.c_void_p(host.buffer_info()[0])
    call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(target.address), address, ctypes.c_size_t(target.nbytes),
         ctypes.c_void_p(stream))
    call("cuStreamSynchronize", ctypes.c_void_p(stream))


def read(source: tutti.Array, stream: int) -> list[float]:
    host = array.array("f", bytes(source.nbytes))
    address = ctypes.c_void_p(host.buffer_info()[0])
    call("cuMemcpyDtoHAsync_v2", address, ctypes.c_uint64(source.address), ctypes.c_size_t(source.nbytes),
         ctypes.c_void_p(stream))
    call("cuStreamSynchronize", ctypes.c_void_p(stream))
    return list(host)


def meet(group: tutti.Communicator, stream: int) -> None:
    """All ranks have got here, and their streams are idle."""
    group.barrier(stream=stream)
    call("cuStreamSynchronize", ctypes.c_void_p(stream))


class OfProtocol:
    """An array that only __cuda_array_interface__ tells, with the stream of its last writer."""

    def __init__(self, of: tutti.Array, stream: int) -> None:
        self.interface = {**of.__cuda_array_interface__, "stream": stream}

    @property
    def __cuda_array_interface__(self) -> dict:
        return self.interface


def refused(text: str, attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except tutti.InvalidArgumentError as error:
        return text in str(error)
    return False


def rank_of(group: tutti.Communicator, report: Callable[[str, bool], None]) -> None:
    rank, size, stream = group.rank, group.size, stream_on(group.device)
    source, target = (tutti.empty(1000, "float32", group) for _ in range(2))
    total = size * (size + 1) / 2
    write(source, [rank + 1.0] * 1000, stream)
    report("the communicator is on a GPU", group.backend == "cuda" and source.device == group.device >= 0)
    group.all_reduce(source, target, stream=stream)
    report("all_reduce in a stream", read(target, stream) == [total] * 1000)
    write(target, [0.0] * 1000, stream)
    group.all_reduce(OfProtocol(source, stream), OfProtocol(target, stream))
    report("__cuda_array_interface__ and its stream", read(target, stream) == [total] * 1000)
    found = dlpack.read(target.__dlpack__())
    report("DLPack", (found.address, found.device_kind, found.device) == (target.address, 2, group.device))
    with tutti.group():
        group.send(source, (rank + 1) % size, stream=stream)
        group.recv(target, (rank - 1) % size, stream=stream)
    report("messages in a group", read(target, stream)[0] == (rank - 1) % size + 1)
    write(target, [0.0] * 1000, stream)
    meet(group, stream)
    group.put_signal(source, target, (rank + 1) % size, 3, stream=stream)
    group.wait_signal((rank - 1) % size, 3, stream=stream)
    report("put and signal", read(target, stream)[999] == (rank - 1) % size + 1)
    meet(group, stream)
    with tutti.Pool(group) as pool:
        block = pool.take(4000, stream)
        part = tutti.Array(block, (1000,), "float32")
        write(part, [2.0] * 1000, stream)
        group.all_reduce(part, part, "avg", stream=stream)
        report("a block of a pool", read(part, stream)[1] == 2.0)
        block.give_back(stream)
        meet(group, stream)
    host = array.array("f", [0.0] * 1000)
    report("arrays of the host are refused", refused("on the host", lambda: group.all_reduce(source, host)))
    report("a number is a stream, a word is none", refused("no stream", lambda: buffers.stream_number("x", None, 0)))
    group.status()
    meet(group, stream)  # CUDA may wait for running kernels before it frees memory


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    outcomes: list[bool] = []

    def run(group: tutti.Communicator) -> None:
        def report(what: str, holds: bool) -> None:
            outcomes.append(holds)
            print(f"{'ok' if holds else 'FAILED'} rank {group.rank}: {what}", flush=True)

        try:
            rank_of(group, report)
        except BaseException as error:
            traceback.print_exc()
            report(f"{type(error).__name__}: {error}", False)
            group.abort(str(error))

    groups = tutti.Communicator.in_process(parser.parse_args().ranks, backend="cuda", timeout=DEADLINE_S)
    for group in groups:
        threading.Thread(target=run, args=(group,), name=str(group.rank)).start()
    for thread in threading.enumerate():
        if thread.name.isdigit():
            thread.join(2 * DEADLINE_S)
    for group in groups:
        group.close()
    sys.exit(not outcomes or not all(outcomes))


if __name__ == "__main__":
    main()
