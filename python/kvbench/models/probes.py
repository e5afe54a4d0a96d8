# SPDX-License-Identifier: Apache-2.0
"""Probes of a prompt: gradients of random sums of logits with respect to the attention outputs of the scored tokens
(docs/damage.md). The context runs once; its keys and values are constants. The scored tokens, those after it, run once
more from the cache of the context, and each probe is one backward pass through them."""


import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from .._error import Error
from ..files.access import size_text
from ..files.hdf5 import rounded
from ..files.schema import Probes
from .continued import HALVES, Continued, Kept, in_single_precision
from .measure import numbers


def draws(seed, prompt, stream, count, tokens, words):
    """Signs of -1 and 1, int8 [tokens, words], of one probe after another. The first probes of a larger count are those
    of a smaller one. `stream`: draws of another one are independent of these."""
    random = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, prompt, stream]))
    for _ in range(count):
        bits = np.unpackbits(np.frombuffer(random.bytes(-(-tokens * words // 8)), np.uint8), count=tokens * words)
        yield 1 - 2 * bits.astype(np.int8).reshape(tokens, words)


def slopes(logits, signs):
    """The weights [T, V] of the logits in the sum whose gradient is a probe: sqrt(p) u - p times the sum of sqrt(p) u
    over all words, with signs u. Their covariance is that of the gradient of log p(y) over labels y from p, and no
    word makes a rare, large draw."""
    p = logits.detach().float().softmax(1)
    drawn = p.sqrt() * torch.as_tensor(signs, device=logits.device)
    return (drawn - p * drawn.sum(1, keepdim=True)).to(logits.dtype)


class Recorded(Kept):
    """The probes of a prompt: by layer, as a trace stores them."""

    def __init__(self, info, first):
        super().__init__(first, "--probes")
        self.info = info
        self._steps, self._scales = {}, {}

    def add(self, layer, probe, gradient):
        heads, tokens, width = gradient.shape
        if probe == 0:
            self._steps[layer] = np.empty((heads, self.info.count, tokens, width), np.int8)
            self._scales[layer] = np.empty((heads, self.info.count, tokens), np.float32)
        self._steps[layer][:, probe], self._scales[layer][:, probe] = rounded(gradient)

    def of(self, layer):
        """float32 [q_heads, R, T, dv]"""
        return self._steps[layer] * self._scales[layer][..., None]


def differentiable(layers, calls, outputs):
    """An on_call whose outputs [t, q_heads, dv] require gradients; those of these layers, and their calls, are kept."""
    def answer(call):
        output = checkpoint(call.run, use_reentrant=False)  # keeps no attention weights
        if not output.requires_grad:
            output.requires_grad_()
        if call.module.layer_idx in layers:
            calls[call.module.layer_idx], outputs[call.module.layer_idx] = call, output
        return output
    return answer


class Prober(Continued):
    """`model`: a Model; `layers`: numbers of the layers whose gradients are wanted; the others as Continued."""

    def __init__(self, model, interface, layers, count, seed, stage, remedy="leave out --probes"):
        super().__init__(model, interface, remedy, stage)
        self._layers, self.count, self._seed = layers, count, seed

    def cost(self, facts, plans, pace):
        """What is said before probes are computed: of bytes and seconds. `pace`: seconds per token of a forward pass;
        a backward pass takes that of two, and computes attention once more."""
        scored = [len(plan.tokens) - plan.prompt_tokens for plan in plans]
        heads, kv_heads, d, dv = facts[self._layers[0]].shape
        stored = self.count * sum(scored) * heads * (dv + 4) * len(self._layers)
        longest = max(len(plan.tokens) for plan in plans)
        used = stored + 16 * max(scored) * self._model.vocabulary + 8 * longest * kv_heads * (d + dv) * len(facts)
        used += sum(4 * weight.numel() for weight in self._model.model.parameters() if weight.dtype in HALVES)
        seconds = pace * sum(len(plan.tokens) + 3 * self.count * part for plan, part in zip(plans, scored))
        return (f"{self.count} probes of {max(scored)} scored tokens: {size_text(stored)} of the trace, "
                f"{size_text(used)} of memory, about {seconds:.0f} s.")

    def run(self, plan, prompt):
        """The probes of the tokens after the context of a plan, as Recorded. `prompt`: its number, which draws differ
        by."""
        check_plan(plan)
        context, scored = plan.tokens[:plan.prompt_tokens], plan.tokens[plan.prompt_tokens:]
        recorded = Recorded(Probes(count=self.count, tokens=len(scored), seed=self._seed,
                                   evaluated_in=self._evaluated_in()), plan.prompt_tokens)
        self.through(plan.name, context, scored, prompt, 0, recorded)
        return recorded

    def through(self, name, context, tokens, prompt, stream, kept):
        """Runs tokens from the cache of their context, and one backward pass through them for each probe; `prompt` and
        `stream` choose its draws. Calls kept.ran(layer, call, output [q_heads, T, dv]) for each layer, then
        kept.add(layer, probe, gradient [q_heads, T, dv])."""
        self._stage(f"{name}: context of the probes")
        cache = self._cache(context)
        with in_single_precision(self._model.model), torch.enable_grad():
            logits, calls, outputs = self._logits(tokens, cache)
            for layer, output in outputs.items():
                kept.ran(layer, calls[layer], numbers(output.transpose(0, 1)))
            for probe, signs in enumerate(draws(self._seed, prompt, stream, self.count, *logits.shape)):
                self._stage(f"{name}: probe {probe + 1} of {self.count}")
                self._interface.pulse()
                for layer, gradient in self._gradients(logits, outputs, slopes(logits, signs)):
                    kept.add(layer, probe, gradient)

    def _evaluated_in(self):
        weights = self._model.weights
        return weights if weights == "f32" else f"{weights} weights, scored tokens in f32"

    def _logits(self, tokens, cache):
        """Logits [T, V] of the tokens, and by layer the calls of attention and their outputs [T, q_heads, dv], on which
        the logits depend."""
        calls, outputs = {}, {}
        logits = self._read(self._model.model, tokens, cache, differentiable(self._layers, calls, outputs)).logits[0]
        missing = [layer for layer in self._layers if layer not in outputs]
        if missing:
            raise Error(f"layer {missing[0]} of this model does not attend where tokens continue from a cache; "
                        f"{self._remedy}.")
        return logits, calls, outputs

    def _gradients(self, logits, outputs, weights):
        """The gradient [q_heads, T, dv] of the sum of weights times logits [T, V] for each layer."""
        found = self._tried(lambda: torch.autograd.grad(logits, list(outputs.values()), weights, retain_graph=True,
                                                        allow_unused=True),
                            "where gradients are computed")
        for layer, gradient in zip(outputs, found):
            if gradient is None or not bool(torch.isfinite(gradient).all()):
                raise Error(f"layer {layer}: the gradients of its attention output are "
                            f"{'missing' if gradient is None else 'not finite'}; {self._remedy}.")
            yield layer, numbers(gradient.transpose(0, 1))


def check_plan(plan):
    """Raises Error unless there are tokens after the context and the queries of all of them are recorded."""
    scored = np.arange(plan.prompt_tokens, len(plan.tokens))
    if not len(scored):
        raise Error(f"prompt '{plan.name}': --probes needs tokens after the context, whose predictions are scored; "
                    "give --prompt-tokens or --decode.")
    if not np.isin(scored, plan.positions).all():
        raise Error(f"prompt '{plan.name}': --probes needs the queries of all {len(scored)} tokens after the context; "
                    f"--queries {plan.spec} leaves some out.")
