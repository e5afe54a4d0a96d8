# SPDX-License-Identifier: Apache-2.0
"""What a model's attention is, measured in a short run: which layers have a cache of their own, their heads, scale,
softcap and mask, and how they rotate queries and keys. kvbench-dump-hf and kvbench.compressed() ask here alone."""

import contextlib
import functools
import threading
from dataclasses import dataclass, replace

import numpy as np
import torch
import transformers

from .._error import Error, first_line
from .rotation import UNKNOWN, Rotation, behind, rotation_of

# The first version of transformers that is right: before it, the code of Gemma 3n and 4 shares keys and values between
# layers only in a pass that fills a cache, and computes others in the passes that are recorded.
OLDEST = (5, 6)
if tuple(map(int, transformers.__version__.split(".")[:2])) < OLDEST:
    raise Error(f"transformers {transformers.__version__} is too old; install {'.'.join(map(str, OLDEST))} or later "
                "with pip install -U transformers.")

TOLERANCE = {torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 5e-2}  # of rotations
FAR = 2**17  # the last position at which masks are asked, where the configuration names no shorter training
BEGIN, PROBED = 8, 64  # positions at which rotations are measured; at the first ones convolutions lack their past


@dataclass
class Facts:
    """Parameters of the attention of one layer."""

    module: torch.nn.Module
    shape: tuple  # query heads, kv heads, d, dv
    scale: float
    softcap: float
    mask: object  # LazyMask of the short run
    rotation: Rotation
    owner: int  # the layer whose cache it attends to: its own number, unless it shares keys and values
    can_unrotate: bool
    latent: bool  # Call.latent
    windowed: bool  # whether its mask hides early tokens somewhere within the lengths of the model's training
    far: int  # the last of these lengths

    @property
    def layer(self):
        return self.module.layer_idx

    def window_at(self, num_tokens, what):
        """Length of the sliding window for a prompt of so many tokens, as window_of()."""
        return window_of(self.mask, num_tokens, f"layer {self.layer} of this model cannot be {what}")

    @property
    def far_window(self):
        """Length of the sliding window within the lengths of the model's training; 0: its mask is another one."""
        seen = int(self.mask.rows(self.far - 1, self.far, self.far).sum())
        try:
            return window_of(self.mask, min(self.far, 2 * seen + 1), "")
        except Error:
            return 0


def numbers(tensor):
    return tensor.detach().float().cpu().numpy()


def attention_modules(model):
    """The modules that have a layer number."""
    return [module for module in model.modules() if isinstance(getattr(module, "layer_idx", None), int)]


def body_of(model):
    """The model without its language-model head, whose output is n times the vocabulary."""
    decoder = model.get_decoder()
    return decoder if isinstance(decoder, transformers.PreTrainedModel) else model.base_model


class _Gradients(threading.local):
    """The gradients of a thread, which are off from the first context that begins to the last one that ends."""

    def __init__(self):
        self.open, self.before = set(), True

    @contextlib.contextmanager
    def off(self):
        mine = object()
        try:  # twice, because Ctrl-C may come within the first end
            try:
                if not self.open:
                    self.before = torch.is_grad_enabled()
                self.open.add(mine)
                torch.set_grad_enabled(False)
                yield
            finally:
                self._end(mine)
        finally:
            self._end(mine)

    def _end(self, mine):
        if self.open == {mine}:
            torch.set_grad_enabled(self.before)
        self.open.discard(mine)


gradients = _Gradients()


@contextlib.contextmanager
def hooked(modules, hook):
    """A context in which hook(module, args, kwargs) is called before each of these modules."""
    handles, ended = [], []

    def called(module, args, kwargs=None):  # without kwargs: the hook was removed by another thread meanwhile
        return None if ended or kwargs is None else hook(module, args, kwargs)

    def end():
        ended.append(True)
        for handle in handles:
            handle.remove()
    try:  # twice, because Ctrl-C may come within the first end
        try:
            for module in modules:
                handles.append(module.register_forward_pre_hook(called, with_kwargs=True))
            yield
        finally:
            end()
    finally:
        end()


def unrotated(kwargs):
    """The arguments of an attention module with the identity as rotary embedding; None if they hold no pair (cos,
    sin)."""
    pair = kwargs.get("position_embeddings")
    if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and
            all(torch.is_tensor(x) and not x.is_complex() for x in pair)):
        return None
    return {**kwargs, "position_embeddings": (torch.ones_like(pair[0]), torch.zeros_like(pair[1]))}


def input_of(args, kwargs):
    return kwargs.get("hidden_states", args[0] if args else None)


