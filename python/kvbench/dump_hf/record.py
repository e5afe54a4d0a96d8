# SPDX-License-Identifier: Apache-2.0
"""Runs a model and records its attention layers. A short run first determines the layers and their parameters; then
each prompt runs in one pass without a cache and is recorded one layer at a time."""

import time

import numpy as np
import torch
import transformers

from .._error import Error, first_line
from ..files.schema import ROPE_TYPES, Header, LayerInfo
from ..models.attention import Call, Interface
from ..models.continued import STOCK_TOLERANCE
from ..models.loading import TYPES, value_of
from ..models.measure import Examination, hooked, input_of, numbers, unrotated, with_input
from .check import self_check
from .sketch import Layer, NotFound, layers_around, sketch_of

EXAMINED = 512  # tokens of the short run


class CheckFailed(RuntimeError):
    """The trace would not describe what the model computed."""


class _Enough(Exception):
    """Raised when the last requested layer has been recorded."""


class Recorder:
    """`wanted`: an object with pre_rope, rope_layout, speculated, column_sums, attention_output, sketch, seed and
    check. `say`: a function for messages on stderr."""

    def __init__(self, model, layers, wanted, say):
        self._model, self.layers, self._wanted, self._say = model, layers, wanted, say
        self._tolerance = STOCK_TOLERANCE[TYPES[model.weights]]
        self.interface = Interface(latent=True)
        self.facts = {}  # by layer number, in the order in which the layers run
        self.caches = []  # numbers of the layers that have a cache of their own
        self.windows = {}  # of the recorded layers
        self.largest = 0.0  # largest difference found by a self check
        self.pace = 0.0  # seconds per token of the short run
        self._around = {}  # by module of attention: its layer
        self._unsketched = set()  # layers of which a message said that they have no sketch

    # The short run.

    def examine(self, ids, longest):
        """Determines the attention layers and their parameters on the first tokens of a prompt. `longest`: number of
        tokens of the longest prompt, for which windows are measured. Returns the relative difference of the last hidden
        states from those that the model computes with its own eager attention. Raises Error if a layer cannot be
        recorded."""
        ids = ids[:EXAMINED]
        with self.attached():
            found = Examination(self._model.model, self.interface, ids, "recorded")
        self.facts, self.caches = found.layers, found.caches
        self._choose_layers()
        self._around = layers_around(self._model.model, [self.facts[layer].module for layer in self.layers])
        self.windows = {layer: self.facts[layer].window_at(longest, "recorded") for layer in self.layers}
        return self._difference_from_stock(ids, found.hidden)

    def attached(self):
        return self.interface.attached(self._model.model)

    def _before_attention(self, hook):
        """A context in which hook(module, args, kwargs) is called before each module of attention."""
        return hooked([fact.module for fact in self.facts.values()], hook)

    def _choose_layers(self):
        chosen = len(self.layers) < self._model.num_layers
        missing = [layer for layer in self.layers if layer not in self.facts]
        if missing and chosen:
            raise Error(f"--layers: layer {missing[0]} of this model has no attention that can be recorded; layers "
                        f"with attention are {', '.join(map(str, self.facts))}.")
        if missing:
            self._say(f"layers without attention are left out: {', '.join(map(str, missing))}.")
        sharing = [layer for layer in self.layers if layer in self.facts and layer not in self.caches]
        if sharing and chosen:
            raise Error(f"--layers: layer {sharing[0]} of this model has no cache of its own: it attends to that of "
                        f"layer {self.facts[sharing[0]].owner}, which holds the keys and values of both.")
        if sharing:
            self._say("layers that attend to the cache of another layer are left out: "
                      f"{', '.join(map(str, sharing))}.")
        self.layers = [layer for layer in self.layers if layer in self.caches]
        if value_of(self._model.config, "kv_lora_rank") and not all(self.facts[layer].latent for layer in self.layers):
            raise Error(f"{self._model.name} uses latent attention (MLA), and its code in transformers "
                        f"{transformers.__version__} makes keys and values of latents without expand_kv(), by which "
                        "they are known; install a newer transformers.")
        shapes = {}
        for layer in self.layers:
            shapes.setdefault(self.facts[layer].shape, []).append(layer)
        if len(shapes) > 1:
            kinds = "; ".join(f"{','.join(map(str, layers))}" for layers in shapes.values())
            raise Error("the layers differ in their numbers of heads or channels, and a trace has one shape; give "
                        f"--layers one of: {kinds}.")
        for layer in self.layers:
            if self.facts[layer].rotation.type == "unknown":
                if self._wanted.rope_layout:
                    raise Error(f"--rope-layout: {self.facts[layer].rotation.no_order(layer)}")
                self._say(f"layer {layer}: its rotary embedding could not be measured; the trace says unknown, and "
                          "methods that need it skip such traces.")
            if self._wanted.pre_rope and not self.facts[layer].can_unrotate:
                self._say(f"layer {layer}: it takes no (cos, sin) pair, so that queries and keys before RoPE are "
                          "unknown; these arrays are left out.")
        if self._wanted.speculated and 0 in self.layers and next(iter(self.facts)) == 0 and len(self.layers) == 1:
            self._say("layer 0 has no layer before it, so no speculated queries are stored.")

    def _difference_from_stock(self, ids, ours):
        """Relative difference of the hidden states with both attentions on the same tokens; on the CPU in float32 they
        differ only by rounding."""
        model = self._model.model
        before, begin = model.config._attn_implementation, time.perf_counter()
        model.set_attn_implementation("eager")
        try:
            stock = self._model.hidden(ids, use_cache=False)
        finally:
            model.set_attn_implementation(before)
        self.pace = (time.perf_counter() - begin) / len(ids)
        for whose, states in (("its own attention", stock), ("its attention recorded", ours)):
            if self._wanted.check and not bool(torch.isfinite(states).all()):
                raise CheckFailed(f"with {whose}, {self._model.name} computes hidden states that are not finite with "
                                  f"--weights {self._model.weights}; no trace was written. Give another type: f32 has "
                                  "the widest range.")
        norm = stock.double().norm().clamp(min=np.finfo(np.float32).tiny)  # 0 where a norm divides by infinity
        difference = float((ours.double() - stock.double()).norm() / norm)
        if self._wanted.check and not difference <= self._tolerance:
            raise CheckFailed(f"the self check failed: with its attention recorded, {self._model.name} computes hidden "
                              f"states that differ by {difference:.2g} from its own "
                              f"(tolerance {self._tolerance}); no trace was written. This model's "
                              "attention differs from what kvbench-dump-hf assumes.")
        return difference

    # The recorded passes.

    def header(self, **fields):
        facts = [self.facts[layer] for layer in self.layers]
        types = [fact.rotation.type for fact in facts]
        turning = [fact.rotation for fact in facts if fact.rotation.type not in ("none", "unknown")]
        if len({rotation.layout for rotation in turning}) > 1 and not self._wanted.rope_layout:
            raise Error("the layers pair their channels differently for the rotary embedding, and a trace has one "
                        "layout; choose --layers, or give --rope-layout.")
        other = [kind if kind in ROPE_TYPES else "other" for kind in types if kind not in ("default", "none")]
        other.sort(key="unknown".__ne__)
        heads, kv_heads, d, dv = facts[0].shape
        whole = len(self.caches) == self._model.num_layers
        return Header(num_layers=self._model.num_layers, num_query_heads=heads, num_kv_heads=kv_heads,
                      head_dim=d, value_dim=dv, rope_type=(other or ["default" if turning else "none"])[0],
                      rope_layout=self._wanted.rope_layout or (turning[0].layout if turning else "half"),
                      cache_layers=None if whole else self.caches, **fields)

    def decode(self, plan, count):
        """The plan extended by up to `count` tokens, decoded greedily."""
        self.interface.on_call = Call.run
        with self.attached():
            return plan.extended(self._model.greedy(plan.tokens, count))

    def record(self, plan, each, probes=None, continued=()):
        """Runs a prompt and calls each(layer, LayerInfo, arrays) for one layer at a time. `probes`: what Prober.run()
        returned for the plan. `continued`: each Kept of the plan beside it."""
        self._plan, self._each, self._probes = plan, each, probes
        self._continued = [kept for kept in (probes, *continued) if kept]
        self._extra, self._previous, self._arguments = {}, None, None
        self.interface.on_call = self._record_call
        try:
            with self.attached(), self._before_attention(self._peek), \
                    hooked(list(set(self._around.values())), self._enter):
                self._model.hidden(plan.tokens, use_cache=False)
        except _Enough:
            pass
        finally:
            self._arguments = None

    def _enter(self, layer, args, kwargs):
        self._arguments = (args, kwargs)

    def _peek(self, module, args, kwargs):
        """Computes the queries and keys that the pass itself does not compute: those before RoPE, and speculated
        queries."""
        if self.interface.answer is not None:
            return
        own, before = input_of(args, kwargs), self._previous
        self._previous = own if self._wanted.speculated else None
        if module.layer_idx not in self.layers:
            return
        rows = torch.as_tensor(self._plan.positions)
        still = unrotated(kwargs) if self._wanted.pre_rope else None
        if still is not None:
            query, key = self.interface.peek(module, args, still)
            self._extra |= {"keys_pre_rope": numbers(key), "queries_pre_rope": numbers(query[:, rows])}
        if self._wanted.speculated and before is not None:
            query, _ = self.interface.peek(module, *with_input(args, kwargs, before))
            self._extra["speculated_queries"] = numbers(query[:, rows])

    def _record_call(self, call):
        layer = call.module.layer_idx
        if layer not in self.layers:
            return call.run()
        facts, positions, end = self.facts[layer], self._plan.positions, self._plan.prompt_tokens
        if facts.shape != (len(call.query), len(call.key), call.key.shape[2],
                           call.value.shape[2]) or facts.scale != call.scale:
            raise Error(f"layer {layer}: its attention changes between passes; it cannot be recorded.")
        output = np.empty((facts.shape[0], len(positions), facts.shape[3]), np.float32)
        sums = np.zeros((facts.shape[0], call.key.shape[1])) if self._wanted.column_sums else None

        def keep(first, block, weights):
            last = first + block.shape[1]
            here = np.flatnonzero((positions >= first) & (positions < last))
            output[:, here] = numbers(block)[:, positions[here] - first]
            if sums is not None and first < end:
                sums[:, :weights.shape[2]] += weights[:, :end - first].sum(1, dtype=torch.float64).cpu().numpy()

        whole = call.run(keep)
        self._finish(layer, call, output, sums, self._sketch(call, whole))
        return whole

    def _sketch(self, call, output):
        """The Sketch of a layer; None where none is wanted or its residual stream cannot be found."""
        number = call.module.layer_idx
        if not self._wanted.sketch:
            return None
        try:
            if call.module not in self._around:
                raise NotFound
            layer = Layer(self.interface, self._around[call.module], call.module, self._arguments, output)
            return sketch_of(layer, self._plan.positions, self._wanted.seed, number)
        except (Error, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as failure:
            if number not in self._unsketched:
                self._unsketched.add(number)
                reason = "" if isinstance(failure, NotFound) else f" ({first_line(failure)})"
                self._say(f"layer {number}: where attention adds to its residual stream was not found{reason}; "
                          "residual_norm and output_sketch are left out.")
            return None

    def _check_continued(self, layer, output):
        for kept in self._continued:
            difference = kept.difference(layer, self._plan.positions, output)
            if self._wanted.check and not difference <= self._tolerance:
                raise CheckFailed(f"the self check failed: prompt '{self._plan.name}', layer {layer}: where tokens "
                                  f"continue from a cache, attention outputs differ by {difference:.2g} from those of "
                                  f"one pass (tolerance {self._tolerance}); no trace was written. "
                                  f"Leave out {kept.option}.")

    def _finish(self, layer, call, output, sums, sketch):
        facts, plan = self.facts[layer], self._plan
        info = LayerInfo(scale=float(facts.scale), query_positions=plan.positions,
                         window=self.windows[layer], rope_theta=facts.rotation.theta, softcap=facts.softcap,
                         values_in_keys=facts.latent,
                         column_sums_end=None if sums is None else plan.prompt_tokens,
                         **({} if sketch is None else {"sketch_seed": self._wanted.seed,
                                                       "sketch_misfit": sketch.misfit}))
        arrays = {"keys": numbers(call.key), "values": numbers(call.value),
                  "queries": numbers(call.query[:, torch.as_tensor(plan.positions)]), **self._extra}
        self._extra = {}
        if self._wanted.check:
            difference, tolerance = self_check(info, arrays["keys"], arrays["values"], arrays["queries"], output)
            if not difference <= tolerance:
                raise CheckFailed(f"the self check failed: prompt '{plan.name}', layer {layer}: attention over the "
                                  "recorded queries, keys and values differs "
                                  f"from the model's own by {difference:.2g} (tolerance {tolerance:.0e}); no trace was "
                                  "written. Leave the layer out with --layers.")
            self.largest = max(self.largest, difference)
        if facts.latent:
            del arrays["values"]
        if self._wanted.rope_layout:
            arrays |= {name: facts.rotation.in_layout(rows, self._wanted.rope_layout)
                       for name, rows in arrays.items() if name != "values"}
        if sums is not None:
            arrays["column_sums"] = sums
        if self._wanted.attention_output:
            arrays["attention_output"] = output
        if sketch is not None:
            arrays |= {"residual_norm": sketch.norms, "output_sketch": sketch.matrix}
        self._check_continued(layer, output)
        if self._probes is not None:
            arrays["probes"] = self._probes.of(layer)
        self._each(layer, info, arrays)
        if layer == self.layers[-1]:
            raise _Enough
