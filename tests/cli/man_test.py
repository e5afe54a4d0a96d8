# SPDX-License-Identifier: Apache-2.0
"""kvbench man: every flag is in the page, which groff and mandoc show without a complaint."""
import os
import re
import shutil
import subprocess
import unittest

from support import CliTest

EPOCH = {**os.environ, "SOURCE_DATE_EPOCH": "86400"}


class Man(CliTest):
    def setUp(self):
        super().setUp()
        with open(self.path("kvbench-verify"), "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
            file.write("#!/bin/sh\necho 'Records a trace'\necho\necho '.dotted'\necho '  -o FILE    The trace'\n")
        self.pages = [self.ok("man", program, env={**EPOCH, "PATH": f"{self.folder}:{os.environ['PATH']}"})
                      for program in ("kvbench", "kveval", "kvbench-validate", "kvbench-verify")]

    def test_every_flag(self):
        commands = re.findall(r"^  ([a-z]+) {3}", self.ok("--help").split("Subcommands:")[1], re.MULTILINE)
        self.assertIn("replay", commands)
        kvbench, kveval, validate = (page.replace("\\-", "-") for page in self.pages[:3])
        for name in commands:
            flags = re.findall(r"^  (?:-\w,)?(--[a-z][\w-]*)", self.ok(name, "--help"), re.MULTILINE)
            part = kvbench.split(f".SH kvbench {name}\n")[1].split("\n.SH")[0]
            if name != "eval":  # the page of kveval
                self.assertLessEqual({*flags}, {*re.findall(r"--[a-z][\w-]*", part)}, name)
        self.assertIn("--inject", kveval)
        self.assertIn("--port", validate)
        self.assertIn(" 1970-01-02 ", kvbench)

    @unittest.skipUnless(shutil.which("man") and shutil.which("groff"), "there is no man")
    def test_man_shows_it(self):
        for page, words in zip(self.pages, ("  kvbench report run.csv -o run.html", "--inject", "golden", ".dotted")):
            done = subprocess.run(["man", "--warnings=w", "-Tutf8", "-l", "-"], input=page, capture_output=True,
                                  text=True, env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "1000"})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(words, re.sub(".\b", "", done.stdout))

    @unittest.skipUnless(shutil.which("mandoc"), "there is no mandoc")
    def test_mandoc_has_no_complaint(self):
        for page in self.pages:
            done = subprocess.run(["mandoc", "-Tlint", "-Wwarning"], input=page, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_a_program_that_is_not_there(self):
        self.fails(2, "kvbench-choose --help is not there", args=["man", "kvbench-choose"], env={**EPOCH, "PATH": "/"})
