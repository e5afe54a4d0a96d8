# SPDX-License-Identifier: Apache-2.0
"""Methods for tests, each of which has a built-in counterpart or a result that is known."""
from dataclasses import dataclass
from typing import Literal

import kvbench
import numpy as np


@dataclass
class Recent:
    """The last tokens, as random ids with these parameters would not be."""
    sinks: int = 0
    share: float = 1.0
    reverse: bool = False
    form: Literal["array", "list", "kept", "table", "heads"] = "array"

    def prepare(self, head):
        self.head = head

    def make(self, budget, seed):
        n = self.head.tokens
        count = min(n, int(budget * self.share))
        ids = np.r_[:min(self.sinks, count), n - count + min(self.sinks, count):n]
        ids = ids[::-1] if self.reverse else ids
        forms = {"array": ids, "list": ids.tolist(), "kept": kvbench.Kept(ids), "table": kvbench.Table(ids=ids),
                 "heads": np.tile(ids, (self.head.group, 1))}
        return forms[self.form]


class Window:
    """The last tokens of the whole stream: decoded tokens push out older ones."""

    def prepare(self, head):
        return WindowMaker(head.tokens)


class WindowMaker:
    def __init__(self, tokens):
        self.tokens = tokens

    def make(self, budget, seed):
        return WindowCache(np.arange(max(0, self.tokens - budget), self.tokens), budget)


class WindowCache:
    def __init__(self, ids, budget):
        self.ids, self.budget = ids, budget

    def append(self, keys, values, positions):
        assert len(keys) == len(values) == len(positions) == 1
        self.ids = np.append(self.ids, positions)[-self.budget:]

    def entries(self, queries):
        assert self.ids[-1] <= queries.position
        return self.ids

    def footprint(self):
        return len(self.ids)


class Adding:
    """A cache that says how many tokens it takes, and so gets them in blocks: the same rows as fixed ids."""

    def prepare(self, head):
        self.head = head

    def make(self, budget, seed):
        return AddingCache(self.head, np.arange(self.head.tokens - budget, self.head.tokens))


class AddingCache:
    blocks = []

    def __init__(self, head, ids):
        self.ids, self.dims = ids, (head.keys.shape[1], head.values.shape[1])

    def takes(self, count):
        return count

    def append(self, keys, values, positions):
        self.blocks.append(len(positions))
        self.ids = np.append(self.ids, positions)

    def entries(self, queries):
        return self.ids

    def footprint(self):
        return [kvbench.Array(name=name, rows=len(self.ids), cols=cols, content=name)
                for name, cols in zip(("keys", "values"), self.dims)]

    def protected_tokens(self):
        return 0, 0, True


class TopK:
    """The tokens with the largest logits of each query and query head: oracle-topk."""
    kind = "retrieval"

    def prepare(self, head):
        self.head = head

    def make(self, budget, seed):
        return TopKCache(self.head, budget)


class TopKCache:
    def __init__(self, head, budget):
        self.keys, self.budget, self.dims = head.keys, budget, (head.keys.shape[1], head.values.shape[1])

    def append(self, keys, values, positions):
        self.keys = np.concatenate([self.keys, keys])

    def entries(self, queries):
        logits = queries.queries @ self.keys[queries.first:queries.last].T
        best = np.argsort(-logits, axis=1, kind="stable")[:, :self.budget]
        return queries.first + np.sort(best, axis=1)

    def footprint(self):
        return [kvbench.Array(name=name, rows=len(self.keys), cols=cols, content=name, tier="slow", read="with_entry")
                for name, cols in zip(("keys", "values"), self.dims)]

    def retrievable(self):
        return 0, len(self.keys)


class Pairs:
    """Neighbours merged into their means, with weight 2."""
    kind, full_budget_exact = "merging", False

    def prepare(self, head):
        self.head = head

    def make(self, budget, seed):
        pairs = min(budget, self.head.tokens // 2)

        def means(rows):
            return (rows[0:2 * pairs:2] + rows[1:2 * pairs:2]) / 2
        weights = np.full(pairs, 2, np.float32)
        return kvbench.Table(ids=2 * np.arange(pairs), weight_num=weights, weight_den=weights,
                             own_keys=means(self.head.keys), own_values=means(self.head.values))


class PairsPerQuery(Pairs):
    """The same from a cache, whose answers to queries at odd positions list the pairs in reverse order."""

    def make(self, budget, seed):
        return PairsCache(super().make(budget, seed))


class PairsCache:
    def __init__(self, table):
        self.table = table

    def entries(self, queries):
        step = -1 if queries.position % 2 else 1
        fields = ("ids", "weight_num", "weight_den", "own_keys", "own_values")
        return kvbench.Table(**{name: getattr(self.table, name)[::step] for name in fields})

    def footprint(self):
        n = len(self.table.ids)
        return [kvbench.Array(name="keys", rows=n, cols=self.table.own_keys.shape[1], content="keys"),
                kvbench.Array(name="values", rows=n, cols=self.table.own_values.shape[1], content="values"),
                kvbench.Array(name="degrees", rows=n, element="f32")]


class Layer:
    """All kv heads of a layer: the tokens are shared out, twice as many to the first head as to the last."""
    granularity, full_budget_exact = "layer", False
    cache = False

    def prepare(self, heads):
        assert [head.kv_head for head in heads] == list(range(heads[0].num_kv_heads))
        self.tokens = [head.tokens for head in heads]

    def make(self, budget, seed):
        shares = np.linspace(4 / 3, 2 / 3, len(self.tokens))
        ids = [np.arange(max(0, n - int(share * budget)), n) for n, share in zip(self.tokens, shares)]
        return LayerCache(ids) if self.cache else ids


class LayerWithCache(Layer):
    """The same, in a cache of lists."""
    cache = True


class LayerCache:
    def __init__(self, ids):
        self.ids = ids

    def append(self, keys, values, positions):
        assert len(keys) == len(values) == len(self.ids)
        self.ids = [np.append(ids, positions) for ids in self.ids]

    def entries(self, queries):
        assert len(queries) == len(self.ids)
        return self.ids

    def footprint(self):
        return [len(ids) for ids in self.ids]

    def protected_tokens(self):
        return [(0, 0, True)] * len(self.ids)

    def notes(self):
        return ["shared out", ("heads", len(self.ids))]


class Drawn:
    """Random tokens."""
    seeded = True

    def prepare(self, head):
        self.head = head

    def make(self, budget, seed):
        return self.head.generator(seed).choice(self.head.tokens, budget, replace=False)


@kvbench.scorer(recent=8)
def knorm(head, power: float = 1.0):
    """The shortest keys."""
    return -np.linalg.norm(head.keys, axis=1) ** power


@kvbench.scorer(granularity="layer", recent=8)
def layer_knorm(heads):
    """The same with all heads of a layer in one call."""
    return [-np.linalg.norm(head.keys, axis=1) for head in heads]
