# SPDX-License-Identifier: Apache-2.0
"""Methods inside small Hugging Face models: kvbench.compressed()."""
import contextlib
import sys
import warnings
from unittest import mock

import environment

environment.use_torch("threadpoolctl")
from support import PACKAGE, SAMPLE, kvbench  # noqa: E402
import hf_models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from dumps import DumpTest  # noqa: E402
from kvbench.models.attention import Call, Interface  # noqa: E402
from kvbench.models.compressed import examination  # noqa: E402
from kvbench.models.continued import cache_name  # noqa: E402
from kvbench.models.rotation import UNKNOWN  # noqa: E402

sys.path.insert(0, str(PACKAGE / "tests" / "methods"))
import numpy_methods  # noqa: E402
import torch_methods  # noqa: E402

N, CONTEXT = 60, 48


def token_ids(count=N, seed=0):
    return torch.tensor([hf_models.token_ids(count, seed)])


class CompressedTest(DumpTest):
    @classmethod
    def setUpClass(cls):
        torch.set_grad_enabled(False)
        cls.models = {name: hf_models.build(*hf_models.MODELS[name][:2]) for name in ("llama", "gemma3", "gemma2")}
        cls.models["gemma2"].set_attn_implementation("eager")  # sdpa of transformers 5.6 does not cap its logits

    def logits(self, model, method="exact", budget="100%", ids=None, context=CONTEXT, **options):
        with kvbench.compressed(model, method, budget, context=context, **options) as self.last:
            return model(token_ids() if ids is None else ids).logits[0]

    def record(self, model, *options):
        """A dump of the model on token_ids(), as t.h5."""
        model.save_pretrained(self.path("model"))
        self.dumped("--model", self.path("model"), "--ids", self.ids(token_ids()[0].tolist()), "--prompt-tokens",
                    CONTEXT, "--queries", "all", "--quiet", "--force", *options)

    def replayed(self, method, budget):
        """Outputs of the first layer in a replay of t.h5 [q_heads, m, dv], and the row."""
        row = self.replay(self.path("t.h5"), "-m", method, "-b", budget, "--layers", "0", "--raw", self.path("r.h5"),
                          "--raw-outputs", "--seeds", "1")[0]
        with kvbench.Raw(self.path("r.h5")) as raw:
            return np.concatenate([raw.head("0", 0, h).output() for h in (0, 1)]), row

    def outputs(self, model, method, budget, **options):
        """The same inside compressed()."""
        outputs = []
        hook = model.model.layers[0].self_attn.o_proj.register_forward_pre_hook(
            lambda module, inputs: outputs.append(inputs[0][0, CONTEXT:]))
        self.logits(model, method, budget, **options)
        hook.remove()
        return outputs.pop().reshape(N - CONTEXT, 4, -1).transpose(0, 1).numpy()


