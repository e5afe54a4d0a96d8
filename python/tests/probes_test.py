# SPDX-License-Identifier: Apache-2.0
"""Probes that kvbench-dump-hf records, against finite differences."""
import itertools

import environment

environment.use_torch()
from support import kvbench, replaced, run  # noqa: E402
import architectures  # noqa: E402
import hf_models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from disturbed import CONTEXT, N, NAMES, Disturbed, ProbesTest, drawn, merged, token_ids  # noqa: E402
from kvbench.models.probes import Prober, slopes  # noqa: E402


class Gradients(ProbesTest):
    def test_probes_are_derivatives_of_drawn_sums_of_logits(self):
        """Of every layer, head and scored token: finite differences in a random direction equal the product with the
        probe, within what rounding to 127 steps allows."""
        random = np.random.default_rng(1)
        for name in NAMES:
            with self.subTest(model=name):
                model = hf_models.save(self.path(name), name)
                self.dump(self.path(name), "--probes", 3, "--seed", 5)
                disturbed = Disturbed(model)
                exact = disturbed.log_p(token_ids())
                weights = drawn(5, 0, 3, np.exp(exact))
                with kvbench.Trace(self.path("t.h5")) as trace:
                    self.assertEqual(trace.prompts["0"].probes,
                                     kvbench.Probes(count=3, tokens=N - CONTEXT, seed=5, evaluated_in="f32"))
                    for layer, recorded in trace.prompts["0"].layers.items():
                        probes = recorded.array("probes").astype(np.float64)
                        for head in range(4):
                            for token in (0, 3, N - CONTEXT - 1):
                                direction = np.zeros((4, N - CONTEXT, 16))
                                direction[head, token] = random.normal(size=16)
                                step = 1e-5
                                ahead, behind = (disturbed.log_p(token_ids(), {layer: merged(sign * step * direction)})
                                                 for sign in (1, -1))
                                for r in range(3):
                                    slope = (weights[r] * (ahead - behind)).sum() / (2 * step)
                                    row = probes[head, r, token]
                                    allowed = np.abs(row).max() / 254 * np.abs(direction[head, token]).sum()
                                    self.assertLessEqual(abs(row @ direction[head, token] - slope),
                                                         allowed + 1e-4 * np.abs(row).max() + 1e-7)

    def test_predicted_kl_is_what_small_errors_cause(self):
        """KL / eps^2 of an error eps dz in all layers approaches 1 / (2 R T) sum_r (sum_l <G_rl, dz_l>)^2."""
        count, prompts, eps = 512, 4, 1e-3
        for name in ("llama", "gemma3"):
            with self.subTest(model=name):
                model = hf_models.save(self.path(name), name)
                self.dump(self.path(name), "--probes", count, prompts=prompts)
                disturbed, random = Disturbed(model), np.random.default_rng(2)
                measured = predicted = 0.0
                with kvbench.Trace(self.path("t.h5")) as trace:
                    for seed in range(prompts):
                        layers = trace.prompts[str(seed)].layers
                        change = {layer: random.normal(size=(4, N - CONTEXT, 16)) for layer in layers}
                        sums = sum(np.einsum("hrtc,htc->r", layers[layer].array("probes"), dz)
                                   for layer, dz in change.items())
                        predicted += (sums**2).mean() / (2 * (N - CONTEXT))
                        exact = disturbed.log_p(token_ids(seed))
                        moved = disturbed.log_p(token_ids(seed), {layer: merged(eps * dz)
                                                                  for layer, dz in change.items()})
                        measured += (np.exp(exact) * (exact - moved)).sum(1).mean() / eps**2
                print(f"{name}: predicted / measured = {predicted / measured:.3f}")
                self.assertAlmostEqual(predicted / measured, 1, delta=0.1)  # sqrt(2 / 2048) = 3 %

    def test_what_the_model_hardly_expects_makes_no_rare_and_large_draw(self):
        """p = (.998, .001, .001): a change of the second logit alone has 1/2 p (1 - p) of second order. One label in
        thousand would see it; each draw of signs does."""
        p = torch.tensor([[0.998, 0.001, 0.001]])
        squares = [float(slopes(p.log(), np.array([signs], np.int8))[0, 1])**2
                   for signs in itertools.product((-1, 1), repeat=3)]
        self.assertAlmostEqual(np.mean(squares), 0.001 * 0.999, delta=1e-9)
        self.assertLess(max(squares) / min(squares), 1.2)

    def test_half_types_have_the_probes_of_float32(self):
        """Where weights are the same, gradients of a model in bf16 differ by the rounding of its context."""
        hf_models.save(self.path("m"), "llama").to(torch.bfloat16).float().save_pretrained(self.path("m"))
        found = []
        for weights in ("f32", "bf16"):
            self.dump(self.path("m"), "--probes", 4, "--weights", weights)
            with kvbench.Trace(self.path("t.h5")) as trace:
                info = trace.prompts["0"].probes
                found.append(np.stack([layer.array("probes") for layer in trace.prompts["0"].layers.values()]))
        self.assertEqual(info.evaluated_in, "bf16 weights, scored tokens in f32")
        self.assertLess(np.linalg.norm(found[0] - found[1]) / np.linalg.norm(found[0]), 0.1)


