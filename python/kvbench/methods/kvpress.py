# SPDX-License-Identifier: Apache-2.0
"""Presses of NVIDIA kvpress: kvbench.lukv_curve(), and kvbench.from_kvpress(), a press as a method. It is given the
arrays of a trace in place of a module of a model, and decides itself which tokens it keeps."""

import collections
import collections.abc
import copy
import dataclasses
import functools
import inspect
import itertools
import threading
import types
import typing

import numpy as np
import torch

from .._error import Error, first_line, require
from .method import Infeasible, Unavailable
from .parameters import default_of, written


class _Positions(torch.Tensor):
    """Stands for the hidden states [1, n, kv heads], which a trace does not hold: they can be counted, chosen and given
    to projections, and nothing else."""
    ALLOWED = ("__get__", "__getitem__", "size", "dim", "__len__", "as_subclass", "view", "reshape", "transpose",
               "gather")

    @classmethod
    def __torch_function__(cls, function, kinds, arguments=(), named=None):
        if function.__name__ not in cls.ALLOWED:
            raise Unavailable(f"the press computes {function.__name__}() of hidden states, which a trace does not hold")
        return super().__torch_function__(function, kinds, arguments, named or {})

    def positions(self):
        rows = self.as_subclass(torch.Tensor)[0].long()
        if (rows != rows[:, :1]).any():
            raise Unavailable("the press mixes hidden states of several tokens, which a trace does not hold")
        return rows[:, 0]


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

    def __call__(self, *given):
        return self.answer(*given)


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
                              "were not recorded; replay a trace that has them (--queries all)")
        rows = self.queries[:, [self.observed[int(p)] for p in positions]]
        cos, sin = self.embeddings(positions)
        return _turned_back(rows, cos, sin).transpose(0, 1).flatten(1)[None]

    def project_keys(self, hidden):
        if self.keys_pre_rope is None:
            raise Unavailable("the press needs keys before RoPE; replay a trace that has them (--pre-rope)")
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
                       layer_idx=head.layer, q_proj=_Module(answer=self.project_queries),
                       k_proj=_Module(answer=self.project_keys), rotary_emb=_Module(answer=self.rotary),
                       masked_key_indices=None)


_one_at_a_time = threading.Lock()  # presses draw from PyTorch's only generator


class Press:
    """A press as a method. Decoded tokens are kept exactly, as kvpress keeps them. What it draws follows from the seed
    and the layer."""
    granularity = "layer"
    press = None  # the press, a copy of which gets the parameters and the budget
    paths = {}  # by parameter: where it is, as ("press", "window_size") for that of the press on which a press works

    def prepare(self, heads):
        self._trace = _Trace(heads)

    def make(self, budget, seed):
        trace = self._trace
        n = trace.keys.shape[2]
        if budget >= n:
            return [np.arange(n)] * len(trace.heads)
        press = copy.deepcopy(self.press)
        for field, path in self.paths.items():
            setattr(functools.reduce(getattr, path[:-1], press), path[-1], getattr(self, field))
        press.compression_ratio = 1 - (budget + 0.5) / n  # of which kvpress keeps int(n (1 - ratio)) tokens
        module, positions = trace.module(), torch.arange(n)
        hidden = positions[None, :, None].double().repeat(1, 1, len(trace.heads)).as_subclass(_Positions)
        given = {"hidden_states": hidden, "position_embeddings": trace.embeddings(positions),
                 "cache_position": positions}
        drawn = np.random.SeedSequence([seed, trace.heads[0].layer]).generate_state(1)
        with _one_at_a_time, torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(int(drawn[0]))
            try:
                kept = press.compress(module, hidden, trace.keys.clone(), trace.values.clone(), None, given)
            except AssertionError as failure:
                raise Error(f"{type(press).__name__}.compress(), which is given no weights of attention, refuses: "
                            f"{first_line(failure)}") from None
            except RuntimeError:
                if trace.keys.shape == trace.values.shape:
                    raise
                raise Unavailable(f"the press takes values as wide as keys; keys have {trace.keys.shape[3]} channels "
                                  f"and values {trace.values.shape[3]}") from None
        _check_returned(type(press).__name__, kept, trace)
        ids = [_ids_of(*arrays) for arrays in zip(trace.keys[0], trace.values[0], kept[0][0], kept[1][0])]
        unmasked = _unmasked(type(press).__name__, module.masked_key_indices, kept[0].shape[1:3])
        held, allowed = sum(map(np.count_nonzero, unmasked)), budget * len(ids)
        if held > allowed:
            raise Infeasible(f"{type(press).__name__} keeps {held} tokens on {len(ids)} kv heads of this layer; a "
                             f"budget of {budget} tokens allows {allowed}")
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


