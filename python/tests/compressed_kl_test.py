# SPDX-License-Identifier: Apache-2.0
"""kvbench.evaluate() against kveval: the same methods inside the same real model, in transformers and llama.cpp."""
import os
import subprocess
import sys

import environment

environment.use_torch("gguf", "threadpoolctl")
from support import SAMPLE, PackageTest, kvbench  # noqa: E402
import transformers  # noqa: E402

KVEVAL = sys.argv[4] if len(sys.argv) > 4 else ""
MODEL = environment.CACHE / "model" / "SmolLM2-135M-Instruct.Q4_1.gguf"
if not (os.path.exists(KVEVAL) and MODEL.exists()):
    print("skipped: there is no kveval, or no model; scripts/fetch-model fetches both")
    sys.exit(77)
CONTEXT, SCORED = 256, 48
METHODS = {"decode": "exact,h2o,sink,q8_0,chelsea,snapkv+q4_0[q4_0.hadamard=true]",
           "stream": "exact,h2o,sink,snapkv,q8_0[queries=q8_0],chelsea"}
SAME = ("status", "budget_tokens", "document_sha256", "documents_sha256", "method_layers", "model_layers", "kv_dtype",
        "protect", "decoded", "protocol", "documents", "compressed_layers", "scored", "scored_key", "rope_layout")


class Divergence(PackageTest):
    def ids(self):
        with kvbench.Trace(SAMPLE) as trace:
            return trace.prompts["0"].tokens[:CONTEXT + SCORED].tolist()

    def evaluated(self, ids, protocol, methods, budget, *more):
        """Rows of kveval for a document of these tokens."""
        text = self.write(" ".join(map(str, ids)), "ids")
        done = subprocess.run([KVEVAL, str(MODEL), "--ids", text, *more, "-m", methods, "-b", budget, "-q",
                               "--protocol", protocol, "-o", self.path("rows.csv")],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return kvbench.load_csv(self.path("rows.csv"))

    def test_rows_are_those_of_kveval(self):
        self.check("decode", {"ok", "infeasible"})  # exact

    def test_rows_of_streams_are_those_of_kveval(self):
        self.check("stream", {"ok", "infeasible", "skipped"})  # snapkv

    def test_free_answers_are_those_of_kveval(self):
        """Token by token, of methods that do not round."""
        model = kvbench.load_model(str(MODEL))
        for protocol, methods in {"decode": "h2o,chelsea", "stream": "sink"}.items():
            ids = self.ids()
            rows = kvbench.evaluate(model, {"ids": ids}, methods, "25%mem", context=128, generate=12, threads=1,
                                    rope_layout="interleaved", per_document=False, protocol=protocol)
            expected = self.evaluated(ids, protocol, methods, "25%mem", "--context", "128", "--generate", "12", "-j",
                                      "1")
            for row, other in zip(rows, expected, strict=True):
                with self.subTest(row["method"], protocol=protocol):
                    names = ("status", "generate", "documents_sha256", "same_answer", "first_differs", "answer_tokens",
                             "answer_tokens_full", "repetition", "repetition_full")
                    self.assertEqual({name: row[name] for name in names}, {name: other[name] for name in names})
                    self.assertEqual(row["status"], "ok")

    def check(self, protocol, statuses):
        ids = self.ids()
        transformers.utils.logging.disable_progress_bar()
        rows = kvbench.evaluate(kvbench.load_model(str(MODEL)), {"ids": ids}, METHODS[protocol], "60%mem",
                                context=CONTEXT, score=SCORED, rope_layout="interleaved", per_document=False,
                                protocol=protocol)
        expected = self.evaluated(ids, protocol, METHODS[protocol], "60%mem", "--context", str(CONTEXT), "--score",
                                  str(SCORED))
        self.assertEqual([row["method"] for row in rows], [row["method"] for row in expected])
        self.assertEqual({row["status"] for row in rows}, statuses)
        for row, other in zip(rows, expected):
            rounds = "q" in row["method"]  # docs/eval.md: how exact KL is where methods round
            tolerance = 0.4 if rounds else 1e-3
            with self.subTest(row["method"], budget=row["budget"]):
                self.assertEqual({name: row[name] for name in SAME}, {name: other[name] for name in SAME})
                if row["status"] != "ok":
                    continue
                self.assertLess(abs(row["kl_mean"] - other["kl_mean"]), 1e-6 + tolerance * other["kl_mean"])
                for name, delta in (("nll", 1 if rounds else 1e-4), ("nll_full", 1e-4), ("top1", 1 if rounds else 0),
                                    ("total_bytes", 1), ("full_bytes", 1e-6),
                                    *([("kept_tokens", 1e-6)] if protocol == "decode" else [])):  # of which queries
                    self.assertAlmostEqual(row[name], other[name], delta=delta, msg=name)
