# SPDX-License-Identifier: Apache-2.0
"""Bad flags give a sentence that names cause and remedy, the documented exit code, and no output file."""
import json
import os
import re
import resource
import shutil
import subprocess

from support import CliTest, KVBENCH, rows, run


COMMANDS = {"info": lambda test: [test.trace], "replay": lambda test: [test.trace, "-m", "sink"],
            "sweep": lambda test: ["s.toml"], "merge": lambda test: ["a.cells"], "compare": lambda test: ["raw.h5"],
            "report": lambda test: ["a.csv"], "validate": lambda test: ["--synthetic"], "methods": lambda test: [],
            "synth": lambda test: [], "cache": lambda test: [],
            "allocate": lambda test: [test.trace, "--menu", "h2o"]}  # and what each needs beside a flag


class BadFlags(CliTest):
    def refused(self, *words, flags):
        message = self.fails(2, *words, args=["replay", self.trace, *flags])
        self.assertNotRegex(message, r"`\w+`")  # the library's name of a field

    def test_unknown_method(self):
        self.refused("'subgem'", "Did you mean 'subgen'?", flags=["-m", "subgem"])
        self.fails(2, "Did you mean 'snapkv'?", args=["methods", "snakpv"])

    def test_messages_cannot_command_a_terminal(self):
        self.refused(r"'\x1b[31m", flags=["-m", "\x1b[31m+int4"])
        self.fails(2, r"'\x1b[31m\xc2\x9b'", args=["methods", "\x1b[31m\x9b"])

    def test_unknown_parameter(self):
        self.refused("'windw'", "Did you mean 'window'?", flags=["-m", "snapkv", "--set", "snapkv.windw=3"])
        self.refused("snapkv.window", "'many'", flags=["-m", "snapkv", "--set", "snapkv.window=many"])
        self.refused("METHOD.PARAMETER=VALUE", flags=["-m", "snapkv", "--set", "window=3"])
        self.refused("is for a method that is not replayed", flags=["-m", "exact", "--set", "snapkv.window=3"])

    def test_budgets(self):
        self.refused("'0'", "keeps nothing", flags=["-m", "sink", "-b", "0"])
        self.refused("--budget: 193 is larger", "192", flags=["-m", "sink", "-b", "193"])
        self.refused("--budget: 3B is less", flags=["-m", "sink", "-b", "3B"])
        self.refused("'200%'", flags=["-m", "sink", "-b", "200%"])
        self.refused("'x'", flags=["-m", "sink", "-b", "x"])

    def test_selections(self):
        self.refused("--layers: the trace has no layer 7", flags=["-m", "sink", "--layers", "7"])
        self.refused("--heads: there is no kv head 5", flags=["-m", "sink", "--heads", "5"])
        self.refused("--prompts: the trace has no prompt '9'", flags=["-m", "sink", "--prompts", "9"])
        self.refused("--window is 256, which leaves no context",
                     flags=["-m", "sink", "--protocol", "prefill", "--window", "256"])
        self.refused("--protect: 100 + 100 tokens", flags=["-m", "sink", "--protect", "100,100"])
        self.refused("--protect-outside: 100 + 100 tokens", flags=["-m", "sink", "--protect-outside", "100,100"])
        self.refused("--protect: give two numbers", flags=["-m", "sink", "--protect", "4"])
        self.refused("--seeds is 0", flags=["-m", "random", "--seeds", "0"])
        self.refused("--prompts: 0 is given twice", flags=["-m", "sink", "--prompts", "0,0"])
        self.refused("--seeds: 3 is given twice", flags=["-m", "random", "--seeds", "3,1-4"])
        self.refused("--budget: 25% is given twice", flags=["-m", "sink", "-b", "25%,25%"])

    def test_huge_numbers(self):
        """Each is refused within the memory of a normal run."""
        def limit():
            if not os.environ.get("KVBENCH_SANITIZE"):  # a sanitizer reserves terabytes of addresses
                resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        huge = str(2**63 - 1)
        for flag, value, words in (("--layers", huge, "no layer " + huge),
                                   ("--heads", huge, "no kv head " + huge), ("--seeds", huge, f"--seeds is {huge}"),
                                   ("--seeds", f"{huge},1", "is not between 0 and 2^32 - 1"),
                                   ("--protect", f"{huge},{huge}", "whole context"),
                                   ("--protect-outside", f"4,{huge}", "whole context"),
                                   ("--protect", huge, "give two numbers"),
                                   ("--seeds", "0-999999", "more than 100000 numbers"),
                                   ("--seeds", "0-60000,100000-160000", "more than 100000 numbers"),
                                   ("--layers", f"-5-{huge}", "more than 100000"),
                                   ("--layers", "3-0", "is not a range")):
            self.fails(2, words, args=["replay", self.trace, "-m", "random", flag, value], preexec_fn=limit)

    def test_largest_parameters(self):
        """Each integer of each method at the end of its range is used or refused, in seconds, and counts bytes."""
        names = [row["method"] for row in json.loads(self.ok("methods", "--format", "json"))]
        tried = 0
        for name in names:
            parameters = json.loads(self.ok("methods", name, "--format", "json"))
            methods = [f"{name}[{p['parameter']}={([2**31 - 1] + re.findall('[.]{2} (.*)', p['range'] or ''))[-1]}]"
                       for p in parameters if p["type"] == "integer"]
            for method in methods:
                with self.subTest(method=method):
                    done = run("replay", self.trace, "-m", method, "-b", "25%mem,100%", "--rows", "trace", "--seeds", 1,
                               "--format", "json")
                    self.assertIn(done.returncode, (0, 2), done.stderr)
                    for row in json.loads(done.stdout or "[]"):
                        self.assertTrue(row["status"] != "ok" or row["total_bytes"] > 0, row)
                    tried += 1
        self.assertGreater(tried, 100)

    def test_values_of_flags(self):
        """A value that is not of the flag's kind is quoted in a sentence, whatever the flag."""
        numbers = {"replay": {"--window": "of at least 1", "--dense-layers": "of at least 0",
                              "--threads": "from 0 to 4096"},
                   "validate": {"--queries": "from 1 to 4096", "--seeds": "from 10 to 1000000",
                                "--alpha": "from 1e-12 to 0.5", "--eps": "from 0.001 to 1",
                                "--delta": "from 1e-06 to 0.5", "--threads": "from 0 to 4096"}}
        needed = {"replay": [self.trace, "-m", "sink"], "validate": ["--synthetic"], "sweep": ["s.toml"]}
        for command, flags in numbers.items():
            for flag, bounds in flags.items():
                for value in ("many", "nan", "inf", "1e999", "-1", "9" * 20):
                    message = self.fails(2, f"{flag}: '{value}' is not a ", f"number {bounds} (see",
                                         args=[command, *needed[command], flag, value])
                    self.assertLess(len(message), 200)
        for value in ("-1", "0", "nan", "inf", "1e999", "9" * 20, "much", "2X", "1b2"):
            self.fails(2, f"--memory: '{value}' is not a size such as 2G",
                       args=["replay", self.trace, "-m", "sink", "--memory", value])
        for command, flag in (("replay", "--format"), ("replay", "--device"), ("replay", "--isa"), ("replay", "--rows"),
                              ("validate", "--format")):
            self.fails(2, f"{flag}: 'nan' is not one of ", args=[command, *needed[command], flag, "nan"])
        self.fails(2, "--isa is given twice; it takes one value",
                   args=["replay", *needed["replay"], "--isa", "scalar", "--isa", "scalar"])
        self.fails(2, "--isa needs a value", args=["replay", *needed["replay"], "--isa"])
        self.ok("replay", self.trace, "-m", "sink", "--memory", "1.5GiB", "--threads", 1)

    def test_protocols(self):
        stream = ["-m", "sink", "--protocol", "stream"]
        self.refused("--protect must be left out: --protocol is stream", flags=[*stream, "--protect", "4,4"])
        self.refused("--decoded is keep", "--protocol is stream", flags=[*stream, "--decoded", "keep"])

    def test_command_line(self):
        self.fails(2, args=["replay"])
        self.fails(2, "there is no command reply. Did you mean 'replay'?", "(see kvbench --help)",
                   args=["reply", self.trace])
        self.fails(2, "there is no flag --no-such-flag.", "(see kvbench replay --help)",
                   args=["replay", self.trace, "-m", "exact", "--no-such-flag"])
        self.fails(2, "there is no flag --metod. Did you mean '--method'?",
                   args=["replay", self.trace, "--metod=exact"])
        self.fails(2, "there is no flag --verison. Did you mean '--version'?", args=["--verison"])
        self.fails(2, "--by: 'haed' is not one of all, head, layer, prompt. Did you mean 'head'?",
                   args=["compare", "x", "--by", "haed"])
        self.fails(2, "device", args=["replay", self.trace, "-m", "exact", "--device", "tpu"])
        self.ok("--help")
        for command in ("replay", "compare", "synth"):
            page = run(command, "--help")
            self.assertEqual(page.returncode, 0)
            self.assertNotIn("->", page.stdout)
            self.assertNotIn("ENUM", page.stdout)
        self.assertIn("--by TEXT:{all,head,layer,prompt}", " ".join(run("compare", "--help").stdout.split()))

    def test_device(self):
        """Without a GPU the error names the reason; with one, cuda runs."""
        asked = run("replay", self.trace, "-m", "sink", "-b", "16", "--no-times", "--device", "cuda")
        auto = self.succeeds("replay", self.trace, "-m", "sink", "-b", "16", "--no-times", "--device", "auto")
        device = rows(auto.stdout)[0]["device"]
        if asked.returncode == 0:
            self.assertTrue(device.startswith("cuda ("), device)
            self.assertEqual(asked.stdout, auto.stdout)
            return
        self.assertEqual((asked.returncode, asked.stdout, device), (2, "", "cpu"))
        reasons = ["no NVIDIA driver is installed", "finds no NVIDIA GPU", "supports CUDA",
                   "the CUDA module cannot be loaded"]
        reason = [r for r in reasons if r in asked.stderr]
        self.assertEqual(len(reason), 1, asked.stderr)
        self.assertIn("--device is cuda, which cannot be used", asked.stderr)
        self.assertIn("set --device to cpu", asked.stderr)
        self.assertIn("--device is auto", auto.stderr)
        self.assertIn(reason[0], auto.stderr)
        plain = run("replay", self.trace, "-m", "sink", "-b", "16", "--no-times")
        self.assertEqual((plain.stdout, plain.stderr), (auto.stdout, ""))

    def test_a_cuda_module_that_is_missing_or_of_another_version(self):
        flags = ("replay", self.trace, "-m", "sink", "--device", "cuda")
        alone = shutil.copy(KVBENCH, self.path("alone"))
        done = subprocess.run([alone, *flags], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        for words in ("libkvbench_cuda.so", "`make build` builds it", "set --device to cpu"):
            self.assertIn(words, done.stderr)
        self.fails(2, "belongs to another version of kvbench", "make build", args=flags,
                   env={**os.environ, "LD_LIBRARY_PATH": os.environ["KVBENCH_OTHER_MODULE"]})

    def test_flags_without_effect(self):
        """A flag that would choose other results, and changes nothing, is an error that says beside what it has no
        effect; one that would change how they are computed or shown is a note."""
        replay = ["replay", self.trace, "-m", "sink"]
        sweep = self.write('[[run]]\nname = "a"\ntraces = "t.h5"\nmethods = ["sink"]\n')
        cells = self.path("a.cells")
        self.ok("sweep", sweep, "--cells", cells, "-o", self.path("a.csv"))
        synth = ["synth", "-o", self.path("never.h5")]
        validate, mutants = ["validate", "--synthetic", "--claim", "subgen.lemma2"], ["validate", "--mutants"]
        shard = ["sweep", sweep, "--shard", "1/2", "--cells", self.path("never.cells")]
        out = self.path("never.csv")
        cases = [
            ("--window", [*replay, "--protocol", "stream", "--window", 8]),
            ("--window", [*replay, "--protocol", "decode", "--window", 8]),
            ("--window", [*replay, "--window", 8]),
            ("--decoded", [*replay, "--protocol", "prefill", "--decoded", "keep"]),
            ("--resume", ["sweep", sweep, "--resume"]),
            ("--overwrite", ["sweep", sweep, "--overwrite"]),
            ("-o", [*shard, "-o", out]),
            ("--rows", [*shard, "--rows", "head"]),
            ("--format", [*shard, "--format", "csv"]),
            ("--layers", [*validate, "--layers", 0]),
            ("--heads", [*validate, "--heads", 0]),
            ("--check", [*mutants, "--check", "subgen.lemma2"]),
            ("--claim", [*mutants, "--claim", "subgen.lemma2"]),
            ("--layers", [*mutants, "--layers", 0]),
            ("--heads", [*mutants, "--heads", 0]),
            ("--synthetic", [*mutants, "--synthetic"]),
            ("--clusters", [*synth, "--clusters", 4]),
            ("--spread", [*synth, "--pattern", "sinks", "--spread", 0.5]),
            ("--column-queries", [*synth, "--column-sums", "false", "--column-queries", 8]),
            ("--isa", [*synth, "--column-sums", "false", "--isa", "scalar"]),
            ("-o,--output", ["replay", "--columns", "-o", out]),
            ("-m,--method", ["replay", "--columns", "-m", "sink"]),
            ("--a", ["compare", "--metrics", "--a", "sink"]),
            ("-j,--threads", ["sweep", "--example", "--threads", 2]),
            ("--nope", ["sweep", "--example", "--nope"]),
            ("--nope", ["compare", "--metrics", "--nope"]),
            ("--seeds", ["validate", "--list", "--seeds", 20]),
            ("--text", ["eval", "--columns", "--text", "a.txt"]),
            ("model.gguf", ["eval", "model.gguf", "--columns", "--format", "md"]),
            ("--format", ["eval", "--list-tasks", "--format", "md"]),
            ("-o", ["report", self.path("a.csv"), "--figure", "list", "-o", self.path("never.svg")]),
        ]
        for flag, command in cases:
            with self.subTest(command=command[0], flag=flag):
                self.fails(2, f"kvbench: {flag} has no effect ", args=command)
        notes = [
            ("--summary", [*replay, "--summary"]),
            ("--label", [*replay, "--label", "sink=Ours"]),
            ("--summary", [*replay, "-o", "-", "--summary"]),
            ("--no-times", [*replay, "--format", "md", "--no-times"]),
            ("--no-times", [*replay, "--format", "table", "--no-times"]),
            ("--isa", [*replay, "--device", "ref", "--isa", "scalar"]),
            ("--rows", [*replay, "--format", "table", "--rows", "head"]),
            ("--standalone", [*replay, "--format", "md", "--standalone"]),
            ("--seeds", [*replay, "--seeds", 3]),
            ("--recall-sinks", ["replay", self.trace, "-m", "h2o,int8", "--recall-sinks"]),
            ("--summary", ["sweep", sweep, "--summary"]),
            ("--no-times", [*shard, "--no-times", "--overwrite"]),
            ("--summary", [*shard, "--summary", "--overwrite"]),
            ("--summary", ["merge", cells, "--summary"]),
            ("--no-times", ["merge", cells, "--no-times", "--format", "md"]),
            ("--summary", [*validate, "--summary", "--queries", 1]),
            ("--thorough", [*validate, "--thorough", "--seeds", 20, "--queries", 1]),
        ]
        for flag, command in notes:
            with self.subTest(command=command[0], note=flag):
                done = self.succeeds(*command)
                self.assertEqual(done.stderr.count("has no effect"), 1, done.stderr)
                self.assertIn(f"kvbench: {flag} has no effect ", done.stderr)
        self.fails(2, "no row is of 'snik'", args=[*replay, "--label", "snik=Ours", "--raw", self.path("never.h5")])
        self.fails(2, "--summary", "short", "full", args=[*replay, "-o", out, "--summary=long"])
        self.fails(2, "there is no check 'nope'", args=[*mutants, "--claim", "nope"])
        self.fails(2, "--method sink: no fault is planted", args=[*mutants, "--method", "sink"])
        self.fails(2, "--format md: the table of --mutants is csv, json or table", args=[*mutants, "--format", "md"])
        self.only_files("a.cells", "a.csv", "never.cells", "s.toml", "t.h5")

    def test_empty_values(self):
        """An empty text, as of an unset variable of a script, is no value of any flag of any command."""
        commands = [line.split()[0] for line in run("--help").stdout.split("Subcommands:\n")[1].splitlines() if line]
        self.assertGreater(len(commands), 9)
        tried = 0
        for command in set(commands) & set(COMMANDS):
            page = run(command, "--help").stdout
            for flag in re.findall(r"^ +(?:-\w,)?(--[\w-]+|-\w) (?:TEXT|INT|UINT|FLOAT)", page, re.MULTILINE):
                with self.subTest(command=command, flag=flag):
                    out = ["-o", "never"] if command in ("report", "synth") and flag != "--output" else []
                    message = self.fails(2, flag, args=[command, *COMMANDS[command](self), *out, flag, ""])
                    self.assertRegex(message, "empty|'' is not|twice|one value")
                tried += 1
        self.assertGreater(tried, 60)
        self.only_files("t.h5")

    def test_synth_options(self):
        out = self.path("bad.h5")
        synth = ["synth", "--pattern", "clusters", "-o", out]
        self.fails(2, "--query-heads is 3, which is not a multiple of --kv-heads, 2",
                   args=[*synth, "--query-heads", 3, "--kv-heads", 2])
        for flag in ("--layers", "--query-heads", "--kv-heads", "--head-dim", "--value-dim", "--prompts", "--clusters"):
            self.fails(2, f"{flag} is 0; it must be at least 1", args=[*synth, flag, 0])
        for flag in ("--column-queries", "--spread", "--key-norm", "--speculated", "--probes"):
            self.fails(2, f"{flag} is -1; it must be", args=[*synth, flag, -1])
        self.fails(2, "--queries is 900, more than --tokens",
                   args=[*synth, "--tokens", 800, "--prompt-tokens", 700, "--queries", 900])
        self.fails(2, "--head-dim is 1000000; it must be at most 16384",
                   args=[*synth, "--head-dim", 1000000])
        self.fails(2, "--tokens is 4611686018427387904; it must be at most",
                   args=[*synth, "--tokens", 2**62])
        self.fails(2, "65535 --prompts of 65535 --layers", "too many",
                   args=[*synth, "--prompts", 65535, "--layers", 65535])
        self.fails(2, "--seed: '-1' is not a whole number from 0 to 4294967295",
                   args=[*synth, "--seed", -1])
        self.fails(2, "--column-sums: 'maybe' is not one of true, false",
                   args=[*synth, "--column-sums", "maybe"])
        for flag in ("--spread", "--key-norm", "--speculated"):
            for value in ("nan", "inf", "1e999", "wide"):
                self.fails(2, f"{flag}: '{value}' is not a number (see", args=[*synth, flag, value])
        self.assertFalse(os.path.exists(out))
