#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans the sweep of a large model on paper: what a trace weighs, what dumping and replaying it costs, what a subset of heads gives up.

    bench/plan_sweep.py [--tokens N] [...]            print the tables; docs/planning.md holds those of the defaults
    bench/plan_sweep.py --check docs/planning.md      fail where that page holds other tables;  --renew PAGE writes them into it

Times of methods come from the table over n in bench/SCALING.md (one core, d = 128, 64 queries, one query head, a budget of 1024), scaled by the
exponents fitted there; the rest is arithmetic on the options (defaults: Llama-3.1-70B at 1M tokens). Needs Python's standard library alone.
"""
import argparse
import dataclasses
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GIB, HOUR = 2.0**30, 3600.0
MEASURED = dict(n=1048576, m=64, budget=1024)   # of the table in SCALING.md
# `kvbench methods NAME`: pairs of rows that a head compares at n tokens and a budget of b, max_pairs, and the first in words.
PAIRS = {
    "clusterkv": (lambda n, b: 300 * n * n / 80, 2.0**38, "iterations x n x n / 80, at most 300 iterations"),
    "clusterkv-repo": (lambda n, b: 20 * n * 400, 2.0**37, "20 iterations x n x 400"),
    "subgen": (lambda n, b: 10 * n * b, 2.0**37, "10 n m', m' below B"),
    "subgen-kcenter": (lambda n, b: n * b, 2.0**33, "n k, k below B"),
    "kmeans": (lambda n, b: 10 * n * b, 2.0**37, "10 iterations x n x B"),
    "bsm": (lambda n, b: n * n / 4, 2.0**37, "n^2 / 4"),
    "mesh": (lambda n, b: n * n, 2.0**37, "n^2"),
}
SEEDED = {"cam", "uniform", "uniform-repo", "subgen", "balancekv", "balancekv-repo", "clusterkv", "clusterkv-repo", "random"}
PREPARED_ONCE = {"exact", "oracle-topk", "h2o", "h2o-global", "snapkv", "pyramidkv", "quest", "infinigen", "clusterkv", "clusterkv-repo"}
GROWS_WITH_BUDGET = {"kmeans", "subgen-kcenter", "subgen"}   # compression: O(i n B d), O(n k d), O(p n m' d)
LEFT_OUT = {"exact"}   # checking n entries for every query takes longer than all else, and it is the noise floor
WITHOUT_RECALL = {"cam", "subgen", "chelsea", "kmeans", "bsm", "mesh"}   # 7 values a query of a query head instead of 9
CELL, VALUE, IN_MEMORY = 350, 4, 72   # bytes: of a cell without its values, of a value in a cells file, of all values of a query in the merge


@dataclasses.dataclass
class Method:
    """A row of SCALING.md: exponents, and seconds at the largest length measured."""
    name: str
    compress_exponent: float
    query_exponent: float
    stated: str
    largest: int
    compress: float
    query: float


def read_methods(path):
    """The table of time over n."""
    section = path.read_text().split("## n = ")[1].split("\n## ")[0]
    methods = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 11 and cells[8].isdigit():
            exponents = [float(stated if fitted == "-" else fitted) for fitted, stated in ((cells[1], cells[3]), (cells[5], cells[6]))]
            methods.append(Method(cells[0], *exponents, cells[4], int(cells[8]), float(cells[9]), float(cells[10])))
    if len(methods) < 20:
        sys.exit(f"bench/plan_sweep.py: {path} has no table of all methods over n")
    return methods


def infeasible(method, o):
    """The budgets that are not run: this method refuses them at this length, or is left out."""
    if method.name in LEFT_OUT:
        return o.budgets
    if method.name not in PAIRS:
        return []
    pairs, limit, _ = PAIRS[method.name]
    return [b for b in o.budgets if pairs(o.tokens, b) > limit]


def seconds_of_head(method, o):
    """Of one core for one kv head with its query heads, all queries, feasible budgets and seeds, shared work counted once a budget: from above."""
    budgets = [b for b in o.budgets if b not in infeasible(method, o)]
    if not budgets:
        return 0.0, 0.0
    group = o.query_heads / o.kv_heads
    relative, seeds = sum(b / MEASURED["budget"] for b in budgets), o.seeds if method.name in SEEDED else 1
    grown = o.tokens / method.largest
    compress = method.compress * grown**method.compress_exponent * seeds
    if method.stated.startswith("O(G"):
        compress *= group
    if method.name not in PREPARED_ONCE:
        compress *= relative if method.name in GROWS_WITH_BUDGET else len(budgets)
    query = method.query * grown**method.query_exponent * seeds * group * o.queries / MEASURED["m"]
    query *= relative if method.query < 0.01 else len(budgets)   # fixed sets grow with the budget, scans do not
    return compress, query


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]) + "\n"


def size(value):
    """Bytes in the largest binary unit."""
    power = min(4, int(math.log2(max(value, 1)) // 10))
    return f"{value / 1024**power:.4g} {['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}"


def trace_bytes(o):
    """Of one layer: name -> bytes."""
    n, m, d = o.tokens, o.queries, o.head_dim
    return {"keys": o.kv_heads * n * d * o.element, "values": o.kv_heads * n * d * o.element, "queries": o.query_heads * m * d * o.element,
            "column sums": o.query_heads * n * 4}


def trace_table(o):
    formulas = ["kv heads x n x d x bytes"] * 2 + ["query heads x m x d x bytes", "query heads x n x 4", ""]
    parts = {**trace_bytes(o), "together": sum(trace_bytes(o).values())}
    rows = [(name, formula, size(b), size(b * o.layers), size(b * o.layers * o.prompts)) for (name, b), formula in zip(parts.items(), formulas)]
    return table(["array", "bytes", "a layer", f"{o.layers} layers", f"{o.prompts} prompts"], rows)


def dump_table(o):
    n = o.tokens
    linear, attention = 2 * o.parameters * n, 4 * n**2 * o.head_dim * o.query_heads * o.layers / 2
    sums, flops = attention / 2, linear + attention
    gpu_hours, sums_hours = (x / (o.gpu_flops * o.gpu_share) / HOUR for x in (flops, sums))
    cache, weights = 2 * o.layers * o.kv_heads * o.head_dim * o.element, 2 * o.parameters
    whole = weights + cache * n
    one = weights / o.layers + 2 * trace_bytes(o)["keys"] + 2 * n * o.hidden * 2
    file = sum(trace_bytes(o).values()) * o.layers
    gpus = math.ceil(whole * 1.1 / o.gpu_memory)
    return table(["dumping one prompt", "from", "result"], [
        ("linear layers", f"2 x {o.parameters:.3g} x n", f"{linear:.3g} flop"),
        ("attention", "4 n^2 d x query heads x layers / 2", f"{attention:.3g} flop"),
        ("together", f"at {o.gpu_flops * o.gpu_share / 1e12:.0f} TFLOP/s a GPU", f"{flops:.3g} flop, {gpu_hours:.2f} GPU hours"),
        ("exact column sums, more", "the logits once more: half of attention", f"{sums:.3g} flop, {sums_hours:.2f} GPU hours"),
        (f"{o.prompts} prompts with column sums", f"at ${o.gpu_price:g} a GPU hour: assumed",
         f"${o.prompts * (gpu_hours + sums_hours) * o.gpu_price:.0f}"),
        ("memory, all layers at once", f"weights {size(weights)} + {size(cache)} a token",
         f"{size(whole)}: {gpus} GPUs of {size(o.gpu_memory)}, a tenth for buffers"),
        ("memory, a layer after the other", "its weights, keys, values, and states of all tokens in and out", f"{size(one)}: 1 GPU"),
        ("writing", f"{size(file)} while {gpus} GPUs compute", f"{file / (gpu_hours * HOUR / gpus) / 1e9:.2f} GB/s"),
    ])


def method_table(o, methods):
    rows, total = [], [0.0, 0.0]
    for method in methods:
        compress, query = seconds_of_head(method, o)
        refused = infeasible(method, o)
        why = "left out" if method.name in LEFT_OUT else "infeasible"
        note = "" if not refused else why if len(refused) == len(o.budgets) else f"{why} at " + ", ".join(map(str, refused))
        times = ("-", "-") if note == why else (f"{compress:.1f}", f"{query:.1f}")
        rows.append((method.name, o.seeds if method.name in SEEDED else 1, *times, note))
        total[0] += compress
        total[1] += query
    rows.append(("all", "", f"{total[0]:.0f}", f"{total[1]:.0f}", ""))
    return table(["method", "seeds", "compress s", "answer s", "at this length"], rows), sum(total)


def limits_table(o, methods):
    rows, largest = [], max(o.budgets)
    for method in methods:
        if method.name not in PAIRS:
            continue
        pairs, limit, words = PAIRS[method.name]
        raised = "" if pairs(o.tokens, largest) <= limit else f"{method.compress * (o.tokens / method.largest)**method.compress_exponent:.0f} s"
        rows.append((method.name, words, f"{pairs(o.tokens, largest):.3g}", f"{limit:.3g}", raised))
    return table(["method", "pairs", f"here, B = {largest}", "max_pairs", "a compression, were it raised"], rows)


def exact_flops(o):
    return 4 * o.query_heads / o.kv_heads * o.queries * o.tokens * o.head_dim


def head_seconds(o, method_seconds, cells):
    """What a head costs one core: exact pass, methods, and what surrounds them."""
    return exact_flops(o) / o.core_flops + o.around + method_seconds + cells * o.each_cell


def cells_of(method, o):
    return (o.seeds if method.name in SEEDED else 1) * (len(o.budgets) - len(infeasible(method, o)))


def cells_bytes(o, methods):
    """Of one head: cells, bytes in its cells file, bytes that the merge holds at a time, which is one method's."""
    rows = o.query_heads / o.kv_heads * o.queries
    kept = sum(cells_of(x, o) * (CELL + rows * VALUE * (7 if x.name in WITHOUT_RECALL else 9)) for x in methods)
    return sum(cells_of(x, o) for x in methods), kept, max(cells_of(x, o) for x in methods) * rows * IN_MEMORY


