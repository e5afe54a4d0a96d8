# SPDX-License-Identifier: Apache-2.0
"""Compares traces of small Hugging Face models with what the models themselves compute."""
import os
import signal
import socket
import subprocess
import sys
import time
from unittest import mock

import environment

environment.use_torch()
from support import PACKAGE, kvbench, main, run  # noqa: E402
import hf_models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import dumps  # noqa: E402
from kvbench import _attention, dump_hf, dump_hf_check  # noqa: E402

N = 48


def token_ids(count=N, seed=0):
    return hf_models.token_ids(count, seed)


class DumpTest(dumps.DumpTest):
    opened = None   # the trace of the last dump

    def ids(self, count=N, seed=0, name="ids"):
        return super().ids(token_ids(count, seed), name)

    def dump(self, model, *arguments, code=0):
        """Runs the program, which does not replace a trace that this process has open; returns its messages."""
        self.close_trace()
        return self.dumped("--model", model, *arguments, code=code)

    def trace(self):
        self.close_trace()
        self.opened = kvbench.Trace(self.path("t.h5"))
        self.addCleanup(self.close_trace)
        return self.opened

    def close_trace(self):
        if self.opened:
            self.opened.close()
        self.opened = None


class Architectures(DumpTest):
    def test_attention_of_the_trace_is_that_of_the_model(self):
        """For layers with windows, softcaps, grouped heads, biases, norms and fused projections, the attention
        probabilities from the trace equal those of the model's eager attention."""
        for name, (_, _, (windows, thetas, kind, layout, scale, softcap)) in hf_models.MODELS.items():
            with self.subTest(model=name):
                own = hf_models.own_attention(hf_models.save(self.path(name), name), token_ids())
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
        for name, (_, _, (*_, kind, own, _, _)) in hf_models.MODELS.items():
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
                self.dump(self.path(name), "--ids", self.ids(), "--queries", "all", "--attention-output", "--force")
                trace, given = self.trace(), {}
                self.assertEqual((trace.head_dim, trace.value_dim), (40, 32))
                modules = [layer.self_attn for layer in model.model.layers]
                for index, module in enumerate(modules):
                    module.o_proj.register_forward_pre_hook(
                        lambda _, args, index=index: given.__setitem__(index, args[0][0].detach().numpy()))
                model.set_attn_implementation("eager")
                with torch.no_grad():
                    cache = model(torch.tensor([token_ids()]), use_cache=True).past_key_values
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


