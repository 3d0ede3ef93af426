"""PyTorch's own all-reduces, timed as `tutti bench` times tutti's, in its format of results.

    torchrun --nproc-per-node 8 tools/peers/torch_symm_mem.py --min-bytes 1K --max-bytes 256M --output torch.json

Columns: torch_one_shot and torch_two_shot (symmetric memory), torch_nccl; the last two exist in place only.
Never uses NVLink multicast. Exit status: 0; 1: a result was wrong, or nothing ran; 2: usage; 3: --timeout.
"""

from __future__ import annotations

import sys

from peer_record import parse_arguments, parser_of
from torch_bench import RankBench, run


class SymmetricMemory(RankBench):
    """Both buffers in torch's symmetric memory."""
    ALGORITHMS = {"torch_one_shot": False, "torch_two_shot": True, "torch_nccl": True}

    def operation(self, algorithm: str):
        """What enqueues one all-reduce on the current stream. AttributeError where this torch has no such one."""
        if algorithm == "torch_nccl":
            return lambda: self.dist.all_reduce(self.target)
        if algorithm == "torch_one_shot":
            one_shot = self.torch.ops.symm_mem.one_shot_all_reduce_out
            return lambda: one_shot(self.source, "sum", self.group, self.target)
        two_shot = self.torch.ops.symm_mem.two_shot_all_reduce_
        return lambda: two_shot(self.target, "sum", self.group)


def main(words: list[str]) -> int:
    return run(SymmetricMemory, parse_arguments(parser_of(__doc__), words), ["torch_symm_mem.py", *words])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
