"""all_gather_matmul() on torch tensors on GPUs:

python3 tests/python/gpu/products.py [--ranks 2] [CHECK...]

Needs torch with CUDA; ranks may share one GPU. Elements are small integers, so sums are exact.
"""

import torch
from ranks import main

import tutti

ROWS, K, N = 64, 256, 128


def inputs(communicator: tutti.Communicator) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The whole A, and two matrices B, equal on every rank."""
    made = torch.Generator(device="cuda").manual_seed(7)
    a, *b = (
        torch.randint(-2, 3, shape, device="cuda", generator=made).bfloat16()
        for shape in ((ROWS * communicator.size, K), (K, N), (K, 2 * N))
    )
    return a, b


def products_are_torchs(communicator: tutti.Communicator) -> str:
    a, b = inputs(communicator)
    mine = a[ROWS * communicator.rank : ROWS * (communicator.rank + 1)]
    symmetric = tutti.empty((ROWS, K), torch.bfloat16, communicator).torch()
    symmetric.copy_(mine)
    bias = torch.arange(N, device="cuda").remainder(5).bfloat16()
    for shard in (mine, symmetric):
        for algorithm in (None, "unfused", "pipelined_shift", "pipelined_tiles"):
            gathered = torch.empty_like(a)
            c = communicator.all_gather_matmul(
                shard, b, bias=[bias, None], gathered=gathered, algorithm=algorithm
            )
            assert torch.equal(c[0], a @ b[0] + bias), algorithm
            assert torch.equal(c[1], a @ b[1]), algorithm
            assert torch.equal(gathered, a), algorithm
    weight = b[0].t().contiguous()
    assert torch.equal(communicator.all_gather_matmul(mine, weight, b_layout="column"), a @ b[0])
    communicator.status()
    return communicator.all_gather_matmul_plan(mine, b).why


def graphs_replay_products(communicator: tutti.Communicator) -> str:
    a, b = inputs(communicator)
    mine = a[ROWS * communicator.rank : ROWS * (communicator.rank + 1)].clone()
    out = a.new_empty(len(a), N)
    workspace = torch.empty_like(a)
    options = {"algorithm": "unfused", "workspace": workspace}
    communicator.all_gather_matmul(mine, b[0], out, **options)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        communicator.all_gather_matmul(mine, b[0], out, **options)
    for factor in (1, 2, 4):
        mine.copy_(a[ROWS * communicator.rank : ROWS * (communicator.rank + 1)] * factor)
        graph.replay()
        assert torch.equal(out, (a * factor) @ b[0]), factor
    torch.cuda.synchronize()
    communicator.status()
    return "3 replays"


if __name__ == "__main__":
    main(products_are_torchs, graphs_replay_products)
