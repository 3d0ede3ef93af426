"""Symmetric and registered memory on GPUs:

python3 tests/python/gpu/symmetric.py [--ranks 2] [CHECK...]

Needs torch with CUDA; ranks may share one GPU.
"""

import torch
from ranks import main

import tutti
from tutti.dtypes import number_of
from tutti.torch import symm_mem

COUNT = 8 << 20  # of fp32: large enough for a segment of its own in torch's allocator


def peers_are_read_and_written(communicator: tutti.Communicator) -> str:
    rank, size = communicator.rank, communicator.size
    x = symm_mem.empty(4, 1000, dtype=torch.bfloat16, group=communicator)
    memory = symm_mem.rendezvous(x, communicator)
    x.fill_(rank + 1)
    memory.barrier()
    sums = torch.stack([memory.get_buffer(r, x.shape, x.dtype) for r in range(size)]).sum(dim=0)
    memory.barrier(channel=1)
    assert torch.equal(sums, torch.full_like(x, size * (size + 1) // 2))
    memory.get_buffer((rank + 1) % size, (1000,), x.dtype, storage_offset=3000).fill_(-rank)
    memory.put_signal((rank + 1) % size, channel=5)
    memory.wait_signal((rank - 1) % size, channel=5)
    assert torch.equal(x[3], torch.full_like(x[3], -((rank - 1) % size)))
    memory.barrier()
    torch.cuda.synchronize()
    communicator.status()
    return f"{len(memory.buffer_ptrs)} parts"


def signals_are_replayed(communicator: tutti.Communicator) -> str:
    """A ring of puts in a CUDA graph: torch writes into the next rank's memory, with a signal."""
    rank, size = communicator.rank, communicator.size
    x = symm_mem.empty(4096, dtype=torch.int32, group=communicator)
    memory = symm_mem.rendezvous(x, communicator)
    following = memory.get_buffer((rank + 1) % size, x.shape, x.dtype)
    value = torch.zeros(1, dtype=torch.int32, device="cuda")
    seen = torch.zeros_like(x)
    memory.barrier()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        following.copy_(value.expand(4096))
        memory.put_signal((rank + 1) % size)
        memory.wait_signal((rank - 1) % size)
        seen.copy_(x)
        memory.barrier(channel=1)
    for step in range(20):
        value.fill_(100 * step + rank)
        graph.replay()
        assert torch.equal(seen, torch.full_like(seen, 100 * step + (rank - 1) % size)), f"{step}"
    torch.cuda.synchronize()
    communicator.status()
    return "20 replays"


def stale_registration_is_caught(communicator: tutti.Communicator) -> str:
    """Registered memory is freed behind tutti's back, and its address is used, if CUDA does so by
    another tensor. Calls with it are refused on every rank, and the communicator goes on."""
    size = communicator.size
    x = torch.ones(COUNT, device="cuda")
    registered = communicator.register(x)
    assert registered.zero_copy
    communicator.all_reduce(x, output=x)
    torch.cuda.synchronize()
    assert bool((x == size).all())
    address = x.data_ptr()
    x.untyped_storage().resize_(0)
    torch.cuda.empty_cache()
    others = [torch.ones(COUNT, device="cuda") for _ in range(8)]
    used_again = any(other.data_ptr() == address for other in others)
    try:
        communicator.raw.all_reduce(address, address, COUNT, number_of(torch.float32), "sum")
    except tutti.InvalidArgumentError as error:
        assert "has been freed" in error.text, error.text
        assert not error.ends_communicator
    else:
        raise AssertionError("stale memory was used")
    torch.cuda.synchronize()
    assert all(bool((other == 1).all()) for other in others), "a refused call has written"
    assert communicator.failure is None
    registered.free()
    renewed = communicator.register(others[0])
    communicator.all_reduce(others[0], output=others[0])
    torch.cuda.synchronize()
    assert bool((others[0] == size).all())
    communicator.status()
    renewed.free()
    return f"caught at {address:#x}, {'used again' if used_again else 'freed'}"


if __name__ == "__main__":
    main(peers_are_read_and_written, signals_are_replayed, stale_registration_is_caught)
