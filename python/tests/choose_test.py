# SPDX-License-Identifier: Apache-2.0
"""kvbench-choose, from options to an answer, with stand-ins for the programs. extension_choose_real goes through the
real ones."""
import csv
import math
import os
import pathlib
import random
import re
import sys
import types
from unittest import mock

from support import PackageTest, replaced

from kvbench import _choose_answer, _choose_documents, _choose_model, choose


TRUE = {"h2o": 0.05, "h2o+q5_1": 0.01, "snapkv": 0.1, "sink": 0.3}  # KL in the stand-in of kveval


class Programs:
    """Stands for kvbench, kveval and the recording: writes the files that they would write."""

    def __init__(self, noise=0.1, broken=None, plan=""):
        self.true, self.noise, self.broken, self.plan, self.made, self.budgets = TRUE, noise, broken, plan, [], set()

    def run(self, work, made, *command):
        if os.path.exists(made):
            return
        self.made.append(os.path.basename(made))
        words = [str(word) for word in command]
        if made.endswith(".h5"):
            pathlib.Path(made).write_bytes(b"")
            self.recorded = words
        elif made.endswith("plan.toml"):
            self.by = words[words.index("--by") + 1]
            pathlib.Path(made).write_text(self.plan)
        else:
            names = words[words.index("-m") + 1].replace("llama.cpp", "q8_0,q4_0").split(",")
            self.budgets.add(words[words.index("-b") + 1])
            replay = "replay" in words
            kl = "kl_predicted" if replay else "kl_mean"
            rows = [{"method": re.sub(r"\[.*", "", name), "params": "", "prompt": "all", "layer": "all",
                     "document": "all", "budget": budget, "status": "infeasible" if name == self.broken else "ok",
                     "reason": "does not fit" if name == self.broken else "", "total_bytes": 25, "full_bytes": 100,
                     "top1": 0.9, "ppl_ratio": 1.1, "model_layers": 10, "compressed_layers": 8,
                     "task": "lines", "answers": 16, "match_full": 0.75, "harmful": 0.25,
                     kl: self.kl(name), "kl_predicted_lo": 0.001, "kl_predicted_hi": 9,
                     "residual_err_rms": self.kl(name),
                     "sha256": "0", "runs_in": f"llama.cpp {name}" if name == "q8_0" else "", "rope_layout": "half",
                     **self.row(name, budget)}
                    for name in names for budget in words[words.index("-b") + 1].split(",")]
            with open(made, "w", newline="") as file:
                table = csv.DictWriter(file, rows[0], lineterminator="\n")
                table.writeheader()
                table.writerows(rows)

    def row(self, name, budget):
        """What differs in a row."""
        return {}

    def kl(self, name):
        return self.true.get(name, 0.5) * math.exp(random.gauss(0, self.noise))


