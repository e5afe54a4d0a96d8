# SPDX-License-Identifier: Apache-2.0
"""Quantisers in PyTorch, vectorised, without extensions: what encoding and decoding the keys of a head costs. Interface
as in algorithms.py. Codes are bytes, as in kvbench, whose operations do not pack them."""
import torch

DIMS = 128


def nearest_of_range(groups, dim, bits=4):
    """Rounds to 2^bits equal steps from the minimum to the maximum along `dim`, both in 16 bits; returns codes and
    decoded rows."""
    least, largest = groups.aminmax(dim=dim, keepdim=True)
    step = (largest - least) / (2**bits - 1)
    step16, least16 = step.half().float(), least.half().float()
    codes = ((groups - least16) / step16).round_().clamp_(0, 2**bits - 1).to(torch.uint8)
    return codes, codes * step16 + least16


def int4(rows):
    return nearest_of_range(rows.unflatten(1, (-1, 32)), 2)[1].flatten(1)


def kivi4_keys(rows):
    return nearest_of_range(rows.unflatten(0, (-1, 32)), 1)[1].flatten(0, 1)


def turboquant(rows, rotation, levels):
    turned = rows @ rotation.T
    norm = turned.norm(dim=1, keepdim=True)
    codes = torch.bucketize(turned / norm, (levels[1:] + levels[:-1]) / 2, out_int32=True)
    return (levels[codes] * norm.half().float()) @ rotation


def check(rows, rotation, levels):
    for decoded, groups, dim in ((int4(rows), rows.unflatten(1, (-1, 32)), 2),
                                 (kivi4_keys(rows), rows.unflatten(0, (-1, 32)), 1)):
        step = (groups.amax(dim) - groups.amin(dim)) / 15
        error = (decoded.reshape(groups.shape) - groups).abs().amax(dim)
        assert (error <= 0.51 * step + 1e-2).all()
    share = (turboquant(rows, rotation, levels) - rows).square().sum() / rows.square().sum()
    assert 0.005 < share < 0.02, share   # 0.0095 for 16 levels of a normal density


def rounding_tasks(task, normal, tokens):
    rows, rotation = normal(tokens, DIMS), torch.linalg.qr(normal(DIMS, DIMS))[0]
    levels = torch.linspace(-2.7, 2.7, 16) / DIMS**0.5
    inputs = rows, rotation, levels
    return [task("round_trip int4", {"torch": lambda: int4(rows)}, lambda: check(*inputs)),
            task("round_trip kivi4 keys", {"torch": lambda: kivi4_keys(rows)}),
            task("round_trip turboquant", {"torch": lambda: turboquant(*inputs)})]
