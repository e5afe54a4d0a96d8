# SPDX-License-Identifier: Apache-2.0
"""kveval with q8_0 and q4_0 against llama.cpp that keeps its own cache in these types, on the same tokens, with the
real model of scripts/fetch-model.

llama_caches.cpp says what its runs are. Two steps join kveval to llama.cpp: `rounded`, a graph of llama.cpp in which
keys and values are rounded by ggml, is what kveval computes; `rounded-query`, with the queries rounded too, is what
llama.cpp computes with its own cache. kveval --protocol stream with rounded queries is `own`, llama.cpp itself. The
runs of a step differ in nothing but the order of fp32 sums, of which a rounding makes other codes in deeper layers:
kveval itself moves by up to 7 % from one instruction set to another.

Usage: llama_caches_test.py KVDUMP PRINT_ARRAY KVEVAL KVBENCH LLAMA_CACHES"""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cli" / "kveval"))
from eval_harness import KVBENCH, close, evaluate, harness, number, rows  # noqa: E402

harness.use_environment()
import tiny_model  # noqa: E402

LLAMA_CACHES = sys.argv[5]
CONTEXT, SCORE = 320, 128
TOLERANCE = 0.2  # of KL; without its queries, q8_0 is off by 40 %, without rotation both by 60 % and more


def kl_of_kveval(ids, rotated, queries="exact", protocol="decode"):
    """By type."""
    settings = [word for name in ("q8_0", "q4_0") for setting in (f"hadamard={str(rotated).lower()}",
                                                                  f"queries={queries}")
                for word in ("--set", f"{name}.{setting}")]
    table = evaluate("--ids", ids, "--context", CONTEXT, "--score", SCORE, "--method", "q8_0,q4_0", "--budget",
                     "100%mem", "--protocol", protocol, *settings)
    assert [row["status"] for row in table] == ["ok", "ok"], table
    return {row["method"]: number(row, "kl_mean") for row in table}


def test_kveval_agrees_with_the_caches_of_llama_cpp(folder):
    ids = harness.write_ids(folder / "ids", CONTEXT + SCORE)
    done = subprocess.run([LLAMA_CACHES, harness.MODEL, ids, str(CONTEXT), str(SCORE)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    llama = {(row["type"], row["rotated"] == "1", row["run"]): number(row, "kl") for row in rows(done.stdout)}
    assert llama["f32", False, "own"] < 1e-5, llama  # flash attention without rounding but to f16
    for rotated in True, False:
        streamed = kl_of_kveval(ids, rotated, "q8_0", "stream")
        for name, kl in kl_of_kveval(ids, rotated).items():
            own, exact, rounded, query = (llama[name, rotated, run]
                                          for run in ("own", "exact-context", "rounded", "rounded-query"))
            print(f"{name} rotated={rotated}: kveval {kl:.3g}, rounded {rounded:.3g}, rounded-query {query:.3g}, "
                  f"exact-context {exact:.3g}, own {own:.3g}, stream {streamed[name]:.3g}")
            close(kl, rounded, TOLERANCE)
            close(exact, query, TOLERANCE)
            close(own, streamed[name], TOLERANCE)
            assert own > 1.1 * exact, (name, rotated, own, exact)  # errors of the context reach deeper layers
            assert name != "q8_0" or query > 1.4 * rounded, (rotated, query, rounded)
            assert rotated or kl > 2 * llama[name, True, "rounded"], (name, kl)


def printed_types(method):
    """KEYS/VALUES as kvbench says that one types them into llama.cpp."""
    words = subprocess.run([KVBENCH, "methods", method, "--format", "json"], capture_output=True, text=True,
                           check=True).stdout
    runs_in, = (one["runs_in"] for one in json.loads(words))
    typed = runs_in.removeprefix("llama.cpp ").split()
    return f'{typed[typed.index("--cache-type-k") + 1]}/{typed[typed.index("--cache-type-v") + 1]}'


def test_llama_cpp_with_the_printed_types_has_the_kl_of_kveval(folder):
    """A set of types for keys and another for values cannot be exchanged: their damage differs by a multiple."""
    model, ids = tiny_model.first_layers(harness.MODEL), harness.write_ids(folder / "ids", CONTEXT + SCORE)
    methods = ["q8_0[hadamard=true;values=q4_0]", "q4_0[hadamard=true;values=q8_0]"]
    done = subprocess.run([LLAMA_CACHES, model, ids, str(CONTEXT), str(SCORE), *map(printed_types, methods)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    typed = [number(row, "kl") for row in rows(done.stdout)]
    table = evaluate("--ids", ids, "--context", CONTEXT, "--score", SCORE, "--method",
                     ",".join(name.replace("]", ";queries=q8_0]") for name in methods), "--budget", "100%mem",
                     "--protocol", "stream", model=model)
    own = [number(row, "kl_mean") for row in table]
    print(f"{methods}: llama.cpp {typed}, kveval {own}")
    for of_llama, of_kveval in zip(typed, own, strict=True):
        close(of_llama, of_kveval, TOLERANCE)
    assert max(typed) > 1.5 * min(typed), typed


harness.run_tests([test_llama_cpp_with_the_printed_types_has_the_kl_of_kveval,
                   test_kveval_agrees_with_the_caches_of_llama_cpp])
