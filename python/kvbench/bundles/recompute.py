# SPDX-License-Identifier: Apache-2.0
"""Recomputes a cell with kvbench, and compares its rows. A command is a list of words, of which a table's values were
checked (tables.py); nothing of an archive is run as text, and a command writes into a temporary folder alone."""

import math
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field

from .._error import Error, printable, require
from ..results.rows import rows_of
from .tables import COSTS, EVAL, ISAS, Cell, Row

CONDITIONS = ("device", "isa", "version", "commit")
DIRTY = "-dirty"  # in the name of a commit: kvbench was built with changes beside it

# The drift that docs state. Of replays that of docs/golden.md, "Tolerances"; of models that of docs/eval.md, "How exact
# KL is where methods round".
RTOL, ATOL, RTOL_KL = 1e-5, 5e-6, 1e-3
RTOL_DOCUMENT = 0.4  # of one document; of a mean over n documents divided by sqrt(n)
LOOSE = (*COSTS, "reason", "kl_about", "kl_noise")  # words about rounded figures, and the noise of what may be 0
OF_MODEL = ("status", "context_tokens", "document_sha256", "documents_sha256", "documents", "seeds", "scored",
            "budget_tokens", "kept_tokens", "total_bytes", "full_bytes")  # equal on all machines


@dataclass
class Outcome:
    """verdict: same (bytes), close (within the drift), differs, or not checked."""

    cell: Cell
    verdict: str
    says: list[str] = field(default_factory=list)


def recomputed(cell: Cell, files: dict[str, str], program: str) -> Outcome:
    """files: the paths of the inputs by their kinds."""
    with tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
        try:
            rows, note = _rows(cell, files, program, folder)
        except Error as failure:
            return Outcome(cell, "not checked", [str(failure)])
    outcome = compared(cell, rows)
    if outcome.verdict != "same":
        outcome.says[:0] = filter(None, [note])
    return outcome


def words_of(cell: Cell, files: dict[str, str], folder: str) -> list[str]:
    """The command line of a cell behind the name of the program, without the instruction set."""
    method = ",".join(cell.methods)
    if cell.plan:  # under a name of ours, whatever its path has
        shutil.copyfile(files["plan"], os.path.join(folder, "plan.toml"))
        method = "plan:plan.toml"
    command = [] if cell.table.kind is EVAL else ["replay"]
    first = os.path.abspath(files[cell.table.kind.input[0]])
    flag = "transcripts" if cell.compress else "text"
    texts = [f"--{flag}={os.path.abspath(files['text'])}"] if cell.table.kind is EVAL else []
    return [*command, first, *texts, f"--method={method}", f"--budget={','.join(cell.budgets)}",
            *cell.table.kind.words(cell), "--quiet", "--format=csv", f"--output={os.path.join(folder, 'rows.csv')}"]


def _rows(cell: Cell, files: dict[str, str], program: str, folder: str) -> tuple[list[Row], str]:
    """The rows that the command of a cell writes, and a note."""
    words, isa, note = words_of(cell, files, folder), cell.alike["isa"], ""
    code, said = _run(program, [*words, f"--isa={isa}"] if isa in ISAS else words, folder)
    if code not in (0, 1) and "--isa" in said and isa in ISAS:
        note = f"this processor has no {isa}"
        code, said = _run(program, words, folder)
    path = os.path.join(folder, "rows.csv")
    name = os.path.basename(program)
    require(code in (0, 1) and os.path.exists(path), name, said.removeprefix(f"{name}: ") or f"exit code {code}")
    return rows_of(path, cell.table.kind.needed, "a table of this kvbench"), note


def _run(program: str, words: list[str], folder: str) -> tuple[int, str]:
    """The exit code of a program, and the last line of its messages."""
    try:
        done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, cwd=folder, check=False)
    except OSError as failure:  # thousands of budgets, say
        raise Error(f"{program}: cannot be run ({failure.strerror})") from None
    if done.returncode in (130, -signal.SIGINT, -signal.SIGTERM):
        raise KeyboardInterrupt
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return done.returncode, printable(lines[-1])[:400] if lines else ""


