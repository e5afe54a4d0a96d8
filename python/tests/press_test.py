# SPDX-License-Identifier: Apache-2.0
"""kvbench.from_kvpress() on presses of every shape of answer, without kvpress."""
import dataclasses
import os

import environment

environment.use(["h5py", "numpy", "torch", "threadpoolctl"], "KVBENCH_TORCH_PYTHON", "torch",
                "scripts/fetch-model --hf")
from support import PackageTest, kvbench  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402


@dataclasses.dataclass
class Press:
    answer: object
    compression_ratio: float = 0.0

    def compress(self, module, hidden_states, keys, values, attentions, kwargs):
        answer = self.answer(keys, values)
        if isinstance(answer, dict):
            module.masked_key_indices = answer["masked"]
            return answer["kept"]
        return answer


@dataclasses.dataclass
class BasePress:
    answer: object
    inner: object = None

    def post_init_from_model(self, model):
        pass

    def forward_hook(self):
        pass

    def compress(self, module, hidden_states, keys, values, attentions, kwargs):
        raise NotImplementedError


class OfAnother(BasePress):
    compress = Press.compress


class Listed(BasePress):
    compress = Press.compress


class Hooked(BasePress):
    compress = Press.compress

    def forward_hook(self):
        pass


class Prepared(BasePress):
    compress = Press.compress

    def post_init_from_model(self, model):
        self.layers = model.config.num_hidden_layers


class Ready(BasePress):
    """Prepares itself, but not with the model."""
    def post_init_from_model(self, model):
        self.ready = True

    def compress(self, *arguments):
        assert self.ready
        return Press.compress(self, *arguments)


@dataclasses.dataclass
class Numbers(BasePress):
    need: int = dataclasses.field(kw_only=True)
    share: float | None = 0.5
    compress = Press.compress


class Own(BasePress):
    """Has an argument that is no field."""
    compress = Press.compress

    def __init__(self, answer, own=3, **others):
        super().__init__(answer, **others)
        self.own = own


class Lost(Own):
    def __init__(self, answer, lost):
        super().__init__(answer)


