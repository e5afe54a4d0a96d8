# SPDX-License-Identifier: Apache-2.0
"""kvbench doctor on machines that lack something, and on such where something is broken."""
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

from support import KVBENCH, CliTest

PYPROJECT = pathlib.Path(__file__).resolve().parents[2] / "python/pyproject.toml"


def oldest(package):
    """The version that python/pyproject.toml asks for."""
    needed = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]["hf"]
    return next(one.split(">=")[1] for one in needed if one.startswith(package + ">="))


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

    def states(self, found, *names):
        return [found[name][0] for name in names]

    def test_nothing_beside_it(self):
        found = self.doctor()
        self.assertEqual(self.states(found, "replay", "kvbench-validate", "kveval", "kvdump", "Python", "model cache"),
                         ["works", "missing", "missing", "missing", "missing", "works"])
        self.assertIn("make build", found["kvbench-validate"][1])
        self.assertIn("scripts/fetch-model", found["kvdump"][1])
        self.assertEqual(sorted(os.listdir(self.home)), ["bin", "modules", "tmp"])  # trying leaves nothing behind
        self.assertEqual(os.listdir(os.path.join(self.home, "tmp")), [])

    def test_programs(self):
        self.plant("kveval", "#!/bin/sh\necho 'kveval: libllama.so: cannot open shared object file' >&2\nexit 127\n")
        self.plant("kvbench-validate", "#!/bin/sh\necho 'kvbench-validate 0.0.1 (0123456789)'\n")
        self.plant("kvdump", "#!/bin/sh\n/bin/sleep 600\n")
        found = self.doctor("--limit", "2", code=1)
        self.assertEqual(self.states(found, "kveval", "kvbench-validate", "kvdump"), ["broken", "old", "broken"])
        for name, reason in (("kveval", "ended with exit code 127: kveval: libllama.so"),
                             ("kvbench-validate", "0.0.1"), ("kvdump", "gave no answer in 2 s"),
                             ("all", ": kveval, kvdump")):
            self.assertIn(reason, found[name][1])
        own = subprocess.run([KVBENCH, "--version"], capture_output=True, text=True).stdout.split()[1]
        self.plant("kveval", f"#!/bin/sh\necho 'kveval {own} (0123456789)'\n")
        self.assertEqual(self.doctor("--limit", "1", code=1)["kveval"][0], "works")

    def test_packages(self):
        os.symlink(sys.executable, os.path.join(self.home, "bin", "python3"))
        torch, transformers = oldest("torch"), oldest("transformers")
        self.module("transformers", "print('hello')\n__version__ = '4.57.6'")
        self.module("torch", f"__version__ = '{torch}+cpu'")
        self.module("kvbench", "")
        names = "Python", "torch", "transformers", "Python package"
        found = self.doctor()
        self.assertEqual(self.states(found, *names), ["works", "works", "old", "broken"])
        self.assertIn(f"4.57.6, older than {transformers}", found["transformers"][1])
        self.assertIn(f"pip install -U 'transformers>={transformers}'", found["transformers"][1])
        self.assertIn("is another package of this name", found["Python package"][1])
        self.module("transformers", f"__version__ = '{transformers}.0.dev0'")
        self.module("torch", "raise OSError('libcudart.so.12: cannot open')")
        self.module("kvbench", "Trace = None")
        found = self.doctor()
        self.assertEqual(self.states(found, *names), ["works", "broken", "works", "works"])
        self.assertIn("OSError: libcudart.so.12", found["torch"][1])
        self.plant("slow", "#!/bin/sh\nexec /bin/sleep 600\n")
        found = self.doctor("--limit", "1", KVBENCH_INTERPRETER=os.path.join(self.home, "bin", "slow"))
        self.assertIn("gave no answer in 1 s", found["Python"][1])

    def test_folders_and_fonts(self):
        found = self.doctor(XDG_CACHE_HOME="/proc", FONTCONFIG_FILE=self.write("<fontconfig></fontconfig>", "f.conf"))
        self.assertEqual(self.states(found, "replay", "figures", "model cache"), ["works", "missing", "broken"])
        self.assertIn("KVBENCH_CACHE_GIB is 'many'", self.doctor(KVBENCH_CACHE_GIB="many")["model cache"][1])
        self.assertEqual(self.doctor(code=1, TMPDIR="/none")["replay"][0], "broken")
