# SPDX-License-Identifier: Apache-2.0
"""kvbench.evaluate(): what methods do to the output of a model of transformers, as the rows of `kvbench eval`."""

import contextlib
import hashlib
import json as json_text
import os
import tempfile
import time
from typing import Any

import numpy as np
import torch

from .._error import Error, NoCache, check_text, first_line, require
from .._kinds import FilePath, checked, is_list, of_kind
from ..files.access import read_text
from ..program.commands import _core, check_table, named
from ..results.rows import Rows, load_csv
from .attention import alone_with
from .examination import check_model, examination
from .loading import TYPES, token_ids
from .measure import gradients
from .passes import NO_MEMORY, Passes, judged
from .scored import described, is_scored
from .turns import Conversation

BYTES = ("kv", "meta", "fast", "slow", "read", "full")
MOST_SEEDS = 100000  # as in replays


def listed(given, field):
    """The items of lists of texts with commas, as the program takes them; what is no text stays as it is."""
    items = given if isinstance(given, (list, tuple)) else [given]
    for item in items:
        check_text(item if isinstance(item, str) else "", f"evaluate(): argument '{field}'")
    return [part for item in items
            for part in (_core().split_items(item, field) if isinstance(item, str) else [item])]


def choices_of(methods):
    """What compressed() takes, the name and the parameters in rows, and whether there are seeds, of each method."""
    items = listed(methods, "methods")
    with named(items, "evaluate") as names:
        for item, name in zip(items, names):
            if is_scored(item):
                yield item, *described(item), True
                continue
            for choice in _core().choices(name):
                yield choice, choice.name, choice.params, choice.seeded


def seeds_of(given):
    """The seeds of a number of them, or of a list."""
    where, fault = "evaluate(): argument 'seeds', or an item of it,", "evaluate(): argument 'seeds'"
    seeds = given if is_list(given) else range(max(0, of_kind(given, int, where)))
    require(not hasattr(seeds, "__len__") or len(seeds) <= MOST_SEEDS, fault, f"asks for {len(seeds)} seeds; give at "
            f"most {MOST_SEEDS}.")
    seeds = [of_kind(seed, int, where) for seed in seeds]
    require(seeds, "evaluate()", "there are no seeds.")
    wrong = [seed for seed in seeds if not 0 <= seed < 2**32]
    require(not wrong, fault, f"it has {wrong[:1]}; a seed is from 0 to {2**32 - 1}.")
    return seeds


