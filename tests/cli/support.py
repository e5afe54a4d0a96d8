# SPDX-License-Identifier: Apache-2.0
"""Common parts of the command-line tests: running the program, a scratch folder, a small synthetic trace."""
import csv
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

KVBENCH, SPOIL, SAMPLE = sys.argv[1:4]

# clang links it. Where it gets no thread or no shared memory it aborts the process, which no program can prevent.
LLVM_OPENMP = "libomp" in subprocess.run(["ldd", KVBENCH], capture_output=True, text=True).stdout


def run(*args, **options):
    """Runs kvbench; returns the finished process with text output."""
    return subprocess.run([KVBENCH, *map(str, args)], capture_output=True, text=True, timeout=300, **options)


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


class CliTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="kvbench-")
        cls.trace = os.path.join(cls.folder, "t.h5")
        cls.synth("t.h5")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def synth(cls, name, *flags, queries=96):
        path = os.path.join(cls.folder, name)
        made = run("synth", "-o", path, "--tokens", 256, "--prompt-tokens", 192, "--queries", queries, "--layers", 2,
                   "--query-heads", 4, "--kv-heads", 2, "--head-dim", 16, "--value-dim", 16, *flags)
        assert made.returncode == 0, made.stderr
        return path

    def fails(self, code, *words, args, **options):
        """Asserts that the command ends with exit code `code`, prints all `words` on stderr, and prints nothing on
        stdout."""
        done = run(*args, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        for word in words:
            self.assertIn(word, done.stderr)
        return done.stderr

    def only_files(self, *names):
        """Asserts that the scratch folder holds these files and no others, not even temporary ones."""
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(names))


class SweepTest(CliTest):
    def write(self, text, name="s.toml"):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def tearDown(self):
        for name in os.listdir(self.folder):
            if name != "t.h5":
                os.remove(os.path.join(self.folder, name))

    def sweep(self, text, *flags):
        done = run("sweep", self.write(text), *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


def main():
    unittest.main(argv=sys.argv[:1])
