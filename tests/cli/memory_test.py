# SPDX-License-Identifier: Apache-2.0
"""Memory grows with the heads that are computed at the same time, not with the trace, and --memory bounds it."""
import os
import re
import resource
import shutil
import signal
import subprocess
import unittest

from support import LLVM_OPENMP, KVBENCH, SPOIL, CliTest, rows, run

MIB = 1 << 20


def resident(*args):
    """Runs kvbench; returns (exit code, resident maximum in bytes)."""
    process = subprocess.Popen([KVBENCH, *map(str, args)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss * 1024


def limited(mib, *args):
    """Runs kvbench with this much address space."""
    return run(*args, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (mib * MIB, mib * MIB)))


class Memory(CliTest):
    @unittest.skipIf(os.environ.get("KVBENCH_SANITIZE"), "a sanitizer's own memory would count as the program's")
    def test_a_trace_is_written_and_replayed_head_by_head(self):
        # 12 heads of 49152 tokens and 64 + 64 dimensions take 12 MiB each on disk, 24 MiB in fp32, and 288 MiB in
        # total.
        long = self.path("long.h5")
        code, bytes_held = resident("synth", "-o", long, "--tokens", 49152, "--prompt-tokens", 49148, "--queries",
                                    8, "--layers", 3, "--query-heads", 4, "--kv-heads", 4, "--dtype", "f16",
                                    "--column-sums", "false")
        self.assertEqual(code, 0)
        self.assertLess(bytes_held, 64 * MIB)  # memory for a block of rows, not for a head
        for method in ("sink", "chelsea", "balancekv", "subgen-kcenter"):
            code, bytes_held = resident("replay", long, "-m", method, "-b", 256, "--seeds", 1, "--threads", 1, "-q")
            self.assertEqual(code, 0)
            # two heads, copies by a method, and freed memory that the program keeps
            self.assertLess(bytes_held, 192 * MIB, method)

    @unittest.skipIf(os.environ.get("KVBENCH_SANITIZE"), "a sanitizer's own memory would count as the program's")
    def test_a_chunk_that_inflates_to_more_than_its_size_takes_no_memory(self):
        bomb = self.path("bomb.h5")
        shutil.copy(self.trace, bomb)
        subprocess.run([SPOIL, bomb, "bomb"], check=True)  # 256 MiB
        code, bytes_held = resident("replay", bomb, "-m", "sink", "--threads", 1, "-q")
        self.assertEqual(code, 3)
        self.assertLess(bytes_held, 128 * MIB)
        self.fails(3, "bomb.h5: /prompts/0/layers/0/keys: the chunk at [0, 0, 0] is damaged",
                   args=("replay", bomb, "-m", "sink"))

    @unittest.skipIf(os.environ.get("KVBENCH_SANITIZE"), "a sanitizer's own memory would count as the program's")
    def test_quantisers_stay_within_what_a_head_needs(self):
        long = self.path("quantised.h5")
        self.ok("synth", "-o", long, "--tokens", 262208, "--prompt-tokens", 262144, "--queries", 128, "--layers", 1,
                "--query-heads", 1, "--kv-heads", 1, "--head-dim", 64, "--value-dim", 64, "--dtype", "f16",
                "--column-queries", 8)
        for method, budget in (("kivi4", "100%mem"), ("qjl", "100%mem"), ("snapkv+kivi4", "25%mem")):
            with self.subTest(method=method):
                flags = ("replay", long, "-m", method, "-b", budget, "--protocol", "prefill", "--threads", 1, "-q")
                needed = float(re.search(r"needs up to ([\d.]+) GiB", run(*flags, "--memory", "100M").stderr)[1])
                code, bytes_held = resident(*flags)
                self.assertEqual(code, 0)
                self.assertLess(bytes_held, needed * 1024 * MIB)

    def test_fewer_threads_run_where_memory_is_short_and_the_rows_stay_the_same(self):
        flags = ("replay", self.trace, "-m", "sink,subgen", "--no-times", "--threads", 4)
        free, short = run(*flags), run(*flags, "--memory", "400M")
        self.assertEqual((free.returncode, free.stderr), (0, ""))
        self.assertEqual(short.returncode, 0)
        self.assertIn("1 of 4 threads run", short.stderr)
        self.assertIn("--memory allows 0.4 GiB", short.stderr)
        self.assertEqual(rows(short.stdout), rows(free.stdout))
        self.assertEqual(run(*flags, "--memory", "400M", "-q").stderr, "")

    @unittest.skipIf(os.environ.get("KVBENCH_SANITIZE"), "a sanitizer reserves terabytes of addresses")
    @unittest.skipIf(LLVM_OPENMP, "LLVM's OpenMP aborts where it cannot start a thread")
    def test_short_addresses_are_an_error_of_the_machine(self):
        sweep, table = self.path("s.toml"), self.path("r.csv")
        self.write(f'[[run]]\ntraces = "{self.trace}"\nmethods = ["sink"]\n', sweep)
        commands = [("info", self.trace),
                    ("replay", self.trace, "-m", "sink,subgen", "--threads", 4, "-q", "-o", table),
                    ("sweep", sweep, "--threads", 4, "-q"), ("report", table, "-o", table + ".html"),
                    ("validate", self.trace, "--claim", "subgen.size", "--seeds", 20, "--threads", 4, "-q"),
                    ("synth", "-o", self.path("other.h5"), "--tokens", 4096, "--query-heads", 2,
                     "--kv-heads", 1)]
        self.ok(*commands[1])
        refused = 0
        for mib in (*range(20, 60, 4), 60, 80, 100, 150, 200, 300, 500):
            if limited(mib, "--version").returncode in (127, -signal.SIGSEGV):
                continue  # no room for the shared libraries, or for what they set up before main()
            for args in commands:
                done = limited(mib, *args)
                self.assertIn(done.returncode, (0, 3), (mib, args, done.stderr))
                if done.returncode == 3:
                    refused += 1
                    self.assertRegex(done.stderr, "memory", (mib, args))
        self.assertGreater(refused, 0)
