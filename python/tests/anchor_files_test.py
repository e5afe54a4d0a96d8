# SPDX-License-Identifier: Apache-2.0
"""Anchors in traces that Python writes and reads."""
import math
import subprocess

from support import KVBENCH, kvbench, run
import h5py
import numpy as np
from traces import TraceTest, header

GOOD = [kvbench.Anchor(method="q4_0[values=q8_0]", budget="100%mem", kl=0.5, predicted=0.25),
        kvbench.Anchor(method="my method", budget="3", kl=0, layer=0),
        kvbench.Anchor(method="my method", budget="3", kl=2.5, layer=3, predicted=0)]


class AnchorFiles(TraceTest):
    def write(self, anchors=GOOD, version="0.1.0", probes=kvbench.Probes(count=1, tokens=2, seed=9), compress=False):
        """A trace of one prompt with anchors; its path."""
        draw = np.random.default_rng(3).standard_normal
        given = kvbench.Anchors(version=version, list=anchors)
        with kvbench.TraceWriter(self.path("t.h5"), header(head_dim=4, value_dim=4), compress) as out:
            out.prompt("0", kvbench.PromptInfo(name="p", tokens=[1, 2, 3, 4, 5], prompt_tokens=3, probes=probes,
                                               anchors=given))
            out.layer("0", 0, kvbench.LayerInfo(scale=0.5, query_positions=[3, 4]), keys=draw((2, 5, 4)),
                      values=draw((2, 5, 4)), queries=draw((4, 2, 4)),
                      **({} if probes is None else {"probes": draw((4, 1, 2, 4))}))
        return self.path("t.h5")

    def spoiled(self, name, values):
        """A trace whose dataset of anchors has these values; None: it is missing."""
        path = self.write()
        with h5py.File(path, "r+") as file:
            group = file["prompts/0/anchors"]
            del group[name]
            if values is not None:
                group[name] = values
        return path

    def test_they_are_read_as_they_were_written(self):
        for compress in (False, True):
            with kvbench.Trace(self.write(compress=compress)) as trace:
                self.assertEqual(trace.prompts["0"].anchors, kvbench.Anchors(version="0.1.0", list=GOOD))
            self.assertIn("  anchors      3 in 1 of 1 prompts, measured by kvbench 0.1.0\n",
                          run("info", self.path("t.h5")))
            with h5py.File(self.path("t.h5")) as file:  # as docs/traces.md says
                group = file["prompts/0/anchors"]
                self.assertEqual(group["configurations"][()].decode(),
                                 "q4_0[values=q8_0] 100%mem\nmy method 3\nmy method 3")
                self.assertEqual(group["layers"][()].tolist(), [-1, 0, 3])
                self.assertEqual(group["kl"][()].tolist(), [0.5, 0, 2.5])
                self.assertEqual(group["predicted"][()].tolist(), [0.25, -1, 0])

    def test_traces_without_them(self):
        with kvbench.Trace(self.write_small()) as trace:
            self.assertIsNone(trace.prompts["0"].anchors)
        self.assertNotIn("anchors", run("info", self.path("t.h5")))

    def test_they_can_be_written_after_the_layers(self):
        with kvbench.TraceWriter(self.path("t.h5"), header()) as out:
            with self.refuses("must come before its anchors"):
                out.anchors("0", kvbench.Anchors(version="1", list=GOOD))
            out.prompt("0", kvbench.PromptInfo(name="p", tokens=[1, 2, 3], prompt_tokens=2,
                                               probes=kvbench.Probes(count=1, tokens=1, seed=0)))
            out.layer("0", 1, kvbench.LayerInfo(scale=1, query_positions=[2]), keys=np.ones((2, 3, 3)),
                      values=np.ones((2, 3, 2)), queries=np.ones((4, 1, 3)))
            with out.complete() as path:
                self.assertNotIn("anchors", run("info", path))
                with self.refuses("finished already"):
                    out.prompt("1", kvbench.PromptInfo(name="p", tokens=[1]))
            out.anchors("0", kvbench.Anchors(version="1", list=GOOD))
            with self.refuses("were written already"):
                out.anchors("0", kvbench.Anchors(version="1", list=GOOD))
        with kvbench.Trace(self.path("t.h5")) as trace:
            self.assertEqual(trace.prompts["0"].anchors.list, GOOD)

    def test_a_trace_that_is_not_complete_cannot_be_read_meanwhile(self):
        with self.refuses("no prompt"), kvbench.TraceWriter(self.path("t.h5"), header()) as out:
            with out.complete():
                pass

    def test_what_cannot_be_written(self):
        def one(**fields):
            return [kvbench.Anchor(**{"method": "h2o", "budget": "25%", "kl": 1, **fields})]
        for given, words in (({"anchors": []}, ["has 0 configurations"]), ({"probes": None}, ["num_probes", "missing"]),
                             ({"version": "a\nb"}, ["version", "control character"]),
                             ({"version": 3}, ["version", "must be text"]),
                             ({"anchors": ["h2o"]}, ["item 0", "Anchor"]),
                             ({"anchors": one(kl=math.nan)}, ["kl", "entry 0 is nan"]),
                             ({"anchors": one(kl=math.inf)}, ["entry 0 is inf"]),
                             ({"anchors": one(kl=-1e-9)}, ["entry 0 is -1e-09"]),
                             ({"anchors": one(kl="1")}, ["kl", "a number"]),
                             ({"anchors": one(predicted=-1)}, ["predicted", "entry 0 is -1"]),
                             ({"anchors": one(layer=4)}, ["entry 0 is 4", "below 4"]),
                             ({"anchors": one(layer=-1)}, ["entry 0 is -1"]),
                             ({"anchors": one(method="")}, ["line 1", "METHOD BUDGET"]),
                             ({"anchors": one(budget="25 %")}, ["line 1", "METHOD BUDGET"]),
                             ({"anchors": one(method="a\nb")}, ["line 1", "control character"]),
                             ({"anchors": one() + one(layer=2) + one()}, ["line 3 repeats 'h2o 25%'"])):
            with self.subTest(given=given), self.refuses(*words):
                self.write(**given)

    def test_what_cannot_be_read(self):
        """The program refuses the same files."""
        lines = "q4_0 100%\nh2o 3\nh2o 3"
        for name, values, words in (
                ("configurations", lines + "\n", ["has the shape", "4 lines"]),
                ("configurations", "q4_0 100%", ["has the shape", "1 lines"]),
                ("configurations", "q4_0\nh2o 3\nh2o 4", ["line 1", "METHOD BUDGET"]),
                ("configurations", "q4_0 100%\nh2\to 3\nh2o 3", ["line 2", "control character"]),
                ("configurations", np.bytes_(b"q4_0 100%\nh\xff 3\nh2o 3"), ["UTF-8"]),
                ("configurations", [lines], ["must be one string"]), ("configurations", 3, ["string"]),
                ("configurations", None, ["missing"]), ("layers", None, ["missing"]), ("kl", None, ["missing"]),
                ("layers", np.array([-1, 0]), ["has the shape"]), ("layers", np.array([-1.0, 0, 3]), ["integer"]),
                ("layers", np.array([-1, 0, 4]), ["entry 2 is 4"]),
                ("layers", np.array([-1, 0, 0]), ["line 3 repeats"]),
                ("kl", np.zeros((3, 1)), ["has the shape"]), ("kl", np.zeros(3, np.float32), ["are not f64"]),
                ("kl", np.array([1, math.nan, 1]), ["entry 1 is nan"]),
                ("kl", np.array([1, 1, -1.0]), ["entry 2 is -1"]),
                ("predicted", np.array([1, math.nan, 1]), ["entry 1 is nan"]),
                ("predicted", np.array([1, -2.0, 1]), ["entry 1 is -2"])):
            with self.subTest(name=name, values=values):
                path = self.spoiled(name, values)
                with self.refuses(*words):
                    kvbench.Trace(path)
                said = self.refused_by_program(path)
                for word in words:
                    self.assertIn(word, said)

    def refused_by_program(self, path):
        done = subprocess.run([KVBENCH, "info", path], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr
