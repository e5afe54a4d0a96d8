# SPDX-License-Identifier: Apache-2.0
"""Attributes of a trace and the rules of its schema (docs/traces.md), checked as in lib/kvbench/trace/check.cpp."""

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._error import Error, check_text, require
from .._kinds import check_fields, of_kind

TRACE_SCHEMA = "1.0"
RAW_SCHEMA = "1.0"
ROPE_TYPES = ("default", "none", "partial", "linear", "dynamic", "yarn", "llama3", "longrope", "mrope", "proportional",
              "other", "unknown")
MOST = {"num_layers": 65535, "num_query_heads": 65535, "num_kv_heads": 65535, "head_dim": 16384, "value_dim": 16384}
MOST_TOKENS, MOST_PROMPTS, MOST_PROBES, MOST_COLUMNS, MOST_ANCHORS = 2**24, 65535, 512, 16384, 2**17
LONGEST_SPAN_NAME = 64  # bytes


@dataclass(kw_only=True, eq=False)
class Header:
    """The root attributes of a trace. Query head h uses kv head h // group.

    Attributes
    ----------
    model : str
    num_layers : int
        Layers of the model, which may be more than the trace holds.
    num_query_heads : int
    num_kv_heads : int
    head_dim : int
        d, the dimension of keys and queries.
    value_dim : int
        dv, the dimension of values.
    rope_type : str
        One of ROPE_TYPES; "other" stands for types that are not listed, "unknown": it was not measured.
    rope_layout : str
        half or interleaved: which channels are rotated together.
    cache_layers : np.ndarray | None
        Numbers of the layers with a cache of their own; None: all.
    dtype : str
        Element type of the arrays in the file: f32, f16 or bf16.
    arch : str
    quantisation : str
    source_tool : str
    source_version : str
    created : str
        ISO 8601 in UTC; the writer fills it in.
    """

    model: str
    num_layers: int
    num_query_heads: int
    num_kv_heads: int
    head_dim: int
    value_dim: int
    rope_type: str
    rope_layout: str = "half"
    cache_layers: np.ndarray | None = None
    dtype: str = "f32"
    arch: str = ""
    quantisation: str = ""
    source_tool: str = ""
    source_version: str = ""
    created: str = ""

    @property
    def group(self) -> int:
        """Query heads per kv head."""
        heads, kv_heads = (of_kind(getattr(self, name), int, f"Header: attribute '{name}'")
                           for name in ("num_query_heads", "num_kv_heads"))
        require(kv_heads >= 1, "Header", f"attribute 'num_kv_heads' is {kv_heads}; it must be at least 1.")
        return int(heads // kv_heads)


@dataclass(kw_only=True)
class Probes:
    """Gradients that say what an error of attention outputs does to the next-token distributions (docs/damage.md).

    Attributes
    ----------
    count : int
        R, the number of gradients.
    tokens : int
        T: the scored tokens have the positions prompt_tokens .. prompt_tokens + T - 1.
    seed : int
        Of the Philox generator that drew the sums.
    evaluated_in : str
        Element types in which the model was evaluated.
    """

    count: int
    tokens: int
    seed: int
    evaluated_in: str = ""


@dataclass(kw_only=True)
class Anchor:
    """A configuration whose damage was measured in the model, on the scored tokens of the probes of a prompt.

    Attributes
    ----------
    method : str
        With its settings, as --method reads it.
    budget : str
        As --budget reads it.
    layer : int | None
        The only one that is compressed; None: all in which methods run.
    kl : float
        Mean KL divergence from the full cache, nats per scored token.
    predicted : float | None
        KL that a replay predicts of the prompt, or of the layer alone; None: none.
    """

    method: str
    budget: str
    layer: int | None = None
    kl: float
    predicted: float | None = None


@dataclass(kw_only=True)
class Anchors:
    """The anchors of a prompt, no configuration twice.

    Attributes
    ----------
    version : str
        Of the kvbench that measured and predicted.
    list : list of Anchor
        At least one.
    """

    version: str
    list: list[Anchor]


@dataclass
class Span:
    """Tokens of a context that belong together, such as those of a message.

    Attributes
    ----------
    name : str
        Spans of one name are one part.
    begin : int
    end : int
        The tokens begin .. end - 1.
    """

    name: str
    begin: int
    end: int


@dataclass(kw_only=True, eq=False)
class PromptInfo:
    """A prompt without its layers.

    Attributes
    ----------
    name : str
    tokens : np.ndarray
        [n] integers.
    prompt_tokens : int | None
        Tokens of the context, where decoding begins; None: n, nothing was decoded.
    answer_start : int | None
    answer_end : int | None
    text : str | None
    probes : Probes | None
        Probes; None: no layer has any.
    anchors : Anchors | None
        Anchors; only with probes.
    spans : list of Span | None
        Of the context, in order.
    """

    name: str
    tokens: np.ndarray
    prompt_tokens: int | None = None
    answer_start: int | None = None
    answer_end: int | None = None
    text: str | None = None
    probes: Probes | None = None
    anchors: Anchors | None = None
    spans: list[Span] | None = None

    @property
    def num_tokens(self) -> int:
        """n"""
        return len(integers(self.tokens, "PromptInfo: tokens"))


@dataclass(kw_only=True, eq=False)
class LayerInfo:
    """A layer of a prompt without its arrays.

    Attributes
    ----------
    scale : float
        Logits are scale * q.k.
    query_positions : np.ndarray
        [m] integers, strictly increasing, below n.
    window : int
        Tokens of a sliding window; 0 = full attention.
    rope_theta : float
        Base of the rotary embedding; 0: there is none.
    softcap : float
        Logits become softcap * tanh(logit / softcap); 0 = none.
    values_in_keys : bool
        MLA: the values are the first dv channels of the keys; no layer has an array of them.
    column_sums_end : int | None
        The column sums are sums over the queries 0 .. column_sums_end - 1.
    sketch_seed : int | None
        Of the Gaussian matrix of output_sketch.
    sketch_misfit : float
        How much the map that output_sketch describes differs between queries; 0: not at all.
    """

    scale: float
    query_positions: np.ndarray
    window: int = 0
    rope_theta: float = 0.0
    softcap: float = 0.0
    values_in_keys: bool = False
    column_sums_end: int | None = None
    sketch_seed: int | None = None
    sketch_misfit: float = 0.0


REQUIRED = ("keys", "values", "queries")
LATENT = ("keys", "queries")  # what is required where the values are a part of the keys
ARRAYS = (*REQUIRED, "column_sums", "keys_pre_rope", "queries_pre_rope", "speculated_queries", "attention_output",
          "residual_norm", "output_sketch", "probes")
WIDE = ("column_sums", "residual_norm")  # stored in f32 whatever the dtype of the trace


def shape_of(name: str, header: Header, prompt: PromptInfo, queries: int) -> tuple[int | None, ...]:
    """Shape of the array `name`: [heads, rows, dim]; [heads, rows] for column_sums, [queries] for residual_norm,
    [heads, R, T, dv] for probes. None stands for a free number: that of columns of output_sketch."""
    num_tokens = prompt.num_tokens
    if name == "residual_norm":
        return (queries,)
    if name == "output_sketch":
        return header.num_query_heads, header.value_dim, None
    if name == "probes":
        assert prompt.probes is not None
        return header.num_query_heads, prompt.probes.count, prompt.probes.tokens, header.value_dim
    if name in ("keys", "keys_pre_rope"):
        return header.num_kv_heads, num_tokens, header.head_dim
    if name == "values":
        return header.num_kv_heads, num_tokens, header.value_dim
    if name in ("queries", "queries_pre_rope", "speculated_queries"):
        return header.num_query_heads, queries, header.head_dim
    if name == "attention_output":
        return header.num_query_heads, queries, header.value_dim
    return header.num_query_heads, num_tokens


def check_shape(shape: tuple[int, ...], expected: tuple[int | None, ...], where: str, required_by: str) -> None:
    same = len(shape) == len(expected) and all(b is None and 1 <= a <= MOST_COLUMNS or a == b
                                               for a, b in zip(shape, expected))
    wanted = ", ".join("columns" if size is None else str(size) for size in expected)
    require(same, where, f"has shape {list(shape)}; {required_by} [{wanted}].")


def is_number(text: str) -> bool:
    """Whether a text is a whole number of at most 18 digits without leading zeros."""
    return re.fullmatch("0|[1-9][0-9]{0,17}", text) is not None


def order_of(prompt_id: str) -> tuple[int, int, str]:
    """Sort key of prompt groups: numbers by value, then other names in alphabetical order."""
    return (0, int(prompt_id), "") if is_number(prompt_id) else (1, 0, prompt_id)


def check_name(name: str, where: str) -> None:
    """Raises Error for control characters, and for text that UTF-8 cannot represent."""
    require(not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in name), where,
            "has a control character; choose another name.")
    check_text(name, where)


