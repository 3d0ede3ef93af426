"""Times vLLM's custom all-reduce and tutti.vllm.CustomAllreduce as vLLM uses them: in a graph, on tensors of torch's
own allocator, which are registered when the capture ends. Samples and results are those of `tutti bench`.

    VLLM_SOURCE=vllm-0.33.0 tools/peers/build_peers FOLDER
    torchrun --nproc-per-node 4 tools/peers/vllm_all_reduce.py --library FOLDER/libvllm_all_reduce.so \\
        --min-bytes 1K --max-bytes 8M --output vllm.json

Above 8 MB vLLM leaves all-reduces to NCCL. It has 2, 4, 6 and 8 ranks. Never uses NVLink multicast.
Exit status: 0; 1: a result was wrong, or nothing ran; 2: usage; 3: --timeout.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from pathlib import Path

from peer_record import parse_arguments, parser_of
from torch_bench import RankBench, run

HANDLE = 64  # bytes of a handle of CUDA's IPC
VLLM, TUTTI = "vllm_custom_allreduce", "tutti_custom_allreduce"


class Sum(ctypes.Structure):
    """As in vllm_all_reduce.cu."""
    _fields_ = [("dtype", ctypes.c_char_p), ("input", ctypes.c_void_p), ("output", ctypes.c_void_p),
                ("count", ctypes.c_int)]


class VllmAllReduce:
    """vLLM's kernels, through vllm_all_reduce.cu. RuntimeError if one of its functions fails; stderr has the reason.

    `gather(mine)` returns the objects of all ranks, in their order. `staging`: bytes of the largest message."""

    def __init__(self, library: Path, rank: int, ranks: int, staging: int, gather):
        self.library, self.gather = ctypes.CDLL(str(library)), gather
        self.library.vllm_version.restype = ctypes.c_char_p
        self.version = self.library.vllm_version().decode()
        self.object = ctypes.c_void_p()
        handle = ctypes.create_string_buffer(HANDLE)
        self.call("vllm_open", rank, ranks, ctypes.c_size_t(staging), handle, ctypes.byref(self.object))
        self.call("vllm_connect", self.object, b"".join(gather(handle.raw)))

    def call(self, name: str, *arguments) -> None:
        if getattr(self.library, name)(*arguments) != 0:
            raise RuntimeError(f"{name} failed; stderr says why")

    def all_reduce(self, source, target, dtype: str, stream: int) -> None:
        the_sum = Sum(dtype.encode(), source.data_ptr(), target.data_ptr(), source.numel())
        self.call("vllm_all_reduce", self.object, ctypes.byref(the_sum), ctypes.c_void_p(stream))

    @contextlib.contextmanager
    def capture(self):
        """Collective. Around a capture: at its end all ranks know the inputs."""
        yield  # an exception ends the group's bench of this size: attempt() tells all ranks
        count = self.library.vllm_captured(self.object)
        handles, offsets = ctypes.create_string_buffer(HANDLE * count), (ctypes.c_int64 * count)()
        self.call("vllm_handles", self.object, handles, offsets)
        of_ranks = self.gather((handles.raw, list(offsets)))
        all_offsets = [offset for _, of_rank in of_ranks for offset in of_rank]
        self.call("vllm_register", self.object, b"".join(of_rank for of_rank, _ in of_ranks),
                  (ctypes.c_int64 * len(all_offsets))(*all_offsets))


class CustomAllReduces(RankBench):
    """Both buffers from torch's allocator."""
    ALGORITHMS = {VLLM: False, TUTTI: False}
    BUFFERS = "registered"

    def allocate(self, sizes: list[int]) -> list[int]:
        if not super().allocate([self.element_bytes]):  # whose barrier the samples begin with
            return []
        count = max(sizes) // self.element_bytes
        self.buffers = [self.torch.empty(count, dtype=self.dtype, device=self.device) for _ in range(2)]
        from tutti.vllm import CustomAllreduce  # needs torch, which is not imported before this
        self.own = CustomAllreduce(self.hosts, self.device)
        if self.own.disabled:
            raise RuntimeError("tutti's CustomAllreduce is disabled; the log says why")
        self.vllm = VllmAllReduce(self.options.library, self.rank, self.ranks, max(sizes), self.gather)
        return sizes

    def operation(self, algorithm: str):
        if algorithm == TUTTI:
            return lambda: self.own.all_reduce(self.source, out=self.target)
        return lambda: self.vllm.all_reduce(self.source, self.target, self.options.dtype,
                                            self.torch.cuda.current_stream().cuda_stream)

    def warm_up(self, run) -> None:
        """Nothing: vLLM's takes no buffer before a capture has registered it."""

    def registering(self, algorithm: str):
        return (self.own if algorithm == TUTTI else self.vllm).capture()

    def facts(self) -> dict:
        return {"vllm": self.vllm.version}

    def close(self) -> None:
        self.own.close()


def main(words: list[str]) -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--library", type=Path, required=True, help="vLLM's kernels, as build_peers builds them")
    options = parse_arguments(parser, words)
    named = [word.replace(str(options.library), options.library.name) for word in words]  # wherever it lies
    return run(CustomAllReduces, options, ["vllm_all_reduce.py", *named])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
