# SPDX-License-Identifier: Apache-2.0
"""Measures what a method costs inside a model of transformers, from one thread to many.

    python bench/in_model.py [--threads 1 2 4] [--methods h2o snapkv] [--context 3840] [--decode 32] [--rounds 2]
                                [--processor]

The model has the shape of SmolLM2-135M (30 layers of 9 query and 3 kv heads, d = 64) and random weights, on which the
time does not depend. Per method, at a quarter of the memory: the seconds of the context, of which the method's part is
what they exceed those without a method, and the milliseconds of each decoded token. The number of threads is PyTorch's
and kvbench's; rounds go through all methods, and of each time the least counts. Needs kvbench with its extension
(`pip install .`), PyTorch and transformers.
"""
import argparse
import contextlib
import time
import warnings

import torch
import transformers

import kvbench

SHAPE = dict(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
             num_key_value_heads=3, max_position_embeddings=8192, tie_word_embeddings=True)


def timed(call, clock):
    start = clock()
    result = call()
    return clock() - start, result


def one_pass(model, method, tokens, threads, decode, clock):
    """Seconds of the context and of one decoded token."""
    if method is None:
        inside = contextlib.nullcontext()
    else:
        inside = kvbench.compressed(model, method, "25%mem", decode=decode, threads=threads)
    with inside:
        context, output = timed(lambda: model(tokens, use_cache=True), clock)
        token = torch.zeros((1, 1), dtype=torch.long)
        decoded, _ = timed(lambda: [model(token, past_key_values=output.past_key_values) for _ in range(decode)],
                           clock)
    return context, decoded / decode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--methods", nargs="+",
                        default=["snapkv", "h2o", "expected-attention", "h2o+q8_0", "snapkv+kivi4"])
    parser.add_argument("--context", type=int, default=3840)
    parser.add_argument("--decode", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--processor", action="store_true", help="processor time of all threads, not the clock's")
    asked = parser.parse_args()
    torch.set_grad_enabled(False)
    warnings.simplefilter("ignore", FutureWarning)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE)).eval()
    tokens = torch.arange(asked.context)[None] * 7919 % SHAPE["vocab_size"]
    clock = time.process_time if asked.processor else time.perf_counter
    print("threads,method,context_s,token_ms")
    for threads in asked.threads:
        torch.set_num_threads(threads)
        least = {}
        for _ in range(asked.rounds):
            for method in (None, *asked.methods):
                times = one_pass(model, method, tokens, threads, asked.decode, clock)
                least[method] = tuple(map(min, times, least.get(method, times)))
        for method, (context, token) in least.items():
            print(f"{threads},{method or 'none'},{context:.2f},{1e3 * token:.1f}", flush=True)


if __name__ == "__main__":
    main()
