"""vLLM's pattern of calls on the host backend, which has no graphs: tests/python/gpu has those."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import tutti
import tutti.torch
import tutti.vllm
from forked import run_ranks
from tutti.vllm import CustomAllreduce

HIDDEN = 256
TOKENS = [*range(64, 0, -8), 4, 2, 1]


def inputs(tokens: int, size: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(0, 8, (size, tokens, HIDDEN), generator=generator)
    return values.to(torch.bfloat16)


def check_eager(custom: CustomAllreduce, tokens: int, seed: int) -> None:
    communicator = custom.communicator
    assert communicator is not None
    values = inputs(tokens, communicator.size, seed)
    own = values[communicator.rank].clone()
    total = custom.custom_all_reduce(own)
    assert total is not None and total.data_ptr() != own.data_ptr()
    assert torch.equal(total, values.sum(dim=0)), f"{tokens} tokens"
    assert torch.equal(own, values[communicator.rank]), "the input has changed"


def pattern(rank: int, size: int, folder: str) -> None:
    store = dist.FileStore(f"{folder}/store", size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    custom = CustomAllreduce(dist.group.WORLD, "cpu", symm_mem_enabled=False)
    assert not custom.disabled and custom.communicator is not None
    for tokens in TOKENS:
        check_eager(custom, tokens, tokens)
    before = custom.communicator.counters()
    with custom.capture():
        for tokens in TOKENS:
            check_eager(custom, tokens, 100 + tokens)
    choices = random.Random(7)
    for seed in range(100):
        check_eager(custom, choices.choice(TOKENS), seed)
    assert custom.communicator.counters() == before
    custom.close()
    custom.close()
    assert custom.disabled and custom.custom_all_reduce(torch.ones(16)) is None
    dist.destroy_process_group()


def test_eager_calls_between_captures(tmp_path: Path) -> None:
    run_ranks(2, pattern, 2, str(tmp_path))


def choices(rank: int, size: int) -> None:
    both = tutti.Communicator.in_process(size, backend="host", timeout=30)
    custom = CustomAllreduce(both[0], max_size=4096)
    assert custom.should_custom_ar(torch.ones(1024))
    assert not custom.should_custom_ar(torch.ones(1025)), "above max_size"
    assert not custom.should_custom_ar(torch.ones(0))
    assert not custom.should_custom_ar(torch.ones(16, 16).t()[:, :3]), "gaps"
    assert not custom.should_custom_ar(torch.ones(16, dtype=torch.complex64)), "no such type"
    assert not custom.should_custom_ar(torch.ones(16, device="meta"))
    with custom.capture(), pytest.raises(tutti.InvalidArgumentError, match="within"):
        with custom.capture():
            pass
    custom.close()
    assert not both[0].closed, "it belongs to the caller"
    for communicator in both:
        communicator.close()
    (alone,) = tutti.Communicator.in_process(1, backend="host")
    with alone:
        assert CustomAllreduce(alone).disabled


def test_what_tutti_takes() -> None:
    run_ranks(1, choices, 2)


def no_gpu(rank: int, size: int, folder: str) -> bool:
    store = dist.FileStore(f"{folder}/store", size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    return CustomAllreduce(dist.group.WORLD, "cpu" if rank == 0 else "cuda:63").disabled


def test_a_rank_without_its_device_disables_all(tmp_path: Path) -> None:
    assert run_ranks(2, no_gpu, 2, str(tmp_path)) == [True, True]


def late_failure(rank: int, size: int, folder: str) -> bool:
    """Rank 1 fails when rank 0 has its communicator."""
    store = dist.FileStore(f"{folder}/store", size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)

    class Failing(tutti.Communicator):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            if rank == 1:
                self.close()
                raise tutti.UnavailableError("late")

    tutti.vllm.Communicator = Failing  # type: ignore[misc]
    return CustomAllreduce(dist.group.WORLD, "cpu").disabled


def test_a_rank_that_fails_late_disables_all(tmp_path: Path) -> None:
    assert run_ranks(2, late_failure, 2, str(tmp_path)) == [True, True]


def norms(rank: int, size: int, unique: str) -> None:
    with tutti.Communicator(unique, rank, size, backend="host", timeout=30) as communicator:
        name = "norms"
        tutti.torch.register(name, communicator)
        values = inputs(6, size, 1).repeat(1, 1, 4).float()
        residual, weight = inputs(6, 1, 2)[0].repeat(1, 4).float(), torch.linspace(0.5, 1.5, 1024)
        x, epsilon = values[rank].clone(), 1e-5
        total = values.sum(dim=0) + residual
        norm = total * torch.rsqrt(total.square().mean(dim=-1, keepdim=True) + epsilon) * weight

        ops = torch.ops.tutti
        y, new = ops.all_reduce_residual_rms_norm(x, residual, weight, name, epsilon)
        assert torch.equal(new, total) and torch.allclose(y, norm, rtol=1e-5)
        assert torch.equal(x, values[rank])

        narrow = torch.empty(x.shape, dtype=torch.float8_e4m3fn)
        ops.all_reduce_residual_rms_norm_out(
            x, residual, weight, name, epsilon, 0.5, output=narrow, residual_output=new
        )
        assert torch.equal(narrow, (norm / 0.5).to(torch.float8_e4m3fn))

        ops.all_reduce_residual_rms_norm_(x, residual, weight, name, epsilon)
        assert torch.equal(x, y) and torch.equal(residual, total)

        with pytest.raises(tutti.InvalidArgumentError, match="weight is"):
            ops.all_reduce_residual_rms_norm(x, residual[:2], weight, name, epsilon)
        with pytest.raises(tutti.InvalidArgumentError, match="one type"):
            ops.all_reduce_residual_rms_norm(x, residual.half(), weight, name, epsilon)


def test_fused_norm() -> None:
    run_ranks(2, norms, 2, str(tutti.UniqueId.create()))


def compiled_norm(rank: int, unique: str) -> None:
    with tutti.Communicator(unique, 0, 1, backend="host", timeout=30) as communicator:
        name = "compiled"
        tutti.torch.register(name, communicator)
        x, residual, weight = torch.ones(2, 1024), torch.ones(2, 1024), torch.ones(1024)
        op = torch.ops.tutti.all_reduce_residual_rms_norm.default
        torch.library.opcheck(op, (x, residual, weight, name, 1e-6))


def test_the_fused_norm_is_an_operator_that_torch_can_trace() -> None:
    run_ranks(1, compiled_norm, str(tutti.UniqueId.create()))
