# SPDX-License-Identifier: Apache-2.0
"""The attention that transformers calls while kvbench runs a model, to record it (kvbench-dump-hf) or to replace it
(kvbench.compressed): the model's own eager code in float32 on one block of queries at a time, with a mask whose rows
are computed when they are needed. No array grows with the square of the tokens."""

import sys
from dataclasses import dataclass

import torch
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from ._schema import Error

NAME = "kvbench"
MOST_WEIGHTS = 2**24  # attention weights per block: 64 MiB in float32, of which the eager code holds several copies


class LazyMask:
    """The mask of a model, some rows at a time. The rows come from the functions with which transformers makes the
    masks of its other attention implementations."""

    def __init__(self, arguments):
        self._arguments = {**arguments, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}

    def rows(self, first, last, keys):
        """bool [last - first, keys]: which of the first `keys` tokens the queries first .. last - 1 attend to. Queries
        are numbered from the first one of the call, and may lie beyond its last one."""
        given = self._arguments
        if "cache_position" in given:  # transformers before 5.4
            positions = given["cache_position"][:1] + torch.arange(first, last, device=given["cache_position"].device)
            return sdpa_mask(**{**given, "cache_position": positions, "kv_length": keys})[0, 0]
        return sdpa_mask(**{**given, "q_length": last - first, "q_offset": given.get("q_offset", 0) + first,
                            "kv_length": keys})[0, 0]


@dataclass
class Call:
    """One call of the attention of one layer. Tensors have the element type of the model and no batch dimension."""

    module: torch.nn.Module
    query: torch.Tensor  # [q_heads, t, d]
    key: torch.Tensor  # [kv_heads, n, d], n - t of the keys are from earlier calls
    value: torch.Tensor  # [kv_heads, n, dv]
    mask: LazyMask
    scale: float
    options: dict  # further arguments of the model's attention: softcap, ...
    pulse: object  # called before each block

    @property
    def where(self):
        return f"layer {self.module.layer_idx}"

    @property
    def softcap(self):
        return float(self.options.get("softcap") or 0)

    def blocks(self):
        """Blocks of queries, as pairs (first, last)."""
        heads, t, _ = self.query.shape
        rows = max(1, MOST_WEIGHTS // (heads * self.key.shape[1]))
        return [(first, min(t, first + rows)) for first in range(0, t, rows)]

    def run(self, each=None):
        """Attention output [t, q_heads, dv] in the element type of the model. each(first, output [q_heads, rows, dv],
        weights [q_heads, rows, keys]) is called for each block, in float32."""
        eager = sys.modules[type(self.module).__module__].eager_attention_forward
        q, k, v = (x[None].float() for x in (self.query, self.key, self.value))
        before = k.shape[2] - q.shape[2]
        whole = torch.empty(q.shape[2], q.shape[1], v.shape[3], dtype=self.query.dtype, device=q.device)
        for first, last in self.blocks():
            self.pulse()
            keys = before + last
            hidden = ~self.mask.rows(first, last, keys)
            bias = torch.zeros(hidden.shape, device=q.device).masked_fill_(hidden, torch.finfo(torch.float32).min)
            output, weights = eager(self.module, q[:, :, first:last], k[:, :, :keys], v[:, :, :keys], bias[None, None],
                                    scaling=self.scale, **self.options)
            whole[first:last] = output[0]
            if each is not None:
                each(first, output[0].transpose(0, 1), weights[0])
        return whole


class Peeked(Exception):
    """Ends the run of an attention module when its queries and keys are known."""

    def __init__(self, query, key):
        super().__init__()
        self.query, self.key = query[0], key[0]


def refuse_unknown(module, mask, scaling, options, done):
    """Raises Error for attention that softmax(scale q k^T) v under a causal mask does not describe. `done`: what cannot
    be done with it then, such as "recorded"."""
    where = f"layer {getattr(module, 'layer_idx', '?')} of this model cannot be {done}"
    if getattr(module, "layer_idx", None) is None:
        raise Error(f"this model's attention does not know the number of its layer (layer_idx); it cannot be {done}.")
    if scaling is None:
        raise Error(f"{where}: it passes no `scaling` to its attention, so that the factor of its logits is unknown.")
    if options.get("s_aux") is not None or getattr(module, "sinks", None) is not None:
        raise Error(f"{where}: it has attention sinks, which take attention mass without a token.")
    if options.get("position_bias") is not None:
        raise Error(f"{where}: a position bias is added to its logits.")
    if options.get("is_causal") is False or getattr(module, "is_causal", True) is False:
        raise Error(f"{where}: it attends in both directions; kvbench is about causal attention.")
    if not isinstance(mask, LazyMask):
        raise Error(f"{where}: it makes its attention mask itself (ALiBi or another position bias), so that the mask "
                    "is unknown.")
    if not hasattr(sys.modules[type(module).__module__], "eager_attention_forward"):
        raise Error(f"{where}: transformers has no eager attention for it, with which its own could be computed.")


class Interface:
    """Registers itself as the attention implementation of this name. `on_call(Call)` returns the output of each call of
    a model's attention, [t, q_heads, dv]. `pulse` is called often and may raise. `done`: as refuse_unknown()."""

    def __init__(self, name=NAME, done="recorded"):
        self.on_call = Call.run
        self.pulse = lambda: None
        self._done = done
        self._peeking = False
        AttentionInterface.register(name, self._attend)
        AttentionMaskInterface.register(name, lambda **arguments: LazyMask(arguments))

    def _attend(self, module, query, key, value, attention_mask, scaling=None, **options):
        if self._peeking:
            raise Peeked(query, key)
        refuse_unknown(module, attention_mask, scaling, options, self._done)
        if len(query) != 1:
            raise Error(f"a batch of {len(query)} sequences cannot be {self._done}; run them one at a time.")
        call = Call(module, query[0], key[0], value[0], attention_mask, float(scaling), {"dropout": 0.0, **options},
                    self.pulse)
        return self.on_call(call)[None], None

    def peek(self, module, args, kwargs):
        """The rotated queries and keys that an attention module computes from these arguments: [heads, t, d] each."""
        self._peeking = True
        try:
            module.forward(*args, **kwargs)
        except Peeked as seen:
            return seen.query, seen.key
        finally:
            self._peeking = False
        raise Error(f"layer {module.layer_idx}: its attention did not reach transformers' attention interface.")


def unrotated(kwargs):
    """The arguments of an attention module with the identity as rotary embedding; None if they hold no pair (cos,
    sin)."""
    pair = kwargs.get("position_embeddings")
    if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and
            all(torch.is_tensor(x) and not x.is_complex() for x in pair)):
        return None
    return {**kwargs, "position_embeddings": (torch.ones_like(pair[0]), torch.zeros_like(pair[1]))}


def with_input(args, kwargs, hidden_states):
    """The same arguments with another attention input."""
    if "hidden_states" in kwargs:
        return args, {**kwargs, "hidden_states": hidden_states}
    return (hidden_states, *args[1:]), kwargs


def window_of(mask, num_tokens, where):
    """Length of the sliding window of a mask; 0 where each query attends to all tokens up to its own. Tests the first
    512 rows and 64 rows beyond them. Raises Error for masks that are not a sliding window."""
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
    if not torch.equal(rows, expected):
        raise Error(f"{where} of this model cannot be recorded: its mask is not a sliding window (chunked or "
                    "bidirectional attention).")
    return 0 if bool((seen == last + 1).all()) else window
