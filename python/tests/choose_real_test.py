# SPDX-License-Identifier: Apache-2.0
"""kvbench-choose from a real model and a text to an answer, interrupted once."""
import os
import signal
import subprocess
import sys
import time

import environment

environment.use_torch("gguf")
from support import KVBENCH, PACKAGE, PackageTest  # noqa: E402

KVEVAL = sys.argv[4] if len(sys.argv) > 4 else ""
MODEL = environment.CACHE / "model" / "SmolLM2-135M-Instruct.Q4_1.gguf"
if not (os.path.exists(KVEVAL) and MODEL.exists()):
    print("skipped: there is no kveval, or no model; scripts/fetch-model fetches both")
    sys.exit(77)


class Chosen(PackageTest):
    def command(self, *flags):
        folder = self.path("programs")
        if not os.path.exists(folder):
            os.mkdir(folder)
            for program in (KVBENCH, KVEVAL):
                os.symlink(os.path.abspath(program), os.path.join(folder, os.path.basename(program)))
        return [sys.executable, "-m", "kvbench.choose", "--model", str(MODEL), "--text", self.path("text.txt"), "-o",
                self.path("out"), "--programs", folder, "--context", "96", "--score", "8", "--documents", "2",
                "--probes", "2", "--methods", "sink,q4_0[hadamard=true],h2o+q5_1", "--menu", "h2o,h2o+q5_1", "--race",
                "2", *flags]

    def test_from_a_text_to_an_answer(self):
        with open(self.path("text.txt"), "w") as file, open(PACKAGE.parent / "LICENSE") as text:
            file.write(text.read()[:2600])
        environ = {**os.environ, "PYTHONPATH": str(PACKAGE)}
        stopped = subprocess.Popen(self.command(), env=environ, stderr=subprocess.PIPE, text=True)
        while not os.path.exists(self.path("out/probes.h5")) and stopped.poll() is None:
            time.sleep(0.2)
        stopped.send_signal(signal.SIGTERM)
        self.assertEqual((stopped.wait(60), "the same command goes on" in stopped.stderr.read()), (130, True))
        recorded = os.stat(self.path("out/probes.h5")).st_mtime_ns
        done = subprocess.run(self.command("--minutes", "1"), env=environ, capture_output=True, text=True, timeout=500)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.stat(self.path("out/probes.h5")).st_mtime_ns, recorded)
        self.assertRegex(done.stdout, r"^\*\*(sink|h2o\+q5_1)\*\* (changes the output least|leads, undecided,) of "
                                      r"the 2 configurations that were measured: KL [0-9.e-]+ nats")
        self.assertIn("From 2 other documents KL", done.stdout)
        self.assertRegex(done.stdout, r"\| llama.cpp --cache-type-k q4_0 --cache-type-v q4_0 \| 28.1 % \| [0-9.e-]+ ")
