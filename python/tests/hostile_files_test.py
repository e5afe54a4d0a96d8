# SPDX-License-Identifier: Apache-2.0
"""Traces and raw results that claim, hide or inflate more than they hold: each is refused, within a limit on memory."""
import functools
import json
import subprocess
import sys
import zlib

from support import PACKAGE, kvbench
import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t
from traces import TraceTest, header

MORE = 2**28  # bytes of memory beside what the modules take
READ = """
import json, resource, sys
sys.path.insert(0, sys.argv[1])
import kvbench
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + int(sys.argv[2]),) * 2)

def read_trace(path):
    with kvbench.Trace(path) as trace:
        for layer in trace.prompts["0"].layers.values():
            for name in layer.arrays:
                layer.array(name)

def read_raw(path):
    with kvbench.Raw(path) as raw:
        for head in raw.heads:
            head.metric("rel_err"), head.output(), head.entries()
            if head.scored_tokens:
                head.probe_sums()

said = []
for kind, path in json.load(sys.stdin):
    try:
        (read_trace if kind == "trace" else read_raw)(path)
        said.append("")
    except kvbench.Error as refusal:
        said.append(f"Error: {refusal}")
    except BaseException as failure:
        said.append(f"{type(failure).__name__}: {failure}")
json.dump(said, sys.stdout)
"""
PROMPT, LAYER, CELL = "prompts/0", "prompts/0/layers/1", "heads/0/0"


@functools.cache
def packed(count):
    """So many zeros, compressed by the factor 1000."""
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(min(2**23, count - at))) for at in range(0, count, 2**23)) + packer.flush()


def inflating(group, name, count, dtype="<i8", chunk=2**20):
    """A dataset of so many zeros, compressed by the factor 1000."""
    group.pop(name, None)
    made = group.create_dataset(name, (count,), dtype, chunks=(chunk,), compression="gzip")
    for first in range(0, count, chunk):
        made.id.write_direct_chunk((first,), packed(chunk * made.dtype.itemsize))


def bomb(group, name, shape, dtype="<f4"):
    """A dataset of this shape whose only chunk inflates to 384 MiB, more than MORE."""
    group.pop(name, None)
    made = group.create_dataset(name, shape, dtype, chunks=shape, compression="gzip")
    made.id.write_direct_chunk((0,) * len(shape), packed(3 * 2**27))


def of_other_size(group, name, count):
    """A dataset whose only chunk inflates to so many bytes, in place of its own number."""
    shape, dtype = group[name].shape, group[name].dtype
    del group[name]
    made = group.create_dataset(name, shape, dtype, chunks=shape, compression="gzip")
    made.id.write_direct_chunk((0,) * len(shape), packed(count))


def replaced(group, name, **given):
    group.pop(name, None)
    return group.create_dataset(name, **given)


def twice_deflated(group, name):
    group.pop(name, None)
    plan = h5p.create(h5p.DATASET_CREATE)
    plan.set_chunk((5,))
    plan.set_deflate(4)
    plan.set_deflate(4)
    h5py.Dataset(h5d.create(group.id, name.encode(), h5t.STD_I64LE, h5s.create_simple((5,)), plan))[...] = 1


def linked(group, name, link):
    group.pop(name, None)
    group[name] = link


def virtual(group, name, path):
    group.pop(name, None)
    layout = h5py.VirtualLayout((5,), "<i8")
    layout[:] = h5py.VirtualSource(path, "x", (5,))
    group.create_virtual_dataset(name, layout)


def many_names(file):
    """100 prompts that are one."""
    for name in range(1, 100):
        file["prompts"][str(name)] = file[PROMPT]


def claimed(file, count):
    inflating(file[PROMPT], "tokens", count)
    file[PROMPT].attrs["num_tokens"] = count


