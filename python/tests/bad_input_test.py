# SPDX-License-Identifier: Apache-2.0
"""Every public function of the package refuses bad input with kvbench.Error, whose sentence names the argument."""
import dataclasses
import inspect
import math
import os
import warnings

from support import PackageTest, kvbench
import h5py
import numpy as np

JUNK = {"None": None, "object": object(), "bytes": b"\xff", "surrogate": "\ud800", "empty": "", "NUL": "a\0b",
        "control": "a\x85b", "word": "abc", "huge": 2**70, "-huge": -2**70, "astronomic": 10**5000, "-1": -1, "99": 99,
        "1.5": 1.5, "NaN": math.nan, "infinite": math.inf, "complex": 1j, "True": True, "list": [], "dict": {},
        "function": len, "ragged": [[1], [1, 2]], "objects": np.array([None, 1]), "strings": np.array(["1"]),
        "cube": np.zeros((2,) * 4), "overflow": np.array([2**64 - 1], np.uint64),
        "masked": np.ma.masked_array([0], [True])}
HEADER = dict(model="m", num_layers=4, num_query_heads=4, num_kv_heads=2, head_dim=3, value_dim=2, rope_type="none")
PROMPT = dict(name="p", tokens=np.arange(5))
PROBES = dict(count=2, tokens=1, seed=0, evaluated_in="f32")
LAYER = dict(scale=0.5, query_positions=[3, 4])
ARRAYS = dict(keys=np.ones((2, 5, 3)), values=np.ones((2, 5, 2)), queries=np.ones((4, 2, 3)))
ANCHOR = dict(method="h2o", budget="25%mem", layer=1, kl=0.5, predicted=0.25)
NUMBERS = ("99", "1.5")  # accepted where any positive number is right


def write_trace(path, id="0", index=1, arrays=ARRAYS, compress=False, **fields):
    """Writes a small trace; `fields` are those of its header, prompt and layer, or the infos themselves."""
    header = fields.get("header", kvbench.Header(**HEADER))
    with kvbench.TraceWriter(path, header, compress) as out:
        out.prompt(id, fields.get("prompt", kvbench.PromptInfo(**PROMPT)))
        out.layer(id, index, fields.get("layer", kvbench.LayerInfo(**LAYER)), **arrays)


# Modules whose functions take methods, results and flags, which the program checks: tested in replay_test.py,
# methods_test.py, entries_test.py, check_test.py, sentences_test.py, golden_test.py, choose_settings_test.py and those
# of models.
OF_THE_PROGRAM = ("program.commands", "program.check", "program.golden", "models.compressed", "models.evaluate",
                  "models.lm_eval", "models.loading", "methods.given", "methods.kvpress", "methods.method",
                  "results.sentences", "choosing.choose", "choosing.settings")


def public():
    """The names of all public functions: of the package, and of the classes that a user meets."""
    found = set()
    names = [name for name in kvbench.__all__ if kvbench._MODULES[name] not in OF_THE_PROGRAM]
    for owner in [getattr(kvbench, name) for name in names] + [kvbench.results.raw.HeadResult]:
        if inspect.isfunction(owner):
            found.add(owner.__name__)
        elif dataclasses.is_dataclass(owner) and owner not in (kvbench.Trace, kvbench.Prompt, kvbench.Layer):
            found |= {f"{owner.__name__}.{field.name}" for field in dataclasses.fields(owner)}
        elif owner not in (kvbench.Error, kvbench.Layer, kvbench.Prompt, kvbench.Rows, kvbench.results.raw.HeadResult):
            found.add(owner.__name__)  # is called with a path
        found |= {f"{owner.__name__}.{name}" for name, member in vars(owner).items()
                  if inspect.isfunction(member) and not name.startswith("_")}
        found -= {f"{owner.__name__}.check_open", "Rows.to_pandas"}
    return found


