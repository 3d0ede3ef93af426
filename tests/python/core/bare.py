"""Two processes all_reduce with nothing installed but the wheel: run by the Python of a bare
environment."""

import array
import importlib.util
import multiprocessing
import subprocess
import sys
from pathlib import Path

import tutti


def rank_of(text: str, rank: int) -> None:
    with tutti.Communicator(text, rank, 2, backend="host", timeout=20) as communicator:
        total = communicator.all_reduce(array.array("f", [rank + 1.0] * 1000))
        assert list(total) == [3.0] * 1000, total[0]


def main() -> None:
    for name in ("numpy", "torch", "fmt"):
        assert importlib.util.find_spec(name) is None, f"{name} is installed: this proves nothing"
    package = Path(tutti.__file__).parent
    assert package.is_relative_to(sys.prefix), f"{package} is not that of this environment"
    assert Path(tutti.library_path).is_relative_to(package), tutti.library_path
    text = str(tutti.UniqueId.create())
    ranks = [multiprocessing.get_context("spawn").Process(target=rank_of, args=(text, r)) for r in (0, 1)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(60)
        assert rank.exitcode == 0, rank.exitcode
    for command in ([sys.executable, "-m", "tutti"], [str(Path(sys.prefix) / "bin" / "tutti")]):
        shown = subprocess.run([*command, "--version"], stdout=subprocess.PIPE, text=True, check=True)
        assert tutti.__version__ in shown.stdout, shown.stdout
    bench = [sys.executable, "-m", "tutti", "bench", "all_reduce", "--backend", "host", "--ranks", "2"]
    subprocess.run([*bench, "--bytes", "4K", "--iterations", "5"], stdout=subprocess.DEVNULL, check=True, timeout=60)
    print(f"tutti {tutti.__version__} from {tutti.library_path}: 2 processes, and the command")


if __name__ == "__main__":
    main()