def traces(other):
    """What a trace says when it is read, and what was done to it."""
    return (
        ("tokens: is compressed, and takes 536870912 bytes", lambda f: inflating(f[PROMPT], "tokens", 2**26)),
        ("has 1048576 entries.*num_tokens says 5", lambda f: inflating(f[PROMPT], "tokens", 2**20)),
        ("at most 16777216", lambda f: claimed(f, 2**25)),
        ("tokens: is compressed, and takes 134217728 bytes", lambda f: claimed(f, 2**24)),
        ("more than a file of .* can hold",
         lambda f: replaced(f[PROMPT], "tokens", shape=(2**50,), dtype="i8", chunks=(2**20,))),
        ("tokens.*has 2 dimensions", lambda f: replaced(f[PROMPT], "tokens", data=np.zeros((5, 1), int))),
        ("tokens.*integers", lambda f: replaced(f[PROMPT], "tokens", data=np.zeros(5))),
        ("tokens.*integers", lambda f: replaced(f[PROMPT], "tokens", data=np.zeros(5, [("a", "i8"), ("b", "V999")]))),
        ("tokens.*integers", lambda f: replaced(f[PROMPT], "tokens", data=np.arange(5),
                                                dtype=h5py.enum_dtype({"a": 0, "b": 4}, "i8"))),
        ("tokens.*does not inflate to its 20 bytes", lambda f: of_other_size(f[PROMPT], "tokens", 48)),
        ("keys.*does not inflate to its 120 bytes", lambda f: of_other_size(f[LAYER], "keys", 60)),
        ("keys.*does not inflate to its 120 bytes", lambda f: of_other_size(f[LAYER], "keys", 2**22)),
        ("window' must be an integer", lambda f: f[LAYER].attrs.__setitem__("window", True)),
        ("rope_type' is 'x{100}';", lambda f: f.attrs.__setitem__("rope_type", "x" * 60000)),
        ("tokens.*not a dataset", lambda f: (f[PROMPT].pop("tokens"), f[PROMPT].create_group("tokens"))),
        ("tokens.*filter 32000", lambda f: replaced(f[PROMPT], "tokens", data=np.arange(5), compression="lzf")),
        ("tokens.*filter 1, 1;", lambda f: twice_deflated(f[PROMPT], "tokens")),
        ("tokens.*unsupported storage", lambda f: compact(f[PROMPT], "tokens")),
        ("tokens.*is a link", lambda f: linked(f[PROMPT], "tokens", h5py.SoftLink("/prompts/0/layers"))),
        ("tokens.*is a link", lambda f: linked(f[PROMPT], "tokens", h5py.ExternalLink(other, "x"))),
        ("tokens.*in another file", lambda f: virtual(f[PROMPT], "tokens", other)),
        ("tokens.*in another file", lambda f: replaced(f[PROMPT], "tokens", shape=(5,), dtype="i8",
                                                       external=[(other, 0, 40)])),
        ("prompts/1.*is a link", lambda f: linked(f["prompts"], "1", h5py.SoftLink("/prompts/0"))),
        ("layers.*is a link", lambda f: linked(f[PROMPT], "layers", h5py.ExternalLink(other, "/"))),
        ("layers/1.*not a group", lambda f: replaced(f[PROMPT], "layers/1", data=np.zeros(5))),
        ("prompts/[0-9]+/.*: the datasets up to this one claim more bytes", many_names),
        ("query_positions.*1048576 entries.*num_tokens = 5", lambda f: inflating(f[LAYER], "query_positions", 2**20)),
        ("cache_layers.*1048576 entries.*num_layers says 4", lambda f: inflating(f, "cache_layers", 2**20)),
        ("num_tokens' must be a single value", lambda f: f[PROMPT].attrs.__setitem__("num_tokens", np.full(7000, 5))),
        ("name' must be a single value",
         lambda f: f[PROMPT].attrs.create("name", ["x"] * 1000, dtype=h5py.string_dtype())),
        ("text.*takes 134217728 bytes", lambda f: inflating(f[PROMPT], "text", 1, f"S{2**27}", 1)),
        ("text.*must be one string", lambda f: replaced(f[PROMPT], "text", data=["x"], dtype=h5py.string_dtype())),
        ("text.*must be one string", lambda f: replaced(f[PROMPT], "text", data=7)),
        ("keys.*does not inflate to its 120 bytes", lambda f: bomb(f[LAYER], "keys", (2, 5, 3))),
        ("keys.*never written", lambda f: replaced(f[LAYER], "keys", shape=(2, 5, 3), dtype="<f4")),
        ("keys.*0 of 1 chunks", lambda f: replaced(f[LAYER], "keys", shape=(2, 5, 3), dtype="<f4", chunks=(2, 5, 3))),
        ("keys.*can hold", lambda f: replaced(f[LAYER], "keys", shape=(2, 2**40, 3), dtype="<f4")),
        ("keys.*chunks hold 4294967296", lambda f: replaced(f[LAYER], "keys", shape=(2, 5, 3), dtype="<f4",
                                                            maxshape=(None,) * 3, chunks=(2**10, 2**10, 2**10))),
        ("output_sketch", lambda f: replaced(f[LAYER], "output_sketch", shape=(4, 2, 2**40), dtype="<f4")),
        ("column_sums", lambda f: replaced(f[LAYER], "column_sums", shape=(4, 2**40), dtype="<f4")))


