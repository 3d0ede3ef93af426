"""`python -m tutti bench all_reduce`: runs the tutti command, which comes with the package."""

import os
import sys
from pathlib import Path

from tutti._library import library_path


def command() -> str:
    """The path of the command that belongs to the library: in the wheel, or in the build folder."""
    path = Path(library_path).resolve().parents[1] / "bin" / "tutti"
    if not path.is_file():
        raise SystemExit(
            f"tutti: there is no command at {path}, next to {library_path}. Install a wheel, or "
            "build the command (./dev build host-release tutti_cli)"
        )
    return str(path)


def main() -> None:
    """Becomes the command, with the arguments of this process."""
    path = command()
    os.execv(path, ["tutti", *sys.argv[1:]])


if __name__ == "__main__":
    main()
