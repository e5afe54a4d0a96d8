# SPDX-License-Identifier: Apache-2.0
"""Flags at the end of their range, devices, notes about flags without effect, and pages of flags."""
import json
import os
import re
import shutil
import subprocess

from support import CliTest, KVBENCH, rows, run


class Flags(CliTest):
    def test_largest_parameters(self):
        """Each integer of each method at the end of its range is used or refused, in seconds, and counts bytes."""
        tried = 0
        for row in json.loads(self.ok("methods", "--format", "json")):
            methods = [f"{row['method']}[{p['name']}="
                       f"{([2**31 - 1] + re.findall('[.]{2} (.*)', p['range'] or ''))[-1]}]"
                       for p in row["parameters"] if p["type"] == "integer"]
            for method in methods:
                with self.subTest(method=method):
                    done = run("replay", self.trace, "-m", method, "-b", "25%mem,100%", "--rows", "trace", "--seeds", 1,
                               "--format", "json")
                    self.assertIn(done.returncode, (0, 2), done.stderr)
                    for row in json.loads(done.stdout or "[]"):
                        self.assertTrue(row["status"] != "ok" or row["total_bytes"] > 0, row)
                    tried += 1
        self.assertGreater(tried, 100)

    def test_pages_of_flags(self):
        for command in ("replay", "compare", "synth"):
            page = run(command, "--help")
            self.assertEqual(page.returncode, 0)
            self.assertNotIn("->", page.stdout)
            self.assertNotIn("ENUM", page.stdout)
        self.assertIn("--by TEXT:{all,head,layer,prompt}", " ".join(run("compare", "--help").stdout.split()))

    def test_sizes_of_memory(self):
        self.ok("replay", self.trace, "-m", "sink", "--memory", "1.5GiB", "--threads", 1)

    def test_device(self):
        """Without a GPU the error names the reason; with one, cuda runs."""
        asked = run("replay", self.trace, "-m", "sink", "-b", "16", "--no-times", "--device", "cuda")
        auto = self.succeeds("replay", self.trace, "-m", "sink", "-b", "16", "--no-times", "--device", "auto")
        device = rows(auto.stdout)[0]["device"]
        if asked.returncode == 0:
            self.assertTrue(device.startswith("cuda ("), device)
            self.assertEqual(asked.stdout, auto.stdout)
            return
        self.assertEqual((asked.returncode, asked.stdout, device), (2, "", "cpu"))
        reasons = ["no NVIDIA driver is installed", "finds no NVIDIA GPU", "supports CUDA",
                   "the CUDA module cannot be loaded"]
        reason = [r for r in reasons if r in asked.stderr]
        self.assertEqual(len(reason), 1, asked.stderr)
        self.assertIn("--device is cuda, which cannot be used", asked.stderr)
        self.assertIn("set --device to cpu", asked.stderr)
        self.assertIn("--device is auto", auto.stderr)
        self.assertIn(reason[0], auto.stderr)
        plain = run("replay", self.trace, "-m", "sink", "-b", "16", "--no-times")
        self.assertEqual((plain.stdout, plain.stderr), (auto.stdout, ""))

    def test_a_cuda_module_that_is_missing_or_of_another_version(self):
        flags = ("replay", self.trace, "-m", "sink", "--device", "cuda")
        alone = shutil.copy(KVBENCH, self.path("alone"))
        done = subprocess.run([alone, *flags], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        for words in ("libkvbench_cuda.so", "`make build` builds it", "set --device to cpu"):
            self.assertIn(words, done.stderr)
        self.fails(2, "belongs to another version of kvbench", "make build", args=flags,
                   env={**os.environ, "LD_LIBRARY_PATH": os.environ["KVBENCH_OTHER_MODULE"]})

    def test_flags_that_change_no_results_are_notes(self):
        """One that would change how results are computed or shown, and has no effect, is a note."""
        replay = ["replay", self.trace, "-m", "sink"]
        sweep = self.write('[[run]]\nname = "a"\ntraces = "t.h5"\nmethods = ["sink"]\n')
        cells = self.path("a.cells")
        self.ok("sweep", sweep, "--cells", cells, "-o", self.path("a.csv"))
        validate = ["validate", "--synthetic", "--claim", "subgen.lemma2"]
        shard = ["sweep", sweep, "--shard", "1/2", "--cells", self.path("never.cells")]
        notes = [
            ("--summary", [*replay, "--summary"]),
            ("--label", [*replay, "--label", "sink=Ours"]),
            ("--summary", [*replay, "-o", "-", "--summary"]),
            ("--no-times", [*replay, "--format", "md", "--no-times"]),
            ("--no-times", [*replay, "--format", "table", "--no-times"]),
            ("--isa", [*replay, "--device", "ref", "--isa", "scalar"]),
            ("--rows", [*replay, "--format", "table", "--rows", "head"]),
            ("--standalone", [*replay, "--format", "md", "--standalone"]),
            ("--seeds", [*replay, "--seeds", 3]),
            ("--recall-sinks", ["replay", self.trace, "-m", "h2o,int8", "--recall-sinks"]),
            ("--summary", ["sweep", sweep, "--summary"]),
            ("--no-times", [*shard, "--no-times", "--overwrite"]),
            ("--summary", [*shard, "--summary", "--overwrite"]),
            ("--summary", ["merge", cells, "--summary"]),
            ("--no-times", ["merge", cells, "--no-times", "--format", "md"]),
            ("--summary", [*validate, "--summary", "--queries", 1]),
            ("--thorough", [*validate, "--thorough", "--seeds", 20, "--queries", 1]),
        ]
        for flag, command in notes:
            with self.subTest(command=command[0], note=flag):
                done = self.succeeds(*command)
                self.assertEqual(done.stderr.count("has no effect"), 1, done.stderr)
                self.assertIn(f"kvbench: {flag} has no effect ", done.stderr)
        self.only_files("a.cells", "a.csv", "never.cells", "s.toml", "t.h5")
