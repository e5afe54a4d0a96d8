# SPDX-License-Identifier: Apache-2.0
"""What kveval and kvdump refuse before they load a model: flags without effect, empty values, inputs that are no
regular files. With the model of scripts/fetch-model, if there is one, also texts and token ids that are none.

Usage: flags_test.py KVDUMP PRINT_ARRAY KVEVAL KVBENCH"""

import csv
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from comma import comma_environment  # noqa: E402

KVDUMP, _, KVEVAL, KVBENCH = map(os.path.abspath, sys.argv[1:5])
FETCH = pathlib.Path(__file__).resolve().parents[3] / "scripts" / "fetch-model"
SETTINGS = pathlib.Path(subprocess.check_output([FETCH, "--folder"], text=True).strip(), "env.sh")
LINES = SETTINGS.read_text().splitlines() if SETTINGS.exists() else []
KNOWN = [line.partition("=")[2] for line in LINES if line.startswith("KVBENCH_MODEL=")]
MODEL = next((path for path in (os.environ.get("KVBENCH_MODEL"), *KNOWN) if path and os.path.exists(path)), None)


class Flags(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "a.txt").write_text("words " * 999)
        (self.folder / "a.ids").write_text("7 " * 999)

    def test_help_is_a_word_of_all_programs(self):
        for program in KVDUMP, KVEVAL, os.path.join(os.path.dirname(KVBENCH), "kvbench-validate"):
            word, flag = (subprocess.run([program, one], capture_output=True, text=True) for one in ("help", "--help"))
            self.assertEqual((word.returncode, word.stdout, word.stderr), (0, flag.stdout, ""))

    def fails(self, program, *arguments, code=2, lines=1):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                              cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), lines, done.stderr)
        return done.stderr

    def test_flags_without_effect_are_notes(self):
        text = ["none.gguf", "--text", "a.txt", "-m", "sink"]
        noted = self.fails(KVEVAL, *text, "--format", "md", "--no-times", lines=2)
        self.assertRegex(noted, "--no-times has no effect .*\n.*there is no such model file")
        noted = self.fails(KVEVAL, *text, "--label", "sink=Ours", lines=2)
        self.assertRegex(noted, "--label has no effect .*\n.*there is no such model file")

    @unittest.skipUnless(MODEL, "there is no model; scripts/fetch-model downloads one")
    def test_several_texts(self):
        """Each text has its documents, which are those that it has alone."""
        (self.folder / "b.txt").write_text("other letters " * 999)
        flags = ["--model", MODEL, "--no-f32", "--context", 64, "--score", 8, "--documents", 1, "-m", "sink", "-b",
                 "25%mem", "--layers", 0, "--per-document", "--no-times"]

        def rows(*texts):
            command = [KVEVAL, *map(str, flags), *(word for text in texts for word in ("--text", text))]
            done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [row for row in csv.DictReader(done.stdout.splitlines()) if row["document"] != "all"]
        both = rows("a.txt", "b.txt")
        self.assertEqual([row["document"] for row in both], ["a.txt:text-0", "b.txt:text-0"])
        self.assertEqual({row["text"] for row in both}, {"a.txt,b.txt"})
        for name in ("document_sha256", "kl_mean"):
            self.assertEqual([row[name] for row in both], [rows(text)[0][name] for text in ("a.txt", "b.txt")])
        (self.folder / "c.txt").write_text("words " * 999)
        self.assertIn("a.txt and c.txt are the same text; name it once",
                      self.fails(KVEVAL, *flags, "--text", "a.txt", "--text", "c.txt"))

    @unittest.skipUnless(MODEL, "there is no model; scripts/fetch-model downloads one")
    def test_labels(self):
        """Tables for readers show the text of a label, those for programs the name."""
        command = [KVEVAL, MODEL, "--text", "a.txt", "--no-f32", "--context", "64", "--score", "8", "--documents", "2",
                   "-m", "sink,q8_0", "-b", "60%mem", "--layers", "0", "--per-document", "-q", "--label", "q8_0=Ours"]
        for form in ("md", "table", "csv"):
            done = subprocess.run([*command, "--format", form], capture_output=True, text=True, cwd=self.folder,
                                  timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            seen = [name in done.stdout for name in ("Ours", "q8_0", "sink")]
            self.assertEqual(seen, [form != "csv", form == "csv", True], done.stdout)
            if form != "csv":
                self.assertIn("llama.cpp reads it through its rounded cache", " ".join(done.stdout.split()))

    def test_inputs_that_are_no_regular_files(self):
        """A pipe without a writer blocks for ever, and /dev/zero does not end."""
        os.mkfifo(self.folder / "pipe")
        (self.folder / "folder").mkdir()
        with socket.socket(socket.AF_UNIX) as server:
            os.chdir(self.folder)
            server.bind("socket")
        commands = [(KVEVAL, [None, "--text", "a.txt", "-m", "sink"]),
                    (KVEVAL, ["none.gguf", "--text", "a.txt", "--sweep", None]),
                    (KVEVAL, ["none.gguf", "--text", "a.txt", "-m", "sink", "--cells", None, "--resume"]),
                    (KVDUMP, [None, "--text", "a.txt", "-o", "t.h5"])]
        if MODEL:
            commands += [(KVEVAL, [MODEL, "--text", None, "-m", "sink", "--no-f32"]),
                         (KVEVAL, [MODEL, "--ids", None, "-m", "sink", "--no-f32"]),
                         (KVDUMP, [MODEL, "--text", None, "-o", "t.h5"]),
                         (KVDUMP, [MODEL, "--ids", None, "-o", "t.h5"])]
        for program, arguments in commands:
            for path in "pipe", "/dev/zero", "folder", "socket":
                with self.subTest(program=program, arguments=arguments, path=path):
                    done = subprocess.run([program, *(path if a is None else a for a in arguments)], timeout=60,
                                          capture_output=True, text=True, cwd=self.folder)
                    self.assertIn(done.returncode, (2, 3), done.stderr)
                    self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
                    self.assertIn(path, done.stderr)
                    self.assertNotIn("no such", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.ids", "a.txt", "folder", "pipe", "socket"])

    @unittest.skipUnless(MODEL, "there is no model; scripts/fetch-model downloads one")
    def test_nothing_depends_on_the_locale(self):
        comma = comma_environment(str(self.folder))
        text = ["--text", "a.txt", "--no-f32", "--layers", 0]
        commands = [[KVDUMP, MODEL, "--text", "a.txt", "--layers", 0, "--ctx", 64, "-o", "t.h5"],
                    [KVEVAL, MODEL, *text, "--context", 64, "--score", 8, "--documents", 1, "-m", "sink", "-b",
                     "12.5%mem", "--no-times", "-o", "e.csv"],
                    [KVEVAL, "--list-tasks"], [KVDUMP, "--help"], [KVEVAL, "--help"]]
        for command in commands:
            found = []
            for environment in ({**os.environ, "LC_ALL": "C"}, comma):
                done = subprocess.run(list(map(str, command)), capture_output=True, cwd=self.folder, timeout=300,
                                      env={**environment, "SOURCE_DATE_EPOCH": "1234567"})
                self.assertEqual(done.returncode, 0, done.stderr)
                files = [path.read_bytes() for path in map(self.folder.joinpath, ("t.h5", "e.csv")) if path.exists()]
                for name in ("t.h5", "e.csv"):
                    (self.folder / name).unlink(missing_ok=True)
                found.append((done.stdout, files))
            with self.subTest(command=command):
                self.assertEqual(found[0], found[1])
