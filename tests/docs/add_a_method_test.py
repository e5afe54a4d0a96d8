#!/usr/bin/env python3
"""Follows docs/add-a-method.md: its C++ files and its rows of the registry are added to a copy of the library's
sources, its tests run, and the property tests run on its rows.

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
    """The registry with the page's lines: includes beside the others, rows before the end of the table."""
    for line in added:
        place = "#include <kvbench/methods/eviction/exact.hpp>" if line.startswith("#") else "      random_method(),"
        text = text.replace(place, f"{place}\n{line}", 1)
    return text


def main():
    tree, commands, *libraries = map(pathlib.Path, sys.argv[1:])
    files, added = blocks((tree / PAGE).read_text())
    assert len(files) == 6 and len(added) == 4, f"{PAGE} shows {sorted(files)} and adds {added}"
    compiler, flags = compiler_of(commands, "unit/methods/snapkv.cpp")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, contents in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(contents)
        registry = tree / "lib/kvbench/methods/registry.cpp"
        changed = with_lines(registry.read_text(), added)
        for name in ("knorm", "q5_0"):
            fits = f"/{name}.hpp>" in changed and f" {name}_method()," in changed
            assert fits, f"{PAGE}: its lines of {name} do not fit {registry.name}"
        (root / "registry.cpp").write_text(changed)
        (root / "main.cpp").write_text(MAIN)
        sources = [root / "main.cpp", root / "registry.cpp", tree / "tests/property/rows.cpp",
                   *(root / path for path in files if path.endswith(".cpp"))]
        # The changed registry takes the place of the library's.
        command = [compiler, *flags, f"-I{root / 'lib'}", *sources, "-o", root / "test",
                   "-Wl,--allow-multiple-definition", "-Wl,--start-group", *libraries, "-Wl,--end-group", "-fopenmp",
                   *(["-lfmt"] if "-DFMT_SHARED" in flags else [])]
        subprocess.run(list(map(str, command)), check=True)
        out = subprocess.run([root / "test", "-sc=knorm*,q5_0*"], capture_output=True, text=True)
        print(out.stdout)
        properties = (tree / "lib/kvbench/testing/contract.cpp").read_text().count('    {"')
        asserted = re.search(r"assertions: +(\d+)", out.stdout)
        assert asserted and int(asserted.group(1)) >= 2 * 2 * properties > 80, "not every property ran on both rows"
        return 0 if out.returncode == 0 and re.search("test cases: +4 [|] +4 passed", out.stdout) else 1


if __name__ == "__main__":
    sys.exit(main())
