# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the programs that kvbench-choose runs, and a test that goes from flags to an answer with them."""
import csv
import dataclasses
import math
import os
import pathlib
import random
import re
import sys
import types
from unittest import mock

from support import PackageTest, replaced
from kvbench.choosing import choose, command, settings, sizes
from kvbench.choosing import documents as documents_module


def plan_of(*budgets, confirmed=True):
    """The text of a plan that gives layers these budgets."""
    lines = "".join(f'  {{ layer = {n}, method = "h2o", budget = "{budget}" }},\n' for n, budget in enumerate(budgets))
    return (f'model = "model"\nmodel_layers = 10\ntraces = ["0"]\n\n[[plans]]\nbudget = "25%mem"\n'
            f'confirmed = {str(confirmed).lower()}\nlayers = [\n{lines}]\n')


EQUAL, PLAN = plan_of("25%mem", "25%mem"), plan_of("20%mem", "30%mem")
TRUE = {"h2o": 0.05, "h2o+q5_1": 0.01, "snapkv": 0.1, "sink": 0.3}  # KL in the stand-in of kveval


class Programs:
    """Stands for kvbench, kveval and the recording: writes the files that they would write."""

    def __init__(self, noise=0.1, broken=None, plan=EQUAL):
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
            self.by = words[words.index("--for" if "--for" in words else "--by") + 1]
            pathlib.Path(made).write_text(self.plan)
        else:
            names = re.sub(r"^(llama\.cpp|vllm)$", "q8_0,q4_0", words[words.index("-m") + 1]).split(",")
            budgets = words[words.index("-b") + 1]
            self.budgets.add(budgets)
            replay, streams = "replay" in words, "stream" in words
            if not replay and names != ["exact"]:  # formats of engines, as engines read a context; the race
                assert streams == (budgets == "100%mem"), words
            if not replay and budgets != "100%mem":
                self.raced.append([name if name in TRUE else os.path.basename(name) for name in names])
            layers = lambda name: ["all", *self.layers.get(name, ())] if replay else ["all"]  # noqa: E731
            rows = [{**self.whole_row(name, budget, layer, "kl_predicted" if replay else "kl_mean"),
                     "protocol": "stream" if streams else ""}
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


class ChooseTest(PackageTest):
    SPLIT = True  # False: from the texts

    def choose(self, programs, *flags, documents=30, code=0, torch=True, methods=True):
        def split(work):
            if not self.SPLIT:
                return documents_module.documents_of(work)
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
                settings, "program", lambda name, folder: name), mock.patch.object(
                settings, "check_names"), mock.patch.object(
                choose.Work, "run", lambda work, *a: programs.run(work, *a)), mock.patch.object(
                settings.importlib.util, "find_spec", lambda name: torch or None), mock.patch.object(
                sys, "stdout", types.SimpleNamespace(write=said.append, flush=lambda: None)), mock.patch.object(
                sys, "stderr", types.SimpleNamespace(write=wrong.append)):
            self.assertEqual(command.main(arguments), code, wrong)
        return "".join(said or wrong)

    def result(self, programs, **settings):
        """What kvbench.choose() returns for the same."""
        found = []
        with mock.patch.object(command, "choose", lambda given: found.append(
                choose.choose(dataclasses.replace(given, **settings))) or found[0]):
            self.choose(programs)
        return found[0]

    def setUp(self):
        super().setUp()
        random.seed(1)

    def read(self, name):
        """A file of the only question."""
        found, = pathlib.Path(self.path("out")).glob(f"answer-*/{name}")
        return found.read_text()

    def sized(self, *flags, code=0, **more):
        """The answer for a model with 1 kB per token, a fifth of it in layers in which no method runs."""
        found = sizes.CacheSizes(**{"tokens": 100_000, "full": 100_000_000, "whole": 20_000_000, "apart": None, **more})
        self.programs = Programs()
        with mock.patch.object(sizes, "sizes", lambda *_: found):
            return self.choose(self.programs, "--context-length", "100000", *flags, code=code)
