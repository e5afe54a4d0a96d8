# SPDX-License-Identifier: Apache-2.0
"""kvbench.evaluate(): the rows of kveval for small Hugging Face models."""
import copy
import math
import subprocess
from concurrent import futures
from unittest import mock

import environment

environment.use_torch("threadpoolctl")
from support import KVBENCH, SAMPLE, PackageTest, kvbench  # noqa: E402
import architectures  # noqa: E402
import hf_models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from kvbench.models import evaluate as _evaluate  # noqa: E402
from kvbench.models import passes as _passes  # noqa: E402
from kvbench.models.continued import cache_name  # noqa: E402

CONTEXT, SCORE = 40, 8


def token_ids(seed=0, count=CONTEXT + SCORE):
    return hf_models.token_ids(count, seed)


class Dropping:
    """A method of which every budget fails."""

    def make(self, budget, seed):
        raise RuntimeError("no more ideas")

    def prepare(self, head):
        return self


class EvaluateTest(PackageTest):
    @classmethod
    def setUpClass(cls):
        torch.set_grad_enabled(False)
        cls.llama = hf_models.build(*hf_models.MODELS["llama"][:2])

    def rows(self, methods, budgets="25%mem", documents=None, model=None, **options):
        documents = [token_ids()] if documents is None else documents
        return kvbench.evaluate(model or self.llama, documents, methods, budgets,
                                **{"context": CONTEXT, "score": SCORE, **options})


def kl_by_hand(model, ids, kept):
    """KL and nll of the model with these tokens of the context alone in its cache, in PyTorch."""
    full = model(torch.tensor([ids])).logits[0, CONTEXT:-1].double().log_softmax(-1)
    cache = getattr(model(torch.tensor([ids[:CONTEXT]]), use_cache=True), cache_name(model))
    for layer in cache.layers:
        layer.keys, layer.values = layer.keys[:, :, kept], layer.values[:, :, kept]
    positions = torch.arange(CONTEXT, CONTEXT + SCORE)[None]
    log_p = model(torch.tensor([ids[CONTEXT:]]), **{cache_name(model): cache}, position_ids=positions).logits[0]
    log_p, true = log_p[:-1].double().log_softmax(-1), torch.tensor(ids[CONTEXT + 1:])[:, None]
    return {"kl_mean": float((full.exp() * (full - log_p)).sum(-1).mean()),
            "nll": -float(log_p.gather(1, true).mean()), "nll_full": -float(full.gather(1, true).mean()),
            "top1": float((full.argmax(-1) == log_p.argmax(-1)).double().mean())}


