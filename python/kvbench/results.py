# SPDX-License-Identifier: Apache-2.0
"""Reads result CSVs with typed columns."""

import csv
import io
import os
import re

from ._columns import INTEGER, TEXT
from ._error import Error, require
from ._files import read_text
from ._kinds import checked


def _integer(text):
    """Number of a layer, head, ..., or the text 'all'; None for an empty cell, which means that the column does not
    apply."""
    return int(text) if re.fullmatch("-?[0-9]{1,18}", text) else text or None


def _number(text):
    try:
        return float(text) if text else None
    except ValueError:
        return text


# kvbench protects texts that a spreadsheet would compute with an apostrophe.
_PROTECTED = re.compile("'+[-=+@\t\r\n]")


def plain(text):
    return text[1:] if _PROTECTED.match(text) else text


def _typed(column, text):
    if column in TEXT:
        return plain(text) or None
    return _integer(text) if column in INTEGER else _number(text)


def csv_rows(path, needed, is_not):
    """The text of a CSV and its rows, the first of which is the header. Raises Error unless it has the needed columns
    (else it `is_not` what is read), and every row has one cell per column."""
    try:
        text = read_text(path).removeprefix("\ufeff")  # byte order mark, which some editors write
    except OSError as failure:
        raise Error(f"{path}: cannot be read ({failure.strerror}); check its permissions.") from None
    require("\0" not in text, path, "holds a NUL character, so that it is not a CSV; write it again.")
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error as failure:
        raise Error(f"{path}: is not a complete CSV ({failure}); write it again.") from None
    columns = rows[0] if rows else []
    missing = [repr(name) for name in needed if name not in columns]
    require(not missing, path, f"has no column {' and '.join(missing)}, so that it is not {is_not}.")
    require(len(set(columns)) == len(columns), path, "has two columns of one name; remove one of them.")
    for number, row in enumerate(rows):
        require(len(row) == len(columns), path,
                f"row {number} has {len(row)} cells for {len(columns)} columns; write the file again.")
    return text, rows


def rows_of(path, needed, is_not):
    """The rows of csv_rows() as dictionaries of texts."""
    _, (columns, *rows) = csv_rows(path, needed, is_not)
    return [dict(zip(columns, row)) for row in rows]


@checked
def load_csv(path: os.PathLike):
    """The rows of a result CSV: a pandas.DataFrame if pandas is installed, else a list of dicts. `layer`, `kv_head`,
    `head`, `query` and `seed` are integers or 'all'; values that do not apply are missing (NaN, None)."""
    text, (columns, *rows) = csv_rows(path, ("method", "status"), "a result of kvbench replay or kvbench sweep")
    try:
        import pandas
    except ImportError:
        return [{column: _typed(column, cell) for column, cell in zip(columns, row)} for row in rows]
    converters = {column: _integer for column in columns if column in INTEGER}
    texts = {column: str for column in columns if column in TEXT}
    frame = pandas.read_csv(io.StringIO(text, newline=""), dtype=texts, converters=converters, keep_default_na=False,
                            na_values=[""], index_col=False, low_memory=False)
    for column in texts:
        frame[column] = frame[column].map(plain, na_action="ignore")
    return frame


def save_csv(rows, path, where):
    """Writes a data frame, or a list of dicts with the same keys, as load_csv() reads it."""
    if hasattr(rows, "to_csv"):
        rows.to_csv(path, index=False)
        return
    columns = list(rows[0])
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        for number, row in enumerate(rows):
            require(list(row) == columns, where, f"row {number} of a table has other columns than its first row.")
            table.writerow("" if cell is None or cell != cell else cell for cell in row.values())
