# SPDX-License-Identifier: Apache-2.0
"""The numerical check of kvbench-dump-hf: whether a trace describes what the model's attention computed."""

import numpy as np

# The model's attention in float32 against fp64: 1.4e-6 measured on SmolLM2-135M at 4096 tokens; a wrong scale, mask or
# head gives 1e-2 and more. A logit L is rounded by up to |L| / 2^24, and changes its weight by as much: in models with
# logits in the thousands that is more.
TOLERANCE, LOGIT_ROUNDING = 1e-5, 2.0**-24
MOST_CHECKED = 32  # queries per layer


def recomputed(query, keys, values, position, info):
    """softmax(scale q k^T) v in fp64 for the queries [heads, d] at one position over the keys [n, d], as the trace
    describes it, and the largest absolute logit."""
    first = max(0, position + 1 - info.window) if info.window else 0
    seen = slice(first, position + 1)
    logits = info.scale * query.astype(np.float64) @ keys[seen].astype(np.float64).T
    largest = float(abs(logits).max())
    if info.softcap:
        logits = info.softcap * np.tanh(logits / info.softcap)
    weights = np.exp(logits - logits.max(1, keepdims=True))
    return weights @ values[seen].astype(np.float64) / weights.sum(1, keepdims=True), largest


def self_check(info, keys, values, queries, output):
    """Recomputes the attention of a layer from the recorded arrays for 32 of its queries. Returns the largest value
    over heads of sqrt(sum |z - z'|^2 / sum |z'|^2), where z' is the model's own output [q_heads, m, dv], and the
    tolerance for it."""
    count = len(info.query_positions)
    rows = np.unique(np.linspace(0, count - 1, min(count, MOST_CHECKED)).astype(int))
    group = len(queries) // len(keys)
    largest = largest_logit = 0.0
    for kv_head in range(len(keys)):
        heads = slice(kv_head * group, (kv_head + 1) * group)
        outputs, logits = zip(*(recomputed(queries[heads, row], keys[kv_head], values[kv_head],
                                           int(info.query_positions[row]), info) for row in rows))
        z, largest_logit = np.stack(outputs, axis=1), max(largest_logit, *logits)
        model = output[heads][:, rows].astype(np.float64)
        norm = np.sqrt((model**2).sum((1, 2)))
        error = np.sqrt(((z - model)**2).sum((1, 2))) / np.where(norm > 0, norm, 1)
        largest = max(largest, float(error.max())) if np.isfinite(error).all() else float("inf")
    return largest, TOLERANCE + LOGIT_ROUNDING * largest_logit
