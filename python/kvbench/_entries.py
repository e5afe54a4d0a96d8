# SPDX-License-Identifier: Apache-2.0
"""Entries that methods in Python return, in the form in which the extension (python/extension) reads them. Ids and
numbers are checked there, as those of all methods are."""

from dataclasses import dataclass

import numpy as np

from ._error import Error
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


def entries_of(given, group, d, dv):
    """What entries() returned for the queries of one position, as a list of Entries."""
    listed = given if _is_tables(given) else [given]
    return [_entries_of_table(one if isinstance(one, Table) else Table(ids=one), group, d, dv) for one in listed]


def fixed_of(made, group, d, dv):
    """What make() returned in place of a cache: (list of Entries, sinks, recent)."""
    if not isinstance(made, Kept):
        return entries_of(made, group, d, dv), 0, 0
    ids = _ids(made.ids)
    weights = None if made.weights is None else _numbers(made.weights, ids.shape, "weights")
    table = Table(ids=ids, weight_num=weights, weight_den=weights)
    return [_entries_of_table(table, group, d, dv)], int(made.sinks), int(made.recent)


def _is_tables(given):
    return isinstance(given, (list, tuple)) and len(given) > 0 and all(isinstance(one, Table) for one in given)


def _entries_of_table(table, group, d, dv):
    ids = _ids(table.ids)
    if table.per_query:
        raise Error("a table is per_query, but entries() answers the queries of one position")
    if len(ids) not in (1, group) or (table.per_head and len(ids) != group):
        raise Error(f"ids of shape {list(np.shape(table.ids))} must have the shape [width], or [{group}, width] for "
                    "entries per query head")
    shapes = {"weight_num": ids.shape, "weight_den": ids.shape, "own_keys": (*ids.shape, d),
              "own_values": (*ids.shape, dv)}
    numbers = {name: _numbers(getattr(table, name), shapes[name], name) for name in NUMBERS
               if getattr(table, name) is not None}
    return Entries(ids=ids, **numbers)


def _ids(given):
    ids = np.atleast_2d(np.asarray(given))
    if ids.size == 0:
        return np.empty((1, 0), np.int32)
    if ids.dtype.kind not in "iu" or ids.ndim != 2:
        raise Error(f"ids must be integers of shape [width] or [rows, width]; they are {ids.dtype} of shape "
                    f"{list(np.shape(given))}")
    if ids.min() < -1 or ids.max() >= 2**31:
        raise Error(f"there is no token {ids.min() if ids.min() < -1 else ids.max()}")
    return np.ascontiguousarray(ids, np.int32)


def _numbers(given, shape, name):
    numbers = np.ascontiguousarray(given, np.float32)
    if numbers.size != np.prod(shape):
        raise Error(f"{name} has shape {list(np.shape(given))}; the ids require {list(shape)}")
    return numbers.reshape(shape)
