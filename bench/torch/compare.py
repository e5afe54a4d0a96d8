# SPDX-License-Identifier: Apache-2.0
"""Runs kvbench and PyTorch alternately on one thread, then on two, and prints the ratios for exact attention and for
the algorithms of algorithms.py.

    python bench/torch/compare.py build/release/bench/kvbench_bench [--isa avx2] [--threads 1 2] [--rounds 15]
      [--only PART-OF-CASE] [--real TRACE.h5]

fused:   torch.nn.functional.scaled_dot_product_attention with the causal tail mask as a bias, values only
unfused: softmax(q k^T + mask) v, the form that gives access to the scores
Each round runs every implementation once, and the minimum over the rounds counts. One thread: one head, in CPU time of
the thread, which other programs on a shared machine do not affect. Two threads: two heads, in wall time, on a machine
without other work. Kernels of kvbench are serial and heads run in parallel: its figure is the time of two processes
that start together, until the slower one is done. PyTorch has two threads and gets both heads: attention as one batch,
and the algorithms, which have no batch dimension, one head after the other. kvbench_bench checks every result against
its serial reference before it reports a time. This script checks the two PyTorch forms of attention against each other
in fp64, and each algorithm by properties of its result.

Inputs are Gaussian or consist of groups; two searches are also compared on the keys of one head of a real trace, that
of kv head 0 in its middle layer (default: the bundled trace; against.py names the command for the published one).
"""
import argparse
import math
import os
import subprocess
import tempfile
import time

import torch

import isa
from against import BUNDLED
from algorithms import QUERIES, TOKENS, all_tasks, key_tasks
from head import keys_of


class Kvbench:
    """kvbench_bench processes in serving mode, one per thread: each reads a line and answers with a number."""

    def __init__(self, binary, case, threads=1):
        command = [*binary, "--serve", "--only", case]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.processes = [subprocess.Popen(command, **pipes) for _ in range(threads)]
        self.ask("run")

    def ask(self, what):
        for process in self.processes:
            process.stdin.write(what + "\n")
            process.stdin.flush()
        return [float(process.stdout.readline()) for process in self.processes]

    def __call__(self):
        start = time.perf_counter()
        milliseconds = self.ask("run")
        return milliseconds[0] if len(milliseconds) == 1 else 1e3 * (time.perf_counter() - start)

    def close(self):
        for process in self.processes:
            process.communicate()


def inputs(d, heads):
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(1, heads, rows, d, generator=generator) for rows in (QUERIES, TOKENS, TOKENS))
    seen = torch.arange(TOKENS)[None, :] <= torch.arange(TOKENS - QUERIES, TOKENS)[:, None]
    return q, k, v, torch.zeros(QUERIES, TOKENS).masked_fill(~seen, -math.inf)


def fused(q, k, v, bias):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def fused_unmasked(q, k, v, _bias):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def unfused(q, k, v, bias):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias
    return torch.softmax(scores, dim=-1) @ v


def timed(f, threads):
    clock = time.thread_time if threads == 1 else time.perf_counter
    start = clock()
    f()
    return 1e3 * (clock() - start)


def fastest(implementations, rounds):
    """Milliseconds of each implementation, the first of which is kvbench, and the multiply-add rate measured in the
    same rounds."""
    best = dict.fromkeys(implementations, math.inf)
    peak = 0.0
    for _ in range(rounds):
        for name, run in implementations.items():
            best[name] = min(best[name], run())
        peak = max(peak, sum(next(iter(implementations.values())).ask("probe")))
    for run in implementations.values():
        if isinstance(run, Kvbench):
            run.close()
    return best, peak


def compare_attention(binary, d, rounds, threads):
    args = inputs(d, threads)
    expected = unfused(*(x.double() for x in args))
    for f in (fused, unfused):
        assert torch.allclose(f(*args).double(), expected, atol=1e-5), f.__name__
    implementations = {
        "kvbench": Kvbench(binary, f"exact_attention d={d}", threads),
        "kvbench, scores kept": Kvbench(binary, f"exact_attention d={d} scores", threads),
        "torch fused, masked": lambda: timed(lambda: fused(*args), threads),
        "torch fused, no mask": lambda: timed(lambda: fused_unmasked(*args), threads),
        "torch unfused": lambda: timed(lambda: unfused(*args), threads),
    }
    best, peak = fastest(implementations, rounds)
    flops = 4.0 * QUERIES * TOKENS * d * threads
    print(f"n={TOKENS} m={QUERIES} d={d}, heads and threads: {threads}, min of {rounds} rounds; FMA probe {peak:.1f} "
          "GF/s")
    for name, ms in best.items():
        rate = flops / ms / 1e6
        share, ratio = 100 * rate / peak, ms / best["kvbench"]
        print(f"  {name:22s} {ms:8.2f} ms {rate:7.1f} GF/s {share:5.1f} % of peak   {ratio:5.2f} x kvbench", flush=True)


def compare_task(binary, task, rounds, threads):
    task.check()
    implementations = {"kvbench": Kvbench(binary, task.case, threads)}
    for name, form in task.forms.items():
        implementations[name] = lambda form=form: timed(lambda: [form() for _ in range(threads)], threads)
    best, _ = fastest(implementations, rounds)
    print(f"{task.case}, heads and threads: {threads}")
    for name, ms in best.items():
        print(f"  {name:28s} {ms:9.2f} ms   {ms / best['kvbench']:6.2f} x kvbench", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="")
    parser.add_argument("--real", default=str(BUNDLED), help="a trace of kvdump (default: the bundled one)")
    isa.add_flag(parser)
    options = parser.parse_args()
    isa.restart_with(options.isa)
    torch.set_grad_enabled(False)
    print(f"torch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()}); {isa.described(options.isa)}")
    binary = [options.binary, *isa.flags(options.isa)]
    for threads in options.threads:
        torch.set_num_threads(threads)
        for d in (128, 64):
            if options.only in f"exact_attention d={d}":
                compare_attention(binary, d, options.rounds, threads)
        for task in all_tasks():
            if options.only in task.case:
                compare_task(binary, task, options.rounds, threads)
        with tempfile.TemporaryDirectory() as folder:
            keys, path = keys_of(options.real), os.path.join(folder, "keys.f32")
            keys.numpy().tofile(path)
            given = [*binary, "--keys", path, "--columns", str(keys.shape[1])]
            for task in key_tasks(keys):
                if options.only in task.case:
                    compare_task(given, task, options.rounds, threads)


if __name__ == "__main__":
    main()
