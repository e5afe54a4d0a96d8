# SPDX-License-Identifier: Apache-2.0
"""Conversations through a model, whose caches are compressed again and again (apps/kveval/conversation.cpp is the same
of llama.cpp)."""

import copy

import numpy as np
import torch

from .._error import NoCache
from ..program.commands import _core
from .attention import Interface
from .compressed import check_mask, running
from .continued import cache_name
from .measure import body_of, gradients
from .sequences import OBSERVED, array

OTHER_NUMBERS = "its heads hold different numbers of tokens, and a method is given equally many of all heads"


class Held:
    """What the cache of one layer holds of the tokens that it has seen. `layer`: has read them exactly."""

    def __init__(self, layer, seen, kv_heads):
        self.positions = np.tile(np.arange(seen), (kv_heads, 1))
        self.sums, self.queries, self.stored = layer._sums.cpu().numpy(), layer._observed, layer._stored
        self.next = None  # by kv head: positions after the present tokens; None: the method took no part

    def whole(self, call, count):
        """Keys and values of all tokens so far: layers with a sliding window keep them here."""
        if self.stored is None:
            return call.key, call.value
        self.stored = [torch.cat([before, rows[:, -count:]], 1)
                       for before, rows in zip(self.stored, (call.key, call.value))]
        return self.stored

    def add_attention(self, call, keys, seen, count):
        """Adds to the mass of each token that of the queries of a call, in the softmax over the keys of the tokens that
        are still held and of those up to the query."""
        group = len(call.query) // len(keys)
        self.sums = np.pad(self.sums, ((0, 0), (0, count)))
        after = np.arange(seen, seen + count)
        later = torch.ones(count, count, dtype=torch.bool).triu(1)
        for head, held in enumerate(self.positions if self.next is None else self.next):
            tokens = np.concatenate([held[held < seen], after])
            for query in range(head * group, (head + 1) * group):
                logits = call.scale * call.query[query].double() @ keys[head, tokens].double().mT
                logits[:, -count:].masked_fill_(later.to(logits.device), -torch.inf)
                self.sums[query, tokens] += logits.softmax(-1).sum(0).cpu().numpy()


class Conversation:
    """The cache of a conversation under a Compression. `compress`: once, turn, anew, or a number of tokens."""

    def __init__(self, passes, model, run, compress):
        self._passes, self._model, self._run = passes, model, run
        self._again, self._anew = compress != "once", compress == "anew"
        self._held, self._seen, self._last = {}, 0, False
        self.exact, self.bytes, self.tokens, self.note = {}, {}, {}, ""  # by layer, of the last tokens
        self.positions = {}  # by layer and kv head, of the tokens that are held behind the last one

    def logits(self, tokens, points, begun):
        """Logits [m, vocabulary] of the tokens behind the first point; a compression is at each. `begun`: as
        Passes.exact() returns it."""
        exact, layers = begun
        reader = self._passes.exact_run(len(tokens), 1)
        if self._anew:
            exact = copy.deepcopy(exact)
            reader.begin(exact, layers, tokens[:points[0]])
        cache, found = copy.deepcopy(exact), []
        for begin, before, end in zip(points, [points[0], *points], [*points[1:], len(tokens)]):
            if begin > before and self._anew:
                with running(self._model, reader):
                    body = body_of(self._model)
                    given = torch.tensor([tokens[before:begin]], device=self._model.device)
                    body(input_ids=given, **{cache_name(body): exact})
                layers, cache = reader.present, copy.deepcopy(exact)
            if begin == before or self._anew:
                self._held = {number: Held(layers[number], begin, self._run._found.layers[number].shape[1])
                              for number in self._run.layers}
            self._seen, self._last = begin, end == len(tokens)
            self.exact, self.bytes, self.tokens, self.positions = {}, {}, {}, {}
            found.append(self._answered(tokens[begin:end], cache))
            if not self._last and not self._anew:
                self._advance(end)
        return np.concatenate(found)

    def _answered(self, tokens, cache):
        sizes = [(held.positions, held.positions.shape[1]) for held in self._held.values()]
        self._observed = min(OBSERVED, *(size for _, size in sizes))
        for positions, size in sizes:
            contiguous = (positions[:, ::-1] == self._seen - 1 - np.arange(size)).all(0)
            self._observed = min(self._observed, int(np.argmin([*contiguous, False])))
        interface = Interface("compressed")
        interface.on_call = self._attend
        with gradients.off(), interface.attached(self._model):
            return self._passes.logits(tokens, len(tokens), cache)

    def _attend(self, call):
        number, run = call.module.layer_idx, self._run
        if number not in self._held:
            return call.run()
        check_mask(call, run.window(number))
        if call.sinks is not None:
            raise NoCache("skipped", "a conversation knows no attention sinks that the model has learned")
        held, count = self._held[number], call.query.shape[1]
        keys, values = held.whole(call, count)
        queries = torch.cat([held.queries[:, held.queries.shape[1] - self._observed:], call.query], 1)
        group, size = len(call.query) // len(keys), held.positions.shape[1]
        at = np.pad(held.positions, ((0, 0), (0, count)))
        at[:, size:] = np.arange(self._seen, self._seen + count)
        sums = np.pad(np.take_along_axis(held.sums, np.repeat(held.positions, group, 0), 1), ((0, 0), (0, count)))
        document = run.document(number, call, size, count, self._observed, positions=False)
        turn = _core().Turn(document, run._choice, run.budget, run._seed, run._threads, self._seen, self._again)
        status, reason, outputs, tokens, no_tokens, self.bytes[number], *self.tokens[number] = turn.answer(
            run._numbers.index(number), np.take_along_axis(run.ordered(number, keys, 0), at[:, :, None], 1),
            np.take_along_axis(array(values), at[:, :, None], 1), run.ordered(number, queries, 0), sums)
        self.note = turn.note
        if status == "skipped":  # the layer stays exact
            self.exact[number] = reason
            del self.bytes[number], self.tokens[number]
        elif status != "ok":
            raise NoCache(status, f"layer {number}: {reason}")
        else:
            positions = [row[np.asarray(kept)] for row, kept in zip(at, tokens)]
            if turn.holds_tokens:
                self.positions[number] = positions
            if not self._last and not self._anew:
                if no_tokens:
                    raise NoCache("skipped", no_tokens)
                held.next = positions
        if not self._last:
            held.add_attention(call, keys, self._seen, count)
            held.queries = torch.cat([held.queries, call.query], 1)[:, -OBSERVED:]
        return call.run() if number in self.exact else torch.from_numpy(outputs).to(call.query).transpose(0, 1)

    def _advance(self, end):
        sizes = {len(row) for held in self._held.values() for row in held.next or ()}
        if len(sizes) > 1:
            raise NoCache("skipped", OTHER_NUMBERS)
        size = next(iter(sizes), end)
        for held in self._held.values():
            last = np.tile(np.arange(end - size, end), (len(held.positions), 1))
            held.positions, held.next = last if held.next is None else np.stack(held.next), None