def check_prompt_id(prompt_id: str, where: str) -> None:
    require(prompt_id not in ("", ".") and "/" not in prompt_id, where, f"'{prompt_id}' cannot name a prompt group.")
    check_name(prompt_id, f"{where}: the name of a group of /prompts")
    require(prompt_id != "all", where,
            "a prompt cannot be named 'all', as the rows over all prompts are; choose another name.")


def as_array(values: Any, where: str) -> np.ndarray:
    """`values` as an array of numpy."""
    require(not isinstance(values, np.ma.MaskedArray), where, "is a masked array; fill or remove what is masked.")
    try:
        if hasattr(values, "detach"):  # a tensor: on a device, with a gradient, of a type that numpy lacks
            values = values.detach().cpu().resolve_neg()
            values = values.float() if values.dtype.is_floating_point and values.itemsize < 4 else values
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError, RuntimeError) as failure:  # ragged lists, sparse tensors
        raise Error(f"{where}: is not an array of numbers ({failure}).") from None


def integers(values: Any, where: str) -> np.ndarray:
    """`values` as int64 [length]."""
    array = as_array(values, where)
    require(array.ndim == 1, where, f"has {array.ndim} dimensions; it must have one.")
    require(array.dtype.kind in "iu" or array.size == 0 and array.dtype.kind == "f", where,
            f"holds {array.dtype}; it must hold integers.")
    require(array.dtype != np.uint64 or array.size == 0 or array.max() < 2**63, where,
            "holds an integer beyond 63 bits.")
    return array.astype(np.int64)


