# SPDX-License-Identifier: Apache-2.0
"""kvbench compare: verdicts on replays of a trace, equal figures from raw files and CSV, names of configurations, bad
input."""

from support import CliTest, rows, run


class Compare(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Methods with and without randomness, and quest, which cannot run at the small budget.
        cls.raw, cls.csv = cls.path("raw.h5"), cls.path("rows.csv")
        cls.long = cls.synth("long.h5", queries=256)
        cls.replay(cls.raw, cls.csv, "exact,random,uniform,sink,quest", "--protocol", "prefill", "--window", "128",
                   "-b", "25%,50%", "--seeds", "4")

    @classmethod
    def replay(cls, raw, csv, methods, *flags):
        cls.ok("replay", cls.long, "-m", methods, "--rows", "query", "--raw", raw, "-o", csv, *flags)

    def compare(self, *flags):
        """By layer, unless the flags say otherwise."""
        return rows(self.ok("compare", *flags, *(() if "--by" in flags else ("--by", "layer"))))

    def test_exact_beats_random_everywhere(self):
        table = self.compare(self.raw, "--a", "exact", "--b", "random")
        self.assertEqual([(r["layer"], r["budget_a"]) for r in table],
                         [("0", "25%"), ("0", "50%"), ("1", "25%"), ("1", "50%")])
        for r in table:
            # The metrics of exact are those of 16 queries of each query head, two of each block.
            self.assertEqual((r["verdict"], r["seeds"], r["blocks"], r["pairs"]),
                             ("a better", "4", "8", str(4 * 16 * 4)))
            self.assertLess(float(r["diff_hi"]), 0)
            self.assertAlmostEqual(float(r["mean_a"]) - float(r["mean_b"]), float(r["diff"]))
            self.assertLess(float(r["p_adjusted"]), 0.05)
            self.assertGreaterEqual(float(r["p_adjusted"]), float(r["p_value"]))
        (row,) = rows(run("compare", self.raw, "--a", "random@25%", "--b", "exact").stdout)
        self.assertEqual((row["verdict"], row["prompt"], row["layer"]), ("b better", "all", "all"))

    def test_the_mean_is_that_of_the_replay(self):
        replayed = {(r["method"], r["budget"], r["layer"]): r for r in rows(self.read(self.csv)) if r["head"] == "all"}
        for r in self.compare(self.raw, "--a", "sink", "--b", "uniform"):
            for side in "ab":
                expected = replayed[r[side], r["budget_" + side], r["layer"]]
                self.assertAlmostEqual(float(r["mean_" + side]), float(expected["rel_err_mean"]), places=9)

    def test_a_method_is_not_distinguishable_from_itself_with_other_seeds(self):
        other, csv = self.path("other.h5"), self.path("other.csv")
        self.replay(other, csv, "uniform,sink", "--protocol", "prefill", "--window", "128", "-b", "25%,50%", "--seeds",
                    "10-13")
        for by in ("layer", "all"):
            for r in self.compare(self.raw, other, "--a", "1:uniform", "--b", "2:uniform", "--by", by):
                self.assertEqual((r["verdict"], r["a"], r["b"], r["seeds"]),
                                 ("not distinguishable", "1:uniform", "2:uniform", "4"))
        for r in self.compare(self.raw, other, "--a", "1:sink", "--b", "2:sink"):
            self.assertEqual((r["verdict"], float(r["diff"]), float(r["p_value"])), ("not distinguishable", 0, 1))
        self.fails(2, "2:sink", args=["compare", self.raw, other, "--a", "sink", "--b", "quest"])

    def test_raw_and_csv_give_the_same_figures(self):
        for flags in ((), ("--a", "uniform"), ("--a", "quest", "--b", "sink", "--by", "head", "--metric", "recall"),
                      ("--by", "prompt")):
            self.assertEqual(self.ok("compare", self.raw, *flags), self.ok("compare", self.csv, *flags), flags)

    def test_forms(self):
        text = run("compare", self.raw, "--a", "exact", "--b", "random", "--by", "layer", "--format", "table").stdout
        self.assertTrue(text.endswith("exact is better in 4 of 4 groups, random in 0, 0 not distinguishable; Holm over "
                                      "4 hypotheses at 5 %.\n"))
        text = run("compare", self.raw, "--a", "exact", "--b", "random", "--by", "layer", "--format", "md").stdout
        self.assertIn("| prompt 0, layer 0 | exact |", text)
        out = self.path("c.csv")
        self.assertEqual(run("compare", self.raw, "-o", out).stdout, "")
        header = self.read(out).splitlines()[0].split(",")
        documented = [line.split()[0] for line in run("compare", "--columns").stdout.splitlines()]
        self.assertEqual(header, documented)

    def test_shards_of_a_sweep_are_one_file(self):
        """A predicted KL sums over layers and kv heads, which are in several shards."""
        trace = self.synth("probes.h5", "--probes", 8)
        sweep = self.path("s.toml")
        self.write(f'[[run]]\ntraces = "{trace}"\nmethods = ["sink", "knorm"]\nbudgets = "25%"\n', sweep)
        whole, *shards = (self.path(f"{name}.cells") for name in "wab")
        self.ok("sweep", sweep, "--cells", whole, "-o", self.path("w.csv"))
        for number, shard in enumerate(shards, 1):
            self.ok("sweep", sweep, "--cells", shard, "--shard", f"{number}/2")
        for by in ("all", "layer"):
            one = self.compare(whole, "--metric", "kl_predicted", "--by", by)
            self.assertTrue(one)
            self.assertEqual(self.compare(*shards, "--metric", "kl_predicted", "--by", by), one)
        self.fails(2, "no configuration has kl_predicted", "a shard (name all)",
                   args=["compare", shards[0], "--metric", "kl_predicted"])

    def test_bad_tables(self):
        table = self.write("a,b\n1,2\n", "layers.csv")
        self.fails(2, "method", args=["compare", table])
        with open(self.csv) as whole, open(table, "w") as cut:
            cut.writelines(whole.readlines()[:-5])
        self.fails(2, "incomplete", args=["compare", table])
