# SPDX-License-Identifier: Apache-2.0
"""Spans of contexts: in traces that Python writes and reads, and what replays say of them."""
import csv
import re
import subprocess

from support import KVBENCH, kvbench, run
import h5py
import numpy as np
from traces import TraceTest, header

SPANS = [kvbench.Span("system", 0, 4), kvbench.Span("user", 4, 10), kvbench.Span("own answer", 10, 12),
         kvbench.Span("user", 12, 16)]
KEPT, LOST = "kept_by_span", "lost_by_span"


class SpanFiles(TraceTest):
    def spanned(self, spans=SPANS, texts=1, name="t.h5"):
        """Texts of 20 tokens, 16 of them the context, with queries of the 4 last ones; 2 layers with 2 kv heads."""
        draw = np.random.default_rng(3).standard_normal
        with kvbench.TraceWriter(self.path(name), header(head_dim=4, value_dim=4, num_layers=2)) as out:
            for text in range(texts):
                out.prompt(text, kvbench.PromptInfo(name="p", tokens=np.arange(20), prompt_tokens=16, spans=spans))
                for layer in range(2):
                    out.layer(text, layer, kvbench.LayerInfo(scale=0.5, query_positions=np.arange(16, 20)),
                              keys=draw((2, 20, 4)), values=draw((2, 20, 4)), queries=draw((4, 4, 4)))
        return self.path(name)

    def rows(self, *flags, command="replay"):
        return list(csv.DictReader(run(command, *flags).splitlines()))

    def scores(self, kept):
        """A file of scores by which a kv head keeps these 4 tokens of the context; `kept`: by layer and kv head."""
        scores = np.zeros((2, 2, 16))
        for layer, heads in enumerate(kept):
            for head, tokens in enumerate(heads):
                scores[layer, head, tokens] = [4, 3, 2, 1]
        kvbench.write_scores(self.path("s.h5"), {"0": dict(enumerate(scores))}, trace=self.path("t.h5"))
        return f"scores:{self.path('s.h5')}"

    def test_they_are_read_as_they_were_written(self):
        with kvbench.Trace(self.spanned()) as trace:
            self.assertEqual(trace.prompts["0"].spans, SPANS)
            with kvbench.TraceWriter(self.path("copy.h5"), trace) as out:
                out.prompt("0", trace.prompts["0"])
                for index, layer in trace.prompts["0"].layers.items():
                    out.layer("0", index, layer, **{name: layer.array(name) for name in layer.arrays})
        with kvbench.Trace(self.path("copy.h5")) as trace:
            self.assertEqual(trace.prompts["0"].spans, SPANS)
        self.assertIn("    spans      system [0, 4), user [4, 10), own answer [10, 12), user [12, 16)\n",
                      run("info", self.path("t.h5")))
        with h5py.File(self.path("t.h5")) as file:  # as docs/traces.md says
            group = file["prompts/0/spans"]
            self.assertEqual(group["names"][()].decode(), "system\nuser\nown answer\nuser")
            self.assertEqual([group["begin"][()].tolist(), group["end"][()].tolist()],
                             [[0, 4, 10, 12], [4, 10, 12, 16]])

    def test_wrong_spans_are_refused_by_both_readers(self):
        def span(name="user", begin=4, end=10):
            return [kvbench.Span("system", 0, 4), kvbench.Span(name, begin, end)]
        for spans, said in ((span(begin=3), "span 1 is [3, 10)"), (span(end=17), "in [0, 16), the context"),
                            (span(end=4), "not empty"), (span(begin=-1), "in order"), (span("a, b"), "no comma"),
                            (span(""), "1 to 64 bytes"), (span("é" * 33), "1 to 64 bytes"),
                            (span("a\x1b"), "control character")):
            with self.refuses("/spans", re.escape(said)):
                self.spanned(spans, name="x.h5")
            self.spanned(span())
            with h5py.File(self.path("t.h5"), "r+") as file:
                group = file["prompts/0/spans"]
                del group["names"]
                names = "\n".join(one.name for one in spans).encode()
                group["names"] = np.array(names, h5py.string_dtype("utf-8", len(names)))
                group["begin"][1], group["end"][1] = spans[1].begin, spans[1].end
            self.refused_by_both("/spans", said)
        for name, values, said in (("begin", [0], "has 2 lines"), ("end", [[4, 10]], "dimensions"),
                                   ("end", None, "'end' is missing"), ("names", None, "'names' is missing"),
                                   ("begin", [0.0, 4.0], "integers")):
            self.spanned(span())
            with h5py.File(self.path("t.h5"), "r+") as file:
                del file[f"prompts/0/spans/{name}"]
                if values is not None:
                    file[f"prompts/0/spans/{name}"] = values
            self.refused_by_both(f"/spans{'' if values is None else '/' + name}")

    def refused_by_both(self, *says):
        with self.refuses(*map(re.escape, says)):
            kvbench.Trace(self.path("t.h5"))
        done = subprocess.run([KVBENCH, "info", self.path("t.h5")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stdout)
        for part in says:
            self.assertIn(part, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_what_a_window_keeps_is_counted_by_hand(self):
        """Of 12 tokens, `sink` holds the first 4 and the last 8 of 20: of the 10 tokens of `user` 12 to 15."""
        flags = ["-m", "sink", "-b", "12", "--rows", "trace"]
        row, = self.rows(self.spanned(), *flags)
        self.assertEqual(row[KEPT], "system 1.000, user 0.400, own answer 0.000")
        self.assertEqual(row[LOST], "system 0.000, user 0.600, own answer 1.000")
        shifted = [kvbench.Span(one.name, one.begin + 1, min(one.end + 1, 16)) for one in SPANS]
        row, = self.rows(self.spanned(shifted), *flags)
        self.assertEqual(row[KEPT], "system 0.750, user 0.333, own answer 0.500")  # 1-3 of 4; 13-15 of 9; 12 of 2

    def test_heads_and_layers_are_counted_by_hand(self):
        """Tokens are held 4, 0, 1 and 2 times by the 4 heads of 2 layers."""
        trace = self.spanned([kvbench.Span("a", 0, 2), kvbench.Span("b", 2, 6), kvbench.Span("c", 8, 12)])
        method = self.scores([[[0, 1, 2, 8], [0, 1, 8, 9]], [[0, 1, 8, 10], [0, 1, 2, 8]]])
        rows = {(row["layer"], row["kv_head"]): row for row in self.rows(trace, "-m", method, "-b", "4", "--rows",
                                                                         "head", "--protocol", "prefill", "--window",
                                                                         "4")}
        for place, kept, lost in ((("all", "all"), "a 1.000, b 0.125, c 0.375", "a 0.000, b 0.750, c 0.250"),
                                  (("0", "all"), "a 1.000, b 0.125, c 0.375", "a 0.000, b 0.750, c 0.500"),
                                  (("1", "all"), "a 1.000, b 0.125, c 0.375", "a 0.000, b 0.750, c 0.500"),
                                  (("0", "1"), "a 1.000, b 0.000, c 0.500", "a 0.000, b 1.000, c 0.500"),
                                  (("1", "1"), "a 1.000, b 0.250, c 0.250", "a 0.000, b 0.750, c 0.750")):
            self.assertEqual((rows[place][KEPT], rows[place][LOST]), (kept, lost), place)

    def test_the_context_that_is_replayed(self):
        """Of a prefill whose context ends at token 14; protected tokens are held."""
        flags = [self.spanned(), "-m", "sink", "-b", "6", "--protocol", "prefill", "--window", "6", "--rows", "trace"]
        self.assertEqual(self.rows(*flags)[0][KEPT], "system 1.000, user 0.250, own answer 0.000")  # 12, 13 of 8
        row, = self.rows(*flags, "--protect-outside", "2,2")  # 0, 1, 12, 13; the method has 2-5, 10, 11
        self.assertEqual(row[KEPT], "system 1.000, user 0.500, own answer 1.000")

    def test_methods_of_which_nothing_is_said(self):
        trace = self.spanned()
        whole = "system 1.000, user 1.000, own answer 1.000"
        for methods, budget, says in (("oracle-topk,kmeans", "50%", ""), ("exact,int4", "100%mem", whole)):
            for row in self.rows(trace, "-m", methods, "-b", budget):
                self.assertEqual((row["status"], row[KEPT], bool(row[LOST])), ("ok", says, says != ""), row["method"])
        for row in self.rows(trace, "-m", "sink", "-b", "12", "--rows", "query"):
            self.assertEqual(bool(row[KEPT]), row["query"] == "all")

    def test_traces_without_them(self):
        with kvbench.Trace(self.spanned(None)) as trace:
            self.assertIsNone(trace.prompts["0"].spans)
        self.assertNotIn("spans", run("info", self.path("t.h5")))
        with h5py.File(self.path("t.h5")) as file:
            self.assertNotIn("spans", file["prompts/0"])
        row, = self.rows(self.path("t.h5"), "-m", "sink", "-b", "12", "--rows", "trace")
        self.assertEqual((row[KEPT], row[LOST]), ("", ""))

    def test_sweeps_and_texts(self):
        self.spanned(texts=2)
        with open(self.path("sweep.toml"), "w") as file:
            file.write('[defaults]\ntraces = ["t.h5"]\nbudgets = 12\n[[run]]\nname = "r"\nmethods = ["sink"]\n')
        run("sweep", self.path("sweep.toml"), "-o", self.path("rows.csv"), "-q")
        with open(self.path("rows.csv")) as file:
            swept = list(csv.DictReader(file))
        rows = self.rows(self.path("t.h5"), "-m", "sink", "-b", "12", "--rows", "layer")
        self.assertEqual([[row[KEPT], row[LOST]] for row in swept], [[row[KEPT], row[LOST]] for row in rows])
        self.assertEqual({row[KEPT] for row in rows}, {"system 1.000, user 0.400, own answer 0.000"})
