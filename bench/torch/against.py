# SPDX-License-Identifier: Apache-2.0
"""Compares kvbench with the sweep of sweep.py on synthetic and on real keys: results, times, peak memory.

    python bench/torch/against.py build/release/kvbench [--isa avx2] [--real TRACE.h5] [--layers 1,8,15,28]
      [--data synthetic real] [--threads 1 2] [--rounds 2] [--only METHOD,...]

Synthetic keys are Gaussian: one head per thread, 32768 tokens, d = 128, without principal axes or groups. Real keys are
those of a trace of kvdump, of all kv heads of its layers, or of those given; the bundled trace is the small form. The
published figures are those of a book at the length of the model's training:

    kvdump "$KVBENCH_MODEL" --text book.txt --ctx 8192 -o real.h5

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

import isa

BUDGETS = (256, 512, 1024, 2048, 4096)
CHECK_SEEDS = 5
# Those of the counterparts in PyTorch, where they are not the defaults.
SETTINGS = {"balancekv": "[half=smaller]", "sink": "[reposition=false]"}
BUNDLED = pathlib.Path(__file__).parents[2] / "traces" / "smollm2-135m.h5"
SHAPE = "--tokens 33024 --prompt-tokens 32768 --queries 384 --layers 1 --head-dim 128 --value-dim 128"


def numbers(text):
    return [int(word) for word in text.split(",")]


def budgets_of(tokens):
    """Five budgets from 1/128 of the context on, each twice the one before. They have at least 128 tokens, with which
    every method can work, and at most half of the context."""
    least = max(tokens // 128, 128)
    return [least << i for i in range(5) if least << i <= tokens // 2]


def replay(kvbench, trace, methods, threads, output, budgets, seeds=1):
    """Runs the sweep in kvbench, a command with its flags; returns wall seconds, CPU seconds and peak memory in KiB."""
    budgets = ",".join(map(str, budgets))
    named = [name + SETTINGS.get(name, "") for name in methods]
    command = [kvbench[0], "replay", trace, *kvbench[1:], "-m", ",".join(named), "--budget", budgets]
    command += ["--protocol", "prefill"]
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


def check(kvbench, trace, means, tolerances, budgets):
    """Prints errors and recalls of both programs. Returns 1 if one differs by more than its tolerance, else 0."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "sweep.csv")
        replay([kvbench], trace, list(tolerances), 1, output, budgets, CHECK_SEEDS)
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


def pytorch(trace, only, threads, budgets, limit):
    sweep = pathlib.Path(__file__).with_name("sweep.py")
    command = [sys.executable, sweep, trace, "--threads", str(threads), "--json"]
    command += ["--budgets", ",".join(map(str, budgets))] + (["--only", only] if only else [])
    return json.loads(measured(command, stdout=subprocess.PIPE, text=True, env=isa.environment(limit))[3])


def synthetic(options, threads, folder):
    """A trace with one head per thread, and how to call it."""
    path = os.path.join(folder, f"{threads}.h5")
    heads = f"--query-heads {threads} --kv-heads {threads}"
    subprocess.run([options.kvbench, "synth", "-o", path, *SHAPE.split(), *heads.split()], check=True)
    return path, f"synthetic keys ({threads} head{'s' if threads > 1 else ''})"


def real(options, threads, folder):
    path = os.path.join(folder, "real.h5")
    script = pathlib.Path(__file__).with_name("real.py")
    layers = ["--layers", options.layers] if options.layers else []
    subprocess.run([sys.executable, script, options.real, path, *layers], check=True)
    return path, f"real keys ({pathlib.Path(options.real).name}, all kv heads of layers {options.layers or 'recorded'})"


def context_of(kvbench, trace):
    """Tokens of the context of a trace."""
    info = subprocess.run([kvbench, "info", trace, "--format", "json"], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(info.stdout)[0]["prompt_tokens"]


def main():
    """Prints one table for each kind of keys and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kvbench")
    parser.add_argument("--real", default=str(BUNDLED), help="a trace of kvdump (default: the bundled one)")
    parser.add_argument("--layers", help="layers of it, separated by commas (default: those it holds)")
    parser.add_argument("--data", nargs="+", choices=("synthetic", "real"), default=["synthetic", "real"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", help="methods, separated by commas")
    isa.add_flag(parser)
    options = parser.parse_args()
    options.kvbench = os.path.abspath(options.kvbench)
    print(f"{isa.described(options.isa)}; {' '.join(sys.argv[1:])}")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.data:
            for threads in options.threads:
                trace, title = {"synthetic": synthetic, "real": real}[name](options, threads, folder)
                table(options, trace, title, threads, os.path.join(folder, "sweep.csv"))


def table(options, trace, title, threads, output):
    """Prints the table of one trace for one number of threads; each figure is the minimum over the rounds.

    The time of a method in kvbench is that of a process with this method alone minus that of a process with `sink` at
    the largest budget, which covers reading, the exact pass and the ranking for recall. There is no ratio where less
    than 20 ms remain. The total is the time of one process with all methods. PyTorch is timed inside one process,
    without the start of Python and the import of torch."""
    kvbench, budgets = [options.kvbench, *isa.flags(options.isa)], budgets_of(context_of(options.kvbench, trace))
    ours, theirs = {}, {}
    total, their_total, peak, their_peak, loaded = (9e9, 9e9), (9e9, 9e9), 0, 0, 0

    def least(a, b):
        return tuple(map(min, a, b))

    for _ in range(options.rounds):
        result = pytorch(trace, options.only, threads, budgets, options.isa)
        methods = [name for name in result["seconds"] if name != "exact"]
        wall, cpu, kib = replay(kvbench, trace, methods, threads, output, budgets)
        total, peak = least(total, (wall, cpu)), max(peak, kib)
        for name, seconds in result["seconds"].items():
            theirs[name] = least(theirs.get(name, seconds), seconds)
        their_total = least(their_total, map(sum, zip(*result["seconds"].values())))
        their_peak, loaded = max(their_peak, result["peak_kib"]), result["loaded_kib"]
        for name in ("exact", *methods):
            least_work = name == "exact"
            seconds = replay(kvbench, trace, ["sink" if least_work else name], threads, output,
                             budgets[-1:] if least_work else budgets)[:2]
            ours[name] = least(ours.get(name, seconds), seconds)
    print(f"{title}, budgets {', '.join(map(str, budgets))}")
    print(f"wall-clock and CPU seconds, threads: {threads}, minimum of {options.rounds} interleaved rounds")
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
