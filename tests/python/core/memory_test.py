"""Symmetric memory, registered memory, pools and one-sided operations."""

import array
import ctypes
import gc
import weakref

import pytest
from core_ranks import threads

import tutti


def floats(array_: tutti.Array) -> ctypes.Array:
    return (ctypes.c_float * array_.elements).from_address(array_.address)


def test_memory_of_all_ranks() -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        with communicator.allocate(64) as memory:
            assert memory.bytes == 64
            assert memory.zero_copy
            ctypes.c_int.from_address(memory.data).value = communicator.rank
            communicator.barrier()
            seen = [ctypes.c_int.from_address(memory.peer(rank)).value for rank in range(3)]
            assert seen == [0, 1, 2]
            with pytest.raises(tutti.InvalidArgumentError):
                memory.peer(3)
            communicator.barrier()
        memory.free()
        with pytest.raises(tutti.InvalidArgumentError, match="it has been closed"):
            memory.peer(0)
        assert "freed" in repr(memory)
        with pytest.raises(tutti.InvalidArgumentError):
            communicator.allocate(0)

    threads(3, rank_of)


def test_memory_is_freed_with_its_last_view_also_after_the_communicator() -> None:
    def rank_of(communicator: tutti.Communicator) -> tutti.Array:
        return tutti.empty(4, "float32", communicator)

    kept = threads(2, rank_of)
    floats(kept[0])[0] = 1.0
    del kept
    gc.collect()


def test_registered_and_local_memory() -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        own = array.array("f", [communicator.rank + 1.0] * 1024)
        before = communicator.counters().registrations
        with communicator.register(own) as memory:
            assert communicator.counters().registrations > before
            assert (memory.data, memory.bytes) == (own.buffer_info()[0], 4096)
            assert communicator.all_reduce(own)[0] == 3.0
        gone = array.array("f", [1.0] * 1024)
        watched = weakref.ref(gone)
        with communicator.register(gone) as memory:
            del gone
            assert watched() is not None
        del memory
        assert watched() is None
        local = communicator.allocate_local(5000)
        assert local.data % 4096 == 0
        with communicator.register(local) as memory:
            local.free()  # the registration holds it
            part = tutti.Array(memory, (10,), "float32", 100)
            floats(part)[:] = [1.0] * 10
            communicator.all_reduce(part, part)
            assert list(floats(part)) == [2.0] * 10
            communicator.barrier()
        with pytest.raises(tutti.InvalidArgumentError, match="read-only"):
            communicator.register(b"12345678")

    threads(2, rank_of)


def test_pools() -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        with tutti.Pool(communicator) as pool:
            block = pool.take(1000)
            assert block.bytes == 1000
            assert pool.use()["taken_bytes"] >= 1000
            part = tutti.Array(block, (5,), "float32")
            floats(part)[:] = [1.0] * 5
            communicator.all_reduce(part, part)
            assert floats(part)[4] == 1.0
            address = block.data
            block.give_back()
            with pytest.raises(tutti.InvalidArgumentError, match="block cannot be used"):
                block.give_back()
            with pool.take(1000) as again:
                assert again.data == address
            pool.trim()
            assert pool.use() == {"blocks": 0, "taken_bytes": 0, "free_bytes": 0}
            lost = pool.take(8)
            with pytest.warns(ResourceWarning, match="not given back"):
                del lost
        with pytest.raises(tutti.InvalidArgumentError, match="pool cannot be used"):
            pool.take(8)

    threads(1, rank_of)


def test_puts_gets_and_signals() -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        rank, peer = communicator.rank, 1 - communicator.rank
        target = tutti.empty(8, "float32", communicator)
        source = array.array("f", [rank + 1.0] * 8)
        communicator.put_signal(source, target, peer, channel=5)
        communicator.wait_signal(peer, 5)
        assert list(floats(target)) == [peer + 1.0] * 8
        read = array.array("f", [0.0] * 8)
        assert communicator.get(target, read, peer) is read
        assert list(read) == [rank + 1.0] * 8
        communicator.barrier()
        communicator.put(array.array("f", [9.0] * 8), target, peer)
        communicator.signal(peer, 1)
        communicator.signal(peer, 1)
        communicator.wait_signal(peer, 1, times=2, timeout=10)
        assert floats(target)[0] == 9.0
        peers = communicator.device_peers(target.memory)
        assert (peers.rank, peers.ranks, peers.at[rank]) == (rank, 2, target.memory.data)
        for bad, text in (
            (lambda: communicator.put(source, target, peer, mover="bus"), "unknown mover"),
            (lambda: communicator.put(array.array("i", [0] * 8), target, peer), "8 elements of int32"),
            (lambda: communicator.put(source[:4], target, peer), "4 elements of float32"),
            (lambda: communicator.put(source, read, peer), None),  # no symmetric memory
            (lambda: communicator.put(source, target, 7), None),
            (lambda: communicator.signal(peer, 64), None),
        ):
            with pytest.raises(tutti.InvalidArgumentError, match=text):
                bad()

    threads(2, rank_of)


def test_a_wait_for_a_signal_has_a_deadline() -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        communicator.prepare()
        with pytest.raises(tutti.WaitTimeoutError) as raised:
            communicator.wait_signal(0, 3, timeout=0.1)
        assert raised.value.missing_rank == 0

    threads(1, rank_of)
