# SPDX-License-Identifier: Apache-2.0
"""kvbench allocate, and the plans that it writes in replays and sweeps."""
import math
import os
import re
import tomllib

from support import SAMPLE, CliTest, rows, run

MENU = "h2o,h2o+int8,int8,int4"


class Allocate(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.probes = cls.synth("probes.h5", "--probes", 4, "--prompts", 4, "--pattern", "heavy-hitters")
        cls.plan, cls.curve = cls.path("plan.toml"), cls.path("curve.csv")
        cls.said = cls.ok("allocate", cls.probes, "--menu", MENU, "--budget", "25%mem,40%mem", "-o", cls.plan,
                          "--curve", cls.curve)
        cls.text = cls.read(cls.plan)

    def replay(self, plan, *flags, trace=None):
        table = rows(self.ok("replay", trace or self.probes, "--method", f"plan:{plan}", *flags))
        return [r for r in table if r["prompt"] == "all"]

    def test_the_plan_names_a_method_and_a_budget_for_each_layer(self):
        plan = tomllib.loads(self.text)
        self.assertEqual([p["budget"] for p in plan["plans"]], ["25%mem", "40%mem"])
        self.assertEqual(plan["model_layers"], 2)
        self.assertTrue(re.fullmatch("[0-9a-f]{64}", plan["traces"][0]))
        for of in plan["plans"]:
            self.assertEqual([line["layer"] for line in of["layers"]], [0, 1])
            shares = [float(line["budget"].removesuffix("%mem")) for line in of["layers"]]
            self.assertLessEqual(sum(shares) / 2, float(of["budget"].removesuffix("%mem")))
            for line in of["layers"]:
                self.assertIn(line["method"], MENU.split(","))

    def test_the_answer_begins_with_held_out_documents(self):
        self.assertRegex(" ".join(self.said.split()), "^At 25 % of the memory .*held-out documents")
        said = " ".join(self.said.split())
        self.assertIn("At 40 % of the memory", said)
        self.assertIn("each of 4 documents held out once", said)

    def test_labels_are_for_the_answer_alone(self):
        again, curve, figure = (self.path("labelled" + ending) for ending in (".toml", ".csv", ".svg"))
        told = self.ok("allocate", self.probes, "--menu", MENU, "--budget", "25%mem,40%mem", "-o", again, "--curve",
                       curve, "--figure", figure, "--label", "int8=Ours", "--label", "h2o+int8=Both")
        shown = lambda text: re.sub(r"[ \n]+(# )?", " ", re.sub(r"\bint8\b", "Ours", text.replace("h2o+int8", "Both")))
        self.assertEqual(shown(told), shown(self.said))
        self.assertNotEqual(told, self.said)
        self.assertEqual(self.read(curve), self.read(self.curve))
        self.assertEqual(tomllib.loads(self.read(again)), tomllib.loads(self.text))
        below = " ".join(re.findall("<text [^>]*>([^<]*)", self.read(figure)))
        self.assertIn("4 documents: heavy_hitters-0, heavy_hitters-1, ", below)
        self.assertIn("; menu: h2o, Both, Ours, int4. Bars: in the plans of all documents but one.", below)

    def test_two_runs_and_any_threads_give_the_same_bytes(self):
        for threads in (1, 2):
            again, curve = self.path("again.toml"), self.path("again.csv")
            self.assertEqual(self.said, self.ok("allocate", self.probes, "--menu", MENU, "--budget", "25%mem,40%mem",
                                                "-o", again, "--curve", curve, "-j", threads))
            for path, first in ((again, self.plan), (curve, self.curve)):
                self.assertEqual(self.read_bytes(path), self.read_bytes(first))
                os.remove(path)

    def shares_drawn(self, path, width="1.8"):
        """Of each line (of this width) of the figure the shares of its points, by the axis beside it."""
        figure = self.read(path)
        ticks = [(math.log(float(share)), float(y) - 4) for y, share in
                 re.findall(r'<text x="40" y="([0-9.]+)"[^>]*>([0-9.]+)%<', figure)]
        (low, bottom), (high, top) = ticks[0], ticks[-1]
        lines = re.findall(rf'<path stroke="#\w+" stroke-width="{width}"[^>]* d="M([^"]*)"', figure)
        drawn = [[] for _ in lines]
        for line, ys in zip(lines, drawn):
            for step, at in re.findall("([MLHV])([^MLHV]+)", f"M{line}"):
                ys.append(ys[-1] if step == "H" else float(at.split()[-1]))
        return [[math.exp(low + (y - bottom) / (top - bottom) * (high - low)) for y in ys] for ys in drawn]

    def test_the_figure_has_shares_that_fill_the_budget(self):
        figure, plan = self.path("plan.svg"), self.path("drawn.toml")
        self.ok("allocate", self.probes, "--menu", MENU, "--budget", "25%mem,40%mem", "-o", plan, "--figure", figure)
        for drawn, whole in zip(self.shares_drawn(figure), (25, 40), strict=True):
            self.assertEqual(len(drawn), 2)
            self.assertTrue(0.8 * whole < sum(drawn) / 2 < whole + 0.1, drawn)  # formats have one size
        # a plan that is not the answer, because layers differ more between documents than documents allow
        self.ok("allocate", self.probes, "--menu", "h2o", "--prompts", "0,1,2", "-o", plan, "--figure", figure)
        (drawn,) = self.shares_drawn(figure)
        self.assertGreater(abs(drawn[0] - drawn[1]), 1)
        self.assertTrue(18 < sum(drawn) / 2 < 25.1, drawn)
        bars = self.shares_drawn(figure, "1.1")
        self.assertEqual(len(bars), 2)
        self.assertTrue(any(bar[1] > 1.01 * share for bar, share in zip(bars, drawn)), bars)
        self.ok("allocate", self.probes, "--menu", "h2o", "--prompts", 0, "-o", plan, "--figure", self.path("one.pdf"))
        self.assertTrue(self.read_bytes(self.path("one.pdf")).startswith(b"%PDF-"))

    def test_without_an_output_the_plan_is_printed_alone(self):
        self.assertEqual(self.ok("allocate", self.probes, "--menu", MENU, "--budget", "25%mem,40%mem"), self.text)

    def test_plans_for_engines(self):
        probes = self.path("deep.h5")
        self.ok("synth", "-o", probes, "--tokens", 256, "--prompt-tokens", 192, "--queries", 96, "--layers", 6,
                "--query-heads", 2, "--kv-heads", 1, "--head-dim", 64, "--probes", 4, "--prompts", 4, "--pattern",
                "heavy-hitters")
        for engine, budget, line in (
                ("vllm", "80%mem", r"In vLLM \(0\.21\):\n    vllm serve MODEL --kv-cache-dtype (\S+)"
                                   r"( --kv-cache-dtype-skip-layers( \d)+)?\n"),
                ("ik_llama.cpp", "80%mem",
                 r"In ik_llama\.cpp \(.*\):\n    llama-server -m MODEL\.gguf -fa on -ctk \S+"),
                ("llama.cpp", "60%mem", r"In llama\.cpp \(.*\):\n    llama-server -m MODEL\.gguf --cache-type-k \S+"),
                ("mlx-lm", "60%mem", r"    mlx_lm\.generate --model MODEL --prompt TEXT --kv-bits 8 --kv-group")):
            with self.subTest(engine):
                plan = self.path(engine + ".toml")
                told = self.ok("allocate", probes, "--for", engine, "-b", budget, "-o", plan)
                self.assertRegex(told, line)
                formats = {layer["method"] for layer in tomllib.loads(self.read(plan))["plans"][0]["layers"]}
                formats.discard("exact")
                self.assertLessEqual(len(formats), 2 if engine.startswith("ik") else 1)
                rule = "The first 2 and the last 2 layers in 16 bits" in " ".join(told.split())
                self.assertEqual(rule, engine not in ("llama.cpp", "mlx-lm"))
                held = self.replay(plan, "-b", budget, trace=probes)[0]
                self.assertEqual(held["status"], "ok", held["reason"])
                self.assertLessEqual(float(held["total_bytes"]) / float(held["full_bytes"]), int(budget[:2]) / 100)

    def test_a_replay_of_the_plan_holds_the_bytes_that_it_promised(self):
        for budget in ("25%mem", "40%mem"):
            table = self.replay(self.plan, "--budget", budget)
            self.assertEqual([r["status"] for r in table], ["ok"] * 3)
            held = [(float(r["kv_bytes"]) + float(r["meta_bytes"])) / float(r["full_bytes"]) for r in table]
            self.assertAlmostEqual(held[0], sum(held[1:]) / 2)
            self.assertLessEqual(held[0], float(budget.removesuffix("%mem")) / 100)
            lines = next(p for p in tomllib.loads(self.text)["plans"] if p["budget"] == budget)["layers"]
            for line, share in zip(lines, held[1:]):
                promised = float(line["budget"].removesuffix("%mem")) / 100
                self.assertLessEqual(share, promised)
                self.assertGreater(share, promised - 2 / 256)  # less than a token is left over
            self.assertRegex(table[0]["params"], "^sha256=[0-9a-f]{12}$")
            self.assertEqual(table[0]["method"], f"plan:{self.plan}")

    def test_a_layer_of_a_plan_is_the_method_alone(self):
        both = self.write(self.text[:self.text.index("[[plans]]")] + '[[plans]]\nbudget = "60%mem"\n'
                          'layers = [{ layer = 0, method = "h2o", budget = "30%mem" },\n'
                          '          { layer = 1, method = "int8", budget = "90%mem" }]\n')
        table = self.replay(both, "--budget", "60%mem", "--no-times")
        for layer, method, budget in ((0, "h2o", "30%mem"), (1, "int8", "90%mem")):
            done = run("replay", self.probes, "--method", method, "--budget", budget, "--no-times", "--layers", layer)
            alone = next(r for r in rows(done.stdout) if (r["layer"], r["prompt"]) == (str(layer), "all"))
            planned = next(r for r in table if r["layer"] == str(layer))
            for column in ("rel_err_mean", "kv_bytes", "meta_bytes", "kept_tokens", "kl_predicted"):
                self.assertEqual(planned[column], alone[column], (layer, column))

    def test_a_plan_by_head_gives_each_head_what_it_names(self):
        plan = self.path("heads.toml")
        self.ok("allocate", self.probes, "--menu", "h2o,h2o+int8", "--by", "head", "-o", plan)
        lines = tomllib.loads(self.read(plan))["plans"][0]["layers"]
        heads = len(lines) // 2
        self.assertEqual([(line["layer"], line["kv_head"]) for line in lines],
                         [(layer, head) for layer in (0, 1) for head in range(heads)])
        edited = self.write(self.text[:self.text.index("[[plans]]")] + '[[plans]]\nbudget = "50%mem"\n'
                            'layers = [{ layer = 0, method = "h2o", budget = "50%mem" },\n' +
                            "".join(f'{{ layer = 1, kv_head = {h}, method = "h2o", budget = "{20 + 10 * h}%mem" }},\n'
                                    for h in range(heads)) + "]\n")
        table = rows(run("replay", self.probes, "--method", f"plan:{edited}", "--budget", "50%mem", "--rows", "head",
                         "--no-times").stdout)
        for head in range(heads):
            alone = rows(run("replay", self.probes, "--method", "h2o", "--budget", f"{20 + 10 * head}%mem", "--rows",
                             "head", "--no-times", "--layers", 1, "--heads", head).stdout)
            planned, named = ([(r["prompt"], r["rel_err_mean"], r["kv_bytes"]) for r in of
                               if (r["layer"], r["kv_head"]) == ("1", str(head))] for of in (table, alone))
            self.assertTrue(planned)
            self.assertEqual(planned, named)
        for name, line in (("part", ""), ("other", r"{ layer = 1, kv_head = 7\1")):
            wrong = self.write(re.sub(r"\{ layer = 1, kv_head = 0(.*\n)", line, self.read(edited)),
                               f"{name}-heads.toml")
            self.fails(2, "layer 1 has other lines than one for each of the kv heads 0 to 1",
                       args=("replay", self.probes, "--method", f"plan:{wrong}", "--budget", "50%mem"))

    def test_an_edited_plan_is_another_configuration_of_a_sweep(self):
        edited = self.write(self.text, "edited.toml")
        sweep = self.write('[[run]]\ntraces = "probes.h5"\nmethods = ["h2o", "plan:edited.toml"]\n'
                           'budgets = ["25%mem", "40%mem"]\n')
        first = rows(run("sweep", sweep).stdout)
        self.assertEqual({r["status"] for r in first}, {"ok"})
        with open(edited, "a", encoding="utf-8") as file:
            file.write("# changed\n")
        second = rows(run("sweep", sweep).stdout)
        names = [{r["params"] for r in table if r["method"] != "h2o"} for table in (first, second)]
        self.assertEqual(len(names[0] | names[1]), 2)

    def test_the_verdict_of_configs_follows_the_plan(self):
        """One of two like layers is starved, which does more damage than equal budgets. Of most tokens, because
        claims about two large predictions are undecided."""
        os.mkdir(self.path("c"))
        self.synth("c/test.h5", "--probes", 8, "--prompts", 8, "--pattern", "heavy-hitters")
        lines = self.text.index("  { layer")
        head = self.text[:lines].replace("25%mem", "80%mem")
        self.write(f'{head}{{ layer = 0, method = "h2o", budget = "99%mem" }},\n'
                   '{ layer = 1, method = "h2o", budget = "61%mem" }]\n', "c/plan.toml")
        sweep = self.read(os.path.join(os.path.dirname(SAMPLE), "..", "configs", "plans", "by-layer.toml"))
        sweep = sweep.replace("25%mem", "80%mem")
        exchanged = re.sub('a = (.*), is = "lower", b = ("h2o")', r'a = \2, is = "lower", b = \1', sweep)
        for text, verdict in ((sweep, "contradicted"), (exchanged, "supported")):
            self.ok("sweep", self.write(text, "c/s.toml"), "-o", self.path("out.csv"), "--overwrite")
            self.assertEqual([r["claim_verdict"] for r in rows(self.read("out.claims.csv"))], [verdict])

    def test_a_plan_runs_for_its_own_budgets_and_model_alone(self):
        table = self.replay(self.plan, "--budget", "50%mem")
        self.assertEqual({r["status"] for r in table}, {"infeasible"})
        self.assertIn("the plan was made for 25%mem, 40%mem, not for 50%mem", table[0]["reason"])
        other = self.write(re.sub('model = ".*"', 'model = "another"', self.text), "other.toml")
        self.fails(2, "the plan was made for the model another",
                   args=("replay", self.probes, "--method", f"plan:{other}", "--budget", "25%mem"))
        longer = self.write(self.text.replace("model_layers = 2", "model_layers = 3"), "longer.toml")
        self.fails(2, "a model of 3 layers, and this one has 2",
                   args=("replay", self.probes, "--method", f"plan:{longer}", "--budget", "25%mem"))
        part = self.write(re.sub(r"  \{ layer = 1.*\n", "", self.text), "part.toml")
        self.fails(2, "has no line for layer 1",
                   args=("replay", self.probes, "--method", f"plan:{part}", "--budget", "25%mem"))

    def test_some_layers_of_a_plan_are_not_ranked(self):
        deep, plan = os.path.join(self.folder, "deep.h5"), os.path.join(self.folder, "deep.toml")
        for args in (("synth", "--tokens", 256, "--prompt-tokens", 192, "--queries", 96, "--layers", 4, "--prompts", 3,
                      "--head-dim", 16, "--value-dim", 16, "--probes", 4, "--pattern", "heavy-hitters", "-o", deep),
                     ("allocate", deep, "--menu", "h2o", "-o", plan)):
            done = run(*args)
            self.assertEqual(done.returncode, 0, done.stderr)
        table = self.replay(f"{plan},h2o,sink", "--layers", "0,2", "--budget", "25%mem", trace=deep)
        whole = {r["method"]: r for r in table if r["layer"] == "all"}
        self.assertEqual([whole[m]["best"] == "" for m in (f"plan:{plan}", "h2o", "sink")], [True, False, False])

    def test_the_curve_has_a_row_per_budget(self):
        table = rows(self.read(self.curve))
        budgets = [float(r["budget"].removesuffix("%mem")) for r in table]
        self.assertEqual(budgets, sorted(budgets))
        self.assertIn(25, budgets)
        self.assertIn(40, budgets)
        self.assertEqual(budgets[-1], 100)
        for r, budget in zip(table, budgets):
            self.assertLessEqual(float(r["plan_share"]), budget / 100)
            self.assertLessEqual(float(r["equal_share"]), budget / 100)
            self.assertEqual(r["confirmed"], "1" if float(r["ratio_hi"]) < 1 else "0")
            self.assertEqual(r["answer"], "plan" if float(r["ratio"]) < 1 else "equal")
            self.assertEqual(r["figure"], "predicted KL")
            if r["documents_needed"]:
                self.assertEqual(int(r["documents_needed"]) <= 4, r["confirmed"] == "1")
        self.assertIn("plan_damage_fitted", run("allocate", "--columns").stdout)

    def test_an_unconfirmed_plan_is_the_answer_where_less_damage_is_expected_of_it(self):
        """Of each size of the curve: what is said, what the file has, and the same with --only-confirmed."""
        met = set()
        for r in rows(self.read(self.curve)):
            budget, shares = r["budget"], set()
            for only in ([], ["--only-confirmed"]):
                plan = self.path("answer.toml")
                said = " ".join(self.ok("allocate", self.probes, "--menu", MENU, "--budget", budget, "-o", plan,
                                        *only).split())
                (table,) = tomllib.loads(self.read(plan))["plans"]
                planned = r["answer"] == "plan" and not (only and r["confirmed"] == "0")
                met.add((planned, r["confirmed"], bool(only)))
                self.assertIn("the plan has a predicted KL" if planned else "the answer is equal budgets", said)
                self.assertEqual("Confirmed by 4 documents." in said, planned and r["confirmed"] == "1")
                if r["answer"] == "plan" and r["confirmed"] == "0":
                    # the menu of one budget has not the entries of the others, so that the number may differ a little
                    self.assertRegex(said, r"Not confirmed: 4 documents, (about \d+|more than 1000) would be needed\.")
                else:
                    self.assertNotIn("Not confirmed", said)
                self.assertEqual(table.get("confirmed"), r["confirmed"] == "1" if planned else None)
                if not planned:
                    self.assertEqual({(line["method"], line["budget"]) for line in table["layers"]},
                                     {(r["equal"], table["layers"][0]["budget"])})
        self.assertLessEqual({(True, "0", False), (False, "0", True), (False, "0", False)}, met)

    def test_from_one_document_the_answer_is_equal_budgets(self):
        one = self.synth("one.h5", "--probes", 2, "--pattern", "heavy-hitters")
        said = self.ok("allocate", one, "--menu", "h2o", "-b", "40%mem", "-o", self.path("one.toml"))
        self.assertIn("what a plan does to other documents cannot be told from one", " ".join(said.split()))

    def test_no_column_is_named_by_one_of_two_figures(self):
        """Traces without probes have residual errors in them."""
        self.assertFalse([name for name in rows(self.read(self.curve))[0] if "kl" in name])

    def test_chosen_prompts_are_the_documents(self):
        one = self.synth("one.h5", "--probes", 4, "--pattern", "heavy-hitters")  # the first of those of cls.probes
        plans = [self.path("one.toml"), self.path("first.toml")]
        for plan, args in zip(plans, ([one], [self.probes, "--prompts", "0"])):
            self.ok("allocate", *args, "--menu", "h2o", "-o", plan)
        first, chosen = (tomllib.loads(self.read(plan))["plans"] for plan in plans)
        self.assertEqual(first, chosen)
        said = self.ok("allocate", self.probes, "--menu", "h2o", "--prompts", "0,2,3", "-o", plans[0])
        self.assertIn("each of 3 documents held out once", " ".join(said.split()))
