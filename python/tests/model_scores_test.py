# SPDX-License-Identifier: Apache-2.0
"""Scores that kvbench-dump-hf writes beside a trace, against their rules written out."""
import os
import unittest
from types import SimpleNamespace
from unittest import mock

import environment

environment.use_torch()
from support import kvbench  # noqa: E402
import architectures  # noqa: E402
import h5py  # noqa: E402
import hf_models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from disturbed import CONTEXT, N, Disturbed, ProbesTest, Wide, drawn, last_product, merged, token_ids  # noqa: E402
from kvbench.models import repeated as dump_hf_repeated  # noqa: E402
from kvbench.models import scores as dump_hf_scores  # noqa: E402
from kvbench.models.continued import Continued  # noqa: E402
from kvbench.models.measure import attention_modules  # noqa: E402

# Windows, norms of queries and keys, norms after W_O, no rotation
NAMES = ("llama", "gemma3", "olmo2", "gpt2")


class ScoresTest(ProbesTest):
    def setUp(self):
        super().setUp()
        self.let(WINDOW=N - CONTEXT)  # the tokens that Disturbed scores

    def let(self, **numbers):
        for name, number in numbers.items():
            where = next(module for module in (dump_hf_scores, dump_hf_repeated) if hasattr(module, name))
            self.addCleanup(setattr, where, name, getattr(where, name))
            setattr(where, name, number)

    def model(self, name):
        model = hf_models.save(self.path(name), name)
        hf_models.small_tokenizer([*map(str, range(97))]).save_pretrained(self.path(name))
        return model

    def scores(self, scorer="damage-votes", prompt="0"):
        """By layer: [kv heads, tokens]."""
        with h5py.File(self.path(f"t.{scorer}.h5")) as file:
            return {int(layer): values[()].astype(np.float64) for layer, values in file["prompts"][prompt].items()}


