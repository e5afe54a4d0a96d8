# SPDX-License-Identifier: Apache-2.0
"""A claim that was registered before it was measured: the file that states it, the rows that may answer it, and the
verdict (docs/bundles.md)."""

import csv
import hashlib
import itertools
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .._error import Error, known_names, require
from ..choosing.names import configuration
from ..files.access import as_toml, check_not_input, read_text
from ..program.progress import tell
from ..results.rows import plain, rows_of
from .tables import EVAL, Row, counted

NEEDED = ("model", "text", "task", "context_tokens", "document_seed", "configuration", "budget")
METRICS = ("kl", "nll", "match", "top1", "tv", "sure_changed", "key_nll")  # of kvbench compare
KINDS: dict[type, str] = {str: "a text", dict: "a table", list: "a text or a list of texts"}
VERDICTS = {"a better": "holds", "b better": "refuted"}


@dataclass(frozen=True)
class Claim:
    """`values`: what rows have, by column; `configuration` is METHOD[PARAMETERS]. Every combination is measured, on
    `documents` documents. The claim is that by the metric `better` changes the output less than each of `worse`."""

    path: str
    sha256: str
    question: str
    refuted_by: str
    values: dict[str, list[str]]
    documents: int
    better: str
    worse: list[str]
    budget: str
    metric: str


def read(path: str) -> Claim:
    text = read_text(path)
    found = as_toml(path, text)
    require("run" not in found, path, "is a sweep file, whose claims kvbench sweep --registered measures.")
    _check(path, found, {"question": str, "refuted_by": str, "rows": dict, "test": dict})
    rows, test = found["rows"], found["test"]
    if isinstance(test.get("worse"), str):
        test["worse"] = [test["worse"]]
    _check(f"{path}: [test]", test, {"better": str, "worse": list, "budget": str, "metric": str})
    documents = rows.pop("documents", None)
    require(type(documents) is int and documents > 0, f"{path}: [rows]", "needs documents, their number for each text "
            "and task.")
    values = {}
    for name, given in rows.items():
        listed = given if isinstance(given, list) else [given]
        require(listed and all(type(one) in (str, int) for one in listed), f"{path}: [rows] {name}", "is no list of "
                "texts and whole numbers.")
        values[name] = [str(one) for one in listed]
    missing = [name for name in NEEDED if name not in values]
    require(not missing, f"{path}: [rows]", f"needs {', '.join(missing)}.")
    claim = Claim(path, hashlib.sha256(text.encode()).hexdigest(), found["question"], found["refuted_by"], values,
                  documents, **test)
    require(claim.metric in METRICS, f"{path}: metric", f"is {claim.metric}.{known_names(claim.metric, METRICS)}")
    for name, column in ((claim.budget, "budget"), *((name, "configuration") for name in (claim.better, *claim.worse))):
        require(name in values[column], f"{path}: [test]", f"{name} is no {column} of [rows].")
    return claim


def _check(where: str, found: dict[str, Any], kinds: dict[str, type]) -> None:
    """Raises Error unless a table has these names, with values of these types."""
    for name in found:
        require(name in kinds, where, f"there is no {name}.{known_names(name, kinds)}")
    for name, kind in kinds.items():
        require(isinstance(found.get(name), kind) and found[name], where,
                f"needs {name}, {KINDS[kind]}.")


def rows_for(claim: Claim, paths: list[str]) -> list[Row]:
    """The rows of documents. Raises Error for rows that were not registered, and if some that were are not there."""
    return complete(claim, [row for path in paths for row in registered_rows(claim, path, rows_of(
        path, EVAL.needed, "a table of kvbench eval, which alone has documents"))])


