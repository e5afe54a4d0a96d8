# SPDX-License-Identifier: Apache-2.0
"""kvbench-choose, from options to an answer, with stand-ins for the programs. extension_choose_real goes through the
real ones."""
import csv
import math
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import types
from unittest import mock

from support import PackageTest, replaced
import h5py

from kvbench import _choose_answer, _choose_documents, _choose_engines, _choose_folder, _choose_model, _choose_run
from kvbench import Error, _choose_rank, _files, choose


TRUE = {"h2o": 0.05, "h2o+q5_1": 0.01, "snapkv": 0.1, "sink": 0.3}  # KL in the stand-in of kveval


class Programs:
    """Stands for kvbench, kveval and the recording: writes the files that they would write."""

    def __init__(self, noise=0.1, broken=None, plan=""):
        self.true, self.noise, self.broken, self.plan, self.made, self.budgets = TRUE, noise, broken, plan, [], set()
        self.layers = {}  # {method: {layer: its error relative to the stream}}
        self.raced = []  # methods in kveval at the budget of the race

    def run(self, work, made, *command):
        if os.path.exists(made):
            return
        self.made.append(os.path.basename(made))
        os.makedirs(os.path.dirname(made), exist_ok=True)
        words = [str(word) for word in command]
        if made.endswith(".h5"):
            pathlib.Path(made).write_bytes(b"")
            self.recorded = words
        elif made.endswith("plan.toml"):
            self.by = words[words.index("--by") + 1]
            pathlib.Path(made).write_text(self.plan)
        else:
            names = words[words.index("-m") + 1].replace("llama.cpp", "q8_0,q4_0").split(",")
            budgets = words[words.index("-b") + 1]
            self.budgets.add(budgets)
            replay = "replay" in words
            if not replay and budgets != "100%mem":
                self.raced.append([name if name in TRUE else os.path.basename(name) for name in names])
            layers = lambda name: ["all", *self.layers.get(name, ())] if replay else ["all"]  # noqa: E731
            rows = [self.whole_row(name, budget, layer, "kl_predicted" if replay else "kl_mean")
                    for name in names for budget in budgets.split(",") for layer in layers(name)]
            with open(made, "w", newline="") as file:
                table = csv.DictWriter(file, rows[0], lineterminator="\n")
                table.writeheader()
                table.writerows(rows)

    def whole_row(self, name, budget, layer, kl):
        return {"method": re.sub(r"\[.*", "", name), "params": "", "prompt": "all", "layer": layer, "document": "all",
                "budget": budget, "status": "infeasible" if name == self.broken else "ok", "kept_fraction": 0.5,
                "reason": "does not fit" if name == self.broken else "", "total_bytes": 25, "full_bytes": 100,
                "top1": 0.9, "ppl_ratio": 1.1, "model": "model", "model_layers": 10, "compressed_layers": 8,
                "task": "lines", "answers": 16, "match_full": 0.75, "harmful": 0.25,
                kl: self.kl(name), "kl_predicted_lo": 0.001, "kl_predicted_hi": 0.9, "kl_about": "all layers",
                "residual_err_rms": self.kl(name), "stream_err_rms": self.layers.get(name, {}).get(layer, ""),
                "sha256": "0", "runs_in": f"llama.cpp {name}" if name == "q8_0" else "", "rope_layout": "half",
                **self.row(name, budget)}

    def row(self, name, budget):
        """What differs in a row."""
        return {}

    def kl(self, name):
        known = self.true.get("plan" if name.startswith("plan:") else name, 0.5)
        return (known(name) if callable(known) else known) * math.exp(random.gauss(0, self.noise))