class DamageVotes(ScoresTest):
    def test_by_hand(self):
        """Two query heads of one kv head, one query, two probes."""
        weights = torch.tensor([[[0.5, 0.25, 0.25]], [[0.0, 0.99, 0.01]]])
        values = torch.tensor([[[1.0], [2.0], [4.0]]])
        outputs = weights @ values  # 2 and 2.02
        call = SimpleNamespace(value=values, run=lambda each: each(0, outputs, weights))
        found = dump_hf_scores.effects(call, np.array([[[[3.0]], [[0.0]]], [[[0.0]], [[1.0]]]], np.float32))
        np.testing.assert_allclose(found[:, 0], [[3, 0, -2], [0, 0.99 / 0.05 * 0.02, -0.01 / 0.99 * 1.98]], atol=1e-5)

    def test_votes_are_what_removed_tokens_do_to_drawn_sums_of_logits(self):
        """The attention of one kv head without the token, with weights that sum up to 1 again, changes the outputs of
        the last tokens of the context; finite differences along this change are what the probes are products with."""
        self.let(POOLED=1)
        for name in NAMES:
            with self.subTest(model=name):
                model = self.model(name)
                self.dump(self.path(name), "--prompt-tokens", N, "--scores", "damage-votes", "--vote-probes", 3,
                          "--seed", 5)
                attention, disturbed = hf_models.own_attention(model, token_ids()), Disturbed(model)
                exact = disturbed.log_p(token_ids())
                weights, step = drawn(5, 2, 3, np.exp(exact)), 1e-5
                with kvbench.Trace(self.path("t.h5")) as trace:
                    values = {number: layer.array("values").astype(np.float64)
                              for number, layer in trace.prompts["0"].layers.items() if not layer.window}
                found = self.scores()
                self.assertEqual(list(found), list(values))
                for layer, scores in found.items():
                    group = 4 // len(scores)
                    for head in range(len(scores)):
                        for token in (0, 17, CONTEXT - 1, CONTEXT + 4):
                            change = np.zeros((4, N - CONTEXT, 16))
                            for query_head in range(head * group, (head + 1) * group):
                                p = attention[layer][query_head, CONTEXT:]
                                rest = 1 - p[:, token:token + 1]
                                left = np.delete(p, token, 1) / rest @ np.delete(values[layer][head], token, 0)
                                change[query_head] = (left - p @ values[layer][head]) * np.minimum(1, rest / 0.05)
                            ahead, behind = (disturbed.log_p(token_ids(), {layer: merged(sign * step * change)})
                                             for sign in (1, -1))
                            slopes = [(weights[r] * (ahead - behind)).sum() / (2 * step) for r in range(3)]
                            vote = np.mean(np.square(slopes))
                            self.assertLessEqual(abs(scores[head, token] - vote), 2e-3 * vote + 1e-9)

    def test_the_largest_vote_of_seven_counts(self):
        self.model("llama")
        found = []
        for pooled in (1, 7):
            self.let(POOLED=pooled)
            self.dump(self.path("llama"), "--scores", "damage-votes", prompts=2)
            found.append([self.scores(prompt=prompt) for prompt in ("0", "1")])
        for single, pooled in zip(*found):
            for layer, votes in single.items():
                around = np.pad(votes, ((0, 0), (3, 3)))
                largest = np.lib.stride_tricks.sliding_window_view(around, 7, 1).max(2)
                np.testing.assert_array_equal(pooled[layer], largest)

    def test_contexts_shorter_than_the_window(self):
        self.model("llama")
        self.let(WINDOW=64)
        for tokens in (1, 2, CONTEXT):
            with self.subTest(tokens):
                self.dump(self.path("llama"), "--prompt-tokens", tokens, "--scores", "damage-votes")
                for scores in self.scores().values():
                    self.assertEqual(scores.shape, (2, tokens))
                    self.assertEqual((scores > 0).all(), tokens > 1)

    def test_half_types(self):
        self.model("llama").to(torch.bfloat16).float().save_pretrained(self.path("llama"))
        found = []
        for weights in ("f32", "bf16"):
            self.dump(self.path("llama"), "--scores", "damage-votes", "--weights", weights, "--vote-probes", 64)
            found.append(np.concatenate([scores.ravel() for scores in self.scores().values()]))
        self.assertGreater(np.corrcoef(np.log(found))[0, 1], 0.8)  # other labels where predictions round differently


class Chunks(unittest.TestCase):
    def test_chunks_of_kvpress(self):
        """KVzipPress() has chunk_size 2048, KVgradPress() 512."""
        for scorer, begins in (("kvzip", [0, 2048]), ("kvgrad", [0, 512, 1024, 1536, 2048, 2560])):
            chunks = dump_hf_repeated.repetitions([0] * 3000, ([1], [2], [3]), dump_hf_repeated.CHUNKS[scorer])
            self.assertEqual([begin for begin, _, _ in chunks], begins)


