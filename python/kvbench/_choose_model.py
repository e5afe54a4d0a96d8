# SPDX-License-Identifier: Apache-2.0
"""What kvbench-choose asks of a model: to measure configurations on a document, by kveval if it is a GGUF file and
otherwise in this process; and how many bytes its cache has."""

import json
import math
import os
import re

from ._choose_rank import configuration
from ._error import Error, require
from ._files import read_text, size_text
from ._gguf import metadata
from .results import rows_of
from .trace import Trace

TASK_DOCUMENTS = 8  # of each task
UNITS = {**{unit + "b": 1000**power for power, unit in enumerate(("", "k", "m", "g", "t"))},
         **{unit + "ib": 1024**power for power, unit in enumerate("kmgt", 1)}}


def bytes_of(text):
    """The number of bytes of a text such as 3.5GB or 800 MiB; None where it is none."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s?([kmgt]?i?b)", text.lower())
    return int(float(found[1]) * UNITS[found[2]]) if found and found[2] in UNITS and float(found[1]) > 0 else None


def loaded_model(options):
    """A function of `options`, which loads the model once."""
    if getattr(options, "loaded", None) is None:
        import torch
        from ._models import Model
        if options.threads:
            torch.set_num_threads(options.threads)
        options.loaded = Model(options.model, options.weights, options.device)
    return options.loaded


def sizes(options):
    """Bytes of the cache of the model after --context-length tokens: all, and those of layers in which no method runs;
    and the share of these in rows of measured documents, if kveval does not write the rows."""
    from ._examination import examination
    from ._models import AutoConfig, loaded, stored_type
    made, tokens = loaded_model(options), options.context_length
    if tokens > made.longest:
        raise Error(f"--context-length {tokens}: {options.model} was trained on {made.longest} tokens; give at most "
                    "that number.")
    stored = "" if options.gguf else stored_type(loaded(options.model, "configuration", AutoConfig.from_pretrained))
    found, element = examination(made.model), 4 if stored == "F32" else 2
    options.loaded = None  # the recording has the memory to itself

    def of(length):
        held = {layer: size for layer, (_, size) in found.sizes(length).items()}
        return sum(held.values()), sum(size for layer, size in held.items() if layer not in found.compressible)
    (full, whole), (measured, apart) = of(tokens), of(options.context + options.score)
    return {"tokens": tokens, "full": element * full, "whole": element * whole,
            "apart": None if options.gguf else apart / measured}


def window_of(model):
    """The sliding window of some layers of a GGUF file, by its header; 0 where it has none."""
    header = metadata(model)
    return int(header.get(f"{header.get('general.architecture')}.attention.sliding_window", 0))


def sizes_in_trace(options, path, window=0):
    """sizes() of a GGUF file by its trace, which has kv heads, channels and windows of each layer that has a cache, as
    llama.cpp runs them: a header says nothing of windows of single layers, or of layers that share a cache. `window`:
    that of window_of(), which a trace of fewer tokens does not show."""
    tokens = options.context_length
    with Trace(path) as trace:
        seen = max(prompt.num_tokens for prompt in trace.prompts.values())
        require(not seen <= window < tokens, f"--context-length {tokens}", f"some layers of this model have a sliding "
                f"window of {window} tokens, and documents of {seen} do not show which, so that the size of its cache "
                f"is not known; give a --context above {window}.")
        recorded = trace.prompts[next(iter(trace.prompts))].layers
        caches = range(trace.num_layers) if trace.cache_layers is None else trace.cache_layers
        missing = [int(layer) for layer in caches if int(layer) not in recorded]
        require(not missing, f"--context-length {tokens}", f"the trace lacks layers {missing[:3]} of this model, so "
                "that the size of its cache is not known; give --memory as a share, without --context-length.")
        key, value = (2 * trace.num_kv_heads * width for width in (trace.head_dim, trace.value_dim))  # in 16 bits
        held = {layer: (key + (0 if of.values_in_keys else value)) * min(tokens, of.window or tokens)
                for layer, of in recorded.items() if layer in set(map(int, caches))}
        whole = sum(size for layer, size in held.items() if recorded[layer].window or recorded[layer].softcap)
    return {"tokens": tokens, "full": sum(held.values()), "whole": whole, "apart": None}


def set_budget(work, trace=None):
    """Sets options.cache, the sizes() if --context-length is given, and the budget of a --memory in bytes: the share
    that the layers in which methods run may have of their cache. `trace`: of a GGUF file, instead of the model."""
    options, options.cache = work.options, None
    if options.context_length is None:
        return
    if not os.path.exists(work.own("cache.json")):
        work.say("measuring the size of the cache")
        made = sizes_in_trace(options, trace, window_of(options.model)) if trace else sizes(options)
        work.write(work.in_question("cache.json"), json.dumps(made) + "\n")
    cache = work.read(work.in_question("cache.json"), lambda found: isinstance(found, dict) and "apart" in found)
    options.cache = cache
    if options.bytes is None:
        return
    where = f"--memory {options.memory}: after {cache['tokens']} tokens the full cache of this model"
    if options.bytes >= cache["full"]:
        raise Error(f"{where} takes {size_text(cache['full'])}, which fits without compression; give less.")
    share = (options.bytes - cache["whole"]) / (cache["full"] - cache["whole"]) if cache["full"] > cache["whole"] else 0
    if share < 1e-6:
        raise Error(f"{where} takes {size_text(cache['full'])}, of which {size_text(cache['whole'])} are in layers "
                    "with a sliding window or capped logits, where no method runs; give more.")
    options.budget = f"{math.floor(1e6 * share) / 1e4:.4f}".rstrip("0").rstrip(".") + "%mem"


def channel_order(work, document):
    """The flag that records channels in the order in which llama.cpp has them for this model, as kveval says."""
    if not work.options.gguf:
        return []  # that of the model's code
    made = work.path("order.csv")
    work.run(made, work.options.programs["kveval"], work.options.model, "--ids", document, "--context", 16, "--score",
             2, "-m", "exact", "-b", "100%mem", "--no-times", "-q", "-o", made, *work.threads())
    order = rows_of(made, ("rope_layout",), "a table of kveval")[0]["rope_layout"]
    return ["--rope-layout", order] if order else []


def tables_of(work, document):
    """The tables of kveval of a document, in the order in which they were made, and the name of the next one."""
    stem, tables = os.path.splitext(os.path.basename(document))[0], []
    while os.path.exists(work.path("measured", f"{stem}.{len(tables)}.csv")):
        tables.append(work.path("measured", f"{stem}.{len(tables)}.csv"))
    return tables, work.path("measured", f"{stem}.{len(tables)}.csv")


def rows_in(table):
    """{(configuration, budget): row} of a table of kveval of one document."""
    rows = rows_of(table, ("kl_mean", "method", "params", "budget", "sha256"), "a table of kveval")
    return {(configuration(row), row["budget"]): {**row, "table": table} for row in rows
            if row["layer"] == "all" and row["document"] == "all"}


def is_measured(work, document, names, budget):
    found = {key for table in tables_of(work, document)[0] for key in rows_in(table)}
    return all((name, budget) in found for name in names)


def measured(work, document, names, budget):
    """The rows of kveval of these configurations on a document, by name. What was measured for another question is not
    measured again. Raises Error if one did not run, or ran in another model."""
    tables, made = tables_of(work, document)
    found = {key: row for table in tables for key, row in rows_in(table).items()}
    missing = [name for name in names if (name, budget) not in found]
    if missing:
        measure(work, made, missing, budget, document)
        found.update(rows_in(made))
    for name in names:
        require((name, budget) in found, made, f"has no row of {name}; remove this file, and the same command measures "
                "it again.")
    rows = {name: found[name, budget] for name in names}
    models = {row["sha256"]: row["table"] for row in found.values()}
    require(len(models) == 1, next(reversed(models.values())), f"this model is another one than that of "
            f"{next(iter(models.values()))}; give another folder with -o, or remove this one.")
    for name, row in rows.items():
        require(row["status"] == "ok", row["table"], f"{name} did not run ({row['reason']}); leave it out with "
                "--methods or --menu.")
    return rows


def measure(work, made, names, budget, document):
    """Makes a table of kveval of these configurations on a document."""
    options, names = work.options, [work.named(name) for name in names]
    if options.gguf:
        work.run(made, options.programs["kveval"], options.model, "--ids", document, "--context", options.context,
                 "--score", options.score, "-m", ",".join(names), "-b", budget, "--no-times", "-q", "-o", made,
                 *work.threads())
        return
    from ._evaluate import Evaluation, digest_of
    model = loaded_model(options)
    if not hasattr(model, "sha256"):
        model.sha256 = digest_of(model.model)
    with Trace(work.path("probes.h5")) as trace:  # predictions are of channels in this order
        layout = trace.rope_layout if trace.rope_type not in ("none", "unknown") else None
    name = os.path.splitext(os.path.basename(document))[0]
    os.makedirs(os.path.dirname(made), exist_ok=True)
    run = Evaluation(model.model, names, budget, made, context=options.context, score=options.score,
                     name=model.title, sha256=model.sha256, text=os.path.basename(document), rope_layout=layout,
                     threads=options.threads or 0)
    run.read(name, [int(token) for token in read_text(document).split()])
    run.finish(per_document=False, times=False)


def answered(work, names):
    """The rows of kveval about the tasks of --task, of these configurations and, if a shorter race had left more, of
    others."""
    options, made = work.options, work.own("answers.csv")
    work.say(f"counting answers of {options.task}")
    work.run(made, options.programs["kveval"], options.model, "--text", options.text[0], "--task", options.task,
             "--documents", TASK_DOCUMENTS, "--context", options.context, "--score", options.score, "-m",
             ",".join(map(work.named, names)), "-b", options.budget, "--no-times", "-q", "-o", made, *work.threads())
    rows = rows_of(made, ("task", "answers", "match_full", "harmful"), "a table of kveval")
    return [row for row in rows if row["layer"] == row["document"] == "all" and row["status"] == "ok"]
