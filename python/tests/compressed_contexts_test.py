# SPDX-License-Identifier: Apache-2.0
"""kvbench.compressed() with several models, contexts, caches and masks."""
import copy
import threading
import warnings
from concurrent import futures

import environment

environment.use_torch("threadpoolctl")
from support import PackageTest, kvbench  # noqa: E402
import architectures  # noqa: E402
import hf_models  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from kvbench.models.examination import examination  # noqa: E402

N, CONTEXT = 60, 48
SNAPKV = "snapkv[window=8]"


def token_ids(count=N, seed=0):
    return torch.tensor([hf_models.token_ids(count, seed)])


class ContextsTest(PackageTest):
    @classmethod
    def setUpClass(cls):
        torch.set_grad_enabled(False)
        cls.model = hf_models.build(*hf_models.MODELS["llama"][:2])

    def logits(self, model, method, budget, **options):
        with kvbench.compressed(model, method, budget, **{"context": CONTEXT, **options}):
            return model(token_ids()).logits[0]


class Streams(ContextsTest):
    def test_calls_of_any_size_give_the_logits_of_one(self):
        for method, budget in (("fp8", "100%mem"), ("sink", 30), ("h2o", "60%"), ("int", "40%mem")):
            with self.subTest(method):
                whole = self.logits(self.model, method, budget, protocol="stream")
                for sizes in ([CONTEXT, *[1] * (N - CONTEXT)], [20, 1, 20, N - 41]):
                    cache, got, first = transformers.DynamicCache(), [], 0
                    with kvbench.compressed(self.model, method, budget, context=CONTEXT, decode=N - CONTEXT,
                                            protocol="stream") as run:
                        for size in sizes:
                            got.append(self.model(token_ids()[:, first:first + size], past_key_values=cache).logits[0])
                            first += size
                    torch.testing.assert_close(torch.cat(got), whole, rtol=1e-3, atol=1e-3)
                    self.assertLess(run.bytes["kv"], run.bytes["full"])

    def test_the_context_is_compressed_where_a_context_is_not(self):
        plain = self.model(token_ids()).logits[0]
        streamed = self.logits(self.model, "fp8", "100%mem", protocol="stream")
        decoded = self.logits(self.model, "fp8", "100%mem")
        torch.testing.assert_close(decoded[:CONTEXT], plain[:CONTEXT], rtol=1e-3, atol=1e-5)
        self.assertFalse(torch.allclose(streamed[1:CONTEXT], plain[1:CONTEXT], atol=1e-5))
        self.assertFalse(torch.allclose(streamed[CONTEXT:], decoded[CONTEXT:], atol=1e-5))
        torch.testing.assert_close(self.logits(self.model, "exact", "100%mem", protocol="stream"), plain, rtol=1e-3,
                                   atol=1e-4)

    def test_what_cannot_stream_is_refused(self):
        for method, options, fault in (("snapkv", {"protocol": "stream"}, "not a streaming algorithm"),
                                       ("h2o", {"protocol": "steam"}, "it is 'decode' or 'stream'"),
                                       ("damage-votes", {"protocol": "stream"}, "give another method")):
            with self.subTest(method), self.assertRaisesRegex(kvbench.Error, fault):
                self.logits(self.model, method, "50%", **options)


