#!/usr/bin/env python3
"""Follows a page that adds a row to a table: its lines are added to a copy of the table, and its test runs against that
table.

    add_a_row_test.py PAGE TABLE TEST SOURCE_TREE COMPILE_COMMANDS

PAGE and TABLE are paths below SOURCE_TREE, TEST is a test that is compiled as that of the page is.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from page_code import MAIN, compiler_of, diffs_of, files_of, patched


def main():
    page_path, table, test = sys.argv[1:4]
    tree, commands = map(pathlib.Path, sys.argv[4:])
    page = (tree / page_path).read_text()
    diff, files = diffs_of(page), files_of(page)
    assert f"+++ b/{table}\n" in diff and len(files) == 1, f"{page_path} shows {sorted(files)}, not a change of {table}"
    compiler, flags = compiler_of(commands, test)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        changed = patched(table, (tree / table).read_text(), diff)
        for path, contents in {**files, table: changed, "main.cpp": MAIN}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(contents)
        of_table = (tree / table).with_suffix(".cpp")
        sources = [root / "main.cpp", *(root / path for path in files), *([of_table] if of_table.exists() else [])]
        # The changed table takes the place of the library's.
        command = [compiler, f"-I{root / 'lib'}", *flags, *sources, "-o", root / "test"]
        subprocess.run(list(map(str, command)), check=True)
        out = subprocess.run([root / "test"], capture_output=True, text=True)
        print(out.stdout)
        return 0 if out.returncode == 0 and re.search("test cases: +1 [|] +1 passed", out.stdout) else 1


if __name__ == "__main__":
    sys.exit(main())
