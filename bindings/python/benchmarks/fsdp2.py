"""Times a training step of FSDP2 on NCCL, as torch has it, and on tutti.

torchrun --standalone --nproc-per-node 4 fsdp2.py [--layers N] [--width N] [--tokens N] [--steps N]
                                                  [--rounds N] [--output FILE]

The model has transformer blocks as Llama 3 has them: attention, and an MLP of 3.5 times the width. Parameters
are fp32, gathered and multiplied as bf16; gradients are reduced as bf16. Each rank has a GPU of its own
and sequences of its own. The two arms take turns, AB BA AB. A step is forward, backward and
optimizer. Times are in ms: the median of a round's steps, of the slowest rank. Losses of both arms are
compared. Prints a table; --output writes what was measured as JSON.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.functional import scaled_dot_product_attention, silu

import tutti
import tutti.torch.fsdp

ARMS = ("nccl", "tutti")
HEAD = 128
WARMUP = 3


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        hidden = width * 7 // 2
        self.heads = width // HEAD
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.shape[1]
        q, k, v = (
            part.view(1, tokens, self.heads, HEAD).transpose(1, 2)
            for part in self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        )
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        gate, value = self.up(self.norms[1](x)).chunk(2, dim=-1)
        return x + self.down(silu(gate) * value)


def make_model(options: argparse.Namespace) -> nn.Sequential:
    """Sharded; equal parameters on every rank and in both arms."""
    torch.manual_seed(1)
    model = nn.Sequential(*(Block(options.width) for _ in range(options.layers))).cuda()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    for block in model:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model


class Arm:
    """A model and its optimizer, on what it communicates by."""

    def __init__(self, options: argparse.Namespace, group: tutti.Communicator | None):
        self.model = make_model(options)
        if group is not None:
            tutti.torch.fsdp.attach(self.model, group)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        generator = torch.Generator(device="cuda").manual_seed(100 + dist.get_rank())
        shape = (1, options.tokens, options.width)
        self.batch = torch.randn(shape, device="cuda", generator=generator, dtype=torch.bfloat16)
        self.losses: list[float] = []

    def step(self) -> torch.Tensor:
        loss = self.model(self.batch).float().square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def round_ms(self, steps: int) -> float:
        """The median of this rank."""
        for _ in range(WARMUP):
            self.step()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
        torch.cuda.synchronize()
        dist.barrier()
        events[0].record()
        for event in events[1:]:
            loss = self.step()
            event.record()
        torch.cuda.synchronize()
        self.losses.append(float(loss))
        return statistics.median(a.elapsed_time(b) for a, b in zip(events, events[1:]))


def slowest(ms: float) -> float:
    worst = torch.tensor([ms], device="cuda")
    dist.all_reduce(worst, op=dist.ReduceOp.MAX)
    return float(worst)


def measure(options: argparse.Namespace, group: tutti.Communicator) -> dict[str, Any]:
    arms = {name: Arm(options, group if name == "tutti" else None) for name in ARMS}
    rounds: dict[str, list[float]] = {name: [] for name in ARMS}
    order = list(ARMS)
    for _ in range(options.rounds):
        for name in order:
            rounds[name].append(round(slowest(arms[name].round_ms(options.steps)), 3))
        order.reverse()  # clocks fall while the GPUs get warm
    group.status()
    return {
        "schema": "tutti.fsdp2/1",
        "gpu": torch.cuda.get_device_name(),
        "ranks": group.size,
        "torch": torch.__version__,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
        "model": {name: getattr(options, name) for name in ("layers", "width", "tokens")},
        "steps": options.steps,
        "round_ms": rounds,
        "median_ms": {name: statistics.median(times) for name, times in rounds.items()},
        "last_losses": {name: arm.losses for name, arm in arms.items()},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default in (
        ("layers", 8),
        ("width", 4096),
        ("tokens", 4096),
        ("steps", 10),
        ("rounds", 5),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    with tutti.Communicator.from_environment(backend="cuda") as group:
        torch.cuda.set_device(group.device)
        dist.init_process_group("nccl", device_id=torch.device("cuda", group.device))
        record = measure(options, group)
        dist.destroy_process_group()
    if group.rank == 0:
        medians = record["median_ms"]
        print("arm    rounds, ms")
        for name in ARMS:
            print(f"{name:<6} {record['round_ms'][name]}, median {medians[name]}")
        print(f"nccl / tutti: {medians['nccl'] / medians['tutti']:.3f}")
        print(f"losses: {record['last_losses']}")
        if options.output:
            options.output.write_text(json.dumps(record, indent=1) + "\n")
    pairs = zip(*record["last_losses"].values())
    return 0 if all(abs(a - b) <= 0.02 * abs(a) for a, b in pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
