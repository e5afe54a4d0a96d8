#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GGUF file of the shape of Qwen2.5-Coder-1.5B with random weights in Q8_0 (1.9 GB), for times that do not depend on
what a model says. SMALL.gguf: Qwen2.5-Coder-0.5B of `scripts/fetch-model --qwen`, whose tokenizer it has.

    python bench/random_model.py SMALL.gguf OUT.gguf"""
import sys

import gguf
import numpy as np

LAYERS = 28
SIZES = {896: 1536, 4864: 8960, 128: 256}  # channels of the model and of its MLP, and of all kv heads together
FIELDS = {"qwen2.block_count": LAYERS, "qwen2.embedding_length": 1536, "qwen2.feed_forward_length": 8960,
          "qwen2.attention.head_count": 12, "qwen2.attention.head_count_kv": 2, "general.name": "random weights"}
BLOCK, SCALE = 32, 3e-4  # of Q8_0: numbers of a block, and the largest is 127 times this


def add_fields(reader, writer):
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            kind = field.types[0]
            writer.add_key_value(field.name, FIELDS.get(field.name, field.contents()), kind,
                                 sub_type=field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)


def add_tensor(writer, name, shape, draw):
    """`shape`: rows and columns, or the length of a vector."""
    if len(shape) == 1:
        writer.add_tensor(name, np.ones(shape, np.float32) if "norm" in name else
                          draw.normal(0, 0.1, shape).astype(np.float32))
        return
    blocks = np.empty((shape[0] * shape[1] // BLOCK, 2 + BLOCK), np.uint8)
    blocks[:, :2] = np.array([SCALE], np.float16).view(np.uint8)
    blocks[:, 2:] = draw.integers(-127, 128, (len(blocks), BLOCK), np.int8).view(np.uint8)
    writer.add_tensor(name, blocks.reshape(shape[0], -1), raw_dtype=gguf.GGMLQuantizationType.Q8_0)


def main():
    small, out = sys.argv[1:]
    reader, writer, draw = gguf.GGUFReader(small), gguf.GGUFWriter(out, "qwen2"), np.random.default_rng(0)
    add_fields(reader, writer)
    for tensor in reader.tensors:
        shape = [SIZES.get(int(size), int(size)) for size in tensor.shape[::-1]]
        if tensor.name.startswith("blk.0."):
            for layer in range(LAYERS):
                add_tensor(writer, tensor.name.replace("blk.0.", f"blk.{layer}."), shape, draw)
        elif not tensor.name.startswith("blk."):
            add_tensor(writer, tensor.name, shape, draw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
