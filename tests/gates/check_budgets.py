"""Budgets: lines per file, lines and parameters per function."""

import json
import shutil
import statistics
import subprocess
from pathlib import Path

from source_tree import code_files, main

FILE_CAP, FILE_MEDIAN = 500, 150
FUNCTION_CAP, KERNEL_CAP, FUNCTION_P90 = 60, 80, 30
PARAMETER_CAP = 5
COLUMNS = 100
FUNCTION_FOLDERS = ("include", "src", "bindings", "tools")


def check_files(root: Path) -> list[str]:
    findings, lengths = [], []
    for path in code_files(root):
        lines = path.read_text().splitlines()
        lengths.append(len(lines))
        name = path.relative_to(root)
        if len(lines) > FILE_CAP:
            findings.append(f"{name}: {len(lines)} lines, the cap is {FILE_CAP}")
        findings += [f"{name}:{n}: {len(line)} columns, the cap is {COLUMNS}"
                     for n, line in enumerate(lines, 1) if len(line) > COLUMNS]
    if lengths and statistics.median(lengths) > FILE_MEDIAN:
        findings.append(f"median file: {statistics.median(lengths)} lines, the cap is {FILE_MEDIAN}")
    return findings


def count_parameters(signature: str) -> int:
    """Top-level commas plus one; "(void)" and "()" have none."""
    inner = signature[signature.find("(") + 1:signature.rfind(")")].strip()
    if inner in ("", "void"):
        return 0
    depth, count = 0, 1
    for character in inner:
        depth += character in "([{<"
        depth -= character in ")]}>"
        count += character == "," and depth == 0
    return count


def read_functions(root: Path) -> list[dict]:
    files = [str(path) for path in code_files(root, *FUNCTION_FOLDERS)]
    if not files:
        return []
    command = ["ctags", "-L", "-", "--languages=C,C++,CUDA", "--langmap=CUDA:+.cuh",
               "--kinds-C=f", "--kinds-C++=f", "--kinds-CUDA=f",
               "--fields=+neS", "--output-format=json", "-f", "-"]
    done = subprocess.run(command, input="\n".join(files), capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_kernel_body(name: Path) -> bool:
    return name.suffix in (".cu", ".cuh") or name.parts[:2] == ("src", "algorithms")


def check_functions(root: Path) -> list[str]:
    findings, lengths = [], []
    for tag in read_functions(root):
        name = Path(tag["path"]).relative_to(root)
        length = tag.get("end", tag["line"]) - tag["line"] + 1
        lengths.append(length)
        cap = KERNEL_CAP if is_kernel_body(name) else FUNCTION_CAP
        if length > cap:
            findings.append(f"{name}:{tag['line']}: {tag['name']} has {length} lines, the cap is {cap}")
        parameters = count_parameters(tag.get("signature", "()"))
        if parameters > PARAMETER_CAP:
            findings.append(f"{name}:{tag['line']}: {tag['name']} has {parameters} parameters, "
                            f"the cap is {PARAMETER_CAP}: make a struct")
    if len(lengths) > 10 and statistics.quantiles(lengths, n=10)[-1] > FUNCTION_P90:
        findings.append(f"90th percentile of functions: {statistics.quantiles(lengths, n=10)[-1]:.0f} "
                        f"lines, the cap is {FUNCTION_P90}")
    return findings


def check(root: Path) -> list[str]:
    root = root.resolve()
    if not shutil.which("ctags"):
        return ["universal-ctags is not installed: function lengths cannot be read"]
    return check_files(root) + check_functions(root)


if __name__ == "__main__":
    main(check, "budgets")
