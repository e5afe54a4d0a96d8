# SPDX-License-Identifier: Apache-2.0
"""One kv head of a trace, and the exact pass over its context that every method of the sweep is measured against."""
from dataclasses import dataclass

import h5py
import torch


@dataclass
class Head:
    """n context tokens, a tail of tokens that stay exact, m queries at the tail's positions."""

    keys: torch.Tensor  # [n, d]
    values: torch.Tensor  # [n, dv]
    tail_keys: torch.Tensor  # [t, d]
    tail_values: torch.Tensor
    queries: torch.Tensor  # [m, d]
    positions: torch.Tensor  # [m] of the queries
    observed: torch.Tensor  # [o, d] the last queries of the context, without gaps
    column_sums: torch.Tensor  # [n] attention that each context token got from the context's queries
    scale: float


def read_heads(path):
    """All heads of the first prompt's first layer; one query head a kv head, f32 or f16."""
    with h5py.File(path) as file:
        prompt = file["prompts"][sorted(file["prompts"])[0]]
        layer = prompt["layers"][sorted(prompt["layers"], key=int)[0]]
        if file.attrs["num_query_heads"] != file.attrs["num_kv_heads"]:
            raise SystemExit(f"{path} has several query heads a kv head; the sweep takes traces with one (kvbench synth)")
        n = int(prompt.attrs["prompt_tokens"])
        positions = torch.from_numpy(layer["query_positions"][:]).long()
        evaluated = positions >= n
        for head in range(file.attrs["num_kv_heads"]):
            k, v, q = (torch.from_numpy(layer[name][head]).float() for name in ("keys", "values", "queries"))
            sums = torch.from_numpy(layer["column_sums"][head, :n])
            asked, scale = (q[evaluated], positions[evaluated], q[~evaluated]), float(layer.attrs["scale"])
            yield Head(k[:n], v[:n], k[n:], v[n:], *asked, sums, scale)


class Exact:
    """Scores, weights exp(score - max) and outputs of all queries: computed once, read by all methods and budgets."""

    def __init__(self, head, most_kept):
        """most_kept: tokens of the largest budget, for the ranking that recall reads."""
        self.head, n = head, len(head.keys)
        tail = torch.arange(n, n + len(head.tail_keys))
        tail_scores = (head.scale * (head.queries @ head.tail_keys.T)).masked_fill_(tail > head.positions[:, None], -torch.inf)
        self.scores = (head.scale * head.queries) @ head.keys.T
        self.peak = torch.maximum(self.scores.amax(1), tail_scores.amax(1))[:, None]
        self.weights = torch.exp(self.scores - self.peak)
        tail_weights = torch.exp(tail_scores - self.peak)
        self.tail_num, self.tail_den = tail_weights @ head.tail_values, tail_weights.sum(1)
        self.out = (self.weights @ head.values + self.tail_num) / (self.weights.sum(1) + self.tail_den)[:, None]
        self.order = self.scores.topk(most_kept).indices

    def error(self, num, den):
        """Mean relative error of the answers num / den over the context, the tail added."""
        out = (num + self.tail_num) / (den + self.tail_den)[:, None]
        return float(((out - self.out).norm(dim=1) / self.out.norm(dim=1)).mean())

    def recall(self, kept, first=0, last=None):
        """Mean share of the best tokens by exact score, of those in [first, last), that are kept. kept: bool [n] or [m, n]; as
        many are best as are kept there."""
        last = kept.shape[-1] if last is None else last
        count = kept[..., first:last].sum(-1, keepdim=True)
        order = self.order[:, : int(count.max()) + first + kept.shape[-1] - last]  # so many are enough
        inside = (order >= first) & (order < last)
        best = inside & (inside.cumsum(1) <= count)
        found = kept[order] if kept.dim() == 1 else kept.gather(1, order)
        return float(((found & best).sum(1) / count.flatten()).mean())

    def mask(self, ids):
        kept = torch.zeros(len(self.head.keys), dtype=torch.bool)
        kept[ids] = True
        return kept

    def subset(self, ids, first=0, last=None, weight=None, weight_den=None):
        """Error and recall of tokens that answer all queries, weighted 1 by default; [first, last) are those that may be
        dropped."""
        e = self.weights[:, ids]
        num = e if weight is None else e * weight
        den = num if weight_den is None else e * weight_den
        return self.error(num @ self.head.values[ids], den.sum(1)), self.recall(self.mask(ids), first, last)

    def chosen(self, kept, first=0):
        """Error and recall of tokens chosen by each query: bool [m, n]; those before `first` are never dropped."""
        e = torch.where(kept, self.weights, 0.0)
        return self.error(e @ self.head.values, e.sum(1)), self.recall(kept, first)

    def merged(self, keys, values, degrees):
        """Error of entries that have keys of their own; no recall."""
        e = torch.exp((self.head.scale * self.head.queries) @ keys.T - self.peak) * degrees
        return self.error(e @ values, e.sum(1)), None
