# SPDX-License-Identifier: Apache-2.0
"""Retrieval methods, which choose tokens per query: by clusters, pages or speculated scores. Interface and definitions
as in subsets.py."""
import torch
from torch.nn import functional

from algorithms import means, nearest, page_bounds, page_upper_bounds


def lloyd(points, start, iterations, relabel=False):
    """Cosine k-means until the labels do not change. Returns labels and centroids, which are means of the points
    without normalisation."""
    unit, centres, labels = functional.normalize(points), points[start], None
    for _ in range(iterations):
        found = nearest(unit, functional.normalize(centres))
        if labels is not None and torch.equal(found, labels):
            return labels, centres
        labels = found
        centres = means(points, labels, centres)
    return nearest(unit, functional.normalize(centres)) if relabel else labels, centres


def recall_clusters(head, exact, budgets, clusters, iterations, sinks=16):
    keys = head.keys[sinks:]
    labels, centres = lloyd(keys, torch.randperm(len(keys))[:clusters].sort().values, iterations, relabel=True)
    sizes = labels.bincount(minlength=clusters)
    by_cluster = labels.argsort(stable=True)
    place = torch.empty_like(labels)  # index of each token in its cluster
    place[by_cluster] = torch.arange(len(labels)) - (sizes.cumsum(0) - sizes)[labels[by_cluster]]
    order = (head.queries @ centres.T).argsort(1, descending=True)
    ahead = sizes[order].cumsum(1) - sizes[order]  # number of tokens in better clusters
    # rank at which each query selects each token
    turn = torch.empty_like(ahead).scatter_(1, order, ahead)[:, labels].add_(place)
    results = {}
    for b in budgets:
        kept = functional.pad(turn < b - sinks, (sinks, 0), value=True)
        results[b] = exact.chosen(kept, first=sinks)
    return results


def clusterkv(head, exact, budgets):
    return recall_clusters(head, exact, budgets, max(1, len(head.keys) // 80), 300)


def clusterkv_repo(head, exact, budgets):
    return recall_clusters(head, exact, budgets, 400, 20)


def quest(head, exact, budgets, page=16):
    bounds = page_upper_bounds(head.queries, *page_bounds(head.keys, page))
    order = bounds.topk(max(budgets) // page).indices
    results = {}
    for b in budgets:
        pages = torch.zeros(bounds.shape, dtype=torch.bool).scatter_(1, order[:, : b // page], True)
        results[b] = exact.chosen(pages[:, :, None].expand(-1, -1, page).flatten(1))
    return results


def infinigen(head, exact, budgets, ratio=0.2):
    """Uses the true queries as guesses, because the trace has no speculated queries."""
    skew = torch.linalg.svd(head.observed, full_matrices=False).Vh  # directions as rows
    heaviest = (head.observed @ skew.T).abs().sum(0).topk(int(ratio * head.keys.shape[1])).indices
    directions = skew[heaviest].T
    order = ((head.queries @ directions) @ (head.keys @ directions).T).topk(max(budgets)).indices
    results = {}
    for b in budgets:
        kept = torch.zeros(exact.scores.shape, dtype=torch.bool).scatter_(1, order[:, :b], True)
        results[b] = exact.chosen(kept)
    return results
