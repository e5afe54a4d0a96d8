# SPDX-License-Identifier: Apache-2.0
"""kvbench.from_kvpress(): presses keep the tokens of a trace that they keep inside the model."""
import copy
import itertools
import pathlib
import unittest.mock

import environment

environment.use(["h5py", "numpy", "torch", "transformers", "kvpress", "threadpoolctl"], "KVBENCH_KVPRESS_PYTHON",
                "kvpress", "pip install kvpress in a Python with the packages of scripts/fetch-model --hf")
from support import kvbench, run  # noqa: E402
import hf_models  # noqa: E402
import kvpress  # noqa: E402
import numpy as np  # noqa: E402
import pandas  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from dumps import DumpTest  # noqa: E402
from kvpress.presses import duo_attention_press  # noqa: E402


class WithoutSketch(kvpress.CompactorPress):
    """Leverage of the keys themselves: the Gaussian matrix is the identity."""

    def score(self, *arrays, **named):
        def identity(*shape, **_):
            return torch.eye(shape[-1]).expand(shape) * shape[-1] ** 0.5
        with unittest.mock.patch("torch.randn", identity):
            return super().score(*arrays, **named)


def hook_of_kvpress(press, module, inputs, named, output, hook=kvpress.BasePress.forward_hook):
    """kvpress 0.5.5 reads the positions of a prompt from `cache_position`, which transformers 5.6 gives attention no
    more."""
    positions = torch.arange(named["hidden_states"].shape[1])
    return hook(press, module, inputs, {"cache_position": positions, **named}, output)


kvpress.BasePress.forward_hook = hook_of_kvpress
N, CONTEXT, BUDGET = 94, 84, 30
# Methods of the registry, and the presses whose tokens they keep. Parts of 20 tokens leave no ties between their ranks.
BUILT_IN = (("knorm", kvpress.KnormPress()), ("keydiff", kvpress.KeyDiffPress()),
            ("keydiff[block=16]", kvpress.BlockPress(kvpress.KeyDiffPress(), block_size=16)),
            ("curdkv", kvpress.CURPress()),
            ("curdkv[window=5,leverage=mean,sinks=1]",
             kvpress.CURPress(num_sinks=1, leverage_type="kv_avg", local_window_size=5)),
            ("lagkv@kvpress[lag=20]", kvpress.LagKVPress(lag_size=20)), ("lagkv@kvpress", kvpress.LagKVPress()),
            ("tova@kvpress", kvpress.TOVAPress()),
            ("expected-attention[future=32]", kvpress.ExpectedAttentionPress(n_future_positions=32)),
            ("expected-attention[epsilon=0.01]", kvpress.ExpectedAttentionPress(epsilon=0.01)),
            ("compactor[chunk=36,blend=0]", kvpress.CompactorPress(chunk_size=36, blending=0.0)),
            ("compactor[chunk=24,sketch=0]", WithoutSketch(chunk_size=24, sketch_dimension=16)),
            ("compactor[chunk=36,sketch=0,blend=3]", WithoutSketch(chunk_size=36, sketch_dimension=16, blending=3.0)))
PRESSES = (kvpress.SnapKVPress(window_size=16), kvpress.SnapKVPress(window_size=20, kernel_size=7),
           kvpress.KnormPress(), kvpress.TOVAPress(), kvpress.ExpectedAttentionPress(n_future_positions=32),
           kvpress.KeyDiffPress(), kvpress.StreamingLLMPress(n_sink=2), kvpress.CURPress())
NESTED = (kvpress.ChunkPress(kvpress.SnapKVPress(window_size=16), chunk_length=28),
          kvpress.ChunkKVPress(kvpress.KnormPress(), chunk_length=6),
          kvpress.BlockPress(kvpress.SnapKVPress(window_size=16), block_size=18),
          kvpress.AdaKVPress(kvpress.SnapKVPress(window_size=20), alpha_safeguard=0.4),
          kvpress.AdaKVPress(kvpress.ExpectedAttentionPress(n_future_positions=32)))


def token_ids():
    """Each token once: equal ones have keys of equal length in the first layer."""
    return [i * 37 % 95 + 1 for i in range(N)]


