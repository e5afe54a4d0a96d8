# SPDX-License-Identifier: Apache-2.0
"""What a method in Python does to its surroundings reaches no other row: arrays, arithmetic, calls of other threads and
of methods, texts of exceptions, and programs that it starts."""
import concurrent.futures
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import warnings

import numpy as np
from support import PACKAGE, PackageTest, kvbench

PROGRAM = sys.argv[3]
SELECTIONS = str(PACKAGE / "tests" / "methods" / "selections.py")
sys.path.insert(0, str(PACKAGE / "tests" / "methods"))
from faults import Cache, Fixed  # noqa: E402

OTHERS = ["exact", "snapkv", "h2o", "kmeans", "snapkv+int4"]


def written(array):
    """Writes to an array past its flag, as PyTorch does in `torch.from_numpy(array).zero_()`."""
    ctypes.memset(array.ctypes.data, 0, array.nbytes)


class Writes(Fixed):
    observes = True

    def prepare(self, head):
        self.head = head
        arrays = [value for value in vars(head).values() if isinstance(value, np.ndarray)]
        assert len(arrays) >= 5, len(arrays)
        for array in arrays:
            assert not array.flags.writeable
            written(array)

    def make(self, budget, seed):
        return WritingCache(self.head, budget)


class WritingCache(Cache):
    def append(self, keys, values, positions):
        for array in (keys, values, positions):
            written(array)

    def entries(self, queries):
        written(queries.queries)
        return super().entries(queries)

    def observe(self, weights):
        written(weights)


class Moves(Fixed):
    def result(self, budget):
        os.chdir("/")
        return np.arange(budget)


class WritesLayer(Writes):
    granularity = "layer"

    def prepare(self, heads):
        for head in heads:
            super().prepare(head)
        self.heads = heads

    def make(self, budget, seed):
        return [np.arange(budget)] * len(self.heads)


@kvbench.scorer
def writes(head):
    written(head.keys)
    written(head.values)
    return np.zeros(head.tokens)


def rounding(where):
    def change(self, *given):
        ctypes.CDLL(None).fesetround(0x800)
        return Fixed.make(self, *given) if where == "make" else setattr(self, "head", given[0])
    return type(f"Rounds_{where}", (Fixed,), {where: change, "result": lambda self, budget: np.arange(budget)})


class Described(Exception):
    def __str__(self):
        raise RuntimeError


LONG = 130000
EXCEPTIONS = [(ValueError("x" * LONG), f"ValueError: {'x' * 900}"), (kvbench.Error("x" * LONG), "x" * 900),
              (ValueError("a\n" * LONG), "a"), (ValueError("\udc80"), "ValueError: \\udc80"),
              (ValueError("a\0b\x1b[31m\x85"), "ValueError: a\\x00b\\x1b[31m\\x85"),
              (ValueError("a\tb"), "ValueError: a b"),
              (Described(), "Described"), (ValueError(), "ValueError"), (SystemExit(3), "SystemExit: 3"),
              (GeneratorExit(), "GeneratorExit"), (StopIteration("x"), "StopIteration: x"),
              (MemoryError(), "MemoryError"),
              (RecursionError("deep"), "deep"), (BaseExceptionGroup("many", [SystemExit(1)]), "many")] \
    if sys.version_info >= (3, 11) else []
OTHER_STATUS = [(kvbench.Unavailable("y" * LONG), "skipped"), (kvbench.Infeasible("y" * LONG), "infeasible"),
                (kvbench.Unavailable("\udc80\0"), "skipped")]


def raises(failure, number):
    def make(self, budget, seed):
        raise failure
    return type(f"Raises{number}", (Fixed,), {"make": make})


