#!/usr/bin/env python3
"""Checks who includes whom: every #include must follow the Map of HACKING.md, and every library must link what it
includes. Paired tests are called by one folder.

    arrows.py SOURCE_TREE

Reads HACKING.md, sources and CMake files only. Each row of the Map is a folder, what belongs there, and which folders
it may include, with everything that these may include beside them; NAME/* are all rows below NAME. Names that do not
begin with apps, bench, kernels, python or tests are below lib/kvbench. A folder without a row belongs to the nearest
one above it that has one. tests/unit/NAME without a row may include what NAME and tests/unit may, and NAME. A header of
tests may be included by every test that may include what the header includes.
"""
import pathlib
import re
import sys

SOURCES = (".hpp", ".cpp", ".cu", ".cuh")
APART = ("apps", "bench", "kernels", "python", "tests")  # not below lib/kvbench


def table(tree):
    """The Map: folder, and the folders that its row names."""
    text = (tree / "HACKING.md").read_text(encoding="utf-8")
    section = re.search(r"^## Map$(.*?)(?=^## |\Z)", text, re.M | re.S)
    rows = re.findall(r"^\| `([\w/]+)` \|.+\|([^|]+)\|$", section.group(1), re.M) if section else []
    folders = [folder for folder, _ in rows]

    def named(name):
        return [f for f in folders if f.startswith(name[:-1])] if name.endswith("/*") else [name]

    return {folder: [one for name in re.findall(r"`([\w/]+\*?)`", includes) for one in named(name)]
            for folder, includes in rows}


def place(path):
    """How the Map names a path relative to the tree."""
    return path.removeprefix("lib/kvbench/")


def folder_of(arrows, path):
    """The row that a path, as the Map names it, belongs to."""
    parts = path.split("/")
    if parts[:2] == ["tests", "unit"] and len(parts) > 3 and parts[2] in arrows and "/".join(parts[:3]) not in arrows:
        return parts[2]
    for length in range(len(parts) - 1, 0, -1):
        if "/".join(parts[:length]) in arrows:
            return "/".join(parts[:length])
    return None


def below(arrows, folder):
    """The folder and all that it may include."""
    reached, new = set(), {folder}
    while new:
        reached |= new
        new = {other for one in new for other in arrows.get(one, ())} - reached
    return reached


def headers(tree):
    """Path as included: file, of all public headers."""
    found = {}
    for root in (tree / "lib", tree / "kernels" / "include"):
        for file in root.rglob("*.hpp"):
            found[file.relative_to(root).as_posix()] = file
    return found


def sources(tree):
    """Every source that the Map covers."""
    for root in ("lib/kvbench", *APART):
        yield from (file for file in sorted((tree / root).rglob("*")) if file.suffix in SOURCES)


def target(tree, known, file, name):
    """The file that `file` includes as `name`; None for headers from elsewhere. Throws KeyError where there is none."""
    if name.startswith("kvbench/"):
        return known[name]
    if name.startswith("apps/"):
        if not (tree / name).exists():
            raise KeyError(name)
        return tree / name
    for root in (file.parent, tree / "tests"):
        if (root / name).exists():
            return root / name
    return None


def includes(file):
    """(line, name) of every #include."""
    for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', text)
        if match:
            yield line, match.group(1)


def include_faults(tree, arrows):
    known, tests = headers(tree), tree / "tests"

    def faults_of(file, folder, allowed, seen):
        through = f" ({seen[0].relative_to(tree)})" if file != seen[0] else ""
        for line, name in includes(file):
            at = f"{file.relative_to(tree)}:{line}"
            if "../" in name and folder != "kernels":  # whose headers are private
                yield f"{at}: includes by ../; an include path is a file path"
                continue
            try:
                header = target(tree, known, file, name)
            except KeyError:
                yield f"{at}: there is no file {name}"
                continue
            if header is None or header in seen:
                continue
            if tests in header.parents and tests in file.parents:
                yield from faults_of(header, folder, allowed, [*seen, header])
                continue
            path = header.relative_to(tree).as_posix()
            if folder_of(arrows, place(path)) not in allowed:
                yield f"{at}: {folder} must not include {name}{through}"

    for file in sources(tree):
        path = file.relative_to(tree).as_posix()
        folder = folder_of(arrows, place(path))
        if folder is None:
            yield f"{path}: its folder is not in the Map of HACKING.md"
        elif not (tests in file.parents and file.suffix == ".hpp"):
            allowed = below(arrows, folder) | (below(arrows, "tests/unit") if path.startswith("tests/unit/") else set())
            yield from faults_of(file, folder, allowed, [file])


def row_faults(tree, arrows):
    """Rows without a source, rows that name folders without one, and circles."""
    for folder, others in arrows.items():
        root = tree if folder.split("/")[0] in APART else tree / "lib" / "kvbench"
        if not any(file.suffix in SOURCES for file in (root / folder).rglob("*")):
            yield f"HACKING.md: the Map has a row for {folder}, which holds no source"
        for other in others:
            if other not in arrows:
                yield f"HACKING.md: the row of {folder} names {other}, which has no row"
            elif folder in below(arrows, other):
                yield f"HACKING.md: {folder} and {other} may include each other"


def link_faults(tree, arrows):
    """Libraries are the first parts of the names below lib/kvbench; each must link, directly or through others, what
    the Map lets it include."""
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
        allowed = {folder.split("/")[0] for folder in below(arrows, library)} - {library}
        for extra in sorted(direct - allowed):
            yield f"lib/kvbench/{library}/CMakeLists.txt: {library} must not link {extra}"
        for missing in sorted(allowed - reached(library)):
            yield f"lib/kvbench/{library}/CMakeLists.txt: {library} must link {missing}"


def test_faults(tree, arrows):
    """Configurations are tested against each other by `evidence` alone; Chelsea's checks have a statistic of their
    own."""
    for file in sources(tree):
        path = file.relative_to(tree).as_posix()
        if path.startswith("tests/") or folder_of(arrows, place(path)) in ("core", "evidence", "bounds/chelsea"):
            continue
        for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            if re.search(r"\b(paired|place)_test\(", text.split("//")[0]):
                yield f"{path}:{line}: paired tests are those of evidence"


def faults(tree):
    arrows = table(tree)
    rows = list(row_faults(tree, arrows))
    return rows or [*include_faults(tree, arrows), *link_faults(tree, arrows), *test_faults(tree, arrows)]


def main():
    tree = pathlib.Path(sys.argv[1]).resolve()
    found = faults(tree)
    for fault in found:
        print(fault)
    count = sum(1 for _ in sources(tree))
    print(f"{count} sources, {len(table(tree))} folders, {len(found)} faults")
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
