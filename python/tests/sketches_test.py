# SPDX-License-Identifier: Apache-2.0
"""Sketches of W_O and norms of the residual stream that kvbench-dump-hf records."""
import environment

environment.use_torch()
from support import kvbench  # noqa: E402
import hf_models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from disturbed import Disturbed, ProbesTest, Wide, token_ids  # noqa: E402


def norms_before_layers(model):
    """Norms [n] of the residual stream before each layer."""
    with torch.no_grad():
        run = model(torch.tensor([token_ids()]), output_hidden_states=True, use_cache=False)
    return [state[0].norm(dim=1).numpy() for state in run.hidden_states]


class Sketches(ProbesTest):
    def check(self, name, error, slope, norms, least_misfit=0.0):
        """Compares |dz' S| / norm with |J dz| / |x| in the mean over queries; slope(layer, dz [m, heads * dv]) is J dz
        by the model itself."""
        random = np.random.default_rng(4)
        with kvbench.Trace(self.path("t.h5")) as trace:
            for number, layer in trace.prompts["0"].layers.items():
                sketch, rows = layer.array("output_sketch"), layer.query_positions
                self.assertEqual(sketch.shape, (4, 16, 64))
                self.assertGreaterEqual(layer.sketch_misfit, least_misfit)
                dz = random.normal(size=(len(rows), 64))
                got = np.linalg.norm(dz @ sketch.reshape(64, 64), axis=1) / layer.array("residual_norm")
                expected = np.linalg.norm(slope(number, dz), axis=1) / norms[number][rows]
                self.assertLess(abs(got.mean() / expected.mean() - 1), error, name)
                self.assertLess(abs(np.log(got / expected)).mean(), 3 * error, name)

    def test_norms_in_the_residual_stream(self):
        """Without a norm after W_O: those of W_O and of the inputs of the layers."""
        for name in ("llama", "phi", "cohere", "gpt2"):
            with self.subTest(model=name):
                model = hf_models.save(self.path(name), name)
                self.dump(self.path(name))
                disturbed = Disturbed(model)
                norms = norms_before_layers(model)

                def product(layer, dz):
                    part = disturbed.parts[layer]
                    return (part(torch.as_tensor(dz)) - part(torch.zeros(1, dz.shape[1], dtype=torch.float64))).numpy()
                self.check(name, 0.08, product, norms)

    def test_norms_behind_a_norm_after_attention(self):
        """The norm is linearised at each query: finite differences of it after W_O."""
        for name in ("gemma3", "olmo2"):
            with self.subTest(model=name):
                model = hf_models.save(self.path(name), name)
                self.dump(self.path(name))
                disturbed = Disturbed(model)
                norms = norms_before_layers(model)
                with kvbench.Trace(self.path("t.h5")) as trace:
                    rows = trace.prompts["0"].layers[0].query_positions

                def slope(layer, dz):
                    norm = model.base_model.layers[layer].post_attention_layernorm
                    part, z = disturbed.parts[layer], disturbed.entered[layer][torch.as_tensor(rows)]
                    step = 1e-4 * torch.as_tensor(dz)
                    with torch.no_grad(), Wide():
                        return ((norm(part(z + step)) - norm(part(z - step))) / 2e-4).numpy()
                self.check(name, 0.15, slope, norms, 0.05)

    def test_they_can_be_left_out(self):
        hf_models.save(self.path("m"), "llama")
        self.dump(self.path("m"), "--no-sketch")
        with kvbench.Trace(self.path("t.h5")) as trace:
            self.assertNotIn("residual_norm", trace.prompts["0"].layers[0].arrays)
            self.assertIsNone(trace.prompts["0"].layers[0].sketch_seed)