class Passes(DumpTest):
    def setUp(self):
        super().setUp()
        self.model = hf_models.save(self.path("m"), "gemma2")

    def arrays(self, prompt="0", layer=1):
        trace = self.trace()
        layer = trace.prompts[prompt].layers[layer]
        return {name: layer.array(name) for name in layer.arrays}

    def test_blocks_of_queries_do_not_show(self):
        """The same arrays whether attention runs in one block or in blocks of three queries."""
        arguments = ("--ids", self.ids(), "--queries", "all", "--column-sums", "--attention-output", "--force")
        self.dump(self.path("m"), *arguments)
        whole = self.arrays()
        most, _attention.MOST_WEIGHTS = _attention.MOST_WEIGHTS, 4 * 48 * 3
        self.addCleanup(setattr, _attention, "MOST_WEIGHTS", most)
        self.dump(self.path("m"), *arguments)
        for name, array in self.arrays().items():
            np.testing.assert_allclose(array, whole[name], rtol=1e-4, atol=1e-5, err_msg=name)

    def test_decoding_is_greedy_and_recorded(self):
        self.dump(self.path("m"), "--ids", self.ids(20), "--decode", 6)
        prompt = self.trace().prompts["0"]
        self.assertEqual((prompt.num_tokens, prompt.prompt_tokens), (26, 20))
        self.assertEqual(prompt.layers[0].query_positions.tolist(), list(range(26)))
        self.model.set_attn_implementation("eager")
        with torch.no_grad():
            for n in range(20, 26):
                logits = self.model(torch.tensor([prompt.tokens[:n].tolist()]), use_cache=False).logits[0, -1]
                self.assertEqual(int(logits.argmax()), prompt.tokens[n])

    def test_decoding_stops_where_the_model_ends_its_text(self):
        self.dump(self.path("m"), "--ids", self.ids(20), "--decode", 6)
        third = int(self.trace().prompts["0"].tokens[22])
        self.model.generation_config.eos_token_id = third
        self.model.save_pretrained(self.path("m"))
        said = self.dump(self.path("m"), "--ids", self.ids(20), "--decode", 6, "--force")
        prompt = self.trace().prompts["0"]
        self.assertIn(f"ended its text {26 - prompt.num_tokens} tokens before", said)
        self.assertNotIn(third, prompt.tokens[20:])
        self.assertLessEqual(prompt.num_tokens, 22)

    def test_prompts_and_options(self):
        said = self.dump(self.path("m"), "--ids", self.ids(), self.ids(30, 5, "more"), "--layers", "1", "--queries",
                         "last:4", "--dtype", "f16")
        self.assertRegex(said, r"t.h5: 78 tokens, 1 layers; largest difference .*e-0[678]")
        trace = self.trace()
        self.assertEqual([(p.name, p.num_tokens, p.prompt_tokens) for p in trace.prompts.values()],
                         [("ids", 48, 36), ("more", 30, 23)])
        self.assertEqual((list(trace.prompts["1"].layers), trace.dtype, trace.arch, trace.quantisation),
                         ([1], "f16", "gemma2", "F32"))
        self.assertEqual(trace.prompts["1"].layers[1].query_positions.tolist(), [26, 27, 28, 29])
        second = self.arrays("1")
        self.dump(self.path("m"), "--ids", self.path("more"), "--queries", "last:4", "--dtype", "f16", "--quiet",
                  "--force")
        for name, array in self.arrays().items():
            np.testing.assert_array_equal(array, second[name])

    def test_short_prompts_share_the_window_of_long_ones(self):
        self.dump(self.path("m"), "--ids", self.ids(6, name="short"), self.ids())
        self.assertEqual([[layer.window for layer in p.layers.values()] for p in self.trace().prompts.values()],
                         [[8, 0], [8, 0]])

    def test_half_weights(self):
        self.dump(self.path("m"), "--ids", self.ids(), "--weights", "bf16", "--queries", "all")
        trace = self.trace()
        self.assertEqual((trace.quantisation, trace.rope_type, trace.rope_layout), ("BF16 from F32", "default", "half"))
        keys = trace.prompts["0"].layers[1].keys()
        np.testing.assert_array_equal(keys, torch.tensor(keys).bfloat16().float().numpy())

    def test_kvbench_replays_it(self):
        hf_models.save(self.path("q"), "qwen3")
        self.dump(self.path("q"), "--ids", self.ids(300), "--column-sums", "--speculated", "--pre-rope")
        self.assertIn("qwen3, F32", run("info", self.path("t.h5")))
        rows = self.replay(self.path("t.h5"), "--method", "all", "--budget", "25%")
        self.assertGreater(len(rows), 15)
        # Quantisers have no budget in tokens, blocks of ggml no heads of 16 channels, lagkv no 225 tokens, wildcat no
        # budget of 56, and compactor no queries before the last ones.
        expected = ("keeps every token in fewer bits|no multiple of the 32|lagkv never drops|compactor needs the "
                    "queries|wildcat keeps 32 sinks")
        for row in rows:
            if row["status"] != "ok":
                self.assertRegex(row["reason"], expected)