def registered_rows(claim: Claim, path: str, rows: list[Row]) -> list[Row]:
    """These rows of a table. Raises Error if one of them was not registered."""
    for number, row in enumerate(rows, 1):
        for column, registered in claim.values.items():
            require(column == "configuration" or column in row, path, f"has no column {column}, which is registered.")
            value = _value(row, column)
            require(value in registered, f"{path}: row {number}", f"has {column} {value or 'empty'}, and {claim.path} "
                    f"registers {', '.join(registered)}; report it under another name.")
    return rows


def complete(claim: Claim, found: list[Row]) -> list[Row]:
    """The rows of documents among registered ones. Raises Error if some that were registered are not there."""
    require(found, claim.path, "there are no rows.")
    for column in (*EVAL.alike, "inject_layer", "layer"):
        values = sorted({row.get(column, "") for row in found})
        require(column in claim.values or column in ("method", "params") or len(values) == 1, claim.path,
                f"does not register {column}, in which rows differ: {', '.join(values)}.")
    documents = [row for row in found if row["document"] != "all"]
    names = {column: index for index, column in enumerate(claim.values)}
    counts: dict[tuple[str, ...], set[str]] = {key: set() for key in itertools.product(*claim.values.values())}
    for row in documents:
        seen = counts[tuple(_value(row, column) for column in names)]
        require(row["document"] not in seen, claim.path, f"document {row['document']} of {_value(row, 'configuration')}"
                " is there twice.")
        if row["status"] == "ok":
            seen.add(row["document"])
    missing = [f"{', '.join(key)}: {len(seen)} of {counted(claim.documents, 'document')}"
               for key, seen in counts.items() if len(seen) != claim.documents]
    require(not missing, claim.path, f"rows with results (of --per-document) are not those that it registers: "
            f"{'; '.join(missing[:4])}{f'; and {len(missing) - 4} more' if len(missing) > 4 else ''}.")
    return documents


def _value(row: Row, column: str) -> str:
    return configuration(row) if column == "configuration" else plain(row.get(column, ""))


# Columns whose values flags of kveval give, and its other flags that decide what is measured.
FLAGS = {"task": "--task", "context_tokens": "--context", "document_seed": "--document-seed", "budget": "--budget",
         "configuration": "--method", "protocol": "--protocol", "kv_dtype": "--kv-dtype", "protect": "--protect"}
OTHER_FLAGS = ("-m", "-b", "--set", "--sweep", "--ids", "--documents", "--per-document", "--per-layer", "--inject")


def measured(claim: Claim, words: list[str], program: Callable[[str], str]) -> int:
    """Runs kveval with the words and with what is registered, and returns its exit code. Raises Error for words that
    would measure something else, and if rows of another kind come out."""
    names = {"--text": "text", "--model": "model"}
    output = ""
    for before, word in zip(["", *words], words):
        flag, is_given, value = word.partition("=")
        check_not_input(value if is_given else word, [claim.path])
        require(flag not in (*FLAGS.values(), *OTHER_FLAGS) and not re.match("-[mb]", word), flag, f"is no choice: "
                f"{claim.path} registers what is measured; leave it out.")
        column = names.get(flag if is_given else before) or ("model" if word.endswith(".gguf") else "")
        name = os.path.basename(value if is_given else word)
        require(not column or name in claim.values[column], f"{column} {name}", f"is not registered by {claim.path}, "
                f"which has {', '.join(claim.values.get(column, []))}.")
        output = value if flag == "--output" and is_given else word if before in ("-o", "--output") else output
    require(output, claim.path, "name the table with -o FILE.csv.")
    flags = [f"{flag}={','.join(claim.values[column])}" for column, flag in FLAGS.items() if column in claim.values]
    tell(announced(claim.path))
    code = subprocess.run([program("kveval"), *words, *flags, f"--documents={claim.documents}",
                           "--per-document"]).returncode
    if code == 0:
        registered_rows(claim, output, rows_of(output, EVAL.needed, "a table of kvbench eval"))
    return code


