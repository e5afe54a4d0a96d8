# SPDX-License-Identifier: Apache-2.0
"""How kvbench-choose runs programs and says what they do."""
import os
import pathlib
import re
import sys
import types
from unittest import mock

from support import PackageTest
from kvbench import Error
from kvbench.choosing import run


# Takes commands as kveval --commands does: each word ends with a NUL byte, an empty word ends a command.
KEPT = f"""#!{sys.executable}
import os, sys
assert sys.argv[1:] == ["--commands"], sys.argv
words, word = [], b""
while byte := os.read(0, 1):
    if byte != b"\\0":
        word += byte
        continue
    words, word = words + [word.decode()], b""
    if words[-1]:
        continue
    if words[0] == "made":
        open(words[1], "w").write(f"{{os.getpid()}} {{len(words)}}")
    else:
        print("kveval: no room", file=sys.stderr, flush=True)
    if words[0] == "killed":
        os.kill(os.getpid(), 9)
    print("done", 0 if words[0] == "made" else 2, flush=True)
    words = []
"""


class Runs(PackageTest):
    def test_a_program_that_is_kept(self):
        """One process runs all commands, until release() or until it dies; then another one does."""
        kept = self.path("kveval")
        pathlib.Path(kept).write_text(KEPT)
        os.chmod(kept, 0o755)
        runs = run.Run(quiet=True, kept=kept)

        def process(name):
            runs.run(self.path(name), kept, "made", self.path(name))
            number, words = pathlib.Path(self.path(name)).read_text().split()
            self.assertEqual(words, "3")
            return number

        first = process("a")
        with self.assertRaisesRegex(Error, "^kveval failed: no room$"):
            runs.run(self.path("b"), kept, "refused")
        self.assertEqual(process("c"), first)
        with self.assertRaisesRegex(OSError, "kveval was ended by SIGKILL, as when memory is short"):
            runs.run(self.path("b"), kept, "killed")
        second = process("d")
        runs.release()
        self.assertEqual(len({first, second, process("e")}), 3)
        runs.release()
        runs.release()
        for number in (first, second):
            self.assertFalse(os.path.exists(f"/proc/{number}"))

    def test_a_kept_program_that_is_interrupted(self):
        kept = self.path("kveval")
        pathlib.Path(kept).write_text("#!/bin/sh\necho $$ >'" + self.path("pid") + "'\nexec sleep 60\n")
        os.chmod(kept, 0o755)
        runs = run.Run(quiet=True, kept=kept)
        with mock.patch.object(run.Run, "_read", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            runs.run(self.path("a"), kept, "made", self.path("a"))
        self.assertIsNone(runs._child)
    def test_a_program_that_is_killed(self):
        for number, expected in ((9, OSError), (15, KeyboardInterrupt)):
            with self.assertRaises(expected):
                run.Run(quiet=True).run(self.path("made"), "sh", "-c", f"kill -{number} $$")

    def said(self, script, *words, **options):
        """What a Run says of a program, and whether it made its file."""
        said = []
        runs = run.Run(quiet=False)
        stream = types.SimpleNamespace(write=said.append, flush=lambda: None, **options)
        with mock.patch.object(sys, "stderr", stream):
            try:
                runs.run(self.path("made/file"), "sh", "-c", script, self.path("made/file"), *words)
            except Exception as failure:
                said.append(f"{type(failure).__name__}: {failure}")
        return re.sub(r"\[ *\d+ s\]", "[0 s]", "".join(said))

    def test_progress_of_a_program(self):
        """A line for each document, with a total; on a terminal all stages, in one line."""
        stages = "".join(f"echo '{run.STAGES}: {text}' >&2; " for text in (
            "loading the model", "document 1 of 2, a.ids: probe 1 of 8", "document 1 of 2, a.ids: probe 2 of 8",
            "document 2 of 2, b.ids: probe 1 of 8"))
        self.assertEqual(self.said(stages + "touch $0"),
                         "kvbench-choose: [0 s] document 1 of 2\n"
                         "kvbench-choose: [0 s] document 2 of 2, about 0 s left\n")
        os.remove(self.path("made/file"))
        live = self.said(stages + "touch $0", isatty=lambda: True)
        self.assertIn("\r\x1b[Kkvbench-choose: [0 s] document 1 of 2, a.ids: probe 2 of 8\r", live)
        self.assertEqual(live.count("\n"), 0)
        os.remove(self.path("made/file"))
        self.assertEqual(self.said(stages + "echo 'kveval: no room' >&2; exit 3"),
                         "kvbench-choose: [0 s] document 1 of 2\n"
                         "kvbench-choose: [0 s] document 2 of 2, about 0 s left\n"
                         "OSError: sh failed: kveval: no room")

    def test_time_that_is_left(self):
        """The first of three documents takes 100 seconds, and two are left."""
        said, runs = [], run.Run(quiet=False)
        with mock.patch.object(run.time, "monotonic") as clock, mock.patch.object(
                run, "tell", said.append):
            for clock.return_value, stage in ((500, "document 1 of 3, a"), (590, "document 1 of 3, b"),
                                              (600, "document 2 of 3, a")):
                runs.show(stage)
        self.assertIn("document 2 of 3, about 200 s left\n", said[-1])

    def test_copies_of_a_model_are_named(self):
        copy = self.path("cache/kvbench/f32/1234.gguf")
        os.makedirs(os.path.dirname(copy))
        pathlib.Path(self.path("cache/kvbench/f32/earlier.gguf")).write_text("x")
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": self.path("cache")}):
            made = (f"echo '\n# m.gguf' > '{copy}.sha256'; head -c 2000000 /dev/zero > '{copy}'; "
                    f"cp '{copy}' '{copy}.other.gguf'; echo '\n# of another process' > '{copy}.other.gguf.sha256'; ")
            self.assertEqual(self.said(made + "touch $0", "a/m.gguf"),
                             f"kvbench-choose: [0 s] {copy} is a copy of the model with fp32 weights (2 MB), which "
                             "later runs use; kvbench cache lists and removes such copies\n")
