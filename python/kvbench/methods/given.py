# SPDX-License-Identifier: Apache-2.0
"""kvbench.entries(): a method whose entries were computed elsewhere."""

import contextlib
import dataclasses
import operator
import os
import re
import zipfile
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from .._error import Error, check_regular, require
from .._kinds import FilePath, of_kind
from ..files.trace import Trace
from .entries import NUMBERS, fixed_of
from .method import HeadPrompt, Infeasible, Table, Unavailable

Place = tuple[str, int, int]  # prompt, layer, kv head
_ARRAY = re.compile(f"([^/]+)/(0|[1-9][0-9]*)/(0|[1-9][0-9]*)(?:/({'|'.join(NUMBERS)}))?")


@dataclasses.dataclass(eq=False)
class _Given:
    """What the methods that entries() makes have in common."""
    # A parameter, so that rows name the file, sweeps store its digest, and no output replaces it.
    file: os.PathLike = dataclasses.field(  # type: ignore[type-arg]
        default="", metadata={"doc": "the .npz file that holds the entries"})  # type: ignore[arg-type]
    granularity = "layer"  # a head may hold more than the budget where the others of its layer hold less
    whole_context = True  # the numbers of tokens are those of the prompt
    kind = "eviction"
    heads: ClassVar[dict[Place, Any]] = {}  # by (prompt, layer, kv head): what make() may return for it

    def prepare(self, heads: list[HeadPrompt]) -> None:
        self.made, self.used = [], 0
        for head in heads:
            key = (head.prompt, head.layer, head.kv_head)
            if key not in self.heads:
                raise Unavailable(f"there are no entries for {_place(key)}")
            self.made.append(self.heads[key])
            self.used += _check(key, self.made[-1], head.tokens, head.group, head.keys.shape[1], head.values.shape[1])

    def make(self, budget: int, seed: int) -> list[Any]:
        allowed = len(self.made) * budget
        if self.used > allowed and self.kind != "sampling":
            raise Infeasible(f"{self.used} entries are given for {len(self.made)} kv heads of the layer; a budget of "
                             f"{budget} tokens allows {allowed}")
        return self.made


def _place(key: Place) -> str:
    return f"prompt '{key[0]}', layer {key[1]}, kv head {key[2]}"


def _check(key: Place, made: Any, tokens: int, group: int, d: int, dv: int) -> int:
    """The most entries that answer a query. Raises Error, which names the head, where they do not fit a head of these
    sizes."""
    where = f"entries(): {_place(key)}"
    tables, _, _ = fixed_of(made, group, d, dv, where)
    for table in tables:
        last = table.ids.max(initial=-1)
        require(last < tokens, where, f"there is no token {last} among {tokens}, the first of which is 0.")
        for name in NUMBERS:
            array = getattr(table, name)
            require(array is None or np.isfinite(array).all(), where,
                    f"{name} holds a number that is not finite in float32.")
    for weights in ("weight_num", "weight_den"):  # tokens of weight 0 are not in this sum
        used = [table.ids if getattr(table, weights) is None else np.where(getattr(table, weights) == 0, -1, table.ids)
                for table in tables]
        ordered = np.sort(np.hstack([np.broadcast_to(ids, (group, ids.shape[1])) for ids in used]), axis=1)
        twice = ordered[:, 1:][(ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)]
        require(len(twice) == 0, where, f"token {twice.min(initial=tokens)} answers a query twice; list it once.")
    return sum(int((table.ids >= 0).sum(1).max()) for table in tables)


def _kind(heads: Any) -> str:
    parts = [part for made in heads.values() for part in (made if isinstance(made, (list, tuple)) else [made])]
    for kind, fields in (("merging", ("own_keys", "own_values")),
                         ("sampling", ("weights", "weight_num", "weight_den"))):
        if any(getattr(part, field, None) is not None for part in parts for field in fields):
            return kind
    return "eviction"


