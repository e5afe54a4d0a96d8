# SPDX-License-Identifier: Apache-2.0
"""The example that compares a stateful method with ten built-in ones: one figure, and sentences that agree with kvbench
compare."""
import os
import re
import subprocess
import sys

import environment

environment.use(["h5py", "numpy", "matplotlib"], "KVBENCH_PYTHON", "venv", "scripts/fetch-model")
from support import KVBENCH, PACKAGE, SAMPLE, PackageTest, kvbench, main, run  # noqa: E402

VERDICTS = re.compile(r"(better than|worse than|not distinguishable from) (\d+) \(([^;)]*)(?:; p <= ([\d.e-]+))?\)")


class Story(PackageTest):
    def compare(self, trace, *flags):
        paths = os.pathsep.join([str(PACKAGE), *sys.path])
        command = [sys.executable, PACKAGE / "examples" / "compare_a_method.py", trace, "--kvbench", KVBENCH,
                   "--figure", self.path("f.svg"), *flags]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": paths})

    def test_a_sentence_per_budget_and_one_figure(self):
        with kvbench.Trace(SAMPLE) as trace:
            layer = max(next(iter(trace.prompts.values())).layers)
        done = self.compare(SAMPLE, "--layers", layer)
        self.assertEqual(done.returncode, 0, done.stderr)
        sentences = [line for line in done.stdout.splitlines() if line.startswith("At ")]
        self.assertEqual([line.split()[1] for line in sentences], ["12.5%mem,", "25%mem,", "50%mem,"])
        decided = 0
        for line, limit in zip(sentences, (12.5, 25, 50)):
            held = re.search(r"hold (?:[\d.]+ to )?([\d.]+) % of the full cache, file:keydiff.h5 "
                             r"\(mean relative error ([\d.]+)\) is, of (\d+) methods", line)
            self.assertTrue(held, line)
            self.assertLessEqual(float(held[1]), limit)
            own, count = float(held[2]), int(held[3])
            self.assertEqual(sum(int(number) for _, number, _, _ in VERDICTS.findall(line)), count, line)
            for words, number, errors, p_value in VERDICTS.findall(line):
                means = [float(part.split()[1]) for part in errors.split(", ")]
                self.assertEqual(len(means), int(number))
                if words == "better than":
                    self.assertTrue(all(mean > own for mean in means), line)
                if words == "worse than":
                    self.assertTrue(all(mean < own for mean in means), line)
                if words != "not distinguishable from":
                    decided += int(number)
                    self.assertLessEqual(float(p_value), 0.05)
        self.assertEqual(count, 10)  # at half of the memory every method is feasible
        self.assertGreater(decided, 3)
        drawn = {line.split()[0] for line in done.stdout.splitlines() if re.search(r" \.\. \d", line)}
        self.assertEqual(len(drawn), 11, drawn)
        with open(self.path("f.svg")) as file:
            self.assertTrue(file.read().startswith("<?xml"))

    def test_a_trace_without_decoded_tokens_is_refused(self):
        run("synth", "-o", self.path("t.h5"), "--tokens", 64, "--prompt-tokens", 64, "--queries", 16, "--layers", 1)
        done = self.compare(self.path("t.h5"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no decoded tokens", done.stderr)


main()
