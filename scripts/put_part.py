#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what a program makes into a page, between <!-- begin NAME: where it comes from --> and <!-- end NAME -->.
    PROGRAM | put_part.py PAGE NAME"""
import pathlib
import re
import sys


def replaced(text, name, content):
    """`text` with the part between the markers of `name` replaced by `content`."""
    pattern = re.compile(rf"(<!-- begin {name}:[^\n]*-->\n).*?(<!-- end {name} -->)", re.S)
    replaced, count = pattern.subn(lambda m: m.group(1) + content + m.group(2), text)
    if count != 1:
        sys.exit(f"{sys.argv[0]}: the page has {count} parts '{name}', not one")
    return replaced


def table(rows):
    """The lines of a table in Markdown, of rows of cells whose first ones are titles."""
    rows = [list(map(str, row)) for row in rows]
    return "".join("| " + " | ".join(row) + " |\n" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:]))


if __name__ == "__main__":
    page, content = pathlib.Path(sys.argv[1]), sys.stdin.read()
    if content:   # not where the program before it failed
        page.write_text(replaced(page.read_text(), sys.argv[2], content))
