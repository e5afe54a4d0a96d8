# SPDX-License-Identifier: Apache-2.0
"""Entries of your own: the entries that answer the queries of each kv head, in the schema that `kvbench replay --method
file:PATH` scores (docs/results.md, "Entries of your own")."""

import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from ._files import OutputFile
from ._hdf5 import create_group, set_text, write_whole
from ._kinds import check_fields, checked, of_kind
from ._schema import RAW_SCHEMA, Error, as_array, integers, numbers, require
from .trace import Layer, Trace

BESIDE = ("weight_num", "weight_den", "own_keys", "own_values")
HELD = ("held", "held_slow")


@dataclass(kw_only=True, eq=False)
class Table:
    """Entries of one kv head. Row (g if per_head else 0) * (queries if per_query else 1) + (i if per_query else 0)
    answers query head g of the query group at query i."""

    # [rows, width], or [width] for all queries and query heads; positions in the prompt, -1 = unused slot
    ids: np.ndarray
    weight_num: np.ndarray | None = None  # [rows, width] weights in the numerator of the softmax average; None: 1
    weight_den: np.ndarray | None = None  # [rows, width] weights in its denominator; None: 1
    own_keys: np.ndarray | None = None  # [rows, width, d] instead of the keys of the tokens
    own_values: np.ndarray | None = None  # [rows, width, dv] instead of their values
    per_head: bool = False
    per_query: bool = False
    # What a deployment holds, where it is not the ids: the tokens in fast and in slow memory, as [tokens] for all rows,
    # or [rows, tokens] in the order of the ids; -1 = unused slot. An entry with keys or values of its own is held under
    # its id.
    held: np.ndarray | None = None
    held_slow: np.ndarray | None = None
    meta_bytes: int = 0  # beside keys, values and weights, per kv head


_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_TOKENS = re.compile("([0-9]{1,18})")
_THOUSANDS = re.compile("([0-9]{1,12})[kK]")
_FRACTION = re.compile(r"0+\.[0-9]{1,6}")
_BYTES = re.compile(rf"([0-9]{{1,13}}(?:\.[0-9]{{0,6}})?)({'|'.join(_UNITS)})")
_SHARE = re.compile(r"([0-9]{1,13}(?:\.[0-9]{0,6})?)%(?:mem|fast|read)?")


def check_budget(budget, where):
    """The text of a budget as results have it, by the rules of lib/kvbench/core/budget.cpp."""
    text = of_kind(budget, str, f"{where}: the budget")
    if count := _THOUSANDS.fullmatch(text):
        text = str(1024 * int(count[1]))
    elif _FRACTION.fullmatch(text):
        text = f"{(100 * Decimal(text)).normalize():f}%"
    share, size, count = (rule.fullmatch(text) for rule in (_SHARE, _BYTES, _TOKENS))
    if share:
        holds = 0 < Decimal(share[1]) <= 100
    elif size:
        holds = Decimal(size[1]) <= 10**12 and 1 <= Decimal(size[1]) * _UNITS[size[2]] <= 10**18
    else:
        holds = count and int(count[1]) > 0
    require(holds, where,
            f"{ascii(text[:40])} is no budget; write tokens such as '256' or '1k', a share such as '25%' or '0.25', "
            "bytes such as '512KiB', or a limit such as '25%mem', '25%fast' or '25%read'; more than nothing "
            "and at most 100%.")
    return text


def _token_rows(values, num_tokens, where):
    """Token numbers as int32 [rows, width]."""
    ids = as_array(values, where)
    require(ids.dtype.kind in "iu" and ids.ndim in (1, 2), where, "must be integers, [width] or [rows, width].")
    require(ids.size == 0 or (ids.min() >= -1 and ids.max() < num_tokens), where,
            f"an id lies outside [0, {num_tokens}), and is not -1.")
    return np.atleast_2d(ids).astype("<i4")


def _check_distinct(ids, where, remedy):
    """Raises Error if a row lists a token twice."""
    ordered = np.sort(ids, axis=1)
    rows, slots = np.nonzero((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0))
    if len(rows) > 0:
        raise Error(f"{where}: row {rows[0]} lists token {ordered[rows[0], slots[0]]} twice; {remedy}.")


