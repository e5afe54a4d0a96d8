# SPDX-License-Identifier: Apache-2.0
"""kvbench man: every flag is in the page, which groff and mandoc show without a complaint."""
import os
import re
import shutil
import subprocess
import unittest
from unittest import mock

from support import CliTest

EPOCH = {**os.environ, "SOURCE_DATE_EPOCH": "86400"}
HELP = """Records a trace. It needs a model.
Usage: kvdump [OPTIONS] model

Options:
  .dotted 'quoted' \\\\n
  -o,--output FILE            The trace
"""


class Man(CliTest):
    def page(self, *program):
        return self.ok("man", *program, env=EPOCH)

    def shown(self, page):
        done = subprocess.run(["man", "--warnings=w", "-Tutf8", "-l", "-"], input=page, capture_output=True, text=True,
                              env={**os.environ, "MANWIDTH": "1000", "LC_ALL": "C.UTF-8", "MANROFFOPT": "-c"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return re.sub(".\b", "", done.stdout).replace("\u2010", "-")

    def flags(self, *command):
        return set(re.findall(r"^  (?:-\w,)?(--[a-z][\w-]*)", self.ok(*command, "--help"), re.MULTILINE))

    def test_every_flag(self):
        commands = re.findall(r"^  ([a-z]+) {3}", self.ok("--help").split("Subcommands:")[1], re.MULTILINE)
        self.assertIn("replay", commands)
        unescaped = self.page().replace("\\-", "-")
        for name in commands:
            part = unescaped.split(f".SS kvbench {name}\n")[1].split("\n.SS")[0]
            if name != "eval":
                self.assertLessEqual(self.flags(name), set(re.findall(r"--[a-z][\w-]*", part)), name)
        self.assertIn("--inject", self.page("kveval").replace("\\-", "-"))
        self.assertIn("--port", self.page("kvbench-validate").replace("\\-", "-"))
        self.assertEqual(self.page(), self.page("kvbench"))
        self.assertIn(" 1970-01-02 ", self.page())

    def plant(self):
        path = self.path("kvdump")
        with open(path, "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
            file.write(f"#!/bin/sh\n/bin/cat <<'END'\n{HELP}END\n")
        return mock.patch.dict(EPOCH, PATH=f"{self.folder}:{os.environ['PATH']}")

    @unittest.skipUnless(shutil.which("man") and shutil.which("groff"), "there is no man")
    def test_man_shows_it(self):
        text = self.shown(self.page())
        for words in ("kvbench - benchmark of KV-cache compression", "-b,--budget TEXT ...",
                      "  kvbench report run.csv -o run.html", "interrupted (SIGINT, SIGTERM or SIGHUP)"):
            self.assertIn(words, text)
        self.shown(self.page("kveval")), self.shown(self.page("kvbench-validate"))
        with self.plant():
            if "model" in self.page("kvdump"):
                text = self.shown(self.page("kvdump"))
                self.assertIn("-o,--output FILE            The trace", text)

    @unittest.skipUnless(shutil.which("mandoc"), "there is no mandoc")
    def test_mandoc_has_no_complaint(self):
        with self.plant():
            for program in ("kvbench", "kveval", "kvbench-validate", "kvdump"):
                done = subprocess.run(["mandoc", "-Tlint", "-Wwarning"], input=self.page(program), capture_output=True,
                                      text=True)
                self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""), program)

    def test_a_program_that_is_not_there(self):
        self.fails(2, "kvbench-choose: there is no such program", args=["man", "kvbench-choose"],
                   env={**EPOCH, "PATH": self.folder})
