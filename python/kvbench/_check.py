# SPDX-License-Identifier: Apache-2.0
"""Property tests of a method in Python: kvbench.check(MyMethod)."""

import os
import tempfile
from dataclasses import dataclass

import numpy as np

from . import _check_traces, _commands, _methods
from ._caches import prepared
from ._check_traces import Shape
from .method import Scorer
from .raw import Raw

BUDGETS = (1, 2, 5, 13, 24, 48)


class Report:
    """What check() has found. It is true where nothing fails."""

    def __init__(self, method):
        self.method = method
        self.passed = []  # properties that hold
        self.failures = []  # sentences

    def __bool__(self):
        return not self.failures

    def __repr__(self):
        verdict = "holds the contract" if self else f"breaks the contract in {len(self.failures)} of " \
            f"{len(self.failures) + len(self.passed)} properties"
        return "\n".join([f"{self.method} {verdict}.", *(f"  passed: {name}" for name in self.passed),
                          *(f"  FAILED: {sentence}" for sentence in self.failures)])


@dataclass
class Outcome:
    """The result of a configuration on a head."""
    status: str
    reason: str
    output: np.ndarray | None = None  # [G, m, dv]
    ids: list | None = None  # tokens of each table that answered the last queries, sorted by row

    def same(self, other):
        if self.status != other.status:
            return False
        return self.status != "ok" or (np.allclose(self.output, other.output, rtol=1e-4, atol=1e-5, equal_nan=True)
                                       and self.same_ids(other))

    def same_ids(self, other):
        return self.status != "ok" or (len(self.ids) == len(other.ids)
                                       and all(map(np.array_equal, self.ids, other.ids)))


class _Subject:
    """A method, replayed on small traces."""

    def __init__(self, method, folder):
        self.method, self.folder, self.runs = method, folder, 0

    def fact(self, name):
        return _methods.fact_of(self.method, name)

    def run(self, shape=Shape(), budgets=BUDGETS, method=None, **flags):
        """The outcomes by (budget, layer, kv head)."""
        self.runs += 1
        trace, raw = (os.path.join(self.folder, f"{self.runs}.{end}") for end in ("trace.h5", "raw.h5"))
        _check_traces.write(trace, shape)
        budgets = [budget for budget in budgets if budget <= shape.tokens]
        given = {"threads": 1, "seeds": "1", "quiet": True, **flags}
        _commands.replay(trace, method or self.method, budgets, raw=raw, raw_outputs=True, rows="trace", **given)
        with Raw(raw) as results:
            return {(int(cell.budget), head.layer, head.kv_head): self._outcome(head, number)
                    for number, cell in enumerate(results.cells) for head in results.heads}

    @staticmethod
    def _outcome(head, cell):
        if head.status(cell) != "ok":
            return Outcome(head.status(cell), head.reason(cell))
        tables, _ = head.entries(cell)
        ids = [np.sort(np.atleast_2d(table.ids), axis=1) for table in tables if table.ids.size > 0]
        return Outcome("ok", "", head.output(cell), ids)


class _Maker:
    """What prepare() of a method has given, with make()."""

    def __init__(self, maker):
        self.make = maker.make


class _OneByOneMaker(_Maker):
    """The same, whose caches are given one decoded token at a time."""

    def __init__(self, maker):
        self.inner = maker

    def make(self, budget, seed):
        made = self.inner.make(budget, seed)
        if hasattr(made, "entries") and hasattr(made, "append"):
            append = made.append
            made.append = lambda *arguments: append(*arguments) and None
        return made


def _wrapped(subject, maker, **facts):
    """The method with other facts, and with another maker around its own."""
    own = subject.method() if isinstance(subject.method, type) else subject.method
    known = {fact: subject.fact(fact) for fact in _methods.FACTS}
    return type("Wrapped", (), {**known, **facts, "prepare": lambda self, part: maker(prepared(own, part))})


def _describe(key):
    return f"with a budget of {key[0]} tokens, on layer {key[1]}, kv head {key[2]}"


def _failure(outcomes):
    """A clause about the first failed outcome; "" where there is none."""
    for key, outcome in outcomes.items():
        if outcome.status == "failed":
            return f"{outcome.reason} ({_describe(key)})"
    return ""


def _difference(a, b, same=Outcome.same):
    """Where two runs differ; "" where they do not."""
    return next((_describe(key) for key in a if key in b and not same(a[key], b[key])), "")


def _runs(subject):
    """it runs in prefill and decode, at every budget, and its entries, bytes and budget are as the contract says"""
    ran = False
    for protocol in ("prefill", "decode"):
        outcomes = subject.run(protocol=protocol)
        if failed := _failure(outcomes):
            return f"{protocol}: {failed}"
        ran |= any(outcome.status == "ok" for outcome in outcomes.values())
    return "" if ran else f"it has no result at any budget: {next(iter(outcomes.values())).reason}"


