# SPDX-License-Identifier: Apache-2.0
"""Scorers that have the model read a context again after a request to repeat it: KVzip and KVgrad (docs/scores.md)."""

import contextlib
import copy

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from ._attention import MOST_WEIGHTS
from ._continued import Continued, Kept, in_single_precision
from ._error import Error
from ._measure import TOLERANCE, attention_modules, body_of, numbers

CHUNKS = {"kvzip": 2048, "kvgrad": 256}  # tokens of a repetition, as in kvpress
SINKS = 4  # first tokens that stay in the softmax of every repetition
REMEMBERED = 8  # last tokens of the chunk before, with which the model is asked to begin
COMPARED = 64  # last tokens of a context, whose attention outputs must be those of one pass
ASKS = ("\n\nRepeat the previous context exactly.",
        "\n\nRepeat the part of the previous context exactly, starting with", "\n")


def attended(call, begin, end, context, slopes=None):
    """The largest weight [kv_heads, group, end - begin] that a query of a repetition gives to the keys of its chunk,
    times the slope of the query where there are slopes [t], under a softmax over the sinks before the chunk, the chunk,
    and the repetition up to the query."""
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
        weights = logits.softmax(-1)[..., sinks:sinks + end - begin]
        if slopes is not None:
            weights *= slopes[first:first + step, None]
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
                found[call.module.layer_idx] = attended(call, begin, end, len(context)).amax(1)
            return call.run()
        read(attend)
        return found
    return repeated(wanted, context, name, "kvzip", score)


class Repetition:
    """A repetition whose gradients are wanted: calls of attention by layer, their outputs [t, q_heads, dv], what W_O
    makes of them [1, t, width], and the output of the last layer, in a graph."""

    def __init__(self, wanted):
        self._wanted, self.calls, self._outputs, self._written = wanted, {}, {}, {}
        self._modules = [part for part in attention_modules(wanted.model.model) if part.layer_idx in wanted.shapes]

    def answer(self, call):
        output = checkpoint(call.run, use_reentrant=False)  # keeps no attention weights
        if not output.requires_grad:
            output.requires_grad_()
        if call.module.layer_idx in self._wanted.shapes:
            self.calls[call.module.layer_idx], self._outputs[call.module.layer_idx] = call, output
        return output

    @contextlib.contextmanager
    def watched(self):
        """A context in which the model may be run once, by answer()."""
        def keep(name):
            def hook(module, args, output):
                self._written[name] = output[0] if isinstance(output, tuple) else output
            return hook
        layers = next(part for part in self._wanted.model.model.modules() if isinstance(part, torch.nn.ModuleList) and
                      any(self._modules[0] in set(layer.modules()) for layer in part))
        handles = [layers[-1].register_forward_hook(keep("last"))]
        handles += [module.register_forward_hook(keep(module)) for module in self._modules]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def slopes(self):
        """By layer: the norm [t] of the gradient of sum_p |h_p|^2 with respect to each row of what W_O makes."""
        written = [self._written[call.module] for call in self.calls.values()]
        found = torch.autograd.grad(self._written["last"].float().square().sum(), written, retain_graph=True)
        return {layer: slope[0].float().norm(dim=1) for layer, slope in zip(self.calls, found)}

    def matrix(self, layer):
        """W_O [q_heads, dv, width], from unit vectors taken back through it, a different one at each token. Raises
        Error where tokens differ in what lies between: a gate, or a norm."""
        written, output = self._written[self.calls[layer].module], self._outputs[layer]
        t, width = written.shape[1:]
        rows = []
        for first in range(0, width, t):
            units = torch.zeros_like(written)
            count = min(t, width - first)
            units[0, range(count), range(first, first + count)] = 1
            rows.append(torch.autograd.grad(written, output, units, retain_graph=True)[0][:count])
        found = torch.cat(rows).permute(1, 2, 0).float()
        sums, = torch.autograd.grad(written, output, torch.ones_like(written), retain_graph=True)
        if not (sums - found.sum(2)).abs().max() <= TOLERANCE[torch.float32] * found.abs().sum(2).max():
            raise Error(f"layer {layer}: between attention and what it adds lies more than a matrix W_O, such as a "
                        f"gate or a norm, and kvgrad needs the size of a value after W_O; {self._wanted.remedy}.")
        return found


def kvgrad(wanted, context, name, prompt):
    """KVgrad, as NVIDIA's kvpress has it (pull requests 279 and 286, KVgradPress; the paper, OpenReview cg1wTCJjjk, was
    not at hand): the largest product, over the queries p of a repetition and the query heads, of the weight that a key
    gets, the norm of its value after W_O, and the norm of the gradient of Phi = sum_p |h_p|^2 at p, h the output of the
    last layer before the final norm. The gradient is taken where W_O writes: in the residual stream, unless a norm
    lies between, whose input it is then, as there. Keys and values of the context are constants."""
    def score(read, begin, end):
        one = Repetition(wanted)
        with in_single_precision(wanted.model.model), torch.enable_grad():
            with one.watched():
                read(one.answer)
            slopes, matrices = one.slopes(), {layer: one.matrix(layer) for layer in one.calls}
        found = {}
        for layer, call in one.calls.items():
            values = call.value[:, None, begin:end].detach().float()
            sizes = (values @ matrices[layer].view(len(values), -1, *matrices[layer].shape[1:])).norm(dim=-1)
            found[layer] = (attended(call, begin, end, len(context), slopes[layer]) * sizes).amax(1)
        return found
    return repeated(wanted, context, name, "kvgrad", score)
