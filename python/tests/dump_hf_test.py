# SPDX-License-Identifier: Apache-2.0
"""Compares traces of small Hugging Face models with what the models themselves compute."""
import os

import environment

environment.use_torch()
from support import kvbench  # noqa: E402
import hf_models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from dumps import OpenedDumpTest  # noqa: E402
from kvbench.dump_hf import check as dump_hf_check  # noqa: E402

N = 48


class Architectures(OpenedDumpTest):
    def ids(self):
        return super().ids(hf_models.token_ids(N))

    def test_attention_of_the_trace_is_that_of_the_model(self):
        """For layers with windows, softcaps, grouped heads, biases, norms and fused projections, the attention
        probabilities from the trace equal those of the model's eager attention."""
        for name, (_, _, (windows, thetas, kind, layout, scale, softcap)) in hf_models.RECORDED.items():
            with self.subTest(model=name):
                own = hf_models.own_attention(hf_models.save(self.path(name), name), hf_models.token_ids(N))
                self.dump(self.path(name), "--ids", self.ids(), "--queries", "all", "--column-sums", "--prompt-tokens",
                          40, "--force")
                trace = self.trace()
                self.assertEqual((trace.rope_type, trace.rope_layout, trace.num_layers, trace.head_dim),
                                 (kind, layout, 2, 40 if "deepseek" in name else 16))
                kv_heads = 4 if name == "gpt2" else 1 if "deepseek" in name else 2
                self.assertEqual((trace.num_query_heads, trace.num_kv_heads), (4, kv_heads))
                layers = trace.prompts["0"].layers
                self.assertEqual([layer.window for layer in layers.values()], windows)
                self.assertEqual([layer.rope_theta for layer in layers.values()], thetas)
                for index, layer in layers.items():
                    self.assertAlmostEqual(layer.scale, scale, 6)
                    self.assertEqual(layer.softcap, softcap)
                    np.testing.assert_allclose(hf_models.probabilities(layer), own[index], atol=1e-5)
                    np.testing.assert_allclose(layer.array("column_sums"), own[index][:, :40].sum(1), atol=1e-4)

    def test_what_is_before_rope_turns_into_what_is_after(self):
        for name in ("llama", "qwen2", "qwen3", "gemma2", "gemma3", "phi3", "cohere", "olmo2", "smollm3"):
            with self.subTest(model=name):
                hf_models.save(self.path(name), name)
                self.dump(self.path(name), "--ids", self.ids(), "--queries", "all", "--pre-rope", "--force")
                trace = self.trace()
                for layer in trace.prompts["0"].layers.values():
                    for array in ("keys", "queries"):
                        expected = hf_models.turned(layer.array(f"{array}_pre_rope"), layer.rope_theta,
                                                    trace.rope_layout)
                        np.testing.assert_allclose(layer.array(array), expected, atol=1e-4)

    def test_channels_in_the_layout_that_is_asked_for(self):
        """Keys and queries turn by the layout that the trace names, and their products do not depend on it."""
        for name, (_, _, (*_, kind, own, _, _)) in hf_models.RECORDED.items():
            hf_models.save(self.path(name), name)
            products = {}
            for layout in (None, "half", "interleaved"):
                with self.subTest(model=name, layout=layout):
                    self.dump(self.path(name), "--ids", self.ids(), "--queries", "all", "--pre-rope", "--force",
                              *(("--rope-layout", layout) if layout else ()))
                    trace = self.trace()
                    self.assertEqual(trace.rope_layout, layout or own)
                    layer = trace.prompts["0"].layers[1]
                    products[layout] = hf_models.probabilities(layer)
                    np.testing.assert_allclose(products[layout], products[None], atol=1e-5)
                    if kind == "default" and "keys_pre_rope" in layer.arrays:
                        turned = hf_models.turned(layer.array("keys_pre_rope"), layer.rope_theta, trace.rope_layout)
                        np.testing.assert_allclose(layer.array("keys"), turned, atol=1e-4)

    def test_latents(self):
        """MLA: the trace holds the latents and rotary keys that the model gives to its cache. Its outputs, times W_UV,
        are what the model's own eager attention gives to W_O, of which the sketch is that of the product of both."""
        for name in ("deepseek_v2", "deepseek_v3"):
            with self.subTest(model=name):
                model = hf_models.save(self.path(name), name)
                known, words = name in hf_models.RECORDED, ("--queries", "all", "--attention-output", "--force")
                said = self.dump(self.path(name), "--ids", self.ids(), *words, code=0 if known else 2)
                if not known:
                    self.assertIn("install a newer transformers", said)
                    continue
                trace, given = self.trace(), {}
                self.assertEqual((trace.head_dim, trace.value_dim), (40, 32))
                modules = [layer.self_attn for layer in model.model.layers]
                for index, module in enumerate(modules):
                    module.o_proj.register_forward_pre_hook(
                        lambda _, args, index=index: given.__setitem__(index, args[0][0].detach().numpy()))
                model.set_attn_implementation("eager")
                with torch.no_grad():
                    cache = model(torch.tensor([hf_models.token_ids(N)]), use_cache=True).past_key_values
                for index, (module, layer) in enumerate(zip(modules, trace.prompts["0"].layers.values())):
                    self.assertTrue(layer.values_in_keys)
                    cached = [part[0, 0].numpy() for part in (cache.layers[index].keys, cache.layers[index].values)]
                    np.testing.assert_allclose(layer.keys(0), np.concatenate(cached, 1), atol=1e-5)
                    np.testing.assert_allclose(layer.values(0), cached[0], atol=1e-5)
                    up = module.kv_b_proj.weight.detach().numpy().reshape(4, 16 + 12, 32)[:, 16:]  # [heads, 12, r]
                    outputs = np.einsum("hmr,hvr->mhv", layer.array("attention_output"), up)
                    np.testing.assert_allclose(outputs.reshape(N, -1), given[index], atol=1e-4)
                    w_o = module.o_proj.weight.detach().numpy().reshape(-1, 4, 12)
                    philox = np.random.Philox(key=layer.sketch_seed, counter=[0, 0, index, 1])
                    normals = np.random.Generator(philox).standard_normal((64, len(w_o))) / 8
                    np.testing.assert_allclose(layer.array("output_sketch"),
                                               np.einsum("whv,hvr,sw->hrs", w_o, up, normals), atol=1e-4)

    def test_speculated_queries(self):
        """Speculated queries are computed from the input of the layer before. They equal the layer's own queries if
        that layer adds nothing to its input and both layers have the same norm."""
        for name in ("llama", "qwen2", "qwen3", "gemma3", "phi3"):
            with self.subTest(model=name):
                model = hf_models.save(self.path(name), name)
                arguments = ("--ids", self.ids(), "--queries", "every:5", "--speculated", "--force")
                self.dump(self.path(name), *arguments)
                layers = self.trace().prompts["0"].layers
                self.assertNotIn("speculated_queries", layers[0].arrays)
                guess, own = layers[1].array("speculated_queries"), layers[1].queries()
                self.assertGreater(np.linalg.norm(guess - own) / np.linalg.norm(own), 0.05)
                first, second = model.base_model.layers
                with torch.no_grad():
                    for tensor in (*first.self_attn.o_proj.parameters(), *first.mlp.down_proj.parameters()):
                        tensor.zero_()
                    second.input_layernorm.weight.copy_(first.input_layernorm.weight)
                model.save_pretrained(self.path(name))
                self.dump(self.path(name), *arguments)
                layer = self.trace().prompts["0"].layers[1]
                np.testing.assert_allclose(layer.array("speculated_queries"), layer.queries(), atol=1e-5)

    def test_what_cannot_be_recorded_is_refused_by_name(self):
        small = hf_models.SMALL
        cases = {
            "sinks": ("GptOssConfig", {**small, "num_local_experts": 2, "num_experts_per_tok": 1}, "attention sinks"),
            "none": ("MambaConfig", {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2},
                     "it has no attention"),
            "alibi": ("BloomConfig", {"vocab_size": 97, "hidden_size": 64, "n_layer": 2, "n_head": 4}, "attention"),
            "encoder": ("T5Config", {"vocab_size": 97, "d_model": 32, "num_layers": 2}, "has an encoder"),
        }
        for name, (kind, arguments, words) in cases.items():
            with self.subTest(model=name):
                if name == "encoder":  # refused because of the configuration alone
                    hf_models.config(kind, **arguments).save_pretrained(self.path(name))
                else:
                    hf_models.build(kind, arguments).save_pretrained(self.path(name))
                said = self.dump(self.path(name), "--ids", self.ids(), code=2)
                self.assertIn(words, said)
                self.assertEqual(said.count("\n"), 1, said)
                self.assertFalse(os.path.exists(self.path("t.h5")))

    def test_a_wrong_record_fails_the_self_check(self):
        """The trace cannot describe this attention: its logits are multiplied by an additional factor."""
        hf_models.save(self.path("m"), "llama")
        from transformers.models.llama import modeling_llama
        plain = modeling_llama.eager_attention_forward

        def odd(module, query, *rest, **options):
            return plain(module, query * 1.01, *rest, **options)

        modeling_llama.eager_attention_forward = odd
        self.addCleanup(setattr, modeling_llama, "eager_attention_forward", plain)
        self.assertIn("self check failed", self.dump(self.path("m"), "--ids", self.ids(), code=1))
        self.assertEqual(sorted(os.listdir(self.folder)), ["ids", "m"])
        self.assertIn("not checked", self.dump(self.path("m"), "--ids", self.ids(), "--no-check"))

    def test_large_logits_are_rounded_more(self):
        """Logits 4097 and 4097.75018, of which float32 has only 4097.75: the second weight of 0.68 is rounded by 1.8e-4
        of 1 - 0.68."""
        info = kvbench.LayerInfo(scale=1.0, query_positions=np.array([1]))
        query, keys, values = (np.array(x, np.float32) for x in ([[[4097]]], [[[1], [1 + 3 / 2**14]]], [[[1], [2]]]))
        logits = query[0] @ keys[0].T
        weights = np.exp(logits - logits.max())
        output = (weights / weights.sum() @ values[0])[None]
        difference, tolerance = dump_hf_check.self_check(info, keys, values, query, output)
        self.assertAlmostEqual(difference, 1.8e-4 * 0.68 * 0.32 / 1.68, delta=3e-6)
        self.assertAlmostEqual(tolerance, 1e-5 + 4098 / 2**24, delta=1e-6)
        self.assertLess(difference, tolerance)
        self.assertGreater(dump_hf_check.self_check(info, keys, values, query, 1.001 * output)[0], tolerance)
