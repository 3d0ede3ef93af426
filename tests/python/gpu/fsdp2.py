"""FSDP2 on GPUs: python3 tests/python/gpu/fsdp2.py [--ranks 2] [CHECK...]

Gradients on tutti equal those of the unsharded model exactly, since all numbers are small integers.
Needs torch with CUDA; ranks may share one GPU, which the stock path on NCCL cannot.
"""

from typing import Any

import torch
import torch.distributed as dist
from ranks import folder, main
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import tutti
import tutti.torch.fsdp

WIDTH, LAYERS, TOKENS, STEPS = 256, 4, 8, 4


def make_model() -> torch.nn.Sequential:
    """Sparse layers of small integers, so that no sum rounds."""
    generator = torch.Generator().manual_seed(1)
    layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)]
    for layer in layers:
        places = torch.rand(WIDTH, WIDTH, generator=generator) < 2 / WIDTH
        layer.weight.data = places.float()
    return torch.nn.Sequential(*layers).cuda()


def loss(model: torch.nn.Module, rank: int, step: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(100 * step + rank)
    x = torch.randint(0, 3, (TOKENS, WIDTH), generator=generator).float().cuda()
    return model(x.to(next(model.parameters()).dtype)).sum()


def reference(size: int, step: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """The mean over ranks of the gradients of the whole model, which computes in `dtype`."""
    totals = [torch.zeros(WIDTH, WIDTH, device="cuda") for _ in range(LAYERS)]
    for rank in range(size):
        model = make_model().to(dtype)
        loss(model, rank, step).backward()
        for total, parameter in zip(totals, model.parameters()):
            assert parameter.grad is not None
            total += parameter.grad.float()
    return [total / size for total in totals]


def sharded(communicator: tutti.Communicator, policy: MixedPrecisionPolicy) -> torch.nn.Module:
    store = dist.FileStore(f"{folder()}/store", communicator.size)
    dist.init_process_group(
        "gloo", store=store, rank=communicator.rank, world_size=communicator.size
    )
    model = make_model()
    mesh = init_device_mesh("cuda", (communicator.size,))
    for layer in model:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model


def check_steps(
    communicator: tutti.Communicator, policy: MixedPrecisionPolicy, async_op: bool
) -> str:
    model: Any = sharded(communicator, policy)
    tutti.torch.fsdp.attach(model, communicator)
    if async_op:
        model._set_unshard_async_op(True)
    first = None
    for step in range(STEPS):
        loss(model, communicator.rank, step).backward()
        wholes = reference(communicator.size, step, policy.param_dtype or torch.float32)
        for parameter, whole in zip(model.parameters(), wholes):
            own = whole.chunk(communicator.size)[communicator.rank]
            assert parameter.grad is not None
            assert torch.equal(parameter.grad.to_local().float(), own), f"step {step}"
        model.zero_grad()
        torch.cuda.synchronize()
        first = first or communicator.counters()
    communicator.status()
    assert communicator.counters() == first, f"{first}, then {communicator.counters()}"
    dist.destroy_process_group()
    return f"{STEPS} steps, {first}"


def gradients_are_exact(communicator: tutti.Communicator) -> str:
    return check_steps(communicator, MixedPrecisionPolicy(), async_op=False)


def gradients_are_exact_in_bf16(communicator: tutti.Communicator) -> str:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return check_steps(communicator, policy, async_op=False)


def asynchronous_gathers(communicator: tutti.Communicator) -> str:
    return check_steps(communicator, MixedPrecisionPolicy(), async_op=True)


def gathers_use_copy_engines(communicator: tutti.Communicator) -> str:
    plan = communicator.plan("all_gather", count=1 << 22, dtype="uint8", sm_budget=0)
    assert plan.algorithm.endswith("copy_engine"), plan.algorithm
    return plan.text


if __name__ == "__main__":
    main(
        gradients_are_exact,
        gradients_are_exact_in_bf16,
        asynchronous_gathers,
        gathers_use_copy_engines,
    )
