# SPDX-License-Identifier: Apache-2.0
"""Interrupted sweeps, and sweeps in shards: finished cells are kept, and the tables are the same to the byte."""
import os
import resource
import signal
import subprocess
import time
import unittest

from support import KVBENCH, SweepTest, rows, run

# Long enough on the slow back end to be interrupted in the middle; many work items, so that some are finished by then.
LONG = """
[[run]]
name = "a"
traces = ["t.h5", "u.h5"]
methods = ["uniform", "snapkv", "infinigen", "subgen"]
budgets = ["5%", "10%", "20%", "30%"]
seeds = 20
[[run]]
name = "b"
traces = "t.h5"
methods = "exact"
measure = "similarity-by-distance"
"""
SHORT = LONG.replace("seeds = 20", "seeds = 2")
FLAGS = ("--no-times", "--rows", "head")


class ResumeTest(SweepTest):
    def setUp(self):
        super().setUp()
        self.synth("u.h5", "--seed", 5)

    def stopped(self, config, number):
        """Starts a sweep that writes o.csv, and sends it a signal when it has finished some cells. Returns its exit
        code and stderr."""
        process = subprocess.Popen([KVBENCH, "sweep", config, "--device", "ref", "-o", self.path("o.csv"), *FLAGS],
                                   stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 60
        while not os.path.exists(self.path("o.csv.cells")) or os.path.getsize(self.path("o.csv.cells")) < 1_000_000:
            self.assertLess(time.time(), deadline)
            self.assertIsNone(process.poll(), "the sweep ended before it could be stopped")
            time.sleep(0.02)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
        return process.returncode, stderr


class Resume(ResumeTest):
    def test_signals_in_the_middle(self):
        config = self.write(LONG)
        self.succeeds("sweep", config, "--device", "ref", "-o", self.path("whole.csv"), *FLAGS)
        for number, code in ((signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 130)):
            returned, stderr = self.stopped(config, number)
            self.assertEqual(returned, code, stderr)
            self.assertFalse(os.path.exists(self.path("o.csv")))
            if code == 130:
                self.assertIn("the same command and --resume", stderr)
            self.fails(2, "o.csv.cells", "--resume", "--overwrite",
                       args=["sweep", config, "--device", "ref", "-o", self.path("o.csv"), *FLAGS])
            done = self.succeeds("sweep", config, "--device", "ref", "-o", self.path("o.csv"), "--resume", *FLAGS)
            self.assertRegex(done.stderr, r"o\.csv\.cells: [1-9][0-9]* of 40 cells are already computed\n")
            self.assertEqual(self.read_bytes("o.csv"), self.read_bytes("whole.csv"))
            self.assertEqual(self.read_bytes("o.measures.csv"), self.read_bytes("whole.measures.csv"))
            self.assertFalse(os.path.exists(self.path("o.csv.cells")))
            os.remove(self.path("o.csv"))

    @unittest.skipIf(os.environ.get("KVBENCH_SANITIZE") == "thread",
                     "the limit also holds for the runtime of ThreadSanitizer")
    def test_full_disk(self):
        config = self.write(SHORT)
        self.succeeds("sweep", config, "-o", self.path("whole.csv"), *FLAGS)
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        done = run("sweep", config, "-o", self.path("o.csv"), *FLAGS, preexec_fn=limit, restore_signals=False)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("--resume", done.stderr)
        self.assertFalse(os.path.exists(self.path("o.csv")))
        self.succeeds("sweep", config, "-o", self.path("o.csv"), "--resume", *FLAGS)
        self.assertEqual(self.read_bytes("o.csv"), self.read_bytes("whole.csv"))

    def test_changed_inputs_are_noticed(self):
        config = self.write(SHORT)
        args = ("sweep", config, "-o", self.path("o.csv"), "--cells", self.path("c.cells"), "--resume", *FLAGS)
        self.assertNotIn("cells are already computed", self.succeeds(*args).stderr)
        before = self.read_bytes("o.csv")
        self.assertIn("40 of 40 cells are already computed\n", self.succeeds(*args).stderr)
        self.assertEqual(self.read_bytes("o.csv"), before)
        self.synth("u.h5", "--seed", 6)
        changed = self.succeeds(*args).stderr
        self.assertIn("24 of 40 cells are already computed; the sweep file, a trace", changed)
        now = rows(self.read_bytes("o.csv").decode())
        old = rows(before.decode())
        self.assertEqual([r for r in now if r["trace"] == "t.h5"], [r for r in old if r["trace"] == "t.h5"])
        self.assertNotEqual([r["rel_err_mean"] for r in now], [r["rel_err_mean"] for r in old])
        self.write(SHORT.replace('"5%", ', ""))
        self.assertIn("8 of 40 cells are already computed; ", self.succeeds(*args).stderr)   # those of run b
        size = os.path.getsize(self.path("c.cells"))
        self.succeeds(*(a if a != "--resume" else "--overwrite" for a in args))
        self.assertLess(os.path.getsize(self.path("c.cells")), size / 2)


class Shards(ResumeTest):
    def shards(self, config, count, *flags):
        names = [self.path(f"part {i}.cells") for i in range(1, count + 1)]
        for i, name in enumerate(names, 1):
            done = self.succeeds("sweep", config, "--shard", f"{i}/{count}", "--cells", name, *flags)
            self.assertEqual(done.stdout, "")
        return names

    def test_merged_shards_are_the_whole(self):
        config = self.write(SHORT)
        self.succeeds("sweep", config, "-o", self.path("whole.csv"), *FLAGS)
        for count in (1, 3, 50):
            names = self.shards(config, count, "--threads", count % 3 + 1)
            self.succeeds("merge", *reversed(names), "-o", self.path("o.csv"), *FLAGS)
            self.assertEqual(self.read_bytes("o.csv"), self.read_bytes("whole.csv"))
            self.assertEqual(self.read_bytes("o.measures.csv"), self.read_bytes("whole.measures.csv"))
            for name in names:
                os.remove(name)

    def test_missing_duplicate_and_conflicting_cells(self):
        config = self.write(SHORT)
        names = self.shards(config, 3)
        out = ("-o", self.path("o.csv"), *FLAGS)
        self.fails(2, "cells of sweep 's' are missing", "--partial", "(run 'a')",
                   args=["merge", names[0], names[2], *out])
        self.assertFalse(os.path.exists(self.path("o.csv")))
        partial = self.succeeds("merge", names[0], names[2], "--partial", *out)
        self.assertIn("are left out of the rows", partial.stderr)
        self.assertIn("not computed", self.read_bytes("o.csv").decode())
        again = self.path("again.cells")
        self.succeeds("sweep", config, "--shard", "1/2", "--cells", again)
        self.assertRegex(self.succeeds("merge", *names, again, *out).stderr,
                         "[0-9]+ cells are in more than one file, with equal")
        other = self.path("other.cells")
        self.succeeds("sweep", config, "--shard", "1/2", "--cells", other, "--isa", "scalar")
        self.fails(2, "do not belong to the same sweep: instruction set", "scalar", args=["merge", *names, other, *out])
