# SPDX-License-Identifier: Apache-2.0
"""Golden rows: what every method gives on the bundled trace, for tests of other implementations (docs/golden.md)."""

import hashlib
import os
import pathlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._error import Error, require
from .._kinds import FilePath, checked
from ..files.trace import Trace
from ..results.raw import Raw
from ..results.rows import Rows, plain, rows_of

_FILE = pathlib.Path(__file__).parents[1] / "golden.csv"
_TEXTS = ("trace", "sha256", "method", "params", "budget", "protocol", "prompt", "ids_sha256")
_WHOLE = ("seed", "layer", "kv_head", "budget_tokens")
_EXACT = ("budget_tokens", "total_bytes", "bytes_read")
_FIGURES = ("weight_num", "weight_den", "rel_err", "rel_err_last", "recall")
_NUMBERS = ("total_bytes", "bytes_read", "rtol", "atol")
_MOST_IDS = 2**24  # of a file, as in lib/kvbench/golden/ids.hpp: runs make millions of ids of a few bytes
_SHARED = ("trace", "sha256", "backends", "rtol", "atol", "ids_sha256")  # an empty cell: that of the row above
_COLUMNS = (*_TEXTS, *_WHOLE, *_NUMBERS, "backends", "entries", "ids", *_FIGURES, "kl_predicted")


@dataclass(eq=False, frozen=True, repr=False, slots=True)
class GoldenRow:
    """What a method holds for one kv head of the bundled trace, and how wrong it is. Arrays have one item per query
    head of the kv head; docs/columns.md describes the columns.

    Attributes
    ----------
    trace : str
    sha256 : str
    method : str
    params : str
    budget : str
    seed : int
    protocol : str
    prompt : str
    layer : int
    kv_head : int
    backends : tuple[str, ...]
        That give this row.
    budget_tokens : int
    total_bytes : float
    bytes_read : float
    ids : tuple[np.ndarray, ...]
        Int32, ascending: the entries that answer the last query.
    ids_sha256 : str
    weight_num : np.ndarray | None
        Float64: sums of their weights; None where all are 1.
    weight_den : np.ndarray | None
    rel_err : np.ndarray
        Float64: means over the evaluated queries.
    rel_err_last : np.ndarray
        Float64: of the last query, NaN where it is not measured.
    recall : np.ndarray | None
        Float64; None where it does not apply.
    kl_predicted : float | None
        Of compressing this kv head alone, nats per scored token; None in most rows.
    rtol : float
        Figures agree within atol + rtol * |expected|.
    atol : float
    """

    trace: str
    sha256: str
    method: str
    params: str
    budget: str
    seed: int
    protocol: str
    prompt: str
    layer: int
    kv_head: int
    backends: tuple[str, ...]
    budget_tokens: int
    total_bytes: float
    bytes_read: float
    ids: tuple[np.ndarray, ...]
    ids_sha256: str
    weight_num: np.ndarray | None
    weight_den: np.ndarray | None
    rel_err: np.ndarray
    rel_err_last: np.ndarray
    recall: np.ndarray | None
    kl_predicted: float | None
    rtol: float
    atol: float

    def __repr__(self) -> str:
        return f"<GoldenRow {self.name}>"

    @property
    def label(self) -> str:
        """The method as --method names it: "snapkv[per=query_head]"."""
        return f"{self.method}[{self.params}]" if self.params else self.method

    @property
    def name(self) -> str:
        """What the row is about, in words."""
        return (f"{self.label} at {self.budget}, {self.protocol}, prompt {self.prompt}, layer {self.layer}, kv head "
                f"{self.kv_head}")

    @property
    def query_heads(self) -> np.ndarray:
        """The numbers of the query heads in the model."""
        return self.kv_head * len(self.ids) + np.arange(len(self.ids))

    def differences(self, ids: Any = None, **found: Any) -> list[str]:
        """What differs from the row.

        Parameters
        ----------
        ids : sequence of sequences, or one sequence, optional
            For each query head the tokens that answer the last query, in any order, with -1 for unused slots; or one
            list for all of them.
        **found
            Values of any other columns. Figures agree within atol + rtol * |expected|, kl_predicted within
            1e-9 + 100 * rtol * |expected|, budget_tokens, total_bytes and bytes_read exactly.

        Returns
        -------
        list of str
            Sentences; an empty list where nothing differs.

        Raises
        ------
        Error
            If a column is not compared, or the number of lists is not that of the query heads.
        """
        unknown = found.keys() - {*_EXACT, *_FIGURES, "kl_predicted"}
        if unknown:
            raise Error(f"differences(): {sorted(unknown)[0]} is not compared; the columns that are: ids, "
                        f"{', '.join((*_EXACT, *_FIGURES, 'kl_predicted'))}")
        sentences = [] if ids is None else self._differences_of_ids(ids)
        for name, value in found.items():
            sentences += self._differences_of(name, value)
        return sentences

    def _differences_of_ids(self, ids: Any) -> list[str]:
        listed = [ids] * len(self.ids) if len(ids) == 0 or np.ndim(ids[0]) == 0 else list(ids)
        if len(listed) != len(self.ids):
            raise Error(f"differences(): ids has {len(listed)} lists; give one, or one for each of the {len(self.ids)} "
                        "query heads")
        sentences = []
        for head, expected, found in zip(self.query_heads, self.ids, listed):
            found = np.sort(np.asarray(found, np.int32))
            found = found[found >= 0]
            if not np.array_equal(expected, found):
                lost, added = np.setdiff1d(expected, found), np.setdiff1d(found, expected)
                instead = "" if len(found) == len(expected) else f", expected {len(expected)}"
                sentences.append(f"query head {head} answers the last query by {len(found)} entries{instead}: "
                                 f"{_some(added)} in place of {_some(lost)}")
        return sentences

    def _differences_of(self, name: str, value: Any) -> list[str]:
        expected = getattr(self, name)
        if name in _EXACT:
            return [] if value == expected else [f"{name} is {value}, expected {expected}"]
        if expected is None or value is None:
            return [] if expected is value else [f"{name} is {value}, expected {expected}"]
        if name == "kl_predicted":
            near = abs(value - expected) <= 1e-9 + 100 * self.rtol * abs(expected)
            return [] if near else [f"{name} is {value:.6g}, expected {expected:.6g}"]
        found = np.broadcast_to(np.asarray(value, float), expected.shape)
        near = np.isclose(found, expected, rtol=self.rtol, atol=self.atol, equal_nan=True)
        return [f"{name} of query head {self.query_heads[g]} is {found[g]:.8g}, expected {expected[g]:.8g}"
                for g in np.flatnonzero(~near)]


