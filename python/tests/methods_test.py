# SPDX-License-Identifier: Apache-2.0
"""Methods written in Python: their rows against those of built-in methods, names and settings, and what is refused."""
import json
import math
import os
import pathlib
import re
import subprocess
import sys

from support import KVBENCH, PACKAGE, SAMPLE, PackageTest, kvbench, run

PROGRAM = sys.argv[3]
METHODS = str(PACKAGE / "tests" / "methods" / "selections.py")
FAULTS = str(PACKAGE / "tests" / "methods" / "faults.py")
NUMPY = str(PACKAGE / "tests" / "methods" / "numpy_methods.py")
# Facts about how rows were computed, not what they say.
APART = "^(method|params|kl_measured|costs|.*_s|.*_flops|peak_bytes|.*best.*|tested_over|tied)$"

sys.path.insert(0, os.path.dirname(METHODS))
import selections  # noqa: E402


class MethodTest(PackageTest):
    def rows(self, trace, methods, budgets=("25%", 24), **flags):
        rows = kvbench.replay(trace, methods, list(budgets), no_times=True, seeds=2, **flags)
        for row in rows:
            self.assertEqual((row["status"], row["reason"] if row["status"] != "ok" else ""), ("ok", ""))
        return rows

    def assert_same_rows(self, trace, one, other, apart="none", rel=1e-4, **flags):
        """Both methods have the same rows, but for the columns whose names match APART or `apart`; figures may differ
        by the rounding of sums in another order."""
        rows = self.rows(trace, [one, other], **flags)
        half = len(rows) // 2
        by_method = sorted(rows, key=lambda row: row["method"] != rows[0]["method"])
        for a, b in zip(by_method[:half], by_method[half:]):
            self.assertNotEqual(a["method"] + str(a["params"]), b["method"] + str(b["params"]))
            for column in (name for name in a if not re.search(f"{APART}|{apart}", name)):
                same = a[column] == b[column] or (isinstance(a[column], float) and isinstance(b[column], float)
                                                  and math.isclose(a[column], b[column], rel_tol=rel, abs_tol=1e-6))
                self.assertTrue(same, f"{column} is {a[column]} for {a['method']}, {b[column]} for {b['method']}")


