# SPDX-License-Identifier: Apache-2.0
"""The CSV without times is the same to the byte for any number of threads, for repeated runs, and for any selection of
heads."""
import os
import unittest

from support import SAMPLE, CliTest, main, rows, run


class Determinism(CliTest):
    def same(self, trace, *flags, counts=(1, 2, 3, 5, 1)):
        outputs = set()
        for threads in counts:
            done = run("replay", trace, "--no-times", "--threads", threads, *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            outputs.add(done.stdout)
        self.assertEqual(len(outputs), 1)
        return rows(outputs.pop())

    def test_synthetic(self):
        for protocol in ("prefill", "decode"):
            table = self.same(self.trace, "-m", "all", "-b", "10%,50%", "--protocol", protocol, "--rows", "head")
            self.assertGreater(len(table), 100)

    @unittest.skipUnless(os.path.exists(SAMPLE), "no bundled trace")
    def test_real_trace(self):
        self.same(SAMPLE, "-m", "all", "-b", "5%", "--layers", "14", "--heads", "0,1", "--seeds", "1", "--protocol",
                  "prefill", counts=(1, 2))

    def test_a_head_does_not_depend_on_the_others(self):
        def errors(*flags):
            done = run("replay", self.trace, "-m", "subgen,uniform", "--rows", "head", "--no-times", *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            return {(r["layer"], r["head"], r["method"], r["seed"]): r["rel_err_mean"]
                    for r in rows(done.stdout) if r["head"] != "all"}
        everything, part = errors(), errors("--layers", "1", "--heads", "1")
        self.assertGreater(len(part), 0)
        for key, value in part.items():
            self.assertEqual(everything[key], value)

    def test_seeds_change_what_is_random(self):
        done = run("replay", self.trace, "-m", "uniform,sink", "--rows", "head", "--no-times", "--seeds", "3")
        by_method = {}
        for r in rows(done.stdout):
            if r["head"] == "0" and r["layer"] == "0":
                by_method.setdefault(r["method"], []).append(r["rel_err_mean"])
        self.assertEqual(len(set(by_method["uniform"])), 3)
        self.assertEqual(len(by_method["sink"]), 1)


main()
