# SPDX-License-Identifier: Apache-2.0
"""Examples of help pages and of methods run, and so does what a refusal advises."""
import shlex

from support import SAMPLE, CliTest, rows


class Examples(CliTest):
    def runs(self, example):
        """Asserts that every method and budget of a line "kvbench replay TRACE ..." runs."""
        words = shlex.split(example)[3:]
        for flag in ("-o", "--raw", "--summary", "--format"):
            if flag in words:
                del words[words.index(flag):words.index(flag) + (1 if flag == "--summary" else 2)]
        table = rows(self.ok("replay", SAMPLE, *words, "--layers", 2, "--prompts", 0, "--seeds", 1))
        self.assertEqual({(row["status"], row["reason"].split(" ")[0]) for row in table if row["status"] != "ok"},
                         set(), example)

    def test_examples_run(self):
        examples = [line for line in self.ok("help", "replay").splitlines() if line.startswith("  kvbench replay")]
        examples += [line for line in self.ok("--help").splitlines() if line.startswith("  kvbench replay")]
        for method in rows(self.ok("methods", "--format", "csv")):
            if method["method"] in ("oracle-error", "duo", "duo@kvpress"):  # minutes; files of the user
                continue
            examples += [line.split(None, 1)[1] for line in self.ok("methods", method["method"]).splitlines()
                         if line.startswith("  example ") and "kvdump" not in line]
        self.assertGreater(len(examples), 40)
        for example in examples:
            with self.subTest(example=example):
                self.runs(example)

    def test_advice_runs(self):
        """The budget that a quantiser asks for in place of one in tokens is one at which it runs."""
        flags = ["replay", SAMPLE, "--layers", 2, "--prompts", 0, "--rows", "trace", "--seeds", 1]
        methods = [row["method"] for row in rows(self.ok("methods", "--format", "csv"))
                   if row["kind"] == "quantisation"]
        self.assertGreater(len(methods), 10)
        for method in methods:
            with self.subTest(method=method):
                reason = rows(self.ok(*flags, "-m", method, "-b", "25%"))[0]["reason"]
                self.assertRegex(reason, "such as --budget [0-9]+%mem$")
                self.assertEqual(rows(self.ok(*flags, "-m", method, "-b", reason.split()[-1]))[0]["status"], "ok")
