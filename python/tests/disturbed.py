# SPDX-License-Identifier: Apache-2.0
"""Models whose attention outputs are disturbed by hooks, in one pass without a cache and in double precision: what
probes and sketches of kvbench-dump-hf are compared with."""
import hf_models
import numpy as np
import torch
from dumps import DumpTest
from kvbench.models.measure import attention_modules
from support import replaced

N, CONTEXT = 44, 36
SCORED = slice(CONTEXT, N)
# A window, norms of queries and keys, norms after W_O, softcaps, partial rotation, attention beside the MLP, none.
NAMES = ("llama", "qwen2", "gemma2", "gemma3", "olmo2", "phi", "cohere", "gpt2")


def token_ids(seed=0):
    return hf_models.token_ids(N, seed)


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


def drawn(seed, stream, count, p):
    """What probes [R, T, V] weight logits with by the law of docs/traces.md, from probabilities [T, V] of prompt 0."""
    random = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, stream]))
    found = []
    for _ in range(count):
        bits = np.unpackbits(np.frombuffer(random.bytes((p.size + 7) // 8), np.uint8))[:p.size].reshape(p.shape)
        signed = np.where(bits, -1, 1) * np.sqrt(p)
        found.append(signed - p * signed.sum(1, keepdims=True))
    return np.array(found)


class ProbesTest(DumpTest):
    def dump(self, model, *arguments, prompts=1, code=0):
        """Runs the program on prompts of token_ids(); returns what it says."""
        files = [self.ids(token_ids(seed), f"ids{seed}") for seed in range(prompts)]
        own = ["--model", model, "--ids", *files, "--prompt-tokens", CONTEXT, "--force"]
        return self.dumped(*replaced(own, arguments), code=code)