def numbers(values: Any, where: str) -> np.ndarray:
    """`values` as an array of numbers that are no larger than those of a float64."""
    array = as_array(values, where)
    require(array.dtype.kind in "fiub" or np.can_cast(array.dtype, np.float32), where,
            f"holds {array.dtype}; it must hold numbers.")
    return array


def check_header(header: Header, where: str) -> None:
    check_fields(header, where)
    for name in ("model", "arch", "quantisation", "source_tool", "source_version", "created"):
        check_name(getattr(header, name), f"{where}: attribute '{name}'")
    for name in MOST:
        value, most = getattr(header, name), MOST[name]
        require(value >= 1, where, f"attribute '{name}' is {value}; it must be at least 1.")
        require(value <= most, where,
                f"attribute '{name}' is {value}, which no model has; it must be at most {most}.")
    require(header.num_query_heads % header.num_kv_heads == 0, where,
            f"num_query_heads = {header.num_query_heads} is not a multiple of num_kv_heads = {header.num_kv_heads}; "
            "every kv head must have the same number of query heads.")
    require(header.rope_type in ROPE_TYPES, where,
            f"attribute 'rope_type' is {header.rope_type[:100]!r}; it must be one of {', '.join(ROPE_TYPES)}.")
    require(header.rope_layout in ("half", "interleaved"), where,
            f"attribute 'rope_layout' is '{header.rope_layout[:100]}'; it must be 'half' or 'interleaved'.")
    require(header.dtype in ("f32", "f16", "bf16"), where,
            f"attribute 'dtype' is '{header.dtype[:100]}'; it must be f32, f16 or bf16.")


