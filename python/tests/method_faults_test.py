# SPDX-License-Identifier: Apache-2.0
"""Methods written in Python that fail, break the contract, look for what they may not see, or never return."""
import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
from support import PACKAGE, SAMPLE, PackageTest, kvbench

PROGRAM = sys.argv[3]
FAULTS = str(PACKAGE / "tests" / "methods" / "faults.py")

STATUS = {  # status, and words of the reason; returned_test.py has what single functions return
    "TooMany": ("failed", "25 entries", "a budget of 24", "allow 24"),
    "Well": ("ok", ""),
    "TakesNothing": ("failed", "tokens returned 0"),
    "TooLarge": ("failed", "footprint() holds", "a budget of 24"),
    "Retrieves": ("failed", "30 different entries have answered queries"),
    "NoFootprint": ("failed", "no footprint()"),
    "NoObserve": ("failed", "no observe()"),
    "Weighted": ("failed", "weights", '"meta"'),
    "Uneven": ("failed", "different numbers of tables"),
    "Writes": ("failed", "read-only"),
    "Divides": ("failed", "ZeroDivisionError: by zero"),
    "DividesInPrepare": ("failed", "ZeroDivisionError: by zero"),
    "Lacks": ("skipped", "the trace has no colour"),
    "LacksInPrepare": ("skipped", "the trace has no colour"),
    "Cannot": ("infeasible", "needs a larger budget"),
    "SaysNothing": ("infeasible", "Infeasible, without a sentence"),
    "Exits": ("failed", "SystemExit: 0"),
    "Exhausts": ("failed", "MemoryError"),
    "Long": ("failed", "last line"),
}


class Faults(PackageTest):
    def test_each_fault_is_a_row(self):
        trace = self.synth("t.h5")
        methods = [f"{FAULTS}:{name}" for name in STATUS]
        rows = kvbench.replay(trace, [*methods, "sink"], 24, rows="trace", layers=0)
        self.assertEqual([row["method"] for row in rows], [*methods, "sink"])
        self.assertEqual(rows[-1]["status"], "ok")
        for row, (name, (status, *words)) in zip(rows, STATUS.items()):
            with self.subTest(name):
                self.assertEqual(row["status"], status, row["reason"])
                for word in words:
                    self.assertIn(word, row["reason"] or "")

    def test_a_traceback(self):
        for flags, shown in (([], False), (["--verbose"], True)):
            done = subprocess.run([PROGRAM, "replay", SAMPLE, "-m", f"{FAULTS}:Divides", "-b", "24,32", "--layers", "2",
                                   *flags], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr.count('faults.py", line '), 1 if shown else 0, done.stderr)
            self.assertEqual(done.stderr.count("ZeroDivisionError: by zero"), 1 if shown else 0)
            self.assertIn("ZeroDivisionError: by zero", done.stdout)

    def test_what_a_method_prints_is_no_result(self):
        pathlib.Path(self.path("mine.py")).write_text(
            "class Own:\n    def make(self, budget, seed):\n        print('hello')\n"
            "        return list(range(budget))\n")
        done = subprocess.run([PROGRAM, "replay", SAMPLE, "-m", self.path("mine.py") + ":Own", "--layers", "2"],
                              capture_output=True, text=True)
        self.assertNotIn("hello", done.stdout)
        self.assertIn("hello", done.stderr)

    def test_ctrl_c_in_a_method_that_never_returns(self):
        for program in ([PROGRAM, "replay", SAMPLE, "-m", f"{FAULTS}:Spins"],
                        [sys.executable, "-c", LONG.format(str(PACKAGE), os.environ["KVBENCH_EXTENSION"]), SAMPLE,
                         FAULTS]):
            process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(3)
            self.assertIsNone(process.poll())
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=20)
            if "-c" in program:
                interrupted, again = stdout.split()
                self.assertLess(float(interrupted) - begin, 1.5)
                self.assertEqual((again, process.returncode), ("ok", 0), stderr)
            else:
                self.assertLess(time.monotonic() - begin, 1.5)
                self.assertEqual(process.returncode, 130)


LONG = """
import sys, time
sys.path.insert(0, {0!r})
import kvbench
kvbench.__path__.append({1!r})
try:
    kvbench.replay(sys.argv[1], sys.argv[2] + ":Spins", 24)
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
rows = kvbench.replay(sys.argv[1], sys.argv[2] + ":Well", 24, layers=2, prompts=0, rows="trace")
print(rows[0]["status"])
"""


