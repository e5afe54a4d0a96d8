# SPDX-License-Identifier: Apache-2.0
"""What is measured of a rotary embedding, from rows that are rotated here by its definition.

Usage: rotation_test.py KVBENCH SAMPLE"""
import unittest

import support  # noqa: F401, which finds a Python with NumPy
import numpy as np

from kvbench.models.rotation import Rotation, behind, rotation_of

HEADS, TOKENS, D, THETA = 3, 40, 16, 10000.0


def rotated(row, layout, theta=THETA, turned=D):
    """Rows [TOKENS, D] of a token at positions 0, 1, ...: pair i turns by position / theta^(2 i / turned)."""
    out = np.tile(row, (TOKENS, 1))
    for position in range(TOKENS):
        for i in range(turned // 2):
            x, y = (i, i + turned // 2) if layout == "half" else (2 * i, 2 * i + 1)
            angle = position / theta**(2 * i / turned)
            out[position, x] = np.cos(angle) * row[x] - np.sin(angle) * row[y]
            out[position, y] = np.sin(angle) * row[x] + np.cos(angle) * row[y]
    return out


def measured(heads, thetas=(THETA,)):
    return rotation_of(np.array(heads, np.float32).astype(float), (D, D // 2), set(thetas), ("default", THETA), 1e-3)


class RotationTest(unittest.TestCase):
    def setUp(self):
        self.rows = np.random.default_rng(1).normal(size=(HEADS, D))

    def test_layouts_and_partial_rotation(self):
        for layout in ("half", "interleaved"):
            for turned, kind in ((D, "default"), (D // 2, "partial")):
                found = measured([rotated(row, layout, turned=turned) for row in self.rows])
                self.assertEqual((found.type, found.layout, found.theta, found.channels), (kind, layout, THETA, turned))

    def test_pairs_that_are_always_zero_have_no_rotation(self):
        for layout in ("half", "interleaved"):
            for pair in range(D // 2):
                x, y = (pair, pair + D // 2) if layout == "half" else (2 * pair, 2 * pair + 1)
                rows = self.rows.copy()
                rows[:, (x, y)] = 0
                found = measured([rotated(row, layout) for row in rows])
                self.assertEqual((found.type, found.layout, found.theta), ("default", layout, THETA), (layout, pair))

    def test_another_law(self):
        rows = self.rows.copy()
        rows[:, (1, 1 + D // 2)] = 0
        heads = np.array([rotated(row, "half") for row in rows])
        slower = np.array([rotated(row, "half", theta=3 * THETA) for row in rows])
        mixed = heads.copy()
        mixed[..., (5, 5 + D // 2)] = slower[..., (5, 5 + D // 2)]
        self.assertEqual(measured(mixed).type, "other")
        self.assertEqual(measured(slower).theta, 3 * THETA)

    def test_turned_back(self):
        """Rows of positions 9 to 39 as those of 0 to 30, behind 4 channels of a latent too."""
        for layout in ("half", "interleaved"):
            for turned in (D, D // 2):
                rows = np.array([rotated(row, layout, turned=turned) for row in self.rows])
                rotation = measured(rows)
                np.testing.assert_allclose(rotation.turned_back(rows[:, 9:], 9), rows[:, :-9], atol=1e-9)
                latent = np.concatenate([np.ones((HEADS, TOKENS, 4)), rows], -1)
                np.testing.assert_allclose(behind(4, rotation).turned_back(latent[:, 9:], 9), latent[:, :-9], atol=1e-9)
        still = Rotation("none", channels=D)
        self.assertIs(still.turned_back(rows, 9), rows)

    def test_no_rotation(self):
        self.assertEqual(measured(np.tile(self.rows[:, None], (1, TOKENS, 1))).type, "none")
        self.assertEqual(measured(np.zeros((HEADS, TOKENS, D))).type, "unknown")
