# SPDX-License-Identifier: Apache-2.0
"""A real model with sliding windows (scripts/fetch-model --gemma): three of its 18 layers see the whole context, and
only these are compressed.

Usage: kveval_gemma_test.py KVDUMP PRINT_ARRAY KVEVAL KVBENCH"""

from eval_harness import evaluate, harness, number, text_file

GEMMA = harness.CACHE / "gemma" / "gemma-3-270m-q4_k_m.gguf"
if not GEMMA.exists():
    harness.skip("no gemma3-270m: run scripts/fetch-model --gemma")
GLOBAL_LAYERS = ["5", "11", "17"]


def test_exact_equals_the_unmodified_model(folder):
    table = evaluate("--text", text_file(folder), "--method", "exact", "--budget", "100%", "--context", 700, "--score",
                     48, "--documents", 1, "--per-layer", model=GEMMA)
    assert [row["layer"] for row in table] == ["all", *GLOBAL_LAYERS], table
    row = table[0]   # this model amplifies a relative error of 1e-7 of the first layer to 1e-4 of the hidden state
    assert row["status"] == "ok" and number(row, "top1") == 1, row
    assert abs(number(row, "nll_diff")) < 1e-4 and number(row, "kl_p99") < 1e-6, row


def test_a_window_loses_the_passkey(folder):
    """The sliding windows of the other layers (512 tokens) reach the needle from none of the scored tokens."""
    table = evaluate("--text", text_file(folder), "--task", "passkey", "--method", "sink", "--budget", "5%",
                     "--context", 1200, "--documents", 2, "--per-layer", model=GEMMA)
    whole = [row for row in table if row["layer"] == "all"]
    assert [row["layer"] for row in table if row["layer"] != "all"] == GLOBAL_LAYERS, table
    # What a layer adds is normalised after the projection, so its error is of the size of the change that it causes.
    first = next(row for row in table if row["layer"] == "5")
    assert 0.2 < number(first, "residual_err") / number(first, "drift") < 10, first
    assert number(whole[0], "match_full") == 1 and number(whole[0], "match") < 1, whole
    assert number(whole[0], "kl_mean") > 0.1, whole


harness.run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
