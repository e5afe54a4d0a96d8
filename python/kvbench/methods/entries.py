# SPDX-License-Identifier: Apache-2.0
"""Entries that methods in Python return, in the form in which the extension (python/extension) reads them. Arrays are
checked here; which tokens there are is checked there, as for the entries of all methods."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._error import Error, first_line, require
from .._kinds import TRUTHS
from .method import Kept, Table

NUMBERS = ("weight_num", "weight_den", "own_keys", "own_values")


@dataclass(eq=False, slots=True)
class Entries:
    """A table of entries of one position, C-contiguous: one row, or one per query head."""
    ids: np.ndarray  # int32 [rows, width]
    weight_num: np.ndarray | None = None  # float32 [rows, width]
    weight_den: np.ndarray | None = None
    own_keys: np.ndarray | None = None  # float32 [rows, width, d]
    own_values: np.ndarray | None = None  # float32 [rows, width, dv]


def entries_of(given: Any, group: int, d: int, dv: int, where: str="entries()") -> list[Entries]:
    """What entries() returned for the queries of one position, as a list of Entries. Errors begin with `where`."""
    listed = given if _is_tables(given) else [given]
    return [_entries_of_table(one if isinstance(one, Table) else Table(ids=one), group, d, dv, where) for one in listed]


def fixed_of(made: Any, group: int, d: int, dv: int, where: str="make()") -> tuple[list[Entries], int, int]:
    """What make() returned in place of a cache: (list of Entries, sinks, recent)."""
    if not isinstance(made, Kept):
        return entries_of(made, group, d, dv, where), 0, 0
    ids = _ids(made.ids, where)
    weights = None if made.weights is None else _shaped(made.weights, ids.shape, "weights", where)
    table = Table(ids=ids, weight_num=weights, weight_den=weights)
    return [_entries_of_table(table, group, d, dv, where)], made.sinks, made.recent


def _is_tables(given: Any) -> bool:
    return isinstance(given, (list, tuple)) and len(given) > 0 and all(isinstance(one, Table) for one in given)


def _entries_of_table(table: Table, group: int, d: int, dv: int, where: str) -> Entries:
    ids = _ids(table.ids, where)
    for name in ("per_head", "per_query"):
        require(isinstance(getattr(table, name), TRUTHS), where, f"{name} of a table must be True or False")
    require(not table.per_query, where, "a table is per_query, but these entries answer the queries of one position")
    require(len(ids) in (1, group) and not (table.per_head and len(ids) != group), where,
            f"ids of shape {list(np.shape(table.ids))} must have the shape [width], or [{group}, width] for entries "
            "per query head")
    shapes = {"weight_num": ids.shape, "weight_den": ids.shape, "own_keys": (*ids.shape, d),
              "own_values": (*ids.shape, dv)}
    return Entries(ids, **{name: _shaped(getattr(table, name), shapes[name], name, where) for name in NUMBERS
                           if getattr(table, name) is not None})


def _ids(given: Any, where: str) -> np.ndarray:
    ids = _array(given, f"{where}: ids")
    require(ids.ndim in (1, 2) and (ids.dtype.kind in "iu" or (ids.size == 0 and ids.dtype.kind == "f")), where,
            f"ids must be integers of shape [width] or [rows, width]; they are {ids.dtype} of shape {list(ids.shape)}")
    if ids.size == 0:
        return np.empty((1, 0), np.int32)
    require(ids.min() >= -1 and ids.max() < 2**31 - 1, where,
            f"there is no token {ids.min() if ids.min() < -1 else ids.max()}")
    return np.ascontiguousarray(np.atleast_2d(ids), np.int32)


def _shaped(given: Any, shape: tuple[int, ...], name: str, where: str) -> np.ndarray:
    numbers = numbers_of(given, f"{where}: {name}")
    require(numbers.shape == shape or (shape[0] == 1 and numbers.shape == shape[1:]), where,
            f"{name} has the shape {list(numbers.shape)}; the ids require {list(shape)}")
    return numbers.reshape(shape)


def numbers_of(given: Any, where: str) -> np.ndarray:
    """An array of numbers, float32 and C-contiguous. Raises Error, which begins with `where`, for anything else."""
    array = _array(given, where)
    if array.dtype.kind not in "biuf":
        raise Error(f"{where} are of the type {array.dtype}; they must be numbers")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused as such
        return np.asarray(array, np.float32, order="C")


def merged(given: np.ndarray, values: np.ndarray) -> int:
    """How many of these numbers have another of their row equal in float32, which `values` [rows, n] are, and not as
    they were given. 0 where they are less than 1 %, as of any numbers of more bits."""
    given = np.atleast_2d(np.asarray(given))
    if given.dtype.itemsize <= values.dtype.itemsize and given.dtype.kind == "f":
        return 0
    count = sum(len(np.unique(row)) - len(np.unique(rounded)) for row, rounded in zip(given, values))
    return count if count > values.size / 100 else 0


def _array(given, where):
    if np.ma.is_masked(given):
        raise Error(f"{where} are a masked array; fill or remove what is masked")
    try:
        return np.asarray(given)
    except Exception as fault:  # of lists of different lengths, say, or of tensors on a GPU or with gradients
        raise Error(f"{where} cannot be an array ({first_line(fault)})") from None
