# SPDX-License-Identifier: Apache-2.0
"""Rows of results: what commands return, read from CSVs with typed columns."""

import csv
import html
import io
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .._error import Error, require
from .._kinds import FilePath, checked
from ..files.access import as_text, read_text
from .columns import INTEGER, TEXT

if TYPE_CHECKING:
    import pandas

SHOWN = 20  # rows in a notebook


class Rows(list[dict[str, Any]]):
    """Rows of a table: a list of dicts that all have the same keys, the columns. A missing value is None.

    Parameters
    ----------
    rows : iterable of dict
        The rows.
    columns : iterable of str, optional
        The names of the columns; None: the keys of the first row.
    """

    def __init__(self, rows: Iterable[dict[str, Any]] = (), columns: Iterable[str] | None = None) -> None:
        super().__init__(rows)
        self.columns: list[str] = list(columns) if columns is not None else list(self[0]) if self else []

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows as a data frame, in which missing numbers are NaN.

        Returns
        -------
        pandas.DataFrame
            One row per row, with the columns in their order.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas
        frame = pandas.DataFrame.from_records(self, columns=self.columns)
        for column in self.columns:
            if column not in TEXT and frame[column].isna().all():
                frame[column] = frame[column].astype(float)
        return frame

    def __repr__(self) -> str:
        return f"<{len(self)} rows of {len(self.columns)} columns; to_pandas() makes a data frame of them>"

    def _repr_html_(self) -> str:
        lines = "".join(f"<tr>{''.join(map(_cell, row.values()))}</tr>" for row in self[:SHOWN])
        rest = f"<p>{len(self) - SHOWN} more rows</p>" if len(self) > SHOWN else ""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        return f"<table><tr>{head}</tr>{lines}</table>{rest}"


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"<td>{html.escape(text)}</td>"


def _integer(text: str) -> int | str | None:
    """Number of a layer, head, ..., or the text 'all'; None for an empty cell, which means that the column does not
    apply."""
    return int(text) if re.fullmatch("-?[0-9]{1,18}", text) else text or None


def _number(text: str) -> float | str | None:
    try:
        return float(text) if text else None
    except ValueError:
        return text


# kvbench protects texts that a spreadsheet would compute with an apostrophe.
_PROTECTED = re.compile("'+[-=+@\t\r\n]")


def plain(text: str) -> str:
    return text[1:] if _PROTECTED.match(text) else text


def _typed(column: str, text: str) -> int | float | str | None:
    if column in TEXT:
        return plain(text) or None
    return _integer(text) if column in INTEGER else _number(text)


def csv_rows(path: FilePath, needed: Iterable[str], is_not: str,
             data: bytes | None = None) -> tuple[str, list[list[str]]]:
    """The text of a CSV and its rows, the first of which is the header. Raises Error unless it has the needed columns
    (else it `is_not` what is read), and every row has one cell per column. `data`: its bytes, where they are known."""
    try:
        text = read_text(path) if data is None else as_text(path, data)
        text = text.removeprefix("\ufeff")  # byte order mark, which some editors write
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


def rows_of(path: FilePath, needed: Iterable[str], is_not: str) -> list[dict[str, str]]:
    """The rows of csv_rows() as dictionaries of texts."""
    _, (columns, *rows) = csv_rows(path, needed, is_not)
    return [dict(zip(columns, row)) for row in rows]


@checked
def load_csv(path: FilePath) -> Rows:
    """The rows of a result CSV, with typed columns.

    Parameters
    ----------
    path : path
        A file of ``kvbench replay``, ``sweep`` or ``eval``.

    Returns
    -------
    Rows
        `layer`, `kv_head`, `head`, `query` and `seed` are integers or ``"all"``; `budget` is text; values that do not
        apply are None.

    Raises
    ------
    Error
        If there is no such file, or it is none of results.
    """
    _, (columns, *rows) = csv_rows(path, ("method", "status"), "a result of kvbench replay or kvbench sweep")
    typed = [[_typed(column, cell) for cell in cells] for column, cells in zip(columns, zip(*rows))]
    return Rows((dict(zip(columns, row)) for row in zip(*typed)), columns)


def save_csv(rows: Any, path: FilePath, where: str) -> None:
    """Writes a data frame, or a list of dicts with the same keys, as load_csv() reads it."""
    if hasattr(rows, "to_csv"):
        rows.to_csv(path, index=False)
        return
    columns = rows.columns if isinstance(rows, Rows) else list(rows[0])
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        for number, row in enumerate(rows):
            require(list(row) == columns, where, f"row {number} of a table has other columns than its first row.")
            table.writerow("" if cell is None or cell != cell else cell for cell in row.values())
