# SPDX-License-Identifier: Apache-2.0
"""Scores of the tokens of a context that need the model (docs/scores.md): kvbench-dump-hf writes them beside the trace,
for the method scores:FILE.h5."""

import copy
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch

from ._attention import MOST_WEIGHTS
from ._continued import Continued, Kept
from ._error import Error
from ._files import size_text
from ._measure import body_of, numbers
from .dump_hf_probes import Prober, draws

WINDOW = 64  # last tokens of a context, whose predictions damage votes are about
MOST_ODDS = 20  # p / (1 - p) of a token is computed with 1 - p of at least 1 / MOST_ODDS
POOLED = 7  # tokens over which the largest vote counts
CHUNK = 2048  # tokens of a repetition, as in kvpress
SINKS = 4  # first tokens that stay in the softmax of every repetition
REMEMBERED = 8  # last tokens of the chunk before, with which the model is asked to begin
ASKS = ("\n\nRepeat the previous context exactly.",
        "\n\nRepeat the part of the previous context exactly, starting with", "\n")


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
    the context, whose labels the model itself draws; the largest of POOLED neighbours."""
    begin = max(1, len(context) - WINDOW)
    votes = Votes(begin)
    if begin == len(context):  # one token, of which nothing is seen
        return votes, {layer: np.zeros((shape[1], 1), np.float32) for layer, shape in wanted.shapes.items()}
    prober = Prober(wanted.model, wanted.interface, list(wanted.shapes), wanted.probes, wanted.seed, wanted.stage,
                    wanted.remedy)
    prober.through(name, context[:begin], context[begin:],
                   draws(wanted.seed, prompt, wanted.probes, len(context) - begin, stream=2), votes)
    return votes, votes.scores()


def attended(call, begin, end, context):
    """The largest weight [kv_heads, end - begin] that a query of a repetition gives to the keys of its chunk, under a
    softmax over the sinks before the chunk, the chunk, and the repetition up to the query."""
    kv_heads, _, d = call.key.shape
    t = call.query.shape[1]
    sinks = min(SINKS, begin)
    keys = torch.cat([call.key[:, :sinks], call.key[:, begin:end], call.key[:, context:]], 1).detach().float()
    queries = call.query.detach().float().view(kv_heads, -1, t, d)
    best = torch.zeros(kv_heads, end - begin, device=keys.device)
    step = max(1, MOST_WEIGHTS // (len(call.query) * keys.shape[1]))
    for first in range(0, t, step):
        call.pulse()
        rows = queries[:, :, first:first + step]
        logits = call.scale * rows.reshape(kv_heads, -1, d) @ keys.mT
        later = torch.arange(t, device=keys.device) > first + torch.arange(rows.shape[2], device=keys.device)[:, None]
        logits.view(kv_heads, -1, rows.shape[2], keys.shape[1])[..., -t:].masked_fill_(later, -torch.inf)
        weights = logits.softmax(-1)[..., sinks:sinks + end - begin]
        best = torch.maximum(best, weights.amax(1))
    return best


def repetitions(context, asks):
    """(begin, end, tokens) of each chunk of a context: the tokens ask for the chunk and are the chunk again. `asks`:
    the tokens of the first question, of the others, and after each."""
    first, later, end = asks
    for begin in range(0, len(context), CHUNK):
        chunk = context[begin:begin + CHUNK]
        asked = [*later, *context[begin - REMEMBERED:begin]] if begin else first
        yield begin, begin + len(chunk), [*asked, *end, *chunk]


def asks_of(model, plans):
    """What repetitions() takes. Raises Error where a context and its repetition are longer than the model can read."""
    tokenize = model.tokenizer("leave out --scores kvzip, which asks the model for a repetition",
                               add_special_tokens=False)
    asks = [tokenize(text) for text in ASKS]
    for plan in plans:
        context = plan.tokens[:plan.prompt_tokens]
        longest = len(context) + max(len(tokens) for _, _, tokens in repetitions(context, asks))
        if longest > model.longest:
            raise Error(f"prompt '{plan.name}': --scores kvzip reads {longest} tokens, the context and its repetition, "
                        f"and {model.name} was trained on {model.longest}; give a smaller --ctx.")
    return asks


def kvzip(wanted, context, name, prompt):
    """KVzip (arXiv 2505.23416), with the numbers of kvpress, where a context without chat template is repeated: the
    largest attention that a key gets while the model reads the context again after a request to repeat it."""
    chunks = list(repetitions(context, wanted.asks))
    model = Continued(wanted.model, wanted.interface, wanted.remedy, wanted.stage)
    wanted.stage(f"{name}: context of kvzip")
    split = max(1, len(context) - WINDOW)
    kept, body = Kept(split, "--scores kvzip"), body_of(wanted.model.model)
    found = {layer: np.zeros((shape[1], len(context)), np.float32) for layer, shape in wanted.shapes.items()}

    def compare(call):
        output = call.run()
        kept.ran(call.module.layer_idx, call, numbers(output.transpose(0, 1)))
        return output

    def score(call):
        layer = call.module.layer_idx
        if layer in found:
            found[layer][:, begin:end] = numbers(attended(call, begin, end, len(context)))
        return call.run()
    with torch.no_grad():
        cache = model._cache(context[:split])
        if split < len(context):
            model._read(body, context[split:], cache, compare)
        for number, (begin, end, tokens) in enumerate(chunks):
            wanted.stage(f"{name}: repetition {number + 1} of {len(chunks)}")
            model._read(body, tokens, cache if end == len(context) else copy.deepcopy(cache), score)
    return kept, found


@dataclass(frozen=True)
class Scorer:
    name: str
    scores: object  # function(wanted, context, name, prompt): the Kept, and by layer [kv_heads, n] of the context
    settings: str  # with which the method scores:FILE.h5 keeps what the scorer does not score
    passes: object  # function(tokens of a context, probes): tokens of forward passes that take the time of the scorer


SCORERS = {scorer.name: scorer for scorer in (
    Scorer("damage-votes", damage_votes, f"sinks={SINKS},recent={WINDOW}", lambda n, probes: n + 3 * probes * WINDOW),
    Scorer("kvzip", kvzip, f"sinks={SINKS}", lambda n, probes: 2 * n + 24 * (1 + n // CHUNK)))}


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
                                       asks=asks_of(model, plans) if "kvzip" in names else None)
        self.found = {name: {} for name in names}  # by scorer, prompt and layer

    @staticmethod
    def method(scorer, path):
        """The method that keeps tokens by the scores of a file."""
        return f"scores:{path}[scope=model,{SCORERS[scorer].settings}]"

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
