# SPDX-License-Identifier: Apache-2.0
"""The method with the lowest error at a quarter of the memory is the same on all layers of the model as on those of the
bundled trace. Errors are compared, because kvdump records no probes.

Usage: answer_test.py KVDUMP PRINT_ARRAY KVBENCH BUNDLED_TRACE"""
import csv
import subprocess
import sys

from harness import Trace, kvdump, run_tests

KVBENCH, BUNDLED = sys.argv[3:5]
SEEDS = 1  # of methods whose errors are far above those of the best
METHODS = "families"  # the best of "all" are among them, and the slowest are not
FACTOR = 2  # methods whose error is larger than the least one by this factor on some layers are not asked on all


def rows(trace, output, *flags):
    """The rows over all layers and texts."""
    subprocess.run([KVBENCH, "replay", trace, *flags, "--seeds", str(SEEDS), "--no-times", "-o", output], check=True,
                   stderr=subprocess.DEVNULL)
    with open(output, newline="") as file:
        return [r for r in csv.DictReader(file) if r["prompt"] == r["layer"] == "all" and r["status"] == "ok"]


def ranked(trace, output, methods):
    """The ranked rows at a quarter of the memory, in ascending order of the error."""
    found = rows(trace, output, "--method", methods, "--budget", "25%mem", "--rank-by", "rel_err")
    return sorted((r for r in found if r["best"]), key=lambda r: float(r["rel_err_mean"]))


def configuration(row):
    return row["method"], row["params"]


def test_the_answer_holds_on_all_layers(folder):
    bundled = Trace(BUNDLED)
    texts = []
    for number, prompt in enumerate(bundled.info["prompts"]):
        path = folder / f"{number}.ids"
        path.write_text("\n".join(map(str, prompt["tokens"])) + "\n")
        texts += ["--ids", path]
    kvdump(*texts, "--f32", "--dtype", "f16", "--speculated", "--prompt-tokens", "1024", "--queries", "last:128", "-o",
           folder / "all.h5")
    some = ranked(BUNDLED, folder / "some.csv", METHODS)
    near = [r for r in some if float(r["rel_err_mean"]) < FACTOR * float(some[0]["rel_err_mean"])]
    assert len(near) > 3 and not any(r["params"] for r in near), near
    every = ranked(folder / "all.h5", folder / "every.csv", ",".join(r["method"] for r in near))
    assert int(some[0]["layers"]) < int(every[0]["layers"]) == int(every[0]["model_layers"]), (some[0], every[0])
    assert configuration(some[0]) == configuration(every[0]), [(configuration(s), configuration(e))
                                                               for s, e in zip(some, every)]
    # The layers of the bundled trace lie half a layer before the middle of the model on average, so that a method whose
    # budget falls from layer to layer gets more on them by half a step: 7 of 266 tokens.
    pyramid = [float(rows(trace, folder / "pyramid.csv", "--method", "pyramidkv", "--budget",
                          "25%")[0]["budget_tokens"]) for trace in (BUNDLED, folder / "all.h5")]
    assert 1.01 < pyramid[0] / pyramid[1] < 1.04, pyramid


run_tests([test_the_answer_holds_on_all_layers])
