# SPDX-License-Identifier: Apache-2.0
"""The documents of kvbench-choose: which of them are recorded and which race, and the recording."""

import os
import random
import sys
from collections.abc import Iterable
from typing import Any

from .._error import Error
from ..files.access import read_text
from .folder import Work
from .model import channel_order


def documents_of(work: Work) -> list[list[str]]:
    """Writes the documents as files of token ids, once: of each text the first half is recorded, and the documents of
    the second half race, one of each text in turn. Returns the two lists of files.

    Neighbouring pieces of a text are alike, and a race in their order would take what the first pieces have in common
    for what the text has. So the pieces of a text race in a random order, the same in each run."""
    if work.documents is None:
        question, length = work.question, work.question.context + work.question.score
        first, second = [], []
        for number, (path, ids) in enumerate(zip(question.text, tokens_of_texts(work))):
            blocks = [ids[at:at + length] for at in range(0, len(ids) - length + 1, length)]
            if len(blocks) < 2:
                raise Error(f"{path}: has {len(ids)} tokens, and two documents of {length} are needed, one to predict "
                            "from and one to measure; give a longer text, or a smaller --context.")
            half = max(1, len(blocks) // 2)
            first.append([(f"{number}-{i}", block) for i, block in enumerate(blocks[:half])])
            second.append(shuffled([(f"{number}-{i}", block) for i, block in enumerate(blocks[half:], half)]))
        parts = [spread(first, question.documents), spread(second, sum(map(len, second)))]
        for part in parts:
            for name, ids in part:
                work.write(os.path.join("documents", f"{name}.ids"), " ".join(map(str, ids)) + "\n")
        work.settle_documents([[f"{name}.ids" for name, _ in part] for part in parts])
    return [[work.path("documents", name) for name in part] for part in work.documents]


def shuffled(blocks: list[Any]) -> list[Any]:
    return random.Random(1).sample(blocks, len(blocks))


def each(flag: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (flag, value)]


def tokens_of_texts(work: Work) -> list[list[int]]:
    """The token ids of each text."""
    question = work.question
    if question.gradients:
        from ..models.loading import AutoConfig, AutoTokenizer, loaded, refuse_unsupported, token_ids
        if not question.gguf:  # the race would refuse it, after the recording
            refuse_unsupported(question.model, loaded(question.model, "configuration", AutoConfig.from_pretrained))
        tokenizer = loaded(question.model, "tokenizer", AutoTokenizer.from_pretrained)
        return [token_ids(tokenizer, read_text(path)) for path in question.text]
    made = work.path("texts.ids")
    work.run(made, question.commands["kvdump"], question.model, *each("--text", question.text), "--tokens-only", "-o",
             made)
    return [[int(item) for item in line.split()] for line in read_text(made).splitlines()]


def trace_of(work: Work) -> str:
    return work.path("probes.h5" if work.question.gradients else "sketches.h5")


def record(work: Work, recorded: list[str]) -> str:
    """The trace of the recorded documents."""
    question, length, trace = work.question, work.question.context + work.question.score, trace_of(work)
    if os.path.exists(trace):
        return trace
    if not question.gradients:
        work.say(f"recording {len(recorded)} documents")
        work.run(trace, question.commands["kvdump"], question.model, *each("--ids", recorded), "--ctx", length,
                 "--prompt-tokens", question.context, "--f32", "--dtype", "f16", "--quiet", "-o", trace,
                 *work.threads())
        return trace
    order = channel_order(work, recorded[0])
    work.release()  # the recording loads the model itself
    work.say(f"recording {len(recorded)} documents with {question.probes} probes each; this is done once")
    work.run(trace, sys.executable, "-m", "kvbench.dump_hf", "--model", question.model, "--ids", *recorded, "--ctx",
             length, "--prompt-tokens", question.context, "--probes", question.probes, *order, "--dtype", "f16",
             "--weights", question.weights, "--device", question.device, "--quiet", "-o", trace,
             *work.threads("--threads"))
    return trace


def spread(texts: list[list[Any]], count: int) -> list[Any]:
    """`count` documents, one of each text in turn, and those of a text evenly spaced."""
    turns = [text for i in range(max(map(len, texts))) for text, blocks in enumerate(texts) if i < len(blocks)][:count]
    picked = [[blocks[i * len(blocks) // turns.count(text)] for i in range(turns.count(text))]
              for text, blocks in enumerate(texts)]
    return [picked[text].pop(0) for text in turns]