class Outputs(CompressedTest):
    def test_exact_is_the_model(self):
        for name, model in self.models.items():  # gemma3: a layer with a window; gemma2: none that methods run in
            expected = model(token_ids()).logits[0]
            for context in (1, CONTEXT, N - 1):
                with self.subTest(name, context=context):
                    torch.testing.assert_close(self.logits(model, context=context), expected, rtol=1e-4, atol=1e-4)

    def test_two_products_where_the_code_of_the_model_does_nothing_else(self):
        model, found = self.models["llama"], []
        code, run_plain = sys.modules[type(model.model).__module__], Call._run_plain
        eager = code.eager_attention_forward
        for share in (1, 0.99):
            with mock.patch.object(code, "eager_attention_forward", lambda module, query, key, *rest, **options:
                                   eager(module, query, share * key, *rest, **options)):
                with mock.patch.object(Call, "_run_plain", autospec=True, side_effect=run_plain) as ran:
                    found.append(self.logits(model, "h2o", 16))
                self.assertEqual(max(call.args[0].query.shape[1] for call in ran.call_args_list) > 1, share == 1)
                with mock.patch.object(Call, "_is_plain", lambda call: False):
                    torch.testing.assert_close(self.logits(model, "h2o", 16), found[-1], rtol=1e-5, atol=1e-5)
        self.assertGreater((found[0] - found[1]).abs().max(), 1e-3)

    def test_entries_of_the_whole_context_are_exact(self):
        model = self.models["llama"]
        kept = {("0", layer, kv_head): range(CONTEXT) for layer in (0, 1) for kv_head in (0, 1)}
        torch.testing.assert_close(self.logits(model, kvbench.entries(kept)), model(token_ids()).logits[0], rtol=1e-4,
                                   atol=1e-4)
        self.assertGreater((self.logits(model, kvbench.entries({key: [0] for key in kept})) - self.logits(model)).max(),
                           1e-3)

    def test_outputs_of_the_first_layer_are_those_of_a_replay(self):
        model = self.models["llama"]
        self.record(model, "--scores", "damage-votes")
        for method, budget in (("snapkv[window=8]", "16"), ("h2o", "25%mem"), ("uniform", "30%"),
                               ("quest[page=4]", "16"), ("chelsea[chunk=16]", "50%"),
                               ("snapkv+int8[window=8,int8.group=16]", "16"),
                               ("damage-votes[scope=model,sinks=1,recent=4]", "16"),
                               ("damage-votes+int8[scope=layer,recent=4,int8.group=16]", "25%mem")):
            with self.subTest(method):
                replayed = method.replace("damage-votes", f"scores:{self.path('t.damage-votes.h5')}")
                replayed = replayed.replace("[scope=layer", "[sinks=4,scope=layer")  # which it has by itself
                np.testing.assert_allclose(self.outputs(model, method, budget), self.replayed(replayed, budget)[0],
                                           rtol=1e-3, atol=1e-4)

    def test_inference_mode_changes_nothing(self):
        model = self.models["llama"]
        for method in ("h2o", "int4[group=16]", "damage-votes[recent=4]"):
            expected = self.logits(model, method, "50%mem")
            with torch.inference_mode():
                torch.testing.assert_close(self.logits(model, method, "50%mem"), expected)

    def test_a_call_per_token_gives_what_one_call_gives(self):
        model = self.models["llama"]
        for method, budget in (("snapkv[window=8]", 16), ("h2o", 16), ("exact", 16), ("kmeans", 16),
                               ("damage-votes[scope=model,recent=4]", 16)):
            whole = self.logits(model, method, budget)
            with kvbench.compressed(model, method, budget, context=CONTEXT) as compression:
                cache = model(token_ids()[:, :CONTEXT], use_cache=True).past_key_values
                steps = []
                for first, last in ((CONTEXT, CONTEXT + 1), (CONTEXT + 1, CONTEXT + 4), (CONTEXT + 4, N)):
                    steps.append(model(token_ids()[:, first:last], past_key_values=cache, use_cache=True).logits[0])
            torch.testing.assert_close(torch.cat(steps), whole[CONTEXT:], rtol=1e-3, atol=1e-3)
            self.assertEqual(compression.decoded, N - CONTEXT)
            for name, value in compression.bytes.items():
                self.assertAlmostEqual(value, self.last.bytes[name], msg=f"{method} {name}")

    def test_methods_in_python(self):
        model = self.models["llama"]
        for own, built_in in ((numpy_methods.snapkv(window=8), "snapkv[window=8]"), (numpy_methods.H2O, "h2o")):
            torch.testing.assert_close(self.logits(model, own, 16), self.logits(model, built_in, 16), rtol=1e-4,
                                       atol=1e-4)
            self.assertNotAlmostEqual(float((self.logits(model, own, 16) - self.logits(model)).abs().max()), 0)

    def test_rows_of_methods_in_pytorch(self):
        for own, built_in in ((torch_methods.snapkv, "snapkv"), (torch_methods.H2O, "h2o")):
            rows = kvbench.replay(SAMPLE, [own, built_in], ["25%mem", 64], layers=[2, 26], rows="query")
            by_method = [[(row["rel_err_mean"], row["kept_tokens"]) for row in rows if row["method"] == name]
                         for name in (rows[0]["method"], built_in)]
            self.assertEqual(*by_method)
            self.assertGreater(len(by_method[0]), 1000)

    def test_generation(self):
        model, ids = self.models["llama"], token_ids(CONTEXT)
        plain = model.generate(ids, max_new_tokens=12, do_sample=False)
        with kvbench.compressed(model, "exact", "100%"):
            self.assertTrue(torch.equal(model.generate(ids, max_new_tokens=12, do_sample=False), plain))
        with kvbench.compressed(model, "snapkv[window=8]", 16) as compression:
            first = model.generate(ids, max_new_tokens=12, do_sample=False)
            held = compression.bytes
            again = model.generate(ids, max_new_tokens=12, do_sample=False)  # a new sequence
        self.assertTrue(torch.equal(first, again))
        tokens = first.shape[1] - CONTEXT - 1  # the last one is not decoded any more
        self.assertEqual(held["kv"], 2 * 2 * (16 + tokens) * 32 * 2)  # layers, kv heads, tokens, channels, bytes
        self.assertEqual(held["full"], 2 * 2 * (CONTEXT + tokens) * 32 * 2)
        self.assertTrue(torch.equal(model.generate(ids, max_new_tokens=12, do_sample=False), plain))

    def test_element_types_and_devices(self):
        for dtype, device in ((torch.bfloat16, "cpu"), (torch.float32, "cuda"), (torch.float16, "cuda")):
            with self.subTest(dtype=dtype, device=device):
                if device == "cuda" and not torch.cuda.is_available():
                    self.skipTest("there is no GPU")
                model = hf_models.build(*hf_models.MODELS["llama"][:2]).to(device, dtype)
                ids = token_ids().to(device)
                expected = model(ids).logits[0].float()
                got = self.logits(model, ids=ids).float()
                self.assertLess(float((got - expected).abs().mean() / expected.abs().mean()), 0.05)