def replay_table(o, methods, method_seconds):
    cells, kept, merging = cells_bytes(o, methods)
    seconds = head_seconds(o, method_seconds, cells)
    slab = sum(trace_bytes(o).values()) / o.kv_heads
    digest = lambda layers: sum(trace_bytes(o).values()) * layers * o.prompts / o.digest_rate / 60
    plans = [("everything", o.layers, o.kv_heads, o.prompts), *((f"{layers} layers x {heads} heads", layers, heads, o.prompts)
                                                                 for layers, heads in o.subsets)]
    rows = []
    for name, layers, heads, prompts in plans:
        units = layers * heads * prompts
        hours = units * seconds / HOUR
        files = sum(trace_bytes(o).values()) * layers * prompts
        money = hours * o.core_price + files / 1e9 * o.disk_price
        rows.append((name, units, units * cells, size(files), size(units * kept), f"{hours:,.0f}", f"{hours / o.cores / o.nodes:.1f}",
                     f"{digest(layers):.0f}", size(units * merging), f"{money:,.0f}"))
    text = table(["what", "units", "cells", "traces", "cells files", "core hours", f"hours on {o.nodes} nodes of {o.cores} cores",
                  "minutes of digests, a task", "memory of the merge", "$"], rows)
    facts = table(["one kv head", "from", "result"], [
        ("exact pass", "4 x query heads of it x m x n x d", f"{exact_flops(o):.3g} flop, {exact_flops(o) / o.core_flops:.1f} s of a core"),
        ("methods", "the table above", f"{method_seconds:.0f} s"),
        ("cells", "methods x budgets x seeds", f"{cells}, {size(kept)}"),
        ("together", f"and {o.around:g} s around the exact pass, {o.each_cell:g} s a cell for checks, errors and recall", f"{seconds:.0f} s"),
        ("read", "keys, values, queries, column sums", size(slab)),
        ("reading, a node of which all cores compute", f"{o.cores} x that / {seconds:.0f} s", f"{o.cores * slab / seconds / 1e9:.2f} GB/s"),
        ("memory, a thread", "stated by kvbench (below)", size(o.thread_memory)),
        ("memory, a node", f"{o.cores} threads, and a third more", size(o.cores * o.thread_memory * 4 / 3)),
    ])
    return facts, text