class Presses(PackageTest):
    def setUp(self):
        """32 tokens of context on two kv heads, of which 8 to 11 have equal keys and values."""
        super().setUp()
        self.write(4)

    def write(self, value_dim):
        draw = np.random.default_rng(5).standard_normal
        keys, values = draw((2, 40, 4)), draw((2, 40, value_dim))
        keys[:, 8:12], values[:, 8:12] = keys[:, 8:9], values[:, 8:9]
        with kvbench.TraceWriter(self.path("t.h5"), kvbench.Header(
                model="m", rope_type="none", num_layers=1, num_query_heads=2, num_kv_heads=2, head_dim=4,
                value_dim=value_dim)) as out:
            out.prompt("0", kvbench.PromptInfo(name="p", tokens=np.arange(40), prompt_tokens=32))
            out.layer("0", 0, kvbench.LayerInfo(scale=0.5, query_positions=np.arange(24, 40)), keys=keys,
                      values=values, queries=draw((2, 16, 4)))

    def row(self, answer):
        rows = kvbench.replay(self.path("t.h5"), kvbench.from_kvpress(Press(answer)), 8, rows="trace")
        return rows[0]

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

    def test_presses_that_need_more_than_a_trace(self):
        whole = lambda k, v: (k[:, :, :8], v[:, :, :8])
        made = {kind.__name__: kind(whole) for kind in (OfAnother, Listed, Hooked, Prepared, Ready)}
        made["OfAnother"].inner = Press(whole)
        made["Listed"].inner = [0.1, 0.2]
        for name, words in (("OfAnother", "the budget of .* does not reach Press"), ("Listed", "`inner` .* is a list"),
                            ("Hooked", r"works in hooks of a model \(forward_hook\)"),
                            ("Prepared", "cannot prepare itself without a model: .* asks the model for `config`")):
            with self.subTest(name), self.refuses(f"{name}", words):
                kvbench.from_kvpress(made[name])
        with self.refuses("BasePress has no compress"):
            kvbench.from_kvpress(BasePress(whole))
        rows = kvbench.replay(self.path("t.h5"), kvbench.from_kvpress(made["Ready"]), 8, rows="trace")
        self.assertEqual((rows[0]["status"], rows[0]["kept_tokens"]), ("ok", 8 + 4.5), rows[0]["reason"])

    def test_values_of_another_width_than_keys(self):
        kept = torch.arange(8)[None, None, :, None].expand(1, 2, 8, 4)  # as presses of kvpress gather both
        os.remove(self.path("t.h5"))
        self.write(3)
        self.assertEqual(self.row(lambda k, v: (k[:, :, :8], v[:, :, :8]))["status"], "ok")
        row = self.row(lambda k, v: (k.gather(2, kept), v.gather(2, kept)))
        self.assertEqual(row["status"], "skipped")
        self.assertIn("keys have 4 channels and values 3", row["reason"])

    def test_rows_name_what_a_press_is_made_of(self):
        whole = lambda k, v: (k[:, :, :8], v[:, :, :8])
        for press, params in ((Numbers(whole, need=3), "need=3"), (Numbers(whole, need=np.int32(4)), "need=4"),
                              (Numbers(whole, need=3, share=None), "share=none;need=3"), (Own(whole), None),
                              (Own(whole, 4), "own=4"), (Own(whole, inner=Own(whole, 5)), "inner_own=5")):
            row = kvbench.replay(self.path("t.h5"), kvbench.from_kvpress(press), 8, rows="trace")[0]
            self.assertEqual((row["status"], row["params"]), ("ok", params), row["reason"])
        round_and_round = Own(whole)
        round_and_round.inner = round_and_round
        with self.refuses("without end"):
            kvbench.from_kvpress(round_and_round)
        with self.refuses("`lost` of Lost: is not kept under"):
            kvbench.from_kvpress(Lost(whole, 3))
        row = self.row(lambda k, v: (k[:, :, :9], v[:, :, :9]))
        self.assertEqual(row["status"], "infeasible")
        self.assertIn("Press keeps 18 tokens on 2 kv heads of this layer", row["reason"])

    def test_what_a_press_draws_is_drawn_again(self):
        def drawn(k, v):
            kept = torch.rand(32).argsort()[:8]
            return k[:, :, kept], v[:, :, kept]
        torch.manual_seed(1)
        first = self.row(drawn)["rel_err_mean"]
        before = torch.get_rng_state()
        self.assertEqual(self.row(drawn)["rel_err_mean"], first)
        self.assertTrue(torch.equal(torch.get_rng_state(), before))

    def test_masked_keys(self):
        """24 of 32 tokens of each head are masked, in any type of whole numbers and any order."""
        heads, tokens = np.repeat([1, 0], 24), np.r_[31:7:-1, 8:32]
        for number in (torch.int64, torch.int32, torch.uint8):
            masked = tuple(torch.as_tensor(one).to(number) for one in (np.zeros(48), heads, tokens))
            row = self.row(lambda k, v, masked=masked: {"kept": (k, v), "masked": masked})
            self.assertEqual((row["status"], row["kept_tokens"]), ("ok", 8 + 4.5), row["reason"])
        # Keys that are left out and masked: tokens count among those that are returned.
        masked = ([0, 0], [0, 1], [0, 8])
        row = self.row(lambda k, v: {"kept": (k[:, :, 2:11], v[:, :, 2:11]), "masked": masked})
        self.assertEqual((row["status"], row["kept_tokens"]), ("ok", 8 + 4.5), row["reason"])
        whole = [0] * 48, heads, tokens
        for words, masked in (("kv head 2", (whole[0], heads + 1, tokens)),
                              ("kv head -1", (whole[0], heads - 1, tokens)),
                              ("token 32", (whole[0], heads, tokens + 1)), ("token -1", (whole[0], heads, tokens - 9)),
                              ("batch 1", ([1] * 48, heads, tokens)),
                              *(("three lists", one) for one in (
                                  torch.ones(2, 32), torch.zeros(1, 2, 32, dtype=bool), (heads, tokens), 3, "abc", (),
                                  (whole[0], heads + 0.5, tokens), (whole[0], heads, tokens[:5]),
                                  (torch.zeros(48, dtype=bool),) * 3))):
            row = self.row(lambda k, v, masked=masked: {"kept": (k, v), "masked": masked})
            self.assertEqual(row["status"], "failed", words)
            self.assertIn(words, row["reason"])
            self.assertIn("Press.compress()", row["reason"])
