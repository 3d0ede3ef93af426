"""FSDP2 on tutti: the gradients of the stock path, and no allocation after the first iteration."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import tutti
import tutti.torch.fsdp
from forked import run_ranks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

WIDTH, LAYERS, STEPS = 24, 3, 4
Model = torch.nn.Sequential
Options = dict[str, Any]


def make_model(rank: int, size: int, folder: str, options: Options) -> Model:
    if not dist.is_initialized():
        store = dist.FileStore(f"{folder}/store", size)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    torch.manual_seed(3)
    model = Model(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))
    hybrid = options.get("hybrid")
    shape, names = ((2, size // 2), ("copies", "shards")) if hybrid else ((size,), ("shards",))
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    policy = options.get("policy", MixedPrecisionPolicy())
    for layer in model:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    for part in (model, *model):
        if factor := options.get("divide_by"):
            part.set_gradient_divide_factor(factor)
    return model


def train(model: Model, rank: int, after: Callable[[], None]) -> list[list[torch.Tensor]]:
    """The gradients of each step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gradients = []
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(10 * step + rank)
        model(torch.randn(8, WIDTH, generator=generator)).square().mean().backward()
        gradients.append([p.grad.to_local().clone() for p in model.parameters()])
        optimizer.step()
        optimizer.zero_grad()
        after()
    return gradients


def both(rank: int, size: int, folder: str, unique: str, options: Options) -> tuple[Any, ...]:
    stock = train(make_model(rank, size, folder, options), rank, lambda: None)
    with tutti.Communicator(unique, rank, size, backend="host", timeout=30) as everyone:
        half = 2 * rank // size if options.get("hybrid") else 0
        communicator = everyone.split(half, rank)
        model = make_model(rank, size, folder, options)
        pool = tutti.torch.fsdp.attach(model, communicator)
        if options.get("async_op"):
            model._set_unshard_async_op(True)
        counted = []
        ours = train(model, rank, lambda: counted.append(communicator.counters()))
        blocks = pool.use()["blocks"]
        communicator.close()
    largest = max(
        float((a - b).abs().max())
        for x, y in zip(stock, ours, strict=True)
        for a, b in zip(x, y, strict=True)
        if a.numel()
    )
    return largest, counted, blocks


@pytest.mark.parametrize(
    ("size", "options", "tolerance"),
    [
        (2, {}, 0),
        (2, {"async_op": True}, 0),
        (3, {"policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16)}, 2e-2),
        (4, {"hybrid": True}, 0),
        (2, {"policy": MixedPrecisionPolicy(torch.float16, torch.float16)}, 0),
    ],
    ids=["fp32", "async", "bf16-of-3", "hybrid-of-4", "fp16-sums"],
)
def test_gradients_are_those_of_the_stock_path(
    tmp_path: Path, size: int, options: Options, tolerance: float
) -> None:
    unique = str(tutti.UniqueId.create())
    for largest, counted, blocks in run_ranks(size, both, size, str(tmp_path), unique, options):
        assert largest <= tolerance
        assert 2 <= blocks <= 3 * LAYERS + 2
        assert counted[1:] == counted[:1] * (STEPS - 1)


def premultiplied(rank: int, size: int, folder: str, unique: str) -> float:
    """Gloo has no PREMUL_SUM: a factor of 5 is compared with the average."""
    by_size, by_5 = [], []
    with tutti.Communicator(unique, rank, size, backend="host", timeout=30) as communicator:
        for factor, gradients in ((None, by_size), (5.0, by_5)):
            model = make_model(rank, size, folder, {"divide_by": factor})
            tutti.torch.fsdp.attach(model, communicator)
            model(torch.ones(4, WIDTH) * (rank + 1)).square().mean().backward()
            gradients += [p.grad.to_local() * (factor or size) for p in model.parameters()]
    return max(float((a - b).abs().max()) for a, b in zip(by_size, by_5, strict=True) if a.numel())


def test_gradient_divide_factors_are_multiples_of_sums(tmp_path: Path) -> None:
    unique = str(tutti.UniqueId.create())
    assert max(run_ranks(2, premultiplied, 2, str(tmp_path), unique)) < 1e-5


def buffers(rank: int, size: int, unique: str) -> list[int]:
    """Addresses, relative to the first one, of buffers that come and go."""
    with tutti.Communicator(unique, rank, size, backend="host", timeout=30) as communicator:
        source = tutti.torch.fsdp._Buffers(communicator, tutti.Pool(communicator))
        cpu = torch.device("cpu")

        def make() -> torch.Tensor:
            return source.allocate((3, 5000), torch.float32, cpu)

        first, second = make(), make()
        view = first[1:, 7:]
        first_at, second_at = first.data_ptr(), second.data_ptr()
        del first  # the view keeps it
        gc.collect()
        third = make()
        third_at = third.data_ptr()
        assert len({first_at, second_at, third_at}) == 3
        view.fill_(1)
        assert not third.any() and not second.any()
        del view, second
        reused = [make(), make()]
        assert [t.data_ptr() for t in reused] == [first_at, second_at]
        empty = source.allocate((0, 3), torch.float32, cpu)
        assert empty.numel() == 0
        with pytest.raises(tutti.InvalidArgumentError, match="parameters on meta"):
            source.allocate((3,), torch.float32, torch.device("meta"))
    third.fill_(2)  # memory outlives its communicator
    return [communicator.rank]


def test_a_block_is_reused_once_all_views_of_its_tensor_are_gone() -> None:
    assert run_ranks(2, buffers, 2, str(tutti.UniqueId.create())) == [[0], [1]]


def refusals(rank: int, folder: str) -> None:
    plain = torch.nn.Linear(2, 2)
    both_ranks = tutti.Communicator.in_process(2, backend="host", timeout=30)
    with pytest.raises(tutti.InvalidArgumentError, match="call fully_shard"):
        tutti.torch.fsdp.attach(plain, both_ranks[0])
    store = dist.FileStore(f"{folder}/store", 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    gather = tutti.torch.fsdp.AllGather(
        tutti.torch.fsdp._Buffers(both_ranks[0], tutti.Pool(both_ranks[0])), None
    )
    with pytest.raises(tutti.InvalidArgumentError, match="rank 0 of 1, but .* is rank 0 of 2"):
        gather(torch.empty(2), torch.empty(1), dist.group.WORLD)
    for communicator in both_ranks:
        communicator.close()


def test_refusals(tmp_path: Path) -> None:
    run_ranks(1, refusals, str(tmp_path))
