# SPDX-License-Identifier: Apache-2.0
"""Scores of the tokens of a context that need the model (docs/scores.md): kvbench-dump-hf writes them beside the trace,
for the method scores:FILE.h5."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch

from .._error import Error
from ..files.access import size_text
from .continued import Kept
from .measure import numbers
from .probes import Prober
from .repeated import CHUNKS, SINKS, asks_of, kvgrad, kvzip

WINDOW = 64  # last tokens of a context, whose predictions damage votes are about
MOST_ODDS = 20  # p / (1 - p) of a token is computed with 1 - p of at least 1 / MOST_ODDS
POOLED = 7  # tokens over which the largest vote counts


def effects(call, gradients):
    """What removing a token does to each probe, to first order: c [R, kv_heads, n], the sum over the queries of a call
    and the query heads of a kv head of p / (1 - p) <G, z - v>. `gradients`: G [R, q_heads, t, dv]."""
    count, heads, _, dv = gradients.shape
    kv_heads, n = call.value.shape[:2]
    values = call.value.detach().float()
    gradients = torch.as_tensor(gradients, device=values.device)
    found = torch.zeros(count, kv_heads, n, device=values.device)

    def add(first, output, weights):
        rows, keys = weights.shape[1:]
        odds = weights / (1 - weights).clamp(min=1 / MOST_ODDS)
        for probe, gradient in enumerate(gradients[:, :, first:first + rows]):
            along = (gradient * output).sum(-1, keepdim=True) - (
                gradient.reshape(kv_heads, -1, dv) @ values[:, :keys].mT).view(heads, rows, keys)
            found[probe, :, :keys] += (odds * along).view(kv_heads, -1, keys).sum(1)
    with torch.no_grad():
        call.run(add)
    return found


class Votes(Kept):
    def __init__(self, first):
        super().__init__(first, "--scores damage-votes")
        self._calls, self._gradients = {}, {}

    def ran(self, layer, call, output):
        super().ran(layer, call, output)
        self._calls[layer] = call

    def add(self, layer, probe, gradient):
        self._gradients.setdefault(layer, []).append(gradient)

    def scores(self):
        found = {}
        for layer in list(self._calls):
            votes = effects(self._calls.pop(layer), np.stack(self._gradients.pop(layer))).square().mean(0)
            found[layer] = numbers(torch.nn.functional.max_pool1d(votes, POOLED, 1, POOLED // 2))
        return found


def damage_votes(wanted, context, name, prompt):
    """The mean over probes of the square of what removing a token does to the predictions at the last WINDOW tokens of
    the context; the largest of POOLED neighbours."""
    begin = max(1, len(context) - WINDOW)
    votes = Votes(begin)
    if begin == len(context):  # one token, of which nothing is seen
        return votes, {layer: np.zeros((shape[1], 1), np.float32) for layer, shape in wanted.shapes.items()}
    prober = Prober(wanted.model, wanted.interface, list(wanted.shapes), wanted.probes, wanted.seed, wanted.stage,
                    wanted.remedy)
    prober.through(name, context[:begin], context[begin:], prompt, 2, votes)
    return votes, votes.scores()


@dataclass(frozen=True)
class Scorer:
    name: str
    scores: object  # function(wanted, context, name, prompt): the Kept, and by layer [kv_heads, n] of the context
    settings: dict[str, str]  # with which the method scores:FILE.h5 keeps what the scorer does not score
    passes: object  # function(tokens of a context, probes): tokens of forward passes that take the time of the scorer


SCORERS = {scorer.name: scorer for scorer in (
    Scorer("damage-votes", damage_votes, {"sinks": str(SINKS), "recent": str(WINDOW)},
           lambda n, probes: n + 3 * probes * WINDOW),
    Scorer("kvzip", kvzip, {"sinks": str(SINKS)}, lambda n, probes: 2 * n + 24 * (1 + n // CHUNKS["kvzip"])),
    Scorer("kvgrad", kvgrad, {"sinks": str(SINKS)}, lambda n, probes: 4 * n + 72 * (1 + n // CHUNKS["kvgrad"])))}


def parse_scorers(text):
    """The names of a list such as "damage-votes,kvzip", each once."""
    names = list(dict.fromkeys(name.strip() for name in text.split(","))) if text else []
    for name in names:
        if name not in SCORERS:
            raise Error(f"--scores {text}: there is no '{name}'; give some of {', '.join(SCORERS)}.")
    return names


class Scores:
    """The scores of all prompts of a trace. `names`: of SCORERS; `recorder`: a Recorder that examined the model;
    `plans`: of the prompts."""

    def __init__(self, names, model, recorder, plans, probes, seed, stage):
        shapes = {layer: recorder.facts[layer].shape for layer in recorder.layers
                  if not recorder.windows[layer] and not recorder.facts[layer].softcap}
        if names and not shapes:
            raise Error("--scores: every recorded layer has a sliding window or capped logits, where no method runs; "
                        "leave it out.")
        self._recorder = recorder
        self._wanted = SimpleNamespace(model=model, interface=recorder.interface, shapes=shapes, probes=probes,
                                       seed=seed, stage=stage, remedy="leave out --scores",
                                       asks=asks_of(model, plans, [name for name in names if name in CHUNKS]))
        self.found = {name: {} for name in names}  # by scorer, prompt and layer

    @staticmethod
    def method(scorer, path):
        """The method that keeps tokens by the scores of a file."""
        return f"scores:{path}[scope=model,{','.join(map('='.join, SCORERS[scorer].settings.items()))}]"

    def run(self, plan, number):
        """Scores the context of a prompt. Returns each Kept of it."""
        kept = []
        for name, prompts in self.found.items():
            with self._recorder.attached():
                one, prompts[str(number)] = SCORERS[name].scores(self._wanted, plan.tokens[:plan.prompt_tokens],
                                                                 plan.name, number)
            kept.append(one)
        return kept

    def cost(self, plans):
        """What is said before scores are computed: of bytes and seconds."""
        longest = max(plan.prompt_tokens for plan in plans)
        heads, kv_heads, d, dv = next(iter(self._wanted.shapes.values()))
        held = 8 * longest * kv_heads * (d + dv) * len(self._recorder.facts)
        held += 4 * self._wanted.probes * WINDOW * heads * dv * len(self._wanted.shapes)
        held += 16 * WINDOW * self._wanted.model.vocabulary
        tokens = sum(SCORERS[name].passes(plan.prompt_tokens, self._wanted.probes) for name in self.found
                     for plan in plans)
        return (f"scores {', '.join(self.found)}: {size_text(held)} of memory, "
                f"about {self._recorder.pace * tokens:.0f} s.")
