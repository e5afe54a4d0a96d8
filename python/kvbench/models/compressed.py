# SPDX-License-Identifier: Apache-2.0
"""kvbench.compressed(): methods inside models of Hugging Face transformers, in place of their attention."""

import collections
import contextlib
import threading
import warnings
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from .._error import Error, NoCache, check_text, first_line, require
from .._kinds import checked, is_list, of_kind
from ..program.commands import _core, only_choice
from .attention import Interface
from .examination import check_model, examination
from .measure import body_of, gradients, hooked
from .scored import Scored, is_scored
from .sequences import Document, Layer, LayerFacts, array

NO_CACHE = ("infeasible", "skipped")  # statuses of a NoCache
PROTOCOLS = ("decode", "stream")


def chosen(method):
    """A method as a Choice."""
    if isinstance(method, _core().Choice):
        return method
    with only_choice(method, "compressed") as choice:
        return choice


def cache_of(args, kwargs):
    """The KV cache among the arguments of an attention module; None: there is none."""
    return next((x for x in (*args, *kwargs.values()) if hasattr(x, "get_seq_length")), None)


def has_fixed_length(cache, layer):
    layers = getattr(cache, "layers", [])
    return layer < len(layers) and getattr(layers[layer], "is_compileable", False)


class Compression:
    """What compressed() does to a model, and what its caches hold."""

    def __init__(self, model, method, budget, seed, context, decode, threads, whole, rope_layout, inject_scale=1.0,
                 layers=None, protocol="decode"):
        for name, number, least, most in (("seed", seed, 0, 2**32 - 1), ("threads", threads, 0, 4096),
                                          ("decode", 1 if decode is None else decode, 1, 2**31 - 1)):
            require(least <= number <= most, "compressed()", f"{name} is {number}; it is from {least} to {most}.")
        require(rope_layout in (None, "half", "interleaved"), "compressed()",
                f"rope_layout is {rope_layout!r}; it is 'half' or 'interleaved'.")
        require(protocol in PROTOCOLS, "compressed()", f"protocol is {protocol!r}; it is 'decode' or 'stream'.")
        _core()
        self._found = examination(model)
        least = max(_core().least_scale, torch.finfo(model.dtype).eps)
        require(inject_scale == 0 or least <= inject_scale <= 1, "compressed()",
                f"inject_scale is {inject_scale}; it is from {least:.2g} to 1, or 0: smaller shares of an error are "
                f"lost in the rounding of {str(model.dtype).removeprefix('torch.')}.")
        self._config = model.config.get_text_config()
        self._name = type(model).__name__
        self.budget, self._seed, self.context, self._threads = str(budget), seed, context, threads
        check_text(self.budget, "compressed(): argument 'budget'")
        self.decode, self.inject_scale = decode, inject_scale
        self._protocol, self.streams = protocol, protocol == "stream"
        self.decoded = 0  # tokens that compressed caches have answered, in all sequences
        self.whole = collections.Counter()  # contexts that stayed whole, by the reason
        self._keep_whole = whole  # statuses of contexts that stay whole
        self._numbers = self._found.compressible  # where methods run
        sharing = [fact for fact in self._found.layers.values()
                   if fact.owner != fact.layer and fact.owner in self._numbers]
        if sharing:
            raise Error(f"{self._name} cannot be compressed: layer {sharing[0].layer} attends to the cache of layer "
                        f"{sharing[0].owner}, and a method would have to serve the queries of both.")
        self._scored = Scored(model, method, self._found, self._numbers, seed) if is_scored(method) else None
        self._choice = self._scored.choice if self._scored else chosen(method)
        self._windows = self._found.windows if self._choice.rounds_windows or self._choice.name == "exact" else {}
        without, self._numbers = self._numbers, sorted([*self._numbers, *self._windows])
        self._chosen = self._chosen_of(layers) if layers is not None else \
            self._numbers if self._choice.rounds_windows else without  # those in which this one does
        require(not self._scored or self._chosen == self._numbers, "compressed()",
                f"{method} compares the tokens of all layers; leave layers out, or give another method.")
        require(not self._scored or not self.streams, "compressed()",
                f"{method} scores a whole context, and protocol='stream' has none; give another method.")
        self.method = method if isinstance(method, str) else self._choice.name
        self._layouts = {number: self._layout_of(number, rope_layout) for number in self._numbers}
        self._sequences = weakref.WeakKeyDictionary()  # by cache: its layers by number
        self._single = {}  # by thread: the layers of a sequence without a cache
        self._present = {}
        self._given = {}  # by thread and module: the cache and the positions that its present call was given

    @property
    def layers(self) -> list[int]:
        """Numbers of the layers in which the method runs."""
        return list(self._chosen)

    def _chosen_of(self, layers):
        """Increasing numbers of layers, of one that a user gave or of several."""
        where = "compressed(): argument 'layers', or an item of it,"
        given = {of_kind(number, int, where) for number in (layers if is_list(layers) else [layers])}
        require(given, "compressed()", "layers names no layer; leave it out for all in which methods run.")
        for number in sorted(given.difference(self._numbers)):
            raise Error(f"compressed(): methods do not run in layer {number} of {self._name}, but in "
                        f"{', '.join(map(str, self._numbers)) or 'none'}; give other layers.")
        return sorted(given)

    def window(self, number):
        """Length of the sliding window of a layer in which the method runs; 0: it has none."""
        return self._windows.get(number, 0)

    def begin(self, cache, layers, tokens):
        """The sequence of a cache begins with these tokens, which another Compression of the model has read: `layers`,
        by number."""
        self._sequences[cache] = {number: layer.of(self, tokens) for number, layer in layers.items()}

    @property
    def present(self) -> dict[int, Layer]:
        """The layers of the present sequence, by number."""
        return dict(self._present)

    @property
    def rope_layout(self) -> str:
        """The order of the channels of queries and keys in which the method sees them, as the column of this name in
        tables of replays: half, interleaved, or "" where the model has no rotary embedding or it was not measured."""
        return ", ".join(sorted(set(self._layouts.values()) - {""}))

    def _layout_of(self, number, wanted):
        rotation = self._found.layers[number].rotation
        if wanted and rotation.type == "unknown":
            raise Error(f"rope_layout={wanted!r}: {rotation.no_order(number)}")
        if not rotation.channels:
            return ""
        heads = self._found.layers[number].shape[1]
        return wanted or self._choice.engine_layout(self.budget, self._config.model_type, number,
                                                    heads) or rotation.layout

    def ordered(self, number, tensor, start):
        """Queries or keys of a layer as float32 [heads, rows, d], in the order of channels of its method, as if the
        sequence, whose first token stands at `start`, began at 0."""
        rotation = self._found.layers[number].rotation
        return rotation.in_layout(rotation.turned_back(array(tensor), start), self._layouts[number])

    @property
    def bytes(self) -> dict[str, float]:
        """What a deployment of the caches holds for the present sequence, over the layers that are compressed, in
        bytes: kv, meta, fast, slow, read (per query), full (of the exact cache of the same tokens)."""
        sums = dict.fromkeys(("kv", "meta", "fast", "slow", "read", "full"), 0.0)
        for layer in self._present.values():
            if layer.decoder is not None:
                for name, value in layer.decoder.bytes().items():
                    sums[name] += value
        return sums

    def document(self, number, call, context, known, observed, positions=True):
        """What the core must know to compress a context of a layer. `positions`: methods are told RoPE."""
        rotation = self._found.layers[number].rotation
        return Document(
            model="",  # transformers forgets which file a model came from
            num_layers=self._config.num_hidden_layers, cache_layers=self._found.caches,
            num_query_heads=len(call.query), num_kv_heads=len(call.key), head_dim=call.key.shape[2],
            value_dim=call.value.shape[2], rope_type=rotation.type,
            rope_layout=self._layouts[number] or rotation.layout, context=context, known=known, observed=observed,
            layers=[LayerFacts(other, call.scale, rotation.theta if positions else 0.0, self.window(other))
                    for other in self._numbers])

    def compressed_by(self, number, sequence, call, arrays, context, known, observed):
        """A decoder that has compressed the context of a layer of a sequence, and the index of this layer in it."""
        index, document = self._numbers.index(number), self.document(number, call, context, known, observed)
        if self.budget.isdigit() and int(self.budget) > context:
            status, reason = "infeasible", f"the budget of {self.budget} tokens is larger than the context of {context}"
        else:
            choice = self._scored.of(sequence[self._numbers[0]], context, number, sequence[number].outputs) \
                if self._scored else self._choice
            made = self._decoder(document, choice, self.budget)
            status, reason = made.compress(index, *arrays)
        if reason and status not in self._keep_whole:
            raise NoCache(status, reason)
        if reason:
            made = self._decoder(document, chosen("exact"), "100%")
            made.compress(index, *arrays)
            if not any(layer.whole for layer in sequence.values()):
                self.whole[reason] += 1
            sequence[number].whole = reason
        return made, index

    def _decoder(self, document, choice, budget):
        try:
            return _core().Decoder(document, choice, budget, self._seed, self._threads, self._protocol)
        except Error as refusal:  # such as a plan for another model
            raise NoCache("skipped", str(refusal).replace("`budgets`: ", "budget ")) from None

    def note(self, module, args, kwargs):
        """Called before each module of attention."""
        self._given[threading.get_ident(), module] = cache_of(args, kwargs), kwargs.get("position_ids")

    def tokens_noted(self, model):
        """A context in which the tokens of each call of the model are noted, where scores need them."""
        return hooked([body_of(model)], self._scored.note) if self._scored else contextlib.nullcontext()

    def attend(self, call):
        """The output of a call of a layer's attention, [t, q_heads, dv]."""
        try:
            return self._attend(call)
        except (Error, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as failure:
            raise Error(f"layer {call.module.layer_idx}: {self.method} cannot run inside this model "
                        f"({first_line(failure)}).") from failure

    def _attend(self, call):
        number = call.module.layer_idx
        if number not in self._found.layers:
            raise Error(f"layer {number} of this model cannot be compressed: it did not run when the model's attention "
                        "was measured.")
        if number not in self._chosen:
            return call.run()
        if torch.is_grad_enabled() and call.query.requires_grad:
            raise Error("no gradient passes through a compressed cache; run the model without torch.enable_grad().")
        thread = threading.get_ident()
        cache, positions = self._given.pop((thread, call.module), (None, None))
        sequence = self._present = self._single.setdefault(thread, {}) if cache is None else \
            self._sequences.setdefault(cache, {})
        t, held = call.query.shape[1], call.key.shape[1] - call.query.shape[1]
        if has_fixed_length(cache, number):
            raise Error(f"layer {number}: its cache has a fixed length (StaticCache), of which kvbench does not see "
                        "how much is in use; leave cache_implementation out, or give a DynamicCache.")
        if held == 0 and number == self._chosen[0]:
            sequence.clear()
        layer = sequence.get(number)
        if number != self._chosen[0]:
            self._check_begun(sequence, number, held)
        if held == 0:
            layer = sequence[number] = Layer(self, number)
        elif layer is None or held not in layer.held():
            seen = 0 if layer is None else layer.tokens
            raise Error(f"layer {number}: the cache holds {held} tokens before these {t}, but {seen} were seen inside "
                        "compressed(); begin each sequence inside it, and change, copy or reorder no cache (beam "
                        "search, assisted decoding).")
        check_mask(call, self.window(number))
        if self._scored and number == self._numbers[0]:
            self._scored.read(layer, t)
        return self._answer(sequence, call, t, layer.tokens + t, positions)

    def _check_begun(self, sequence, number, held):
        """Raises Error unless the first layer has answered this call, of which a later one is about to."""
        first, layer = sequence.get(self._chosen[0]), sequence.get(number)
        if held == 0 and (first is None or layer is not None) or \
                held > 0 and layer is not None and (first is None or first.tokens <= layer.tokens):
            raise Error(f"layer {number}: this call of the model had begun when the with statement of compressed() "
                        "did, or goes on after one inside it has ended; begin and end calls inside the same ones.")

    def _answer(self, sequence, call, t, n, positions):
        """Of the tokens of a call, those of the context are answered exactly, the others by the compressed cache. A
        stream has no context."""
        number = call.module.layer_idx
        layer = sequence[number]
        rest = t if layer.decoder is not None or self.streams else n - self.context_of(layer, t)
        if not self.streams and layer.tokens and rest == t and t > 1 and (self.context is None or self.context < 0):
            raise Error(f"layer {number}: {t} tokens at once follow the {n - t} of the first call. If these are chunks "
                        "of one prefill, the context would end after the first one; if they are known tokens to be "
                        "decoded, where it ends is not known: give context=, the tokens of the context.")
        if number == self._chosen[0]:
            layer.stand_at(positions)
            self.decoded += min(max(0, rest), t)
        layer.start = sequence[self._chosen[0]].start
        if rest <= 0:
            return layer.prefill(call)
        if rest >= t:
            return layer.decode(call, sequence)
        first = t - rest
        output = layer.prefill(replace(call, query=call.query[:, :first], key=call.key[:, :-rest],
                                       value=call.value[:, :-rest]))
        return torch.cat([output, layer.decode(replace(call, query=call.query[:, first:]), sequence)])

    def context_of(self, layer, t):
        """Tokens of the sequence that are the context, when a call brings t more of them."""
        if layer.tokens:
            return layer.tokens if self.context is None or self.context < 0 else self.context
        context = t if self.context is None else self.context if self.context >= 0 else t + self.context
        if context < 1:
            raise Error(f"a first call of {t} tokens leaves no context with context={self.context}.")
        return context


def check_mask(call, window=0):
    """Raises Error unless each query of the call sees all tokens up to its own, or the last `window` (0: all) of
    them."""
    if not call.mask.is_causal(call.query.shape[1], call.key.shape[1], window):
        raise Error(f"layer {call.module.layer_idx}: its mask hides tokens from later ones, or shows later ones "
                    "(padding, several sequences in one, or a mask of your own), and its cache has no such "
                    "window; give one sequence without padding at a time.")


@contextlib.contextmanager
def running(model, run, pulse=lambda: None, shared=False):
    """A context in which a Compression answers the attention of the model. `pulse`: called often; it may raise.
    `shared`: as for Interface.attached()."""
    def attend(call):
        pulse()
        return run.attend(call)
    interface = Interface("compressed")
    interface.on_call, interface.pulse = attend, pulse
    modules = [fact.module for fact in run._found.layers.values()]
    with gradients.off(), interface.attached(model, shared), hooked(modules, run.note), run.tokens_noted(model):
        yield run


@checked
@contextlib.contextmanager
def compressed(model: Any, method: Any = "snapkv", budget: Any = "25%mem", *, seed: int = 0, context: int | None = None,
               decode: int | None = None, whole: bool = False, threads: int = 0, rope_layout: str | None = None,
               inject_scale: float = 1.0, layers: Any = None, protocol: str = "decode") -> Iterator[Compression]:
    """Run a model of transformers with a compressed KV cache, inside a with statement.

    The first call of the model for a sequence computes its context exactly, as deployments do, and compresses it; all
    later tokens are decoded from the compressed cache, layer by layer. Sequences are told apart by their caches.

    Layers with capped logits stay as they are, and so do those with a sliding window, unless the method rounds:
    of these it drops no token (``run.layers`` are the layers in which it runs). One sequence at a
    time, without gradients, in float32 on the host; weights and other activations stay where the model has them.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A loaded causal model in evaluation mode.
    method : method
        A name with or without settings, or a method in Python; ``"damage-votes[scope=model]"`` takes gradients at the
        end of each context (docs/scores.md).
    budget : str or int
        As for ``kvbench replay``.
    seed : int
        For methods that draw random numbers.
    context : int, optional
        How many tokens of a sequence are its context, where it comes in several calls, or where others are to be scored
        in the same call; None: all of the first call, -1: all but its last.
    decode : int, optional
        Tokens after the context for which a budget in bytes holds; None: those of the call that compresses, which is
        one in ``generate()``. ``run.bytes`` counts all tokens so far.
    whole : bool
        A context for which the method has no cache at this budget, such as a short one, stays whole and is counted in
        ``run.whole`` by the reason; otherwise it is an Error.
    threads : int
        Number of threads; 0: all processors.
    rope_layout : {"half", "interleaved"}, optional
        The order of channels in which the method sees queries and keys; None: that of the engine whose format it is
        (ggml's: llama.cpp), otherwise that of the model's code.
    inject_scale : float
        The share of the error of each layer's attention output that the model gets, as ``kveval --inject-scale``
        (docs/damage.md): from 0.001, or the resolution of its 16-bit numbers, to 1; 0: it is exact.
    layers : int, or list of int, optional
        The layers in which the method runs, the others being exact; None: all in which methods run. Budgets are divided
        over layers as if it ran in all of them.
    protocol : {"decode", "stream"}
        stream: the context passes through the compressed cache, too, as in an engine, in one call or in several, by
        methods that may begin with an empty cache. Budgets that are shares are of `context` tokens.

    Returns
    -------
    context manager of Compression
        What the caches hold (``run.bytes``, in bytes), and where the method runs.

    Raises
    ------
    Error
        If the model, the method or a setting cannot be used, and in a call of the model that cannot be compressed.

    Examples
    --------
    >>> with kvbench.compressed(model, method="snapkv", budget="25%mem") as run:
    ...     model.generate(**tokenizer(text, return_tensors="pt"), max_new_tokens=100)
    >>> run.bytes
    """
    check_model(model, "compressed()")
    run = Compression(model, method, budget, seed, context, decode, threads, NO_CACHE if whole else (), rope_layout,
                      inject_scale, layers, protocol)
    with running(model, run, shared=True):
        yield run
    if not run.layers:
        warnings.warn("inside kvbench.compressed() no method ran: every layer of this model has a sliding window or "
                      "capped logits, and stays as it is.", stacklevel=3)
    elif run.decoded == 0:
        warnings.warn("inside kvbench.compressed() the model decoded no token: each of its calls was a context of its "
                      "own, with exact outputs. To score tokens in the call of their context, give context=.",
                      stacklevel=3)
