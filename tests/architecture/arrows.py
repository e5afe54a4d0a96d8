#!/usr/bin/env python3
"""Checks who includes whom: every #include must follow rooms.toml, and every library must link what it includes.
Paired tests are called by one folder.

    arrows.py SOURCE_TREE

Reads tests/architecture/rooms.toml, whose head says what its entries mean, sources and CMake files only.
tests/unit/NAME without a room may include what NAME and tests/unit may, and NAME. A header of tests may be included by
every test that may include what the header includes.
"""
import pathlib
import re
import sys
import tomllib

SOURCES = (".hpp", ".cpp", ".cu", ".cuh")
APART = ("apps", "bench", "kernels", "python", "tests")  # not below lib/kvbench
ROOMS = "tests/architecture/rooms.toml"


def table(tree):
    """Folder: the folders that its room names, of all rooms with C++."""
    rooms = tomllib.loads((tree / ROOMS).read_text(encoding="utf-8"))
    folders = [folder for folder, room in rooms.items() if "includes" in room]

    def named(name):
        return [f for f in folders if f.startswith(name[:-1])] if name.endswith("/*") else [name]

    return {folder: [one for name in rooms[folder]["includes"] for one in named(name)] for folder in folders}


def place(path):
    """How rooms.toml names a path relative to the tree."""
    return path.removeprefix("lib/kvbench/")


def folder_of(arrows, path):
    """The room that a path, as rooms.toml names it, belongs to."""
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
    """Every source that belongs to a room."""
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
            yield f"{path}: its folder is no room of {ROOMS}"
        elif not (tests in file.parents and file.suffix == ".hpp"):
            allowed = below(arrows, folder) | (below(arrows, "tests/unit") if path.startswith("tests/unit/") else set())
            yield from faults_of(file, folder, allowed, [file])


def room_faults(tree, arrows):
    """Rooms without a source, rooms that name folders without an entry, and circles."""
    for folder, others in arrows.items():
        root = tree if folder.split("/")[0] in APART else tree / "lib" / "kvbench"
        if not any(file.suffix in SOURCES for file in (root / folder).rglob("*")):
            yield f"{ROOMS}: {folder} holds no source"
        for other in others:
            if other not in arrows:
                yield f"{ROOMS}: {folder} names {other}, which is no room"
            elif folder in below(arrows, other):
                yield f"{ROOMS}: {folder} and {other} may include each other"


def link_faults(tree, arrows):
    """Libraries are the first parts of the names below lib/kvbench; each must link, directly or through others, what
    rooms.toml lets it include."""
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
    rooms = list(room_faults(tree, arrows))
    return rooms or [*include_faults(tree, arrows), *link_faults(tree, arrows), *test_faults(tree, arrows)]


def main():
    tree = pathlib.Path(sys.argv[1]).resolve()
    found = faults(tree)
    for fault in found:
        print(fault)
    count = sum(1 for _ in sources(tree))
    print(f"{count} sources, {len(table(tree))} rooms, {len(found)} faults")
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
