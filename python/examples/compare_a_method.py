#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a stateful method of your own with ten built-in methods at equal bytes: one figure, and one sentence per
budget that says which differences are significant.

    python compare_a_method.py trace.h5 [--kvbench build/release/kvbench] [--figure figure.png]

The method is the class KeyDiff, which sees the context block by block and then every decoded token. Change the class to
compare your own method. The trace needs decoded tokens (--prompt-tokens of kvdump). The figure needs matplotlib: pip
install './python[figure]'."""
import argparse
import csv
import os
import subprocess
import sys
import tempfile

import kvbench
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("trace")
parser.add_argument("--kvbench", default="kvbench", help="the program")
parser.add_argument("--figure", default="figure.png",
                    help="file to draw; the ending selects the format (png, svg, pdf)")
parser.add_argument("--prompt", help="prompt to replay; default: all prompts of the trace")
parser.add_argument("--layers", default="", help="layers to replay, such as 4,15; default: all layers of the trace")
options = parser.parse_args()
if all(map(os.path.exists, (options.figure, options.trace))) and os.path.samefile(options.figure, options.trace):
    parser.error(f"--figure {options.figure} is the trace; choose another name for the figure.")

# share of the bytes of the full cache that a method may hold
BUDGETS = {"12.5%mem": 0.125, "25%mem": 0.25, "50%mem": 0.5}
BASELINES = "random,sink,uniform,snapkv,pyramidkv,h2o,cam,balancekv,chelsea,kmeans"
NAME = "file:keydiff.h5"
BLOCK = 128  # tokens of the context per step


class KeyDiff:
    """Keeps the keys that are least similar to the mean of all keys seen so far (KeyDiff, arXiv 2504.15364), and the
    most recent ones."""

    RECENT = 32

    def __init__(self, head_dim, most):
        self.most = most  # tokens held at any time
        self.ids, self.units = np.empty(0, int), np.empty((0, head_dim))
        self.sum = np.zeros(head_dim)  # of the normalised keys of all tokens seen

    def append(self, first, keys):
        """Takes the keys of the tokens first, first + 1, ..., and evicts tokens as far as necessary."""
        units = keys / np.linalg.norm(keys, axis=1, keepdims=True)
        self.sum += units.sum(0)
        self.ids = np.append(self.ids, np.arange(first, first + len(keys)))
        self.units = np.concatenate([self.units, units])
        similarity = self.units @ self.sum
        similarity[-min(self.RECENT, self.most):] = -np.inf
        kept = np.sort(np.argsort(similarity, kind="stable")[:self.most])
        self.ids, self.units = self.ids[kept], self.units[kept]


def entries(layer, kv_head, share, positions):
    """The tokens that the method holds when it answers the queries at these positions, as a Table that declares them
    and its state."""
    trace, context = layer.prompt.trace, layer.prompt.prompt_tokens
    token_bytes, state_bytes = 2 * (trace.head_dim + trace.value_dim), 4 * trace.head_dim  # the sum is held in f32
    most = int((share * token_bytes * (positions[-1] + 1) - state_bytes) / token_bytes)
    keys = layer.keys(kv_head)
    method = KeyDiff(trace.head_dim, most)
    for first in range(0, context, BLOCK):
        method.append(first, keys[first:min(first + BLOCK, context)])
    rows = {}
    for position in range(context, positions[-1] + 1):
        method.append(position, keys[position:position + 1])
        rows[position] = method.ids
    ids = np.full((len(positions), most), -1)
    for row, position in zip(ids, positions):
        row[:len(rows[position])] = rows[position]
    return kvbench.Table(ids=ids, per_query=True, held=ids, meta_bytes=state_bytes)


def write_prompt(out, prompt):
    if prompt.prompt_tokens == prompt.num_tokens:
        sys.exit(f"compare_a_method.py: {options.trace} has no decoded tokens; dump it with --prompt-tokens.")
    for index, layer in prompt.layers.items():
        if options.layers and str(index) not in options.layers.split(","):
            continue
        positions = layer.query_positions[layer.query_positions >= prompt.prompt_tokens]
        for kv_head in range(prompt.trace.num_kv_heads):
            for budget, share in BUDGETS.items():
                out.head(layer, kv_head, entries(layer, kv_head, share, positions), positions=positions,
                         budget=budget)


def write(prompts, path):
    """Writes one file with the entries at all budgets."""
    with kvbench.KeptWriter(path) as out:
        for prompt in prompts:
            write_prompt(out, prompt)


def load(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def statement(budget, comparisons, rows):
    """One sentence: from which methods the own one differs significantly at this budget, and how much of the full cache
    they hold."""
    held = [float(row["total_bytes"]) / float(row["full_bytes"])
            for row in rows if row["budget"] == budget and row["status"] == "ok"]
    tested = [row for row in comparisons if row["budget_a"] == budget and row["verdict"] != "skipped"]
    if not tested:
        return f"At {budget} nothing can be compared: {rows[0]['reason']}."
    parts = []
    for verdict, words in (("a better", "better than"), ("b better", "worse than"),
                           ("not distinguishable", "not distinguishable from"), ("not tested", "not tested against")):
        found = [row for row in tested if row["verdict"] == verdict]
        errors = ", ".join(f"{row['b']} {float(row['mean_b']):.3g}" for row in found)
        if found:
            limit = f"; p <= {max(float(row['p_adjusted']) for row in found):.3f}" if verdict.endswith("better") else ""
            parts.append(f"{words} {len(found)} ({errors}{limit})")
    shares = list(dict.fromkeys(f"{100 * share:.1f}" for share in (min(held), max(held))))
    return (f"At {budget}, where the methods hold {' to '.join(shares)} % of the full cache, {NAME} (mean relative "
            f"error {float(tested[0]['mean_a']):.3g}) is, of {len(tested)} methods, {', '.join(parts)}.")


def run(folder, *command):
    done = subprocess.run(command, cwd=folder)
    if done.returncode not in (0, 1):  # 1: a method cannot keep to one of the budgets
        sys.exit(done.returncode)


program = os.path.abspath(options.kvbench) if os.path.exists(options.kvbench) else options.kvbench
trace_path, figure_path = os.path.abspath(options.trace), os.path.abspath(options.figure)
draw_figure = os.path.join(os.path.dirname(os.path.abspath(__file__)), "draw_figure.py")
with tempfile.TemporaryDirectory() as folder:
    with kvbench.Trace(trace_path) as trace:
        prompts = [options.prompt] if options.prompt else list(trace.prompts)
        write([trace.prompts[prompt] for prompt in prompts], os.path.join(folder, "keydiff.h5"))
    part = ["--prompts", ",".join(prompts), *(["--layers", options.layers] if options.layers else [])]
    run(folder, program, "replay", trace_path, "--method", f"{NAME},{BASELINES}", *part, "--rows", "trace", "--raw",
        "raw.h5", "-o", "result.csv", "-q")
    run(folder, program, "compare", "raw.h5", "--a", NAME, "--by", "all", "-o", "compare.csv")
    comparisons, rows = load(os.path.join(folder, "compare.csv")), load(os.path.join(folder, "result.csv"))
    said = [statement(budget, comparisons, rows) for budget in BUDGETS]
    print("\n".join(said))
    subprocess.run([sys.executable, draw_figure, "result.csv", figure_path, "--cost", "bytes", "--title", said[1]],
                   cwd=folder, check=True)
