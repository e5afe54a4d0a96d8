# SPDX-License-Identifier: Apache-2.0
"""Every file of configs/ passes `kvbench sweep --dry-run` without changes."""
import pathlib
import subprocess
import sys
import unittest

KVBENCH, FOLDER = sys.argv[1:3]


class Configs(unittest.TestCase):
    def test_dry_runs(self):
        files = sorted(pathlib.Path(FOLDER).glob("*.toml"))
        self.assertGreater(len(files), 0)
        for path in files:
            with self.subTest(path.name):
                done = subprocess.run([KVBENCH, "sweep", str(path), "--dry-run"], capture_output=True, text=True,
                                      timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(path.stem + "\n", done.stdout)  # the sweep has the name of its file