class ChannelOrder(CompressedTest):
    """The order of the channels of queries and keys that a method sees."""
    # method: the order by default, in a model whose weights llama.cpp permutes
    DEFAULTS = {"q4_0[hadamard=true]": "interleaved", "snapkv+q5_1[window=8]": "interleaved", "nvfp4": "half",
                "int4[group=16]": "half"}

    @staticmethod
    def model(kind="LlamaConfig", **more):
        return hf_models.build(kind, {**hf_models.SMALL, **hf_models.rope(), "hidden_size": 256, "head_dim": 64,
                                      **more})

    def test_outputs_in_an_order_are_those_of_a_dump_in_this_order(self):
        self.check_order(self.model())

    def test_so_are_those_of_a_layer_without_rotation_in_a_model_that_is_permuted(self):
        self.check_order(self.model("SmolLM3Config", no_rope_layers=[0, 1]))

    def check_order(self, model):
        replayed = {}
        for order in ("half", "interleaved"):
            self.record(model, "--rope-layout", order)
            for method in self.DEFAULTS:
                replayed[method, order], row = self.replayed(method, "60%mem")
                self.assertEqual(row["rope_layout"], order)
                engine = "llama.cpp" if "q" in method else "vLLM" if method == "nvfp4" else ""
                noted = engine and order != self.DEFAULTS[method]
                self.assertEqual(f"; {engine}, whose format it is" in row["reason"], bool(noted), row["reason"])
        for method, default in self.DEFAULTS.items():
            for order in ("half", "interleaved", None):
                with self.subTest(method, order=order):
                    got = self.outputs(model, method, "60%mem", rope_layout=order)
                    self.assertEqual(self.last.rope_layout, order or default)
                    np.testing.assert_allclose(got, replayed[method, order or default], rtol=1e-4, atol=1e-5)
            difference = replayed[method, "half"] - replayed[method, "interleaved"]
            self.assertGreater(np.linalg.norm(difference) / np.linalg.norm(replayed[method, "half"]), 1e-3)

    def test_plans_by_head(self):
        """A plan is what it was when it was given, and each of its heads has the order of its format."""
        def plan(*methods):
            lines = "".join(f'{{ layer = {i // 2}, kv_head = {i % 2}, method = "{method}", budget = "60%mem" }},'
                            for i, method in enumerate(methods))
            text = (f'model = "tiny"\nmodel_layers = 2\ntraces = ["0"]\n[[plans]]\nbudget = "60%mem"\n'
                    f'layers = [{lines}]\n')
            return f"plan:{self.write(text, 'plan.toml')}"
        model, q4_0 = self.model(), "q4_0[hadamard=true]"
        expected = self.outputs(model, q4_0, "60%mem")[2:]
        for methods in (("h2o", q4_0, "h2o", "h2o"), (q4_0, q4_0, "h2o", "h2o")):
            np.testing.assert_array_equal(self.outputs(model, plan(*methods), "60%mem")[2:], expected)
        whole = self.logits(model, plan("h2o", q4_0, "h2o", "h2o"), "60%mem")
        with kvbench.compressed(model, f"plan:{self.path('plan.toml')}", "60%mem", context=CONTEXT):
            plan(*["sink"] * 4)
            self.assertTrue(torch.equal(model(token_ids()).logits[0], whole))
        with self.refuses("layer 0", "engines that order channels differently", "rope_layout="):
            self.logits(model, plan("nvfp4", q4_0, "h2o", "h2o"), "60%mem")

    def test_models_with_another_rotation(self):
        """Channels that are not rotated stay where they are; orders of the code are those of engines that keep it."""
        partial = hf_models.rope(partial_rotary_factor=0.75)
        for kind, more, default, orders in (("Qwen2Config", {}, "half", 2), ("CohereConfig", {}, "interleaved", 2),
                                            ("PhiConfig", partial, "half", 2), ("GPT2Config", {}, "", 1)):
            with self.subTest(kind):
                if kind == "GPT2Config":
                    model = hf_models.build(kind, {**hf_models.MODELS["gpt2"][1], "n_embd": 256})
                else:
                    model = self.model(kind, **more)
                logits = {order: self.logits(model, "q4_0", "60%mem", rope_layout=order)
                          for order in ("half", "interleaved")}
                by_default = self.logits(model, "q4_0", "60%mem")
                self.assertEqual(self.last.rope_layout, default)
                self.assertTrue(torch.equal(by_default, logits[default or "half"]))
                self.assertEqual(float((logits["half"] - logits["interleaved"]).abs().max()) > 1e-3, orders == 2)

    def test_a_rotation_that_was_not_measured(self):
        model = self.model()
        examination(model).layers[1].rotation = UNKNOWN
        self.logits(model, "q4_0", "60%mem")
        with self.refuses("rope_layout='half'", "layer 1 could not be measured"):
            self.logits(model, "q4_0", "60%mem", rope_layout="half")
        with self.refuses("rope_layout is 'rows'"):
            self.logits(model, "q4_0", "60%mem", rope_layout="rows")


