# SPDX-License-Identifier: Apache-2.0
"""kvbench cite. Names of fields are written here by hand, from the pages that docs/bundles.md names."""
import csv
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import bundles_test
from bundles_test import KEPT, repacked
from support import PACKAGE
from kvbench.bundles import command

RECORD = ["model=org/m", "organization=Us", "relationship=third_party"]
ENTRY = ["dataset=org/bench", "task=default", "metric=kl_mean"]
# What schema 0.3.0 of Every Eval Ever requires; the record has no other fields.
REQUIRED = {"": {"schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info",
                 "eval_library", "evaluation_results"},
            "source_metadata": {"source_type", "source_organization_name", "evaluator_relationship"},
            "eval_library": {"name", "version"}, "model_info": {"name", "id", "additional_details"}}
OF_RESULT = {"": {"evaluation_name", "source_data", "metric_config", "score_details"}, "score_details": {"score"},
             "source_data": {"dataset_name", "source_type"},
             "metric_config": {"lower_is_better", "min_score", "max_score"}}  # of score_type continuous


class Cite(bundles_test.BundlesTest):
    ROW = bundles_test.Evaluations.ROW | {
        "task": "text", "question": "", "inject_scale": "", "method": "q8_0", "budget": "100%mem", "kl_mean": "1e-05",
        "kl_mean_lo": "5e-06", "kl_mean_hi": "2e-05", "kl_p99": "0.0004", "top1": "0.9825", "nll": "2",
        "nll_full": "1.5", "ppl_ratio": "1.648721", "total_bytes": "2176", "full_bytes": "4096"}

    def evaluated(self, *rows):
        """A bundle of rows of kveval with these changes. Returns the digests of its files."""
        rows, digests = [{**self.ROW, **row} for row in rows], {}
        for file in {row[column] for row in rows for column in ("model", "text")}:
            self.write(f"of {file}", file)
            digests[file] = hashlib.sha256(f"of {file}".encode()).hexdigest()
        with open(self.path("e.csv"), "w", newline="") as file:
            table = csv.DictWriter(file, self.ROW, lineterminator="\n")
            table.writeheader()
            table.writerows({**row, "sha256": digests[row["model"]][:12]} for row in rows)
        self.bundle(self.path("e.csv"), "--sample", 0)
        return digests

    def cite(self, form, facts=(), *words, code=0, path=None):
        words = [f"--as={form}", *(f"--fact={fact}" for fact in facts), *words]
        return self.call(command.cite_main, code, path or self.out, *words)

    def written(self, form, facts=(), **options):
        """The file alone, and what is said beside it."""
        said = self.cite(form, facts, "-o", self.path("cited"), **options)
        return pathlib.Path(self.path("cited")).read_text(), said

    def test_llama_cpp_has_the_figures_by_size(self):
        self.evaluated({}, {"method": "q4_0", "total_bytes": "1152", "kl_mean": "0.25"},
                       {"method": "a|b*.py:<New>", "total_bytes": "1408", "kl_mean_lo": ""},
                       {"method": "q4_1", "status": "infeasible"}, {"document": "1"})
        text, said = self.written("llama.cpp")
        lines = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines()
                 if line[:1] == "|"]
        self.assertEqual(lines[0], ["KV cache", "budget", "bits/value", "Mean PPL(Q)", "Mean PPL(Q)/PPL(base)",
                                    "Mean KLD", "99.0% KLD", "Same top p"])
        self.assertEqual(lines[2:4], [
            ["full", "", "16", "4.4817", "", "", "", ""],  # exp(1.5)
            ["q8\\_0", "100%mem", "8.50", "7.3891", "1.648721", "0.000010 [0.000005, 0.000020]", "0.000400",
             "98.250 %"]])  # 16 * 2176 / 4096, exp(2)
        self.assertEqual([(one[0], one[2], one[5]) for one in lines[4:]], [
            (r"a\|b\*.py:\<New\>", "5.50", "0.000010"), ("q4\\_0", "4.50", "0.250000 [0.000005, 0.000020]")])
        self.assertRegex(said, "1 row of single documents.*\n.*1 row without a result.*\n.*llama-bench")
        self.assertNotRegex(text, "no rows of|--protocol")
        self.evaluated({"protocol": "", "nll": "", "nll_full": "nan"}, {"text": "b.txt"})
        text, _ = self.written("llama.cpp")
        self.assertEqual(text.count("| KV cache |"), 2)
        self.assertRegex(text, "asks for q8_0 and the sizes next.*KL is larger .--protocol stream")

    def test_every_eval_ever_has_the_fields_of_its_schema(self):
        digests = self.evaluated({}, {"budget": "50%mem", "top1": "inf"}, {"method": "a.py:B", "total_bytes": ""})
        text, said = self.written("every-eval-ever", RECORD)
        record = json.loads(text)
        for part, names in REQUIRED.items():
            of = record[part] if part else record
            self.assertLessEqual(names, set(of), part)
            self.assertEqual({type(value) for value in of.get("additional_details", {"": ""}).values()}, {str})
        self.assertEqual(set(record), REQUIRED[""])
        self.assertEqual(record["schema_version"], "0.3.0")
        self.assertRegex(record["evaluation_id"], r"^kvbench/org/m/[0-9]+\.[0-9]+$")
        self.assertEqual(record["model_info"]["additional_details"], {
            "deployment_type": "self_deployed", "model_availability": "unknown", "file_sha256": digests["m.gguf"]})
        self.assertIn("evaluation_timestamp: no bundle has", said)
        results = record["evaluation_results"]
        self.assertEqual(len(results), 5 + 4 + 5)  # inf is no score
        for one in results:
            for part, names in OF_RESULT.items():
                self.assertLessEqual(names, set(one[part] if part else one))
            self.assertEqual(one["source_data"]["additional_details"], {"sha256": digests["a.txt"]})
            self.assertEqual({type(value) for value in one["generation_config"]["additional_details"].values()}, {str})
        self.assertEqual(results[0]["score_details"], {"score": 1e-05, "uncertainty": {
            "num_samples": 4, "confidence_interval": {"lower": 5e-06, "upper": 2e-05, "confidence_level": 0.95,
                                                      "method": "log-normal over documents (modified Cox)"}}})
        self.assertEqual(results[0]["metric_config"]["max_score"], "Infinity")
        self.assertEqual(results[3]["score_details"], {"score": 2.0, "details": {"full_cache": "1.5"}})
        self.evaluated({}, {"model": "n.gguf"})
        self.assertIn("these rows are about m.gguf, n.gguf", self.cite("every-eval-ever", RECORD, code=2))

    def test_eval_results_has_an_entry_for_each_row(self):
        self.evaluated({"method": 'a": b.py:#C'}, {"budget": "50%mem", "kl_mean": "0.125"}, {"kl_mean": "nan"})
        text, _ = self.written("eval-results", ENTRY)
        self.assertEqual(re.findall("value: (.*)", text), ["1.0e-05", "0.125"])  # 1e-05 is a text in YAML 1.1
        *lines, notes = text.splitlines()[:5]
        self.assertEqual(lines[:3], ["- dataset:", '    id: "org/bench"', '    task_id: "default"'])
        self.assertIn('KV cache a": b.py:#C at 100%mem; text a.txt, task text', json.loads(notes[len("  notes: "):]))

    def test_bibtex_names_the_bundle_and_invents_nothing(self):
        text, said = self.written("bibtex", path=KEPT)
        self.assertRegex(text, r"^@misc\{kvbench-[0-9a-f]{12},\n  title = \{KV-cache compression of .*: 8 methods\}"
                         r"(.|\n)*48 rows of kvbench replay; .*trace smollm2-135m.h5 \(SHA-256")
        self.assertNotRegex(text, "author|year|url")
        self.assertIn("author, year and url: no bundle has", said)
        self.evaluated({"method": "a}, x = {$%_\\.py:B"})
        text, _ = self.written("bibtex")
        self.assertIn(r"a{\textbraceright}, x = {\textbraceleft}\$\%\_{\textbackslash}.py:B", text)
        for line in text.splitlines()[1:-1]:
            self.assertEqual(line.count("{"), line.count("}"), line)

    def test_refusals(self):
        self.evaluated({})
        for form, facts, says in (
                ("every-eval-ever", [], r"no bundle has: model \(.*; organization \(.*--fact NAME=VALUE"),
                ("every-eval-ever", ["modle=x"], "Did you mean 'model'"),
                ("every-eval-ever", [*RECORD, "model=y"], "given twice"),
                ("every-eval-ever", ["relationship=friend"], "give of the evaluator.*first_party"),
                ("eval-results", ["task=a\x1bb"], "no fact"), ("eval-results", ["task"], "write NAME=VALUE"),
                ("eval-results", [*ENTRY[1:], "dataset=bench"], "ORGANISATION/NAME"),
                ("eval-results", [*ENTRY[:2], "metric=match"], "no row has match, the exact match"),
                ("apa", [], "invalid choice: 'apa'")):
            self.assertRegex(self.cite(form, facts, code=2), says)
        for form in ("llama.cpp", "every-eval-ever", "eval-results"):
            self.assertRegex(self.cite(form, path=KEPT, code=2), "measures attention without running the model")

    def test_bundles_of_strangers(self):
        self.evaluated({})
        changed = repacked(self.out, self.path("c.zip"), lambda name, data: data.replace(b"q8_0", b"q4_0"))
        self.assertIn("changed after", self.cite("bibtex", path=changed, code=1))
        self.assertIn("no bundle", self.cite("bibtex", path=self.write("x", "x.zip"), code=2))
        self.assertIn("must not replace", self.cite("bibtex", (), "-o", self.out, code=2))
        self.assertIn("none/x: there is no such folder", self.cite("bibtex", (), "-o", self.path("none/x"), code=2))
        long = self.path("x" * 250)  # no room for the name of the temporary file
        self.assertIn(f"{long}: File name too long", self.cite("bibtex", (), "-o", long, code=3))

    def test_a_full_disk_behind_standard_output(self):
        self.evaluated({})
        with open("/dev/full", "wb") as full:
            done = subprocess.run([sys.executable, "-m", "kvbench.bundles", "cite", self.out, "--as", "bibtex"],
                                  stdout=full, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        self.assertEqual(done.returncode, 3)
        self.assertIn("standard output: cannot be written: No space left", done.stderr)
