# SPDX-License-Identifier: Apache-2.0
"""Files of scores, by which the method scores:FILE.h5 keeps tokens."""

import contextlib
import operator
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._error import Error, require
from .._kinds import FilePath, checked
from ..files.access import OutputFile
from ..files.hdf5 import create_group, set_text, write_whole
from ..files.schema import numbers
from ..files.trace import Prompt, Trace
from .entries import merged

SCHEMA = "1.0"
Scores = dict[str, dict[int, np.ndarray]]  # by prompt and layer


def _by_layer(layers: Any, where: str) -> dict[int, Any]:
    require(isinstance(layers, dict), where, "give the scores of a prompt as a dict by the number of the layer.")
    try:
        return {operator.index(number): scores for number, scores in layers.items()}
    except TypeError:
        raise Error(f"{where}: {list(layers)} are not numbers of layers.") from None


def _checked(scores: Any, trace: Trace) -> Scores:
    """The scores as {prompt: {layer: float32 [kv heads, tokens]}}. Raises Error where they are not those of the
    trace."""
    require(isinstance(scores, dict) and scores, "write_scores()", "give a dict {prompt: {layer: scores}}.")
    found = {}
    for id, layers in ((str(id), layers) for id, layers in scores.items()):
        where = f"write_scores(): prompt '{id}'"
        require(id not in found, where, "is given twice, by its text and by a number.")
        require(id in trace.prompts, where, f"{trace.path} has no such prompt; it has {', '.join(trace.prompts)}.")
        prompt, layers = trace.prompts[id], _by_layer(layers, where)
        needed = [number for number, layer in prompt.layers.items() if not layer.window and not layer.softcap]
        for number in layers:
            require(number in prompt.layers, where, f"{trace.path} has no layer {number}.")
        missing = [number for number in needed if number not in layers]
        require(not missing, where, f"there are no scores of layers {missing}; give those of all layers in which "
                f"methods run: {needed}.")
        found[id] = _finite({number: _of_layer(layers[number], trace, prompt, f"{where}, layer {number}")
                             for number in sorted(layers)}, where)
        counts = {number: values.shape[1] for number, values in found[id].items()}
        require(len(set(counts.values())) == 1, where, f"its layers have scores of different numbers of tokens: "
                f"{counts}.")
    return found


def _of_layer(scores: Any, trace: Trace, prompt: Prompt, where: str) -> np.ndarray:
    given = numbers(scores, where)
    with np.errstate(over="ignore"):  # numbers that became infinite are refused below
        values = given.astype(np.float32)
    require(values.ndim == 2 and values.shape[0] == trace.num_kv_heads and 1 <= values.shape[1] <= prompt.num_tokens,
            where, f"the scores have the shape {list(values.shape)}, and must have [{trace.num_kv_heads} kv heads, "
            f"tokens] with 1 to {prompt.num_tokens} tokens.")
    for head, token in np.argwhere(~np.isfinite(values) & (_kept(given) == 0))[:1]:
        raise Error(f"{where}: the score of kv head {head}, token {token} is no finite number in float32; only first "
                    "and last tokens may have inf.")
    require(not ((values == 0) & (given != 0)).any(), where,
            "scores that are not 0 are 0 in float32, as others are; scale them up, or give their logarithms.")
    if count := merged(given, values):
        warnings.warn(f"{where}: {count} scores differ and are equal in float32, so that the lower token is kept; "
                      "give scores nearer to 0, or ranks.", stacklevel=5)
    return values


def _kept(values: np.ndarray) -> np.ndarray:
    """The ranks of last and first tokens with the score inf, 0 for others: as methods keep last tokens before first
    ones, and the outermost before those inside."""
    always, token, count = np.isposinf(values), np.arange(values.shape[1]), values.shape[1]
    last = np.logical_and.accumulate(always[:, ::-1], axis=1)[:, ::-1]
    first = np.logical_and.accumulate(always, axis=1)
    return np.where(last, count + 1 + token, np.where(first, count - token, 0)).astype(np.int32)


def _finite(layers: dict[int, np.ndarray], where: str) -> dict[int, np.ndarray]:
    """The scores of a prompt with the next numbers above all of them in place of inf."""
    top = np.float32(max(values[np.isfinite(values)].max(initial=1) for values in layers.values()))
    found = {number: np.where(np.isinf(values), (top.view(np.int32) + _kept(values)).view(np.float32), values)
             for number, values in layers.items()}
    require(all(np.isfinite(values).all() for values in found.values()), where, f"the score {top} leaves no room in "
            "float32 above it for tokens with inf; scale the scores.")
    return found


class _ScoresFile(OutputFile):
    def fill(self, scores: Scores, sha256: str) -> None:
        set_text(self.file, "kvbench_scores", SCHEMA)
        set_text(self.file, "trace_sha256", sha256)
        prompts = create_group(self.file, "prompts")
        for id, layers in scores.items():
            group = create_group(prompts, id)
            for number, values in layers.items():
                write_whole(group, str(number), values.astype("<f4"))
                self.check_disk()


@checked
def write_scores(path: FilePath, scores: Mapping[Any, Mapping[int, Any]], *, trace: FilePath | Trace) -> None:
    """Write importance scores of the tokens of a trace to a file, from which the method ``scores:FILE.h5`` keeps the
    best ones (docs/scores.md).

    Parameters
    ----------
    path : path
        The file, which is written whole or not at all.
    scores : dict
        ``{prompt: {layer: array}}`` of arrays [kv heads, tokens], larger is better, of all layers in which methods run.
        Tokens count from the start of the prompt and cover the context at least. First and last tokens with the score
        inf are stored above all others.
    trace : path or Trace
        The trace whose contexts they score; the method runs on it alone.

    Raises
    ------
    Error
        For other shapes and for numbers that are not finite, naming the prompt and the layer.
    OSError
        If the disk is full.

    Examples
    --------
    >>> kvbench.write_scores("s.h5", {"0": {15: array}}, trace="t.h5")
    >>> kvbench.replay("t.h5", ["scores:s.h5[scope=model]", "snapkv"], "25%mem")
    """
    with contextlib.nullcontext(trace) if isinstance(trace, Trace) else Trace(trace) as opened:
        found = _checked(scores, opened)
        with _ScoresFile(path) as out:
            out.fill(found, opened.sha256)
