# SPDX-License-Identifier: Apache-2.0
"""kvbench.compressed(): methods inside models of Hugging Face transformers, in place of their attention."""

import contextlib
import warnings
from dataclasses import dataclass, replace

import numpy as np
import torch

from . import _methods
from ._commands import _core
from ._error import Error
from .dump_hf_attention import Call, Interface
from .dump_hf_model import refuse_unsupported, rope_of

NAME = "kvbench_compressed"
OBSERVED = 128  # last queries of a context that methods see, as in dumps and in kveval


@dataclass
class LayerFacts:
    number: int
    scale: float
    rope_theta: float


@dataclass
class Document:
    """What kvbench._core.Decoder must know about a context and its layers."""
    model: str
    num_layers: int
    num_query_heads: int
    num_kv_heads: int
    head_dim: int
    value_dim: int
    rope_type: str
    context: int  # tokens that are compressed
    known: int  # tokens after them that are known when they are compressed
    observed: int
    layers: list


def _array(tensor):
    """float32 [heads, rows, dim], C-contiguous."""
    return np.ascontiguousarray(tensor.detach().float().cpu().numpy())


class _Layer:
    """One layer of one sequence: its context, and the decoder that answers what comes after."""

    def __init__(self, compression, number):
        self._compression, self._number = compression, number
        self.tokens = 0  # that were answered
        self.decoder = self._sums = self._observed = None

    def prefill(self, call):
        """The exact output of the context, which is remembered as far as methods may see it."""
        heads, n, _ = call.query.shape
        self._sums = torch.zeros(heads, n, dtype=torch.float64, device=call.query.device)

        def add(first, output, weights):
            self._sums[:, :weights.shape[2]] += weights.double().sum(1)
        output = call.run(add)
        self._observed = call.query[:, max(0, n - OBSERVED):].detach().clone()
        self.tokens = n
        return output

    def decode(self, call):
        """The output of the queries of a call after the context, whose tokens are the last ones."""
        count = call.query.shape[1]
        if self.decoder is None:
            rows = self._begin(call, count)
        else:
            rows = self.decoder.answer(self._index, count, *(_array(x[:, -count:]) for x in
                                                             (call.key, call.value, call.query)))
        self.tokens += count
        return torch.from_numpy(rows).to(call.query).transpose(0, 1)

    def _begin(self, call, count):
        self.decoder, self._index = self._compression.decoder(self._number, call, self.tokens, count,
                                                              self._observed.shape[1])
        queries = torch.cat([self._observed, call.query], 1)
        sums = np.zeros((len(queries), self.tokens + count))
        sums[:, :self.tokens] = self._sums.cpu().numpy()
        self._observed = self._sums = None
        return self.decoder.begin(self._index, _array(call.key), _array(call.value), _array(queries), sums)


