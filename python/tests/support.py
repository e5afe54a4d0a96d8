# SPDX-License-Identifier: Apache-2.0
"""Common parts of the tests of the package: a Python with h5py and numpy, running kvbench, a scratch folder, a small
trace."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import environment

KVBENCH, SAMPLE = sys.argv[1:3]
PACKAGE = pathlib.Path(__file__).resolve().parent.parent

environment.use(["h5py", "numpy"], "KVBENCH_PYTHON", "venv", "scripts/fetch-model")
sys.path.insert(0, str(PACKAGE))
import kvbench  # noqa: E402

if os.environ.get("KVBENCH_EXTENSION"):  # the folder of kvbench._core in a build
    kvbench.__path__.append(os.environ["KVBENCH_EXTENSION"])


def run(*args, **options):
    """Runs kvbench, asserts that it succeeds, and returns its standard output."""
    done = subprocess.run([KVBENCH, *map(str, args)], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def replaced(words, others):
    """The words of a command line with the words `others`, whose flags take the place of its own."""
    kept = True
    return [word for word in words
            if (kept := str(word) not in others if str(word).startswith("-") else kept)] + list(others)


class PackageTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kvbench-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, text, name):
        with open(self.path(name), "w", newline="") as file:
            file.write(text)
        return self.path(name)

    def synth(self, name, *flags, d=16, dv=12):
        """A trace of two layers with 4 query heads on 2 kv heads; queries at positions 160..255 of 256, and a context
        of 192."""
        run("synth", "-o", self.path(name), "--tokens", 256, "--prompt-tokens", 192, "--queries", 96, "--layers", 2,
            "--query-heads", 4, "--kv-heads", 2, "--head-dim", d, "--value-dim", dv, *flags)
        return self.path(name)

    def replay(self, trace, *flags):
        """The rows of a replay, as dicts."""
        run("replay", trace, "--no-times", *flags, "-o", self.path("rows.csv"))
        return kvbench.load_csv(self.path("rows.csv"))

    def refuses(self, *words):
        """Asserts in a with statement that an Error with all these words is raised."""
        pattern = "(?s)" + "".join(f"(?=.*{word})" for word in words)
        return self.assertRaisesRegex(kvbench.Error, pattern)
