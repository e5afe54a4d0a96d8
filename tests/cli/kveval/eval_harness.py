# SPDX-License-Identifier: Apache-2.0
"""What the tests of kveval share, beside what they share with those of kvdump."""

import csv
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "kvdump"))
import harness  # noqa: E402

KVEVAL, KVBENCH = sys.argv[3:5]


def text_file(folder, name="book.txt", lines=3000):
    """A text without much repetition, of words that the model knows."""
    words = ("the river ran past old stone walls while seven grey birds watched a man carry water to his horse "
             "in cold morning light").split()
    state, out = 12345, []
    for _ in range(lines):
        line = []
        for _ in range(9):
            state = (state * 1103515245 + 12345) % 2**31
            line.append(words[state // 65536 % len(words)])
        out.append(" ".join(line).capitalize() + ".")
    path = folder / name
    path.write_text("\n".join(out) + "\n")
    return path


def kveval(*arguments, model=None, expect=0):
    """Runs kveval; returns its stdout, or its stderr where it is expected to fail."""
    done = subprocess.run([KVEVAL, model or harness.MODEL, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == expect, f"exit code {done.returncode}, expected {expect}: {done.stderr}"
    return done.stderr if expect else done.stdout


def rows(text):
    return list(csv.DictReader(text.splitlines()))


def evaluate(*arguments, **options):
    return rows(kveval("--no-times", *arguments, **options))


def number(row, name):
    return float(row[name])


def close(a, b, tolerance):
    assert abs(a - b) <= tolerance * max(1e-6, abs(a), abs(b)), (a, b)
