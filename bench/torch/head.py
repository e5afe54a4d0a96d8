# SPDX-License-Identifier: Apache-2.0
"""One kv head of a trace, and the exact pass over its context with which every method of the sweep is compared."""
from dataclasses import dataclass

import h5py
import torch


@dataclass
class Head:
    """n context tokens, t tail tokens that stay exact, and m queries at positions of the tail."""

    keys: torch.Tensor  # [n, d]
    values: torch.Tensor  # [n, dv]
    tail_keys: torch.Tensor  # [t, d]
    tail_values: torch.Tensor
    queries: torch.Tensor  # [m, d]
    positions: torch.Tensor  # [m] positions of the queries
    observed: torch.Tensor  # [o, d] the last queries of the context, without gaps
    column_sums: torch.Tensor  # [n] attention mass that each context token received from the queries of the context
    scale: float


def read_heads(path):
    """All heads of the first prompt; one query head per kv head, f32 or f16."""
    with h5py.File(path) as file:
        if file.attrs["num_query_heads"] != file.attrs["num_kv_heads"]:
            raise SystemExit(f"{path} has several query heads per kv head; the sweep needs a trace with one (kvbench "
                             "synth, or bench/torch/real.py)")
        prompt = file["prompts"][sorted(file["prompts"])[0]]
        n = int(prompt.attrs["prompt_tokens"])
        for number in sorted(prompt["layers"], key=int):
            layer = prompt["layers"][number]
            positions = torch.from_numpy(layer["query_positions"][:]).long()
            evaluated = positions >= n
            for head in range(file.attrs["num_kv_heads"]):
                k, v, q = (torch.from_numpy(layer[name][head]).float() for name in ("keys", "values", "queries"))
                sums = torch.from_numpy(layer["column_sums"][head, :n])
                asked, scale = (q[evaluated], positions[evaluated], q[~evaluated]), float(layer.attrs["scale"])
                yield Head(k[:n], v[:n], k[n:], v[n:], *asked, sums, scale)


def keys_of(path):
    """Keys of the context of one head: kv head 0 of the layer in the middle of those recorded, first prompt."""
    with h5py.File(path) as file:
        prompt = file["prompts"][sorted(file["prompts"])[0]]
        layers = sorted(prompt["layers"], key=int)
        keys = prompt["layers"][layers[len(layers) // 2]]["keys"][0]
        return torch.from_numpy(keys[: int(prompt.attrs["prompt_tokens"])]).float().contiguous()


class Exact:
    """Scores, weights exp(score - max) and outputs of all queries, computed once for all methods and budgets."""

    def __init__(self, head, most_kept):
        """most_kept: tokens of the largest budget, which is the length of the ranking for recall."""
        self.head, n = head, len(head.keys)
        tail = torch.arange(n, n + len(head.tail_keys))
        tail_scores = head.scale * (head.queries @ head.tail_keys.T)
        tail_scores.masked_fill_(tail > head.positions[:, None], -torch.inf)
        self.scores = (head.scale * head.queries) @ head.keys.T
        self.peak = torch.maximum(self.scores.amax(1), tail_scores.amax(1))[:, None]
        self.weights = torch.exp(self.scores - self.peak)
        tail_weights = torch.exp(tail_scores - self.peak)
        self.tail_num, self.tail_den = tail_weights @ head.tail_values, tail_weights.sum(1)
        self.out = (self.weights @ head.values + self.tail_num) / (self.weights.sum(1) + self.tail_den)[:, None]
        self.order = self.scores.topk(most_kept).indices

    def error(self, num, den):
        """Mean relative error of the answers num / den over the context, with the tail added."""
        out = (num + self.tail_num) / (den + self.tail_den)[:, None]
        return float(((out - self.out).norm(dim=1) / self.out.norm(dim=1)).mean())

    def recall(self, kept, first=0, last=None):
        """Recall: mean share of the tokens with the largest exact scores in [first, last) that are kept, counting as
        many of them as are kept there. kept: bool [n] or [m, n]."""
        last = kept.shape[-1] if last is None else last
        count = kept[..., first:last].sum(-1, keepdim=True)
        order = self.order[:, : int(count.max()) + first + kept.shape[-1] - last]  # length that is always sufficient
        inside = (order >= first) & (order < last)
        best = inside & (inside.cumsum(1) <= count)
        found = kept[order] if kept.dim() == 1 else kept.gather(1, order)
        return float(((found & best).sum(1) / count.flatten()).mean())

    def mask(self, ids):
        kept = torch.zeros(len(self.head.keys), dtype=torch.bool)
        kept[ids] = True
        return kept

    def subset(self, ids, first=0, last=None, weight=None, weight_den=None):
        """Error and recall of tokens that answer all queries, with weight 1 by default; tokens in [first, last) may be
        dropped."""
        e = self.weights[:, ids]
        num = e if weight is None else e * weight
        den = num if weight_den is None else e * weight_den
        return self.error(num @ self.head.values[ids], den.sum(1)), self.recall(self.mask(ids), first, last)

    def chosen(self, kept, first=0):
        """Error and recall of tokens chosen per query: bool [m, n]; tokens before `first` are never dropped."""
        e = torch.where(kept, self.weights, 0.0)
        return self.error(e @ self.head.values, e.sum(1)), self.recall(kept, first)

    def merged(self, keys, values, degrees):
        """Error of entries with keys of their own, which have no recall."""
        e = torch.exp((self.head.scale * self.head.queries) @ keys.T - self.peak) * degrees
        return self.error(e @ values, e.sum(1)), None
