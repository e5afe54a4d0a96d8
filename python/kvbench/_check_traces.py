# SPDX-License-Identifier: Apache-2.0
"""Small traces for kvbench.check(): random keys, values and queries of two layers, and variations of them."""

from dataclasses import dataclass

import numpy as np

from ._schema import Header, LayerInfo, PromptInfo
from .trace_writer import TraceWriter

KV_HEADS, GROUP, LAYERS = 2, 2, 2


@dataclass(frozen=True)
class Shape:
    tokens: int = 48  # n, of the context
    decoded: int = 12
    head_dim: int = 16
    value_dim: int = 12
    window: int = 0  # sliding window
    scale: float = 0.25
    parts: tuple = ("observed_queries", "column_sums", "keys_pre_rope", "speculated_queries")
    form: str = "random"  # random, equal (all keys are equal), zero (all values are 0)
    other_queries: bool = False  # after the context
    draw: int = 0


def _arrays(shape, layer):
    draw = np.random.default_rng([layer, shape.draw])
    total, heads = shape.tokens + shape.decoded, KV_HEADS * GROUP
    keys = draw.normal(size=(KV_HEADS, total, shape.head_dim))
    values = draw.normal(size=(KV_HEADS, total, shape.value_dim))
    queries = 2 * draw.normal(size=(heads, total, shape.head_dim))
    if shape.form == "equal":
        keys[:] = keys[:, :1]
    if shape.form == "zero":
        values[:] = 0
    if shape.other_queries:
        queries[:, shape.tokens:] = draw.normal(size=queries[:, shape.tokens:].shape)
    return keys, values, queries


def _column_sums(queries, keys, scale, n):
    """Attention mass from all queries of the context, [heads, total]."""
    sums = np.zeros((len(queries), keys.shape[1]))
    for head, rows in enumerate(queries[:, :n]):
        logits = scale * rows @ keys[head // GROUP, :n].T
        logits[np.triu_indices(n, 1)] = -np.inf
        shares = np.exp(logits - logits.max(1, keepdims=True))
        sums[head, :n] = (shares / shares.sum(1, keepdims=True)).sum(0)
    return sums


def write(path, shape):
    """Writes the trace of this shape, with the queries of all tokens, or without `observed_queries` those after the
    context."""
    total = shape.tokens + shape.decoded
    positions = np.arange(0 if "observed_queries" in shape.parts else shape.tokens, total)
    header = Header(model="check", num_layers=LAYERS, num_query_heads=KV_HEADS * GROUP, num_kv_heads=KV_HEADS,
                    head_dim=shape.head_dim, value_dim=shape.value_dim, rope_type="default", rope_layout="half",
                    dtype="f32")
    with TraceWriter(path, header) as out:
        out.prompt("0", PromptInfo(name="check", tokens=np.arange(total), prompt_tokens=shape.tokens))
        for layer in range(LAYERS):
            keys, values, queries = _arrays(shape, layer)
            arrays = {"keys": keys, "values": values, "queries": queries[:, positions]}
            if "keys_pre_rope" in shape.parts:
                arrays["keys_pre_rope"] = keys[:, :, ::-1]
            if "speculated_queries" in shape.parts:
                arrays["speculated_queries"] = 0.9 * queries[:, positions]
            end = shape.tokens if "column_sums" in shape.parts and not shape.window else None
            if end:
                arrays["column_sums"] = _column_sums(queries, keys, shape.scale, end)
            info = LayerInfo(scale=shape.scale, rope_theta=1e4, query_positions=positions, window=shape.window,
                             column_sums_end=end)
            out.layer("0", layer, info, **arrays)
