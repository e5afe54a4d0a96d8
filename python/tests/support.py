# SPDX-License-Identifier: Apache-2.0
"""What the tests of the package share: an interpreter with h5py and numpy, running kvbench, a scratch folder, a small trace."""
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


def run(*args, **options):
    """Runs kvbench, which must succeed; returns its standard output."""
    done = subprocess.run([KVBENCH, *map(str, args)], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


class PackageTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kvbench-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def synth(self, name, *flags):
        """Two layers, 4 query heads on 2 kv heads of 16 and 12 channels; queries at 160..255 of 256, the context ends at 192."""
        run("synth", "-o", self.path(name), "--tokens", 256, "--prompt-tokens", 192, "--queries", 96, "--layers", 2,
            "--query-heads", 4, "--kv-heads", 2, "--head-dim", 16, "--value-dim", 12, *flags)
        return self.path(name)

    def replay(self, trace, *flags):
        """Rows as dicts."""
        run("replay", trace, "--no-times", *flags, "-o", self.path("rows.csv"))
        rows = kvbench.load_csv(self.path("rows.csv"))
        return rows if isinstance(rows, list) else rows.to_dict("records")

    def refuses(self, *words):
        """A context in which an Error with all these words is raised."""
        pattern = "(?s)" + "".join(f"(?=.*{word})" for word in words)
        return self.assertRaisesRegex(kvbench.Error, pattern)


def main():
    unittest.main(argv=sys.argv[:1])
