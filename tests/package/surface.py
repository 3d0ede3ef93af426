"""What libtutti.so exports is what the public headers declare, function by function.

    surface.py INCLUDE LIBRARY OBJECT...

The OBJECTs are every_function.cpp and every_function.c, compiled. Their undefined symbols are the
functions that they call, so that overloads are told apart by the compiler. LIBRARY exports these and
no others. Of each name the headers in INCLUDE declare as many functions as the OBJECTs call.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path


def output_of(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def is_for_programs(tag: dict) -> bool:
    """Whether libtutti has to define it, and a program can call it: none can make an ...Impl."""
    defined_in_header = "template" in tag or re.search(r"default|delete", tag.get("properties", ""))
    return (tag["kind"] == "prototype" and tag.get("access", "public") == "public"
            and not defined_in_header and not re.search(r"Impl\b", tag["signature"]))


def declared(include: Path) -> Counter:
    """How many functions of each name the headers declare."""
    headers = sorted(str(path) for path in [*include.rglob("*.hpp"), *include.rglob("*.h")])
    lines = output_of("ctags", "--languages=C++", "--langmap=C++:.hpp.h", "--kinds-C++=p",
                      "--fields=+aSsKZ", "--fields-C++=+{properties}{template}",
                      "-I", "TUTTI_API TUTTI_DEVICE TUTTI_STRUCT_INIT+",
                      "--output-format=json", "-f", "-", *headers)
    tags = filter(is_for_programs, map(json.loads, lines))
    return Counter("::".join(filter(None, (tag.get("scope"), tag["name"]))).replace(" ", "")
                   for tag in tags)


def symbols(*options_and_file: str) -> set[str]:
    """As C++ writes them. Constructors and destructors have several symbols and one such name."""
    return {re.sub(r"^[0-9a-f]* *\w ", "", line).split("@@")[0]
            for line in output_of("nm", "-C", *options_and_file)}


def called(program: Path) -> set[str]:
    return {name for name in symbols("-u", str(program)) if name.startswith(("tutti::", "tutti_"))}


def exported(library: Path) -> set[str]:
    return symbols("-D", "--defined-only", str(library))


def name_of(function: str) -> str:
    return re.match(r"[^([]+", function).group()


def check(include: Path, library: Path, *programs: Path) -> list[str]:
    calls, exports = set().union(*map(called, programs)), exported(library)
    declarations, names = declared(include), Counter(map(name_of, calls))
    findings = [f"{name} is called and not exported" for name in sorted(calls - exports)]
    findings += [f"{name} is exported and not called" for name in sorted(exports - calls)]
    findings += [f"{name}: the headers declare {declarations[name]}, every_function calls "
                 f"{names[name]}" for name in sorted(declarations.keys() | names.keys())
                 if declarations[name] != names[name]]
    return findings


if __name__ == "__main__":
    found = check(*map(Path, sys.argv[1:]))
    print("\n".join(found) or f"{len(exported(Path(sys.argv[2])))} functions: declared, called, exported")
    sys.exit(1 if found else 0)
