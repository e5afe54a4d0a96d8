# SPDX-License-Identifier: Apache-2.0
"""kvbench.from_kvpress(): presses of NVIDIA kvpress as methods. A press is given the arrays of a trace in place of a
module of a model, and decides itself which tokens it keeps."""

import copy
import dataclasses
import threading
import types

import numpy as np
import torch

from ._error import Error, first_line
from .method import Unavailable


class _Positions(torch.Tensor):
    """Stands for the hidden states [1, n, 1], which a trace does not hold: they can be counted, sliced and given to
    projections, and nothing else."""
    ALLOWED = ("__get__", "__getitem__", "size", "dim", "__len__", "as_subclass")

    @classmethod
    def __torch_function__(cls, function, kinds, arguments=(), named=None):
        if function.__name__ not in cls.ALLOWED:
            raise Unavailable(f"the press computes {function.__name__}() of hidden states, which a trace does not hold")
        return super().__torch_function__(function, kinds, arguments, named or {})

    def positions(self):
        return self.as_subclass(torch.Tensor)[0, :, 0].long()


def _cos_sin(positions, theta, d):
    """Cosines and sines [t, d] of the rotary embedding of these positions, whose channels are paired by halves."""
    angles = positions[:, None] * theta ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    return (torch.cat([f(angles), f(angles)], 1).float() for f in (torch.cos, torch.sin))


def _turned_back(rows, cos, sin):
    half = rows.shape[-1] // 2
    return rows * cos - torch.cat([-rows[..., half:], rows[..., :half]], -1) * sin


class _NotInTrace(AttributeError, Unavailable):
    pass


class _Module(types.SimpleNamespace):
    """Stands for a module of a model, of which a press may ask what a trace holds."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise _NotInTrace(f"the press asks the model for `{name}`, which a trace does not hold")


class _Trace:
    """The kv heads of a layer as tensors."""

    def __init__(self, heads):
        self.heads, self.rope = heads, heads[0].rope
        d = heads[0].keys.shape[1]
        # kvpress knows the rotary embedding that pairs halves; a permutation of channels changes no product.
        order = np.r_[0:d:2, 1:d:2] if self.rope is not None and self.rope.interleaved else np.arange(d)
        self.keys = torch.from_numpy(np.stack([head.keys[:, order] for head in heads])[None])
        self.values = torch.from_numpy(np.stack([head.values for head in heads])[None])
        self.observed = {int(p): i for i, p in enumerate(heads[0].observed_positions)}
        self.queries = None
        if heads[0].observed is not None:
            self.queries = torch.from_numpy(np.concatenate([head.observed[:, :, order] for head in heads]))
        self.keys_pre_rope = None
        if heads[0].keys_pre_rope is not None:
            self.keys_pre_rope = torch.from_numpy(np.stack([head.keys_pre_rope[:, order] for head in heads]))

    def embeddings(self, positions):
        """cos, sin [1, t, d]; where the model's RoPE is unknown the identity, for queries that stay rotated."""
        d = self.keys.shape[3]
        if self.rope is None:
            return torch.ones(1, len(positions), d), torch.zeros(1, len(positions), d)
        return tuple(one[None] for one in _cos_sin(positions.double(), self.rope.theta, d))

    def project_queries(self, hidden):
        """Queries before RoPE at these positions, [1, t, heads * d]."""
        positions = hidden.positions()
        missing = [int(p) for p in positions if int(p) not in self.observed]
        if missing:
            raise Unavailable(f"the press needs the query at position {missing[0]}, and {len(missing) - 1} others that "
                              "the trace does not hold; dump it with --queries all")
        rows = self.queries[:, [self.observed[int(p)] for p in positions]]
        cos, sin = self.embeddings(positions)
        return _turned_back(rows, cos, sin).transpose(0, 1).flatten(1)[None]

    def project_keys(self, hidden):
        if self.keys_pre_rope is None:
            raise Unavailable("the press needs keys before RoPE; dump the trace with --pre-rope")
        return self.keys_pre_rope[:, hidden.positions()].transpose(0, 1).flatten(1)[None]

    def rotary(self, like, position_ids):
        if self.rope is None:
            raise Unavailable("the press rotates queries, and the RoPE of this model is scaled or unknown")
        return self.embeddings(position_ids[0])

    def module(self):
        """What a press may ask of a module of attention."""
        head = self.heads[0]
        config = _Module(num_attention_heads=head.group * len(self.heads), num_key_value_heads=len(self.heads),
                         head_dim=head.keys.shape[1], num_hidden_layers=head.num_layers, rms_norm_eps=1e-6,
                         _attn_implementation="sdpa")
        return _Module(config=config, head_dim=head.keys.shape[1], num_key_value_groups=head.group,
                       layer_idx=head.layer, q_proj=self.project_queries, k_proj=self.project_keys,
                       rotary_emb=self.rotary, masked_key_indices=None)