def swept(path: str, words: list[str], program: Callable[[str], str]) -> int:
    """Runs a sweep file that registers claims, and returns the exit code of kvbench sweep, which says the verdicts.
    Raises Error for flags that would measure something else."""
    found = as_toml(path, read_text(path))
    require("test" not in found, path, "registers rows that kvbench eval --registered measures.")
    require("published" in found, path, "registers no claim: it has no [[published]] (docs/sweeps.md).")
    for flag in (word.partition("=")[0] for word in words):
        require(flag not in ("--trace", "--kv-dtype"), flag, f"is no choice: {path} registers what is measured; leave "
                "it out.")
    tell(announced(path))
    return subprocess.run([program("kvbench"), "sweep", path, *words]).returncode


def compared(claim: Claim, rows: list[Row], program: str) -> list[Row]:
    """What kvbench compare says of the registered pairs for each text and setting."""
    return [row for worse in claim.worse for row in tested(rows, program, f"--a={claim.better}@{claim.budget}",
                                                           f"--b={worse}@{claim.budget}", f"--metric={claim.metric}")]


def tested(rows: list[Row], program: str, *flags: str) -> list[Row]:
    """What kvbench compare says of rows."""
    with tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
        given, written = os.path.join(folder, "rows.csv"), os.path.join(folder, "test.csv")
        with open(given, "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), restval="",
                                   lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
        done = subprocess.run([program, "compare", given, *flags, "--format=csv", f"--output={written}"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        require(done.returncode in (0, 1) and os.path.exists(written), "kvbench compare",
                done.stderr.strip().split("\n")[-1].removeprefix("kvbench: ").replace(given, "the rows")
                or f"exit code {done.returncode}")
        return rows_of(written, ("verdict", "reason", "text", "diff_lo", "diff_hi"), "a table of kvbench compare")


def verdict(claim: Claim, tests: list[Row]) -> str:
    """holds: on all texts and settings, against each of `worse`; refuted: on one of them; else cannot tell."""
    expected = len(claim.worse)
    for column, values in claim.values.items():
        expected *= 1 if column in ("configuration", "budget") else len(values)
    found = [VERDICTS.get(row["verdict"], "cannot tell") for row in tests]
    if "refuted" in found:
        return "refuted"
    return "holds" if found == ["holds"] * expected else "cannot tell"


def test_text(test: Row) -> str:
    """One of these tests, in words."""
    diff, low, high = (f"{float(test[name] or 'nan'):.3g}" for name in ("diff", "diff_lo", "diff_hi"))
    ends = f"{diff} [{low}, {high}]" if test["diff_lo"] else "has no interval"
    reason = f" ({test['reason']})" if test["reason"] else ""
    verdict = {"a better": f"{test['a']} is better", "b better": f"{test['b']} is better"}.get(
        test["verdict"], test["verdict"])
    return f"{test['model']}, {test['text']}, {test['task']}: {test['a']} minus {test['b']} {ends}, {verdict}{reason}"


def announced(path: str) -> str:
    return f"{path}: {'; '.join(registered(path))}.\n"


def registered(path: str) -> Iterator[str]:
    """When a file was registered, in sentences without full stops: by the commits that git knows of it."""
    folder, name = os.path.split(os.path.abspath(path))
    git = ["git", "-C", folder, "-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "--no-pager"]

    def said(*words: str) -> str | None:
        try:
            done = subprocess.run([*git, *words, "--", name], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None
    changes = said("status", "--porcelain")
    if changes is None:
        yield "git is not there, or knows no repository of this file: nothing says when it was written"
        return
    log = said("log", "--follow", "--format=%h of %cI")  # fails where there is no commit
    commits = log.split("\n") if log else []
    yield f"registered by commit {commits[-1]}" if commits else "in no commit: nothing says when it was written"
    if len(commits) > 1:
        yield f"CHANGED since then by {counted(len(commits) - 1, 'commit')}, the last one {commits[0]}"
    if changes and commits:
        yield "CHANGED, and the change is in no commit"
    elif len(commits) == 1:
        yield "unchanged since then"
