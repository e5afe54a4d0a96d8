#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes how much arithmetic bounds could save in k-means, as shares of the scores that plain Lloyd iterations
compute.
    bench/lloyd_bounds.py [TRACE]      needs numpy and the package in python/ (PYTHONPATH=python)
The figures are counts, not times. They include the score of each point with its own centroid in every iteration and all
recomputed scores, but not the bookkeeping. All variants give the labels of plain Lloyd.
  moved     a point is compared with the centroids that moved, and with all centroids if its own moved
  hamerly   one bound per point on the best of the other centroids, loosened by the largest drift (Hamerly 2010)
  yinyang   one bound per point and group of centroids, 10 groups (Ding et al. 2015)"""
import sys

import kvbench
import numpy as np

GROUPS = 10


def candidates(centroids, cosine):
    """Matrix and bias for which the largest of matrix @ point + bias belongs to the nearest centroid."""
    if cosine:
        return centroids / np.linalg.norm(centroids, axis=1, keepdims=True), np.zeros(len(centroids))
    return centroids.copy(), -0.5 * (centroids**2).sum(1)


def others(scores, own):
    out = scores.copy()
    out[np.arange(len(own)), own] = -np.inf
    return out


def by_group(values, group):
    return np.stack([values[..., group == g].max(-1) for g in range(GROUPS)], -1)


def shares(keys, count, cosine, iterations=300):
    """Number of iterations, and the shares of moved, hamerly and yinyang."""
    n = len(keys)
    points = keys / np.linalg.norm(keys, axis=1, keepdims=True) if cosine else keys
    norms = np.linalg.norm(points, axis=1)
    centroids = keys[np.linspace(0, n - 1, count).astype(int)].copy()
    group = np.arange(count) % GROUPS
    matrix, bias = candidates(centroids, cosine)
    labels, done, computed = None, 0, np.zeros(3)
    for done in range(1, iterations + 1):
        scores = points @ matrix.T + bias
        best = scores.argmax(1)
        rest = others(scores, best)
        if labels is None:
            second, grouped = rest.max(1), by_group(rest, group)
            computed += n * count
        else:
            drift, risen = np.linalg.norm(matrix - old_matrix, axis=1), bias - old_bias
            moved = (drift > 0) | (risen != 0)
            own = scores[np.arange(n), labels]
            second = second + norms * drift.max() + max(risen.max(), 0)
            grouped = grouped + norms[:, None] * by_group(drift, group) + np.maximum(by_group(risen, group), 0)
            again, groups_again = own <= second, own[:, None] <= grouped
            computed += [np.where(moved[labels], count, moved.sum()).sum(), n + again.sum() * count,
                         n + groups_again.sum() * count / GROUPS]
            second = np.where(again, rest.max(1), second)
            grouped = np.where(groups_again, by_group(rest, group), grouped)
            if (best == labels).all():
                break
        labels, old_matrix, old_bias = best, matrix, bias
        for c in np.unique(labels):
            centroids[c] = keys[labels == c].mean(0)
        matrix, bias = candidates(centroids, cosine)
    return done, computed / (n * count * done)


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "traces/smollm2-135m.h5"
    print("| keys | centroids | distance | iterations | moved | hamerly | yinyang |\n|---|---|---|---|---|---|---|")
    with kvbench.Trace(path) as trace:
        prompt = trace.prompts[next(iter(trace.prompts))]
        for number in list(prompt.layers)[::2]:
            keys = prompt.layers[number].keys(0)[:prompt.prompt_tokens].astype(np.float64)
            for count, cosine in ((len(keys) // 80, True), (len(keys) // 4, False)):
                done, share = shares(keys, count, cosine)
                print(f"| layer {number} | {count} | {'cosine' if cosine else 'l2'} | {done} | "
                      + " | ".join(f"{s:.2f}" for s in share) + " |", flush=True)


main()
