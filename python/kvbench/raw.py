# SPDX-License-Identifier: Apache-2.0
"""Reads the results per query that `kvbench replay --raw` writes: schema kvbench_raw 1.0 (docs/results.md, "Raw
results")."""

from dataclasses import dataclass

import h5py
import numpy as np

from ._files import InputFile
from ._entries import NUMBERS
from ._hdf5 import attribute, check_schema, reading
from ._kinds import checked
from ._schema import RAW_SCHEMA, integers, require
from .method import Table


@dataclass(frozen=True)
class Cell:
    """One configuration: a method with its parameters, a budget, a seed."""

    method: str
    params: str  # parameters that differ from their defaults
    budget: str  # as given: 512 or 25%
    seed: int


class HeadResult:
    """Results of one kv head: its G query heads at m positions."""

    def __init__(self, raw, group):
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
            self.positions = integers(group["positions"][()], f"{self._where}/positions").astype(np.int32)

    def _cell(self, cell):
        self._raw.check_open()
        require(str(cell) in self._group, self._where, f"it holds no cell {cell}.")
        with reading(self._where):
            group = self._group[str(cell)]
        require(isinstance(group, h5py.Group), self._where, f"cell {cell} is not a group; see docs/results.md.")
        return group

    def _dataset(self, cell, name):
        group = self._cell(cell)
        status = self.status(cell)
        remedy = "replay with --raw-outputs." if status == "ok" else f"status {status}. {self.reason(cell)}"
        require(name in group, f"{self._where}/{cell}", f"it holds no '{name}': {remedy}")
        with reading(f"{self._where}/{cell}/{name}"):
            return group[name]

    @checked
    def status(self, cell: int = 0):
        return attribute(self._cell(cell), self._where, "status", str, "unknown")

    @checked
    def reason(self, cell: int = 0):
        """Reason of a status other than ok; else empty."""
        return attribute(self._cell(cell), self._where, "reason", str, "")

    @checked
    def budget_tokens(self, cell: int = 0):
        return attribute(self._cell(cell), self._where, "budget_tokens", int)

    @checked
    def kept_tokens(self, cell: int = 0):
        """Mean over the query heads and queries."""
        return attribute(self._cell(cell), self._where, "kept_tokens", float)

    @checked
    def metric(self, name: str, cell: int = 0):
        """float32 [G, m], NaN where the metric does not apply."""
        require(name in self._raw.metrics, self._where,
                f"there is no metric '{name}'; the metrics are {', '.join(self._raw.metrics)}.")
        dataset = self._dataset(cell, "metrics")
        with reading(self._where):
            return dataset[:, :, self._raw.metrics.index(name)]

    @checked
    def output(self, cell: int = 0):
        """float32 [G, m, dv]: output of the method. The file holds it if it was written with --raw-outputs."""
        dataset = self._dataset(cell, "output")
        with reading(self._where):
            return dataset[()]

    @checked
    def probe_sums(self, cell: int = 0):
        """float64 [probes]: of each probe the sum of its gradients times the errors of this kv head, in nats. For one
        seed, (sum over heads and layers)^2 / (2 scored_tokens) is what this probe predicts of KL (docs/damage.md)."""
        require(self.scored_tokens > 0, self._where, "its prompt has no probes.")
        dataset = self._dataset(cell, "probe_sums")
        with reading(self._where):
            return dataset[()]

    @checked
    def entries(self, cell: int = 0):
        """(tables, positions) of the last run of queries that one state of the method answered. Row
        (g if per_head else 0) * (queries if per_query else 1) + (i if per_query else 0) of a Table answers query head g
        of the query group at positions[i]. The file holds them if it was written with --raw-outputs."""
        group = self._dataset(cell, "entries")
        with reading(self._where):
            return self._tables(group), self.positions[attribute(group, self._where, "first_query", int, 0):]

    def _tables(self, group):
        tables = []
        # a table without ids has no entries
        for table in (group[name] for name in sorted(group, key=int) if "ids" in group[name]):
            require(not attribute(table, self._where, "rows_by_token", int, 0), self._where,
                    "the full cache behind these entries is stored in fewer bits, and the file does not hold its rows.")
            flags = {name: bool(attribute(table, self._where, name, int, 0)) for name in ("per_head", "per_query")}
            tables.append(Table(ids=table["ids"][()], **flags,
                                **{name: table[name][()] for name in NUMBERS if name in table}))
        return tables


class Raw(InputFile):
    """An open file of raw results: `metrics` (names), `cells` (list of Cell), `heads` (list of HeadResult), and
    trace, trace_sha256, model, device, isa, version, commit as text, empty if missing."""

    def _read(self):
        check_schema(self.file, self.path, "kvbench_raw", RAW_SCHEMA)
        for name in ("trace", "trace_sha256", "model", "device", "isa", "version", "commit"):
            setattr(self, name, attribute(self.file, self.path, name, str, ""))
        self.metrics = [name for name in attribute(self.file, self.path, "metrics", str, "").split(",") if name]
        cells = self.file.get("cells", {})
        self.cells = [self._cell(cells[str(c)]) for c in range(len(cells))]
        require("heads" in self.file, self.path, "it holds no heads; see docs/results.md.")
        heads = self.file["heads"]
        self.heads = [HeadResult(self, heads[name]) for name in sorted(heads, key=lambda name: (len(name), name))]

    def _cell(self, group):
        where = f"{self.path}: {group.name}"
        return Cell(*(attribute(group, where, name, str) for name in ("method", "params", "budget")),
                    attribute(group, where, "seed", int))

    @checked
    def head(self, prompt: str | int, layer: int, kv_head: int):
        """The HeadResult of this prompt, layer and kv head."""
        for head in self.heads:
            if (head.prompt, head.layer, head.kv_head) == (str(prompt), layer, kv_head):
                return head
        require(False, self.path, f"it holds nothing for prompt '{prompt}', layer {layer}, kv head {kv_head}.")