def from_kvpress(press: typing.Any) -> typing.Any:
    """A press of kvpress as a method for `kvbench.replay()` and `kvbench.compressed()`.

    Parameters
    ----------
    press : kvpress.BasePress
        A press, not its class. The budget replaces its compression_ratio.

    Returns
    -------
    method
        Its other numbers and texts, and those of a press on which it works, are parameters.

    Raises
    ------
    Error
        If this is no press, or one that works in other hooks of a model than ``compress()``.

    Examples
    --------
    >>> press = kvbench.from_kvpress(kvpress.SnapKVPress(window_size=32))
    >>> kvbench.replay(trace, [press, "snapkv"], "25%mem")
    """
    if isinstance(press, type):
        raise Error(f"from_kvpress(): {press.__name__} is a class; give a press, such as {press.__name__}().")
    if not hasattr(press, "compress") or not dataclasses.is_dataclass(press):
        raise Error(f"from_kvpress(): {type(press).__name__} is no press of kvpress.")
    found = {path: pair for path, *pair in _parameters(press) if path[-1] != "compression_ratio"}
    press = _without_model(press)
    _check_budget(press)
    paths = {"_".join(path): path for path in found}
    require(len(paths) == len(found), "from_kvpress()", f"two parameters of {_name(press)} have one name in rows.")
    fields = []
    for name, (value, default) in zip(paths, found.values()):
        kind = typing.Optional[type(default)] if value is None else type(value)
        fields.append((name, kind, *([] if default is _REQUIRED else [dataclasses.field(default=default)])))
    kind = dataclasses.make_dataclass(_name(press), fields, bases=(Press,), kw_only=True,
                                      namespace={"press": press, "paths": paths, "__doc__": _summary(press),
                                                 "paper": "NVIDIA kvpress"})
    return kind(**{name: value for name, (value, _) in zip(paths, found.values())})


def lukv_curve(rows: collections.abc.Iterable[collections.abc.Mapping[str, typing.Any]]) -> np.ndarray:
    """The budgets by head of a plan as the curve that LUKVPress of kvpress 0.5.5 reads.

    Parameters
    ----------
    rows
        Of ``kvbench.replay(trace, "plan:FILE.toml", budget, rows="head")``, over all layers of the model.

    Returns
    -------
    numpy.ndarray
        [99, layers, kv heads], float64: the share of tokens that a kv head drops, the same at every compression_ratio;
        the mean over prompts.

    Raises
    ------
    Error
        If the rows are of other layers or of several configurations, or one of them failed.

    Examples
    --------
    >>> press = kvpress.LUKVPress(kvpress.KnormPress(), compression_ratio=0.5, sink=0, window=0)
    >>> press._budget_curves = kvbench.lukv_curve(rows)
    """
    dropped = collections.defaultdict(list)
    kinds = set()
    for row in rows:
        if row["prompt"] == "all" or row["head"] == "all":  # means over others
            continue
        require(row["status"] == "ok", "lukv_curve()", f"a row is {row['status']}: {row['reason']}")
        kinds.add((row["method"], row["params"], row["budget"], row["seed"], row["model_layers"]))
        dropped[int(row["layer"]), int(row["kv_head"])].append(1 - row["budget_tokens"] / row["context_tokens"])
    require(len(kinds) == 1, "lukv_curve()", f"takes the rows by head of one configuration; these have {len(kinds)}.")
    layers, heads = kinds.pop()[-1], 1 + max((head for _, head in dropped), default=0)
    require(sorted(dropped) == list(itertools.product(range(layers), range(heads))), "lukv_curve()",
            f"the rows lack layers or heads of the model, which has {layers} layers.")
    return np.broadcast_to(np.reshape([np.mean(dropped[one]) for one in sorted(dropped)], (layers, heads)),
                           (99, layers, heads)).copy()


_REQUIRED = inspect.Parameter.empty


def _arguments(press):
    """What a press is made of, with defaults: fields of its dataclass, and arguments of an __init__ of its own."""
    own = inspect.signature(type(press)).parameters.values()
    made = {one.name: one.default for one in own if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}
    fields = dataclasses.fields(press) if dataclasses.is_dataclass(press) else ()
    made |= {field.name: default_of(field) for field in fields if field.init}
    return {name: _REQUIRED if default is dataclasses.MISSING else default for name, default in made.items()
            if not name.startswith("_")}  # others follow from these


def _parameters(press, path=()):
    """Path, value and default of each number and text of a press, and of the presses on which it works. Raises Error
    where rows, which name these, could not tell a press from another of its class."""
    require(len(path) < 9, "from_kvpress()", f"presses of {type(press).__name__} work on presses without end.")
    for name, default in _arguments(press).items():
        where = f"from_kvpress(): `{name}` of {type(press).__name__}"
        require(hasattr(press, name), where, "is not kept under this name, by which rows would say what it is.")
        value = getattr(press, name)
        parts = value if isinstance(value, (list, tuple, dict, set)) else ()
        require(not any(map(_is_press, parts)), where, "holds presses; one budget does not say what each drops.")
        require(not parts, where, f"is a {type(value).__name__}, which rows do not name.")
        if _is_press(value):
            yield from _parameters(value, (*path, name))
        elif written(value) is not None and (value is not None or default not in (None, _REQUIRED)):
            yield (*path, name), value, default


def _nested(press):
    return [value for value in (getattr(press, name) for name in _arguments(press)) if _is_press(value)]


def _is_press(value):
    return hasattr(value, "compress") and not isinstance(value, (np.generic, np.ndarray))


def _name(press):
    """The class of a press, and behind it those of the presses on which it works."""
    return "_".join([type(press).__name__, *map(_name, _nested(press))])


def _check_budget(press):
    """Raises Error unless the compression_ratio of a press is that of the presses on which it works."""
    ratio = 0.4375
    try:
        press.compression_ratio = ratio
    except Exception as failure:
        raise Error(f"from_kvpress(): {type(press).__name__} takes no budget: {first_line(failure)}.") from None
    inner = _nested(press)
    for one in inner:
        if getattr(one, "compression_ratio", ratio) != ratio:
            raise Error(f"from_kvpress(): the budget of {type(press).__name__} does not reach {type(one).__name__}.")
        inner += _nested(one)


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
    except Exception as failure:
        raise Error(f"from_kvpress(): {type(press).__name__} cannot prepare itself without a model: "
                    f"{first_line(failure)}.") from None
    return press


def _summary(press):
    return (type(press).__doc__ or "").strip().split("\n")[0]
