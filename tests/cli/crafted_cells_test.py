# SPDX-License-Identifier: Apache-2.0
"""Files of cells in which one value was changed, with the right checksums: kvbench refuses them with a sentence that
names the file, or makes the tables of the unchanged file. It never crashes, hangs or shows another figure."""
import copy
import math
import os
import resource
import struct

from cells_format import CELLS, LAYOUT, MEASURES, Frame, Raw, decode, encode, read, write, TYPES
from support import SweepTest, main, run

CONFIG = """
name = "small"
[defaults]
traces = "t.h5"
layers = 0
[[run]]
name = "a"
methods = ["uniform", "sink"]
budgets = [32, "25%"]
seeds = 2
[[run]]
name = "b"
methods = "exact"
measure = "similarity-by-distance"
[[published]]
claim = "the sink is better"
metric = "rel_err_mean"
relations = [{ run = "a", a = "sink", is = "lower", b = "uniform" }]
"""
TABLES = ("o.csv", "o.measures.csv", "o.claims.csv")
BAD_TEXTS = ("a\nb", "\x1b[2Ja", "\0", b"\xff\xfe", b"\xc0\xaf", "\x7f")
NAN, INF = math.nan, math.inf


def limits():
    if not os.environ.get("KVBENCH_SANITIZE"):
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))


def put(value, *path):
    """A change of the value at a path; `path` ends with the last name or index."""
    def change(tree):
        for step in path[:-1]:
            tree = tree[step]
        tree[path[-1]] = value
    return change


def drop(*path):
    """Removes an item of a list."""
    def change(tree):
        for step in path[:-1]:
            tree = tree[step]
        del tree[path[-1]]
    return change


def twice(*path):
    """Repeats an item of a list."""
    def change(tree):
        for step in path[:-1]:
            tree = tree[step]
        tree.insert(path[-1], copy.deepcopy(tree[path[-1]]))
    return change


def swap(*path):
    """Exchanges the first two items of a list."""
    def change(tree):
        for step in path:
            tree = tree[step]
        tree[0], tree[1] = tree[1], tree[0]
    return change


def length(count, *path):
    """States another length of the list or text at a path than it has."""
    def change(tree):
        kind = TYPES[change.kind]
        for step in path[:-1]:
            tree, kind = tree[step], kind[0 if isinstance(step, int) else step]
        kind = kind[0 if isinstance(path[-1], int) else path[-1]]
        tree[path[-1]] = Raw(struct.pack("<Q", count) + encode(kind, tree[path[-1]])[8:])
    return change


STEP = ("steps", 0)
FRAME = (*STEP, "frame")
COUNTS = (0, 2**31, 2**63, 2**64 - 1)