class Several(ContextsTest):
    def test_the_method_belongs_to_the_model_that_is_called(self):
        first, second = self.model, hf_models.build(*hf_models.MODELS["llama"][:2], seed=5)
        expected = [self.logits(first, SNAPKV, 16), self.logits(second, "exact", "100%")]
        plain = second(token_ids()).logits[0]
        with kvbench.compressed(first, SNAPKV, 16, context=CONTEXT):
            with kvbench.compressed(second, "exact", "100%", context=CONTEXT):
                got = [first(token_ids()).logits[0], second(token_ids()).logits[0]]
            after = first(token_ids()).logits[0]
        for a, b in zip([*got, after], [*expected, expected[0]]):
            self.assertTrue(torch.equal(a, b))
        self.assertTrue(torch.equal(second(token_ids()).logits[0], plain))

    def test_contexts_of_one_model_end_in_any_order(self):
        implementation = self.model.config._attn_implementation
        expected = [self.logits(self.model, method, 16) for method in (SNAPKV, "sink")]
        outer = kvbench.compressed(self.model, SNAPKV, 16, context=CONTEXT)
        inner = kvbench.compressed(self.model, "sink", 16, context=CONTEXT)
        outer.__enter__()
        inner.__enter__()
        self.assertTrue(torch.equal(self.model(token_ids()).logits[0], expected[1]))
        outer.__exit__(None, None, None)
        self.assertTrue(torch.equal(self.model(token_ids()).logits[0], expected[1]))
        inner.__exit__(None, None, None)
        for one, other in ((0, 1), (1, 0)):
            with torch.enable_grad():
                contexts = [kvbench.compressed(self.model, SNAPKV, 16) for _ in range(2)]
                for context in contexts:
                    context.__enter__()
                self.assertFalse(torch.is_grad_enabled())
                for number in (one, other):
                    with self.assertWarnsRegex(UserWarning, "decoded no token"):
                        contexts[number].__exit__(None, None, None)
                self.assertTrue(torch.is_grad_enabled())
        self.assertEqual(self.model.config._attn_implementation, implementation)

    def test_each_thread_has_its_own_context(self):
        """Contexts of one model in threads, and threads of one context, with sequences of equal length."""
        methods = (SNAPKV, "sink", "h2o", "damage-votes[recent=4]")
        expected = [self.logits(self.model, method, 16)[CONTEXT:] for method in methods]
        entered = threading.Barrier(4)

        def of_its_own(method):
            with kvbench.compressed(self.model, method, 16, context=CONTEXT):
                entered.wait()
                return self.steps(0)
        with futures.ThreadPoolExecutor(4, initializer=lambda: torch.set_grad_enabled(False)) as pool:
            got = list(pool.map(of_its_own, methods))
            for method in (SNAPKV, methods[3]):
                with kvbench.compressed(self.model, method, 16, context=CONTEXT):
                    got += pool.map(self.steps, range(4))
                with kvbench.compressed(self.model, method, 16, context=CONTEXT):
                    expected += [self.steps(seed) for seed in range(4)]
        for a, b in zip(got, expected):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)

    def steps(self, seed):
        """Logits of the tokens after the context, one by one."""
        cache, out = transformers.DynamicCache(), []
        for first, last in ((0, CONTEXT), *((i, i + 1) for i in range(CONTEXT, N))):
            out.append(self.model(token_ids(N, seed)[:, first:last], past_key_values=cache, use_cache=True).logits[0])
        return torch.cat(out[1:])

    def test_modules_that_are_replaced(self):
        model = hf_models.build(*hf_models.MODELS["llama"][:2])
        expected = self.logits(model, SNAPKV, 16)
        layer = model.model.layers[1]
        layer.self_attn = copy.deepcopy(layer.self_attn)
        torch.testing.assert_close(self.logits(model, SNAPKV, 16), expected)
        self.assertNotEqual(layer.self_attn.config._attn_implementation, "kvbench")
        model.model.layers, model.config.num_hidden_layers = model.model.layers[:1], 1
        with kvbench.compressed(model, SNAPKV, 16, context=CONTEXT) as run:
            model(token_ids())
        self.assertEqual(run.layers, [0])

    def test_a_model_that_shares_the_configuration_is_refused(self):
        other = type(self.model)(self.model.config).eval()
        with self.refuses("shares its configuration"), kvbench.compressed(self.model, SNAPKV, 16):
            other(token_ids())

    def test_sequences_are_told_apart_by_their_caches(self):
        """Two contexts of equal length, decoded in turns."""
        def steps(order):
            with kvbench.compressed(self.model, SNAPKV, 16):
                caches = [self.model(token_ids(CONTEXT, seed), use_cache=True).past_key_values for seed in (0, 1)]
                out = {0: [], 1: []}
                for which in order:
                    token = token_ids(N, which)[:, CONTEXT + len(out[which])][None]
                    out[which].append(self.model(token, past_key_values=caches[which], use_cache=True).logits[0])
            return [torch.cat(out[which]) for which in (0, 1)]
        for a, b in zip(steps([0, 1] * 5), steps([0] * 5 + [1] * 5)):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)

    def test_a_copied_cache_is_refused(self):
        with self.refuses("0 were seen"), kvbench.compressed(self.model, SNAPKV, 16):
            cache = self.model(token_ids(CONTEXT), use_cache=True).past_key_values
            self.model(token_ids()[:, CONTEXT:CONTEXT + 1], past_key_values=copy.deepcopy(cache), use_cache=True)