class BadInput(PackageTest):
    def setUp(self):
        super().setUp()
        before = os.getcwd()
        os.chdir(self.folder)  # for files whose names are junk
        self.addCleanup(os.chdir, before)
        write_trace("t.h5")
        self.trace = kvbench.Trace("t.h5")
        self.addCleanup(self.trace.close)
        self.layer = self.trace.prompts["0"].layers[1]
        with h5py.File("raw.h5", "w") as file:
            file.attrs.update(kvbench_raw="1.0", metrics="rel_err,recall")
            file.create_group("cells/0").attrs.update(method="sink", params="", budget="8", seed=0)
            head = file.create_group("heads/0")
            head.attrs.update(prompt="0", layer=1, kv_head=0, scored_tokens=2)
            head["positions"] = np.array([3, 4], np.int32)
            cell = head.create_group("0")
            cell.attrs.update(status="ok", reason="", budget_tokens=8, kept_tokens=8.0)
            cell["metrics"], cell["output"] = np.ones((2, 2, 2), np.float32), np.ones((2, 2, 2), np.float32)
            cell["probe_sums"] = np.ones(3)
            cell["entries/0/ids"] = np.array([[0, 1]], np.int32)
        self.raw = kvbench.Raw("raw.h5")
        self.addCleanup(self.raw.close)
        with open("rows.csv", "w") as file:
            file.write("method,status,layer\nsink,ok,1\n")

    def opened(self, kind):
        def call(path):
            with kind(path):
                pass
        return call

    def functions(self):
        """For each public function: a call of it, arguments with which it succeeds, and the junk that is right."""
        texts, names = {"word", "empty"}, {"word"}
        head = self.raw.heads[0]
        yield "Trace", self.opened(kvbench.Trace), {"path": "t.h5"}, {}
        yield "Raw", self.opened(kvbench.Raw), {"path": "raw.h5"}, {}
        yield "load_csv", kvbench.load_csv, {"path": "rows.csv"}, {}
        yield ("TraceWriter", lambda path, header, compress: write_trace(path, header=header, compress=compress),
               {"path": "x.h5", "header": kvbench.Header(**HEADER), "compress": False},
               {"path": {"bytes", "word", "control"}, "compress": {"True"}})
        yield ("TraceWriter.prompt", lambda id, info: write_trace("x.h5", id=id, prompt=info),
               {"id": "0", "info": kvbench.PromptInfo(**PROMPT)}, {"id": {*names, "-1", "99"}})
        yield ("TraceWriter.layer", lambda index, info, **arrays: write_trace("x.h5", "0", index, arrays, layer=info),
               {"index": 1, "info": kvbench.LayerInfo(**LAYER), **ARRAYS}, {})
        yield ("TraceWriter.layer (id)", lambda id: self.layer_of(id), {"id": "0"}, {})
        yield ("Layer.array", self.layer.array, {"name": "keys", "head": 0}, {"head": {"None"}})
        for name, argument in (("keys", "kv_head"), ("values", "kv_head"), ("queries", "head")):
            yield f"Layer.{name}", getattr(self.layer, name), {argument: 0}, {argument: {"None"}}
        yield "Layer.kv_head_of", self.layer.kv_head_of, {"head": 0}, {}
        yield "Layer.query_heads_of", self.layer.query_heads_of, {"kv_head": 0}, {}
        yield "Raw.head", self.raw.head, {"prompt": "0", "layer": 1, "kv_head": 0}, {}
        for name in ("status", "reason", "budget_tokens", "kept_tokens", "output", "probe_sums", "entries"):
            yield f"HeadResult.{name}", getattr(head, name), {"cell": 0}, {}
        yield "HeadResult.metric", head.metric, {"name": "recall", "cell": 0}, {}
        optional = {"None"}
        for kind, fields, where, right in (
                (kvbench.Header, HEADER, "header", {
                    "num_layers": {"99"}, "cache_layers": optional, **{name: texts for name in (
                        "model", "arch", "quantisation", "source_tool", "source_version", "created")}}),
                (kvbench.PromptInfo, PROMPT, "prompt", {
                    "name": texts, "prompt_tokens": optional, "answer_start": optional, "answer_end": optional,
                    "text": {*texts, *optional, "control"}, "probes": optional, "anchors": optional,
                    "spans": {*optional, "list"}}),
                (kvbench.Span, {"name": "user", "begin": 1, "end": 2}, "prompt", {"name": names}),
                (kvbench.Probes, PROBES, "prompt", {"count": {"99"}, "seed": {"99", "-1"}, "evaluated_in": texts}),
                (kvbench.Anchor, ANCHOR, "prompt", {
                    "method": names, "budget": names, "layer": {"None"}, "kl": {*NUMBERS, "huge"},
                    "predicted": {*NUMBERS, *optional, "huge"}}),
                (kvbench.Anchors, {"version": "1", "list": [kvbench.Anchor(**ANCHOR)]}, "prompt", {"version": texts}),
                (kvbench.LayerInfo, LAYER, "layer", {
                    "scale": {*NUMBERS, "huge"}, "window": {"99"}, "rope_theta": {*NUMBERS, "huge"},
                    "softcap": {*NUMBERS, "huge"}, "column_sums_end": optional,
                    "sketch_seed": optional, "sketch_misfit": {*NUMBERS, "huge"}})):
            for field in dataclasses.fields(kind):
                def call(kind=kind, fields=fields, where=where, **given):
                    made = kind(**{**fields, **given})
                    if kind is kvbench.Probes:
                        made = kvbench.PromptInfo(**PROMPT, prompt_tokens=4, probes=made)
                    if kind is kvbench.Span:
                        made = kvbench.PromptInfo(**PROMPT, spans=[made])
                    if kind is kvbench.Anchor:
                        made = kvbench.Anchors(version="1", list=[made])
                    if isinstance(made, kvbench.Anchors):
                        made = kvbench.PromptInfo(**PROMPT, prompt_tokens=4, probes=kvbench.Probes(**PROBES),
                                                  anchors=made)
                    write_trace("x.h5", **{where: made})
                given = {field.name: fields[field.name]} if field.name in fields else {field.name: field.default}
                yield f"{kind.__name__}.{field.name}", call, given, right

    def layer_of(self, id):
        with kvbench.TraceWriter("x.h5", kvbench.Header(**HEADER)) as out:
            out.prompt("0", kvbench.PromptInfo(**PROMPT))
            out.layer(id, 1, kvbench.LayerInfo(**LAYER), **ARRAYS)

    # Where the sentence does not name the argument: what it names instead.
    NAMED = {"id": "'id'|prompt", "count": "count|num_probes", "tokens": "tokens", "kv_head": "head",
             "query_positions": "position", "index": "layer", "name": "array|metric|name",
             "num_query_heads": "shape|num_query_heads", "num_kv_heads": "shape|num_kv_heads|num_query_heads",
             "head_dim": "shape|head_dim", "value_dim": "shape|value_dim", "layer": "layer|prompt",
             "method": "method|configurations", "budget": "budget|configurations", "list": "list|configurations"}

    def test_every_argument_of_every_function(self):
        """Junk either is right or raises Error; warnings are errors too."""
        tried, seen = 0, set()
        warnings.simplefilter("error")
        for title, call, given, right in self.functions():
            seen.add(title.partition(" ")[0])
            call(**given)
            for argument in given:
                for name, value in JUNK.items():
                    tried += 1
                    with self.subTest(function=title, argument=argument, junk=name):
                        self.judge(call, {**given, argument: value}, argument, name in right.get(argument, ()))
        self.assertGreater(tried, 1500)
        closing = {f"{owner}.{name}" for owner in ("Trace", "Raw", "TraceWriter")
                   for name in ("close", "commit", "abandon")}
        elsewhere = {"write_scores", "TraceWriter.anchors"}  # scores_test.py; as PromptInfo.anchors
        self.assertEqual(public() - closing - elsewhere - seen, set())

    def judge(self, call, given, argument, right):
        if right:
            call(**given)
            return
        words = "path|file|folder" if argument == "path" else self.NAMED.get(argument, argument)
        with self.assertRaisesRegex(kvbench.Error, f"(?s)({words}).*\\.$") as refusal:
            call(**given)
        self.assertTrue(str(refusal.exception).replace("\n", "").isprintable(), str(refusal.exception))

    def test_arguments_that_a_function_does_not_have(self):
        for function, name in ((kvbench.load_csv, "load_csv"), (kvbench.Trace, "Trace")):
            with self.assertRaisesRegex(TypeError, rf"^{name}\(\): missing a required argument"):
                function()
            with self.assertRaisesRegex(TypeError, rf"^{name}\(\): got an unexpected keyword argument 'protect'"):
                function("x", protect=4)

    def test_arrays_without_dimensions_are_one_value(self):
        """As numbers are, which NumPy returns so."""
        from kvbench.program import commands as _commands
        self.assertEqual(_commands._items(np.array(256)), ["256"])
        self.assertEqual(_commands._flags({"seeds": np.array(7), "budget": np.array([2, 3])}),
                         ["--seeds=7", "--budget=2,3"])

    def test_files_that_cannot_be_read(self):
        os.mkfifo("pipe")
        os.mkdir("folder")
        for name, data in (("empty", b""), ("latin", b"method,status\nsink\xff,ok\n"),
                           ("nul", b"method,status\n\0,ok\n"), ("bytes", bytes(range(256))),
                           ("quote", b'method,status\n"sink,ok\n'),
                           ("long", b"method,status\n" + b"x" * 200000 + b",ok\n"),
                           ("wide", b"method,status\nsink,ok,1\n"), ("narrow", b"method,status\nsink\n"),
                           ("twice", b"method,status,status\nsink,ok,ok\n")):
            with open(name, "wb") as file:
                file.write(data)
        with open("t.h5", "rb") as whole, open("half", "wb") as file:
            file.write(whole.read()[:3000])
        os.symlink("loop", "loop")
        for name in ("empty", "latin", "nul", "bytes", "quote", "long", "wide", "narrow", "twice", "half", "pipe",
                     "folder", "none", "loop", "t.h5/x", "x" * 300, "/dev/zero", "/dev/null"):
            for reader in (kvbench.Trace, kvbench.Raw, kvbench.load_csv):
                with self.subTest(name=name, reader=reader.__name__), self.refuses(name):
                    reader(name)

    def test_files_of_another_structure(self):
        """Each object and attribute of a file is replaced by others; reading returns or raises Error."""
        for name, reader in (("t.h5", self.read_trace), ("raw.h5", self.read_raw)):
            with h5py.File(name) as file:
                objects = []
                file.visit(objects.append)
                attributes = [(at, key) for at in ["/", *objects] for key in file[at].attrs]
            self.assertGreater(len(objects) + len(attributes), 15)
            with open(name, "rb") as file:
                whole = file.read()
            faults = [("object", at, value) for at in objects
                      for value in (None, 7, 0.5, "ü", b"\xff", np.zeros((0, 3)), np.array([b"x"]), "group")]
            faults += [("attribute", at, value) for at in attributes
                       for value in (None, [1, 2, 3], -7, 2**63 - 1, np.nan, "", b"\xff", h5py.Empty("i4"))]
            outcomes = {reader("other.h5") for fault in faults if self.spoil(whole, *fault)}
            self.assertEqual(outcomes, {"read", "refused"})

    def spoil(self, whole, kind, at, value):
        with open("other.h5", "wb") as file:
            file.write(whole)
        with h5py.File("other.h5", "r+") as file:
            at, name = (file, at) if kind == "object" else (file[at[0]].attrs, at[1])
            del at[name]
            if isinstance(value, str) and value == "group":
                file.create_group(name)
            elif value is not None:
                at[name] = value
        return True

    def read_trace(self, path):
        try:
            with kvbench.Trace(path) as trace:
                for prompt in trace.prompts.values():
                    for layer in prompt.layers.values():
                        for name in layer.arrays:
                            layer.array(name)
            return "read"
        except kvbench.Error as failure:
            self.assertIn(path, str(failure))
            return "refused"

    def read_raw(self, path):
        try:
            with kvbench.Raw(path) as raw:
                for head in raw.heads:
                    for call in (head.status, head.reason, head.budget_tokens, head.kept_tokens, head.output,
                                 head.probe_sums, head.entries):
                        call()
                    head.metric("rel_err")
            return "read"
        except kvbench.Error as failure:
            self.assertIn(path, str(failure))
            return "refused"

    def test_properties_of_infos(self):
        for value in (0, None, "2", math.nan, 2**70):
            with self.refuses("num_kv_heads"):
                kvbench.Header(**{**HEADER, "num_kv_heads": value}).group
        for value in (None, 5, "abc", [[1], [1, 2]], {}):
            with self.refuses("tokens"):
                kvbench.PromptInfo(name="p", tokens=value).num_tokens
        os.environ["SOURCE_DATE_EPOCH"] = "today"
        self.addCleanup(os.environ.pop, "SOURCE_DATE_EPOCH")
        with self.refuses("SOURCE_DATE_EPOCH"):
            write_trace("x.h5")

    def test_closed_files(self):
        self.trace.close()
        self.raw.close()
        writer = kvbench.TraceWriter("x.h5", kvbench.Header(**HEADER))
        writer.abandon()
        for call in (lambda: self.layer.keys(0), lambda: self.layer.arrays, self.raw.heads[0].status,
                     self.raw.heads[0].entries, lambda: writer.prompt("0", kvbench.PromptInfo(**PROMPT)),
                     writer.commit):
            with self.refuses("with statement"):
                call()
