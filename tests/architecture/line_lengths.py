#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No line of a page, source, script or build file has more than 120 columns.
    line_lengths.py SOURCE_TREE     prints FILE:LINE of every longer line
Longer may be: rows of tables in pages, what a program printed there (between <!-- begin ... --> and <!-- end ... -->),
and lines that hold nothing but a single word, such as an URL, after what opens a comment or a list item."""
import pathlib
import re
import sys

COLUMNS = 120
KINDS = {".md", ".py", ".sh", ".toml", ".cmake", ".cpp", ".hpp", ".cu", ".cuh", ".c", ".h", ".sbatch"}
NAMES = {"CMakeLists.txt", "Makefile"}
FOLDERS = ["apps", "bench", "cmake", "configs", "docs", "kernels", "lib", "python", "scripts", "tests", "traces", ".ci"]
PRINTED = re.compile(r"<!-- begin .*?<!-- end [^\n]*-->", re.S)
ONE_WORD = re.compile(r"\s*([-*#]|//)? *\S+$")


def is_checked(path):
    script = not path.suffix and path.parent.name in ("scripts", "slurm", ".ci")
    return path.is_file() and (path.suffix in KINDS or path.name in NAMES or script)


def checked_files(tree):
    """The files of the top folder and of FOLDERS."""
    inside = (path for folder in FOLDERS for path in (tree / folder).rglob("*"))
    return sorted(path for path in [*tree.glob("*"), *inside] if is_checked(path))


def long_lines(path):
    """Numbers of the lines that are too long."""
    text = path.read_text()
    page = path.suffix == ".md"
    if page:
        text = PRINTED.sub(lambda part: re.sub(r"[^\n]", "", part.group()), text)
    return [number for number, line in enumerate(text.split("\n"), 1)
            if len(line) > COLUMNS and not ONE_WORD.match(line) and not (page and line.lstrip().startswith("|"))]


def main():
    tree = pathlib.Path(sys.argv[1])
    found = [f"{path.relative_to(tree)}:{number}" for path in checked_files(tree) for number in long_lines(path)]
    if found:
        print(*found, f"{len(found)} lines have more than {COLUMNS} columns", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
