# SPDX-License-Identifier: Apache-2.0
"""The refusals of all programs: what is typed, and parts of the sentence that answers it, such as the file, the flag,
the value and the remedy. A row is a command line, then parts. A number among them is the exit code if it is not 2; a
dict has the texts of files that this row alone needs. fixtures.py makes the files that all rows may name.

tests/cli/refusals_test.py runs the rows with the programs. In Python, python/tests/refusals_test.py runs those of
kvbench-choose and those of commands that are functions, and dump_hf_runs_test.py those of kvbench-dump-hf. Rows of
`python` are of functions alone, which know methods in Python."""
import shlex
from typing import NamedTuple

import dump
import files
import flags
import models
import slips
import sweeps


class Row(NamedTuple):
    words: list   # of the command line
    says: list
    code: int
    files: dict   # name: text


def row(typed, *rest):
    of = {kind: [part for part in rest if isinstance(part, kind)] for kind in (str, int, dict)}
    code, = of[int] or [2]
    files_of, = of[dict] or [{}]
    return Row(shlex.split(typed), of[str], code, files_of)


ROWS = [row(*one) for of in (slips, flags, files, sweeps, models, dump) for one in of.ROWS]
