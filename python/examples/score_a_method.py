#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scores a method of your own beside a built-in one.

    python score_a_method.py trace.h5 [--kvbench build/release/kvbench] [--budget 512]

The method is select(), which returns the tokens of the context to keep in one kv head. This example keeps the first
four and the most recent tokens, as the built-in `sink` does, so that both rows of each layer are equal. Change select()
to score your own method."""
import argparse
import os
import subprocess
import tempfile

import kvbench
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("trace")
parser.add_argument("--kvbench", default="kvbench", help="the program")
parser.add_argument("--budget", type=int, default=512, help="tokens per kv head")
options = parser.parse_args()


def select(layer, kv_head):
    """Positions of the tokens that answer the queries. They may be chosen by layer.keys(kv_head) and the other arrays
    of the layer."""
    context = layer.prompt.prompt_tokens
    return np.union1d(np.arange(4), np.arange(context - options.budget + 4, context))


with tempfile.TemporaryDirectory() as folder:
    kept, result = os.path.join(folder, "kept.h5"), os.path.join(folder, "result.csv")
    with kvbench.Trace(options.trace) as trace:
        kvbench.write_kept(kept, trace, select)
    # With these flags both methods keep every decoded token, and sink does not change positions.
    subprocess.run([options.kvbench, "replay", options.trace, "--method", f"file:{kept},sink", "--set",
                    "sink.reposition=false", "--budget", str(options.budget), "--decoded", "keep", "--rows", "layer",
                    "-o", result], check=True)
    rows = kvbench.load_csv(result)
for row in rows if isinstance(rows, list) else rows.to_dict("records"):
    name = row["method"] if row["method"] == "sink" else "select()"
    print(f"{name:10} layer {row['layer']!s:4} kept {row['kept_tokens']:7.1f} rel_err {row['rel_err_mean']:.6g}")
