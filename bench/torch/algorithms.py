# SPDX-License-Identifier: Apache-2.0
"""Algorithms that pick, group or sign tokens, in PyTorch: vectorised as far as each algorithm allows, without extensions.

Each function returns a Task: the kvbench_bench case that does the same work at the same shapes, the forms to time, and what one
must hold of their results. Inputs are drawn here, not shared with kvbench: none of the run times depends on the values beyond the
group structure, which is the same.
"""
import math
from dataclasses import dataclass, field
from typing import Callable

import torch

TOKENS, QUERIES, DIMS = 32768, 256, 128


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
    """Token i belongs to group i % groups: whole coordinates, so distances are exact."""
    g = generator()
    centres = torch.randint(-8, 9, (groups, DIMS), generator=g).float()
    noise = torch.randint(-1, 2, (TOKENS, DIMS), generator=g).float()
    return centres.repeat(TOKENS // groups, 1) + noise


def k_means():
    """One Lloyd step: nearest centroid, then means."""
    points = normal(TOKENS, DIMS)
    centres = points[: TOKENS // 80].clone()

    def assign():
        return (points @ centres.T - centres.square().sum(1) / 2).argmax(1)

    def step():
        labels = assign()
        counts = torch.zeros(len(centres)).index_add_(0, labels, torch.ones(TOKENS))
        sums = torch.zeros_like(centres).index_add_(0, labels, points)
        return torch.where(counts[:, None] > 0, sums / counts[:, None].clamp(min=1), centres)

    def check():
        labels = torch.cdist(points.double(), centres.double()).argmin(1)
        assert (labels == assign()).float().mean() > 0.9999
        means = torch.stack([points[labels == c].mean(0) for c in range(8)])
        assert torch.allclose(step()[:8], means, atol=1e-4)

    return Task(f"k-means step c={len(centres)}", {"torch": step}, check)


def chunked_matching(chunk=256):
    """The most similar token of the other half of the chunk."""
    points, candidates = normal(2, TOKENS // chunk, chunk // 2, DIMS)
    return Task(f"best_match chunk={chunk}", {"torch": lambda: torch.bmm(points, candidates.transpose(1, 2)).max(2)})


def k_center(k=64):
    """Greedy k-center: one distance pass, one minimum and one argmax a centre."""
    points = clustered()

    def greedy():
        order = [0]
        nearest = torch.full((TOKENS,), math.inf)
        for _ in range(k - 1):
            torch.minimum(nearest, (points - points[order[-1]]).square().sum(1), out=nearest)
            order.append(int(nearest.argmax()))
        return order

    def expanded():
        order = [0]
        norms = points.square().sum(1)
        nearest = torch.full((TOKENS,), math.inf)
        for _ in range(k - 1):
            distance = torch.addmv(norms + norms[order[-1]], points, points[order[-1]], alpha=-2)
            torch.minimum(nearest, distance, out=nearest)
            order.append(int(nearest.argmax()))
        return order

    def check():
        assert greedy() == expanded() and len(set(greedy())) == k

    return Task(f"k_center k={k}", {"torch, differences": greedy, "torch, norms and a product": expanded}, check)


def subgen_stream(radius=30.0, capacity=512, block=256):
    """Online clustering by a fixed radius: literally token by token, and in blocks that meet the old representatives at once."""
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
        representatives = torch.empty(capacity, DIMS)
        labels, count = torch.empty(TOKENS, dtype=torch.long), 0
        for begin in range(0, TOKENS, block):
            tokens, old = points[begin : begin + block], count
            nearest, label = torch.full((len(tokens),), math.inf), torch.zeros(len(tokens), dtype=torch.long)
            if old > 0:
                products = tokens @ representatives[:old].T
                squares = tokens.square().sum(1)[:, None] + representatives[:old].square().sum(1)
                nearest, label = (squares - 2 * products).min(1)
            far = (nearest > radius * radius).nonzero().flatten().tolist()
            for i in far:  # openers change what later tokens of the block see, nearer ones included
                if nearest[i] <= radius * radius:
                    continue
                representatives[count] = tokens[i]
                distance = (tokens[i:] - tokens[i]).square().sum(1)
                closer = distance < nearest[i:]
                nearest[i:] = torch.where(closer, distance, nearest[i:])
                label[i:] = torch.where(closer, count, label[i:])
                count += 1
            labels[begin : begin + block] = label
        return labels

    def check():
        expected = torch.arange(TOKENS) % capacity
        assert torch.equal(literal(), expected) and torch.equal(blocked(), expected)

    return Task(f"leader_clusters m'={capacity}", {"torch, token by token": literal, "torch, blocks of 256": blocked}, check)


def balance_walk(block=256, step=0.1, shift=12.0):
    """One halving: Gram matrices of all blocks at once, then one step of all walks at a time."""
    keys = normal(TOKENS // block, block, DIMS)
    uniforms = torch.rand(TOKENS // block, block, generator=generator(), dtype=torch.float64)

    def walk():
        gram = torch.baddbmm(torch.full((1, 1, 1), -shift), keys, keys.transpose(1, 2), alpha=1 / math.sqrt(DIMS)).exp_()
        sums, signs = torch.zeros(len(keys), block), torch.empty(len(keys), block)
        for i in range(block):
            signs[:, i] = torch.where(uniforms[:, i] < 0.5 - step * sums[:, i], 1.0, -1.0)
            sums[:, i + 1 :].addcmul_(signs[:, i, None], gram[:, i, i + 1 :])
        return signs

    def check():
        signs, k = walk()[0], keys[0].double()
        gram = torch.exp(k @ k.T / math.sqrt(DIMS) - shift)
        sums = torch.tril(gram, -1) @ signs.double()
        assert torch.equal(signs > 0, uniforms[0] < 0.5 - step * sums)

    return Task(f"balance_walk b={block}", {"torch": walk}, check)


def page_scores(page=16):
    """Upper bounds of the logits of pages, from the channel-wise extremes of their keys."""
    pages = normal(TOKENS // page, page, DIMS)
    highest, lowest = pages.amax(1), pages.amin(1)
    queries = normal(QUERIES, DIMS)

    def score():
        return torch.addmm(queries.clamp(min=0) @ highest.T, queries.clamp(max=0), lowest.T)

    def check():
        assert (score() + 1e-4 >= (queries @ pages.flatten(0, 1).T).view(QUERIES, -1, page).amax(2)).all()

    return Task("inner_products page scores", {"torch": score}, check)


def top_b(k=1024):
    scores = normal(QUERIES, TOKENS)
    return Task(f"topk k={k}", {"torch": lambda: scores.topk(k), "torch, unsorted": lambda: scores.topk(k, sorted=False)})


def all_tasks():
    return [k_means(), chunked_matching(), k_center(), subgen_stream(), balance_walk(), page_scores(), top_b()]
