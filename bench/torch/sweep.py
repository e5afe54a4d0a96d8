# SPDX-License-Identifier: Apache-2.0
"""A whole sweep in PyTorch, as a researcher would write it. against.py compares it with kvbench.

    python bench/torch/sweep.py TRACE.h5 [--threads 2] [--only METHOD,...] [--budgets 128,256,512]   PyTorch alone
    python bench/torch/sweep.py TRACE.h5 --check build/release/kvbench               its results beside those of kvbench

The sweep runs the methods of the papers at five budgets on each kv head of the trace, in protocol prefill with one
seed, and computes mean relative error and recall over the queries. mesh (infeasible at this length) and pyramidkv
(equal to snapkv with one layer) are left out. Parameters are the defaults of kvbench, and the work is the same
(iterations, clusters, centres, blocks). The code is vectorised and uses no extensions. All methods share one exact pass
and one ranking; budgets share rounds of halving and of merging, page and token rankings, and clusterings.

Random numbers differ from those of kvbench, their distributions do not. --check allows deterministic methods a relative
difference of 1e-3 where only the order of sums differs, and of 2e-2 where near ties change later steps. For the other
methods, means over five seeds may differ by 20 %: the error of a seed is the length of one random vector of 128
channels and spreads by 1/sqrt(2 * 128) = 6 %, so that two means over five seeds differ by 4 % (one standard deviation).
subgen, a quotient, spreads by 8 %; cam, whose merges cascade, spreads by 25 % and may differ by 60 %. These limits are
those of synthetic keys: on real ones the errors of single draws are far apart, above all those of subgen.
"""
import argparse
import json
import resource
import sys
import time

import torch

import against
import merges
import recalls
import samples
import subsets
from head import Exact, read_heads

ROUNDING, CASCADE, SEED = 1e-3, 2e-2, 0.2  # relative differences, explained above
METHODS = {
    "sink": (subsets.sink, ROUNDING),
    "h2o": (subsets.h2o, ROUNDING),
    "h2o-global": (subsets.h2o_global, ROUNDING),
    "snapkv": (subsets.snapkv, ROUNDING),
    "uniform": (subsets.uniform, SEED),
    "uniform-repo": (subsets.uniform_repo, SEED),
    "subgen": (samples.subgen, SEED),
    "subgen-kcenter": (subsets.subgen_kcenter, CASCADE),
    "balancekv": (samples.balancekv, SEED),
    "balancekv-repo": (samples.balancekv_repo, SEED),
    "clusterkv": (recalls.clusterkv, SEED),
    "clusterkv-repo": (recalls.clusterkv_repo, SEED),
    "quest": (recalls.quest, ROUNDING),
    "infinigen": (recalls.infinigen, ROUNDING),
    "chelsea": (merges.chelsea, CASCADE),
    "bsm": (merges.bsm, CASCADE),
    "kmeans": (merges.kmeans, CASCADE),
    "cam": (subsets.cam, 3 * SEED),
}


def clock():
    return time.perf_counter(), time.process_time()


def run(trace, methods, budgets, seeds=1):
    """Returns results {method: {budget: [(error, recall) per head]}} and {method: [wall, CPU] seconds}. The seconds of
    "exact" cover reading and the exact pass."""
    results = {name: {b: [] for b in budgets} for name in methods}
    seconds = {name: [0.0, 0.0] for name in ("exact", *methods)}

    def add(name, since):
        seconds[name] = [total + now - then for total, now, then in zip(seconds[name], clock(), since)]
        return clock()

    since = clock()
    for head in read_heads(trace):
        exact = Exact(head, max(budgets))
        since = add("exact", since)
        for name in methods:
            method, tolerance = METHODS[name]
            for _ in range(seeds if tolerance >= SEED else 1):
                for budget, result in method(head, exact, budgets).items():
                    results[name][budget].append(result)
            since = add(name, since)
    return results, seconds


def mean(values):
    return None if None in values else sum(values) / len(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budgets", type=against.numbers, default=against.BUDGETS)
    parser.add_argument("--only", default=",".join(METHODS), help="methods, separated by commas")
    parser.add_argument("--check", metavar="KVBENCH", help="compare the results with those of this program")
    parser.add_argument("--json", action="store_true", help="print the times as JSON")
    options = parser.parse_args()
    methods = options.only.split(",")
    if unknown := set(methods) - set(METHODS):
        parser.error(f"--only: unknown method {', '.join(sorted(unknown))}; the methods are {', '.join(METHODS)}")
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results, seconds = run(options.trace, methods, options.budgets,
                           against.CHECK_SEEDS if options.check else 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if options.json:
        print(json.dumps({"seconds": seconds, "peak_kib": peak, "loaded_kib": loaded}))
        return 0
    means = {(m, b): [mean(column) for column in zip(*heads)] for m, of in results.items() for b, heads in of.items()}
    if options.check:
        tolerances = {name: METHODS[name][1] for name in methods}
        return against.check(options.check, options.trace, means, tolerances, options.budgets)
    print(f"{'seconds':15s} {'clock':>8s} {'CPU':>8s}   error at", " ".join(f"{b:9d}" for b in options.budgets))
    for name, (wall, cpu) in seconds.items():
        errors = " ".join(f"{means[name, b][0]:9.3e}" for b in options.budgets) if name in results else ""
        print(f"{name:15s} {wall:8.3f} {cpu:8.3f}            {errors}")
    wall, cpu = (sum(column) for column in zip(*seconds.values()))
    print(f"{'all':15s} {wall:8.3f} {cpu:8.3f}   threads: {torch.get_num_threads()}")
    print(f"peak memory {peak / 1024:.0f} MiB, {loaded / 1024:.0f} of them before the trace was read")
    return 0


if __name__ == "__main__":
    sys.exit(main())
