"""tutti.torch.symm_mem on the host: memory of other processes, barriers and signals."""

import pytest
import torch
import tutti
from forked import run_ranks
from tutti.torch import symm_mem

SIZE = 3


def neighbours(rank: int, unique: str) -> None:
    with tutti.Communicator(unique, rank, SIZE, backend="host", timeout=30) as group:
        x = symm_mem.empty(4, 5, dtype=torch.bfloat16, group=group)
        assert x.shape == (4, 5) and x.dtype == torch.bfloat16
        memory = symm_mem.rendezvous(x[1:], group)
        assert (memory.rank, memory.world_size) == (rank, SIZE)
        assert memory.buffer_size >= x.numel() * 2
        assert memory.buffer_ptrs[rank] == x.data_ptr()
        assert symm_mem.rendezvous(x, group) is memory
        group.prepare()  # what the first collective would make
        exchanged = group.counters()

        x.fill_(rank)
        memory.barrier()
        for peer in range(SIZE):
            assert torch.equal(memory.get_buffer(peer, (4, 5), x.dtype), torch.full_like(x, peer))
        memory.barrier(channel=3)
        last = memory.get_buffer((rank + 1) % SIZE, (2,), torch.int16, storage_offset=18)
        last.fill_(7)
        memory.barrier(channel=63)
        assert x.view(torch.int16).flatten().tolist()[-2:] == [7, 7]
        assert memory.get_remote_tensor(rank, (20,), x.dtype).data_ptr() == x.data_ptr()

        total = group.all_reduce(x, output=x)  # zero-copy, as registered memory is
        assert total is x
        assert group.counters() == exchanged


def test_memory_of_peers_is_read_and_written() -> None:
    run_ranks(SIZE, neighbours, str(tutti.UniqueId.create()))


def ring(rank: int, unique: str) -> int:
    """A token goes round twice, in the memory of the next rank."""
    with tutti.Communicator(unique, rank, SIZE, backend="host", timeout=30) as group:
        token = symm_mem.empty((1,), dtype=torch.int64, group=group)
        memory = symm_mem.rendezvous(token, group)
        following, previous = (rank + 1) % SIZE, (rank - 1) % SIZE
        for round_ in range(2):
            if rank > 0 or round_ > 0:
                memory.wait_signal(previous)
            value = 1 if rank == 0 and round_ == 0 else int(token) * 3 + rank
            memory.get_buffer(following, (1,), torch.int64).fill_(value)
            memory.put_signal(following)
        if rank == 0:
            memory.wait_signal(previous)
        memory.barrier(1)
        return int(token)


def test_signals_order_accesses() -> None:
    value, given = 1, []
    for step in range(1, 2 * SIZE):
        given.append(value)
        value = value * 3 + step % SIZE
    tokens = run_ranks(SIZE, ring, str(tutti.UniqueId.create()))
    assert tokens == [value, given[-2], given[-1]]


def refusals(rank: int, unique: str) -> None:
    with tutti.Communicator(unique, rank, 2, backend="host", timeout=30) as group:
        memory = symm_mem.rendezvous(symm_mem.empty(8, group=group), group)
        invalid = tutti.InvalidArgumentError
        with pytest.raises(invalid, match="has not made"):
            symm_mem.rendezvous(torch.empty(8), group)
        with pytest.raises(invalid, match="needs an element"):
            symm_mem.empty(0, 3, group=group)
        with pytest.raises(invalid, match="device meta"):
            symm_mem.empty(3, device="meta", group=group)
        with pytest.raises(invalid, match="rank 2 of 2"):
            memory.get_buffer(2, (1,), torch.float32)
        with pytest.raises(invalid, match="bytes 4 to"):
            memory.get_buffer(1, (memory.buffer_size,), torch.int8, storage_offset=4)
        with pytest.raises(invalid, match="channel 64"):
            memory.barrier(64)
        with pytest.raises(tutti.UnsupportedError, match="never run on hardware"):
            memory.multicast_ptr  # noqa: B018
        assert not memory.has_multicast_support()
        memory.barrier()


def test_refusals() -> None:
    run_ranks(2, refusals, str(tutti.UniqueId.create()))


def missing_signal(rank: int, unique: str) -> str:
    group = tutti.Communicator(unique, rank, 2, backend="host", timeout=30)
    memory = symm_mem.rendezvous(symm_mem.empty(8, group=group), group)
    if rank == 1:
        with pytest.raises(tutti.TuttiError):
            memory.wait_signal(0, channel=9)  # ended by rank 0's failure
        return "ended"
    with pytest.raises(tutti.WaitTimeoutError) as caught:
        memory.wait_signal(1, channel=5, timeout_ms=200)
    assert (caught.value.waiting_rank, caught.value.missing_rank) == (0, 1)
    return "timed out"


def test_a_signal_that_does_not_come_is_a_timeout() -> None:
    unique = str(tutti.UniqueId.create())
    assert run_ranks(2, missing_signal, unique) == ["timed out", "ended"]