def compact(group, name):
    group.pop(name, None)
    plan = h5p.create(h5p.DATASET_CREATE)
    plan.set_layout(h5d.COMPACT)
    h5py.Dataset(h5d.create(group.id, name.encode(), h5t.STD_I64LE, h5s.create_simple((5,)), plan))[...] = 1


def raws(other):
    def set_sums(file):
        file["heads/0"].attrs["scored_tokens"] = 4
        inflating(file[CELL], "probe_sums", 2**26, "<f8")
    return (
        ("positions: is compressed", lambda f: inflating(f["heads/0"], "positions", 2**26, "<i4")),
        ("positions.*integers", lambda f: replaced(f["heads/0"], "positions", data=np.zeros(64))),
        (r"metrics.*shape \[2, 64, 1\]", lambda f: replaced(f[CELL], "metrics", data=np.zeros((2, 64, 1), "<f4"))),
        ("metrics.*must hold float32",
         lambda f: replaced(f[CELL], "metrics", data=f[CELL]["metrics"][()].astype("f8"))),
        ("metrics.*does not inflate", lambda f: bomb(f[CELL], "metrics", f[CELL]["metrics"].shape)),
        ("output.*shape", lambda f: inflating(f[CELL], "output", 2**20, "<f4")),
        ("output.*takes 4294967296|output.*can hold", lambda f: replaced(
            f[CELL], "output", shape=(2, 64, 2**23), dtype="<f4", chunks=(1, 1, 2**20), compression="gzip")),
        ("output.*does not inflate", lambda f: bomb(f[CELL], "output", (2, 64, 12))),
        ("probe_sums.*takes 536870912", set_sums),
        ("ids.*shape", lambda f: inflating(f[CELL]["entries/0"], "ids", 2**20, "<i4")),
        ("ids.*must hold int32", lambda f: replaced(f[CELL]["entries/0"], "ids", data=np.zeros((1, 4)))),
        ("weight_num.*shape", lambda f: replaced(f[CELL]["entries/0"], "weight_num", data=np.zeros((1, 1), "<f4"))),
        ("entries.*is a link", lambda f: linked(f[CELL], "entries", h5py.ExternalLink(other, "/"))),
        ("heads/0.*is a link", lambda f: linked(f["heads"], "0", h5py.SoftLink("/cells/0"))),
        ("heads/0/0.*not a group", lambda f: replaced(f["heads/0"], "0", data=1)))


class HostileFiles(TraceTest):
    def spoiled(self, whole, table):
        """(path, words) of a copy of the file for each line of a table."""
        for number, (words, spoil) in enumerate(table):
            path = self.path(f"{number}-{whole.rpartition('/')[2]}")
            with open(path, "wb") as to, open(whole, "rb") as source:
                to.write(source.read())
            with h5py.File(path, "r+") as file:
                spoil(file)
            yield path, words

    def check(self, kind, whole, table):
        cases = [(whole, ""), *self.spoiled(whole, table)]
        done = subprocess.run([sys.executable, "-c", READ, str(PACKAGE), str(MORE)], text=True, capture_output=True,
                              input=json.dumps([(kind, path) for path, _ in cases]))
        self.assertEqual(done.returncode, 0, done.stderr)
        for (path, words), said in zip(cases, json.loads(done.stdout), strict=True):
            with self.subTest(path=path, words=words):
                self.assertRegex(said, f"(?s)^Error: .*{words}" if words else "^$")

    def other(self):
        with h5py.File(self.path("other.h5"), "w") as file:
            file["x"] = np.arange(5)
        return self.path("other.h5")

    def test_traces(self):
        self.check("trace", self.write_small("small.h5", header()), traces(self.other()))

    def test_raw_results(self):
        self.replay(self.synth("t.h5"), "-m", "sink", "--protocol", "prefill", "--layers", "0", "--raw",
                    self.path("raw.h5"), "--raw-outputs")
        self.check("raw", self.path("raw.h5"), raws(self.other()))

    def test_the_limit_is_one(self):
        """The same child reports memory that is not there, so that the tables can fail."""
        code = READ.split("said = []")[0] + "bytes(2**30)"
        done = subprocess.run([sys.executable, "-c", code, str(PACKAGE), str(MORE)], text=True, capture_output=True)
        self.assertIn("MemoryError", done.stderr)
