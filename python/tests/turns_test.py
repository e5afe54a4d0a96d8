# SPDX-License-Identifier: Apache-2.0
"""kvbench.evaluate() of conversations, beside a computation in PyTorch alone, and beside what it must refuse."""
import json

import environment

environment.use_torch("threadpoolctl")
from support import PackageTest, kvbench  # noqa: E402
import hf_models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from transformers import AttentionInterface, DynamicCache  # noqa: E402
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface  # noqa: E402

WINDOW, KERNEL, LAYERS, KV_HEADS, GROUP = 4, 3, 2, 2, 2
SNAPKV = f"snapkv[window={WINDOW},kernel={KERNEL}]"
TURNS = [(14, 6), (5, 7), (6, 6), (4, 8)]  # tokens of what is said and of the answer
STARTS = [20, 32, 44, 56]  # of the turns behind the first one, and the end
seen = {}  # by layer: the queries and keys of the last call
change = [lambda rows: rows]  # what is done to keys and values before attention


def spy(module, query, key, value, mask, scaling, **_):
    seen[module.layer_idx] = query[0], key[0]
    k, v = (change[0](rows).repeat_interleave(GROUP, 1) for rows in (key, value))
    weights = (scaling * query @ k.mT + mask[..., :k.shape[2]]).softmax(-1)
    return (weights @ v).transpose(1, 2), weights


AttentionInterface.register("spy", spy)
AttentionMaskInterface.register("spy", ALL_MASK_ATTENTION_FUNCTIONS["eager"])


def q4_0(rows):
    """The blocks of ggml: 32 numbers with one 16-bit step, which gives the one with the largest size -8."""
    step = rows.gather(-1, rows.abs().argmax(-1, True)) / -8
    inverse = torch.where(step == 0, 0, 1 / step)
    return ((rows * inverse + 8.5).floor().clamp(0, 15) - 8) * step.half().float()


