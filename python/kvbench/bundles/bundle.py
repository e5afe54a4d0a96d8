# SPDX-License-Identifier: Apache-2.0
"""What a bundle says. All of its manifest but names, settings, inputs and the machine follows from its rows, and is
derived anew when it is read."""

import functools
import hashlib
import json
import os
import platform
import re
import shlex
from dataclasses import dataclass, replace
from typing import Any

from .._error import Error, check_regular, require
from . import archive
from .inputs import Input, Places
from .tables import CONTROL, EVAL, ISAS, Cell, Table, cells_of, check_size, inputs_of, table_of

SCHEMA = "1.0"  # another one where something else is derived from the same rows
MOST_INPUTS = 200
KINDS_OF_INPUTS = ("trace", "model", "text", "plan")


class Changed(Error):
    """A bundle whose parts do not fit each other."""


@dataclass(frozen=True)
class Bundle:
    tables: list[Table]
    inputs: list[Input]
    machine: dict[str, str]

    @functools.cached_property
    def manifest(self) -> bytes:
        found = {"kvbench_bundle": SCHEMA, "machine": self.machine, "tables": list(map(_described, self.tables)),
                 "inputs": [vars(one) for one in self.inputs]}
        return (json.dumps(found, indent=1, sort_keys=True) + "\n").encode()

    @property
    def digest(self) -> str:
        """Of all of the bundle, because the manifest has the digests of the tables."""
        return hashlib.sha256(self.manifest).hexdigest()

    @functools.cached_property
    def cells(self) -> list[Cell]:
        return [cell for table in self.tables for cell in cells_of(table)]

    def inputs_of(self, cell: Cell) -> list[Input]:
        """Raises Error if the bundle does not say which file it is."""
        found = []
        for kind, name, start in inputs_of(cell):
            known = [one for one in self.inputs
                     if (one.kind, one.name) == (kind, name) and one.sha256.startswith(start)]
            require(len(known) == 1, f"{kind} {name}", "is no input of the bundle, or several.")
            found += known
        return found

    def sha256_of(self, kind: str, name: str, start: str = "") -> str:
        """The digest of an input, or what is known of it if only rows that nobody can recompute have it."""
        return next((one.sha256 for one in self.inputs if (one.kind, one.name) == (kind, name)
                     and one.sha256.startswith(start)), start)

    def write(self, path: str, sources: list[str]) -> None:
        members = {f"rows/{number}.csv": table.data for number, table in enumerate(self.tables, 1)}
        members[archive.MANIFEST] = self.manifest
        parsed(members, path)  # what is written can be read
        archive.write(path, members, sources)


def _words(cell: Cell) -> tuple[str, ...]:
    """A command line for readers, without its methods."""
    kind, isa, text = cell.table.kind, cell.alike["isa"], cell.alike.get("text")
    return ("kvbench", kind.command, cell.alike[kind.input[1]], *([f"--text={text}"] if text else []),
            f"--budget={','.join(cell.budgets)}", *kind.words(replace(cell, place=None)),
            *([f"--isa={isa}"] if isa in ISAS else []))


def command_of(cell: Cell) -> str:
    """The command line that computes the rows of a cell, with the names of files that rows have."""
    return shlex.join([*_words(cell), f"--method={','.join(cell.methods)}"])


def _described(table: Table) -> dict[str, Any]:
    """What a table has, for readers: engines, and a command line for each list of methods with the same flags."""
    engines = {(row["version"], row["commit"], row["isa"], row["device"]): None for row in table.rows}
    methods: dict[tuple[str, ...], dict[str, None]] = {}
    for cell in cells_of(table):
        methods.setdefault(_words(cell), {})[cell.methods[0]] = None
    commands = [shlex.join([*words, f"--method={','.join(names)}"]) for words, names in methods.items()]
    return {"name": table.name, "sha256": table.sha256, "rows": len(table.rows), "command": table.kind.command,
            "settings": table.settings, "commands": commands,
            "engines": [dict(zip(("version", "commit", "isa", "device"), engine)) for engine in engines]}


