"""What is taken as an array, what is refused, and what arrays in symmetric memory give."""

import array
import copy
import ctypes
import gc
import pickle
import weakref

import pytest
from core_ranks import threads

import tutti
from tutti import buffers, dlpack


@pytest.fixture
def alone():
    (communicator,) = tutti.Communicator.in_process(1, backend="host")
    with communicator:
        yield communicator


class OnGpu:
    """An array on a GPU, as far as its protocol tells."""

    def __init__(self, **interface) -> None:
        self.__dict__["interface"] = {"shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3} | interface

    @property
    def __cuda_array_interface__(self):
        return self.interface


class Stream:
    def __init__(self, **fields) -> None:
        vars(self).update(fields)


def test_plain_buffers() -> None:
    for given, count, dtype in (
        (bytearray(5), 5, "uint8"),
        (b"12345678", 8, "uint8"),
        (array.array("d", [1, 2]), 2, "float64"),
        (array.array("l", [1]), 1, "int64"),
        ((ctypes.c_int32 * 3)(), 3, "int32"),
        (memoryview(bytearray(8)).cast("f"), 2, "float32"),
        ((ctypes.c_uint64 * 2)(), 2, "uint64"),
    ):
        address, elements, number, device, _ = buffers.read(given)
        assert (elements, tutti.dtypes.NAMES[number], device) == (count, dtype, -1)
        assert bytes(ctypes.string_at(address, 1)) == bytes(memoryview(given).cast("B")[:1])


def test_refusals_of_plain_buffers(alone) -> None:
    floats = array.array("f", [1, 2, 3, 4])
    for bad, text in (
        (b"1234", "read-only"),
        (memoryview(floats)[::2], "not contiguous"),
        (array.array("h", [1]), "int16"),
        ([1, 2, 3], "list is no array"),
        (3.0, "float is no array"),
        (None, "NoneType is no array"),
    ):
        with pytest.raises(tutti.InvalidArgumentError, match=text):
            alone.all_reduce(bad, bad)
    with pytest.raises(tutti.InvalidArgumentError, match="float32, but the output int32"):
        alone.all_reduce(floats, array.array("i", [0] * 4))
    with pytest.raises(tutti.InvalidArgumentError, match="the output has 3 elements, but needs 4"):
        alone.all_reduce(floats, array.array("f", [0] * 3))
    with pytest.raises(tutti.InvalidArgumentError, match="unknown reduction 'median'"):
        alone.all_reduce(floats, op="median")
    with pytest.raises(tutti.InvalidArgumentError, match="one for each rank"):
        alone.all_gather_v(floats, [1, 2])
    assert alone.all_reduce(floats) == memoryview(floats)  # and it is still usable


def test_what_does_not_divide_is_refused() -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        with pytest.raises(tutti.InvalidArgumentError, match="3 elements cannot be divided by 2 ranks"):
            communicator.reduce_scatter(array.array("f", [1, 2, 3]))

    threads(2, rank_of)


def test_refusals_of_numpy(alone) -> None:
    numpy = pytest.importorskip("numpy")
    for bad, text in (
        (numpy.zeros((3, 4), "f4").T, "not contiguous"),
        (numpy.zeros(4, ">f4"), "byte order"),
        (numpy.zeros(4, "c8"), "no elements of type complex64"),
        (numpy.zeros(4, "?"), "no elements of type bool"),
        (numpy.zeros(4, "O"), "no elements of type object"),
    ):
        with pytest.raises(tutti.InvalidArgumentError, match=text):
            alone.all_reduce(bad)
    frozen = numpy.zeros(4, "f4")
    frozen.flags.writeable = False
    alone.all_reduce(frozen)
    with pytest.raises(tutti.InvalidArgumentError, match="read-only"):
        alone.all_reduce(frozen, frozen)


def test_refusals_of_torch(alone) -> None:
    torch = pytest.importorskip("torch")
    for bad, text in (
        (torch.zeros(3, 4).t(), "not contiguous"),
        (torch.zeros(4, dtype=torch.complex64), "no elements of type torch.complex64"),
        (torch.zeros(4, device="meta"), "on meta"),
    ):
        with pytest.raises(tutti.InvalidArgumentError, match=text):
            alone.all_reduce(bad)
    parameter = torch.nn.Parameter(torch.ones(3))
    assert alone.all_reduce(parameter.detach()).tolist() == [1, 1, 1]


def test_arrays_elsewhere_are_refused(alone) -> None:
    with pytest.raises(tutti.InvalidArgumentError, match="on a GPU, but the communicator is on the host"):
        alone.all_reduce(OnGpu())
    with pytest.raises(tutti.InvalidArgumentError, match="on a GPU, but the communicator is on the host"):
        alone.all_reduce(array.array("f", [0] * 4), OnGpu())


def test_cuda_array_interface() -> None:
    assert buffers.read(OnGpu())[:4] == (4096, 4, tutti.dtypes.FLOAT32, buffers.UNKNOWN_CUDA)
    assert buffers.read(OnGpu(shape=(2, 3), strides=(24, 8), typestr="<i8"))[:3] == (4096, 6, 10)
    with pytest.raises(tutti.InvalidArgumentError, match="not contiguous"):
        buffers.read(OnGpu(shape=(2, 3), strides=(8, 16)))
    with pytest.raises(tutti.InvalidArgumentError, match="read-only"):
        buffers.read(OnGpu(data=(4096, True)), write=True)
    with pytest.raises(tutti.InvalidArgumentError, match="no elements"):
        buffers.read(OnGpu(typestr="<V2"))


def test_streams() -> None:
    number = buffers.stream_number
    assert number(17, None, 0) == 17
    assert number(None, OnGpu(stream=2), 0) == 2
    assert number(None, OnGpu(), 0) == 0
    assert number(Stream(__cuda_stream__=(0, 5)), None, 0) == 5
    assert number(Stream(__cuda_stream__=lambda: (0, 6)), None, 0) == 6
    assert number(Stream(cuda_stream=7), None, 0) == 7
    assert number(Stream(ptr=8), None, 0) == 8
    assert number(Stream(handle=ctypes.c_void_p(9)), None, 0) == 9
    with pytest.raises(tutti.InvalidArgumentError, match="str is no stream"):
        number("default", None, 0)


class Protocol:
    """An array that only DLPack tells."""

    def __init__(self, of, versions: bool = True) -> None:
        self.of, self.versions = of, versions

    def __dlpack_device__(self):
        return self.of.__dlpack_device__()

    def __dlpack__(self, **arguments):
        if not self.versions and "max_version" in arguments:
            raise TypeError("an old one")
        return self.of.__dlpack__(**arguments)


@pytest.mark.parametrize("versions", [True, False])
def test_dlpack_is_read(alone, versions: bool) -> None:
    own = tutti.empty((2, 3), "int32", alone)
    found = buffers.read(Protocol(own, versions), write=True)[:4]
    assert found == (own.address, 6, tutti.dtypes.INT32, -1)
    assert not dlpack._exported  # the capsule has gone, and what it needed


def test_dlpack_of_numpy_and_torch_is_read() -> None:
    numpy = pytest.importorskip("numpy")
    values = numpy.arange(6, dtype="f4").reshape(2, 3)
    assert buffers.read(Protocol(values), write=True)[:2] == (values.ctypes.data, 6)
    with pytest.raises(tutti.InvalidArgumentError, match="not contiguous"):
        buffers.read(Protocol(values.T))
    values.flags.writeable = False
    with pytest.raises(tutti.InvalidArgumentError, match="read-only"):
        buffers.read(Protocol(values), write=True)
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(5, dtype=torch.bfloat16)
    assert buffers.read(Protocol(tensor))[:3] == (tensor.data_ptr(), 5, tutti.dtypes.BFLOAT16)


def test_views_share_the_memory_and_keep_it(alone) -> None:
    numpy = pytest.importorskip("numpy")
    own = tutti.empty((4, 3), numpy.float32, alone)
    memory = weakref.ref(own.memory)
    views = [own.numpy(), numpy.from_dlpack(own), numpy.asarray(own)]
    views[0][:] = 5
    assert all((view == 5).all() and view.shape == (4, 3) for view in views)
    views[1][0, 0] = 6  # may be written
    assert views[2][0, 0] == 6
    del own
    while views:
        gc.collect()
        assert memory() is not None
        views.pop()
    gc.collect()
    assert memory() is None
    assert not dlpack._exported


def test_torch_views(alone) -> None:
    torch = pytest.importorskip("torch")
    for name in tutti.dtypes.NAMES:
        own = tutti.empty(4, name, alone)
        view = own.torch()
        assert view.dtype is getattr(torch, name)
        assert view.data_ptr() == own.address
    memory = weakref.ref(own.memory)
    del own
    gc.collect()
    assert memory() is not None
    del view
    gc.collect()
    assert memory() is None


def test_other_types_of_numpy(alone) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    own = tutti.empty(4, "bfloat16", alone)
    assert own.numpy().dtype == ml_dtypes.bfloat16
    assert not hasattr(own, "__array_interface__")  # which has no such type
    assert not hasattr(own, "__cuda_array_interface__")


def test_arrays_within_memory(alone) -> None:
    memory = alone.allocate(100)
    part = tutti.Array(memory, (5,), "int32", 80)
    assert part.address == memory.data + 80
    assert len(part) == 5
    for shape, offset in (((6,), 80), ((1,), -4), ((-1, -4), 0)):
        with pytest.raises(tutti.InvalidArgumentError, match="does not fit"):
            tutti.Array(memory, shape, "int32", offset)
    with pytest.raises(BufferError):
        part.__dlpack__(copy=True)
    with pytest.raises(BufferError):
        part.__dlpack__(dl_device=(2, 0))


def test_nothing_of_a_process_is_pickled(alone) -> None:
    own = tutti.empty(4, "int8", alone)
    for each in (alone, own, own.memory, tutti.Pool(alone)):
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(tutti.UnsupportedError, match="belongs to this process"):
                attempt(each)
    unique = tutti.UniqueId.create()
    assert pickle.loads(pickle.dumps(unique)) == unique == tutti.UniqueId.from_text(str(unique))
    assert str(unique) not in repr(unique)  # it is a secret