class Choose(PackageTest):
    SPLIT = True  # False: from the texts

    def choose(self, programs, *flags, documents=30, code=0, torch=True, methods=True):
        def split(work):
            if not self.SPLIT:
                return _choose_documents.documents_of(work)
            return ["r0.ids", "r1.ids"], [f"{i}.ids" for i in range(documents)]

        for name in ("model.gguf", "text.txt"):
            if not os.path.exists(self.path(name)):
                pathlib.Path(self.path(name)).write_text("x")
        said, wrong = [], []
        arguments = replaced(["--model", self.path("model.gguf"), "--text", self.path("text.txt"), "-o",
                              self.path("out"), "--quiet"], flags)
        if "--runs-in" not in flags and methods:
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
        self.assertEqual(self.read("answer.md"), text)

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
            self.assertRegex(text, r"(?s)\| llama.cpp q8_0 \| 25.0 % \| [0-9.]+ \([0-9.]+ to [0-9.]+\) \|")  # measured
            self.assertNotIn("predicted for", text)
            self.assertEqual(programs.by, "layer")
            self.assertIn("gradients differ from what was recorded", self.choose(Programs(), code=2))
            choose.shutil.rmtree(self.path("out"))
            for more, words in ((["--by", "head"], "not of its heads"),
                                (["--model", "hub/name"], "only a GGUF file can be run")):
                self.assertIn(words, self.choose(Programs(), *flags, *more, code=2, torch=torch))

    def read(self, name):
        """A file of the only question."""
        found, = pathlib.Path(self.path("out")).glob(f"answer-*/{name}")
        return found.read_text()

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
        self.assertEqual(second.made[0], "3.0.csv")

    def test_other_questions_of_one_recording(self):
        """Another size, another engine and a longer list record nothing, and measure what was not measured yet."""
        self.choose(Programs())
        wider = Programs()
        self.choose(wider, "--race", "5")
        self.assertEqual(wider.raced[0], ["q8_0"])  # the fifth; the others were measured on this document
        sizes = (["--memory", size] for size in ("12.5%", "0.125", ".125mem", "12.5 % memory"))
        for flags in (*sizes, ["--runs-in", "llama.cpp"], ["--menu", "h2o"]):
            again = Programs()
            self.choose(again, *flags)
            self.assertEqual({"probes.h5", "order.csv"} & {*again.made}, set(), flags)
        self.assertEqual(len(list(pathlib.Path(self.path("out")).glob("answer-*/answer.md"))), 5)

    def test_other_recordings_in_the_same_folder(self):
        text = self.choose(Programs(), documents=2)
        for flags, words in ((["--context", "99"], "--context differ"), (["--probes", "3"], "gradients differ"),
                             (["--documents", "3", "--score", "8"], "--score, --documents differ")):
            self.assertIn(words, self.choose(Programs(), *flags, code=2))
        self.assertEqual(self.choose(Programs(), documents=2), text)

    def test_other_weights_of_the_same_size(self):
        """At the same path, of the same size and time: only the digest differs. The same for a text."""
        for name, words in (("model.gguf", "the model differ"), ("text.txt", "the texts differ")):
            self.choose(Programs(), documents=2)
            kept = os.stat(self.path(name))
            pathlib.Path(self.path(name)).write_text("y")
            os.utime(self.path(name), ns=(kept.st_atime_ns, kept.st_mtime_ns))
            self.assertIn(words, self.choose(Programs(), documents=2, code=2))
            pathlib.Path(self.path(name)).write_text("x")
            self.choose(Programs(), documents=2)  # written again, and equal

    def test_other_weights_in_any_part(self):
        """Of split GGUF files, of links to them, and of folders: which files decide."""
        for number in (1, 2):
            pathlib.Path(self.path(f"m-0000{number}-of-00002.gguf")).write_text("x")
        os.symlink(self.path("m-00001-of-00002.gguf"), self.path("link.gguf"))
        folder = pathlib.Path(self.path("hf"))
        folder.mkdir()
        for name in ("model-00001-of-00002.safetensors", "config.json", "tokenizer.json", "README.md"):
            (folder / name).write_text("x")
        digests = lambda model: [digest for _, digest, _ in _choose_folder.digests_of(  # noqa: E731
            _choose_folder.parts_of(self.path(model)))]
        for model, changed, decides in (("m-00001-of-00002.gguf", "m-00002-of-00002.gguf", True),
                                        ("link.gguf", "m-00002-of-00002.gguf", True), ("hf", "hf/config.json", True),
                                        ("hf", "hf/model-00001-of-00002.safetensors", True),
                                        ("hf", "hf/tokenizer.json", True), ("hf", "hf/README.md", False)):
            with self.subTest(model=model, changed=changed):
                before = digests(model)
                pathlib.Path(self.path(changed)).write_text("y")
                self.assertEqual(digests(model) != before, decides)
                pathlib.Path(self.path(changed)).write_text("x")
        os.remove(self.path("m-00002-of-00002.gguf"))
        self.assertIn("m-00002-of-00002.gguf is missing; fetch it", self.choose(
            Programs(), "--model", self.path("m-00001-of-00002.gguf"), code=2))

    def test_a_digest_is_computed_once(self):
        self.choose(Programs(), documents=2)
        read = mock.Mock(side_effect=_choose_folder.sha256_of_file)
        with mock.patch.object(_choose_folder, "sha256_of_file", read):
            self.choose(Programs(), documents=2)
        self.assertEqual([call.args[0] for call in read.call_args_list], [self.path("text.txt")])

    def test_tasks(self):
        """3/4 of 16 answers are right with the full cache, and a quarter of 16 is lost."""
        programs = Programs()
        text = self.choose(programs, "--task", "lines")
        self.assertEqual(programs.made[-1], "answers.csv")
        self.assertIn("Of the 12 answers that the full cache has right in lines these are lost: h2o+q5_1 4.", text)
        self.assertEqual(self.choose(Programs(), "--task", "lines"), text)
        self.assertIn("runs GGUF files", self.choose(Programs(), "--task", "lines", "--model", "hub/name", code=2))
        self.assertEqual(_choose_answer.lost_answers([{"task": "pairs", "match_full": "", "answers": "0"}]),
                         "In pairs the full cache has no answer to lose.")

    def test_bytes_of_the_budget_alone(self):
        """Replays predict at 100 % of the memory too."""
        rows = [{"method": "h2o", "params": "", "prompt": "all", "layer": "all", "budget": budget, "total_bytes": held,
                 "full_bytes": 8, "compressed_layers": 1, "model_layers": 2}
                for budget, held in (("25%mem", 2), ("100%mem", 8))]
        found = types.SimpleNamespace(options=types.SimpleNamespace(budget="25%mem"), rows={"h2o": rows[:1]},
                                      predictions=_choose_rank.Predictions(rows, "kl_predicted", "all"))
        self.assertIn("25.0 % in the 1 of 2 layers", _choose_answer.bytes_held(found, "h2o"))

    def test_too_few_documents_for_a_statement(self):
        """Signs alone tell two of four configurations apart from 2^n / (n + 1) >= 240 on, which is at 12 documents."""
        text = self.choose(Programs(), documents=2)
        self.assertRegex(text, r"leads, undecided, of the 4.* Not yet told from it: .* A clear difference between 4 "
                               r"configurations takes 12 documents, and these are 2, all that these texts have; give "
                               r"longer texts or a smaller --context, or --race 2 \(9 documents\)\.")

    def test_undecided(self):
        programs = Programs()
        programs.true = {**TRUE, "h2o": 0.01, "snapkv": 0.01, "sink": 0.01}
        self.assertRegex(self.choose(programs, documents=14),
                         r"leads, undecided, of the 4.* Not told from it when the documents ended: ")

    def test_no_time(self):
        self.assertIn("None of the configurations at 25% of the memory was measured in 0 minutes",
                      self.choose(Programs(), "--minutes", "0"))

    def test_one_configuration_is_measured_too(self):
        self.assertIn("of the 1 configurations that were measured", self.choose(Programs(), "--race", "1"))

    def test_files_that_are_damaged(self):
        for name in ("recording.json", "answer-*/cache.json"):
            self.sized()
            found, = pathlib.Path(self.path("out")).glob(name)
            found.write_text("{")
            name = found.name
            self.assertIn(f"{name}: is damaged", self.sized(code=2))
            choose.shutil.rmtree(self.path("out"))

    def test_streams_that_are_closed(self):
        with mock.patch.object(choose, "choose"), mock.patch.multiple(sys, stdout=None, stderr=None):
            self.assertEqual(choose.main(["--model", "m", "--text", "t", "-o", "out"]), 3)

    def test_a_program_that_is_killed(self):
        for number, expected in ((9, OSError), (15, KeyboardInterrupt)):
            with self.assertRaises(expected):
                _choose_run.Run(types.SimpleNamespace(quiet=True)).run(self.path("made"), "sh", "-c",
                                                                       f"kill -{number} $$")

    PLAN = "".join(f'  {{ layer = {n}, method = "h2o", budget = "{n + 1}0%mem" }},\n' for n in (1, 2))

    def test_a_plan_races(self):
        """Whether or not documents confirm it: the race measures it."""
        for comment, words in (("confirmed = true\n", ""),
                               ("confirmed = false\n",
                                "Held-out documents did not confirm that it is better than equal budgets")):
            programs = Programs(plan=comment + self.PLAN)
            programs.true = {**TRUE, "plan": 0.001}
            text = self.choose(programs)
            self.assertIn("**plan** changes", text)
            self.assertIn(words, text)
            self.assertEqual("did not confirm" in text, bool(words))
            self.assertRegex(text, r"The plan is plans/plan-[0-9a-f]{12}\.toml; it asks an engine for caches of "
                                   r"another size in each kv head of each layer")
            self.assertEqual(programs.by, "head")
            plan, = pathlib.Path(self.path("out/plans")).iterdir()
            self.assertEqual(plan.read_text(), comment + self.PLAN)
            choose.shutil.rmtree(self.path("out"))

    def test_a_plan_of_the_user_races_too(self):
        """Its row has a digest as a parameter, and it is where the user has it."""
        class Own(Programs):
            def row(self, name, budget):
                return {"params": "sha256=1234"} if name.startswith("plan:/x") else {}

        programs = Own()
        programs.true = {**TRUE, "plan": 0.001}
        text = self.choose(programs, "--methods", "h2o,sink,plan:/x/mine.toml", methods=False)
        self.assertIn("**plan:/x/mine.toml[sha256=1234]** changes", text)

    def test_a_plan_that_gives_all_the_same_does_not(self):
        plan = "".join(f'  {{ layer = {n}, method = "h2o", budget = "25%mem" }},\n' for n in (1, 2))
        self.assertNotIn("plan", self.choose(Programs(plan=plan)))

    def test_names_of_folders(self):
        """Lists of methods, in which plans of the folder are named, give a meaning to some characters."""
        os.makedirs(self.path("a,b"))
        for name in ("a b(c)+d@e;f=g'h\"i", "c#d{e}]f", "ä"):
            programs = Programs(plan=self.PLAN)
            self.choose(programs, "-o", self.path(name))
            self.assertTrue(programs.raced[0][-1].startswith("plan-"), name)
        for name in ("a,b/out", "a[b", "a\nb", "a\tb"):
            self.assertIn("a comma, '[' or a line end", self.choose(Programs(), "-o", self.path(name), code=2))
            self.assertFalse(os.path.exists(self.path(name)))
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.path("a,b"))  # a relative path has no comma
        self.choose(Programs(plan=self.PLAN), "-o", "out")

    def test_a_folder_that_was_moved(self):
        programs = Programs(plan=self.PLAN)
        programs.true = {**TRUE, "plan": 0.001}
        text = self.choose(programs)
        os.rename(self.path("out"), self.path("moved"))
        again = Programs()
        self.assertEqual((self.choose(again, "-o", self.path("moved")), again.made), (text, []))

    def test_a_finished_folder_is_only_read(self):
        """Nothing in it is written, nor its folder, as one that is only read demands."""
        text = self.choose(Programs(plan=self.PLAN))
        state = lambda: {path: os.stat(path).st_mtime_ns for path in [  # noqa: E731
            pathlib.Path(self.path("out")), *pathlib.Path(self.path("out")).rglob("*")]}
        before = state()
        self.assertEqual((self.choose(Programs()), state()), (text, before))
        self.choose(Programs(), "--memory", "12.5%", documents=3)  # undecided, and more documents are there
        again = Programs()
        with mock.patch.object(choose.os, "access", lambda *_: False):
            self.assertIn("these are 3; give more --minutes", self.choose(again, "--memory", "12.5%"))
        self.assertEqual(again.made, [])

    def said(self, script, **options):
        """What a Run says of a program, and whether it made its file."""
        said = []
        run = _choose_run.Run(types.SimpleNamespace(quiet=False))
        stream = types.SimpleNamespace(write=said.append, flush=lambda: None, **options)
        with mock.patch.object(sys, "stderr", stream):
            try:
                run.run(self.path("made/file"), "sh", "-c", script, self.path("made/file"))
            except Exception as failure:
                said.append(f"{type(failure).__name__}: {failure}")
        return re.sub(r"\[ *\d+ s\]", "[0 s]", "".join(said))

    def test_progress_of_a_program(self):
        """A line for each document, with a total; on a terminal all stages, in one line."""
        stages = "".join(f"echo '{_choose_run.STAGES}: {text}' >&2; " for text in (
            "loading the model", "document 1 of 2, a.ids: probe 1 of 8", "document 1 of 2, a.ids: probe 2 of 8",
            "document 2 of 2, b.ids: probe 1 of 8"))
        self.assertEqual(self.said(stages + "touch $0"),
                         "kvbench-choose: [0 s] document 1 of 2\n"
                         "kvbench-choose: [0 s] document 2 of 2, about 0 s left\n")
        os.remove(self.path("made/file"))
        live = self.said(stages + "touch $0", isatty=lambda: True)
        self.assertIn("\r\x1b[Kkvbench-choose: [0 s] document 1 of 2, a.ids: probe 2 of 8\r", live)
        self.assertEqual(live.count("\n"), 0)
        os.remove(self.path("made/file"))
        self.assertEqual(self.said(stages + "echo 'kveval: no room' >&2; exit 3"),
                         "kvbench-choose: [0 s] document 1 of 2\n"
                         "kvbench-choose: [0 s] document 2 of 2, about 0 s left\n"
                         "OSError: sh failed: kveval: no room")

    def test_time_that_is_left(self):
        """The first of three documents takes 100 seconds, and two are left."""
        said, run = [], _choose_run.Run(types.SimpleNamespace(quiet=False))
        with mock.patch.object(_choose_run.time, "monotonic") as clock, mock.patch.object(
                _choose_run, "tell", said.append):
            for clock.return_value, stage in ((500, "document 1 of 3, a"), (590, "document 1 of 3, b"),
                                              (600, "document 2 of 3, a")):
                run.show(stage)
        self.assertIn("document 2 of 3, about 200 s left\n", said[-1])

    def test_copies_of_a_model_are_named(self):
        copy = self.path("cache/kvbench/f32/1234.gguf")
        os.makedirs(os.path.dirname(copy))
        pathlib.Path(self.path("cache/kvbench/f32/earlier.gguf")).write_text("x")
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": self.path("cache")}):
            self.assertEqual(self.said(f"head -c 2000000 /dev/zero > '{copy}'; touch $0"),
                             f"kvbench-choose: [0 s] {copy} is a copy of the model with fp32 weights (2 MB), which "
                             "later runs use; kvbench cache lists and removes such copies\n")

    def test_what_a_killed_run_leaves(self):
        """Temporary files neither block a folder nor stay in it; files of others do and do."""
        left = ["recording.json.tmp.1", "probes.h5.tmp.host.17", "answer-25%-01234567/answer.md.tmp.3",
                "measured/0.0.csv.tmp.host.9"]
        os.makedirs(self.path("out"))
        pathlib.Path(self.path(f"out/{left[0]}")).write_text("x")
        self.choose(Programs(), documents=2)
        for name in left:
            os.makedirs(os.path.dirname(self.path(f"out/{name}")), exist_ok=True)
            pathlib.Path(self.path(f"out/{name}")).write_text("x")
        mine = ["out/mine.tmp.txt", "out/mine/a.csv.tmp.1", "other/measured/a.csv.tmp.1", "other/a.csv.tmp.1"]
        for name in mine:
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            pathlib.Path(self.path(name)).write_text("x")
        self.choose(Programs(), documents=2)
        self.assertIn("none of this command", self.choose(Programs(), "-o", self.path("other"), code=2))
        self.assertEqual([name for name in left if os.path.exists(self.path(f"out/{name}"))], [])
        self.assertTrue(all(os.path.exists(self.path(name)) for name in mine))

    def test_a_program_holds_the_lock(self):
        """A run that is killed leaves its program behind, whose folder is not free."""
        os.makedirs(self.path("out"))
        with _files.held(self.path("out")) as lock:
            child = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
        self.assertIn("another run works in this folder", self.choose(Programs(), code=2))
        child.kill()
        child.wait()
        self.choose(Programs(), documents=2)

    def test_a_refused_text_leaves_the_folder_free(self):
        documents = mock.Mock(side_effect=Error("the text is too short"))
        with mock.patch.object(_choose_documents, "tokens_of_texts", documents):
            with mock.patch.object(Choose, "SPLIT", False):
                self.assertIn("too short", self.choose(Programs(), "--context", "77", code=2))
        self.assertIn("of the 4 configurations", self.choose(Programs(), documents=2))

    def test_what_cannot_be_predicted_is_not_the_best(self):
        """Rows that a replay marks race where nothing else is left, one of each kind first."""
        class Marked(Programs):
            def row(self, name, budget):
                return {"kl_about": "outside: layer 0, error .64 of the stream; all layers", **more} \
                    if name in marked else {}

        programs, marked, more = Marked(), ("h2o+q5_1", "h2o"), {}
        text = self.choose(programs)
        self.assertEqual(programs.raced[0], ["snapkv", "sink", "q8_0", "h2o+q5_1"])
        self.assertIn("Its damage could not be predicted (layer 0, error .64 of the stream)", text)
        choose.shutil.rmtree(self.path("out"))
        programs, marked = Marked(), (*TRUE, "q8_0")
        self.choose(programs, "--race", "2")
        self.assertEqual(programs.raced[0], ["h2o+q5_1", "h2o"])  # of all kinds before a second one
        choose.shutil.rmtree(self.path("out"))
        programs, more = Marked(), {"kl_predicted": "", "kl_predicted_lo": "", "kl_predicted_hi": ""}
        self.choose(programs, "--race", "2")  # without a number, by the error in the stream
        self.assertEqual(programs.raced[0], ["h2o+q5_1", "h2o"])

    def test_a_kind_each_without_gradients(self):
        """Six mixtures with the least residual errors would leave no place to what wins."""
        class Kinds(Programs):
            def row(self, name, budget):
                return {"kept_fraction": 1 if name in ("q8_0", "int8", "kivi4") else 0.5}

        mixtures = [f"h2o+q{n}" for n in range(6)]
        programs = Kinds(noise=0.01)
        programs.true = {**{name: 0.01 for name in mixtures}, "h2o": 0.2, "snapkv": 0.3, "kivi4": 0.02, "q8_0": 0.05}
        self.choose(programs, "--without-gradients", "--methods", ",".join(programs.true), methods=False)
        self.assertEqual([*map(_choose_rank.kind_of, ({"method": name, "kept_fraction": kept} for name, kept in (
            ("q8_0", "1"), ("kivi4", "1"), ("h2o", "0.25"), ("h2o+q8_0", "0.4"), ("turboquant@vllm", "1"),
            ("chelsea", "0.25"))))],
            ["rounded by token", "rounded by channel or vector", "tokens dropped or merged",
             "tokens dropped, and rounded", "rounded by channel or vector", "tokens dropped or merged"])
        self.assertIn(programs.raced[0][0], mixtures)
        self.assertEqual(programs.raced[0][1:], ["kivi4", "q8_0", "h2o"])

    def test_the_error_that_ranks_without_gradients(self):
        """A layer whose output is 12 times the stream has an error of 1.2 of the stream before it, and of 0.1 of that
        after it: a false alarm. Ranked by sqrt((0.1^2 + 0.01^2) / 2)."""
        row = lambda name, layer, residual, stream: {  # noqa: E731
            "method": name, "params": "", "prompt": "all", "layer": layer, "budget": "25%mem", "status": "ok",
            "residual_err_rms": residual, "stream_err_rms": stream, "kept_fraction": "1", "kl_about": ""}
        rows = [row("loud", "all", "0.8", "0.07"), row("loud", "0", "1.2", "0.1"), row("loud", "1", "0.01", "0.01"),
                row("bad", "all", "0.4", "0.3"), row("bad", "0", "0.5", "0.5"), row("bad", "1", "0.01", "0.01"),
                row("earlier program", "all", "0.05", "")]
        found = _choose_rank.Predictions(rows, "residual_err_rms", "all")
        loud, bad, earlier = found.rows
        self.assertAlmostEqual(found.damage(loud), math.sqrt((0.01 + 0.0001) / 2))
        self.assertEqual((found.outside(loud), found.outside(bad)), ("", "layer 0, error 0.5 of the stream"))
        self.assertEqual(found.ranked("25%mem"), [earlier, loud, bad])

    def test_formats_of_engines(self):
        """Measured on three documents, or without a number; what breaks the model is said to, and a layer that makes
        most of the damage is left in 16 bits."""
        programs = Programs(noise=0.01)
        plans = []
        programs.true = {**TRUE, "q8_0": 6, "plan": lambda name: plans.append(name) or 0.02}
        programs.layers = {"q8_0": {str(layer): 0.9 if layer == 3 else 0.01 for layer in range(10)}}
        with mock.patch.object(_choose_engines, "layers_of", lambda work: 10):
            text = self.choose(programs)
        self.assertRegex(text, r"\| llama.cpp q8_0 \| 25.0 % \| [56]\.\d+ \([56]\.\d+ to [56]\.\d+\) \| breaks the "
                               r"model; with layer 3 in 16 bits 0\.0\d+ \(0\.0\d+ to 0\.0\d+\) at 25\.0 % \|")
        self.assertIn("llama.cpp reads it through its rounded cache", text)
        plan = pathlib.Path(plans[0].removeprefix("plan:")).read_text()
        self.assertEqual([line.split('method = "')[1].split('"')[0] for line in plan.splitlines() if "layer =" in line],
                         ["q8_0"] * 3 + ["exact"] + ["q8_0"] * 6)
        for flags, documents, words in (([], 2, "not measured: that takes 3 documents; give longer texts"),
                                        (["--minutes", "0"], 30, "that takes 3 documents and more --minutes")):
            choose.shutil.rmtree(self.path("out"))
            text = self.choose(Programs(), *flags, documents=documents)
            self.assertIn(words, text)
            self.assertIn("| llama.cpp q8_0 | 25.0 % | not measured |  |", text)
            self.assertNotIn("its rounded cache", text)

    def test_a_layer_that_is_not_to_blame(self):
        programs = Programs(noise=0.01)
        programs.true = {**TRUE, "q8_0": 0.3, "plan": 0.25}
        programs.layers = {"q8_0": {str(layer): 0.01 for layer in range(10)}}
        with mock.patch.object(_choose_engines, "layers_of", lambda work: 10):
            text = self.choose(programs)
        self.assertRegex(text, r"\| llama.cpp q8_0 \| .* \| large \|")
        self.assertNotIn("16 bits", text)

    def test_flags_that_leave_layers(self):
        for engine, whole, expected in (("vLLM --kv-cache-dtype fp8", [0, 3], " (--kv-cache-dtype-skip-layers 0 3)"),
                                        ("llama.cpp x", [0, 1], " (ik_llama.cpp: -ctk-first f16,2 -ctv-first f16,2)"),
                                        ("llama.cpp x", [1], ""), ("kvpress KnormPress()", [0], "")):
            setting = _choose_engines.Setting("q", engine, 0.5, whole=whole)
            self.assertEqual(_choose_answer.flags(setting), expected)

    def test_layers_to_leave(self):
        for errors, expected in (({0: 0.9, 1: 0.1}, [0]), ({0: 0.1, 1: 0.2}, [1]), ({}, []), ({4: 9}, []),
                                 ({n: 0.4 if n < 3 else 0.1 for n in range(24)}, [0, 1, 2]),
                                 ({n: 0.4 + n for n in range(24)}, [23])):  # all of them: no choice
            with self.subTest(errors=errors):
                self.assertEqual(_choose_engines.worst_layers(errors), expected)

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
                             (["--memory", "0.0"], "--memory 0%: give a share"),
                             (["--memory", "1.25"], "--memory 1.25: give a share"),
                             (["--methods", "h2o", "snapkv"], "write --methods h2o,snapkv;"),
                             (["--menu=h2o,", "q8_0", "q4_0"], "write --menu h2o,q8_0,q4_0;"),
                             (["--device", "cpu", "other.gguf"], "unrecognized arguments: other.gguf;"),
                             (["--race", "2", "--race", "3"], "--race is given twice; it takes one value")):
            with self.subTest(flags=flags):
                self.assertIn(words, self.choose(Programs(), *flags, code=2))
        self.assertFalse(os.path.exists(self.path("out")))

    def test_the_model_without_its_flag(self):
        for words in ("m.gguf --text a b -o x", "--text a -o x m.gguf", "-q --text=a m.gguf -ox",
                      "-o x m.gguf --text a"):
            with self.subTest(words):
                self.assertEqual(choose.parser().parse_args(words.split()).model, "m.gguf")

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
        self.assertEqual(self.read("answer.md"), text)

    def test_a_share_with_a_length(self):
        """Rows of a model in PyTorch, which count a tenth as apart where kveval counts a fifth."""
        self.assertIn("it holds 33.3 MB of the 100 MB", self.sized(apart=0.1))
        self.assertEqual(self.programs.budgets - {"100%mem"}, {"25%mem,100%mem", "25%mem"})

    def test_sizes_of_a_trace(self):
        """Two layers of 2 kv heads with 16 channels of keys and 12 of values, in 2 bytes: 112 bytes of a token in each.
        A window of 100 tokens holds 11,200; capped logits take a layer from methods, and not its bytes."""
        options = types.SimpleNamespace(context_length=1000)
        for change, expected in (({}, (224_000, 0)), ({"window": 100}, (123_200, 11_200)),
                                 ({"softcap": 30.0}, (224_000, 112_000)), ({"window": 5000}, (224_000, 112_000))):
            with self.subTest(change):
                path = self.synth("sketches.h5")
                with h5py.File(path, "a") as file:
                    for name, value in change.items():
                        group = file[next(iter(file["prompts"].values())).name + "/layers/1"]
                        group.attrs[name] = type(group.attrs[name])(value)
                found = _choose_model.sizes_in_trace(options, path)
                self.assertEqual((found["full"], found["whole"], found["tokens"]), (*expected, 1000))
        with h5py.File(path, "a") as file:
            del file[next(iter(file["prompts"].values())).name + "/layers/1"]
        with self.refuses("--context-length 1000", "lacks layers .1.", "give --memory as a share"):
            _choose_model.sizes_in_trace(options, path)

    def test_windows_that_a_trace_does_not_show(self):
        """A trace of 256 tokens shows a window of 255, and a cache of 1000 is not changed by one of 1000."""
        path = self.synth("sketches.h5")
        for window, tokens, known in ((0, 1000, True), (255, 1000, True), (256, 1000, False), (999, 1000, False),
                                      (1000, 1000, True), (512, 300, True)):
            with self.subTest(window=window, tokens=tokens):
                options = types.SimpleNamespace(context_length=tokens)
                if known:
                    self.assertEqual(_choose_model.sizes_in_trace(options, path, window)["full"], 224 * tokens)
                else:
                    with self.refuses(f"--context-length {tokens}", f"window of {window} tokens", "documents of 256",
                                      f"give a --context above {window}"):
                        _choose_model.sizes_in_trace(options, path, window)

    def test_windows_in_headers(self):
        def text(value):
            return struct.pack("<Q", len(value)) + value.encode()
        window = text("gemma3.attention.sliding_window") + struct.pack("<II", 4, 512)
        arch = text("general.architecture") + struct.pack("<I", 8) + text("gemma3")
        arrays = (text("a") + struct.pack("<IIQ", 9, 8, 2) + text("x") + text("yz") +
                  text("b") + struct.pack("<IIQ", 9, 6, 3) + bytes(12) + text("c") + struct.pack("<I?", 7, True))
        for fields, count, expected in ((arch + window, 2, 512), (window + arrays + arch, 5, 512), (arch, 1, 0),
                                        (arch.replace(b"gemma3", b"gemma2") + window, 2, 0)):
            with open(self.path("w.gguf"), "wb") as file:
                file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, count) + fields)
            self.assertEqual(_choose_model.window_of(self.path("w.gguf")), expected)
        self.assertEqual(_choose_model.window_of(self.write("text", "w.gguf")), 0)

    def test_sizes_without_gradients_come_from_the_trace(self):
        sizes = {"tokens": 100_000, "full": 100_000_000, "whole": 20_000_000, "apart": None}
        programs = Programs()
        with mock.patch.object(_choose_model, "sizes_in_trace", lambda options, path, window: sizes):
            text = self.choose(programs, "--without-gradients", "--memory", "40MB", "--context-length", "100000")
        self.assertIn("After 100000 tokens it holds 25 MB of the 100 MB of the full cache", text)
        self.assertIn("25%mem,100%mem", programs.budgets)

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
