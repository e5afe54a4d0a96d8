# SPDX-License-Identifier: Apache-2.0
"""Probes of a prompt: gradients of the log probabilities of drawn next tokens with respect to the attention outputs of
the scored tokens (docs/damage.md). The context runs once; its keys and values are constants. The scored tokens, those
after it, run once more from the cache of the context, and each probe is one backward pass through them."""

import contextlib
import inspect
import math

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from ._attention import Call
from ._error import Error, first_line
from ._hdf5 import rounded
from ._measure import body_of, numbers
from ._schema import Probes

HALVES = (torch.float16, torch.bfloat16)


@contextlib.contextmanager
def in_single_precision(model):
    """The model with weights of half types in float32, so that gradients are computed and summed in float32."""
    kept = [(weight, weight.data) for weight in model.parameters() if weight.dtype in HALVES]
    try:
        for weight, data in kept:
            weight.data = data.float()
        yield
    finally:
        for weight, data in kept:
            weight.data = data


def draws(seed, prompt, count, tokens):
    """Uniform numbers [count, tokens] that choose labels, and signs of -1 and 1 [count, tokens]. The first probes of a
    larger count are those of a smaller one."""
    philox = np.random.Philox(key=seed, counter=[0, 0, prompt, 0])
    uniform = np.random.Generator(philox).random((count, tokens, 2))
    return uniform[..., 0], np.where(uniform[..., 1] < 0.5, -1.0, 1.0)


def labels_of(logits, uniform):
    """Labels [R, T] drawn from the distributions of logits [T, V]: the inverse of the cumulative distribution at
    uniform numbers [R, T]."""
    labels = np.empty(uniform.shape, np.int64)
    for t, row in enumerate(logits.detach()):
        summed = row.double().softmax(0).cumsum(0).cpu().numpy()
        labels[:, t] = np.searchsorted(summed, uniform[:, t] * summed[-1], side="right")
    return np.minimum(labels, logits.shape[1] - 1)


class Recorded:
    """The probes of a prompt: by layer, as a trace stores them."""

    def __init__(self, info):
        self.info = info
        self.outputs = {}  # attention output of the scored tokens [q_heads, T, dv]
        self._steps, self._scales = {}, {}

    def add(self, layer, probe, gradient):
        """gradient: [q_heads, T, dv]"""
        heads, tokens, width = gradient.shape
        if probe == 0:
            self._steps[layer] = np.empty((heads, self.info.count, tokens, width), np.int8)
            self._scales[layer] = np.empty((heads, self.info.count, tokens), np.float32)
        self._steps[layer][:, probe], self._scales[layer][:, probe] = rounded(gradient)

    def of(self, layer):
        """float32 [q_heads, R, T, dv]"""
        return self._steps[layer] * self._scales[layer][..., None]

    def difference(self, layer, output):
        """Relative difference between the outputs [q_heads, T, dv] of the recorded pass and those that the probes are
        gradients at."""
        mine = self.outputs[layer].astype(np.float64)
        return float(np.linalg.norm(output - mine) / max(np.linalg.norm(mine), np.finfo(np.float32).tiny))


