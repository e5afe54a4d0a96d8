# SPDX-License-Identifier: Apache-2.0
"""kvbench.check(): methods that hold the contract pass, and each planted fault is named by one sentence."""
import sys

import numpy as np
from support import PACKAGE, PackageTest, kvbench

sys.path.insert(0, str(PACKAGE / "tests" / "methods"))
import faults  # noqa: E402
import numpy_methods  # noqa: E402
import selections  # noqa: E402


class Last:
    """The last tokens; tests change a part of it."""

    def prepare(self, head):
        self.head = head

    def make(self, budget, seed):
        return np.arange(max(0, self.head.tokens - budget), self.head.tokens)


class NeedsLongContexts(Last):
    def make(self, budget, seed):
        return np.argsort(self.head.keys[:, 0])[:budget] if self.head.tokens > 2 else self.head.keys[3]


class Counts(Last):
    calls = 0

    def make(self, budget, seed):
        Counts.calls += 1
        return np.array([Counts.calls % self.head.tokens])


class UsesSeed(Last):
    def make(self, budget, seed):
        return self.head.generator(seed).permutation(self.head.tokens)[:budget]


class IgnoresSeed(Last):
    seeded = True


class RemembersHeads(Last):
    first = None

    def prepare(self, head):
        super().prepare(head)
        if RemembersHeads.first is None or head.kv_head == 0:
            RemembersHeads.first = np.argsort(head.keys[:, 0])

    def make(self, budget, seed):
        return self.first[self.first < self.head.tokens][:budget]


class RemembersBudgets(Last):
    def prepare(self, head):
        super().prepare(head)
        self.largest = 0

    def make(self, budget, seed):
        self.largest = max(self.largest, budget)
        return np.arange(budget) if budget == self.largest else np.arange(0, 2 * budget, 2) % self.head.tokens


class Cached(Last):
    def make(self, budget, seed):
        return self.cache(self.head, super().make(budget, seed))


class LooksAtQueries(Cached):
    class cache(selections.AddingCache):
        def entries(self, queries):
            shift = int(abs(queries.queries[0, 0]) * 1000) % 2
            return self.ids[shift:len(self.ids)]


class TakesTooMany(Cached):
    """Evicts a token with each append, and takes blocks."""

    class cache(selections.AddingCache):
        def append(self, keys, values, positions):
            self.ids = np.append(self.ids[1:], positions)


class LeavesOne(Last):
    def make(self, budget, seed):
        return super().make(budget, seed)[1:]


class NeedsSums(Last):
    def make(self, budget, seed):
        return np.argsort(-self.head.column_sums[0], kind="stable")[:budget]


class SaysWindowed(Last):
    windowed = True

    def prepare(self, head):
        assert head.window == 0
        super().prepare(head)


class SaysStreaming(Last):
    streaming = True

    def prepare(self, head):
        super().prepare(head)
        head.keys[0]


WORDS = {
    NeedsLongContexts: ["a context of 1 token", "IndexError"],
    Counts: ["two runs of the same seed differ"],
    UsesSeed: ["another seed gives another result", "`seeded`"],
    IgnoresSeed: ["four seeds give the same results"],
    RemembersHeads: ["after another prompt it gives another result", "must not be kept for others"],
    RemembersBudgets: ["caches must not share what changes"],
    LooksAtQueries: ["other queries give other entries", '"retrieval"'],
    TakesTooMany: ["has another result in a block than alone"],
    LeavesOne: ["from those of exact attention", "budget 48", "`full_budget_exact`"],
    NeedsSums: ["without column_sums, which is not in `needs`", "TypeError"],
    SaysWindowed: ["`windowed`", "AssertionError"],
    SaysStreaming: ["`streaming`", "IndexError"],
    faults.TooMany: ["prefill", "entries on 1 kv heads"],
    faults.Divides: ["ZeroDivisionError: by zero", "budget 1, seed 1"],
    faults.Lacks: ["no result at any budget", "the trace has no colour"],
}


class Check(PackageTest):
    def test_methods_that_hold_the_contract(self):
        for method in (selections.Recent(sinks=2), selections.Window, selections.TopK, selections.PairsPerQuery,
                       selections.LayerWithCache, selections.Drawn, selections.knorm, numpy_methods.snapkv,
                       numpy_methods.H2O):
            report = kvbench.check(method)
            self.assertTrue(report, repr(report))
            self.assertIn("holds the contract", repr(report))
            self.assertGreaterEqual(len(report.passed), 8)

    def test_each_fault_is_named(self):
        for method, words in WORDS.items():
            with self.subTest(method.__name__):
                report = kvbench.check(method)
                self.assertFalse(report)
                for word in words:
                    self.assertIn(word, "\n".join(report.failures))

    def test_what_is_no_method(self):
        with self.refuses("NoMethod", "no method"):
            kvbench.check(faults.NoMethod)
        for several in ("h2o,snapkv", "llama.cpp", ["h2o"]):
            with self.refuses("takes one method"):
                kvbench.check(several)
