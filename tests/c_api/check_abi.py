"""The binary interface of the C API is the one that abi.txt stores.

    check_abi.py CC INCLUDE LIBRARY STORED [--write]

A program made of the headers prints the size of each struct, the place of each field, and the value
of each constant; ctags reads the functions, and nm which of them LIBRARY exports. A line of STORED
that is gone or different breaks programs that were compiled before, except that a struct which begins
with `size` may grow. A new line has to be stored: --write does that, and refuses what breaks programs.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def output_of(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def read_tags(include: Path) -> list[dict]:
    headers = sorted(map(str, include.rglob("*.h")))
    lines = output_of("ctags", "--languages=C", "--langmap=C:.h", "--kinds-C=pmsed", "--fields=+aSsKZt",
                      "-I", "TUTTI_API TUTTI_STRUCT_INIT+", "--output-format=json", "-f", "-", *headers)
    return list(map(json.loads, lines))


def words(text: str) -> str:
    """With one space between words, and none around punctuation."""
    return re.sub(r"\s*([*(),])\s*", r"\1", " ".join(text.split()))


def function_line(tag: dict) -> str:
    returned = tag.get("typeref", "typename:?").removeprefix("typename:")
    return f"function {tag['name']} = {words(returned)}{words(tag['signature'])}"


def constants_of(tags: list[dict]) -> list[str]:
    """Enumerators, and macros that are numbers. The version is none: each release has another."""
    macros = [tag for tag in tags if tag["kind"] == "macro" and "signature" not in tag
              and not re.search(r"TUTTI_(API|VERSION\w*)$", tag["name"])]
    return sorted(tag["name"] for tag in [*macros, *(tag for tag in tags if tag["kind"] == "enumerator")])


def program_of(tags: list[dict]) -> str:
    structs = [tag["name"] for tag in tags if tag["kind"] == "struct"]
    lines = [f'printf("struct {name} = %zu bytes\\n", sizeof({name}));' for name in structs]
    for tag in tags:
        # A member of a union within a struct is part of a field.
        if tag["kind"] != "member" or tag["scope"] not in structs:
            continue
        place = f"{tag['scope']}, {tag['name']}"
        size = f"sizeof((({tag['scope']}*)0)->{tag['name']})"
        lines.append(f'printf("field {tag["scope"]}.{tag["name"]} = %zu bytes at %zu\\n", {size}, '
                     f"offsetof({place}));")
    lines += [f'printf("constant {name} = %lld\\n", (long long){name});' for name in constants_of(tags)]
    return "#include <stddef.h>\n#include <stdio.h>\n#include <tutti/tutti.h>\nint main(void) {\n" + \
        "\n".join(lines) + "\nreturn 0;\n}\n"


def padding_findings(lines: dict[str, str]) -> list[str]:
    """A field that fits into the padding at the end would not change the size that tells versions apart."""
    ends: dict[str, int] = {}
    for name, value in lines.items():
        if match := re.fullmatch(r"field (\w+)\.\w+", name):
            size, offset = map(int, re.fullmatch(r"(\d+) bytes at (\d+)", value).groups())
            ends[match.group(1)] = max(ends.get(match.group(1), 0), offset + size)
    return [f"{struct} ends in padding: add a field `reserved`" for struct, end in ends.items()
            if f"field {struct}.size" in lines and lines[f"struct {struct}"] != f"{end} bytes"]


def current(compiler: str, include: Path, library: Path) -> dict[str, str]:
    tags = read_tags(include)
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "layout.c", Path(folder) / "layout"
        source.write_text(program_of(tags))
        subprocess.run([compiler, "-std=c11", f"-I{include}", source, "-o", program], check=True)
        lines = output_of(str(program))
    exported = {line.split()[-1] for line in output_of("nm", "-D", "--defined-only", str(library))}
    lines += [function_line(tag) for tag in tags if tag["kind"] == "prototype" and tag["name"] in exported]
    return dict(sorted(line.split(" = ", 1) for line in lines))


def may_grow(name: str, old: str, new: str, lines: dict[str, str]) -> bool:
    struct = name.removeprefix("struct ")
    return (name.startswith("struct ") and f"field {struct}.size" in lines
            and int(old.split()[0]) < int(new.split()[0]))


def breaking(stored: dict[str, str], lines: dict[str, str]) -> list[str]:
    findings = [f"breaks programs: {name} was {value} and is gone" for name, value in stored.items()
                if name not in lines]
    return findings + [f"breaks programs: {name} was {value} and is {lines[name]}"
                       for name, value in stored.items() if name in lines and lines[name] != value
                       and not may_grow(name, value, lines[name], lines)]


def check(stored: dict[str, str], lines: dict[str, str]) -> list[str]:
    findings = breaking(stored, lines) + padding_findings(lines)
    changed = [name for name in lines if stored.get(name) != lines[name]]
    return findings or [f"not stored: {name} = {lines[name]} (--write stores it)" for name in changed]


def read(path: Path) -> dict[str, str]:
    return dict(line.split(" = ", 1) for line in path.read_text().splitlines()) if path.exists() else {}


if __name__ == "__main__":
    compiler, include, library, path = sys.argv[1], *map(Path, sys.argv[2:5])
    stored, lines = read(path), current(compiler, include, library)
    if "--write" in sys.argv and not breaking(stored, lines):
        path.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
        stored = lines
    found = check(stored, lines)
    print("\n".join(found) or f"{len(lines)} functions, sizes, fields and constants are as stored")
    sys.exit(1 if found else 0)
