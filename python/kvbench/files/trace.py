# SPDX-License-Identifier: Apache-2.0
"""Reads traces: a Trace holds prompts, a Prompt holds layers, and a Layer returns arrays as float32."""

import functools
from typing import Any

import numpy as np

from .._error import Error, require
from .._kinds import checked
from .access import InputFile, sha256_of_file
from .hdf5 import attribute, check_schema, element_type, read_slab, reading, text_of
from .schema import (ARRAYS, LATENT, MOST_PROMPTS, MOST_TOKENS, REQUIRED, TRACE_SCHEMA, WIDE, Anchor, Anchors, Header,
                      LayerInfo, Probes, PromptInfo, Span, check_anchors, check_array, check_caches, check_header,
                      check_latent, check_layer, check_prompt, check_prompt_id, check_scored, check_shape, integers,
                      is_number, order_of, shape_of)
from .storage import Storage, check_inflated


class Layer(LayerInfo):
    """One attention layer of one prompt. Arrays are read when they are requested."""

    def __init__(self, prompt: "Prompt", index: int, group: Any) -> None:
        self.prompt, self.index, self._group = prompt, index, group
        self._where = f"{prompt.trace.path}: {group.name}"
        self._storage = prompt.trace.storage
        latent = attribute(group, self._where, "values_in_keys", int, 0)
        require(latent in (0, 1), self._where, f"attribute 'values_in_keys' is {latent}; it must be 0 or 1.")
        if latent:
            check_latent(prompt.trace, self._where)
        for name in (*(LATENT if latent else REQUIRED), "query_positions"):
            require(name in group, self._where, f"dataset '{name}' is missing; see docs/traces.md.")
        sums, sketch = (self._dataset(name) if name in group else None for name in ("column_sums", "output_sketch"))
        where = f"{self._where}/output_sketch"
        sketched: dict[str, Any] = {}
        if sketch is not None:
            sketched = {"sketch_seed": attribute(sketch, where, "seed", int),
                        "sketch_misfit": attribute(sketch, where, "misfit", float, 0.0)}
        super().__init__(window=attribute(group, self._where, "window", int),
                         rope_theta=attribute(group, self._where, "rope_theta", float),
                         scale=attribute(group, self._where, "scale", float),
                         softcap=attribute(group, self._where, "softcap", float), values_in_keys=bool(latent),
                         query_positions=self._storage.integers(group, self._where, "query_positions",
                                                                prompt.num_tokens, "the prompt has num_tokens ="),
                         column_sums_end=None if sums is None else
                         attribute(sums, f"{self._where}/column_sums", "column_sums_end", int), **sketched)
        check_layer(self, prompt.num_tokens, self._where)
        for name in self.arrays:
            self._check_array(name)

    def _check_array(self, name: str) -> None:
        where, prompt = f"{self._where}/{name}", self.prompt
        if name == "probes":
            require(prompt.probes is not None, where,
                    "the prompt lacks the attribute 'num_probes'; see docs/traces.md.")
            check_scored(prompt, self.query_positions, where)
            require("probe_scales" in self._group, where, "the dataset 'probe_scales' is missing.")
        expected = shape_of(name, prompt.trace, prompt, len(self.query_positions))
        self._check_dataset(name, "i8" if name == "probes" else self._dtype(name), expected)
        if name == "probes":
            self._check_dataset("probe_scales", "f32", expected[:3])

    def _dataset(self, name: str) -> Any:
        return self._storage.dataset(self._group, self._where, name, part=True)

    def _check_dataset(self, name: str, dtype: str, expected: tuple[int | None, ...]) -> None:
        dataset, where = self._dataset(name), f"{self._where}/{name}"
        check_shape(dataset.shape, expected, where, "the attributes require")
        require(dataset.id.get_type().equal(element_type(dtype)), where,
                f"its elements are not {dtype} (little-endian).")

    def _dtype(self, name: str) -> str:
        return "f32" if name in WIDE else self.prompt.trace.dtype

    @property
    def arrays(self) -> tuple[str, ...]:
        """Names of the arrays that the trace holds for this layer."""
        self.prompt.trace.check_open()
        return tuple(name for name in ARRAYS
                     if name in self._group and not (name == "values" and self.values_in_keys))

    @checked
    def array(self, name: str, head: int | None = None) -> np.ndarray:
        """float32 array of one head, [rows, dim], or of all heads, [heads, rows, dim]; column_sums have no dim,
        residual_norm is [m], and probes of a head are [R, T, dv]. Raises Error if the trace lacks the array, and for
        values that are not finite. Values that are a part of the keys are taken from these."""
        if name == "values" and self.values_in_keys:
            return self.array("keys", head)[..., :self.prompt.trace.value_dim]
        where = f"{self._where}/{name}"
        require(name in self.arrays, where, f"the trace does not hold this array; it has {', '.join(self.arrays)}.")
        dataset = self._dataset(name)
        heads = 0 if name == "residual_norm" else dataset.shape[0]
        require(head is None or 0 <= head < heads, where, f"there is no head {head} of {heads}.")
        if name == "probes":
            steps, scales = self._read("probes", "i8", head), self._read("probe_scales", "f32", head)
            return np.asarray(steps * scales[..., None])
        return self._read(name, self._dtype(name), head)

    def _read(self, name: str, dtype: str, head: int | None) -> np.ndarray:
        where, dataset = f"{self._where}/{name}", self._dataset(name)
        with reading(where):
            check_inflated(dataset, where, head)
            values = read_slab(dataset, dtype, head)
        check_array(name, values, where)
        return values

    @checked
    def keys(self, kv_head: int | None = None) -> np.ndarray:
        """Keys [n, d] as attention used them."""
        return self.array("keys", kv_head)

    @checked
    def values(self, kv_head: int | None = None) -> np.ndarray:
        """Values [n, dv]."""
        return self.array("values", kv_head)

    @checked
    def queries(self, head: int | None = None) -> np.ndarray:
        """Queries [m, d] of a query head, at query_positions."""
        return self.array("queries", head)

    @checked
    def kv_head_of(self, head: int) -> int:
        """The kv head that a query head uses."""
        heads = self.prompt.trace.num_query_heads
        require(0 <= head < heads, self._where, f"there is no query head {head} of {heads}.")
        return head // self.prompt.trace.group

    @checked
    def query_heads_of(self, kv_head: int) -> range:
        """The query heads that use a kv head."""
        group, kv_heads = self.prompt.trace.group, self.prompt.trace.num_kv_heads
        require(0 <= kv_head < kv_heads, self._where, f"there is no kv head {kv_head} of {kv_heads}.")
        return range(kv_head * group, (kv_head + 1) * group)


