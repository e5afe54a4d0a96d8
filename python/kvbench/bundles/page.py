# SPDX-License-Identifier: Apache-2.0
"""The page of results: tables of bundles, which kvbench report draws, and three listings beside them, which have what
is known of claims, all rows in one table, and where they come from."""

import csv
import os
import shlex
import subprocess
import tempfile
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from .._error import Error, check_regular, require
from ..choosing.names import configuration
from ..files.access import check_not_input, check_replaceable, write_atomically
from ..results.damage import outside_by
from ..results.rows import plain
from . import claims
from .bundle import Bundle
from .bundle import read as read_bundle
from .claims import Claim
from .tables import EVAL, Row, Table, table_of

BUNDLE = ".kvb.zip"
ABOUT = {
    "Registered claims": "A claim is a question, its test, and what would refute it, in a file that was committed "
                         "before it was measured.",
    "All results": "Methods, models, texts and bytes. [a, b]: 95 % interval. Grey rows are in no bundle, so that "
                   "nobody can verify them.",
    "Bundles": "Each command recomputes cells of a bundle, where its trace, or its model and text, are there."}


@dataclass
class Sources:
    """What a page is made of: bundles and claims by their paths, and tables that are in no bundle. `registered`: the
    claim that all rows must be of."""

    bundles: dict[str, Bundle] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    registered: bool = False

    def named(self) -> Iterator[tuple[str, Table]]:
        """The tables that are drawn, under names that a page can show: those of bundles; all if they are registered."""
        for path, one in self.bundles.items():
            for number, table in enumerate(one.tables, 1):
                yield f"{os.path.basename(path)} rows {number}.csv", table
        for table in self.tables if self.registered else []:
            yield os.path.basename(table.name), table


def sources(paths: list[str], claim: str | None) -> Sources:
    """What files and folders have: of a folder its bundles and tables, and the claims in its folder `claims`. With a
    claim raises Error for rows that it does not register, and if some that it registers are missing."""
    found = Sources(claims=[claims.read(claim)] if claim else [], registered=bool(claim))
    for path in paths:
        files = [path]
        if os.path.isdir(path):
            files = [os.path.join(folder, name) for folder in (path, os.path.join(path, "claims"))
                     if os.path.isdir(folder) for name in sorted(os.listdir(folder))
                     if name.endswith((BUNDLE, ".csv") if folder == path else ".toml")]
            require(files, path, f"has no bundle (*{BUNDLE}), no table (*.csv) and no claim (claims/*.toml).")
        for file in files:
            _add(found, file)
    names = [name for name, _ in found.named()]
    require(len(set(names)) == len(names), "report", "two files have the same name; rename one.")
    if claim:
        claims.complete(found.claims[0], [row for name, table in found.named() for row in claims.registered_rows(
            found.claims[0], name, table.rows)])
    return found


def _add(found: Sources, path: str) -> None:
    if path.endswith(BUNDLE):
        found.bundles[path] = read_bundle(path)
    elif path.endswith(".toml"):
        found.claims += [] if found.registered else [claims.read(path)]
    else:
        check_regular(path)
        with open(path, "rb") as file:
            found.tables.append(table_of(path, file.read(), {}))


