# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of answering relative to the exact pass, which all methods share, for every method at five budgets.

    python bench/one_pass.py build/release/kvbench [--isa avx2] [--rounds 3]
      [--budgets 256,512,1024,2048,4096] [--extra 3072]

Replays the standard head (32768 tokens of context, 256 queries, d = 128) in `prefill` with one seed on one thread.
Prints attend_s of each method, summed over the budgets, as a multiple of the exact pass; and the increase of this sum
with one additional budget, which is the cost of this budget. Times are processor time of the thread, the minimum over
the rounds per method.
"""
import argparse
import csv
import os
import subprocess
import tempfile

REFERENCE = ("exact", "oracle-topk", "random")  # no methods of a paper
SYNTH = ("--tokens 33024 --prompt-tokens 32768 --queries 384 --layers 1 --query-heads 1 --kv-heads 1 --head-dim 128 "
         "--value-dim 128").split()


def replay(kvbench, isa, trace, budgets, out):
    """Seconds of the exact pass, and attend_s of each method, summed over the budgets."""
    subprocess.run([kvbench, "replay", trace, "-m", "all", "--protocol", "prefill", "--threads", "1", "--seeds",
                    "1", "--rows", "trace", "--budget", budgets, "-o", out] + (["--isa", isa] if isa else []),
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sums, exact = {}, None
    with open(out, newline="") as file:
        for row in csv.DictReader(file):
            if row["status"] == "ok":
                sums[row["method"]] = sums.get(row["method"], 0) + float(row["attend_s"])
                exact = float(row["exact_s"])
    return exact, sums


def least(rounds):
    exact = min(e for e, _ in rounds)
    return exact, {m: min(sums[m] for _, sums in rounds) for m in rounds[0][1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kvbench")
    parser.add_argument("--isa", help="instruction set (default: the best of the processor)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budgets", default="256,512,1024,2048,4096")
    parser.add_argument("--extra", default="3072")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace, out = os.path.join(folder, "head.h5"), os.path.join(folder, "rows.csv")
        subprocess.run([args.kvbench, "synth", "-o", trace, *SYNTH], check=True, stdout=subprocess.DEVNULL)
        few, more = [], []
        for _ in range(args.rounds):
            few.append(replay(args.kvbench, args.isa, trace, args.budgets, out))
            more.append(replay(args.kvbench, args.isa, trace, f"{args.budgets},{args.extra}", out))
    exact, sums = least(few)
    _, with_extra = least(more)
    print(f"exact pass {1000 * exact:.1f} ms; budgets {args.budgets}; additional budget {args.extra}\n")
    print("| method | attend_s, all budgets / exact pass | additional budget |\n|---|---|---|")
    for method, seconds in sums.items():
        print(f"| {method} | {seconds / exact:.2f} | {100 * (with_extra[method] - seconds) / exact:.1f} % |")
    of_papers = [seconds for method, seconds in sums.items() if method not in REFERENCE and "+" not in method]
    print(f"\nAll methods of the papers, without compositions: {sum(of_papers) / exact:.2f} exact passes")


if __name__ == "__main__":
    main()
