# SPDX-License-Identifier: Apache-2.0
"""Probes and sketches that kvbench-dump-hf records, against models whose attention outputs are disturbed by hooks of this
file, in one pass without a cache and in double precision."""
import contextlib
import io

import environment

environment.use(["h5py", "numpy", "torch", "transformers"], "KVBENCH_TORCH_PYTHON", "torch", "scripts/fetch-model --hf")
from support import PackageTest, kvbench, main, run  # noqa: E402
import architectures  # noqa: E402
import hf_models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from kvbench import dump_hf  # noqa: E402
from kvbench._measure import attention_modules  # noqa: E402

N, CONTEXT = 44, 36
SCORED = slice(CONTEXT, N)
# A window, norms of queries and keys, norms after W_O, softcaps, partial rotation, attention beside the MLP, no rotation.
NAMES = ("llama", "qwen2", "gemma2", "gemma3", "olmo2", "phi", "cohere", "gpt2")


def token_ids(seed=0):
    return [(seed * 31 + i * i * 29 + i * 7 + 3) % 95 + 1 for i in range(N)]


def last_product(module):
    """The module that applies W_O: the last one with a matrix inside a module of attention."""
    return [part for part in module.modules() if getattr(getattr(part, "weight", None), "dim", lambda: 0)() == 2][-1]


class Wide(torch.overrides.TorchFunctionMode):
    """Norms and softmaxes that models compute in float32 are computed in float64."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def wide(x):
            return torch.float64 if x is torch.float32 else x
        function = torch.Tensor.double if function is torch.Tensor.float else function
        return function(*map(wide, args), **{name: wide(x) for name, x in (kwargs or {}).items()})


class Disturbed:
    """A model in double precision whose attention outputs [n, heads * dv] can be changed, by layer."""

    def __init__(self, model):
        self.model = model.double().requires_grad_(False)
        self.model.set_attn_implementation("eager")
        self.change, self.entered, self.left = {}, {}, {}
        self.parts = {module.layer_idx: last_product(module) for module in attention_modules(model)}
        for layer, part in self.parts.items():
            part.register_forward_pre_hook(lambda part, args, layer=layer: self._enter(layer, args))

    def _enter(self, layer, args):
        self.entered[layer] = args[0][0]
        return (args[0] + self.change[layer],) if layer in self.change else None

    def log_p(self, ids, change=None):
        """log p of the scored tokens [T, V], with `change` [T, heads * dv] by layer."""
        self.change = {}
        for layer, values in (change or {}).items():
            self.change[layer] = torch.zeros(len(ids), values.shape[1], dtype=torch.float64)
            self.change[layer][SCORED] = torch.as_tensor(values)
        with torch.no_grad(), Wide():
            return self.model(torch.tensor([ids]), use_cache=False).logits[0, SCORED].log_softmax(1).numpy()


def merged(values):
    """[heads, T, dv] as [T, heads * dv]"""
    return values.transpose(1, 0, 2).reshape(values.shape[1], -1)


def drawn(seed, prompt, count, p):
    """Labels and signs [R, T] by the law of docs/traces.md, from probabilities [T, V]."""
    uniform = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, prompt, 0])).random((count, len(p), 2))
    labels = [[int(np.argmax(np.cumsum(p[t]) > u)) for t, u in enumerate(row)] for row in uniform[..., 0]]
    return np.array(labels), np.where(uniform[..., 1] < 0.5, -1, 1)


class ProbesTest(PackageTest):
    def dump(self, model, *arguments, prompts=1, code=0):
        """Runs the program on prompts of token_ids(); returns what it says."""
        files = [self.path(f"ids{seed}") for seed in range(prompts)]
        for seed, name in enumerate(files):
            with open(name, "w") as file:
                file.write(" ".join(map(str, token_ids(seed))))
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            got = dump_hf.main(["--model", model, "--ids", *files, "--prompt-tokens", str(CONTEXT), "-o",
                                self.path("t.h5"), "--force", *map(str, arguments)])
        self.assertEqual(got, code, said.getvalue())
        return said.getvalue()


class Gradients(ProbesTest):
    def test_probes_are_derivatives_of_drawn_log_probabilities(self):
        """Of every layer, head and scored token: finite differences in a random direction equal the product with the
        probe, within what rounding to 127 steps allows."""
        random = np.random.default_rng(1)
        for name in NAMES:
            with self.subTest(model=name):
                model = hf_models.save(self.path(name), name)
                self.dump(self.path(name), "--probes", 3, "--seed", 5)
                disturbed = Disturbed(model)
                exact = disturbed.log_p(token_ids())
                labels, signs = drawn(5, 0, 3, np.exp(exact))
                rows = np.arange(N - CONTEXT)
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
                                    slope = (signs[r] * (ahead - behind)[rows, labels[r]]).sum() / (2 * step)
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


if __name__ == "__main__":
    main()
