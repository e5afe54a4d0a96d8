# SPDX-License-Identifier: Apache-2.0
"""The claim of a figure: the sweep, its report and kvbench compare give one verdict with the same numbers, from cells,
shards and raw files."""
import os
import re

from support import CliTest, SAMPLE, rows

FIGURE = os.path.join(os.path.dirname(SAMPLE), "..", "configs", "balancekv-fig2.toml")
# In results of --raw there are no runs, and budgets may run beside others: the last bits may differ.
NUMBERS = ("mean_a", "mean_b", "ratio", "diff", "p_value", "p_adjusted")


def reduced(text):
    """The sweep file of BalanceKV's figure on one layer, two rates and two seeds, with the methods of its claim
    alone, which is tested by layer."""
    text = text.replace("../traces/smollm2-135m.h5", os.path.abspath(SAMPLE))
    text = re.sub(r"(?m)^budgets = .*$", 'budgets = ["50%", "25%"]', text)
    text = re.sub(r"(?m)^seeds = .*$", 'seeds = 2\nlayers = [2]\nprompts = ["0"]', text)
    text = re.sub(r'b = "(uniform|uniform-repo)" }', r'b = "\1", by = "layer" }', text)
    methods = iter(('methods = ["uniform", { name = "balancekv", half = "exact" }]',
                    'methods = ["uniform-repo", { name = "balancekv-repo", temp = 0.1 }]'))
    return re.sub(r"(?ms)^methods = \[.*?^\]$", lambda _: next(methods), text)


class Claims(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        text = reduced(cls.read(FIGURE))
        cls.file = cls.write(text, "fig2.toml")
        cls.swept = cls.succeeds("sweep", cls.file, "-o", cls.path("fig2.csv"), "--cells", cls.path("fig2.cells"),
                                 "--summary", "-q")
        cls.claims = cls.read("fig2.claims.csv")

    def test_one_row_per_relation_layer_and_rate(self):
        table = rows(self.claims)
        self.assertEqual([(r["run"], r["layer"], r["budget_a"], r["b"]) for r in table],
                         [("paper", "2", b, "uniform") for b in ("50%", "25%")] +
                         [("released", "2", b, "uniform-repo") for b in ("50%", "25%")])
        for r in table:
            self.assertEqual((r["metric"], r["blocks"], r["seeds"], r["family"]), ("relerr_balancekv", "8", "2", "4"))
            self.assertAlmostEqual(float(r["ratio"]), float(r["mean_a"]) / float(r["mean_b"]))
            significant, lower = float(r["p_adjusted"]) <= 0.05, float(r["diff"]) < 0
            self.assertEqual(r["verdict"], "undecided" if not significant else "supported" if lower else "contradicted")
        replayed = {(r["run"], r["method"], r["budget"], r["layer"]): r for r in rows(self.read("fig2.csv"))}
        for r in table:
            row = replayed[r["run"], r["b"], r["budget_b"], "2"]
            self.assertAlmostEqual(float(r["mean_b"]), float(row["relerr_balancekv_mean"]), places=9)

    def test_the_sweep_begins_and_the_report_ends_with_the_same_verdict(self):
        report = self.ok("report", self.path("fig2.csv"), self.path("fig2.claims.csv"), "--sweep", self.file, "-o",
                         self.path("fig2.md"))
        verdict = rows(self.claims)[0]["claim_verdict"]
        self.assertRegex(report, f"^{verdict}( as a whole [(].*[)])?: BalanceKV's error is much lower")
        self.assertTrue(self.swept.stdout.startswith(report + "\n"), self.swept.stdout)
        page = self.read("fig2.md")
        self.assertRegex(page, r"claims\*\*\n\n- Of 1 claim: 1 [a-z]+\.\n- " + verdict)
        self.assertLess(page.index("- Of 1 claim"), page.index("- At "))
        self.assertRegex(page, f"### {verdict}( as a whole [(].*[)])?: BalanceKV's error is much lower")
        self.assertIn("mean relerr_balancekv against budget", page)
        self.assertIn("| prompt 0, layer 2 | balancekv-repo[temp=0.1] / uniform-repo | 25% |", page)
        self.assertLess(page.index(f"### {verdict}"), page.index("mean relerr_balancekv against budget"))
        self.ok("report", self.path("fig2.csv"), "--sweep", self.file, "-o", self.path("fig2.md"))
        self.assertIn("No verdict", self.read("fig2.md"))

    def test_compare_gives_the_same_rows_from_the_cells(self):
        self.assertEqual(self.ok("compare", self.path("fig2.cells"), "--sweep", self.file), self.claims)
        text = self.ok("compare", self.path("fig2.cells"), "--sweep", self.file, "--format", "table")
        self.assertTrue(self.swept.stdout.startswith(text))

    def test_compare_gives_the_same_rows_from_raw_results(self):
        flags = ("--protocol", "prefill", "--window", "128", "--protect-outside", "128,0", "--layers", "2", "--prompts",
                 "0", "-b", "50%,25%", "--seeds", "2", "-q")
        self.ok("replay", SAMPLE, "-m", "uniform,uniform-repo", "--raw", self.path("u.h5"), "-o", self.path("u.csv"),
                *flags)
        self.ok("replay", SAMPLE, "-m", "balancekv,balancekv-repo", "--set", "balancekv.half=exact", "--set",
                "balancekv-repo.temp=0.1", "--raw", self.path("b.h5"), "-o", self.path("b.csv"), *flags)
        raw = rows(self.ok("compare", self.path("u.h5"), self.path("b.h5"), "--sweep", self.file))
        swept = rows(self.claims)
        self.assertEqual(len(raw), len(swept))
        for a, b in zip(raw, swept):
            self.assertEqual([a[key] for key in ("relation", "layer", "budget_a", "verdict", "claim_verdict")],
                             [b[key] for key in ("relation", "layer", "budget_a", "verdict", "claim_verdict")])
            for key in NUMBERS:
                self.assertAlmostEqual(float(a[key]), float(b[key]), places=9)

    def test_shards_give_the_same_verdict(self):
        for part in (1, 2):
            self.ok("sweep", self.file, "--shard", f"{part}/2", "--cells", self.path(f"{part}.cells"), "-q")
        self.ok("merge", self.path("1.cells"), self.path("2.cells"), "-o", self.path("merged.csv"))
        self.assertEqual(self.read("merged.claims.csv"), self.claims)

    def test_compare_of_a_pair_agrees(self):
        table = rows(self.ok("compare", self.path("fig2.cells"), "--a", "balancekv-repo", "--b", "uniform-repo",
                             "--metric", "relerr_balancekv", "--by", "layer"))
        claim = [r for r in rows(self.claims) if r["run"] == "released"]
        self.assertEqual([[r[k] for k in ("ratio", "diff", "p_value")] for r in table],  # Holm counts other tests
                         [[r[k] for k in ("ratio", "diff", "p_value")] for r in claim])

    def test_bad_requests(self):
        with open(self.path("bad.csv"), "w") as file:
            file.write(self.claims.replace(rows(self.claims)[0]["claim_verdict"], "perhaps"))
        self.fails(2, "bad.csv:2", "'perhaps'", args=["report", self.path("bad.csv"), "-o", self.path("bad.html")])
