# SPDX-License-Identifier: Apache-2.0
"""Ceilings of kvbench replay on the bundled trace: mass_ceiling, --refit weights and oracle-error."""
import pathlib
import sys

from support import CliTest, rows, run

TRACE = str(pathlib.Path(sys.argv[3]).resolve())
EVICTION = "snapkv,h2o,h2o[per=query_head],pyramidkv,random,subgen-kcenter"


class Ceilings(CliTest):
    def replay(self, *flags):
        return rows(self.ok("replay", TRACE, "--seeds", "1", *flags))

    def test_no_eviction_keeps_more_mass_than_the_ceiling(self):
        for protocol in ("prefill", "decode"):
            table = self.replay("-m", EVICTION, "-b", "5%,25%", "--layers", "2,14", "--protocol", protocol)
            with_ceiling = [r for r in table if r["mass_ceiling_mean"]]
            methods = {r["method"] for r in with_ceiling}
            self.assertLessEqual({"snapkv", "h2o", "pyramidkv", "random"}, methods)
            for r in with_ceiling:
                kept, ceiling = float(r["kept_mass_mean"]), float(r["mass_ceiling_mean"])
                self.assertLess(kept, ceiling + 1e-5, r["method"])
                self.assertLess(ceiling, 1)
            snapkv = {r["budget"]: float(r["mass_ceiling_mean"]) for r in table
                      if (r["method"], r["layer"]) == ("snapkv", "14")}
            self.assertGreater(snapkv["25%"], snapkv["5%"])

    def refit(self, *flags):
        return self.replay("-m", "snapkv,uniform,quest", "-b", "25%", "--layers", "14", "--prompts", "1",
                           "--rows", "trace", "--refit", "weights", *flags)

    def test_fitted_weights_have_smaller_errors_than_own_ones(self):
        table = self.refit("--protocol", "prefill")
        self.assertEqual([(r["method"], r["refit"]) for r in table],
                         [("snapkv", ""), ("snapkv", "own"), ("snapkv", "fitted"),
                          ("uniform", ""), ("uniform", "own"), ("uniform", "fitted"), ("quest", "")])
        by = {(r["method"], r["refit"]): r for r in table}
        for method in ("snapkv", "uniform"):
            whole, own, fitted = (by[method, refit] for refit in ("", "own", "fitted"))
            self.assertLess(float(fitted["rel_err_mean"]), float(own["rel_err_mean"]))
            self.assertLessEqual(float(fitted["kept_tokens"]), float(own["kept_tokens"]))
            self.assertEqual(fitted["total_bytes"], whole["total_bytes"])
            for row in (own, fitted):
                self.assertEqual(2 * int(row["query_rows"]), int(whole["query_rows"]))
                self.assertIn("measured on the last half", row["reason"])
                self.assertEqual((row["best"], row["tied"]), ("", ""))
            self.assertTrue(whole["best"])

    def test_query_heads_with_their_own_sets_have_their_own_weights(self):
        table = self.replay("-m", "snapkv[per=query_head]", "-b", "25%", "--layers", "14", "--prompts", "0", "--rows",
                            "trace", "--decoded", "keep", "--refit", "weights")
        whole, own, fitted = table
        self.assertLess(float(fitted["rel_err_mean"]), 0.9 * float(own["rel_err_mean"]))
        self.assertLess(float(whole["kept_mass_mean"]), float(whole["mass_ceiling_mean"]))

    def test_own_rows_are_the_last_half_of_the_method(self):
        flags = ("-m", "snapkv", "-b", "25%", "--layers", "14", "--heads", "0", "--prompts", "1",
                 "--rows", "query", "--refit", "weights")
        table = [r for r in self.replay(*flags) if r["query"] != "all"]
        errors = {(r["refit"], r["head"], r["query"]): r["rel_err_mean"] for r in table}
        queries = sorted({int(r["query"]) for r in table})
        for query in queries:
            for head in ("0", "1", "2"):
                expected = errors["", head, str(query)] if query >= queries[len(queries) // 2] else ""
                self.assertEqual(errors["own", head, str(query)], expected)

    def test_sets_that_change_are_skipped(self):
        by = {(r["method"], r["refit"]): r for r in self.replay(
            "-m", "h2o", "-b", "25%", "--layers", "14", "--prompts", "1", "--rows", "trace", "--refit", "weights")}
        self.assertEqual(by["h2o", "fitted"]["status"], "skipped")
        self.assertIn("use --protocol prefill", by["h2o", "fitted"]["reason"])
        self.assertEqual(by["h2o", "own"]["status"], "ok")

    def test_hindsight_is_not_ranked(self):
        shown = run("replay", TRACE, "-m", "snapkv,uniform", "-b", "25%", "--prompts", "1", "--refit", "weights",
                    "--format", "table").stdout
        self.assertIn("snapkv has the lowest predicted KL", shown)
        self.assertIn("snapkv: fitted weights", shown)
        self.assertNotIn("weights has the lowest", shown)
        csv, page = (self.path(name) for name in ("refit.csv", "refit.html"))
        run("replay", TRACE, "-m", "snapkv,uniform", "-b", "25%", "--prompts", "1", "--refit", "weights", "-o", csv)
        self.ok("report", csv, "-o", page)
        self.assertIn("Selection and weights", self.read(page))

    def test_oracle_error_has_the_smallest_error_of_common_sets(self):
        table = self.replay("-m", "snapkv,h2o,uniform,oracle-error", "-b", "10%", "--layers", "14", "--prompts",
                            "1", "--protocol", "prefill", "--rows", "trace", "--refit", "weights")
        by = {(r["method"], r["refit"]): r for r in table}
        oracle = by["oracle-error", ""]
        self.assertEqual((oracle["status"], oracle["best"]), ("ok", ""))
        self.assertLessEqual(float(oracle["kept_tokens"]), 0.1 * float(oracle["context_tokens"]))
        for method in ("snapkv", "h2o", "uniform"):
            self.assertLess(float(oracle["rel_err_mean"]), float(by[method, ""]["rel_err_mean"]))
            self.assertLess(float(oracle["rel_err_mean"]), float(by[method, "fitted"]["rel_err_mean"]))

    def test_results_do_not_depend_on_threads(self):
        flags = ("replay", TRACE, "-m", "snapkv,oracle-error", "-b", "5%", "--layers", "14", "--prompts", "1",
                 "--refit", "weights", "--no-times")
        self.assertEqual(run(*flags, "--threads", "1").stdout, run(*flags, "--threads", "3").stdout)
