# SPDX-License-Identifier: Apache-2.0
"""kvbench validate: rows with verdicts, selection of claims, exit codes, interruption."""
import signal
import subprocess
import time

from support import CliTest, KVBENCH, SAMPLE, rows, run


class Validate(CliTest):
    def validate(self, *flags, code=0):
        done = run("validate", *flags)
        self.assertEqual(done.returncode, code, done.stderr)
        return rows(done.stdout)

    def test_list_names_every_claim_with_its_source(self):
        text = run("validate", "--list").stdout
        for claim in ("subgen.lemma1", "subgen.amm", "chelsea.thm61"):
            self.assertIn(claim, text)
        self.assertIn("arXiv", text)
        few = run("validate", "--list", "--method", "chelsea", "--check", "chelsea.thm61").stdout.splitlines()
        self.assertEqual([line.split("  ")[0] for line in few if not line.startswith(" ")], ["chelsea.thm61"])
        page = run("validate", "--list", "--method", "subgen", "--format", "md").stdout.splitlines()
        self.assertEqual({line.split(" | ")[1] for line in page[2:]}, {"subgen"})

    def test_a_theorem_by_enumeration(self):
        table = self.validate("--synthetic", "--claim", "chelsea.thm61")
        self.assertTrue(table)
        for r in table:
            self.assertEqual((r["claim"], r["verdict"]), ("chelsea.thm61", "none" if r["kind"] == "data" else "holds"))
            self.assertEqual(r["failures"], "0" if r["kind"] == "exact" else "")

    def test_planted_faults_are_caught(self):
        table = rows(self.ok("validate", "--mutants", "-q", "--format", "csv"))
        self.assertGreaterEqual(len(table), 25)
        for r in table:
            self.assertEqual(r["outcome"], "exception" if r["exception"] else "caught", r["mutant"])
            self.assertIn(r["caught_by"].split(" ")[0], r["checks"].split(" "))
        few = run("validate", "--mutants", "-q", "--method", "uniform-repo", "--format", "table")
        self.assertIn("of 5 planted faults are caught by a violated row.", few.stdout.splitlines()[0])

    def test_other_draws(self):
        first, again, other = (run("validate", "--synthetic", "--claim", "subgen.lemma1", "--seeds", 20,
                                   "--seed-offset", offset, "-q", "--format", "csv").stdout for offset in (0, 0, 7))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_a_trace_and_streams_side_by_side(self):
        table = self.validate(self.trace, "--synthetic", "--claim", "subgen.lemma2", "--seeds", "40", "--heads", "0")
        sources = {r["source"] for r in table}
        self.assertIn("t.h5", sources)
        self.assertTrue(any(s.startswith("synthetic:") for s in sources))
        self.assertNotIn("violated", {r["verdict"] for r in table})
        self.assertEqual({r["kv_head"] for r in table if r["source"] == "t.h5"}, {"0"})

    def test_claims_about_a_model_are_tested_over_layers_and_texts(self):
        table = self.validate(SAMPLE, "--claim", "chelsea.obs1,chelsea.table2")
        trend, every = [r for r in table if r["claim"] == "chelsea.obs1" and r["kind"] == "claim"]
        self.assertEqual(trend["verdict"], "supported")
        for r in [trend, every] + [r for r in table if r["claim"] == "chelsea.table2" and r["verdict"] != "untestable"]:
            self.assertEqual(r["over_places"], "5 of 30 layers and 5 texts")
            self.assertEqual(r["units"], "5")
        self.assertEqual({r["verdict"] for r in table if r["kind"] == "data"}, {"none"})  # single heads
        said = run("validate", SAMPLE, "--claim", "chelsea.table2", "--summary", "-o", "/dev/null").stdout
        self.assertIn("it would take more layers or texts than 5 of 30 layers and 5 texts", " ".join(said.split()))

    def test_rows_do_not_depend_on_threads(self):
        flags = ("validate", self.trace, "--claim", "subgen.size,subgen.lemma1", "--seeds", "40")
        self.assertEqual(run(*flags, "--threads", 1).stdout, run(*flags, "--threads", 4).stdout)

    def test_markdown_and_file(self):
        out = self.path("v.csv")
        done = run("validate", "--synthetic", "--claim", "chelsea", "-o", out, "--summary")
        self.assertIn("chelsea.thm61", done.stdout)
        self.assertIn("| chelsea.thm61 |",
                      run("validate", "--synthetic", "--claim", "chelsea.thm61", "--format", "md").stdout)

    def test_checks_of_a_whole_trace_are_left_out_of_streams(self):
        done = run("validate", "--synthetic", "--claim", "chelsea.table1,chelsea.thm61", "-q")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "1 check.* a whole trace.*: chelsea.table1\n$")

    def test_an_interruption_keeps_finished_rows(self):
        out = self.path("i.csv")
        command = [KVBENCH, "validate", "--synthetic", "--threads", "1", "--seeds", "100000", "--claim",
                   "chelsea.thm61,subgen.amm", "-o", out]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        time.sleep(4)  # the enumeration comes last in the table, so that none of its rows may be present
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130)
        self.assertIn("interrupted", errors)
        with open(out, newline="") as file:
            self.assertTrue(file.readline().startswith("claim,"))
