# SPDX-License-Identifier: Apache-2.0
"""kvbench.replay(): the rows of the program, its errors, and Ctrl-C."""
import hashlib
import os
import pathlib
import signal
import subprocess
import sys
import time

from support import PACKAGE, SAMPLE, PackageTest, kvbench, run

FLAGS = ["--layers", "2,26", "--seeds", "2", "--rows", "head", "--no-times"]
NAMED = {"layers": [2, 26], "seeds": 2, "rows": "head", "no_times": True}
START = f"import os, sys, time; sys.path.insert(0, {str(PACKAGE)!r}); import kvbench; kvbench.__path__.append({{!r}})"
LONG = """
from kvbench import _core
def replay(seeds):
    return kvbench.replay(sys.argv[1], ["mesh", "random"], 64, device="ref", seeds=seeds, layers=2, prompts=0)
print("begin", flush=True)
try:
    replay(100000)
except KeyboardInterrupt:
    print("interrupted", time.monotonic(), flush=True)
replay(1)
print("again", flush=True)
"""


class Replay(PackageTest):
    def test_rows_are_those_of_the_program(self):
        methods, out = "sink,snapkv[window=16,kernel=3],uniform", self.path("own.csv")
        expected = run("replay", SAMPLE, "-m", methods, "-b", "25%mem,64", *FLAGS)
        listed = ["sink", "snapkv[window=16,kernel=3]", "uniform"]
        rows = kvbench.replay(SAMPLE, listed, ["25%mem", 64], output=out, **NAMED)
        self.assertEqual(pathlib.Path(out).read_text(), expected)
        self.assertEqual(len(rows), len(expected.splitlines()) - 1)
        family = kvbench.replay(SAMPLE, ["exact", "sampling", "-uniform-repo", "-balancekv-repo"], "25%", layers=2,
                                prompts=0, seeds=1, rows="trace")
        self.assertEqual([row["method"] for row in family],
                         ["exact", "uniform", "subgen", "balancekv", "kh-compress"])
        for threads in (1, 3):
            kvbench.replay(SAMPLE, methods, ["25%mem", 64], output=out, threads=threads, **NAMED)
            self.assertEqual(pathlib.Path(out).read_text(), expected)

    def test_a_trace_that_h5py_has_opened(self):
        expected = run("replay", SAMPLE, "-m", "sink", "--layers", "2", "--no-times")
        with kvbench.Trace(SAMPLE) as trace:
            before = trace.prompts["0"].layers[2].keys(0)
            kvbench.replay(trace, "sink", layers=2, no_times=True, output=self.path("own.csv"))
            self.assertTrue((trace.prompts["0"].layers[2].keys(0) == before).all())
        self.assertEqual(pathlib.Path(self.path("own.csv")).read_text(), expected)

    def test_an_interruption_and_another_replay(self):
        code = START.format(os.environ["KVBENCH_EXTENSION"]) + LONG
        process = subprocess.Popen([sys.executable, "-c", code, SAMPLE], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "begin\n")
        time.sleep(1)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        answer = process.stdout.readline().split()
        self.assertEqual(answer[:1], ["interrupted"], process.stderr.read() if not answer else "")
        self.assertLess(float(answer[1]) - begin, 1.5)
        self.assertEqual(process.stdout.readline(), "again\n")
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)

    def test_an_output_replaces_no_file_that_the_same_command_reads(self):
        trace, rows = self.synth("t.h5"), self.path("rows.csv")
        digest = self.write(f"{hashlib.sha256(pathlib.Path(trace).read_bytes()).hexdigest()}  t.h5\n", "t.h5.sha256")
        before = pathlib.Path(digest).read_bytes()
        with self.refuses("is an input of this run"):
            kvbench.replay(trace, "sink", output=digest)
        self.assertEqual(pathlib.Path(digest).read_bytes(), before)
        kvbench.replay(trace, "sink", output=rows)
        kvbench.report(rows)  # reads what the next command replaces
        kvbench.replay(trace, "random", output=rows, seeds=1)
        self.assertIn("random", pathlib.Path(rows).read_text())

    def test_without_the_extension(self):
        code = f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); import kvbench; kvbench.replay(sys.argv[1], 'sink')"
        done = subprocess.run([sys.executable, "-c", code, SAMPLE], capture_output=True, text=True,
                              cwd=self.folder, timeout=60)
        self.assertIn("run `pip install .` in a clone of kvbench", done.stderr)
