"""Some calls are made in one place only: the machine behind src/drivers, and never exit or throw."""

import re
from pathlib import Path

from source_tree import code_files, includes, line_of, main, without_comments_and_strings

DRIVERS = "src/drivers/"
MULTICAST = "src/device/multicast/"
# Only builds with TUTTI_MULTICAST have it; nothing else there speaks to the machine.
MULTICAST_DRIVER = MULTICAST + "driver_real.cpp"

# Own names (cuda_driver, nccl_row) have an underscore where these have a capital.
MACHINE_CALL = re.compile(
    r"(?<![\w.>])(?:::)?((?:(?:cuda|cu|cublas|nvml|nccl|ucp_|ucs_)[A-Z]|cblas_)\w*)\s*\(")
# Names no one else would use, and common names where they are called as the system's.
SYSTEM_CALL = re.compile(
    r"(?<![\w.>:])(?:::\s*)?(memfd_create|shm_open|shm_unlink|mmap|munmap|sendmsg|recvmsg|socketpair|"
    r"setsockopt|getsockopt|accept4|getaddrinfo)\s*\(|"
    r"(?<![\w>])::\s*(socket|bind|listen|accept|connect|send|recv|sendto|recvfrom|shutdown|ftruncate|"
    r"fallocate|posix_fallocate)\s*\("
)
MACHINE_HEADER = re.compile(
    r"sys/(socket|mman|un)\.h|netinet/.*|arpa/inet\.h|netdb\.h|cuda\.h|cuda_runtime(_api)?\.h|"
    r"nccl\.h|nvml\.h|ucp/.*"
)
MULTICAST_WORD = re.compile(r"\b(cuMulticast\w+|multimem\b\.?\w*|CU_MULTICAST\w*)")
# JSON conversions fail as the JSON library expects; whoever reads a document catches that.
LEAVES_CALLER = re.compile(
    r"(?<![\w.>:])(?:std::|::)?((?:_exit|exit|quick_exit|terminate)\s*\(|throw\b(?!\s*\(|\s+nlohmann::))|"
    r"((?:std::|(?<!\w)::)abort\s*\()"
)
# A method of the CUDA driver that calls CUDA. Those that only begin, change or end a capture, or
# enqueue, act in the mode that they find; the last ones are called by methods that have relaxed it.
CUDA_METHOD = re.compile(r"^[A-Za-z][^\n;{}]*?\bRealCuda::(\w+)\([^{};]*?\)(?: const)? \{(.*?)\}\n", re.M | re.S)
IN_ANY_MODE = {
    "begin_capture", "begin_global_capture", "capture_of", "current_device", "driver_version", "encode_tensor_map",
    "end_capture", "launch", "memory_operations", "record_event", "runtime_version", "stream_id", "wait_event",
    "copy", "copy_stream", "ensure_context", "give_access", "has_attribute",
}


def hits(pattern: re.Pattern, text: str):
    for match in pattern.finditer(text):
        yield line_of(text, match.start()), next(filter(None, match.groups()), match.group(0))


def check_file(name: str, text: str) -> list[str]:
    code = without_comments_and_strings(text)
    findings = []
    if not name.startswith(DRIVERS) and name != MULTICAST_DRIVER:
        for pattern in (MACHINE_CALL, SYSTEM_CALL):
            findings += [f"{name}:{line}: only src/drivers calls {what}" for line, what in hits(pattern, code)]
        findings += [
            f"{name}:{line}: only src/drivers includes {target}"
            for line, _, target in includes(text)
            if MACHINE_HEADER.fullmatch(target) and not name.endswith((".cu", ".cuh"))
        ]
    if not name.startswith(MULTICAST):
        # Inline assembly is a string: this one looks at the text itself.
        findings += [f"{name}:{line}: {what} belongs to {MULTICAST} alone" for line, what in hits(MULTICAST_WORD, text)]
    findings += [f"{name}:{line}: the library returns a Status, never {what.strip(' (')}"
                 for line, what in hits(LEAVES_CALLER, code)]
    return findings


def check_relaxed(name: str, text: str) -> list[str]:
    code = without_comments_and_strings(text)
    return [f"{name}:{line_of(code, match.start())}: {match[1]} may break another thread's capture: RelaxedCapture"
            for match in CUDA_METHOD.finditer(code)
            if match[1] not in IN_ANY_MODE and not match[2].lstrip().startswith("const RelaxedCapture ")]


def check(root: Path) -> list[str]:
    findings = []
    for path in code_files(root, "src", "include"):
        name, text = path.relative_to(root).as_posix(), path.read_text()
        findings += check_file(name, text)
        if name.startswith(DRIVERS):
            findings += check_relaxed(name, text)
    return findings


if __name__ == "__main__":
    main(check, "only src/drivers calls the system")
