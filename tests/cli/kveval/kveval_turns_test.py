# SPDX-License-Identifier: Apache-2.0
"""kveval --transcripts on a small model: KL of every turn is that of a forward pass in NumPy whose cache is compressed
again and again; rows and refusals.

Usage: kveval_turns_test.py KVDUMP PRINT_ARRAY KVEVAL KVBENCH"""

import json
import math

from eval_harness import evaluate, harness, kveval, number

harness.use_environment()
import numpy  # noqa: E402
import tiny_model as tiny  # noqa: E402
from float_reference import Llama  # noqa: E402

TURNS, SHARE = 4, 0.4
FLAGS = ["--no-f32", "--budget", f"{SHARE * 100:g}%"]
SINK = "sink[sinks=3,reposition=false]"


def model_of(folder):
    return tiny.write(folder / "m.gguf", "llama", tiny.LLAMA, 2, {"rope.freq_base": 1e4})


def turns_of(which, turns=TURNS):
    """Lists of ids (question, answer), of unequal lengths."""
    state, out = 97 * which + 5, []
    for turn in range(turns):
        parts = []
        for size in (19 - 2 * turn + which, 6 + turn):
            ids = []
            for _ in range(size):
                state = (state * 1103515245 + 12345) % 2**31
                ids.append(state // 65536 % tiny.VOCAB)
            parts.append(ids)
        out.append(parts)
    return out


def messages_of(turns):
    return [{"role": role, "content": ids} for turn in turns for role, ids in zip(("user", "assistant"), turn)]


def transcripts_file(folder, count=3):
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps({"messages": messages_of(turns_of(which))}) + "\n" for which in range(count)))
    return path


def compressions(turns, when, inside):
    """Tokens before each compression, and where answers begin and end."""
    answers, end = [], 0
    for asked, answer in turns:
        answers.append((end + len(asked), end + len(asked) + len(answer)))
        end = answers[-1][1]
    points = [begin - 1 if inside else to for begin, to in answers]
    if not inside:
        points, answers = points[:-1], answers[1:]
    if when == "once":
        points = points[:1]
    elif when.isdigit():
        points = list(range(points[0], end, int(when)))
    return points, answers, end


