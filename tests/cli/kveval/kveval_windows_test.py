# SPDX-License-Identifier: Apache-2.0
"""Layers with sliding windows stay exact, and what kvdump refuses is refused with the same message.

Usage: kveval_windows_test.py KVDUMP PRINT_ARRAY KVEVAL KVBENCH"""

import eval_harness
from eval_harness import evaluate, harness, kveval, number

harness.use_environment()
import tiny_model as tiny  # noqa: E402

SMALL = ["--context", 80, "--score", 16, "--budget", "25%", "--method", "sink", "--per-layer", "--no-f32"]


def ids_file(folder):
    path = folder / "ids"
    path.write_text(" ".join(str((i * i * 31 + i * 7) % tiny.VOCAB) for i in range(100)))
    return path


def test_window_layers_stay_exact(folder):
    model = tiny.write(folder / "m.gguf", "gemma3", tiny.GEMMA | tiny.QK_NORMS, 6,
                       {"attention.sliding_window": 16, "rope.freq_base": 1e6, "rope.freq_base_swa": 1e4})
    table = evaluate("--ids", ids_file(folder), *SMALL, model=model)
    assert [r["layer"] for r in table] == ["all", "5"], table
    assert table[0]["status"] == "ok" and number(table[0], "kl_mean") > 1e-6, table
    exact = evaluate("--ids", ids_file(folder), *SMALL, "--method", "exact[]", "--budget", "100%", model=model)
    assert max(number(r, "kl_mean") for r in exact if r["method"] == "exact" and r["layer"] == "all" and r["budget"] == "100%") < 1e-6


def test_capped_layers_stay_exact(folder):
    model = tiny.write(folder / "m.gguf", "gemma2", tiny.GEMMA, 4, {"attention.sliding_window": 24, "attn_logit_softcapping": 5.0})
    message = kveval("--ids", ids_file(folder), *SMALL, model=model, expect=2)
    assert "caps its logits" in message, message


def test_models_without_a_tokenizer_and_refused_models(folder):
    model = tiny.write(folder / "m.gguf", "llama", tiny.LLAMA, 2)
    text = eval_harness.text_file(folder)
    message = kveval("--text", text, *SMALL, model=model, expect=2)
    theirs = harness.kvdump("--text", text, "-o", folder / "t.h5", model=model, expect=2)
    assert "has no tokenizer; give token ids with --ids" in message and message.split(":", 1)[1] == theirs.split(":", 1)[1], (message, theirs)


harness.run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