def _checked_held(table, ids, num_tokens, where):
    """The declared parts of what is held, by name, as [1 or rows, width]. Raises Error if an entry is not among
    them."""
    held = {name: _token_rows(getattr(table, name), num_tokens, f"{where}: {name}")
            for name in HELD if getattr(table, name) is not None}
    for name, tokens in held.items():
        require(len(tokens) in (1, len(ids)), f"{where}: {name}",
                f"has {len(tokens)} rows; the ids require 1 or {len(ids)}.")
        _check_distinct(tokens, f"{where}: {name}", "list every token once")
    for row in range(len(ids) if held else 0):
        known = np.concatenate([tokens[row if len(tokens) > 1 else 0] for tokens in held.values()])
        missing = np.setdiff1d(ids[row][ids[row] >= 0], known)
        require(len(missing) == 0, f"{where}: {' and '.join(held)}",
                f"row {row} of the ids reads tokens that are not held: {missing[:5].tolist()}.")
    require(table.meta_bytes >= 0, f"{where}: meta_bytes", "must not be negative.")
    return held


def _checked(table, layer, queries, where):
    """Returns the table with ids [rows, width]. Raises Error if it does not fit the layer; `queries` is the number of
    queries that a table per query answers."""
    trace = layer.prompt.trace
    check_fields(table, where)
    ids = _token_rows(table.ids, layer.prompt.num_tokens, f"{where}: ids")
    rows = (trace.group if table.per_head else 1) * (queries if table.per_query else 1)
    require(len(ids) == rows, f"{where}: ids",
            f"has {len(ids)} rows; per_head={table.per_head} and per_query={table.per_query} require {rows}.")
    with np.errstate(over="ignore"):  # numbers that became infinite are refused below
        beside = {name: numbers(getattr(table, name), f"{where}: {name}").astype(np.float32) for name in BESIDE
                  if getattr(table, name) is not None}
    if not beside:
        _check_distinct(ids, f"{where}: ids", "list it once, or give its entries weights")
    for name, values in beside.items():
        dim = {"own_keys": (trace.head_dim,), "own_values": (trace.value_dim,)}.get(name, ())
        expected = (*ids.shape, *dim)
        if len(ids) == 1 and values.shape == expected[1:]:
            values = beside[name] = values[None]
        require(values.shape == expected, f"{where}: {name}",
                f"has shape {list(values.shape)}; the ids require {list(expected)}.")
        require(np.isfinite(values).all(), f"{where}: {name}", "holds a number that is not finite in float32.")
    held = _checked_held(table, ids, layer.prompt.num_tokens, where)
    return replace(table, ids=ids, **beside, **held)


def _is_list_of_tables(entries):
    """Distinguishes a list of tables from a list of ids."""
    return isinstance(entries, (list, tuple)) and len(entries) > 0 and isinstance(entries[0], (Table, np.ndarray))


def _first_of_run(layer, positions, where):
    """Index of positions[0] among the recorded queries; `positions` must be consecutive recorded queries."""
    recorded = layer.query_positions
    positions = integers(positions, f"{where}: positions")
    first = int(np.searchsorted(recorded, positions[0])) if len(positions) > 0 else 0
    require(len(positions) > 0 and np.array_equal(recorded[first:first + len(positions)], positions), where,
            "positions must be consecutive elements of the layer's query_positions.")
    return first


