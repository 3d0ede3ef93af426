"""Protocols as models for spin: right as they are, and each mutation of theirs found.

Each model (*.pml) is checked exhaustively in each of its configurations: no deadlock, no read of what
is not there yet or not any more, no wrong result. A mutation takes one thing away from a protocol, and
must be found in one of the configurations, by an assertion or as a deadlock. Exit code 0, 1 if anything
is not as it should be, or 77 if spin or a C compiler is missing.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SKIPPED = 77
RUN_TIMEOUT_S = 1200

# What each model is run with, the quick ones first.
CONFIGURATIONS = {
    "one_shot": (
        "RANKS=2 OPERATIONS=3",
        "RANKS=2 OPERATIONS=2 STAGED PASSES=2",
        "RANKS=2 OPERATIONS=2 STAGED PASSES=2 HOST",
        "RANKS=2 OPERATIONS=2 OTHER_OPERATION HOST",
        "RANKS=3 OPERATIONS=2 OTHER_OPERATION WHOLE_FLAGS",
        "RANKS=3 OPERATIONS=2 WHOLE_FLAGS",
    ),
    "two_shot": (
        "RANKS=2 OPERATIONS=3",
        "RANKS=2 OPERATIONS=2 STAGED PASSES=2",
        "RANKS=2 OPERATIONS=2 STAGED PASSES=2 HOST",
        "RANKS=3 OPERATIONS=1 STAGED PASSES=2 WHOLE_FLAGS",
        "RANKS=3 OPERATIONS=2 WHOLE_FLAGS",
    ),
    "packets": (
        "RANKS=2 LAUNCHES=7",
        "RANKS=2 LAUNCHES=7 INTEGERS",
        "RANKS=2 LAUNCHES=7 HOST",
        "RANKS=2 LAUNCHES=4 PARTS=2 MAX_WORDS=1",
        "RANKS=2 LAUNCHES=3 OTHER_OPERATION",
        "RANKS=3 LAUNCHES=4 MAX_WORDS=1 WHOLE_FLAGS",
    ),
    "credits": (
        "RANKS=2 OPERATIONS=2 CHUNKS=3",
        "RANKS=2 OPERATIONS=2 CHUNKS=3 BULK",
        "RANKS=3 OPERATIONS=2 CHUNKS=2",
    ),
    "leaving": ("RANKS=2 MOST=3",),
    "matmul_ring": (
        "BLOCKS=2 CONSUMERS=1 STAGES=2 ROUNDS=5",
        "BLOCKS=1 CONSUMERS=2 STAGES=3 ROUNDS=7",
        "BLOCKS=2 CONSUMERS=2 STAGES=2 ROUNDS=3",
    ),
}

MUTATION = re.compile(
    r"^#define (?P<name>\w+) \(mutation == (?P<number>\d+)\) +// (?P<text>.*)$"
    r"(?P<redundant>(\n// +redundant: .*$(\n// {3,}.*$)*)?)",
    re.MULTILINE,
)


@dataclasses.dataclass(frozen=True)
class Mutation:
    number: int
    name: str
    text: str  # what is taken away
    redundant: str  # why its absence cannot be seen; empty: it has to be found


FAITHFUL = Mutation(0, "-", "nothing", "")


@dataclasses.dataclass(frozen=True)
class Outcome:
    found_by: str  # "deadlock", "assertion"; empty: the whole state space is right
    states: int
    problem: str = ""  # why the search proves nothing


def read_mutations(model: str) -> list[Mutation]:
    """Those that are defined in the model, with the text behind them."""
    return [Mutation(int(match["number"]), match["name"], match["text"],
                     re.sub(r"\s*//\s*", " ", match["redundant"]).strip())
            for match in MUTATION.finditer((FOLDER / f"{model}.pml").read_text())]


def run(command: list[str], folder: Path, **environment: str) -> str:
    result = subprocess.run(command, cwd=folder, env=os.environ | environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=RUN_TIMEOUT_S)
    return result.stdout


def build(model: str, configuration: str, folder: Path) -> Path:
    """The checker of one configuration. Kept in the folder, under a name that tells its sources."""
    definitions = [f"-D{definition}" for definition in configuration.split()]
    digest = hashlib.sha256(configuration.encode())
    for source in (*sorted(FOLDER.glob("*.pml")), Path(__file__)):
        digest.update(source.read_bytes())
    checker = folder / f"{model}-{digest.hexdigest()[:16]}"
    if checker.exists():
        return checker
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for source in FOLDER.glob("*.pml"):
            shutil.copy(source, scratch)
        said = run(["spin", *definitions, "-a", f"{model}.pml"], Path(scratch))
        # Safety only: with no wait but those that block, a hang is an end that is not valid.
        said += run(["gcc", "-O2", "-w", "-DSAFETY", "-DMEMLIM=2048", "pan.c", "-o", "pan"], Path(scratch))
        if not (Path(scratch) / "pan").exists():
            raise RuntimeError(f"{model} ({configuration}) cannot be built:\n{said}")
        os.replace(Path(scratch) / "pan", checker)  # whole or not at all
    return checker


def read_outcome(said: str) -> Outcome:
    states = re.search(r"(\d+) states, stored", said)
    errors = re.search(r"errors: (\d+)", said)
    stored = int(states[1]) if states else 0
    error = re.search(r"pan:\d+: (.*) \(at depth", said)
    if not errors or "max search depth too small" in said or "out of memory" in said:
        return Outcome("", stored, "the search ended early: " + " ".join(said.split())[-300:])
    if not error:
        return Outcome("", stored)
    if ".count<" in error[1]:
        return Outcome("", stored, "a buffer of the model is too small: " + error[1])
    return Outcome("deadlock" if "invalid end state" in error[1] else "assertion", stored)


def search(model: str, configuration: str, mutation: Mutation, folder: Path) -> Outcome:
    checker = build(model, configuration, folder)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:  # for the trail that it leaves
        return read_outcome(run([str(checker), "-m1000000"], Path(scratch), MUTATION=str(mutation.number)))


def row(model: str, mutation: Mutation, what: str, states: int, where: str) -> str:
    return f"{model:<14}{mutation.name:<26}{what:<11}{states:>9}  {where}"


def check_faithful(model: str, configuration: str, folder: Path) -> tuple[str, bool]:
    outcome = search(model, configuration, FAITHFUL, folder)
    what = outcome.found_by or ("undecided" if outcome.problem else "right")
    line = row(model, FAITHFUL, what, outcome.states, configuration)
    return (line + (f"\n    {outcome.problem}" if outcome.problem else ""), what == "right")


def check_mutation(model: str, mutation: Mutation, folder: Path) -> tuple[str, bool]:
    """Through the configurations until one finds it. What is redundant must not be found by any."""
    states = 0
    for configuration in CONFIGURATIONS[model]:
        outcome = search(model, configuration, mutation, folder)
        states += outcome.states
        if outcome.problem:
            return row(model, mutation, "undecided", states, f"{configuration}: {outcome.problem}"), False
        if outcome.found_by:
            text = mutation.text + (" (was called redundant)" if mutation.redundant else "")
            return row(model, mutation, outcome.found_by, states, text), not mutation.redundant
    if mutation.redundant:
        return row(model, mutation, "redundant", states, f"{mutation.text}; {mutation.redundant}"), True
    return row(model, mutation, "SURVIVED", states, mutation.text), False


def check(models: list[str], kinds: set[str], folder: Path) -> int:
    """Builds each configuration once, then searches: as many at a time as there are cores."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        pairs = [(model, configuration) for model in models for configuration in CONFIGURATIONS[model]]
        for building in [pool.submit(build, *pair, folder) for pair in pairs]:
            building.result()
        searches = []
        if "faithful" in kinds:
            searches += [pool.submit(check_faithful, *pair, folder) for pair in pairs]
        if "mutations" in kinds:
            searches += [pool.submit(check_mutation, model, mutation, folder)
                         for model in models for mutation in read_mutations(model)]
        print(f"{'model':<14}{'mutation':<26}{'outcome':<11}{'states':>9}  configuration, or what is missing")
        wrong = 0
        for line, is_right in (searching.result() for searching in searches):
            print(line)
            wrong += not is_right
    print(f"{len(searches)} searches, {wrong} not as they should be")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=("faithful", "mutations", "all"), default="all")
    parser.add_argument("--model", action="append", choices=CONFIGURATIONS, help="default: all")
    parser.add_argument("--build", type=Path, help="where checkers are kept; default: nowhere")
    arguments = parser.parse_args()
    missing = [tool for tool in ("spin", "gcc") if not shutil.which(tool)]
    if missing:
        print(f"skipped: {' and '.join(missing)} not found; `./dev test` installs them")
        return SKIPPED
    kinds = {"faithful", "mutations"} if arguments.kind == "all" else {arguments.kind}
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.build or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        return check(arguments.model or list(CONFIGURATIONS), kinds, folder)


if __name__ == "__main__":
    sys.exit(main())