_one_at_a_time = threading.Lock()  # presses draw from PyTorch's only generator


class Press:
    """A press as a method. Decoded tokens are kept exactly, as kvpress keeps them. What it draws follows from the seed
    and the layer."""
    granularity = "layer"
    press = None  # the press, a copy of which gets the parameters and the budget

    def prepare(self, heads):
        self._trace = _Trace(heads)

    def make(self, budget, seed):
        trace = self._trace
        n = trace.keys.shape[2]
        if budget >= n:
            return [np.arange(n)] * len(trace.heads)
        press = copy.deepcopy(self.press)
        for field in dataclasses.fields(self):
            setattr(press, field.name, getattr(self, field.name))
        press.compression_ratio = 1 - (budget + 0.5) / n  # of which kvpress keeps int(n (1 - ratio)) tokens
        module, positions = trace.module(), torch.arange(n)
        hidden = positions[None, :, None].double().as_subclass(_Positions)
        given = {"position_embeddings": trace.embeddings(positions), "cache_position": positions}
        drawn = np.random.SeedSequence([seed, trace.heads[0].layer]).generate_state(1)
        with _one_at_a_time, torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(int(drawn[0]))
            try:
                kept = press.compress(module, hidden, trace.keys.clone(), trace.values.clone(), None, given)
            except AssertionError as failure:
                raise Error(f"{type(press).__name__}.compress(), which is given no weights of attention, refuses: "
                            f"{first_line(failure)}") from None
        _check_returned(type(press).__name__, kept, trace)
        ids = [_ids_of(*arrays) for arrays in zip(trace.keys[0], trace.values[0], kept[0][0], kept[1][0])]
        unmasked = _unmasked(type(press).__name__, module.masked_key_indices, kept[0].shape[1:3])
        return [np.sort(tokens[left]) for tokens, left in zip(ids, unmasked)]


def _check_returned(name, kept, trace):
    """Raises Error unless `kept` is the keys and values [1, kv heads, tokens, channels] of equally many tokens."""
    pair = isinstance(kept, (tuple, list)) and len(kept) == 2 and all(isinstance(one, torch.Tensor) for one in kept)
    whole = (trace.keys, trace.values)
    if not pair or kept[0].shape[:-1] != kept[1].shape[:-1] or any(
            one.dtype != of.dtype or one.shape[:2] + one.shape[3:] != of.shape[:2] + of.shape[3:]
            for one, of in zip(kept, whole)):
        found = " and ".join(f"{one.dtype} {list(one.shape)}" for one in kept) if pair else type(kept).__name__
        raise Error(f"{name}.compress() returned {found}, not the {trace.keys.dtype} keys and values of the tokens "
                    f"that it keeps, [1, {trace.keys.shape[1]}, tokens, channels]")


def _unmasked(name, masked, shape):
    """Which of the tokens [kv heads, tokens] a press has not masked; masked: None or batch, kv head and token of each
    that it has. Raises Error for anything else, which would mask other tokens."""
    left = np.ones(shape, bool)
    if masked is None:
        return left
    try:
        indices = np.stack([np.asarray(torch.as_tensor(one).cpu()) for one in masked])
    except (TypeError, ValueError, RuntimeError):
        indices = np.empty(0)
    if len(indices) != 3 or indices.ndim != 2 or indices.dtype.kind not in "iu":
        raise Error(f"{name}.compress() left masked_key_indices that are not three lists of whole numbers: batch, kv "
                    "head and token of each masked key")
    limits = np.array([1, *shape])[:, None]
    for batch, head, token in indices.T[((indices < 0) | (indices >= limits)).any(0)][:1]:
        raise Error(f"{name}.compress() masked batch {batch}, kv head {head}, token {token}; there are 1 batch, "
                    f"{shape[0]} kv heads and {shape[1]} tokens")
    left[indices[1], indices[2]] = False
    return left


