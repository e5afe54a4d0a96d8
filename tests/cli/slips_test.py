# SPDX-License-Identifier: Apache-2.0
"""What users of other programs write: accepted where the meaning is clear, else the message names the right word."""

import json

from support import CliTest, rows, run

# Command lines, and the words of the message.
ANSWERED = (
    (["list"], "no command list. Write kvbench methods"), (["ls"], "Write kvbench methods"),
    (["help", "ls"], "Write kvbench methods"),
    (["help", "snapkw"], "there is no command or topic snapkw. Did you mean 'snapkv'?"),
    (["help", "eviktion"], "Did you mean 'eviction'?"), (["help", "budgt"], "Did you mean 'budget'?"),
    (["help", "colums"], "Did you mean 'columns'?"), (["cmp"], "Write kvbench compare"),
    (["report", "a.csv", "-f", "md"], "no flag -f. Write --format."), (["plot"], "Write kvbench report"),
    (["choose"], "Write kvbench-choose"),
    (["dump", "model.gguf"], "Write kvdump or kvbench-dump-hf"), (["run"], "Write kvbench replay"),
    (["test"], "Write kvbench validate"), (["verify-golden", "-m", "sink"], "Write kvbench validate golden"),
    (["evaluate"], "Did you mean 'eval'?"), (["kveval"], "Write kvbench eval"),
    (["replay", "T", "-m", "sink", "-v"], "no flag -v. Write --verbose, or kvbench version"),
    (["info", "T", "-v"], "no flag -v. Write kvbench version"),
    (["info", "--version"], "Write kvbench version"), (["info", "T", "-V"], "Write kvbench version"),
    (["replay", "T", "-m", "sink", "--json"], "Write --format json"), (["info", "T", "--json"], "Write --format json"),
    (["replay", "T", "-m", "sink", "--limit", "3"], "Write --prompts"),
    (["validate", "T", "--limit", "3"], "Write --queries"),
    (["replay", "T", "-m", "sink", "--ratio", ".5"], "Write --budget"),
    (["replay", "T", "-m", "sink", "--compression-ratio=.75"], "0.75 in kvpress is --budget 25%"),
    (["replay", "T", "-m", "sink", "--compression_ratio", ".75"], "0.75 in kvpress is --budget 25%"),
    (["replay", "T", "-m", "sink", "-ctk", "q8_0"], "--method q8_0"),
    (["replay", "T", "-m", "sink", "--cache-type-k", "q8_0"], "--method q8_0"),
    (["replay", "T", "-m", "sink", "--mem", "25%"], "--budget 25%mem"),
    (["replay", "-m", "sink", "--trace", "T"], "Write the file of the trace without a flag"),
    (["validate", "--trace", "T"], "Write the file of the trace without a flag"),
    (["replay", "T", "-m", "sink", "--out", "x"], "Write -o FILE"),
    (["replay", "T", "-m", "sink", "--gpu"], "Write --device cuda"),
    (["replay", "T", "-m", "sink", "--force"], "Write the command without it: a file of results is replaced"),
    (["sweep", "s.toml", "--force"], "Write --overwrite, which discards stored cells"),
    (["replay", "T", "-m", "sink", "--press", "SnapKVPress"], "Write --method; presses of kvpress run in Python"),
    (["replay", "T", "-m", "sink", "--window-size", "4"], "Did you mean '--window'?"),
    (["replay", "T", "-m", "sink", "--metric", "recall"], "It is a flag of kvbench compare"),
    (["methods", "--list"], "Write kvbench methods alone"),
    (["methods", "--kind", "eviction"], "kvbench methods evict"),
    (["replay", "T", "-m", "eviction+q8_0"], "'eviction'. It stands for several methods; name one of them."),
    (["replay", "T", "-m", "sink,-knorm"], "'-knorm' leaves out nothing"),
    (["replay", "T", "-m", "sink,-eviction"], "'-eviction' leaves out all methods"),
    (["replay", "T", "-m", "all", "-knorm"], "To leave it out, write --method \"all,-knorm\"."),
    (["replay", "T", "-m", "q4"], "Did you mean 'q4_0' or 'q4_1'?"), (["methods", "q8"], "Did you mean 'q8_0'?"),
    (["methods", "q5"], "Did you mean 'q5_0' or 'q5_1'?"), (["methods", "iq4"], "Did you mean 'iq4_nl'?"),
    (["methods", "kivi"], "Here it is kivi4 or kivi2."), (["methods", "snap"], "Did you mean 'snapkv'?"),
    (["methods", "h2"], "Did you mean 'h2o'?"), (["re"], "Did you mean 'replay' or 'report'?"),
    (["val", "T"], "Did you mean 'validate'?"), (["replay", "T", "--meth", "h2o"], "Did you mean '--method'?"),
    (["replay", "T", "-m", "chunkkv"], "It is a press of kvpress: kvbench.from_kvpress()"),
    (["replay", "T", "-m", "qfilter"], "that needs a model or takes no budget"),
    (["replay", "T", "-m", "plan:"], "'plan:' does not name a file of a plan"),
    (["replay", "T", "-m", "QFilterPress"], "It is a press of kvpress"),
    (["replay", "T", "-m", "q_filter"], "It is a press of kvpress"),
    (["replay", "T", "-m", "ExpectedAttentionPress"], "Here it is expected-attention."),
    (["replay", "T", "-m", "CURPress"], "Here it is curdkv."),
    (["replay", "T", "-m", "SnapKVPress"], "Here it is snapkv@kvpress."),
    (["replay", "T", "-m", "KVzipPress"], "Here it is scores:FILE.h5 of kvbench-dump-hf --scores kvzip."),
    (["replay", "T", "-m", "damage-votes"], "scores:FILE.h5 of kvbench-dump-hf --scores damage-votes."),
    (["replay", "T", "-m", "none"], "Here it is exact."), (["replay", "T", "-m", "llamacpp"], "Here it is llama.cpp."),
    (["replay", "T", "-m", "families+q8_0"], "'families'. It stands for several methods; name one of them."),
    (["replay", "T", "-m", "adakv(vllm)"], "'vllm'. It stands for several methods; name one of them."),
    (["replay", "T", "-m", "kvquant"], "Here it is kvquant-nofisher."), (["methods", "turbo"], "'turboquant'?"),
    (["replay", "T", "-m", "snapkv[kernel_size=5]"], "Did you mean 'kernel'?"),
    (["replay", "T", "-m", "snapkv[window=4,window=8]"], "'window' is given twice"),
    (["replay", "T", "-m", "snapkv", "--set", "snapkv.window=4", "--set", "snapkv.window=8"], "is given twice"),
    (["replay", "T", "-m", "adokv(snapkv)"], "no wrapper 'adokv'; there are adakv"),
    (["replay", "T", "-m", "adakv(snapkv[window=16])"], "brackets stand once, at the end"),
    (["replay", "T", "-m", "adakv(kmeans)"], "kmeans does not rank tokens by scores"),
    (["replay", "T", "-m", "sink", "-b", "25mem"], "lacks a %"),
    (["replay", "T", "-m", "sink", "-b", "4x"], "unit 'x'"),
    (["replay", "T", "-m", "sink", "-b", "25%cache"], "unit '%cache'"),
    (["compare", "T", "snapkv", "h2o"], "snapkv: there is no such file; name methods with --a and --b"),
    (["validate", "T", "clusterkv"], "'clusterkv' has no place in kvbench validate"),
    (["validate", "clusterkv"], "choose checks with --check clusterkv"),
    (["validate", "T", "--claim", "nosuch"], "--claim: there is no check 'nosuch'"),
    (["validate", "T", "--check", "nosuch"], "--check: there is no check 'nosuch'"),
    (["validate", "golden", "snapkv"], "name a method with --method snapkv"),
    (["cache", "ls"], "'ls' has no place in kvbench cache"),
    (["cache", "clear"], "'clear' has no place in kvbench cache; write --clear"),
    (["cache", "--list"], "Write kvbench cache alone"), (["synth", "a.h5"], "write -o a.h5"),
    (["synth", "-o", "a.csv"], "a trace is HDF5; end the name with .h5"),
    (["synth", "-o", "a.h5", "--heads", "4"], "Write --query-heads or --kv-heads"),
    (["synth", "-o", "a.h5", "--dim", "4"], "--head-dim"), (["synth", "-o", "a.h5", "--n", "9"], "Write --tokens"),
    (["allocate", "T", "-m", "h2o"], "Write --menu"), (["allocate", "T", "--method", "h2o"], "Write --menu"),
    (["allocate", "T", "--menu", "h2o", "--heads", "0"], "It is a flag of kvbench replay, kvbench validate."),
    (["allocate", "T", "--menu", "h2o", "-o", "a.csv"], "plans are TOML; end the name with .toml"),
    (["allocate", "T", "--menu", "h2o", "--curve", "a.tsv"], "--curve a.tsv: no table is written in this format"),
    (["replay", "T", "-m", "sink", "--raw", "a.csv"], "raw results are HDF5; end the name with .h5"),
    (["replay", "T", "-m", "sink", "-o", "a.csv", "--summary", "full"], "write --summary=full"),
    (["sweep", "s.toml", "--summary", "full"], "'full' has no place in kvbench sweep; write --summary=full"),
    (["validate", "T", "--summary=full"], "--summary takes no value"),
    (["replay", "T", "-m", "*"], "Here it is all."),
    (["replay", "T", "-m", "sink", "--prompts", "gausian-0"], "Did you mean 'gaussian-0'? It has: 0 (gaussian-0)"))

