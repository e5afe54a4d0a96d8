# SPDX-License-Identifier: Apache-2.0
"""What kvbench-choose asks of a model: to measure configurations on a document, by kveval where it is a GGUF file and
otherwise in this process; and how many bytes its cache has."""

import json
import math
import os
import re

from ._error import Error
from ._files import read_text, size_text
from .results import csv_rows
from .trace import Trace

TASK_DOCUMENTS = 8  # of each task
UNITS = {**{unit + "b": 1000**power for power, unit in enumerate(("", "k", "m", "g", "t"))},
         **{unit + "ib": 1024**power for power, unit in enumerate("kmgt", 1)}}


def bytes_of(text):
    """The number of bytes of a text such as 3.5GB or 800 MiB; None where it is none."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s?([kmgt]?i?b)", text.lower())
    return int(float(found[1]) * UNITS[found[2]]) if found and found[2] in UNITS and float(found[1]) > 0 else None


def rows_of(path, needed, of):
    """The rows of a table of a program as dictionaries of texts."""
    _, (columns, *found) = csv_rows(path, needed, of)
    return [dict(zip(columns, row)) for row in found]


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
    and the share of these in rows of measured documents, where kveval does not write the rows."""
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


def set_budget(work):
    """Sets options.cache, the sizes() where --context-length is given, and the budget of a --memory in bytes: the share
    that the layers in which methods run may have of their cache."""
    options, options.cache = work.options, None
    if options.context_length is None:
        return
    path = work.path("cache.json")
    if not os.path.exists(path):
        work.say("measuring the size of the cache")
        work.write("cache.json", json.dumps(sizes(options)) + "\n")
    options.cache = cache = work.read("cache.json", lambda found: isinstance(found, dict) and "apart" in found)
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


def measure(work, made, names, document):
    """Makes a table of kveval of these configurations on a document, unless it is there."""
    options = work.options
    if options.gguf:
        work.run(made, options.programs["kveval"], options.model, "--ids", document, "--context", options.context,
                 "--score", options.score, "-m", ",".join(names), "-b", options.budget, "--no-times", "-q", "-o", made,
                 *work.threads())
    elif not os.path.exists(made):
        from ._evaluate import Evaluation, digest_of
        model = loaded_model(options)
        if not hasattr(model, "sha256"):
            model.sha256 = digest_of(model.model)
        with Trace(work.path("probes.h5")) as trace:  # predictions are of channels in this order
            layout = trace.rope_layout if trace.rope_type not in ("none", "unknown") else None
        name = os.path.splitext(os.path.basename(document))[0]
        run = Evaluation(model.model, names, options.budget, made, context=options.context, score=options.score,
                         name=model.title, sha256=model.sha256, text=os.path.basename(document), rope_layout=layout,
                         threads=options.threads or 0)
        run.read(name, [int(token) for token in read_text(document).split()])
        run.finish(per_document=False, times=False)


def answered(work, names):
    """The rows of kveval about the tasks of --task, of these configurations and, where a shorter race had left more,
    of others."""
    options, made = work.options, work.path("answers.csv")
    work.say(f"counting answers of {options.task}")
    work.run(made, options.programs["kveval"], options.model, "--text", options.text[0], "--task", options.task,
             "--documents", TASK_DOCUMENTS, "--context", options.context, "--score", options.score, "-m",
             ",".join(names), "-b", options.budget, "--no-times", "-q", "-o", made, *work.threads())
    rows = rows_of(made, ("task", "answers", "match_full", "harmful"), "a table of kveval")
    return [row for row in rows if row["layer"] == row["document"] == "all" and row["status"] == "ok"]
