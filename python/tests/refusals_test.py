# SPDX-License-Identifier: Apache-2.0
"""Rows of tests/refusals/table.py in Python: those of kvbench-choose, and with the extension those of commands that are
functions, which raise Error, or OSError if the exit code is 3, with the same sentence."""
import contextlib
import io
import itertools
import os
import re
import shutil
import sys
import tempfile
import unittest
from unittest import mock

from support import KVBENCH, PACKAGE, PackageTest, kvbench
from kvbench.choosing import command, settings

sys.path.insert(0, str(PACKAGE.parent / "tests" / "refusals"))
import fixtures  # noqa: E402
import table  # noqa: E402

NAMES = {"-m": "method", "-b": "budget", "-j": "threads", "-o": "output"}
FUNCTIONS = {"replay": lambda files, method, budget=None, **flags: kvbench.replay(*files, method, budget, **flags),
             "compare": kvbench.compare, "report": kvbench.report}
# What programs alone have: tables in a format, names of figures, flags without their value.
OF_PROGRAMS = re.compile(r"no table is written|needs a value|-(format|summary)\b|-figure list")


def call_of(row):
    """The call of FUNCTIONS that asks what the row does, or None if there is none: files stand first, are those that
    all rows may name, and each flag has at most one value."""
    program, command, *words = [*row.words, ""] if len(row.words) < 2 else row.words
    if program not in ("kvbench", "python") or command not in FUNCTIONS or row.files:
        return None
    if OF_PROGRAMS.search(" ".join([*words, *row.says])):
        return None
    files = list(itertools.takewhile(lambda word: not word.startswith("-"), words))
    if not files or command == "replay" and len(files) > 1:
        return None
    flags, rest = {}, words[len(files):]
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if not equals:
            value = rest.pop(0) if rest and re.match(r"[^-]|-\d", rest[0]) else True
        flag = NAMES.get(name, name[2:].replace("-", "_") if name.startswith("--") else "")
        if not flag or flag in flags:
            return None
        flags[flag] = value
    return None if command == "replay" and "method" not in flags else (command, files, flags)


class Refusals(PackageTest):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.mkdtemp(prefix="kvbench-")
        fixtures.make(cls.made, KVBENCH)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.made)

    def setUp(self):
        super().setUp()
        self.enterContext(contextlib.chdir(self.made))

    def program(self, name, folder):
        """Stands for a program that is installed: kvbench itself, and the tasks of kveval, which may not be built."""
        if name == "kvbench":
            return KVBENCH
        with open(os.path.join(self.folder, name), "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
            file.write("#!/bin/sh\necho text\necho '  Measures'\necho passkey\necho lines\n")
        return file.name

    @unittest.skipIf(os.environ.get("KVBENCH_EXTENSION"), "needs it not")
    def test_kvbench_choose(self):
        before, tried = set(os.listdir()), 0
        for row in table.ROWS:
            if row.words[0] == "kvbench-choose":
                with self.subTest(row.words), contextlib.redirect_stderr(io.StringIO()) as said, mock.patch.object(
                        settings, "program", self.program):
                    self.assertEqual(command.main(row.words[1:]), row.code, said.getvalue())
                    for part in row.says:
                        self.assertIn(part, said.getvalue())
                    self.assertTrue(said.getvalue().startswith("kvbench-choose: "))
                    self.assertEqual(set(os.listdir()), before)
                tried += 1
        self.assertGreater(tried, 20)

    @unittest.skipUnless(os.environ.get("KVBENCH_EXTENSION"), "needs kvbench._core")
    def test_functions(self):
        before, tried = set(os.listdir()), 0
        for row in table.ROWS:
            if call := call_of(row):
                command, files, flags = call
                with self.subTest(row.words):
                    with self.assertRaises(OSError if row.code == 3 else kvbench.Error) as refusal:
                        FUNCTIONS[command](files, **flags)
                    for part in row.says:
                        self.assertIn(part, str(refusal.exception))
                    self.assertEqual(set(os.listdir()), before)
                tried += 1
        self.assertGreater(tried, 150)