class Budgets(ContextsTest):
    def test_short_contexts_stay_whole_where_that_is_asked(self):
        exact = self.logits(self.model, "exact", "100%")
        for method, budget in ((SNAPKV, 64), ("quest", "25%mem")):
            with self.subTest(method, budget=budget):
                with self.refuses("larger than the context|layer 0: .* 25 %"):
                    self.logits(self.model, method, budget)
                with kvbench.compressed(self.model, method, budget, context=CONTEXT, whole=True) as run:
                    got = self.model(token_ids()).logits[0]
                torch.testing.assert_close(got, exact, rtol=1e-4, atol=1e-4)
                self.assertEqual(sum(run.whole.values()), 1, run.whole)
                self.assertEqual(run.bytes["kv"], run.bytes["full"])

    def test_a_method_that_fails_does_not_stay_whole(self):
        class Divides:
            def make(self, budget, seed):
                return 1 // 0
        with self.refuses("ZeroDivisionError"):
            self.logits(self.model, Divides, 16, whole=True)

    def test_budgets_in_bytes_hold_after_the_tokens_to_be_decoded(self):
        """What kveval and replay hold after 12 tokens that they know, generate() holds with decode=12."""
        known = kvbench.compressed(self.model, SNAPKV, "50%mem", context=CONTEXT)
        with known as expected:
            self.model(token_ids())
        for decode, same in ((N - CONTEXT, True), (None, False)):
            with kvbench.compressed(self.model, SNAPKV, "50%mem", context=CONTEXT, decode=decode) as run:
                cache = self.model(token_ids(CONTEXT), use_cache=True).past_key_values
                for i in range(CONTEXT, N):
                    self.model(token_ids()[:, i:i + 1], past_key_values=cache, use_cache=True)
            self.assertEqual(run.bytes == expected.bytes, same, (run.bytes, expected.bytes))
            self.assertEqual((run.bytes["kv"] + run.bytes["meta"]) / run.bytes["full"] <= 0.5, same)


class Windows(ContextsTest):
    """Formats in layers with a sliding window, against the model itself with keys and values rounded by hand."""

    # name: its arguments that differ from those of hf_models; the numbers of layers with a window and without
    KINDS = {"gemma3": ({}, [0], [1]), "qwen2": ({}, [1], [0]), "phi3": ({}, [0, 1], []),
             "mistral": ({"sliding_window": 20}, [0, 1], []), "gpt_oss": ({}, [0], [1])}
    SINKS = ("GptOssConfig", {**hf_models.SMALL, **hf_models.rope(), "num_local_experts": 4, "num_experts_per_tok": 2,
                              "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}, None)

    def build(self, name):
        kind, arguments, _ = self.SINKS if name == "gpt_oss" else hf_models.MODELS[name]
        return hf_models.build(kind, {**arguments, **self.KINDS[name][0]})

    @staticmethod
    def in_fp8(key, value, mask):
        return *(x.clamp(-448, 448).to(torch.float8_e4m3fn).float() for x in (key, value)), mask

    def by_hand(self, model, layers, protocol, changed=in_fp8, sinks=True):
        """The logits of the model where these layers read changed keys and values: all queries of a stream, else those
        behind the context."""
        def attend(module, query, key, value, mask, scaling, s_aux=None, **options):
            def output(k, v, seen):
                k, v = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (k, v))
                weights = (query @ k.mT * scaling + seen).exp()
                sums = weights.sum(-1, keepdim=True)
                if s_aux is not None and sinks:
                    sums = sums + s_aux.exp()[:, None, None]
                return (weights / sums @ v).transpose(1, 2)
            exact = output(key, value, mask)
            if module.layer_idx not in layers:
                return exact, None
            first = 0 if protocol == "stream" else CONTEXT
            return torch.cat([exact[:, :first], output(*changed(key, value, mask))[:, first:]], 1), None
        transformers.AttentionInterface.register("by_hand", attend)
        transformers.AttentionMaskInterface.register("by_hand", transformers.masking_utils.eager_mask)
        model.set_attn_implementation("by_hand")
        logits = model(token_ids()).logits[0]
        model.set_attn_implementation("eager")
        return logits

    def test_formats_round_what_a_window_sees(self):
        for name, (_, windowed, others) in self.KINDS.items():
            model, layers = self.build(name), sorted(windowed + others)
            for protocol in ("decode", "stream"):
                with self.subTest(name, protocol=protocol):
                    expected, without = (self.by_hand(model, of, protocol) for of in (layers, others))
                    got = self.logits(model, "fp8", "100%mem", protocol=protocol)
                    torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)
                    self.assertFalse(torch.allclose(without, expected, rtol=1e-3, atol=1e-4))  # a fault is seen

    def test_a_learned_sink_takes_part_in_each_softmax(self):
        """Of layer 1; layer 0 has a window, and methods that evict leave it alone."""
        model, first = self.build("gpt_oss"), CONTEXT - 18

        def evicted(key, value, mask):
            mask = mask.clone()
            mask[..., 2:first] = torch.finfo(torch.float32).min
            return key, value, mask
        plain = model(token_ids()).logits[0]
        torch.testing.assert_close(self.logits(model, "exact", "100%"), plain, rtol=1e-3, atol=1e-4)
        expected = self.by_hand(model, [1], "decode", evicted)
        kept = [0, 1, *range(first, CONTEXT)]
        got = self.logits(model, kvbench.entries({("0", 1, head): kept for head in (0, 1)}), len(kept))
        self.assertFalse(torch.allclose(expected, plain, rtol=1e-3, atol=1e-3))
        self.assertFalse(torch.allclose(self.by_hand(model, [1], "decode", evicted, sinks=False), expected, atol=1e-3))
        torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)
        for method in ("h2o", "snapkv[window=8]", "damage-votes[recent=4]", "sink+fp8"):
            self.assertTrue(bool(self.logits(model, method, 20).isfinite().all()), method)
        with self.assertRaisesRegex(kvbench.Error, "outside of which a learned sink"):
            self.logits(model, "wildcat[sinks=2,recent=2,bins=1]", 20)

    def test_calls_of_any_size_and_what_caches_hold(self):
        """The model's own cache drops tokens behind a window, of the context too."""
        for name, (_, windowed, others) in self.KINDS.items():
            model = self.build(name)
            window = next(layer.window_at(N, "") for layer in examination(model).layers.values()
                          if layer.layer in windowed)
            for method in ("fp8", "int[group=8]"):
                whole = self.logits(model, method, "60%mem")
                for sizes in ([CONTEXT, *[1] * (N - CONTEXT)], [30, CONTEXT - 28, N - CONTEXT - 2]):
                    with self.subTest(name, method=method, sizes=sizes):
                        cache, got, first = transformers.DynamicCache(config=model.config), [], 0
                        with kvbench.compressed(model, method, "60%mem", context=CONTEXT, decode=N - CONTEXT) as run:
                            for size in sizes:
                                got.append(model(token_ids()[:, first:first + size], past_key_values=cache).logits[0])
                                first += size
                        near = 1e-3 if method == "fp8" else 2e-2  # steps of int are wide
                        torch.testing.assert_close(torch.cat(got), whole, rtol=near, atol=near)
                        self.assertEqual(run.layers, sorted(windowed + others))
                        heads, row = 2, 2 * 16 * 2  # kv heads; bytes of a key and a value
                        self.assertEqual(run.bytes["full"], heads * row * (len(windowed) * window + len(others) * N))
                        self.assertLessEqual(run.bytes["kv"] + run.bytes["meta"], 0.6 * run.bytes["full"])

    def test_methods_that_evict_leave_windows_and_compositions_round_them(self):
        model = self.build("gemma3")
        for method, layers in (("sink", [1]), ("h2o+fp8", [0, 1]), ("snapkv+fp8[window=8]", [0, 1])):
            with kvbench.compressed(model, method, "50%", context=CONTEXT) as run:
                self.assertEqual(run.layers, layers)
        for method, budget, protocol in (("h2o+fp8", "20%", "stream"), ("h2o+fp8", "40%mem", "decode"),
                                         ("snapkv+fp8[window=8]", 9, "decode"), ("quest+fp8", "30%", "decode")):
            with self.subTest(method, budget=budget):
                got = self.logits(model, method, budget, protocol=protocol, layers=[0])
                torch.testing.assert_close(got, self.by_hand(model, [0], protocol), rtol=1e-3, atol=1e-4)


