# SPDX-License-Identifier: Apache-2.0
"""The program inside Python: the same bytes and exit codes as kvbench, its signals, and two copies of HDF5 in one
process."""
import os
import signal
import subprocess
import sys
import time

from support import KVBENCH, PACKAGE, SAMPLE, PackageTest

PROGRAM = sys.argv[3]
OWN = "from kvbench import _core; assert _core.run_program([b'kvbench', b'info', sys.argv[1].encode()]) == 0"
THEIRS = "import h5py; h5py.File(sys.argv[1])['prompts/0/layers'].visit(lambda name: None)"
START = "import sys; sys.path.insert(0, {!r}); import kvbench; kvbench.__path__.append({!r})"

OWN_METHODS = """import kvbench, numpy as np
@kvbench.scorer
def far(head):
    return np.linalg.norm(head.keys - head.keys.mean(axis=0), axis=1)
@kvbench.scorer
def near(head):
    return -np.linalg.norm(head.keys - head.keys.mean(axis=0), axis=1)
"""


class Program(PackageTest):
    def both(self, *args, **options):
        """What kvbench and the program inside Python do with these arguments."""
        return [subprocess.run([program, *args], capture_output=True, text=True, timeout=300, **options)
                for program in (KVBENCH, PROGRAM)]

    def test_rows_are_the_same_bytes(self):
        plain, inside = self.both("replay", SAMPLE, "-m", "sink,snapkv,uniform", "-b", "25%mem", "--layers", "2,26",
                                  "--no-times")
        self.assertEqual(plain.returncode, 0, plain.stderr)
        self.assertGreater(len(plain.stdout.splitlines()), 9)
        self.assertEqual(inside.stdout, plain.stdout)

    def test_exit_codes_and_messages(self):
        for args in (["replay", "missing.h5", "-m", "sink"], ["replay", SAMPLE, "-m", "snapvk"], [],
                     ["replay", SAMPLE, "-m", "sink", "-o", "/nowhere/x.csv"]):
            with self.subTest(args):
                plain, inside = self.both(*args)
                self.assertNotEqual(plain.returncode, 0)
                self.assertEqual((inside.returncode, inside.stderr), (plain.returncode, plain.stderr))

    def test_a_method_that_breaks_the_contract(self):
        method = f"{PACKAGE / 'tests' / 'methods' / 'faults.py'}:TooMany"
        checked = subprocess.run([PROGRAM, "methods", method, "--check"], capture_output=True, text=True, timeout=300)
        self.assertEqual(checked.returncode, 1, checked.stderr)
        self.assertIn("BROKEN     entries", checked.stdout)
        self.assertIn("entries() returned 2 entries on 1 kv heads", checked.stdout)

    def run_inside(self, *args):
        done = subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_an_own_method_is_named_by_its_end_and_labelled(self):
        mine, table, raw, tex = map(self.path, ("mine.py", "rows.csv", "raw.h5", "tables.tex"))
        with open(mine, "w") as file:
            file.write(OWN_METHODS)
        label = ("--label", "far=Ours")
        printed = self.run_inside("replay", SAMPLE, "-m", f"{mine}:far,{mine}:near,snapkv,h2o,sink", "-b",
                                  "12.5%mem,25%mem", "--layers", "2", "--rows", "trace", "--raw", raw, "-q", "-o",
                                  table, "--summary", *label)
        self.assertRegex(printed, "Your methods: Ours at 12.5%mem x [0-9.]+, at 25%mem x [0-9.]+;")
        compared = self.run_inside("compare", raw, "--a", "far", "--b", "sink", "--format", "csv", *label)
        self.assertIn(",Ours,25%mem,sink,25%mem,", compared)
        self.run_inside("report", table, "-m", "far,sink", *label, "-o", tex)
        with open(tex) as file:
            self.assertIn("\nOurs & ", file.read())

    def test_a_name_that_is_not_utf8(self):
        plain, inside = self.both("info", b"\xff.h5")
        self.assertEqual((inside.returncode, inside.stderr), (plain.returncode, plain.stderr))

    def test_a_pipe_that_is_closed_ends_it(self):
        plain, inside = (subprocess.run(f"'{program}' methods --format csv | head -n 1; echo ${{PIPESTATUS[0]}}",
                                        shell=True, executable="/bin/bash", capture_output=True, text=True)
                         for program in (KVBENCH, PROGRAM))
        self.assertEqual(inside.stderr, plain.stderr)

    def test_interruption(self):
        args = ["replay", SAMPLE, "-m", "all", "--device", "ref", "--seeds", "50", "-o", self.path("rows.csv")]
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([PROGRAM, *args], stderr=subprocess.PIPE, text=True)
            time.sleep(2)
            self.assertIsNone(process.poll())
            begin = time.monotonic()
            process.send_signal(number)
            _, stderr = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, stderr)
            self.assertLess(time.monotonic() - begin, 1.5)
            self.assertEqual(os.listdir(self.folder), [])

    def test_two_copies_of_hdf5(self):
        start = START.format(str(PACKAGE), os.environ["KVBENCH_EXTENSION"])
        for order in ([OWN, THEIRS, OWN], [THEIRS, OWN, THEIRS]):
            code = "\n".join([start, *order])
            done = subprocess.run([sys.executable, "-c", code, SAMPLE], capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
