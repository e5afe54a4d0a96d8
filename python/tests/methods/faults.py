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


def fixed(name, result):
    globals()[name] = type(name, (Fixed,), {"result": result, "__doc__": f"Returns {name}."})


fixed("Floats", lambda self, budget: np.zeros(budget))
fixed("Beyond", lambda self, budget: np.arange(self.head.tokens - budget + 1, self.head.tokens + 1))
fixed("Twice", lambda self, budget: np.zeros(budget, int))
fixed("Negative", lambda self, budget: np.array([-2]))
fixed("Huge", lambda self, budget: np.array([2**40]))
fixed("TooMany", lambda self, budget: np.arange(budget + 1))
fixed("ManyRows", lambda self, budget: np.zeros((7, 1), int))
fixed("Infinite", lambda self, budget: kvbench.Kept(np.arange(2), weights=[1, np.inf]))
fixed("Unfitting", lambda self, budget: kvbench.Kept(np.arange(2), weights=[1, 2, 3]))
fixed("PerQuery", lambda self, budget: kvbench.Table(ids=np.arange(2), per_query=True))
fixed("Nothing", lambda self, budget: None)


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
cached("TakesSome", append=lambda self, keys, values, positions: 0)
cached("TakesMore", append=lambda self, keys, values, positions: 2 * len(positions))
cached("TakesText", append=lambda self, keys, values, positions: "all")
cached("TooLittle", footprint=lambda self: self.budget - 1)
cached("TooLarge", footprint=lambda self: 10 * self.head.tokens)
cached("Retrieves", takes=lambda self, count: count,
       entries=lambda self, queries: np.arange(queries.position % 7, queries.position % 7 + self.budget))
cached("NoFootprint", footprint=property())
cached("NoObserve", observes=True)
cached("BadElement", footprint=lambda self: [kvbench.Array(name="keys", rows=1, element="f8")])
cached("NegativeRows", footprint=lambda self: [kvbench.Array(name="keys", rows=-1)])
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
raising("Exits", SystemExit, 0)
raising("Exhausts", MemoryError)
raising("Long", ValueError, "first line\nlast line")


class Spins:
    """Never returns."""

    def make(self, budget, seed):
        while True:
            sys.getrecursionlimit()


@kvbench.scorer
def nan(head):
    """A NaN among the scores."""
    return np.where(np.arange(head.tokens) == 3, np.nan, 0)


@kvbench.scorer
def short(head):
    """Two scores for each token."""
    return np.zeros(2 * head.tokens)


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