class Choose(PackageTest):
    def choose(self, programs, *flags, documents=30, code=0, torch=True):
        def split(work):
            return ["r0.ids", "r1.ids"], [f"{i}.ids" for i in range(documents)]

        for name in ("model.gguf", "text.txt"):
            pathlib.Path(self.path(name)).write_text("x")
        said, wrong = [], []
        arguments = replaced(["--model", self.path("model.gguf"), "--text", self.path("text.txt"), "-o",
                              self.path("out"), "--quiet"], flags)
        if "--runs-in" not in flags:
            arguments += ["--methods", ",".join([*TRUE, "q8_0"])]
        with mock.patch.object(choose, "documents_of", split), mock.patch.object(
                choose, "program", lambda name, folder: name), mock.patch.object(
                choose.Work, "run", lambda work, *a: programs.run(work, *a)), mock.patch.object(
                choose.importlib.util, "find_spec", lambda name: torch or None), mock.patch.object(
                sys, "stdout", types.SimpleNamespace(write=said.append, flush=lambda: None)), mock.patch.object(
                sys, "stderr", types.SimpleNamespace(write=wrong.append)):
            self.assertEqual(choose.main(arguments), code, wrong)
        return "".join(said or wrong)

    def setUp(self):
        super().setUp()
        random.seed(1)

    def test_the_best_is_found(self):
        programs = Programs()
        text = self.choose(programs)
        order = programs.recorded.index("--rope-layout")  # that of kveval
        self.assertEqual(programs.recorded[order + 1], "half")
        self.assertRegex(text, r"^\*\*h2o\+q5_1\*\* changes the output least of the 4 configurations")
        self.assertIn("the full cache, 25.0 % in the 8 of 10 layers in which methods run", text)
        self.assertIn("at the bytes that it takes in these 8 layers; engines round the others too", text)
        self.assertRegex(text, r"at an error rate of 5 %.*sink \([0-9.]+ times the KL of h2o\+q5_1\) after \d+ doc")
        self.assertIn("From 2 other documents KL", text)
        self.assertIn("rows stored as q5_1", text)
        self.assertRegex(text, r"\| llama.cpp q8_0 \| 25.0 % \|")
        self.assertEqual(self.read("out/answer.md"), text)

    def test_without_gradients(self):
        """By request, and where PyTorch is missing: kvdump records, and nothing reads or states a predicted KL."""
        for flags, torch in ((["--without-gradients"], True), ([], False)):
            programs = Programs()
            text = self.choose(programs, *flags, torch=torch)
            self.assertEqual(programs.recorded[0], "kvdump")
            self.assertEqual([programs.recorded[i + 1] for i, word in enumerate(programs.recorded) if word == "--ids"],
                             ["r0.ids", "r1.ids"])
            self.assertIn("sketches.h5", programs.made)
            self.assertIn("error in the residual stream on 2 other documents", text)
            self.assertRegex(text, r"(?s)residual error \|.*\| llama.cpp q8_0 \| 25.0 % \| [0-9.]+ \|\n$")
            self.assertNotIn("predicted for", text)
            self.assertEqual(programs.by, "layer")
            self.assertIn("other options", self.choose(Programs(), code=2))  # the folder's answer is another
            choose.shutil.rmtree(self.path("out"))
            for more, words in ((["--context-length", "99"], "--context-length: the size of the cache is not known"),
                                (["--by", "head"], "not of its heads"),
                                (["--model", "hub/name"], "only a GGUF file can be run")):
                self.assertIn(words, self.choose(Programs(), *flags, *more, code=2, torch=torch))

    def read(self, name):
        return pathlib.Path(self.path(name)).read_text()

    def test_a_second_run_computes_nothing(self):
        text = self.choose(Programs())
        again = Programs()
        self.assertEqual((self.choose(again), again.made), (text, []))

    def test_it_goes_on_where_it_stopped(self):
        first = Programs()
        self.choose(first, documents=3)
        second = Programs()
        self.choose(second)
        self.assertNotIn("probes.h5", second.made)
        self.assertEqual(second.made[0], "measured-003.csv")

    def test_other_options_in_the_same_folder(self):
        self.choose(Programs(), documents=2)
        self.assertIn("other options", self.choose(Programs(), "--memory", "12.5%", code=2))

    def test_tasks(self):
        """3/4 of 16 answers are right with the full cache, and a quarter of 16 is lost."""
        programs = Programs()
        text = self.choose(programs, "--task", "lines")
        self.assertEqual(programs.made[-1], "answers.csv")
        self.assertIn("Of the 12 answers that the full cache has right in lines these are lost: h2o+q5_1 4.", text)
        self.assertEqual(self.choose(Programs(), "--task", "lines"), text)
        self.assertIn("other options", self.choose(Programs(), code=2))
        self.assertIn("runs GGUF files", self.choose(Programs(), "--task", "lines", "--model", "hub/name", code=2))
        self.assertEqual(_choose_answer.lost_answers([{"task": "pairs", "match_full": "", "answers": "0"}]),
                         "In pairs the full cache has no answer to lose.")

    def test_bytes_of_the_budget_alone(self):
        """--runs-in predicts at 100 % of the memory too."""
        rows = [{"method": "h2o", "params": "", "budget": budget, "total_bytes": held, "full_bytes": 8,
                 "compressed_layers": 1, "model_layers": 2} for budget, held in (("25%mem", 2), ("100%mem", 8))]
        self.assertIn("25.0 % in the 1 of 2 layers", _choose_answer.bytes_held(
            rows, types.SimpleNamespace(budget="25%mem"), rows[:1], "h2o"))

    def test_undecided(self):
        self.assertRegex(self.choose(Programs(), documents=2),
                         r"leads, undecided, of the 4.* Not told from it when the documents ended: ")
        self.assertIn("when the documents ended", self.choose(Programs(), documents=2))

    def test_no_time(self):
        self.assertIn("Nothing was measured in 0 minutes", self.choose(Programs(), "--minutes", "0"))

    def test_one_configuration_is_measured_too(self):
        self.assertIn("of the 1 configurations that were measured", self.choose(Programs(), "--race", "1"))

    def test_files_that_are_damaged(self):
        for name in ("settings.json", "cache.json"):
            self.sized()
            pathlib.Path(self.path(f"out/{name}")).write_text("{")
            self.assertIn(f"{name}: is damaged", self.sized(code=2))
            choose.shutil.rmtree(self.path("out"))

    def test_streams_that_are_closed(self):
        with mock.patch.object(choose, "choose"), mock.patch.multiple(sys, stdout=None, stderr=None):
            self.assertEqual(choose.main(["--model", "m", "--text", "t", "-o", "out"]), 3)

    def test_a_program_that_is_killed(self):
        for number, expected in ((9, OSError), (15, KeyboardInterrupt)):
            with self.assertRaises(expected):
                choose.Work.run(None, self.path("made"), "sh", "-c", f"kill -{number} $$")

    def test_a_plan_that_is_confirmed_races(self):
        plan = "".join(f'  {{ layer = {n}, method = "h2o", budget = "{n + 1}0%mem" }},\n' for n in (1, 2))
        programs = Programs(plan=plan)
        programs.true = {**TRUE, f"plan:{self.path('out/plan.toml')}": 0.001}
        text = self.choose(programs)
        self.assertIn(f"**plan:{self.path('out/plan.toml')}** changes", text)
        self.assertIn("caches of another size in each kv head of each layer", text)
        self.assertEqual(programs.by, "head")

    def test_a_plan_of_equal_budgets_does_not(self):
        plan = "".join(f'  {{ layer = {n}, method = "h2o", budget = "25%mem" }},\n' for n in (1, 2))
        self.assertNotIn("plan:", self.choose(Programs(plan=plan)))

    def test_what_an_engine_has(self):
        plan = "".join(f'  {{ layer = {n}, method = "h2o", budget = "{n}0%mem" }},\n' for n in (1, 2))
        programs = Programs(plan=plan)
        programs.true = {"q8_0": 0.01, "q4_0": 0.4}
        text = self.choose(programs, "--runs-in", "llama.cpp")
        self.assertIn("**q8_0** changes the output least of the 2 configurations", text)
        self.assertNotIn("plan.toml", programs.made)
        self.assertIn("It runs today: llama.cpp q8_0", text)

    def test_a_size_below_all_that_an_engine_has(self):
        class Large(Programs):
            def row(self, name, budget):
                held = {"q8_0": 53.1, "q4_0": 28.1}.get(name, 100)
                fits = held <= float(budget.split("%")[0])
                return {"status": "ok" if fits else "infeasible", "reason": "" if fits else "does not fit",
                        "total_bytes": held, "runs_in": f"llama.cpp {name}"}

        said = self.choose(Large(), "--runs-in", "llama.cpp", code=2)
        # 1 - 25 / 28.1 = .11
        self.assertIn("llama.cpp has nothing as small; nearest is q4_0 (llama.cpp q4_0) with 28.1 %", said)
        self.assertIn("Give --memory 29%, or a context 11 % shorter.", said)
        said = self.choose(Programs(), "--runs-in", "llama.cpp", "--menu", "h2o", code=2)
        self.assertIn("leave --menu out", said)

    def test_flags_without_effect_are_notes(self):
        for flags, note in ((["--runs-in", "llama.cpp", "--by", "head", "--error", "0"], "--by has no effect beside"),
                            (["--without-gradients", "--probes", "4", "--by", "head"], "--probes has no effect")):
            self.assertIn(f"kvbench-choose: {note}", self.choose(Programs(), *flags, code=2))
        for flags in (["--by", "head"], ["--runs-in", "llama.cpp"], ["--probes", "4"]):
            self.assertNotIn("no effect", self.choose(Programs(), *flags, "--error", "0", code=2))

    def test_nothing_fits(self):
        with mock.patch.dict(TRUE, clear=True):
            self.assertIn("no configuration has a prediction", self.choose(Programs(broken="q8_0"), code=2))

    def test_wrong_options(self):
        for flags, words in ((["--memory", "3GB"], "--memory 3GB: how much"), (["--memory", "0%"], "--memory 0%"),
                             (["--memory", "3G"], "--memory 3G: give a share"), (["--device", "cuda"], "llama.cpp"),
                             (["--memory", "0B", "--context-length", "9"], "--memory 0B"),
                             (["--model", self.path("none.gguf")], "there is no such file"),
                             (["--memory", "100%"], "--memory 100%"), (["--error", "0"], "--error"),
                             (["--minutes", "-1"], "--minutes"), (["--score", "1"], "--score"),
                             (["--context", "1"], "--context 1"), (["--text", self.folder], "is a folder"),
                             (["--text", self.path("none")], "there is no such file"),
                             (["--text", self.path("text.txt"), self.path("text.txt")], "are one text"),
                             (["--mem", "25%"], "there is no flag --mem (did you mean --memory?)"),
                             (["--budget", "25%"], "(did you mean --memory?)"), (["-oout", "--nosuch"], "--nosuch;"),
                             (["--task", ""], "--task: the value is empty; give one"),
                             (["--model", "hub/name"], "installed without its program"),
                             (["--race", "2", "--race", "3"], "--race is given twice; it takes one value")):
            with self.subTest(flags=flags):
                self.assertIn(words, self.choose(Programs(), *flags, code=2))
        self.assertFalse(os.path.exists(self.path("out")))

    def sized(self, *flags, code=0, **more):
        """The answer for a model with 1 kB per token, a fifth of it in layers in which no method runs."""
        sizes = {"tokens": 100_000, "full": 100_000_000, "whole": 20_000_000, "apart": None, **more}
        self.programs = Programs()
        with mock.patch.object(_choose_model, "sizes", lambda options: sizes):
            return self.choose(self.programs, "--context-length", "100000", *flags, code=code)

    def test_sizes(self):
        text = self.sized("--memory", "40 MB")
        self.assertEqual(self.programs.budgets - {"100%mem"}, {"25%mem,100%mem", "25%mem"})  # (40 - 20) / 80
        # the rows hold 25 of 100, of which 20 are two of ten layers
        self.assertIn("After 100000 tokens it holds 25 MB of the 100 MB of the full cache, 250 of 1000 bytes per token",
                      text)
        self.assertEqual(self.read("out/answer.md"), text)
        self.assertIn("other options", self.choose(Programs(), "--context-length", "100000", code=2))

    def test_a_share_with_a_length(self):
        """Rows of a model in PyTorch, which count a tenth as apart where kveval counts a fifth."""
        self.assertIn("it holds 33.3 MB of the 100 MB", self.sized(apart=0.1))
        self.assertEqual(self.programs.budgets - {"100%mem"}, {"25%mem,100%mem", "25%mem"})

    def test_sizes_that_are_no_choice(self):
        for memory, words in (("100MB", "takes 100 MB, which fits without compression"),
                              ("20MB", "of which 20 MB are in layers with a sliding window")):
            self.assertIn(words, self.sized("--memory", memory, code=2))
            choose.shutil.rmtree(self.path("out"))

    def test_texts_of_sizes(self):
        for text, count in (("3.5GB", 3_500_000_000), ("800 MiB", 800 * 2**20), ("1kb", 1000), ("7B", 7), ("0GB", None),
                            ("3G", None), ("GB", None), ("-1GB", None), ("1iB", None), ("25%", None), ("1e3MB", None)):
            with self.subTest(text):
                self.assertEqual(_choose_model.bytes_of(text), count)
        self.assertEqual([_choose_model.size_text(n) for n in (7, 999, 1000, 98304, 3.5e9, 2e15)],
                         ["7 B", "999 B", "1 kB", "98.3 kB", "3.5 GB", "2e+03 TB"])

    def test_a_folder_of_other_files(self):
        os.mkdir(self.path("out"))
        pathlib.Path(self.path("out/mine.txt")).write_text("mine")
        self.assertIn("has files and none of this command", self.choose(Programs(), code=2))

    def test_documents_of_several_texts_take_turns(self):
        texts = [[("0", i) for i in range(9)], [("1", i) for i in range(2)]]
        spread = _choose_documents.spread
        self.assertEqual(spread(texts, 6), [("0", 0), ("1", 0), ("0", 2), ("1", 1), ("0", 4), ("0", 6)])
        self.assertEqual(sorted(spread(texts, 11)), texts[0] + texts[1])
        self.assertEqual(spread(texts, 99), spread(texts, 11))