def _ids_of(keys, values, kept_keys, kept_values):
    """The tokens whose keys and values a press has returned, in its order; of equal ones the first."""
    known = {}
    for i, pair in enumerate(zip(keys.numpy(), values.numpy())):
        known.setdefault(tuple(one.tobytes() for one in pair), []).append(i)
    ids = []
    for pair in zip(kept_keys.detach().numpy(), kept_values.detach().numpy()):
        tokens = known.get(tuple(one.tobytes() for one in pair))
        if tokens is None:
            raise Error("the press changes keys or values, which kvbench.from_kvpress() does not follow")
        ids.append(tokens.pop(0) if len(tokens) > 1 else tokens[0])  # a token that is returned twice is refused by ids
    return np.array(ids, np.int64)


def from_kvpress(press):
    """A press of kvpress as a method for kvbench.replay() and kvbench.compressed(). The budget replaces its
    compression_ratio; its other numbers and texts are parameters of the method.

        kvbench.replay(trace, [kvbench.from_kvpress(kvpress.SnapKVPress(window_size=32)), "snapkv"], "25%mem")"""
    if isinstance(press, type):
        raise Error(f"from_kvpress(): {press.__name__} is a class; give a press, such as {press.__name__}().")
    if not hasattr(press, "compress") or not dataclasses.is_dataclass(press):
        raise Error(f"from_kvpress(): {type(press).__name__} is no press of kvpress.")
    _check_fields(press)
    press = _without_model(press)
    fields = [(field.name, type(getattr(press, field.name)), _default_of(field, press))
              for field in dataclasses.fields(press)
              if field.name != "compression_ratio" and isinstance(getattr(press, field.name), (bool, int, float, str))]
    kind = dataclasses.make_dataclass(type(press).__name__, fields, bases=(Press,),
                                      namespace={"press": press, "__doc__": _summary(press),
                                                 "paper": "NVIDIA kvpress"})
    return kind(**{name: getattr(press, name) for name, *_ in fields})


def _check_fields(press):
    """Raises Error where rows, which name numbers and texts, could not tell a press from another of its class."""
    for field in dataclasses.fields(press):
        if not field.init or field.name.startswith("_"):  # follows from the others
            continue
        value = getattr(press, field.name)
        parts = value if isinstance(value, (list, tuple, dict, set)) else [value]
        if any(hasattr(part, "compress") for part in parts):
            raise Error(f"from_kvpress(): {type(press).__name__} works on another press (`{field.name}`), which rows "
                        "do not name; give that press alone, or see kvbench methods for methods of others, such as "
                        "adakv@kvpress(M).")
        if parts is value and parts:
            raise Error(f"from_kvpress(): `{field.name}` of {type(press).__name__} is a {type(value).__name__}, which "
                        "rows do not name.")


def _without_model(press):
    """A copy of the press that is ready to compress. Raises Error where it works in other hooks of a model than
    compress(), or needs a model to prepare itself."""
    own = [vars(kind) for kind in type(press).__mro__ if kind.__name__ != "BasePress"]
    for hook in ("forward_hook", "__call__"):
        if any(hook in names for names in own):
            raise Error(f"from_kvpress(): {type(press).__name__} works in hooks of a model ({hook}), which a trace "
                        "does not have.")
    if not any("compress" in names for names in own):
        raise Error(f"from_kvpress(): {type(press).__name__} has no compress() of its own.")
    press = copy.deepcopy(press)
    try:
        getattr(press, "post_init_from_model", lambda model: None)(_Module())
    except Exception as failure:  # of the code of the press
        raise Error(f"from_kvpress(): {type(press).__name__} cannot prepare itself without a model: "
                    f"{first_line(failure)}.") from None
    return press


def _default_of(field, press):
    return getattr(press, field.name) if field.default is dataclasses.MISSING else field.default


def _summary(press):
    return (type(press).__doc__ or "").strip().split("\n")[0]