class Presses(DumpTest):
    @classmethod
    def setUpClass(cls):
        torch.set_grad_enabled(False)
        cls.model = hf_models.build(*hf_models.MODELS["llama"][:2])

    def recorded(self, *flags, ids=None, trace="t.h5"):
        self.model.save_pretrained(self.path("model"))
        self.dumped("--model", self.path("model"), "--ids", self.ids(ids or token_ids()), "--prompt-tokens", CONTEXT,
                    "--dtype", "f32", "-o", self.path(trace), "--quiet", *flags)
        return self.path(trace)

    def kept_in_the_model(self, press):
        """The tokens of each layer and kv head that are left in the cache of the model."""
        ids = torch.tensor([token_ids()[:CONTEXT]])
        full = self.model(ids, use_cache=True).past_key_values
        press.compression_ratio = 1 - (BUDGET + 0.5) / CONTEXT
        self.model.set_attn_implementation("sdpa")  # without weights of attention, which BlockPress refuses
        with press(self.model):
            left = self.model(ids, use_cache=True).past_key_values
        self.model.set_attn_implementation("eager")
        press.compression_ratio = 0.0
        kept = {}
        for layer in range(2):
            for head in range(2):
                distance = torch.cdist(left.layers[layer].keys[0, head], full.layers[layer].keys[0, head])
                kept[layer, head] = sorted(distance.argmin(1).tolist())
        return kept

    def test_kept_tokens_are_those_in_the_model(self):
        trace = self.recorded("--queries", "all", "--pre-rope")
        for press in (*PRESSES, *NESTED):
            with self.subTest(repr(press)):
                compete, name = isinstance(press, kvpress.AdaKVPress), f"py:{type(press).__name__}"
                expected = (self.kept_by_heads_that_compete if compete else self.kept_in_the_model)(press)
                rows = kvbench.replay(trace, kvbench.from_kvpress(press), BUDGET, rows="trace",
                                      raw=self.path("r.h5"), raw_outputs=True)
                name += f"_{type(press.press).__name__}" if press in NESTED else ""
                self.assertEqual((rows[0]["status"], rows[0]["method"]), ("ok", name), rows[0]["reason"])
                self.assert_kept(expected, None if press in NESTED else BUDGET)
        knorm, expected = kvpress.KnormPress(), kvpress.ExpectedAttentionPress()
        for press, words in ((kvpress.CriticalKVPress(knorm), "asks the model for `o_proj`"),
                             (kvpress.KeyRerotationPress(knorm), "asks the model for `inv_freq`"),
                             (kvpress.BlockPress(expected, block_size=16), "mixes hidden states of several tokens"),
                             (kvpress.PyramidKVPress(window_size=4), "a budget of 30 tokens allows 60")):
            row = kvbench.replay(trace, kvbench.from_kvpress(press), BUDGET, rows="trace")[0]
            self.assertIn(row["status"], ("skipped", "infeasible"))
            self.assertIn(words, row["reason"])
        for press, words in ((kvpress.ComposedPress([knorm]), "holds presses"),
                             (kvpress.ThinKPress(), "takes no budget")):
            with self.refuses(words):
                kvbench.from_kvpress(press)

    def assert_kept(self, expected, count=BUDGET):
        """The raw results of a replay hold these tokens of each layer and kv head, as many as the budget."""
        with kvbench.Raw(self.path("r.h5")) as raw:
            for (layer, head), tokens in expected.items():
                tables, _ = raw.head("0", layer, head).entries()
                ids = np.concatenate([table.ids.ravel() for table in tables])
                self.assertEqual(sorted(ids[ids < CONTEXT].tolist()), tokens)
                self.assertEqual(len(tokens), count or len(tokens))

    def test_built_in_methods_keep_the_tokens_of_their_presses(self):
        trace = self.recorded("--queries", "all")
        for method, press in BUILT_IN:
            with self.subTest(method):
                rows = self.replay(trace, "-m", method, "--budget", BUDGET, "--rows", "trace", "--raw",
                                   self.path("r.h5"), "--raw-outputs")
                self.assertEqual(rows[0]["status"], "ok", rows[0]["reason"])
                self.assert_kept(self.kept_in_the_model(press))

    def kept_by_heads_that_compete(self, press):
        """The tokens of each layer and kv head that the model attends to: the others are masked."""
        press.compression_ratio = 1 - (BUDGET + 0.5) / CONTEXT
        self.model.set_attn_implementation("sdpa")
        with press(self.model):
            self.model(torch.tensor([token_ids()[:CONTEXT]]), use_cache=True)
        kept = {}
        for number, layer in enumerate(self.model.model.layers):
            _, heads, tokens = layer.self_attn.masked_key_indices
            layer.self_attn.masked_key_indices = None
            for head in range(2):
                kept[number, head] = sorted(set(range(CONTEXT)) - set(tokens[heads == head].tolist()))
        self.model.set_attn_implementation("eager")
        return kept

    def test_adakv_is_the_built_in_one(self):
        trace = self.recorded("--queries", "all")
        for window, alpha in ((16, 0.0), (16, 0.2), (20, 0.8)):
            press = kvpress.AdaKVPress(kvpress.SnapKVPress(window_size=window), alpha_safeguard=alpha)
            kvbench.replay(trace, f"adakv@kvpress(snapkv@kvpress)[window={window},alpha={alpha}]", BUDGET, rows="trace",
                           raw=self.path("r.h5"), raw_outputs=True)
            with self.subTest(repr(press)), kvbench.Raw(self.path("r.h5")) as raw:
                for (layer, head), tokens in self.kept_by_heads_that_compete(press).items():
                    tables, _ = raw.head("0", layer, head).entries()
                    ids = np.concatenate([table.ids.ravel() for table in tables])
                    self.assertEqual(sorted(ids[ids < CONTEXT].tolist()), tokens)

    def test_kvpress_runs_a_plan_for_it(self):
        """What `kvbench allocate --for kvpress` prints, run as it stands, keeps what the plan keeps in a replay."""
        texts = [[(i * step + 3) % 95 + 1 for i in range(N)] for step in (37, 41, 43)]
        paths = [self.path(f"{number}.ids") for number in range(3)]
        for path, ids in zip(paths, texts, strict=True):
            pathlib.Path(path).write_text(" ".join(map(str, ids)))
        model = copy.deepcopy(self.model)
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight *= 1e-3  # so that errors are a small part of the stream, as in trained models
        model.save_pretrained(self.path("model"))
        self.dumped("--model", self.path("model"), "--ids", *paths, "--prompt-tokens", CONTEXT, "--dtype", "f32",
                    "--queries", "all", "--probes", 4, "-o", self.path("t.h5"), "--quiet")
        told = run("allocate", self.path("t.h5"), "--for", "kvpress", "--menu", "knorm,keydiff,snapkv@kvpress", "-b",
                   "50%mem", "-o", self.path("plan.toml"), "-q")
        lines = [line.strip() for line in told.partition("In kvpress (0.5.5):\n")[2].splitlines()
                 if line.startswith("    ")]
        made = {}
        exec("\n".join(lines[:2]), made)  # as a user would type them
        self.assertEqual(len(made["press"].compression_ratios), 2)
        self.replay(self.path("t.h5"), "-m", f"plan:{self.path('plan.toml')}", "-b", "50%mem", "--raw",
                    self.path("r.h5"), "--raw-outputs")
        ids, kept = torch.tensor([texts[0][:CONTEXT]]), {}
        full = model(ids, use_cache=True).past_key_values
        model.set_attn_implementation("sdpa")
        with made["press"](model):
            left = model(ids, use_cache=True).past_key_values
        for layer, head in itertools.product(range(2), range(2)):
            distance = torch.cdist(left.layers[layer].keys[0, head], full.layers[layer].keys[0, head])
            kept[layer, head] = sorted(distance.argmin(1).tolist())
        self.assertLess(sum(map(len, kept.values())), 4 * CONTEXT)
        self.assert_kept(kept, None)

    def test_lukv_reads_budgets_by_head(self):
        trace = self.recorded("--queries", "all")
        knorm = kvbench.replay(trace, "knorm", 9, rows="head")
        shares = {(0, 0): 14.5, (0, 1): 73, (1, 0): 39.5, (1, 1): 17}
        lines = [f'{{ layer = {layer}, kv_head = {head}, method = "knorm", budget = "{share}%mem" }}'
                 for (layer, head), share in shares.items()]
        pathlib.Path(self.path("heads.toml")).write_text(
            f'model = "{knorm[0]["model"]}"\nmodel_layers = 2\ntraces = ["0"]\n[[plans]]\nbudget = "36%mem"\n'
            "confirmed = true\nlayers = [\n" + ",\n".join(lines) + "]\n")
        rows = kvbench.replay(trace, f"plan:{self.path('heads.toml')}", "36%mem", rows="head", protocol="prefill",
                              raw=self.path("r.h5"), raw_outputs=True)
        press = kvpress.LUKVPress(kvpress.KnormPress(), sink=0, window=0)
        press._budget_curves = curve = kvbench.lukv_curve(rows)
        self.assertEqual(curve.shape, (99, 2, 2))
        self.assertAlmostEqual(curve[7, 1, 0], 1 - 33 / CONTEXT)
        found = self.kept_by_heads_that_compete(press)
        self.assertEqual([len(tokens) for tokens in found.values()], [12, 61, 33, 14])  # of 84
        self.assert_kept(found, None)
        for words, wrong in (("lack layers", [row for row in rows if str(row["layer"]) != "1"]),
                             ("these have 2", [*rows, *knorm]),
                             ("these have 0", rows[:1])):
            with self.refuses(words):
                kvbench.lukv_curve(wrong)

    def test_duo_attention_streams_the_heads_of_the_press(self):
        ids = [i * 53 % 95 + 1 for i in range(N)]
        trace, text = self.recorded("--queries", "all"), self.recorded("--queries", "all", ids=ids, trace="text.h5")
        texts = unittest.mock.Mock(**{"to_pandas.return_value": pandas.DataFrame({"chapter": 50 * [ids]})})
        tokens = transformers.BatchEncoding({"input_ids": torch.tensor([ids])})
        for whole in range(5):
            press = kvpress.DuoAttentionPress(head_compression_ratio=1 - whole / 4, on_the_fly_scoring=True)
            with unittest.mock.patch.multiple(duo_attention_press, load_dataset=lambda *_, **__: texts,
                                              AutoTokenizer=unittest.mock.Mock()):
                duo_attention_press.AutoTokenizer.from_pretrained.return_value = lambda *_, **__: tokens
                press.post_init_from_model(self.model)
            budget = -(-(whole * CONTEXT + (4 - whole) * 5) // 4)
            self.replay(trace, "-m", "duo@kvpress[sinks=2,recent=3]", "-b", budget, "--calibrate", text, "--raw",
                        self.path("r.h5"), "--raw-outputs")
            with self.subTest(whole=whole), kvbench.Raw(self.path("r.h5")) as raw:
                for layer, head in itertools.product(range(2), range(2)):
                    kept = np.ones(CONTEXT, bool)
                    if press.streaming_mask[layer, head]:
                        kept[2:-3] = False
                    tables, _ = raw.head("0", layer, head).entries()
                    found = np.concatenate([table.ids.ravel() for table in tables])
                    self.assertEqual(sorted(found[found < CONTEXT].tolist()), np.flatnonzero(kept).tolist())

    def test_snapkv_is_the_built_in_one(self):
        trace = self.recorded("--queries", "all")
        own = kvbench.from_kvpress(kvpress.SnapKVPress(window_size=16))
        rows = kvbench.replay(trace, [own, "snapkv@kvpress[window=16]"], ["30%mem", 40], rows="head")
        errors = {name: [row["rel_err_mean"] for row in rows if row["method"] == name]
                  for name in ("py:SnapKVPress", "snapkv@kvpress")}
        self.assertEqual(*errors.values())
        self.assertGreater(len(errors["snapkv@kvpress"]), 8)
        self.assertEqual(rows[0]["params"], "window_size=16")

    def test_what_a_trace_lacks(self):
        trace = self.recorded("--queries", "last:40")

        class Hidden(kvpress.KnormPress):
            def score(self, module, hidden_states, keys, values, attentions, kwargs):
                return hidden_states.sum(-1)

        class Changes(kvpress.KnormPress):
            def compress(self, module, hidden_states, keys, values, attentions, kwargs):
                keys, values = super().compress(module, hidden_states, keys, values, attentions, kwargs)
                return 2 * keys, values
        for press, status, words in ((kvpress.SnapKVPress(window_size=16), "ok", ""),
                                     (kvpress.ExpectedAttentionPress(), "skipped", "has them (--queries all)"),
                                     (Hidden(), "skipped", "hidden states"),
                                     (Changes(), "failed", "changes keys or values")):
            row = kvbench.replay(trace, kvbench.from_kvpress(press), BUDGET, rows="trace")[0]
            self.assertEqual(row["status"], status, row["reason"])
            self.assertIn(words, row["reason"] or "")
        with self.refuses("is no press"):
            kvbench.from_kvpress("snapkv")

    def test_inside_the_model(self):
        press = kvpress.KnormPress()
        ids = torch.tensor([token_ids()])
        with kvbench.compressed(self.model, kvbench.from_kvpress(press), BUDGET, context=CONTEXT) as run:
            self.model(ids)
        self.assertEqual(run.bytes["kv"], 2 * 2 * (BUDGET + N - CONTEXT) * 32 * 2)
