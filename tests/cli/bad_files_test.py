# SPDX-License-Identifier: Apache-2.0
"""Bad files give a sentence that names cause and remedy, the documented exit code, and no output file."""
import fcntl
import os
import random
import shutil
import socket
import subprocess

from support import CliTest, SPOIL, run


class BadTrace(CliTest):
    def spoiled(self, how, good=None):
        path = self.path(how + ".h5")
        shutil.copy(good or self.trace, path)
        subprocess.run([SPOIL, path, how], check=True)
        return path

    def test_what_the_reader_refuses(self):
        """Of which tests/unit/trace has a table."""
        path = self.write("no trace, but long enough to be one\n" * 100, "text.h5")
        for command in (["info", path], ["replay", path, "-m", "exact"]):
            self.fails(2, "text.h5", "HDF5", args=command)

    def test_raw_results(self):
        noise = random.Random(1)
        raw = self.path("raw.h5")
        self.ok("replay", self.trace, "-m", "sink", "--raw", raw, "--raw-outputs")
        data = self.read_bytes(raw)
        path = self.path("bad.h5")
        for spoiled in (data[: len(data) // 2], data[:8] + noise.randbytes(600) + data[608:]):
            with open(path, "wb") as file:
                file.write(spoiled)
            self.fails(2, "bad.h5", args=["compare", path])
        # Damage at any other place gives an error message or other values, never a crash.
        for at in range(1000, len(data), len(data) // 40):
            with open(path, "wb") as file:
                file.write(data[:at] + noise.randbytes(64) + data[at + 64 :])
            done = run("compare", path)
            self.assertIn(done.returncode, (0, 2), done.stderr)
        for how, *words in (("ids-external", "/heads/0/0/entries/0/ids: is stored in another file"),
                            ("ids-virtual", "/heads/0/0/entries/0/ids: is stored in another file"),
                            ("metrics-external", "/heads/0/0/metrics: is stored in another file"),
                            ("metrics-virtual", "/heads/0/0/metrics: is stored in another file"),
                            ("method-newline", "/cells/0: attribute 'method' has a control character")):
            self.fails(2, how + ".h5", *words, args=["compare", self.spoiled(how, raw)])

    def test_a_trace_that_is_open_in_another_program(self):
        with open(self.trace, "rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            for command in (["info", self.trace], ["replay", self.trace, "-m", "exact"]):
                self.assertNotIn("damaged",
                                 self.fails(2, "another program holds the file open for writing", args=command))
            self.ok("info", self.trace, env={**os.environ, "HDF5_USE_FILE_LOCKING": "FALSE"})

    def test_logits_that_overflow(self):
        path = self.spoiled("huge-logits", self.synth("huge.h5", "--column-sums", "false"))
        words = ("huge-logits.h5: /prompts/0/layers/0: query head ", ": the logit of the query at position",
                 "inf in fp32")
        self.fails(2, *words, args=["replay", path, "-m", "all"])
        self.fails(2, *words, args=["validate", path, "--claim", "subgen.lemma1"])
        sweep = self.write('[[run]]\ntraces = "huge-logits.h5"\nmethods = "sink"\n')
        self.fails(2, *words, args=["sweep", sweep])


class SpecialFiles(CliTest):
    """Inputs that are no regular files are refused at once: a pipe without a writer blocks for ever, and /dev/zero does
    not end."""

    def test_a_digest_beside_a_trace(self):
        """What is no regular file states no digest: the trace is read, at once."""
        expected = run("info", self.trace).stdout
        beside = self.trace + ".sha256"
        with socket.socket(socket.AF_UNIX) as server:
            for make in (lambda: os.mkfifo(beside), lambda: os.symlink("/dev/zero", beside),
                         lambda: os.mkdir(beside), lambda: server.bind(beside)):
                make()
                done = run("info", self.trace)
                os.rmdir(beside) if os.path.isdir(beside) else os.remove(beside)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, expected, ""))
