# SPDX-License-Identifier: Apache-2.0
"""Methods that keep or sample tokens by position, by accumulated attention, or at random; and CaM.

Definitions and defaults are those of kvbench (`kvbench methods NAME`). Each method takes (head, exact, budgets) and
returns {budget: (relative error, recall or None)}."""
import itertools

import torch
from torch.nn import functional

from algorithms import k_center_order


def sink(head, exact, budgets, sinks=4):
    n = len(head.keys)
    return {b: exact.subset(torch.cat([torch.arange(sinks), torch.arange(n - b + sinks, n)]), first=sinks)
            for b in budgets}


def h2o(head, exact, budgets):
    """Half the budget for the columns with the largest sums outside the recent half."""
    n, results = len(head.keys), {}
    for b in budgets:
        recent = b - b // 2
        heavy = head.column_sums[: n - recent].topk(b // 2).indices
        results[b] = exact.subset(torch.cat([heavy, torch.arange(n - recent, n)]), last=n - recent)
    return results


def h2o_global(head, exact, budgets):
    """Half the budget for the columns with the largest sums in the whole context, and half for a recent band."""
    n, results = len(head.keys), {}
    heavy = head.column_sums.topk(max(budgets) // 2).indices
    for b in budgets:
        recent = b - b // 2
        columns = heavy[: b // 2]
        ids = torch.cat([columns[columns < n - recent], torch.arange(n - recent, n)])
        results[b] = exact.subset(ids, last=n - recent)
    return results


def snapkv(head, exact, budgets, window=32, kernel=7):
    n = len(head.keys)
    scores = head.scale * (head.observed[-window:] @ head.keys.T)
    positions = torch.arange(n - window, n)[:, None]
    attention = torch.softmax(scores.masked_fill_(torch.arange(n) > positions, -torch.inf), dim=1)
    votes = attention[:, : n - window].sum(0)
    pooled = functional.max_pool1d(votes[None], kernel, stride=1, padding=kernel // 2)[0]
    best = pooled.argsort(descending=True, stable=True)  # pooling makes ties, in which the earlier token is preferred
    recent = torch.arange(n - window, n)
    return {b: exact.subset(torch.cat([best[: b - window], recent]), last=n - window) for b in budgets}


def uniform(head, exact, budgets):
    n = len(head.keys)
    order = torch.randperm(n)
    return {b: exact.subset(order[:b], weight=n / b) for b in budgets}


def halving_plan(n, budget):
    """The smallest number of halving rounds that fits the budget together with a window of recent tokens, and the
    window that uses most of the budget."""
    recent = torch.arange(budget + 1)
    for rounds in itertools.count():
        kept = recent + (n - recent >> rounds)
        if (kept <= budget).any():
            most = kept[kept <= budget].max()
            return rounds, int((kept == most).nonzero()[0])


class Halvings:
    """Rounds of halving of the first tokens of a context. Budgets with the same window of recent tokens share them."""

    def __init__(self, n, halve):
        """halve(ids, weights) -> (ids, weights)"""
        self.n, self.halve, self.known = n, halve, {}

    def fit(self, budget):
        """Returns ids, weights, number of rounds and number of recent tokens, which come last in ids with weight 1."""
        rounds, recent = halving_plan(self.n, budget)
        states = self.known.setdefault(recent, [(torch.arange(self.n - recent), torch.ones(self.n - recent))])
        while len(states) <= rounds:
            states.append(self.halve(*states[-1]))
        ids, weights = states[rounds]
        return torch.cat([ids, torch.arange(self.n - recent, self.n)]), torch.cat([weights,
                                                                                   torch.ones(recent)]), rounds, recent


def uniform_repo(head, exact, budgets, block=256):
    n = len(head.keys)

    def halve(ids, weights):
        plus = (torch.arange(len(ids)) % block == 0) | (torch.rand(len(ids)) < 0.5)
        kept = plus.long().argsort(stable=True)[: len(ids) // 2]
        return ids[kept], 2 * weights[kept]

    halvings, results = Halvings(n, halve), {}
    for b in budgets:
        ids, weights, _, recent = halvings.fit(b)
        results[b] = exact.subset(ids, last=n - recent, weight=weights)
    return results


def subgen_kcenter(head, exact, budgets):
    """Half the budget for greedy k-center tokens outside the recent half; the candidates differ between budgets."""
    n, results = len(head.keys), {}
    for b in budgets:
        recent = b - b // 2
        centres = torch.tensor(k_center_order(head.keys[: n - recent], b // 2))
        results[b] = exact.subset(torch.cat([centres, torch.arange(n - recent, n)]), last=n - recent)
    return results


def cam(head, exact, budgets, start=4, share=16, block=256):
    """Form `streaming` from column sums: a value that leaves the window is added, with some probability, to the current
    values of the `share` tokens after it. This is a triangular banded system, which is solved block by block; budgets
    share everything except its end."""
    n, sums = len(head.keys), head.column_sums
    after = sums[1:].unfold(0, share, 1).mean(1)  # mean over the `share` tokens after each token
    chance = torch.nan_to_num(sums[: len(after)] / after).clamp(0, 1)
    merges = functional.pad((torch.rand(len(chance)) < chance).float(), (0, n - len(chance)))
    merges[:start] = 0
    rows, columns = torch.arange(block)[:, None], torch.arange(block)
    near = ((rows > columns) & (rows - columns <= share)).float() / share
    # From the last `share` tokens of the previous block to the first tokens of a block.
    before = ((rows[:share] - columns[:share]) <= 0).float() / share
    values = head.values.clone()
    for begin in range(0, n, block):
        here = values[begin : begin + block]
        size = len(here)
        if begin > 0:
            last = slice(begin - share, begin)
            here[:share] += (before * merges[last]) @ values[last]
        system = torch.eye(size) - near[:size, :size] * merges[begin : begin + size]
        here.copy_(torch.linalg.solve_triangular(system, here, upper=False, unitriangular=True))
    results = {}
    for b in budgets:
        begin, last = n - b + start, slice(n - b + start - share, n - b + start)
        window = head.values[begin:].clone()
        window[:share] += (before * merges[last]) @ values[last]
        e = torch.cat([exact.weights[:, :start], exact.weights[:, begin:]], 1)
        results[b] = exact.error(e @ torch.cat([head.values[:start], window]), e.sum(1)), None
    return results
