# SPDX-License-Identifier: Apache-2.0
"""scripts/region-table on errors and measurements that are worked out by hand."""
import csv
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PACKAGE = pathlib.Path(__file__).parents[1]
SCRIPT = PACKAGE.parent / "scripts" / "region-table"


class RegionTable(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, rows):
        with open(os.path.join(self.folder.name, name), "w", newline="") as file:
            rows = [{"status": "ok", "params": "", "budget": "25%mem", **row} for row in rows]
            out = csv.DictWriter(file, sorted(set().union(*rows)))
            out.writeheader()
            out.writerows(rows)

    def model(self, name, *documents, exact=True):
        """The argument for a model: of each document, {method: ([error of each layer], predicted, measured)}."""
        replay, measured = [], []
        for number, document in enumerate(documents):
            for method, (errors, predicted, kl) in document.items():
                for layer, error in enumerate(errors):
                    # x and W_O z of equal size: e is the error relative to x, over sqrt(2)
                    figures = {"residual_err_rms": error * 2 ** 0.5, "rel_err_rms": error * 2 ** 0.5}
                    replay.append({"method": method, "prompt": number, "layer": layer, **figures,
                                   "stream_err_rms": error if exact else ""})
                replay.append({"method": method, "prompt": number, "layer": "all", "kl_predicted": predicted,
                               "residual_err_rms": 9, "rel_err_rms": 9, "kept_fraction": 0.25})
                measured.append({"method": method, "document": "xyz"[number], "layer": "all", "kl_mean": kl})
        replay.append({"method": "a", "prompt": "all", "layer": "all", "kl_predicted": 77})
        measured.append({"method": "a", "document": "all", "layer": "all", "kl_mean": 77})
        self.write(f"{name}-measured.csv", measured[::-1])
        self.write(f"{name}-replay.csv", replay)
        return f"{name}={name}-measured.csv,{name}-replay.csv"

    def table(self, *arguments, code=0):
        """What is printed; what is said, where it ends with another code."""
        paths = os.pathsep.join([str(PACKAGE), *sys.path])
        done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True,
                              cwd=self.folder.name, env={**os.environ, "PYTHONPATH": paths})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr if code else done.stdout

    def test_anchors_correct_the_rows_of_their_kind(self):
        # h2o and snapkv are anchors at a quarter: ratios 2 and 8, so 4. Of the others tova is 12 times too small and 3
        # times then, knorm 4 times and right then; sink is marked.
        model = self.model("m", {"h2o": ([0.1], 0.01, 0.02), "snapkv": ([0.1], 0.01, 0.08), "tova": ([0.1], 0.01, 0.12),
                                 "knorm": ([0.1], 0.01, 0.04), "sink": ([0.5], 0.01, 9)})
        said = self.table(model)
        self.assertIn("| m | dropped or merged | 2 | 4.00 | 2 of 2 | 0 of 2 | 0 of 2 | 1 of 2 |", said)
        self.assertIn("| m | both | 0 | 1.00 | 0 of 0 | 0 of 0 | 0 of 0 | 0 of 0 |", said)

    def test_worst_layer_and_limits(self):
        mild = self.model("mild", {"a": ([0.1, 0.05], 0.01, 0.011), "b": ([0.1, 0.24], 0.02, 0.01)})
        steep = self.model("steep", {"c": ([0.02, 0.26, 0.1], 0.02, 0.5), "d": ([0.1, 0.1, 0.25], 0.03, 0.04),
                                     "e": ([0.5, 0.1, 0.1], 0.02, 2), "f": ([0.01, 0.1, 0.45], 0.02, 0.02)})
        said = self.table(mild, steep, "--rows", "steep")
        # 0.3 leaves c unmarked (25 times too small) and marks f, one of two rows within a factor of 2
        self.assertIn("| steep | 1 | 0.3 | 1 of 2 | 1 of 2 | 1 of 2 | 1 of 2 |", said)
        # d and f differ by a factor of 2, all other pairs by more than 3
        self.assertIn("| steep | 1 | none | 2 of 4 | 0 of 2 | 2 of 4 | 0 of 2 | 1.00 of 1 |", said)
        self.assertIn("| mild | 1 | 0.3 | 0 of 2 | 0 of 2 | 0 of 2 | 0 of 2 | 0.00 of 1 |", said)
        self.assertIn("| e 25%mem | 0.500 | 0 | 0.02 | 2 | 100.00 | 100.00 to 100.00 |", said)
        self.assertIn("| c 25%mem | 0.260 | 1 | 0.02 | 0.5 | 25.00 | 25.00 to 25.00 |", said)

    def test_rows_that_are_kept_give_the_same_tables(self):
        model = self.model("m", {"a": ([0.1, 0.251], 0.0123, 0.4), "h2o+q8_0": ([0.3012, 0.02], 0.02, 0.03)},
                           {"a": ([0.2, 0.05], 0.01, 0.011), "h2o+q8_0": ([0.1, 0.4], 0.02, 0.01)})
        self.assertEqual(self.table("--keep", "kept.json.xz", model), "")
        self.assertEqual(self.table("m=kept.json.xz", "--rows", "m"), self.table(model, "--rows", "m"))
        both = self.table("m=kept.json.xz", self.model("other", {"a": ([0.9], 0.01, 1)}))   # another model beside it
        self.assertIn("| other | 1 | 0.3 | 0 of 0 |", both)
        self.assertIn("kept.json.xz has stream_err_rms alone",
                      self.table("m=kept.json.xz", "--figure", "rel_err_rms", code=2))

    def test_a_replay_without_the_column_has_it_from_two_others(self):
        exact = self.table(self.model("m", {"a": ([0.3, 0.1], 0.01, 0.011)}), "--rows", "m")
        without = self.table(self.model("m", {"a": ([0.3, 0.1], 0.01, 0.011)}, exact=False), "--rows", "m")
        self.assertEqual(exact.replace("0.300", ""), without.replace("0.300", ""))
        self.assertIn("| a 25%mem | 0.300 | 0 |", without)
        other = self.table("m=m-measured.csv,m-replay.csv", "--rows", "m", "--figure", "rel_err_rms")
        self.assertIn("| a 25%mem | 0.424 | 0 |", other)   # 0.3 sqrt(2)

    def test_over_documents_means_and_root_mean_squares(self):
        model = self.model("m", {"a": ([0.1, 0.34], 0.01, 0.01)}, {"a": ([0.2, 0.22], 0.03, 0.13)})
        said = self.table(model, "--rows", "m")
        # sqrt((0.34^2 + 0.22^2) / 2) = 0.2864
        self.assertIn("| a 25%mem | 0.286 | 1 | 0.02 | 0.07 | 3.50 | 1.00 to 4.33 |", said)
        # of documents: the first within a factor of 2 and marked, the second 4.3 times too small and not marked
        self.assertIn("| m | 2 | 0.3 | 1 of 1 | 1 of 1 | 1 of 1 | 0 of 0 |", said)
