# SPDX-License-Identifier: Apache-2.0
"""Tokens that a model reads from the cache of a context, and what the gradients through them need."""

import contextlib
import inspect

import numpy as np
import torch

from .._error import Error, first_line
from .attention import Call
from .measure import body_of

HALVES = (torch.float16, torch.bfloat16)
# Of what a model computes here, compared with what it computes by itself. float32: 1e-6 measured. Half types: the
# model's own attention rounds logits and weights in each layer, that here does not.
STOCK_TOLERANCE = {torch.float32: 1e-3, torch.float16: 0.05, torch.bfloat16: 0.2}


@contextlib.contextmanager
def in_single_precision(model):
    """The model with weights of half types in float32, so that gradients are computed and summed in float32."""
    kept = [(weight, weight.data) for weight in model.parameters() if weight.dtype in HALVES]

    def end():
        for weight, data in kept:
            weight.data = data
    try:  # twice, because Ctrl-C may come within the first end
        try:
            for weight, data in kept:
                weight.data = data.float()
            yield
        finally:
            end()
    finally:
        end()


def cache_name(model):
    """What the code of a model calls its cache; the older name is that of transformers before 5.24."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


class Continued:
    """`model`: an object with a model of transformers and its name; `interface`: attached to it; `remedy`: the end of
    what an Error says, such as "leave out --probes"; `stage`: shows what is being done."""

    def __init__(self, model, interface, remedy, stage):
        self._model, self._interface, self._remedy, self._stage = model, interface, remedy, stage

    def _cache(self, context):
        """The cache of these tokens, at least one."""
        self._interface.on_call = Call.run
        body = body_of(self._model.model)
        with torch.no_grad():
            cache = self._tried(lambda: getattr(body(input_ids=self._given(context), use_cache=True), cache_name(body),
                                                None))
        if cache is None:
            raise Error(f"{self._model.name}: its code returns no cache, from which further tokens could continue; "
                        f"{self._remedy}.")
        return cache

    def _read(self, module, tokens, cache, on_call):
        """What the model, or its part without the head, returns for tokens that continue a cache, which then holds
        them."""
        self._interface.on_call = on_call
        return self._tried(lambda: module(input_ids=self._given(tokens), **{cache_name(module): cache}))

    def _given(self, tokens):
        return torch.tensor([tokens], device=self._model.model.device)

    def _tried(self, run, where="where tokens continue from a cache"):
        try:
            return run()
        except (Error, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as failure:
            raise Error(f"{self._model.name}: its code fails {where} ({first_line(failure)}); "
                        f"{self._remedy}.") from failure


class Kept:
    """What is computed from tokens that continue a cache, and their attention outputs, which must be those of one pass
    over all tokens. `first`: position of the first one; `option`: what asked for it, such as "--probes"."""

    def __init__(self, first, option):
        self.first, self.option = first, option
        self.outputs = {}  # by layer: [q_heads, T, dv]

    def ran(self, layer, call, output):
        self.outputs[layer] = output

    def difference(self, layer, positions, output):
        """Relative difference between the outputs [q_heads, m, dv] of one pass at increasing positions, and those
        here, over the tokens of both. Layers that are not needed here are not different."""
        if layer not in self.outputs:
            return 0.0
        mine = self.outputs[layer].astype(np.float64)
        tokens = positions - self.first
        both = (tokens >= 0) & (tokens < mine.shape[1])
        mine = mine[:, tokens[both]]
        return float(np.linalg.norm(output[:, both] - mine) / max(np.linalg.norm(mine), np.finfo(np.float32).tiny))
