"""One training step of FSDP2 on tutti, compared with the same step of an unsharded model.

torchrun --standalone --nproc-per-node 2 fsdp2_step.py      (or `tutti run -n 2 python3 ...`)

Runs on GPUs if each rank has one, else on the host. Exits with 1 if a gradient differs, or if a
step after the first one allocates, registers or exchanges anything.
"""

import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.functional import mse_loss

import tutti
import tutti.torch.fsdp

WIDTH, LAYERS, TOKENS = 64, 4, 32


def make_model(device: torch.device) -> torch.nn.Sequential:
    """The same parameters on every rank."""
    torch.manual_seed(1)
    layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)]
    return torch.nn.Sequential(*layers).to(device)


def batch(rank: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(100 + rank)
    x = torch.randn(TOKENS, WIDTH, generator=generator)
    return x.to(device), torch.zeros(TOKENS, WIDTH, device=device)


def step(model: torch.nn.Module, rank: int, device: torch.device) -> None:
    x, target = batch(rank, device)
    mse_loss(model(x), target).backward()


def reference(size: int, device: torch.device) -> list[torch.Tensor]:
    """The gradients of the mean over all ranks' batches, without sharding."""
    model = make_model(device)
    for rank in range(size):
        step(model, rank, device)
    return [p.grad / size for p in model.parameters() if p.grad is not None]


def compare(model: torch.nn.Module, expected: list[torch.Tensor]) -> bool:
    gradients = [p.grad.full_tensor() for p in model.parameters() if isinstance(p.grad, DTensor)]
    return len(gradients) == LAYERS and all(
        torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(gradients, expected)
    )


def train(group: tutti.Communicator) -> bool:
    device = torch.device("cpu")
    if group.backend == "cuda":
        device = torch.device("cuda", group.device)
        torch.cuda.set_device(device)
    model = make_model(device)
    mesh = init_device_mesh(device.type, (group.size,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    tutti.torch.fsdp.attach(model, group)  # from here on tutti gathers and reduces

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step(model, group.rank, device)
    correct = compare(model, reference(group.size, device))
    after_first = group.counters()
    for _ in range(3):
        optimizer.step()
        optimizer.zero_grad()
        step(model, group.rank, device)
    quiet = group.counters() == after_first
    if group.rank == 0:
        print(
            f"{group.size} ranks, {group.backend}: gradients {'equal' if correct else 'DIFFER'}, "
            f"later steps {'allocate nothing' if quiet else 'ALLOCATE'}"
        )
    return correct and quiet


def main() -> int:
    with tutti.Communicator.from_environment() as group:
        # FSDP2 reads its ranks from a process group, which also collects the compared gradients.
        dist.init_process_group("gloo", rank=group.rank, world_size=group.size)
        passed = train(group)
        dist.destroy_process_group()
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
