"""A tensor-parallel MLP: each rank has a part of the hidden layer, and one all-reduce adds the
parts.

tutti run -n 2 python3 tensor_parallel_mlp.py               (or torchrun)

On GPUs the forward pass is captured in a CUDA graph and replayed. The all-reduce's buffers belong
to the graph, so capture() registers them when the capture has ended, and replays are zero-copy.
Exits with 1 if the output differs from that of the whole MLP.
"""

import contextlib
import sys
from collections.abc import Callable

import torch

import tutti

TOKENS, WIDTH, HIDDEN = 16, 128, 512


class ParallelMlp:
    """y = relu(x @ up) @ down, where this rank has some columns of `up` and the same rows of
    `down`."""

    def __init__(self, up: torch.Tensor, down: torch.Tensor, group: tutti.Communicator) -> None:
        self._up = up.chunk(group.size, dim=1)[group.rank].contiguous()
        self._down = down.chunk(group.size, dim=0)[group.rank].contiguous()
        self._group = group

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        part = torch.relu(x @ self._up) @ self._down
        self._group.all_reduce(part, output=part)
        return part


def replayed(
    forward: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, group: tutti.Communicator
) -> Callable[[torch.Tensor], torch.Tensor]:
    """`forward` as a CUDA graph of x's shape."""
    forward(x)  # warms up torch's libraries
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    fixed = x.clone()
    with group.capture(), torch.cuda.graph(graph):
        y = forward(fixed)

    def replay(other: torch.Tensor) -> torch.Tensor:
        fixed.copy_(other)
        graph.replay()
        return y

    return replay


def run(group: tutti.Communicator) -> bool:
    on_gpu = group.backend == "cuda"
    device = torch.device("cuda", group.device) if on_gpu else torch.device("cpu")
    with torch.cuda.device(device) if on_gpu else contextlib.nullcontext():
        generator = torch.Generator().manual_seed(1)  # the same weights and tokens on every rank
        up, down, x = (
            torch.randn(shape, generator=generator).to(device)
            for shape in ((WIDTH, HIDDEN), (HIDDEN, WIDTH), (TOKENS, WIDTH))
        )
        mlp: Callable[[torch.Tensor], torch.Tensor] = ParallelMlp(up, down, group)
        if on_gpu:
            mlp = replayed(mlp, x, group)
        correct = all(
            torch.allclose(mlp(tokens), torch.relu(tokens @ up) @ down, rtol=1e-3, atol=1e-2)
            for tokens in (x, x * 0.5, x + 1)
        )
    if group.rank == 0:
        how = "replayed" if on_gpu else "eager"
        print(f"{group.size} ranks, {group.backend}, {how}: {'equal' if correct else 'DIFFERENT'}")
    return correct


if __name__ == "__main__":
    with tutti.Communicator.from_environment() as group:
        passed = run(group)
    sys.exit(0 if passed else 1)