class Figures(EvaluateTest):
    def test_by_hand(self):
        """The model itself with the other tokens taken out of its cache."""
        documents = {name: token_ids(seed) for seed, name in enumerate("abc")}
        kept = [0, 1, *range(20, CONTEXT)]
        method = kvbench.entries({("0", layer, head): kept for layer in (0, 1) for head in (0, 1)})
        rows = self.rows(method, len(kept), documents)
        self.assertEqual([row["document"] for row in rows], ["all", *documents])
        expected = [kl_by_hand(self.llama, ids, kept) for ids in documents.values()]
        for row, by_hand in zip(rows[1:], expected):
            for name, value in by_hand.items():
                self.assertAlmostEqual(row[name], value, delta=1e-4 * abs(value), msg=name)
            other = kl_by_hand(self.llama, documents[row["document"]], [0, 2, *range(20, CONTEXT)])
            self.assertGreater(abs(row["kl_mean"] - other["kl_mean"]), 1e-3 * other["kl_mean"])  # a fault is seen
            self.assertEqual((row["kept_tokens"], row["budget_tokens"]), (len(kept) + (SCORE + 1) / 2, len(kept)))
            self.assertEqual((row["full_bytes"], row["total_bytes"]), (48 * 32 * 2, (len(kept) + SCORE) * 32 * 2))
        means = {name: np.mean([by_hand[name] for by_hand in expected]) for name in expected[0]}
        self.assertAlmostEqual(rows[0]["kl_mean"], means["kl_mean"], delta=1e-4 * means["kl_mean"])
        self.assertAlmostEqual(rows[0]["ppl_ratio"], math.exp(means["nll"] - means["nll_full"]), delta=1e-4)
        self.assertLess(rows[0]["kl_mean_lo"], rows[0]["kl_mean"])
        self.assertLess(rows[0]["kl_mean"], rows[0]["kl_mean_hi"])
        self.assertEqual((rows[0]["documents"], rows[0]["scored"]), (3, 3 * (SCORE - 1)))

    def test_rows_do_not_depend_on_what_else_is_evaluated(self):
        methods = ["h2o", "snapkv[window=8]", "kmeans", "damage-votes[scope=model,recent=4]", "q4_0[hadamard=true]"]
        together = {(row["method"], row["document"]): row["kl_mean"]
                    for row in self.rows(methods[:4], 16, [token_ids(), token_ids(1)], seeds=2)}
        self.assertEqual(len(together), 12)
        for method in methods[:4]:
            for row in self.rows(method, 16, {"text-1": token_ids(1)}, seeds=2, threads=1):
                if row["document"] != "all":
                    self.assertEqual(row["kl_mean"], together[row["method"], "text-1"])

    def test_several_lengths(self):
        """The same tokens are scored at each; rows are those of runs with the end of the context alone."""
        def plain(rows):
            return [{name: value for name, value in row.items() if name != "pass_s"} for row in rows]
        documents = {f"text-{seed}": token_ids(seed) for seed in range(2)}
        table = self.rows(["h2o", "q8_0"], "50%", documents, context=[CONTEXT, 20], per_document=False)
        self.assertEqual([row["context_tokens"] for row in table], [20] * 6 + [CONTEXT] * 6)
        for length in (20, CONTEXT):
            ends = {name: ids[CONTEXT - length:] for name, ids in documents.items()}
            self.assertEqual(plain(self.rows(["h2o", "q8_0"], "50%", ends, context=length)),
                             plain(row for row in table if row["context_tokens"] == length))
        digests = {(row["document"], row["scored_sha256"]) for row in table if row["document"] != "all"}
        self.assertEqual(len(digests), 2)
        kvbench.report(table, output=self.path("lengths.md"))
        with open(self.path("lengths.md")) as page:
            self.assertIn("times per doubling of the context", page.read())

    # name: how many layers hold all tokens, and the tokens of a layer with a window
    MODELS = {"llama": (2, 0), "gemma3": (1, 8), "qwen2": (1, 10), "lfm2": (2, 0), "granitemoehybrid": (2, 0),
              "falcon_h1": (4, 0)}

    def test_architectures(self):
        for name, (whole, window) in self.MODELS.items():
            with self.subTest(name):
                model = hf_models.build(*hf_models.MODELS[name][:2]) if name in hf_models.MODELS else \
                    architectures.build(name)
                run = _evaluate.Evaluation(model, ["exact", "sink"], ["50%", "100%"], self.path(f"{name}.csv"),
                                           context=CONTEXT, score=SCORE)
                run.read("a", token_ids())
                run.finish(False)
                # lowest transformers: states of hybrids take one token at a time, so that each pass reads the context
                self.assertTrue(run._passes.continues or name not in hf_models.MODELS and
                                cache_name(model) == "past_key_values")
                rows = {(row["method"], row["budget"]): row
                        for row in kvbench.load_csv(self.path(f"{name}.csv"))}
                self.assertEqual({row["status"] for row in rows.values()}, {"ok"})
                exact, half = rows["exact", "100%"], rows["sink", "50%"]
                own = model(torch.tensor([token_ids()])).logits[0, CONTEXT:-1].double().log_softmax(-1)
                nll = -float(own.gather(1, torch.tensor(token_ids()[CONTEXT + 1:])[:, None]).mean())
                self.assertAlmostEqual(exact["nll_full"], nll, places=4)
                self.assertLess(exact["kl_mean"], 1e-8)
                self.assertGreater(half["kl_mean"], 1e-5)
                tokens = CONTEXT + SCORE
                layers = whole + (window > 0)
                self.assertEqual(half["full_bytes"], 64 * (whole * tokens + window) / layers)
                self.assertEqual(exact["total_bytes"], exact["full_bytes"])
                self.assertEqual(half["total_bytes"], 64 * (whole * CONTEXT / 2 + window) / layers)

    def test_a_model_whose_code_ignores_its_cache(self):
        """Each pass then reads the context too, and the figures are the same."""
        expected = self.rows(["h2o", "damage-votes[recent=4]"], 16)
        continued = _passes.Passes._continued
        calls = []

        def wrong(run, context, scored):
            calls.append(continued(run, context, scored))
            return calls[-1][0] + 1, calls[-1][1]
        self.addCleanup(setattr, _passes.Passes, "_continued", continued)
        _passes.Passes._continued = wrong
        for row, other in zip(self.rows(["h2o", "damage-votes[recent=4]"], 16, [token_ids()]), expected):
            self.assertAlmostEqual(row["kl_mean"], other["kl_mean"], delta=1e-4 * other["kl_mean"])
        self.assertEqual(len(calls), 1)


