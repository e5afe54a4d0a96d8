# SPDX-License-Identifier: Apache-2.0
"""Scorers that have the model read a context again after a request to repeat it: KVzip and KVgrad (docs/scores.md)."""

import contextlib
import copy

import numpy as np
import torch

from .._error import Error
from .attention import MOST_WEIGHTS
from .continued import Continued, Kept, in_single_precision
from .measure import attention_modules, body_of, numbers
from .probes import differentiable

CHUNKS = {"kvzip": 2048, "kvgrad": 512}  # tokens of a repetition, as in kvpress 0.5.5
SINKS = 4  # first tokens that stay in the softmax of every repetition
REMEMBERED = 8  # last tokens of the chunk before, with which the model is asked to begin
COMPARED = 64  # last tokens of a context, compared with those of one pass
ASKS = ("\n\nRepeat the previous context exactly.",
        "\n\nRepeat the part of the previous context exactly, starting with", "\n")


def attended(call, begin, end, context, slopes):
    """The largest weight [kv_heads, group, end - begin], times its slope [t], that a query of a repetition gives to the
    keys of its chunk, in a softmax over the sinks before the chunk, the chunk, and the repetition up to the query."""
    kv_heads, _, d = call.key.shape
    t = call.query.shape[1]
    sinks = min(SINKS, begin)
    keys = torch.cat([call.key[:, :sinks], call.key[:, begin:end], call.key[:, context:]], 1).detach().float()
    queries = call.query.detach().float().view(kv_heads, -1, t, d)
    best = torch.zeros(kv_heads, queries.shape[1], end - begin, device=keys.device)
    step = max(1, MOST_WEIGHTS // (len(call.query) * keys.shape[1]))
    for first in range(0, t, step):
        call.pulse()
        rows = queries[:, :, first:first + step]
        logits = call.scale * rows @ keys[:, None].mT
        later = torch.arange(t, device=keys.device) > first + torch.arange(rows.shape[2], device=keys.device)[:, None]
        logits[..., -t:].masked_fill_(later, -torch.inf)
        weights = logits.softmax(-1)[..., sinks:sinks + end - begin] * slopes[first:first + step, None]
        best = torch.maximum(best, weights.amax(2))
    return best


def repetitions(context, asks, tokens):
    """(begin, end, tokens) of each chunk of so many tokens of a context: the tokens ask for the chunk and are the chunk
    again. `asks`: the tokens of the first question, of the others, and after each."""
    first, later, end = asks
    for begin in range(0, len(context), tokens):
        chunk = context[begin:begin + tokens]
        asked = [*later, *context[begin - REMEMBERED:begin]] if begin else first
        yield begin, begin + len(chunk), [*asked, *end, *chunk]


def asks_of(model, plans, names):
    """What repetitions() takes, for scorers of these names. Raises Error where a context and its repetition are longer
    than the model can read."""
    if not names:
        return None
    option = f"--scores {names[0]}"
    tokenize = model.tokenizer(f"leave out {option}, which asks the model for a repetition", add_special_tokens=False)
    asks = [tokenize(text) for text in ASKS]
    for plan in plans:
        context = plan.tokens[:plan.prompt_tokens]
        longest = len(context) + max(len(tokens) for name in names
                                     for _, _, tokens in repetitions(context, asks, CHUNKS[name]))
        if longest > model.longest:
            raise Error(f"prompt '{plan.name}': {option} reads {longest} tokens, the context and its repetition, "
                        f"and {model.name} was trained on {model.longest}; give a smaller --ctx.")
    return asks


def repeated(wanted, context, name, scorer, score):
    """The Kept and the scores of a scorer that has the model repeat the context. score(read, begin, end) returns those
    of a chunk by layer, [kv_heads, end - begin]; read(on_call) has the model read the request and the chunk again."""
    chunks = list(repetitions(context, wanted.asks, CHUNKS[scorer]))
    model = Continued(wanted.model, wanted.interface, wanted.remedy, wanted.stage)
    wanted.stage(f"{name}: context of {scorer}")
    split = max(1, len(context) - COMPARED)
    kept, body = Kept(split, f"--scores {scorer}"), body_of(wanted.model.model)
    found = {layer: np.zeros((shape[1], len(context)), np.float32) for layer, shape in wanted.shapes.items()}

    def compare(call):
        output = call.run()
        kept.ran(call.module.layer_idx, call, numbers(output.transpose(0, 1)))
        return output
    with torch.no_grad():
        cache = model._cache(context[:split])
        if split < len(context):
            model._read(body, context[split:], cache, compare)
        for number, (begin, end, tokens) in enumerate(chunks):
            wanted.stage(f"{name}: repetition {number + 1} of {len(chunks)}")
            own = cache if end == len(context) else copy.deepcopy(cache)
            scores = model._tried(lambda: score(lambda on_call: model._read(body, tokens, own, on_call), begin, end),
                                  f"where {scorer} computes scores")
            for layer, rows in scores.items():
                found[layer][:, begin:end] = numbers(rows)
    return kept, found


def kvzip(wanted, context, name, prompt):
    """KVzip (arXiv 2505.23416), with the numbers of kvpress, where a context without chat template is repeated: the
    largest attention that a key gets while the model reads the context again after a request to repeat it."""
    def score(read, begin, end):
        found = {}

        def attend(call):
            if call.module.layer_idx in wanted.shapes:
                ones = torch.ones(call.query.shape[1], device=call.query.device)
                found[call.module.layer_idx] = attended(call, begin, end, len(context), ones).amax(1)
            return call.run()
        read(attend)
        return found
    return repeated(wanted, context, name, "kvzip", score)


def matrix(written, output):
    """W_O [q_heads, dv, width] from an attention output [t, q_heads, dv] to what is written [1, t, width]: unit vectors
    taken back, each at a token of its own. None where tokens differ."""
    def back(vectors):
        return torch.autograd.grad(written, output, vectors, retain_graph=True)[0]
    t, width = written.shape[1:]
    units = torch.eye(width, device=written.device, dtype=written.dtype)
    found = torch.cat([back(torch.nn.functional.pad(part, (0, 0, 0, t - len(part)))[None])[:len(part)]
                       for part in units.split(t)]).permute(1, 2, 0)
    difference = (back(torch.ones_like(written)) - found.sum(2)).abs().max()
    return found if difference <= 1e-3 * found.abs().sum(2).max() else None


def kvgrad(wanted, context, name, prompt):
    """KVgrad, by kvpress 0.5.5: the largest product, over the queries p of a repetition and the
    query heads, of the weight of a key, |W_O v|, and the norm of the gradient, where W_O writes at p, of the sum of
    |h|^2, h the output of the last layer."""
    modules = [part for part in attention_modules(wanted.model.model) if part.layer_idx in wanted.shapes]
    last = next(part for part in wanted.model.model.modules() if isinstance(part, torch.nn.ModuleList) and
                any(modules[0] in set(layer.modules()) for layer in part))[-1]

    def score(read, begin, end):
        calls, outputs, kept, found = {}, {}, {}, {}

        def keep(module, args, output):
            kept[module] = output[0] if isinstance(output, tuple) else output
        with contextlib.ExitStack() as hooks, in_single_precision(wanted.model.model), torch.enable_grad():
            for module in (*modules, last):
                hooks.callback(module.register_forward_hook(keep).remove)
            read(differentiable(wanted.shapes, calls, outputs))
            written = {layer: kept[call.module] for layer, call in calls.items()}
            slopes = torch.autograd.grad(kept[last].square().sum(), list(written.values()), retain_graph=True)
            matrices = [matrix(written[layer], outputs[layer]) for layer in calls]
        for (layer, call), slope, w_o in zip(calls.items(), slopes, matrices):
            if w_o is None:
                raise Error(f"layer {layer}: kvgrad needs the size of values after W_O, and this model has a gate or a "
                            f"norm before it; {wanted.remedy}.")
            sizes = (call.value[:, None, begin:end] @ w_o.unflatten(0, (len(call.value), -1))).norm(dim=-1)
            found[layer] = (attended(call, begin, end, len(context), slope[0].norm(dim=1)) * sizes).amax(1)
        return found
    return repeated(wanted, context, name, "kvgrad", score)
