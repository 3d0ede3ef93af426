"""The examples of examples/python run, on the host."""

import contextlib
import io
import os
import re
import runpy
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from forked import run_ranks

EXAMPLES = Path(__file__).resolve().parents[3] / "examples/python"
BOTH = ["rank 0 of 2: 3", "rank 1 of 2: 3"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    "launcher",
    [
        [sys.executable, "-m", "tutti", "run", "-n", "2", sys.executable],
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"],
    ],
    ids=["tutti-run", "torchrun"],
)
def test_all_reduce_under_launchers(launcher: list[str]) -> None:
    done = subprocess.run(
        [*launcher, EXAMPLES / "all_reduce.py"],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"rank \d of 2: 3", done.stdout)) == BOTH, done.stdout


def run_example(rank: int, size: int, port: int, arguments: list[str]) -> str:
    """What it prints. The environment is that of torchrun."""
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(size),
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), TORCHELASTIC_RUN_ID=f"examples-{port}",
    )  # fmt: skip
    sys.argv = arguments
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as ended:
        runpy.run_path(arguments[0], run_name="__main__")
    assert ended.value.code == 0, printed.getvalue()
    return printed.getvalue()


def outputs(size: int, name: str, *options: str) -> list[str]:
    return run_ranks(size, run_example, size, free_port(), [str(EXAMPLES / name), *options])


def test_fsdp2_step() -> None:
    expected = "2 ranks, host: gradients equal, later steps allocate nothing\n"
    assert outputs(2, "fsdp2_step.py") == [expected, ""]


def test_tensor_parallel_mlp() -> None:
    assert outputs(2, "tensor_parallel_mlp.py") == ["2 ranks, host, eager: equal\n", ""]


def test_recipes() -> None:
    table, others = outputs(2, "recipes.py", "--sizes", "64", "4096")
    assert others == ""
    lines = [line.split() for line in table.splitlines()]
    assert lines[0][:2] == ["2", "ranks,"] and lines[1][0] == "elements"
    assert [line[0] for line in lines[2:]] == ["64", "4096"]
    assert all(float(time) > 0 for line in lines[2:] for time in line[1:])