@checked
def golden(path: FilePath | None = None) -> list[GoldenRow]:
    """The golden rows of this version. Needs no build of kvbench.

    Parameters
    ----------
    path : path, optional
        A file that ``kvbench validate golden --write`` made; None: that of the package.

    Returns
    -------
    list of GoldenRow
        Several rows are about the same where back ends choose other entries.

    Raises
    ------
    Error
        If there is no such file, or it was edited.
    """
    path = path or _FILE
    table, most, above = [], _MOST_IDS, dict.fromkeys((*_SHARED, "ids"), "")
    for number, row in enumerate(rows_of(path, _COLUMNS, "a table of golden rows"), start=2):
        row.update({name: row[name] or above[name] for name in _SHARED})
        if row["ids_sha256"] == above["ids_sha256"]:
            row["ids"] = row["ids"] or above["ids"]
        above = row
        table.append(_row(path, number, row, most))
        most -= sum(map(len, table[-1].ids))
    return table


def verify_golden(trace: FilePath | Trace | None = None, method: Any = None, port: Any = None, **flags: Any) -> Rows:
    """Replay methods where they have golden rows, and compare. Needs the extension that `pip install .` builds.

    Parameters
    ----------
    trace : path or Trace, optional
        The bundled trace; None: traces/smollm2-135m.h5 in the working folder.
    method : str, or list of str, optional
        Only the rows of these methods, such as ``"snapkv[per=query_head]"``.
    port : method, optional
        A method in Python (a class, an object, a scorer or ``"FILE.py:NAME"``), which is replayed in place of the one
        `method`. What a budget means for it, and recall, are not compared.
    **flags
        Those of `replay()`, such as ``isa="scalar"``.

    Returns
    -------
    Rows
        One row per golden row, whose `outcome` is ``"same"`` or ``"differs"``, and whose `difference` says by what.

    Raises
    ------
    Error
        If there are no such rows, or the trace is another one.
    """
    path = getattr(trace, "path", trace) or "traces/smollm2-135m.h5"
    places: dict[str, dict[tuple[str, str, int], list[GoldenRow]]] = {}  # by method and place
    for row in golden():
        places.setdefault(row.label, {}).setdefault((row.protocol, row.prompt, row.layer), []).append(row)
    chosen = list(places) if method is None else [method] if isinstance(method, str) else list(method)
    for label in chosen:
        require(label in places, "verify_golden()", f"{label} has no golden rows; those that have are "
                f"{', '.join(places)}.")
    require(port is None or len(chosen) == 1, "verify_golden()", f"name the one method of which `port` is a port; "
            f"there are {len(chosen)}.")
    found: list[dict[str, Any]] = []
    for label in chosen:
        for place, rows in places[label].items():
            found += _verified(rows, place, path, label if port is None else port, port is not None, flags)
    return Rows(found)


