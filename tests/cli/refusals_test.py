# SPDX-License-Identifier: Apache-2.0
"""The programs refuse each row of tests/refusals/table.py: one sentence, the documented exit code, no output, and no
file made or replaced."""
import collections
import os
import pathlib
import re
import resource
import subprocess
import sys

from support import KVBENCH, CliTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "refusals"))
import fixtures  # noqa: E402
import table  # noqa: E402

PROGRAMS = {name: path for name in ("kvbench", "kvbench-validate", "kveval", "kvdump")
            if os.path.exists(path := os.path.join(os.path.dirname(KVBENCH), name))}
# What each command needs beside a flag.
NEEDED = {"kvbench info": "t.h5", "kvbench replay": "t.h5 -m sink", "kvbench sweep": "s.toml",
          "kvbench merge": "a.cells", "kvbench compare": "raw.h5", "kvbench report": "rows.csv -o x.html",
          "kvbench validate": "--synthetic", "kvbench methods": "", "kvbench synth": "-o x.h5", "kvbench cache": "",
          "kvbench allocate": "t.h5 --menu h2o", "kveval": "none.gguf -m sink", "kvdump": "none.gguf -o x.h5"}


class Refusals(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.remove(cls.trace)
        fixtures.make(cls.folder, KVBENCH)
        if not os.environ.get("KVBENCH_SANITIZE"):  # a sanitizer reserves terabytes of addresses
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, resource.RLIM_INFINITY))

    def state(self):
        """What stands in the folder."""
        return {entry.path: (entry.inode(), entry.stat().st_size, entry.stat().st_mtime_ns)
                for entry in os.scandir(self.folder)}

    def refused(self, words, *says, code=2):
        before = self.state()
        done = subprocess.run([PROGRAMS[words[0]], *map(os.fsencode, words[1:])], capture_output=True, timeout=120,
                              cwd=self.folder)
        said = done.stderr.decode(errors="replace")
        self.assertEqual((done.returncode, done.stdout), (code, b""), said)
        for part in says:
            self.assertIn(part, said)
        if len(words) > 1:  # alone it prints its help too
            *notes, _ = lines = said.removesuffix("\n").split("\n")
            self.assertTrue(all(line.startswith(("kvbench: ", f"{words[0]}: ")) for line in lines), said)
            self.assertTrue(all("has no effect" in note or "do not hold for" in note for note in notes), said)
        self.assertNotRegex(said, r"`\w+`|\.\.\n")  # the library's name of a field
        self.assertEqual(self.state(), before)
        return said

    def test_rows(self):
        tried = collections.Counter()
        for row in table.ROWS:
            if row.words[0] in PROGRAMS:
                for name, text in row.files.items():
                    pathlib.Path(self.folder, name).write_bytes(text if isinstance(text, bytes) else text.encode())
                with self.subTest(row.words, files={name: text[:300] for name, text in row.files.items()}):
                    self.refused(row.words, *row.says, code=row.code)
                tried[row.words[0]] += 1
        for name in PROGRAMS:
            self.assertEqual(tried[name], sum(row.words[0] == name for row in table.ROWS))
        self.assertGreater(tried["kvbench"], 700)

    def test_no_value(self):
        """An empty text, as of an unset variable of a script, is no value of any flag of any command, nor is the next
        flag."""
        tried = collections.Counter()
        for command, needed in NEEDED.items():
            program, *command = command.split()
            if program in PROGRAMS:
                page = subprocess.run([PROGRAMS[program], *command, "--help"], capture_output=True, text=True).stdout
                for flag in re.findall(r"^ +(?:-\w,)?(--[\w-]+|-\w) (?:TEXT|FILE|U?INT|FLOAT|N|LIST|SPEC|TYPE|SIZE)\b",
                                       page, re.MULTILINE):
                    others = needed.replace({"--model": "none.gguf", "--output": "-o x.h5"}.get(flag, flag), "")
                    words = [program, *command, *others.split(), flag]
                    with self.subTest(words):
                        self.assertRegex(self.refused([*words, ""], flag), "empty|'' is not|twice|one value")
                        self.refused([*words, flag], f"{flag} needs a value; {flag} behind it is a flag")
                    tried[program] += 1
        self.assertGreater(tried["kvbench"], 60)
        self.assertTrue(all(tried[name] > 8 for name in PROGRAMS if name != "kvbench-validate"), tried)

    def test_values_of_switches(self):
        """A flag that takes no value refuses one behind an equals sign, also a short flag and an empty value."""
        tried = collections.Counter()
        for command, needed in NEEDED.items():
            program, *words = [*command.split(), *needed.split()]
            if program in PROGRAMS:
                page = subprocess.run([PROGRAMS[program], *words, "--help"], capture_output=True, text=True).stdout
                for names in re.findall(r"^ +(-\S+)(?: {2}|$)", page, re.MULTILINE):
                    for flag in re.sub("{.*?}", "", names).split(","):
                        for value in ("", "yes"):
                            with self.subTest(command, flag=flag, value=value):
                                self.refused([program, *words, f"{flag}={value}"],
                                             f"{flag} takes no value; write {flag} alone")
                        tried[program] += 1
        self.assertGreater(tried["kvbench"], 40)
        self.assertTrue(all(tried[name] > 8 for name in PROGRAMS if name != "kvbench-validate"), tried)
