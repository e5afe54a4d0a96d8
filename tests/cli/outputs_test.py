# SPDX-License-Identifier: Apache-2.0
"""Outputs replace nothing but the file meant: no device, no link, no input, no file of another sweep; bad ones give a
sentence and the documented exit code."""
import os
import resource
import signal
import stat
import subprocess
import threading
import time
import unittest

from support import LLVM_OPENMP, KVBENCH, CliTest, SweepTest, rows, run

SWEEP = '[[run]]\nname = "a"\ntraces = "t.h5"\nmethods = ["uniform"]\nbudgets = ["25%"]\nseeds = 2\n'
LONG = SWEEP.replace("seeds = 2", "seeds = 200").replace('["25%"]', '["10%", "20%", "30%"]')


class Outputs(SweepTest):
    def identity(self, path):
        return os.stat(path).st_ino, self.read_bytes(path)

    def replay(self, *args):
        return run("replay", self.trace, "-m", "uniform", "--seeds", 1, *args)

    def test_device(self):
        """A node like /dev/null takes the table and stays a device; HDF5 files, which need random access, are
        refused."""
        null = self.path("null")
        try:
            os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            null = "/dev/null"
        self.assertEqual(self.replay("-o", null).returncode, 0)
        for args in (["replay", self.trace, "-m", "uniform", "--raw", null], ["synth", "-o", null]):
            self.fails(3, null, "a device", "name a regular file", args=args)
        config = self.write(SWEEP)
        self.ok("sweep", config, "-o", null)
        self.fails(2, null, args=["sweep", config, "--overwrite", "--cells", null, "-o", self.path("o.csv")])
        self.assertTrue(stat.S_ISCHR(os.stat(null).st_mode))

    def test_standard_output_as_a_file(self):
        """-o /dev/stdout appends to the file to which standard output is redirected, and leaves the link."""
        with open(self.path("f"), "w") as file:
            file.write("before\n")
            file.flush()
            done = subprocess.run([KVBENCH, "replay", self.trace, "-m", "uniform", "-o", "/dev/stdout", "--no-times"],
                                  stdout=file)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(os.path.islink("/dev/stdout"))
        with open(self.path("f")) as file:
            self.assertEqual(file.readline(), "before\n")
            self.assertEqual(file.read(), run("replay", self.trace, "-m", "uniform", "--no-times").stdout)

    def test_pipe(self):
        os.mkfifo(self.path("pipe"))
        read = []

        def reader():
            with open(self.path("pipe")) as pipe:
                read.append(pipe.read())
        thread = threading.Thread(target=reader)
        thread.start()
        self.assertEqual(self.replay("-o", self.path("pipe")).returncode, 0)
        thread.join()
        self.assertEqual(len(rows(read[0])), len(rows(self.replay().stdout)))
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("pipe")).st_mode))

    def test_link_and_mode(self):
        self.write("old\n", "real.csv")
        os.chmod(self.path("real.csv"), 0o640)
        os.symlink("real.csv", self.path("link.csv"))
        self.assertEqual(self.replay("-o", self.path("link.csv")).returncode, 0)
        self.assertTrue(os.path.islink(self.path("link.csv")))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("real.csv")).st_mode), 0o640)
        self.assertGreater(len(rows(self.read("real.csv"))), 1)

    def test_onto_an_open_file_that_is_read(self):
        table = self.path("t.csv")
        self.assertEqual(self.replay("-o", table).returncode, 0)
        before = [self.identity(path) for path in (table, self.trace)]
        for path, args in ((self.trace, ["replay", self.trace, "-m", "uniform", "-o"]),
                           (table, ["report", table, "--format", "md", "-o"]),
                           (self.trace, ["validate", self.trace, "--claim", "chelsea", "-o"])):
            with open(path, "r+b") as opened, self.subTest(args=" ".join(args)):
                named = f"/dev/fd/{opened.fileno()}"
                self.fails(2, "name another file", args=[*args, named], pass_fds=[opened.fileno()])
                done = subprocess.run([KVBENCH, *args, "-"], stdout=opened, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 2, done.stderr)
        for args in (["info", self.trace], ["info", self.trace, "--format", "csv"]):
            with open(self.trace, "ab") as opened, self.subTest(args=args):
                done = subprocess.run([KVBENCH, *args], stdout=opened, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual([self.identity(path) for path in (table, self.trace)], before)

    def test_write_protected(self):
        self.write("old\n", "o.csv")
        os.chmod(self.path("o.csv"), 0o444)
        if os.access(self.path("o.csv"), os.W_OK):
            self.skipTest("root may write to every file")
        self.fails(3, "o.csv", "chmod +w", args=["replay", self.trace, "-m", "uniform", "-o", self.path("o.csv")])

    def test_outputs_are_opened_before_the_computation(self):
        """With a trace whose replay takes minutes, each output that cannot be written ends the run at once."""
        slow = ["replay", self.trace, "-m", "all", "--seeds", 200, "-b", "5%,10%,20%,30%,40%", "--device", "ref"]
        begin = time.monotonic()
        self.fails(3, "missing/r.h5", "create the folder first", args=[*slow, "--raw", self.path("missing/r.h5")])
        self.fails(3, "missing/o.csv", "create the folder first", args=[*slow, "-o", self.path("missing/o.csv")])
        self.assertLess(time.monotonic() - begin, 10)

    def test_overwrite_respects_a_running_sweep(self):
        """--overwrite takes neither the cells file of a running sweep nor a file that holds no cells."""
        config, cells = self.write(LONG), self.path("o.csv.cells")
        sweep = ["sweep", config, "--device", "ref", "-o", self.path("o.csv"), "--threads", "1"]
        first = subprocess.Popen([KVBENCH, *sweep], stderr=subprocess.DEVNULL)
        try:
            deadline = time.time() + 60
            while not os.path.exists(cells) or os.path.getsize(cells) == 0:
                self.assertLess(time.time(), deadline)
                self.assertIsNone(first.poll(), "the sweep ended before another one could be started")
                time.sleep(0.02)
            self.fails(2, "another run is writing this file", args=[*sweep, "--overwrite"])
            self.assertTrue(os.path.exists(cells))
        finally:
            first.send_signal(signal.SIGKILL)
            first.wait()
        self.fails(2, "--resume", args=["sweep", config, "-o", self.path("o.csv")])

    def test_temporary_files_of_killed_runs_are_removed_by_the_next_run(self):
        slow = [KVBENCH, "replay", self.trace, "-m", "all", "--seeds", "200", "-b", "5%,10%,20%,30%,40%", "--device",
                "ref"]
        killed = subprocess.Popen([*slow, "-o", self.path("o.csv"), "--raw", self.path("r.h5")])
        deadline = time.time() + 60
        while sum(".tmp." in name for name in os.listdir(self.folder)) < 2:
            self.assertLess(time.time(), deadline)
            time.sleep(0.02)
        killed.kill()
        killed.wait()
        self.assertEqual(self.replay("-o", self.path("o.csv"), "--raw", self.path("r.h5")).returncode, 0)
        self.only_files("o.csv", "r.h5", "t.h5")


class BadOutput(CliTest):
    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([KVBENCH, "replay", self.trace, "-m", "exact"], stdout=full, stderr=subprocess.PIPE,
                                  text=True)
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_closed_and_full_streams(self):
        """No command aborts, or ends as a success whose message nobody could read."""
        table = self.path("o.csv")
        sweep = self.write('[[run]]\nname = "a"\ntraces = "t.h5"\nmethods = ["sink"]\n')
        self.ok("replay", self.trace, "-m", "sink", "-o", table)
        commands = [["--version"], ["--help"], ["info", self.trace], ["methods"], ["replay", self.trace, "-m", "sink"],
                    ["sweep", sweep], ["merge", "--help"], ["cache", "--help"],
                    ["validate", self.trace, "--claim", "subgen.lemma2"], ["nonsense"], ["replay", "nowhere.h5"]]
        for command in commands:
            for redirections in ("1>&-", "2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"):
                with self.subTest(command=command, redirections=redirections):
                    closed = subprocess.run(["sh", "-c", f'exec "$@" {redirections}', "sh", KVBENCH, *command],
                                            capture_output=True, text=True)
                    self.assertEqual(closed.returncode, 3, closed.stderr)
            with open("/dev/full", "w") as full, self.subTest(command=command):
                wrong = command[0] in ("nonsense", "replay") and len(command) < 4
                self.assertEqual(subprocess.run([KVBENCH, *command], stdout=full, stderr=full).returncode, 3)
                silent = subprocess.run([KVBENCH, *command], stdout=subprocess.DEVNULL, stderr=full)
                self.assertEqual(silent.returncode, 3 if wrong else 0)
        with open("/dev/full", "w") as full:
            cells = ["sweep", sweep, "--cells", self.path("c"), "-o", self.path("p.csv")]
            self.ok(*cells)
            resumed = subprocess.run([KVBENCH, *cells, "--resume"], stderr=full)
        self.assertEqual(resumed.returncode, 3)

    @unittest.skipIf(os.environ.get("KVBENCH_SANITIZE") == "thread",
                     "the limit also holds for the runtime of ThreadSanitizer")
    @unittest.skipIf(LLVM_OPENMP, "the limit also holds for the shared memory of LLVM's OpenMP")
    def test_file_size_limit(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        out = self.path("o.csv")
        self.fails(3, "o.csv", args=["replay", self.trace, "-m", "exact", "-o", out], preexec_fn=limit)
        self.fails(3, "o.h5", args=["synth", "-o", self.path("o.h5"), "--tokens", 64, "--prompt-tokens",
                                    48, "--queries", 24], preexec_fn=limit)
        self.only_files("t.h5")
