# SPDX-License-Identifier: Apache-2.0
"""Files of own entries, and raw results, which hold the entries of a method."""
import os
import subprocess
import sys

from support import PACKAGE, SAMPLE, KVBENCH, PackageTest, kvbench, main, run
import numpy as np

# Recall is left out: it counts the tokens that a method may drop, which a file does not state.
COLUMNS = ("rel_err_mean", "rel_err_max", "log_z_err_mean", "kept_tokens")


class Kept(PackageTest):
    def scored(self, trace, *flags):
        """The rows of file:kept.h5."""
        return self.replay(trace, "-m", "file:" + self.path("kept.h5"), *flags)

    def close(self, ours, theirs):
        self.assertEqual(len(ours), len(theirs))
        for a, b in zip(ours, theirs):
            self.assertEqual((a["status"], b["status"]), ("ok", "ok"), a["reason"])
            for column in COLUMNS:
                self.assertAlmostEqual(a[column], b[column], delta=1e-5 * abs(b[column]) + 1e-6, msg=column)

    def test_the_example_equals_sink(self):
        """select() of the example keeps the tokens of the built-in sink, so that its rows agree except for the name."""
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE))
        for trace, budget in ((SAMPLE, "512"), (self.synth("t.h5"), "48")):
            command = [sys.executable, PACKAGE / "examples" / "score_a_method.py", trace, "--kvbench", KVBENCH,
                       "--budget", budget]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = [line.split() for line in done.stdout.splitlines()]
            ours, theirs = lines[0::2], lines[1::2]
            self.assertEqual({line[0] for line in ours} | {line[0] for line in theirs}, {"select()", "sink"})
            self.assertGreater(len(ours), 2)
            for a, b in zip(ours, theirs, strict=True):
                self.assertEqual(a[1:5], b[1:5])  # layer, kept
                self.assertAlmostEqual(float(a[-1]), float(b[-1]), delta=1e-5 * float(b[-1]))
                self.assertGreater(float(b[-1]), 0.01)

    def test_another_choice_scores_differently(self):
        trace = self.synth("t.h5")
        with kvbench.Trace(trace) as opened:
            kvbench.write_kept(self.path("kept.h5"), opened, lambda layer, kv_head: np.arange(0, 192, 4))
        (ours,) = self.scored(trace, "--protocol", "prefill", "--rows", "trace")
        (sink,) = self.replay(trace, "-m", "sink", "-b", 48, "--protocol", "prefill", "--rows", "trace")
        self.assertEqual((ours["kept_tokens"], sink["kept_tokens"]), (48, 48))
        self.assertGreater(abs(ours["rel_err_mean"] / sink["rel_err_mean"] - 1), 0.01)

    def test_entries_of_a_method_written_again_score_as_the_method(self):
        """Raw and KeptWriter preserve weights, own keys and values, and tables per head and per query."""
        trace = self.synth("t.h5")
        flags = ("-b", 48, "--seeds", 1, "--protocol", "prefill", "--no-times")
        methods = ("snapkv", "subgen", "chelsea", "oracle-topk")
        own = self.replay(trace, "-m", ",".join(methods), *flags, "--raw", self.path("raw.h5"), "--rows", "trace")
        with (kvbench.Raw(self.path("raw.h5")) as raw, kvbench.Trace(trace) as opened,
              kvbench.KeptWriter(self.path("kept.h5")) as out):
            self.assertEqual([(c.method, c.budget, c.seed) for c in raw.cells], [(m, "48", 0) for m in methods])
            kinds = set()
            for head in raw.heads:
                layer = opened.prompts[head.prompt].layers[head.layer]
                for cell in range(len(methods)):
                    tables, positions = head.entries(cell)
                    kinds |= {(t.per_head, t.per_query, t.weight_num is not None, t.own_keys is not None) for t in tables}
                    out.head(layer, head.kv_head, tables, cell, positions)
            self.assertEqual([max(flags) for flags in zip(*kinds)], [True] * 4)  # each of the four occurred
        for cell, row in enumerate(own):
            self.close(self.scored(trace, "--set", f"file.cell={cell}", *flags, "--rows", "trace"), [row])

    def test_raw_metrics_are_those_of_the_csv(self):
        trace = self.synth("t.h5")
        rows = self.replay(trace, "-m", "sink", "--protocol", "prefill", "--raw", self.path("raw.h5"), "--rows", "head")
        rows = {(r["layer"], r["head"]): r for r in rows if r["head"] not in ("all", None) and r["head"] == r["head"]}
        self.assertEqual(len(rows), 2 * 4)
        with kvbench.Raw(self.path("raw.h5")) as raw:
            self.assertEqual((raw.model, raw.cells[0].method, len(raw.trace_sha256)), ("synthetic-gaussian", "sink", 64))
            for head in raw.heads:
                errors = head.metric("rel_err")
                self.assertEqual((errors.shape, head.output().shape), ((2, 64), (2, 64, 12)))
                self.assertEqual((head.status(), head.reason(), head.budget_tokens()), ("ok", "", 48))
                for g in range(2):
                    mean = rows[head.layer, 2 * head.kv_head + g]["rel_err_mean"]
                    self.assertAlmostEqual(float(errors[g].mean()), mean, places=5)
            self.assertIs(raw.head("0", 1, 1).metric("recall").dtype, np.dtype(np.float32))
            with self.refuses("no metric 'x'", "rel_err"):
                raw.heads[0].metric("x")
            with self.refuses("nothing for prompt '0', layer 7"):
                raw.head("0", 7, 0)
            with self.refuses("no cell 1"):
                raw.heads[0].output(1)

    def test_entries_that_cannot_be_used_are_refused(self):
        trace, ids = self.synth("t.h5"), np.arange(6)
        table = kvbench.Table
        with kvbench.Trace(trace) as opened:
            for words, entries in (
                    (["ids", r"\[0, 256\)"], np.array([0, 256])),
                    (["ids", r"\[0, 256\)"], np.array([-2])),
                    (["ids", "integers"], np.array([0.5])),
                    (["1 rows", "per_head=True", "require 2"], table(ids=ids, per_head=True)),
                    (["2 rows", "require 1"], ids.reshape(2, 3)),
                    (["95 rows", "per_query=True require 96"], table(ids=np.zeros((95, 1), int), per_query=True)),
                    (["weight_den", r"\[5\]", r"\[1, 6\]"], table(ids=ids, weight_den=np.ones(5))),
                    (["own_values", r"\[1, 6, 12\]"], table(ids=ids, own_values=np.ones((6, 16)))),
                    (["own_keys", "finite"], table(ids=ids, own_keys=np.full((6, 16), np.inf)))):
                with self.subTest(words=words), self.refuses("kept.h5", "layer 0, kv head 0", *words):
                    kvbench.write_kept(self.path("kept.h5"), opened, lambda layer, kv_head: entries)
            with self.refuses("2 kv heads"), kvbench.KeptWriter(self.path("kept.h5")) as out:
                out.head(opened.prompts["0"].layers[0], 2, ids)
            with self.refuses("cell 0 was written already"), kvbench.KeptWriter(self.path("kept.h5")) as out:
                out.head(opened.prompts["0"].layers[0], 0, ids)
                out.head(opened.prompts["0"].layers[0], 0, ids)
            with self.refuses("consecutive"), kvbench.KeptWriter(self.path("kept.h5")) as out:
                out.head(opened.prompts["0"].layers[0], 0, ids, positions=[160, 162])
            with self.refuses("no head"), kvbench.KeptWriter(self.path("kept.h5")):
                pass
        self.assertEqual(os.listdir(self.folder), ["t.h5"])
        with self.refuses("t.h5", "kvbench_raw"):
            kvbench.Raw(trace)


main()