def check_caches(given: Any, num_layers: int, where: str) -> np.ndarray:
    """The numbers of the layers with a cache of their own."""
    layers: np.ndarray = integers(given, f"{where}/cache_layers")
    require(len(layers) > 0 and (np.diff(layers) > 0).all() and layers[0] >= 0 and layers[-1] < num_layers,
            f"{where}/cache_layers", f"must hold increasing numbers of layers below {num_layers}.")
    return layers


def context_of(prompt: PromptInfo) -> int:
    """The tokens of the context."""
    return prompt.num_tokens if prompt.prompt_tokens is None else prompt.prompt_tokens


def check_prompt(prompt: PromptInfo, where: str) -> None:
    check_fields(prompt, where)
    check_name(prompt.name, f"{where}: attribute 'name'")
    n, context = prompt.num_tokens, context_of(prompt)
    require(n >= 1, where, "it has no tokens; a prompt needs at least one.")
    require(n <= MOST_TOKENS, where, f"it has {n} tokens; a prompt has at most {MOST_TOKENS}.")
    require(1 <= context <= n, where,
            f"prompt_tokens is {prompt.prompt_tokens}; the context must end between 1 and num_tokens = {n}.")
    start = 0 if prompt.answer_start is None else prompt.answer_start
    end = n if prompt.answer_end is None else prompt.answer_end
    require(0 <= start <= end <= n, where,
            f"answer_start = {prompt.answer_start} and answer_end = {prompt.answer_end} do not lie in order in [0, "
            f"{n}].")
    if prompt.probes is not None:
        check_probes(prompt.probes, n - context, where)
    if prompt.spans is not None:
        check_spans(prompt.spans, context, where)


def check_spans(spans: list[Span], context: int, where: str) -> None:
    before = 0
    for number, one in enumerate(spans, 1):
        line = f"{where}/spans: line {number}"
        check_fields(of_kind(one, Span, line), line)
        check_name(one.name, line)
        require(0 < len(one.name.encode()) <= LONGEST_SPAN_NAME and "," not in one.name
                and before <= one.begin < one.end <= context, line, f"is '{one.begin} {one.end} {one.name}'; begin "
                f"and end are in order, in the context of {context} tokens and without overlap, and a name has 1 to "
                f"{LONGEST_SPAN_NAME} bytes and no comma.")
        before = one.end


def check_probes(probes: Probes, decoded: int, where: str) -> None:
    check_fields(probes, where)
    check_name(probes.evaluated_in, f"{where}: attribute 'evaluated_in'")
    require(1 <= probes.count <= MOST_PROBES, where,
            f"num_probes is {probes.count}; it must be from 1 to {MOST_PROBES}.")
    require(1 <= probes.tokens <= decoded, where,
            f"scored_tokens is {probes.tokens}; it must be from 1 to {decoded}, the number of tokens after the "
            "context.")


def check_anchors(anchors: Anchors, probes: Probes | None, num_layers: int, where: str) -> None:
    check_fields(anchors, where)
    require(probes is not None, where,
            "attribute 'num_probes' of the prompt is missing; anchors are of the scored tokens of probes.")
    check_name(anchors.version, f"{where}: attribute 'version'")
    require(1 <= len(anchors.list) <= MOST_ANCHORS, where,
            f"has {len(anchors.list)} configurations; it must have from 1 to {MOST_ANCHORS}.")
    seen = set()
    for number, anchor in enumerate(anchors.list):
        of_kind(anchor, Anchor, f"{where}: item {number}")
        check_anchor(anchor, number, num_layers, where)
        require((anchor.method, anchor.budget, anchor.layer) not in seen, where,
                f"line {number + 1} repeats '{anchor.method} {anchor.budget}' of an earlier one.")
        seen.add((anchor.method, anchor.budget, anchor.layer))


