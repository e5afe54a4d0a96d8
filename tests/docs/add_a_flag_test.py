#!/usr/bin/env python3
"""Follows docs/add-a-flag.md: its lines are added to copies of the request, of the table of fields and of what the
field changes, and its test runs against them.

    add_a_flag_test.py SOURCE_TREE COMPILE_COMMANDS LIBRARY...
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from page_code import MAIN, compiler_of, diffs_of, files_of, patched

PAGE = "docs/add-a-flag.md"
REQUEST, TABLE = "lib/kvbench/replay/plan/request.hpp", "lib/kvbench/replay/plan/fields.cpp"
# What knows the members of a request and takes part in the test, beside the changed files.
COMPILED = ("lib/kvbench/replay/plan/field_values.cpp", "lib/kvbench/config/run_keys.cpp",
            "apps/common/rows/request_flags.cpp")


def main():
    tree, commands, *libraries = map(pathlib.Path, sys.argv[1:])
    page = (tree / PAGE).read_text()
    files = files_of(page)
    (test,) = files
    for change in re.split(r"^--- a/.*\n", diffs_of(page), flags=re.M)[1:]:
        path = re.match(r"\+\+\+ b/(.*)\n", change).group(1)
        files[path] = patched(path, (tree / path).read_text(), change)
    assert TABLE in files and REQUEST in files, f"{PAGE} changes {sorted(files)}"
    compiler, flags = compiler_of(commands, "rows/request_flags.cpp")
    flags += compiler_of(commands, "unit/config/sweep.cpp")[1]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, contents in {**files, "main.cpp": MAIN}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(contents)
        command = [compiler, f"-I{root / 'lib'}", *flags]
        run = lambda *words: subprocess.run(list(map(str, [*command, *words])), check=True)
        # The changed files take the place of the library's.
        sources = [root / "main.cpp", root / test, root / TABLE, *(tree / path for path in COMPILED)]
        run(*sources, "-o", root / "test", "-Wl,--allow-multiple-definition", "-Wl,--start-group", *libraries,
            "-Wl,--end-group", "-fopenmp", *(["-lfmt"] if "-DFMT_SHARED" in flags else []))
        out = subprocess.run([root / "test"], capture_output=True, text=True)
        print(out.stdout)
        return 0 if out.returncode == 0 and re.search("test cases: +1 [|] +1 passed", out.stdout) else 1


if __name__ == "__main__":
    sys.exit(main())
