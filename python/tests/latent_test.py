# SPDX-License-Identifier: Apache-2.0
"""Traces of latent attention (MLA), whose values are a part of their keys: every method gives what it gives on the same
arrays with values of their own, and counts a row once, or is skipped with a stated reason. Some are done in numpy."""
from support import PackageTest, kvbench, run
import h5py
import numpy as np

D, R, TOKENS, CONTEXT, BUDGET = 96, 64, 256, 192, 48  # d, dv
ROW = 2 * D  # bytes of a token
BLOCK = {"q8_0": 34, "q6_0": 26, "q5_1": 24, "q5_0": 22, "q4_1": 20, "q4_0": 18, "iq4_nl": 18}  # bytes of 32 channels
ROUNDED = {"int": D + D / 32 * 4, "int8": D + D / 32 * 4, "int4": D / 2 + D / 32 * 4, "int2": D / 4 + D / 32 * 4,
           "fp8": D, "nvfp4": D / 16 * 9, **{name: D / 32 * size for name, size in BLOCK.items()}}
REFUSED = {
    "values that are no part of their keys": ["cam", "wildcat", "attention-matching", "cam+int8"],
    "a group of 48 channels of int8 would hold channels behind them": ["int8[group=48]"],
    "rounds keys and values by rules of their own, or a whole key by one scale":
        [*"kivi4 kivi2 kvquant-nofisher turboquant turboquant[qjl=true] turboquant@vllm qjl snapkv+kivi4 h2o+kivi4 "
          "quest+kivi2 fp8[scale=token-head] q8_0[values=q4_0] q8_0[form=kv] int8[group=0] "
          "int[bits=8,value_bits=4]".split(),
         *(f"{name}[hadamard=true]" for name in BLOCK)]}
MORE = ("quest+int8 quest+q8_0 clusterkv+fp8 cam+int8 quest+kivi2 q8_0[values=q4_0] q8_0[form=kv] int8[group=0] "
        "int8[group=48] int[bits=8,value_bits=4] subgen[delta=1e-6]").split()


def int8(rows):
    blocks = rows.reshape(len(rows), -1, 32)
    least, most = blocks.min(-1, keepdims=True), blocks.max(-1, keepdims=True)
    least, step = np.float16(least).astype(float), np.float16((most - least) / 255).astype(float)
    return (least + step * np.clip(np.rint((blocks - least) / step), 0, 255)).reshape(rows.shape)


def q8_0(rows):
    blocks = rows.reshape(len(rows), -1, 32)
    step = np.abs(blocks).max(-1, keepdims=True) / 127
    return (np.float16(step).astype(float) * np.rint(blocks / step)).reshape(rows.shape)


def attention(queries, keys, seen):
    """Softmax weights [heads, m, n] over the tokens that are `seen` [m, n]."""
    weights = np.exp(np.where(seen, D**-0.5 * queries @ keys.T, -np.inf))
    return weights / weights.sum(-1, keepdims=True)