def read_anchors(storage: Storage, prompt: Any, where: str) -> Anchors:
    """The Anchors of a prompt, whose group this is."""
    group, where = storage.group(prompt, where, "anchors"), f"{where}/anchors"
    for name in ("configurations", "layers", "kl", "predicted"):
        require(name in group, where, f"'{name}' is missing; see docs/traces.md.")
    lines = text_of(storage.dataset(group, where, "configurations"), f"{where}/configurations").split("\n")
    columns = {"layers": integers(_whole(storage, group, where, "layers"), f"{where}/layers")}
    for name in ("kl", "predicted"):
        require(group[name].dtype == np.dtype("<f8"), f"{where}/{name}", "its elements are not f64 (little-endian).")
        columns[name] = _whole(storage, group, where, name)
    for name, values in columns.items():
        require(np.shape(values) == (len(lines),), f"{where}/{name}", f"has the shape {list(np.shape(values))}, but "
                f"dataset 'configurations' has {len(lines)} lines.")
    found = []
    for number, (line, layer, kl, predicted) in enumerate(zip(lines, *columns.values())):
        method, space, budget = line.rpartition(" ")
        require(space, f"{where}/configurations: line {number + 1}", f"is {ascii(line[:100])}; it must be METHOD "
                "BUDGET.")
        found.append(Anchor(method=method, budget=budget, layer=None if layer == -1 else int(layer), kl=float(kl),
                            predicted=None if predicted == -1 else float(predicted)))
    return Anchors(version=attribute(group, where, "version", str), list=found)


def parsed_spans(text: str, where: str) -> list[Span]:
    """Those of lines "BEGIN END NAME"."""
    spans = []
    for number, line in enumerate(text.split("\n"), 1):
        begin, end, name = (*line.split(" ", 2), "", "")[:3]
        require(is_number(begin) and is_number(end), where, f"line {number} is not BEGIN END NAME.")
        spans.append(Span(name, int(begin), int(end)))
    return spans


def _whole(storage: Storage, group: Any, where: str, name: str) -> np.ndarray:
    return storage.whole(storage.dataset(group, where, name), f"{where}/{name}")


