# SPDX-License-Identifier: Apache-2.0
"""Bad files give a sentence that names cause and remedy, the documented exit code, and no output file."""
import fcntl
import os
import random
import shutil
import socket
import subprocess

from support import CliTest, SPOIL, main, run


class BadTrace(CliTest):
    def bytes_of_trace(self):
        with open(self.trace, "rb") as file:
            return bytearray(file.read())

    def spoiled(self, how, good=None):
        path = os.path.join(self.folder, how + ".h5")
        shutil.copy(good or self.trace, path)
        subprocess.run([SPOIL, path, how], check=True)
        return path

    def refused(self, path, *words):
        for command in (["info", path], ["replay", path, "-m", "exact"]):
            self.fails(2, os.path.basename(path), *words, args=command)

    def test_missing_file(self):
        self.refused(os.path.join(self.folder, "nowhere.h5"), "no such file")

    def test_folder(self):
        self.refused(self.folder)

    def test_not_hdf5(self):
        path = os.path.join(self.folder, "text.h5")
        with open(path, "w") as file:
            file.write("no trace, but long enough to be one\n" * 100)
        self.refused(path, "HDF5")

    def test_empty_file(self):
        path = os.path.join(self.folder, "empty.h5")
        open(path, "w").close()
        self.refused(path)

    def test_truncated(self):
        path = os.path.join(self.folder, "short.h5")
        with open(self.trace, "rb") as good, open(path, "wb") as bad:
            bad.write(good.read()[: os.path.getsize(self.trace) // 2])
        self.refused(path)

    def test_corrupt(self):
        path = os.path.join(self.folder, "corrupt.h5")
        data = self.bytes_of_trace()
        data[8:600] = os.urandom(592)
        with open(path, "wb") as file:
            file.write(data)
        self.refused(path)

    def test_raw_results(self):
        noise = random.Random(1)
        raw = os.path.join(self.folder, "raw.h5")
        self.assertEqual(run("replay", self.trace, "-m", "sink", "--raw", raw, "--raw-outputs").returncode, 0)
        with open(raw, "rb") as file:
            data = file.read()
        path = os.path.join(self.folder, "bad.h5")
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
            done = run("info", self.trace, env={**os.environ, "HDF5_USE_FILE_LOCKING": "FALSE"})
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_wrong_schema(self):
        self.refused(self.spoiled("newer-schema"), "2.0")
        self.refused(self.spoiled("not-a-trace"), "kvbench_trace")

    def test_shapes_and_emptiness(self):
        self.refused(self.spoiled("wrong-shape"), "values")
        self.refused(self.spoiled("no-keys"), "keys")
        self.refused(self.spoiled("no-heads"), "num_kv_heads")
        self.refused(self.spoiled("wrong-heads"), "num_query_heads")
        self.refused(self.spoiled("no-queries"))
        self.refused(self.spoiled("no-prompts"), "prompt")

    def test_nan(self):
        path = os.path.join(self.folder, "nan.h5")
        data = self.bytes_of_trace()
        middle = len(data) // 2 // 4096 * 4096
        for offset in range(middle, middle + 4096, 4):
            data[offset:offset + 4] = b"\x00\x00\xc0\x7f"
        with open(path, "wb") as file:
            file.write(data)
        self.fails(2, "nan.h5", "must be finite", "/prompts/0/layers/", args=["replay", path, "-m", "exact,snapkv"])

    def test_logits_that_overflow(self):
        path = self.spoiled("huge-logits", self.synth("huge.h5", "--column-sums", "false"))
        words = ("huge-logits.h5: /prompts/0/layers/0: query head ", ": the logit of the query at position",
                 "inf in fp32")
        self.fails(2, *words, args=["replay", path, "-m", "all"])
        self.fails(2, *words, args=["validate", path, "--claim", "subgen.lemma1"])
        sweep = os.path.join(self.folder, "s.toml")
        with open(sweep, "w") as file:
            file.write('[[run]]\ntraces = "huge-logits.h5"\nmethods = "sink"\n')
        self.fails(2, *words, args=["sweep", sweep])
        os.remove(sweep)


class SpecialFiles(CliTest):
    """Inputs that are no regular files are refused at once: a pipe without a writer blocks for ever, and /dev/zero does
    not end."""

    def test_pipes_devices_and_folders(self):
        pipe, folder = os.path.join(self.folder, "pipe"), os.path.join(self.folder, "folder")
        os.mkfifo(pipe)
        os.mkdir(folder)
        out = os.path.join(self.folder, "o.html")
        commands = (lambda file: ["sweep", file, "--dry-run"], lambda file: ["report", file, "-o", out],
                    lambda file: ["compare", file], lambda file: ["merge", file],
                    lambda file: ["replay", self.trace, "-m", "chelsea", "--set", "chelsea.outliers=" + file])
        for command in commands:
            for file, word in ((pipe, "is a pipe"), ("/dev/zero", "a device"), (folder, "is a folder")):
                with self.subTest(command=command(file)[0], file=file):
                    self.fails(2, file, word, args=command(file))
        os.remove(pipe)
        os.rmdir(folder)
        self.only_files("t.h5")

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

    def test_deep_toml(self):
        path = os.path.join(self.folder, "deep.toml")
        for text in ("a" + ".a" * 15000 + " = 1\n", "a = " + "[" * 30000, "[a" + ".a" * 15000 + "]\n"):
            with open(path, "w") as file:
                file.write(text)
            self.fails(2, "deep.toml:1:", "more than 16", args=["sweep", path, "--dry-run"])
        os.remove(path)


main()
