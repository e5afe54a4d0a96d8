#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much code one row of a replay passes: the files that the walk in HACKING.md names, each with the header or source
of the same name.
    one_row.py SOURCE_TREE     prints their number, lines and types; fails above LIMITS, which are to fall only
A name without a folder is a neighbour of the file named before it; others are paths below the tree or lib/kvbench."""
import pathlib
import re
import sys

LIMITS = {"files": 45, "lines": 5374, "types": 96}
WALK = re.compile(r"^## How one row of a replay is computed$(.*?)(?=^## |\Z)", re.M | re.S)
NAME = re.compile(r"`([\w/]+\.[ch]pp)`")
TYPE = re.compile(r"^[ \t]*(?:(?:struct|class|enum(?: class)?|union)\s+(\w+)[^;]*?\{|using\s+(\w+)\s*=)", re.M)


def walk(tree):
    """(name, file or None) of all files that the walk names."""
    section = WALK.search((tree / "HACKING.md").read_text(encoding="utf-8"))
    folder = tree
    for name in NAME.findall(section.group(1) if section else ""):
        folders = [tree, tree / "lib/kvbench"] if "/" in name else [folder]
        found = next((root / name for root in folders if (root / name).is_file()), None)
        yield name, found
        folder = found.parent if found else folder


def count(files):
    """Files, lines and types; a name that two files give to a type is two types."""
    files = {pair for file in files for pair in (file.with_suffix(".hpp"), file.with_suffix(".cpp")) if pair.is_file()}
    texts = [file.read_text(encoding="utf-8") for file in files]
    return {"files": len(texts), "lines": sum(text.count("\n") for text in texts),
            "types": sum(len(set(TYPE.findall(text))) for text in texts)}


def faults(tree):
    named = list(walk(tree))
    if not named:
        return ["HACKING.md: the walk names no file"]
    missing = [f"HACKING.md: the walk names {name}, which is no file" for name, file in named if file is None]
    counts = count(file for _, file in named if file)
    print(", ".join(f"{number} {what}" for what, number in counts.items()))
    return missing + [f"one row passes {number} {what}, and {LIMITS[what]} are allowed"
                      for what, number in counts.items() if number > LIMITS[what]]


if __name__ == "__main__":
    found = faults(pathlib.Path(sys.argv[1]).resolve())
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
