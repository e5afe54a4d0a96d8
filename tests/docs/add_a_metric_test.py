#!/usr/bin/env python3
"""Follows docs/add-a-metric.md: its lines are added to a copy of the table of metrics, and its test runs against that
table.

    add_a_metric_test.py SOURCE_TREE COMPILE_COMMANDS
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from page_code import MAIN, compiler_of, diffs_of, files_of, patched

PAGE = "docs/add-a-metric.md"
TABLE = "lib/kvbench/replay/metrics/table.hpp"


def main():
    tree, commands = map(pathlib.Path, sys.argv[1:])
    page = (tree / PAGE).read_text()
    diff, files = diffs_of(page), files_of(page)
    assert f"+++ b/{TABLE}\n" in diff and len(files) == 1, f"{PAGE} shows {sorted(files)} and not a change of {TABLE}"
    compiler, flags = compiler_of(commands, "unit/replay/errors.cpp")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        changed = patched(TABLE, (tree / TABLE).read_text(), diff)
        for path, contents in {**files, TABLE: changed, "main.cpp": MAIN}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(contents)
        sources = [root / "main.cpp", *(root / path for path in files), (tree / TABLE).with_suffix(".cpp")]
        # The changed table takes the place of the library's.
        command = [compiler, f"-I{root / 'lib'}", *flags, *sources, "-o", root / "test"]
        subprocess.run(list(map(str, command)), check=True)
        out = subprocess.run([root / "test"], capture_output=True, text=True)
        print(out.stdout)
        return 0 if out.returncode == 0 and re.search("test cases: +1 [|] +1 passed", out.stdout) else 1


if __name__ == "__main__":
    sys.exit(main())
