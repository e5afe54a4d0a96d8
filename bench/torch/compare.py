# SPDX-License-Identifier: Apache-2.0
"""Interleaves kvbench with PyTorch on one thread and prints the ratios: exact attention, then the algorithms of algorithms.py.

    python bench/torch/compare.py build/release/bench/kvbench_bench [--rounds 15] [--only PART-OF-CASE]

fused:   torch.nn.functional.scaled_dot_product_attention with the causal tail mask as a bias, values only
unfused: softmax(q k^T + mask) v, what one writes to see the scores
Each round runs every contender once, in turn; the minimum over the rounds counts, in CPU time of the
thread (everything runs on one), so that neighbours on a shared machine do not count. kvbench checks itself against its serial
reference before it serves a time; here PyTorch's two forms are checked against each other in fp64, and each algorithm by what
must hold of its result.
"""
import argparse
import math
import subprocess
import time

import torch

from algorithms import QUERIES, TOKENS, all_tasks


class Kvbench:
    """One serving kvbench_bench process: a line in, milliseconds out."""

    def __init__(self, binary, case, device="cpu"):
        self.process = subprocess.Popen([binary, "--device", device, "--serve", "--only", case], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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


def timed(f, args=()):
    start = time.thread_time()
    f(*args)
    return 1e3 * (time.thread_time() - start)


def fastest(contenders, rounds):
    """Milliseconds of each contender, the first of which is kvbench, and the multiply-add rate probed beside them."""
    best = dict.fromkeys(contenders, math.inf)
    peak = 0.0
    for _ in range(rounds):
        for name, run in contenders.items():
            best[name] = min(best[name], run())
        peak = max(peak, next(iter(contenders.values())).ask("probe"))
    return best, peak


def compare_attention(binary, d, rounds):
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
    best, peak = fastest(contenders, rounds)
    flops = 4.0 * QUERIES * TOKENS * d
    print(f"n={TOKENS} m={QUERIES} d={d}, 1 thread, min of {rounds} interleaved rounds; FMA probe {peak:.1f} GF/s")
    for name, ms in best.items():
        rate = flops / ms / 1e6
        print(f"  {name:22s} {ms:8.2f} ms {rate:7.1f} GF/s {100 * rate / peak:5.1f} % of peak   {ms / best['kvbench']:5.2f} x kvbench")


def compare_task(binary, task, rounds):
    task.check()
    contenders = {"kvbench": Kvbench(binary, task.case)}
    for name, form in task.forms.items():
        contenders[name] = lambda form=form: timed(form)
    best, _ = fastest(contenders, rounds)
    print(task.case)
    for name, ms in best.items():
        print(f"  {name:28s} {ms:9.2f} ms   {ms / best['kvbench']:6.2f} x kvbench", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    print(f"torch {torch.__version__}")
    for d in (128, 64):
        if options.only in f"exact_attention d={d}":
            compare_attention(options.binary, d, options.rounds)
    for task in all_tasks():
        if options.only in task.case:
            compare_task(options.binary, task, options.rounds)


if __name__ == "__main__":
    main()
