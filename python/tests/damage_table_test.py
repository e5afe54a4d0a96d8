# SPDX-License-Identifier: Apache-2.0
"""scripts/damage-table against measurements that are known multiples of the predictions."""
import csv
import os
import pathlib
import re
import subprocess
import sys

from support import PACKAGE, PackageTest, kvbench
import numpy as np

SCRIPT = pathlib.Path(PACKAGE).parent / "scripts" / "damage-table"
LAYERS, TEXTS = 15, 6


class DamageTable(PackageTest):
    def trace(self):
        random = np.random.default_rng(0)
        header = kvbench.Header(model="m", num_layers=LAYERS, num_query_heads=2, num_kv_heads=1, head_dim=4,
                                value_dim=4, rope_type="none")
        with kvbench.TraceWriter(self.path("t.h5"), header) as out:
            for text in range(TEXTS):
                probes = kvbench.Probes(count=8, tokens=8, seed=text)
                out.prompt(str(text), kvbench.PromptInfo(name=f"text{text}", tokens=random.integers(9, size=40),
                                                         prompt_tokens=32, probes=probes))
                for layer in range(LAYERS):
                    arrays = {name: random.normal(size=shape) for name, shape in dict(
                        keys=(1, 40, 4), values=(1, 40, 4), queries=(2, 8, 4), probes=(2, 8, 8, 4)).items()}
                    arrays["probes"] *= 0.01
                    out.layer(str(text), layer, kvbench.LayerInfo(scale=0.5, query_positions=range(32, 40)), **arrays)

    def write(self, name, rows):
        with open(self.path(name), "w", newline="") as file:
            out = csv.DictWriter(file, list(rows[0]))
            out.writeheader()
            out.writerows(rows)

    def table(self, *arguments):
        paths = os.pathsep.join([str(PACKAGE), *sys.path])
        done = subprocess.run([sys.executable, str(SCRIPT), "measured.csv", "rows.csv", "raw.h5", *arguments],
                              capture_output=True, text=True, cwd=self.folder, env={**os.environ, "PYTHONPATH": paths})
        return done.stdout if done.returncode == 0 else done.stderr

    def test_half_of_the_measured_kl_is_predicted(self):
        self.trace()
        self.replay(self.path("t.h5"), "-m", "sink,knorm,uniform,fp8", "-b", "25%mem,37.5%mem,50%mem",
                    "--raw", self.path("raw.h5"))
        with open(self.path("rows.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        known = [row for row in rows if row["status"] == "ok" and row["prompt"] != "all" and row["kl_predicted"]]
        as_measured = lambda row, kl, inject, scale="": {
            "status": "ok", "layer": "all", "method": row["method"], "params": row["params"], "budget":
            row["budget"], "document": f"text{row['prompt']}", "kl_mean": kl, "inject": inject, "inject_scale": scale}
        texts = [row for row in known if row["layer"] == "all"]
        self.write("measured.csv", [as_measured(row, 2 * float(row["kl_predicted"]), "all") for row in texts])
        # a tenth of the error has 1.5 times the KL of its second order, three tenths 3 times; the whole error twice
        for eps, share in ((0.1, 1.5), (0.3, 3)):
            self.write(f"scaled{eps}.csv", [
                as_measured(row, share * eps ** 2 * float(row["kl_predicted"]), "all", eps) for row in texts
                if row["method"] == "knorm" and int(row["prompt"]) < 3])
        said = self.table("--scaled", "scaled0.3.csv", "scaled0.1.csv")
        said, orders = said.split("| method | budget |")
        self.assertIn(f"{TEXTS} documents", said)
        for words in (f"{LAYERS} layers, 8 probes", "4 probes", "5 layers"):
            self.assertIn(f"| predicted KL, {words} | ", said)
        self.assertRegex(said, rf"predicted KL, {LAYERS} layers, 8 probes \| 1.000 \| 1.000 ")
        ratios = re.findall(r"([0-9.]+) \(0 %\) of", said)
        self.assertTrue(ratios and set(ratios) == {"0.50"}, said)
        found = re.findall(r"\| knorm \| \S+ \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|", orders)
        self.assertEqual(len(found), 3, orders)
        for predicted, *of in (map(float, cells) for cells in found):
            for share, expected in zip(of, (1.5, 3, 2)):
                self.assertAlmostEqual(share / predicted, expected, delta=0.03)
        # predictions that are not those of the sums of probes
        self.write("rows.csv", [{**row, "kl_predicted": 1.1 * float(row["kl_predicted"] or 0)} for row in rows])
        self.assertIn("are not those of the predictions", self.table())
