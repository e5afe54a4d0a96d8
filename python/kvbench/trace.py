# SPDX-License-Identifier: Apache-2.0
"""Reads traces: a Trace holds prompts, a Prompt holds layers, and a Layer returns arrays as float32."""

import functools

from ._files import InputFile, sha256_of_file
from ._hdf5 import attribute, check_schema, float_type, read_slab, reading
from ._kinds import checked
from ._schema import (ARRAYS, MOST_PROMPTS, REQUIRED, TRACE_SCHEMA, Error, Header, LayerInfo, PromptInfo, check_array,
                      check_caches, check_header, check_layer, check_prompt, check_prompt_id, integers, is_number,
                      order_of, require, shape_of)


class Layer(LayerInfo):
    """One attention layer of one prompt. Arrays are read when they are requested."""

    def __init__(self, prompt, index, group):
        self.prompt, self.index, self._group = prompt, index, group
        self._where = f"{prompt.trace.path}: {group.name}"
        for name in (*REQUIRED, "query_positions"):
            require(name in group, self._where, f"dataset '{name}' is missing; see docs/traces.md.")
        sums = group.get("column_sums")
        super().__init__(window=attribute(group, self._where, "window", int),
                         rope_theta=attribute(group, self._where, "rope_theta", float),
                         scale=attribute(group, self._where, "scale", float),
                         softcap=attribute(group, self._where, "softcap", float),
                         query_positions=integers(group["query_positions"][()], f"{self._where}/query_positions"),
                         column_sums_end=None if sums is None else attribute(sums, sums.name, "column_sums_end", int))
        check_layer(self, prompt.num_tokens, self._where)
        for name in self.arrays:
            self._check_array(name)

    def _check_array(self, name):
        trace, dataset, where = self.prompt.trace, self._group[name], f"{self._where}/{name}"
        expected = shape_of(name, trace, self.prompt.num_tokens, len(self.query_positions))
        require(dataset.shape == expected, where,
                f"has shape {list(dataset.shape)}; the attributes require {list(expected)}.")
        dtype = self._dtype(name)
        require(dataset.id.get_type().equal(float_type(dtype)), where, f"its elements are not {dtype} (little-endian).")

    def _dtype(self, name):
        return "f32" if name == "column_sums" else self.prompt.trace.dtype

    @property
    def arrays(self):
        """Names of the arrays that the trace holds for this layer."""
        self.prompt.trace.check_open()
        return tuple(name for name in ARRAYS if name in self._group)

    @checked
    def array(self, name: str, head: int | None = None):
        """float32 array of one head, [rows, dim], or of all heads, [heads, rows, dim]; column_sums have no dim. Raises
        Error if the trace lacks the array, and for values that are not finite."""
        where = f"{self._where}/{name}"
        require(name in self.arrays, where, f"the trace does not hold this array; it has {', '.join(self.arrays)}.")
        dataset = self._group[name]
        require(head is None or 0 <= head < dataset.shape[0], where, f"there is no head {head} of {dataset.shape[0]}.")
        with reading(where):
            values = read_slab(dataset, self._dtype(name), head)
        check_array(name, values, where)
        return values

    @checked
    def keys(self, kv_head: int | None = None):
        """Keys [n, d] as attention used them."""
        return self.array("keys", kv_head)

    @checked
    def values(self, kv_head: int | None = None):
        """Values [n, dv]."""
        return self.array("values", kv_head)

    @checked
    def queries(self, head: int | None = None):
        """Queries [m, d] of a query head, at query_positions."""
        return self.array("queries", head)

    @checked
    def kv_head_of(self, head: int):
        """The kv head that a query head uses."""
        heads = self.prompt.trace.num_query_heads
        require(0 <= head < heads, self._where, f"there is no query head {head} of {heads}.")
        return head // self.prompt.trace.group

    @checked
    def query_heads_of(self, kv_head: int):
        """The query heads that use a kv head."""
        group, kv_heads = self.prompt.trace.group, self.prompt.trace.num_kv_heads
        require(0 <= kv_head < kv_heads, self._where, f"there is no kv head {kv_head} of {kv_heads}.")
        return range(kv_head * group, (kv_head + 1) * group)


class Prompt(PromptInfo):
    """One prompt; `layers` maps layer numbers to layers, in increasing order."""

    def __init__(self, trace, id, group):
        self.trace, self.id = trace, id
        check_prompt_id(id, trace.path)
        where = f"{trace.path}: {group.name}"
        for name in ("tokens", "layers"):
            require(name in group, where, f"'{name}' is missing; see docs/traces.md.")
        optional = {name: attribute(group, where, name, int)
                    for name in ("answer_start", "answer_end") if name in group.attrs}
        if "text" in group:
            optional["text"] = group["text"].asstr()[()]
        super().__init__(name=attribute(group, where, "name", str),
                         tokens=integers(group["tokens"][()], f"{where}/tokens"),
                         prompt_tokens=attribute(group, where, "prompt_tokens", int), **optional)
        claimed = attribute(group, where, "num_tokens", int)
        require(claimed == self.num_tokens, where,
                f"dataset 'tokens' has {self.num_tokens} entries, attribute num_tokens says {claimed}.")
        check_prompt(self, where)
        self.layers = {int(name): Layer(self, int(name), group["layers"][name])
                       for name in sorted(group["layers"], key=lambda name: self._layer_number(name, where))}
        require(self.layers, where, "no layers were recorded; dump at least one.")

    def _layer_number(self, name, where):
        if not (is_number(name) and int(name) < self.trace.num_layers):
            raise Error(f"{where}/layers: '{name}' is not a layer number below num_layers = {self.trace.num_layers}.")
        return int(name)


class Trace(InputFile, Header):
    """An open trace, checked when it is opened; `prompts` maps group names to prompts. The file is opened with the HDF5
    library without protection: run `kvbench info` first on files from strangers, which opens them in a child
    process."""

    @functools.cached_property
    def sha256(self):
        """SHA-256 of the bytes of the file, by which kvbench knows the trace; computed once."""
        return sha256_of_file(self.path)

    def _read(self):
        check_schema(self.file, self.path, "kvbench_trace", TRACE_SCHEMA)
        text = {name: attribute(self.file, self.path, name, str)
                for name in ("model", "rope_type", "rope_layout", "dtype")}
        origin = {name: attribute(self.file, self.path, name, str, "")
                  for name in ("arch", "quantisation", "source_tool", "source_version", "created")}
        sizes = {name: attribute(self.file, self.path, name, int)
                 for name in ("num_layers", "num_query_heads", "num_kv_heads", "head_dim", "value_dim")}
        caches = self.file["cache_layers"][()] if "cache_layers" in self.file else None
        caches = None if caches is None else check_caches(caches, sizes["num_layers"], self.path)
        Header.__init__(self, **text, **origin, **sizes, cache_layers=caches)
        check_header(self, self.path)
        prompts = self.file.get("prompts", {})
        self.prompts = {id: Prompt(self, id, prompts[id]) for id in sorted(prompts, key=order_of)}
        require(self.prompts, self.path, "the trace holds no prompt; there is nothing to replay.")
        require(len(self.prompts) <= MOST_PROMPTS, self.path, f"the trace holds more than {MOST_PROMPTS} prompts.")
