"""vLLM's pattern of calls on GPUs: python3 tests/python/gpu/vllm_pattern.py [--ranks 2] [CHECK...]

Eager warm-up, dozens of captures of falling sizes that share one memory pool, registration after
them, and replays between eager calls. Needs torch with CUDA; ranks may share one GPU.
"""

import random
from dataclasses import dataclass

import torch
from ranks import main

import tutti
import tutti.torch
from tutti.vllm import CustomAllreduce

HIDDEN = 1024
TOKENS = [*range(256, 0, -8), 4, 2, 1]
REPLAYS = 150


def layer(custom: CustomAllreduce, x: torch.Tensor) -> torch.Tensor:
    """Two row-parallel products, as far as communication goes."""
    first = custom.custom_all_reduce(x + 1)
    assert first is not None
    second = custom.custom_all_reduce(first * 0.5)
    assert second is not None
    return second


def expected(rank_inputs: torch.Tensor) -> torch.Tensor:
    size = rank_inputs.shape[0]
    return (rank_inputs + 1).sum(dim=0) * 0.5 * size


def inputs(tokens: int, size: int, seed: int) -> torch.Tensor:
    """Small integers of every rank, [size, tokens, HIDDEN]: all sums are exact in bf16."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(0, 8, (size, tokens, HIDDEN), generator=generator) * 2
    return values.to(torch.bfloat16).cuda()


@dataclass
class Captured:
    graph: torch.cuda.CUDAGraph
    x: torch.Tensor
    y: torch.Tensor

    def replay(self, rank_inputs: torch.Tensor, rank: int) -> None:
        self.x.copy_(rank_inputs[rank])
        self.graph.replay()
        assert torch.equal(self.y, expected(rank_inputs)), f"replay of {self.x.shape[0]} tokens"


def capture_all(custom: CustomAllreduce) -> dict[int, Captured]:
    """A graph per number of tokens, the largest first, as vLLM captures them."""
    graphs: dict[int, Captured] = {}
    pool = torch.cuda.graph_pool_handle()
    stream = torch.cuda.Stream()
    with custom.capture(), torch.cuda.stream(stream):
        for tokens in TOKENS:
            x = torch.zeros(tokens, HIDDEN, dtype=torch.bfloat16, device="cuda")
            layer(custom, x)  # warm-up: eager, within capture()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool, stream=stream):
                y = layer(custom, x)
            graphs[tokens] = Captured(graph, x, y)
    return graphs


def eager(custom: CustomAllreduce, tokens: int, seed: int) -> None:
    communicator = custom.communicator
    assert communicator is not None
    values = inputs(tokens, communicator.size, seed)
    y = layer(custom, values[communicator.rank])
    assert torch.equal(y, expected(values)), f"eager call with {tokens} tokens"


def replays_between_eager_calls(communicator: tutti.Communicator) -> str:
    custom = CustomAllreduce(communicator)
    assert not custom.disabled
    for tokens in TOKENS[::4]:
        eager(custom, tokens, tokens)
    graphs = capture_all(custom)
    before = communicator.counters()
    choices = random.Random(7)
    for seed in range(REPLAYS):
        tokens = choices.choice(TOKENS)
        values = inputs(tokens, communicator.size, 1000 + seed)
        graphs[tokens].replay(values, communicator.rank)
        if seed % 5 == 0:
            eager(custom, choices.choice(TOKENS), seed)
    torch.cuda.synchronize()
    communicator.status()
    after = communicator.counters()
    assert after == before, f"{before} before the replays, {after} after them"
    registered = after.registrations
    graphs.clear()
    torch.cuda.synchronize()
    custom.close()
    assert custom.disabled and not communicator.closed
    return f"{len(TOKENS)} graphs, {REPLAYS} replays, {registered} registrations"


def large_tensors_are_left_to_vllm(communicator: tutti.Communicator) -> str:
    custom = CustomAllreduce(communicator, max_size=1 << 20)
    small = torch.zeros(1 << 19, dtype=torch.bfloat16, device="cuda")
    large = torch.zeros((1 << 19) + 8, dtype=torch.bfloat16, device="cuda")
    assert custom.should_custom_ar(small) and not custom.should_custom_ar(large)
    assert custom.custom_all_reduce(large) is None
    assert not custom.should_custom_ar(small.cpu()), "a tensor on the CPU"
    assert not custom.should_custom_ar(small.view(1024, 512).t()), "a transposed tensor"
    return "1 MiB taken, above it left"


def fused_norm_in_a_graph(communicator: tutti.Communicator) -> str:
    name = "fused"
    tutti.torch.register(name, communicator)
    tokens, size, rank = 32, communicator.size, communicator.rank
    values = inputs(tokens, size, 5)
    residual = inputs(tokens, 1, 6)[0]
    weight = torch.linspace(0.5, 1.5, HIDDEN).to(torch.bfloat16).cuda()
    x = values[rank].clone()
    fused = torch.ops.tutti.all_reduce_residual_rms_norm
    fused(x, residual, weight, name, 1e-6)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with communicator.capture(), torch.cuda.graph(graph):
        y, new_residual = fused(x, residual, weight, name, 1e-6)
    graph.replay()
    total = values.sum(dim=0) + residual
    assert torch.equal(new_residual, total)
    wide = total.float()
    norm = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * weight.float()
    difference = (y.float() - norm).abs().max().item()
    assert torch.allclose(y.float(), norm, rtol=2**-7, atol=1e-3), f"differs by {difference}"
    torch.cuda.synchronize()
    return f"largest difference from fp32 {difference:.4f}"


if __name__ == "__main__":
    main(replays_between_eager_calls, large_tensors_are_left_to_vllm, fused_norm_in_a_graph)