class Refusals(EvaluateTest):
    def plan(self, layers):
        """A plan for this number of layers, of whose first each kv head has a line."""
        places = ["0, kv_head = 0", "0, kv_head = 1", *range(1, layers)]
        lines = "".join(f'{{ layer = {place}, method = "h2o", budget = "{25 - index}%mem" }},'
                        for index, place in enumerate(places))
        return self.write(f'model = "tiny"\nmodel_layers = {layers}\ntraces = ["0"]\n\n[[plans]]\nbudget = "25%mem"\n'
                          f'layers = [{lines}]\n', f"plan{layers}.toml")

    def test_what_cannot_run_is_a_row(self):
        plans = [f"plan:{self.plan(layers)}" for layers in (2, 3)]
        methods = ["h2o", "q8_0", "kvzip", Dropping, "exact", *plans]
        rows = self.rows(methods, ["25%mem", "41", "20"], {"a": token_ids(), "short": token_ids(1, 30)})
        found = {(row["method"], row["budget"], row["document"]): (row["status"], row["reason"] or "") for row in rows}
        expected = {("h2o", "25%mem", "a"): ("ok", ""), ("h2o", "20", "a"): ("ok", ""),
                    ("h2o", "41", "a"): ("infeasible", "the budget of 41 tokens is larger than the context of 40"),
                    ("q8_0", "25%mem", "a"): ("skipped", "32"), ("kvzip", "20", "a"): ("skipped", "--scores kvzip"),
                    ("py:Dropping", "20", "a"): ("failed", "no more ideas"),
                    ("exact", "25%mem", "a"): ("infeasible", "25 %"),
                    (plans[0], "25%mem", "a"): ("ok", ""), (plans[0], "20", "a"): ("infeasible", "25%mem"),
                    (plans[1], "25%mem", "a"): ("skipped", "3 layers"),
                    ("h2o", "20", "all"): ("ok", "1 of 2 passes are missing: document short has 30 tokens"),
                    ("h2o", "20", "short"): ("skipped", "context=40 and score=8 need 48")}
        for key, (status, words) in expected.items():
            with self.subTest(key):
                self.assertEqual(found[key][0], status, found[key])
                self.assertIn(words, found[key][1])
        self.assertEqual(len(rows), 7 * 3 * 3)
        alone = self.rows("h2o", "20", {"a": token_ids()})
        self.assertEqual([row["kl_mean"] for row in alone], [row["kl_mean"] for row in rows if row["method"] == "h2o"
                                                             and row["budget"] == "20"][:2])

    def test_settings_that_are_spelled_in_other_ways_are_one_configuration(self):
        methods = [f"damage-votes{given}" for given in ("", "[ scope = head,sinks=4]", "[recent=4;scope=model]")]
        rows = self.rows(methods, "50%", per_document=False)
        self.assertEqual([row["params"] for row in rows], [None, "scope=model;recent=4"])

    def test_wrong_arguments(self):
        broken = copy.deepcopy(self.llama)
        broken.lm_head.weight[:] = math.nan
        for words, call in {
                "there is no method 'snapvk'": lambda: self.rows("snapvk"),
                "'much'": lambda: self.rows("h2o", "much"),
                "context=40 and score=500 are 540 tokens": lambda: self.rows("h2o", score=500),
                "score is 1": lambda: self.rows("h2o", score=1), "context is 1;": lambda: self.rows("h2o", context=1),
                "context has \\[20\\] twice": lambda: self.rows("h2o", context=[20, 40, 20]),
                "another answer behind each length": lambda: self.rows("h2o", context=[20, 40], generate=4),
                "no seeds": lambda: self.rows("h2o", seeds=0), "no budgets": lambda: self.rows("h2o", []),
                "it has \\[-1\\]; a seed is from 0": lambda: self.rows("h2o", seeds=[-1]),
                "at most 100000": lambda: self.rows("h2o", seeds=2**40),
                "'seeds'.*type float": lambda: self.rows("h2o", seeds=[0.5]),
                "documents are a list": lambda: self.rows("h2o", documents=5),
                "no documents": lambda: self.rows("h2o", documents=[]),
                "document text-1.*ids from 1 to 97": lambda: self.rows("h2o", documents=[token_ids(), [1, 97]]),
                "document text-0: is text": lambda: self.rows("h2o", documents="some text"),
                "document text-0.*no list of token ids": lambda: self.rows("h2o", documents=[[1.5]]),
                "text-0.*masked": lambda: self.rows("h2o", documents=[np.ma.masked_equal(token_ids(), token_ids()[0])]),
                "document all: cannot be named 'all'": lambda: self.rows("h2o", documents={"all": token_ids()}),
                "document 1: is given twice": lambda: self.rows("h2o", documents={1: token_ids(), "1": token_ids()}),
                r"document .udc80: is not UTF-8": lambda: self.rows("h2o", documents={"\udc80": token_ids()}),
                "argument 'name': is not UTF-8": lambda: self.rows("h2o", name="\udc80"),
                "argument 'output': is not UTF-8": lambda: self.rows("h2o", output="\udc80.csv"),
                "argument 'methods': is not UTF-8": lambda: self.rows("\udc80"),
                "argument 'budgets': is not UTF-8": lambda: self.rows("h2o", "\udc80"),
                "argument 'budget': is not UTF-8": lambda: kvbench.compressed(self.llama, "h2o", "\udc80").__enter__(),
                "check.*: a method: is not UTF-8": lambda: kvbench.check("\udc80"),
                "gets CSV, not json": lambda: self.rows("h2o", output="a.json"),
                "spreadsheets read csv": lambda: kvbench.replay(SAMPLE, "h2o", output="a.xlsx"),
                "training mode": lambda: self.rows("h2o", model=copy.deepcopy(broken).train()),
                "document text-0, in the model itself: .* not finite": lambda: self.rows("h2o", model=broken),
                "rope_layout is 'rows'": lambda: self.rows("h2o", rope_layout="rows"),
                "no model of transformers": lambda: self.rows("h2o", model=torch.nn.Linear(2, 2)),
                "every layer": lambda: self.rows("h2o", model=hf_models.build(*hf_models.MODELS["gemma2"][:2])),
                "one method|no method is given": lambda: self.rows([])}.items():
            with self.subTest(words), self.refuses(words):
                call()

    def test_layers_that_share_a_cache(self):
        with self.refuses("cannot be compressed: layer 3 attends to the cache of layer 1"):
            self.rows("h2o", model=architectures.build("gemma3n_text"))


