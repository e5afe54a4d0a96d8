# SPDX-License-Identifier: Apache-2.0
"""Sampling methods with guarantees: SubGen, BalanceKV and its released form. Interface and definitions as in
subsets.py."""
import math

import torch

from algorithms import leader_labels, walk_signs
from subsets import Halvings


def smallest_partition(keys, norms, capacity, steps=40, tolerance=1e-3):
    """Bisection for the smallest radius whose clusters fit the capacity, as in kvbench."""
    exact = leader_labels(keys, norms, 0.0, capacity)
    if exact is not None:
        return exact
    too_small, fits = 0.0, float((keys - keys[0]).norm(dim=1).max()) * (1 + tolerance)
    best = leader_labels(keys, norms, fits, capacity)
    for _ in range(steps):
        if len(best[1]) == capacity or fits - too_small <= tolerance * fits:
            break
        radius = (too_small + fits) / 2
        found = leader_labels(keys, norms, radius, capacity)
        if found is None:
            too_small = radius
        else:
            best, fits = found, radius
    return best


def subgen(head, exact, budgets, t=4):
    """Samples the final states of the reservoirs directly: s draws by |v|^2, and t uniform draws from each cluster."""
    d, dv = head.keys.shape[1], head.values.shape[1]
    norms, masses, results = head.keys.square().sum(1), head.values.square().sum(1), {}
    for b in budgets:
        s = b // 2
        labels, members = smallest_partition(head.keys, norms, (b - s) * (d + dv) // ((1 + t) * d))
        slots = torch.multinomial(masses, s, replacement=True)
        num = exact.weights[:, slots] * (masses.sum() / (s * masses[slots]))
        sizes = labels.bincount(minlength=len(members))
        place = (torch.rand(len(members), t) * sizes[:, None]).long() + (sizes.cumsum(0) - sizes)[:, None]
        samples = labels.argsort(stable=True)[place]
        den = (exact.weights[:, samples].sum(2) * (sizes / t)).sum(1)
        results[b] = exact.error(num @ head.values[slots], den), None
    return results


def blocks_of(rows, block):
    """[blocks, block, ...], the last block padded with zeros."""
    padding = rows.new_zeros(-len(rows) % block, *rows.shape[1:])
    return torch.cat([rows, padding]).unflatten(0, (-1, block))


def shift_of(largest):
    """Number that is subtracted from exponents to avoid overflow."""
    return (largest - 40).clamp(min=0)


def balancekv(head, exact, budgets, block=256):
    """Batch form: each block is balanced by itself, and its smaller sign class is kept with twice its weight."""
    n = len(head.keys)

    def halve(ids, weights):
        k, v = blocks_of(head.keys[ids], block), blocks_of(head.values[ids], block)
        sizes = blocks_of(torch.ones(len(ids)), block).sum(1)
        largest = head.scale * k.square().sum(2).amax(1)
        shift = shift_of(largest)
        gram = torch.baddbmm(-shift[:, None, None], k, k.mT, alpha=head.scale).exp_().mul_(v @ v.mT)
        constant = 30 * (2 * sizes.log())  # 30 ln(n / delta), delta = 1/n
        threshold = constant * torch.exp(largest - shift) * v.square().sum(2).amax(1)
        step = torch.where(threshold > 0, 0.5 / threshold, 0.0)
        plus = walk_signs(gram, torch.rand(k.shape[:2]), step) > 0
        valid = blocks_of(torch.ones(len(ids), dtype=torch.bool), block)
        fewer_plus = 2 * (plus & valid).sum(1) <= sizes
        kept = ((plus == fewer_plus[:, None]) & valid).flatten()[: len(ids)]
        return ids[kept], 2 * weights[kept]

    halvings, results = Halvings(n, halve), {}
    for b in budgets:
        ids, weights, _, recent = halvings.fit(b)
        results[b] = exact.subset(ids, last=n - recent, weight=weights)
    return results


def released_half(plus):
    """Positions and weight factors of the half that the released code keeps of all blocks together."""
    n, m = len(plus), len(plus) // 2
    count = plus.cumsum(0)
    reached = (torch.where(plus, count, torch.arange(1, n + 1) - count) == m).nonzero()
    c = int(reached[-1]) if len(reached) else 0
    twice = (plus[: c + 1] != plus[c]).nonzero().flatten()
    places = torch.cat([twice, torch.arange(c + 1, n)])[:m]
    return places, torch.where(torch.arange(m) < len(twice), 2.0, 1.0)


def balancekv_repo(head, exact, budgets, block=256, gamma=4.0, offset=0.025 + 1e-8):
    n = len(head.keys)

    def halve(ids, weights):
        k, v = blocks_of(head.keys[ids], block), blocks_of(head.values[ids] * weights[:, None], block)
        shift = shift_of(head.scale * head.keys[ids].square().sum(1).max()).clamp(max=80)
        k = k - k.mean(1, keepdim=True)
        gram = torch.baddbmm(-shift[None, None, None], k, k.mT, alpha=head.scale).exp_().mul_((v @ v.mT).add_(offset))
        signs = walk_signs(gram, torch.rand(k.shape[:2]), gamma * math.exp(shift), first_positive=True)
        places, factors = released_half(signs.flatten()[: len(ids)] > 0)
        return ids[places], factors * weights[places]

    halvings, results = Halvings(n, halve), {}
    for b in budgets:
        ids, weights, rounds, recent = halvings.fit(b)
        den = torch.full((len(ids),), 2.0**rounds)
        den[len(ids) - recent :] = 1
        results[b] = exact.subset(ids, last=n - recent, weight=weights, weight_den=den)
    return results