# Lists with spaces between their values, and how they are written.
SPACED = (
    (["replay", "T", "-m", "snapkv", "h2o"], "-m snapkv,h2o"),
    (["replay", "-m", "snapkv", "h2o", "T"], "-m snapkv,h2o"),
    (["replay", "T", "--method=snapkv", "h2o", "quest", "-q"], "--method snapkv,h2o,quest"),
    (["replay", "T", "-m", "snapkv,", "h2o", "-b", "25%"], "-m snapkv,h2o"),
    (["replay", "T", "-m", "snapkv", ",", "h2o"], "-m snapkv,h2o"),
    (["replay", "T", "-m", "h2o", "+", "q8_0"], "-m h2o+q8_0"),
    (["replay", "T", "-m", "h2o", "mine.py:Mine"], "-m h2o,mine.py:Mine"),
    (["replay", "T", "-m", "h2o", "snapkv[window=8]"], '-m "h2o,snapkv[window=8]"'),
    (["replay", "T", "-m", "snapkv[window=8,", "kernel=5]"], '-m "snapkv[window=8,kernel=5]"'),
    (["replay", "T", "-m", "h2o", "-b", "25%", "50%"], "-b 25%,50%"),
    (["replay", "T", "-m", "h2o", "-b", "64KiB", "128"], "-b 64KiB,128"),
    (["replay", "T", "-m", "h2o", "-b", "25", "%mem"], "-b 25%mem"),
    (["replay", "T", "-m", "h2o", "--layers", "0", "1"], "--layers 0,1"),
    (["replay", "T", "-m", "h2o", "--layers=0", "1", "--heads", "0"], "--layers 0,1"),
    (["replay", "T", "-m", "h2o", "--heads", "0", "1"], "--heads 0,1"),
    (["replay", "T", "-m", "h2o", "--prompts", "0", "1"], "--prompts 0,1"),
    (["replay", "T", "-m", "random", "--seeds", "3", "4"], "--seeds 3,4"),
    (["replay", "T", "-m", "h2o", "--protect", "4", "8"], "--protect 4,8"),
    (["replay", "T", "-m", "h2o", "--protect-outside", "4", "8"], "--protect-outside 4,8"),
    (["replay", "T", "-m", "h2o", "--set", "h2o.heavy=1", "h2o.per=query_head"],
     "--set h2o.heavy=1 --set h2o.per=query_head"),
    (["sweep", "s.toml", "--trace", "T", "T"], "--trace T --trace T"),
    (["validate", "T", "--check", "clusterkv", "subgen"], "--check clusterkv,subgen"),
    (["validate", "--claim", "clusterkv", "subgen"], "--claim clusterkv,subgen"),
    (["validate", "T", "--method", "clusterkv", "subgen"], "--method clusterkv,subgen"),
    (["validate", "T", "--layers", "0", "1"], "--layers 0,1"),
    (["validate", "golden", "-m", "snapkv", "h2o"], "-m snapkv,h2o"),
    (["allocate", "T", "--menu", "h2o", "q8_0"], "--menu h2o,q8_0"),
    (["allocate", "T", "--menu", "h2o", "-b", "25%mem", "50%mem"], "-b 25%mem,50%mem"),
    (["report", "a.csv", "-m", "snapkv", "h2o"], "-m snapkv,h2o"))