def layout_changes():
    """Changes of the layout, by what the refusal says."""
    for words, path in (("number of query heads", (*FRAME, "group")), ("number of layers", (*FRAME, "model_layers")),
                        ("number of tokens", (*FRAME, "prompts", 0, "context_tokens")),
                        ("head or layer", (*STEP, "heads", 0, "layer")),
                        ("head or layer", (*STEP, "heads", 0, "kv_head"))):
        for value in (-1, 2**31 + 1, 2**63 - 1, -2**63):
            yield words, put(value, *path)
    for words, path in (("method or budget", (*FRAME, "configurations", 0, "method")),
                        ("method or budget", (*FRAME, "configurations", 0, "budget")),
                        ("no prompt", (*STEP, "heads", 0, "prompt")),
                        ("no prompt", ("steps", 1, "measured", 0, "prompt"))):
        for value in (7, 2**31, 2**63, 2**64 - 1):
            yield words, put(value, *path)
    for value in (7, 2**31, 2**32 - 1):
        yield "no method or head", put(value, *STEP, "cells", 0, "method")
        yield "unknown head", put(value, *STEP, "cells", 0, "heads", 0)
        yield "unknown head", put(value, "steps", 1, "measures", 0, "heads", 0)
        for path in ((*FRAME, "prompts", 0, "protocol"), ("claims", 0, "metric"),
                     ("claims", 0, "relations", 0, "kind"), ("claims", 0, "relations", 0, "by")):
            if value != 7 or "metric" not in path:
                yield "unknown", put(value, *path)
    for value in (2, 255):
        yield "unknown", put(value, *FRAME, "standalone")
    yield "number of query heads", put(0, *FRAME, "group")
    yield "other queries", put(1, *FRAME, "group")
    for value in (-1, -2**31):
        yield "position of a query", put(value, *STEP, "heads", 0, "positions", 3)
    yield "queries are not in order", swap(*STEP, "heads", 0, "positions")
    yield "other queries", drop(*STEP, "heads", 0, "positions", 0)
    yield "heads are not in order", swap(*STEP, "heads")
    yield "heads are not in order", twice(*STEP, "heads", 0)
    yield "unknown head", drop(*STEP, "heads", 1)
    yield "no cell of a method", drop(*STEP, "cells", 0)
    yield "no cell of a method", drop("steps", 1, "measures", 0)
    yield "same key", twice(*STEP, "cells", 0)
    yield "no method or head", put([], *STEP, "cells", 0, "heads")
    yield "configuration is listed twice", twice(*FRAME, "configurations", 0)
    yield "method is listed twice", twice(*FRAME, "methods", 0)
    yield "other configurations", drop(*FRAME, "configurations", 0)
    yield "two prompts", twice(*FRAME, "prompts", 0)
    yield "no prompt", put([], *FRAME, "prompts")
    yield "method or budget", drop(*FRAME, "budgets", 1)
    yield "no runs", put([], "steps")
    yield "cells of sweep 'small' are missing", put("0" * 64, *STEP, "cells", 0, "key")
    yield "cells of sweep 'small' are missing", put("", *STEP, "cells", 0, "key")
    for text in ("", "x", "0%", "-1", "1e999", "9" * 400):
        yield "a budget is none", put(text, *FRAME, "budgets", 0)
    for text in ("", "x", "g" * 64, "0" * 65):
        yield "a digest is none", put(text, *FRAME, "sha256")
    yield "has no name", put("", *FRAME, "methods", 0, "name")
    for path in (("name",), ("version",), (*STEP, "run"), (*FRAME, "trace"), (*FRAME, "model"), (*FRAME, "device"),
                 (*FRAME, "prompts", 0, "id"), (*FRAME, "methods", 0, "params"), ("claims", 0, "text")):
        for text in BAD_TEXTS:
            yield ("UTF-8" if isinstance(text, bytes) else "control character"), put(text, *path)
    for value in (NAN, -1, INF):
        yield "a cost cannot be right", put(value, "claims", 0, "relations", 0, "within")
    for path in (("name",), ("steps",), (*STEP, "heads"), (*STEP, "heads", 0, "positions"), ("claims",)):
        for count in COUNTS:
            yield "cannot read", length(count, *path)


def cells_changes():
    """The same for a cell."""
    for value in (4, 2**31, 2**32 - 1):
        yield "unknown", put(value, 0, 0, "status")
    yield "unknown", put(2, 0, 0, "dense")
    for name in ("kept_tokens", "peak_bytes", "compress_flops", "attend_flops", "compress_s", "exact_s"):
        for value in (NAN, -1.0, INF):
            yield "a cost cannot be right", put(value, 0, 0, name)
    for name in ("kv", "meta", "fast", "slow", "read", "full"):
        for value in (NAN, -1.0, -INF):
            yield "a cost cannot be right", put(value, 0, 0, "bytes", name)
    for value in (-1, -2**63):
        yield "a cost cannot be right", put(value, 0, 0, "budget_tokens")
    for value in (-1.0, -INF):
        yield "outside of its limits", put(value, 0, 0, "values", 0)
        yield "an error is negative", put(value, 0, 0, "rel_err_fro", 0)
    yield "other heads", drop(0)
    yield "other heads", twice(0)
    yield "other configurations", drop(0, 0)
    yield "other configurations", twice(0, 0)
    yield "other queries", put([], 0, 0, "rel_err_fro")
    for count in (1, 2**31, 2**63, 2**64 - 1):
        yield "number of stored metrics", put(count, 0, 0, "rows")
    for bits in (0, 1 << 31, 2**32 - 1):
        yield "number of stored metrics", put(bits, 0, 0, "present")
    yield "number of stored metrics", drop(0, 0, "values", 0)
    yield "number of stored metrics", put([], 0, 0, "values")
    for text in BAD_TEXTS[1:]:
        yield ("UTF-8" if isinstance(text, bytes) else "control character"), put(text, 0, 0, "reason")
        yield ("UTF-8" if isinstance(text, bytes) else "control character"), \
            put([{"text": text, "count": 1}], 0, 0, "notes")
    for count in (NAN, -1.0):
        yield "a cost cannot be right", put([{"text": "n", "count": count}], 0, 0, "notes")
    for path in ((0,), (0, 0, "notes"), (0, 0, "values"), (0, 0, "reason"), (0, 0, "rel_err_fro")):
        for count in COUNTS[1:]:
            yield "cannot read", length(count, *path)


