# SPDX-License-Identifier: Apache-2.0
"""kvbench info --rounding: the sentence, the table and the CSV."""
import json
import math

from support import CliTest, SAMPLE, rows


class Rounding(CliTest):
    @classmethod
    def wide(cls, name, *flags):
        """A trace whose heads have 64 channels, so that every format takes them."""
        cls.ok("synth", "-o", cls.path(name), "--tokens", 256, "--prompt-tokens", 192, "--queries", 64, "--layers", 3,
               "--query-heads", 4, "--kv-heads", 2, "--column-sums", "false", *flags)
        return cls.path(name)

    def said(self, trace, *flags):
        return self.ok("info", trace, "--rounding", *flags)

    def table(self, trace):
        return rows(self.said(trace, "--format", "csv"))

    def test_a_key_bias_comes_first_with_its_cause(self):
        text = " ".join(self.said(self.wide("bias.h5", "--key-bias", "200")).split())
        self.assertTrue(text.startswith("Layer 0 "), text)
        for words in ("q5_1 moves ", "constant part", "channel 63 (mean 200)", "by channel", "in 1 of 3 layers: 0"):
            self.assertIn(words, text)
        negative = " ".join(self.said(self.wide("negative.h5", "--key-bias", "-200")).split())
        self.assertIn("channel 63 (mean -200)", negative)

    def test_keys_without_a_bias_are_no_warning(self):
        for flags in ((), ("--dtype", "f16"), ("--dtype", "bf16"), ("--pattern", "sinks"), ("--prompts", "3")):
            with self.subTest(flags=flags):
                text = self.said(self.wide("plain.h5", *flags))
                self.assertTrue(text.startswith("No layer breaks under keys rounded by token"), text)
                self.assertLessEqual(len(text.splitlines()), 12)

    def test_the_csv_has_every_head_and_format(self):
        table = self.table(self.wide("t2.h5", "--key-bias", "200", "--prompts", "2"))
        self.assertEqual(len(table), 2 * 3 * 2 * 9)
        by = {(r["prompt"], r["layer"], r["kv_head"], r["family"], r["format"]): r for r in table}
        self.assertEqual(len(by), len(table))
        for row in table:
            self.assertTrue(0 <= float(row["moved"]) <= 1, row)
            self.assertEqual(int(row["queries"]), 2 * 64)
            self.assertEqual(float(row["constant"]) > 10, row["layer"] == "0")
        for place in (("0", "0", "0"), ("1", "0", "1")):
            coarse, channel = by[(*place, "by token", "q4_0")], by[(*place, "by channel", "kivi4[residual=32]")]
            self.assertEqual(coarse["outliers"], "63")
            self.assertGreater(float(coarse["moved"]), 0.2)
            self.assertLess(float(channel["moved"]), 0.1)
            self.assertLess(float(by[(*place, "by token, centred", "q4_0")]["moved"]), 0.1)
        bits = {row["format"]: row["bits"] for row in table}
        self.assertEqual(bits, {"q8_0": "8.5", "q5_1": "6", "q4_0": "4.5", "q8_0[hadamard=true]": "8.5",
                                "q5_1[hadamard=true]": "6", "q4_0[hadamard=true]": "4.5", "kivi4[residual=32]": "5",
                                "kivi2[residual=32]": "3"})
        out = self.path("out.json")
        self.said(self.path("t2.h5"), "-o", out)
        with open(out) as file:
            written = json.load(file)
        for row, other in zip(written, table, strict=True):
            self.assertTrue(math.isclose(row["moved"], float(other["moved"])))

    def test_equal_on_any_number_of_threads(self):
        trace = self.wide("threads.h5", "--key-bias", "50")
        self.assertEqual(self.said(trace, "--format", "csv", "-j", "1"), self.said(trace, "--format", "csv", "-j", "3"))

    def test_rows_head_shows_every_head(self):
        trace = self.wide("heads.h5")
        lines = self.said(trace, "--rows", "head").splitlines()
        short = self.said(trace, "--rows", "layer").splitlines()
        self.assertEqual(sum(line.strip()[:1].isdigit() for line in lines), 6)
        self.assertEqual(sum(line.strip()[:1].isdigit() for line in short), 3)
        self.assertEqual(short, self.said(trace).splitlines())

    def test_shapes_that_formats_refuse(self):
        """Heads of 16 channels fill no block; latent keys have no format by channel; one token has nothing to move."""
        text = " ".join(self.said(self.trace).split())
        self.assertIn("Cannot tell what rounding keys by token does to this model: keys have 16 channels", text)
        channels = [row for row in self.table(self.trace) if row["family"] == "by channel"]
        self.assertTrue(all(float(row["moved"]) > 0 for row in channels) and channels)
        self.ok("synth", "-o", self.path("latent.h5"), "--tokens", 256, "--latent", "--head-dim", 96, "--value-dim", 64)
        latent = self.table(self.path("latent.h5"))
        self.assertEqual({row["moved"] == "" for row in latent if row["family"] == "by channel"}, {True})
        self.assertTrue(all(row["reason"] for row in latent if row["moved"] == ""))
        self.assertTrue(self.said(self.path("latent.h5")).startswith("No layer breaks"))
        self.ok("synth", "-o", self.path("one.h5"), "--tokens", 1, "--prompt-tokens", 1, "--queries", 1)
        self.assertIn("Cannot tell", self.said(self.path("one.h5")))

    def test_the_bundled_trace(self):
        table = self.table(SAMPLE)
        self.assertEqual(len(table), 5 * 5 * 3 * 9)
        for name, most in (("q8_0", 0.02), ("q5_1", 0.08), ("q4_0", 0.25), ("kivi4[residual=32]", 0.1)):
            moved = [float(row["moved"]) for row in table
                     if row["format"] == name and row["family"] != "by token, centred"]
            self.assertTrue(0 < min(moved) <= max(moved) < most, name)
        self.assertTrue(self.said(SAMPLE).startswith("No layer breaks"))

    def test_a_bias_leaves_the_attention_as_it_is(self):
        """What rounds by channel hardly notices it; what rounds by token does."""
        error = lambda trace, method: float(rows(self.ok(
            "replay", trace, "-m", method, "-b", "100%mem", "--layers", "0", "--rows", "trace"))[0]["rel_err_mean"])
        plain, biased = self.wide("p.h5"), self.wide("b.h5", "--key-bias", "200")
        self.assertGreater(error(biased, "q4_0"), 3 * error(plain, "q4_0"))
        self.assertLess(error(biased, "kivi4"), 1.5 * error(plain, "kivi4"))
        self.assertIn("key_bias=200", self.ok("info", biased))
        self.assertNotIn("key_bias", self.ok("info", plain))
