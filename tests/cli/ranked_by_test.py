# SPDX-License-Identifier: Apache-2.0
"""What ranks rows, of traces with probes and without: protocols, layers, texts, budgets, rows of heads, shards and
resumed sweeps, and reports; and comparisons by predicted KL and by residual error."""
import os

from support import CliTest, rows

METHODS = "sink,random,exact,uniform"
SWEEP = '[[run]]\ntraces = "p.h5"\nmethods = ["sink", "uniform"]\nbudgets = ["25%"]\nseeds = 2\n'


class RankedBy(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.probed = cls.synth("p.h5", "--probes", 16, "--prompts", 3)
        cls.one = cls.synth("o.h5", "--probes", 1)

    def replay(self, trace, *flags):
        return rows(self.ok("replay", trace, "-m", METHODS, "--seeds", 2, "--format", "csv", "-q", *flags))

    def overall(self, table):
        prompts = {r["prompt"] for r in table}
        whole = "all" if "all" in prompts else min(prompts)
        return {r["method"]: r for r in table
                if (r["layer"], r["head"], r["prompt"]) == ("all", "all", whole)}

    def test_what_ranks_the_rows_and_what_it_was_tested_over(self):
        # Trace, flags, what ranks, and what the tests were made over; all layers of the model have probes.
        table = ((self.probed, [], "kl_predicted", "3 texts"),
                 (self.probed, ["--protocol", "stream"], "kl_predicted", "3 texts"),
                 (self.probed, ["--protocol", "prefill", "--window", "64"], "kl_predicted", "3 texts"),
                 (self.probed, ["--protocol", "prefill", "--window", "32"], "residual_err", "3 texts"),
                 (self.probed, ["--prompts", "1"], "kl_predicted", "16 probes"),
                 (self.probed, ["--layers", "0"], "kl_predicted", "3 texts on this layer"),
                 (self.probed, ["--rank-by", "residual_err"], "residual_err", "3 texts"),
                 (self.probed, ["--rank-by", "rel_err"], "rel_err", "3 texts"),
                 (self.one, [], "kl_predicted", ""),
                 (self.trace, [], "rel_err", "6 blocks of queries"))
        for trace, flags, figure, over in table:
            with self.subTest(trace=os.path.basename(trace), flags=flags):
                ranked = self.overall(self.replay(trace, *flags))
                self.assertEqual({r["ranked_by"] for r in ranked.values()}, {figure})
                best = ranked["sink"]["best"]
                self.assertIn(best, ("sink", "random", "uniform"))
                self.assertEqual(ranked["exact"]["best"], "")
                others = {r["tested_over"] for m, r in ranked.items() if m not in (best, "exact")}
                self.assertLessEqual(others, {over, ""})

    def test_exact_has_no_damage_and_rows_of_heads_have_no_figure_of_a_layer(self):
        table = self.replay(self.probed, "--rows", "head")
        self.assertLess(float(self.overall(table)["exact"]["kl_predicted"]), 1e-9)
        heads = [r for r in table if r["head"] != "all"]
        self.assertTrue(heads)
        for r in heads:
            self.assertEqual((r["kl_predicted"], r["residual_err_mean"], r["ranked_by"]), ("", "", ""))
        layers = [r for r in table if r["layer"] != "all" and r["head"] == "all"]
        for r in layers:
            self.assertNotEqual(r["residual_err_rms"], "")
            self.assertGreaterEqual(float(r["residual_err_rms"]), float(r["residual_err_mean"]))

    def test_the_best_row_has_the_lowest_figure(self):
        ranked = self.overall(self.replay(self.probed))
        best = ranked[ranked["sink"]["best"]]
        self.assertNotEqual(best["method"], "random")
        self.assertEqual(float(best["ratio_best"]), 1)
        for method in ("sink", "random", "uniform"):
            row = ranked[method]
            if method != "random":  # which is compared and is never the best
                self.assertGreaterEqual(float(row["ranked_geomean"]), float(best["ranked_geomean"]))
            ratio = float(row["ranked_geomean"]) / float(best["ranked_geomean"])
            self.assertAlmostEqual(ratio, float(row["ratio_best"]), delta=1e-5 * ratio)

    def test_the_answer_names_the_figure(self):
        text = self.ok("replay", self.probed, "-m", METHODS, "-b", "25%", "-q", "--format", "table")
        self.assertIn("has the lowest predicted KL", text)
        by_error = self.ok("replay", self.probed, "-m", METHODS, "-b", "25%", "-q", "--format", "table",
                             "--rank-by", "rel_err")
        self.assertIn("has the lowest error", by_error)

    def test_shards_and_resumed_sweeps_give_the_same_rows(self):
        path = self.write(SWEEP)
        whole = self.ok("sweep", path, "--no-times", "-q")
        self.assertEqual({r["ranked_by"] for r in rows(whole) if r["head"] == "all"}, {"kl_predicted"})
        self.assertTrue(any(r["residual_err_rms"] for r in rows(whole)))
        cells = [self.path(f"{i}.cells") for i in (1, 2)]
        for i, file in enumerate(cells, 1):
            self.ok("sweep", path, "--shard", f"{i}/2", "--cells", file, "-q")
        self.assertEqual(self.ok("merge", *cells, "--no-times"), whole)
        resumed = self.path("r.cells")
        self.ok("sweep", path, "--cells", resumed, "-q")
        self.assertEqual(self.ok("sweep", path, "--cells", resumed, "--resume", "--no-times", "-q"), whole)
        compared = self.ok("compare", resumed, "--a", "sink", "--b", "uniform", "--metric", "residual_err")
        self.assertIn("residual_err", compared)
        (row,) = rows(self.ok("compare", resumed, "--a", "sink", "--b", "uniform", "--metric", "kl_predicted",
                                "--format", "csv"))
        predicted = self.overall(rows(whole))["sink"]["kl_predicted"]
        self.assertAlmostEqual(float(row["mean_a"]), float(predicted), delta=1e-6)

    def test_methods_are_compared_on_the_same_probes_and_texts(self):
        raw = self.path("raw.h5")
        csv = self.replay(self.probed, "--raw", raw, "-b", "25%", "--rows", "trace")
        (row,) = rows(self.ok("compare", raw, "--a", "sink", "--b", "uniform", "--metric", "kl_predicted",
                                "--format", "csv"))
        ranked = self.overall(csv)
        self.assertEqual(row["tested_over"], "3 texts")
        ratio = float(ranked["sink"]["ranked_geomean"]) / float(ranked["uniform"]["ranked_geomean"])
        self.assertAlmostEqual(float(row["over_places"]), ratio, delta=1e-4 * ratio)
        self.assertAlmostEqual(float(row["mean_a"]), float(ranked["sink"]["kl_predicted"]), delta=1e-6)
        by_layer = rows(self.ok("compare", raw, "--a", "sink", "--b", "uniform", "--metric", "kl_predicted",
                                  "--by", "layer", "--format", "csv"))
        self.assertEqual([r["layer"] for r in by_layer], ["0", "1"] * 3)

    def test_a_report_ranks_by_what_its_tables_do_or_as_asked(self):
        table, page = (self.path(name) for name in ("t.csv", "t.md"))
        self.ok("replay", self.probed, "-m", METHODS, "-b", "25%mem,50%mem", "-o", table, "-q")
        self.ok("report", table, "-o", page)
        text = self.read(page)
        self.assertIn("has the lowest predicted KL", text)
        self.assertIn("Predicted KL", text)
        self.ok("report", table, "-o", page, "--rank-by", "rel_err")
        self.assertNotIn("predicted KL", self.read(page))