class Prompt(PromptInfo):
    """One prompt; `layers` maps layer numbers to layers, in increasing order."""

    def __init__(self, trace: "Trace", id: str, group: Any) -> None:
        self.trace, self.id = trace, id
        check_prompt_id(id, trace.path)
        where, storage = f"{trace.path}: {group.name}", trace.storage
        claimed = attribute(group, where, "num_tokens", int)
        require(claimed <= MOST_TOKENS, where, f"it has {claimed} tokens; a prompt has at most {MOST_TOKENS}.")
        optional: dict[str, Any] = {name: attribute(group, where, name, int)
                                    for name in ("answer_start", "answer_end") if name in group.attrs}
        if "text" in group:
            optional["text"] = storage.text(group, where, "text")
        if "num_probes" in group.attrs:
            optional["probes"] = Probes(count=attribute(group, where, "num_probes", int),
                                        tokens=attribute(group, where, "scored_tokens", int),
                                        seed=attribute(group, where, "probe_seed", int),
                                        evaluated_in=attribute(group, where, "evaluated_in", str, ""))
        if "anchors" in group:
            optional["anchors"] = read_anchors(storage, group, where)
        if "spans" in group:
            optional["spans"] = parsed_spans(storage.text(group, where, "spans"), f"{where}/spans")
        super().__init__(name=attribute(group, where, "name", str),
                         tokens=storage.integers(group, where, "tokens", claimed, "attribute num_tokens says"),
                         prompt_tokens=attribute(group, where, "prompt_tokens", int), **optional)
        require(claimed == self.num_tokens, where,
                f"dataset 'tokens' has {self.num_tokens} entries, attribute num_tokens says {claimed}.")
        check_prompt(self, where)
        if self.anchors is not None:
            check_anchors(self.anchors, self.probes, trace.num_layers, f"{where}/anchors")
        layers = storage.group(group, where, "layers")
        self.layers: dict[int, Layer] = {
            int(name): Layer(self, int(name), storage.group(layers, f"{where}/layers", name))
            for name in sorted(layers, key=lambda name: self._layer_number(name, where))}
        require(self.layers, where, "no layers were recorded; dump at least one.")

    def _layer_number(self, name: str, where: str) -> int:
        if not (is_number(name) and int(name) < self.trace.num_layers):
            raise Error(f"{where}/layers: '{name}' is not a layer number below num_layers = {self.trace.num_layers}.")
        return int(name)


class Trace(InputFile, Header):
    """An open trace, checked when it is opened. It is a `Header` too.

    The file is opened with the HDF5 library without protection: run ``kvbench info`` first on files from strangers,
    which opens them in a child process.

    Parameters
    ----------
    path : path
        The file.

    Attributes
    ----------
    prompts : dict of Prompt
        By the names of their groups; `Prompt.layers` are by number.

    Raises
    ------
    Error
        If there is no such file, or it violates its schema.
    """

    prompts: dict[str, Prompt]

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 of the bytes of the file, by which kvbench knows the trace; computed once."""
        return sha256_of_file(self.path)

    def _read(self) -> None:
        check_schema(self.file, self.path, "kvbench_trace", TRACE_SCHEMA)
        text: dict[str, Any] = {name: attribute(self.file, self.path, name, str)
                                for name in ("model", "rope_type", "rope_layout", "dtype")}
        origin: dict[str, Any] = {name: attribute(self.file, self.path, name, str, "")
                                  for name in ("arch", "quantisation", "source_tool", "source_version", "created")}
        sizes: dict[str, Any] = {name: attribute(self.file, self.path, name, int)
                                 for name in ("num_layers", "num_query_heads", "num_kv_heads", "head_dim", "value_dim")}
        caches = None
        if "cache_layers" in self.file:
            caches = check_caches(self.storage.integers(self.file, self.path, "cache_layers", sizes["num_layers"],
                                                        "attribute num_layers says"), sizes["num_layers"], self.path)
        Header.__init__(self, **text, **origin, **sizes, cache_layers=caches)
        check_header(self, self.path)
        prompts = self.storage.group(self.file, self.path, "prompts") if "prompts" in self.file else {}
        require(len(prompts) > 0, self.path, "the trace holds no prompt; there is nothing to replay.")
        require(len(prompts) <= MOST_PROMPTS, self.path, f"the trace holds more than {MOST_PROMPTS} prompts.")
        self.prompts = {id: Prompt(self, id, self.storage.group(prompts, f"{self.path}: /prompts", id))
                        for id in sorted(prompts, key=order_of)}
