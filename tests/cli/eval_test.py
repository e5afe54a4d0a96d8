# SPDX-License-Identifier: Apache-2.0
"""kvbench eval without a model: descriptions, the program that it and validate become, reports and comparisons of its
tables."""
import csv
import io
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree

from support import CliTest, KVBENCH, rows, run


def columns():
    return [line.split()[0] for line in run("eval", "--columns").stdout.splitlines()]


def table(lines):
    """A CSV with all columns; `lines`: dictionaries of those that are not empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns(), restval="", lineterminator="\n")
    writer.writeheader()
    common = dict(documents_sha256="d", method_layers="0-29", model_layers=30, compressed_layers=30, weights="f32",
                  kv_dtype="f16", protect="0,0", decoded="method", document_seed=0, total_bytes=25, kl_mean=1,
                  model="m.gguf", sha256="abc", text="book.txt", task="text", question="outside", context_tokens=4096,
                  inject="all", layer="all", device="cpu", status="ok", full_bytes=100, nll_diff=0.1, match_diff=-0.5)
    for line in lines:
        digest = "" if line["document"] == "all" else "digest of " + line["document"]
        writer.writerow({**common, "document_sha256": digest, **line})
    return out.getvalue()


# Commands that are programs of their own: what is said where one is missing, and words of its help.
PROGRAMS = (("eval", "kveval", "-DKVBENCH_KVDUMP=ON", ("Usage: kveval", "--context", "--inject", "Exit codes")),
            ("validate", "kvbench-validate", "`make build`", ("Usage: kvbench validate", "--check", "golden",
                                                              "Exit codes")))


class Eval(CliTest):
    def test_tasks_and_columns_are_described_without_a_model(self):
        self.assertIn("passkey\n  Measures ", run("eval", "--list-tasks").stdout)
        self.assertTrue({"kl_mean", "match", "nll_verdict", "rel_err_mean", "drift"} <= set(columns()))
        self.assertIn("| `kl_mean` | number |", run("eval", "--columns", "--format", "md").stdout)

    def copy_of_program(self, name):
        folder = self.path(name)
        os.mkdir(folder)
        shutil.copy(KVBENCH, folder)
        return folder

    def test_where_a_program_is_missing_the_message_says_how_to_build_it(self):
        folder = self.copy_of_program("alone")
        for command, program, remedy, _ in PROGRAMS:
            done = subprocess.run([os.path.join(folder, os.path.basename(KVBENCH)), command, "some.file"],
                                  capture_output=True, text=True, env={**os.environ, "PATH": folder}, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            for words in (f"kvbench: kvbench {command} runs the program {program}, which is neither beside", remedy):
                self.assertIn(words, done.stderr)

    def test_help_needs_no_other_program(self):
        folder = self.copy_of_program("helped")
        for command, _, _, page in PROGRAMS:
            for arguments in ([command, "--help"], [command, "-h"], ["help", command]):
                done = subprocess.run([os.path.join(folder, os.path.basename(KVBENCH)), *arguments], timeout=60,
                                      capture_output=True, text=True, env={**os.environ, "PATH": folder})
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                for words in page:
                    self.assertIn(words, done.stdout)
        self.assertEqual(done.stdout, run("help", "validate").stdout, "which is the page of the program")

    def test_the_program_beside_kvbench_gets_all_arguments_and_gives_the_exit_code(self):
        folder = self.copy_of_program("beside")
        for command, program, _, _ in PROGRAMS:
            fake = self.write('#!/bin/sh\nprintf "%s|" "$@"\nexit 7\n', os.path.join(folder, program))
            os.chmod(fake, 0o755)
            for arguments in (["m.gguf", "--task", "text", "replay", "-o", "x y.csv"], ["--method", "sink", "sweep"],
                              ["golden", "-o=x"], ["--help"], ["-h"], []):
                done = subprocess.run([os.path.join(folder, os.path.basename(KVBENCH)), command, *arguments],
                                      capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stdout.rstrip("|").split("|"), done.stderr),
                                 (7, arguments or [""], ""))

    def test_report(self):
        lines = []
        for document in ("all", "text-0", "text-1"):
            for method, kl, error, held in (("sink", 0.5, 0.4, 20), ("h2o", 0.1, 0.2, 25), ("quest", 0.02, 0.1, 60)):
                lines.append(dict(document=document, method=method, budget="25%mem", kl_mean=kl, rel_err_mean=error,
                                  total_bytes=held))
            for layer in range(3):
                lines.append(dict(document=document, method="sink", budget="25%mem", kl_mean=0.1, inject="one",
                                  inject_layer=layer))
                lines.append(dict(document=document, method="sink", budget="25%mem", layer=layer, drift=0.2,
                                  residual_err=0.1))
        path, out = self.path("eval.csv"), self.path("eval.html")
        self.write(table(lines), path)
        done = run("report", path, "-o", out)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        text = self.read(out)
        self.assertLess(text.index("cannot tell which attention metric predicts damage"), text.index("<main>"))
        for title in ("KL against bytes held", "Attention error and damage", "Growth of errors with depth",
                      "Sensitivity of layers"):
            self.assertIn(title, text)
        drawings = re.findall(r"<svg .*?</svg>", text, re.S)
        self.assertEqual(len(drawings), 6)  # KL, nll and match against bytes; error against KL; growth; sensitivity
        for drawing in drawings:
            for node in xml.etree.ElementTree.fromstring(drawing).iter():
                for key in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy"):
                    if node.get(key) is not None:
                        self.assertTrue(-1e4 < float(node.get(key)) < 1e4, node.attrib)

    def documents(self, name, methods=("snapkv", "h2o", "sink"), documents=8, **settings):
        """Damage of snapkv: 1; of h2o: 2, and on passkey 1 and 3 in turns; of sink: 3. Exact match: 1 - damage / 4."""
        lines = []
        for task in ("text", "passkey"):
            for method in methods:
                line = dict(task=task, method=method, budget="25%mem", total_bytes=25, bytes_read=25, **settings)
                lines.append(dict(line, document="all", kl_mean=9))
                for d in range(documents):
                    damage = dict(snapkv=1, h2o=2 if task == "text" else 1 + 2 * (d % 2), sink=3)[method] + d / 8
                    lines.append(dict(line, document=f"{task}-{d}", kl_mean=damage, nll_diff=damage / 2,
                                      match=1 - damage / 4 if task == "passkey" else ""))
                    lines.append(dict(line, document=f"{task}-{d}", layer=0, drift=0.5))
        return self.write(table(lines), name)

    def compare(self, *flags):
        return rows(self.ok("compare", *flags))

    def test_comparison_of_two_methods_by_document(self):
        path = self.documents("documents.csv")
        text, passkey = self.compare(path, "--a", "snapkv", "--b", "h2o")
        self.assertEqual([text[key] for key in ("model", "text",
                                                "task", "question", "context_tokens", "inject", "metric", "verdict")],
                         ["m.gguf", "book.txt", "text", "outside", "4096", "all", "kl", "a better"])
        self.assertEqual([float(text[key]) for key in ("diff", "diff_lo", "diff_hi", "p_value", "p_adjusted", "blocks",
                                                       "pairs")], [-1, -1, -1, 2 / 2**8, 4 / 2**8, 8, 8])
        # Half of the differences are 0: the other four give no p-value below 2 / 2^4.
        self.assertEqual((passkey["task"], passkey["verdict"], float(passkey["diff"]), float(passkey["p_value"])),
                         ("passkey", "not distinguishable", -1, 0.125))
        (_, passkey) = self.compare(path, "--a", "snapkv", "--b", "sink", "--metric", "match")
        self.assertEqual((passkey["verdict"], float(passkey["diff"])), ("a better", 0.5))
        self.assertEqual([r["ratio"] for r in self.compare(path, "--a", "snapkv", "--b", "sink", "--metric", "nll")],
                         ["", ""])
        shown = run("compare", path, "--a", "snapkv", "--b", "h2o", "--format", "md").stdout
        self.assertIn("| task passkey | snapkv |", shown)

    def test_two_files_join_by_document(self):
        paths = self.documents("one.csv", ["snapkv"]), self.documents("two.csv", ["h2o", "sink"])
        self.assertEqual(self.compare(*paths, "--a", "snapkv", "--b", "h2o"),
                         self.compare(self.documents("both.csv"), "--a", "snapkv", "--b", "h2o"))
        self.fails(2, "several files hold 'h2o'", "document 'text-0' of task 'text'", "2:h2o",
                   args=["compare", paths[1], paths[1], "--a", "h2o"])

    def test_comparisons_that_are_refused(self):
        path = self.documents("refused.csv")
        self.fails(2, "Did you mean 'snapkv'?", args=["compare", path, "--a", "snapvk"])
        self.fails(2, "'rel_err' per document", "kl, top1, tv, sure_changed, nll, key_nll, match",
                   args=["compare", path, "--metric", "rel_err"])
        self.fails(2, "--by", "by task", args=["compare", path, "--by", "layer"])
        raw, sweep = self.path("raw.h5"), self.path("s.toml")
        self.ok("replay", self.trace, "-m", "sink,h2o", "--raw", raw)
        self.fails(2, "refused.csv is a table of kveval", "raw.h5 is not", args=["compare", raw, path, "--a", "sink"])
        open(sweep, "w").close()
        self.fails(2, "--sweep", "tables of kveval", args=["compare", path, "--sweep", sweep])
        whole = self.write(table([dict(document="all", method="sink", budget="25%mem", kl_mean=1)]), "whole.csv")
        self.fails(2, "no rows per document", "--per-document", args=["compare", whole])