class Rows(MethodTest):
    def test_snapkv_and_h2o_in_numpy_are_the_built_in_ones(self):
        for protocol in ("decode", "prefill"):
            for own, built_in in (("snapkv", "snapkv"), ("H2O", "h2o")):
                with self.subTest(own, protocol=protocol):  # which tokens h2o always keeps is not declared
                    self.assert_same_rows(SAMPLE, f"{NUMPY}:{own}", built_in, budgets=("25%mem", 64), rows="head",
                                          layers=[2, 26], protocol=protocol, apart="recall" if own == "H2O" else "none")

    def test_forms_of_fixed_entries(self):
        trace = self.synth("t.h5")
        sink = "sink[sinks=3,reposition=false]"
        for form in ("array", "list", "table", "kept"):
            with self.subTest(form):  # sink always keeps its tokens, so that they do not count in recall
                self.assert_same_rows(trace, selections.Recent(sinks=3, form=form), sink, protocol="prefill",
                                      apart="recall")
        rows = self.rows(trace, selections.Recent(sinks=3, form="heads"), [24], rows="trace", protocol="prefill")
        plain = self.rows(trace, selections.Recent(sinks=3), [24], rows="trace", protocol="prefill")
        self.assertEqual([row["rel_err_mean"] for row in rows], [row["rel_err_mean"] for row in plain])
        self.assertEqual([row["total_bytes"] for row in rows], [2 * row["total_bytes"] for row in plain])

    def test_decoded_tokens_are_added_exactly(self):
        trace = self.synth("t.h5")
        self.assert_same_rows(trace, selections.Recent(), selections.Adding)
        self.assertEqual(set(selections.AddingCache.blocks), {64})

    def test_a_state_that_changes_with_every_token(self):
        trace = self.synth("t.h5")
        self.assert_same_rows(trace, selections.Window, "sink[sinks=0,reposition=false]", apart="recall|mass")

    def test_entries_per_query_and_query_head(self):
        trace = self.synth("t.h5")
        for protocol in ("prefill", "decode"):
            self.assert_same_rows(trace, selections.TopK, "oracle-topk", rows="query", protocol=protocol,
                                  apart="bytes|compression", rel=1e-2)  # oracle-topk holds the ids that it reads

    def test_own_keys_and_values(self):
        trace = self.synth("t.h5")
        self.assert_same_rows(trace, selections.Pairs, selections.PairsPerQuery)
        merged = self.rows(trace, selections.Pairs, [96], rows="trace")[0]["rel_err_mean"]
        dropped = self.rows(trace, selections.Recent, [1], rows="trace")[0]["rel_err_mean"]
        self.assertGreater(merged, 0)
        self.assertLess(merged, dropped)

    def test_all_heads_of_a_layer_in_one_call(self):
        trace = self.synth("t.h5")
        self.assert_same_rows(trace, selections.Layer, selections.LayerWithCache, rows="head", apart="reason")
        rows = self.rows(trace, selections.LayerWithCache, [24], rows="head")
        self.assertEqual({row["kept_tokens"] for row in rows if row["kv_head"] == 0}, {64.5})  # 32 + mean of 1 .. 64
        self.assertEqual({row["kept_tokens"] for row in rows if row["kv_head"] == 1}, {48.5})
        self.assertIn("shared out; heads: 2", [row["reason"] for row in rows])
        self.assert_same_rows(trace, selections.knorm, selections.layer_knorm, rows="head")

    def test_seeds(self):
        trace = self.synth("t.h5")
        draws = {row["rel_err_mean"] for row in self.rows(trace, selections.Drawn, [24], rows="query")
                 if row["query"] == 200 and row["head"] == 1 and row["layer"] == 0}
        self.assertEqual(len(draws), 2)

    def test_rows_do_not_depend_on_threads(self):
        methods = [f"{METHODS}:{name}" for name in ("Drawn", "TopK", "Window", "PairsPerQuery", "knorm",
                                                    "LayerWithCache")]
        texts = []
        for threads in (1, 2, 5):
            path = self.path(f"{threads}.csv")
            kvbench.replay(SAMPLE, methods, ["10%", 64], layers=[2, 26], rows="head", no_times=True, threads=threads,
                           output=path)
            texts.append(pathlib.Path(path).read_text())
        self.assertEqual(texts[0].count("failed"), 0)
        self.assertEqual(texts[1:], texts[:1] * 2)

    def test_a_quantiser_stores_their_tokens(self):
        trace = self.path("t.h5")
        run("synth", "-o", trace, "--tokens", 256, "--prompt-tokens", 192, "--queries", 96, "--head-dim", 32,
            "--value-dim", 32)
        rows = self.rows(trace, [f"{METHODS}:knorm+int8", f"{METHODS}:TopK+int8"], [24], rows="trace")
        plain = self.rows(trace, [f"{METHODS}:knorm", f"{METHODS}:TopK"], [24], rows="trace")
        for a, b in zip(rows, plain):
            self.assertEqual(a["kept_tokens"], b["kept_tokens"])
            self.assertLess(a["total_bytes"], 0.6 * b["total_bytes"])


