# SPDX-License-Identifier: Apache-2.0
"""What a user may write on the command line in one way or another: help, order of flags, names, budgets, traces, and
tables as JSON."""
import json
import os
import pty
import re
import select
import shutil
import subprocess
import time
import tomllib
import unittest
from unittest import mock

from support import KVBENCH, SAMPLE, CliTest, rows, run

COMMANDS = ("info", "replay", "sweep", "merge", "compare", "report", "validate", "methods", "synth", "eval", "cache",
            "allocate", "bundle", "verify", "cite", "claim", "completion", "man", "doctor")

WITH_KVBENCH = f"{os.path.dirname(KVBENCH)}:{os.environ['PATH']}"  # completion asks the program for parameters


def as_json(text):
    """The objects of a table; fails for what JSON does not know, such as NaN."""
    def refuse(word):
        raise AssertionError(word)
    return json.loads(text, parse_constant=refuse)


BY = "Written by kvbench 0.1.0 (0123456789). docs/results.md defines the metrics."
# Pages that quote a report, by format.
QUOTES = {
    "html": (f"<p>{BY}</p>\n",
             f"<!DOCTYPE html>\n<html lang=\"en\">\n<footer>{BY}</footer>\n</script>\n</body>\n</html>\n"),
    "md": (f"# Mine\n> {BY}\n", f"# Mine\n\n---\n{BY}\nand what I think of it\n"),
    "latex": (f"%% {BY}\n", f"\\section{{Mine}}\n% {BY}\n"),
    "svg": ("<svg >Written by kvbench</svg>\n", "<svg ></svg>\n<!-- Written by kvbench -->\n<!-- mine -->\n"),
    "pdf": ("(Written by kvbench)\n", "%PDF-1.4\n(Written by kvbench)\n", "/Creator (Written by kvbench)\n")}