class Layers(ContextsTest):
    def test_windows_come_from_the_mask(self):
        """A model of which every layer has a window stays as it is, whatever its modules call it."""
        kind, arguments, _ = hf_models.MODELS["mistral"]
        for window, compresses in ((20, False), (400, False), (600, True)):  # of 512 positions
            model = hf_models.build(kind, {**arguments, "sliding_window": window})
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                with kvbench.compressed(model, SNAPKV, 16, context=CONTEXT) as run:
                    got = model(token_ids()).logits[0]
            self.assertEqual(run.layers, [0, 1] if compresses else [])
            same = torch.allclose(got, model(token_ids()).logits[0], rtol=1e-4, atol=1e-4)
            self.assertEqual(same, not compresses)
            self.assertEqual(any("no method ran" in str(one.message) for one in seen), not compresses)

    def test_layers_without_attention_take_no_share(self):
        """PyramidKV in a hybrid model holds on average what snapkv holds."""
        model = architectures.build("lfm2")
        held = []
        for method in ("pyramidkv[window=4]", "snapkv[window=4]"):
            with kvbench.compressed(model, method, 16, context=CONTEXT) as run:
                model(token_ids())
            held.append(run.bytes["kv"])
        self.assertEqual(run.layers, [1, 3])
        self.assertLess(abs(held[0] / held[1] - 1), 0.05)

    def test_shared_caches_are_refused(self):
        with self.refuses("attends to the cache of layer 1", "serve the queries of both"):
            self.logits(architectures.build("gemma4_text"), SNAPKV, 16)
        if "deepseek_v4" in architectures.names():
            with self.refuses("60 keys do not fit 48 tokens"):
                self.logits(architectures.build("deepseek_v4"), "exact", "100%")
