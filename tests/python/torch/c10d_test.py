"""The backend "tutti" of torch.distributed, on the CPU: what torch's own tests do not ask."""

import os
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import distributed_suite
import pytest
import shared_gpu
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from forked import run_ranks
from torch_ranks import in_group, process_group
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

import tutti
import tutti.torch


def check_lists(rank: int) -> None:
    """Lists of parts of unequal sizes, which gloo does not have."""
    gathered = [torch.zeros(1), torch.zeros(3)]
    dist.all_gather(gathered, torch.full((1 + 2 * rank,), rank + 5.0))
    assert [part.tolist() for part in gathered] == [[5.0], [6.0] * 3]
    mine = torch.zeros(1 + 2 * rank)
    dist.reduce_scatter(mine, [torch.ones(1), torch.full((3,), 2.0)])
    assert mine.tolist() == ([4.0] * 3 if rank else [2.0])
    outputs = [torch.zeros(other + rank) for other in range(2)]
    dist.all_to_all(outputs, [torch.full((rank + other,), rank + 1.0) for other in range(2)])
    assert [part.tolist() for part in outputs] == [[1.0] * rank, [2.0] * (1 + rank)]


def check_types(rank: int) -> None:
    """Types that tutti does not have go as others."""
    flags = torch.tensor([rank == 0, rank == 1, True, False])
    for op, expected in (
        (dist.ReduceOp.SUM, [True, True, True, False]),
        (dist.ReduceOp.MAX, [True, True, True, False]),
        (dist.ReduceOp.PRODUCT, [False, False, True, False]),
        (dist.ReduceOp.MIN, [False, False, True, False]),
    ):
        copy = flags.clone()
        dist.all_reduce(copy, op)
        assert copy.tolist() == expected, op
    numbers = torch.tensor([1 + 1j, rank * 1j])
    dist.all_reduce(numbers)
    assert numbers.tolist() == [2 + 2j, 1j]
    short = torch.full((3,), rank, dtype=torch.int16)
    dist.broadcast(short, 1)
    assert short.tolist() == [1, 1, 1]
    half = torch.full((4,), rank + 1.0, dtype=torch.bfloat16)
    dist.all_reduce(half, dist.ReduceOp.AVG)
    assert half.tolist() == [1.5] * 4
    scalar = torch.tensor(float(rank))
    dist.all_reduce(scalar)
    assert scalar.item() == 1.0


def check_layouts(rank: int) -> None:
    """Tensors that are not contiguous, and parameters, are read and written like others."""
    matrix = torch.zeros(3, 4).t()
    matrix[:, 1] = rank + 1.0
    dist.all_reduce(matrix)
    assert matrix[:, 1].tolist() == [3.0] * 4 and matrix.sum() == 12
    column = torch.zeros(4, 2)
    dist.all_gather_into_tensor(column.view(-1), torch.full((4,), rank + 1.0))
    assert column.flatten().tolist() == [1.0] * 4 + [2.0] * 4
    parameter = torch.nn.Parameter(torch.full((2,), float(rank)))
    dist.broadcast(parameter, 1)
    gathered = [torch.empty(2, requires_grad=True) for _ in range(2)]
    dist.all_gather(gathered, parameter)
    assert parameter.tolist() == gathered[0].tolist() == [1.0, 1.0]


def check_refusals(rank: int) -> None:
    x = torch.ones(4, dtype=torch.int32)
    for op in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
        with pytest.raises(tutti.UnsupportedError, match="SUM, AVG, PRODUCT, MIN, MAX"):
            dist.all_reduce(x, op)
    with pytest.raises(tutti.UnsupportedError, match="name"):
        dist.recv(x)
    with pytest.raises(tutti.InvalidArgumentError, match="no elements of type torch.int16"):
        dist.all_reduce(x.short())
    with pytest.raises(tutti.InvalidArgumentError, match="2 ranks with 4 elements"):
        dist.all_gather_into_tensor(x, x)
    with pytest.raises(tutti.InvalidArgumentError, match="split sizes"):
        dist.all_to_all_single(x, x, [1, 2], [2, 2])
    with pytest.raises(tutti.UnsupportedError, match="to_dense"):
        dist.all_reduce(torch.eye(2).to_sparse(), dist.ReduceOp.MAX)
    dist.all_reduce(x)
    assert x.tolist() == [2] * 4


