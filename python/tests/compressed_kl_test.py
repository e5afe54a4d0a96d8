# SPDX-License-Identifier: Apache-2.0
"""kvbench.evaluate() against kveval: the same methods inside the same real model, in transformers and llama.cpp."""
import json
import os
import subprocess
import sys
import unittest

import environment

environment.use_torch("gguf", "threadpoolctl")
import h5py  # noqa: E402
from support import SAMPLE, PackageTest, kvbench  # noqa: E402
import transformers  # noqa: E402
from kvbench.models.passes import judged  # noqa: E402

KVEVAL = sys.argv[4] if len(sys.argv) > 4 else ""
MODEL = environment.CACHE / "model" / "SmolLM2-135M-Instruct.Q4_1.gguf"
if not (os.path.exists(KVEVAL) and MODEL.exists()):
    print("skipped: there is no kveval, or no model; scripts/fetch-model fetches both")
    sys.exit(77)
CONTEXT, SCORED = 256, 48
METHODS = {"decode": "exact,h2o,sink,q8_0,chelsea,snapkv+q4_0[q4_0.hadamard=true]",
           "stream": "exact,h2o,sink,snapkv,q8_0[queries=q8_0],chelsea"}
GEMMA = environment.CACHE / "gemma" / "gemma-3-270m-q4_k_m.gguf"  # 15 of its 18 layers have windows of 512 tokens
SAME = ("status", "budget_tokens", "document_sha256", "documents_sha256", "method_layers", "model_layers", "kv_dtype",
        "protect", "decoded", "protocol", "documents", "compressed_layers", "scored", "scored_key", "rope_layout")


class Divergence(PackageTest):
    def ids(self):
        with kvbench.Trace(SAMPLE) as trace:
            return trace.prompts["0"].tokens[:CONTEXT + SCORED].tolist()

    def evaluated(self, ids, protocol, methods, budget, *more, model=MODEL):
        """Rows of kveval for a document of these tokens."""
        text = self.write(" ".join(map(str, ids)), "ids")
        done = subprocess.run([KVEVAL, str(model), "--ids", text, *more, "-m", methods, "-b", budget, "-q",
                               "--protocol", protocol, "-o", self.path("rows.csv")],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return kvbench.load_csv(self.path("rows.csv"))

    def test_rows_are_those_of_kveval(self):
        self.check("decode", {"ok", "infeasible"})  # exact

    def test_rows_of_streams_are_those_of_kveval(self):
        self.check("stream", {"ok", "infeasible", "skipped"})  # snapkv

    @unittest.skipUnless(GEMMA.exists(), "there is no gemma3-270m; scripts/fetch-model --gemma fetches it")
    def test_formats_round_sliding_windows_as_in_kveval(self):
        """Of 15 layers beside three, so that KL is not that of the three."""
        with kvbench.Trace(SAMPLE) as trace:
            tokens = [token for prompt in trace.prompts.values() for token in prompt.tokens.tolist()]
        ids, methods = tokens[:600 + SCORED], "h2o,q8_0,q4_0[hadamard=true]"
        transformers.utils.logging.disable_progress_bar()
        model = kvbench.load_model(str(GEMMA))
        for protocol in "decode", "stream":
            rows = kvbench.evaluate(model, {"ids": ids}, methods, "60%mem", context=600, score=SCORED,
                                    per_document=False, protocol=protocol)
            expected = self.evaluated(ids, protocol, methods, "60%mem", "--context", "600", "--score", str(SCORED),
                                      model=GEMMA)
            self.assertEqual([row["compressed_layers"] for row in rows], [3, 18, 18])
            for row, other in zip(rows, expected):
                with self.subTest(row["method"], protocol=protocol):
                    self.assertEqual({name: row[name] for name in SAME}, {name: other[name] for name in SAME})
                    self.assertLess(abs(row["kl_mean"] - other["kl_mean"]),
                                    (0.4 if "q" in row["method"] else 0.01) * other["kl_mean"])
                    for name in ("total_bytes", "full_bytes") if "q" in row["method"] else ():
                        self.assertAlmostEqual(row[name], other[name], delta=1e-6, msg=name)

    def test_conversations_are_those_of_kveval(self):
        """Four turns, whose rows are over all, by turn and by conversation."""
        ids, model = self.ids(), kvbench.load_model(str(MODEL))
        talk = [{"role": role, "content": ids[at:at + 38]}
                for at, role in zip(range(0, CONTEXT + SCORED, 38), ["user", "assistant"] * 4)]
        path = self.write(json.dumps(talk), "talks.jsonl")
        for rule, methods, budget in (("turn", "h2o,snapkv[window=8]", "40%"), ("anew", "snapkv[window=8]", "40%"),
                                      ("turn", "q8_0", "100%mem")):
            rows = kvbench.evaluate(model, path, methods, budget, compress=rule, rope_layout="interleaved")
            subprocess.run([KVEVAL, str(MODEL), "--transcripts", path, "--compress", rule, "-m", methods, "-b", budget,
                            "--per-document", "-q", "-o", self.path("rows.csv")], check=True)
            for row, other in zip(rows, kvbench.load_csv(self.path("rows.csv")), strict=True):
                with self.subTest(row["method"], rule=rule, turn=row["turn"]):
                    for name in (*SAME, "method", "document", "turn", "question", "text", "context_tokens"):
                        self.assertEqual(row[name], other[name], name)
                    self.assertLess(abs(row["kl_mean"] - other["kl_mean"]),
                                    (0.4 if "q" in row["method"] else 1e-3) * other["kl_mean"])
                    for name in ("kept_tokens", "total_bytes", "full_bytes"):
                        self.assertAlmostEqual(row[name], other[name], delta=1e-6, msg=name)

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

    def test_answers_are_judged_as_by_kveval(self):
        """On the answers of the task json, in transformers' text of them."""
        text = self.write(" ".join(f"{a}{b}ing" for a in "bcdfgklmnprst" for b in "aeiouy"), "words.txt")
        subprocess.run([KVEVAL, str(MODEL), "--text", text, "--task", "json", "--context", "192", "--generate", "72",
                        "--documents", "2", "--per-document", "--no-f32", "-m", "sink", "-b", "60%mem", "-q",
                        "-o", self.path("rows.csv"), "--raw", self.path("raw.h5")], check=True)
        model = kvbench.load_model(str(MODEL))
        tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL.parent, gguf_file=MODEL.name)
        rows = {row["document"]: row for row in kvbench.load_csv(self.path("rows.csv"))}
        with h5py.File(self.path("raw.h5")) as raw:
            for result in raw["results"].values():
                document = raw["documents"][str(result.attrs["document"])]
                row = rows[document.attrs["name"].decode()]
                full, found = (judged(model, tokenizer, document["context"][:].tolist(), answer[:].tolist())
                               for answer in (document["scored"], result["answer"]))
                self.assertEqual((full == "valid", found == "valid", found == "cut"),
                                 (row["json_full"], row["json"], row["json_cut"]), row)

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