# Parameters of methods as flags, and how they are written.
PARAMETERS = (
    (["replay", "T", "-m", "snapkv", "--kernel", "5"], '--method "snapkv[kernel=5]"'),
    (["replay", "T", "-m", "snapkv", "--kernel=5"], '--method "snapkv[kernel=5]"'),
    (["replay", "T", "-m", "snapkv", "--KERNEL"], '--method "snapkv[kernel=VALUE]"'),
    (["replay", "--kernel", "5", "-m", "h2o,snapkv[pooling=mean]", "T"],
     '--method "h2o,snapkv[pooling=mean,kernel=5]"'),
    (["replay", "T", "-m", "snapkv,pyramidkv", "--kernel", "5"], '--method "snapkv[kernel=5],pyramidkv[kernel=5]"'),
    (["replay", "T", "-m", "h2o+kivi4", "--group", "32"], '--method "h2o+kivi4[kivi4.group=32]"'),
    (["replay", "T", "-m", "mesh", "--max-pairs", "32"], '--method "mesh[max_pairs=32]"'),
    (["replay", "T", "-m", "snapkv", "--window", "16"], '--method "snapkv[window=16]"'),
    (["replay", "T", "-m", "families", "--kernel", "5"], "snapkv[kernel=5],pyramidkv[kernel=5]"),
    (["replay", "T", "-m", "chelsea", "--ratio", ".5"], '--method "chelsea[ratio=.5]"'),
    (["allocate", "T", "--menu", "h2o", "--heavy", "1"], '--menu "h2o[heavy=1]"'),
    (["validate", "golden", "-m", "snapkv", "--window", "16"], '--method "snapkv[window=16]"'),
    (["methods", "snapkv", "--check", "--window", "4"], '"snapkv[window=4]"'),
    (["compare", "raw.h5", "--a", "snapkv", "--window", "16"], '--a "snapkv[window=16]"'))

