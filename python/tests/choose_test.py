# SPDX-License-Identifier: Apache-2.0
"""kvbench.choose() and kvbench-choose, from a question to an answer, with stand-ins for the programs.
extension_choose_real goes through the real ones."""
import math
import pathlib
import re
import shutil
import types
from unittest import mock

from choose_programs import EQUAL, PLAN, TRUE, ChooseTest, Programs, plan_of
from kvbench.choosing import answer, engines, race, rank
from kvbench.choosing import documents as documents_module


class Answers(ChooseTest):
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
            self.assertIn("(--probes): not as recorded", self.choose(Programs(), code=2))
            shutil.rmtree(self.path("out"))
            for more, words in ((["--by", "head"], "not of its heads"),
                                (["--model", "hub/name"], "only a GGUF file can be run")):
                self.assertIn(words, self.choose(Programs(), *flags, *more, code=2, torch=torch))

    def test_tasks(self):
        """3/4 of 16 answers are right with the full cache, and a quarter of 16 is lost."""
        programs = Programs()
        text = self.choose(programs, "--task", "lines")
        self.assertEqual(programs.made[-1], "answers.csv")
        self.assertIn("Of the 12 answers that the full cache has right in lines these are lost: h2o+q5_1 4.", text)
        self.assertEqual(self.choose(Programs(), "--task", "lines"), text)
        self.assertIn("runs GGUF files", self.choose(Programs(), "--task", "lines", "--model", "hub/name", code=2))
        self.assertEqual(answer.lost_answers([{"task": "pairs", "match_full": "", "answers": "0"}]),
                         "In pairs the full cache has no answer to lose.")

    def test_bytes_of_the_budget_alone(self):
        """Formats of engines are predicted at 100 % of the memory."""
        rows = [{"method": "h2o", "params": "", "prompt": "all", "layer": "all", "budget": budget, "total_bytes": held,
                 "full_bytes": 8, "compressed_layers": 1, "model_layers": 2}
                for budget, held in (("25%mem", 2), ("100%mem", 8))]
        found = types.SimpleNamespace(target=types.SimpleNamespace(budget="25%mem"), rows={"h2o": rows[:1]},
                                      predictions=rank.Predictions(rows, "kl_predicted"))
        self.assertIn("25.0 % in the 1 of 2 layers", answer.bytes_held(found, "h2o"))

    def test_too_few_documents_for_a_statement(self):
        """Signs alone tell two of four configurations apart from 2^n / (n + 1) >= 240 on, which is at 12 documents."""
        text = self.choose(Programs(), documents=2)
        self.assertRegex(text, r"leads, undecided, of the 4.* Not yet told from it: .* A clear difference between 4 "
                               r"configurations takes 12 documents, and these are 2, all that these texts have; give "
                               r"longer texts or a smaller --context, or --race 2 \(9 documents\)\.")

    def test_what_can_be_told_comes_first(self):
        """12 documents are the least of four configurations, and formats of engines wait for them. A race that is
        undecided then goes on behind them."""
        class Watched(Programs):
            def run(watched, work, made, *command):
                if made.endswith("formats.csv"):
                    watched.told = self.read("answer.md")
                super().run(work, made, *command)

        programs = Watched()
        programs.true = {**TRUE, "h2o": 0.012, "h2o+q5_1": 0.01}
        text = self.choose(programs, documents=14)
        made = programs.made
        self.assertEqual(made[made.index("formats.csv") - 12:][:12], [f"{n}.0.csv" for n in range(12)])
        self.assertEqual(made[made.index("formats.csv") + 1:],
                         ["0.1.csv", "1.1.csv", "2.1.csv", "12.0.csv", "13.0.csv"])
        self.assertIn("Known to be worse on pieces of these texts", programs.told)
        self.assertTrue(programs.told.endswith(answer.NOT_YET))
        self.assertNotIn("| llama.cpp q8_0 |", programs.told)
        self.assertIn("| llama.cpp q8_0 |", text)
        self.assertEqual(self.read("answer.md"), text)

    def test_what_is_told_on_the_way(self):
        contest = race.Race(["a", "b", "c"], 0.05)
        self.assertEqual(answer.told(contest), "a leads, and 0 of the 2 others are known to be worse")
        for _ in range(30):
            contest.add({name: {"a": 3, "b": 1, "c": 2}[name] for name in contest.alive})
        self.assertEqual(answer.told(contest), "b leads, and 2 of the 2 others are known to be worse")
        self.assertEqual(answer.told(race.Race(["a"], 0.05)), "a was measured")

    def test_undecided(self):
        programs = Programs()
        programs.true = {**TRUE, "h2o": 0.01, "snapkv": 0.01, "sink": 0.01}
        self.assertRegex(self.choose(programs, documents=14),
                         r"leads, undecided, of the 4.* Not told from it when the documents ended: ")

    def test_ties_are_named_in_their_order(self):
        """By the ratio of their KL, not by their predictions, which are the other way round."""
        class Contrary(Programs):
            def whole_row(self, name, budget, layer, kl):
                row = super().whole_row(name, budget, layer, kl)
                return {**row, "kl_predicted": 1 / row["kl_predicted"]} if kl == "kl_predicted" else row

        programs = Contrary(noise=0)
        programs.true = {"h2o": 0.05, "h2o+q5_1": 0.01, "snapkv": 0.02, "sink": 0.03}
        text = self.choose(programs, documents=2)
        self.assertEqual(re.findall(r"([^ ]+) \([0-9.]+ times the KL", text.partition("Not yet told")[2]),
                         ["sink", "h2o", "q8_0"])

    def test_no_time(self):
        self.assertIn("None of the configurations at 25% of the memory was measured in 0 minutes",
                      self.choose(Programs(), "--minutes", "0"))

    def test_one_configuration_is_measured_too(self):
        self.assertIn("h2o+q5_1** is the only configuration that was measured: KL",
                      self.choose(Programs(), "--race", "1"))

    def test_a_plan_races(self):
        """Whether or not documents confirm it: the race measures it."""
        for confirmed in (True, False):
            programs = Programs(plan=plan_of("20%mem", "30%mem", confirmed=confirmed))
            programs.true = {**TRUE, "plan": 0.001}
            text = self.choose(programs)
            self.assertIn("**plan** changes", text)
            self.assertEqual("Held-out documents did not confirm that it is better than equal budgets" in text,
                             not confirmed)
            self.assertRegex(text, r"The plan is plans/plan-[0-9a-f]{12}\.toml; it asks an engine for caches of "
                                   r"another size in each kv head of each layer")
            self.assertEqual(programs.by, "head")
            plan, = pathlib.Path(self.path("out/plans")).iterdir()
            self.assertEqual(plan.read_text(), programs.plan)
            shutil.rmtree(self.path("out"))

    def test_a_plan_that_is_damaged(self):
        for text in ("", "plans = 1", "[[plans]]\nlayers = [1]", "plans = ["):
            with self.subTest(text):
                self.assertIn("plan.toml: is no file of a plan", self.choose(Programs(plan=text), code=2))
                shutil.rmtree(self.path("out"))

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
        self.assertNotIn("plan", self.choose(Programs(plan=EQUAL)))

    def test_the_result(self):
        """What the answer says, as values."""
        programs = Programs(plan=PLAN)
        programs.true = {**TRUE, "plan": 0.001}
        found = self.result(programs)
        self.assertEqual((found.configuration, found.decided, found.budget, found.not_told),
                         (f"plan:{found.plan.name}", True, "25%mem", ()))
        self.assertEqual((found.text, found.answer.read_text()), (self.choose(Programs()),) * 2)
        self.assertEqual(found.answer.parent, found.folder)
        self.assertEqual(found.plan.read_text(), PLAN)
        self.assertTrue(found.kl_interval[0] < found.kl < found.kl_interval[1])
        self.assertAlmostEqual(found.kl, 0.001, delta=0.0002)
        self.assertEqual({one.configuration for one in found.worse} | {found.configuration}, {*found.raced})
        for one in found.worse:
            self.assertTrue(one.ratio > 1 and 0 < one.documents <= found.documents)
            self.assertIn(f"{answer.short(one.configuration)} ({answer.number(one.ratio)} times", found.text)

    def test_a_result_without_a_decision(self):
        short = self.result(Programs(), minutes=0)
        self.assertEqual((short.configuration, short.decided, short.kl, short.kl_interval, short.documents),
                         (None, False, None, None, 0))
        self.assertEqual((set(short.not_told), len(short.raced)), (set(short.raced), 4))
        shutil.rmtree(self.path("out"))
        with mock.patch.object(documents_module, "documents_of", lambda work: (["r0.ids"], ["0.ids"])), \
                mock.patch.object(ChooseTest, "SPLIT", False):
            one = self.result(Programs())
        self.assertEqual((one.documents, one.kl_interval, len(one.not_told)), (1, None, 3))

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
        shutil.rmtree(self.path("out"))
        programs, marked = Marked(), (*TRUE, "q8_0")
        self.choose(programs, "--race", "2")
        self.assertEqual(programs.raced[0], ["h2o+q5_1", "h2o"])  # of all kinds before a second one
        shutil.rmtree(self.path("out"))
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
        self.assertEqual([*map(rank.kind_of, ({"method": name, "kept_fraction": kept} for name, kept in (
            ("q8_0", "1"), ("kivi4", "1"), ("h2o", "0.25"), ("h2o+q8_0", "0.4"), ("turboquant@vllm", "1"),
            ("chelsea", "0.25"), ("scores:a+b.h5", "0.25"))))],
            ["rounded by token", "rounded by channel or vector", "tokens dropped or merged",
             "tokens dropped, and rounded", "rounded by channel or vector", "tokens dropped or merged",
             "tokens dropped or merged"])
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
        found = rank.Predictions(rows, "residual_err_rms")
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
        with mock.patch.object(engines, "layers_of", lambda work: 10):
            text = self.choose(programs)
        self.assertRegex(text, r"\| llama.cpp q8_0 \| 25.0 % \| [56]\.\d+ \([56]\.\d+ to [56]\.\d+\) \| breaks the "
                               r"model; with layer 3 in 16 bits 0\.0\d+ \(0\.0\d+ to 0\.0\d+\) at 25\.0 % \|")
        self.assertIn("whose contexts pass through the cache", text)
        plan = pathlib.Path(plans[0].removeprefix("plan:")).read_text()
        self.assertEqual([line.split('method = "')[1].split('"')[0] for line in plan.splitlines() if "layer =" in line],
                         ["q8_0"] * 3 + ["exact"] + ["q8_0"] * 6)
        for flags, documents, words in (([], 2, "not measured: that takes 3 documents; give longer texts"),
                                        (["--minutes", "0"], 30, "that takes 3 documents and more --minutes")):
            shutil.rmtree(self.path("out"))
            text = self.choose(Programs(), *flags, documents=documents)
            self.assertIn(words, text)
            self.assertIn("| llama.cpp q8_0 | 25.0 % | not measured |  |", text)
            self.assertNotIn("its rounded cache", text)

    def test_a_layer_that_is_not_to_blame(self):
        programs = Programs(noise=0.01)
        programs.true = {**TRUE, "q8_0": 0.3, "plan": 0.25}
        programs.layers = {"q8_0": {str(layer): 0.01 for layer in range(10)}}
        with mock.patch.object(engines, "layers_of", lambda work: 10):
            text = self.choose(programs)
        self.assertRegex(text, r"\| llama.cpp q8_0 \| .* \| large \|")
        self.assertNotIn("16 bits", text)

    def test_flags_that_leave_layers(self):
        for engine, whole, expected in (("vLLM --kv-cache-dtype fp8", [0, 3], " (--kv-cache-dtype-skip-layers 0 3)"),
                                        ("llama.cpp x", [0, 1], " (ik_llama.cpp: -ctk-first f16,2 -ctv-first f16,2)"),
                                        ("llama.cpp x", [1], ""), ("kvpress KnormPress()", [0], "")):
            setting = engines.Setting("q", engine, 0.5, whole=whole)
            self.assertEqual(answer.flags(setting), expected)

    def test_engines_that_read_a_prompt_in_blocks(self):
        for name, said in (("mlx-lm --kv-bits 4", True), ("vLLM --kv-cache-dtype turboquant_4bit_nc", True),
                           ("vLLM --kv-cache-dtype fp8", False)):
            found = types.SimpleNamespace(settings=[engines.Setting("q", name, 0.5, [0.1] * 3)], rows={})
            self.assertEqual("read a block of a prompt in 16 bits" in answer.engines(found), said)

    def test_layers_to_leave(self):
        for errors, expected in (({0: 0.9, 1: 0.1}, [0]), ({0: 0.1, 1: 0.2}, [1]), ({}, []), ({4: 9}, []),
                                 ({n: 0.4 if n < 3 else 0.1 for n in range(24)}, [0, 1, 2]),
                                 ({n: 0.4 + n for n in range(24)}, [23])):  # all of them: no choice
            with self.subTest(errors=errors):
                self.assertEqual(engines.worst_layers(errors), expected)

    def test_what_an_engine_has(self):
        programs = Programs()  # one type for all layers, so that its plan has no choice
        programs.true = {"q8_0": 0.01, "q4_0": 0.4}
        text = self.choose(programs, "--runs-in", "llama.cpp")
        self.assertIn("**q8_0** changes the output least of the 2 configurations", text)
        self.assertEqual(programs.by, "llama.cpp")
        self.assertIn("It runs today: llama.cpp q8_0. There", text)
        self.assertNotIn("The plan in", text)

    def test_a_plan_that_an_engine_can_set(self):
        notes = 'settings = ["serve --skip 1", "more"]\nbeside = ["The rule has 2 times the KL of this answer."]\n'
        programs = Programs(plan=PLAN.replace("layers = [", notes + "layers = ["))
        programs.true = {"q8_0": 0.1, "q4_0": 0.4, "plan": 0.01}
        text = self.choose(programs, "--runs-in", "vllm")
        self.assertEqual(programs.by, "vllm")
        self.assertIn("**plan** changes the output least of the 3 configurations", text)
        self.assertIn("in a shape that vllm can set.", text)
        self.assertIn("\nThe plan in vllm:\n\n    serve --skip 1\n    more\n\n"
                      "The rule has 2 times the KL of the plan.\n", text)

    def test_a_press_is_no_format(self):
        """At the full budget it does nothing, also if a window makes its cache shorter than the text."""
        class Presses(Programs):
            fits = True

            def row(self, name, budget):
                ok = self.fits or budget == "100%mem"
                return {"status": "ok" if ok else "infeasible", "reason": "" if ok else "its window is longer",
                        "runs_in": f"kvpress {name}Press(compression_ratio={1 - self.fits * 0.5:g})"}

        text = self.choose(Presses(), "--runs-in", "kvpress")
        self.assertRegex(text, r"It runs today: kvpress \w+Press\(compression_ratio=0.5\)\. The ratio is that of "
                               r"contexts of \d+ tokens and \d+ after them; in longer contexts it nears 0\.75\.")
        self.assertNotIn("What engines run today", text)
        none = Presses()
        none.fits = False
        said = self.choose(none, "--runs-in", "kvpress", "--memory", "1%", code=2)
        self.assertIn("no configuration has a prediction at this size (its window is longer)", said)

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

    def test_nothing_fits(self):
        with mock.patch.dict(TRUE, clear=True):
            self.assertIn("no configuration has a prediction", self.choose(Programs(broken="q8_0"), code=2))

    def test_documents_of_several_texts_take_turns(self):
        texts = [[("0", i) for i in range(9)], [("1", i) for i in range(2)]]
        spread = documents_module.spread
        self.assertEqual(spread(texts, 6), [("0", 0), ("1", 0), ("0", 2), ("1", 1), ("0", 4), ("0", 6)])
        self.assertEqual(sorted(spread(texts, 11)), texts[0] + texts[1])
        self.assertEqual(spread(texts, 99), spread(texts, 11))
