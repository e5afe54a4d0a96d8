# SPDX-License-Identifier: Apache-2.0
"""Traces of latent attention (MLA), whose values are a part of their keys: every method gives what it gives on the same
arrays with values of their own, and counts a row once, or is skipped with a stated reason. Some are computed in
numpy."""
from support import PackageTest, kvbench, main, run
import h5py
import numpy as np

D, R, HEADS, TOKENS, CONTEXT, BUDGET = 96, 64, 4, 256, 192, 48  # d, dv; prefill: the context is compressed
ROW = 2 * D  # bytes of a token
APART = "values that are no part of their keys"
OWN_RULES = "rounds keys and values by rules of their own, or a whole key by one scale"
# What is skipped, but for methods that need what the trace lacks in either form.
REFUSED = {APART: ("cam", "attention-matching", "cam+int8"),
           "a group of 48 channels of int8 would hold channels behind them": ("int8[group=48]",),
           OWN_RULES: ("kivi4", "kivi2", "kvquant-nofisher", "turboquant", "turboquant@vllm", "qjl", "snapkv+kivi4",
                       "h2o+kivi4", "quest+kivi2", "q8_0[hadamard=true]", "q5_1[hadamard=true]", "q5_0[hadamard=true]",
                       "q4_1[hadamard=true]", "q4_0[hadamard=true]", "fp8[scale=token-head]", "turboquant[qjl=true]",
                       "q8_0[values=q4_0]", "int[bits=8,value_bits=4]", "int8[group=0]")}
MORE = ("quest+int8", "quest+q8_0", "clusterkv+fp8", "cam+int8", "quest+kivi2", "q8_0[values=q4_0]", "int8[group=0]",
        "int[bits=8,value_bits=4]", "int8[group=48]", "subgen[delta=1e-6]")
# Bytes of a row of quantisers: codes, and scales by block.
ROUNDED = {"int": D + D / 32 * 4, "int8": D + D / 32 * 4, "int4": D / 2 + D / 32 * 4, "int2": D / 4 + D / 32 * 4,
           "q8_0": D / 32 * 34, "q5_1": D / 32 * 24, "q5_0": D / 32 * 22, "q4_1": D / 32 * 20, "q4_0": D / 32 * 18,
           "fp8": D, "nvfp4": D / 16 * 9}


def softmax(logits):
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def f16(x):
    return np.float32(np.float16(x))


def int8(rows):
    blocks = rows.reshape(len(rows), -1, 32)
    least = f16(blocks.min(-1, keepdims=True))
    step = f16((blocks.max(-1, keepdims=True) - blocks.min(-1, keepdims=True)) / 255)
    return (least + step * np.clip(np.rint((blocks - least) / step), 0, 255)).reshape(rows.shape)


def q8_0(rows):
    blocks = rows.reshape(len(rows), -1, 32)
    step = np.abs(blocks).max(-1, keepdims=True) / 127
    return (f16(step) * np.rint(blocks / step)).reshape(rows.shape)


