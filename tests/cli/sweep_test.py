# SPDX-License-Identifier: Apache-2.0
"""kvbench sweep: one CSV from many runs, all inputs checked before anything is computed, the same bytes for any number
of threads."""
from support import SweepTest, rows, run

GOOD = """
name = "try"
[defaults]
traces = "t.h5"
seeds = 2
[[run]]
name = "prefill"
protocol = "prefill"
methods = ["uniform", {name = "snapkv", window = [8, 16]}]
budgets = ["25%", 96]
[[run]]
name = "decode"
methods = "sink"
budgets = 48
"""
MEASURES = '[[run]]\ntraces = "t.h5"\nmeasure = ["clusterability", "similarity-by-distance"]\n'


class Sweep(SweepTest):
    def test_one_table_of_all_runs(self):
        table = rows(self.sweep(GOOD, "--rows", "trace"))
        self.assertEqual([(r["run"], r["method"], r["params"], r["budget"], r["protocol"]) for r in table], [
            ("prefill", "uniform", "", "25%", "prefill"), ("prefill", "uniform", "", "96", "prefill"),
            ("prefill", "snapkv", "window=8", "25%", "prefill"), ("prefill", "snapkv", "window=8", "96", "prefill"),
            ("prefill", "snapkv", "window=16", "25%", "prefill"), ("prefill", "snapkv", "window=16", "96", "prefill"),
            ("decode", "sink", "", "48", "decode")])

    def test_protected_tokens_are_those_of_a_replay(self):
        for key in ("protect", "protect_outside"):
            text = ('[[run]]\ntraces = "t.h5"\nmethods = ["snapkv", "int8"]\nbudgets = ["90%mem", 96]\n'
                    f"{key} = [4, 8]\n")
            swept = rows(self.sweep(text, "--rows", "trace"))
            replayed = rows(self.ok("replay", self.trace, "-m", "snapkv,int8", "-b", "90%mem,96", "--rows", "trace",
                                    "--" + key.replace("_", "-"), "4,8"))
            for name in ("total_bytes", "full_bytes", "bytes_read", "budget_tokens"):
                self.assertEqual([r[name] for r in swept], [r[name] for r in replayed])
            self.assertTrue(float(swept[0]["total_bytes"]) > 0.5 * float(swept[0]["full_bytes"]))

    def test_threads_do_not_matter(self):
        for text in (GOOD, MEASURES):
            outputs = {self.sweep(text, "--no-times", "--threads", n) for n in (1, 2, 3)}
            self.assertEqual(len(outputs), 1)

    def test_dry_run_computes_nothing(self):
        out = self.path("o.csv")
        text = self.sweep(GOOD, "--dry-run", "-o", out)
        for words in ("estimate: ", "run prefill on t.h5", "snapkv[window=8]", "uniform x 2 seeds", "25% (48), 96 (96)",
                      "2 runs"):
            self.assertIn(words, text)
        self.only_files("s.toml", "t.h5")

    def test_traces_of_the_command_line(self):
        other = self.synth("u.h5", "--seed", 7)  # the same trace twice is refused
        table = rows(self.sweep(GOOD, "--rows", "trace", "--trace", other, "--trace", self.trace))
        self.assertEqual([r["trace"] for r in table if r["run"] == "decode"], ["u.h5", "t.h5"])

    def test_paths_start_at_the_file(self):
        self.write(GOOD)
        self.ok("sweep", "s.toml", "--dry-run", cwd=self.folder)
        self.ok("sweep", self.path("s.toml"), "--dry-run", cwd="/")

    def test_measures_beside_replays_have_a_file_of_their_own(self):
        both = GOOD + MEASURES
        out = self.path("o.csv")
        self.assertEqual(self.sweep(both, "-o", out), "")
        self.only_files("s.toml", "t.h5", "o.csv", "o.measures.csv")
        self.assertEqual({r["run"] for r in rows(self.read("o.measures.csv"))}, {"3"})
        self.assertEqual({r["run"] for r in rows(self.read(out))}, {"prefill", "decode"})
        self.sweep(MEASURES, "-o", out)
        self.assertIn("similarity-by-distance", self.read(out))

    def test_tables_by_run(self):
        text = self.sweep(GOOD, "--format", "table")
        self.assertIn("run prefill\n", text)
        self.assertIn("run decode\n", text)
        self.assertIn("## decode\n", self.sweep(GOOD, "--format", "md"))


class BadSweep(SweepTest):
    def test_what_the_command_line_alone_can_set_is_named_by_its_flag(self):
        done = run("sweep", self.write(GOOD), "--memory", "1M", "--dry-run")
        self.assertEqual(done.returncode, 2)
        for words in ("s.toml:6:1: run 'prefill' on", "--memory allows", "raise --memory"):
            self.assertIn(words, done.stderr)
