# SPDX-License-Identifier: Apache-2.0
"""snapkv and h2o in NumPy: the same tokens as the built-in methods with their defaults."""
from dataclasses import dataclass

import kvbench
import numpy as np


@kvbench.scorer(pooling="max", kernel=7, needs=["observed_queries"])
def snapkv(head, window: int = 32):
    """Tokens that the last queries of the prompt attend to, and those queries' own tokens."""
    window = min(window, head.tokens)
    first = head.tokens - window
    logits = head.scale * (head.observed[:, -window:] @ head.keys.T)  # [G, window, n]
    logits[:, :, first:] += np.triu(np.full((window, window), -np.inf, np.float32), 1)
    shares = np.exp(logits - logits.max(2, keepdims=True))
    shares /= shares.sum(2, keepdims=True)
    return shares[:, :, :first].sum(1)


@dataclass
class H2O:
    """The tokens with the largest accumulated attention, and the most recent ones."""
    heavy: float = 0.5

    needs, observes = ["column_sums"], True

    def prepare(self, head):
        self.head = head

    def make(self, budget, seed):
        return H2OCache(self.head, budget, recent=budget - int(self.heavy * budget))


class H2OCache:
    def __init__(self, head, budget, recent):
        self.budget, self.recent = budget, recent
        self.head_dim, self.value_dim = head.keys.shape[1], head.values.shape[1]
        self.ids, self.scores = np.arange(head.tokens), head.column_sums.astype(float)  # [held], [G, held]
        self.evict()

    def evict(self):
        excess = len(self.ids) - self.budget
        if excess > 0:
            scores = self.scores[:, :len(self.ids) - self.recent].sum(0)
            kept = np.delete(np.arange(len(self.ids)), np.argsort(scores, kind="stable")[:excess])
            self.ids, self.scores = self.ids[kept], self.scores[:, kept]

    def append(self, keys, values, positions):
        self.evict()
        self.ids = np.append(self.ids, positions)
        self.scores = np.pad(self.scores, ((0, 0), (0, len(positions))))

    def entries(self, queries):
        return self.ids

    def observe(self, weights):
        self.scores += weights
        self.evict()

    def footprint(self):
        held = len(self.ids)
        return [kvbench.Array(name="keys", rows=held, cols=self.head_dim, content="keys"),
                kvbench.Array(name="values", rows=held, cols=self.value_dim, content="values"),
                kvbench.Array(name="scores", rows=held, element="f32", read="never")]