def _of_dict(given: Any) -> dict[Place, Any]:
    heads: dict[Place, Any] = {}
    for key, made in given.items():
        try:
            prompt, layer, kv_head = key
            place = str(prompt), operator.index(layer), operator.index(kv_head)
        except (TypeError, ValueError):
            raise Error(f"entries(): the key {key!r} is not (prompt, layer, kv head), as ('0', 15, 1) is.") from None
        require(place not in heads, f"entries(): {_place(place)}", "is given twice, by its text and by a number.")
        heads[place] = made
    return heads


def _of_npz(path: FilePath) -> tuple[dict[Place, Any], str]:
    """The entries of a file, and the digest of their trace."""
    check_regular(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (OSError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as fault:
        raise Error(f"{path}: is no .npz file of arrays ({fault}); numpy.savez() writes one.") from None
    digest = str(arrays.pop("trace_sha256", ""))
    heads: dict[Place, dict[str, Any]] = {}
    for name, array in arrays.items():
        parts = _ARRAY.fullmatch(name)
        if not parts:
            raise Error(f"{path}: there is an array '{name}'; the names are PROMPT/LAYER/KV_HEAD, the same with "
                        f"/{' or /'.join(NUMBERS)} behind it, and trace_sha256.")
        prompt, layer, kv_head, field = parts.groups()
        heads.setdefault((prompt, int(layer), int(kv_head)), {})[field or "ids"] = array
    for key, fields in heads.items():
        require("ids" in fields, path, f"there is no array of the numbers of tokens of {_place(key)}.")
    return {key: Table(**fields) for key, fields in heads.items()}, digest


def _check_trace(heads: Any, trace: Trace) -> None:
    for key, made in heads.items():
        prompt = trace.prompts.get(key[0])
        if prompt is None or key[1] not in prompt.layers or not 0 <= key[2] < trace.num_kv_heads:
            raise Error(f"entries(): {_place(key)}: {trace.path} has no such head.")
        _check(key, made, prompt.num_tokens, trace.group, trace.head_dim, trace.value_dim)


def entries(given: Mapping[tuple[Any, int, int], Any] | FilePath, *, trace: FilePath | Trace | None = None,
            name: str = "entries") -> Any:
    """A method that answers by entries which were computed elsewhere, wherever a method in Python is one.

    Parameters
    ----------
    given : dict or path
        By (prompt, layer, kv head) what ``make()`` may return for a head: numbers of tokens of the context, [width] or
        [G, width], a `Kept`, a `Table`, or a list of tables. Or an .npz file with arrays named PROMPT/LAYER/KV_HEAD for
        these numbers, the same with /weight_num, /weight_den, /own_keys and /own_values behind it for those of a
        `Table`, and trace_sha256.
    trace : path or Trace, optional
        The trace for which they were made: a replay of another one is refused.
    name : str
        Tells several of them apart.

    Returns
    -------
    method
        Decoded tokens are added exactly. Heads without entries are `skipped`, and a layer that holds more than the
        budget is `infeasible`.

    Raises
    ------
    Error
        If entries do not fit a head, or belong to another trace.

    Examples
    --------
    >>> kept = {("0", 15, 1): ids}
    >>> kvbench.replay("t.h5", [kvbench.entries(kept, trace="t.h5"), "snapkv"], "25%")
    """
    require(isinstance(name, str) and name.isidentifier(), "entries()", f"{name!r} is not the name of a class.")
    file = "" if isinstance(given, dict) else of_kind(given, os.PathLike, "entries(): if no dict, 'given'")
    heads, digest = _of_npz(file) if file else (_of_dict(given), "")
    require(heads, "entries()", "no entries are given.")
    if trace is not None:
        with contextlib.nullcontext(trace) if isinstance(trace, Trace) else Trace(trace) as opened:
            _check_trace(heads, opened)
            require(digest in ("", opened.sha256), "entries()",
                    f"{given} belongs to a trace with the SHA-256 {digest}, and {opened.path} has {opened.sha256}.")
            digest = opened.sha256
    doc = f"Entries of {len(heads)} kv heads that were computed elsewhere"
    made = type(name, (_Given,), {"__doc__": doc, "kind": _kind(heads), "trace_sha256": digest})(file)
    made.heads = heads
    return made
