#!/usr/bin/env python3
"""Follows docs/add-a-method.md: its C++ files and its row of the registry are added to a copy of the library's sources,
and its test runs.

    add_a_method_test.py SOURCE_TREE COMPILE_COMMANDS LIBRARY...
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from page_code import MAIN, compiler_of, diffs_of, files_of

PAGE = "docs/add-a-method.md"


def blocks(text):
    """Path: contents of each file that the page shows in full, and the lines that its diff adds."""
    return files_of(text), re.findall(r"^\+(?!\+)(.*)$", diffs_of(text), re.M)


def with_lines(text, added):
    """The registry with the page's lines: an include beside the others, a row before the end of the table."""
    include, row = added
    text = text.replace("#include <kvbench/methods/eviction/exact.hpp>",
                        f"{include}\n#include <kvbench/methods/eviction/exact.hpp>", 1)
    return text.replace("      random_method(),\n", f"      random_method(),\n{row}\n", 1)


def main():
    tree, commands, *libraries = map(pathlib.Path, sys.argv[1:])
    files, added = blocks((tree / PAGE).read_text())
    assert len(files) == 3 and len(added) == 2, f"{PAGE} shows {sorted(files)} and adds {added}"
    compiler, flags = compiler_of(commands, "unit/methods/snapkv.cpp")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, contents in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(contents)
        registry = tree / "lib/kvbench/methods/registry.cpp"
        changed = with_lines(registry.read_text(), added)
        assert changed.count("knorm") == 2, f"{PAGE}: its lines do not fit {registry.name}"
        (root / "registry.cpp").write_text(changed)
        (root / "main.cpp").write_text(MAIN)
        sources = [root / "main.cpp", root / "registry.cpp", *(root / path for path in files if path.endswith(".cpp"))]
        # The changed registry takes the place of the library's.
        command = [compiler, *flags, f"-I{root / 'lib'}", *sources, "-o", root / "test",
                   "-Wl,--allow-multiple-definition", "-Wl,--start-group", *libraries, "-Wl,--end-group", "-fopenmp",
                   *(["-lfmt"] if "-DFMT_SHARED" in flags else [])]
        subprocess.run(list(map(str, command)), check=True)
        out = subprocess.run([root / "test"], capture_output=True, text=True)
        print(out.stdout)
        return 0 if out.returncode == 0 and "test cases: 1 | 1 passed" in out.stdout else 1


if __name__ == "__main__":
    sys.exit(main())
