# SPDX-License-Identifier: Apache-2.0
"""scripts/choose-table against races and measurements whose outcome is known."""
import csv
import json
import os
import pathlib
import subprocess
import sys

from support import PACKAGE, PackageTest

SCRIPT = pathlib.Path(PACKAGE).parent / "scripts" / "choose-table"


class ChooseTable(PackageTest):
    def write(self, name, kl):
        """A table of kveval. `kl`: {document: {configuration: KL}}."""
        with open(self.path(name), "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["layer", "status", "document", "method", "params", "budget", "kl_mean"])
            out.writerows(["all", "ok", document, *(method.rstrip("]").split("[") + [""])[:2], "25%mem", value]
                          for document, of in kl.items() for method, value in of.items())

    def answer(self, name, documents, raced, held_out):
        """A folder of kvbench-choose and the table beside it. `raced`, `held_out`: multiples of a document's KL, or
        functions of its number."""
        for folder in ("measured", "answer-25%-01234567"):
            os.makedirs(self.path(f"{name}/{folder}"))
        names = [configuration.replace("/x/", "") for configuration in raced]
        for file, found in (("answer-25%-01234567/raced.json", {"budget": "25%mem", "configurations": names}),
                            ("recording.json", {"documents": [[], [f"0-{n}.ids" for n in range(documents + 3)]]})):
            pathlib.Path(self.path(f"{name}/{file}")).write_text(json.dumps(found))
        of = lambda multiples, document: {
            each: 0.01 * (1 + document) * (times(document) if callable(times) else times)
            for each, times in multiples.items()}
        for document in range(documents):
            self.write(f"{name}/measured/0-{document}.0.csv", {"all": of(raced, document)})
        rows = {f"text{document}": of(held_out, document) for document in range(10)}
        self.write(f"{name}.csv", {"all": of(held_out, 0), **rows})

    def table(self, *arguments):
        paths = os.pathsep.join([str(PACKAGE), *sys.path])
        return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=True,
                              cwd=self.folder, env={**os.environ, "PYTHONPATH": paths}).stdout

    def test_answers_on_other_documents(self):
        plan = "plan:/x/plan-0123456789ab.toml"
        raced = {"h2o": 2, plan: 1, "sink[sinks=4]": 8}
        self.answer("smollm2-prose", 12, raced, {"h2o": 3, plan: 1, "sink[sinks=4]": 8})
        self.answer("gemma3-code", 12, raced, {"h2o": 3, plan: 1, "sink[sinks=4]": 0.5})
        self.answer("gemma3-prose", 1, raced, {"h2o": lambda document: 2**(4.5 - document), plan: 1,
                                                         "sink[sinks=4]": 8})
        self.assertEqual(self.table("--raced", "smollm2-prose"),
                         "h2o,plan:smollm2-prose/plans/plan-0123456789ab.toml,sink[sinks=4]\n")
        _, _, confirmed, contradicted, equal = self.table("smollm2-prose", "gemma3-code", "gemma3-prose").splitlines()
        self.assertRegex(confirmed, r"^\| smollm2 \| prose \| plan \| after \d+ documents \| 0.0453 \| h2o 0.136 \| "
                                    r"0.33 \[0.33, 0.33\] \| 10 of 10 \| 2 of 2 \| yes \|$")
        self.assertRegex(contradicted, r"\| sink\[sinks=4\] 0.0226 \| 2.00 \[2.00, 2.00\] \| 0 of 10 \| 1 of 2 \| "
                                       r"no \|$")
        self.assertRegex(equal, r"\| not from h2o, sink\[sinks=4\] \| .* \| 1.00 \[[^]]*\] \| 5 of 10 \| 0 of 0 "
                                r"\| cannot tell \|$")
        low, high = map(float, equal.split("[")[-1].split("]")[0].split(","))  # exp(-1.96 * 0.63), exp(1.96 * 0.63)
        self.assertTrue(0.25 < low < 0.32 and 3.1 < high < 4, equal)

    def test_lines_of_other_models_stay(self):
        self.answer("a-prose", 12, {"h2o": 2, "sink": 1}, {"h2o": 2, "sink": 1})
        first = self.table("a-prose").replace("| a | prose |", "| b | prose |")
        earlier = first + "| a | prose | h2o | none | 1 | sink 2 | 3.00 [2.00, 4.00] | 0 of 1 | 0 of 0 | no |\n"
        pathlib.Path(self.path("page.md")).write_text(
            f"Text.\n\n<!-- begin proof choose: x -->\n{earlier}<!-- end proof choose -->\n| c | prose | d |\n")
        self.assertEqual(self.table("--beside", "page.md", "a-prose"),
                         first + first.splitlines()[-1].replace("| b | prose |", "| a | prose |") + "\n")
