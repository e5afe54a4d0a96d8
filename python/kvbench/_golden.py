# SPDX-License-Identifier: Apache-2.0
"""Golden rows: what every method gives on the bundled trace, for tests of other implementations (docs/golden.md)."""

import contextlib
import hashlib
import os
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._error import Error
from ._kinds import FilePath, checked
from .results import Rows, plain, rows_of
from .trace import Trace

_FILE = pathlib.Path(__file__).with_name("golden.csv")
_TEXTS = ("trace", "sha256", "method", "params", "budget", "protocol", "prompt", "ids_sha256")
_WHOLE = ("seed", "layer", "kv_head", "budget_tokens")
_EXACT = ("budget_tokens", "total_bytes", "bytes_read")
_FIGURES = ("weight_num", "weight_den", "rel_err", "rel_err_last", "recall")
_NUMBERS = ("total_bytes", "bytes_read", "rtol", "atol")
_MOST_IDS = 2**24  # of a file, as in lib/kvbench/golden/ids.hpp: ranges make millions of ids of a few bytes
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
        settings = f"[{self.params}]" if self.params else ""
        return (f"<GoldenRow {self.method}{settings} at {self.budget}, {self.protocol}, prompt {self.prompt}, layer "
                f"{self.layer}, kv head {self.kv_head}>")

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
        A file that ``kvbench verify-golden --write`` made; None: that of the package.

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
    table, most = [], _MOST_IDS
    for number, row in enumerate(rows_of(path, _COLUMNS, "a table of golden rows"), start=2):
        table.append(_row(path, number, row, most))
        most -= sum(map(len, table[-1].ids))
    return table


def verify_golden(trace: FilePath | Trace | None = None, method: Any = None, port: Any = None, **flags: Any) -> Rows:
    """Compute golden rows again and compare them, as ``kvbench verify-golden`` does.

    Parameters
    ----------
    trace : path or Trace, optional
        The bundled trace; None: traces/smollm2-135m.h5 in the working folder.
    method : str, or list of str, optional
        Only the rows of these methods.
    port : method, optional
        A method in Python, which is replayed in place of the one `method`.
    **flags
        Those of the command, such as ``isa="scalar"``.

    Returns
    -------
    Rows
        One row per golden row, whose `outcome` is ``"same"`` or says what is not.

    Raises
    ------
    Error
        If there are no such rows, or the trace is another one.
    """
    from . import _commands
    given = [] if trace is None else [getattr(trace, "path", trace)]
    with contextlib.ExitStack() as stack:
        names = stack.enter_context(_commands.named(port, "verify_golden")) if port is not None else [None]
        return _commands._rows_of("verify-golden", given, {"method": method, "port": names[0], **flags})


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
    ids: list[int] = []
    for part in text.split():
        first, _, last = part.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        if len(numbers) > most - len(ids):
            raise ValueError(f"the rows up to it have more than {_MOST_IDS} ids")
        ids += numbers
    return np.array(ids, np.int32)


def _some(ids: np.ndarray) -> str:
    shown = ", ".join(map(str, ids[:5])) or "none"
    return shown if len(ids) <= 5 else f"{shown} and {len(ids) - 5} more"