class InjectScale(CompressedTest):
    def test_without_errors_the_model_is_exact_to_the_bit(self):
        for model in (self.models["llama"], self.models["gemma3"]):
            logits, name = [], cache_name(model)
            for scale, its_own in ((1, Interface("compressed").attached(model)), (0, contextlib.nullcontext())):
                with kvbench.compressed(model, "h2o", 40, context=CONTEXT, inject_scale=scale):
                    cache = getattr(model(token_ids(CONTEXT), use_cache=True), name)
                    with its_own:
                        logits.append(model(token_ids()[:, CONTEXT:], **{name: cache}).logits)
            self.assertTrue(torch.equal(*logits))
            self.assertFalse(torch.equal(logits[0][0], self.logits(model, "h2o", 40)[CONTEXT:]))

    def kl(self, model, method, budget, exact, **options):
        got = self.logits(model, method, budget, **options)[CONTEXT:].double().log_softmax(-1)
        return float((exact.exp() * (exact - got)).sum(-1).mean())

    def test_kl_divided_by_the_square_tends_to_the_prediction(self):
        model = self.models["llama"]
        self.record(model, "--probes", "512")
        exact = self.logits(model)[CONTEXT:].double().log_softmax(-1)
        for method, budget in (("h2o", "24"), ("int4[group=16]", "50%mem")):
            limits = []
            for scale in (0.02, 0.01):
                limits.append(self.kl(model, method, budget, exact, inject_scale=scale) / scale**2)
            predicted = self.replay(self.path("t.h5"), "-m", method, "-b", budget, "--rows", "trace")[0]
            self.assertAlmostEqual(limits[0] / limits[1], 1, delta=0.05)
            self.assertAlmostEqual(limits[1] / predicted["kl_predicted"], 1, delta=0.15)


