# SPDX-License-Identifier: Apache-2.0
"""kvbench.compressed(): how a model is called inside and around its with statement."""
import contextlib
import math
import sys
import types
import warnings
from unittest import mock

from compressed_contexts_test import CONTEXT, N, SNAPKV, ContextsTest, token_ids
from support import kvbench
import hf_models
import numpy as np
import torch
import transformers
from kvbench.models import attention as _attention
from kvbench.models.compressed import check_mask


class Calls(ContextsTest):
    def in_chunks(self, sizes, **options):
        with kvbench.compressed(self.model, SNAPKV, 16, **options) as self.run_:
            cache, first, out = transformers.DynamicCache(), 0, []
            for size in sizes:
                ids = token_ids()[:, first:first + size]
                out.append(self.model(ids, past_key_values=cache, use_cache=True).logits[0])
                first += size
        return torch.cat(out)

    def test_chunks_of_a_prefill(self):
        """With context= they are one context; without it they are refused."""
        whole = self.logits(self.model, SNAPKV, 16)
        for sizes in ((16, 16, 16, 12), (20, 40), (47, 1, 1, 11), (60,)):
            torch.testing.assert_close(self.in_chunks(sizes, context=CONTEXT), whole, rtol=1e-3, atol=1e-3)
            self.assertEqual(self.run_.decoded, N - CONTEXT)
        with self.refuses("chunks of one prefill", "context="):
            self.in_chunks((16, 16))
        with self.refuses("chunks of one prefill"), kvbench.compressed(self.model, SNAPKV, 16):
            self.model.generate(token_ids(), max_new_tokens=2, do_sample=False, prefill_chunk_size=16)

    def test_outputs_are_laid_out_as_the_code_of_a_model_expects(self):
        """Some take a view of them."""
        attend, laid_out = _attention.Interface.attend, []

        def noted(*arguments, **named):
            output, weights = attend(*arguments, **named)
            laid_out.append(output.is_contiguous())
            return output, weights
        with mock.patch.object(_attention.Interface, "attend", noted):
            self.in_chunks((20, 30, 10), context=CONTEXT)
        self.assertEqual(laid_out, [True] * len(laid_out))
        self.assertGreaterEqual(len(laid_out), 3)

    def test_masks_of_later_calls(self):
        ones = torch.ones(1, N, dtype=torch.long)

        def decoded(mask):
            with kvbench.compressed(self.model, SNAPKV, 16, context=CONTEXT):
                cache = self.model(token_ids(CONTEXT), use_cache=True).past_key_values
                return self.model(token_ids()[:, CONTEXT:], past_key_values=cache, attention_mask=mask).logits[0]
        torch.testing.assert_close(decoded(ones), self.logits(self.model, SNAPKV, 16)[CONTEXT:], rtol=1e-4, atol=1e-4)
        for hidden in (0, 20, N - 2):
            mask = ones.clone()
            mask[0, hidden] = 0
            with self.refuses("hides tokens"):
                decoded(mask)

    def test_calls_inside_which_a_with_statement_begins_or_ends_are_refused(self):
        """As it does where another thread calls the model. A call before leaves no layers that pass for its own."""
        def call(before, within, kept=(), **named):
            for context in kept:
                context.__enter__()
            if kept:
                self.model(token_ids(), use_cache=False)
            for context in before:
                context.__enter__()
            module = self.model.model.layers[1]

            def change(*_):
                hook.remove()
                within()
            hook = module.register_forward_pre_hook(change)
            self.model(token_ids(), **named)
        for named in ({"use_cache": False}, {"use_cache": True}):
            for implementation, words in (("sdpa", "has no mask; nor has a call that had begun"),
                                          ("eager", "or the call had begun when the with statement did")):
                self.model.set_attn_implementation(implementation)
                with self.subTest(implementation, **named), contextlib.ExitStack() as stack:
                    made = [kvbench.compressed(self.model, method, 16, context=CONTEXT) for method in (SNAPKV, "h2o")]
                    with self.refuses(words):
                        call([], lambda: stack.enter_context(made[0]), **named)
                for kept in ([], [0]):
                    with self.subTest(implementation, kept=kept, **named), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        made = [kvbench.compressed(self.model, method, 16, context=CONTEXT)
                                for method in (SNAPKV, "h2o")]
                        if not kept:
                            made[0].__enter__()
                        with self.refuses("layer 1: this call of the model had begun"):
                            call(made[1:], lambda: made[1].__exit__(None, None, None), [made[at] for at in kept],
                                 **named)
                        with self.refuses("goes on after the with statement in which it began"):
                            call([], lambda: made[0].__exit__(None, None, None), **named)
        self.model.set_attn_implementation("sdpa")

    def test_contexts_that_stay_whole_are_counted(self):
        for named in ({"use_cache": False}, {"use_cache": True}):
            with kvbench.compressed(self.model, SNAPKV, 16, context=10, whole=True) as run:
                for _ in range(3):
                    self.model(token_ids(20), **named)
            self.assertEqual(list(run.whole.values()), [3], named)

    def test_packed_sequences_are_refused(self):
        positions = torch.cat([torch.arange(30), torch.arange(30)])[None]
        with self.refuses("scaled_dot"):
            torch.nn.functional.scaled_dot_product_attention(*[torch.zeros(1, 1, 2, 4)] * 3, _attention.LazyMask({}))
        with self.refuses("several sequences in one"), kvbench.compressed(self.model, SNAPKV, 16):
            self.model(token_ids(), position_ids=positions, use_cache=False)

    def test_positions_that_do_not_follow_each_other_are_refused(self):
        ahead = torch.arange(N)[None] + 7  # turns all keys by as much
        with kvbench.compressed(self.model, SNAPKV, 16, context=CONTEXT):
            got = self.model(token_ids(), position_ids=ahead).logits[0]
            for positions in (ahead * 2, ahead.flip(1), torch.cat([ahead[:, :30]] * 2, 1)):
                with self.refuses("position_ids"):
                    self.model(token_ids(), position_ids=positions)
            gap = torch.arange(N)[None] + (torch.arange(N) >= 2)  # 0 1 3 4
            with self.refuses("position 3 follows position 1, where position 2 must"):
                self.model(token_ids(), position_ids=gap)
            cache = self.model(token_ids(CONTEXT), use_cache=True).past_key_values
            with self.refuses(f"position {CONTEXT + 7} follows position {CONTEXT - 1}, where position {CONTEXT} must"):
                self.model(token_ids()[:, CONTEXT:], past_key_values=cache, position_ids=ahead[:, CONTEXT:])
        torch.testing.assert_close(got, self.logits(self.model, SNAPKV, 16), rtol=1e-3, atol=1e-3)

    def test_positions_that_do_not_begin_at_0(self):
        """Methods that use positions, or rows as they are before or after the rotation, give what they give from 0 on:
        rounding flips few codes."""
        unrotating = (("kvquant-nofisher", "60%mem"), ("h2o+kvquant-nofisher[kvquant-nofisher.bits=4]", "40%mem"),
                      ("compactor", "50%"), ("sink[reposition=true]", "50%"), ("expected-attention", "50%"),
                      ("triattention", "50%"))
        others = (("int4", "60%mem"), ("turboquant", "60%mem"), ("r-kv", "50%"), ("infinigen", "50%"),
                  ("kmeans", "50%"), ("h2o", "50%"))
        for kind, methods in (("llama", unrotating + others), ("cohere", unrotating)):  # neighbouring channels turned
            model = self.model if kind == "llama" else hf_models.build(*hf_models.MODELS[kind][:2])
            for method, budget in methods:
                wanted = self.logits(model, method, budget)
                for start in (7, 400):
                    with self.subTest(kind, method=method, start=start):
                        with kvbench.compressed(model, method, budget, context=CONTEXT):
                            got = model(token_ids(), position_ids=torch.arange(N)[None] + start).logits[0]
                        self.assertLess(float((got - wanted).norm() / wanted.norm()), 2e-3)

    def test_caches_of_a_fixed_length_are_refused(self):
        with self.refuses("fixed length"), kvbench.compressed(self.model, SNAPKV, 16):
            self.model.generate(token_ids(CONTEXT), max_new_tokens=4, do_sample=False, cache_implementation="static")

    def test_gradients(self):
        expected = self.logits(self.model, SNAPKV, 16)
        with torch.enable_grad():
            got = self.logits(self.model, SNAPKV, 16)
            self.assertTrue(torch.equal(got, expected))
            self.assertFalse(got.requires_grad)
            with self.refuses("no gradient"), kvbench.compressed(self.model, SNAPKV, 16), torch.enable_grad():
                self.model(token_ids())


    def test_masks_of_long_calls(self):
        """Each row of a mask is looked at: of 5000 queries one does not see one token."""
        n, rows = 5000, []

        class Seen(_attention.LazyMask):
            def rows(self, first, last, keys):
                rows.extend(range(first, last))
                mask = torch.ones(n, n, dtype=torch.bool).tril()
                mask[1234, 17] = False
                return mask[first:last, :keys]
        call = types.SimpleNamespace(query=torch.empty(1, n, 1), key=torch.empty(1, n, 1), mask=Seen({}),
                                     module=types.SimpleNamespace(layer_idx=3))
        with self.refuses("layer 3", "hides tokens"):
            check_mask(call)
        self.assertEqual(rows, list(range(len(rows))))

    def test_without_lm_eval(self):
        with mock.patch.dict(sys.modules, {"lm_eval": None, "lm_eval.models.huggingface": None}):
            with self.refuses("lm_eval_model", "pip install 'lm_eval"):
                kvbench.lm_eval_model(self.model, None)

    def test_arguments(self):
        for named, words in (({"seed": -1}, ["seed is -1"]), ({"seed": 2**32}, ["seed"]), ({"seed": 1.5}, ["seed"]),
                             ({"threads": -1}, ["threads"]), ({"decode": -1}, ["decode"]),
                             ({"context": "all"}, ["context"]), ({"context": 1.5}, ["context"]),
                             ({"whole": 1}, ["whole"]),
                             ({"method": 3}, ["int object is no method"]), ({"method": []}, ["no method"]),
                             ({"method": ["h2o", "sink"]}, ["takes one method"]),
                             ({"method": "h2o,sink"}, ["takes one method"]),
                             ({"inject_scale": 1.5}, ["from 0.001 to 1"]),
                             ({"inject_scale": 1e-300}, ["lost in the rounding of float32"]),
                             ({"inject_scale": math.nan}, ["inject_scale is nan"])):
            with self.subTest(named):
                with self.refuses(*words), kvbench.compressed(self.model, **named):
                    pass
        with self.refuses("without torch.compile"), kvbench.compressed(torch.compile(self.model)):
            pass
        for model in (3, None, torch.nn.Linear(2, 2), "model"):
            with self.refuses("is no model of transformers"), kvbench.compressed(model):
                pass

    def test_objects_of_one_class(self):
        class Own:
            first = 0

            def make(self, budget, seed):
                return np.arange(self.first, self.first + budget)
        one, other = Own(), Own()
        one.first = 20
        expected = [self.logits(self.model, method, 16) for method in (one, other)]
        second = hf_models.build(*hf_models.MODELS["llama"][:2])
        with kvbench.compressed(self.model, one, 16, context=CONTEXT), kvbench.compressed(second, other, 16,
                                                                                           context=CONTEXT):
            got = [self.model(token_ids()).logits[0], second(token_ids()).logits[0]]
        self.assertFalse(torch.equal(*expected))
        for a, b in zip(got, expected):
            self.assertTrue(torch.equal(a, b))
