#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What methods in Python cost: snapkv and h2o in NumPy and PyTorch (numpy_methods.py, torch_methods.py) against the
built-in ones, which keep the same tokens. Needs `pip install .`.

    python bench/bridge/measure.py traces/smollm2-135m.h5 [another.h5 ...]

For each method and budget the runs alternate, on one thread; the shortest of each counts, in processor time. `own` is
what the functions of the method take; `bridge` is what the row takes beside them, divided by the built-in row with its
arithmetic."""
import argparse
import importlib.util
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import kvbench  # noqa: E402
import numpy_methods  # noqa: E402

BUDGETS = ("25%mem", "256")
FIGURES = ("budget_tokens", "kept_tokens", "rel_err_mean", "rel_err_p99", "total_bytes", "mass_mean")


class Timed:
    """A module of methods whose functions add up the time that they take."""

    def __init__(self, module):
        self.seconds, self.module = 0.0, module
        for name in ("__init__", "append", "entries", "observe", "footprint"):
            setattr(module.H2OCache, name, self._timed(getattr(module.H2OCache, name)))
        module.snapkv.function = self._timed(module.snapkv.function)

    def _timed(self, function):
        def timed(*arguments, **named):
            begin = time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds += time.thread_time() - begin
        timed.__wrapped__ = function  # its parameters stay known
        return timed

    def methods(self):
        return {"snapkv": self.module.snapkv, "h2o": self.module.H2O}


def replay(trace, method, budget):
    begin = time.process_time()
    rows = kvbench.replay(trace, method, budget, rows="layer", threads=1, quiet=True)
    return time.process_time() - begin, rows


def columns(rows):
    return [[row.get(name) for name in FIGURES] for row in rows]


def compare(trace, name, budget, timed, repeats):
    """The shortest times of the built-in row, the row in Python and the method's own functions; equal figures."""
    best, same = [float("inf")] * 3, True
    for _ in range(repeats):
        built_in, expected = replay(trace, name, budget)
        timed.seconds = 0.0
        own, rows = replay(trace, timed.methods()[name], budget)
        same &= columns(rows) == columns(expected)
        best = [min(best[0], built_in), *min((best[1], best[2]), (own, timed.seconds))]
    return best, same


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("traces", nargs="+")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    modules = {"NumPy": Timed(numpy_methods)}
    if importlib.util.find_spec("torch"):
        import torch_methods
        modules["PyTorch"] = Timed(torch_methods)
    print("| trace | method | budget | written in | built-in | Python | own | bridge | same figures |")
    print("|---|---|---|---|---|---|---|---|---|")
    for trace in options.traces:
        replay(trace, "sink", "256")  # what is loaded at first use
        for library, timed in modules.items():
            for name in timed.methods():
                for budget in BUDGETS:
                    (built_in, row, own), same = compare(trace, name, budget, timed, options.repeats)
                    print(f"| {os.path.basename(trace)} | {name} | {budget} | {library} | {built_in:.2f} s | "
                          f"{row:.2f} s | {own:.2f} s | {(row - own) / built_in:.2f} | {'yes' if same else 'NO'} |",
                          flush=True)


if __name__ == "__main__":
    main()
