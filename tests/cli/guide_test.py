# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of a page, such as docs/guide.md, and compares their output with the output shown below them.
    guide_test.py KVBENCH PAGE BLOCKS
It fails if fewer than BLOCKS blocks of commands could run.
A block ```sh is run in a scratch folder that has traces/ and configs/; a block ```text is output of the block
before it. A word after ```sh states what the block needs: `network` or `model` (the block is not run), or a command of
kvbench (run if kvbench has it)."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

KVBENCH, PAGE = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
BLOCKS = int(sys.argv[3])
ROOT = PAGE.parent.parent


def same(shown, printed):
    """Whether a line of the page equals this line of output: equal words, and numbers within 5 % (instruction sets
    round differently)."""
    split = lambda line: re.sub(r"(?<=\d)\.\.(?=\d)", " .. ", line).split()
    shown, printed = split(shown), split(printed)
    if "..." in shown:   # the rest of the line is left out
        shown = shown[:shown.index("...")]
        printed = printed[:len(shown)]

    def equal(a, b):
        try:
            return a == b or abs(float(a) - float(b)) <= 0.05 * abs(float(b))
        except ValueError:
            return False
    return len(shown) == len(printed) and all(map(equal, shown, printed))


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="kvbench-")
        cls.folder = pathlib.Path(cls.scratch.name)
        for name in ("traces", "configs"):
            (cls.folder / name).symlink_to(ROOT / name)
        tools = cls.folder / "bin"
        tools.mkdir()
        (tools / "kvbench").symlink_to(KVBENCH)
        python = tools / "python3"   # not a link, because a Python environment is found by the path of its interpreter
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        cls.environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def can_run(self, words):
        commands = subprocess.run([KVBENCH, "--help"], capture_output=True, text=True).stdout
        return all(word not in ("network", "model") and re.search(rf"^  {word} ", commands, re.M) for word in words)

    def run_block(self, code):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", code], cwd=self.folder, env=self.environment,
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_blocks(self):
        output, ran = None, 0
        for kind, words, code in re.findall(r"^```(\w+)([^\n]*)\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
            with self.subTest(code=code):
                if kind == "sh":
                    output = self.run_block(code) if self.can_run(words.split()) else None
                    ran += output is not None
                elif kind == "text" and output is not None:
                    for line in code.splitlines():
                        self.assertTrue(any(same(line, printed) for printed in output.splitlines()),
                                        f"not printed: {line}\n{output}")
        self.assertGreaterEqual(ran, BLOCKS)
