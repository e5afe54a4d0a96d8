# SPDX-License-Identifier: Apache-2.0
"""Compares kvbench with the sweep of sweep.py: results, times, peak memory.

    python bench/torch/against.py build/release/kvbench [TRACE.h5] [--threads 1 2] [--rounds 2] [--only METHOD,...]

This script does not import torch, because Linux counts the memory of a process as part of the peak memory of the
programs that it starts.
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

BUDGETS = (256, 512, 1024, 2048, 4096)
CHECK_SEEDS = 5
SETTINGS = {"balancekv": "[half=smaller]"}  # those of the counterparts in samples.py, where they are not the defaults
SHAPE = "--tokens 33024 --prompt-tokens 32768 --queries 384 --layers 1 --head-dim 128 --value-dim 128"


def replay(kvbench, trace, methods, threads, output, seeds=1, budgets=BUDGETS):
    """Runs the sweep in kvbench; returns wall seconds, CPU seconds and peak memory in KiB."""
    budgets = ",".join(map(str, budgets))
    named = [name + SETTINGS.get(name, "") for name in methods]
    command = [kvbench, "replay", trace, "-m", ",".join(named), "--budget", budgets, "--protocol", "prefill"]
    command += ["--seeds", str(seeds), "--threads", str(threads), "--rows", "trace", "--quiet", "-o", output]
    return measured(command)


def measured(command, **options):
    start = time.perf_counter()
    process = subprocess.Popen(command, **options)
    text = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # so that Popen does not wait for it again
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
    seconds = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
    return (*seconds, usage.ru_maxrss, text) if process.stdout else (*seconds, usage.ru_maxrss)


def check(kvbench, trace, means, tolerances):
    """Prints errors and recalls of both programs. Returns 1 if one differs by more than its tolerance, else 0."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "sweep.csv")
        replay(kvbench, trace, list(tolerances), 1, output, CHECK_SEEDS)
        with open(output, newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["seed"] in ("", "all")]
    failed = 0
    heads = f"{'method':15s} {'budget':>6s} {'error':>10s} {'kvbench':>10s} {'differs':>8s}"
    print(heads, f"{'recall':>7s} {'kvbench':>7s}  tolerance")
    for row in rows:
        name, budget = row["method"], int(row["budget"])
        error, recall = means[name, budget]
        theirs = float(row["rel_err_mean"])
        off = max(error / theirs, theirs / error) - 1
        their_recall = float(row["recall_mean"]) if row["recall_mean"] else None
        bad = off > tolerances[name] or (recall is None) != (their_recall is None)
        if recall is not None and their_recall is not None:
            bad |= abs(recall - their_recall) > tolerances[name] * max(their_recall, 0.02)
        failed |= bad
        shown = " ".join(f"{'' if x is None else f'{x:.4f}':>7s}" for x in (recall, their_recall))
        print(f"{name:15s} {budget:6d} {error:10.3e} {theirs:10.3e} {off:8.1e} {shown} ", end="")
        print(f"{tolerances[name]:g}{'   FAILED' if bad else ''}")
    return int(failed)


def pytorch(trace, only, threads):
    sweep = pathlib.Path(__file__).with_name("sweep.py")
    command = [sys.executable, sweep, trace, "--threads", str(threads), "--json"]
    command += ["--only", only] if only else []
    return json.loads(measured(command, stdout=subprocess.PIPE, text=True)[3])


def main():
    """Prints one table per number of threads. Without a trace the number of heads is that of the threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kvbench")
    parser.add_argument("trace", nargs="?", help="default: a trace of `kvbench synth`")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", help="methods, separated by commas")
    options = parser.parse_args()
    kvbench = os.path.abspath(options.kvbench)
    with tempfile.TemporaryDirectory() as folder:
        for threads in options.threads:
            path = options.trace or os.path.join(folder, f"{threads}.h5")
            if not options.trace:
                heads = f"--query-heads {threads} --kv-heads {threads}"
                subprocess.run([kvbench, "synth", "-o", path, *SHAPE.split(), *heads.split()], check=True)
            table(kvbench, path, options.only, threads, options.rounds, os.path.join(folder, "sweep.csv"))


def table(kvbench, trace, only, threads, rounds, output):
    """Prints the table for one number of threads; each figure is the minimum over the rounds.

    The time of a method in kvbench is that of a process with this method alone minus that of a process with `sink` at
    the largest budget, which covers reading, the exact pass and the ranking for recall. There is no ratio where less
    than 20 ms remain. The total is the time of one process with all methods. PyTorch is timed inside one process,
    without the start of Python and the import of torch."""
    ours, theirs = {}, {}
    total, their_total, peak, their_peak, loaded = (9e9, 9e9), (9e9, 9e9), 0, 0, 0

    def least(a, b):
        return tuple(map(min, a, b))

    for _ in range(rounds):
        result = pytorch(trace, only, threads)
        methods = [name for name in result["seconds"] if name != "exact"]
        wall, cpu, kib = replay(kvbench, trace, methods, threads, output)
        total, peak = least(total, (wall, cpu)), max(peak, kib)
        for name, seconds in result["seconds"].items():
            theirs[name] = least(theirs.get(name, seconds), seconds)
        their_total = least(their_total, map(sum, zip(*result["seconds"].values())))
        their_peak, loaded = max(their_peak, result["peak_kib"]), result["loaded_kib"]
        for name in ("exact", *methods):
            cell = {"budgets": BUDGETS[-1:]} if name == "exact" else {}
            seconds = replay(kvbench, trace, ["sink" if cell else name], threads, output, **cell)[:2]
            ours[name] = least(ours.get(name, seconds), seconds)
    print(f"wall-clock and CPU seconds, threads: {threads}, minimum of {rounds} interleaved rounds")
    print(f"{'':15s} {'kvbench':>9s} {'CPU':>9s} {'PyTorch':>9s} {'CPU':>9s} {'ratio':>7s} {'CPU':>7s}")
    for name, (wall, cpu) in theirs.items():
        base = ours["exact"] if name != "exact" else (0, 0)
        own = [max(0.0, x - y) for x, y in zip(ours[name], base)]
        line(name, own, (wall, cpu))
    line("all", total, their_total)
    ours, theirs, loaded = (kib / 1024 for kib in (peak, their_peak, loaded))
    print(f"peak memory: kvbench {ours:.0f} MiB, PyTorch {theirs:.0f} MiB ({loaded:.0f} of them after import)", end="")
    print(f": {theirs / ours:.1f} x", flush=True)


def line(name, ours, theirs):
    ratios = " ".join(f"{b / a:7.1f}" if a > 0.02 else f"{'-':>7s}" for a, b in zip(ours, theirs))
    print(f"{name:15s} {ours[0]:9.3f} {ours[1]:9.3f} {theirs[0]:9.3f} {theirs[1]:9.3f} {ratios}")


if __name__ == "__main__":
    main()
