#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how time and memory of every method grow with tokens, dimensions, queries and heads.

For each point of an axis a synthetic trace is written, replayed with one process per method (so that the resident
maximum is that of the method), and deleted. Exponents are least-squares slopes of log(cost) over log(axis) for the
points above the noise floor. They are printed beside those that the registry states (`kvbench methods --format csv`).
The script needs only Python's standard library.
"""
import argparse
import csv
import dataclasses
import datetime
import io
import math
import os
import subprocess
import sys
import tempfile
import threading

AXES = {  # varied quantity: the fixed values of the others
    "n": dict(m=64, d=128, heads=1),
    "d": dict(n=16384, m=64, heads=1),
    "m": dict(n=16384, d=128, heads=1),
    "heads": dict(n=16384, m=64, d=64),
}
OBSERVED = 64  # queries inside the context, the window of snapkv@kvpress


@dataclasses.dataclass
class Sample:
    """One method at one point."""
    status: str
    reason: str = ""
    compress: float = math.nan  # seconds
    query: float = math.nan     # seconds of all queries
    flops: float = math.nan     # declared flops of compression
    held: float = math.nan      # bytes that a deployment would hold for a head
    peak: float = math.nan      # bytes of buffers while compressing, in addition to keys and values of the head
    resident: float = math.nan  # maximum of the process, in bytes


def timed(command, limit):
    """Runs a command; returns (exit code, stdout, stderr, resident maximum in bytes). The exit code is None if the time
    limit was reached."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        expired = threading.Event()
        timer = threading.Timer(limit, lambda: (expired.set(), process.kill()))
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
        out.seek(0), err.seek(0)
        return None if expired.is_set() else process.returncode, out.read(), err.read(), usage.ru_maxrss * 1024


def synthesize(options, path, n, m, d, heads):
    command = [options.kvbench, "synth", "-o", path, "--pattern", options.pattern, "--tokens", n, "--prompt-tokens",
               n - m, "--queries", m + OBSERVED, "--layers", 1, "--query-heads", heads, "--kv-heads", heads,
               "--head-dim", d, "--value-dim", d, "--dtype", "f16", "--column-queries", OBSERVED]
    code, _, error, _ = timed([str(word) for word in command], 3600)
    if code != 0:
        sys.exit(f"{' '.join(map(str, command))}: {error}")


def measure(options, trace, method, kind):
    """The fastest of `--repeat` runs; a run of more than 10 s is not repeated."""
    budget = options.memory if kind == "quantisation" else str(options.budget)
    best = None
    for _ in range(options.repeat):
        code, out, error, resident = timed([options.kvbench, "replay", trace, "--method", method, "--budget", budget,
                                            "--seeds", "1", "--threads", "1", "--protocol", "prefill", "--rows",
                                            "trace", "--format", "csv", "-q"], options.limit)
        if code is None:
            return Sample("stopped", f"more than {options.limit:g} s")
        if code != 0 and not out:
            return Sample("failed", error.strip())
        row = next(csv.DictReader(io.StringIO(out)))
        if row["status"] != "ok":
            return Sample(row["status"], row["reason"])
        sample = Sample("ok", "", *(float(row[key]) for key in ("compress_s", "attend_s", "compress_flops",
                                                                "total_bytes", "peak_bytes")), resident)
        if best is not None:
            sample.compress, sample.query = min(sample.compress, best.compress), min(sample.query, best.query)
        best = sample
        if sample.compress + sample.query > 10:
            break
    return best


def exponent(points, floor):
    """The slope of log y over log x through the points with y >= floor, or None if there are fewer than two such
    points.

    >>> round(exponent([(1, 3), (2, 12), (4, 48)], 0), 6)
    2.0
    >>> round(exponent([(1, 3), (2, 3), (4, 12), (8, 48)], 10), 6)
    2.0
    >>> exponent([(1, 1), (2, 30)], 10) is None
    True
    """
    used = [(math.log(x), math.log(y)) for x, y in points if y >= floor and y > 0]
    if len(used) < 2:
        return None
    mean_x, mean_y = (sum(column) / len(used) for column in zip(*used))
    spread = sum((x - mean_x)**2 for x, _ in used)
    return sum((x - mean_x) * (y - mean_y) for x, y in used) / spread


def number(value, digits=2):
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def slope(samples, field, floor):
    return exponent([(x, getattr(s, field)) for x, s in samples if s.status == "ok"], floor)


