# SPDX-License-Identifier: Apache-2.0
"""The rotary embedding of an attention layer, measured from its keys and queries."""

import math
from dataclasses import dataclass, replace

import numpy as np

LAWS = ("default", "none", "unknown")  # types of a configuration that leave the law to the measurement


@dataclass
class Rotation:
    """The rotary embedding of a layer."""

    type: str  # default, none, partial, the type of the configuration, "other", or "unknown": it was not measured
    layout: str = "half"  # or interleaved
    theta: float = 0.0  # 0 = none, or unknown
    channels: int = 0  # the first ones of a head, which are rotated here or in other layers; 0 = none, or unknown
    first: int = 0  # channels before them: those of a latent

    def in_layout(self, rows, layout):
        """Rows [..., d] in the order of channels in which another layout pairs them. Products of queries and keys stay
        the same."""
        if layout == self.layout or not self.channels:
            return rows
        pairs = np.arange(self.channels).reshape((2, -1) if self.layout == "half" else (-1, 2))
        moved = np.array(rows)
        moved[..., self.first:self.first + self.channels] = rows[..., self.first + pairs.T.ravel()]
        return moved

    def turned_back(self, rows, start):
        """Rows [heads, n, d] of tokens that stand from `start` on as they are where the first token stands at 0, from
        where methods count that undo the rotation. None undoes another law than that of one base."""
        if start == 0 or self.type not in ("default", "partial") or not self.theta:
            return rows
        turns = np.exp(-1j * start * self.theta ** (-2.0 * np.arange(self.channels // 2) / self.channels))
        moved, end = np.array(rows), self.first + self.channels
        x = pairs(rows[..., self.first:].astype(np.float64), self.channels, self.layout) * turns
        parts = (x.real, x.imag)
        moved[..., self.first:end] = np.concatenate(parts, -1) if self.layout == "half" else \
            np.stack(parts, -1).reshape(*x.shape[:-1], self.channels)
        return moved

    @staticmethod
    def no_order(layer):
        """Why the channels of a layer whose rotation is unknown are in no layout."""
        return (f"the rotary embedding of layer {layer} could not be measured, so that its channels cannot be put into "
                "another order; leave the option out.")


UNKNOWN = Rotation("unknown")


def behind(first, rotation):
    """The rotation of a head of which this is that of the channels behind `first` others."""
    if not first or not rotation.channels:
        return rotation
    return replace(rotation, first=first, type="partial" if rotation.type == "default" else rotation.type)


def pairs(x, channels, layout):
    """The first `channels` of [..., d] as complex numbers, by rotary pair."""
    if layout == "half":
        return x[..., :channels // 2] + 1j * x[..., channels // 2:channels]
    return x[..., 0:channels:2] + 1j * x[..., 1:channels:2]


def fit(before, after, channels, layout):
    """Fits rotations [n, channels / 2] from `before` [heads, 1, d] to `after` [heads, n, d], the same for all heads.
    Returns them, with length 1, NaN where `before` is 0 in all heads, as behind a norm whose weight is 0; and the
    relative residual, which also holds what the other channels change."""
    a, b = pairs(before, channels, layout), pairs(after, channels, layout)
    turns = (b * a.conj()).sum(0)
    size = abs(turns)
    turns = np.divide(turns, size, out=np.full_like(turns, np.nan), where=size > 1e-30)
    rest = (abs(after[..., channels:] - before[..., channels:])**2).sum()
    unexplained = (abs(b - np.nan_to_num(turns) * a)**2).sum() + rest
    return turns, float(np.sqrt(unexplained / (abs(after)**2).sum()))


def theta_of(turns, channels):
    """The base of turns that follow theta^(-2 i / channels), from the angles after one position, or 0."""
    i = np.arange(1, channels // 2)
    angles = np.angle(turns[1][1:]) if len(turns) > 1 else np.empty(0)
    clear = angles > 0.01
    if not clear.any():
        return 0.0
    return float(f"{math.exp(np.median(-np.log(angles[clear]) * channels / (2 * i[clear]))):.4g}")


def of_unit_length(x):
    """Rows of [heads, n, d] with the length of each head's first one: some models scale queries with the position."""
    norms = np.sqrt((x**2).sum(-1, keepdims=True))
    return x * norms[:, :1] / np.maximum(norms, 1e-30)


def rotation_of(rows, channels, thetas, named, tolerance):
    """Measures a rotary embedding from queries or keys of one token that stands at n positions after each other:
    float64 [heads, n, d]. channels: candidates for the number of rotated ones; thetas: values that the configuration
    names; `named`: the type and theta of the configuration; `tolerance`: of the model's element type."""
    rows, (kind, theta) = of_unit_length(rows), named
    largest = np.abs(rows).max()
    if not (np.isfinite(largest) and largest > 0 and rows.shape[1] > 1):
        return UNKNOWN
    if np.abs(rows - rows[:, :1]).max() <= tolerance * 1e-3 * largest:
        return Rotation("none")
    found = []
    for r in channels:
        for layout in ("half", "interleaved"):
            turns, unexplained = fit(rows[:, :1], rows, r, layout)
            if unexplained > tolerance:
                continue
            positions, exponents = np.arange(rows.shape[1])[:, None], -2.0 * np.arange(r // 2) / r
            found += [(float(np.nanmax(np.abs(turns - np.exp(1j * positions * base**exponents)))), r, layout, base)
                      for base in {*thetas, theta_of(turns, r)} if base > 1]
            found.append((2.0, r, layout, theta))
    if not found:
        return UNKNOWN
    error, r, layout, base = min(found)
    if kind not in LAWS:  # dynamic and longrope may rotate differently in a longer prompt
        return Rotation(kind, layout, theta, r)
    if error > tolerance:
        return Rotation("other", layout, theta, r)
    return Rotation("partial" if r < rows.shape[2] else "default", layout, base, r)