def _edges(subject):
    """it copes with contexts of 1 to 3 tokens, two channels, equal keys, zero values and large logits"""
    for words, shape in (("a context of 1 token", Shape(tokens=1)), ("a context of 2 tokens", Shape(tokens=2)),
                         ("a context of 3 tokens", Shape(tokens=3)), ("two channels", Shape(head_dim=2, value_dim=1)),
                         ("equal keys", Shape(form="equal")), ("values of 0", Shape(form="zero")),
                         ("logits of several hundreds", Shape(scale=50))):
        if failed := _failure(subject.run(shape)):
            return f"{words}: {failed}"
    return ""


def _repeats(subject):
    """the same seed gives the same result"""
    where = _difference(subject.run(), subject.run())
    return where and f"two runs differ {where}: draw random numbers from head.generator(seed) only"


def _seeds(subject):
    """results depend on the seed where `seeded` says so, and nowhere else"""
    method = subject.method if isinstance(subject.method, Scorer) else _wrapped(subject, _Maker, seeded=True)
    first, *others = (subject.run(seeds=seed, method=method) for seed in "1234")
    where = next(filter(None, (_difference(first, other) for other in others)), "")
    if subject.fact("seeded"):
        return "" if where else "`seeded` is true, but four seeds give the same results; leave it out"
    return where and f"another seed gives another result {where}, but `seeded` is not true; set it"


def _information(subject):
    """evaluated queries do not change what is kept, unless it retrieves tokens per query"""
    if subject.fact("kind") == "retrieval":
        return None
    where = _difference(subject.run(protocol="prefill"), subject.run(Shape(other_queries=True), protocol="prefill"),
                        Outcome.same_ids)
    return where and f"other queries give other entries {where}; a method that chooses tokens for each query is of " \
        "kind \"retrieval\""


def _heads(subject):
    """a head does not affect the others"""
    whole = subject.run()
    subject.run(Shape(draw=1))
    parts = [{"layers": layer} for layer in "10"]
    if subject.fact("granularity") != "layer":
        parts += [{"heads": head} for head in "10"]
    for part in parts:
        if where := _difference(subject.run(**part), whole):
            return f"alone it gives another result {where}; what is computed for a head must not be kept for others"
    return ""


def _budgets(subject):
    """a budget does not affect the others"""
    together = subject.run()
    for budget in BUDGETS:
        if where := _difference(subject.run(budgets=[budget]), together):
            return f"alone it gives another result {where}; caches must not share what changes"
    return ""


def _blocks(subject):
    """blocks of decoded tokens give the results of single tokens"""
    if isinstance(subject.method, Scorer):
        return None
    where = _difference(subject.run(protocol="decode"),
                        subject.run(protocol="decode", method=_wrapped(subject, _OneByOneMaker)))
    return where and f"append() takes tokens in blocks, and one at a time they give another result {where}; return " \
        "only as many as the state after them answers"


def _full_budget(subject):
    """a budget of the whole context gives the exact output, unless full_budget_exact is False"""
    if not getattr(subject.method, "full_budget_exact", subject.fact("kind") != "sampling"):
        return None
    exact, own = (subject.run(budgets=[48], protocol="prefill", method=method) for method in ("exact", None))
    for key, outcome in own.items():
        if outcome.status == "ok" and not np.allclose(outcome.output, exact[key].output, rtol=1e-3, atol=1e-4):
            return f"it differs from exact attention {_describe(key)}; set full_budget_exact = False if it should"
    return ""


def _parts(subject):
    """what it needs of a trace is in `needs`, or it says that it is missing"""
    for part in Shape().parts:
        rest = tuple(other for other in Shape().parts if other != part)
        failed = _failure(subject.run(Shape(parts=rest), budgets=[13]))
        if failed and part not in subject.fact("needs"):
            return f"without {part.replace('_', ' ')} it fails: {failed}; add \"{part}\" to `needs`, or raise " \
                "kvbench.Unavailable"
    return ""


def _windows(subject):
    """layers with a sliding window run, as `windowed` says"""
    return _failure(subject.run(Shape(window=20))) if subject.fact("windowed") else None


def _streams(subject):
    """a stream from the first token on runs, as `streaming` says"""
    return _failure(subject.run(protocol="stream", budgets=[5, 13])) if subject.fact("streaming") else None


# Functions whose first line states what must hold. They return a sentence about what does not, "", or None where the
# property does not concern the method.
PROPERTIES = (_runs, _edges, _repeats, _seeds, _information, _heads, _budgets, _blocks, _full_budget, _parts, _windows,
              _streams)


def check(method):
    """Tests whether a method in Python (a class, an object of it, or a scorer) holds the contract, on small traces:
    a Report, which says in sentences what fails, and is true where nothing does. It takes a few seconds."""
    _methods.check(method, repr(method))
    report = Report(_methods.name_of(method))
    with tempfile.TemporaryDirectory(prefix="kvbench-check-") as folder:
        for holds in PROPERTIES:
            fault = holds(_Subject(method, folder))
            if fault == "":
                report.passed.append(holds.__doc__)
            elif fault:
                report.failures.append(f"{holds.__doc__}: {fault}")
            if fault and holds is _runs:  # the others would say the same
                break
    return report