def write(found: Sources, output: str, title: str, program: Callable[[str], str]) -> None:
    check_replaceable(output)
    check_not_input(output, [*found.bundles, *(one.name for one in found.tables), *(one.path for one in found.claims)])
    require(output.lower().endswith((".html", ".md")), output, "a page ends with .html or .md; name it so.")
    kvbench, beside = program("kvbench"), os.path.dirname(os.path.abspath(output))

    def link(path: str) -> str:
        return urllib.parse.quote(os.path.relpath(path, beside))
    with tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
        given = []
        for name, table in found.named():
            given.append(os.path.join(folder, name))
            with open(given[-1], "wb") as file:
                file.write(table.data)
        listings = _claims(found, kvbench, link), _results(found, kvbench), _bundles(found, link)
        for heading, rows in zip(ABOUT, listings):
            given += [_listing(folder, heading, rows)] if rows else []
        made = os.path.join(folder, f"page{os.path.splitext(output)[1]}")
        done = subprocess.run([kvbench, "report", *given, f"--output={made}", f"--title={title}"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        require(done.returncode == 0, "kvbench report", done.stderr.strip().removeprefix("kvbench: ")
                .replace(folder + os.sep, "") or f"exit code {done.returncode}")
        with open(made, "rb") as file:
            write_atomically(output, file.read())


def _listing(folder: str, heading: str, rows: list[Row]) -> str:
    path = os.path.join(folder, f"{heading}.csv")
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, [*rows[0], "listing", "about"], lineterminator="\n")
        table.writeheader()
        table.writerows({**row, "listing": heading, "about": ABOUT[heading]} for row in rows)
    return path


def _claims(found: Sources, kvbench: str, link: Callable[[str], str]) -> list[Row]:
    return [{"claim": os.path.basename(claim.path).removesuffix(".toml"), "question": claim.question,
             "verdict": verdict, "tests": "; ".join(tests),
             "registered": "; ".join(claims.registered(claim.path)), "refuted by": claim.refuted_by,
             "link": link(claim.path), "grey": "" if tests else "1"}
            for claim in found.claims for verdict, tests in [_state(claim, found, kvbench)]]


def _state(claim: Claim, found: Sources, kvbench: str) -> tuple[str, list[str]]:
    """What the rows of bundles say of a claim, and the tests: of those tables that have no other rows."""
    rows: list[Row] = []
    for name, table in found.named():
        try:
            rows += claims.registered_rows(claim, name, table.rows) if table.kind is EVAL else []
        except Error:
            continue  # a table about something else
    if not rows:
        return "not measured", []
    try:
        tests = claims.compared(claim, claims.complete(claim, rows), kvbench)
    except Error as reason:
        return f"not measured in full: {reason}", []
    return claims.verdict(claim, tests), list(map(claims.test_text, tests))


def _results(found: Sources, kvbench: str) -> list[Row]:
    return [*(one for path, bundle in found.bundles.items() for table in bundle.tables
              for one in _rows(table, kvbench, os.path.basename(path))),
            *(one for table in found.tables for one in _rows(table, kvbench, ""))]


def _rows(table: Table, kvbench: str, bundle: str) -> Iterator[Row]:
    """Its rows over all layers, texts and documents."""
    of_model = table.kind is EVAL
    standing = _of_eval(table, kvbench) if of_model else _of_replay
    columns = ("document", "layer", "inject") if of_model else ("layer", "head", "query", "seed")
    together = {(row["run"], row["sha256"]) for row in table.rows if row.get("prompt") == "all"} if not of_model else ()
    for row in table.rows:
        part = not of_model and (row["run"], row["sha256"]) in together and row["prompt"] != "all"
        if part or any(row.get(name) not in ("all", "") for name in columns) or row["status"] != "ok":
            continue
        name, lo, hi = ("kl_mean", "kl_mean_lo", "kl_mean_hi") if of_model else \
            ("kl_predicted", "kl_predicted_lo", "kl_predicted_hi") if row.get("kl_predicted") else \
            ("rel_err_mean", "rel_err_lo", "rel_err_hi")
        ends = [_short(row.get(end, "")) for end in (lo, hi)]
        about = row.get("kl_about", "")
        unsure = [word for word, holds in (("large", "large" in about.split("; ")), ("outside", outside_by(about)))
                  if holds]
        text = ", ".join(filter(None, [plain(row.get("text") or row.get("trace", "")),
                                       row.get("task") or row["protocol"], f"{row.get('context_tokens')} tokens"]))
        yield {"method": configuration(row), "model": plain(row.get("model", "")).removesuffix(".gguf"), "text": text,
               "budget": row["budget"], "bytes": row.get("total_bytes", ""),
               "bytes/full": _short(row.get("total_bytes", ""), row.get("full_bytes", "")),
               "figure": ", ".join([FIGURES[name], *unsure]), "value": _short(row.get(name, "")),
               "interval": f"[{ends[0]}, {ends[1]}]" if all(ends) else "",
               "against the lowest": standing(row) if bundle else "",
               "bundle": bundle or "in no bundle", "grey": "" if bundle else "1"}


FIGURES = {"kl_mean": "KL", "kl_predicted": "predicted KL", "rel_err_mean": "error of attention"}


def _short(number: str, of: str = "1") -> str:
    """A number of three digits, or its share; empty if it is none, as rows of a stranger may have it."""
    try:
        return f"{float(number) / float(of):.3g}"
    except (ValueError, ZeroDivisionError):
        return ""


def _told(times: str, lo: str, hi: str, other: str, settled: bool) -> str:
    return f"{_short(times)} times {other} [{_short(lo)}, {_short(hi)}]: {'higher' if settled else 'not settled'}"


def _of_replay(row: Row) -> str:
    """Who is better, by the columns that compare rows of a replay."""
    if row.get("best") == configuration(row):
        return "lowest"
    if not row.get("tested_over") or not row.get("ratio_best"):
        return "not tested"
    ratio, lo, hi = (row.get(f"ratio_best{end}", "") for end in ("", "_lo", "_hi"))
    return _told(ratio, lo, hi, row.get("best", ""), row.get("tied") != "1")


def _of_eval(table: Table, kvbench: str) -> Callable[[Row], str]:
    """The same by kvbench compare, over the documents of a table."""
    def key(row: Row, name: str, budget: str) -> tuple[str, ...]:
        return (name, budget, *(row.get(column, "") for column in ("model", "text", "task", "context_tokens")))
    try:
        tests = claims.tested([row for row in table.rows if row["document"] != "all"], kvbench)
    except Error:  # no rows of documents, or one configuration
        return lambda row: "not tested"
    lowest = {key(test, test["b"], test["budget_b"]) for test in tests}
    of = {key(test, test["a"], test["budget_a"]): test for test in tests}

    def standing(row: Row) -> str:
        own = key(row, configuration(row), row["budget"])
        if own in lowest:
            return "lowest"
        test = of.get(own)
        if test is None or not test.get("p_adjusted"):
            return "not tested"
        return _told(test["ratio"], test["ratio_lo"], test["ratio_hi"], test["b"], test["verdict"] == "b better")
    return standing


def _bundles(found: Sources, link: Callable[[str], str]) -> list[Row]:
    def listed(texts: Iterable[str]) -> str:
        return ", ".join(dict.fromkeys(texts))
    rows = []
    for path, one in found.bundles.items():
        all_rows = [row for table in one.tables for row in table.rows]
        rows.append({"bundle": os.path.basename(path), "SHA-256 of the manifest": one.digest,
                     "commit": listed(row["commit"] for row in all_rows), "isa": listed(row["isa"] for row in all_rows),
                     "rows": str(len(all_rows)), "needs": listed(f"{each.kind} {each.name}" for each in one.inputs),
                     "check it": f"kvbench verify {shlex.quote(path)}", "link": link(path)})
    return rows