def table(heading, rows):
    return ["| " + " | ".join(heading) + " |", "|" + " --- |" * len(heading),
            *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


def tables_n(results, stated, options):
    """Tables of the fitted and stated exponents of n, first of time, then of memory."""
    times, memory = [], []
    for method, samples in results.items():
        cost = stated[method]
        good = [(n, s) for n, s in samples if s.status == "ok"]
        if not good:
            continue
        largest, last = good[-1]
        times.append([method, number(slope(samples, "compress", options.floor)), number(slope(samples, "flops", 1e6)),
                      cost["compress_n"], cost["compress"], number(slope(samples, "query", options.floor)),
                      cost["query_n"], cost["query"], largest, number(last.compress, 3), number(last.query, 3)])
        # Arrays of less than one MiB are bookkeeping and not fitted.
        memory.append([method, number(slope(samples, "held", 1)), cost["memory_n"],
                       number(slope(samples, "peak", 2**20)), largest, number(last.held / 2**20, 2),
                       number(last.peak / 2**20, 1), number(last.resident / 2**20, 0)])
    return (table(["method", "compress: fitted", "of flops", "stated", "as stated", "query: fitted", "stated",
                   "as stated", "largest n", "compress s", "query s"], times) +
            table(["method", "held: fitted", "stated", "peak: fitted", "largest n", "held MiB", "peak MiB",
                   "resident MiB"], memory))


def table_axis(axis, points, results, options):
    """Table of the seconds at each point, compression + all queries, and of the exponents."""
    rows = []
    for method, samples in results.items():
        cells = [f"{s.compress:.3f} + {s.query:.3f}" if s.status == "ok" else s.status for _, s in samples]
        rows.append([method, *cells, number(slope(samples, "compress", options.floor)),
                     number(slope(samples, "query", options.floor))])
    return table(["method", *(f"{axis} = {point}" for point in points), "compress: fitted", "query: fitted"], rows)


def run_axis(axis, points, methods, stated, options):
    results = {method: [] for method in methods}
    for point in points:
        place = {**AXES[axis], axis: point}
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            trace = os.path.join(folder, "t.h5")
            synthesize(options, trace, **place)
            for method in methods:
                earlier = results[method]
                # A method that reached the limit at the previous point would take even longer here. A method that
                # refuses to run does so at once.
                if axis == "n" and earlier and earlier[-1][1].status == "stopped":
                    sample = earlier[-1][1]
                else:
                    sample = measure(options, trace, method, stated[method]["kind"])
                earlier.append((point, sample))
                print(f"{axis} = {point}: {method}: {sample.status} {sample.compress:.4g} s + {sample.query:.4g} s, "
                      f"{sample.resident / 2**20:.0f} MiB {sample.reason}", file=sys.stderr, flush=True)
    return results


def refusals(results):
    for method, samples in results.items():
        for point, sample in samples:
            if sample.status != "ok":
                yield f"- {method} from n = {point}: {sample.status}: {sample.reason}"
                break


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    numbers = lambda text: [int(word) for word in text.split(",") if word]
    parser.add_argument("--kvbench", default=os.path.join(here, "..", "build", "release", "kvbench"),
                        help="program to measure")
    parser.add_argument("--methods", default="", help="comma-separated list (default: all methods of the registry)")
    parser.add_argument("--n", type=numbers, default=[4096, 16384, 65536, 262144, 1048576],
                        help="numbers of tokens; empty: leave the axis out")
    parser.add_argument("--d", type=numbers, default=[64, 128, 256], help="dimensions, at 16384 tokens")
    parser.add_argument("--m", type=numbers, default=[64, 256, 1024], help="numbers of queries, at 16384 tokens")
    parser.add_argument("--heads", type=numbers, default=[1, 4, 16],
                        help="numbers of kv heads, at 16384 tokens and d = 64")
    parser.add_argument("--budget", type=int, default=1024, help="budget in tokens, at every n")
    parser.add_argument("--memory", default="60%mem",
                        help="budget of quantisers, which keep every token in fewer bits")
    parser.add_argument("--pattern", default="gaussian", help="pattern of kvbench synth")
    parser.add_argument("--floor", type=float, default=0.002,
                        help="seconds below which a time is not fitted, because it is noise")
    parser.add_argument("--repeat", type=int, default=3, help="number of runs, of which the fastest counts")
    parser.add_argument("--limit", type=float, default=900,
                        help="seconds after which a replay is stopped; larger n are then skipped")
    parser.add_argument("--folder", default=None, help="folder for the traces (the largest takes 0.55 GiB)")
    parser.add_argument("--self-test", action="store_true", help="check the arithmetic and exit")
    return parser.parse_args()


def main():
    options = parse()
    if options.self_test:
        import doctest
        sys.exit(doctest.testmod().failed > 0)
    listed = csv.DictReader(io.StringIO(timed([options.kvbench, "methods", "--format", "csv"], 60)[1]))
    stated = {row["method"]: row for row in listed}
    methods = options.methods.split(",") if options.methods else list(stated)
    unknown = [method for method in methods if method not in stated]
    if unknown:
        sys.exit(f"there is no method {', '.join(unknown)}; kvbench methods lists all of them")
    version = timed([options.kvbench, "--version"], 60)[1].strip()
    print(f"{version}, {datetime.date.today()}, one thread, budget {options.budget} tokens "
          f"({options.memory} for quantisers), pattern {options.pattern}, "
          f"the fastest of {options.repeat} runs; times below {options.floor * 1000:g} ms are not fitted.\n")
    for axis, points in (("n", options.n), ("d", options.d), ("m", options.m), ("heads", options.heads)):
        if not points:
            continue
        results = run_axis(axis, points, methods, stated, options)
        fixed = ", ".join(f"{key} = {value}" for key, value in AXES[axis].items())
        print(f"## {axis} = {', '.join(map(str, points))} ({fixed})\n")
        if axis == "n":
            print("\n".join(tables_n(results, stated, options)))
            print("\n".join(refusals(results)) + "\n")
        else:
            print("Seconds: compression + all queries.\n")
            print("\n".join(table_axis(axis, points, results, options)))


if __name__ == "__main__":
    main()