class Programs(ProbesTest):
    def test_what_cannot_have_probes(self):
        hf_models.save(self.path("m"), "llama")
        for arguments, words in ((("--queries", "every:2"), "needs the queries of all 8 tokens after the context"),
                                 (("--prompt-tokens", N), "needs tokens after the context"),
                                 (("--probes", 513), "at most 512"), (("--probes", 0), "from 1 to"),
                                 (("--seed", -1), "from 0 to 2147483647"), (("--threads", 5000), "from 1 to 4096"),
                                 (("--decode", 4, "--queries", "last:2", "--prompt-tokens", N), "of all 4 tokens")):
            self.assertIn(words, self.dump(self.path("m"), *replaced(["--probes", 4], arguments), code=2))

    def test_a_model_whose_cache_does_not_continue_its_pass(self):
        """Attention outputs of the continued run differ from those of one pass."""
        hf_models.save(self.path("m"), "llama")
        before = Prober._cache

        def longer(self, context):
            return before(self, [context[0], *context])
        Prober._cache = longer
        try:
            self.assertIn("where tokens continue from a cache, attention outputs differ",
                          self.dump(self.path("m"), "--probes", 2, code=1))
        finally:
            Prober._cache = before

    def test_hybrid_models_and_shared_caches(self):
        """Layers without attention have no probes; each model is recorded, or refused with a reason."""
        for name in ("lfm2", "jamba", "qwen3_next", "gemma4_text"):
            with self.subTest(model=name):
                if name not in architectures.names():
                    continue
                architectures.build(name).save_pretrained(self.path(name))
                code, said = self.dump_hf("--model", self.path(name), "--ids", self.ids(token_ids()), "--prompt-tokens",
                                          CONTEXT, "--probes", 2, "--force")
                if code:
                    self.assertIn("--probes", said)
                    continue
                with kvbench.Trace(self.path("t.h5")) as trace:
                    for layer in trace.prompts["0"].layers.values():
                        self.assertEqual(layer.array("probes").shape, (4, 2, 8, 16))

    def test_the_same_seed_gives_the_same_probes_and_more_of_them_continue(self):
        hf_models.save(self.path("m"), "llama")
        found = []
        for count in (2, 4):
            said = self.dump(self.path("m"), "--probes", count, "--layers", 1)
            self.assertIn(f"{count} probes of 8 scored tokens", said)
            with kvbench.Trace(self.path("t.h5")) as trace:
                self.assertEqual(list(trace.prompts["0"].layers), [1])
                found.append(trace.prompts["0"].layers[1].array("probes"))
                np.testing.assert_array_equal(trace.prompts["0"].layers[1].array("probes", 3), found[-1][3])
        np.testing.assert_array_equal(found[0], found[1][:, :2])

    def test_info_says_what_they_can_tell_apart(self):
        hf_models.save(self.path("m"), "llama")
        self.dump(self.path("m"), "--probes", 8, prompts=2)
        said = " ".join(run("info", self.path("t.h5")).split())
        self.assertIn("8 of 8 scored tokens, evaluated in f32, seed 0", said)
        self.assertIn("relative standard deviation of about 50 %", said)
        self.assertIn("2 of 2 prompts; together they tell predicted KLs apart to about 35 %", said)
