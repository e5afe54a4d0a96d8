# SPDX-License-Identifier: Apache-2.0
"""Reads result CSVs with typed columns."""

import csv
import os
import re

from ._columns import INTEGER, TEXT
from ._schema import Error


def _integer(text):
    """Number of a layer, head, ..., or the text 'all'; None for an empty cell, which means that the column does not
    apply."""
    return int(text) if text.lstrip("-").isdigit() else text or None


def _number(text):
    try:
        return float(text) if text else None
    except ValueError:
        return text


# kvbench protects texts that a spreadsheet would compute with an apostrophe.
_PROTECTED = re.compile("'+[-=+@\t\r\n]")


def _plain(text):
    return text[1:] if _PROTECTED.match(text) else text


def _typed(column, text):
    if column in TEXT:
        return _plain(text) or None
    return _integer(text) if column in INTEGER else _number(text)


def _check(columns, path):
    if not {"method", "status"} <= set(columns or ()):
        raise Error(f"{path}: has no columns 'method' and 'status', so that it is not a result of kvbench replay or "
                    "kvbench sweep.")


def load_csv(path):
    """The rows of a result CSV: a pandas.DataFrame if pandas is installed, else a list of dicts. `layer`, `kv_head`,
    `head`, `query` and `seed` are integers or 'all'; values that do not apply are missing (NaN, None)."""
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise Error(f"{path}: no such file; check the name.")
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        _check(reader.fieldnames, path)
        columns = reader.fieldnames
        try:
            import pandas
        except ImportError:
            return [{column: _typed(column, text) for column, text in row.items()} for row in reader]
    converters = {column: _integer for column in columns if column in INTEGER}
    texts = {column: str for column in columns if column in TEXT}
    frame = pandas.read_csv(path, dtype=texts, converters=converters, keep_default_na=False, na_values=[""])
    for column in texts:
        frame[column] = frame[column].map(_plain, na_action="ignore")
    return frame
