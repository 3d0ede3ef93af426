"""Everything that runs on GPUs, with ranks that share one: one_gpu.py FOLDER_OF_PROGRAMS

Ranks as threads (2 and 3) and as processes (2, 3 and 4): every row of every collective, eager, in
graphs and registered afterwards, the GPU tests, and those of matmuls. Prints one line for each program, and the output
of those that failed.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

# A wait that hangs ends after 20 seconds, with an error that names it.
SHARED = {"TUTTI_SHARE_GPUS": "1", "TUTTI_TIMEOUT_MS": "20000"}
# Each stream has a queue of its own. A kernel is loaded before any waits: loading waits for all that
# run in the process.
OF_THREADS = {"CUDA_DEVICE_MAX_CONNECTIONS": "32", "CUDA_MODULE_LOADING": "EAGER"}
# Of our own programs, and of GoogleTest's.
COUNTS = re.compile(r"^(\d+) passed, \d+ failed|^\[  PASSED  \] (\d+) tests?\.", re.MULTILINE)
MOVEMENT = ["all_gather", "all_to_all", "broadcast", "gather", "scatter", "send_recv",
            "all_gather_v", "all_to_all_v"]
REDUCTION = ["reduce_scatter", "reduce_scatter_v", "reduce"]


def runs() -> list[list[str]]:
    """What to run: arguments of programs."""
    ranks = {"threads": "2,3", "processes": "2,3,4"}
    all_runs = []
    for kind in ranks:
        of_kind = ["--backend", "cuda", "--kind", kind, "--ranks", ranks[kind], "--rounds", "1"]
        all_runs.append(["tutti_conformance", *of_kind, "--silence", "60"])
        all_runs.append(["tutti_conformance_rms_norm", *of_kind])
        all_runs += [["tutti_conformance_movement", "--collective", name, *of_kind]
                     for name in MOVEMENT]
        all_runs += [["tutti_conformance_reduction", "--collective", name, *of_kind]
                     for name in REDUCTION]
        all_runs.append(["tutti_gpu_tests", "--kind", kind, "--ranks", "2,3", "--limit", "60",
                         "--together"])
    all_runs.append(["unit_parts", "--gtest_filter=MatmulOnGpu.*"])
    return all_runs


def ended(command: list[str], limit: float) -> tuple[str, int | str]:
    """What a program printed, and how it ended. One that is late is killed with its ranks."""
    settings = SHARED | (OF_THREADS if "threads" in command else {})
    with subprocess.Popen(command, env=os.environ | settings, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace",
                          start_new_session=True) as program:
        try:
            return program.communicate(timeout=limit)[0], program.returncode
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            return program.communicate()[0], "killed: it was late"


def run(folder: Path, arguments: list[str], limit: float) -> bool:
    """Whether it passed. Prints what came."""
    began = time.monotonic()
    command = [str(folder / arguments[0]), *arguments[1:]]
    output, code = ended(command, limit)
    counts = [int(ours or theirs) for ours, theirs in COUNTS.findall(output)]
    passed = code == 0 and sum(counts) > 0
    text = (f"{'passed' if passed else 'FAILED':<7} {time.monotonic() - began:6.1f} s  "
            f"{counts[-1] if counts else 0:>5} cases  {' '.join(arguments)}")
    if not passed:
        text += f"\n{output[-20_000:]}\n   exit code: {code}"
    print(text, flush=True)
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="that holds the programs")
    parser.add_argument("--only", default="", help="runs whose arguments hold this text")
    parser.add_argument("--limit", type=float, default=400, help="seconds for one program")
    options = parser.parse_args()
    began = time.monotonic()
    chosen = [one for one in runs() if options.only in " ".join(one)]
    # One after the other: processes take turns on a GPU, and those that poll take theirs, too.
    failed = sum(not run(options.folder, one, options.limit) for one in chosen)
    print(f"{len(chosen) - failed} programs passed, {failed} failed, "
          f"{time.monotonic() - began:.0f} s")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