def check_anchor(anchor: Anchor, number: int, num_layers: int, where: str) -> None:
    line = f"{where}/configurations: line {number + 1}"
    check_fields(anchor, line)
    check_name(anchor.method + anchor.budget, line)
    require(anchor.method and anchor.budget and " " not in anchor.budget, line, "must be METHOD BUDGET.")
    require(anchor.layer is None or 0 <= anchor.layer < num_layers, f"{where}/layers",
            f"entry {number} is {anchor.layer}; it must be a layer below {num_layers}, or -1 for all.")
    for name, value in (("kl", anchor.kl), ("predicted", 0.0 if anchor.predicted is None else anchor.predicted)):
        require(math.isfinite(value) and value >= 0, f"{where}/{name}",
                f"entry {number} is {value:g}; a KL divergence is a finite number >= 0.")


def check_scored(prompt: PromptInfo, positions: np.ndarray, where: str) -> None:
    """The scored tokens of a layer with probes are among its queries."""
    probes, context = prompt.probes, context_of(prompt)
    assert probes is not None
    found = np.count_nonzero((positions >= context) & (positions < context + probes.tokens))
    require(found == probes.tokens, where,
            f"they are of the {probes.tokens} tokens from position {context} on, of which {found} have a query; record "
            "the queries of all scored tokens.")


def check_array(name: str, values: np.ndarray, where: str) -> None:
    """Raises Error for numbers that an array of a trace cannot hold."""
    require(np.isfinite(values).all(), where, "holds a number that is not finite; a trace must be finite.")
    require(name != "column_sums" or (values >= 0).all(), where,
            "holds a negative number; a sum of attention weights is not negative.")
    require(name != "residual_norm" or (values > 0).all(), where,
            "holds a number that is not above 0; the norm of a residual stream is.")
    require(name != "probe_scales" or (values >= 0).all(), where, "holds a negative number; a scale is not negative.")


def check_latent(header: Header, where: str) -> None:
    """Raises Error for the header of layers whose values are a part of the keys."""
    require(header.value_dim <= header.head_dim, where,
            f"its values are a part of its keys, but value_dim = {header.value_dim} is more than head_dim = "
            f"{header.head_dim}.")
    require(header.rope_type != "default", where,
            "its values are a part of its keys, and rope_type 'default' rotates all channels; write 'partial' where "
            "RoPE without scaling rotates those behind the values.")


def check_layer(layer: LayerInfo, num_tokens: int, where: str) -> None:
    check_fields(layer, where)
    require(layer.window >= 0, where, f"attribute 'window' is {layer.window}; use 0 for full attention.")
    require(math.isfinite(layer.scale) and layer.scale > 0, where,
            f"attribute 'scale' is {layer.scale}; it must be a finite number > 0.")
    for name in ("rope_theta", "softcap"):
        value = getattr(layer, name)
        require(math.isfinite(value) and value >= 0, where,
                f"attribute '{name}' is {value}; it must be a finite number >= 0.")
    positions = layer.query_positions
    require(len(positions) > 0, where, "no queries were recorded; dump at least one position.")
    for i in np.flatnonzero((positions < 0) | (positions >= num_tokens))[:1]:
        raise Error(f"{where}/query_positions: entry {i} is {positions[i]}, outside [0, {num_tokens}).")
    for i in np.flatnonzero(np.diff(positions) <= 0)[:1]:
        raise Error(f"{where}/query_positions: entry {i + 1} is {positions[i + 1]} after {positions[i]}; positions "
                    "must increase.")
    end = layer.column_sums_end
    require(end is None or 1 <= end <= num_tokens, f"{where}/column_sums",
            f"column_sums_end is {end}, outside [1, {num_tokens}].")
    require(math.isfinite(layer.sketch_misfit) and layer.sketch_misfit >= 0, f"{where}/output_sketch",
            f"sketch_misfit is {layer.sketch_misfit}; it must be a finite number >= 0.")
