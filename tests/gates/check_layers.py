"""Includes go only downward, as the block `include-rule` of ARCHITECTURE.md says."""

import re
from pathlib import Path

from source_tree import code_files, includes, main

# What may see more than include/tutti, and what may not.
ADAPTERS = ("bindings", "examples")
INSIDERS = ("tools", "tests")


def read_rule(root: Path) -> dict[str, set[str]]:
    """room -> rooms and single headers it may include."""
    text = (root / "ARCHITECTURE.md").read_text()
    block = re.search(r"```include-rule\n(.*?)```", text, re.DOTALL)
    if not block:
        raise SystemExit("ARCHITECTURE.md has no block that starts with ```include-rule")
    rule = {}
    for line in filter(None, map(str.strip, block.group(1).splitlines())):
        room, _, allowed = line.partition("->")
        rule[room.strip()] = set(allowed.split())
    return rule


def find_cycle(rule: dict[str, set[str]]) -> list[str]:
    """Rooms that may include each other in a circle. A single header is not its room."""
    state: dict[str, int] = {}
    path: list[str] = []

    def visit(room: str) -> list[str]:
        state[room] = 1
        path.append(room)
        for lower in sorted(rule.get(room, ())):
            if state.get(lower) == 1:
                return path[path.index(lower):] + [lower]
            if lower not in state and (cycle := visit(lower)):
                return cycle
        state[room] = 2
        path.pop()
        return []

    for room in rule:
        if room not in state and (cycle := visit(room)):
            return cycle
    return []


def check_rooms(root: Path, rule: dict[str, set[str]]) -> list[str]:
    findings = []
    for path in code_files(root, "src"):
        name = path.relative_to(root)
        room = name.parts[1]
        if room not in rule:
            findings.append(f"{name}: the room {room} is not in ARCHITECTURE.md's include rule")
            continue
        for line, quoted, target in includes(path.read_text()):
            lower = target.split("/")[0]
            if not quoted or lower in (room, "tutti") or "/" not in target:
                continue
            if lower in rule and lower not in rule[room] and target not in rule[room]:
                findings.append(f"{name}:{line}: {room} must not include {target}")
            if lower not in rule:
                findings.append(f"{name}:{line}: {target} is in no room of src/")
    return findings


def check_public_headers(root: Path) -> list[str]:
    findings = []
    for path in code_files(root, "include"):
        name = path.relative_to(root)
        for line, quoted, target in includes(path.read_text()):
            own = target.startswith("tutti/")
            foreign = not quoted and re.match(r"(fmt|nlohmann|CLI|gtest)/", target)
            if (quoted and not own) or foreign:
                findings.append(f"{name}:{line}: a public header must not need {target}")
    return findings


def check_adapters(root: Path) -> list[str]:
    findings = []
    for path in code_files(root, *ADAPTERS):
        name = path.relative_to(root)
        for line, quoted, target in includes(path.read_text()):
            beside = (path.parent / target).exists()
            if quoted and not target.startswith("tutti/") and not beside:
                findings.append(f"{name}:{line}: sees include/ alone, not {target}")
    return findings


def check(root: Path) -> list[str]:
    rule = read_rule(root)
    findings = [f"ARCHITECTURE.md: circle {' -> '.join(find_cycle(rule))}"] * bool(find_cycle(rule))
    return findings + check_rooms(root, rule) + check_public_headers(root) + check_adapters(root)


if __name__ == "__main__":
    main(check, "includes go downward")
