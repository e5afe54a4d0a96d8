# SPDX-License-Identifier: Apache-2.0
"""What Python neither writes into a trace nor reads from one."""
import fcntl
import os
import struct

from support import kvbench
import h5py
import numpy as np
from traces import TraceTest, header, small


class Refusals(TraceTest):
    def test_what_breaks_the_schema_is_not_written(self):
        nan = np.ones((2, 5, 3))
        nan[1, 2, 0] = np.nan
        for words, changes in (
                (["/prompts/0/layers/1/keys", r"\[2, 5, 4\]", r"\[2, 5, 3\]"], {"keys": np.ones((2, 5, 4))}),
                (["/queries", r"\[2, 2, 3\]", r"\[4, 2, 3\]"], {"queries": np.ones((2, 2, 3))}),
                (["/values", r"\[2, 5\]"], {"values": np.ones((2, 5))}),
                (["/keys", "head 1", "finite"], {"keys": nan}),
                (["values", "missing"], {"values": None}),
                (["'key'", "keys_pre_rope"], {"key": np.ones(1)}),
                (["column_sums_end"], {"column_sums": np.ones((4, 5))}),
                (["column_sums", "head 3", "negative"],
                 {"column_sums": np.array([1, 1, 1, -1])[:, None] * np.ones((4, 5)), "column_sums_end": 5}),
                (["query_positions", "entry 1", "increase"], {"query_positions": [4, 4]}),
                (["query_positions", "entry 1 is 5", r"\[0, 5\)"], {"query_positions": [4, 5]}),
                (["query_positions", "integers"], {"query_positions": [3.0, 4.0]}),
                (["scale", "> 0"], {"scale": 0}),
                (["window"], {"window": -1}),
                (["num_layers = 4"], {"layer": 4})):
            with (self.subTest(words=words), self.refuses("t.h5", *words),
                  kvbench.TraceWriter(self.path("t.h5"), header()) as out):
                small(out, **changes)
        with (self.refuses("too large for f16", "f32"),
              kvbench.TraceWriter(self.path("t.h5"), header(dtype="f16")) as out):
            small(out, keys=np.full((2, 5, 3), 1e6))
        # From 2^-17 = 7.6294e-6 on f16 has the eight digits of bf16.
        for dtype, lost in ("f16", 7.6e-6), ("bf16", 1e-39), ("f32", 1e-50):
            keys = np.ones((2, 5, 3))
            keys[1, 3] = 0, -lost, lost / 8
            with (self.refuses(f"keys: head 1, row 3: .*small that {dtype} loses"),
                  kvbench.TraceWriter(self.path("t.h5"), header(dtype=dtype)) as out):
                small(out, keys=keys)
        with self.refuses("already"), kvbench.TraceWriter(self.path("t.h5"), header()) as out:
            small(out)
            small(out)
        for words, changes in ((["not a multiple"], {"num_kv_heads": 3}), (["rope_layout"], {"rope_layout": "x"}),
                               (["bf16"], {"dtype": "f64"}),
                               (["model", "control character"], {"model": "a\0b"}),
                               (["arch", "not UTF-8"], {"arch": "\udcff"}),
                               (["rope_type", "one of default"], {"rope_type": "defaulu"}),
                               (["num_layers", "at most 65535"], {"num_layers": 65536}),
                               (["head_dim", "at most 16384"], {"head_dim": 16385})):
            with self.refuses(*words):
                kvbench.TraceWriter(self.path("t.h5"), header(**changes))
        with self.refuses("none/t.h5", "no such folder"):
            kvbench.TraceWriter(self.path("none/t.h5"), header())
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_is_no_trace_is_refused(self):
        with self.refuses("none.h5", "no such file"):
            kvbench.Trace(self.path("none.h5"))
        with open(self.path("t.h5"), "wb") as file:
            file.write(struct.pack("100x"))
        with self.refuses("t.h5", "HDF5"):
            kvbench.Trace(self.path("t.h5"))

        def without(name):
            return lambda file: file["prompts/0/layers/1"].__delitem__(name)

        def turned(file):
            layer = file["prompts/0/layers/1"]
            keys = layer["keys"][()]
            del layer["keys"]
            layer["keys"] = keys.transpose(1, 0, 2)
        for words, spoil in (
                (["kvbench_trace", "not a file of this kind"], lambda f: f.attrs.__delitem__("kvbench_trace")),
                (["kvbench_trace 2.0", "newer"], lambda f: f.attrs.__setitem__("kvbench_trace", "2.0")),
                (["head_dim", "missing"], lambda f: f.attrs.__delitem__("head_dim")),
                (["head_dim", "integer"], lambda f: f.attrs.__setitem__("head_dim", "3")),
                (["keys", "missing"], without("keys")),
                (["keys", r"\[5, 2, 3\]", r"\[2, 5, 3\]"], turned),
                (["keys", "not f16"], lambda f: f.attrs.__setitem__("dtype", "f16")),
                (["num_tokens says 6"], lambda f: f["prompts/0"].attrs.__setitem__("num_tokens", 6))):
            self.write_small()
            with h5py.File(self.path("t.h5"), "r+") as file:
                spoil(file)
            with self.subTest(words=words), self.refuses("t.h5", *words):
                kvbench.Trace(self.path("t.h5"))

    def test_negative_column_sums_are_refused(self):
        self.write_small(column_sums=np.ones((4, 5)), column_sums_end=5)
        with h5py.File(self.path("t.h5"), "r+") as file:
            file["prompts/0/layers/1/column_sums"][2, 3] = -1
        with kvbench.Trace(self.path("t.h5")) as trace, self.refuses("t.h5", "column_sums", "negative"):
            trace.prompts["0"].layers[1].array("column_sums", 2)

    def test_names_of_prompts(self):
        for id, name, *words in (("all", "x", "cannot be named 'all'"), ("a\nb", "x", "control character"),
                                 ("0", "a\tb", "control character")):
            with self.refuses(*words), kvbench.TraceWriter(self.path("t.h5"), header()) as out:
                out.prompt(id, kvbench.PromptInfo(name=name, tokens=[1, 2]))
        self.write_small()
        with h5py.File(self.path("t.h5"), "r+") as file:
            file["prompts"].move("0", "all")
        with self.refuses("cannot be named 'all'"):
            kvbench.Trace(self.path("t.h5"))

    def test_strings_are_part_of_the_metadata_that_have_checksums(self):
        self.write_small(header=header(rope_type="default"))
        with open(self.path("t.h5"), "rb") as file:
            data = bytearray(file.read())
        data[data.index(b"default") + 2] ^= 1
        with open(self.path("t.h5"), "wb") as file:
            file.write(data)
        with self.refuses("t.h5", "checksum"):
            kvbench.Trace(self.path("t.h5"))

    def test_a_trace_that_another_program_writes(self):
        self.write_small()
        with open(self.path("t.h5"), "rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            with self.refuses("another program"):
                kvbench.Trace(self.path("t.h5"))

    def test_a_larger_second_number_and_more_members_are_read(self):
        self.write_small()
        with h5py.File(self.path("t.h5"), "r+") as file:
            file.attrs["kvbench_trace"], file.attrs["more"] = "1.7", 3
        with kvbench.Trace(self.path("t.h5")) as trace:
            layer = trace.prompts["0"].layers[1]
            with self.refuses("column_sums", "does not hold"):
                layer.array("column_sums")
            with self.refuses("keys", "no head 2 of 2"):
                layer.keys(2)
