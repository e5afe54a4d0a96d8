# SPDX-License-Identifier: Apache-2.0
"""Methods that replace tokens by weighted means of similar ones. Interface and definitions as in subsets.py."""
from dataclasses import dataclass

import torch
from torch.nn import functional

from algorithms import nearest
from recalls import lloyd


@dataclass
class Entries:
    keys: torch.Tensor
    values: torch.Tensor
    degrees: torch.Tensor


def links(keys, chunk):
    """Even positions of each chunk, the most similar odd position of the same chunk by cosine, and this cosine."""
    unit, whole = functional.normalize(keys), len(keys) // chunk * chunk
    parts = []
    for begin, end in ((0, whole), (whole, len(keys))):
        if end - begin < 2:
            continue
        chunks = unit[begin:end].unflatten(0, (-1, min(chunk, end - begin)))
        similarity, best = torch.bmm(chunks[:, 0::2], chunks[:, 1::2].mT).max(2)
        first = torch.arange(begin, end, chunks.shape[1])[:, None]
        a = (first + torch.arange(0, chunks.shape[1], 2)).flatten()
        parts.append((a, (first + 2 * best + 1).flatten(), similarity.flatten()))
    return [torch.cat(column) for column in zip(*parts)]


def links_everywhere(keys, rows=512):
    """The same with a single chunk; products are computed in slices."""
    unit = functional.normalize(keys)
    a, b = unit[0::2], unit[1::2].contiguous()
    best = nearest(a.contiguous(), b, rows=rows)
    return torch.arange(0, len(keys), 2), 2 * best + 1, (a * b[best]).sum(1)


def merge(entries, found, count):
    """Merges the `count` most similar links; a merged entry has the position of its odd token."""
    a, b, similarity = found
    best = similarity.argsort(descending=True, stable=True)[:count]
    a, b = a[best], b[best]
    degrees = entries.degrees.index_add(0, b, entries.degrees[a])
    left = torch.ones(len(degrees), dtype=torch.bool)
    left[a] = False

    def mean(rows):
        sums = (rows * entries.degrees[:, None]).index_add_(0, b, rows[a] * entries.degrees[a, None])
        return sums[left] / degrees[left, None]

    return Entries(mean(entries.keys), mean(entries.values), degrees[left])


def soft_matching(head, exact, budgets, find, sinks=16, recent=64):
    """Rounds that halve the middle until it fits the budget. Full rounds are the same for all budgets, so that the
    largest budget comes first."""
    n, results = len(head.keys), {}
    middle = Entries(head.keys[sinks : n - recent], head.values[sinks : n - recent], torch.ones(n - sinks - recent))
    found = find(middle.keys)
    outside = torch.cat([torch.arange(sinks), torch.arange(n - recent, n)])
    for b in sorted(budgets, reverse=True):
        while len(middle.keys) - (b - sinks - recent) > len(middle.keys) // 2:
            middle = merge(middle, found, len(middle.keys) // 2)
            found = find(middle.keys)
        last = merge(middle, found, len(middle.keys) - (b - sinks - recent))
        results[b] = exact.merged(
            torch.cat([head.keys[outside], last.keys]),
            torch.cat([head.values[outside], last.values]),
            torch.cat([torch.ones(len(outside)), last.degrees]),
        )
    return results


def chelsea(head, exact, budgets):
    return soft_matching(head, exact, budgets, lambda keys: links(keys, 256))


def bsm(head, exact, budgets):
    return soft_matching(head, exact, budgets, links_everywhere)


def kmeans(head, exact, budgets, iterations=10):
    n, results = len(head.keys), {}
    for b in budgets:
        labels, centres = lloyd(head.keys, torch.arange(b) * n // b, iterations)
        degrees = labels.bincount(minlength=b)
        values = torch.zeros(b, head.values.shape[1]).index_add_(0, labels, head.values) / degrees.clamp(min=1)[:, None]
        results[b] = exact.merged(centres, values, degrees)  # empty clusters have weight 0
    return results
