# SPDX-License-Identifier: Apache-2.0
"""Algorithms that select, cluster or sign tokens, in PyTorch: vectorised as far as each algorithm allows, without
extensions.

The first part holds the algorithms, which the sweep also uses, the second part tasks of compare.py. A Task holds the
name of the kvbench_bench case with the same work and shapes, the implementations to time, and a check of their results.
Inputs are drawn here and not shared with kvbench: run times depend on the values only through the cluster structure,
which is the same.
"""
import math
from dataclasses import dataclass, field
from typing import Callable

import numpy as np
import torch
from torch.nn import functional

from rounding import rounding_tasks

TOKENS, QUERIES, DIMS = 32768, 256, 128


def nearest(points, centres, bias=None, rows=1024):
    """[n] index of the centre with the largest inner product plus bias [c]; computed in slices of the points, to keep
    products small."""
    slices = (some @ centres.T for some in points.split(rows))
    return torch.cat([(products if bias is None else products.add_(bias)).argmax(1) for products in slices])


def means(rows, labels, otherwise):
    """[c, d] mean of the rows of each label; rows of `otherwise` [c, d] for labels without rows."""
    counts = torch.zeros(len(otherwise)).index_add_(0, labels, torch.ones(len(labels)))
    sums = torch.zeros_like(otherwise).index_add_(0, labels, rows)
    return torch.where(counts[:, None] > 0, sums / counts[:, None].clamp(min=1), otherwise)


def k_center_order(points, k):
    """Greedy k-center from the first point: one product, one minimum and one argmax per centre."""
    order = [0]
    norms = points.square().sum(1)
    nearest = torch.full((len(points),), math.inf)
    for _ in range(k - 1):
        distance = torch.addmv(norms + norms[order[-1]], points, points[order[-1]], alpha=-2)
        torch.minimum(nearest, distance, out=nearest)
        order.append(int(nearest.argmax()))
    return order


def leader_labels(points, norms, radius, capacity, block=256):
    """Each point joins its nearest representative within the radius, or becomes a representative. norms: squared norms
    [n].

    Returns labels [n] and the indices of the representatives; None if there are more than `capacity`. A block of points
    is compared with the old representatives in one product. Points that are far from all of them are then processed one
    by one to find the new representatives."""
    labels, members = torch.empty(len(points), dtype=torch.long), torch.empty(0, dtype=torch.long)
    known = torch.empty(capacity, points.shape[1])

    def distances(a, a2, b, b2):
        return torch.addmm(a2[:, None] + b2, a, b.T, alpha=-2)

    for begin in range(0, len(points), block):
        tokens, squares, old = points[begin : begin + block], norms[begin : begin + block], len(members)
        distance, label = torch.full((len(tokens),), math.inf), torch.zeros(len(tokens), dtype=torch.long)
        if old > 0:
            distance, label = distances(tokens, squares, known[:old], norms[members]).min(1)
        far = (distance > radius * radius).nonzero().flatten()
        if len(far) > 0:
            among, among2 = tokens[far], squares[far]
            # numpy has the smallest overhead per step
            close = (distances(among, among2, among, among2) <= radius * radius).numpy()
            covered, opened = np.zeros(len(far), bool), []
            for i in range(len(far)):
                if not covered[i]:
                    opened.append(i)
                    covered |= close[i]
            if old + len(opened) > capacity:
                return None
            new, place = far[opened], torch.arange(len(tokens))[:, None]
            known[old : old + len(new)] = tokens[new]
            members = torch.cat([members, begin + new])
            nearer = distances(tokens, squares, tokens[new], squares[new]).masked_fill_(place < new, math.inf)
            nearer.masked_fill_(place == new, -math.inf)  # a new representative joins itself, whatever the rounding
            nearest_new, label_new = nearer.min(1)
            label = torch.where(nearest_new < distance, old + label_new, label)
        labels[begin : begin + block] = label
    return labels, members


def walk_signs(gram, uniforms, step, first_positive=False):
    """Signs [blocks, b] of walks over the kernel matrices gram [blocks, b, b], computed one step of all walks at a
    time; step: a number or [blocks]."""
    blocks, block = uniforms.shape
    sums, signs = torch.zeros(blocks, block), torch.empty(blocks, block)
    for i in range(block):
        signs[:, i] = torch.where(uniforms[:, i] < 0.5 - step * sums[:, i], 1.0, -1.0)
        if i == 0 and first_positive:
            signs[:, 0] = 1.0
        sums[:, i + 1 :].addcmul_(signs[:, i, None], gram[:, i, i + 1 :])
    return signs


def page_bounds(keys, page):
    """[n / page, d] channel-wise maximum and minimum of each page."""
    pages = keys.unflatten(0, (-1, page))
    return pages.amax(1), pages.amin(1)


def page_upper_bounds(queries, highest, lowest):
    """[m, pages] upper bounds of the inner products."""
    return torch.addmm(queries.clamp(min=0) @ highest.T, queries.clamp(max=0), lowest.T)


@dataclass
class Task:
    case: str
    forms: dict[str, Callable[[], object]]
    check: Callable[[], None] = field(default=lambda: None)


def generator():
    return torch.Generator().manual_seed(1)


def normal(*shape):
    return torch.randn(*shape, generator=generator())