class Latent(PackageTest):
    def latent(self, *flags, d=D, r=R, tokens=TOKENS, context=CONTEXT):
        run("synth", "-o", self.path("latent.h5"), "--latent", "--tokens", tokens, "--prompt-tokens", context,
            "--queries", tokens, "--layers", 1, "--kv-heads", 1, "--head-dim", d, "--value-dim", r, "--pattern",
            "clusters", *flags)
        return self.path("latent.h5")

    def rewritten(self, name, latent=False, **changes):
        """A copy of the trace, with values of their own unless `latent`."""
        def fields(info, kind, **changes):
            return kind(**{field: getattr(info, field) for field in kind.__dataclass_fields__} | changes)
        with kvbench.Trace(self.path("latent.h5")) as trace:
            prompt, = trace.prompts.values()
            layer, values = prompt.layers[0], {} if latent else {"values": prompt.layers[0].values()}
            with kvbench.TraceWriter(self.path(name), fields(trace, kvbench.Header, **changes)) as out:
                out.prompt("0", prompt)
                out.layer("0", 0, fields(layer, kvbench.LayerInfo, values_in_keys=latent), **values,
                          **{name: layer.array(name) for name in layer.arrays})
        return self.path(name)

    def rows_of(self, trace, protocol, methods, budget, *flags):
        """Rows by method with its parameters, as they are written in a command."""
        found = {}
        for row in self.replay(trace, "--protocol", protocol, *(part for name in methods for part in ("-m", name)),
                               "-b", budget, "--seeds", 1, *flags):
            params = row["params"] if isinstance(row["params"], str) else ""
            found[row["method"] + (f"[{params.replace(';', ',')}]" if params else "")] = row
        return found

    def test_readers_take_values_from_the_keys(self):
        trace = self.latent("--dtype", "bf16", "--compress")
        with h5py.File(trace) as file:
            self.assertNotIn("values", file["prompts/0/layers/0"])
        with kvbench.Trace(trace) as read:
            layer = read.prompts["0"].layers[0]
            np.testing.assert_array_equal(layer.values(), layer.keys()[..., :R])
            np.testing.assert_array_equal(layer.values(0), layer.keys(0)[:, :R])
        self.assertIn("the values are the first 64 channels of the keys (MLA): a token takes 96 numbers",
                      run("info", trace))
        rows = [self.rows_of(path, "decode", ["snapkv"], 32) for path in (trace, self.rewritten("t.h5", latent=True))]
        self.assertEqual(*(row["snapkv"]["rel_err_mean"] for row in rows))

    def test_what_the_schema_refuses(self):
        self.latent()
        for words, change in (("rope_type 'default'", {"rope_type": "default"}), ("head_dim", {"value_dim": 97})):
            with self.refuses(words):
                self.rewritten("no.h5", latent=True, **change)
        for at, name, value, words in (("prompts/0/layers/0", "values_in_keys", 2, "0 or 1"),
                                       ("prompts/0/layers/0", "values_in_keys", 0, "values"),
                                       ("/", "value_dim", 97, "more than head_dim")):
            with h5py.File(self.latent(), "r+") as file:
                file[at].attrs.modify(name, value)
            with self.refuses(words):
                kvbench.Trace(self.path("latent.h5"))
            with self.assertRaisesRegex(AssertionError, words):
                run("info", self.path("latent.h5"))

    def test_every_method_is_right_or_refused(self):
        trace = self.latent("--speculated", 0.1, "--probes", 2)
        self.rewritten("plain.h5")
        for protocol, held in (("prefill", CONTEXT), ("decode", TOKENS)):
            # Quantisers keep all tokens and have no budget in tokens.
            (ours, plain), whole = ([self.rows_of(path, protocol, ["all", *MORE], budget)
                                     for path in (trace, self.path("plain.h5"))] for budget in (BUDGET, "100%mem"))
            refused, no_rope = set(), set()
            for name in ours:
                pair = ours[name], plain[name]
                if plain[name]["status"] == "infeasible" and whole[1][name]["status"] == "ok":
                    pair = whole[0][name], whole[1][name]
                row, other = pair
                with self.subTest(name, protocol=protocol):
                    if row["status"] == "skipped" and "(MLA)" in row["reason"]:
                        refused.add(name)
                        self.assertIn(next(why for why, names in REFUSED.items() if name in names), row["reason"])
                        continue
                    self.assertEqual(row["status"], other["status"], row["reason"])
                    if row["status"] == "ok":
                        self.compare(name, row, other, held)
                    else:
                        no_rope.add(name.split("[")[0])
            self.assertEqual(refused, set(sum(REFUSED.values(), [])))
            self.assertEqual(no_rope, {"expected-attention", "triattention", "compactor"})

    def compare(self, name, row, other, held):
        base, small = name.split("[")[0], D / (D + R)
        self.assertEqual(row["full_bytes"], held * ROW)
        if base in ROUNDED:
            self.assertAlmostEqual(row["kv_bytes"], held * ROUNDED[base], delta=8)  # scales of a tensor
        elif "+" in name:
            self.assertLess(row["kv_bytes"], 0.7 * other["kv_bytes"])
        elif base in ("subgen", "balancekv"):  # a budget in numbers holds other sets
            return self.assertLessEqual(row["kv_bytes"], max(BUDGET * ROW, other["kv_bytes"]))
        else:
            self.assertAlmostEqual(row["kv_bytes"], small * other["kv_bytes"], places=6)
            self.assertAlmostEqual(row["slow_bytes"], small * other["slow_bytes"], places=6)
        if "scale=" in name or base == "nvfp4" or "fp8" in name:  # a scale of all keys, and one of all values
            return self.assertLess(row["rel_err_mean"], 2 * other["rel_err_mean"])
        for figure in ("rel_err_mean", "residual_err_mean", "kept_tokens"):
            self.assertAlmostEqual(row[figure], other[figure], delta=2e-5 * abs(other[figure]) + 1e-6, msg=figure)

    def test_some_methods_in_numpy(self):
        with kvbench.Trace(self.latent()) as trace:
            layer = trace.prompts["0"].layers[0]
            keys, queries = layer.keys(0).astype(float), layer.queries().astype(float)
        ids, half = np.arange(TOKENS), BUDGET // 2
        causal = ids <= ids[:, None]
        weights = attention(queries, keys, causal)[:, :CONTEXT, :CONTEXT].mean(0)
        votes, sums = weights[-8:, :-8].sum(0), weights[:, :-half].sum(0)
        everything, last = ids[:CONTEXT], ids[:CONTEXT][-half:]
        for name, budget, kept, rounded, size in (
                ("exact", CONTEXT, everything, None, CONTEXT * ROW),
                ("sink", BUDGET, np.r_[:4, CONTEXT - BUDGET + 4:CONTEXT], None, BUDGET * ROW),
                ("snapkv[window=8,pooling=none]", BUDGET, np.r_[np.argsort(-votes)[:BUDGET - 8], last[-8:]], None,
                 BUDGET * ROW),
                ("h2o", BUDGET, np.r_[np.argsort(-sums)[:half], last], None, BUDGET * ROW),
                ("int8", "100%mem", everything, int8, CONTEXT * ROUNDED["int8"]),
                ("q8_0", "100%mem", everything, q8_0, CONTEXT * ROUNDED["q8_0"])):
            with self.subTest(name):
                row, = self.rows_of(self.path("latent.h5"), "prefill", [name], budget).values()
                self.assertEqual(row["kv_bytes"], size)
                held, seen = keys.copy(), causal & (np.isin(ids, kept) | (ids >= CONTEXT))
                held[:CONTEXT] = rounded(keys[:CONTEXT]) if rounded else keys[:CONTEXT]
                z, made = (attention(queries[:, CONTEXT:], k, see[CONTEXT:]) @ k[:, :R]
                           for k, see in ((keys, causal), (held, seen)))
                error = np.mean(np.linalg.norm(made - z, axis=-1) / np.linalg.norm(z, axis=-1))
                self.assertAlmostEqual(row["rel_err_mean"], error, delta=1e-3 * error + 2e-6)

    def test_the_sizes_of_deepseek(self):
        """576 channels, of which 512 are values, on every back end of this machine."""
        trace = self.latent(d=576, r=512, tokens=64, context=48)
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            back_ends = [("--device", "ref"), ("--isa", "scalar")] + [("--isa", "avx2")] * (" avx2" in file.read())
        methods = ("exact", "snapkv[window=4]", "kmeans", "quest[page=4]")
        found = [self.rows_of(trace, "prefill", methods, 16, *flags) for flags in back_ends]
        for rows in found:
            for name, row in rows.items():
                self.assertEqual(row["full_bytes"], 48 * 576 * 2)
                self.assertAlmostEqual(row["rel_err_mean"], found[0][name]["rel_err_mean"], delta=1e-4)
