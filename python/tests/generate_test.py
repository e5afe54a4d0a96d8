# SPDX-License-Identifier: Apache-2.0
"""kvbench.evaluate(generate=N): what compressed caches say by themselves, beside the full cache."""
import copy
import hashlib
import json
import math
import os
import random
from types import SimpleNamespace
from unittest import mock

import environment

environment.use_torch()
from support import PackageTest, kvbench  # noqa: E402
import hf_models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from kvbench.models import passes as _passes  # noqa: E402

CONTEXT, MOST = 40, 32
KEPT = [0, 1, *range(20, CONTEXT)]
TEXTS = ("", "a", "amber", 'say "so"', "\\", "tab\t", "é€𝄞", "\ud800", "\x7f", "/")
PIECES = (*[bytes([c]) for c in b"\"\\{}[],:0-.e1 '\x00\x1f\t\x80\xc3"], b"", b"", b"\\u00", b"true", b"nul", b"NaN",
          b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80")


def drawn(logits, context, position, temperature, seed):
    """docs/free-answers.md in NumPy: the lowest id of the largest logit, or the inverse of the distribution."""
    if not temperature:
        return int(np.argmax(logits))
    text = f"{seed} {position}\n{' '.join(map(str, context))}\n"
    uniform = int(hashlib.sha256(text.encode()).hexdigest()[:13], 16) / 2**52
    weights = np.exp((logits.astype(np.float64) - logits.max()) / temperature)
    return int(np.searchsorted(np.cumsum(weights) / weights.sum(), uniform, side="right"))


def answer_by_hand(model, context, kept, ends=(), temperature=0.0, seed=0):
    """The model itself with these tokens of the context alone in its cache."""
    read = model(torch.tensor([context]), use_cache=True)
    for layer in read.past_key_values.layers:
        layer.keys, layer.values = layer.keys[:, :, kept], layer.values[:, :, kept]
    answer, logits = [], read.logits[0, -1]
    while True:
        answer.append(drawn(logits.numpy(), context, len(answer), temperature, seed))
        if len(answer) == MOST or answer[-1] in ends:
            return answer
        at = torch.tensor([[len(context) + len(answer) - 1]])
        logits = model(torch.tensor([answer[-1:]]), past_key_values=read.past_key_values, position_ids=at).logits[0, -1]


def repetition(answer):
    grams = [tuple(answer[i:i + 4]) for i in range(len(answer) - 3)]
    return 1 - len(set(grams)) / len(grams)


def figures(full, other):
    places = range(min(32, max(len(full), len(other))))
    same = [full[i:i + 1] == other[i:i + 1] for i in places]
    return {"same_answer": float(full == other), "first_differs": None if full == other else same.index(False),
            "alike_32": sum(same) / len(same), "alike_64": None, "answer_tokens_full": len(full),
            "answer_tokens": len(other), "repetition_full": repetition(full), "repetition": repetition(other)}


class GenerateTest(PackageTest):
    @classmethod
    def setUpClass(cls):
        torch.set_grad_enabled(False)
        cls.llama = hf_models.build(*hf_models.MODELS["llama"][:2])
        cls.llama.generation_config.eos_token_id = cls.llama.config.eos_token_id = None
        cls.documents = {name: hf_models.token_ids(CONTEXT, seed) for seed, name in enumerate("abc")}
        cls.method = kvbench.entries({("0", layer, head): KEPT for layer in (0, 1) for head in (0, 1)})

    def rows(self, methods, budgets="25%mem", model=None, documents=None, **options):
        return kvbench.evaluate(model or self.llama, documents or self.documents, methods, budgets,
                                **{"context": CONTEXT, "generate": MOST, **options})

    def ending(self, *ends):
        model = copy.deepcopy(self.llama)
        model.generation_config.eos_token_id = list(ends)
        return model

    def check(self, rows, answers):
        """`answers`: by hand, of the full and the compressed cache, by document."""
        for row in rows[1:]:
            for name, value in figures(*answers[row["document"]]).items():
                (self.assertEqual if value is None else self.assertAlmostEqual)(row[name], value, msg=(row, name))


class Answers(GenerateTest):
    def by_hand(self, model=None, **options):
        return {name: [answer_by_hand(model or self.llama, ids, kept, **options) for kept in (range(CONTEXT), KEPT)]
                for name, ids in self.documents.items()}

    def test_by_hand(self):
        answers = self.by_hand()
        rows = self.rows(self.method, len(KEPT))
        self.check(rows, answers)
        self.assertTrue(any(full != other for full, other in answers.values()))  # a fault is seen
        mean = np.mean([figures(*pair)["alike_32"] for pair in answers.values()])
        self.assertAlmostEqual(rows[0]["alike_32"], mean)
        self.assertLess(rows[0]["alike_32_lo"], rows[0]["alike_32_hi"])
        self.assertEqual({row["generate"] for row in rows}, {"32 greedy"})
        self.assertEqual(rows[1]["scored"], MOST - 1)

    def test_samples_by_hand(self):
        given = {"temperature": 0.7, "seed": 5}
        answers = self.by_hand(**given)
        self.assertNotEqual(answers, self.by_hand())
        rows = self.rows(self.method, len(KEPT), temperature=0.7, sample_seed=5)
        self.check(rows, answers)
        self.assertEqual({row["generate"] for row in rows}, {"32 at 0.7 seed 5"})

    def test_end_tokens_by_hand(self):
        """Which the full cache comes to, or the compressed one."""
        (full, other), *_ = self.by_hand().values()
        place = next(i for i, (a, b) in enumerate(zip(full, other)) if a != b)
        for ends in (full[place], other[place]):
            model = self.ending(ends, 96)
            answers = {name: pair for name, pair in self.by_hand(ends=(ends, 96)).items() if min(map(len, pair)) > 3}
            self.assertTrue(any(len(full) != len(other) for full, other in answers.values()))
            rows = self.rows(self.method, len(KEPT), model=model,
                             documents={name: self.documents[name] for name in answers})
            self.check(rows, answers)

    def test_scored_tokens_are_the_answer_of_the_full_cache(self):
        """KL is that of the same document with this answer behind its context."""
        generated = self.rows("h2o,q8_0,snapkv[window=8]", "60%mem")
        text = {name: ids + answer_by_hand(self.llama, ids, range(CONTEXT)) for name, ids in self.documents.items()}
        scored = self.rows("h2o,q8_0,snapkv[window=8]", "60%mem", documents=text, generate=0, score=MOST)
        for row, other in zip(generated, scored):
            for name in ("document_sha256", "kl_mean", "nll", "nll_full", "total_bytes", "budget_tokens", "status"):
                self.assertEqual(row[name], other[name], name)

    def test_the_first_difference_is_where_the_scored_pass_first_says_another_token(self):
        """A check of free generation by another computation: until then both have read the same tokens."""
        seen = []
        compressed = _passes.Passes.compressed

        def noted(passes, run, context, scored, begun):
            logits = compressed(passes, run, context, scored, begun)
            others = [i + 1 for i, token in enumerate(scored[1:]) if int(np.argmax(logits[i])) != token]
            seen.append(others[0] if others else None)
            return logits
        decode = "exact,h2o,snapkv[window=8],kmeans,uniform,quest,cam,q4_0,exact[numbers=f16]"
        for protocol, methods in {"decode": decode, "stream": "h2o,sink,subgen,q4_0"}.items():
            with mock.patch.object(_passes.Passes, "compressed", noted):
                seen.clear()
                rows = [row for row in self.rows(methods, "100%,40%", protocol=protocol) if row["document"] != "all"]
            found = {(row["document"], row["method"], row["params"], row["budget"]): row["first_differs"]
                     for row in rows if row["status"] == "ok"}
            self.assertGreater(len(found), 12, rows)
            self.assertEqual(sorted(map(str, found.values())), sorted(str(place and float(place)) for place in seen))
            self.assertGreater(len({*found.values()}), 3)

    def test_a_model_whose_code_ignores_its_cache(self):
        expected = self.rows("h2o,q8_0", "60%mem")

        def wrong(run, context, scored):
            raise TypeError("no cache")
        with mock.patch.object(_passes.Passes, "_continued", wrong):
            rows = self.rows("h2o,q8_0", "60%mem")
        for row, other in zip(rows, expected):
            self.assertEqual([row[name] for name in ("alike_32", "first_differs", "answer_tokens", "document_sha256")],
                             [other[name] for name in ("alike_32", "first_differs", "answer_tokens",
                                                       "document_sha256")])


class Edges(GenerateTest):
    def test_precision_alone(self):
        exact, half = [row for row in self.rows("exact,exact[numbers=f16]", "100%") if row["document"] == "all"]
        self.assertEqual((exact["same_answer"], exact["first_differs"], exact["alike_32"]), (1, None, 1))
        self.assertEqual((half["params"], half["total_bytes"]), ("numbers=f16", half["full_bytes"]))
        self.assertLess(exact["kl_mean"], 1e-9)
        self.assertLess(1e-9, half["kl_mean"])
        self.assertLess(half["kl_mean"], 1e-4)

    def test_an_answer_that_ends_at_once(self):
        first = answer_by_hand(self.llama, self.documents["a"], range(CONTEXT))[0]
        rows = {row["document"]: row for row in self.rows("h2o", "40%", model=self.ending(first))}
        self.assertEqual(rows["a"]["status"], "skipped")
        self.assertIn("ends its answer at once", rows["a"]["reason"])
        self.assertIsNone(rows["a"]["same_answer"])

    def test_greedy_ties_take_the_lowest_id(self):
        """All logits are equal: the answer is the token 0, of every cache."""
        model = copy.deepcopy(self.llama)
        model.lm_head.weight[:] = 0
        row = self.rows("sink", "25%", model=model)[0]
        self.assertEqual((row["same_answer"], row["repetition"]), (1, 1 - 1 / (MOST - 3)))

    def test_contexts_beyond_the_training(self):
        model = copy.deepcopy(self.llama)
        model.config.max_position_embeddings = CONTEXT + 10
        row = self.rows("h2o", "40%", model=model)[0]
        self.assertEqual(row["status"], "ok")
        self.assertIn(f"beyond the {CONTEXT + 10} tokens that the model was trained on", row["reason"])
        self.assertIsNone(self.rows("h2o", "40%", model=model, generate=10)[0]["reason"])

    def test_threads_do_not_matter(self):
        rows = [[{name: value for name, value in row.items() if not name.endswith("_s")}
                 for row in self.rows("h2o,q4_0", "60%mem", threads=threads)] for threads in (1, 4)]
        self.assertEqual(*rows)

    def test_rows_that_have_no_answer(self):
        rows = {(row["method"], row["document"]): row
                for row in self.rows("h2o,q8_0,kvzip", "10%mem", documents={**self.documents, "short": [1, 2, 3]})}
        self.assertEqual(rows["q8_0", "a"]["status"], "skipped")
        self.assertEqual(rows["kvzip", "a"]["status"], "skipped")
        self.assertIn("document short has 3 tokens, and context=40", rows["h2o", "short"]["reason"])
        scored = kvbench.evaluate(self.llama, [hf_models.token_ids(60)], "h2o", context=CONTEXT, score=8)[0]
        self.assertEqual((scored["generate"], scored["same_answer"]), (None, None))

    def test_ctrl_c(self):
        with mock.patch.object(_passes.Passes, "answer", side_effect=KeyboardInterrupt) as interrupted:
            with self.assertRaises(KeyboardInterrupt):
                self.rows("h2o", output=self.path("rows.csv"))
            interrupted.assert_called_once()
        self.assertFalse(os.path.exists(self.path("rows.csv")))
        self.assertEqual(self.rows("h2o", "40%")[0]["status"], "ok")

    def test_refusals(self):
        broken = copy.deepcopy(self.llama)
        broken.lm_head.weight[:] = math.nan
        for words, call in {"generate is 1; it is from 2 to 512": lambda: self.rows("h2o", generate=1),
                            "generate is -4": lambda: self.rows("h2o", generate=-4),
                            "generate is 513": lambda: self.rows("h2o", generate=513),
                            "temperature is -1": lambda: self.rows("h2o", temperature=-1.0),
                            "temperature is nan": lambda: self.rows("h2o", temperature=math.nan),
                            "sample_seed is -1": lambda: self.rows("h2o", temperature=1.0, sample_seed=-1),
                            "no effect on greedy answers": lambda: self.rows("h2o", sample_seed=3),
                            "a temperature has no effect": lambda: self.rows("h2o", generate=0, temperature=1.0),
                            "document a, in the model itself: .* not finite": lambda: self.rows("h2o", model=broken),
                            }.items():
            with self.subTest(words), self.refuses(words):
                call()


def is_json(text):
    def refuse(constant):
        raise ValueError(constant)
    try:
        json.loads(text.decode(), parse_constant=refuse)  # which it takes: NaN, Infinity
        return True
    except ValueError:
        return False


def completed(text):
    """A valid text that begins with this one, if closing what is open finds one."""
    judged = kvbench._core.judged
    for _ in range(100):
        if judged(text, False) != "cut":
            return text
        more = (text + bytes([c]) for c in b'"}]:0eaurls\x80\xbf')
        text = next((longer for longer in more if judged(longer, False) != "broken"), b"")
    return text


class Json(GenerateTest):
    def values(self, draws, depth=4):
        kind = draws.randrange(7 if depth else 5)
        if kind > 4:
            items = [self.values(draws, depth - 1) for _ in range(draws.randrange(4))]
            return items if kind == 5 else {draws.choice(TEXTS) + str(i): item for i, item in enumerate(items)}
        return [draws.choice((True, False, None)), draws.randrange(-999, 999), draws.choice(TEXTS), draws.choice(TEXTS),
                draws.random() * 10.0**draws.randrange(-9, 9)][kind]

    def test_the_reader_against_that_of_python(self):
        draws, judged = random.Random(4), kvbench._core.judged
        counts = dict.fromkeys(("valid", "cut", "broken"), 0)
        for _ in range(4000):
            text = json.dumps(self.values(draws), ensure_ascii=draws.random() < 0.5).encode(errors="replace")
            self.assertEqual(judged(text, True), "valid", text)
            cut = text[:draws.randrange(len(text))]
            self.assertIn(judged(cut, False), ("cut", "valid"), cut)  # a number is valid before it ends
            mutated = bytearray(text)
            for _ in range(draws.choice((1, 1, 1, 2, 4))):
                at = draws.randrange(len(mutated) + 1)
                mutated[at:at + draws.randrange(3)] = draws.choice(PIECES)
            mutated = bytes(mutated).replace(b"\n", b" ")
            found = judged(mutated, False)
            counts[found] += 1
            self.assertEqual(found == "valid", is_json(mutated), mutated)
            if found == "cut":
                self.assertTrue(is_json(completed(mutated)), mutated)
                self.assertEqual(judged(mutated, True), "broken")
        self.assertGreater(min(counts.values()), 200, counts)

    def test_rows_by_hand(self):
        """Tokens are digits, so that a line is valid unless it has a 0 before other digits, or is empty."""
        documents = {str(seed): hf_models.token_ids(CONTEXT, seed) for seed in range(12)}
        pieces = ["0", "1", "2", "3", "4", "5", "6", "\n"]
        decode = SimpleNamespace(decode=lambda ids, **_: "".join(pieces[i % 8] for i in ids))
        rows = self.rows(self.method, len(KEPT), documents=documents, tokenizer=decode, json=True)
        seen = set()
        for row in rows[1:]:
            ids = documents[row["document"]]
            for name, kept in {"json_full": range(CONTEXT), "json": KEPT}.items():
                before = decode.decode(ids)
                text = before + decode.decode(answer_by_hand(self.llama, ids, kept))
                self.assertEqual(row[name], is_json(text.split("\n")[before.count("\n")].encode()), (row, text))
                seen.add((name, row[name]))
        self.assertEqual(len(seen), 4)
        self.assertEqual(rows[0]["json"], sum(row["json"] for row in rows[1:]) / 12)
        self.assertEqual({row["task"] for row in rows}, {"json"})

    def test_ends_and_half_characters(self):
        model = self.ending(7)
        for said, expected in {'{"a': ("cut", "broken"), '{"a": 1}': ("valid", "valid"),
                               '{"a\ufffd': ("cut", "broken"), '{"\ufffd": 1}': ("broken", "broken")}.items():
            tokenizer = SimpleNamespace(decode=lambda ids, **_: "[1]\n" + said * (len(ids) > 2))
            self.assertEqual([_passes.judged(model, tokenizer, [1, 2], answer) for answer in ([1, 2], [1, 2, 7])],
                             [*expected], said)

    def test_refusals(self):
        with self.refuses("json=True judges text; give tokenizer="):
            self.rows("h2o", json=True)
        with self.refuses("free answers are judged as JSON; give generate="):
            self.rows("h2o", json=True, tokenizer=SimpleNamespace(), generate=0)


class Tables(GenerateTest):
    def test_sentences_and_comparisons(self):
        documents = {f"d{seed}": hf_models.token_ids(CONTEXT, seed) for seed in range(7)}
        self.rows(["sink", "kmeans", "exact[numbers=f16]"], "80%", documents=documents,
                  output=self.path("rows.csv"))
        page = kvbench.report(self.path("rows.csv")).text
        self.assertRegex(page, r"% of the first 32 tokens of free answers")
        self.assertRegex(page, r"A cache in 16 bits, a difference in precision alone, leaves [\d.]+ % of the first 32")
        self.assertIn("generated tokens: 32 greedy", page)
        compared = kvbench.compare(self.path("rows.csv"), a="sink", metric="alike_32")
        self.assertEqual((compared[0]["metric"], compared[0]["tested_over"]), ("alike_32", "7 documents"))
        self.assertEqual(compared[0]["generate"], "32 greedy")