def digest_of(model):
    """SHA-256 of the weights of a model: of each tensor its name, type and shape, and its bytes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def lengths_of(given, where):
    """The lengths of the context, ascending."""
    lengths = sorted(of_kind(one, int, f"{where}: argument 'context', or an item of it,")
                     for one in (given if is_list(given) else [given]))
    require(lengths, where, "there are no lengths of the context.")
    require(lengths[0] >= 2, where, f"context is {lengths[0]}; it is at least 2.")
    twice = [one for one, other in zip(lengths, lengths[1:]) if one == other]
    require(not twice, where, f"context has {twice[:1]} twice; name each length once.")
    return lengths


class Evaluation:
    """Documents through a model with the full cache and with each configuration, to a table in the file `output`."""

    def __init__(self, model, methods, budgets, output, *, context, score, seeds=1, name=None, sha256=None, text="",
                 rope_layout=None, threads=0, protocol="decode", generate=0, temperature=0.0, sample_seed=0,
                 json=None, compress="", question_inside=False):
        where = "evaluate()"
        require(generate or json is None, where, "free answers are judged as JSON; give generate=, the most tokens of "
                "an answer.")
        self._tokenizer = json
        require(0 <= sample_seed < 2**32, where, f"sample_seed is {sample_seed}; it is from 0 to {2**32 - 1}.")
        self._generation, self._most = _core().Generation(generate, temperature, sample_seed), generate
        longest = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 2**31
        check_text(name or "", f"{where}: argument 'name'")
        self._lengths = lengths_of(context, where)
        shortest, context = self._lengths[0], self._lengths[-1]
        require(shortest == context or not generate, where, "the full cache has another answer behind each length of "
                "context, and no tokens would be scored at all of them; give one length, or leave out generate.")
        require(2 <= score <= 512, where, f"score is {score}; it is from 2 to 512.")
        require(generate or shortest + score <= longest, where, f"context={shortest} and score={score} are "
                f"{shortest + score} tokens; {type(model).__name__} was trained on {longest}.")
        self.model, self.context, self.score, self._longest = model, context, generate or score, longest
        self._found, self._passes = examination(model), Passes(model, rope_layout, threads, protocol=protocol)
        self._compression("exact", "100%")  # refuses what compressed() does
        layers = self._found.compressible or sorted(self._found.windows)
        require(layers, where, f"every layer of {type(model).__name__} has capped logits, or a mask that is no sliding "
                "window, and methods run in neither.")
        name = name or os.path.basename(os.path.normpath(model.config._name_or_path or type(model).__name__))
        weights = next((short for short, dtype in TYPES.items() if dtype == model.dtype), str(model.dtype))
        self._table = _core().Evaluation(os.fspath(output), name, sha256 or digest_of(model), text, context, weights,
                                         layers, model.config.get_text_config().num_hidden_layers, protocol,
                                         self._generation, "text" if json is None else "json")
        seeds, budgets = seeds_of(seeds), [str(item) for item in listed(budgets, "budgets")]
        require(budgets, where, "there are no budgets.")
        self._compress, self._inside = compress, question_inside
        self._configurations = []  # method, budget and seed as compressed() takes them, and why it does not
        for method, label, params, seeded in choices_of(methods):
            for budget in budgets:
                for seed in seeds if seeded else seeds[:1]:
                    self._add((method, budget, seed), label, params, seeded)

    def _compression(self, method, budget, seed=0, scored=None):
        return self._passes.compression(method, budget, seed, self.context, scored or self.score)

    def _add(self, given, label, params, seeded):
        layout = why_not = ""
        try:
            run = self._compression(*given)
            layout = run.rope_layout
            if self._compress and run._scored:
                why_not = "it asks the model about a context as one, and that of a conversation is read in parts"
            elif not run.layers:
                why_not = "every layer has a sliding window, where only methods that round run"
        except Error as refusal:
            why_not = str(refusal)
        if self._table.add_configuration(label, params, given[1], seeded, given[2], layout):
            self._configurations.append((given, why_not))

    def read(self, name, ids):
        """One document: its first tokens are the context. Those behind it are scored, or those of the full cache's
        answer. A shorter context than the longest one keeps a token that begins texts, and its last tokens."""
        longest = self._lengths[-1]
        context, scored, why_not = ids[:longest], ids[longest:longest + self.score], ""
        if self._most:
            scored, why_not = self._own_answer(name, context)
        elif len(scored) < self.score:
            why_not = f"document {name} has {len(ids)} tokens, and context={longest} and score={self.score} " \
                f"need {longest + self.score}"
        begins = int(context[:1] == [self.model.config.get_text_config().bos_token_id])
        for self.context in self._lengths:
            tokens = self.context + self.score
            too_long = f"context and scored tokens are {tokens} tokens, and the model was trained on {self._longest}" \
                if not self._most and tokens > self._longest else ""
            self._read(name, context[:begins] + context[begins + longest - self.context:], scored, begins,
                       why_not or too_long)

    def _read(self, name, context, scored, begins, why_not):
        short = self._table.add_document(name, context, scored, begins, self.context, self._judged(context, scored))
        if why_not:
            for number in range(len(self._configurations)):
                self._table.add_end(number, "skipped", why_not)
            return
        with gradients.off():
            try:
                self._table.add_short_scores(self._passes.logits(short + scored, len(scored)))
            except Error as failure:
                raise Error(f"evaluate(): document {name}, in the model itself: {failure}") from None
            full, begun = self._passes.exact(context, scored)
        for number, (given, why_not) in enumerate(self._configurations):
            if why_not:
                self._table.add_end(number, "skipped", why_not)
            else:
                self._run(number, given, context, scored, full, begun)

    def converse(self, name, before, turns):
        """One conversation: what was said and what was answered, by turn, behind the tokens `before`."""
        context, scored, points = self._table.add_transcript(name, before, *zip(*turns), self._compress, self._inside)
        self.context, tokens = len(context), context + scored
        require(len(tokens) <= self._longest, f"evaluate(): {name}", f"has {len(tokens)} tokens, and "
                f"{type(self.model).__name__} was trained on {self._longest}; leave its last turns out.")
        with gradients.off():
            full, begun = self._passes.exact(context, scored)
        for number, (given, why_not) in enumerate(self._configurations):
            if why_not or not begun:
                self._table.add_end(number, "skipped", why_not or "the code of this model does not continue from a "
                                    "cache with the logits of one pass")
            else:
                with self._ends(number):
                    self._talk(number, self._compression(*given), context + scored, points, begun, full)

    def _talk(self, number, run, tokens, points, begun, full):
        started, talk = time.monotonic(), Conversation(self._passes, self.model, run, self._compress)
        logits = talk.logits(tokens, points, begun)
        held = {part: sum(of[part] for of in talk.bytes.values()) for part in BYTES}
        self._add_pass(number, talk.exact, talk.tokens, (talk.bytes, held), [talk.note] * bool(talk.note), full, logits,
                       time.monotonic() - started,
                       positions=[row.tolist() for heads in talk.positions.values() for row in heads])

    def _own_answer(self, name, context):
        """The answer of the full cache, and why nothing can be learned of it."""
        if len(context) < self.context:
            return [], f"document {name} has {len(context)} tokens, and context={self.context}"
        try:
            with gradients.off():
                answer = self._passes.own_answer(context, self._most, self._draw(context))
        except Error as failure:
            raise Error(f"evaluate(): document {name}, in the model itself: {failure}") from None
        return answer, "" if len(answer) > 1 else _core().ends_at_once

    def _judged(self, context, answer):
        return judged(self.model, self._tokenizer, context, answer) if self._tokenizer and answer else ""

    def _draw(self, context):
        return _core().NextToken(self._generation, context)

    def finish(self, per_document, times=True):
        self._table.finish(per_document or len(self._lengths) > 1, times)

    @contextlib.contextmanager
    def _ends(self, number):
        """Passes that end without scores get their status."""
        try:
            yield
        except NoCache as why:
            self._table.add_end(number, why.status, str(why))
        except (Error, *NO_MEMORY) as failure:
            self._table.add_end(number, "failed", str(failure) or "there is no memory for it")

    def _run(self, number, given, context, scored, full, begun):
        started, answer = time.monotonic(), []
        with self._ends(number):
            run = self._compression(*given, len(scored))
            logits = self._passes.compressed(run, context, scored, begun)
            if self._most:
                answer = self._passes.answer(self._compression(*given, len(scored)), context, scored[0], begun,
                                             self._most, self._draw(context))
            exact = {layer: held.whole for layer, held in run.present.items() if held.whole}
            tokens = {layer: held.decoder.tokens() for layer, held in run.present.items() if layer in run.layers}
            notes = [f"answers reach beyond the {self._longest} tokens that the model was trained on"] \
                if self._most and self.context + max(len(full), len(answer)) > self._longest else []
            self._add_pass(number, exact, tokens, (run.layers, run.bytes), notes, full, logits,
                           time.monotonic() - started, answer, self._judged(context, answer))

    def _add_pass(self, number, exact, tokens, held, notes, full, logits, seconds, answer=(), json="", positions=()):
        """`exact`: why layers stay so; `tokens`: of layers the budget and the entries that answer; `held`: the layers
        whose bytes these are; `positions`: as Evaluation::add_pass()."""
        reason, layers = next(iter(exact.values()), ""), [layer for layer in tokens if layer not in exact]
        if not layers:
            self._table.add_end(number, "skipped", reason)
            return
        sizes = self._found.sizes(self.context + len(full))
        rest = 2.0 * sum(size for layer, (_, size) in sizes.items() if layer not in held[0])  # 16 bits, as in rows
        heads = sum(heads for heads, _ in sizes.values())
        parts = [(held[1][part] + (rest if part not in ("meta", "slow") else 0)) / heads for part in BYTES]
        notes = [f"layer {', '.join(map(str, exact))} stays exact: {reason}"] * bool(exact) + notes
        self._table.add_pass(number, full, logits, layers, *np.mean([tokens[layer] for layer in layers], axis=0), parts,
                             "; ".join(notes), seconds, list(answer), json, list(positions))


def documents_of(documents, tokenizer, vocabulary):
    """Names and token ids."""
    require(isinstance(documents, (str, dict)) or hasattr(documents, "__iter__"), "evaluate()",
            "documents are a list or a dict of texts or token ids.")
    given = documents if isinstance(documents, dict) else \
        {f"text-{number}": one for number, one in enumerate([documents] if isinstance(documents, str) else documents)}
    require(given, "evaluate()", "there are no documents.")
    names = [str(name) for name in given]
    for name, one in zip(names, given.values()):
        where = f"evaluate(): document {ascii(name)[1:-1]}"
        check_text(name, where)
        require(names.count(name) == 1, where, "is given twice, by its text and by a number.")
        require(name not in ("", "all"), where, f"cannot be named '{name}', as rows over all are; choose another name.")
        if isinstance(one, str):
            require(tokenizer is not None, where, "is text; give tokenizer=, or token ids.")
            one = token_ids(tokenizer, one)
        require(not np.ma.is_masked(one), where, "is a masked array; fill or remove what is masked.")
        try:
            ids = torch.as_tensor(one)
        except (TypeError, ValueError, RuntimeError):
            raise Error(f"{where} is neither text nor token ids.") from None
        integers = not (ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool)
        require(ids.numel() and integers and ids.shape in ((ids.numel(),), (1, ids.numel())), where,
                "is no list of token ids.")
        ids = ids.long()
        require(0 <= int(ids.min()) and int(ids.max()) < vocabulary, where,
                f"has ids from {int(ids.min())} to {int(ids.max())}; the model knows those from 0 to {vocabulary - 1}.")
        yield name, ids.flatten().tolist()


def conversations_of(given, tokenizer, vocabulary):
    """Of a file of conversations, or a list of them, as `kveval --transcripts` reads them: names, the ids before the
    first turn, and by turn those of what is said and of the answer, and the span and size of each message."""
    is_file = isinstance(given, (str, os.PathLike))
    path = os.fspath(given) if is_file else "conversations"
    try:
        text = read_text(path) if is_file else "\n".join(map(json_text.dumps, given))
    except TypeError as failure:
        raise Error(f"evaluate(): {first_line(failure)}; with compress= documents are a file of conversations, or a "
                    "list of them.") from None

    def ids_of(content):
        text, ids, _ = content
        require(not text or tokenizer is not None, path, "a content is text; give tokenizer=, or lists of token ids.")
        wrong = [one for one in ids if one >= vocabulary]
        require(not wrong, path, f"{wrong[:1]} is no token id of this model; ids are from 0 to {vocabulary - 1}.")
        return token_ids(tokenizer, text + "\n", add_special_tokens=False) if text else ids

    def turn_of(asked, answer):
        *said, answered = parts = [ids_of(one) for one in (*asked, answer)]
        messages = [(span, len(ids)) for (_, _, span), ids in zip((*asked, answer), parts)]
        return [one for ids in said for one in ids], answered, messages
    before = token_ids(tokenizer, "") if tokenizer is not None else []
    before = before if before == [getattr(tokenizer, "bos_token_id", None)] else []
    for number, turns in enumerate(_core().transcripts(text, path)):
        yield f"transcript-{number}", before, [turn_of(asked, answer) for asked, answer in turns]


@checked
def evaluate(model: Any, documents: Any, methods: Any, budgets: Any = "25%mem", *, tokenizer: Any = None,
             context: Any = 1024, score: int = 64, seeds: Any = 1, per_document: bool = True,
             output: FilePath | None = None, name: str | None = None, rope_layout: str | None = None,
             threads: int = 0, protocol: str = "decode", generate: int = 0, temperature: float = 0.0,
             sample_seed: int = 0, json: bool = False, compress: str | int | None = None,
             question: str = "outside") -> Rows:
    """What methods do to the output of a model of transformers: the rows of ``kvbench eval``.

    One `evaluate()` of a model runs at a time: calls in other threads wait for each other, as `compressed()` does for
    them. A model that is inside `compressed()` is refused, and so is a call of the model itself in another thread.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A loaded causal model in evaluation mode.
    documents : list, or dict by name
        Token ids, or with `tokenizer` texts. A shorter document than `context` + `score` tokens is `skipped`.
    methods, budgets : one, or list
        What `compressed()` takes; what it refuses is a row with its status and the reason.
    tokenizer : optional
        A tokenizer of transformers, for documents that are texts.
    context : int, or list of int
        The first `context` tokens of a document are compressed. Of several lengths the longest counts: the same tokens
        are scored behind the last tokens of each, and ``kvbench report`` says whether the damage grows with them.
    score : int
        The number of tokens behind the context, which are scored.
    seeds : int, or list of int
        A number of seeds, or the seeds, for methods that draw random numbers.
    per_document : bool
        Also one row for each document; there always is if `context` is a list.
    output : path, optional
        A file that gets the CSV.
    name : str, optional
        What rows call the model.
    rope_layout, threads, protocol
        As for `compressed()`.
    generate : int
        From 2 on: free generation. The full cache continues each context by up to so many tokens, which are scored in
        place of the `score` ones of the document, and each compressed cache continues it by itself
        (docs/free-answers.md).
    temperature : float
        Of sampled answers, which all caches draw with the same random numbers; 0: greedy.
    sample_seed : int
        The seed of these numbers.
    json : bool
        Whether the line that each free answer continues, to its line end, is judged as JSON (docs/tasks.md).
    compress : {"once", "turn", "anew"}, or int, optional
        When the cache of a conversation is compressed, as ``kveval --compress``: `documents` are then the path of a
        file of conversations, or a list of them, and their answers are scored (docs/turns.md).
    question : {"outside", "inside"}
        Where the question of a turn of a conversation is when its cache is compressed.

    Returns
    -------
    Rows
        The columns of ``kvbench eval --columns``; KL in nats per token.

    Raises
    ------
    Error
        If the model cannot be evaluated, or an argument is not what it must be.

    Examples
    --------
    >>> rows = kvbench.evaluate(model, documents, ["h2o", "snapkv+q8_0"], ["25%mem", "12.5%mem"])
    >>> kvbench.report(rows)
    """
    check_model(model, "evaluate()")
    check_table(output, "evaluate()")
    require(tokenizer is not None or not json, "evaluate()", "json=True judges text; give tokenizer=.")
    vocabulary, talks = model.config.get_text_config().vocab_size, compress is not None
    if talks:
        require(question in ("outside", "inside"), "evaluate()", f"question is {question!r}; it is 'outside' or "
                "'inside'.")
        require((context, score, generate, protocol) == (1024, 64, 0, "decode"), "evaluate()", "context, score, "
                "generate and protocol are of other documents than conversations; leave them out with compress.")
        context = score = 2
    read = list((conversations_of if talks else documents_of)(documents, tokenizer, vocabulary))
    name_of_text = os.path.basename(documents) if isinstance(documents, (str, os.PathLike)) and talks else read[0][0]
    with alone_with(model, "evaluate()"), tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
        path = os.path.abspath(output or os.path.join(folder, "rows.csv"))
        run = Evaluation(model, methods, budgets, path, context=context, score=score, seeds=seeds, name=name,
                         text=name_of_text, rope_layout=rope_layout, threads=threads, protocol=protocol,
                         generate=generate, temperature=temperature, sample_seed=sample_seed,
                         json=tokenizer if json else None, compress=str(compress) if talks else "",
                         question_inside=question == "inside")
        for document in read:
            (run.converse if talks else run.read)(*document)
        run.finish(per_document)
        return load_csv(path)
