# SPDX-License-Identifier: Apache-2.0
"""Entries of your own: the entries that answer the queries of each kv head, in the schema that `kvbench replay --method file:PATH`
scores (docs/results.md, "Entries of your own")."""

from dataclasses import dataclass

import numpy as np

from ._files import OutputFile
from ._hdf5 import create_group, write_whole
from ._schema import RAW_SCHEMA, require

BESIDE = ("weight_num", "weight_den", "own_keys", "own_values")


@dataclass(kw_only=True, eq=False)
class Table:
    """Entries of one kv head. Row (g if per_head else 0) * (queries if per_query else 1) + (i if per_query else 0) answers
    query head g of the query group at query i."""

    ids: np.ndarray  # [rows, width], or [width] for all queries and query heads; positions in the prompt, -1 = unused slot
    weight_num: np.ndarray | None = None  # [rows, width] weights in the numerator of the softmax average; None: 1
    weight_den: np.ndarray | None = None  # [rows, width] weights in its denominator; None: 1
    own_keys: np.ndarray | None = None  # [rows, width, d] instead of the keys of the tokens
    own_values: np.ndarray | None = None  # [rows, width, dv] instead of their values
    per_head: bool = False
    per_query: bool = False


def _checked(table, layer, queries, where):
    """Returns the table with ids [rows, width]. Raises Error if it does not fit the layer; `queries` is the number of queries that a
    table per query answers."""
    trace = layer.prompt.trace
    ids = np.asarray(table.ids)
    require(ids.dtype.kind in "iu" and ids.ndim in (1, 2), f"{where}: ids", "must be integers, [width] or [rows, width].")
    ids = ids[None] if ids.ndim == 1 else ids
    n = layer.prompt.num_tokens
    require(ids.size == 0 or (ids.min() >= -1 and ids.max() < n), f"{where}: ids", f"an id lies outside [0, {n}), and is not -1.")
    rows = (trace.group if table.per_head else 1) * (queries if table.per_query else 1)
    require(len(ids) == rows, f"{where}: ids",
            f"has {len(ids)} rows; per_head={table.per_head} and per_query={table.per_query} require {rows}.")
    beside = {name: np.asarray(getattr(table, name), np.float32) for name in BESIDE if getattr(table, name) is not None}
    for name, values in beside.items():
        dim = {"own_keys": (trace.head_dim,), "own_values": (trace.value_dim,)}.get(name, ())
        expected = (*ids.shape, *dim)
        if len(ids) == 1 and values.shape == expected[1:]:
            values = beside[name] = values[None]
        require(values.shape == expected, f"{where}: {name}", f"has shape {list(values.shape)}; the ids require {list(expected)}.")
        require(np.isfinite(values).all(), f"{where}: {name}", "holds a number that is not finite.")
    return Table(ids=ids.astype("<i4"), per_head=table.per_head, per_query=table.per_query, **beside)


def _is_list_of_tables(entries):
    """Distinguishes a list of tables from a list of ids."""
    return isinstance(entries, (list, tuple)) and len(entries) > 0 and isinstance(entries[0], (Table, np.ndarray))


def _first_of_run(layer, positions, where):
    """Index of positions[0] among the recorded queries; `positions` must be consecutive recorded queries."""
    recorded = layer.query_positions
    first = int(np.searchsorted(recorded, positions[0])) if len(positions) > 0 else 0
    require(len(positions) > 0 and np.array_equal(recorded[first:first + len(positions)], positions), where,
            "positions must be consecutive elements of the layer's query_positions.")
    return first


class KeptWriter(OutputFile):
    """A new file of kept entries, which is complete at the end of a with statement."""

    def __init__(self, path):
        super().__init__(path)
        self.file.attrs["kvbench_raw"] = RAW_SCHEMA
        create_group(self.file, "heads")

    def head(self, layer, kv_head, entries, cell=0, positions=None):
        """Writes the entries of one kv head of a Layer: an array of ids, a Table, or a list of these. `positions` are the positions of the
        queries that tables per query answer; None: all recorded queries of the layer. A file may hold several configurations, such as one
        per budget; `cell` is the number of the configuration, which `--set file.cell=C` selects."""
        where = f"{self.path}: prompt '{layer.prompt.id}', layer {layer.index}, kv head {kv_head}"
        kv_heads = layer.prompt.trace.num_kv_heads
        require(0 <= kv_head < kv_heads, where, f"the trace has {kv_heads} kv heads.")
        positions = layer.query_positions if positions is None else np.asarray(positions)
        first_query = _first_of_run(layer, positions, where)
        tables = entries if _is_list_of_tables(entries) else [entries]
        tables = [table if isinstance(table, Table) else Table(ids=table) for table in tables]
        tables = [_checked(table, layer, len(positions), where) for table in tables]
        group = self._group(layer, kv_head)
        require(str(cell) not in group, where, f"cell {cell} was written already.")
        below = create_group(create_group(group, str(cell)), "entries")
        below.attrs["first_query"] = np.int64(first_query)
        for number, table in enumerate(tables):
            group = create_group(below, str(number))
            group.attrs["per_head"], group.attrs["per_query"] = np.int64(table.per_head), np.int64(table.per_query)
            for field in ("ids", *BESIDE):
                if getattr(table, field) is not None:
                    write_whole(group, field, getattr(table, field))

    def _group(self, layer, kv_head):
        heads, name = self.file["heads"], f"{layer.prompt.id}-{layer.index}-{kv_head}"
        if name not in heads:
            group = create_group(heads, name)
            group.attrs["prompt"] = layer.prompt.id
            group.attrs["layer"], group.attrs["kv_head"] = np.int64(layer.index), np.int64(kv_head)
            write_whole(group, "positions", layer.query_positions.astype("<i4"))
        return heads[name]

    def _check_complete(self):
        require(len(self.file["heads"]) > 0, self.path, "no head was written; there is nothing to score.")


def write_kept(path, trace, select):
    """Writes the entries that select(layer, kv_head) returns for each kv head of `trace`: an array of ids, a Table, or a list of these."""
    with KeptWriter(path) as out:
        for prompt in trace.prompts.values():
            for layer in prompt.layers.values():
                for kv_head in range(trace.num_kv_heads):
                    out.head(layer, kv_head, select(layer, kv_head))
