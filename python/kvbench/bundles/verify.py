# SPDX-License-Identifier: Apache-2.0
"""What `kvbench verify` does: draws cells, recomputes them, and says what it found and what it could not check."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .._error import Error
from .bundle import Bundle
from .inputs import Places
from .recompute import Outcome, recomputed
from .tables import Cell, counted

DIFFERS, UNCHECKED = 1, 4  # exit codes


@dataclass
class Checkable:
    """Cells that can be recomputed here, with the files that they need by kind; of the others how many there are, by
    the reason."""

    cells: list[tuple[Cell, dict[str, str]]] = field(default_factory=list)
    others: dict[str, int] = field(default_factory=dict)


def checkable(bundle: Bundle, places: Places, cells: list[Cell]) -> Checkable:
    found, paths = Checkable(), {one: places.find(one) for one in bundle.inputs}
    for cell in cells:
        needed = [] if cell.cannot else bundle.inputs_of(cell)
        files = {one.kind: paths[one] for one in needed}
        lost = [f"{one.kind} {one.name} (SHA-256 {one.sha256})" for one in needed if not paths[one]]
        reason = f"{' and '.join(lost)} not found; name files or folders with --input" if lost else cell.cannot
        if reason:
            found.others[reason] = found.others.get(reason, 0) + 1
        else:
            found.cells.append((cell, files))
    return found


def drawn(cells: Iterable[Cell], count: int, digest: str, seed: str) -> list[Cell]:
    """Cells in an order that follows from the digest of the bundle and the seed of whoever verifies, those with results
    before others. More cells are those of a smaller number and others."""
    def key(cell: Cell) -> tuple[bool, bytes]:
        empty = all(row["status"] != "ok" for row in cell.rows)
        return empty, hashlib.sha256("\n".join((digest, seed, cell.id)).encode()).digest()
    return sorted(cells, key=key)[:count]


def check(bundle: Bundle, found: Checkable, count: int, seed: str, program: Callable[[str], str],
          say: Callable[[str], object]) -> list[Outcome]:
    """Recomputes cells, and says each outcome as it comes."""
    files = {cell.id: paths for cell, paths in found.cells}
    outcomes = []
    for cell in drawn((cell for cell, _ in found.cells), count, bundle.digest, seed):
        try:
            outcomes.append(recomputed(cell, files[cell.id], program(cell.table.kind.program)))
        except Error as failure:  # there is no such program
            outcomes.append(Outcome(cell, "not checked", [str(failure)]))
        say(f"  {WORDS[outcomes[-1].verdict]}  {cell}\n" + "".join(f"      {line}\n" for line in outcomes[-1].says))
    return outcomes


WORDS = {"same": "same bytes   ", "close": "within drift ", "differs": "DIFFERS      ", "not checked": "not checked  "}


def opening(bundle: Bundle) -> str:
    """What the bundle is about."""
    lines = [f"{counted(len(bundle.cells), 'cell')}; SHA-256 of the manifest {bundle.digest}\n"]
    for number, table in enumerate(bundle.tables, 1):
        engines = {f"{row['version']} ({row['commit']}), {row['device']} {row['isa']}": None for row in table.rows}
        lines.append(f"  rows/{number}.csv, {table.name}: {counted(len(table.rows), 'row')} of kvbench "
                     f"{table.kind.command} {'; '.join(engines)}\n")
    return "".join(lines)


def left_out(bundle: Bundle, found: Checkable, outcomes: list[Outcome]) -> str:
    """What was not checked, in sentences."""
    unchecked = [f"{counted(count, 'cell')}: {reason}." for reason, count in found.others.items()]
    rest = len(found.cells) - len(outcomes)
    unchecked += [f"{counted(rest, 'cell')} not drawn; --sample {len(found.cells)} recomputes all, and --seed TEXT "
                  "draws others."] if rest else []
    names = {column: None for table in bundle.tables for column in table.columns
             if column in (*table.kind.between, *table.kind.times)}
    between = [name for name in names if any(name in table.kind.between for table in bundle.tables)]
    times = [name for name in names if name not in between]
    between = [] if all(one.cell.place is None for one in outcomes) else between
    unchecked += [f"times: {', '.join(times)}."] if times else []
    unchecked += [f"columns that compare rows with each other: {', '.join(between)}; --whole recomputes them."] \
        if between else []
    unchecked += ["who computed the rows, on which machine and when: a bundle cannot prove that."]
    return "Not checked:\n" + "".join(f"  {line}\n" for line in unchecked)


def verdict(outcomes: list[Outcome]) -> tuple[str, int]:
    """The last sentence, and the exit code."""
    of = {name: sum(one.verdict == name for one in outcomes) for name in WORDS}
    drawn_cells = counted(len(outcomes), "drawn cell")
    if of["differs"]:
        return f"DIFFERS: of {drawn_cells} {of['differs']} not as in the bundle.\n", DIFFERS
    if not outcomes:
        return "Not verified: nothing could be recomputed.\n", UNCHECKED
    if of["not checked"]:
        return f"Not verified: of {drawn_cells} {of['not checked']} could not be recomputed.\n", UNCHECKED
    within = f", {of['close']} within the documented drift" if of["close"] else ""
    return f"Verified: {counted(len(outcomes), 'cell')} recomputed, {of['same']} with the same bytes{within}.\n", 0
