# SPDX-License-Identifier: Apache-2.0
"""kvbench.sentences(): what rows of comparisons say, in words."""
from support import SAMPLE, PackageTest, kvbench


def row(b, verdict, mean_b, p=0.5, budget="25%mem", **more):
    return {"a": "py:Mine", "budget_a": budget, "b": b, "budget_b": budget, "verdict": verdict, "metric": "rel_err",
            "mean_a": 0.2, "mean_b": mean_b, "p_adjusted": p, "tested_over": "10 layers and 3 texts", "reason": "",
            **more}


class Sentences(PackageTest):
    def test_verdicts_are_grouped(self):
        rows = [row("h2o", "b better", 0.1, 0.021), row("random", "a better", 1.24, 0.0004),
                row("sink", "a better", 0.3, 0.04), row("snapkv", "not distinguishable", 0.18),
                row("cam", "skipped", None, None, reason="too few layers"),
                row("h2o", "a better", 0.25, 0.03, "50%mem")]
        self.assertEqual(kvbench.sentences(rows), [
            "At 25%mem py:Mine, with a mean rel_err of 0.2, is better than 2 (random 1.24, sink 0.3; p <= 0.04), worse "
            "than 1 (h2o 0.1; p <= 0.021), not distinguishable from 1 (snapkv 0.18); tested over 10 layers and 3 "
            "texts. Not compared: cam.",
            "At 50%mem py:Mine, with a mean rel_err of 0.2, is better than 1 (h2o 0.25; p <= 0.03); tested over 10 "
            "layers and 3 texts."])

    def test_what_was_not_tested_is_not_called_equal(self):
        rows = [row("h2o", "not tested", 0.1, None, tested_over=None)]
        self.assertEqual(kvbench.sentences(rows), [
            "At 25%mem py:Mine, with a mean rel_err of 0.2, is not tested against 1 (h2o 0.1)."])
        rows = [row("h2o", "skipped", None, None, reason="they share no query")]
        self.assertEqual(kvbench.sentences(rows), [
            "At 25%mem nothing can be compared with py:Mine: they share no query."])

    def test_means_are_those_that_the_test_compares(self):
        both = row("h2o", "a better", 0.15, 0.01, over_places_a=0.124, over_places_b=0.126, ratio=1.3)
        self.assertEqual(kvbench.sentences([both]), [
            "At 25%mem py:Mine, with a geometric mean rel_err of 0.124, is better than 1 (h2o 0.126; p <= 0.01); "
            "tested over 10 layers and 3 texts."])
        signed = {**both, "ratio": float("nan")}  # of a metric that may be negative
        self.assertIn("with a mean rel_err of 0.124, is better than 1 (h2o 0.126", kvbench.sentences([signed])[0])
        blocks = row("sink", "a better", 0.3, 0.01, over_places_a=float("nan"), over_places_b=float("nan"), ratio=0.7)
        self.assertIn("with a mean rel_err of 0.2, is better than 2 (h2o 0.15, sink 0.3",
                      kvbench.sentences([both, blocks])[0])  # one kind of mean in one sentence

    def test_they_agree_with_compare(self):
        raw = self.path("raw.h5")
        kvbench.replay(SAMPLE, ["snapkv", "h2o", "random", "cam"], ["25%mem", 100], raw=raw, seeds=2,
                       layers=[2, 14, 26], rows="trace", quiet=True)
        rows = kvbench.compare(raw, a="snapkv")
        said = kvbench.sentences(rows)
        self.assertEqual(len(said), 2)
        for one in rows:
            sentence = said[one["budget_a"] == "100"]
            self.assertIn(f"{one['b']} {one['over_places_b']:.3g}" if one["verdict"] != "skipped" else one["b"],
                          sentence)
            self.assertIn(f"At {one['budget_a']} snapkv, with a geometric mean rel_err of {one['over_places_a']:.3g}",
                          sentence)
