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
    """A class has a folder with the small trace t.h5; what a test adds to it is removed after the test."""
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="kvbench-")
        cls.trace = cls.synth("t.h5")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)

    @classmethod
    def synth(cls, name, *flags, queries=96):
        cls.ok("synth", "-o", cls.path(name), "--tokens", 256, "--prompt-tokens", 192, "--queries", queries, "--layers",
               2, "--query-heads", 4, "--kv-heads", 2, "--head-dim", 16, "--value-dim", 16, *flags)
        return cls.path(name)

    def setUp(self):
        before = os.listdir(self.folder)

        def clean():
            for name in set(os.listdir(self.folder)) - set(before):
                path = self.path(name)
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
        self.addCleanup(clean)

    @classmethod
    def write(cls, text, name="s.toml"):
        with open(cls.path(name), "w") as file:
            file.write(text)
        return cls.path(name)

    @classmethod
    def read(cls, name):
        with open(cls.path(name)) as file:
            return file.read()

    @classmethod
    def read_bytes(cls, name):
        with open(cls.path(name), "rb") as file:
            return file.read()

    @staticmethod
    def succeeds(*args, **options):
        """The finished process of a command that must end with exit code 0."""
        done = run(*args, **options)
        assert done.returncode == 0, done.stderr
        return done

    @classmethod
    def ok(cls, *args, **options):
        """Its standard output."""
        return cls.succeeds(*args, **options).stdout

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
    def sweep(self, text, *flags):
        return self.ok("sweep", self.write(text), *flags)
