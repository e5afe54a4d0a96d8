# SPDX-License-Identifier: Apache-2.0
"""Rows: reading result CSVs with typed columns, and data frames of them."""
import math
import unittest

from support import PackageTest, kvbench, run
from kvbench.results import rows as results

try:
    import pandas
except ImportError:
    pandas = None


class Results(PackageTest):
    def setUp(self):
        super().setUp()
        self.csv = self.path("rows.csv")
        run("replay", self.synth("t.h5"), "-m", "sink,random", "-b", "48,25%", "--seeds", 2, "--rows", "head",
            "--no-times", "-o", self.csv)

    def test_kinds_are_those_of_the_program(self):
        kinds = dict(line.split()[:2] for command in ("eval", "replay")
                     for line in run(command, "--columns").splitlines())
        self.assertEqual(results.TEXT, {name for name, kind in kinds.items() if kind == "text"})
        self.assertEqual(results.INTEGER, {name for name, kind in kinds.items() if kind == "integer"})

    def test_typed_dicts(self):
        rows = kvbench.load_csv(self.csv)
        self.assertIs(type(rows), kvbench.Rows)
        self.assertEqual({tuple(row) for row in rows}, {tuple(rows.columns)})
        # Two methods at two budgets: one row over all layers, 2 rows per layer, and 2 * 4 rows per head (random: for
        # each of its 2 seeds).
        self.assertEqual(len(rows), 2 * 2 * 3 + 2 * 8 + 2 * 8 * 2)
        self.assertEqual({r["layer"] for r in rows}, {"all", 0, 1})
        self.assertEqual({r["budget"] for r in rows}, {"48", "25%"})
        self.assertEqual({r["seed"] for r in rows if r["method"] == "random"}, {"all", 0, 1})
        for r in rows:
            self.assertEqual((r["status"], r["query_rows"] > 0, r["reason"]), ("ok", True, r["reason"]))
            self.assertIsInstance(r["rel_err_mean"], float)
            self.assertIsInstance(r["prompt"], str)
            self.assertIsNone(r["run"])
            self.assertIsNone(r["cache_hit_r1_mean"])

    @unittest.skipUnless(pandas, "pandas is not installed")
    def test_a_frame_says_the_same(self):
        rows = kvbench.load_csv(self.csv)
        frame = rows.to_pandas()
        self.assertIsInstance(frame, pandas.DataFrame)
        for ours, theirs in zip(frame.to_dict("records"), rows, strict=True):
            for column, value in theirs.items():
                if value is None:
                    self.assertTrue(ours[column] is None or math.isnan(ours[column]), column)
                else:
                    self.assertEqual(ours[column], value, column)
        self.assertEqual({str(frame[name].dtype) for name in ("rel_err_mean", "cache_hit_r1_mean")}, {"float64"})
        self.assertEqual(len(frame[(frame.method == "sink") & (frame.layer == 1) & (frame.budget == "48")]), 1 + 4)

    def test_texts_that_a_spreadsheet_would_compute(self):
        with open(self.csv, newline="") as file:
            text = file.read()
        self.csv = self.write(text.replace(",sink,", ",'=1+1,").replace(",random,", ",''@,"), "protected.csv")
        self.assertEqual({r["method"] for r in kvbench.load_csv(self.csv)}, {"=1+1", "'@"})

    def test_tables_without_rows(self):
        with open(self.csv, newline="") as file:
            empty = kvbench.load_csv(self.write(file.readline(), "empty.csv"))
        self.assertEqual((len(empty), empty.columns[:1]), (0, ["run"]))
        results.save_csv(empty, self.path("again.csv"), "test")
        self.assertEqual(kvbench.load_csv(self.path("again.csv")).columns, empty.columns)

    def test_a_notebook_shows_a_table(self):
        shown = kvbench.Rows([{"method": f"<{n}>", "error": n / 3, "layer": None} for n in range(25)])._repr_html_()
        self.assertIn("<td>&lt;1&gt;</td><td>0.3333</td><td></td>", shown)
        self.assertEqual((shown.count("<tr>"), "5 more rows" in shown), (1 + 20, True))

    def test_other_files_are_refused(self):
        with self.refuses("none.csv", "no such file"):
            kvbench.load_csv(self.path("none.csv"))
        self.write("a,b\n1,2\n", "x.csv")
        with self.refuses("x.csv", "kvbench replay"):
            kvbench.load_csv(self.path("x.csv"))
