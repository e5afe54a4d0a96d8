#!/usr/bin/env python3
"""Checks who includes whom: every #include <kvbench/...> must follow the table below, and every library must link what
it includes.

    arrows.py SOURCE_TREE

Reads sources and CMake files only. A folder that the table does not name belongs to the nearest one above it that it
does name.
"""
import pathlib
import re
import sys

# Folder: the folders whose headers it may include, its own and everything that these may include beside them.
ARROWS = {
    "kernels": [],
    "core": ["kernels"],
    "methods/contract": ["core"],
    "methods/stages": ["methods/contract"],
    "methods/eviction": ["methods/stages"],
    "methods/sampling": ["methods/stages"],
    "methods/merging": ["methods/stages"],
    "methods/retrieval": ["methods/stages"],
    "methods": ["methods/eviction", "methods/sampling", "methods/merging", "methods/retrieval"],
    "trace/hdf5": ["core"],
    "trace/guard": ["trace/hdf5"],
    "trace": ["trace/guard"],
    "replay/metrics": ["core"],
    "replay/plan": ["methods", "trace"],
    "replay/exact": ["replay/plan"],
    "replay/records": ["replay/plan", "replay/metrics"],
    "replay/measure": ["replay/exact", "replay/records"],
    "replay/answer": ["replay/measure"],
    "replay/kept": ["replay/records"],
    "replay/run": ["replay/exact"],
    "replay": ["replay/answer", "replay/kept", "replay/run"],
    "loop": ["replay"],
    "bounds/check": ["replay"],
    "bounds/measures": ["replay"],
    "bounds/trials": ["bounds/check"],
    "bounds/subgen": ["bounds/trials", "bounds/measures"],
    "bounds/balancekv": ["bounds/trials"],
    "bounds/chelsea": ["bounds/trials"],
    "bounds/clusterkv": ["bounds/trials"],
    "bounds/controls": ["bounds/balancekv"],
    "bounds/cost": ["bounds/trials"],
    "bounds": ["bounds/subgen", "bounds/chelsea", "bounds/clusterkv", "bounds/controls", "bounds/cost"],
    "faithful/oracle": ["bounds/chelsea"],
    "faithful/checks": ["faithful/oracle"],
    "faithful/mutants": ["faithful/checks", "bounds"],
    "faithful": ["faithful/mutants"],
    "validate": ["faithful"],
    "compare": ["replay"],
    "store": ["replay/records"],
    "eval": ["compare", "store"],
    "config": ["bounds", "compare"],
    "report/text": ["core"],
    "report/document": ["report/text"],
    "report/drawing": ["report/document"],
    "report/columns": ["report/text", "bounds", "eval"],
    "report/read": ["report/columns"],
    "report/replay": ["report/drawing", "report/read"],
    "report/eval": ["report/drawing", "report/read"],
    "report/claims": ["report/drawing", "report/read"],
    "report": ["report/replay", "report/eval", "report/claims"],
    "sweep": ["config", "store"],
}
SOURCES = (".hpp", ".cpp", ".cu", ".cuh")


def below(folder):
    """The folder and all that it may include."""
    reached = {folder}
    for other in ARROWS[folder]:
        reached |= below(other)
    return reached


def folder_of(path):
    """The entry of the table that `path`, relative to kvbench/, belongs to."""
    parts = path.split("/")
    for length in range(len(parts) - 1, 0, -1):
        if "/".join(parts[:length]) in ARROWS:
            return "/".join(parts[:length])
    return None


def headers(tree):
    """Path as included: file."""
    found = {}
    for root in (tree / "lib", tree / "kernels" / "include"):
        for file in root.rglob("*.hpp"):
            found[file.relative_to(root).as_posix()] = file
    return found


def sources(tree):
    """(file, folder of the table) of every source below lib/ and kernels/."""
    for file in sorted((tree / "lib" / "kvbench").rglob("*")):
        if file.suffix in SOURCES:
            yield file, folder_of(file.relative_to(tree / "lib" / "kvbench").as_posix())
    for file in sorted((tree / "kernels").rglob("*")):
        if file.suffix in SOURCES:
            yield file, "kernels"


def include_faults(tree):
    known = headers(tree)
    for file, folder in sources(tree):
        name = file.relative_to(tree)
        if folder is None:
            yield f"{name}: its folder is not in the table of arrows.py"
            continue
        for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            match = re.match(r'\s*#\s*include\s*[<"](kvbench/[^>"]+)[>"]', text)
            if not match:
                continue
            header = match.group(1)
            if header not in known:
                yield f"{name}:{line}: there is no file {header}"
            elif folder_of(header.removeprefix("kvbench/")) not in below(folder):
                yield f"{name}:{line}: {folder} must not include {header}"


def link_faults(tree):
    """Libraries are the first parts of the table's names; each must link, directly or through others, what the table
    lets it include."""
    linked = {}
    for file in sorted((tree / "lib" / "kvbench").glob("*/CMakeLists.txt")):
        library = file.parent.name
        call = re.search(r"kvbench_library\(\s*(\w+)(.*?)\)", file.read_text(encoding="utf-8"), re.S)
        if not call or call.group(1) != library:
            yield f"{file.relative_to(tree)}: no kvbench_library({library} ...)"
            continue
        linked[library] = set(re.findall(r"kvbench::(\w+)", call.group(2)))

    def reached(library):
        found, new = set(), {library}
        while new:
            found |= new
            new = {other for one in new for other in linked.get(one, ())} - found
        return found

    for library, direct in linked.items():
        allowed = {folder.split("/")[0] for folder in below(library)} - {library}
        for extra in sorted(direct - allowed):
            yield f"lib/kvbench/{library}/CMakeLists.txt: {library} must not link {extra}"
        for missing in sorted(allowed - reached(library)):
            yield f"lib/kvbench/{library}/CMakeLists.txt: {library} must link {missing}"


def faults(tree):
    return [*include_faults(tree), *link_faults(tree)]


def main():
    tree = pathlib.Path(sys.argv[1])
    found = faults(tree)
    for fault in found:
        print(fault)
    count = sum(1 for _ in sources(tree))
    print(f"{count} sources, {len(found)} faults")
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
