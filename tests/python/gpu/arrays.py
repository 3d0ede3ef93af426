"""Arrays of CuPy and JAX on GPUs: python3 tests/python/gpu/arrays.py [--ranks 2] [CHECK...]

Needs CuPy and JAX with CUDA, and torch, by which ranks are started. Ranks may share one GPU.
"""

import os

import torch
from ranks import main

import tutti

COUNT = 100_000  # all sums of so many numbers are exact in fp32


def cupy_arrays(communicator: tutti.Communicator) -> str:
    import cupy

    rank, size = communicator.rank, communicator.size
    x = cupy.arange(COUNT, dtype=cupy.float32) + rank
    y = communicator.all_reduce(x)
    assert isinstance(y, cupy.ndarray) and y.dtype == x.dtype
    cupy.cuda.get_current_stream().synchronize()
    expected = cupy.arange(COUNT, dtype=cupy.float32) * size + size * (size - 1) // 2
    assert bool((y == expected).all())
    return f"CuPy {cupy.__version__}"


def jax_arrays(communicator: tutti.Communicator) -> str:
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax

    rank, size = communicator.rank, communicator.size
    with jax.default_device(jax.devices("gpu")[communicator.device]):
        x = jax.numpy.arange(COUNT, dtype="float32") + rank
        y = tutti.empty((COUNT,), "float32", communicator)  # arrays of JAX are not written to
        communicator.all_reduce(x, output=y)
        torch.cuda.synchronize()
        seen = jax.dlpack.from_dlpack(y)
        expected = jax.numpy.arange(COUNT, dtype="float32") * size + size * (size - 1) // 2
        assert bool((seen == expected).all())
    return f"JAX {jax.__version__}"


if __name__ == "__main__":
    main(cupy_arrays, jax_arrays)