def compared(cell: Cell, rows: list[Row]) -> Outcome:
    """What is found where these rows stand for those of the cell."""
    kind = cell.table.kind

    def identity(row: Row) -> tuple[str, ...]:
        return tuple(row.get(column, "") for column in kind.identity if not (cell.plan and column == "method"))
    fresh = {identity(row): row for row in rows if cell.place in (None, kind.place(row))}
    known = {identity(row): row for row in cell.rows}
    if len(known) < len(cell.rows):
        return Outcome(cell, "differs", ["two of its rows are about the same"])
    lost, new = known.keys() - fresh.keys(), fresh.keys() - known.keys()
    if lost or new:
        which = f"{len(lost)} of its rows do not come out" if lost else f"it lacks {len(new)} rows that come out"
        return Outcome(cell, "differs", [f"{which}, such as {', '.join(filter(None, min(lost or new)))[:200]}"])
    first = next(iter(fresh.values()))
    other = [f"{name} {first[name] or 'none'} in place of {cell.alike[name] or 'none'}" for name in CONDITIONS
             if first[name] != cell.alike[name]]
    other += ["changes that were not committed, so that its sources may be others"] if not other and DIRTY in \
        first["commit"] + cell.alike["commit"] else []
    left_out = {*kind.times, *CONDITIONS, "run", kind.input[1], "text"}  # files may have other names
    left_out |= {"method"} if cell.plan else set()
    left_out |= set(kind.between) if cell.place is not None else set()
    unknown = [column for column in cell.table.columns if column not in first]
    if unknown and not other:
        return Outcome(cell, "differs", [f"it has columns that do not come out: {', '.join(unknown)[:200]}"])
    columns = [column for column in cell.table.columns if column not in left_out and column in first]
    pairs = [(column, row, row[column], fresh[key][column]) for key, row in known.items() for column in columns]
    changed = [pair for pair in pairs if pair[2] != pair[3]]
    beyond = [pair for pair in changed if not (other and _near(cell, *pair))]
    verdict = "same" if not (changed or unknown) else "differs" if beyond else "close"
    says = [_difference(cell, *pair) for pair in beyond[:3]]
    says += [f"and {len(beyond) - 3} more fields"] if len(beyond) > 3 else []
    says += [f"columns that do not come out: {', '.join(unknown)[:200]}"] if unknown else []
    says += [f"recomputed with {', '.join(other)}"] if other and verdict != "same" else []
    return Outcome(cell, verdict, says)


def _difference(cell: Cell, column: str, row: Row, known: str, found: str) -> str:
    alike = () if len(cell.methods) > 1 else ("method", "params")
    at = [f"{name} {row[name]}" for name in cell.table.kind.identity
          if row.get(name, "") not in ("", "all") and name not in alike]
    return f"{column} at {', '.join(at)} is {known[:80] or 'empty'}, and comes out as {found[:80] or 'empty'}"


def _near(cell: Cell, column: str, row: Row, known: str, found: str) -> bool:
    """Whether two texts of a column differ by no more than other sums of the same numbers do."""
    of_model = cell.table.kind is EVAL
    if column in LOOSE or (of_model and column not in (*OF_MODEL, "kl_mean", "nll_full")):
        return True
    try:
        a, b = float(known), float(found)
    except ValueError:
        return False
    if not (math.isfinite(a) and math.isfinite(b)) or (of_model and column in OF_MODEL):
        return False
    size = max(abs(a), abs(b))
    if of_model and column == "kl_mean":
        count = int(row["documents"]) if row["document"] == "all" else 1
        return abs(a - b) <= RTOL_DOCUMENT / math.sqrt(max(1, count)) * size + ATOL
    return abs(a - b) <= (RTOL_KL if column.startswith(("kl_", "nll")) else RTOL) * size + ATOL
