# SPDX-License-Identifier: Apache-2.0
"""Runs kvbench and PyTorch alternately on the current GPU and prints the ratios.

    python bench/torch/gpu.py build/gpu/bench/kvbench_bench [--rounds 10]

fused:   torch.nn.functional.scaled_dot_product_attention with the causal tail mask as a bias, and without a mask
unfused: softmax(q k^T + mask) v, the form that gives access to the scores
Everything is computed in fp32. TF32 is off, as its errors (1e-3) are larger than the differences that kvbench measures.
A time is the wall time of 16 queued calls, divided by 16, as in kvbench_bench; the minimum over the rounds counts.
kvbench_bench checks every result against its serial reference before it reports a time; the PyTorch forms are checked
against each other in fp64.
"""
import argparse
import math
import time

import torch

from compare import Kvbench, QUERIES, TOKENS, fastest, fused, fused_unmasked, inputs, unfused

QUEUED = 16


def timed(f, args):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(QUEUED):
        f(*args)
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / QUEUED


def print_ratios(title, best, peak=None, flops=None):
    print(title)
    ours = next(iter(best.values()))
    for name, ms in best.items():
        rate = "" if flops is None else f"{flops / ms / 1e6:9.1f} GF/s {100 * flops / ms / 1e6 / peak:5.1f} % of peak"
        print(f"  {name:28s} {ms:9.4f} ms {rate}  {ms / ours:6.2f} x kvbench", flush=True)


def compare_attention(binary, d, rounds):
    args = [x.cuda() for x in inputs(d, 1)]
    expected = unfused(*(x.double() for x in args))
    for f in (fused, unfused):
        assert torch.allclose(f(*args).double(), expected, atol=1e-5), f.__name__
    best, peak = fastest({
        "kvbench": Kvbench(binary, f"exact_attention d={d}"),
        "kvbench, scores kept": Kvbench(binary, f"exact_attention d={d} scores"),
        "torch fused, masked": lambda: timed(fused, args),
        "torch fused, no mask": lambda: timed(fused_unmasked, args),
        "torch unfused": lambda: timed(unfused, args),
    }, rounds)
    print_ratios(f"exact attention n={TOKENS} m={QUERIES} d={d}; FMA probe {peak:.0f} GF/s", best, peak,
                 4.0 * QUERIES * TOKENS * d)


def compare_decode(binary, rounds):
    q, k, v, _ = (x.cuda() for x in inputs(128, 1))
    args = (q[:, :, -1:], k, v, None)
    best, _ = fastest({
        "kvbench": Kvbench(binary, "exact_attention decode"),
        "torch fused": lambda: timed(fused_unmasked, args),
    }, rounds)
    print_ratios(f"one query, n={TOKENS} d=128", best)


def compare_top_k(binary, rounds):
    scores = torch.randn(QUERIES, TOKENS)
    best, _ = fastest({
        "kvbench": Kvbench(binary, "topk k=1024"),
        "torch topk, sorted": lambda: timed(torch.topk, (scores, 1024)),
        "torch topk, unsorted": lambda: timed(lambda s: torch.topk(s, 1024, sorted=False), (scores,)),
    }, rounds)
    print_ratios(f"top 1024 of {TOKENS}, {QUERIES} rows", best)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.exit(2, "gpu.py: this PyTorch finds no GPU\n")
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, "
          f"{math.floor(torch.cuda.mem_get_info()[1] / 2**30)} GiB")
    binary = [options.binary, "--device", "cuda"]
    for d in (128, 64):
        compare_attention(binary, d, options.rounds)
    compare_decode(binary, options.rounds)
    compare_top_k(binary, options.rounds)


if __name__ == "__main__":
    main()
