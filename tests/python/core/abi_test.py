"""The ctypes structs and functions are those of the C API: tests/c_api/abi.txt has its stored
list."""

import ctypes
import re
from pathlib import Path

import pytest

from tutti import _library, _structs, dtypes, errors, raw

ROOT = Path(__file__).resolve().parents[3]
ABI = dict(line.split(" = ", 1) for line in (ROOT / "tests/c_api/abi.txt").read_text().splitlines())
HANDLES = ("communicator", "memory", "local_memory", "pool", "block", "sharded_parameters")
OTHER_NAMES = {"UniqueId": "UniqueIdStruct", "Plan": "PlanStruct"}  # which the package needs itself


def of_kind(kind: str) -> dict[str, str]:
    return {name.split(" ", 1)[1]: value for name, value in ABI.items() if name.startswith(f"{kind} ")}


def class_of(struct: str) -> type[ctypes.Structure]:
    name = "".join(map(str.capitalize, struct.removeprefix("tutti_").removesuffix("_t").split("_")))
    return getattr(_structs, OTHER_NAMES.get(name, name))


def differences(structs: dict[str, str], fields: dict[str, str]) -> list[str]:
    found = []
    for struct, size in structs.items():
        kind = class_of(struct)
        if f"{ctypes.sizeof(kind)} bytes" != size:
            found.append(f"{struct} has {size}, {kind.__name__} {ctypes.sizeof(kind)}")
        names = {name.rstrip("_") for name, *_ in kind._fields_}
        wanted = {name.partition(".")[2] for name in fields if name.partition(".")[0] == struct}
        found += [f"{struct}.{name} is in one of both" for name in names ^ wanted]
        for name in names & wanted:
            place = getattr(kind, name if hasattr(kind, name) else f"{name}_")
            here = f"{place.size} bytes at {place.offset}"
            if here != fields[f"{struct}.{name}"]:
                found.append(f"{struct}.{name}: {fields[f'{struct}.{name}']}, here {here}")
    return found


def test_structs_are_as_stored() -> None:
    assert differences(of_kind("struct"), of_kind("field")) == []


def test_a_struct_that_grows_is_noticed() -> None:
    fields = of_kind("field") | {"tutti_barrier_t.more": "8 bytes at 24"}
    structs = of_kind("struct") | {"tutti_barrier_t": "32 bytes"}
    assert len(differences(structs, fields)) == 2


def test_every_struct_is_one_of_the_c_api() -> None:
    abstract = {_structs.Struct, _structs.Call, _structs.ScalarValue}
    own = {kind for kind in vars(_structs).values() if isinstance(kind, type)
           and issubclass(kind, (ctypes.Structure, ctypes.Union)) and kind.__module__ == "tutti._structs"}
    assert own - abstract == {class_of(struct) for struct in of_kind("struct")}


def letter_of(parameter: str) -> str:
    if re.match(r"const char\*\w+$", parameter):
        return "t"
    if handle := re.match(r"tutti_(\w+)_t\*\w+$", parameter):
        return "h" if handle.group(1) in HANDLES else "p"
    if "*" in parameter or parameter.startswith("tutti_stream_t"):
        return "p"
    return {"size_t": "z", "int64_t": "l"}.get(parameter.split()[0], "i")


def test_functions_are_as_stored() -> None:
    others = {name: letters for name, (_, letters) in _library._OTHERS.items()}
    wanted = {}
    for name, value in of_kind("function").items():
        inside = re.search(r"\((.*)\)$", value).group(1)
        parameters = [] if inside in ("", "void") else inside.split(",")
        wanted[name.removeprefix("tutti_")] = "".join(map(letter_of, parameters))
    wanted["string_free"] = "p"  # of the pointer that a function has returned
    assert wanted == _library._STATUS | others
    for name, (returned, _) in _library._OTHERS.items():
        value = of_kind("function")[f"tutti_{name}"]
        kind = {"const char*": ctypes.c_char_p, "size_t": ctypes.c_size_t, "int": ctypes.c_int, "void": None}
        assert returned is kind[value[: value.index("(")]], name