class KeptWriter(OutputFile):
    """A new file of kept entries, which is complete at the end of a with statement."""

    @checked
    def __init__(self, path: os.PathLike):
        super().__init__(path)
        set_text(self.file, "kvbench_raw", RAW_SCHEMA)
        create_group(self.file, "heads")
        self._budgets = []  # by cell
        self._trace_sha256 = None  # of the trace to which all entries belong

    @checked
    def head(self, layer: Layer, kv_head: int, entries, cell: int = 0, positions=None, budget: str | None = None):
        """Writes the entries of one kv head of a Layer: an array of ids, a Table, or a list of these. `positions` are
        the positions of the queries that tables per query answer; None: all recorded queries of the layer. A file may
        hold several configurations: one per `budget`, a text such as "512", "25%" or "25%mem", which answers the rows
        of this budget; or numbered by `cell`, which `--set file.cell=C` selects."""
        self.check_open()
        where = f"{self.path}: prompt '{layer.prompt.id}', layer {layer.index}, kv head {kv_head}"
        self._state_trace(layer.prompt.trace)
        kv_heads = layer.prompt.trace.num_kv_heads
        require(0 <= kv_head < kv_heads, where, f"the trace has {kv_heads} kv heads.")
        require(cell >= 0, where, f"there is no cell {cell}; cells are numbered from 0.")
        require(budget is None or cell == 0, where, "budget and cell exclude each other; give one of them.")
        positions = layer.query_positions if positions is None else positions
        first_query = _first_of_run(layer, positions, where)
        tables = entries if _is_list_of_tables(entries) else [entries]
        tables = [table if isinstance(table, Table) else Table(ids=table) for table in tables]
        tables = [_checked(table, layer, len(positions), where) for table in tables]
        if budget is not None:
            cell = self._cell_of(check_budget(budget, where))
        group = self._group(layer, kv_head)
        require(str(cell) not in group, where,
                f"{f'cell {cell}' if budget is None else f'budget {budget}'} was written already.")
        below = create_group(create_group(group, str(cell)), "entries")
        below.attrs["first_query"] = np.int64(first_query)
        for number, table in enumerate(tables):
            group = create_group(below, str(number))
            for field in ("per_head", "per_query", "meta_bytes"):
                group.attrs[field] = np.int64(getattr(table, field))
            for field in ("ids", *BESIDE, *HELD):
                if getattr(table, field) is not None:
                    write_whole(group, field, getattr(table, field))

    def _state_trace(self, trace):
        """Records the trace, by which `kvbench replay` refuses another one."""
        if self._trace_sha256 is None:
            self._trace_sha256 = trace.sha256
            set_text(self.file, "trace_sha256", trace.sha256)
        require(trace.sha256 == self._trace_sha256, self.path,
                f"holds entries for another trace than {trace.path}; write a file for each trace.")

    def _cell_of(self, budget):
        if budget not in self._budgets:
            cells = self.file["cells"] if self._budgets else create_group(self.file, "cells")
            set_text(create_group(cells, str(len(self._budgets))), "budget", budget)
            self._budgets.append(budget)
        return self._budgets.index(budget)

    def _group(self, layer, kv_head):
        heads, name = self.file["heads"], f"{layer.prompt.id}-{layer.index}-{kv_head}"
        if name not in heads:
            group = create_group(heads, name)
            set_text(group, "prompt", layer.prompt.id)
            tokens = layer.prompt.tokens.astype("<i4").tobytes()
            set_text(group, "tokens_sha256", hashlib.sha256(tokens).hexdigest())
            group.attrs["layer"], group.attrs["kv_head"] = np.int64(layer.index), np.int64(kv_head)
            write_whole(group, "positions", layer.query_positions.astype("<i4"))
        return heads[name]

    def _check_complete(self):
        require(len(self.file["heads"]) > 0, self.path, "no head was written; there is nothing to score.")


def _budget_list(budgets, path):
    """Distinct budgets as a list."""
    try:
        listed = [] if isinstance(budgets, (str, bytes)) else list(budgets)
    except TypeError:
        listed = []
    require(listed or isinstance(budgets, (list, tuple)), path,
            "write_kept(): argument 'budgets' must be a list of texts such as ['12.5%mem', '25%mem'].")
    listed = [check_budget(budget, path) for budget in listed]
    for budget in listed:
        require(listed.count(budget) == 1, path, f"the budget '{budget}' is listed twice; list it once.")
    return listed


@checked
def write_kept(path: os.PathLike, trace: Trace, select: Callable, budgets=()):
    """Writes the entries that select(layer, kv_head) returns for each kv head of `trace`: an array of ids, a Table, or
    a list of these. With `budgets`, texts such as "25%mem", it writes those of select(layer, kv_head, budget) for each
    of them."""
    budgets = _budget_list(budgets, path)
    with KeptWriter(path) as out:
        for prompt in trace.prompts.values():
            for layer in prompt.layers.values():
                for kv_head in range(trace.num_kv_heads):
                    if not budgets:
                        out.head(layer, kv_head, select(layer, kv_head))
                    for budget in budgets:
                        out.head(layer, kv_head, select(layer, kv_head, budget), budget=budget)