class Latent(PackageTest):
    def latent(self, *flags, d=D, r=R, tokens=TOKENS, context=CONTEXT):
        run("synth", "-o", self.path("latent.h5"), "--latent", "--tokens", tokens, "--prompt-tokens", context,
            "--queries", tokens, "--layers", 1, "--query-heads", HEADS, "--kv-heads", 1, "--head-dim", d, "--value-dim",
            r, "--pattern", "clusters", *flags)
        return self.path("latent.h5")

    def rewritten(self, name, **changes):
        """The trace with values of their own, and with other fields of its header."""
        with kvbench.Trace(self.path("latent.h5")) as trace:
            header = kvbench.Header(**{field: changes.get(field, getattr(trace, field))
                                       for field in kvbench.Header.__dataclass_fields__})
            with kvbench.TraceWriter(self.path(name), header) as out:
                for prompt in trace.prompts.values():
                    out.prompt(prompt.id, prompt)
                    for index, layer in prompt.layers.items():
                        arrays = {name: layer.array(name) for name in layer.arrays}
                        fields = {field: getattr(layer, field) for field in kvbench.LayerInfo.__dataclass_fields__}
                        fields["values_in_keys"] = changes.get("values_in_keys", False)
                        arrays |= {} if fields["values_in_keys"] else {"values": layer.values()}
                        out.layer(prompt.id, index, kvbench.LayerInfo(**fields), **arrays)
        return self.path(name)

    def test_readers_take_values_from_the_keys(self):
        for dtype in ("f32", "bf16"):
            trace = self.latent("--dtype", dtype, "--compress")
            with h5py.File(trace) as file:
                self.assertNotIn("values", file["prompts/0/layers/0"])
                self.assertEqual(file["prompts/0/layers/0"].attrs["values_in_keys"], 1)
            with kvbench.Trace(trace) as read:
                layer = read.prompts["0"].layers[0]
                self.assertNotIn("values", layer.arrays)
                np.testing.assert_array_equal(layer.values(), layer.keys()[..., :R])
                np.testing.assert_array_equal(layer.values(0), layer.keys(0)[:, :R])
            self.assertIn("the values are the first 64 channels of the keys (MLA): a token takes 96 numbers",
                          run("info", trace))
        self.rewritten("again.h5", values_in_keys=True)
        rows = [self.replay(self.path(name), "-m", "exact,snapkv", "-b", "32") for name in ("latent.h5", "again.h5")]
        for mine, other in zip(*rows):
            self.assertEqual(mine["rel_err_mean"], other["rel_err_mean"])

    def test_what_the_schema_refuses(self):
        self.latent()
        with self.refuses("rope_type 'default'", "partial"):
            self.rewritten("no.h5", values_in_keys=True, rope_type="default")
        with self.refuses("value_dim = 97 is more than head_dim = 96"):
            self.rewritten("no.h5", values_in_keys=True, value_dim=97)
        with kvbench.Trace(self.path("latent.h5")) as trace, self.refuses("leave them out"):
            layer = trace.prompts["0"].layers[0]
            with kvbench.TraceWriter(self.path("no.h5"), trace) as out:
                out.prompt("0", trace.prompts["0"])
                out.layer("0", 0, layer, values=layer.values(), **{name: layer.array(name) for name in layer.arrays})
        for change, words in ((lambda file: file["prompts/0/layers/0"].attrs.modify("values_in_keys", 2), "0 or 1"),
                              (lambda file: file.attrs.modify("value_dim", 97), "more than head_dim"),
                              (lambda file: file["prompts/0/layers/0"].attrs.modify("values_in_keys", 0), "values")):
            self.latent()
            with h5py.File(self.path("latent.h5"), "r+") as file:
                change(file)
            with self.refuses(words):
                kvbench.Trace(self.path("latent.h5"))
            with self.assertRaisesRegex(AssertionError, words):
                run("info", self.path("latent.h5"))

    def rows_of(self, trace, *flags):
        """Rows by method with its parameters, as they are written in a command."""
        found = {}
        for row in self.replay(trace, "--seeds", 1, *flags):
            params = row["params"] if isinstance(row["params"], str) else ""
            found[row["method"] + (f"[{params.replace(';', ',')}]" if params else "")] = row
        return found

    def test_every_method_is_right_or_refused(self):
        for protocol, held in (("prefill", CONTEXT), ("decode", TOKENS)):
            self.check_all(protocol, held)

    def check_all(self, protocol, held):
        """held: tokens of the exact cache at the end."""
        trace = self.latent("--speculated", 0.1, "--probes", 2)
        methods = ["--protocol", protocol, "-m", "all"] + [part for name in MORE for part in ("-m", name)]
        flags = (*methods, "-b", BUDGET)
        ours, plain = self.rows_of(trace, *flags), self.rows_of(self.rewritten("plain.h5"), *flags)
        self.assertEqual(list(ours), list(plain))
        # Quantisers keep all tokens and have no budget in tokens.
        flags = (*methods, "-b", "100%mem")
        whole = (self.rows_of(trace, *flags), self.rows_of(self.path("plain.h5"), *flags))
        compared, refused = set(), set()
        for name, row in ours.items():
            other = plain[name]
            if other["status"] == "infeasible" and whole[1][name]["status"] == "ok":
                row, other = whole[0][name], whole[1][name]
            with self.subTest(name, protocol=protocol):
                if row["status"] == "skipped" and "(MLA)" in row["reason"]:
                    refused.add(name)
                    self.assertIn(next(why for why, names in REFUSED.items() if name in names), row["reason"])
                    continue
                self.assertEqual(row["status"], other["status"], row["reason"])
                if row["status"] == "ok":
                    compared.add(name)
                    self.compare(name, row, other, held)
        self.assertEqual(refused, {name for names in REFUSED.values() for name in names})
        self.assertEqual(set(ours) - compared - refused,
                         {"expected-attention", "triattention", "compactor", "compactor[form=vllm]"})  # no RoPE

    def compare(self, name, row, other, held):
        base = name.split("[")[0]
        self.assertEqual(row["full_bytes"], held * ROW)
        if base in ROUNDED:
            self.assertAlmostEqual(row["kv_bytes"], held * ROUNDED[base], delta=8)  # scales of a tensor
        elif "+" in name:
            self.assertLess(row["kv_bytes"], 0.7 * other["kv_bytes"])
        elif base in ("subgen", "balancekv"):  # a budget in numbers holds other sets
            self.assertLessEqual(row["kv_bytes"], max(BUDGET * ROW, other["kv_bytes"]))
            return
        else:
            self.assertAlmostEqual(row["kv_bytes"] / other["kv_bytes"], D / (D + R), places=9)
            self.assertAlmostEqual(row["slow_bytes"], other["slow_bytes"] * D / (D + R), places=6)
        if "scale=" in name or base == "nvfp4" or "fp8" in name:  # a scale of all keys, and one of all values
            self.assertLess(row["rel_err_mean"], 2 * other["rel_err_mean"])
            return
        for figure in ("rel_err_mean", "residual_err_mean", "kept_tokens"):
            self.assertAlmostEqual(row[figure], other[figure], delta=2e-5 * abs(other[figure]) + 1e-6, msg=figure)

    def expected(self, kept=None, rounded=None):
        """Mean relative error of the latent outputs of the queries behind the context. kept: tokens of the context."""
        with kvbench.Trace(self.path("latent.h5")) as trace:
            layer = trace.prompts["0"].layers[0]
            keys, queries = layer.keys(0).astype(np.float64), layer.queries().astype(np.float64)[:, CONTEXT:]
            held = keys.copy()
            if rounded is not None:
                held[:CONTEXT] = rounded(layer.keys(0)[:CONTEXT])
            scale = layer.scale
        ids = np.arange(TOKENS)
        errors = []
        for q in range(TOKENS - CONTEXT):
            seen = ids[:CONTEXT + q + 1]
            used = seen if kept is None else np.concatenate([kept, seen[CONTEXT:]])
            for query in queries[:, q]:
                exact = softmax(scale * keys[seen] @ query) @ keys[seen, :R]
                made = softmax(scale * held[used] @ query) @ held[used, :R]
                errors.append(np.linalg.norm(made - exact) / np.linalg.norm(exact))
        return np.mean(errors)

    def votes(self, window):
        """Attention of the last `window` queries of the context to the tokens before them, mean over heads."""
        with kvbench.Trace(self.path("latent.h5")) as trace:
            layer = trace.prompts["0"].layers[0]
            keys, queries, scale = layer.keys(0)[:CONTEXT], layer.queries()[:, CONTEXT - window:CONTEXT], layer.scale
        logits = scale * np.einsum("hqd,nd->hqn", queries, keys, dtype=np.float64)
        logits[:, np.arange(CONTEXT)[None] > np.arange(CONTEXT - window, CONTEXT)[:, None]] = -np.inf
        return softmax(logits).sum(1).mean(0)[:CONTEXT - window]

    def test_some_methods_in_numpy(self):
        trace, ids = self.latent(), np.arange(CONTEXT)
        with kvbench.Trace(trace) as read:
            sums = read.prompts["0"].layers[0].array("column_sums").mean(0)[:CONTEXT]
        half = BUDGET // 2
        snapkv = "snapkv[window=8,pooling=none]"
        cases = {
            "exact": (None, None, CONTEXT * ROW),
            "sink": (np.r_[ids[:4], ids[-(BUDGET - 4):]], None, BUDGET * ROW),
            snapkv: (np.r_[np.argsort(-self.votes(8))[:BUDGET - 8], ids[-8:]], None, BUDGET * ROW),
            "h2o": (np.r_[np.argsort(-sums[:CONTEXT - half])[:half], ids[-half:]], None, BUDGET * ROW),
            "int8": (None, int8, CONTEXT * ROUNDED["int8"]), "q8_0": (None, q8_0, CONTEXT * ROUNDED["q8_0"])}
        for name, (kept, rounded, bytes_) in cases.items():
            with self.subTest(name):
                budget = "100%mem" if rounded else CONTEXT if name == "exact" else BUDGET
                row, = self.rows_of(trace, "--protocol", "prefill", "-m", name, "-b", budget).values()
                self.assertEqual(row["kv_bytes"], bytes_)
                error = self.expected(kept, rounded)
                self.assertAlmostEqual(row["rel_err_mean"], error, delta=1e-3 * error + 2e-6)

    def test_the_sizes_of_deepseek(self):
        """576 channels, of which 512 are values, on every back end of this machine."""
        trace = self.latent(d=576, r=512, tokens=64, context=48)
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            back_ends = [("--device", "ref"), ("--isa", "scalar")] + [("--isa", "avx2")] * (" avx2" in file.read())
        methods = "exact,snapkv[window=4],kmeans,quest[page=4]"
        found = [self.rows_of(trace, "--protocol", "prefill", "-m", methods, "-b", 16, *flags) for flags in back_ends]
        for rows in found:
            for name, row in rows.items():
                self.assertEqual(row["full_bytes"], 48 * 576 * 2)
                self.assertAlmostEqual(row["rel_err_mean"], found[0][name]["rel_err_mean"], delta=1e-4)


if __name__ == "__main__":
    main()
