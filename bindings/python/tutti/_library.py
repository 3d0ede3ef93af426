"""Finds and loads libtutti.so, and declares its functions.

The library is the first of these that exists:

1. the file that the environment variable TUTTI_LIBRARY names,
2. the one inside this package, which a wheel has,
3. the newest one in build/*-release/lib of the repository that this package lies in,
4. the one that the dynamic linker finds.

`library.tutti_NAME(...)` calls a function. Each call releases the GIL. Structs go by ctypes.byref()
or as bytes; handles and addresses are integers, or None for null.
"""

import ctypes
import os
from pathlib import Path
from typing import Any

from tutti._structs import RANGES, check_range

_HEADERS = "0.1"  # major.minor of the headers that _structs.py mirrors
_PACKAGE = Path(__file__).resolve().parent

_pointer = ctypes.c_void_p
_int = ctypes.c_int
_size = ctypes.c_size_t
_text = ctypes.c_char_p
_ms = ctypes.c_int64


class _Number:
    """A parameter of an integer type. A number that does not fit is a ctypes.ArgumentError."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def from_param(self, value: Any) -> Any:
        check_range("", value, RANGES[self._kind])
        return self._kind.from_param(value)


_C = {
    "h": _pointer,
    "p": _pointer,
    "i": _Number(_int),
    "z": _Number(_size),
    "t": _text,
    "l": _Number(_ms),
}

# The parameters of functions that return a tutti_status_t, one letter each: h handle, p pointer,
# i int, z size_t, t text, l int64_t.
_STATUS = {
    "last_failure": "p",
    "parse_data_type": "tp",
    "parse_op": "tp",
    "parse_backend": "tp",
    "unique_id_create": "p",
    "unique_id_create_tcp": "tip",
    "unique_id_from_text": "tp",
    "communicator_create": "piipp",
    "communicator_create_from_environment": "pp",
    "communicator_create_in_process": "pipp",
    "communicator_destroy": "h",
    "communicator_info": "hp",
    "communicator_split": "hiip",
    "communicator_shrink": "hlppp",
    "start_capture": "h",
    "finish_capture": "h",
    "communicator_prepare": "h",
    "prepare_nccl": "h",
    "communicator_set_timeout": "hl",
    "communicator_abort": "ht",
    "communicator_status": "h",
    "communicator_failure": "hp",
    "communicator_counters": "hp",
    "plan": "htpp",
    "explain": "htpp",
    "all_reduce": "hp",
    "all_gather": "hp",
    "reduce_scatter": "hp",
    "all_to_all": "hp",
    "broadcast": "hp",
    "reduce": "hp",
    "gather": "hp",
    "scatter": "hp",
    "all_gather_v": "hp",
    "reduce_scatter_v": "hp",
    "all_to_all_v": "hp",
    "send": "hp",
    "recv": "hp",
    "barrier": "hp",
    "all_reduce_residual_rms_norm": "hp",
    "group_start": "",
    "group_end": "",
    "memory_allocate": "hzp",
    "memory_register": "hpzp",
    "memory_free": "h",
    "memory_info": "hp",
    "memory_peer": "hip",
    "local_memory_allocate": "hzp",
    "local_memory_free": "h",
    "local_memory_info": "hp",
    "pool_create": "hp",
    "pool_take": "hzpp",
    "pool_trim": "h",
    "pool_destroy": "h",
    "pool_use": "hp",
    "block_info": "hp",
    "block_give_back": "hp",
    "block_free": "h",
    "put": "hp",
    "put_signal": "hp",
    "get": "hp",
    "signal": "hp",
    "wait_signal": "hp",
    "device_peers": "hhp",
    "parse_matrix_layout": "tp",
    "matmul": "pp",
    "matmul_plan": "pp",
    "matmul_tune": "ppp",
    "matmul_explain": "pp",
    "all_gather_matmul": "hp",
    "all_gather_matmul_workspace": "hpp",
    "all_gather_matmul_plan": "hpp",
    "all_gather_matmul_explain": "hpp",
    "sharded_parameters_create": "hpzpp",
    "sharded_parameters_destroy": "h",
    "sharded_parameters_layers": "hp",
    "sharded_parameters_prefetch": "hi",
    "sharded_parameters_gathered": "hipp",
    "sharded_parameters_release": "hip",
    "sharded_parameters_gradient": "hipp",
    "sharded_parameters_reduce_gradient": "hippp",
    "sharded_parameters_finish": "hp",
    "sharded_parameters_updated": "hp",
}
# The other functions: what they return, and their parameters.
_OTHERS = {
    "last_error": (_text, ""),
    "status_name": (_text, "i"),
    "string_free": (None, "p"),
    "version": (_text, ""),
    "data_type_size": (_size, "i"),
    "data_type_is_floating": (_int, "i"),
    "data_type_name": (_text, "i"),
    "op_name": (_text, "i"),
    "backend_name": (_text, "i"),
    "plan_source_name": (_text, "i"),
    "matrix_layout_name": (_text, "i"),
}


def _candidates() -> list[str]:
    if named := os.environ.get("TUTTI_LIBRARY"):
        return [named]
    own = sorted(_PACKAGE.glob("lib/libtutti.so*"))
    built = _PACKAGE.parents[2].glob("build/*-release/lib/libtutti.so")
    newest = sorted(built, key=lambda path: path.stat().st_mtime, reverse=True)
    return [*map(str, own), *map(str, newest), f"libtutti.so.{_HEADERS}"]


def _declare(loaded: ctypes.CDLL) -> None:
    for name, letters in _STATUS.items():
        function = getattr(loaded, f"tutti_{name}")
        function.restype = _int
        function.argtypes = [_C[letter] for letter in letters]
    for name, (returned, letters) in _OTHERS.items():
        function = getattr(loaded, f"tutti_{name}")
        function.restype = returned
        function.argtypes = [_C[letter] for letter in letters]


def _load() -> tuple[ctypes.CDLL, str]:
    refused = []
    for path in _candidates():
        try:
            loaded = ctypes.CDLL(path)
            _declare(loaded)
        except (OSError, AttributeError) as error:
            refused.append(f"  {path}: {error}")
            continue
        version = loaded.tutti_version().decode()
        if version.startswith(f"{_HEADERS}."):
            return loaded, path
        refused.append(f"  {path}: version {version}, but this package needs {_HEADERS}")
    raise ImportError(
        "libtutti.so cannot be loaded. Install a wheel of tutti, build the library "
        "(./dev build host-release tutti), or set TUTTI_LIBRARY to its path. Tried:\n"
        + "\n".join(refused)
    )


#: The library, and the file that it was loaded from.
library, library_path = _load()


def text_of(pointer: ctypes.c_void_p) -> str:
    """A string that a function has returned as `char*`, which is freed."""
    text = ctypes.string_at(pointer).decode() if pointer else ""
    library.tutti_string_free(pointer)
    return text