def reachable():
    """All arrays that a container made since gc.freeze(), a module of kvbench, or a variable of a function that runs
    refers to, and those behind them."""
    found = {}
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith("kvbench")]
    todo = [referent for one in [*gc.get_objects(), *modules] for referent in gc.get_referents(one)]
    for thread, frame in sys._current_frames().items():
        if thread == threading.get_ident():  # this function: what it holds would be found by the next call
            frame = frame.f_back
        while frame is not None:
            todo += frame.f_locals.values()
            frame = frame.f_back
    for one in todo:
        while isinstance(one, (np.ndarray, memoryview)) and id(one) not in found:
            found[id(one)] = one
            one = one.base if isinstance(one, np.ndarray) else one.obj
    return [one for one in found.values() if isinstance(one, np.ndarray) and one.dtype == np.float32]


class Peeking:
    """Looks for queries, whose first number tells their position."""
    observes, found, asked = True, set(), []

    def look(self, now):
        for array in reachable():
            if array.ndim > 0 and array.shape[-1] == 16:
                first = array.reshape(-1, 16)[:, 0]
                self.found.update((now, int(position)) for position in first[first >= 1000] - 1000)

    def prepare(self, head):
        self.head = head
        self.look(-1)

    def make(self, budget, seed):
        return self

    def append(self, keys, values, positions):
        self.look(int(positions[0]) - 1)

    def entries(self, queries):
        self.asked.append(queries.position)
        self.look(queries.position)
        return np.arange(4)

    def observe(self, weights):
        self.look(self.asked[-1])

    def footprint(self):
        return 4


class Information(PackageTest):
    def test_no_query_is_visible_before_it_is_answered(self):
        tokens, context = 40, 32
        header = kvbench.Header(model="small", num_layers=1, num_query_heads=2, num_kv_heads=1, head_dim=16,
                                value_dim=16, rope_type="none", rope_layout="half", dtype="f32")
        positions = np.arange(24, tokens)
        queries = np.zeros((2, len(positions), 16), np.float32)
        queries[:, :, 0] = 1000 + positions
        rows = np.random.default_rng(1).normal(size=(1, tokens, 16)).astype(np.float32)
        with kvbench.TraceWriter(self.path("t.h5"), header) as out:
            out.prompt("0", kvbench.PromptInfo(name="a", tokens=np.arange(tokens), prompt_tokens=context))
            out.layer("0", 0, kvbench.LayerInfo(scale=1e-6, rope_theta=1e4, query_positions=positions), keys=rows,
                      values=rows, queries=queries)
        del queries
        gc.freeze()
        self.addCleanup(gc.unfreeze)
        for protocol in ("decode", "prefill"):
            gc.collect()  # what the replay before has left is no longer reachable
            Peeking.found, Peeking.asked = set(), []
            rows = kvbench.replay(self.path("t.h5"), Peeking, 4, protocol=protocol, rows="trace")
            self.assertEqual(rows[0]["status"], "ok", rows[0]["reason"])
            self.assertEqual(Peeking.asked, list(range(context, tokens)))
            seen = {position for _, position in Peeking.found}
            self.assertEqual(seen, set(positions))  # the test finds queries where they are visible
            for now, position in Peeking.found:
                self.assertTrue(position <= now or position < context, (now, position))

    def test_arrays_are_copies_that_cannot_be_written(self):
        heads = []

        class Looks:
            def prepare(self, head):
                heads.append(head)

            def make(self, budget, seed):
                return np.arange(budget)
        kvbench.replay(SAMPLE, Looks, 24, layers=2, prompts=0, threads=1)
        for head in heads:
            for name in ("keys", "values", "observed", "column_sums"):
                array = getattr(head, name)
                self.assertEqual((array.dtype, array.flags.writeable, array.flags.owndata), (np.float32, False, False))
                with self.assertRaises(ValueError):
                    array[0] = 0
        self.assertEqual([head.kv_head for head in heads], [0, 1, 2])
        with kvbench.Trace(SAMPLE) as trace:  # the arrays outlive the replay
            layer = trace.prompts["0"].layers[2]
            for head in heads:
                self.assertTrue((layer.keys(head.kv_head)[:head.tokens] == head.keys).all())
