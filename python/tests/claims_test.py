# SPDX-License-Identifier: Apache-2.0
"""kvbench claim: what was registered, rows that are not, verdicts, and what git says."""
import csv
import os
import subprocess
from unittest import mock

import bundles_test
from kvbench.bundles import claims, command
from support import run

CLAIM = """
question = "Does snapkv change the output less than h2o?"
refuted_by = "h2o has the lower KL."
[rows]
model = "m.gguf"
text = ["a.txt", "b.txt"]
task = "text"
context_tokens = 4096
document_seed = 0
documents = 8
configuration = ["snapkv", "h2o[rotate=1]"]
budget = ["25%mem", "50%mem"]
[test]
better = "snapkv"
worse = "h2o[rotate=1]"
budget = "25%mem"
metric = "kl"
"""


class Claims(bundles_test.BundlesTest):
    def setUp(self):
        super().setUp()
        self.claim = self.write(CLAIM, "claim.toml")
        self.columns = [line.split()[0] for line in run("eval", "--columns").splitlines()]

    def rows(self, change=lambda row: None, ratios=(2, 2)):
        """A table of what is registered after change(row), which leaves a row out by returning True. ratios: KL of h2o
        divided by that of snapkv on the texts."""
        found = []
        for text, ratio in zip(("a.txt", "b.txt"), ratios):
            for method, params, factor in (("snapkv", "", 1), ("h2o", "rotate=1", ratio)):
                for budget in "25%mem", "50%mem":
                    for document in ("all", *map(str, range(8))):
                        kl = (1 + int(document) / 8 if document != "all" else 1.4) * factor ** (1 + len(document) / 90)
                        found.append(bundles_test.Evaluations.ROW | {
                            "task": "text", "question": "", "inject_scale": "", "document_seed": "0", "text": text,
                            "context_tokens": "4096", "method": method, "params": params, "budget": budget,
                            "document": document, "document_sha256": f"{text} {document}" if document != "all" else "",
                            "documents": "8" if document == "all" else "1", "kl_mean": repr(kl), "kl": "", "top1": "1",
                            "method_layers": "0-29", "model_layers": "30", "compressed_layers": "30",
                            "full_bytes": "9999"})
        found = [row for row in found if not change(row)]
        with open(self.path("e.csv"), "w", newline="") as file:
            table = csv.DictWriter(file, self.columns, extrasaction="ignore", restval="", lineterminator="\n")
            table.writeheader()
            table.writerows(found)
        return self.path("e.csv")

    def said(self, table, code, *others):
        return self.call(command.claim_main, code, self.claim, table, *others, "--programs", bundles_test.PROGRAMS)

    def test_verdicts(self):
        for ratios, code, verdict in (((2, 2), 0, "holds"), ((2, 0.5), 1, "refuted"), ((0.5, 0.5), 1, "refuted"),
                                      ((2, 1), 4, "cannot tell")):
            with self.subTest(ratios):
                found = self.said(self.rows(ratios=ratios), code)
                self.assertIn(f"Verdict: {verdict}.\n", found)
                self.assertEqual(found.count("m.gguf, "), 2)
                self.assertIn("Rows: 64 of documents", found)
                self.assertIn("Refuted by: h2o has the lower KL.", found)
        one = [{"verdict": "a better"}]  # and nothing about the other text
        self.assertEqual([claims.verdict(claims.read(self.claim), one * n) for n in (1, 2)], ["cannot tell", "holds"])

    def test_rows_that_were_not_registered(self):
        for column, value, says in (("text", "c.txt", "has text c.txt, and .*registers a.txt, b.txt"),
                                    ("budget", "75%mem", "has budget 75%mem"), ("method", "mesh", "configuration mesh"),
                                    ("params", "rotate=2", r"configuration h2o\[rotate=2\]"),
                                    ("context_tokens", "", "context_tokens empty"),
                                    ("protocol", "", "does not register protocol, in which rows differ: , stream"),
                                    ("layer", "3", "does not register layer")):
            def change(row):
                if row["document"] == "7" and row["text"] == "b.txt" and row["method"] == "h2o":
                    row[column] = value
            with self.subTest(column):
                self.assertRegex(self.said(self.rows(change), 2), says)

    def test_rows_that_are_missing_or_there_twice(self):
        def missing(row):
            return row["document"] == "3" and row["budget"] == "50%mem" and row["text"] == "a.txt"
        self.assertRegex(self.said(self.rows(missing), 2), r"snapkv, 50%mem: 7 of 8 documents; .*h2o\[rotate=1\], 50%")
        self.assertIn("7 of 8", self.said(self.rows(lambda row: row.update(
            status="failed" if missing(row) else "ok")), 2))
        self.assertIn("is there twice", self.said(self.rows(), 2, self.path("e.csv")))

    def test_files_that_register_nothing(self):
        table = self.rows()
        for old, new, says in (("question =", "questoin =", "no questoin. Did you mean 'question'"),
                               ("documents = 8\n", "", "needs documents"), ("= 8", "= true", "needs documents"),
                               ('task = "text"\n', "", "needs task"), ('"kl"', '"top"', "Did you mean 'top1'"),
                               ('better = "snapkv"', 'better = "mesh"', "mesh is no configuration of"),
                               ('budget = "25%mem"', 'budget = "1%"', "is no budget"), ("[rows]", "[rows", "no TOML"),
                               ("0\ndoc", "[0.5]\ndoc", "no list"),
                               ("0\ndoc", "0\ncolour = 1\ndoc", "has no column colour"),
                               ("refuted_by", "#", "needs refuted_by, a text")):
            with self.subTest(new):
                self.assertEqual(CLAIM.count(old), 1)
                self.write(CLAIM.replace(old, new), "claim.toml")
                self.assertIn(says, self.said(table, 2))

    def test_when_it_was_registered(self):
        table, environment = self.rows(), {**os.environ, "GIT_CEILING_DIRECTORIES": os.path.dirname(self.folder)}

        def git(*words, day=1):
            date = f"2026-05-0{day}T12:00:00+00:00"
            subprocess.run(["git", "-C", self.folder, "-c", "user.name=n", "-c", "user.email=e", *words], check=True,
                           capture_output=True, env={**environment, "GIT_COMMITTER_DATE": date})
        with mock.patch.dict(os.environ, environment):
            self.assertIn("knows no repository", self.said(table, 0))
            git("init")
            self.assertIn("in no commit", self.said(table, 0))
            git("add", "claim.toml")
            git("commit", "-m", "a", day=2)
            self.assertRegex(self.said(table, 0), "by commit [0-9a-f]+ of 2026-05-02T.*\n  unchanged since then")
            self.write(CLAIM.replace("less", "far less"), "claim.toml")
            self.assertRegex(self.said(table, 0), "of 2026-05-02T.*\n  CHANGED, and the change is in no commit")
            git("commit", "-am", "b", day=4)
            self.assertRegex(self.said(table, 0), "of 2026-05-02T.*\n  CHANGED since then by 1 commit, .*2026-05-04T")
        with mock.patch.dict(os.environ, PATH=self.folder):
            self.assertIn("git is not there", self.said(table, 0))