class Names(MethodTest):
    def refused(self, method, *words, **flags):
        with self.refuses(*words):
            kvbench.replay(SAMPLE, method, 64, layers=2, prompts=0, **flags)

    def test_settings(self):
        trace = self.synth("t.h5")
        for given, params in (("Recent[sinks=3,share=0.5,reverse=true,form=list]",
                               "sinks=3;share=0.5;reverse=true;form=list"), ("Recent[sinks=0]", None),
                              ("knorm[power=2,recent=4,pooling=max,kernel=3]",
                               "power=2;recent=4;kernel=3;pooling=max"), ("knorm[recent=8]", None)):
            row = self.rows(trace, f"{METHODS}:{given}", [24], rows="trace")[0]
            self.assertEqual((row["method"], row["params"]), (f"{METHODS}:{given.split('[')[0]}", params))
        rows = kvbench.replay(trace, [selections.Recent(sinks=2), selections.Recent(sinks=5), selections.knorm,
                                      selections.knorm(recent=3, power=3.0), "sink"], 24, rows="trace")
        self.assertEqual([(row["method"], row["params"]) for row in rows],
                         [("py:Recent", "sinks=2"), ("py:Recent", "sinks=5"), ("py:knorm", None),
                          ("py:knorm", "power=3;recent=3"), ("sink", None)])
        row = self.rows(trace, f"{METHODS}:Recent", [24], rows="trace", set="Recent.sinks=7")[0]
        self.assertEqual(row["params"], "sinks=7")

    def test_names_that_are_refused(self):
        self.refused(f"{METHODS}:Recant", "selections.py defines no 'Recant'")
        self.refused(self.path("none.py") + ":Recent", "none.py", "no such file")
        self.refused("py:Unknown", "py:Unknown is not defined in this Python")
        self.refused(f"{FAULTS}:NoMethod", "NoMethod", "neither make")
        self.refused(f"{FAULTS}:BadKind", "kind is 'good'", "eviction")
        self.refused(f"{FAULTS}:BadNeeds", "needs has .'colours'.", "observed_queries")
        self.refused([selections.Recent(form="list"), type("Other", (), {})()], "Other object", "is no method")
        pathlib.Path(self.path("broken.py")).write_text("import kvbench\ndef half(:\n")
        self.refused(self.path("broken.py") + ":half", "SyntaxError", "broken.py", "line 2")

    def test_the_program_without_python(self):
        done = subprocess.run([KVBENCH, "replay", SAMPLE, "-m", f"{METHODS}:Recent"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("written in Python", done.stderr)
        self.assertIn("`pip install .`", done.stderr)

    def test_a_page_about_a_method(self):
        page = subprocess.run([PROGRAM, "methods", f"{METHODS}:knorm"], capture_output=True, text=True).stdout
        for words in ("The shortest keys", "power = 1", "recent = 8", "eviction"):
            self.assertIn(words, page)


class Sweeps(MethodTest):
    SWEEP = """
[[run]]
name = "own"
traces = "t.h5"
methods = ["sink", {{ name = "{0}:Recent", sinks = [1, 4], form = "list" }}, "{0}:Drawn"]
budgets = ["10%", 24]
seeds = 2
"""

    def sweep(self, *flags):
        done = subprocess.run([PROGRAM, "sweep", self.path("s.toml"), *flags], capture_output=True, text=True,
                              cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def setUp(self):
        super().setUp()
        self.synth("t.h5")
        pathlib.Path(self.path("mine.py")).write_bytes(pathlib.Path(METHODS).read_bytes())
        pathlib.Path(self.path("s.toml")).write_text(self.SWEEP.format("mine.py"))

    def test_shards_and_merge(self):
        whole = self.sweep("--no-times").stdout
        self.assertIn("sinks=4;form=list", whole)
        for shard in (1, 2):
            self.sweep("--shard", f"{shard}/2", "--cells", self.path(f"{shard}.cells"))
        parts = [self.path(f"{shard}.cells") for shard in (1, 2)]
        for program in (PROGRAM, KVBENCH):  # merging needs no Python
            merged = subprocess.run([program, "merge", *parts, "--no-times"], capture_output=True, text=True)
            self.assertEqual(merged.stdout, whole, merged.stderr)

    def test_exclusions_name_the_file_as_methods_do(self):
        exclude = ('exclude = [{ method = "./x/../mine.py:Recent", budget = 24 }, '
                   '{ method = "mine.py:Recent", sinks = 4 }]\n')
        pathlib.Path(self.path("s.toml")).write_text(self.SWEEP.format("mine.py") + exclude)
        rows = json.loads(self.sweep("--rows", "trace", "--no-times", "--format", "json").stdout)
        found = {(row["method"].split(":")[-1], row["params"] or "", row["budget"]) for row in rows}
        self.assertEqual(found, {("sink", "", "10%"), ("sink", "", "24"), ("Recent", "sinks=1;form=list", "10%"),
                                 ("Drawn", "", "10%"), ("Drawn", "", "24")})

    def test_resuming_after_the_file_has_changed(self):
        flags = ["--cells", self.path("c.cells"), "--resume", "-o", self.path("o.csv")]
        self.sweep(*flags)
        self.assertIn("16 of 16 cells are already computed\n", self.sweep(*flags).stderr)
        file = pathlib.Path(self.path("mine.py"))
        file.write_text(file.read_text() + "\n# changed\n")
        self.assertIn("4 of 16 cells are already computed", self.sweep(*flags).stderr)  # those of sink
