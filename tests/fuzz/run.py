"""Runs the fuzz targets of a build with libFuzzer, in parallel: run.py BUILD [--seconds N] [--jobs N]

Fails on any finding and keeps its input. The target `broken` is the negative control: a run that
finds nothing in it has not looked.
"""

import argparse
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONTROL = "broken"
CONTROL_SECONDS = 30  # at most; it is found at once
LIMITS = ("-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1", "-reload=0")
MAX_BYTES = {"settings": 512}  # more lines are only slower; others take what libFuzzer does, 4096


@dataclass
class Outcome:
    name: str
    executions: int
    seconds: float
    output: str
    found: bool
    kept: list[Path]

    def wrong(self) -> bool:
        return self.found != (self.name == CONTROL)


def dictionary(name: str) -> list[str]:
    path = HERE / f"{name}.dict"
    return [f"-dict={path}"] if path.exists() else []


def fuzz(build: Path, name: str, seconds: int) -> Outcome:
    folder = build / "fuzz" / name
    corpus, findings = folder / "corpus", folder / "findings"
    for path in (corpus, findings):
        path.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    limit = min(seconds, CONTROL_SECONDS) if name == CONTROL else seconds
    command = [str(build / "bin" / f"fuzz_{name}"), *LIMITS, *dictionary(name),
               f"-max_len={MAX_BYTES.get(name, 4096)}", f"-max_total_time={limit}",
               f"-artifact_prefix={findings}/"]
    # What is found out here is kept in the build; the seeds are only read.
    folders = [str(corpus), str(HERE / "corpus" / name)]
    began = time.monotonic()
    done = subprocess.run(command + folders, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")
    executions = re.findall(r"stat::number_of_executed_units:\s+(\d+)", done.stdout)
    return Outcome(name, int(executions[-1]) if executions else 0, time.monotonic() - began,
                   done.stdout, done.returncode != 0, sorted(set(findings.iterdir()) - before))


def report(outcome: Outcome) -> None:
    rate = outcome.executions / max(outcome.seconds, 1e-3)
    what = "found, as it must be" if outcome.name == CONTROL and outcome.found else "clean"
    print(f"{outcome.name:<16} {outcome.executions:>12} executions {rate:>10.0f} per second   "
          f"{'WRONG' if outcome.wrong() else what}", flush=True)
    if not outcome.wrong():
        return
    print("\n".join(outcome.output.splitlines()[-60:]))
    for path in outcome.kept:
        print(f"kept: {path}\nonce it is mended, keep it as a seed: tests/fuzz/corpus/{outcome.name}/")
    if outcome.name == CONTROL:
        print("the negative control was not found: these runs prove nothing")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("build", type=Path)
    arguments.add_argument("--seconds", type=int, default=60, help="for each target")
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--targets", nargs="*", help="these alone, and the negative control")
    given = arguments.parse_args()
    names = sorted(path.name.removeprefix("fuzz_") for path in (given.build / "bin").glob("fuzz_*"))
    names = [name for name in names if (HERE / f"{name}.cpp").exists() and
             (not given.targets or name in (*given.targets, CONTROL))]
    if CONTROL not in names or len(names) < 2:
        print(f"{given.build}/bin holds no fuzz targets; build the preset host-fuzz", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(given.jobs) as pool:
        outcomes = []
        for outcome in pool.map(lambda name: fuzz(given.build, name, given.seconds), names):
            report(outcome)
            outcomes.append(outcome)
    print(f"{'all':<16} {sum(outcome.executions for outcome in outcomes):>12} executions")
    return int(any(outcome.wrong() for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
