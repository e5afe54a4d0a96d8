# SPDX-License-Identifier: Apache-2.0
"""Writes traces, one layer at a time; layers that were written take no memory."""

import datetime
import os
from typing import Any

import numpy as np

from .._error import Error, require
from .._kinds import FilePath, checked
from .access import OutputFile
from .hdf5 import (create_array, create_group, lost_row, narrowed, rounded, set_text, write_head, write_text,
                    write_whole)
from .schema import (ARRAYS, LATENT, MOST_PROMPTS, REQUIRED, TRACE_SCHEMA, WIDE, Anchors, Header, LayerInfo,
                      PromptInfo, check_anchors, check_array, check_caches, check_header, check_latent, check_layer,
                      check_prompt, check_prompt_id, check_scored, check_shape, integers, numbers, shape_of)


def _now() -> str:
    """The current time in ISO 8601, UTC; SOURCE_DATE_EPOCH sets it to a fixed time (reproducible-builds.org)."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    utc = datetime.timezone.utc
    try:
        time = datetime.datetime.fromtimestamp(int(epoch), utc) if epoch else datetime.datetime.now(utc)
    except (ValueError, OverflowError, OSError):
        raise Error(f"SOURCE_DATE_EPOCH is '{str(epoch)[:40]}'; it must be a number of seconds since 1970.") from None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


class TraceWriter(OutputFile):
    """A new trace, written in a with statement one layer at a time.

    Parameters
    ----------
    path : path
        The file, which is written whole or not at all.
    header : Header
        The model and its sizes. A `Trace` is one too, and its prompts and layers are infos.
    compress : bool
        Deflate the arrays.

    Raises
    ------
    Error
        For data that violates the schema.
    OSError
        If the disk is full; no file is then left.

    Examples
    --------
    >>> with kvbench.TraceWriter("trace.h5", kvbench.Header(model=..., ...)) as out:
    ...     out.prompt("0", kvbench.PromptInfo(name="genesis", tokens=ids))
    ...     info = kvbench.LayerInfo(scale=0.125, query_positions=positions)
    ...     out.layer("0", 3, info, keys=k, values=v, queries=q)
    """

    @checked
    def __init__(self, path: FilePath, header: Header, compress: bool = False) -> None:
        check_header(header, os.fspath(path))
        super().__init__(path, aligned=not compress)
        self._header, self._compress = header, compress
        self._prompts: dict[str, PromptInfo] = {}  # PromptInfo by group name
        self._layers: dict[str, set[int]] = {}  # layer numbers written, by group name
        self._latent: set[bool] = set()  # values_in_keys of the layers written
        try:
            self._describe()
        except BaseException:
            self.abandon()
            raise

    def _describe(self) -> None:
        attrs, header = self.file.attrs, self._header
        set_text(self.file, "kvbench_trace", TRACE_SCHEMA)
        for name in ("model", "arch", "quantisation", "source_tool", "source_version", "rope_type", "rope_layout",
                     "dtype"):
            if name == "model" or getattr(header, name):
                set_text(self.file, name, getattr(header, name))
        set_text(self.file, "created", header.created or _now())
        for name in ("num_layers", "num_query_heads", "num_kv_heads", "head_dim", "value_dim"):
            attrs[name] = np.int64(getattr(header, name))
        if header.cache_layers is not None:
            layers = check_caches(header.cache_layers, header.num_layers, self.path)
            write_whole(self.file, "cache_layers", layers.astype("<i4"))
        create_group(self.file, "prompts")

    @checked
    def prompt(self, id: str | int, info: PromptInfo) -> None:
        """Begins the prompt with the group name `id` (any name but '.', 'all' and names with '/')."""
        self.check_open()
        id = str(id)
        where = f"{self.path}: /prompts/{id}"
        check_prompt_id(id, self.path)
        require(id not in self._prompts, where, "was begun already; every prompt needs a unique name.")
        tokens = integers(info.tokens, f"{where}/tokens")
        require(np.array_equal(tokens, tokens.astype(np.int32)), f"{where}/tokens", "a token id exceeds 32 bits.")
        context = len(tokens) if info.prompt_tokens is None else info.prompt_tokens
        info = PromptInfo(name=info.name, tokens=tokens, prompt_tokens=context, answer_start=info.answer_start,
                          answer_end=info.answer_end, text=info.text, probes=info.probes, anchors=info.anchors,
                          spans=info.spans)
        check_prompt(info, where)
        group = create_group(self.file["prompts"], id)
        set_text(group, "name", info.name)
        for name in ("num_tokens", "prompt_tokens", "answer_start", "answer_end"):
            if getattr(info, name) is not None:
                group.attrs[name] = np.int64(getattr(info, name))
        if info.probes is not None:
            for name, value in (("num_probes", info.probes.count), ("scored_tokens", info.probes.tokens),
                                ("probe_seed", info.probes.seed)):
                group.attrs[name] = np.int64(value)
            if info.probes.evaluated_in:
                set_text(group, "evaluated_in", info.probes.evaluated_in)
        write_whole(group, "tokens", tokens.astype("<i4"))
        if info.text is not None:
            write_text(group, "text", info.text)
        if info.spans:
            write_text(group, "spans", "\n".join(f"{one.begin} {one.end} {one.name}" for one in info.spans))
        create_group(group, "layers")
        self._prompts[id], self._layers[id] = info, set()
        if info.anchors is not None:
            self.anchors(id, info.anchors)

    @checked
    def anchors(self, id: str | int, anchors: Anchors) -> None:
        """Writes the anchors of a prompt, which PromptInfo(anchors=...) gives at its beginning."""
        self.check_open()
        id = str(id)
        where = f"{self.path}: /prompts/{id}/anchors"
        require(id in self._prompts, where, f"prompt(\"{id}\", ...) must come before its anchors.")
        require("anchors" not in self.file["prompts"][id], where, "were written already.")
        check_anchors(anchors, self._prompts[id].probes, self._header.num_layers, where)
        group = create_group(self.file["prompts"][id], "anchors")
        set_text(group, "version", anchors.version)
        write_text(group, "configurations", "\n".join(f"{one.method} {one.budget}" for one in anchors.list))
        for name, kind, field in (("layers", "<i8", "layer"), ("kl", "<f8", "kl"), ("predicted", "<f8", "predicted")):
            values = [getattr(one, field) for one in anchors.list]
            write_whole(group, name, np.array([-1 if value is None else value for value in values], kind))

    @checked
    def layer(self, id: str | int, index: int, info: LayerInfo, **arrays: Any) -> None:
        """Writes all arrays of a layer: keys, values, queries and optional ones (docs/traces.md), each [heads, rows,
        dim]; column_sums [heads, n] with info.column_sums_end; residual_norm [m]; output_sketch [heads, dv, columns]
        with info.sketch_seed; probes [heads, R, T, dv] where the prompt has them. They are stored in the dtype of the
        header, column_sums and residual_norm in f32, probes in 8 bits with a scale for each row of dv numbers. With
        info.values_in_keys (MLA), there are no values."""
        self.check_open()
        id = str(id)
        where = f"{self.path}: /prompts/{id}/layers/{index}"
        require(id in self._prompts, where, f"prompt(\"{id}\", ...) must come before its layers.")
        require(0 <= index < self._header.num_layers, where,
                f"the model has num_layers = {self._header.num_layers}; there is no such layer.")
        require(self._header.cache_layers is None or index in self._header.cache_layers, where,
                "is not among the cache_layers of the header.")
        require(index not in self._layers[id], where, "was written already.")
        prompt = self._prompts[id]
        positions = integers(info.query_positions, f"{where}/query_positions")
        info = LayerInfo(scale=info.scale, query_positions=positions, window=info.window, rope_theta=info.rope_theta,
                         softcap=info.softcap, column_sums_end=info.column_sums_end, sketch_seed=info.sketch_seed,
                         sketch_misfit=info.sketch_misfit, values_in_keys=info.values_in_keys)
        check_layer(info, prompt.num_tokens, where)
        arrays = self._checked(where, prompt, info, arrays)
        layers = self.file["prompts"][id]["layers"]
        try:
            self._write_layer(create_group(layers, str(index)), info, arrays, where)
        except BaseException:
            del layers[str(index)]  # a layer is whole, or is none
            raise
        self._layers[id].add(index)

    def _write_layer(self, group: Any, info: LayerInfo, arrays: dict[str, Any], where: str) -> None:
        group.attrs["window"] = np.int64(info.window)
        for name in ("rope_theta", "scale", "softcap"):
            group.attrs[name] = np.float64(getattr(info, name))
        if info.values_in_keys:
            group.attrs["values_in_keys"] = np.int64(1)
        write_whole(group, "query_positions", info.query_positions.astype("<i8"))
        for name, values in arrays.items():
            self._write(group, name, values, where)
        if "column_sums" in arrays:
            group["column_sums"].attrs["column_sums_end"] = np.int64(info.column_sums_end or 0)
        if "output_sketch" in arrays:
            group["output_sketch"].attrs["seed"] = np.int64(info.sketch_seed or 0)
            group["output_sketch"].attrs["misfit"] = np.float64(info.sketch_misfit)

    def _checked(self, where: str, prompt: PromptInfo, info: LayerInfo, arrays: dict[str, Any]) -> dict[str,
                 np.ndarray]:
        """Returns the arrays in the order of the schema. Raises Error for wrong names or shapes."""
        for name in arrays:
            require(name in ARRAYS, where, f"'{name}' is not an array of the schema; these are {', '.join(ARRAYS)}.")
        required = LATENT if info.values_in_keys else REQUIRED
        for name in required:
            require(arrays.get(name) is not None, where, f"'{name}' is missing; a layer needs {', '.join(required)}.")
        if info.values_in_keys:
            check_latent(self._header, where)
            require("values" not in arrays, f"{where}/values",
                    "values_in_keys says that they are a part of the keys; leave them out.")
        latent = {info.values_in_keys, *self._latent}
        require(len(latent) == 1, where, "values_in_keys differs from that of the first layer; all layers have one.")
        self._latent = latent
        require(("column_sums" in arrays) == (info.column_sums_end is not None), where,
                "column_sums and column_sums_end belong together; give both or neither.")
        require(("output_sketch" in arrays) == (info.sketch_seed is not None), where,
                "output_sketch and sketch_seed belong together; give both or neither.")
        if "probes" in arrays:
            require(prompt.probes is not None, f"{where}/probes", "give PromptInfo(probes=Probes(...)) to prompt().")
            check_scored(prompt, info.query_positions, f"{where}/probes")
        found = {name: numbers(arrays[name], f"{where}/{name}") for name in ARRAYS if name in arrays}
        for name, values in found.items():
            expected = shape_of(name, self._header, prompt, len(info.query_positions))
            check_shape(values.shape, expected, f"{where}/{name}", "header, tokens and query_positions require")
        return found

    def _write(self, group: Any, name: str, values: np.ndarray, where: str) -> None:
        """Writes head by head, so that the conversion to a narrower type copies only one head."""
        if name == "probes":
            return self._write_probes(group, values, where)
        dtype = "f32" if name in WIDE else self._header.dtype
        dataset = create_array(group, name, values.shape, dtype, self._compress)
        for head, slab in enumerate(values if values.ndim > 1 else [values]):
            check_array(name, slab, f"{where}/{name}: head {head}")
            with np.errstate(over="ignore"):  # numbers that became infinite are refused below
                words = narrowed(slab, dtype)
            overflow = (words & 0x7F80 == 0x7F80) if dtype == "bf16" else ~np.isfinite(words)
            require(not overflow.any(), f"{where}/{name}",
                    f"head {head} holds a number too large for {dtype}; "
                    + ("scale the numbers down." if dtype == "f32" else "use dtype='f32'."))
            lost = lost_row(slab, dtype)
            require(lost is None, f"{where}/{name}", f"head {head}, row {lost}: all its numbers are so small that "
                    f"{dtype} loses digits; "
                    + ("scale the numbers up." if dtype == "f32" else "use dtype='f32'."))
            write_head(dataset, dtype, head, words)
            self.check_disk()

    def _write_probes(self, group: Any, values: np.ndarray, where: str) -> None:
        steps = create_array(group, "probes", values.shape, "i8", self._compress)
        scales = create_array(group, "probe_scales", values.shape[:3], "f32", self._compress)
        for head, slab in enumerate(values):
            check_array("probes", slab, f"{where}/probes: head {head}")
            for dataset, dtype, words in zip((steps, scales), ("i8", "f32"), rounded(slab)):
                write_head(dataset, dtype, head, words)
            self.check_disk()

    def _check_complete(self) -> None:
        require(self._prompts, self.path, "the trace holds no prompt; there is nothing to replay.")
        require(len(self._prompts) <= MOST_PROMPTS, self.path, f"the trace holds more than {MOST_PROMPTS} prompts.")
        for id, layers in self._layers.items():
            require(layers, f"{self.path}: /prompts/{id}", "no layers were recorded; write at least one.")