def at_all_positions(args, kwargs, token):
    """The same arguments with one token of each input [1, n, width] at all positions: some modules have several."""
    shape = input_of(args, kwargs).shape

    def same(x):
        return x[:, token:token + 1].expand(shape).contiguous() if torch.is_tensor(x) and x.shape == shape else x
    return tuple(map(same, args)), {name: same(x) for name, x in kwargs.items()}


def with_input(args, kwargs, hidden_states):
    """The same arguments with another attention input."""
    if "hidden_states" in kwargs:
        return args, {**kwargs, "hidden_states": hidden_states}
    return (hidden_states, *args[1:]), kwargs


def rope_of(config, layer):
    """(type, theta) of a layer that the configuration names; ("none", 0) if it names no rotary embedding."""
    parameters = getattr(config, "rope_parameters", None) or {}
    kinds = getattr(config, "layer_types", None)
    if kinds and layer < len(kinds) and isinstance(parameters.get(kinds[layer]), dict):
        parameters = parameters[kinds[layer]]
    theta = parameters.get("rope_theta")
    theta = float(theta) if isinstance(theta, (int, float)) else 0.0
    return (str(parameters.get("rope_type", "default")), theta) if theta else ("none", 0.0)


def thetas_of(config):
    """All bases of rotary embeddings that a configuration names."""
    found, open_ones = {1e4}, [config.to_dict()]
    while open_ones:
        for key, value in open_ones.pop().items():
            if isinstance(value, dict):
                open_ones.append(value)
            elif any(word in str(key) for word in ("theta", "base")) and isinstance(value, (int, float)) and value > 1:
                found.add(float(value))
    return found


