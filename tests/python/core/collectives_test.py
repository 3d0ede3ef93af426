"""All collectives, over element types and kinds of arrays, against sums of plain numbers."""

import array
import ctypes

import numpy
import pytest
from core_ranks import threads

import tutti

SIZE = 3
PLAIN = ["f", "d", "b", "B", "i", "I", "q", "Q"]
WIDE = "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 int8 uint8 int32 uint32 int64 uint64".split()


def plain(code: str):
    return lambda values: array.array(code, values)


def numpy_of(name: str):
    numpy = pytest.importorskip("numpy")
    kind = name
    if name.startswith(("bfloat", "float8")):
        kind = getattr(pytest.importorskip("ml_dtypes"), name)
    return lambda values: numpy.array(values, dtype=kind)


def torch_of(name: str):
    torch = pytest.importorskip("torch")
    return lambda values: torch.tensor(values, dtype=torch.float32).to(getattr(torch, name))


def symmetric(name: str):
    """Arrays in symmetric memory, through whose bytes numbers go; collective to make."""

    def make(values, communicator):
        made = tutti.empty(len(values), name, communicator)
        (ctypes.c_float * len(values)).from_address(made.address)[:] = values
        return made

    return make


def numbers(values) -> list[float]:
    """Any array as a list of floats."""
    if isinstance(values, tutti.Array):
        return list((ctypes.c_float * values.elements).from_address(values.address))
    if hasattr(values, "detach"):
        values = values.float()
    return [float(value) for value in values]


MAKERS = [pytest.param(plain, code, id=f"array-{code}") for code in PLAIN] \
    + [pytest.param(numpy_of, name, id=f"numpy-{name}") for name in WIDE] \
    + [pytest.param(torch_of, name, id=f"torch-{name}") for name in WIDE if name not in ("uint32", "uint64")]


@pytest.mark.parametrize(("maker", "name"), MAKERS)
def test_collectives_on_every_type(maker, name: str) -> None:
    make = maker(name)

    def rank_of(communicator: tutti.Communicator) -> None:
        rank = communicator.rank
        mine = [rank + 1, 2 * rank, 1]
        everybody = [1, 0, 1, 2, 2, 1, 3, 4, 1]
        assert numbers(communicator.all_reduce(make(mine))) == [6, 6, 3]
        assert numbers(communicator.all_reduce(make(mine), op="prod")) == [6, 0, 1]
        assert numbers(communicator.all_reduce(make(mine), op="min")) == [1, 0, 1]
        assert numbers(communicator.all_reduce(make(mine), op="max")) == [3, 4, 1]
        assert numbers(communicator.all_reduce(make(mine), op="avg")) == [2, 2, 1]
        assert numbers(communicator.all_reduce(make(mine), op=tutti.pre_mul_sum(rank + 1))) == [14, 16, 6]
        assert numbers(communicator.all_gather(make(mine))) == everybody
        assert numbers(communicator.reduce_scatter(make(mine))) == [[6, 6, 3][rank]]
        assert numbers(communicator.all_to_all(make(mine))) == [[1, 2, 3], [0, 2, 4], [1, 1, 1]][rank]
        assert numbers(communicator.broadcast(make(mine), root=1)) == [2, 2, 1]
        reduced = communicator.reduce(make(mine), root=2)
        assert numbers(reduced) == [6, 6, 3] if rank == 2 else reduced is None
        gathered = communicator.gather(make(mine), root=1)
        assert numbers(gathered) == everybody if rank == 1 else gathered is None
        part = make([0])
        whole = make([6, 7, 8]) if rank == 0 else None
        assert communicator.scatter(whole, part) is part
        assert numbers(part) == [6 + rank]

    threads(SIZE, rank_of)


@pytest.mark.parametrize("maker", [plain("f"), pytest.param("numpy"), pytest.param("torch")])
def test_variable_counts_and_messages(maker) -> None:
    make = {"numpy": numpy_of, "torch": torch_of}[maker]("float32") if isinstance(maker, str) else maker
    counts = [2, 0, 1]

    def rank_of(communicator: tutti.Communicator) -> None:
        rank, size = communicator.rank, communicator.size
        mine = make([rank + 1.0] * counts[rank])
        assert numbers(communicator.all_gather_v(mine, counts)) == [1, 1, 3]
        assert numbers(communicator.reduce_scatter_v(make([1.0, 2.0, 3.0]), counts)) \
            == [[3, 6], [], [9]][rank]
        to_next = [int(peer == (rank + 1) % size) for peer in range(size)]
        from_last = [int(peer == (rank - 1) % size) for peer in range(size)]
        assert numbers(communicator.all_to_all_v(make([float(rank)]), to_next, from_last, 1)) \
            == [(rank - 1) % size]
        with tutti.group():
            communicator.send(make([float(rank)] * 5), (rank + 1) % size)
            received = communicator.recv(make([0.0] * 5), (rank - 1) % size)
        assert numbers(received) == [(rank - 1) % size] * 5
        communicator.barrier()

    threads(SIZE, rank_of)


