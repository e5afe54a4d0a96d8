# SPDX-License-Identifier: Apache-2.0
"""What the extension (python/extension) asks of methods written in Python before it makes their caches. Lists have one
item per kv head of the work item."""

import copy

import numpy as np

from ._error import Error


def scores(method, heads):
    """The scores of a scorer for each head, float32 [1 or G, c], of its first c tokens."""
    given = method(heads) if method.granularity == "layer" else [method(head) for head in heads]
    return [_scores_of(one, head) for one, head in zip(one_per_head(given, heads, "the scorer"), heads)]


def _scores_of(given, head):
    rows = np.atleast_2d(np.ascontiguousarray(given, np.float32))
    if rows.ndim != 2 or len(rows) not in (1, head.group) or rows.shape[1] > head.tokens:
        raise Error(f"the scorer returned an array of shape {list(np.shape(given))}; it must be [{head.tokens}], or "
                    f"[{head.group}, {head.tokens}] for one score per query head")
    if np.isnan(rows).any():
        raise Error(f"the scorer returned NaN for token {int(np.isnan(rows).any(0).argmax())}")
    return rows


def one_per_head(given, heads, what):
    if not isinstance(given, (list, tuple)) or len(given) != len(heads):
        raise Error(f"{what} must return a list with one item for each of the {len(heads)} kv heads")
    return list(given)


def prepared(method, part):
    """What has make(), after prepare() on a head, or on all heads of a layer: the result of prepare(), or a copy of the
    method in which prepare() has left what it needs."""
    own = copy.copy(method)
    result = own.prepare(part) if hasattr(own, "prepare") else None
    return own if result is None else result