def make(paths: list[str], settings: dict[str, str], places: Places) -> Bundle:
    """The bundle of these tables. Raises Error if a file that their rows came from is not found."""
    require(len(paths) < archive.MOST_MEMBERS, "bundle", f"takes at most {archive.MOST_MEMBERS - 1} tables.")
    tables = []
    for path in paths:
        check_regular(path)
        require(os.path.getsize(path) <= archive.MOST_BYTES["of a table"], path, "is too large for a bundle; replay "
                "without --rows query.")
        with open(path, "rb") as file:
            table = table_of(path, file.read(), settings)
        own = {"threads": str(os.cpu_count() or 1), **settings} if table.kind is EVAL else settings
        tables.append(Table(os.path.basename(path), table.data, table.kind, own, table.columns, table.rows))
    require(len({table.sha256 for table in tables}) == len(tables), "bundle", "two of the tables are equal; give one.")
    wanted = {one: None for table in tables for cell in cells_of(table) if not cell.cannot for one in inputs_of(cell)}
    check_size("bundle", (table.data for table in tables))
    require(len(wanted) <= MOST_INPUTS, "bundle", f"the rows came from more than {MOST_INPUTS} files; make two "
            "bundles.")
    return Bundle(tables, sorted({places.named(*one) for one in wanted}), this_machine())


def read(path: str) -> Bundle:
    """Raises Error for what is no bundle, or one of another version, and Changed if its digests do not fit."""
    return parsed(archive.read(path), path)


def parsed(members: dict[str, bytes], path: str) -> Bundle:
    """The bundle with these members of an archive."""
    found = _json(members[archive.MANIFEST], path)
    version = found.get("kvbench_bundle") if isinstance(found, dict) else None
    require(isinstance(version, str) and re.fullmatch(r"[0-9]{1,4}\.[0-9]{1,4}", version), path,
            "its manifest is that of no bundle.")
    require(version == SCHEMA, path, f"is a bundle of schema {version}, and this kvbench reads {SCHEMA}; take the "
            f"kvbench that wrote it, or a newer one.")
    try:
        tables = _tables(found["tables"], members, path)
        inputs = [_input(one) for one in found["inputs"]]
        require(len(inputs) <= MOST_INPUTS, path, f"names more than {MOST_INPUTS} files that its rows came from.")
        machine = {_text(name): _text(value) for name, value in found["machine"].items()}
    except (KeyError, TypeError, AttributeError, IndexError) as fault:
        raise Error(f"{path}: its manifest is not one that kvbench writes ({fault!r}).") from None
    bundle = Bundle(tables, inputs, machine)
    if bundle.manifest != members[archive.MANIFEST]:
        raise Changed(f"{path}: the manifest is not that of these rows: it was changed after it was written.")
    return bundle


def _json(data: bytes, path: str) -> Any:
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError) as fault:
        raise Error(f"{path}: its manifest is no JSON ({type(fault).__name__}).") from None


def _tables(found: Any, members: dict[str, bytes], path: str) -> list[Table]:
    check_size(path, members.values())
    require(len(found) == len(members) - 1, path, f"its manifest describes {len(found)} tables, and it has "
            f"{len(members) - 1}.")
    tables = []
    for number, one in enumerate(found, 1):
        data, name = members[f"rows/{number}.csv"], _text(one["name"])
        if hashlib.sha256(data).hexdigest() != one["sha256"]:
            raise Changed(f"{path}: rows/{number}.csv ({name}) is not the table that the manifest describes: one of "
                          "them was changed after bundling.")
        settings = {_text(flag): _text(value) for flag, value in one["settings"].items()}
        tables.append(table_of(f"{path}: rows/{number}.csv", data, settings))
        tables[-1] = Table(name, data, tables[-1].kind, settings, tables[-1].columns, tables[-1].rows)
    return tables


def _input(one: Any) -> Input:
    kind, name, digest, size = one["kind"], _text(one["name"]), one["sha256"], one["bytes"]
    require(kind in KINDS_OF_INPUTS and isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest)
            and type(size) is int and size >= 0, f"input {name}", "is described as no file is.")
    return Input(kind, name, digest, size)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 500 or CONTROL.search(value):
        raise Error(f"manifest: {ascii(value)[:60]} is no text, too long, or has control characters.")
    return value


def this_machine() -> dict[str, str]:
    """The class of the machine that made the bundle. There is no time: nobody could check it."""
    processor = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            named = re.search(r"^model name\s*: (.*)$", file.read(), re.MULTILINE)
        processor = " ".join(named[1].split()) if named else processor
    except OSError:
        pass
    libc = " ".join(filter(None, platform.libc_ver()))
    return {"processor": CONTROL.sub(" ", processor)[:200], "processors": str(os.cpu_count() or 1),
            "system": f"{platform.system()} {platform.machine()}", "c_library": libc}