def _verified(rows: list[GoldenRow], place: tuple[str, str, int], path: Any, method: Any, is_port: bool,
              flags: dict[str, Any]) -> list[dict[str, Any]]:
    """Dicts, one for each budget and kv head of these rows, which are about one place."""
    from . import commands
    protocol, prompt, layer = place
    expected: dict[tuple[str, int], list[GoldenRow]] = {}
    for row in rows:
        expected.setdefault((row.budget, row.kv_head), []).append(row)
    with tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
        table, file = (os.path.join(folder, name) for name in ("rows.csv", "raw.h5"))
        budgets = list(dict.fromkeys(row.budget for row in rows))
        commands.replay(path, method, budgets, protocol=protocol, prompts=prompt, layers=layer, rows="head", raw=file,
                         raw_outputs=True, output=table, **flags)
        replayed = rows_of(table, ("total_bytes", "bytes_read", "sha256", "device", "isa"), "a table of a replay")
        own = {(row["budget"], row["kv_head"]): row for row in replayed if row["seed"] in ("", str(rows[0].seed))}
        with Raw(file) as raw:
            cells = {cell.budget: number for number, cell in enumerate(raw.cells) if cell.seed == rows[0].seed}
            return [_compared(known, own[budget, str(head)], raw.head(prompt, layer, head), cells[budget], is_port)
                    for (budget, head), known in expected.items()]


def _compared(known: list[GoldenRow], row: dict[str, Any], head: Any, cell: int,
              is_port: bool) -> dict[str, Any]:
    """What was found for one budget and kv head, beside the golden row that it agrees with, or else the first. Rows of
    other back ends count if there is none of this one, as on a GPU."""
    require(known[0].sha256.startswith(row["sha256"]), "verify_golden()", f"the golden rows are about another trace: "
            f"{known[0].trace} with SHA-256 {known[0].sha256}..., not {row['sha256']}...")
    backend = row["isa"] if row["device"] == "cpu" else row["device"]
    known = [one for one in known if backend in one.backends] or known
    if row["status"] == "ok":
        figures = _figures(head, cell, known[0])
        figures.update(total_bytes=float(row["total_bytes"]), bytes_read=float(row["bytes_read"]))
        if is_port:  # recall counts the tokens that a method declares that it may drop
            figures = {name: value for name, value in figures.items() if name not in ("recall", "budget_tokens")}
        all_differences = [one.differences(**figures) for one in known]
    else:
        all_differences = [[f"it did not run: {row['reason']}"] for _ in known]
    differences = min(all_differences, key=bool)
    first = known[0]
    return {"method": first.method, "params": first.params, "budget": first.budget, "protocol": first.protocol,
            "prompt": first.prompt, "layer": first.layer, "kv_head": first.kv_head, "backend": backend,
            "outcome": "differs" if differences else "same",
            "difference": f"{first.name}: {'; '.join(differences)}" if differences else ""}


