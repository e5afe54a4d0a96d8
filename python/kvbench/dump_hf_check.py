# SPDX-License-Identifier: Apache-2.0
"""Numerical checks of kvbench-dump-hf: whether a trace describes what the model's attention computed, and which
rotation the model uses."""

from dataclasses import dataclass

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


@dataclass
class Rotation:
    """The rotary embedding of a layer."""

    type: str  # default, none, partial, the type of the configuration, or "other"
    layout: str  # half or interleaved
    theta: float  # 0 = none
    known: bool = True  # measured, not only read from the configuration


def pairs(x, channels, layout):
    """The first `channels` of [..., d] as complex numbers, by rotary pair."""
    if layout == "half":
        return x[..., :channels // 2] + 1j * x[..., channels // 2:channels]
    return x[..., 0:channels:2] + 1j * x[..., 1:channels:2]


def fit(before, after, channels, layout):
    """Fits rotations [n, channels / 2] from `before` to `after` ([heads, n, d], the same rotation for all heads).
    Returns them and the relative residual."""
    a, b = pairs(before, channels, layout), pairs(after, channels, layout)
    turns = (b * a.conj()).sum(0) / np.maximum((abs(a)**2).sum(0), 1e-30)
    rest = (abs(after[..., channels:] - before[..., channels:])**2).sum()
    return turns, float(np.sqrt(((abs(b - turns * a)**2).sum() + rest) / (abs(after)**2).sum()))


def rotation_of(before, after, channels, theta, config_type, tolerance):
    """Measures the rotation from queries and keys before and after it, [heads, n, d] with at least two heads.
    `channels`: candidates for the number of rotated channels; theta and config_type: values of the configuration;
    `tolerance`: that of the model's element type."""
    if theta == 0 or np.abs(after - before).max() <= 1e-6 * np.abs(after).max():
        return Rotation("none", "half", 0.0)
    found = [(*fit(before, after, r, layout), r, layout) for r in channels for layout in ("half", "interleaved")]
    turns, unexplained, r, layout = min(found, key=lambda x: x[1])
    known = unexplained <= tolerance
    if config_type != "default":  # dynamic and longrope may rotate differently in a longer prompt
        return Rotation(config_type, layout if known else "half", theta, known)
    positions = np.arange(len(turns))[:, None]
    expected = np.exp(1j * positions * theta ** (-2.0 * np.arange(r // 2) / r))
    if not known or not np.abs(turns - expected).max() <= tolerance:
        return Rotation("other", layout if known else "half", theta, known)
    return Rotation("partial" if r < before.shape[-1] else "default", layout, theta)