class Tables(EvaluateTest):
    def test_the_program_reads_them(self):
        words = [*map(str, range(97))]
        tokenizer = hf_models.small_tokenizer(words)
        documents = {f"d{seed}": " ".join(words[token] for token in token_ids(seed)) for seed in range(7)}
        rows = self.rows("h2o,snapkv[window=8]", "30%", documents, tokenizer=tokenizer, output=self.path("rows.csv"),
                         name="tiny")
        columns = [line.split()[0] for line in subprocess.run(
            [KVBENCH, "eval", "--columns", "--format", "csv"], capture_output=True, text=True).stdout.splitlines()
                   if line and not line.startswith(" ")]
        self.assertTrue(set(rows[0]) <= set(columns) and len(rows[0]) > 60, set(rows[0]) - set(columns))
        ids = self.rows("h2o", "30%", {"d0": token_ids()})
        self.assertEqual([rows[1][key] for key in ("document_sha256", "kl_mean", "sha256", "model")],
                         [ids[1][key] for key in ("document_sha256", "kl_mean", "sha256")] + ["tiny"])
        compared = kvbench.compare(self.path("rows.csv"), a="h2o")
        self.assertEqual((compared[0]["metric"], compared[0]["tested_over"]), ("kl", "7 documents"))
        page = kvbench.report(self.path("rows.csv")).text
        self.assertIn("tiny", page)
        self.assertRegex(page, "At 30 % of the tokens on the task text,.* (h2o|snapkv).*Tested over 7 documents")
        self.assertTrue(kvbench.sentences(kvbench.compare(self.path("rows.csv"), a="h2o")))

    def test_another_thread_does_not_get_what_is_measured(self):
        """Its calls have the logits of the model itself, or are refused."""
        given = torch.tensor([token_ids(3)])
        expected, seen, logits = self.llama(given).logits, [], _passes.Passes.logits

        def called():
            try:
                return torch.equal(self.llama(given).logits, expected)
            except kvbench.Error as error:
                return str(error)

        def beside(passes, *arguments):
            with futures.ThreadPoolExecutor(1, initializer=lambda: torch.set_grad_enabled(False)) as pool:
                seen.append(pool.submit(called).result())
            return logits(passes, *arguments)
        expected_rows = self.rows("h2o")
        with mock.patch.object(_passes.Passes, "logits", beside):
            rows = self.rows("h2o")
        same = [name for name in rows[0] if not name.endswith("seconds") and not name.endswith("_s")]
        self.assertEqual([[row[name] for name in same] for row in rows],
                         [[row[name] for name in same] for row in expected_rows])
        self.assertGreaterEqual(len(seen), 3)
        for answer in seen:
            self.assertTrue(answer is True or "another thread measures this model" in str(answer), answer)
        self.assertIn(str, map(type, seen))
        self.assertTrue(called())

    def test_the_model_is_left_as_it_was(self):
        before = copy.deepcopy(self.llama.config._attn_implementation)
        logits = self.llama(torch.tensor([token_ids()])).logits
        rows = self.rows("h2o", model=self.llama)
        self.assertEqual(self.llama.config._attn_implementation, before)
        self.assertTrue(torch.equal(self.llama(torch.tensor([token_ids()])).logits, logits))
        other = hf_models.build(*hf_models.MODELS["llama"][:2], seed=4)
        self.assertNotEqual(self.rows("h2o", model=other)[0]["sha256"], rows[0]["sha256"])