def defaults_in_headers() -> dict[str, dict[str, str]]:
    """What each TUTTI_STRUCT_INIT sets."""
    found = {}
    for header in (ROOT / "include/tutti/c").glob("*.h"):
        text = header.read_text()
        for name, body in re.findall(r"^TUTTI_STRUCT_INIT\((\w+),(.*?)\)$", text, re.S | re.M):
            values = {}
            for statement in body.split(";"):
                *names, value = statement.split("=")
                values.update({name.strip().removeprefix("value."): value.strip() for name in names})
            found[f"tutti_{name}_t"] = values
    return found


def test_defaults_are_those_of_the_headers() -> None:
    constants = of_kind("constant")
    headers = defaults_in_headers()
    assert len(headers) == sum(issubclass(class_of(name), _structs.Struct) for name in of_kind("struct"))
    for struct, values in headers.items():
        wanted = {name: float(constants.get(value, value.rstrip("F"))) for name, value in values.items()}
        assert class_of(struct)._defaults_ == pytest.approx(wanted), struct
        assert class_of(struct)().size == ctypes.sizeof(class_of(struct))


def test_constants_are_as_stored() -> None:
    stored = {name.removeprefix("TUTTI_"): int(value) for name, value in of_kind("constant").items()}
    for name in dtypes.NAMES:
        short = name.upper().removesuffix("FN")
        assert dtypes.BY_NAME[name] == getattr(dtypes, short) == stored[short]
    for name in ("SUM", "PROD", "MIN", "MAX", "AVG", "PRE_MUL_SUM"):
        assert getattr(dtypes, name) == stored[name]
    for name in ("MAX_PEERS", "MAX_MATMUL_PRODUCTS", "SIGNAL_CHANNELS"):
        assert getattr(_structs, name) == stored[name]
    codes = "INVALID_ARGUMENT UNSUPPORTED UNAVAILABLE TIMEOUT PEER_FAILED MISMATCH ABORTED RESOURCE_EXHAUSTED \
        PERMISSION SYSTEM CUDA NCCL INTERNAL".split()
    assert [stored[name] for name in codes] == sorted(errors.BY_CODE)
    words = {"TIMEOUT": "WaitTimeout", "PERMISSION": "PermissionDenied", "SYSTEM": "SystemFailed"}
    for name in codes:
        camel = words.get(name) or "".join(map(str.capitalize, name.split("_")))
        assert errors.BY_CODE[stored[name]].__name__ == f"{camel}Error"


def test_sizes_and_names_of_types_are_the_librarys() -> None:
    for number, name in enumerate(dtypes.NAMES):
        assert _library.library.tutti_data_type_size(number) == dtypes.SIZES[number]
        short = _library.library.tutti_data_type_name(number).decode()
        assert dtypes.BY_NAME[short] == number
        assert dtypes.number_of(name) == number


PACKED = "AllReduce AllGather ReduceScatter AllToAll Broadcast Reduce Gather Scatter AllGatherV ReduceScatterV \
    AllToAllV Send Recv Barrier AllReduceResidualRmsNorm Put Get Signal WaitSignal".split()


@pytest.mark.parametrize("name", PACKED)
def test_packed_structs_are_those_of_ctypes(name: str) -> None:
    kind = getattr(_structs, name)
    made, values = kind(), []
    for number, (field, of) in enumerate(kind._fields_):
        if issubclass(of, ctypes.Structure):
            values.append(bytes([number]) * ctypes.sizeof(of))
            setattr(made, field, of.from_buffer_copy(values[-1]))
        else:
            values.append(number)
            setattr(made, field, number)
    assert raw.packer(kind)(*values) == bytes(made)


def test_structs_that_share_a_packer_are_alike() -> None:
    for first, *others in (("Broadcast", "Gather", "Scatter"), ("Send", "Recv")):
        for other in others:
            assert getattr(_structs, first)._fields_ == getattr(_structs, other)._fields_