def check_asynchronous(rank: int) -> None:
    """Works of many operations at once, their futures, and what runs behind them."""
    tensors = [torch.full((1000,), rank + float(i)) for i in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    doubled = works[0].get_future().then(lambda done: done.value()[0] * 2)
    synchronous = torch.ones(1)
    dist.all_reduce(synchronous)  # after all of them
    assert all(work.is_completed() and work.is_success() for work in works)
    for i, (work, tensor) in enumerate(zip(works, tensors, strict=True)):
        work.wait()
        assert (tensor == 2 * i + 1).all() and work.result()[0] is tensor
    assert (doubled.wait() == 2).all() and synchronous.item() == 2


def check_callbacks(rank: int) -> None:
    """A collective that the result of another one leads to comes next, also if that result is late."""
    if rank == 0:
        time.sleep(0.2)
    first, second = torch.ones(1), torch.full((1,), 2.0)

    def again(done: Any) -> torch.Tensor:
        return dist.all_reduce(done.value()[0], async_op=True).get_future().wait()[0]

    chained = dist.all_reduce(first, async_op=True).get_future().then(again)
    last = dist.all_reduce(second, dist.ReduceOp.PRODUCT, async_op=True)
    last.wait()
    assert chained.wait().item() == 4 and second.item() == 4


def check_multiples(rank: int) -> None:
    """PREMUL_SUM, which FSDP uses to divide gradients."""
    if hasattr(torch._C._distributed_c10d, "_make_nccl_premul_sum"):
        x = torch.full((4,), rank + 1.0)
        dist.all_reduce(x, torch._C._distributed_c10d._make_nccl_premul_sum(0.5))
        assert x.tolist() == [1.5] * 4
        y = torch.full((4,), rank + 1.0)
        dist.all_reduce(y, torch._C._distributed_c10d._make_nccl_premul_sum(torch.tensor([3.0])))
        assert y.tolist() == [9.0] * 4


def check_messages(rank: int) -> None:
    """Both send first, more than fits anywhere; then in a batch, and coalesced."""
    peer, large = 1 - rank, 4 << 20
    x, y = torch.full((large,), rank + 1.0), torch.zeros(large)
    sent = dist.isend(x, peer)
    work = dist.irecv(y, peer)
    assert work is not None and sent is not None
    work.wait(), sent.wait()
    assert (y == peer + 1).all() and work._source_rank() == peer
    operations = [dist.P2POp(dist.isend, x, peer), dist.P2POp(dist.irecv, y.zero_(), peer)]
    for request in dist.batch_isend_irecv(operations):
        request.wait()
    assert (y == peer + 1).all()
    world = dist.group.WORLD
    with dist._coalescing_manager(world, torch.device("cpu"), async_ops=True) as coalesced:
        world.send([x[:10]], peer, 0)
        world.recv([y.zero_()[:10]], peer, 0)
        flag = torch.full((1,), rank + 1.0)
        dist.broadcast(flag, 0)  # waits within the block
    coalesced.wait()
    assert y.sum() == 10 * (peer + 1) and flag.item() == 1


def check_own_messages(rank: int) -> None:
    """A rank to itself, in the order of sends; without the others, and in a batch with messages to them."""
    one, two = torch.zeros(2), torch.zeros(2)
    if rank == 1:
        works = [dist.irecv(one, 1), dist.irecv(two, 1), dist.isend(torch.ones(2), 1)]
        assert works[0].is_completed() and not works[1].is_completed()
        with pytest.raises(tutti.InvalidArgumentError, match="3 elements.*2 of"):
            dist.isend(torch.ones(3), 1).wait()
        with pytest.raises(tutti.InvalidArgumentError, match="3 elements.*2 of"):
            works[1].wait()
        assert one.tolist() == [1, 1] and two.tolist() == [0, 0]
        with pytest.raises(tutti.WaitTimeoutError):
            dist.irecv(two, 1).wait(timedelta(seconds=0.01))
        dist.isend(two, 1).wait()
    sent = [torch.full((2,), rank + 10.0 * to) for to in range(2)]
    operations = [dist.P2POp(dist.isend, sent[to], to) for to in range(2)]
    operations += [dist.P2POp(dist.irecv, tensor, source) for source, tensor in enumerate((one, two))]
    for request in dist.batch_isend_irecv(operations):
        request.wait()
    assert one.tolist() == [10.0 * rank] * 2 and two.tolist() == [10.0 * rank + 1] * 2


def check_uneven_inputs(rank: int) -> None:
    """torch alone holds the work whose result says how many ranks still have inputs."""
    model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
    with model.join(divide_by_initial_world_size=False):
        for i in range(1 + rank):
            model.zero_grad()
            model(torch.full((1, 1), i + rank + 1.0)).sum().backward()
            expected = 3.0 if i else 1.5  # the mean of 1 and 2; then rank 1 is alone
            assert model.module.weight.grad.item() == expected


def check_coalesced(rank: int) -> None:
    tensors = [torch.full((3,), rank + float(i)) for i in range(3)]
    with dist._coalescing_manager(async_ops=True) as coalesced:
        for tensor in tensors:
            dist.all_reduce(tensor)
    coalesced.wait()
    assert [tensor[0].item() for tensor in tensors] == [1.0, 3.0, 5.0]
    outputs = [torch.zeros(2), torch.zeros(4)]
    with dist._coalescing_manager():
        for i, output in enumerate(outputs):
            dist.all_gather_into_tensor(output, torch.full((i + 1,), rank + 1.0))
    assert outputs[1].tolist() == [1, 1, 2, 2]


def check_functional(rank: int) -> None:
    """torch's functional collectives, also compiled into one graph; and operators on a group's name."""
    world = dist.group.WORLD

    def body(x: torch.Tensor) -> torch.Tensor:
        y = functional.all_reduce(x, "sum", world) * 2
        y = functional.all_gather_tensor(y, 0, world)
        y = functional.reduce_scatter_tensor(y, "avg", 0, world)
        return functional.all_to_all_single(y, None, None, world) + 1

    x = torch.arange(8.0) + rank
    eager = body(x)
    assert eager.shape == (8,)
    assert torch.equal(torch.compile(body, fullgraph=True, backend="aot_eager")(x), eager)
    total = torch.ops.tutti.all_reduce(x, "sum", world.group_name)
    assert torch.equal(total, functional.all_reduce(x, "sum", world) + 0)


def check_untraced(rank: int) -> None:
    """An operation that runs while a compiled program does is in none of its graphs."""
    graphs: list[Any] = []

    def keep(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    group = dist.group.WORLD._get_backend(torch.device("cpu"))

    def body(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        group.allreduce([x]).wait()
        return x * 2

    x = torch.ones(2, dtype=torch.complex64)
    assert torch.compile(body, backend=keep)(x).tolist() == [4, 4]
    assert len(graphs) == 1 and "tutti" not in str(graphs[0].graph)


def check_groups(rank: int) -> None:
    """Subgroups, a mesh, objects, a barrier, another timeout."""
    alone = [dist.new_group([other]) for other in range(2)][rank]
    x = torch.ones(3)
    dist.all_reduce(x, group=alone)
    both = dist.new_group([0, 1])
    dist.all_reduce(x, group=both)
    assert x.tolist() == [2, 2, 2] and both.group_name != dist.group.WORLD.group_name
    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("a", "b"))
    dist.all_reduce(x, group=mesh["a"].get_group())
    dist.all_reduce(x, group=mesh["b"].get_group())
    assert x.tolist() == [4, 4, 4]
    found: list[Any] = [None, None]
    dist.all_gather_object(found, {"rank": rank}, group=both)
    assert found == [{"rank": 0}, {"rank": 1}]
    dist.barrier(async_op=True).wait()
    both.set_timeout(timedelta(seconds=20))
    dist.destroy_process_group(both)


def check_later_names(rank: int) -> None:
    """Later versions of torch call these."""
    group = dist.group.WORLD
    gathered, x = torch.zeros(4), torch.full((2,), rank + 1.0)
    group.all_gather_single(gathered, x).wait()
    assert gathered.tolist() == [1, 1, 2, 2]
    group.reduce_scatter_single(x, gathered).wait()
    assert x.tolist() == ([4, 4] if rank else [2, 2])
    group.all_to_all_single(gathered, gathered.clone(), [], []).wait()
    assert gathered.tolist() == ([2, 2, 2, 2] if rank else [1, 1, 1, 1])


@pytest.mark.parametrize(
    "body",
    [
        check_lists,
        check_types,
        check_layouts,
        check_refusals,
        check_asynchronous,
        check_callbacks,
        check_multiples,
        check_messages,
        check_own_messages,
        check_uneven_inputs,
        check_coalesced,
        check_functional,
        check_untraced,
        check_groups,
        check_later_names,
    ],
)
def test_operations(body: Any) -> None:
    in_group(2, body)


def check_backend_string(rank: int) -> None:
    x = torch.ones(2)
    dist.all_reduce(x)
    assert x.tolist() == [2, 2] and isinstance(dist.group.WORLD, tutti.torch.ProcessGroup)


@pytest.mark.parametrize("backend", ["cpu:gloo,cuda:tutti", "cpu:tutti,cuda:tutti"])
def test_backend_strings(backend: str) -> None:
    """Where "cpu:tutti" is not asked for, it serves the CPU all the same."""
    in_group(2, check_backend_string, backend=backend)


def check_twice(rank: int, folder: str) -> None:
    """A second group after the first has ended: its names are new, though they are the same."""
    for life in range(2):
        with process_group(rank, 2, f"{folder}/{life}") as group:
            x = torch.ops.tutti.all_reduce(torch.ones(2), "sum", group.group_name)
            assert x.tolist() == [2, 2]
    for life in range(2):
        with process_group(rank, 2, f"{folder}/gloo{life}", "gloo"):
            name = tutti.torch.register_process_group()
            assert torch.ops.tutti.all_reduce(torch.ones(2), "sum", name).tolist() == [2, 2]
            tutti.torch.get(name).close()


def test_two_groups_one_after_another() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_ranks(2, check_twice, folder)


def check_missing_rank(rank: int, store: str) -> str:
    with process_group(rank, 2, store, seconds=1):
        dist.all_reduce(torch.ones(1))
        if rank == 1:
            time.sleep(3)
            return ""
        work = dist.all_reduce(torch.ones(1), async_op=True)
        with pytest.raises(tutti.WaitTimeoutError, match="rank 1"):
            work.wait()
        assert work.is_completed() and not work.is_success()
        future = work.get_future()
        with pytest.raises(Exception, match="rank 1"):
            future.wait()
        with pytest.raises(tutti.TuttiError):
            dist.all_reduce(torch.ones(1))
        return type(work.exception()).__name__


def test_a_missing_rank_is_named() -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert run_ranks(2, check_missing_rank, f"{folder}/store")[0] == "WaitTimeoutError"


def train(rank: int, repeats: int) -> list[torch.Tensor]:
    """Gradients of each of two steps, of a model whose buckets are small enough to be several."""
    runs = []
    for _ in range(repeats):
        torch.manual_seed(7)
        model = torch.nn.Sequential(
            torch.nn.Linear(32, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)
        )
        parallel = DistributedDataParallel(model, bucket_cap_mb=0.01)
        optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
        torch.manual_seed(rank)
        for _ in range(2):
            optimizer.zero_grad()
            parallel(torch.randn(16, 32)).square().mean().backward()
            optimizer.step()
        runs.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert all(torch.equal(run, runs[0]) for run in runs)
    return [run.clone() for run in runs[:1]]


def test_data_parallel_training_has_the_same_bits_each_time() -> None:
    tutti_runs = in_group(3, train, 2)
    gloo_runs = in_group(3, train, 1, backend="gloo")
    assert all(torch.equal(run[0], tutti_runs[0][0]) for run in tutti_runs)
    torch.testing.assert_close(tutti_runs[0][0], gloo_runs[0][0], rtol=1e-5, atol=1e-7)


def train_sharded(rank: int) -> torch.Tensor:
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    mesh = init_device_mesh("cpu", (2,))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
    return torch.cat([p.full_tensor().detach().flatten() for p in model.parameters()])


def test_sharded_training_equals_gloo() -> None:
    ours, theirs = in_group(2, train_sharded), in_group(2, train_sharded, backend="gloo")
    assert torch.equal(ours[0], ours[1])
    torch.testing.assert_close(ours[0], theirs[0], rtol=1e-5, atol=1e-7)


HERE = Path(__file__).parent
# What gloo passes and tutti does not.
REFUSED = {
    "monitored_barrier": "torch lets gloo alone have it",
    "any_source": "as with NCCL, a receiver names its sender",
    "ddp_profiling_torch_profiler": "torch's profiler has names of operations from C++ alone",
}


def passed_by(backend: str, ranks: str) -> set[str]:
    return set(distributed_suite.names_in(HERE / f"passed_by_{backend}{ranks}.txt"))


@pytest.mark.parametrize(("ranks", "least"), [("", 90), ("_4", 115), ("_cuda", 140)])
def test_tutti_passes_what_gloo_passes(ranks: str, least: int) -> None:
    """By the records of runs of all of torch's tests, on 2 and 4 ranks, and on a GPU that 2 share."""
    gloo, ours = passed_by("gloo", ranks), passed_by("tutti", ranks)
    assert len(ours) > least
    # There gloo runs tests of the CPU, too, and tutti those that NCCL runs.
    everywhere = ours | passed_by("tutti", "") if ranks == "_cuda" else ours
    lost = {name for name in gloo - everywhere if not any(word in name for word in REFUSED)}
    assert not lost
    assert set(distributed_suite.names_in(HERE / "ci.txt")) <= everywhere


def test_torch_own_tests(capfd: Any, tmp_path: Path) -> None:
    """Two at a time, after a run that has ended early."""
    results = tmp_path / "results"
    results.write_text("passed test_gather\n")
    with mock.patch.dict(os.environ):
        options = ["--list", str(HERE / "ci.txt"), "--jobs", "2", "--results", str(results)]
        failed = distributed_suite.main(options)
    printed = capfd.readouterr().out
    assert not failed and "40 passed, 0 skipped, 0 failed" in printed, printed[-8000:]
    assert "test_gather\n" not in printed and len(results.read_text().splitlines()) == 40


def check_shared_gpu(rank: int) -> None:
    """With "meta" for the GPU, which this machine may lack."""
    shared_gpu.GPU = torch.device("meta")
    shared_gpu.share(2)
    assert torch.cuda.device_count() == 2
    for device in (1, "cuda:1", torch.device("cuda", 1)):
        assert torch.ones(2, device=device).is_meta and torch.ones(2).to(device).is_meta
        assert torch.nn.Linear(1, 1).to(device).weight.is_meta
    assert torch.ones(1).is_cpu and torch.ones(2).to("cpu").is_cpu and torch.full((1,), 1).item() == 1
    assert torch.cuda.device(1).idx == torch.nn.parallel.distributed._get_device_index(1) == 0
    with mock.patch.object(torch._C, "_cuda_setDevice") as set_device:
        torch.cuda.set_device(1)
    set_device.assert_called_with(0)


def test_ranks_share_a_gpu() -> None:
    run_ranks(1, check_shared_gpu)


def test_tests_that_are_not_for_the_backend() -> None:
    with mock.patch.dict(os.environ):
        tests = distributed_suite.load("tutti", 2)
    every, on_gpus = (distributed_suite.all_names(tests, device) for device in ("cpu", "cuda"))
    assert "test_all_gather" in on_gpus and "test_send_recv_nccl" in set(every) - set(on_gpus)
