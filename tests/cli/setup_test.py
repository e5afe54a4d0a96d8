# SPDX-License-Identifier: Apache-2.0
"""scripts/setup --prefix with stand-ins for apt-get and dpkg: what the user has in a folder stays; no shell evaluates
the name of the folder."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SETUP = pathlib.Path(__file__).resolve().parents[2] / "scripts/setup"
PROGRAMS = {"dpkg-query": "exit 1",
            "apt-get": """[ "$2" = --simulate ] && echo "Inst one" || { [ "$1" = download ] && touch one.deb; }""",
            "dpkg": """mkdir -p -- "$3/usr/bin" && echo new >"$3/usr/bin/one" """,
            "g++": "echo x86_64-linux-gnu"}


class Prefix(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        for name, text in PROGRAMS.items():
            program = self.folder / "bin" / name
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)

    def setup(self, prefix):
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        return subprocess.run([SETUP, "--prefix", prefix, "build"], cwd=self.folder, env=environment, text=True,
                              capture_output=True, timeout=60)

    def test_nothing_is_missing(self):
        """The line of docs/guide.md that reads env follows whatever the machine has."""
        (self.folder / "bin/dpkg-query").write_text("#!/bin/sh\necho install ok installed\n")
        done = self.setup("new")
        self.assertEqual((done.returncode, [path.name for path in (self.folder / "new").iterdir()]), (0, ["env"]),
                         done.stderr)

    def test_names(self):
        """Each is used as it is written, twice, and the shell that reads env runs nothing of it."""
        for name in ("new", "a b", "$(touch evil)", "`touch evil`", 'quote"', "quote'", "-dash", "$HOME", "back\\slash",
                     "ä", "a/b/c", "*"):
            with self.subTest(name=name):
                for _ in range(2):
                    done = self.setup(name)
                    self.assertEqual(done.returncode, 0, done.stderr)
                prefix = self.folder / name
                self.assertEqual((prefix / "usr/bin/one").read_text(), "new\n")
                self.assertEqual(sorted(path.name for path in prefix.iterdir()), ["env", "usr"])
                line = done.stdout.splitlines()[-1].removeprefix("For every shell: ")
                shown = subprocess.run(["sh", "-c",
                                f'set -u; {line} && printf "%s\\n" "${{PATH%%:*}}" "$CMAKE_PREFIX_PATH"'],
                                       cwd=self.folder, text=True, capture_output=True)
                self.assertEqual(shown.stdout.splitlines(), [f"{prefix}/usr/bin", f"{prefix}/usr"], shown.stderr)
        self.assertFalse((self.folder / "evil").exists())

    def test_folders_of_the_user(self):
        """What is there stays as it is."""
        for name in ("packages/mine.txt", "usr/bin/one", "env", "notes.txt"):
            with self.subTest(name=name):
                file = self.folder / name.replace("/", "-") / name
                file.parent.mkdir(parents=True)
                file.write_text("mine\n")
                done = self.setup(name.replace("/", "-"))
                self.assertEqual(done.returncode, 2)
                self.assertIn("is not empty and not of an earlier call; name a new folder", done.stderr)
                self.assertEqual(file.read_text(), "mine\n")
        (self.folder / "pipe").mkdir()
        os.mkfifo(self.folder / "pipe/env")  # no one will ever write to it
        (self.folder / "file").write_text("mine\n")
        for name in ("file", "pipe", "a:b", "a;b", "", "/proc/none"):
            with self.subTest(name=name):
                self.assertNotEqual(self.setup(name).returncode, 0)
        self.assertEqual((self.folder / "file").read_text(), "mine\n")
