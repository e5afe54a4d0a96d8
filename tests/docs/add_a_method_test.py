#!/usr/bin/env python3
"""Follows docs/add-a-method.md: its C++ files and its lines of other files are added to copies of the library's
sources, its tests run, and the property tests run on its rows.

    add_a_method_test.py SOURCE_TREE COMPILE_COMMANDS LIBRARY...
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from page_code import MAIN, compiler_of, diffs_of, files_of, patched

PAGE, REGISTRY = "docs/add-a-method.md", "lib/kvbench/methods/registry.cpp"


def main():
    tree, commands, *libraries = map(pathlib.Path, sys.argv[1:])
    page = (tree / PAGE).read_text()
    files = files_of(page)
    assert len(files) == 4, f"{PAGE} shows {sorted(files)}"
    for change in re.split(r"^--- a/.*\n", diffs_of(page), flags=re.M)[1:]:
        path = re.match(r"\+\+\+ b/(.*)\n", change).group(1)
        files[path] = patched(path, files.get(path) or (tree / path).read_text(), change)
    for name in ("kvnorm", "q6_0"):
        row = f" {name}_method(),"
        assert row in files[REGISTRY], f"{PAGE}: its lines do not add {name}"
        assert row not in (tree / REGISTRY).read_text(), f"{PAGE} adds {name}, which the registry has already"
    compiler, flags = compiler_of(commands, "unit/methods/snapkv.cpp")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, contents in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(contents)
        (root / "main.cpp").write_text(MAIN)
        sources = [root / "main.cpp", tree / "tests/property/rows.cpp",
                   *(root / path for path in files if path.endswith(".cpp"))]
        # The changed registry takes the place of the library's.
        command = [compiler, f"-I{root / 'lib'}", *flags, *sources, "-o", root / "test",
                   "-Wl,--allow-multiple-definition", "-Wl,--start-group", *libraries, "-Wl,--end-group", "-fopenmp",
                   *(["-lfmt"] if "-DFMT_SHARED" in flags else [])]
        subprocess.run(list(map(str, command)), check=True)
        out = subprocess.run([root / "test", "-sc=kvnorm*,q6_0*"], capture_output=True, text=True)
        print(out.stdout)
        properties = (tree / "lib/kvbench/testing/contract.cpp").read_text().count('    {"')
        asserted = re.search(r"assertions: +(\d+)", out.stdout)
        assert asserted and int(asserted.group(1)) >= 2 * 2 * properties > 80, "not every property ran on both rows"
        return 0 if out.returncode == 0 and re.search("test cases: +4 [|] +4 passed", out.stdout) else 1


if __name__ == "__main__":
    sys.exit(main())
