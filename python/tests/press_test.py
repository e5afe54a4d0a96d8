# SPDX-License-Identifier: Apache-2.0
"""kvbench.from_kvpress() on presses of every shape of answer, without kvpress."""
import dataclasses

import environment

environment.use(["h5py", "numpy", "torch", "threadpoolctl"], "KVBENCH_TORCH_PYTHON", "torch",
                "scripts/fetch-model --hf")
from support import PackageTest, kvbench, main, records  # noqa: E402
import numpy as np  # noqa: E402


@dataclasses.dataclass
class Press:
    answer: object
    compression_ratio: float = 0.0

    def compress(self, module, hidden_states, keys, values, attentions, kwargs):
        return self.answer(keys, values)


class Presses(PackageTest):
    def setUp(self):
        """32 tokens of context on two kv heads, of which 8 to 11 have equal keys and values."""
        super().setUp()
        draw = np.random.default_rng(5).standard_normal
        keys, values = draw((2, 40, 4)), draw((2, 40, 4))
        keys[:, 8:12], values[:, 8:12] = keys[:, 8:9], values[:, 8:9]
        with kvbench.TraceWriter(self.path("t.h5"), kvbench.Header(
                model="m", rope_type="none", num_layers=1, num_query_heads=2, num_kv_heads=2, head_dim=4,
                value_dim=4)) as out:
            out.prompt("0", kvbench.PromptInfo(name="p", tokens=np.arange(40), prompt_tokens=32))
            out.layer("0", 0, kvbench.LayerInfo(scale=0.5, query_positions=np.arange(24, 40)), keys=keys,
                      values=values, queries=draw((2, 16, 4)))

    def row(self, answer):
        rows = kvbench.replay(self.path("t.h5"), kvbench.from_kvpress(Press(answer)), 8, rows="trace")
        return records(rows)[0]

    def test_equal_tokens_count_each(self):
        """Of decoded ones, 0 to 7 are held when the 8 queries after the context are answered."""
        row = self.row(lambda k, v: (k[:, :, 6:14], v[:, :, 6:14]))
        self.assertEqual((row["status"], row["kept_tokens"]), ("ok", 8 + 4.5), row["reason"])
        row = self.row(lambda k, v: (k[:, :, [0, 0]], v[:, :, [0, 0]]))
        self.assertIn("an id twice", row["reason"])

    def test_what_is_not_keys_and_values_of_tokens(self):
        for answer in (lambda k, v: None, lambda k, v: k, lambda k, v: (k[:, :, :8], v[:, :, :7]),
                       lambda k, v: (k[0, :, :8], v[0, :, :8]), lambda k, v: (k[:, :1, :8], v[:, :1, :8]),
                       lambda k, v: (k[:, :, :8].double(), v[:, :, :8].double()),
                       lambda k, v: (k[:, :, :8].bfloat16(), v[:, :, :8].bfloat16()),
                       lambda k, v: (k[:, :, :8].numpy(), v[:, :, :8].numpy())):
            row = self.row(answer)
            self.assertEqual(row["status"], "failed")
            self.assertIn("Press.compress() returned ", row["reason"])
            self.assertIn("not the torch.float32 keys and values of the tokens that it keeps, [1, 2, tokens, channels]",
                          row["reason"])
        self.assertIn("changes keys or values", self.row(lambda k, v: (k[:, :, :8] + 1, v[:, :, :8]))["reason"])


main()
