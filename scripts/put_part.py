#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the scripts share that write tables into pages: rows of results, figures with intervals, tables in Markdown, and
their place in a page, between <!-- begin NAME: where it comes from --> and <!-- end NAME -->.
    PROGRAM | put_part.py PAGE NAME     writes what PROGRAM prints there"""
import csv
import pathlib
import re
import sys

REFERENCES = {"exact", "oracle-topk", "random"}   # methods that are not compared


def read_rows(path, **texts):
    """The rows of a table of results. `texts`: only those whose columns have them, such as document="all"."""
    with open(path, newline="") as file:
        return [row for row in csv.DictReader(file) if all(row[column] == text for column, text in texts.items())]


def configuration(row):
    """METHOD[PARAMETERS] of a row."""
    return f"{row['method']}[{row['params']}]" if row["params"] else row["method"]


def at_budget(row):
    return f"`{configuration(row)}` at {row['budget']}"


def by_document(rows, name=configuration, column="kl_mean"):
    """{name of the configuration: {document: figure}}, without the rows over all documents."""
    found = {}
    for row in rows:
        if row["document"] != "all":
            found.setdefault(name(row), {})[row["document"]] = float(row[column])
    return found


def interval(value, low, high, form=".2f"):
    """"0.52 [0.31, 0.93]"."""
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"


def figure(row, column, form=".2g"):
    """A figure of a row with its interval."""
    return interval(*(float(row[column + end]) for end in ("", "_lo", "_hi")), form)


def table(rows, rule="| --- "):
    """The lines of a table in Markdown, of rows of cells whose first ones are titles. `rule`: what is below a title."""
    titles, *body = (f"| {' | '.join(map(str, row))} |\n" for row in rows)
    return "".join([titles, f"{rule * len(rows[0])}|\n", *body])


def between(name):
    """Finds a part with its markers: the first one, the part, the last one."""
    return re.compile(rf"(<!-- begin {name}:[^\n]*-->\n)(.*?)(<!-- end {name} -->)", re.S)


def part(page, name):
    """That part of a file, without its markers."""
    return between(name).search(pathlib.Path(page).read_text()).group(2)


def replaced(text, name, content):
    """`text` with the part between the markers of `name` replaced by `content`."""
    replaced, count = between(name).subn(lambda m: m.group(1) + content + m.group(3), text)
    if count != 1:
        sys.exit(f"{sys.argv[0]}: the page has {count} parts '{name}', not one")
    return replaced


def put(page, name, content):
    """Replaces that part of a file."""
    page = pathlib.Path(page)
    page.write_text(replaced(page.read_text(), name, content))


if __name__ == "__main__":
    if content := sys.stdin.read():   # not where the program before it failed
        put(*sys.argv[1:], content)