# Commands that do not exist are named before their flags are judged.
COMMANDS = (
    (["repaly", "T", "--method", "x"], "no command repaly. Did you mean 'replay'?"),
    (["repaly", "--no-such"], "no command repaly."), (["repaly", "-m", "snapkv", "h2o"], "no command repaly."),
    (["ls", "--all"], "Write kvbench methods"),
    (["T", "--method", "x"], "Write a command before a file, as in kvbench info T."))

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
    def test_answered(self):
        for args, words in ANSWERED:
            with self.subTest(args=args):
                message = self.fails(2, words, args=[self.trace if arg == "T" else arg for arg in args])
                self.assertNotIn("..", message)
                self.assertNotRegex(message, r"`\w+`")  # the library's name of a field
        self.only_files("t.h5")

    def test_lists_with_spaces(self):
        for args, right in SPACED:
            with self.subTest(args=args):
                self.fails(2, f"write {right}".replace("T", self.trace),
                           args=[self.trace if arg == "T" else arg for arg in args])
        missing = self.fails(2, "none.h5: no such file", args=["replay", "-m", "sink", "none.h5"])
        self.assertNotIn("sink", missing)
        self.fails(2, "h2o: there is no such trace; give a method as --method h2o",
                   args=["replay", self.trace, "h2o", "-m", "sink"])
        self.fails(2, "25%: there is no such trace; give a budget as --budget 25%",
                   args=["replay", self.trace, "25%", "-m", "sink"])

    def test_parameters_as_flags_and_commands_that_do_not_exist(self):
        for args, right in (*PARAMETERS, *COMMANDS):
            with self.subTest(args=args):
                self.fails(2, right.replace("T.", self.trace + "."),
                           args=[self.trace if arg == "T" else arg for arg in args])

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
        self.fails(2, "--prompt-tokens is 65, more than --tokens, which is 64; lower it",
                   args=["synth", "-o", self.path("s.h5"), "--tokens", 64, "--prompt-tokens", 65])

    def test_methods(self):
        listed = self.ok("methods", "eviction").splitlines()
        self.assertEqual(listed,
                         [line for line in self.ok("methods").splitlines() if line.split()[1:2] == ["eviction"]])
        self.assertGreater(len(listed), 5)
        self.assertEqual(self.ok("methods", "quantisers"), self.ok("methods", "quantisation"))
        both = self.ok("methods", "snapkv", "h2o")
        self.assertEqual(both, self.ok("methods", "snapkv(window=4), h2o"))
        self.assertEqual(both, self.ok("methods", "snapkv") + "\n" + self.ok("methods", "h2o"))
        self.fails(2, "a family is printed as text", args=["methods", "eviction", "--format", "csv"])
        self.fails(2, "2 are given", args=["methods", "snapkv", "h2o", "--format", "json"])

    def test_sweep_files(self):
        def table(methods):
            path = self.write(f'[[run]]\ntraces = "t.h5"\nmethods = [{methods}]\nbudgets = ["25 %"]\n')
            return self.ok("sweep", path, "--no-times")
        self.fails(2, "cells are no table", args=["sweep", self.write('[[run]]\ntraces = "t.h5"\nmethods = ["sink"]\n'),
                                                  "--cells", self.path("a.csv")])
        self.assertEqual(table('"snapkv(window=4)"'), table('{ name = "snapkv", window = 4 }'))
