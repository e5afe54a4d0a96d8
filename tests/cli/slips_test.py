# SPDX-License-Identifier: Apache-2.0
"""What users of other programs write is accepted where the meaning is clear; else tests/refusals/slips.py."""

import json

from support import CliTest, rows, run

# Flags of a replay, and others that mean the same.
REPLAY = (
    (["-m", "snapkv[window=4]"], ["-m", "snapkv(window=4)"]), (["-m", "snapkv[window=4]"], ["-m", "snapkv{window=4}"]),
    (["-m", "snapkv[window=4,kernel=5]"], ["-m", "snapkv(Window = 4, kernel=5)"]),
    (["-m", "snapkv[pooling=mean]"], ["-m", "snapkv[pooling=Mean]"]),
    (["-m", "snapkv,sink"], ["-m", "snapkv, sink"]), (["-m", "sink+int8"], ["-m", "sink + int8", "-b", "25%"]),
    (["-m", "sink", "-b", "25%mem"], ["-m", "sink", "-b", "25 %mem"]),
    (["-m", "sink", "-b", "25%mem,50%mem"], ["-m", "sink", "-b", "25%memory, 0.5mem"]),
    (["-m", "sink", "-b", "8KB"], ["-m", "sink", "-b", "8kb"]),
    (["-m", "sink", "-b", "25%"], ["-m", "sink", "-b", ".25"]),
    (["-m", "sink", "--threads", 1], ["-m", "sink", "-j", 1]), (["-m", "sink", "-b", "25%"], ["-m=sink", "-b=25%"]),
    (["-m", "sink", "--prompts", "0"], ["-m", "sink", "--prompts", "gaussian-0"]),
    (["-m", "sink", "--prompts", "0"], ["-m", "sink", "--prompts", " 0 "]),
    (["-m", "sink", "--heads", "0,1"], ["-m", "sink", "--heads", " 0 - 0 , 1 "]),
    (["-m", "random", "--seeds", "3,4"], ["-m", "random", "--seeds", "3, 4"]),
    (["-m", "sink", "--protect", "4,8"], ["-m", "sink", "--protect", "4, 8"]),
    (["-m", "sink", "--protect", "4,8"], ["-m", "sink", "--protect", "4", "--protect", "8"]),
    (["-m", "random", "--seeds", "3,4"], ["-m", "random", "--seeds", "3", "--seeds", "4"]))


class Slips(CliTest):
    def test_families(self):
        flags = ["replay", self.trace, "--seeds", 1, "--rows", "trace", "--no-times"]
        names = lambda *methods: [row["method"] for row in rows(run(*flags, "-m", *methods).stdout)]
        kinds = {row["method"]: row["kind"] for row in rows(self.ok("methods", "--format", "csv"))}
        for family in ("eviction", "sampling", "merging", "retrieval", "quantisation"):
            of_kind = [name for name, kind in kinds.items()
                       if kind == family and name not in ("oracle-error", "duo", "duo@kvpress")]
            self.assertEqual(names(family), of_kind)
            self.assertEqual(names(f"exact,{family.upper()},-{of_kind[0]}"), ["exact", *of_kind[1:]])
        self.assertEqual(names("all,-knorm"), [name for name in names("all") if name != "knorm"])

    def test_accepted(self):
        for right, slip in REPLAY:
            with self.subTest(slip=slip):
                flags = ["replay", self.trace, "--rows", "trace", "--no-times"]
                self.assertEqual(self.ok(*flags, *slip), self.ok(*flags, *right))
        self.assertEqual(self.ok("-v"), self.ok("--version"))
        self.assertEqual(self.ok("validate", "--synthetic", "--claim", "subgen.lemma1.*", "--queries", 1),
                         self.ok("validate", "--synthetic", "--check", "subgen.lemma1", "--queries", 1))

    def test_synthetic_traces_shorter_than_the_default(self):
        for tokens, context, queries in ((2, 1, 2), (64, 60, 64), (5000, 3840, 384)):
            self.ok("synth", "-o", self.path("s.h5"), "--tokens", tokens, "--layers", 1, "--head-dim", 8, "-q")
            layer, = json.loads(self.ok("info", self.path("s.h5"), "--format", "json"))
            self.assertEqual((layer["prompt_tokens"], layer["queries"]), (context, queries))

    def test_methods(self):
        listed = self.ok("methods", "eviction").splitlines()
        self.assertEqual(listed,
                         [line for line in self.ok("methods").splitlines() if line.split()[1:2] == ["eviction"]])
        self.assertGreater(len(listed), 5)
        self.assertEqual(self.ok("methods", "quantisers"), self.ok("methods", "quantisation"))
        self.assertRegex(self.ok("methods", "subgen"),
                         '\n  lacks        "a budget of the whole context gives the exact output": values are sampled')
        self.assertIn("\n  needs        queries inside the context", self.ok("methods", "snapkv"))
        self.assertIn("\n  selection    per kv head\n", self.ok("methods", "snapkv"))
        self.assertNotIn("\n  selection ", self.ok("methods", "fp8"))  # it keeps all tokens
        both = self.ok("methods", "snapkv", "h2o")
        self.assertEqual(both, self.ok("methods", "snapkv(window=4), h2o"))
        self.assertEqual(both, self.ok("methods", "snapkv") + "\n" + self.ok("methods", "h2o"))

    def test_sweep_files(self):
        def table(methods):
            path = self.write(f'[[run]]\ntraces = "t.h5"\nmethods = [{methods}]\nbudgets = ["25 %"]\n')
            return self.ok("sweep", path, "--no-times")
        self.fails(2, "cells are no table", args=["sweep", self.write('[[run]]\ntraces = "t.h5"\nmethods = ["sink"]\n'),
                                                  "--cells", self.path("a.csv")])
        self.assertEqual(table('"snapkv(window=4)"'), table('{ name = "snapkv", window = 4 }'))
