# SPDX-License-Identifier: Apache-2.0
"""The documents of kvbench-choose: which of them are recorded and which race, and the recording."""

import json
import os
import sys

from ._choose_model import channel_order
from ._error import Error
from ._files import read_text


def documents_of(work):
    """Writes the documents as files of token ids, once: of each text the first half is recorded, and the documents of
    the second half race, one of each text in turn. Returns the two lists of files."""
    def fits(found):
        return isinstance(found, list) and len(found) == 2 and all(isinstance(part, list) and part for part in found)
    if os.path.exists(work.path("documents.json")):
        return [[work.path(str(name)) for name in part] for part in work.read("documents.json", fits)]
    options, length = work.options, work.options.context + work.options.score
    first, second = [], []
    for number, (path, ids) in enumerate(zip(options.text, tokens_of_texts(work))):
        blocks = [ids[at:at + length] for at in range(0, len(ids) - length + 1, length)]
        if len(blocks) < 2:
            raise Error(f"{path}: has {len(ids)} tokens, and two documents of {length} are needed, one to predict from "
                        "and one to measure; give a longer text, or a smaller --context.")
        half = max(1, len(blocks) // 2)
        first.append([(f"{number}-{i}", block) for i, block in enumerate(blocks[:half])])
        second.append([(f"{number}-{i}", block) for i, block in enumerate(blocks[half:], half)])
    recorded = spread(first, options.documents)
    raced = spread(second, sum(map(len, second)))
    names = []
    for part in (recorded, raced):
        names.append([f"{name}.ids" for name, _ in part])
        for name, ids in part:
            work.write(f"{name}.ids", " ".join(map(str, ids)) + "\n")
    work.write("documents.json", json.dumps(names) + "\n")
    return [[work.path(name) for name in part] for part in names]


def each(flag, values):
    return [word for value in values for word in (flag, value)]


def tokens_of_texts(work):
    """The token ids of each text."""
    options = work.options
    if options.gradients:
        from ._models import AutoConfig, AutoTokenizer, loaded, refuse_unsupported, token_ids
        if not options.gguf:  # the race would refuse it, after the recording
            refuse_unsupported(options.model, loaded(options.model, "configuration", AutoConfig.from_pretrained))
        tokenizer = loaded(options.model, "tokenizer", AutoTokenizer.from_pretrained)
        return [token_ids(tokenizer, read_text(path)) for path in options.text]
    made = work.path("texts.ids")
    work.run(made, options.programs["kvdump"], options.model, *each("--text", options.text), "--tokens-only", "-o",
             made)
    return [[int(item) for item in line.split()] for line in read_text(made).splitlines()]


def record(work, recorded):
    """The trace of the recorded documents."""
    options, length = work.options, work.options.context + work.options.score
    if not options.gradients:
        trace = work.path("sketches.h5")
        work.say(f"recording {len(recorded)} documents")
        work.run(trace, options.programs["kvdump"], options.model, *each("--ids", recorded), "--ctx", length,
                 "--prompt-tokens", options.context, "--f32", "--dtype", "f16", "--quiet", "-o", trace,
                 *work.threads())
        return trace
    trace = work.path("probes.h5")
    work.say(f"recording {len(recorded)} documents with {options.probes} probes each")
    work.run(trace, sys.executable, "-m", "kvbench.dump_hf", "--model", options.model, "--ids", *recorded, "--ctx",
             length, "--prompt-tokens", options.context, "--probes", options.probes, *channel_order(work, recorded[0]),
             "--dtype", "f16", "--weights", options.weights, "--device", options.device, "--quiet", "-o", trace,
             *work.threads("--threads"))
    return trace


def spread(texts, count):
    """`count` documents, one of each text in turn, and those of a text evenly spaced."""
    turns = [text for i in range(max(map(len, texts))) for text, blocks in enumerate(texts) if i < len(blocks)][:count]
    picked = [[blocks[i * len(blocks) // turns.count(text)] for i in range(turns.count(text))]
              for text, blocks in enumerate(texts)]
    return [picked[text].pop(0) for text in turns]