class Usage(DumpTest):
    def test_bad_input_is_named(self):
        hf_models.save(self.path("m"), "llama")
        ids, model = self.ids(), self.path("m")
        for name, text in (("word", "1 x2"), ("large", "1 97"), ("one", "4"), ("nul", "1 2\0")):
            self.write(text, name)
        os.mkdir(self.path("empty"))
        for words, arguments in (
                ("no prompt was given", []),
                ("there is no such file", ["--ids", "nowhere"]),
                ("'x2' (item 2) is not a token id", ["--ids", self.path("word")]),
                (r"'2\x00' (item 2) is not", ["--ids", self.path("nul")]),
                ("'1' is not a whole number from 2", ["--ids", ids, "--ctx", "1"]),
                ("1 tokens are too few", ["--ids", self.path("one"), "--ids", ids]),
                ("'97' (item 2) is not a token id", ["--ids", self.path("large")]),
                ("1 tokens are too few", ["--ids", self.path("one")]),
                ("--ctx 64 asks for more than its 48 tokens", ["--ids", ids, "--ctx", 64]),
                ("was trained on 512 tokens", ["--ids", ids, "--ctx", 513]),
                ("was trained on 512 tokens", ["--ids", ids, "--ctx", 40, "--decode", 500]),
                ("--prompt-tokens 49 lies beyond the 48", ["--ids", ids, "--prompt-tokens", 49]),
                ("contradicts it", ["--ids", ids, "--prompt-tokens", 9, "--decode", 2]),
                ("there is no layer 2", ["--ids", ids, "--layers", "0,2"]),
                ("'x' is not a layer", ["--ids", ids, "--layers", "x"]),
                ("expected last:N, all or every:N", ["--ids", ids, "--queries", "last:0"]),
                ("'0' is not a whole number", ["--ids", ids, "--ctx", "0"]),
                ("give token ids with --ids", ["--text", ids]),
                ("this is a folder", ["--ids", ids, "-o", self.path("m")]),
                ("no config.json", ["--ids", ids, "--model", self.path("empty")]),
                ("no such model file", ["--ids", ids, "--model", "x.gguf"]),
                *([] if torch.cuda.is_available() else [("no CUDA device", ["--ids", ids, "--device", "cuda"])])):
            with self.subTest(words=words):
                said = self.dump(model, *arguments, code=2)
                self.assertIn(words, said)
                self.assertEqual(said.count("\n"), 1, said)
        self.dump(model, "--ids", ids, "-o", self.path("none/t.h5"), code=3)
        self.write("precious", "t.h5")
        self.assertIn("--force", self.dump(model, "--ids", ids, code=2))
        with open(self.path("t.h5")) as file:
            self.assertEqual(file.read(), "precious")

    def test_without_torch_one_sentence_says_what_to_install(self):
        for name in ("torch", "transformers"):
            hidden = sys.modules[name]
            self.addCleanup(sys.modules.__setitem__, name, hidden)
            sys.modules[name] = None
            said = self.dump("m", "--ids", "x", code=2)
            sys.modules[name] = hidden
            self.assertIn("pip install './python[hf]'", said)

    def test_messages_that_cannot_be_written(self):
        hf_models.save(self.path("m"), "llama")
        for closed in (None, open("/dev/full", "w")):
            with mock.patch.object(sys, "stderr", closed):
                code = dump_hf.main(["--model", self.path("m"), "--ids", self.ids(20), "-o", self.path("t.h5"),
                                     "--force"])
            self.assertEqual(code, 0)

    def test_signals_leave_nothing(self):
        hf_models.save(self.path("m"), "llama")
        prompts = [self.ids(500, seed, f"p{seed}") for seed in range(200)]
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            process = subprocess.Popen([sys.executable, "-m", "kvbench.dump_hf", "--model", self.path("m"),
                                        "-o", self.path("t.h5"), "--ids", *prompts], stderr=subprocess.PIPE, text=True,
                                       env={**os.environ, "PYTHONPATH": os.pathsep.join(
                                            [str(PACKAGE), *sys.path])})
            deadline = time.time() + 120
            while not os.path.exists(self.path(f"t.h5.tmp.{socket.gethostname()}.{process.pid}")):
                self.assertIsNone(process.poll(), "ended before the trace was begun")
                self.assertLess(time.time(), deadline)
                time.sleep(0.01)
            process.send_signal(number)
            said = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, 130, said)
            self.assertIn("interrupted; nothing was written", said)
            self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("t.h5")])


main()
