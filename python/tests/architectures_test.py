# SPDX-License-Identifier: Apache-2.0
"""Every decoder that the installed transformers offers: kvbench-dump-hf and kvbench.compressed() agree with the model's
own eager attention and with each other, or refuse with a sentence of a stated list. KVBENCH_ARCHITECTURES=all runs the
whole table (minutes), a list of names runs these; otherwise a dozen run."""
import dataclasses
import os
import sys

import environment

environment.use_torch("threadpoolctl")
from support import kvbench  # noqa: E402
import architectures  # noqa: E402
import hf_models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from dumps import DumpTest  # noqa: E402
from kvbench.models.sequences import Layer  # noqa: E402

DOZEN = ("cohere", "phi", "gptj", "gpt_neox", "qwen3", "gemma2", "gemma3n_text", "gemma4_text", "lfm2", "jamba",
         "smollm3", "gpt_oss", "deepseek_v2", "falcon", "opt")
N, CONTEXT = 60, 48
LONG = 520  # tokens: more than the short run of a dump reads
METHODS = (("sink", "16"), ("snapkv[window=8]", "16"))


def wanted():
    asked = os.environ.get("KVBENCH_ARCHITECTURES", "")
    return architectures.names() if asked == "all" else asked.split(",") if asked else DOZEN


def token_ids():
    return hf_models.token_ids(N)


class Architectures(DumpTest):
    def refusal_in(self, text):
        return any(part in text for part in architectures.REFUSALS)

    def recorded(self, model, tokens=N, queries="all"):
        """Whether the model was dumped to t.h5, or the message of the refusal."""
        model.save_pretrained(self.path("model"))
        code, said = self.dump_hf("--model", self.path("model"), "--ids", self.ids(hf_models.token_ids(tokens)),
                                  "--prompt-tokens", CONTEXT, "--queries", queries, "--force")
        if code:
            self.assertEqual(code, 2, said)
            self.assertTrue(self.refusal_in(said), said)
        return True if code == 0 else said

    def logits(self, model, method, budget):
        with kvbench.compressed(model, method, budget, context=CONTEXT) as self.run_:
            return model(torch.tensor([token_ids()])).logits[0]

    def check_cache(self, model):
        """The keys and values of the dump are those that the model's own cache holds, layer by layer: where layers
        share a cache, the dump has it once."""
        model.set_attn_implementation("eager")
        held = architectures.held(model, token_ids())
        with kvbench.Trace(self.path("t.h5")) as trace:
            layers = trace.prompts["0"].layers
            if held is None or any(layer.values_in_keys for layer in layers.values()):
                return  # there is none, or it has another form of the latents
            self.assertEqual(sorted(layers), sorted(held))
            for number, layer in layers.items():
                for name, mine, cached in zip(("keys", "values"), (layer.keys(), layer.values()), held[number]):
                    kept = cached.shape[1]  # a sliding window has the last tokens alone
                    np.testing.assert_allclose(mine[:, -kept:], cached, rtol=0.02, atol=0.01 * np.abs(cached).max(),
                                               err_msg=f"{name} of layer {number}")

    def compressed(self, model):
        """Whether `exact` gives the model's own logits, or the message of the refusal."""
        try:
            got = self.logits(model, "exact", "100%")
        except kvbench.Error as refusal:
            self.assertTrue(self.refusal_in(str(refusal)), str(refusal))
            return str(refusal)
        model.set_attn_implementation("eager")
        expected = model(torch.tensor([token_ids()])).logits[0]
        torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))
        return True

    def check_first_layer(self, model):
        """The outputs of the first layer that methods compress are those of a replay of the dump."""
        self.logits(model, "exact", "100%")
        layer, outputs = self.run_.layers[0], {}
        decode = Layer.decode

        def watched(self, call, sequence):
            made = decode(self, call, sequence)
            outputs.setdefault(call.module.layer_idx, made)
            return made
        Layer.decode = watched
        try:
            for method, budget in METHODS:
                outputs.clear()
                self.logits(model, method, budget)
                file = self.path(f"{model.config.model_type}-{method}.h5")
                kvbench.replay(self.path("t.h5"), method, budget, layers=[layer], raw=file, raw_outputs=True)
                with kvbench.Raw(file) as raw:
                    expected = np.concatenate([raw.head("0", layer, h).output() for h in range(len(raw.heads))])
                got = outputs[layer].transpose(0, 1).numpy()
                np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
        finally:
            Layer.decode = decode

    def check(self, name):
        torch.set_grad_enabled(False)
        model = architectures.build(name)
        longer = self.recorded(architectures.build(name, longest=4 * LONG), LONG, "last:4")
        dumped = self.recorded(model)
        self.assertEqual(longer is True, dumped is True, longer)  # whose masks are known from the short run alone
        if dumped is True:
            self.check_cache(model)
        compressed = self.compressed(model)
        compared = dumped is True and compressed is True and bool(self.run_.layers)
        if compared:
            self.check_first_layer(model)
        for what, result in (("dump", dumped), ("compressed", compressed)):
            print(f"{name}: {what}: {'right' if result is True else ' '.join(result.split())}", file=sys.stderr)
        if compressed is True and not self.run_.layers:
            print(f"{name}: compressed: no layer is compressed", file=sys.stderr)

    def test_the_layers_that_have_a_cache(self):
        self.assertTrue(self.recorded(architectures.build("lfm2")))
        with kvbench.Trace(self.path("t.h5")) as trace:
            self.assertEqual(trace.cache_layers.tolist(), [1, 3])
            self.assertEqual(list(trace.prompts["0"].layers), [1, 3])
            for wrong in ([3, 1], [1, 4], []):
                header = kvbench.Header(**{field.name: getattr(trace, field.name)
                                           for field in dataclasses.fields(kvbench.Header)} | {"cache_layers": wrong})
                with self.refuses("cache_layers", "below 4"):
                    kvbench.TraceWriter(self.path("wrong.h5"), header)

    def test_architectures(self):
        print(f"transformers {transformers.__version__}", file=sys.stderr)
        known = architectures.names()
        for name in wanted():
            if name in known:
                with self.subTest(name):
                    self.check(name)