def test_symmetric_arrays_and_given_outputs() -> None:
    make = symmetric("float32")

    def rank_of(communicator: tutti.Communicator) -> None:
        source = make([communicator.rank + 1.0] * 6, communicator)
        target = tutti.empty((2, 3), "float32", communicator)
        assert communicator.all_reduce(source, target) is target
        assert numbers(target) == [6] * 6
        communicator.all_reduce(source, source, tutti.pre_mul_sum(0.5))
        assert numbers(source) == [3] * 6
        columns = array.array("f", [0] * 2)
        communicator.reduce_scatter(source, columns, rows=2)
        assert numbers(columns) == [9, 9]
        with pytest.raises(tutti.InvalidArgumentError, match="pass `output`"):
            communicator.all_gather(source)

    threads(SIZE, rank_of)


def test_shapes_of_new_outputs() -> None:
    numpy = pytest.importorskip("numpy")

    def rank_of(communicator: tutti.Communicator) -> None:
        assert communicator.all_gather(numpy.zeros((2, 5), "f4")).shape == (4, 5)
        assert communicator.all_gather(numpy.zeros((), "f4")).shape == (2,)
        assert communicator.reduce_scatter(numpy.zeros((4, 5), "f4")).shape == (2, 5)
        assert communicator.reduce_scatter(numpy.zeros((3, 4), "f4")).shape == (6,)
        assert communicator.reduce_scatter(numpy.zeros((3, 4), "f4"), rows=3).shape == (3, 2)
        assert communicator.all_to_all(numpy.zeros((4, 5), "i8")).shape == (4, 5)

    threads(2, rank_of)


def test_counts_from_the_device() -> None:
    def rank_of(communicator: tutti.Communicator) -> list[int]:
        own = array.array("Q", [communicator.rank + 1])
        found = array.array("Q", [0, 0])
        source = (ctypes.c_float * 2)(1, 2)
        target = (ctypes.c_float * 4)()
        communicator.raw.all_gather_v(
            ctypes.addressof(source), ctypes.addressof(target), None, 1,
            device_counts=tutti.device_counts(own, found, 2))
        assert list(target) == [1, 1, 2, 0]
        return list(found)

    assert threads(2, rank_of) == [[1, 2], [1, 2]]


def test_residual_and_norm() -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        hidden = 1024
        fields = [(ctypes.c_float * hidden)(*[1.0] * hidden) for _ in range(5)]
        at = [ctypes.addressof(field) for field in fields]
        communicator.raw.all_reduce_residual_rms_norm(*at, 1, hidden, tutti.dtypes.FLOAT32)
        assert fields[3][7] == 3.0
        assert fields[4][7] == pytest.approx(1.0, abs=1e-5)

    threads(2, rank_of)


def test_options() -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        values = array.array("f", [1.0] * 100)
        communicator.all_reduce(values, algorithm="one_shot", timeout=5, chunk_bytes=4096, blocks=1)
        with pytest.raises(tutti.InvalidArgumentError, match="one_shot"):  # it lists what there is
            communicator.all_reduce(values, algorithm="no_such")
        with pytest.raises(tutti.InvalidArgumentError, match="above 0"):
            communicator.all_reduce(values, timeout=0)
        with pytest.raises(tutti.InvalidArgumentError, match="0 or more"):
            communicator.all_reduce(values, sm_budget=-2)
        with pytest.raises(TypeError):
            communicator.all_reduce(values, no_such_option=1)
        communicator.barrier(timeout=5)

    threads(2, rank_of)


def test_a_group_keeps_its_arrays_and_ends_when_the_block_raises() -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        peer = 1 - communicator.rank
        with tutti.group():
            communicator.send(array.array("f", [communicator.rank] * 1000), peer)
            for _ in range(100):
                array.array("f", [99.0] * 1000)  # would take the place of one that is not kept
            received = communicator.recv(array.array("f", bytes(4000)), peer)
        assert list(received) == [peer] * 1000
        with pytest.raises(KeyError), tutti.group():
            total = communicator.all_reduce(array.array("f", [1.0]))
            raise KeyError
        assert list(total) == [2.0]
        assert communicator.all_reduce(array.array("f", [2.0]))[0] == 4.0  # at once: no group is open

    threads(2, rank_of)


def test_scalars_keep_their_value() -> None:
    for scalar in (-(2**63), 2**53 + 1, numpy.int64(2**53 + 1)):
        assert tutti.pre_mul_sum(scalar).scalar.value.i64 == int(scalar)
    assert tutti.pre_mul_sum(2**64 - 1).scalar.value.u64 == 2**64 - 1
    for scalar in (2**64, -(2**63) - 1):
        with pytest.raises(tutti.InvalidArgumentError, match="does not fit"):
            tutti.pre_mul_sum(scalar)
