# SPDX-License-Identifier: Apache-2.0
"""The example that draws figures prints the numbers of the CSV and writes its files."""
import os
import re
import subprocess
import sys

import environment

environment.use(["h5py", "numpy", "matplotlib"], "KVBENCH_PYTHON", "venv", "scripts/fetch-model")
from support import PACKAGE, SAMPLE, PackageTest  # noqa: E402


class Figure(PackageTest):
    def draw(self, *arguments, code=0):
        paths = os.pathsep.join([str(PACKAGE), *sys.path])
        done = subprocess.run([sys.executable, str(PACKAGE / "examples" / "draw_figure.py"), *map(str, arguments)],
                              capture_output=True, text=True, cwd=self.folder, env={**os.environ, "PYTHONPATH": paths})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def result(self, budgets="25%,37.5%,50%"):
        return self.replay(self.synth("t.h5"), "-m", "exact,sink,quest,random,kmeans", "-b", budgets)

    def test_numbers_and_files(self):
        rows = self.result("12.5%,25%,50%")
        said = self.draw("rows.csv", "a.png", "a.svg", "a.pdf")
        rows = [row for row in rows if str(row["layer"]) == "all" and row["method"] != "exact"]
        drawn = [row for row in rows if row["status"] == "ok"]
        for row in rows:
            if row["status"] != "ok":  # the smallest budget is too small for a page of quest
                self.assertIn(f"left out: {row['method']} at {row['budget']}: {row['status']}, {row['reason']}", said)
            else:
                self.assertRegex(said, rf"{row['method']} +{row['kept_fraction']:.4f} +{row['rel_err_mean']:.4f} "
                                       rf"+{row['rel_err_lo']:.4f} \.\.")
        self.assertNotIn("exact", said)
        self.assertEqual((len(re.findall(r"\.\. [0-9]", said)), len(rows)), (len(drawn), 4 * 3), said)
        self.assertGreaterEqual(len(drawn), 4 * 2)
        for name, magic in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")):
            with open(self.path(name), "rb") as file:
                content = file.read()
            self.assertTrue(content.startswith(magic), name)
            self.assertGreater(len(content), 5000)

    def test_choices(self):
        rows = self.result()
        said = self.draw("rows.csv", "b.png", "--methods", "quest,sink", "--cost", "bytes", "--layer", 1)
        self.assertEqual(re.findall(r"^(\w+) +[0-9]", said, re.M), ["quest"] * 3 + ["sink"] * 3)
        for row in rows:
            if row["method"] == "sink" and str(row["layer"]) == "1":
                self.assertRegex(said,
                                 rf"sink +{row['total_bytes'] / row['full_bytes']:.4f} +{row['rel_err_mean']:.4f}")
        self.assertIn("there is kmeans, quest, random, sink", self.draw("rows.csv", "--methods", "quest,h2o", code=1))
        self.assertIn("no row of layer 9", self.draw("rows.csv", "--layer", 9, code=1))
        self.assertIn("ends in .csv", self.draw("a.png", code=2))

    def test_several_prompts_are_one_point(self):
        """The mean over the prompts, or one of them."""
        rows = {row["prompt"]: row for row in self.replay(SAMPLE, "-m", "sink", "-b", "25%", "--heads", "0", "--rows",
                                                          "trace")}
        self.assertGreater(len(rows), 2)
        for flags, prompt in (([], "all"), (["--prompt", "1"], "1")):
            said = re.findall(r"sink +[0-9.]+ +([0-9.]+)", self.draw("rows.csv", "d.svg", *flags))
            self.assertEqual(said, [f"{rows[prompt]['rel_err_mean']:.4f}"])

    def test_several_files_are_one_figure(self):
        """A line per method; one that several files hold has a line per file."""
        trace = self.synth("t.h5")
        for name, methods in (("a.csv", "sink,random"), ("b.csv", "sink,kmeans")):
            self.replay(trace, "-m", methods, "-b", "25%,50%")
            os.rename(self.path("rows.csv"), self.path(name))
        said = self.draw("a.csv", "b.csv", "c.svg", "--title", "two files")
        lines = re.findall(r"^(\w+(?:, \w+\.csv)?) +[0-9]", said, re.M)
        self.assertEqual(lines, [name for name in ("random", "sink, a.csv", "kmeans", "sink, b.csv") for _ in range(2)])
        self.assertTrue(os.path.exists(self.path("c.svg")))