def typed(command, folder, lines):
    """What a shell prints in a terminal, in which each line is typed when the one before has printed a line that begins
    with < and ends with >."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, {**os.environ, "TERM": "dumb"})
    seen, end = "", time.monotonic() + 120
    try:
        for answers, line in enumerate(lines, 1):
            os.write(terminal, (line + "\n").encode())
            while len(re.findall("^<.*>\r?$", seen, re.MULTILINE)) < answers:
                if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
                    return seen
                seen += os.read(terminal, 1 << 16).decode(errors="replace")
        return seen
    finally:
        os.close(terminal)  # which ends an interactive shell
        os.waitpid(process, 0)


class Usage(CliTest):
    def replay(self, *args):
        return rows(self.ok("replay", *args, "--seeds", 1, "--rows", "trace", "--no-times"))

    def test_help_and_examples(self):
        alone, page = run().stderr, self.ok("--help")
        for text in (alone, page):
            self.assertGreaterEqual(sum(line.startswith("  kvbench ") for line in text.splitlines()), 3)
            for command in COMMANDS:
                self.assertIn(command, text)
        self.assertEqual(self.ok("help"), page)
        self.assertEqual(self.ok("help", "replay"), self.ok("replay", "--help"))
        for command in COMMANDS:
            if command == "eval":  # the page of kveval
                continue
            examples = [line for line in self.ok("help", command).splitlines() if line.startswith("  kvbench ")]
            self.assertTrue(examples, command)
            for example in examples:
                self.assertTrue(example.startswith(f"  kvbench {command}"), example)
        self.assertIn("--budget", self.ok("help", "replay"))
        self.assertEqual([self.ok("help", "help"), self.ok("help", "version")], [page, page])
        self.assertEqual(self.ok("version"), self.ok("--version"))

    def test_help_of_topics(self):
        """Pages of commands, methods, families and flags, which the tables of flags have."""
        for topic, command in (("columns", ["replay", "--columns"]), ("metrics", ["compare", "--metrics"]),
                               ("tasks", ["eval", "--list-tasks"]), ("checks", ["validate", "--list"]),
                               ("sweeps", ["sweep", "--example"]), ("snapkv", ["methods", "snapkv"]),
                               ("AdaKV", ["methods", "adakv"]), ("eviction", ["methods", "eviction"])):
            self.assertEqual(self.ok("help", topic), self.ok(*command), topic)
        budget = self.ok("help", "budget")
        for word in ("budgets", "--budget", "-b"):
            self.assertEqual(self.ok("help", word), budget)
        for words in ("-b,--budget\n", "25%fast", "(kvbench replay)", "(kvbench eval)", "(kvbench allocate)"):
            self.assertIn(words, budget)
        self.assertIn("(kvbench replay, eval)", self.ok("help", "protect"))
        self.assertIn("(kvbench validate golden)", self.ok("help", "port"))
        for name in ("families", "llama.cpp", "snapkv+q4_0", "adakv(snapkv)", "adakv", "q4_0[values=q8_0]", "eviction"):
            self.assertEqual(self.ok("help", name), self.ok("methods", name), name)
        for topic in ("columns", "metrics", "tasks", "checks", "sweeps"):
            self.assertIn(topic, self.ok("help").split("kvbench help TOPIC")[1])

    @unittest.skipUnless(shutil.which("bash"), "there is no bash")
    @mock.patch.dict(os.environ, PATH=WITH_KVBENCH)
    def test_completion(self):
        """Of every flag of every command, and of values that flags name."""
        script = self.write(self.ok("completion", "bash"), "completion.bash")
        other = self.path("kvdump")  # whose help is read
        with open(other, "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
            file.write("#!/bin/sh\necho '  -o,--output FILE REQUIRED'\necho '  --sketch,--no-sketch{false}'\n"
                       "echo '  -q, --quiet'\necho 'Example: kvdump --none'\n")

        def completed(*words):
            text = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kvbench; echo "${COMPREPLY[@]}"'
            done = subprocess.run(["bash", "-c", text, "bash", script, *words], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout.split()
        self.assertEqual(set(completed("kvbench", "")), {*COMMANDS, "help", "version"})
        for command in COMMANDS:
            if command != "eval":  # which another program may describe
                page = self.ok("help", command)
                flags = re.findall(r"^  (?:-\w,)?(--[a-z][\w-]*)", page, re.MULTILINE)
                self.assertLessEqual({*flags}, {*completed("kvbench", command, "-")}, command)
        for words, right in (
                (["kvbench", "re"], ["replay", "report"]), (["kvbench", "replay", "--for"], ["--format"]),
                (["kvbench", "replay", "t.h5", "--format", ""], ["csv", "json", "md", "table"]),
                (["kvbench", "replay", "--format", "=", "c"], ["csv"]),
                (["kvbench", "replay", "-m", "sna"], ["snapkv", "snapkv@kvpress", "snapkv+kivi4"]),
                (["kvbench", "replay", "-m", "lla"], ["llama.cpp"]), (["kvbench", "help", "vL"], ["vLLM"]),
                (["kvbench", "replay", "-m", "vl"], ["vllm"]), (["kvbench", "help", "vl"], ["vllm"]),
                (["kveval", "-m", "all,-kn"], ["all,-knorm"]),
                (["kvbench", "replay", "-m", "all,-eviction,-kn"], ["all,-eviction,-knorm"]),
                (["kvbench", "replay", "-m", '"h2o,adakv(tria'], ["h2o,adakv(triattention"]),
                (["kvbench", "replay", "-m", "adakv\\(tria"], ["adakv\\(triattention"]),
                (["kvbench", "replay", "--method=all,-kn"], ["--method=all,-knorm"]),
                (["kvbench", "replay", "-m", "all,-snapkv[win"], ["all,-snapkv[window="]),
                (["kveval", "-m", "adakv\\(snapkv\\)[al"], ["adakv\\(snapkv\\)[alpha="]),
                (["kvbench", "replay", "-m", '"snapkv[kernel=5;pooling=ma'], ["snapkv[kernel=5;pooling=max"]),
                (["kvbench", "replay", "-m", "snapkv[kernel", "=", "5,per", "=", "k"], ["kv_head"]),
                (["kvbench", "replay", "-m", "snapkv[kernel", "=", "5],kno"], ["5],knorm"]),
                ([other, "--s"], ["--sketch"]), ([other, "-o", ""], []),
                ([other, "a.gguf", "-"], ["--no-sketch", "--output", "--quiet", "--sketch", "-o", "-q"]),
                (["kvbench", "help", "adakv@"], ["adakv@kvpress"]), (["kvbench", "methods", "fam"], ["families"]),
                (["kvbench", "replay", "-m", "h2o,snapkv@"], ["h2o,snapkv@kvpress"]),
                (["kvbench", "allocate", "--menu", "ev"], ["eviction"]), (["kvbench", "methods", "ev"], ["eviction"]),
                (["kvbench", "replay", "-b", ""], []), (["kvbench", "replay", "t"], []),
                (["kvbench", "help", "col"], ["columns"]), (["kvbench", "completion", ""], ["bash", "zsh", "fish"]),
                (["kvbench", "replay", "--format=c"], ["--format=csv"]),  # where = ends no word
                (["kvbench", "replay", "--method=h2o,snapkv@"], ["--method=h2o,snapkv@kvpress"]),
                (["kvbench", "eval", "--inject", "u"], ["upto"]), (["/usr/bin/kveval", "--inject", "u"], ["upto"]),
                (["kvbench", "validate", "g"], ["golden"]), (["kvbench-validate", "--meth"], ["--method"]),
                (["kvbench", "validate", "golden", "--po"], ["--port"]),
                (["kvbench", "validate", "golden", "--device", "au"], ["auto"]),
                (["kvbench-validate", "golden", "--is"], ["--isa"]), (["kvbench", "validate", "--po"], [])):
            self.assertEqual(completed(*words), right, words)

        shutil.copy(other, self.path("kvbench-verify"))
        with mock.patch.dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}"):
            self.assertEqual(completed("kvbench", "verify", "--s"), ["--sketch"])
            self.assertEqual(completed("kvbench-verify", "--q"), ["--quiet"])

    def test_programs_of_the_python_package(self):
        known = set(self.ok("completion", "zsh").splitlines()[0].split())
        for folder, more in (("python", set()), (".", {"kvbench"})):
            with open(os.path.join(os.path.dirname(__file__), "../..", folder, "pyproject.toml"), "rb") as file:
                scripts = set(tomllib.load(file)["project"]["scripts"])
            self.assertEqual(known - {"#compdef", "kvbench", "kveval", "kvdump", "kvbench-validate"}, scripts - more)

    def test_commands_of_the_python_package(self):
        """The program gets the words and decides the exit code; without it a sentence says how to get it."""
        alone = {**os.environ, "PATH": self.folder}
        for name in "bundle", "verify", "cite", "claim":
            self.fails(2, f"runs the program kvbench-{name}", "`pip install .`", args=[name, "run.csv"], env=alone)
            self.assertIn(f"The flags are those of kvbench-{name}", self.ok(name, "--help", env=alone))
            path = self.path(f"kvbench-{name}")
            with open(path, "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
                file.write("#!/bin/sh\necho \"$1|$2|$3\"\nexit 4\n")
            done = run(name, "a b", "--sample", 3, env=alone)
            self.assertEqual((done.returncode, done.stdout), (4, "a b|--sample|3\n"))

    # What a shell makes of a line; "|" is where its cursor stands.
    COMPLETED = (("kvbench repl|", "kvbench replay "), ("kvbench replay --forma|", "kvbench replay --format "),
                 ("kvbench replay -m h2o,snapkv@|", "kvbench replay -m h2o,snapkv@kvpress "),
                 ("kvbench replay --format=c|", "kvbench replay --format=csv "),
                 ("kvbench replay -m all,-kn|", "kvbench replay -m all,-knorm "),
                 ("kvbench info unli|", "kvbench info unlike.h5 "), ("kvbench help colu|", "kvbench help columns "),
                 ("kvbench methods evict|", "kvbench methods eviction "),
                 ("kvbench completion f|", "kvbench completion fish "),
                 ("kvbench validate gol|", "kvbench validate golden "),
                 ("kvbench validate golden --is|", "kvbench validate golden --isa "),
                 ("kvbench-validate --mut|", "kvbench-validate --mutants "),
                 ("kveval --inject-s|", "kveval --inject-scale "))

    @unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
    @mock.patch.dict(os.environ, PATH=WITH_KVBENCH)
    def test_completion_in_zsh(self):
        """In a terminal, by the script itself and as a file of a folder where zsh looks for completions."""
        script, _ = self.write(self.ok("completion", "zsh"), "_kvbench"), self.write("", "unlike.h5")
        completed = [*self.COMPLETED,
                     ('kvbench replay -m "h2o,snapkv[pooling=ma|', "kvbench replay -m h2o,snapkv[pooling=max")]
        for begin in (f"autoload -Uz compinit; compinit -D; source {script}",
                      f"fpath=({os.path.dirname(script)} $fpath); autoload -Uz compinit; compinit -u -D"):
            named = "for name in kvbench kveval kvbench-validate; do eval \"$name() print \\\"<$name \\$*>\\\"\"; done"
            echo = f"PS1=; {named}; print '<>'"
            seen = typed(["zsh", "-f", "-i"], os.path.dirname(script),
                         [f"{begin}; {echo}", *(line.replace("|", "\t") for line, _ in completed)])
            for line, right in completed:
                self.assertIn(f"<{right.strip()}>", seen, line)

    @unittest.skipUnless(shutil.which("fish"), "there is no fish")
    @mock.patch.dict(os.environ, PATH=WITH_KVBENCH)
    def test_completion_in_fish(self):
        script, _ = self.write(self.ok("completion", "fish"), "kvbench.fish"), self.write("", "unlike.h5")

        def completed(line):
            done = subprocess.run(["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line],
                                  capture_output=True, text=True, cwd=os.path.dirname(script), timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return [candidate.split("\t")[0] for candidate in done.stdout.splitlines()]
        self.assertEqual(set(completed("kvbench ")), {*COMMANDS, "help", "version"})
        flags = {*completed("kvbench replay -"), *completed("kvbench replay --")}
        self.assertLessEqual({"--method", "-m", "--seeds"}, flags)
        for line, right in self.COMPLETED:
            before, begun = line.removesuffix("|").rsplit(" ", 1)
            self.assertIn(right.strip(), {f"{before} {word}" for word in completed(line.removesuffix("|"))}, line)
            self.assertTrue(all(word.startswith(begun) for word in completed(line.removesuffix("|"))), line)
        self.assertEqual(completed("kvbench replay -b "), completed("ls "))  # files
        for begun, right in (("h2o,snapkv[win", ["h2o,snapkv[window="]), ("snapkv\\[per=k", ["snapkv[per=kv_head"]),
                             ('"snapkv[kernel=5;pooling=ma', ["snapkv[kernel=5;pooling=max"]), ("nosuch[w", [])):
            self.assertEqual(completed(f"kvbench replay -m {begun}"), right)

    def test_flags_stand_before_and_after_files(self):
        """A flag that takes a list does not swallow the file behind it."""
        behind = self.ok("replay", self.trace, "--method", "sink", "--budget", 48, "--layers", 1, "--no-times")
        self.assertEqual(self.ok("replay", "--method", "sink", "--budget", 48, "--no-times", "--layers", 1, self.trace),
                         behind)
        self.assertEqual(self.ok("replay", "--method=sink", "-b", 48, self.trace, "--no-times", "--layers", 1), behind)
        table = self.path("order.csv")
        self.ok("replay", "-m", "sink,snapkv", "--rows", "query", "-o", table, self.trace)
        self.assertEqual(self.ok("compare", "--a", "sink", table), self.ok("compare", table, "--a", "sink"))
        self.ok("report", "--title", "x", "-o", self.path("order.html"), table)
        self.ok("validate", "--check", "subgen.lemma1", "--layers", 0, "--heads", 0, self.trace)
        self.assertEqual(self.ok("methods", "--format", "csv", "sink"), self.ok("methods", "sink", "--format", "csv"))

    def test_names_without_case(self):
        table = self.replay(self.trace, "-m", "SnapKV[window=16],H2O,snapkv+KIVI4", "--set", "SNAPKV.kernel=5")
        self.assertEqual([row["method"] for row in table], ["snapkv", "h2o", "snapkv+kivi4"])
        self.assertEqual(self.ok("methods", "SnapKV"), self.ok("methods", "snapkv"))
        upper, lower = (self.ok("validate", "--synthetic", "--method", name, "--check", "subgen.lemma1")
                        for name in ("SubGen", "subgen"))
        self.assertEqual(upper, lower)

    def test_budgets_in_other_words(self):
        table = self.replay(self.trace, "-m", "sink", "-b", "0.25,0.125,1,48")
        self.assertEqual([row["budget"] for row in table], ["25%", "12.5%", "1", "48"])
        self.assertEqual([row["budget_tokens"] for row in table], ["48", "24", "1", "48"])
        for every in ("all", "ALL"):
            self.assertEqual(self.replay(self.trace, "-m", "sink", "--layers", every, "--heads", every),
                             self.replay(self.trace, "-m", "sink"))

    def test_several_traces_make_one_table(self):
        other = self.synth("other.h5", "--seed", 1)
        flags = ("-m", "sink,snapkv,random", "--protocol", "prefill")
        both = self.replay(self.trace, other, *flags)
        self.assertEqual(both, self.replay(self.trace, *flags) + self.replay(other, *flags))
        self.assertEqual([row["trace"] for row in both], ["t.h5"] * 3 + ["other.h5"] * 3)
        self.assertEqual(len({row["sha256"] for row in both}), 2)
        self.assertIn("other.h5", self.ok("replay", self.trace, other, *flags, "--format", "table"))
        os.mkdir(self.path("b"))
        self.synth("b/t.h5", "--seed", 3)
        sweep = self.write('[[run]]\ntraces = ["t.h5", "b/t.h5"]\nmethods = "sink"\nbudgets = [48]\n')
        for command in (["replay", self.trace, self.path("b/t.h5"), *flags], ["sweep", sweep]):
            both = rows(self.ok(*command))
            self.assertEqual({row["trace"] for row in both}, {self.trace, self.path("b/t.h5")}, command[0])
        self.only_files("b", "other.h5", "s.toml", "t.h5")

    def test_the_contract_of_methods(self):
        lines = self.ok("methods", "SnapKV[window=4],quest[page=4]", "--check").splitlines()
        heads = [line for line in lines if not line.startswith(" ")]
        self.assertEqual([head.split()[0] for head in heads], ["snapkv", "quest"])
        self.assertIn("window=4", heads[0])
        found = [line.split(":")[0].split(maxsplit=1)[0] for line in lines if line.startswith(" ")]
        self.assertEqual(set(found), {"holds", "not"})
        self.assertGreater(found.count("holds"), 30)

    def test_tables_as_json(self):
        """Each object has the names of the CSV; values are those of the CSV, numbers as numbers, empty ones as null."""
        raw = self.path("raw.h5")
        replay = ("replay", self.trace, "-m", "sink,subgen,quest,exact", "-b", "10%mem,25%", "--seeds", 2, "--no-times")
        self.ok(*replay, "--raw", raw)
        sweep = self.write('[[run]]\nname = "a"\ntraces = "t.h5"\nmethods = ["sink", "snapkv"]\n')
        commands = (replay, ("compare", raw), ("sweep", sweep, "--no-times"), ("methods",), ("methods", "SnapKV"),
                    ("info", self.trace), ("validate", "--synthetic", "--check", "subgen.lemma1"))
        for command in commands:
            with self.subTest(command=command[0]):
                table, objects = rows(run(*command, "--format", "csv").stdout), as_json(
                    run(*command, "--format", "json").stdout)
                self.assertEqual(len(table), len(objects))
                kinds = set()
                for row, thing in zip(table, objects):
                    self.assertEqual(list(row), list(thing))
                    for name, value in thing.items():
                        kinds.add(type(value))
                        if value is None:
                            self.assertEqual(row[name], "")
                        elif isinstance(value, list):
                            self.assertEqual(json.loads(row[name]), value)
                        elif isinstance(value, str):
                            self.assertEqual(row[name].lstrip("'"), value.lstrip("'"))
                        else:
                            self.assertEqual(float(row[name]), value)
                self.assertTrue(str in kinds and (kinds & {int, float} or command[0] == "methods"), kinds)
        described = as_json(self.ok("info", self.trace, "--format", "json"))
        self.assertEqual([(layer["layer"], layer["prompt"], layer["tokens"]) for layer in described],
                         [(0, "0", 256), (1, "0", 256)])
        listed = {method["method"]: method for method in as_json(self.ok("methods", "--format", "json"))}
        snapkv = listed["snapkv"]
        named = as_json(self.ok("methods", "snapkv", "q4_0[values=q8_0,hadamard=true]", "--format", "json"))
        self.assertEqual(named[0], snapkv)  # those that are named are as in the list of all
        self.assertEqual((len(named), named[1]["method"]), (2, "q4_0[hadamard=true;values=q8_0]"))
        self.assertEqual({**named[1], "method": "q4_0", "runs_in": None}, {**listed["q4_0"], "runs_in": None})
        self.assertTrue(named[1]["runs_in"].startswith("llama.cpp --cache-type-k q4_0 --cache-type-v q8_0"))
        family = as_json(self.ok("methods", "merging", "--format", "json"))
        self.assertIn(listed["chelsea"], family)
        self.assertIn("SnapKV", snapkv["source"])
        self.assertIn(snapkv["summary"], self.ok("methods"))
        kernel, = (one for one in snapkv["parameters"] if one["name"] == "kernel")
        self.assertEqual((kernel["type"], kernel["default"], kernel["range"]), ("integer", "7", ">= 1"))
        self.assertEqual((listed["tova"]["parameters"], listed["tova"]["runs_in"]), ([], None))
        self.assertIn("SnapKVPress", listed["snapkv@kvpress"]["runs_in"])
        for thing in as_json(run(*replay, "--format", "json").stdout):
            self.assertIsInstance(thing["budget"], str)  # a text, also where it is 48
            self.assertEqual(isinstance(thing["rel_err_mean"], (int, float)), thing["status"] == "ok")

    def test_a_report_without_a_name_stands_beside_its_table(self):
        table = self.path("run.csv")
        self.ok("replay", self.trace, "-m", "sink,snapkv", "-o", table)
        for flags, name in (((), "run.html"), (("--format", "md"), "run.md")):
            done = run("report", table, *flags)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            self.assertEqual(done.stderr, f"kvbench: the report is {self.path(name)}\n")
            self.assertEqual(self.ok("report", table, "--format", name[4:], "-o", "-"), self.read(name))
            self.ok("report", table, *flags)  # replaces the report
        for form in ("html", "md", "latex", "svg", "pdf"):
            flags = ("--format", form, *(("--figure", "error-by-method") if form in ("svg", "pdf") else ()))
            self.ok("report", table, *flags), self.ok("report", table, *flags)
            (name,) = {"run." + form.replace("latex", "tex")} & set(os.listdir(self.folder))
            for notes in ("", "notes of mine\n", *QUOTES[form]):
                self.write(notes, name)
                self.fails(2, f"{name}: exists and was not written by kvbench report; name the output with -o",
                           args=["report", table, *flags])
                self.assertEqual(self.read(name), notes)
            os.truncate(self.path(name), 1 << 40)   # which is not read whole
            self.fails(2, f"{name}: exists and was not", args=["report", table, *flags])
            self.ok("report", table, *flags, "-o", self.path(name))
            os.remove(self.path(name))
        shutil.copy(table, self.path("run.html"))
        self.fails(2, "run.html", args=["report", self.path("run.html")])

    def test_the_name_of_an_output_implies_its_format(self):
        flags = ["replay", self.trace, "-m", "sink", "--no-times", "--rows", "trace"]
        for name, form in (("a.csv", "csv"), ("a.json", "json"), ("a.JSON", "json"), ("a.md", "md"), ("a", "csv"),
                           ("a.txt", "csv"), ("a.json.part", "csv")):
            with self.subTest(name=name):
                self.ok(*flags, "-o", self.path(name))
                self.assertEqual(self.read(name), self.ok(*flags, "--format", form))
                os.remove(self.path(name))
        self.ok(*flags, "--format", "csv", "-o", self.path("a.xlsx")), os.remove(self.path("a.xlsx"))
        self.only_files("t.h5")

    def test_recall_counts_tokens_that_a_method_keeps_itself(self):
        flags = ["replay", self.trace, "-m", "sink[sinks=8]", "-b", "25%", "--no-times", "--rows", "trace"]
        done = [self.succeeds(*flags, *more) for more in ([], ["--recall-sinks"])]
        self.assertNotEqual(*(float(rows(one.stdout)[0]["recall_mean"]) for one in done))
        self.assertEqual(done[1].stderr, "")
        flags[1:4] = [SAMPLE, "-m", "sink,bsm"]  # bsm merges entries, of which there is no recall in any case
        lost = rows(self.ok(*flags, "--layers", 8, "--prompts", 0, "--recall-sinks"))
        self.assertEqual([(row["recall_mean"], "other keys for the first tokens" in row["reason"]) for row in lost],
                         [("", True), ("", False)])

    def test_a_plain_name_is_the_method_with_default_parameters(self):
        raw = self.path("raw.h5")
        self.ok("replay", self.trace, "-m", "snapkv,snapkv[window=8],h2o", "-b", "25%,50%", "--raw", raw)
        compared = rows(self.ok("compare", raw, "--a", "SnapKV", "--b", "h2o"))
        self.assertEqual({row["a"] for row in compared}, {"snapkv"})
        self.assertEqual({row["budget_a"] for row in compared}, {"25%", "50%"})
        self.assertEqual(compared, rows(self.ok("compare", raw, "--a", "snapkv[]", "--b", "h2o")))
        self.assertEqual({row["budget_a"] for row in rows(self.ok("compare", raw, "--a", "snapkv@0.25", "--b", "h2o"))},
                         {"25%"})

    def test_reasons_advise_what_suits_the_row(self):
        table = {row["method"]: row["reason"] for row in self.replay(self.trace, "-m", "quest", "-b", "50%mem")}
        self.assertIn("--budget 50%read", table["quest"])
        for budget, advice in (("96", "50%mem"), ("12.5%", "38%mem")):
            (row,) = self.replay(self.trace, "-m", "int4", "-b", budget)
            self.assertIn(f"--budget {advice}", row["reason"])

    def test_flags_that_hold_for_a_part_say_so(self):
        done = run("replay", self.trace, "-m", "sink", "--dense-layers", 1, "--layers", 1)
        self.assertEqual((done.returncode, done.stderr.count("keeps no layer exactly")), (0, 1))
        whole = "nvfp4.vs_q4_0"
        both = run("validate", self.trace, "--check", whole + ",subgen.lemma1", "--layers", 0)
        self.assertIn(whole, both.stderr)
        self.assertIn("all its layers", both.stderr)