class Compression:
    """What compressed() does to a model, and what its caches hold."""

    def __init__(self, model, method, budget, seed, context, threads):
        refuse_unsupported(type(model).__name__, model.config)
        self._config = model.config.get_text_config()
        self._name = type(model).__name__
        self.method = method if isinstance(method, str) else _methods.define(method)
        self.budget, self._seed, self.context, self._threads = str(budget), seed, context, threads
        self.decoded = 0  # tokens that compressed caches have answered, in all sequences
        modules = [module for module in model.modules() if isinstance(getattr(module, "layer_idx", None), int)]
        windowed = {module.layer_idx for module in modules if getattr(module, "sliding_window", None)}
        self._numbers = sorted({module.layer_idx for module in modules} - windowed)  # of layers in which methods run
        self._layers = {}  # of the present sequence, by number
        _core()

    @property
    def bytes(self):
        """What a deployment of the caches holds for the present sequence, over the layers that are compressed, in
        bytes: kv, meta, fast, slow, read (per query), full (of the exact cache of the same tokens)."""
        sums = dict.fromkeys(("kv", "meta", "fast", "slow", "read", "full"), 0.0)
        for layer in self._layers.values():
            if layer.decoder is not None:
                for name, value in layer.decoder.bytes().items():
                    sums[name] += value
        return sums

    def decoder(self, number, call, context, known, observed):
        """A decoder for the layer of a call, and the index of this layer in it."""
        theta, kind = rope_of(self._config, number)
        document = Document(
            model=self._name, num_layers=self._config.num_hidden_layers, num_query_heads=len(call.query),
            num_kv_heads=len(call.key), head_dim=call.key.shape[2], value_dim=call.value.shape[2], rope_type=kind,
            context=context, known=known, observed=observed,
            layers=[LayerFacts(other, call.scale, theta) for other in self._numbers])
        made = _core().Decoder(document, self.method, self.budget, self._seed, self._threads)
        return made, self._numbers.index(number)

    def attend(self, call):
        """The output of a call of a layer's attention, [t, q_heads, dv]."""
        number = call.module.layer_idx
        t, n = call.query.shape[1], call.key.shape[1]
        if number not in self._numbers or call.softcap:
            return call.run()
        if t == n:
            return self._first(number, call, t)
        layer = self._layers.get(number)
        if layer is None or layer.tokens != n - t:
            held = 0 if layer is None else layer.tokens
            raise Error(f"layer {number}: the cache holds {n - t} tokens before these {t}, but {held} were seen inside "
                        "compressed(); begin each sequence inside it, and change or reorder no cache (beam search, "
                        "assisted decoding).")
        return self._decode(layer, call)

    def _first(self, number, call, t):
        """The first call of a sequence: its context, and what comes after it in the same call."""
        layer = self._layers[number] = _Layer(self, number)
        if not call.mask.rows(t - 1, t, t).all():
            raise Error(f"layer {number}: the last token does not see all tokens before it; pad no sequence.")
        context = t if self.context is None else min(self.context, t) if self.context >= 0 else t + self.context
        if context < 1:
            raise Error(f"a first call of {t} tokens leaves no context with context={self.context}.")
        part = replace(call, query=call.query[:, :context], key=call.key[:, :context], value=call.value[:, :context])
        output = layer.prefill(part)
        if context == t:
            return output
        return torch.cat([output, self._decode(layer, replace(call, query=call.query[:, context:]))])

    def _decode(self, layer, call):
        if layer is self._layers[min(self._layers)]:
            self.decoded += call.query.shape[1]
        return layer.decode(call)


@contextlib.contextmanager
def compressed(model, method="snapkv", budget="25%mem", *, seed=0, context=None, threads=0):
    """Runs a model of transformers with a compressed KV cache, inside a with statement:

        with kvbench.compressed(model, method="snapkv", budget="25%mem") as run:
            model.generate(**tokenizer(text, return_tensors="pt"), max_new_tokens=100)
        print(run.bytes)

    The first call of the model for a sequence computes its context exactly, as deployments do, and compresses it; all
    later tokens are decoded from the compressed cache, layer by layer. context: how many tokens of the first call are
    the context, where the others are to be scored in the same call; None: all, -1: all but the last. method: a name
    with or without settings, or a method in Python. budget: as for kvbench replay. threads: 0: all processors. Layers
    with a sliding window or capped logits stay as they are. One sequence at a time, in float32 on the host; weights and
    other activations stay where the model has them."""
    run = Compression(model, method, budget, seed, context, threads)
    interface = Interface(NAME, "compressed")
    interface.on_call = run.attend
    before = model.config._attn_implementation
    model.set_attn_implementation(NAME)
    try:
        yield run
    finally:
        model.set_attn_implementation(before)
        interface.on_call = Call.run  # transformers keeps the interface, which shall not keep the caches
    if run.decoded == 0:
        warnings.warn("inside kvbench.compressed() the model decoded no token: each of its calls was a context of its "
                      "own, with exact outputs. To score tokens in the call of their context, give context=.",
                      stacklevel=3)