def spread_table(o):
    """Relative standard error and 95 % half-width of a mean over all layers and heads that was taken over some, drawn at random."""
    rows = []
    for layers, heads in [(o.layers, o.kv_heads), *o.subsets]:
        variance = o.sd_layers**2 / layers * (1 - layers / o.layers) + o.sd_heads**2 / (layers * heads) * (1 - heads / o.kv_heads)
        queries = o.half_width * math.sqrt(o.half_width_queries / o.queries)
        rows.append((f"{layers} x {heads}", layers * heads, f"{100 * math.sqrt(variance):.0f} %", f"{196 * math.sqrt(variance):.0f} %",
                     f"{100 * queries:.1f} %", f"{100 * queries / math.sqrt(o.prompts):.1f} %"))
    return table(["layers x kv heads", "units a prompt", "standard error", "95 %, +-", "of the queries, 1 prompt, +-",
                  f"{o.prompts} prompts, +-"], rows)


def report(o):
    """Name -> table."""
    methods = read_methods(o.scaling)
    by_method, seconds = method_table(o, methods)
    facts, plans = replay_table(o, methods, seconds)
    return {"trace": trace_table(o), "dump": dump_table(o), "methods": by_method, "limits": limits_table(o, methods), "head": facts,
            "sweep": plans, "spread": spread_table(o)}


