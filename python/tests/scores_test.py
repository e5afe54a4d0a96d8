# SPDX-License-Identifier: Apache-2.0
"""kvbench.write_scores() and the method scores:FILE.h5."""

import os
import pathlib
import re
import subprocess
import sys
import warnings

import environment

environment.use(["h5py", "numpy"], "KVBENCH_PYTHON", "venv", "scripts/fetch-model --python")
from support import KVBENCH, PACKAGE, SAMPLE, PackageTest, kvbench, run  # noqa: E402
import h5py  # noqa: E402
import numpy as np  # noqa: E402


class Scores(PackageTest):
    """On a trace of two layers, each with 2 kv heads, and 192 of 256 tokens as the context."""

    def setUp(self):
        super().setUp()
        self.trace = self.synth("t.h5")
        random = np.random.default_rng(1)
        self.scores = {"0": {layer: random.normal(size=(2, 192)) + layer for layer in (0, 1)}}

    def write(self, scores=None, name="s.h5"):
        kvbench.write_scores(self.path(name), scores or self.scores, trace=self.trace)
        return "scores:" + self.path(name)

    def heads(self, *methods, budget="32"):
        """The rows by method, layer and kv head."""
        rows = self.replay(self.trace, "--method", ",".join(methods), "--budget", budget, "--rows", "head",
                           "--protocol", "prefill")
        return {(row["method"], row["layer"], row["kv_head"]): row for row in rows if str(row["head"]).isdigit()}

    def test_kept_tokens_follow_the_scores_within_each_scope(self):
        name = self.write()
        scores = np.array([self.scores["0"][layer] for layer in (0, 1)], np.float32)
        for scope, groups in (("head", scores.reshape(4, 192)), ("layer", scores.reshape(2, 384)),
                              ("model", scores.reshape(1, 768))):
            rows = self.heads(f"{name}[scope={scope}]")
            kept = np.array([[row["kept_tokens"] for (_, at, head), row in sorted(rows.items()) if at == layer]
                             for layer in (0, 1)])
            best = np.zeros(scores.size)
            for group, part in zip(groups, np.split(np.arange(768), len(groups))):
                best[part[np.argsort(-group, kind="stable")[:32 * len(part) // 192]]] = 1
            won = best.reshape(2, 2, 192).sum(-1)
            with self.subTest(scope):
                self.assertEqual(kept.sum(), 4 * 32)
                # A layer's budget is rounded to whole tokens per head.
                np.testing.assert_allclose(kept, won, atol=0 if scope != "model" else 1)

    def test_kept_tokens_are_those_with_the_best_scores(self):
        run("replay", self.trace, "--method", self.write() + "[sinks=2;recent=3]", "--budget", 20, "--protocol",
            "prefill", "--raw", self.path("r.h5"), "--raw-outputs", "-o", self.path("rows.csv"))
        with kvbench.Raw(self.path("r.h5")) as raw:
            for layer, scores in self.scores["0"].items():
                for head in (0, 1):
                    best = 2 + np.argsort(-scores[head, 2:189].astype(np.float32), kind="stable")[:15]
                    tables, _ = raw.head("0", layer, head).entries()
                    ids = np.concatenate([table.ids.ravel() for table in tables])
                    self.assertEqual(sorted(ids[ids < 192]), sorted([0, 1, *best, 189, 190, 191]))

    def test_inf_is_above_all_others(self):
        """Last tokens before first ones, the outermost before the others."""
        scores = {layer: values * 1e30 for layer, values in self.scores["0"].items()}
        scores[0][0, [0, 1, 189, 190, 191]] = np.inf
        rest = 2 + np.argsort(-scores[0][0, 2:189].astype(np.float32), kind="stable")
        name = self.write({"0": scores})
        for budget in (2, 4, 5, 9):
            run("replay", self.trace, "--method", name, "--budget", budget, "--protocol", "prefill", "--raw",
                self.path("r.h5"), "--raw-outputs", "-o", self.path("rows.csv"))
            with kvbench.Raw(self.path("r.h5")) as raw:
                ids = raw.head("0", 0, 0).entries()[0][0].ids
            self.assertEqual(sorted(ids[ids < 192]), sorted([191, 190, 189, 0, 1, *rest][:budget]))
        rows = self.heads(name + "[scope=model]", budget=2)
        self.assertGreaterEqual(rows["scores:" + self.path("s.h5"), 0, 0]["kept_tokens"], 4)

    def test_a_file_that_is_replaced_is_another_configuration(self):
        first = self.heads(self.write())
        second = self.heads(self.write({"0": {layer: -values for layer, values in self.scores["0"].items()}}))
        self.assertNotEqual({row["params"] for row in first.values()}, {row["params"] for row in second.values()})

    def test_compositions(self):
        name = self.write()
        rows = self.heads(name + "+int8", f"adakv({name})", f"adakv({name})+int8", budget="25%mem")
        self.assertEqual({row["status"] for row in rows.values()}, {"ok"})
        self.assertEqual(len({row["method"] for row in rows.values()}), 3)

    def test_scores_that_do_not_fit_are_refused_and_leave_no_file(self):
        good = self.scores["0"]
        cases = {"no prompt": ({}, "give a dict"),
                 "another prompt": ({"7": good}, "prompt '7'", "it has 0"),
                 "no layers": ({"0": good[0]}, "as a dict by the number"),
                 "words": ({"0": {"first": good[0]}}, "numbers of layers"),
                 "a missing layer": ({"0": {0: good[0]}}, "no scores of layers \\[1\\]"),
                 "another layer": ({"0": {**good, 2: good[0]}}, "no layer 2"),
                 "a head less": ({"0": {0: good[0][:1], 1: good[1]}}, "layer 0", "\\[1, 192\\]", "2 kv heads"),
                 "one axis": ({"0": {0: good[0][0], 1: good[1]}}, "layer 0", "\\[192\\]"),
                 "too many": ({"0": {0: np.zeros((2, 257)), 1: good[1]}}, "1 to 256 tokens"),
                 "none": ({"0": {0: np.zeros((2, 0)), 1: good[1]}}, "\\[2, 0\\]"),
                 "other numbers of tokens": ({"0": {0: good[0][:, :100], 1: good[1]}}, "different numbers of tokens"),
                 "NaN": ({"0": {0: good[0], 1: np.where(good[1] == good[1][1, 5], np.nan, good[1])}},
                         "layer 1", "kv head 1, token 5"),
                 "underflow": ({"0": {0: good[0] * 1e-60, 1: good[1]}}, "layer 0", "are 0 in float32"),
                 "infinity": ({"0": {0: good[0] * 1e300, 1: good[1]}}, "layer 0", "no finite number"),
                 "infinity inside": ({"0": {0: good[0], 1: np.where(np.arange(192) == 5, np.inf, good[1])}},
                                     "layer 1", "kv head 0, token 5", "first and last tokens"),
                 "one prompt twice": ({"0": good, 0: good}, "prompt '0'", "given twice"),
                 "no room": ({"0": {0: np.where(np.arange(192) == 0, np.inf, good[0] * 0 + 3.4028234e38), 1: good[1]}},
                             "prompt '0'", "scale the scores"),
                 "text": ({"0": {0: [["a"] * 192] * 2, 1: good[1]}}, "layer 0", "numbers")}
        for what, (scores, *words) in cases.items():
            with self.subTest(what), self.refuses(*words):
                kvbench.write_scores(self.path("s.h5"), scores, trace=self.trace)
            self.assertFalse(os.path.exists(self.path("s.h5")))

    def test_scores_that_float32_merges_are_told(self):
        near = {"0": {0: 1e9 + self.scores["0"][0], 1: self.scores["0"][1]}}
        with self.assertWarnsRegex(UserWarning, r"prompt '0', layer 0: 3\d\d scores differ and are equal in float32"):
            self.write(near)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.write()
            self.write({"0": {layer: values.astype(np.float32) for layer, values in near["0"].items()}})

    def test_what_a_replay_does_with_files_that_do_not_fit(self):
        name = self.write()
        other = self.synth("other.h5", "--seed", "5")
        self.fails(["replay", other, "--method", name, "--budget", "32"], "belongs to a trace with the SHA-256")
        self.fails(["replay", self.trace, "--method", "scores:" + self.path("none.h5"), "--budget", "32"], "none.h5")
        self.fails(["replay", self.trace, "--method", "scores:" + self.trace, "--budget", "32"], "it is a trace")
        self.fails(["methods", name, "--check"], "random heads")
        short = self.write({"0": {layer: values[:, :100] for layer, values in self.scores["0"].items()}}, "short.h5")
        (reason,) = {row["reason"] for row in self.heads(short).values()}
        self.assertRegex(reason, "short.h5 has scores of the first 100 tokens")
        with h5py.File(self.path("s.h5"), "r+") as file:
            del file["prompts/0/1"]
        reasons = {(row["layer"], row["reason"]) for row in self.heads(name).values()}
        self.assertRegex(dict(reasons)[1], "no scores of layer 1 of prompt '0'")
        with h5py.File(self.path("s.h5"), "r+") as file:
            file["prompts/0/0"][1, 7] = np.nan
        self.fails(["replay", self.trace, "--method", name, "--budget", "32"],
                   "/prompts/0/0: kv head 1, token 7 is nan", "kvbench.write_scores")

    def fails(self, command, *words):
        done = subprocess.run([KVBENCH, *command], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 2, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def run_example(self):
        page = (PACKAGE.parent / "docs/scores.md").read_text()
        script = pathlib.Path(self.path("example.py"))
        script.write_text(re.search(r"```python\n(.*?)```", page, re.S)[1])
        done = subprocess.run([sys.executable, script], cwd=self.folder, capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_example_of_the_page_runs(self):
        self.run_example()
        rows = self.heads("scores:" + self.path("scores.h5") + "[scope=model;sinks=4]")
        self.assertEqual({row["status"] for row in rows.values()}, {"ok"})

    def test_a_table_of_duo_attention_keeps_heads_whole(self):
        """Layer 0 has the numbers 0.3 and 0.9, layer 1 has 0.1 and 1.2, which is clipped."""
        pathlib.Path(self.path("heads.tsv")).write_text("0.3\t0.9\n0.1\t1.2\n")
        method = f"duo[table={self.path('heads.tsv')};sinks=4;recent=8]"
        for whole in ([(1, 1)], [(1, 1), (0, 1)], [(1, 1), (0, 1), (0, 0)]):
            budget = (192 * len(whole) + 12 * (4 - len(whole))) // 4
            run("replay", self.trace, "--method", method, "--budget", budget, "--protocol", "prefill", "--raw",
                self.path("r.h5"), "--raw-outputs", "-o", self.path("rows.csv"))
            with kvbench.Raw(self.path("r.h5")) as raw:
                for layer, head in ((0, 0), (0, 1), (1, 0), (1, 1)):
                    tables, _ = raw.head("0", layer, head).entries()
                    ids = np.concatenate([table.ids.ravel() for table in tables])
                    expected = range(192) if (layer, head) in whole else [*range(4), *range(184, 192)]
                    self.assertEqual(sorted(ids[(0 <= ids) & (ids < 192)].tolist()), list(expected))

    def early_attention(self, prompt):
        """By layer and kv head, in complex numbers: pairs of channels lie side by side."""
        scores, at = {}, np.arange(500)[:, None]
        for number, layer in prompt.layers.items():
            turn = 1j * layer.rope_theta ** (-np.arange(32) / 32)

            def mean(rows, positions):
                pairs = rows.astype(float).reshape(len(rows), 32, 2) @ (1, 1j)
                return (pairs * np.exp(-turn * np.asarray(positions)[:, None])).mean(0)
            for kv_head in range(3):
                keys = mean(layer.keys(kv_head), range(prompt.num_tokens)) * np.exp(turn * at)
                areas = []
                for head in range(3 * kv_head, 3 * kv_head + 3):
                    query = mean(layer.queries(head), layer.query_positions) * np.exp(turn * 499)
                    weights = np.exp((keys.conj() @ query).real / 8)
                    areas.append(np.cumsum(weights / weights.sum()).mean())
                scores[number, kv_head] = np.mean(areas)
        return scores

    def test_duo_kvpress_keeps_the_best_heads_of_all_layers_whole(self):
        """Whole heads hold 1024 tokens, the others 64; 15 heads are ranked."""
        with kvbench.Trace(SAMPLE) as trace:
            scores = self.early_attention(trace.prompts["1"])
        best = sorted(scores, key=scores.get, reverse=True)
        flags = ("-m", "duo@kvpress[sinks=4,recent=60]", "--prompts", 0, "--rows", "head", "--protocol", "prefill")

        def whole(budget, *more):
            rows = self.replay(SAMPLE, *flags, "-b", budget, "--calibrate", f"{SAMPLE}:1", *more)
            heads = {(row["layer"], row["kv_head"]): row for row in rows if str(row["head"]).isdigit()}
            self.assertEqual({row["kept_tokens"] for row in heads.values()} - {64, 1024}, set())
            self.assertLessEqual(sum(row["total_bytes"] for row in heads.values()), len(heads) * 1024 * 256 *
                                 (int(budget[:-4]) / 100 if "mem" in str(budget) else 1))
            return {head for head, row in heads.items() if row["kept_tokens"] == 1024}
        for budget in (64, 127, 128, 400, 1023, 1024):
            self.assertEqual(whole(budget), set(best[:15 * (budget - 64) // 960]))
        # 7 * 1024 + 8 * 64 tokens are half of 15 * 1024, beside which the lengths of heads have no room.
        self.assertEqual(whole("50%mem"), set(best[:6]))
        self.assertEqual(whole(400, "--layers", 14), {head for head in best[:5] if head[0] == 14})
        for status, words, *given in (("skipped", "name one with --calibrate", "-b", 400),
                                      ("infeasible", "every head keeps 64 tokens", "-b", 63, "--calibrate",
                                       f"{SAMPLE}:1"),
                                      ("infeasible", "costs at least 6.25 %", "-b", "5%mem", "--calibrate",
                                       f"{SAMPLE}:1")):
            for row in self.replay(SAMPLE, *flags, *given):
                self.assertEqual(row["status"], status)
                self.assertIn(words, row["reason"])
