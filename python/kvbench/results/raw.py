# SPDX-License-Identifier: Apache-2.0
"""Reads the results per query that `kvbench replay --raw` writes: schema kvbench_raw 1.0 (docs/results.md, "Raw
results")."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._error import Error, require
from .._kinds import checked
from ..files.access import InputFile
from ..files.hdf5 import attribute, check_schema, reading
from ..files.schema import MOST_TOKENS, RAW_SCHEMA
from ..files.storage import Storage
from ..methods.entries import NUMBERS
from ..methods.method import Table


@dataclass(frozen=True)
class Cell:
    """One configuration: a method with its parameters, a budget, a seed.

    Attributes
    ----------
    method : str
    params : str
        Parameters that differ from their defaults.
    budget : str
        As given: 512 or 25%.
    seed : int
    """

    method: str
    params: str
    budget: str
    seed: int


class HeadResult:
    """Results of one kv head: its G query heads at m positions."""

    def __init__(self, raw: "Raw", group: Any) -> None:
        self._raw, self._group = raw, group
        self._where = f"{raw.path}: {group.name}"
        self.prompt = attribute(group, self._where, "prompt", str)
        self.layer = attribute(group, self._where, "layer", int)
        self.kv_head = attribute(group, self._where, "kv_head", int)
        self.protocol = attribute(group, self._where, "protocol", str, "")
        self.tokens_sha256 = attribute(group, self._where, "tokens_sha256", str, "")  # of the ids of the prompt
        self.scored_tokens = attribute(group, self._where, "scored_tokens", int, 0)  # 0: a prompt without probes
        self.positions = np.empty(0, np.int32)
        if "positions" in group:
            self.positions = raw.storage.integers(group, self._where, "positions", MOST_TOKENS,
                                                  "a prompt has at most").astype(np.int32)

    def _cell(self, cell: int) -> Any:
        self._raw.check_open()
        require(str(cell) in self._group, self._where, f"it holds no cell {cell}.")
        with reading(self._where):
            return self._raw.storage.group(self._group, self._where, str(cell))

    def _member(self, cell: int, name: str) -> tuple[Any, str]:
        """The cell, which holds this member, and where."""
        group, where = self._cell(cell), f"{self._where}/{cell}"
        status = self.status(cell)
        remedy = "replay with --raw-outputs." if status == "ok" else f"status {status}. {self.reason(cell)}"
        require(name in group, where, f"it holds no '{name}': {remedy}")
        return group, where

    def _values(self, cell: int, name: str, kind: Any, expected: tuple[int | None, ...]) -> np.ndarray:
        """All values of a dataset of this type and shape; None stands for a free number."""
        group, where = self._member(cell, name)
        with reading(f"{where}/{name}"):
            return _read(self._raw.storage, group, where, name, kind, expected)

    @checked
    def status(self, cell: int = 0) -> str:
        """ok, or why there are no results: skipped, infeasible, failed."""
        return attribute(self._cell(cell), self._where, "status", str, "unknown")

    @checked
    def reason(self, cell: int = 0) -> str:
        """Reason of a status other than ok; else empty."""
        return attribute(self._cell(cell), self._where, "reason", str, "")

    @checked
    def budget_tokens(self, cell: int = 0) -> int:
        """The budget in tokens."""
        return attribute(self._cell(cell), self._where, "budget_tokens", int)

    @checked
    def kept_tokens(self, cell: int = 0) -> float:
        """Mean over the query heads and queries."""
        return attribute(self._cell(cell), self._where, "kept_tokens", float)

    @checked
    def metric(self, name: str, cell: int = 0) -> np.ndarray:
        """float32 [G, m], NaN where the metric does not apply."""
        require(name in self._raw.metrics, self._where,
                f"there is no metric '{name}'; the metrics are {', '.join(self._raw.metrics)}.")
        values = self._values(cell, "metrics", "f4", (None, len(self.positions), len(self._raw.metrics)))
        return values[:, :, self._raw.metrics.index(name)]

    @checked
    def output(self, cell: int = 0) -> np.ndarray:
        """float32 [G, m, dv]: output of the method. The file holds it if it was written with --raw-outputs."""
        return self._values(cell, "output", "f4", (None, len(self.positions), None))

    @checked
    def probe_sums(self, cell: int = 0) -> np.ndarray:
        """float64 [probes]: of each probe the sum of its gradients times the errors of this kv head, in nats. For one
        seed, (sum over heads and layers)^2 / (2 scored_tokens) is what this probe predicts of KL (docs/damage.md)."""
        require(self.scored_tokens > 0, self._where, "its prompt has no probes.")
        return self._values(cell, "probe_sums", "f8", (None,))

    @checked
    def entries(self, cell: int = 0) -> tuple[list[Table], np.ndarray]:
        """(tables, positions) of the last run of queries that one state of the method answered. Row
        (g if per_head else 0) * (queries if per_query else 1) + (i if per_query else 0) of a Table answers query head g
        of the query group at positions[i]. The file holds them if it was written with --raw-outputs."""
        group, where = self._member(cell, "entries")
        with reading(f"{where}/entries"):
            entries = self._raw.storage.group(group, where, "entries")
            tables = [self._table(entries, f"{where}/entries", name) for name in sorted(entries, key=int)]
            first = attribute(entries, f"{where}/entries", "first_query", int, 0)
        return [table for table in tables if table], self.positions[first:]

    def _table(self, entries: Any, where: str, name: str) -> Table | None:
        """None: a table without ids has no entries."""
        storage = self._raw.storage
        group, where = storage.group(entries, where, name), f"{where}/{name}"
        if "ids" not in group:
            return None
        require(not attribute(group, where, "rows_by_token", int, 0), where,
                "the full cache behind these entries is stored in fewer bits, and the file does not hold its rows.")
        fields: dict[str, Any] = {flag: bool(attribute(group, where, flag, int, 0))
                                  for flag in ("per_head", "per_query")}
        ids = _read(storage, group, where, "ids", "i4", (None, None))
        for field in NUMBERS:
            if field in group:
                fields[field] = _read(storage, group, where, field, "f4",
                                     (*ids.shape, None) if "own" in field else ids.shape)
        return Table(ids=ids, **fields)


def _read(storage: Storage, group: Any, where: str, name: str, kind: Any,
          expected: tuple[int | None, ...]) -> np.ndarray:
    """All values of a dataset of this type of numpy and this shape; None stands for a free number."""
    dataset, where = storage.dataset(group, where, name), f"{where}/{name}"
    same = len(dataset.shape) == len(expected) and all(b in (None, a) for a, b in zip(dataset.shape, expected))
    wanted = ", ".join("any" if size is None else str(size) for size in expected)
    require(same, where, f"has shape {list(dataset.shape)}; its results require [{wanted}].")
    require(dataset.dtype == kind, where, f"holds {dataset.dtype}; it must hold {np.dtype(kind)}.")
    return storage.whole(dataset, where)


class Raw(InputFile):
    """An open file of raw results, which ``kvbench replay --raw`` writes.

    Parameters
    ----------
    path : path
        The file.

    Attributes
    ----------
    metrics : list of str
        Names of the metrics.
    cells : list of Cell
        The configurations.
    heads : list of HeadResult
        Results, one per prompt, layer and kv head.
    trace, trace_sha256, model, device, isa, version, commit : str
        Where they come from; empty if missing.

    Raises
    ------
    Error
        If the file violates its schema.
    """

    metrics: list[str]
    cells: list[Cell]
    heads: list[HeadResult]
    trace: str
    trace_sha256: str
    model: str
    device: str
    isa: str
    version: str
    commit: str

    def _read(self) -> None:
        check_schema(self.file, self.path, "kvbench_raw", RAW_SCHEMA)
        for name in ("trace", "trace_sha256", "model", "device", "isa", "version", "commit"):
            setattr(self, name, attribute(self.file, self.path, name, str, ""))
        self.metrics = [name for name in attribute(self.file, self.path, "metrics", str, "").split(",") if name]
        group, where = self.storage.group, f"{self.path}: "
        cells = group(self.file, self.path, "cells") if "cells" in self.file else {}
        self.cells = [self._cell(group(cells, f"{where}/cells", str(c))) for c in range(len(cells))]
        require("heads" in self.file, self.path, "it holds no heads; see docs/results.md.")
        heads = group(self.file, self.path, "heads")
        self.heads = [HeadResult(self, group(heads, f"{where}/heads", name))
                      for name in sorted(heads, key=lambda name: (len(name), name))]

    def _cell(self, group: Any) -> Cell:
        where = f"{self.path}: {group.name}"
        method, params, budget = (attribute(group, where, name, str) for name in ("method", "params", "budget"))
        return Cell(method, params, budget, attribute(group, where, "seed", int))

    @checked
    def head(self, prompt: str | int, layer: int, kv_head: int) -> HeadResult:
        """The HeadResult of this prompt, layer and kv head."""
        for head in self.heads:
            if (head.prompt, head.layer, head.kv_head) == (str(prompt), layer, kv_head):
                return head
        raise Error(f"{self.path}: it holds nothing for prompt '{prompt}', layer {layer}, kv head {kv_head}.")