def measure_changes():
    """The same for measures."""
    for name, value in (("sha256", "0" * 64), ("sha256", "0" * 12), ("model", "m"), ("prompt", "7"), ("layer", 1),
                        ("layer", 2**62), ("kv_head", 1), ("kv_head", -1)):
        yield "another head", put(value, 0, name)
    for value in (2, 2**31, 2**32 - 1):
        yield "unknown", put(value, 0, "measure")
    for text in ("", "Keys", *BAD_TEXTS[:3]):
        yield "of no array", put(text, 0, "array")
    for name, value in (("x", -1), ("x", 2**63 - 1), ("value", INF), ("value", -INF), ("count", -1)):
        yield "measure cannot be right", put(value, 0, name)
    for count in COUNTS[1:]:
        yield "cannot read", length(count, 0, "trace")


class Crafted(SweepTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.made, cls.tried = {}, 0

    def setUp(self):
        if not self.made:
            config = self.write(CONFIG)
            path = self.path("s.cells")
            done = run("sweep", config, "--shard", "1/1", "--cells", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.made["frames"] = read(path)
            self.made["tables"] = self.merged(self.ok_file(self.made["frames"]))
            self.assertIn(b",uniform,", self.made["tables"][0])
        self.config = self.write(CONFIG)

    def path(self, name):
        return os.path.join(self.folder, name)

    def ok_file(self, frames):
        with open(self.path("c.cells"), "wb") as file:
            file.write(write(frames) if isinstance(frames, list) else frames)
        return self.path("c.cells")

    def limited(self, *args):
        type(self).tried += 1
        return run(*args, preexec_fn=limits)

    def merged(self, path):
        """The tables; None where kvbench refuses the file, with the sentence in self.sentence."""
        done = self.limited("merge", path, "-o", self.path("o.csv"))
        self.sentence = done.stderr
        if done.returncode == 0:
            tables = []
            for name in TABLES:
                with open(self.path(name), "rb") as file:
                    tables.append(file.read())
                os.remove(self.path(name))
            return tables
        self.assertIn(done.returncode, (2, 3), done.stderr)
        for name in TABLES:
            self.assertFalse(os.path.exists(self.path(name)))
        return None

    def refused(self, words, frames, change=""):
        with self.subTest(words=words, change=change):
            self.assertIsNone(self.merged(self.ok_file(frames)), "merged")
            self.assertIn(words, self.sentence)
            if "are missing" not in words:
                self.assertIn("c.cells: ", self.sentence)
                self.assertEqual(self.sentence.count("\n"), 1)

    def same(self, frames):
        self.assertEqual(self.merged(self.ok_file(frames)), self.made["tables"], self.sentence)

    def changed(self, kind, change, which=0):
        frames = copy.deepcopy(self.made["frames"])
        of_kind = [frame for frame in frames if frame.kind == kind]
        if kind == MEASURES:  # threads append them in any order, and the changes below take the first head's
            of_kind.sort(key=lambda frame: (frame.value[0]["layer"], frame.value[0]["kv_head"]))
        frame = of_kind[which]
        change.kind = kind
        change(frame.value)
        return frames

    def test_one_value_of_each_kind_of_frame(self):
        layouts = 0
        for kind, changes in ((LAYOUT, layout_changes()), (CELLS, cells_changes()), (MEASURES, measure_changes())):
            for i, (words, change) in enumerate(changes):
                frames = self.changed(kind, change)
                self.refused(words, frames, f"{kind}/{i}")
                layouts += kind == LAYOUT
                # A sweep that continues from the file and a comparison refuse what they read, and compute the rest.
                if i % 4:
                    continue
                done = self.limited("compare", self.path("c.cells"), "--format", "csv")
                self.assertIn(done.returncode, (0, 2), done.stderr)
                self.assertTrue(done.returncode == 0 or "c.cells: " in done.stderr, done.stderr)
                done = self.limited("sweep", self.config, "--cells", self.path("c.cells"), "--resume", "-o",
                                    self.path("o.csv"))
                self.assertIn(done.returncode, (0, 2), done.stderr)
                if done.returncode == 0:
                    self.assertEqual(kind, LAYOUT, "a cell that merge refuses")
                    with open(self.path("o.csv"), "rb") as file:
                        self.assertEqual(file.read().count(b"\n"), self.made["tables"][0].count(b"\n"))
                for name in TABLES:
                    if os.path.exists(self.path(name)):
                        os.remove(self.path(name))
        self.assertGreaterEqual(layouts, 75)
        print(f"{self.tried} commands, {layouts} layouts")

    def test_order_and_number_of_frames(self):
        frames = self.made["frames"]
        self.same([*frames[1:], frames[0]])
        self.same([frames[0], *reversed(frames[1:])])
        self.same([frames[0], *frames])  # the same layout twice
        self.same([*frames, *frames[1:]])  # all records twice
        self.same([*frames, Frame(99, "f" * 64, Raw(b"of a later version"))])
        self.refused("has no cells of a sweep", frames[1:])
        self.refused("are missing", frames[:1])
        self.refused("are missing", frames[:-1])
        for kind, other in ((CELLS, MEASURES), (MEASURES, CELLS)):
            first = next(frame for frame in frames if frame.kind == kind)
            wrong = Frame(other, first.key, Raw(encode(TYPES[kind], first.value)))
            self.refused("of another kind", [*frames, wrong])
            wrong = Frame(kind, first.key, Raw(b""))
            self.refused("is cut off", [*frames, wrong])
        first, second = [frame for frame in frames if frame.kind == CELLS][:2]
        self.refused("cannot read", [*frames, Frame(CELLS, first.key, Raw(encode(TYPES[CELLS], second.value) + b"\0"))])

    def test_layouts_of_two_versions(self):
        frames = self.made["frames"]
        other = copy.deepcopy(frames[0])
        other.value["version"], other.key = "0.0.1", "e" * 64
        self.refused("its cells are of kvbench 0.0.1 (", [*frames, other])
        self.same([other, *frames])  # the last layout counts

    def test_truncated_at_every_frame(self):
        data, at = write(self.made["frames"]), len(b"kvcells1")
        for frame in self.made["frames"]:
            for cut in (at, at + 1, at + 144, at + len(frame.bytes()) - 1):
                with self.subTest(cut=cut):
                    self.assertIsNone(self.merged(self.ok_file(data[:cut])))
                    self.assertRegex(self.sentence, "c.cells: has no cells of a sweep|are missing")
            at += len(frame.bytes())

    def test_lengths_that_are_not_those_of_the_payload(self):
        for which in range(3):
            for length in (0, 1, 2**31, 2**63, 2**64 - 1):
                frames = copy.deepcopy(self.made["frames"])
                frames[which].length = length
                with self.subTest(which=which, length=length):
                    self.assertIsNone(self.merged(self.ok_file(frames)))
                    self.assertRegex(self.sentence, "c.cells: has no cells of a sweep|are missing")


main()