def clustered(groups=512):
    """Token i belongs to cluster i % groups. Coordinates are integers, so that distances are exact."""
    g = generator()
    centres = torch.randint(-8, 9, (groups, DIMS), generator=g).float()
    noise = torch.randint(-1, 2, (TOKENS, DIMS), generator=g).float()
    return centres.repeat(TOKENS // groups, 1) + noise


def k_means():
    """One Lloyd step: nearest centroids, then means."""
    points = normal(TOKENS, DIMS)
    centres = points[: TOKENS // 80].clone()

    def step(rows):
        return means(points, nearest(points, centres, -centres.square().sum(1) / 2, rows), centres)

    def check():
        labels = torch.cdist(points.double(), centres.double()).argmin(1)
        expected = torch.stack([points[labels == c].mean(0) for c in range(len(centres))])
        for rows in (TOKENS, 1024):
            assert ((step(rows) - expected).abs().amax(1) < 1e-4).float().mean() > 0.95

    forms = {"torch": lambda: step(TOKENS), "torch, slices of 1024": lambda: step(1024)}
    return Task(f"k-means step c={len(centres)}", forms, check)


def chunked_matching(chunk=256):
    """The most similar token of the other half of the chunk."""
    points, candidates = normal(2, TOKENS // chunk, chunk // 2, DIMS)
    return Task(f"best_match chunk={chunk}", {"torch": lambda: torch.bmm(points, candidates.transpose(1, 2)).max(2)})


def k_center(k=64):
    """Greedy k-center: one pass over distances, one minimum and one argmax per centre."""
    points = clustered()

    def greedy():
        order = [0]
        nearest = torch.full((TOKENS,), math.inf)
        for _ in range(k - 1):
            torch.minimum(nearest, (points - points[order[-1]]).square().sum(1), out=nearest)
            order.append(int(nearest.argmax()))
        return order

    def check():
        assert greedy() == k_center_order(points, k) and len(set(greedy())) == k

    forms = {"torch, differences": greedy, "torch, norms and a product": lambda: k_center_order(points, k)}
    return Task(f"k_center k={k}", forms, check)


def subgen_stream(radius=30.0, capacity=512, block=256):
    """Online clustering with a fixed radius: token by token, and in blocks that are compared with all old
    representatives at once."""
    points = clustered(capacity)

    def literal():
        representatives = torch.empty(capacity, DIMS)
        labels, count = torch.empty(TOKENS, dtype=torch.long), 0
        for i in range(TOKENS):
            if count > 0:
                nearest, label = (representatives[:count] - points[i]).square().sum(1).min(0)
                if nearest <= radius * radius:
                    labels[i] = label
                    continue
            representatives[count], labels[i] = points[i], count
            count += 1
        return labels

    def blocked():
        return leader_labels(points, points.square().sum(1), radius, capacity, block)[0]

    def check():
        expected = torch.arange(TOKENS) % capacity
        assert torch.equal(literal(), expected) and torch.equal(blocked(), expected)

    return Task(f"leader_clusters m'={capacity}", {"torch, token by token": literal, "torch, blocks of 256": blocked},
                check)


def balance_walk(block=256, step=0.1, shift=12.0):
    """One halving: Gram matrices of all blocks at once, then one step of all walks at a time."""
    keys = normal(TOKENS // block, block, DIMS)
    uniforms = torch.rand(TOKENS // block, block, generator=generator(), dtype=torch.float64)

    def walk():
        gram = torch.baddbmm(torch.full((1, 1, 1), -shift), keys, keys.transpose(1, 2),
                             alpha=1 / math.sqrt(DIMS)).exp_()
        return walk_signs(gram, uniforms, step)

    def check():
        signs, k = walk()[0], keys[0].double()
        gram = torch.exp(k @ k.T / math.sqrt(DIMS) - shift)
        sums = torch.tril(gram, -1) @ signs.double()
        assert torch.equal(signs > 0, uniforms[0] < 0.5 - step * sums)

    return Task(f"balance_walk b={block}", {"torch": walk}, check)


def page_scores(page=16):
    """Upper bounds of the logits of pages, from the channel-wise extremes of their keys."""
    pages = normal(TOKENS // page, page, DIMS)
    highest, lowest = page_bounds(pages.flatten(0, 1), page)
    queries = normal(QUERIES, DIMS)

    def score():
        return page_upper_bounds(queries, highest, lowest)

    def check():
        assert (score() + 1e-4 >= (queries @ pages.flatten(0, 1).T).view(QUERIES, -1, page).amax(2)).all()

    return Task("inner_products page scores", {"torch": score}, check)


def top_b(k=1024):
    scores = normal(QUERIES, TOKENS)
    return Task(f"topk k={k}",
                {"torch": lambda: scores.topk(k), "torch, unsorted": lambda: scores.topk(k, sorted=False)})


def key_tasks(keys):
    """The searches of kvbench_bench --keys among the keys of a head."""
    count, even, odd = len(keys) // 80, keys[0::2][: len(keys) // 2], keys[1::2]
    centres = keys[torch.arange(count) * len(keys) // count].clone()

    def step(rows):
        return means(keys, nearest(keys, centres, -centres.square().sum(1) / 2, rows), centres)

    def match(rows):
        a, b = functional.normalize(even), functional.normalize(odd)
        best = nearest(a, b, rows=rows)
        return best, (a * b[best]).sum(1)

    def check():
        labels = torch.cdist(keys.double(), centres.double()).argmin(1)
        found = nearest(keys, centres, -centres.square().sum(1) / 2)
        assert (labels == found).float().mean() > 0.99
        similarity = functional.normalize(even.double()) @ functional.normalize(odd.double()).T
        assert (similarity.amax(1) - match(512)[1]).abs().max() < 1e-5

    def forms(f):
        return {"torch": lambda: f(len(keys)), "torch, slices of 1024": lambda: f(1024)}

    return [Task("real keys, k-means step", forms(step), check), Task("real keys, soft matching of all", forms(match))]


def all_tasks():
    return [k_means(), chunked_matching(), k_center(), subgen_stream(), balance_walk(), page_scores(), top_b(),
            *rounding_tasks(Task, normal, TOKENS)]