class Conversation(Llama):
    """A cache that is compressed at `points`. `method`: knorm keeps short keys and every later token; sink the first
    three tokens and the last ones, also while tokens come if it is compressed once; h2o the last half of its budget,
    and of the others the tokens with the most attention from all queries that saw them. `exact`: by layer the keys and
    values from which `anew` compresses, and which context tokens have."""

    def __init__(self, path, points, end, method, exact=None):
        super().__init__(path)
        self.points, self.end, self.method, self.exact, self.seen = points, end, method, exact, []
        self.held = []   # when all tokens are there: those of each kv head of each layer

    def kept(self, candidates, keys, budget, sums=None):
        if self.method == SINK:
            return candidates if len(candidates) <= budget else candidates[:3] + candidates[3 - budget:]
        if self.method == "h2o":
            recent = budget - budget // 2
            old = numpy.array(candidates[:-recent])
            heavy = old[numpy.argsort(-sums[old], kind="stable")[:budget // 2]].tolist()
            return candidates if len(candidates) <= budget else sorted(heavy) + candidates[-recent:]
        norms = numpy.linalg.norm(keys[candidates], axis=-1)
        return sorted(numpy.array(candidates)[numpy.argsort(norms, kind="stable")[:budget]].tolist())

    def attend(self, q, k, v):
        layer = len(self.seen)
        self.seen.append((k, v))
        context_k, context_v = self.exact[layer] if self.exact else (k, v)
        group, out = self.heads // self.kv_heads, super().attend(q, k, v)
        for head in range(self.kv_heads):
            held, sums = list(range(self.points[0])), numpy.zeros(q.shape[1])
            for i in held:
                for g in range(head * group, (head + 1) * group):
                    weights = numpy.exp(k[head, :i + 1] @ q[g, i] / numpy.sqrt(q.shape[-1]))
                    sums[:i + 1] += weights / weights.sum()
            for begin, end in zip(self.points, [*self.points[1:], self.end]):
                if self.exact:
                    held = list(range(begin))
                budget = min(len(held), math.floor(SHARE * begin + 0.5))
                held = self.kept(held, context_k[head], budget, sums)
                for i in range(begin, end):
                    held.append(i)
                    if self.method == SINK and len(self.points) == 1:
                        held = self.kept(held, None, budget)
                    own = [t for t in held if t >= begin]
                    old = [t for t in held if t < begin]
                    keys = numpy.concatenate([context_k[head][old], k[head][own]])
                    values = numpy.concatenate([context_v[head][old], v[head][own]])
                    for g in range(head * group, (head + 1) * group):
                        weights = numpy.exp(keys @ q[g, i] / numpy.sqrt(q.shape[-1]))
                        out[g, i] = weights @ values / weights.sum()
                        sums[old + own] += weights / weights.sum()
            self.held.append(held)
        return out


def reference(model, turns, when, inside, method):
    """KL of each scored turn; kept_by_span, lost_by_span."""
    points, answers, end = compressions(turns, when, inside)
    tokens = [t for turn in turns for part in turn for t in part]
    plain = Conversation(model, [end], end, method)
    full = plain.log_probabilities(tokens, 2)
    exact = plain.seen if when == "anew" else None
    compressed = Conversation(model, points, end, method, exact)
    short = compressed.log_probabilities(tokens, 2)
    kl = (numpy.exp(full) * (full - short)).sum(-1)
    return [kl[begin - 1:to - 1].mean() for begin, to in answers], spans(turns, compressed.held)


def spans(turns, held):
    """The shares of what is asked and of the answers but the last one: that a head holds, and that no head holds."""
    of, end = {"user": [], "assistant": []}, 0
    for turn in turns:
        for part, tokens in zip(of.values(), turn):
            part += range(end, end + len(tokens))
            end += len(tokens)
    del of["assistant"][-len(turns[-1][1]):]
    return [", ".join(f"{name} {1 - share if lost else share:.3f}" for name, part in of.items()
                      for share in [numpy.mean([[token in one for token in part] for one in heads])])
            for heads, lost in ((held, False), ([set().union(*held)], True))]


def test_kl_of_each_turn_is_that_of_numpy(folder):
    model, path = model_of(folder), transcripts_file(folder, 1)
    seen = {}
    for when in "once", "turn", "anew", "20":
        for question in "outside", "inside":
            table = evaluate("--transcripts", path, "--compress", when, "--question", question, "--method",
                             f"knorm,{SINK}", *FLAGS, model=model)
            assert {row["protocol"] for row in table} == {f"compress {when}"}, table
            for method in "knorm", SINK:
                expected, by_span = reference(model, turns_of(0), when, question == "inside", method)
                of_method = [row for row in table if method.startswith(row["method"]) and row["document"] == "all"]
                found = [row for row in of_method if row["turn"]]
                assert [int(row["turn"]) for row in found] == list(range(TURNS + 1 - len(expected), TURNS + 1)), found
                for row, kl in zip(found, expected):
                    assert kl > 1e-3 and abs(number(row, "kl_mean") - kl) < 2e-5 * max(1, kl), (
                        when, question, row["turn"], method, row["kl_mean"], kl)
                seen[when, question, method] = [row["kl_mean"] for row in found]
                [whole] = [row for row in of_method if not row["turn"]]
                mean = sum(number(row, "kl_mean") * number(row, "scored") for row in found)
                assert abs(number(whole, "kl_mean") - mean / number(whole, "scored")) < 1e-5, whole
                assert [whole["kept_by_span"], whole["lost_by_span"]] == by_span, (when, question, whole, by_span)
    assert len({tuple(kl) for kl in seen.values()}) == len(seen), seen   # every rule is another measurement


def test_attention_is_carried_from_one_compression_to_the_next(folder):
    model, path = model_of(folder), transcripts_file(folder, 1)
    for when in "turn", "20":
        table = evaluate("--transcripts", path, "--compress", when, "--method", "h2o", *FLAGS, model=model)
        found = [number(row, "kl_mean") for row in table if row["document"] == "all" and row["turn"]]
        expected, by_span = reference(model, turns_of(0), when, False, "h2o")
        assert {row["kept_by_span"] for row in table} == {by_span[0]}, (when, table[0]["kept_by_span"], by_span)
        assert len(found) == len(expected) and numpy.allclose(found, expected, atol=2e-5), (when, found, expected)
        for row in table:   # 98 tokens, of which the last answer and question, or chunk, are not counted
            seen = compressions(turns_of(0), when, False)[0][-1]
            assert "at compressions alone" in row["reason"] and number(row, "full_bytes") == seen * 2 * 32 * 2, row
            assert number(row, "kept_tokens") == number(row, "budget_tokens") == math.floor(SHARE * seen + 0.5), row


def test_what_rounds_tokens_by_themselves_rounds_them_once(folder):
    model, path = model_of(folder), transcripts_file(folder, 2)
    rows = {}
    for when in "once", "turn", "anew", "7":
        for row in evaluate("--transcripts", path, "--compress", when, "--method", "exact,q8_0", "--no-f32",
                            "--budget", "100%,100%mem", model=model):
            if (row["method"] == "q8_0") == (row["budget"] == "100%"):
                assert row["status"] == "infeasible", row
                continue
            assert row["status"] == "ok", row
            rows.setdefault((row["method"], row["document"], row["turn"]), {})[when] = number(row, "kl_mean")
            assert (row["method"] == "q8_0") == (number(row, "kl_mean") > 1e-6), row
            assert row["method"] == "q8_0" or row["total_bytes"] >= row["full_bytes"], row
    for key, of in rows.items():
        if key[0] == "q8_0":
            assert max(of["once"], of["turn"], of["7"]) < 1.02 * min(of["once"], of["turn"], of["7"]), (key, of)
    assert len(rows) == 2 * 3 * TURNS, rows.keys()


def test_what_cannot_be_compressed_again_is_skipped(folder):
    model, path = model_of(folder), transcripts_file(folder, 1)
    reasons = {"adakv(knorm)": "different numbers of tokens", "bsm": "weights or rows of their own",
               "uniform": "weights or rows of their own", "snapkv[window=4,per=query_head]": "query heads of a kv head",
               "expected-attention": "only their order is known"}
    methods = ",".join(reasons)
    flags = ["--transcripts", path, "--method", methods, *FLAGS]
    again = [row for row in evaluate(*flags, model=model) if row["document"] == "all"]
    assert len(again) == len(reasons), again
    for row, (name, reason) in zip(again, reasons.items()):
        assert row["status"] == "skipped" and reason in row["reason"] and not row["turn"], (name, row, reason)
    for row in evaluate(*flags, "--compress", "anew", model=model):   # each from the exact cache
        assert (row["status"] == "skipped") == (row["method"] == "expected-attention"), row


def test_files_that_are_no_conversations_of_this_model_are_refused(folder):
    model = model_of(folder)
    too_long = [[[1] * 200, [2] * 100]] * 2
    for messages, says in (([[[1], [2]]], "least two turns, and it has 1"),
                           (turns_of(0) + [[[1], [tiny.VOCAB]]], "500 is not a token"),
                           ([[[1], []]] * 2, "t.jsonl:1, message 2: it is empty"),
                           (too_long, "transcript-0 has 600 tokens, and"), ([[[1], "a"]] * 2, "has no tokenizer")):
        (folder / "t.jsonl").write_text(json.dumps(messages_of(messages)))
        refused = kveval("--transcripts", folder / "t.jsonl", "--method", "sink", *FLAGS, model=model, expect=2)
        assert says in refused, (says, refused)
    (folder / "t.jsonl").write_text(json.dumps(messages_of([[[1], [2]]] * 2)))
    refused = kveval("--transcripts", folder / "t.jsonl", "--method", "sink", "--question", "inside", *FLAGS,
                     model=model, expect=2)
    assert "transcript-0: the first turn has too few tokens" in refused, refused


def test_a_run_is_resumed_and_other_rules_have_passes_of_their_own(folder):
    model, path, cells = model_of(folder), transcripts_file(folder), folder / "cells"
    flags = ["--transcripts", path, "--method", "knorm,h2o", *FLAGS, "--no-times", "--cells", cells, "--resume"]
    first = kveval(*flags, model=model)
    size = cells.stat().st_size
    assert kveval(*flags, model=model) == first and cells.stat().st_size == size
    assert kveval(*flags, "--compress", "once", model=model) != first and cells.stat().st_size > size


harness.run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
