# SPDX-License-Identifier: Apache-2.0
"""What the extension (python/extension) asks of methods written in Python before it makes their caches, and what it
says of their exceptions. Lists have one item per kv head of the work item."""

import copy
import re
import traceback
import warnings

import numpy as np

from .._error import Error, printable, require
from .entries import merged, numbers_of
from .method import Infeasible, Unavailable
from .source import PREFIX

LONGEST, WHOLE = 1000, 20000  # characters of a reason, and of a traceback


def scores(method, heads):
    """The scores of a scorer for each head, float32 [1 or G, c], of its first c tokens."""
    where = f"{method.__name__}()"
    given = method(heads) if method.granularity == "layer" else [method(head) for head in heads]
    return [_scores_of(one, head, where) for one, head in zip(one_per_head(given, heads, where), heads)]


def _scores_of(given, head, where):
    rows = numbers_of(given, f"{where}: the scores")
    shape, rows = list(rows.shape), np.atleast_2d(rows)
    require(shape and rows.ndim == 2 and len(rows) in (1, head.group) and rows.shape[1] <= head.tokens, where,
            f"the scores have the shape {shape}; it must be [{head.tokens}], or [{head.group}, "
            f"{head.tokens}] for one score per query head")
    wrong = np.flatnonzero(np.isnan(rows).any(0))
    require(len(wrong) == 0, where, f"the score is NaN for token {wrong[0] if len(wrong) else ''}")
    if merged(given, rows):
        warnings.warn(f"{where}: scores that differ are equal in float32, so that the lower token is kept; give scores "
                      "nearer to 0, or ranks.", stacklevel=2)
    return rows


def one_per_head(given, heads, where):
    require(isinstance(given, (list, tuple)) and len(given) == len(heads), where,
            f"it must return a list with one item for each of the {len(heads)} kv heads")
    return list(given)


def prepared(method, part):
    """What has make(), after prepare() on a head, or on all heads of a layer: the result of prepare(), or a copy of the
    method in which prepare() has left what it needs."""
    own = copy.copy(method)
    result = own.prepare(part) if hasattr(own, "prepare") else None
    maker = own if result is None else result
    require(callable(getattr(maker, "make", None)), "prepare()",
            f"what it returned, of type {type(maker).__name__}, has no make(budget, seed)")
    return maker


def told(failure):
    """What an exception means to a row: "unavailable", "infeasible" or "failed"; its last line, of kvbench's own its
    message; and the traceback."""
    kinds = {Unavailable: "unavailable", Infeasible: "infeasible"}
    kind = next((kind for error, kind in kinds.items() if isinstance(failure, error)), "")
    try:
        text = str(failure)
        line = "".join(traceback.format_exception_only(failure)).rstrip("\n").rpartition("\n")[2]
        whole = "".join(traceback.format_exception(failure))
    except Exception as other:  # of its own __str__()
        text = line = whole = f"{type(failure).__name__}, whose text raises {type(other).__name__}"
    line = (text if kind or isinstance(failure, Error) else line) or f"{type(failure).__name__}, without a sentence"
    return kind or "failed", shown(line, LONGEST), shown(whole, WHOLE)


def shown(text, longest):
    """A text as tables and terminals can show it: without control characters, of no more than so many characters."""
    text = re.sub(rf"{PREFIX}\d+\.", "", printable(text.replace("\t", " ")))
    return text if len(text) <= longest else f"{text[:longest]} ... ({len(text)} characters)"
