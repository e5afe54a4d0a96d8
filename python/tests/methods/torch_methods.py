# SPDX-License-Identifier: Apache-2.0
"""snapkv and h2o in PyTorch: the same tokens as the built-in methods with their defaults. Arrays of a head become
tensors without copies."""
import warnings
from dataclasses import dataclass

import kvbench
import numpy as np
import torch

torch.set_num_threads(1)  # kvbench computes heads on its own threads
warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # nothing is written to them


@kvbench.scorer(pooling="max", kernel=7, needs=["observed_queries"])
def snapkv(head, window: int = 32):
    """Tokens that the last queries of the prompt attend to, and those queries' own tokens."""
    keys, observed = torch.from_numpy(head.keys), torch.from_numpy(head.observed)
    window = min(window, head.tokens)
    first = head.tokens - window
    logits = head.scale * (observed[:, -window:] @ keys.T)  # [G, window, n]
    logits[:, :, first:].masked_fill_(torch.ones(window, window, dtype=torch.bool).triu(1), -torch.inf)
    return logits.softmax(2)[:, :, :first].sum(1).numpy()


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
        self.ids, self.scores = torch.arange(head.tokens), torch.from_numpy(head.column_sums).double()
        self.evict()

    def evict(self):
        excess = len(self.ids) - self.budget
        if excess > 0:
            scores = self.scores[:, :len(self.ids) - self.recent].sum(0)
            kept = torch.ones(len(self.ids), dtype=torch.bool)
            kept[scores.argsort(stable=True)[:excess]] = False
            self.ids, self.scores = self.ids[kept], self.scores[:, kept]

    def append(self, keys, values, positions):
        self.evict()
        self.ids = torch.cat([self.ids, torch.as_tensor(np.asarray(positions))])
        self.scores = torch.nn.functional.pad(self.scores, (0, len(positions)))

    def entries(self, queries):
        return self.ids.numpy()

    def observe(self, weights):
        self.scores += torch.from_numpy(weights)
        self.evict()

    def footprint(self):
        held = len(self.ids)
        return [kvbench.Array(name="keys", rows=held, cols=self.head_dim, content="keys"),
                kvbench.Array(name="values", rows=held, cols=self.value_dim, content="values"),
                kvbench.Array(name="scores", rows=held, element="f32", read="never")]
