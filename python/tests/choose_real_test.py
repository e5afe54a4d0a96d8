# SPDX-License-Identifier: Apache-2.0
"""kvbench-choose from a real model and a text to an answer, interrupted once."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import environment

environment.use_torch("gguf")
from support import KVBENCH, PACKAGE, PackageTest, replaced  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).parents[2] / "tests" / "cli" / "kvdump"))
import tiny_model  # noqa: E402

KVEVAL = sys.argv[4] if len(sys.argv) > 4 else ""
MODEL = environment.CACHE / "model" / "SmolLM2-135M-Instruct.Q4_1.gguf"
if not (os.path.exists(KVEVAL) and MODEL.exists()):
    print("skipped: there is no kveval, or no model; scripts/fetch-model fetches both")
    sys.exit(77)
LAYERS = 30
if not os.environ.get("KVBENCH_WHOLE"):
    LAYERS = 4
    MODEL = tiny_model.first_layers(MODEL, LAYERS)


class Chosen(PackageTest):
    def command(self, *flags):
        folder = self.path("programs")
        if not os.path.exists(folder):
            os.mkdir(folder)
            for program in (KVBENCH, KVEVAL, os.path.join(os.path.dirname(KVEVAL), "kvdump")):
                os.symlink(os.path.abspath(program), os.path.join(folder, os.path.basename(program)))
        with open(self.path("text.txt"), "w") as file, open(PACKAGE.parent / "LICENSE") as text:
            file.write(text.read()[:3400])
        return [sys.executable, "-m", "kvbench.choosing", *replaced([
            "--model", str(MODEL), "--text", self.path("text.txt"), "-o", self.path("out"), "--programs", folder,
            "--context", "96", "--score", "8", "--documents", "2", "--probes", "2", "--methods",
            "sink,q4_0[hadamard=true],h2o+q5_1", "--menu", "h2o,h2o+q5_1", "--race", "2"], flags)]

    def run_it(self, *flags):
        environ = {**os.environ, "PYTHONPATH": str(PACKAGE)}
        done = subprocess.run(self.command(*flags), env=environ, capture_output=True, text=True, timeout=500)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def test_from_a_text_to_an_answer(self):
        environ = {**os.environ, "PYTHONPATH": str(PACKAGE)}
        stopped = subprocess.Popen(self.command(), env=environ, stderr=subprocess.PIPE, text=True)
        while not os.path.exists(self.path("out/probes.h5")) and stopped.poll() is None:
            time.sleep(0.2)
        stopped.send_signal(signal.SIGTERM)
        said = stopped.stderr.read()
        self.assertEqual((stopped.wait(60), "the same command goes on" in said), (130, True))
        self.assertIn("document 2 of 2, about ", said)  # of the recording
        recorded = os.stat(self.path("out/probes.h5")).st_mtime_ns
        text, _ = self.run_it("--minutes", "2")
        self.assertRegex(text, r"^\*\*(sink|h2o\+q5_1|plan)\*\* leads, undecided, of the 2 configurations that were "
                               r"measured: KL [0-9.e-]+ nats")
        self.assertRegex(text, r"Not yet told from it: .* takes 9 documents, and these are 3, all that these "
                               r"texts have")
        self.assertRegex(text, r"\| llama.cpp --cache-type-k q4_0 --cache-type-v q4_0 -fa on \| 28.1 % \| [0-9.e-]+ "
                               r"\([0-9.e-]+ to [0-9.e-]+\) \|")
        os.rename(self.path("out"), self.path("moved"))
        self.assertEqual(self.run_it("--minutes", "2", "-o", self.path("moved"))[0], text)
        self.run_it("--minutes", "2", "-o", self.path("moved"), "--memory", "50%")  # records nothing again
        self.assertEqual(os.stat(self.path("moved/probes.h5")).st_mtime_ns, recorded)

    def test_bytes_without_gradients(self):
        """Layers, 3 kv heads, 64 channels of keys and of values, 2 bytes."""
        one = LAYERS * 3 * 64 * 2 * 2
        text, _ = self.run_it("--minutes", "2", "--without-gradients", "--memory", f"{LAYERS / 2}MB",
                              "--context-length", "2000", "--race", "2")
        held, of = re.search(rf"After 2000 tokens it holds ([\d.]+) MB of the {2000 * one / 1e6:.3g} MB of the full "
                             rf"cache, (\d+) of {one} bytes per token", text).groups()
        self.assertTrue(0.3 * LAYERS < float(held) <= 0.5 * LAYERS, held)
        self.assertLess(abs(2000 * int(of) / 1e6 - float(held)), 0.02 * LAYERS, (of, held))
