"""The Python of docs/guides/python.md runs, in its order."""

import os
import re
from pathlib import Path
from typing import Any

import torch
import tutti
from examples_test import free_port
from forked import run_ranks
from torch.distributed.device_mesh import init_device_mesh

GUIDE = Path(__file__).resolve().parents[3] / "docs/guides/python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_guide(rank: int, unique: str, blocks: list[str], port: int) -> None:
    os.environ.update(
        RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    with tutti.Communicator(unique, rank, 2, backend="host", timeout=30) as group:
        names: dict[str, Any] = {
            "group": group, "torch": torch, "tutti": tutti, "x": torch.full((64,), rank + 1.0)
        }  # fmt: skip
        for block in blocks:
            if "fully_shard" in block:
                names["model"] = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
                names["mesh"] = init_device_mesh("cpu", (2,))
            exec(compile(block, str(GUIDE), "exec"), names)
            if "total" in names:  # after the first block
                assert torch.equal(names.pop("total"), torch.full((64,), 3.0))
                assert torch.equal(names["mine"], torch.full((64,), 2.0))
        names["model"](torch.ones(2, 8)).sum().backward()
        assert names["y"] is not None and bool((names["peer"] == 1).all())
        names["dist"].destroy_process_group()


def test_the_guide() -> None:
    blocks = BLOCK.findall(GUIDE.read_text())
    runnable = [block for block in blocks if "from vllm" not in block]
    assert len(blocks) == len(runnable) + 1 > 7
    run_ranks(2, run_guide, str(tutti.UniqueId.create()), runnable, free_port())
