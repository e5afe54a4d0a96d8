#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Estimates the cost of sweeping a large model: size of the traces, cost of recording and replaying them, precision of
a subset of heads.

    bench/plan_sweep.py [--tokens N] [...]            print the tables; docs/planning.md holds those of the defaults
    bench/plan_sweep.py --check docs/planning.md      fail if the page holds other tables
    bench/plan_sweep.py --renew docs/planning.md      write the tables into the page

The times of methods come from the table over n in bench/SCALING.md (one core, d = 128, 64 queries, one query head, a
budget of 1024) and are scaled by the exponents fitted there. Everything else is arithmetic on the options (defaults:
Llama-3.1-70B at 1M tokens). The script needs only Python's standard library.
"""
import argparse
import dataclasses
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GIB, HOUR = 2.0**30, 3600.0
MEASURED = dict(n=1048576, m=64, budget=1024)   # shape of the table in SCALING.md
# Per method: pairs of rows compared per head at n tokens and a budget of b, max_pairs, and the formula in words
# (`kvbench methods NAME`).
PAIRS = {
    "clusterkv": (lambda n, b: 300 * n * n / 80, 2.0**38, "iterations x n x n / 80, at most 300 iterations"),
    "clusterkv-repo": (lambda n, b: 20 * n * 400, 2.0**37, "20 iterations x n x 400"),
    "subgen": (lambda n, b: 10 * n * b, 2.0**37, "10 n m', m' below B"),
    "subgen-kcenter": (lambda n, b: n * b, 2.0**33, "n k, k below B"),
    "kmeans": (lambda n, b: 10 * n * b, 2.0**37, "10 iterations x n x B"),
    "bsm": (lambda n, b: n * n / 4, 2.0**37, "n^2 / 4"),
    "mesh": (lambda n, b: n * n, 2.0**37, "n^2"),
}
SEEDED = {"cam", "uniform", "uniform-repo", "subgen", "balancekv", "balancekv-repo", "clusterkv", "clusterkv-repo",
          "random"}
PREPARED_ONCE = {"oracle-topk", "h2o", "h2o-global", "snapkv", "snapkv@kvpress", "pyramidkv", "quest", "infinigen",
                 "clusterkv", "clusterkv-repo"}
GROWS_WITH_BUDGET = {"kmeans", "subgen-kcenter", "subgen"}   # compression: O(i n B d), O(n k d), O(p n m' d)
# Not planned: exact and quantisers, which read every token for every query and would take longer than all other methods
# together, and a ceiling that `--method all` leaves out.
READS_ALL, LEFT_OUT = "O(n (d + dv))", {"oracle-error"}
# 7 values per query and query head instead of 9
WITHOUT_RECALL = {"cam", "subgen", "chelsea", "kmeans", "bsm", "mesh"}
# Bytes of a configuration without its values and of one value in a file of cells; bytes of all values of one query
# during the merge.
CONFIGURATION, VALUE, IN_MEMORY = 350, 4, 72


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
    """Reads the table of times over n."""
    section = path.read_text().split("## n = ")[1].split("\n## ")[0]
    methods = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 11 and cells[8].isdigit() and cells[7] != READS_ALL and cells[0] not in LEFT_OUT:
            exponents = [float(stated if fitted == "-" else fitted)
                         for fitted, stated in ((cells[1], cells[3]), (cells[5], cells[6]))]
            methods.append(Method(cells[0], *exponents, cells[4], int(cells[8]), float(cells[9]), float(cells[10])))
    if len(methods) < 20:
        sys.exit(f"bench/plan_sweep.py: {path} has no table of all methods over n")
    return methods


def infeasible(method, o):
    """The budgets that are not run, because the method is infeasible at this length."""
    if method.name not in PAIRS:
        return []
    pairs, limit, _ = PAIRS[method.name]
    return [b for b in o.budgets if pairs(o.tokens, b) > limit]


def seconds_of_head(method, o):
    """Seconds of one core (compression, answering) for one kv head with its query heads, all queries, feasible budgets
    and seeds. This is an upper estimate: work that budgets share is counted once per budget."""
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
    # the cost of a fixed set grows with the budget, that of a scan does not
    query *= relative if method.query < 0.01 else len(budgets)
    return compress, query


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]) + "\n"


def size(value):
    """Bytes in the largest binary unit."""
    power = min(4, int(math.log2(max(value, 1)) // 10))
    return f"{value / 1024**power:.4g} {['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}"


def trace_bytes(o):
    """Bytes of each array of one layer, by name."""
    n, m, d = o.tokens, o.queries, o.head_dim
    return {"keys": o.kv_heads * n * d * o.element, "values": o.kv_heads * n * d * o.element,
            "queries": o.query_heads * m * d * o.element, "column sums": o.query_heads * n * 4}


def trace_table(o):
    formulas = ["kv heads x n x d x bytes"] * 2 + ["query heads x m x d x bytes", "query heads x n x 4", ""]
    parts = {**trace_bytes(o), "total": sum(trace_bytes(o).values())}
    rows = [(name, formula, size(b), size(b * o.layers), size(b * o.layers * o.prompts))
            for (name, b), formula in zip(parts.items(), formulas)]
    return table(["array", "bytes", "per layer", f"{o.layers} layers", f"{o.prompts} prompts"], rows)


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
    return table(["recording one prompt", "formula", "result"], [
        ("linear layers", f"2 x {o.parameters:.3g} x n", f"{linear:.3g} flop"),
        ("attention", "4 n^2 d x query heads x layers / 2", f"{attention:.3g} flop"),
        ("total", f"at {o.gpu_flops * o.gpu_share / 1e12:.0f} TFLOP/s per GPU",
         f"{flops:.3g} flop, {gpu_hours:.2f} GPU hours"),
        ("exact column sums, in addition", "the logits again: half of attention",
         f"{sums:.3g} flop, {sums_hours:.2f} GPU hours"),
        (f"{o.prompts} prompts with column sums", f"at ${o.gpu_price:g} per GPU hour (assumed)",
         f"${o.prompts * (gpu_hours + sums_hours) * o.gpu_price:.0f}"),
        ("memory, all layers at once", f"weights {size(weights)} + {size(cache)} per token",
         f"{size(whole)}: {gpus} GPUs of {size(o.gpu_memory)}, with 10 % for buffers"),
        ("memory, one layer at a time", "weights, keys and values of the layer, input and output states of all tokens",
         f"{size(one)}: 1 GPU"),
        ("writing", f"{size(file)} while {gpus} GPUs compute", f"{file / (gpu_hours * HOUR / gpus) / 1e9:.2f} GB/s"),
    ])


def method_table(o, methods):
    rows, total = [], [0.0, 0.0]
    for method in methods:
        compress, query = seconds_of_head(method, o)
        refused = infeasible(method, o)
        never = len(refused) == len(o.budgets)
        note = "" if not refused else "infeasible" if never else "infeasible at " + ", ".join(map(str, refused))
        times = ("-", "-") if never else (f"{compress:.1f}", f"{query:.1f}")
        rows.append((method.name, o.seeds if method.name in SEEDED else 1, *times, note))
        total[0] += compress
        total[1] += query
    rows.append(("all", "", f"{total[0]:.0f}", f"{total[1]:.0f}", ""))
    return table(["method", "seeds", "compress s", "answer s", "note"], rows), sum(total)


def limits_table(o, methods):
    rows, largest = [], max(o.budgets)
    for method in methods:
        if method.name not in PAIRS:
            continue
        pairs, limit, words = PAIRS[method.name]
        raised = method.compress * (o.tokens / method.largest)**method.compress_exponent
        raised = f"{raised:.0f} s" if pairs(o.tokens, largest) > limit else ""
        rows.append((method.name, words, f"{pairs(o.tokens, largest):.3g}", f"{limit:.3g}", raised))
    return table(["method", "formula", f"pairs at B = {largest}", "max_pairs", "one compression above the limit"], rows)


def exact_flops(o):
    return 4 * o.query_heads / o.kv_heads * o.queries * o.tokens * o.head_dim


def head_seconds(o, method_seconds, configurations):
    """Seconds of one core per kv head: exact pass, methods, and the work around them."""
    return exact_flops(o) / o.core_flops + o.around + method_seconds + configurations * o.each_cell


def configurations_of(method, o):
    return (o.seeds if method.name in SEEDED else 1) * (len(o.budgets) - len(infeasible(method, o)))


def results_of_head(o, methods):
    """Per kv head: number of configurations, bytes in the file of cells, and bytes that the merge holds at a time,
    which are those of one method."""
    rows = o.query_heads / o.kv_heads * o.queries
    kept = sum(configurations_of(x, o) * (CONFIGURATION + rows * VALUE * (7 if x.name in WITHOUT_RECALL else 9))
               for x in methods)
    counts = [configurations_of(x, o) for x in methods]
    return sum(counts), kept, max(counts) * rows * IN_MEMORY


def replay_table(o, methods, method_seconds):
    configurations, kept, merging = results_of_head(o, methods)
    seconds = head_seconds(o, method_seconds, configurations)
    slab = sum(trace_bytes(o).values()) / o.kv_heads
    digest = lambda layers: sum(trace_bytes(o).values()) * layers * o.prompts / o.digest_rate / 60
    plans = [("everything", o.layers, o.kv_heads, o.prompts),
             *((f"{layers} layers x {heads} heads", layers, heads, o.prompts) for layers, heads in o.subsets)]
    rows = []
    for name, layers, heads, prompts in plans:
        work_items = layers * heads * prompts
        hours = work_items * seconds / HOUR
        files = sum(trace_bytes(o).values()) * layers * prompts
        money = hours * o.core_price + files / 1e9 * o.disk_price
        rows.append((name, work_items, work_items * configurations, size(files), size(work_items * kept),
                     f"{hours:,.0f}", f"{hours / o.cores / o.nodes:.1f}", f"{digest(layers):.0f}",
                     size(work_items * merging), f"{money:,.0f}"))
    text = table(["sweep", "work items", "results", "traces", "files of cells", "core hours",
                  f"hours on {o.nodes} nodes of {o.cores} cores", "minutes of digests per task", "memory of the merge",
                  "$"], rows)
    facts = table(["one kv head", "formula", "result"], [
        ("exact pass", "4 x its query heads x m x n x d",
         f"{exact_flops(o):.3g} flop, {exact_flops(o) / o.core_flops:.1f} s of a core"),
        ("methods", "the table of times above", f"{method_seconds:.0f} s"),
        ("configurations", "methods x budgets x seeds", f"{configurations}, {size(kept)}"),
        ("total", f"with {o.around:g} s around the exact pass, and {o.each_cell:g} s per configuration for checks, "
         "errors and recall", f"{seconds:.0f} s"),
        ("bytes read", "keys, values, queries, column sums", size(slab)),
        ("reading rate of a node with all cores busy", f"{o.cores} x bytes read / {seconds:.0f} s",
         f"{o.cores * slab / seconds / 1e9:.2f} GB/s"),
        ("memory per thread", "stated by kvbench (above)", size(o.thread_memory)),
        ("memory per node", f"{o.cores} threads, and a third more", size(o.cores * o.thread_memory * 4 / 3)),
    ])
    return facts, text


def spread_table(o):
    """Relative standard error and 95 % half-width of a mean over all layers and heads that is estimated from a random
    subset."""
    rows = []
    for layers, heads in [(o.layers, o.kv_heads), *o.subsets]:
        variance = (o.sd_layers**2 / layers * (1 - layers / o.layers) +
                    o.sd_heads**2 / (layers * heads) * (1 - heads / o.kv_heads))
        queries = o.half_width * math.sqrt(o.half_width_queries / o.queries)
        rows.append((f"{layers} x {heads}", layers * heads, f"{100 * math.sqrt(variance):.0f} %",
                     f"{196 * math.sqrt(variance):.0f} %", f"{100 * queries:.1f} %",
                     f"{100 * queries / math.sqrt(o.prompts):.1f} %"))
    return table(["layers x kv heads", "work items per prompt", "standard error", "95 %, +-",
                  "queries of 1 prompt, 95 %, +-", f"of {o.prompts} prompts, +-"], rows)


def report(o):
    """The tables by name."""
    methods = read_methods(o.scaling)
    by_method, seconds = method_table(o, methods)
    facts, plans = replay_table(o, methods, seconds)
    return {"trace": trace_table(o), "dump": dump_table(o), "methods": by_method, "limits": limits_table(o, methods),
            "head": facts, "sweep": plans, "spread": spread_table(o)}


def renewed(page, tables):
    """The page with every table replaced between its markers."""
    for name, content in tables.items():
        page, count = re.subn(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", lambda m: m[1] + content + m[2],
                              page, flags=re.S)
        if count != 1:
            sys.exit(f"bench/plan_sweep.py: the page has {count} places for table '{name}', not one")
    return page


def options():
    numbers = lambda text: [int(part) for part in text.split(",")]
    pairs = lambda text: [tuple(int(x) for x in part.split("x")) for part in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = lambda name, kind, default, text: parser.add_argument("--" + name, type=kind, default=default,
                                                                help=text + " (default: %(default)s)")
    add("layers", int, 80, "layers of the model")
    add("query-heads", int, 64, "query heads per layer")
    add("kv-heads", int, 8, "kv heads per layer")
    add("head-dim", int, 128, "d, dimension of keys and of values")
    add("hidden", int, 8192, "width of the residual stream")
    add("parameters", float, 70e9, "parameters of the model")
    add("tokens", int, 1 << 20, "n, tokens per prompt")
    add("queries", int, 256, "m, recorded queries per query head")
    add("prompts", int, 5, "number of prompts")
    add("element", int, 2, "bytes per element of the trace")
    add("budgets", numbers, [1024, 2048, 4096, 8192], "budgets in tokens")
    add("seeds", int, 5, "seeds of the seeded methods")
    add("subsets", pairs, [(40, 1), (20, 2), (10, 4), (10, 8), (20, 8)], "subsets to compare, layers x kv heads")
    add("core-flops", float, 42e9, "flop/s of the exact pass on one core at this length (docs/planning.md)")
    add("around", float, 8.5, "seconds per head in addition to exact pass and methods (docs/planning.md)")
    add("thread-memory", float, 1.99 * GIB, "bytes of one head in flight")
    add("digest-rate", float, 1.79e9, "bytes per second of SHA-256 on one core (openssl speed)")
    add("each-cell", float, 0.3,
        "seconds per configuration in addition to its method: checks of entries, errors, recall (docs/planning.md)")
    add("cores", int, 64, "cores per node")
    add("nodes", int, 8, "number of nodes")
    add("gpu-flops", float, 989e12, "peak flop/s of a GPU in bf16")
    add("gpu-share", float, 0.4, "share of this peak that a prefill reaches (assumed)")
    add("gpu-memory", float, 80e9, "bytes per GPU")
    add("gpu-price", float, 3, "$ per GPU hour (assumed)")
    add("core-price", float, 0.05, "$ per core hour (assumed)")
    add("disk-price", float, 0.10, "$ per GB and month (assumed)")
    add("sd-layers", float, 0.45, "standard deviation of the mean rel_err of layers, divided by its mean")
    add("sd-heads", float, 0.70, "the same for heads within a layer")
    add("half-width", float, 0.07, "half-width of the 95 %% interval over queries, divided by the mean")
    add("half-width-queries", int, 256, "number of queries behind this interval")
    add("scaling", pathlib.Path, ROOT / "bench/SCALING.md", "page with the measured times")
    parser.add_argument("--check", type=pathlib.Path, metavar="PAGE", help="fail if the page holds other tables")
    parser.add_argument("--renew", type=pathlib.Path, metavar="PAGE", help="write the tables into the page")
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