class Isolation(PackageTest):
    def setUp(self):
        super().setUp()
        self.trace = self.synth("t.h5", d=32, dv=32)

    def rows(self, methods, budget=24, **flags):
        return kvbench.replay(self.trace, methods, budget, **{"rows": "trace", "no_times": True, **flags})

    def figures(self, rows):
        """Rows without what compares them with the others."""
        return [{name: value for name, value in row.items() if not re.search("best|tied|tested", name)} for row in rows
                if not row["method"].startswith("py:")]

    def test_what_is_written_to_arrays(self):
        for protocol in ("decode", "prefill"):
            before = self.figures(self.rows(OTHERS, protocol=protocol))
            for own in (Writes, WritesLayer, writes, [Writes, WritesLayer, writes]):
                own = own if isinstance(own, list) else [own]
                rows = self.rows([*OTHERS[:2], *own, *OTHERS[2:]], protocol=protocol)
                self.assertEqual(self.figures(rows), before)
                self.assertEqual({row["status"] for row in rows}, {"ok"}, [row["reason"] for row in rows])

    def test_a_method_that_changes_the_folder(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        self.assertEqual(self.rows(Moves, output="rows.csv")[0]["status"], "ok")

    def test_positions_are_not_those_of_others(self):
        both = self.rows([Writes, f"{SELECTIONS}:Adding"])
        self.assertEqual(self.figures(both), self.figures(self.rows(f"{SELECTIONS}:Adding")))

    def test_arithmetic_is_restored(self):
        before = self.figures(self.rows(OTHERS, threads=1))
        for where in ("make", "prepare"):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                rows = self.rows([rounding(where), *OTHERS], threads=1)
            self.assertEqual(self.figures(rows), before)
            self.assertTrue(any("kvbench has restored it" in str(one.message) for one in said))
        pathlib.Path(self.path("mine.py")).write_text("import ctypes\nctypes.CDLL(None).fesetround(0x800)\nclass Own:\n"
                                                      "    def make(self, budget, seed):\n        return [0]\n")
        done = subprocess.run([PROGRAM, "replay", self.trace, "-m", self.path("mine.py") + ":Own,exact", "-b", "24",
                               "-o", self.path("o.csv")], capture_output=True, text=True)
        self.assertIn("kvbench has restored it", done.stderr)

    def test_calls_of_several_threads(self):
        def call(number):
            try:
                return self.rows("sink" if number % 2 else f"nope{number}")[0]["method"]
            except kvbench.Error as error:
                return str(error)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(call, range(16)))
        for number, answer in enumerate(answers):
            self.assertTrue(answer.startswith("sink" if number % 2 else f"there is no method 'nope{number}'"), answer)

    def test_calls_from_inside_a_method(self):
        calls = {"replay": lambda: kvbench.replay(self.trace, "sink", 24), "check": lambda: kvbench.check("sink"),
                 "report": lambda: kvbench.report(self.path("o.csv")),
                 "compare": lambda: kvbench.compare(self.path("o.csv"))}
        methods = [type(name, (Fixed,), {"make": lambda self, budget, seed, call=call: call()})
                   for name, call in calls.items()]
        for name, row in zip(calls, self.rows([*methods, "sink"])):
            self.assertEqual(row["status"], "failed")
            self.assertIn(f"{name}() is called by a method", row["reason"])
        file = pathlib.Path(self.path("script.py"))
        file.write_text(f"import kvbench\n{SELECTIONS!r}\nclass Own:\n    def make(self, budget, seed):\n"
                        f"        return [0]\nkvbench.replay({self.trace!r}, Own, 24)\n")
        for program in ([PROGRAM, "replay", self.trace, "-m", f"{file}:Own"], None):
            if program is None:
                with self.refuses(r"replay\(\) is called by", "__main__"):
                    self.rows(f"{file}:Own")
            else:
                done = subprocess.run(program, capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 2)
                self.assertIn("replay() is called by a method, or by its file", done.stderr)

    def test_exceptions(self):
        methods = [raises(failure, number) for number, (failure, _) in enumerate(EXCEPTIONS + OTHER_STATUS)]
        rows = self.rows(["sink", *methods, "h2o"], raw=self.path("raw.h5"))
        self.assertEqual((rows[0]["status"], rows[-1]["status"]), ("ok", "ok"))
        for row, (failure, wanted) in zip(rows[1:], EXCEPTIONS):
            self.assertEqual(row["status"], "failed")
            self.assertIn(wanted, row["reason"])
            self.assertLess(len(row["reason"]), 1100)
        for row, (failure, status) in zip(rows[1 + len(EXCEPTIONS):], OTHER_STATUS):
            self.assertEqual(row["status"], status)
            self.assertLess(len(row["reason"]), 1100)

    def test_programs_that_a_method_starts(self):
        """They get signals as usual, and so does a process that was forked and has no thread that waits for them."""
        ask = "grep SigBlk /proc/self/status"
        pathlib.Path(self.path("mine.py")).write_text(f"""
import os, signal, subprocess, sys
class Own:
    def make(self, budget, seed):
        subprocess.run({ask.split()!r}, stdout=sys.stderr)
        os.system({ask + " >&2"!r})
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            child = os.fork()
            if child == 0:
                signal.pause()
            os.kill(child, number)
            print("ended by", os.WTERMSIG(os.waitpid(child, 0)[1]), file=sys.stderr)
        return [0]
""")
        done = subprocess.run([PROGRAM, "replay", self.trace, "-m", self.path("mine.py") + ":Own", "-b", "24",
                               "--layers", "0", "--heads", "0"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stderr.count("SigBlk:\t0000000000000000"), 2, done.stderr)
        for number in (15, 2, 1):
            self.assertIn(f"ended by {number}\n", done.stderr)

    def test_compositions_of_many_parts(self):
        for name in ("snapkv" + "+int8" * 8000, "int8+" * 8000 + "int8", f"{SELECTIONS}:Recent" + "+int8" * 8000,
                     "snapkv+int8+int4"):
            with self.refuses("one \\+|no composition|METHOD\\+QUANTISER"):
                self.rows(name)
