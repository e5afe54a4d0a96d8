# SPDX-License-Identifier: Apache-2.0
"""Which code runs where a method in Python is named: the present bytes of its file and of the modules of its folder,
the class or object that was given to the call, and its present facts."""
import os
import pathlib
import subprocess
import sys

import numpy as np
from support import PackageTest, kvbench

PROGRAM = sys.argv[3]
FIRST = "class Own:\n    def make(self, budget, seed):\n        return list(range({0}, {0} + budget))\n"
ASKS = "    def make(self, budget, seed):\n        {0}\n        return list(range({1}, {1} + budget))\n"


class Counting:
    first = 0

    def make(self, budget, seed):
        return np.arange(self.first, self.first + budget)


class Source(PackageTest):
    def setUp(self):
        super().setUp()
        self.trace = self.synth("t.h5")
        self.known = {}  # by error: the first token that is kept

    def write(self, name, text):
        path = pathlib.Path(self.path(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1e9, 1e9))  # an editor within the same second, as far as file times say
        return str(path)

    def first_of(self, method):
        """The first of the tokens that a method keeps, which keeps 24 in a row."""
        if not self.known:
            for first in (0, 10, 20, 30, 40, 50, 60, 70):
                fixed = type("Fixed", (Counting,), {"first": first})
                self.known[self.error(fixed)] = first
        return self.known[self.error(method)]

    def error(self, method, **flags):
        rows = kvbench.replay(self.trace, method, 24, rows="trace", layers=0, **flags)
        self.assertEqual(rows[0]["status"], "ok", rows[0]["reason"])
        return rows[0]["rel_err_mean"]

    def test_a_file_that_changes_within_a_second(self):
        for first in (10, 50, 70, 10):
            self.assertEqual(self.first_of(self.write("mine.py", FIRST.format(first)) + ":Own"), first)

    def test_bytecode_of_another_state_in_the_program(self):
        for first in (10, 50, 70):
            path = self.write("mine.py", FIRST.format(first))
            subprocess.run([PROGRAM, "replay", self.trace, "-m", f"{path}:Own", "-b", "24", "--layers", "0", "--rows",
                            "trace", "-o", self.path("o.csv")], check=True, capture_output=True)
            self.assertEqual(self.first_of(f"{path}:Own"), first)
            self.assertEqual(self.known[kvbench.load_csv(self.path("o.csv"))[0]["rel_err_mean"]], first)
        self.assertFalse(os.path.exists(self.path("__pycache__")))

    def test_helpers_of_one_name(self):
        forms = {"import helper": "helper.N", "import helper as h": "h.N", "from helper import N": "N",
                 "import pack.deep": "pack.deep.N", "from pack import deep": "deep.N", "from pack.deep import N": "N",
                 "from pack import *": "N", "import spaces.inner": "spaces.inner.N"}
        for number, (statement, value) in enumerate(forms.items()):
            for place in ("top", "function"):
                for folder, first in (("a", 10), ("b", 50)):
                    with self.subTest(statement, place=place, folder=folder):
                        inside = f"{folder}{number}{place}"
                        self.write(f"{inside}/helper.py", f"import other\nN = other.N\n")
                        self.write(f"{inside}/other.py", f"N = {first}\n")
                        self.write(f"{inside}/pack/__init__.py", "from .deep import N\n__all__ = ['N']\n")
                        self.write(f"{inside}/pack/deep.py", "import helper\nfrom .. import other\nN = helper.N\n")
                        self.write(f"{inside}/spaces/inner.py", f"N = {first}\n")
                        inner = "pass" if place == "top" or "*" in statement else statement
                        top = statement if inner == "pass" else ""
                        path = self.write(f"{inside}/mine.py", f"{top}\nclass Own:\n" + ASKS.format(inner, value))
                        self.assertEqual(self.first_of(f"{path}:Own"), first)

    def test_a_helper_that_changes(self):
        path = self.write("mine.py", "import helper\nclass Own:\n" + ASKS.format("pass", "helper.N"))
        for first in (10, 50, 70):
            self.write("helper.py", f"N = {first}\n")
            self.assertEqual(self.first_of(f"{path}:Own"), first)

    def test_modules_from_elsewhere(self):
        self.write("json.py", "N = 30\n")  # in a folder where Python is started, it goes before the library's
        self.write("sys.py", "N = 40\n")  # which no file does
        path = self.write("mine.py", "import collections.abc, json, sys, numpy, kvbench\n"
                          "assert hasattr(sys, 'path') and kvbench.Kept and collections.abc.Sized\n"
                          "class Own:\n" + ASKS.format("import os.path", "json.N"))
        self.assertEqual(self.first_of(f"{path}:Own"), 30)
        import json
        self.assertTrue(json.dumps)

    def test_the_digest_is_that_of_the_bytes_that_ran(self):
        """Each file changes itself, or its helper, while it is imported for the first time."""
        change = "import pathlib\nfile = pathlib.Path({0})\nif len(file.read_text()) < {1}:\n" \
                 "    file.write_text(file.read_text() + '#' * {1} + '\\n')\n"
        for name, text in (("mine.py", change.format("__file__", 500)),
                           ("uses.py", "import helper\n" + change.format("helper.__file__", 50))):
            self.write("helper.py", "N = 1\n")
            self.write(name, text + FIRST.format(10))
            self.write("s.toml", f'[[run]]\nname = "own"\ntraces = "t.h5"\nmethods = ["{name}:Own"]\nbudgets = [24]\n')
            for already in (0, 0, 4):
                with self.subTest(name, already=already):
                    done = subprocess.run([PROGRAM, "sweep", "s.toml", "--cells", f"{name}.cells", "--resume", "-o",
                                           "o.csv"], cwd=self.folder, capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual("4 of 4 cells are already computed" in done.stderr, already == 4, done.stderr)

    def test_a_class_after_an_object(self):
        one, other = Counting(), Counting()
        one.first, other.first = 30, 60
        for given, first in ((Counting, 0), (one, 30), (Counting, 0), (other, 60), (one, 30), ("py:Counting", 0)):
            self.assertEqual(self.first_of(given), first)

    def test_a_file_that_is_none(self):
        os.mkfifo(self.path("pipe.py"))
        os.mkdir(self.path("folder.py"))
        for name, word in (("pipe.py", "a pipe"), ("folder.py", "is a folder"), ("none.py", "no such file")):
            with self.refuses(name, word):
                kvbench.replay(self.trace, self.path(name) + ":Own", 24)

    def test_facts_that_change(self):
        class Drawn:
            def make(self, budget, seed):
                return np.random.default_rng(seed).permutation(192)[:budget]

        def seeds():
            rows = kvbench.replay(self.trace, Drawn, 24, seeds=3, rows="head", layers=0)
            return {row["seed"] for row in rows if row["seed"] != "all"}
        self.assertEqual(seeds(), {None})
        Drawn.seeded = True
        self.assertEqual(seeds(), {0, 1, 2})
        Drawn.seeded = False
        self.assertEqual(seeds(), {None})
        own = Drawn()
        own.seeded = True
        with self.refuses("Drawn object", "seeded is a fact about all objects of Drawn"):
            kvbench.replay(self.trace, own, 24)
