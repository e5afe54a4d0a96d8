# SPDX-License-Identifier: Apache-2.0
"""Interleaves kvbench's exact attention with PyTorch's on one thread and prints the ratios.

    python bench/torch/compare.py build/release/bench/kvbench_bench [--rounds 15]

fused:   torch.nn.functional.scaled_dot_product_attention with the causal tail mask as a bias, values only
unfused: softmax(q k^T + mask) v, what one writes to see the scores
Each round runs every contender once, in turn; the minimum over the rounds counts, in CPU time of the
thread (everything runs on one), so that neighbours on a shared machine do not count. kvbench checks itself against its serial
reference before it serves a time; here PyTorch's two forms are checked against each other in fp64.
"""
import argparse
import math
import subprocess
import time

import torch

TOKENS, QUERIES = 32768, 256


class Kvbench:
    """One serving kvbench_bench process: a line in, milliseconds out."""

    def __init__(self, binary, case):
        self.process = subprocess.Popen([binary, "--serve", "--only", case], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask("run")

    def ask(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def __call__(self):
        return self.ask("run")


def inputs(d):
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(1, 1, rows, d, generator=generator) for rows in (QUERIES, TOKENS, TOKENS))
    seen = torch.arange(TOKENS)[None, :] <= torch.arange(TOKENS - QUERIES, TOKENS)[:, None]
    return q, k, v, torch.zeros(QUERIES, TOKENS).masked_fill(~seen, -math.inf)


def fused(q, k, v, bias):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def fused_unmasked(q, k, v, _bias):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def unfused(q, k, v, bias):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias
    return torch.softmax(scores, dim=-1) @ v


def timed(f, args):
    start = time.thread_time()
    f(*args)
    return 1e3 * (time.thread_time() - start)


def compare(binary, d, rounds):
    args = inputs(d)
    expected = unfused(*(x.double() for x in args))
    for f in (fused, unfused):
        assert torch.allclose(f(*args).double(), expected, atol=1e-5), f.__name__
    contenders = {
        "kvbench": Kvbench(binary, f"exact_attention d={d}"),
        "kvbench, scores kept": Kvbench(binary, f"exact_attention d={d} scores"),
        "torch fused, masked": lambda: timed(fused, args),
        "torch fused, no mask": lambda: timed(fused_unmasked, args),
        "torch unfused": lambda: timed(unfused, args),
    }
    best = dict.fromkeys(contenders, math.inf)
    peak = 0.0
    for _ in range(rounds):
        for name, run in contenders.items():
            best[name] = min(best[name], run())
        peak = max(peak, contenders["kvbench"].ask("probe"))
    flops = 4.0 * QUERIES * TOKENS * d
    print(f"n={TOKENS} m={QUERIES} d={d}, 1 thread, min of {rounds} interleaved rounds; FMA probe {peak:.1f} GF/s")
    for name, ms in best.items():
        rate = flops / ms / 1e6
        print(f"  {name:22s} {ms:8.2f} ms {rate:7.1f} GF/s {100 * rate / peak:5.1f} % of peak   {ms / best['kvbench']:5.2f} x kvbench")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    print(f"torch {torch.__version__}")
    for d in (128, 64):
        compare(options.binary, d, options.rounds)


if __name__ == "__main__":
    main()
