# SPDX-License-Identifier: Apache-2.0
"""How many bytes the cache of a model has, and which budget the size of a Question is."""

import json
import math
import os
from dataclasses import asdict, dataclass, fields

from .._error import Error, require
from .._kinds import FilePath
from ..files.access import size_text
from ..files.gguf import metadata
from ..files.trace import Trace
from .folder import LoadedModel, Work
from .settings import Question


@dataclass(frozen=True)
class CacheSizes:
    """Bytes of the full cache of a model after some tokens."""
    tokens: int
    full: int
    whole: int  # of these in layers in which no method runs
    apart: float | None  # the share of such layers in rows of measured documents; None: kveval writes the rows


@dataclass(frozen=True)
class Target:
    """The size of a Question as methods take it."""
    budget: str  # such as 25%mem
    cache: CacheSizes | None  # None: sizes are not asked for


def target_of(work: Work, trace: str | None = None) -> Target:
    """The Target of a folder. `trace`: that of a GGUF file, of which sizes are read instead of from the model."""
    question = work.question
    if question.context_length is None:
        return Target(question.share, None)
    name = f"cache-{question.context_length}.json"  # for all questions: a model is loaded for it
    if question.gguf and not question.gradients:
        check_length(question, number_in(question.model, "context_length") or question.context_length)
    if not os.path.exists(work.path(name)):
        work.say("measuring the size of the cache")
        made = sizes_in_trace(question, trace, window_of(question.model)) if trace else sizes(question, work.model)
        work.write(name, json.dumps(asdict(made)) + "\n")
    known = {field.name for field in fields(CacheSizes)}
    cache = CacheSizes(**work.read(name, lambda found: isinstance(found, dict) and found.keys() == known))
    return Target(question.share or budget_of(question, cache), cache)


def budget_of(question: Question, cache: CacheSizes) -> str:
    """A number of bytes as the share that the layers in which methods run may have of their cache."""
    where = f"--memory {question.memory}: after {cache.tokens} tokens the full cache of this model"
    if question.bytes >= cache.full:
        raise Error(f"{where} takes {size_text(cache.full)}, which fits without compression; give less.")
    share = (question.bytes - cache.whole) / (cache.full - cache.whole) if cache.full > cache.whole else 0
    if share < 1e-6:
        apart = (f", of which {size_text(cache.whole)} are in layers with a sliding window or capped logits, where no "
                 "method runs") if cache.whole else ""
        raise Error(f"{where} takes {size_text(cache.full)}{apart}; give more.")
    return f"{math.floor(1e6 * share) / 1e4:.4f}".rstrip("0").rstrip(".") + "%mem"


def sizes(question: Question, model: LoadedModel) -> CacheSizes:
    """The CacheSizes after --context-length tokens of a LoadedModel, which is dropped then."""
    from ..models.examination import examination
    from ..models.loading import AutoConfig, loaded, stored_type
    made, tokens = model.get(), question.context_length
    check_length(question, made.longest)
    stored = "" if question.gguf else stored_type(loaded(question.model, "configuration", AutoConfig.from_pretrained))
    found, element = examination(made.model), 4 if stored == "F32" else 2
    model.drop()

    def of(length: int) -> tuple[int, int]:
        held = {layer: size for layer, (_, size) in found.sizes(length).items()}
        return sum(held.values()), sum(size for layer, size in held.items() if layer not in found.compressible)
    (full, whole), (measured, apart) = of(tokens), of(question.context + question.score)
    return CacheSizes(tokens, element * full, element * whole, None if question.gguf else apart / measured)


def check_length(question: Question, longest: int) -> None:
    """Raises Error for more tokens than the model was trained on."""
    if question.context_length and question.context_length > longest:
        raise Error(f"--context-length {question.context_length}: {question.model} was trained on {longest} tokens; "
                    "give at most that number.")


def number_in(model: str, name: str) -> int:
    """A number in the header of a GGUF file, by its name behind that of the architecture; 0 where it has none."""
    header = metadata(model)
    return int(header.get(f"{header.get('general.architecture')}.{name}", 0))


def window_of(model: str) -> int:
    """The sliding window of some layers of a GGUF file, by its header; 0 where it has none."""
    return number_in(model, "attention.sliding_window")


def sizes_in_trace(question: Question, path: FilePath, window: int = 0) -> CacheSizes:
    """sizes() of a GGUF file by its trace, which has kv heads, channels and windows of each layer that has a cache, as
    llama.cpp runs them: a header says nothing of windows of single layers, or of layers that share a cache. `window`:
    that of window_of(), which a trace of fewer tokens does not show."""
    tokens = question.context_length
    with Trace(path) as trace:
        seen = max(prompt.num_tokens for prompt in trace.prompts.values())
        require(not seen <= window < tokens, f"--context-length {tokens}", f"some layers of this model have a sliding "
                f"window of {window} tokens, and documents of {seen} do not show which, so that the size of its cache "
                f"is not known; give a --context above {window}.")
        recorded = trace.prompts[next(iter(trace.prompts))].layers
        caches = range(trace.num_layers) if trace.cache_layers is None else trace.cache_layers
        missing = [int(layer) for layer in caches if int(layer) not in recorded]
        require(not missing, f"--context-length {tokens}", f"the trace lacks layers {missing[:3]} of this model, so "
                "that the size of its cache is not known; give --memory as a share, without --context-length.")
        key, value = (2 * trace.num_kv_heads * width for width in (trace.head_dim, trace.value_dim))  # in 16 bits
        held = {layer: (key + (0 if of.values_in_keys else value)) * min(tokens, of.window or tokens)
                for layer, of in recorded.items() if layer in set(map(int, caches))}
        whole = sum(size for layer, size in held.items() if recorded[layer].window or recorded[layer].softcap)
    return CacheSizes(tokens, sum(held.values()), whole, None)

