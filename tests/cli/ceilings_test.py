# SPDX-License-Identifier: Apache-2.0
"""Ceilings of kvbench replay on the bundled trace: mass_ceiling and oracle-error."""
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

    def test_oracle_error_has_the_smallest_error_of_common_sets(self):
        table = self.replay("-m", "snapkv,h2o,uniform,oracle-error", "-b", "10%", "--layers", "14", "--prompts",
                            "1", "--protocol", "prefill", "--rows", "trace")
        by = {r["method"]: r for r in table}
        oracle = by["oracle-error"]
        self.assertEqual((oracle["status"], oracle["best"]), ("ok", ""))
        self.assertLessEqual(float(oracle["kept_tokens"]), 0.1 * float(oracle["context_tokens"]))
        for method in ("snapkv", "h2o", "uniform"):
            self.assertLess(float(oracle["rel_err_mean"]), float(by[method]["rel_err_mean"]))

    def test_results_do_not_depend_on_threads(self):
        flags = ("replay", TRACE, "-m", "snapkv,oracle-error", "-b", "5%", "--layers", "14", "--prompts", "1",
                 "--no-times")
        self.assertEqual(run(*flags, "--threads", "1").stdout, run(*flags, "--threads", "3").stdout)
