# SPDX-License-Identifier: Apache-2.0
"""Tables that can be bundled, and their cells. A cell are the rows that one command recomputes alone, with the bytes
that the whole run gave:

- of `kvbench replay` and `sweep` one method with its parameters, at all budgets of the run, because budgets share sums,
  on one layer of one text, or all rows over layers, because anchors of all texts correct their predictions;
- of `kvbench eval` one method with its parameters at all budgets on all documents of a task of a text.

A whole is the rows of all methods of a run together, which also has the columns that compare rows with each other."""

import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .._error import require
from ..choosing.names import configuration
from ..results.rows import csv_rows

Row = dict[str, str]


def counted(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"


WHOLE = "[0-9]{1,9}"
LIST = "[0-9]{1,9}([-,][0-9]{1,9}){0,200}"
ENGINE = ("sha256", "device", "isa", "version", "commit")

# What a value must be that becomes a word of a command line. Other columns are compared and never used.
VALUES = {"sha256": "([0-9a-f]{12})?", "layer": f"all|{WHOLE}", "isa": r"[\w.-]{0,40}", "budget": r"[\w.%+ -]{1,40}",
          "protocol": f"(prefill|decode|stream|compress (once|turn|anew|{WHOLE}))?", "task": r"[a-z0-9_-]{1,60}",
          "inject": "all|one|upto|none", "inject_scale": r"([0-9]\.?[0-9e.-]{0,24})?", "document_seed": "[0-9]{0,20}",
          "weights": r"[\w.]{1,30}", "kv_dtype": "f16|bf16|f32", "question": r"(inside|outside)?( ?\(chat\))?",
          "documents": f"({WHOLE})?", "protect": f"{WHOLE},{WHOLE}( outside)?", "decoded": "(method|keep)?"}
NAME = re.compile(r"[A-Za-z0-9_+@().=,;%\[\]-]{1,300}")  # of a method with parameters; files have : or /
PLAN = re.compile("sha256=([0-9a-f]{12})")  # the parameters of a plan
MOST_FIELDS = 4_000_000  # of CSV files: they take some 100 bytes of memory each
MOST_TEXT = 4000  # characters of one
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Kind:
    """The tables of one command. `alike`: columns that the rows of one command share, beside method and parameters.
    `identity`: columns that tell the rows of a cell apart. `settings`: flags of the run that rows do not state, with
    what they take; None: they take nothing. `between`: columns that compare rows with each other, which a cell does not
    have. `times`: columns that are never equal."""

    command: str
    program: str
    needed: tuple[str, ...]
    alike: tuple[str, ...]
    place: Callable[[Row], tuple[str, ...]]
    identity: tuple[str, ...]
    words: Callable[["Cell"], Iterator[str]]
    settings: dict[str, str | None]
    between: tuple[str, ...]
    times: tuple[str, ...]
    input: tuple[str, str]  # the kind of file that `sha256` is of, and the column of its name


@dataclass(frozen=True)
class Table:
    """`name`: of the file that was bundled. `data`: its bytes."""

    name: str
    data: bytes
    kind: Kind
    settings: dict[str, str]
    columns: list[str]
    rows: list[Row]

    @functools.cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @functools.cached_property
    def grain(self) -> str:
        """The finest rows of a replay, as --rows takes them."""
        for column in ("query", "head", "layer"):
            if any(row[column] not in ("all", "") for row in self.rows):
                return column
        return "trace"


@dataclass(frozen=True)
class Cell:
    """`place`: text and layer; None for a whole."""

    table: Table
    alike: dict[str, str]
    place: tuple[str, ...] | None
    rows: list[Row]
    budgets: list[str]

    @property
    def id(self) -> str:
        """What tells it apart from all other cells of a bundle."""
        return json.dumps([self.table.sha256, *self.alike.values(), *(self.place or ())])

    @property
    def methods(self) -> list[str]:
        """METHOD[PARAMETERS] in their order; one, unless it is a whole."""
        return list(dict.fromkeys(map(configuration, self.rows)))

    def __str__(self) -> str:
        where = [self.alike[name] for name in ("run", "text", "task", "protocol") if self.alike.get(name)]
        if self.place:
            prompt, layer = self.place
            where.append("all rows over layers" if layer == "all" else f"prompt {prompt}, layer {layer}")
        names = self.methods if len(self.methods) < 4 else [f"{len(self.methods)} methods"]
        text = f"{', '.join(names)} at {', '.join(self.budgets)}; {', '.join(where)}"
        return f"{text if len(text) < 200 else text[:200] + '...'} ({counted(len(self.rows), 'row')})"

    @property
    def sort(self) -> tuple[Any, ...]:
        """Cells of one sort depend on the same flags of a run."""
        first, summary = self.rows[0], (self.place or ())[1:] == ("all",)
        draws = bool(first.get("seed")) or first.get("seeds", "1") not in ("", "1")
        return self.table.sha256, summary, draws, first.get("protocol"), first.get("task")

    @property
    def compress(self) -> str:
        """When the cache of a conversation is compressed (kveval --compress); empty for other texts."""
        rule, _, when = self.rows[0].get("protocol", "").partition(" ")
        return when if rule == "compress" else ""

    @property
    def plan(self) -> str:
        """The file of a plan that the method is; empty for other methods."""
        method = self.rows[0]["method"]
        return method.removeprefix("plan:") if method.startswith("plan:") else ""

    @property
    def cannot(self) -> str:
        """Why nobody can recompute the cell from files with digests; empty if it can be."""
        if self.table.kind is EVAL and (reason := _not_of_kveval(self.alike, bool(self.compress))):
            return reason
        if any(not NAME.fullmatch(name) for name in self.methods):
            if len(self.methods) > 1:
                return "a method of a file, a plan among them, is recomputed alone if at all"
            if not self.plan or not PLAN.fullmatch(self.rows[0]["params"]):
                return "methods of files (FILE.py:NAME, scores:FILE.h5) are not recomputed, because a file of " \
                    "methods is a program"
        budgets = {tuple(dict.fromkeys(row["budget"] for row in self.rows if configuration(row) == name))
                   for name in self.methods}
        if len(budgets) > 1:
            return "its methods do not have the same budgets"
        return ""


def _of_replay(cell: Cell) -> Iterator[str]:
    settings, (prompt, layer) = dict(cell.table.settings), cell.place or ("", "")
    yield f"--rows={'trace' if layer == 'all' else cell.table.grain}"
    yield f"--protocol={cell.alike['protocol']}"
    if prompt not in ("", "all"):
        settings["prompts"] = prompt
    if layer not in ("", "all"):
        settings["layers"] = layer
    for other in ("window",) if cell.alike["protocol"] != "prefill" else ("decoded",):
        settings.pop(other, None)
    yield from flags(settings)


def _of_eval(cell: Cell) -> Iterator[str]:
    first, settings = cell.rows[0], dict(cell.table.settings)
    columns = ["document_seed", "inject", "kv_dtype", "protect"]
    if cell.compress:
        yield f"--compress={cell.compress}"
    else:
        yield f"--task={first['task']}"
        of_text = (row for row in cell.table.rows if (row["text"], row["task"]) == (first["text"], first["task"]))
        yield f"--documents={max(int(row['documents'] or 1) for row in of_text)}"  # rows of no result have no number
        columns.append("protocol")
    for column in columns:
        if first.get(column) and (column, first[column]) not in (("protect", "0,0"), ("document_seed", "0")):
            yield f"--{column.replace('_', '-')}={first[column]}"
    if first["inject_scale"] not in ("", "1"):
        yield f"--inject-scale={first['inject_scale']}"
    if first["question"].startswith("inside"):
        yield "--question=inside"
    if "chat" in first["question"]:
        yield "--chat"
    if first["weights"] == "file":
        yield "--no-f32"
    if not cell.compress and any(row["document"] != "all" for row in cell.table.rows):
        yield "--per-document"
    if any(row["layer"] != "all" for row in cell.table.rows):
        yield "--per-layer"
    yield from flags(settings)


def _not_of_kveval(alike: dict[str, str], talks: bool) -> str:
    """Why flags of kveval do not give the rows; empty if they do."""
    if not alike["model"].endswith(".gguf") or not alike["sha256"] or alike["weights"] not in ("f32", "file"):
        return "models that are no GGUF files are not recomputed"
    if not (alike["document_seed"] or talks):
        return "documents were given as token ids (--ids), which have no digest here"
    outside, kept = alike["protect"].endswith("outside"), alike["decoded"] == "keep"
    return "a sweep file of kveval set what no flag sets" if outside or kept else ""


def flags(settings: dict[str, str]) -> Iterator[str]:
    """A flag and its value are one word, so that no value is a flag of its own."""
    for name, value in sorted(settings.items()):
        yield f"--{name}={value}" if value else f"--{name}"


def _place(row: Row) -> tuple[str, ...]:
    return ("", "all") if row["layer"] == "all" else (row["prompt"], row["layer"])


ISAS = ("scalar", "avx2", "avx512")
COSTS = ("peak_bytes", "compress_flops", "attend_flops", "costs")  # which other builds may count in another way
REPLAY = Kind(
    command="replay", program="kvbench",
    needed=("trace", "sha256", "prompt", "layer", "kv_head", "head", "query", "seed", "protocol", "device", "method",
            "params", "budget", "status", "version", "commit", "isa"),
    alike=("run", "trace", "protocol", *ENGINE, "method", "params"), place=_place,
    identity=("method", "params", "prompt", "layer", "kv_head", "head", "query", "seed", "budget"), words=_of_replay,
    settings={"seeds": LIST, "layers": LIST, "heads": LIST, "prompts": r"[^\x00-\x1f]{1,300}",
              "decoded": "method|keep", "window": WHOLE, "protect": f"{WHOLE},{WHOLE}",
              "protect-outside": f"{WHOLE},{WHOLE}", "dense-layers": WHOLE, "kv-dtype": "bf16|f16|f32",
              "recall-sinks": None, "standalone": None, "rank-by": "[a-z_]{1,40}"},
    between=("ranked_by", "best", "diff_best", "diff_best_lo", "diff_best_hi", "ranked_geomean", "ratio_best",
             "ratio_best_lo", "ratio_best_hi", "tested_over", "tied"),
    times=("compress_s", "attend_s", "exact_s"), input=("trace", "trace"))
EVAL = Kind(
    command="eval", program="kveval",
    needed=("model", "sha256", "text", "task", "document", "question", "documents_sha256", "inject", "inject_layer",
            "inject_scale", "layer", "device", "method", "params", "budget", "status", "weights", "kv_dtype", "protect",
            "document_seed", "documents", "version", "commit", "isa"),
    alike=("model", "text", "task", "question", "document_seed", "inject", "inject_scale", "weights", "kv_dtype",
           "protect", "decoded", "protocol", "method_layers", *ENGINE, "method", "params"), place=lambda row: (),
    identity=("method", "params", "document", "turn", "layer", "inject_layer", "budget"), words=_of_eval,
    settings={"context": WHOLE, "score": WHOLE, "questions": WHOLE, "seeds": LIST, "layers": LIST,
              "dense-layers": WHOLE, "threads": WHOLE},
    between=(), times=("pass_s",), input=("model", "model"))
KINDS = (REPLAY, EVAL)


def table_of(name: str, data: bytes, settings: dict[str, str]) -> Table:
    """A table of a CSV. Raises Error, with the reason, for tables of other commands, and for cells that no table of
    kvbench has. Settings are those that the kind of table has."""
    check_size(name, [data])
    columns, *rows = csv_rows(name, ("method", "status"), "a table of kvbench replay, sweep or eval, whose rows alone "
                              "say what computes them", data)[1]
    kinds = [kind for kind in KINDS if all(column in columns for column in kind.needed)]
    require(kinds, name, "its rows do not say what computes them: it is no whole table of kvbench replay, sweep or "
            "eval. Tables of other commands follow from these, or have a command that checks them (kvbench validate "
            "golden).")
    kind = kinds[0]
    require(rows, name, "has no rows; bundle a table with results.")
    check_settings(name, settings, kind)
    table = Table(name, data, kind, settings, columns, [dict(zip(columns, row)) for row in rows])
    for number, row in enumerate(table.rows, 1):
        _check_row(row, f"{name}: row {number}")
    return table


def check_size(where: str, tables: Iterable[bytes]) -> None:
    """Raises Error if CSV files are too large together."""
    fields = sum(data.count(b",") + data.count(b"\n") for data in tables)
    require(fields <= MOST_FIELDS, where, f"has more than {MOST_FIELDS} fields, too many for a bundle; bundle parts, or"
            " rows without --rows query.")


def check_settings(name: str, settings: dict[str, str], kind: Kind) -> None:
    for flag, value in settings.items():
        require(flag in kind.settings, f"{name}: --{flag}", f"is no setting of rows of kvbench {kind.command}, which "
                f"has {', '.join(f'--{known}' for known in kind.settings)}.")
        pattern = kind.settings[flag]
        require(value == "" if pattern is None else re.fullmatch(pattern, value, re.ASCII), f"{name}: --{flag}",
                f"is {ascii(value)[:60]}, which it does not take.")


def _check_row(row: Row, where: str) -> None:
    for column, text in row.items():
        require(len(text) <= MOST_TEXT, f"{where}, column {ascii(column)[:60]}", f"has more than {MOST_TEXT} "
                "characters.")
        found = CONTROL.search(column) or CONTROL.search(text)
        require(found is None, f"{where}, column {ascii(column)[:60]}", "has a control character, which no table of "
                "kvbench has.")
        if column in VALUES:
            require(re.fullmatch(VALUES[column], text, re.ASCII) is not None, f"{where}, column {column}",
                    f"is {ascii(text)[:60]}, which kvbench does not write there.")


def cells_of(table: Table) -> list[Cell]:
    """The cells in the order of their first rows."""
    budgets: dict[tuple[str, ...], dict[str, None]] = {}
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Row]] = {}  # by what is alike and the place
    for row in table.rows:
        alike = tuple(row.get(column, "") for column in table.kind.alike)
        budgets.setdefault(alike, {})[row["budget"]] = None
        groups.setdefault((alike, table.kind.place(row)), []).append(row)
    return [Cell(table, dict(zip(table.kind.alike, alike)), place, rows, list(budgets[alike]))
            for (alike, place), rows in groups.items()]


def wholes_of(table: Table) -> list[Cell]:
    """The rows of all methods of a run together."""
    alike = [column for column in table.kind.alike if column not in ("method", "params", "method_layers")]
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in table.rows:
        groups.setdefault(tuple(row.get(column, "") for column in alike), []).append(row)
    return [Cell(table, dict(zip(alike, key)), None, rows, list(dict.fromkeys(row["budget"] for row in rows)))
            for key, rows in groups.items()]


def inputs_of(cell: Cell) -> Iterator[tuple[str, str, str]]:
    """The files that the cell needs: kind, name, and what its SHA-256 begins with as far as rows know it."""
    kind, column = cell.table.kind.input
    yield kind, cell.alike[column], cell.alike["sha256"]
    if cell.table.kind is EVAL:
        yield "text", cell.alike["text"], ""
    if cell.plan:
        yield "plan", cell.plan, cell.rows[0]["params"].removeprefix("sha256=")