class Refusals(CompressedTest):
    def refused(self, *words, method="snapkv[window=8]", budget=16, call=None, **options):
        model = self.models["llama"]
        with self.refuses(*words), kvbench.compressed(model, method, budget, **options):
            (call or (lambda: model(token_ids())))()
        self.assertNotEqual(model.config._attn_implementation, "kvbench")

    def test_what_cannot_be_compressed(self):
        model = self.models["llama"]
        self.refused("there is no method 'snapvk'", "snapkv", method="snapvk", context=CONTEXT)
        self.refused("budget", "'much'", budget="much", context=CONTEXT)
        self.refused("quest: layer 0", "25 %", method="quest", budget="25%mem", context=CONTEXT)
        for oracle in ("oracle-topk", "oracle-error", "vattention[sinks=2,window=2]"):
            with self.refuses(f"^{oracle.partition('[')[0]} chooses by exact logits", "a model that decodes does not"):
                self.logits(model, oracle, 16)
        self.refused("one method|methods", method="all", context=CONTEXT)
        self.refused("`method` 'h2o.': brackets stand once", method="h2o[", context=CONTEXT)
        self.refused("^budget 1B is less than the 64 bytes of one token", method="sink", budget="1B", context=CONTEXT)
        self.refused("^budget 1MB is larger than the context", method="sink", budget="1MB", context=CONTEXT)
        self.refused(r"^criticalkv\(snapkv\) needs sketches of W_O", "kvbench eval", method="criticalkv(snapkv)",
                     context=CONTEXT)
        self.refused("kvzip asks the model", "--scores kvzip", method="kvzip", context=CONTEXT)
        self.refused("'scop'", method="damage-votes[scop=model]", context=CONTEXT)
        self.refused("give input_ids", method="damage-votes", context=CONTEXT,
                     call=lambda: model(inputs_embeds=torch.zeros(1, N, 48)))
        self.refused("no context", context=-N)
        self.refused("decode is 0", decode=0)
        self.refused("batch of 2", call=lambda: model(torch.cat([token_ids(), token_ids()])))
        self.refused("batch of 2", call=lambda: model.generate(token_ids(), num_beams=2, max_new_tokens=4))
        mask = torch.ones(1, N, dtype=torch.long)
        mask[0, :3] = 0
        self.refused("padding", call=lambda: model(token_ids(), attention_mask=mask))

    def test_a_cache_from_outside(self):
        model = self.models["llama"]
        cache = model(token_ids(CONTEXT), use_cache=True).past_key_values
        self.refused("the cache holds 48 tokens", "0 were seen",
                     call=lambda: model(token_ids()[:, CONTEXT:], past_key_values=cache))

        def cropped():
            own = model(token_ids(), use_cache=True).past_key_values
            own.crop(CONTEXT - N)
            model(token_ids()[:, CONTEXT:], past_key_values=own)
        self.refused("the cache holds 48 tokens", "60 were seen", call=cropped)

    def test_a_model_that_counts_each_call_from_0(self):
        model = self.models["llama"]

        def numbered(body, args, kwargs):
            return args, kwargs | {"position_ids": torch.arange(kwargs["input_ids"].shape[1])[None]}
        hook = model.model.register_forward_pre_hook(numbered, with_kwargs=True)
        try:
            self.refused("gradients of another computation", method="damage-votes[recent=4]", context=CONTEXT)
            self.refused("position 0 follows position 47", "where position 48 must", "from 0", context=CONTEXT,
                         call=lambda: model(token_ids()[:, CONTEXT:], past_key_values=model(
                             token_ids(CONTEXT), use_cache=True).past_key_values))
        finally:
            hook.remove()

    def test_a_method_that_fails(self):
        class Divides:
            def make(self, budget, seed):
                raise ZeroDivisionError("by zero")
        self.refused("py:Divides: layer 0", "ZeroDivisionError: by zero", method=Divides, context=CONTEXT)

    def test_a_run_without_compression_is_noticed(self):
        model = self.models["llama"]
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with kvbench.compressed(model, "snapkv", 16):
                model(token_ids())
        self.assertIn("decoded no token", str(seen[-1].message))
