# SPDX-License-Identifier: Apache-2.0
"""kvbench doctor on machines that lack something, and on such where something is broken."""
import os
import pathlib
import shutil
import subprocess
import sys
import time
import tomllib
import unittest

from support import KVBENCH, CliTest

PYPROJECT = pathlib.Path(__file__).resolve().parents[2] / "python/pyproject.toml"


def oldest(package):
    """The version that python/pyproject.toml asks for."""
    needed = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]["hf"]
    return next(one.split(">=")[1] for one in needed if one.startswith(package + ">="))


def running(group):
    """The processes of a group that have not ended."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of = stat.read_text().rsplit(")", 1)[1].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(of) == group and state not in "ZX":
            found.append(stat)
    return found


class Doctor(CliTest):
    """A copy of the program in a folder that is all of PATH: nothing is beside it but what a test plants."""

    def setUp(self):
        super().setUp()
        self.home = self.path("home")
        for name in ("bin", "tmp", "modules"):
            os.makedirs(os.path.join(self.home, name))
        self.kvbench = shutil.copy(KVBENCH, os.path.join(self.home, "bin"))

    def plant(self, name, text):
        path = os.path.join(self.home, "bin", name)
        with open(path, "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
            file.write(text)

    def module(self, name, text):
        os.makedirs(os.path.join(self.home, "modules", name), exist_ok=True)
        self.write(text, os.path.join(self.home, "modules", name, "__init__.py"))

    def doctor(self, *args, code=0, **variables):
        """What it says of each thing: state and text, with the remedy."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "KVBENCH_"))}
        environment |= {"PATH": os.path.join(self.home, "bin"), "HOME": self.home, "PYTHONDONTWRITEBYTECODE": "1",
                        "TMPDIR": os.path.join(self.home, "tmp"), "PYTHONPATH": os.path.join(self.home, "modules")}
        done = subprocess.run([self.kvbench, "doctor", *args], env={**environment, **variables}, cwd=self.folder,
                              capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        found = {}
        for line in done.stdout.splitlines():
            if line.startswith(" "):
                found[what][1] += line
            elif line.startswith("This build"):
                found["all"] = ["", line]
            else:
                what = line[9:26].strip()
                found[what] = [line[:9].strip(), line[27:]]
        self.assertEqual("all" in found, code == 1)
        return found

    def test_nothing_beside_it(self):
        found = self.doctor()
        self.assertEqual(found["replay"][0], "works")
        for name, way in (("kvbench-validate", "make build"), ("kveval", "scripts/fetch-model"),
                          ("kvdump", "scripts/fetch-model"), ("Python", "apt-get install")):
            self.assertEqual(found[name][0], "missing", name)
            self.assertIn(way, found[name][1])
        self.assertEqual(found["model cache"][0], "works")
        self.assertIn(os.path.join(self.home, ".cache/kvbench/f32"), found["model cache"][1])
        self.assertEqual(sorted(os.listdir(self.home)), ["bin", "modules", "tmp"])  # trying leaves nothing behind
        self.assertEqual(os.listdir(os.path.join(self.home, "tmp")), [])

    def test_programs_that_do_not_start(self):
        self.plant("kveval", "#!/bin/sh\necho 'kveval: libllama.so: cannot open shared object file' >&2\nexit 127\n")
        self.plant("kvbench-validate", "neither a program nor a script")
        self.plant("kvdump", f"#!/bin/sh\necho $$ >{self.home}/process\n/bin/sleep 600\n")
        begin = time.monotonic()
        found = self.doctor("--limit", "2", code=1)
        self.assertLess(time.monotonic() - begin, 60)
        for name, reason in (("kveval", "ended with exit code 127: kveval: libllama.so: cannot open"),
                             ("kvbench-validate", "cannot be started: "), ("kvdump", "gave no answer in 2 s")):
            self.assertEqual(found[name][0], "broken", name)
            self.assertIn(reason, found[name][1])
            self.assertIn(name, found["all"][1])
        process = int(self.read(os.path.join(self.home, "process")))
        self.assertEqual(running(process), [])  # with what it had started

    def test_programs_that_answer(self):
        own = subprocess.run([KVBENCH, "--version"], capture_output=True, text=True).stdout.split()[1]
        self.plant("kveval", f"#!/bin/sh\necho 'kveval {own} (0123456789)'\n")
        self.plant("kvdump", "#!/bin/sh\necho 'kvdump 0.0.1 (0123456789)'\n")
        found = self.doctor()
        self.assertEqual((found["kveval"][0], found["kvdump"][0]), ("works", "old"))
        self.assertIn("0.0.1", found["kvdump"][1])

    def with_python(self):
        os.symlink(sys.executable, os.path.join(self.home, "bin", "python3"))

    def test_versions_of_packages(self):
        self.with_python()
        self.module("transformers", "print('hello')\n__version__ = '4.57.6'")
        self.module("torch", f"__version__ = '{oldest('torch')}+cpu'")
        self.module("kvbench", "")
        found = self.doctor()
        self.assertEqual([found[name][0] for name in ("Python", "torch", "transformers", "Python package")],
                         ["works", "works", "old", "broken"])
        self.assertIn(f"4.57.6, older than {oldest('transformers')}", found["transformers"][1])
        self.assertIn(f"pip install -U 'transformers>={oldest('transformers')}'", found["transformers"][1])
        self.assertIn("is another package named kvbench", found["Python package"][1])
        self.module("transformers", f"__version__ = '{oldest('transformers')}.0.dev0'")
        self.module("torch", "raise OSError('libcudart.so.12: cannot open')")
        self.module("kvbench", "Trace = None")
        found = self.doctor()
        self.assertEqual([found[name][0] for name in ("torch", "transformers", "Python package")],
                         ["broken", "works", "works"])
        self.assertIn("OSError: libcudart.so.12", found["torch"][1])
        self.assertIn("without the program", found["Python package"][1])

    def test_python_that_hangs_or_fails(self):
        self.plant("python3", "#!/bin/sh\nexec /bin/sleep 600\n")
        found = self.doctor("--limit", "1")
        self.assertEqual(found["Python"][0], "broken")
        self.assertIn("gave no answer in 1 s", found["Python"][1])
        self.with_other = os.path.join(self.home, "other")
        os.symlink(sys.executable, self.with_other)
        self.assertIn("works", self.doctor(KVBENCH_INTERPRETER=self.with_other)["Python"])
        self.assertIn("cannot be started", self.doctor(KVBENCH_INTERPRETER="/none")["Python"][1])

    def test_cache_and_folders(self):
        for variables, words in (({"XDG_CACHE_HOME": "/proc"}, "nothing can be written to /proc"),
                                 ({"KVBENCH_CACHE_GIB": "many"}, "KVBENCH_CACHE_GIB is 'many'")):
            found = self.doctor(**variables)
            self.assertEqual(found["model cache"][0], "broken")
            self.assertIn(words, found["model cache"][1])
        found = self.doctor(code=1, TMPDIR="/none")
        self.assertEqual(found["replay"][0], "broken")
        self.assertIn("TMPDIR", found["replay"][1])

    def test_no_fonts(self):
        found = self.doctor(FONTCONFIG_FILE=self.write("<fontconfig></fontconfig>", "fonts.conf"))
        self.assertEqual(found["figures"][0], "missing")
        self.assertIn("apt-get install", found["figures"][1])
