# SPDX-License-Identifier: Apache-2.0
"""One layer of one sequence inside kvbench.compressed(): its exact context, and what answers the tokens after it."""

import copy
from dataclasses import dataclass, replace

import numpy as np
import torch

from .._error import Error

OBSERVED = 128  # last queries of a context that methods see, as in dumps and in kveval


@dataclass
class LayerFacts:
    number: int
    scale: float
    rope_theta: float
    window: int  # 0: none


@dataclass
class Document:
    """What kvbench._core.Decoder must know about a context and its layers."""
    model: str
    num_layers: int
    cache_layers: list  # numbers of the layers with a cache of their own
    num_query_heads: int
    num_kv_heads: int
    head_dim: int
    value_dim: int
    rope_type: str
    rope_layout: str
    context: int  # tokens that are compressed; in a stream those to which shares of a budget refer
    known: int  # tokens after them for which budgets hold
    observed: int
    layers: list


def array(tensor):
    """float32 [heads, rows, dim], C-contiguous."""
    return np.ascontiguousarray(tensor.detach().float().cpu().numpy())


def continued(tensor, count):
    """[heads, rows, dim] followed by `count` of its rows again."""
    rows = tensor.shape[1]
    return torch.cat([tensor, tensor[:, torch.arange(count, device=tensor.device) % rows]], 1) if count else tensor


class Layer:
    def __init__(self, compression, number):
        self._compression, self._number = compression, number
        self.tokens = 0  # that were answered
        self.whole = ""  # why the method has no cache for it
        self._next = None  # position behind the last token, where the model's code gives it to its attention
        self.start = 0  # position of the first token
        self.ids, self.scored = [], None  # of the first layer, where a method needs them: tokens, scores of a context
        self._stored = None  # keys and values of the context, where the model's cache drops those behind a window
        self.outputs = None  # [rows, q_heads, dv] of the last tokens of the context, until it is compressed
        self.decoder = self._index = self._sums = self._observed = None

    def stand_at(self, positions):
        """Raises Error unless the tokens of a call, at `positions` [1, t] where these are known, follow each other and
        those before them, as methods that turn keys take them to."""
        if not torch.is_tensor(positions) or positions.dim() != 2:
            return
        first, last = int(positions[0, 0]), int(positions[0, -1])
        for row in positions.tolist():
            known = ([] if self._next is None else [self._next - 1]) + row
            for one, following in zip(known, known[1:]):
                if following != one + 1:
                    raise Error(f"layer {self._number}: position {following} follows position {one}, where position "
                                f"{one + 1} must; leave position_ids out, or give them where the model's code counts "
                                "each call from 0 (Bamba).")
        if not self.tokens:
            self.start = first
        self._next = last + 1

    def held(self):
        """How many tokens the model's cache may hold: all, or the last that the window of a next query reaches."""
        window = self._compression.window(self._number)
        return self.tokens, min(self.tokens, window - 1) if window else self.tokens

    def of(self, compression, tokens):
        """The same context for another Compression. Nothing is decoded yet."""
        made = copy.copy(self)
        made._compression, made.ids = compression, list(tokens)
        return made

    def prefill(self, call):
        """The exact output of a part of the context, which is remembered as far as methods may see it."""
        heads, t, d = call.query.shape
        n, device = self.tokens + t, call.query.device
        dropped = n - call.key.shape[1]
        sums = torch.zeros(heads, n, dtype=torch.float64, device=device)

        def add(first, output, weights):
            sums[:, dropped:dropped + weights.shape[2]] += weights.sum(1)
        output = call.run(add)
        if self._sums is None:
            self._observed = torch.empty(heads, 0, d, dtype=call.query.dtype, device=device)
            self.outputs = output[:0]
        else:
            sums[:, :self._sums.shape[1]] += self._sums
        self._sums = sums
        if self._compression.window(self._number):
            self._stored = self._all(call, t)
        self._observed = torch.cat([self._observed, call.query.detach()], 1)[:, -OBSERVED:].clone()
        self.outputs = torch.cat([self.outputs, output.detach()])[-OBSERVED:].clone()
        self.tokens = n
        return output

    def decode(self, call, sequence):
        """The output of the queries of a call after the context, whose tokens are the last ones. `sequence`: all its
        layers, by number."""
        count = call.query.shape[1]
        if self.decoder is None:
            self._compress(call, count, sequence)
        rows = self.decoder.answer(self._index, count, self._ordered(call.key[:, -count:]),
                                   array(call.value[:, -count:]), self._ordered(call.query[:, -count:]))
        self.tokens += count
        output = torch.from_numpy(rows).to(call.query).transpose(0, 1)
        if self._compression.inject_scale == 1:
            return output
        exact = replace(call, mask=call.mask[:, :, -count:]).run()
        return torch.lerp(exact.float(), output.float(), self._compression.inject_scale).to(exact)

    def _all(self, call, count):
        """The keys and values of all tokens, of which a call has brought the last `count`."""
        given = call.key.detach(), call.value.detach()
        if call.key.shape[1] == self.tokens + count:
            return given
        return tuple(torch.cat([before, rows[:, -count:]], 1) for before, rows in zip(self._stored, given))

    def _ordered(self, tensor):
        return self._compression.ordered(self._number, tensor, self.start)

    def _compress(self, call, count, sequence):
        """Compresses the context. Of tokens that are not known yet, others stand for the keys and values: they only
        count what a budget in bytes allows."""
        context, known, seen = self.tokens, max(count, self._compression.decode or 0), self._observed
        if self._compression.streams:
            context = self._compression.context_of(self, count)
            known = max(count, context + (self._compression.decode or 0))
        queries = call.query if seen is None else torch.cat([seen, call.query], 1)
        queries = torch.nn.functional.pad(queries, (0, 0, 0, known - count))
        sums = np.zeros((len(queries), self.tokens + known))
        if self._sums is not None:
            sums[:, :self.tokens] = self._sums.cpu().numpy()
        keys, values = self._all(call, count)
        arrays = (self._ordered(continued(keys, known - count)), array(continued(values, known - count)),
                  self._ordered(queries), sums, np.zeros(0, np.float32) if call.sinks is None else array(call.sinks))
        self.decoder, self._index = self._compression.compressed_by(
            self._number, sequence, call, arrays, context, self.tokens + known - context,
            context if seen is None else seen.shape[1])
        self._observed = self._sums = self.outputs = self._stored = None
