# SPDX-License-Identifier: Apache-2.0
"""kvbench.evaluate() against kveval: the same methods inside the same real model, in transformers and llama.cpp."""
import functools
import json
import os
import pathlib
import subprocess
import sys

import environment

environment.use_torch("gguf", "threadpoolctl")
import h5py  # noqa: E402
from support import SAMPLE, PackageTest, kvbench  # noqa: E402
import transformers  # noqa: E402
from kvbench.models.passes import judged  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).parents[2] / "tests" / "cli" / "kvdump"))
import tiny_model  # noqa: E402

KVEVAL = sys.argv[4] if len(sys.argv) > 4 else ""
WHOLE = environment.CACHE / "model" / "SmolLM2-135M-Instruct.Q4_1.gguf"
if not (os.path.exists(KVEVAL) and WHOLE.exists()):
    print("skipped: there is no kveval, or no model; scripts/fetch-model fetches both")
    sys.exit(77)
if os.environ.get("KVBENCH_WHOLE"):  # as in make nightly: all layers, in which roundings lead further
    MODEL, ROUNDS = str(WHOLE), 0.4
    WINDOWED = subprocess.check_output([environment.FETCH, "--gemma"], text=True).strip()
else:
    MODEL, ROUNDS, WINDOWED = tiny_model.first_layers(WHOLE), 0.2, ""
CONTEXT, SCORED = 256, 48
METHODS = {"decode": "exact,h2o,sink,q8_0,chelsea,snapkv+q4_0[q4_0.hadamard=true]",
           "stream": "exact,h2o,sink,snapkv,q8_0[queries=q8_0],chelsea"}
SAME = ("status", "budget_tokens", "document_sha256", "documents_sha256", "method_layers", "model_layers", "kv_dtype",
        "protect", "decoded", "protocol", "documents", "compressed_layers", "scored", "scored_key", "rope_layout")


@functools.cache
def model_of():
    transformers.utils.logging.disable_progress_bar()
    return kvbench.load_model(MODEL)


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

    def test_formats_round_sliding_windows_as_in_kveval(self):
        """Of all layers but one in six, so that KL is not that of the others."""
        model = kvbench.load_model(WINDOWED or tiny_model.windowed(self.path("m.gguf")))
        if not WINDOWED:  # transformers takes 256, as in the models that it knows
            for layer in model.model.layers:
                layer.self_attn.scaling = tiny_model.D**-0.5
        with kvbench.Trace(SAMPLE) as trace:
            tokens = [token for prompt in trace.prompts.values() for token in prompt.tokens.tolist()]
        context = model.config.sliding_window + 88
        ids = [token % model.config.vocab_size for token in tokens[:context + SCORED]]
        methods, whole = "h2o,q8_0,q4_0", model.config.num_hidden_layers
        for protocol in "decode", "stream":
            rows = kvbench.evaluate(model, {"ids": ids}, methods, "60%mem", context=context, score=SCORED,
                                    per_document=False, protocol=protocol)
            expected = self.evaluated(ids, protocol, methods, "60%mem", "--context", str(context), "--score",
                                      str(SCORED), model=WINDOWED or self.path("m.gguf"))
            self.assertEqual([row["compressed_layers"] for row in rows], [whole // 6, whole, whole])
            for row, other in zip(rows, expected, strict=True):
                with self.subTest(row["method"], protocol=protocol):
                    self.assertEqual({name: row[name] for name in SAME}, {name: other[name] for name in SAME})
                    self.assertLess(abs(row["kl_mean"] - other["kl_mean"]),
                                    (ROUNDS if "q" in row["method"] else 0.01) * other["kl_mean"])
                    for name in ("total_bytes", "full_bytes") if "q" in row["method"] else ():
                        self.assertAlmostEqual(row[name], other[name], delta=1e-6, msg=name)

    def test_conversations_are_those_of_kveval(self):
        """Four turns, whose rows are over all, by turn and by conversation."""
        ids, model = self.ids(), model_of()
        talk = [{"role": role, "content": ids[at:at + 38]}
                for at, role in zip(range(0, CONTEXT + SCORED, 38), ["user", "assistant"] * 4)]
        path = self.write(json.dumps(talk), "talks.jsonl")
        for rule, methods, budget in (("turn", "h2o,snapkv[window=8]", "40%"), ("anew", "snapkv[window=8]", "40%"),
                                      ("turn", "q8_0", "100%mem")):
            rows = kvbench.evaluate(model, path, methods, budget, compress=rule, rope_layout="interleaved")
            subprocess.run([KVEVAL, MODEL, "--transcripts", path, "--compress", rule, "-m", methods, "-b", budget,
                            "--per-document", "-q", "-o", self.path("rows.csv")], check=True)
            for row, other in zip(rows, kvbench.load_csv(self.path("rows.csv")), strict=True):
                with self.subTest(row["method"], rule=rule, turn=row["turn"]):
                    for name in (*SAME, "method", "document", "turn", "question", "text", "context_tokens",
                                 "kept_by_span", "lost_by_span"):
                        self.assertEqual(row[name], other[name], name)
                    self.assertLess(abs(row["kl_mean"] - other["kl_mean"]),
                                    (ROUNDS if "q" in row["method"] else 1e-3) * other["kl_mean"])
                    for name in ("kept_tokens", "total_bytes", "full_bytes"):
                        self.assertAlmostEqual(row[name], other[name], delta=1e-6, msg=name)

    def test_free_answers_are_those_of_kveval(self):
        """Token by token, of methods that do not round."""
        model = model_of()
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
        subprocess.run([KVEVAL, str(WHOLE), "--text", text, "--task", "json", "--context", "192", "--generate", "72",
                        "--documents", "1", "--per-document", "--no-f32", "-m", "sink", "-b", "60%mem", "-q",
                        "-o", self.path("rows.csv"), "--raw", self.path("raw.h5")], check=True)
        model = model_of()
        tokenizer = transformers.AutoTokenizer.from_pretrained(WHOLE.parent, gguf_file=WHOLE.name)
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
        rows = kvbench.evaluate(model_of(), {"ids": ids}, METHODS[protocol], "60%mem",
                                context=CONTEXT, score=SCORED, rope_layout="interleaved", per_document=False,
                                protocol=protocol)
        expected = self.evaluated(ids, protocol, METHODS[protocol], "60%mem", "--context", str(CONTEXT), "--score",
                                  str(SCORED))
        self.assertEqual([row["method"] for row in rows], [row["method"] for row in expected])
        self.assertEqual({row["status"] for row in rows}, statuses)
        for row, other in zip(rows, expected):
            rounds = "q" in row["method"]  # docs/eval.md: how exact KL is where methods round
            tolerance = ROUNDS if rounds else 1e-3
            with self.subTest(row["method"], budget=row["budget"]):
                self.assertEqual({name: row[name] for name in SAME}, {name: other[name] for name in SAME})
                if row["status"] != "ok":
                    continue
                self.assertLess(abs(row["kl_mean"] - other["kl_mean"]), 1e-6 + tolerance * other["kl_mean"])
                for name, delta in (("nll", 1 if rounds else 2e-5 * other["nll"]), ("nll_full", 1e-4),
                                    ("top1", 1 if rounds else 0), ("total_bytes", 1), ("full_bytes", 1e-6),
                                    *([("kept_tokens", 1e-6)] if protocol == "decode" else [])):  # of which queries
                    self.assertAlmostEqual(row[name], other[name], delta=delta, msg=name)
