# SPDX-License-Identifier: Apache-2.0
"""The answer of `make run` about a quarter of the memory holds on all layers of the model, not only on those of the bundled trace.

Usage: answer_test.py KVDUMP PRINT_ARRAY KVBENCH BUNDLED_TRACE"""
import csv
import subprocess
import sys

from harness import Trace, kvdump, run_tests

KVBENCH, BUNDLED = sys.argv[3:5]
SEEDS = 2  # of methods whose errors are far above those of the best


def rows(trace, output):
    """The ranked rows over all layers and texts, in ascending order of the error."""
    subprocess.run([KVBENCH, "replay", trace, "--method", "all", "--budget", "25%mem", "--seeds", str(SEEDS), "--no-times", "-o", output],
                   check=True, stderr=subprocess.DEVNULL)
    with open(output, newline="") as file:
        ranked = [r for r in csv.DictReader(file) if r["prompt"] == "all" and r["layer"] == "all" and r["status"] == "ok" and r["best"]]
    return sorted(ranked, key=lambda r: float(r["rel_err_mean"]))


def configuration(row):
    return row["method"], row["params"]


def test_the_answer_holds_on_all_layers(folder):
    bundled = Trace(BUNDLED)
    texts = []
    for number, prompt in enumerate(bundled.info["prompts"]):
        path = folder / f"{number}.ids"
        path.write_text("\n".join(map(str, prompt["tokens"])) + "\n")
        texts += ["--ids", path]
    kvdump(*texts, "--dtype", "f16", "--speculated", "-o", folder / "all.h5")
    some, every = rows(BUNDLED, folder / "some.csv"), rows(folder / "all.h5", folder / "every.csv")
    assert int(some[0]["layers"]) < int(every[0]["layers"]) == int(every[0]["model_layers"]), (some[0], every[0])
    assert configuration(some[0]) == configuration(every[0]), [(configuration(s), configuration(e)) for s, e in zip(some, every)]


run_tests([test_the_answer_holds_on_all_layers])
