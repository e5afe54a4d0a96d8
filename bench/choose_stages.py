#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people wait for in kvbench-choose: a line on stderr for each program that it runs, with the seconds since the
start, and the wall and processor seconds that it took; at the end those of the command itself, which loads PyTorch.

    PYTHONPATH=python bench/choose_stages.py --model MODEL --text FILE... -o FOLDER [flags of kvbench-choose]

Processor seconds are those of all threads. With --threads 1 they depend little on what else runs: threads of PyTorch
wait actively for each other."""
import os
import resource
import sys
import time
from unittest import mock

from kvbench.choosing import command, run


def seconds_of(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def seconds_of_process(process):
    """Those of a child that has not ended; 0 of one that has, or of none."""
    try:
        with open(f"/proc/{process.pid}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
    except (AttributeError, OSError):
        return 0.0
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def spent(runs):
    """Processor seconds of the children so far."""
    return seconds_of(resource.RUSAGE_CHILDREN) + seconds_of_process(runs._child)


def timed(own):
    def timed_run(runs, words):
        wall, before = time.monotonic(), spent(runs)
        try:
            return own(runs, words)
        finally:
            made = words[words.index("-o") + 1] if "-o" in words else ""
            print(f"{time.monotonic() - runs.started:7.1f} s: {os.path.basename(words[0])} took "
                  f"{time.monotonic() - wall:.1f} s, {spent(runs) - before:.1f} s of processor time: {made}",
                  file=sys.stderr, flush=True)
    return timed_run


if __name__ == "__main__":
    with mock.patch.object(run.Run, "_run", timed(run.Run._run)):
        code = command.main()
    print(f"the command itself: {seconds_of(resource.RUSAGE_SELF):.1f} s of processor time", file=sys.stderr)
    sys.exit(code)
