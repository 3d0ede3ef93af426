"""tutti.torch on GPUs: one per rank, or one that two ranks share."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch_ranks import in_group

import tutti.torch

GPUS = torch.cuda.device_count()  # asks NVML, so that ranks can be forked
SIZE = min(max(GPUS, 2), 4)
pytestmark = pytest.mark.skipif(GPUS == 0, reason="no GPU")


@pytest.fixture(autouse=True)
def shared_gpus(monkeypatch: Any) -> Iterator[None]:
    if SIZE > GPUS:
        monkeypatch.setenv("TUTTI_SHARE_GPUS", "1")
    yield


def on_gpu(rank: int) -> torch.device:
    device = torch.device("cuda", rank % GPUS)
    torch.cuda.set_device(device)
    return device


def ranks_sum(values: Any) -> float:
    return float(sum(values(rank) for rank in range(SIZE)))


def check_collectives(rank: int) -> None:
    device = on_gpu(rank)
    for count in (1, 1000, 1 << 20):
        for asynchronous in (False, True):
            check_count(rank, device, count, asynchronous)
    on_host = torch.ones(3)
    dist.all_reduce(on_host)  # tensors on the CPU in the same group
    assert on_host.tolist() == [float(SIZE)] * 3


def check_count(rank: int, device: torch.device, count: int, asynchronous: bool) -> None:
    def done(work: Any) -> None:
        if asynchronous:
            work.wait()

    x = torch.full((count,), rank + 1.0, device=device)
    done(dist.all_reduce(x, async_op=asynchronous))
    total = ranks_sum(lambda r: r + 1)
    gathered = torch.empty(SIZE * count, device=device)
    mine = torch.full((count,), float(rank), device=device)
    done(dist.all_gather_into_tensor(gathered, mine, async_op=asynchronous))
    parts = [torch.empty(count + r, device=device) for r in range(SIZE)]
    uneven = torch.full((count + rank,), float(rank), device=device)
    done(dist.all_gather(parts, uneven, async_op=asynchronous))
    scattered = torch.empty(count, device=device)
    done(dist.reduce_scatter_tensor(scattered, gathered, async_op=asynchronous))
    exchanged = torch.empty_like(gathered)
    source = torch.full_like(gathered, float(rank))
    done(dist.all_to_all_single(exchanged, source, async_op=asynchronous))
    rows = [count + r + rank for r in range(SIZE)]  # between two ranks the same both ways
    received = torch.empty(sum(rows), device=device)
    sent = torch.full_like(received, float(rank))
    done(dist.all_to_all_single(received, sent, rows, rows, async_op=asynchronous))
    root = torch.full((count,), float(rank), device=device)
    done(dist.broadcast(root, 1, async_op=asynchronous))
    torch.cuda.synchronize()
    each = torch.arange(SIZE, dtype=torch.float32, device=device)
    assert (x == total).all()
    assert torch.equal(gathered, each.repeat_interleave(count))
    assert all((part == r).all() for r, part in enumerate(parts))
    assert (scattered == SIZE * rank).all()
    assert torch.equal(exchanged, each.repeat_interleave(count))
    assert torch.equal(received, torch.cat([torch.full((n,), float(r), device=device)
                                            for r, n in enumerate(rows)]))
    assert (root == 1).all()


def check_order(rank: int) -> None:
    """An asynchronous operation waits for what computes its input, and what comes after the wait for
    it. Its memory may be freed before."""
    device = on_gpu(rank)
    matrix = torch.eye(2048, device=device)
    works, results = [], []
    for step in range(10):
        busy = matrix
        for _ in range(20):
            busy = busy @ matrix
        x = busy[0, :1].repeat(1 << 18) * (step + rank)
        works.append(dist.all_reduce(x, async_op=True))
        results.append(x)
        del x, busy
    futures = [work.get_future() for work in works[:2]]
    for step, (work, x) in enumerate(zip(works, results, strict=True)):
        work.wait()
        assert (x * 2 == 2 * ranks_sum(lambda r, s=step: s + r)).all()
    assert futures[0].wait()[0] is results[0]
    torch.cuda.synchronize()
    assert all(work.is_completed() for work in works)
    dist.barrier()


def check_messages(rank: int) -> None:
    """All send to the next rank first, more than fits anywhere."""
    device = on_gpu(rank)
    after, before = (rank + 1) % SIZE, (rank - 1) % SIZE
    x = torch.full((8 << 20,), rank + 1.0, device=device)
    for _ in range(3):
        y = torch.zeros_like(x)
        operations = [dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, y, before)]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        assert (y == before + 1).all()
    world = dist.group.WORLD
    with dist._coalescing_manager(world, device, async_ops=True) as coalesced:
        world.send([x], after, 0)
        world.recv([y.zero_()], before, 0)
    coalesced.wait()
    assert (y == before + 1).all()


def check_operators(rank: int) -> None:
    """torch.ops.tutti: eager, compiled, in a CUDA graph."""
    device = on_gpu(rank)
    name = dist.group.WORLD.group_name
    ops = torch.ops.tutti

    def body(x: torch.Tensor) -> torch.Tensor:
        y = ops.all_reduce(x, "sum", name) * 2
        ops.all_reduce_(y, "max", name)
        return ops.reduce_scatter(ops.all_gather(y, name), "avg", name)

    x = torch.arange(4096.0, device=device) + rank
    eager = body(x)
    assert torch.equal(eager, (torch.arange(4096.0, device=device) * SIZE
                               + ranks_sum(lambda r: r)) * 2)
    assert torch.equal(torch.compile(body, fullgraph=True, backend="aot_eager")(x), eager)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        captured = body(x)
    for step in range(3):
        x.fill_(float(step + rank))
        graph.replay()
        torch.cuda.synchronize()
        assert (captured == 2 * ranks_sum(lambda r, s=step: s + r)).all()
    dist.barrier()


def check_training(rank: int) -> None:
    device = on_gpu(rank)
    runs = []
    for _ in range(2):
        torch.manual_seed(7)
        layers = (torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8))
        model = torch.nn.Sequential(*layers).to(device)
        parallel = DistributedDataParallel(model, device_ids=[device.index], bucket_cap_mb=0.05)
        torch.manual_seed(rank)
        optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            parallel(torch.randn(16, 64, device=device)).square().mean().backward()
            optimizer.step()
        runs.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(*runs)
    everyone = [torch.empty_like(runs[0]) for _ in range(SIZE)]
    dist.all_gather(everyone, runs[0])
    assert all(torch.equal(other, runs[0]) for other in everyone)


def check_sharded_training(rank: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    device = on_gpu(rank)
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8))
    model.to(device)
    mesh = init_device_mesh("cuda", (SIZE,))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.ones(16, 64, device=device)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    "body",
    [
        check_collectives,
        check_order,
        check_messages,
        check_operators,
        check_training,
        check_sharded_training,
    ],
)
def test_on_gpus(body: Any) -> None:
    assert tutti.torch.ProcessGroup is not None and "CUDA_LAUNCH_BLOCKING" not in os.environ
    in_group(SIZE, body)