def kept_by(scale, queries, keys, budget):
    """Tokens [kv_heads, budget] of a context, by the rule of snapkv."""
    n = keys.shape[1]
    logits = scale * queries[:, -WINDOW:].unflatten(0, (KV_HEADS, GROUP)) @ keys[:, None].mT
    logits[..., -WINDOW:].masked_fill_(torch.ones(WINDOW, WINDOW).triu(1).bool(), -torch.inf)
    votes = logits.softmax(-1)[..., :n - WINDOW].mean((1, 2))
    votes = torch.nn.functional.max_pool1d(votes, KERNEL, 1, KERNEL // 2)
    best = votes.sort(stable=True, descending=True).indices[:, :budget - WINDOW].sort().values
    return torch.cat([best, torch.arange(n - WINDOW, n).expand(KV_HEADS, -1)], 1)


class Turns(PackageTest):
    @classmethod
    def setUpClass(cls):
        torch.set_grad_enabled(False)
        kind, arguments, _ = hf_models.MODELS["llama"]
        cls.model = hf_models.build(kind, {**arguments, "head_dim": 32})
        cls.ids = hf_models.token_ids(STARTS[-1])
        ends = np.cumsum([0, *np.ravel(TURNS)])
        parts = [cls.ids[begin:end] for begin, end in zip(ends, ends[1:])]
        cls.talk = [{"role": role, "content": part} for role, part in zip(["user", "assistant"] * len(TURNS), parts)]

    def rows(self, methods, budgets, compress, talks=None, **options):
        return kvbench.evaluate(options.pop("model", self.model), talks or [self.talk], methods, budgets,
                                compress=compress, **options)

    def by_turn(self, methods, budgets, compress, **options):
        rows = self.rows(methods, budgets, compress, **options)
        self.assertEqual({row["status"] for row in rows}, {"ok"}, rows[0]["reason"])
        return {row["turn"]: row["kl_mean"] for row in rows if row["document"] == "all"}

    def by_hand(self, parts):
        """KL of each scored turn. `parts`: the logits of the tokens behind the first turn."""
        change[0] = lambda rows: rows
        full = self.model(torch.tensor([self.ids])).logits[0].double().log_softmax(-1)
        other = torch.cat([full[:STARTS[0]], *(part.double().log_softmax(-1) for part in parts)])
        kl = (full.exp() * (full - other)).sum(-1)
        return {turn: float(kl[end - answer - 1:end - 1].mean())
                for turn, end, (_, answer) in zip((2, 3, 4), STARTS[1:], TURNS[1:])}

    def spied(self, ids, cache, begin):
        positions = torch.arange(begin, begin + len(ids))[None]
        return self.model(torch.tensor([ids]), past_key_values=cache, position_ids=positions, use_cache=True).logits[0]

    def in_turns(self, anew, points=STARTS[:-1]):
        """The logits behind the first turn with caches that snapkv makes from the exact cache, or from what they
        hold."""
        parts, cache = [], DynamicCache()
        self.spied(self.ids[:points[0]], cache, 0)
        for begin, end in zip(points, [*points[1:], STARTS[-1]]):
            if anew:
                cache = DynamicCache()
                self.spied(self.ids[:begin], cache, 0)
            for number, layer in enumerate(cache.layers):
                kept = kept_by(32**-0.5, *seen[number], begin // 2)[None, ..., None]
                layer.keys, layer.values = (rows.take_along_dim(kept, 2) for rows in (layer.keys, layer.values))
            parts.append(self.spied(self.ids[begin:end], cache, begin))
        return self.by_hand(parts)

    def in_spy(self, compute):
        before = self.model.config._attn_implementation
        self.model.set_attn_implementation("spy")
        try:
            return compute()
        finally:
            self.model.set_attn_implementation(before)

    def check(self, found, wanted):
        found = {turn: kl for turn, kl in found.items() if turn in wanted}
        self.assertEqual(list(found), list(wanted))
        for turn, kl in wanted.items():
            self.assertAlmostEqual(found[turn], kl, delta=1e-3 * kl, msg=f"turn {turn}")

    def test_snapkv_by_hand(self):
        wanted = {compress: self.in_spy(lambda anew=compress == "anew": self.in_turns(anew))
                  for compress in ("turn", "anew")}
        self.assertGreater(abs(wanted["turn"][4] - wanted["anew"][4]), 0.01 * wanted["anew"][4])
        for compress, kl in wanted.items():
            self.check(self.by_turn(SNAPKV, "50%", compress), kl)
        wanted = self.in_spy(lambda: self.in_turns(False, [20, 28, 36, 44, 52]))
        self.check(self.by_turn(SNAPKV, "50%", 8), wanted)
        row = self.rows(SNAPKV, "50%", "turn")[0]  # 22 of 44 tokens, and the 12 behind them; 128 bytes each
        self.assertEqual([row[name] for name in ("budget_tokens", "kept_tokens", "total_bytes", "full_bytes")],
                         [22, 22 + 13 / 2, 34 * 128, 56 * 128])
        once = self.by_turn(SNAPKV, "50%", "once")
        self.check(once, self.in_spy(lambda: self.in_turns(False, [20])))

    def test_q4_0_by_hand(self):
        def rounded():
            cache = DynamicCache()
            self.spied(self.ids[:STARTS[0]], cache, 0)
            change[0] = q4_0
            return self.by_hand([self.spied(self.ids[STARTS[0]:], cache, STARTS[0])])
        for compress in ("turn", "once"):
            self.check(self.by_turn("q4_0", "100%mem", compress), self.in_spy(rounded))

    def test_the_exact_cache_does_no_damage(self):
        for compress in ("once", "turn", "anew", 5):
            for question, turns in (("outside", {None, 2, 3, 4}), ("inside", {None, 1, 2, 3, 4})):
                for model in ("llama", "gemma3"):
                    rows = self.rows(["exact", "snapkv[window=4]"], "100%", compress, question=question,
                                     model=hf_models.build(*hf_models.MODELS[model][:2]))
                    self.assertEqual({row["status"] for row in rows}, {"ok"})
                    self.assertEqual({row["turn"] for row in rows}, turns)
                    self.assertLess(max(row["kl_mean"] for row in rows), 1e-8)
                    self.assertEqual({(row["protocol"], row["question"]) for row in rows},
                                     {(f"compress {compress}", question)})

    def test_what_cannot_be_compressed_again(self):
        for method, budget, words in (("kmeans", "50%", "only tokens can be compressed again"),
                                      ("adakv(snapkv)[window=4]", "50%", "heads hold different numbers"),
                                      ("kvquant-nofisher[bits=4]", "100%mem", "positions of tokens"),
                                      ("h2o", "25%mem", "no limit of it"),
                                      ("damage-votes[scope=model,recent=4]", "50%", "read in parts")):
            row = self.rows(method, budget, "turn")[0]
            self.assertIn(row["status"], ("skipped", "infeasible"), method)
            self.assertIn(words, row["reason"])
        self.assertIn("drops tokens at compressions alone", self.rows("h2o", "50%", "turn")[0]["reason"])
        self.assertFalse(self.rows("h2o", "50%", "once")[0]["reason"])

    def test_refusals(self):
        talk, text = self.talk, {"role": "user", "content": "a"}
        for words, talks, options in (
                ("question is 'no'", [talk], {"question": "no"}), ("of other documents", [talk], {"context": 512}),
                ("least two turns, and it has 1", [talk[:2]], {}), ("give tokenizer=", [[text, *talk[1:]]], {}),
                (r"\[97\] is no", [[{**text, "content": [97]}, *talk[1:]]], {}),
                ("a file of conversations", [[object()]], {}),
                ("trained on 512", [[*talk, {**text, "content": [1] * 500}, talk[1]]], {})):
            with self.assertRaisesRegex(kvbench.Error, words):
                self.rows("h2o", "50%", "turn", talks, **options)

    def test_a_file_of_texts(self):
        talk = [{"role": role, "content": "a b c d e f g"} for role in ["user", "assistant"] * 3]
        path = self.write(json.dumps({"messages": talk}) + "\n" + json.dumps(talk), "talks.jsonl")
        rows = self.rows("h2o", "50%", "turn", path, tokenizer=hf_models.small_tokenizer("abcdefg"))
        self.assertEqual({row["document"] for row in rows}, {"all", "transcript-0", "transcript-1"})
