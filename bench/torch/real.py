# SPDX-License-Identifier: Apache-2.0
"""Writes the part of a real trace that the sweep compares: one query head, the first, for each kv head.

    python bench/torch/real.py TRACE.h5 OUT.h5 [--layers 1,8,15,28] [--heads N]

Only the first prompt is copied, without what the sweep does not read.
"""
import argparse

import h5py

COPIED = ("keys", "values", "queries", "query_positions", "column_sums")


def copy(source, out, layers, heads):
    for name, value in source.attrs.items():
        out.attrs[name] = value
    group = int(source.attrs["num_query_heads"]) // int(source.attrs["num_kv_heads"])
    kept = min(heads or int(source.attrs["num_kv_heads"]), int(source.attrs["num_kv_heads"]))
    out.attrs["num_query_heads"] = out.attrs["num_kv_heads"] = kept
    prompt = source["prompts"][sorted(source["prompts"])[0]]
    to = out.create_group("prompts/0")
    for name, value in prompt.attrs.items():
        to.attrs[name] = value
    prompt.copy("tokens", to)
    for number in layers or sorted(map(int, prompt["layers"])):
        layer, into = prompt["layers"][str(number)], to.create_group(f"layers/{number}")
        for name, value in layer.attrs.items():
            into.attrs[name] = value
        for name in COPIED:
            dataset = layer[name]
            step = group if name in ("queries", "column_sums") else 1
            rows = dataset[:] if name == "query_positions" else dataset[: kept * step : step]
            into.create_dataset(name, data=rows)
            for attribute, value in dataset.attrs.items():
                into[name].attrs[attribute] = value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("out")
    parser.add_argument("--layers", type=lambda text: [int(word) for word in text.split(",")], default=[])
    parser.add_argument("--heads", type=int, help="kv heads of each layer (default: all)")
    options = parser.parse_args()
    with h5py.File(options.trace) as source, h5py.File(options.out, "w") as out:
        copy(source, out, options.layers, options.heads)


if __name__ == "__main__":
    main()
