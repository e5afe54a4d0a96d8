# SPDX-License-Identifier: Apache-2.0
"""A small trace that Python writes, for tests of traces."""
from support import PackageTest, kvbench
import numpy as np


def header(**changes):
    return kvbench.Header(**{"model": "m", "num_layers": 4, "num_query_heads": 4, "num_kv_heads": 2, "head_dim": 3,
                             "value_dim": 2, "rope_type": "none", **changes})


def small(out, prompt="0", layer=1, **changes):
    """Writes a prompt of 5 tokens with queries at positions 3 and 4, and one layer; `changes` replace arrays or fields
    of its LayerInfo."""
    draw = np.random.default_rng(7).standard_normal
    arrays = {"keys": draw((2, 5, 3)), "values": draw((2, 5, 2)), "queries": draw((4, 2, 3))}
    fields = {"scale": 0.5, "query_positions": [3, 4]}
    for name, value in changes.items():
        (fields if hasattr(kvbench.LayerInfo, name) or name in fields else arrays)[name] = value
    out.prompt(prompt, kvbench.PromptInfo(name="p", tokens=np.arange(5)))
    out.layer(prompt, layer, kvbench.LayerInfo(**fields), **arrays)
    return arrays


class TraceTest(PackageTest):
    def write_small(self, name="t.h5", header=header(), **changes):
        """The path of a trace with the small prompt alone."""
        with kvbench.TraceWriter(self.path(name), header) as out:
            small(out, **changes)
        return self.path(name)