def renewed(page, tables):
    """The page with every table between its markers."""
    for name, content in tables.items():
        page, count = re.subn(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", lambda m: m[1] + content + m[2], page, flags=re.S)
        if count != 1:
            sys.exit(f"bench/plan_sweep.py: the page has {count} places for the table '{name}', not one")
    return page


def options():
    numbers = lambda text: [int(part) for part in text.split(",")]
    pairs = lambda text: [tuple(int(x) for x in part.split("x")) for part in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = lambda name, kind, default, text: parser.add_argument("--" + name, type=kind, default=default, help=text + " (default: %(default)s)")
    add("layers", int, 80, "of the model")
    add("query-heads", int, 64, "")
    add("kv-heads", int, 8, "")
    add("head-dim", int, 128, "d, of keys and of values")
    add("hidden", int, 8192, "width of the residual stream")
    add("parameters", float, 70e9, "")
    add("tokens", int, 1 << 20, "n, of a prompt")
    add("queries", int, 256, "m, recorded of each query head")
    add("prompts", int, 5, "")
    add("element", int, 2, "bytes of an element of the trace")
    add("budgets", numbers, [1024, 2048, 4096, 8192], "tokens")
    add("seeds", int, 5, "of seeded methods")
    add("subsets", pairs, [(40, 1), (20, 2), (10, 4), (10, 8), (20, 8)], "layers x kv heads to compare")
    add("core-flops", float, 21e9, "of the exact pass on one core at this length (docs/planning.md)")
    add("around", float, 18, "seconds of a head beside exact pass and methods (docs/planning.md)")
    add("thread-memory", float, 1.87 * GIB, "bytes, of a head in flight")
    add("digest-rate", float, 1.79e9, "bytes a second of SHA-256 on one core (openssl speed)")
    add("each-cell", float, 1.5, "seconds of a cell beside the method itself: checks of entries, errors, recall (docs/planning.md)")
    add("cores", int, 64, "of a node")
    add("nodes", int, 8, "")
    add("gpu-flops", float, 989e12, "peak in bf16")
    add("gpu-share", float, 0.4, "of the peak that a prefill reaches: assumed")
    add("gpu-memory", float, 80e9, "bytes")
    add("gpu-price", float, 3, "$ an hour: assumed")
    add("core-price", float, 0.05, "$ a core hour: assumed")
    add("disk-price", float, 0.10, "$ a GB and month: assumed")
    add("sd-layers", float, 0.45, "standard deviation of layers' mean rel_err over its mean")
    add("sd-heads", float, 0.67, "the same of heads within a layer")
    add("half-width", float, 0.04, "of the 95 %% interval over the mean, over queries")
    add("half-width-queries", int, 256, "queries behind it")
    add("scaling", pathlib.Path, ROOT / "bench/SCALING.md", "measured times")
    parser.add_argument("--check", type=pathlib.Path, metavar="PAGE")
    parser.add_argument("--renew", type=pathlib.Path, metavar="PAGE")
    return parser.parse_args()


def main():
    o = options()
    tables, page = report(o), o.renew or o.check
    if not page:
        print("\n".join(tables.values()), end="")
    elif (text := renewed(page.read_text(), tables)) != page.read_text():
        if o.check:
            sys.exit(f"{page}: its tables are out of date; run bench/plan_sweep.py --renew {page}")
        page.write_text(text)


main()