def channels_of(width, d):
    """How many channels a layer may rotate: of the width of its cosines, or eighths of d where that is unknown."""
    found = {r for r in (width, 2 * width) if 2 <= r <= d} or {d * part // 8 for part in range(1, 9)}
    return sorted(r for r in found if r >= 2 and r % 2 == 0)


class Examination:
    """The attention layers of a model: Facts by layer number, in the order in which the layers run."""

    def __init__(self, model, interface, ids, done):
        """Runs the model, to which `interface` is attached, on these tokens. Raises Error if its attention cannot be
        `done`: a word such as "recorded"."""
        self._interface, self._config, self._done = interface, model.config.get_text_config(), done
        self._far = getattr(self._config, "max_position_embeddings", None) or FAR
        self._tolerance = TOLERANCE.get(model.dtype, TOLERANCE[torch.bfloat16])
        self._arguments, seen = {}, []
        before, interface.on_call = interface.on_call, lambda call: (seen.append(call), call.run())[1]
        try:
            with gradients.off(), hooked(attention_modules(model), self._remember):
                self.hidden = self._run(model, ids)
            if not seen:
                raise Error(f"{type(model).__name__} cannot be {done}: it does not use the attention interface of "
                            "transformers, because it has no attention, or its code predates the interface.")
            self.layers = {}
            with gradients.off():
                for call in seen:
                    self._add(call, seen)
            self._order_layers_without_rotation()
        finally:
            interface.on_call = before
            del self._arguments

    def _run(self, model, ids):
        try:
            return body_of(model)(input_ids=torch.tensor([list(ids)], device=model.device), use_cache=False)[0][0]
        except (Error, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as failure:
            raise Error(f"{type(model).__name__} cannot be {self._done}: its code fails in transformers "
                        f"{transformers.__version__} ({first_line(failure)}).") from failure

    def _remember(self, module, args, kwargs):
        self._arguments[module] = (args, kwargs)

    def _add(self, call, seen):
        layer, module, (_, n, d) = call.module.layer_idx, call.module, call.key.shape
        refusal = f"layer {layer} of this model cannot be {self._done}: "
        if layer in self.layers:
            raise Error(refusal + "its attention runs twice per pass, so that it cannot be numbered.")
        shape = (len(call.query), len(call.key), d, call.value.shape[2])
        if n != len(self.hidden):
            raise Error(f"{refusal}{n} keys do not fit {len(self.hidden)} tokens.")
        if call.query.shape[2] != d or shape[0] % shape[1]:
            raise Error(f"{refusal}{shape[0]} query heads of {call.query.shape[2]} channels do not fit {shape[1]} kv "
                        f"heads of {d}.")
        stored = torch.cat((call.key, call.value), 2).flatten(1)
        if bool(stored.any(1).all()) and len(torch.unique(stored, dim=0)) < len(stored):
            raise Error(refusal + "its code repeats the heads of its cache before its attention, so that bytes would "
                        "be counted several times.")
        args, kwargs = self._arguments[module]
        owner = next(other.module.layer_idx for other in seen if other.key.data_ptr() == call.key.data_ptr())
        self.layers[layer] = Facts(module, shape, call.scale, call.softcap, call.mask,
                                   self._rotation(module, args, kwargs, owner, shape[3] if call.latent else 0), owner,
                                   unrotated(kwargs) is not None, call.latent,
                                   not bool(call.mask.rows(self._far - 1, self._far, n).all()), self._far)

    def _order_layers_without_rotation(self):
        """Converters permute the channels of all layers alike: llama.cpp's also those that SmolLM3 does not rotate."""
        turning = next((fact.rotation for fact in self.layers.values() if fact.rotation.channels), None)
        for fact in self.layers.values():
            if turning and fact.rotation.type == "none":
                fact.rotation = replace(fact.rotation, layout=turning.layout, channels=turning.channels,
                                        first=turning.first)

    def _rotation(self, module, args, kwargs, owner, first):
        """Gives the module inputs that are the same at all positions: what differs then is the rotation. The `first`
        channels, those of a latent, are not rotated."""
        hidden = input_of(args, kwargs)
        if not torch.is_tensor(hidden) or hidden.dim() != 3:
            return UNKNOWN
        queries, keys = [], []
        begin = min(BEGIN, hidden.shape[1] // 4)
        for token in (0, hidden.shape[1] // 2, hidden.shape[1] - 1):
            query, key = self._interface.peek(module, *at_all_positions(args, kwargs, token))
            queries.append(query[:, begin:PROBED])
            keys.append(key[:, begin:PROBED])
        pair = kwargs.get("position_embeddings")
        width = pair[0].shape[-1] if isinstance(pair, (tuple, list)) and torch.is_tensor(pair[0]) else 0
        named, thetas = rope_of(self._config, module.layer_idx), thetas_of(self._config)

        def of(rows):
            rows = numbers(torch.cat(rows)).astype(np.float64)[..., first:]
            return behind(first, rotation_of(rows, channels_of(width, rows.shape[2]), thetas, named, self._tolerance))
        measured = of(queries)
        if owner != module.layer_idx:
            return measured
        return measured if of(keys) == measured else UNKNOWN

    def sizes(self, tokens):
        """By number of the layers with a cache of their own: kv heads, and numbers in the rows of keys and values that
        so many tokens leave there: those that the last one attends to."""
        return {layer: (fact.shape[1], fact.shape[1] * (fact.shape[2] + fact.shape[3]) *
                        int(fact.mask.rows(tokens - 1, tokens, tokens).sum()))
                for layer, fact in self.layers.items() if fact.owner == layer}

    @property
    def compressible(self):
        """Numbers of the layers with a cache of their own, no window and no softcap: where methods run."""
        return [layer for layer in self.caches if not self.layers[layer].windowed and not self.layers[layer].softcap]

    @functools.cached_property
    def windows(self):
        """Lengths of sliding windows by the numbers of their layers, where these have a cache of their own, which no
        other attends to, and no softcap: methods that round run in them, too."""
        shared = {fact.owner for fact in self.layers.values() if fact.owner != fact.layer}
        found = {layer: self.layers[layer].far_window for layer in self.caches
                 if self.layers[layer].windowed and not self.layers[layer].softcap and layer not in shared}
        return {layer: window for layer, window in found.items() if window}

    @property
    def caches(self):
        """Numbers of the layers that have a cache of their own."""
        return sorted(layer for layer, fact in self.layers.items() if fact.owner == layer)


def window_of(mask, num_tokens, refusal):
    """Length of the sliding window of a mask; 0 where each query attends to all tokens up to its own. Tests the first
    512 rows and 64 rows beyond them. Raises Error, which begins with `refusal`, for masks that are not a sliding
    window."""
    near = min(num_tokens, 512)
    positions = [*range(near), *sorted({near + (num_tokens - near) * i // 64 for i in range(64)} | {num_tokens - 1})] \
        if num_tokens > near else list(range(near))
    rows = mask.rows(0, near, num_tokens)
    far = [mask.rows(p, p + 1, num_tokens) for p in positions[near:]]
    rows = torch.cat([rows, *far]).cpu()
    last = torch.tensor(positions)
    seen = rows.sum(1)
    window = int(seen.max())
    token = torch.arange(num_tokens)
    expected = (token <= last[:, None]) & (token > last[:, None] - window)
    if bool((rows & (token > last[:, None])).any()):
        raise Error(f"{refusal}: its mask is not a sliding window: tokens see later ones (bidirectional attention).")
    if not torch.equal(rows, expected):
        raise Error(f"{refusal}: its mask is not a sliding window: it hides earlier tokens in another way (chunked "
                    "attention).")
    return 0 if bool((seen == last + 1).all()) else window
