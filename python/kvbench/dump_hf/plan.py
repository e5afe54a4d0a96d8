# SPDX-License-Identifier: Apache-2.0
"""Which tokens and queries of a prompt kvbench-dump-hf records, computed from its options without a model. The rules
are those of kvdump."""

import os
import re
from dataclasses import dataclass, field

import numpy as np

from .._error import Error
from ..files.access import read_text

OBSERVATION_WINDOW = 128


@dataclass
class Plan:
    """A prompt and the positions of its recorded queries."""

    name: str
    tokens: list  # token ids
    prompt_tokens: int  # number of tokens of the context
    spec: str  # value of --queries
    spans: list | None = None  # of the context, if the prompt is a conversation
    positions: np.ndarray = field(init=False)

    def __post_init__(self):
        self.positions = query_positions(self.spec, len(self.tokens), self.prompt_tokens)

    def extended(self, generated):
        """The plan of the prompt with the tokens decoded after it."""
        return Plan(self.name, [*self.tokens, *generated], self.prompt_tokens, self.spec, self.spans)


def check_queries(spec):
    if spec not in ("", "all") and not re.fullmatch(r"(last|every):0{0,9}[1-9][0-9]{0,17}", spec):
        raise Error(f"--queries {spec}: expected last:N, all or every:N with N at least 1.")


def query_positions(spec, num_tokens, prompt_tokens):
    """Increasing positions, at least one. "": 128 positions before the end of the context and all positions after
    it."""
    check_queries(spec)
    kind, _, count = spec.partition(":")
    if kind == "all":
        return np.arange(num_tokens)
    if kind == "last":
        return np.arange(max(0, num_tokens - int(count)), num_tokens)
    if kind == "every":
        return np.arange((num_tokens - 1) % int(count), num_tokens, int(count))
    return np.arange(max(0, min(prompt_tokens - OBSERVATION_WINDOW, num_tokens - 1)), num_tokens)


def parse_layers(text, num_layers):
    """Parses 'all' or a list such as '0,1,8-11' into sorted, distinct layer numbers."""
    if text == "all":
        return list(range(num_layers))
    layers = set()
    for item in text.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?: *- *([0-9]{1,9}))?", item.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise Error(f"--layers {text}: '{item}' is not a layer or range; give numbers such as 0,1,8 or 0-3.")
        if last >= num_layers:
            raise Error(f"--layers {text}: there is no layer {last}; this model has layers 0 to {num_layers - 1}.")
        layers.update(range(first, last + 1))
    return sorted(layers)


def read_ids(path, vocabulary):
    ids = []
    for item in read_text(path).split():
        if not (item.isascii() and item.isdigit() and len(item) <= 18 and int(item) < vocabulary):
            raise Error(f"{path}: {ascii(item[:20])} (item {len(ids) + 1}) is not a token id of this model; ids are "
                        f"whole numbers from 0 to {vocabulary - 1}.")
        ids.append(int(item))
    return ids


def cut(path, tokens, ctx, most):
    """The first `ctx` tokens; without ctx all tokens, up to the context length `most` of the model's training."""
    if len(tokens) < 2:
        raise Error(f"{path}: {len(tokens)} tokens are too few for a prompt; give at least 2.")
    if ctx is not None and ctx > len(tokens):
        raise Error(f"{path}: --ctx {ctx} asks for more than its {len(tokens)} tokens; give a longer prompt, --ctx "
                    f"{len(tokens)}, or no --ctx to take all.")
    return tokens[:min(len(tokens), most) if ctx is None else ctx]


def context_end(path, num_tokens, prompt_tokens, decode):
    """Number of tokens of the context: --prompt-tokens; else all tokens if further ones are decoded; else all but the
    last 256, or all but the last quarter of a shorter prompt."""
    if prompt_tokens is None:
        return num_tokens if decode else num_tokens - min(256, num_tokens // 4)
    if prompt_tokens > num_tokens:
        raise Error(f"{path}: --prompt-tokens {prompt_tokens} lies beyond the {num_tokens} tokens taken from it; give "
                    f"at most {num_tokens}.")
    if decode and prompt_tokens != num_tokens:
        raise Error(f"{path}: --decode begins after all {num_tokens} tokens taken from it, so --prompt-tokens "
                    f"{prompt_tokens} contradicts it; give --ctx {prompt_tokens} instead.")
    return prompt_tokens


def make_plan(path, tokens, options, most):
    """`most`: context length of the model's training minus the number of tokens to be decoded."""
    tokens = cut(path, tokens, options.ctx, most)
    end = context_end(path, len(tokens), options.prompt_tokens, options.decode)
    return Plan(os.path.splitext(os.path.basename(path))[0], tokens, end, options.queries)
