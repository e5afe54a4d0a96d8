# SPDX-License-Identifier: Apache-2.0
"""Methods for tests that break the contract, each in one way."""
import sys

import kvbench
import numpy as np


class Fixed:
    """Returns what `result` is for a budget."""

    def prepare(self, head):
        self.head = head

    def make(self, budget, seed):
        return self.result(budget)


class TooMany(Fixed):
    def result(self, budget):
        return np.arange(budget + 1)


class Cache:
    """A cache of the first tokens; tests replace parts of it."""

    def __init__(self, head, budget):
        self.head, self.budget = head, budget

    def append(self, keys, values, positions):
        pass

    def entries(self, queries):
        return np.arange(self.budget)

    def footprint(self):
        return self.budget


def cached(name, **parts):
    def make(self, budget, seed):
        return type(f"{name}Cache", (Cache,), parts)(self.head, budget)
    globals()[name] = type(name, (Fixed,), {"make": make, "kind": parts.pop("kind", "eviction"),
                                            "observes": parts.pop("observes", False)})


cached("Well")
cached("TakesNothing", takes=lambda self, count: 0)
cached("TooLarge", footprint=lambda self: 10 * self.head.tokens)
cached("Retrieves", takes=lambda self, count: count,
       entries=lambda self, queries: np.arange(queries.position % 7, queries.position % 7 + self.budget))
cached("NoFootprint", footprint=property())
cached("NoObserve", observes=True)
cached("Weighted", entries=lambda self, queries: kvbench.Table(ids=np.arange(2), weight_num=np.ones(2)))
cached("Uneven", takes=lambda self, count: count,
       entries=lambda self, queries: [kvbench.Table(ids=np.arange(1))] * (1 + queries.position % 2))
cached("Writes", append=lambda self, keys, values, positions: keys.fill(0))


def raising(name, error, *words, where="make"):
    def fail(self, *args):
        raise error(*words)
    globals()[name] = type(name, (), {"make": lambda self, budget, seed: None, where: fail})


raising("Divides", ZeroDivisionError, "by zero")
raising("DividesInPrepare", ZeroDivisionError, "by zero", where="prepare")
raising("Lacks", kvbench.Unavailable, "the trace has no colour")
raising("LacksInPrepare", kvbench.Unavailable, "the trace has no colour", where="prepare")
raising("Cannot", kvbench.Infeasible, "needs a larger budget")
raising("SaysNothing", kvbench.Infeasible)
raising("Exits", SystemExit, 0)
raising("Exhausts", MemoryError)
raising("Long", ValueError, "first line\nlast line")


class Spins:
    """Never returns."""

    def make(self, budget, seed):
        while True:
            sys.getrecursionlimit()


class NoMethod:
    """Has no make()."""


class BadKind:
    kind = "good"

    def make(self, budget, seed):
        return []


class BadNeeds:
    needs = ["colours"]

    def make(self, budget, seed):
        return []