class Repeated(ScoresTest):
    def setUp(self):
        super().setUp()
        self.let(ASKS=("9 8 7", "5 6", "11"))
        chunks = mock.patch.dict(dump_hf_repeated.CHUNKS, kvzip=14, kvgrad=14)
        chunks.start()
        self.addCleanup(chunks.stop)

    def agrees(self, scorer, name, expected):
        """Three chunks. Queries, keys and values are those of a trace of the context and its repetition as one text, of
        which expected(layer of this trace, tokens, begin, end) is what the scores of a chunk must be."""
        ids = token_ids()[:CONTEXT]
        asked = [[9, 8, 7, 11, *ids[:14]], [5, 6, *ids[6:14], 11, *ids[14:28]], [5, 6, *ids[20:28], 11, *ids[28:]]]
        self.dump(self.path(name), "--scores", scorer)
        found = self.scores(scorer)
        for number, tokens in enumerate(asked):
            begin, end = 14 * number, min(14 * number + 14, CONTEXT)
            self.dumped("--model", self.path(name), "--ids", self.ids(ids + tokens, "whole"), "-o",
                        self.path("whole.h5"), "--queries", "all", "--force")
            with kvbench.Trace(self.path("whole.h5")) as trace:
                for layer, scores in found.items():
                    wanted = expected(trace.prompts["0"].layers[layer], layer, ids + tokens, begin, end)
                    np.testing.assert_allclose(scores[:, begin:end], wanted, rtol=5e-4, atol=1e-7,
                                               err_msg=f"{name}, {number}, {layer}")

    def largest(self, layer, begin, end, factor=lambda head, query: 1):
        """The largest weight of each key of a chunk, times a factor, one query after the other."""
        keys, queries = (layer.array(name).astype(np.float64) for name in ("keys", "queries"))
        best, group = np.zeros((len(keys), end - begin)), 4 // len(keys)
        for query in range(CONTEXT, keys.shape[1]):
            seen = [*range(min(4, begin)), *range(begin, end), *range(CONTEXT, query + 1)]
            for head in range(4):
                powers = np.exp(layer.scale * keys[head // group, seen] @ queries[head, query])
                of_chunk = (powers / powers.sum())[min(4, begin):][:end - begin] * factor(head, query)
                best[head // group] = np.maximum(best[head // group], of_chunk)
        return best

    def test_kvzip_written_out(self):
        for name in NAMES:
            with self.subTest(model=name):
                self.model(name)
                self.agrees("kvzip", name, lambda layer, number, tokens, begin, end: self.largest(layer, begin, end))

    def slopes(self, model, tokens):
        """By layer, in one pass: the norm of the gradient at the input of the norm behind attention."""
        body, seen = model.base_model, []
        handles = [norm.register_forward_pre_hook(lambda module, args: (args[0].retain_grad(), seen.append(args[0]))[1])
                   for norm in (*(layer.post_attention_layernorm for layer in body.layers), body.norm)]
        with Wide():
            body(torch.tensor([tokens]), use_cache=False)
        seen.pop()[0, CONTEXT:].square().sum().backward()
        for handle in handles:
            handle.remove()
        return [x.grad[0].norm(dim=1).numpy() for x in seen]

    def test_kvgrad_written_out(self):
        for name in NAMES[:3]:
            with self.subTest(model=name):
                model = self.model(name).double()
                model.set_attn_implementation("eager")
                parts = {module.layer_idx: last_product(module).weight.detach() for module in attention_modules(model)}

                def expected(layer, number, tokens, begin, end):
                    slopes, values = self.slopes(model, tokens)[number], layer.array("values")[:, begin:end]
                    matrix = parts[number].T.numpy()
                    sizes = [np.linalg.norm(values[head * len(values) // 4] @ matrix[16 * head:16 * head + 16], axis=1)
                             for head in range(4)]
                    return self.largest(layer, begin, end, lambda head, query: sizes[head] * slopes[query])
                self.agrees("kvgrad", name, expected)

    def test_kvgrad_of_half_types(self):
        self.model("gpt2").to(torch.bfloat16).float().save_pretrained(self.path("gpt2"))
        found = []
        for weights in ("f32", "bf16"):
            self.dump(self.path("gpt2"), "--scores", "kvgrad", "--weights", weights)
            found.append(np.log(self.scores("kvgrad")[1]).ravel())
        self.assertGreater(np.corrcoef(found)[0, 1], 0.99)


class Programs(ScoresTest):
    def test_files_beside_the_trace(self):
        """They belong to the trace, are refused and replaced as it is, and say how tokens are kept by them."""
        self.model("gemma3")
        said = self.dump(self.path("gemma3"), "--scores", "kvzip,damage-votes", prompts=2)
        self.assertIn("scores kvzip, damage-votes:", said)
        self.assertIn("t.damage-votes.h5[scope=model,sinks=4,recent=64]", said)
        for scorer in ("kvzip", "damage-votes"):
            self.assertEqual(list(self.scores(scorer)), [1])  # methods do not run in layer 0, which has a window
            method = f"scores:{self.path(f't.{scorer}.h5')}[scope=model]"
            rows = self.replay(self.path("t.h5"), "-m", method, "-b", 12)
            self.assertEqual({row["status"] for row in rows if row["layer"] == 1}, {"ok"})
        os.remove(self.path("t.h5"))
        said = self.dumped("--model", self.path("gemma3"), "--ids", self.path("ids0"), "--scores", "kvzip", code=2)
        self.assertIn("t.kvzip.h5: this file exists; pass --force", said)
        self.assertFalse(os.path.exists(self.path("t.h5")))

    def test_a_seed_gives_the_same_scores_and_decoded_tokens_change_none(self):
        self.model("llama")
        found = []
        for arguments in ((), (), ("--seed", 1)):
            self.dump(self.path("llama"), "--prompt-tokens", N, "--scores", "damage-votes", *arguments)
            found.append(self.scores()[1])
        self.dump(self.path("llama"), "--prompt-tokens", N, "--decode", 4, "--scores", "damage-votes", "--probes", 2)
        found.append(self.scores()[1])
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[3])
        self.assertFalse((found[0] == found[2]).all())

    def test_what_cannot_be_scored(self):
        self.model("llama")
        self.model("phi3")
        hf_models.save(self.path("bare"), "llama")
        self.model("gpt2")
        architectures.build("bitnet").save_pretrained(self.path("gpt2"))
        for model, arguments, words in (
                ("llama", ("--scores", "votes"), "there is no 'votes'; give some of damage-votes, kvzip, kvgrad"),
                ("llama", ("--scores", "kvzip,"), "there is no ''"),
                ("llama", ("--scores", "kvzip", "--vote-probes", 513), "--vote-probes 513"),
                ("llama", ("--scores", "kvzip", "--vote-probes", 5), "--vote-probes has no effect without"),
                ("gpt2", ("--scores", "kvgrad"), "a gate or a norm before it"),
                ("phi3", ("--scores", "kvzip"), "every recorded layer has a sliding window"),
                ("bare", ("--scores", "kvzip"), "leave out --scores kvzip, which asks the model")):
            with self.subTest(words):
                self.assertIn(words, self.dump(self.path(model), *arguments, code=2))
        self.let(ASKS=("9 " * 440, "5", "11"))
        self.assertIn("kvzip reads 513 tokens", self.dump(self.path("llama"), "--scores", "kvzip", code=2))

    def test_a_model_whose_cache_does_not_continue_its_pass(self):
        self.model("llama")
        before = Continued._cache
        self.addCleanup(setattr, Continued, "_cache", before)
        Continued._cache = lambda self, context: before(self, [context[0], *context])
        for scorer in ("damage-votes", "kvzip", "kvgrad"):
            said = self.dump(self.path("llama"), "--scores", scorer, "--queries", "all", code=1)
            self.assertIn("where tokens continue from a cache, attention outputs differ", said)
            self.assertIn(f"Leave out --scores {scorer}.", said)
            self.assertFalse(os.path.exists(self.path("t.h5")))

    def test_hybrid_models_and_shared_caches(self):
        """Layers without attention have no scores; each model is scored, or refused with a reason."""
        for name in ("lfm2", "jamba", "gemma4_text"):
            if name not in architectures.names():
                continue
            with self.subTest(model=name):
                architectures.build(name).save_pretrained(self.path(name))
                hf_models.small_tokenizer([*map(str, range(97))]).save_pretrained(self.path(name))
                code, said = self.dump_hf("--model", self.path(name), "--ids", self.ids(token_ids()), "--scores",
                                          "damage-votes,kvzip,kvgrad", "--force")
                if code:
                    self.assertIn("--scores", said)
                    continue
                with kvbench.Trace(self.path("t.h5")) as trace:
                    full = [number for number, layer in trace.prompts["0"].layers.items() if not layer.window]
                for scorer in ("damage-votes", "kvzip", "kvgrad"):
                    self.assertEqual(list(self.scores(scorer)), full)