def _figures(head: Any, cell: int, row: GoldenRow) -> dict[str, Any]:
    """The columns of a golden row, of raw results; `row` says which it has."""
    tables, positions = head.entries(cell)
    group = len(row.ids)
    ids: list[list[np.ndarray]] = [[] for _ in range(group)]
    sums = np.zeros((2, group))
    for table in tables:
        shape = (group if table.per_head else 1, len(positions) if table.per_query else 1, -1)
        of_all = np.asarray(table.ids).reshape(shape)[:, -1]  # of the last query
        weights = [np.ones_like(of_all, float) if values is None else np.asarray(values, float).reshape(shape)[:, -1]
                   for values in (table.weight_num, table.weight_den)]
        for g in range(group):
            at = g if table.per_head else 0
            used = of_all[at] >= 0
            ids[g].append(of_all[at][used])
            sums[:, g] += [one[at][used].sum() for one in weights]
    weighted = any(values is not None for table in tables for values in (table.weight_num, table.weight_den))
    errors = head.metric("rel_err", cell).astype(float)
    figures = {"ids": [np.concatenate(one) if one else np.empty(0, np.int32) for one in ids],
               "weight_num": sums[0] if weighted else None, "weight_den": sums[1] if weighted else None,
               "rel_err": _means(errors), "rel_err_last": errors[:, -1], "recall": _means(head.metric("recall", cell)),
               "budget_tokens": head.budget_tokens(cell)}
    if row.kl_predicted is not None:
        figures["kl_predicted"] = np.mean(head.probe_sums(cell)**2) / (2 * head.scored_tokens)
    return figures


def _means(values: np.ndarray) -> np.ndarray | None:
    """By query head, over the queries where the metric applies; None where it applies nowhere."""
    applies = ~np.isnan(values)
    if not applies.any():
        return None
    with np.errstate(invalid="ignore"):
        means: np.ndarray = np.nansum(values.astype(float), 1) / applies.sum(1)
        return means


def _row(path: FilePath, number: int, cells: dict[str, str], most: int) -> GoldenRow:
    where = f"{path}: row {number}"
    try:
        values: dict[str, Any] = {name: plain(cells[name]) for name in _TEXTS}
        values.update({name: int(cells[name]) for name in _WHOLE})
        values.update({name: float(cells[name]) for name in _NUMBERS})
        values.update({name: _numbers(cells[name], float) for name in _FIGURES})
        values["kl_predicted"] = float(cells["kl_predicted"]) if cells["kl_predicted"] else None
        entries, lists = _numbers(cells["entries"], int), []
        for text in cells["ids"].split("/"):
            lists.append(_ids(text, most))
            most -= len(lists[-1])
    except (ValueError, OverflowError) as fault:
        raise Error(f"{where}: {fault}; write the file again.") from None
    for name in ("rtol", "atol"):
        if not 0 <= values[name] < 1:  # NaN among them
            raise Error(f"{where}: {name} is {values[name]}; a tolerance is at least 0 and below 1.")
    if entries is None:
        raise Error(f"{where}: entries is empty; write the file again.")
    ids = tuple(lists * len(entries) if len(lists) == 1 else lists)
    row = GoldenRow(**values, backends=tuple(cells["backends"].split()), ids=ids)
    if [len(one) for one in ids] != list(entries) or digest_of(ids) != row.ids_sha256:
        raise Error(f"{where}: ids_sha256 and entries are not those of the ids; was one of them edited?")
    return row


def digest_of(ids: Sequence[np.ndarray]) -> str:
    """First 16 digits of the SHA-256 of little-endian int32: for each query head the number of ids, then the ids."""
    return hashlib.sha256(b"".join(np.array([len(one), *one], "<i4").tobytes() for one in ids)).hexdigest()[:16]


def _numbers(text: str, kind: Any) -> np.ndarray | None:
    return np.array([kind(item) for item in text.split()]) if text else None


def _ids(text: str, most: int) -> np.ndarray:
    """The ids of "0+3 4 2", distances with the number of ids that follow: 0 1 2 3 7 9."""
    ids: list[int] = []
    for part in text.split():
        distance, _, more = part.partition("+")
        first = (ids[-1] if ids else 0) + int(distance)
        numbers = range(first, first + int(more or 0) + 1)
        if len(numbers) > most - len(ids):
            raise ValueError(f"the rows up to it have more than {_MOST_IDS} ids")
        ids += numbers
    return np.array(ids, np.int32)


def _some(ids: np.ndarray) -> str:
    shown = ", ".join(map(str, ids[:5])) or "none"
    return shown if len(ids) <= 5 else f"{shown} and {len(ids) - 5} more"