class Prober:
    """`model`: a Model; `layers`: numbers of the layers whose probes are kept; `stage`: shows what is being done."""

    def __init__(self, model, interface, layers, count, seed, stage):
        self._model, self._interface, self._layers = model, interface, layers
        self.count, self._seed, self._stage = count, seed, stage

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
        return (f"{self.count} probes of {max(scored)} scored tokens: {size(stored)} of the trace, {size(used)} of "
                f"memory, about {seconds:.0f} s.")

    def run(self, plan, prompt):
        """The probes of the tokens after the context of a plan, as Recorded. `prompt`: its number, which draws differ
        by."""
        context, scored = plan.tokens[:plan.prompt_tokens], plan.tokens[plan.prompt_tokens:]
        check_plan(plan)
        info = Probes(count=self.count, tokens=len(scored), seed=self._seed, evaluated_in=self._evaluated_in())
        recorded = Recorded(info)
        self._stage(f"{plan.name}: context of the probes")
        self._interface.on_call = Call.run
        with torch.no_grad():
            cache = self._cache(context)
        with in_single_precision(self._model.model), torch.enable_grad():
            logits, outputs = self._logits(scored, cache)
            recorded.outputs = {layer: numbers(output.transpose(0, 1)) for layer, output in outputs.items()}
            uniform, signs = draws(self._seed, prompt, self.count, len(scored))
            labels = labels_of(logits, uniform)
            for probe in range(self.count):
                self._stage(f"{plan.name}: probe {probe + 1} of {self.count}")
                self._interface.pulse()
                for layer, gradient in self._gradients(logits, outputs, labels[probe], signs[probe]):
                    recorded.add(layer, probe, gradient)
        return recorded

    def _evaluated_in(self):
        weights = self._model.weights
        return weights if weights == "f32" else f"{weights} weights, scored tokens in f32"

    def _cache(self, context):
        given = torch.tensor([context], device=self._model.model.device)
        body = body_of(self._model.model)
        cache = self._continued(lambda: getattr(body(input_ids=given, use_cache=True), cache_name(body), None))
        if cache is None:
            raise Error(f"{self._model.name}: its code returns no cache, from which the scored tokens could continue; "
                        "leave out --probes.")
        return cache

    def _continued(self, run, where="where tokens continue from a cache"):
        try:
            return run()
        except (Error, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as failure:
            raise Error(f"{self._model.name}: its code fails {where} ({first_line(failure)}); leave out "
                        "--probes.") from failure

    def _logits(self, scored, cache):
        """Logits [T, V] of the scored tokens, and by layer the attention outputs [T, q_heads, dv] on which they
        depend."""
        outputs = {}

        def answer(call):
            output = checkpoint(call.run, use_reentrant=False)  # keeps no attention weights
            if not output.requires_grad:
                output.requires_grad_()
            if call.module.layer_idx in self._layers:
                outputs[call.module.layer_idx] = output
            return output
        self._interface.on_call = answer
        given = torch.tensor([scored], device=self._model.model.device)
        model = self._model.model
        logits = self._continued(lambda: model(input_ids=given, **{cache_name(model): cache}).logits[0])
        missing = [layer for layer in self._layers if layer not in outputs]
        if missing:
            raise Error(f"layer {missing[0]} of this model does not attend where tokens continue from a cache; leave "
                        "out --probes.")
        return logits, outputs

    def _gradients(self, logits, outputs, labels, signs):
        """The gradient [q_heads, T, dv] of sum_t s_t log p_t(y_t) for each layer. That of log p_t(y_t) with respect to
        the logits of token t is 1 at y_t, minus p_t."""
        rows = torch.arange(len(labels), device=logits.device)
        slope = -logits.detach().float().softmax(1)
        slope[rows, torch.as_tensor(labels, device=logits.device)] += 1
        slope *= torch.as_tensor(signs, device=logits.device, dtype=slope.dtype)[:, None]
        found = self._continued(lambda: torch.autograd.grad(logits, list(outputs.values()), slope.to(logits.dtype),
                                                            retain_graph=True, allow_unused=True),
                                "where gradients are computed")
        for layer, gradient in zip(outputs, found):
            if gradient is None or not bool(torch.isfinite(gradient).all()):
                raise Error(f"layer {layer}: the gradients of its attention output are "
                            f"{'missing' if gradient is None else 'not finite'}; leave out --probes.")
            yield layer, numbers(gradient.transpose(0, 1))


def cache_name(model):
    """What the code of a model calls its cache; the older name is that of transformers before 5.24."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def check_plan(plan):
    """Raises Error unless there are tokens after the context and the queries of all of them are recorded."""
    scored = np.arange(plan.prompt_tokens, len(plan.tokens))
    if not len(scored):
        raise Error(f"prompt '{plan.name}': --probes needs tokens after the context, whose predictions are scored; "
                    "give --prompt-tokens or --decode.")
    if not np.isin(scored, plan.positions).all():
        raise Error(f"prompt '{plan.name}': --probes needs the queries of all {len(scored)} tokens after the context; "
                    f"--queries {plan.spec} leaves some out.")


def size(count):
    """A number of bytes as text."""
    unit = min(3, int(math.log(max(1, count), 1000)))
    return f"{count / 1000**unit:.3g} {('bytes', 'kB', 'MB', 'GB')[unit]}"
