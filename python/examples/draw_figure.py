#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the figure of a paper from results of kvbench replay or kvbench sweep: error against budget with 95 %
intervals, and recall.

    python draw_figure.py result.csv [more.csv ...] [figure.png figure.svg figure.pdf] [--methods sink,quest,...]
                          [--cost fraction|bytes]

The budget axis shows what was used: the share of the context's tokens that was kept, or the share of the full cache's
bytes. The script prints the numbers behind every point. Its parts are marked with # %%, so that an editor can run them
one by one. It needs matplotlib: pip install './python[figure]'."""

# %% Options
import argparse
import math
import os
import sys
import textwrap

import kvbench

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("files", nargs="+", help="CSV files of kvbench replay or kvbench sweep, and the files to write, "
                    "whose ending selects the format (png, svg, pdf); default: figure.png")
parser.add_argument("--methods", help="comma-separated list; default: all methods with an error")
parser.add_argument("--cost", choices=("fraction", "bytes"), default="fraction",
                    help="unit of the budget axis; default: fraction of tokens kept")
parser.add_argument("--layer", default="all", help="number of a layer; default: all, the mean over layers")
parser.add_argument("--prompt", help="prompt; default: all, the mean over prompts")
parser.add_argument("--title", help="text above the figure")
options = parser.parse_args()
results = [name for name in options.files if name.endswith(".csv")]
figures = [name for name in options.files if not name.endswith(".csv")] or ["figure.png"]
if not results:
    parser.error("name at least one file that ends in .csv.")
for name in filter(os.path.exists, figures):
    if any(os.path.samefile(name, result) for result in filter(os.path.exists, results)):
        parser.error(f"{name} is one of the CSV files; choose another name for the figure.")

try:
    import matplotlib
except ImportError:
    sys.exit("draw_figure.py: matplotlib is missing; install it with pip install './python[figure]'.")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# %% The points of each method, and the numbers behind them
COST = {"fraction": "kept_fraction", "bytes": "byte_fraction"}[options.cost]
X_LABEL = {"fraction": "tokens kept / tokens of the context",
           "bytes": "bytes kept / bytes of the full cache"}[options.cost]


def number(value):
    """A float, or None where the column does not apply."""
    return None if value is None or isinstance(value, str) or math.isnan(value) else float(value)


def cost_of(row):
    """The cost of a row, as a share of the tokens or bytes of the full cache."""
    if options.cost == "fraction":
        return number(row["kept_fraction"])
    used, full = number(row["total_bytes"]), number(row["full_bytes"])
    return used / full if used and full else None


def points_of(rows):
    """{(method, params): [(x, error, low, high, recall)], sorted by x} of the rows with an error. Prints the rows
    without one."""
    points = {}
    prompts = {row["prompt"] for row in rows}
    prompt = options.prompt or ("all" if "all" in prompts else min(prompts))
    for row in rows:
        whole = (str(row["layer"]) == options.layer and row.get("kv_head") in ("all", None) and
                 row.get("head") in ("all", None))
        if not whole or row["prompt"] != prompt or row["method"] == "exact":
            continue
        x, error = cost_of(row), number(row["rel_err_mean"])
        if row["status"] != "ok" or not x or not error:
            print(f"left out: {row['method']} at {row['budget']}: {row['status']}, {row['reason']}")
            continue
        low, high = number(row["rel_err_lo"]) or error, number(row["rel_err_hi"]) or error
        # missing where all parameters have their defaults
        params = row["params"] if isinstance(row["params"], str) else ""
        points.setdefault((row["method"], params), []).append((x, error, low, high, number(row["recall_mean"])))
    return {key: sorted(points[key]) for key in sorted(points)}


curves = {(method, params, path): points for path in results
          for (method, params), points in points_of(kvbench.load_csv(path)).items()}
if options.methods:
    wanted = options.methods.split(",")
    known = {method for method, _, _ in curves}
    missing = set(wanted) - known
    if missing:
        sys.exit(f"draw_figure.py: {', '.join(results)}: there is no error of {', '.join(sorted(missing))}; there is "
                 f"{', '.join(sorted(known))}.")
    curves = {key: curves[key] for name in wanted for key in curves if key[0] == name}
if not curves:
    sys.exit(f"draw_figure.py: {', '.join(results)}: there is no row of layer {options.layer} with an error to show.")


def names_of(curves):
    """The name of each method, with its parameters where a method occurs with several, and its file where several files
    hold it."""
    names = {}
    for method, params, path in curves:
        others = [key for key in curves if key[0] == method]
        name = f"{method} ({params})" if params and len({key[1] for key in others}) > 1 else method
        several = len({key[2] for key in others}) > 1
        names[method, params, path] = f"{name}, {os.path.basename(path)}" if several else name
    return names


names = names_of(curves)
print(f"{'method':28} {COST:>14} {'rel_err':>9}   95 % interval       recall")
for key, points in curves.items():
    for x, error, low, high, recall in points:
        print(f"{names[key][:28]:28} {x:14.4f} {error:9.4f}   {low:8.4f} .. {high:<8.4f} "
              f"{'-' if recall is None else format(recall, '6.3f')}")

# %% The figure Okabe and Ito's colours are distinguishable with any colour vision. They repeat with hollow markers and
# dashes, so that all lines differ.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS, DASHES = "osD^vPX", ("-", "--", ":", "-.")
STYLES = {key: {"color": COLOURS[i % 7], "marker": MARKERS[(i + i // 7) % 7], "linestyle": DASHES[i // 7 % 4],
                "markersize": 4, "markerfacecolor": "white" if i // 7 % 2 else COLOURS[i % 7], "linewidth": 1.3}
          for i, key in enumerate(curves)}
plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "kvbench",
                     "pdf.fonttype": 42})


def draw_errors(axes):
    for key, points in curves.items():
        x, error, low, high, _ = zip(*points)
        axes.errorbar(x, error, yerr=([max(0.0, e - a) for e, a in zip(error, low)],
                                      [max(0.0, b - e) for e, b in zip(error, high)]), capsize=2, elinewidth=0.8,
                      label=names[key], **STYLES[key])
    axes.set(xscale="log", yscale="log", xlabel=X_LABEL, ylabel="relative error  |z - z*| / |z*|")


def draw_recalls(axes):
    for key, points in curves.items():
        known = [(x, recall) for x, _, _, _, recall in points if recall is not None]
        if known:
            axes.plot(*zip(*known), **STYLES[key])
    axes.set(xscale="log", ylim=(0, 1.03), xlabel=X_LABEL, ylabel="recall of the top tokens")


def plain_ticks(axis):
    """Labels 0.05, 0.1, 0.2, ...: budgets span one or two decades, where powers of ten alone would give too few
    labels."""
    axis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axis.set_minor_formatter(matplotlib.ticker.NullFormatter())


figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.9 + 0.16 * math.ceil(len(curves) / 5)), layout="constrained")
draw_errors(left)
draw_recalls(right)
for axis in (left.xaxis, left.yaxis, right.xaxis):
    plain_ticks(axis)
for axes in (left, right):
    axes.grid(alpha=0.25, linewidth=0.5)
figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=min(5, len(curves)), frameon=False)
if options.title:
    figure.suptitle("\n".join(textwrap.wrap(options.title, 130)), fontsize=7)
for name in figures:
    figure.savefig(name, dpi=200)
    print(f"wrote {name}")
