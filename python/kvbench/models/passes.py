# SPDX-License-Identifier: Apache-2.0
"""Documents through a model, with the full cache and with compressed ones: the logits of the tokens after a context,
and what each cache says after it by itself."""

import copy
import inspect

import numpy as np
import torch

from ..program.commands import _core
from .attention import Interface
from .compressed import Compression, running
from .continued import cache_name
from .examination import examination
from .measure import TOLERANCE, body_of

UNKNOWN = "\ufffd".encode()
NO_MEMORY = (MemoryError, torch.OutOfMemoryError)


def ends_of(model):
    """The tokens that end an answer; none, if the model names none."""
    found = None
    for config in (getattr(model, "generation_config", None), model.config.get_text_config()):
        found = getattr(config, "eos_token_id", None) if found is None else found
    return set(found if isinstance(found, (list, tuple)) else [found]) - {None}


def judged(model, tokenizer, context, answer):
    """What the line that an answer continues is: "valid" JSON, "cut", or "broken" (docs/tasks.md)."""
    ended = bool(ends_of(model).intersection(answer[-1:]))
    before, after = (tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
                     for ids in (context, context + answer[:len(answer) - ended]))
    line = after.split("\n", before.count("\n"))[-1].encode(errors="replace")
    # Decoders write U+FFFD for bytes that are not UTF-8: at the end of an answer those of half a character.
    line = line if ended else line.removesuffix(UNKNOWN)
    return _core().judged(line.replace(UNKNOWN, b"\xff"), ended)


class Passes:
    """The tokens of a document are its context and those behind it, which are scored. `rope_layout`, `threads`,
    `protocol`: as for compressed(). `pulse`: called often; it may raise."""

    def __init__(self, model, rope_layout=None, threads=0, pulse=lambda: None, protocol="decode"):
        self._protocol = protocol
        self._model, self._layout, self._threads, self._pulse = model, rope_layout, threads, pulse
        self.continues = None  # whether tokens continue from a cache as in one pass; None: not known yet
        self._short = "logits_to_keep" in inspect.signature(model.forward).parameters

    def compression(self, method, budget, seed, context, score, layers=None):
        """A Compression for documents of `context` tokens and `score` scored ones. Contexts for which the method lacks
        data in a layer stay whole there."""
        return Compression(self._model, method, budget, seed, context, score, self._threads, ("skipped",),
                           self._layout, layers=layers, protocol=self._protocol)

    def logits(self, ids, count, cache=None):
        """Logits [count, vocabulary] at the last tokens of these, which continue the cache."""
        self._pulse()
        more = {"logits_to_keep": count} if self._short else {}
        if cache is not None:
            more[cache_name(self._model)] = cache
        given = torch.tensor([ids], device=self._model.device)
        return self._model(input_ids=given, **more).logits[0, -count:].float().cpu().contiguous().numpy()

    def exact(self, context, scored):
        """The logits of the scored tokens with the full cache, and the cache of the context with what methods see of
        it. There is none where tokens that continue from a cache do not have the logits of one pass: each pass then
        reads the context too."""
        made = None
        if self.continues is not False:
            try:
                made = self._continued(context, scored)
            except NO_MEMORY:
                raise
            except Exception:  # of the code of the model, which need not know caches
                pass
        if self.continues is None:
            whole = self.logits(context + scored, len(scored))
            self.continues = made is not None and bool(np.linalg.norm(made[0] - whole) <= np.linalg.norm(whole) *
                                                       TOLERANCE.get(self._model.dtype, 5e-2))
        if self.continues and made is not None:
            return made
        with Interface("compressed").attached(self._model):
            return self.logits(context + scored, len(scored)), None

    def exact_run(self, context, score):
        """The Compression that keeps each token of each layer."""
        found = examination(self._model)
        return self.compression("exact", "100%", 0, context, score, [*found.compressible, *found.windows] or None)

    def _continued(self, context, scored):
        run = self.exact_run(len(context), len(scored))
        with running(self._model, run, self._pulse):
            body = body_of(self._model)
            given = torch.tensor([context], device=self._model.device)
            cache = getattr(body(input_ids=given, use_cache=True), cache_name(body))
        with Interface("compressed").attached(self._model):
            return self.logits(scored, len(scored), copy.deepcopy(cache)), (cache, run.present)

    def compressed(self, run, context, scored, begun):
        """The logits of the scored tokens with the caches of a Compression. `begun`: the second that exact() returned
        for the document. Raises NoCache, with the reason, if the method has no cache for its context."""
        with running(self._model, run, self._pulse):
            if not begun or run.streams:
                return self.logits(context + scored, len(scored))
            cache = copy.deepcopy(begun[0])
            run.begin(cache, begun[1], context)
            return self.logits(scored, len(scored), cache)

    def own_answer(self, context, most, draw):
        """What the full cache says after a context: up to `most` tokens, the last of which may be an end token.
        draw(logits [1, vocabulary], position in the answer): the token that follows."""
        if self.continues is None:
            self.exact(context[:-1], context[-1:])
        with Interface("compressed").attached(self._model):
            return self._answer(context, [], None, most, draw)

    def answer(self, run, context, first, begun, most, draw):
        """The same of the caches of a Compression, through which its tokens pass, too. `first`: the first token of the
        answer, which follows from the context alone; `begun`: as for compressed()."""
        with running(self._model, run, self._pulse):
            cache = None
            if begun and not run.streams:
                cache = copy.deepcopy(begun[0])
                run.begin(cache, begun[1], context)
            return self._answer(context, [first], cache, most, draw)

    def _answer(self, context, answer, cache, most, draw):
        """Continues an answer. `cache`: holds the context; None: nothing has read it."""
        ends = ends_of(self._model)
        while len(answer) < most and not ends.intersection(answer[-1:]):
            if not self.continues:
                logits = self.logits(context + answer, 1)
            elif cache is None:
                logits, cache = self._read(context + answer)
            else:
                logits = self.logits(answer[-1:], 1, cache)
            answer.append(draw(logits, len(answer)))
        return answer

    def _read(self, ids):
        """Logits [1, vocabulary] at the last of these tokens, and the cache that holds them."""
        self._pulse()
        more = {"logits_to_keep": 1} if self._short else {}
        given = torch.tensor([ids], device=self._model.device)
        read = self._model(input_ids=given, use_cache=True, **more)
        return read.logits[0, -1:].float().cpu().contiguous().numpy(), getattr(read, cache_name(self._model))
