# SPDX-License-Identifier: Apache-2.0
"""Probes, sketches and norms in traces that Python writes and reads."""
from support import PackageTest, kvbench, run
import numpy as np


class Files(PackageTest):
    INFO = dict(scale=0.25, query_positions=[2, 3, 4], sketch_seed=1)

    def arrays(self):
        random = np.random.default_rng(0)
        shapes = dict(keys=(1, 5, 4), values=(1, 5, 3), queries=(2, 3, 4), output_sketch=(2, 3, 6),
                      probes=(2, 4, 2, 3))
        return {name: random.normal(size=shape) for name, shape in shapes.items()} | {"residual_norm": np.ones(3)}

    def write(self, arrays, probes=kvbench.Probes(count=4, tokens=2, seed=9), context=3, compress=False, **fields):
        header = kvbench.Header(model="m", num_layers=1, num_query_heads=2, num_kv_heads=1, head_dim=4, value_dim=3,
                                rope_type="none")
        with kvbench.TraceWriter(self.path("t.h5"), header, compress=compress) as out:
            out.prompt("0", kvbench.PromptInfo(name="p", tokens=[1, 2, 3, 4, 5], prompt_tokens=context, probes=probes))
            out.layer("0", 0, kvbench.LayerInfo(**{**self.INFO, **fields}), **arrays)

    def test_what_is_written_is_read(self):
        for compress in (False, True):
            arrays = self.arrays()
            arrays["probes"] *= 10.0 ** np.arange(-12, 12).reshape(2, 4, 1, 3)[..., :1]
            arrays["probes"][1, 2, 1] = 0
            self.write(arrays, compress=compress)
            self.assertIn("4 of 2 scored tokens", run("info", self.path("t.h5")))
            with kvbench.Trace(self.path("t.h5")) as trace:
                layer = trace.prompts["0"].layers[0]
                self.assertEqual(trace.prompts["0"].probes, kvbench.Probes(count=4, tokens=2, seed=9))
                self.assertEqual((layer.sketch_seed, layer.sketch_misfit), (1, 0.0))
                for name in ("residual_norm", "output_sketch"):
                    np.testing.assert_allclose(layer.array(name), arrays[name], rtol=1e-6)
                step = np.abs(arrays["probes"]).max(-1, keepdims=True) / 127
                self.assertTrue((np.abs(layer.array("probes") - arrays["probes"]) <= 0.5001 * step).all())

    def test_what_contradicts_the_schema_is_refused(self):
        good = self.arrays()
        for changes, fields, words in (
                ({"probes": good["probes"][:, :3]}, {}, ["has shape", "2, 4, 2, 3"]),
                ({"probes": good["probes"] * np.nan}, {}, ["not finite"]),
                ({}, {"probes": None}, ["probes=Probes"]),
                ({}, {"probes": kvbench.Probes(count=4, tokens=3, seed=0)}, ["scored_tokens is 3", "from 1 to 2"]),
                ({}, {"probes": kvbench.Probes(count=0, tokens=2, seed=0)}, ["num_probes is 0"]),
                ({}, {"query_positions": [1, 2, 3]}, ["of which 1 have a query"]),
                ({"output_sketch": good["output_sketch"][:1]}, {}, ["has shape", "2, 3, columns"]),
                ({}, {"sketch_seed": None}, ["sketch_seed belong together"]),
                ({"residual_norm": np.array([1, 0, 1.0])}, {}, ["not above 0"]),
                ({"residual_norm": np.ones((1, 3))}, {}, ["has shape"])):
            with self.subTest(words=words), self.refuses(*words):
                self.write({**good, **changes}, **fields)
