# SPDX-License-Identifier: Apache-2.0
"""Spans of contexts: in traces that Python writes and reads, and what replays say of them."""
import csv
import subprocess

from support import KVBENCH, kvbench, run
import h5py
import numpy as np
from traces import TraceTest, header

SPANS = [kvbench.Span("system", 0, 4), kvbench.Span("user", 4, 10), kvbench.Span("own answer", 10, 12),
         kvbench.Span("user", 12, 16)]


class Spans(TraceTest):
    def spanned(self, spans=SPANS):
        """Texts of 20 tokens, 16 of them the context, with queries of the 4 last ones; 2 layers with 2 kv heads."""
        draw = np.random.default_rng(3).standard_normal
        with kvbench.TraceWriter(self.path("t.h5"), header(head_dim=4, value_dim=4, num_layers=2)) as out:
            for text in "01":
                out.prompt(text, kvbench.PromptInfo(name="p", tokens=np.arange(20), prompt_tokens=16, spans=spans))
                for layer in 0, 1:
                    out.layer(text, layer, kvbench.LayerInfo(scale=0.5, query_positions=np.arange(16, 20)),
                              keys=draw((2, 20, 4)), values=draw((2, 20, 4)), queries=draw((4, 4, 4)))
        return self.path("t.h5")

    def says(self, *flags, of=("prompt", "layer", "kv_head"), command="replay"):
        """{place: (kept, lost)} of the rows of a replay."""
        rows = csv.DictReader(run(command, *flags, "-q").splitlines())
        return {tuple(row[name] for name in of): (row["kept_by_span"], row["lost_by_span"]) for row in rows}

    def test_they_are_read_as_they_were_written(self):
        with kvbench.Trace(self.spanned()) as trace:
            self.assertEqual(trace.prompts["0"].spans, SPANS)
        self.assertIn("    spans      system [0, 4), user [4, 10), own answer [10, 12), user [12, 16)\n",
                      run("info", self.path("t.h5")))
        with kvbench.Trace(self.spanned(None)) as trace:
            self.assertIsNone(trace.prompts["0"].spans)
        self.assertNotIn("spans", run("info", self.path("t.h5")))
        self.assertEqual({*self.says(self.path("t.h5"), "-m", "sink", "-b", "12").values()}, {("", "")})

    def test_wrong_spans_are_refused_by_both_readers(self):
        for name, begin, end in (("user", 3, 10), ("user", 4, 17), ("user", 4, 4), ("a, b", 4, 9), ("", 4, 9),
                                 ("\u00e9" * 33, 4, 9), ("a\x1b", 4, 9), ("user", "x", 9), ("user", 4, -9)):
            if begin != "x":
                with self.refuses("/spans: line 2"):
                    self.spanned([SPANS[0], kvbench.Span(name, begin, end)])
            text = f"0 4 system\n{begin} {end} {name}".encode()
            with h5py.File(self.spanned(None), "r+") as file:
                file["prompts/0/spans"] = np.array(text, h5py.string_dtype("utf-8", len(text)))
            with self.refuses("/spans: line 2"):
                kvbench.Trace(self.path("t.h5"))
            done = subprocess.run([KVBENCH, "info", self.path("t.h5")], capture_output=True, text=True)
            self.assertEqual((done.returncode, "/spans: line 2" in done.stderr), (2, True), done.stderr)

    def test_what_a_window_keeps_is_counted_by_hand(self):
        """Of 12 tokens `sink` holds the first 4 and the last 8 of 20: of the 10 tokens of `user` 12 to 15."""
        def kept(spans, *flags):
            said = self.says(self.spanned(spans), "-m", "sink", *flags, of=("layer", "head", "query"))
            self.assertEqual(said.get(("0", "0", "19"), ("", "")), ("", ""))
            return said["all", "all", "all"]
        self.assertEqual(kept(SPANS, "-b", "12", "--rows", "query"), ("system 1.000, user 0.400, own answer 0.000",
                                                                      "system 0.000, user 0.600, own answer 1.000"))
        shifted = [kvbench.Span(one.name, one.begin + 1, min(one.end + 1, 16)) for one in SPANS]
        self.assertEqual(kept(shifted, "-b", "12")[0],  # 1-3 of 4; 13-15 of 9; 12 of 2
                         "system 0.750, user 0.333, own answer 0.500")
        flags = ["-b", "6", "--protocol", "prefill", "--window", "6"]  # a context of 14
        self.assertEqual(kept(SPANS, *flags)[0], "system 1.000, user 0.250, own answer 0.000")  # 12, 13
        self.assertEqual(kept(SPANS, *flags, "--protect-outside", "2,2")[0],  # and 2-5, 10, 11
                         "system 1.000, user 0.500, own answer 1.000")

    def test_heads_layers_and_texts_are_counted_by_hand(self):
        """The second text keeps nothing but of `c`, in all heads."""
        self.spanned([kvbench.Span("a", 0, 2), kvbench.Span("b", 2, 6), kvbench.Span("c", 8, 12)])
        scores = np.zeros((2, 2, 2, 16))
        scores[1, :, :, 8:12] = 1
        for place, kept in (((0, 0), [0, 1, 2, 8]), ((0, 1), [0, 1, 8, 9]), ((1, 0), [0, 1, 8, 10]),
                            ((1, 1), [0, 1, 2, 8])):
            scores[(0, *place, kept)] = 1
        kvbench.write_scores(self.path("s.h5"), {id: dict(enumerate(scores[id])) for id in (0, 1)},
                             trace=self.path("t.h5"))
        said = self.says(self.path("t.h5"), "-m", f"scores:{self.path('s.h5')}", "-b", "4", "--rows", "head",
                         "--protocol", "prefill", "--window", "4")
        for place, kept, lost in (("0 all all", "a 1.000, b 0.125, c 0.375", "a 0.000, b 0.750, c 0.250"),
                                  ("0 0 all", "a 1.000, b 0.125, c 0.375", "a 0.000, b 0.750, c 0.500"),
                                  ("0 0 1", "a 1.000, b 0.000, c 0.500", "a 0.000, b 1.000, c 0.500"),
                                  ("1 1 1", "a 0.000, b 0.000, c 1.000", "a 1.000, b 1.000, c 0.000"),
                                  ("all all all", "a 0.500, b 0.062, c 0.688", "a 0.500, b 0.875, c 0.125")):
            self.assertEqual(said[tuple(place.split())], (kept, lost), place)

    def test_methods_and_sweeps(self):
        trace, whole = self.spanned(), "system 1.000, user 1.000, own answer 1.000"
        for method, budget, kept in (("oracle-topk", "50%", ""), ("kmeans", "50%", ""), ("int4", "100%mem", whole)):
            self.assertEqual({kept for kept, _ in self.says(trace, "-m", method, "-b", budget).values()}, {kept})
        toml = self.write('[[run]]\nname = "r"\ntraces = ["t.h5"]\nbudgets = 12\nmethods = ["sink"]\n', "s.toml")
        self.assertEqual(self.says(toml, command="sweep"), self.says(trace, "-m", "sink", "-b", "12"))
