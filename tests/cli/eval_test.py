# SPDX-License-Identifier: Apache-2.0
"""kvbench eval without a model: descriptions, the program kveval that it becomes, and reports of its tables."""
import csv
import io
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree

from support import CliTest, KVBENCH, main, run


def columns():
    return [line.split()[0] for line in run("eval", "--columns").stdout.splitlines()]


def table(lines):
    """A CSV with all columns; `lines`: dictionaries of those that are not empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns(), restval="", lineterminator="\n")
    writer.writeheader()
    common = dict(model="m.gguf", sha256="abc", text="book.txt", task="text", question="outside", context_tokens=4096, inject="all",
                  layer="all", device="cpu", status="ok", full_bytes=100, nll_diff=0.1, match_diff=-0.5)
    writer.writerows({**common, **line} for line in lines)
    return out.getvalue()


class Eval(CliTest):
    def test_tasks_and_columns_are_described_without_a_model(self):
        self.assertIn("passkey\n  Measures ", run("eval", "--list-tasks").stdout)
        self.assertTrue({"kl_mean", "match", "nll_verdict", "rel_err_mean", "drift"} <= set(columns()))
        self.assertIn("| `kl_mean` | number |", run("eval", "--columns", "--format", "md").stdout)

    def copy_of_program(self, name):
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        shutil.copy(KVBENCH, folder)
        return folder

    def test_where_kveval_is_missing_the_message_says_how_to_build_it(self):
        folder = self.copy_of_program("alone")
        done = subprocess.run([os.path.join(folder, os.path.basename(KVBENCH)), "eval", "m.gguf"], capture_output=True, text=True,
                              env={**os.environ, "PATH": folder}, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("-DKVBENCH_KVDUMP=ON", done.stderr)

    def test_kveval_beside_the_program_gets_all_arguments_and_gives_the_exit_code(self):
        folder = self.copy_of_program("beside")
        fake = os.path.join(folder, "kveval")
        with open(fake, "w") as file:
            file.write('#!/bin/sh\nprintf "%s|" "$@"\nexit 7\n')
        os.chmod(fake, 0o755)
        program = os.path.join(folder, os.path.basename(KVBENCH))
        for arguments in (["m.gguf", "--task", "text", "replay", "-o", "x y.csv"], ["--method", "sink", "sweep"], ["--help"], ["-h"], []):
            done = subprocess.run([program, "eval", *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout.rstrip("|").split("|"), done.stderr), (7, arguments or [""], ""))

    def test_report(self):
        lines = []
        for document in ("all", "text-0", "text-1"):
            for method, kl, error, held in (("sink", 0.5, 0.4, 20), ("h2o", 0.1, 0.2, 25), ("quest", 0.02, 0.1, 60)):
                lines.append(dict(document=document, method=method, budget="25%mem", kl_mean=kl, rel_err_mean=error, total_bytes=held))
            for layer in range(3):
                lines.append(dict(document=document, method="sink", budget="25%mem", kl_mean=0.1, inject="one", inject_layer=layer))
                lines.append(dict(document=document, method="sink", budget="25%mem", layer=layer, drift=0.2, residual_err=0.1))
        path, out = os.path.join(self.folder, "eval.csv"), os.path.join(self.folder, "eval.html")
        with open(path, "w") as file:
            file.write(table(lines))
        done = run("report", path, "-o", out)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        with open(out) as file:
            text = file.read()
        self.assertLess(text.index("rel_err predicts damage to the output best here"), text.index("<nav"))
        for title in ("KL against bytes held", "Attention error and damage", "Growth of errors with depth", "Sensitivity of layers"):
            self.assertIn(title, text)
        drawings = re.findall(r"<svg .*?</svg>", text, re.S)
        self.assertEqual(len(drawings), 6)  # KL, nll and match against bytes; error against KL; growth; sensitivity
        for drawing in drawings:
            for node in xml.etree.ElementTree.fromstring(drawing).iter():
                for key in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy"):
                    if node.get(key) is not None:
                        self.assertTrue(-1e4 < float(node.get(key)) < 1e4, node.attrib)


main()
