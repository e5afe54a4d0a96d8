# SPDX-License-Identifier: Apache-2.0
"""Output of kvbench info, methods and replay."""
import os

from support import SAMPLE, CliTest, rows, run


class Replay(CliTest):
    def replay(self, *flags):
        return rows(self.ok("replay", self.trace, *flags))

    def test_the_plain_command(self):
        table = self.replay("--method", "subgen")
        self.assertEqual([r["layer"] for r in table], ["all", "0", "1"])
        for r in table:
            self.assertEqual((r["status"], r["method"], r["budget"], r["seed"], r["protocol"]),
                             ("ok", "subgen", "25%", "all", "decode"))
            self.assertGreater(float(r["rel_err_mean"]), 0)
            self.assertLessEqual(float(r["rel_err_lo"]), float(r["rel_err_mean"]))
            self.assertGreaterEqual(float(r["rel_err_hi"]), float(r["rel_err_mean"]))
            self.assertGreaterEqual(float(r["attend_s"]), 0)
        self.assertEqual(int(table[0]["query_rows"]), 64 * 4 * 2 * 5)

    def test_every_method_yields_a_row(self):
        lines, variants = run("methods").stdout.split("\n\n")
        listed = [line.split()[0] for line in lines.splitlines() if line.split()[1] != "wrapper"]
        table = self.replay("-m", "all", "--rows", "trace")
        for name in ("oracle-error", "duo", "duo@kvpress"):  # takes seconds per head; need more than a trace
            listed.remove(name)
        compositions = ["adakv(snapkv)", "snapkv+kivi4", "h2o+kivi4", "h2o+q5_1", "h2o+q8_0", "kmeans+int8"]
        self.assertEqual([r["method"] for r in table if not r["params"]], listed + compositions)
        also = [f"{r['method']}[{r['params']}]" for r in table if r["params"]] + compositions
        self.assertEqual(" ".join(variants.split()),
                         f"--method all leaves out duo, duo@kvpress, oracle-error, and also replays {', '.join(also)}. "
                         "--method eviction replays that kind alone.")
        for method in ("h2o", "snapkv", "pyramidkv"):
            self.assertIn(f"{method}[per=query_head]", also)
        for r in table:
            if r["method"] in self.quantisers():
                self.assertEqual(r["status"], "infeasible", r["method"])
                self.assertIn("a budget in tokens does not apply", r["reason"])
                continue
            if r["method"] == "lagkv":  # 192 tokens are a part and its tail, which are never cut
                self.assertEqual((r["status"], "lower lagkv.lag" in r["reason"]), ("infeasible", True))
                continue
            if r["method"] == "wildcat":  # 48 tokens, fewer than it keeps exactly
                self.assertEqual((r["status"], "lower wildcat.sinks" in r["reason"]), ("infeasible", True))
                continue
            self.assertIn(r["status"], ("ok", "skipped"))
            self.assertTrue(r["status"] == "ok" or r["reason"])
        for line in lines.splitlines():
            self.ok("methods", line.split()[0])

    def quantisers(self):
        lines = run("methods").stdout.split("\n\n")[0].splitlines()
        return [line.split()[0] for line in lines if line.split()[1] == "quantisation"]

    def test_every_quantiser_and_composition_runs(self):
        full = self.path("wide.h5")
        run("synth", "-o", full, "--tokens", "512", "--prompt-tokens", "448", "--queries", "512", "--layers", "1",
            "--query-heads", "2", "--kv-heads", "1", "--head-dim", "64", "--value-dim", "64")
        for protocol in ("prefill", "decode", "stream"):
            methods = self.quantisers() + ["snapkv+kivi4", "h2o+q5_1", "kmeans+int8"] * (protocol != "stream")
            done = self.succeeds("replay", full, "-m", ",".join(methods), "-b", "100%mem", "--protocol", protocol,
                                 "--seeds", "1", "--rows", "trace")
            for r in rows(done.stdout):
                if r["method"] == "kvquant-nofisher":
                    self.assertEqual(r["status"], "skipped")
                    self.assertIn("there is no unscaled RoPE", r["reason"])
                    continue
                self.assertEqual(r["status"], "ok", (protocol, r["method"], r["reason"]))
                self.assertLessEqual(float(r["total_bytes"]), float(r["full_bytes"]))

    def test_every_method_runs_where_the_trace_has_all_it_needs(self):
        full = self.synth("full.h5", "--speculated", "0.3", queries=256)
        streaming = {"exact", "sink", "h2o", "cam", "subgen", "balancekv", "quest", "chelsea", "bsm", "mesh",
                     "oracle-topk", "vattention", "twilight"}
        for protocol in ("prefill", "decode", "stream"):
            done = self.succeeds("replay", full, "-m", "all", "-b", "25%", "--protocol", protocol, "--seeds", "2",
                                 "--rows", "trace", "--set", "infinigen.query=speculated", "--set", "snapkv.window=8",
                                 "--set", "pyramidkv.window=8", "--set", "lagkv.lag=8", "--set", "wildcat.sinks=4",
                                 "--set", "wildcat.recent=8")
            for r in rows(done.stdout):
                if r["method"] in self.quantisers() or "+" in r["method"]:
                    continue
                if protocol == "stream" and r["method"] not in streaming:
                    self.assertEqual(r["status"], "skipped", r["method"])
                    self.assertIn("streaming", r["reason"])
                    continue
                if r["method"] in ("compactor", "expected-attention", "triattention"):  # synthetic keys are not rotated
                    self.assertEqual((r["status"], "unscaled RoPE" in r["reason"]), ("skipped", True))
                    continue
                self.assertEqual(r["status"], "ok", (protocol, r["method"], r["reason"]))
                self.assertGreater(float(r["kept_tokens"]), 0)
                self.assertGreater(float(r["total_bytes"]), 0)
                self.assertNotIn("upper bound", r["reason"])

    def test_rows_are_compared_with_the_best(self):
        table = self.replay("-m", "exact,snapkv,uniform,random,oracle-topk", "-b", "25%,50%", "--rows", "head")
        for budget in ("25%", "50%"):
            for layer in ("all", "0", "1"):
                group = {r["method"]: r for r in table
                         if (r["budget"], r["layer"], r["head"]) == (budget, layer, "all")}
                candidates = [group[m] for m in ("snapkv", "uniform", "random")]
                best = min(candidates, key=lambda r: float(r["rel_err_mean"]))
                for r in candidates:
                    self.assertEqual(r["best"], best["method"])
                    self.assertAlmostEqual(float(r["diff_best"]),
                                           float(r["rel_err_mean"]) - float(best["rel_err_mean"]), places=9)
                    self.assertLessEqual(float(r["diff_best_lo"]), float(r["diff_best"]))
                    self.assertIn(r["tied"], "01")
                self.assertEqual(best["tied"], "1")
                for reference in ("exact", "oracle-topk"):
                    self.assertEqual((group[reference]["best"], group[reference]["tied"],
                                      group[reference]["diff_best"]), ("", "", ""))
        self.assertTrue(all(r["best"] == "" for r in table if r["head"] != "all"))

    def test_protected_tokens_count_in_bytes(self):
        """1024 tokens of context, 48 decoded ones, 256 bytes each; 260 are protected. Half of 1072 tokens are 536, half
        of the 812 others 406."""
        for flag, budget, held, tokens in (("--protect", "512", 512 + 48, 512), ("--protect", "50%mem", 536, 536 - 48),
                                           ("--protect-outside", "50%mem", 406 + 260, 406 - 48 + 260)):
            with self.subTest(flag=flag, budget=budget):
                row, = rows(self.ok("replay", SAMPLE, "-m", "snapkv", "-b", budget, flag, "4,256", "--rows", "trace",
                                    "--prompts", "0"))
                self.assertEqual([float(row[name]) for name in ("total_bytes", "bytes_read", "full_bytes",
                                                                "budget_tokens")],
                                 [256 * held, 256 * held, 256 * 1072, tokens])
                self.assertAlmostEqual(float(row["compression"]), 1072 / held)

    def test_one_replay_has_several_sets_of_parameters(self):
        table = self.replay("-m", "snapkv[window=16,kernel=5],snapkv,snapkv[per=query_head]", "--set",
                            "snapkv.window=8", "--rows", "trace")
        self.assertEqual([r["params"] for r in table], ["window=16;kernel=5", "window=8", "window=8;per=query_head"])
        self.assertEqual(len({r["rel_err_mean"] for r in table}), 3)

    def test_what_a_trace_lacks_is_a_skipped_row(self):
        bare = self.synth("bare.h5", queries=64)  # no query inside the context
        table = rows(self.ok("replay", bare, "-m", "snapkv,exact", "--rows", "trace"))
        self.assertEqual([r["status"] for r in table], ["skipped", "ok"])
        self.assertIn("--queries", table[0]["reason"])

    def test_formats_and_files(self):
        out = self.path("o.csv")
        done = run("replay", self.trace, "-m", "sink", "-o", out, "--summary")
        self.assertIn("rel_err", done.stdout)
        full, short = (run("replay", self.trace, "-m", "sink,h2o,quest", "-b", "12.5%,25%mem", "-o", out, form).stdout
                       for form in ("--summary=full", "--summary"))
        self.assertIn("infeasible at 25 % of the memory: quest", full)
        self.assertLessEqual(len(short.splitlines()), 12)
        self.assertLessEqual(max(map(len, short.splitlines())), 100)
        self.assertIn("; see --summary=full and ", short)
        done = run("replay", self.trace, "-m", "sink", "-o", out, "--summary")
        with open(out, newline="") as file:
            text = file.read()
        self.assertEqual(len(rows(text)), 3)
        self.assertNotIn("\r", text)
        self.assertIn("| sink |", run("replay", self.trace, "-m", "sink", "--format", "md").stdout)
        self.assertNotIn("attend_s", run("replay", self.trace, "-m", "sink", "--no-times").stdout.splitlines()[0])

    def test_grains(self):
        self.assertEqual(len(self.replay("-m", "sink", "--rows", "trace")), 1)
        self.assertEqual(len(self.replay("-m", "sink", "--rows", "head")), 3 + 2 * 4)
        self.assertEqual(len(self.replay("-m", "sink", "--rows", "query")), 3 + 2 * 4 * (1 + 64))

    def test_speculated_queries_are_used_where_the_trace_has_some(self):
        (row,) = self.replay("-m", "infinigen", "-b", "25%", "--rows", "trace")
        self.assertIn("query=true (upper bound)", row["reason"])
        (row,) = self.replay("-m", "infinigen", "--set", "infinigen.query=speculated", "-b", "25%", "--rows", "trace")
        self.assertEqual(row["status"], "skipped")
        self.assertIn("--speculated", row["reason"])

    def test_kvquant_calibrates_on_another_text_and_stores_tokens_only(self):
        def replayed(methods, *flags):
            done = self.succeeds("replay", SAMPLE, "-m", methods, "-b", "100%mem", "--prompts", "0", "--layers", "14",
                                 "--rows", "trace", *flags)
            return rows(done.stdout)

        text = ("--calibrate", SAMPLE + ":1")
        two = "kvquant-nofisher[bits=2]"  # with 4 bits the outliers, of which there are more, outweigh the worse fit
        own, other = replayed(two)[0], replayed(two, *text)[0]
        self.assertEqual(own["reason"], "calibrated on the evaluated context; kvquant-nofisher: 2 bits")
        self.assertIn("calibrated on smollm2-135m.h5, prompt '1'", other["reason"])
        self.assertNotEqual(own["total_bytes"], other["total_bytes"])  # other thresholds have other outliers
        self.assertLess(float(own["rel_err_mean"]), float(other["rel_err_mean"]))
        stored = ["{}+kvquant-nofisher[kvquant-nofisher.bits=3]".format(m) for m in ("h2o", "cam", "pyramidkv")]
        h2o, cam, pyramidkv = replayed(",".join(stored))
        self.assertEqual(h2o["status"], "ok")
        for row, word in ((cam, "such as means"), (pyramidkv, "all 3 kv heads of a layer"),
                          (replayed("kvquant-nofisher", "--protocol", "stream")[0], "name one with --calibrate"),
                          (replayed("kvquant-nofisher", "--protect", "4,0")[0], "omit --protect")):
            self.assertEqual(row["status"], "skipped")
            self.assertIn(word, row["reason"])
        self.assertEqual(replayed("kvquant-nofisher", "--protocol", "stream", *text)[0]["status"], "ok")

    def test_infinigen_calibrates_on_another_text(self):
        both = self.synth("both.h5", "--prompts", 2)
        def calibrated(*flags):
            return rows(self.ok("replay", both, "-m", "infinigen", "-b", "25%", "--prompts", "0", "--rows", "trace",
                                *flags))[0]
        own, other = calibrated(), calibrated("--calibrate", both + ":1")
        self.assertIn("calibrated on the evaluated context", own["reason"])
        self.assertIn("calibrated on both.h5, prompt '1'", other["reason"])
        self.assertNotEqual(own["recall_mean"], other["recall_mean"])

    def test_raw(self):
        raw = self.path("raw.h5")
        flags = ("-m", "sink,subgen,oracle-topk", "--seeds", "2", "--raw", raw)
        self.replay(*flags)
        self.assertTrue(self.read_bytes(raw).startswith(b"\x89HDF\r\n\x1a\n"))
        metrics = os.path.getsize(raw)
        self.replay(*flags, "--raw-outputs")
        outputs = 2 * 2 * (2 * 64 * 16) * 4 * 4  # layers, kv heads, [G, m, dv] fp32, cells
        self.assertGreater(os.path.getsize(raw), metrics + outputs)

    def test_info(self):
        text = run("info", self.trace).stdout
        for word in ("synthetic-gaussian", "context 192", "subgen", "sha256"):
            self.assertIn(word, text)
        lines = run("info", SAMPLE).stdout.splitlines()  # five prompts that hold the same
        self.assertEqual(len(lines), len({line[:15] for line in lines}), lines)
        # Queries of all positions but no column sums, of the last positions only, and a context that ends before the
        # column sums do.
        other = self.path("other.h5")
        for flags in (("--queries", 256, "--column-sums", "false"), ("--queries", 96, "--column-sums", "false"),
                      ("--queries", 144, "--prompt-tokens", 256)):
            self.ok("synth", "-o", other, "--tokens", 256, "--layers", 1, "--head-dim", 32, "--value-dim", 32,
                    *(("--prompt-tokens", 192) if "--prompt-tokens" not in flags else ()), *flags)
            runs, lacks = (set(line.split(maxsplit=skip)[skip].split(", ")) for line, skip in
                           zip(run("info", other).stdout.splitlines()[-2:], (1, 3)))
            table = rows(run("replay", other, "-m", "all", "--rows", "trace", "--seeds", "1").stdout)
            # Whether keys are rotated is known when a layer is read.
            skipped = {r["method"] for r in table if r["status"] == "skipped" and "unscaled RoPE" not in r["reason"]}
            self.assertEqual(skipped, {name for name in lacks if name != "kvquant-nofisher"})
            self.assertEqual({r["method"] for r in table}, runs | lacks)

    def test_numbers_beyond_a_format_are_a_note(self):
        """Keys of 1e-6, whose scales are 0 in 16 bits, and of 1e5, which fp8 clips at 448."""
        every = "q8_0,int8,h2o+q8_0,quest+int8,fp8,nvfp4,kivi2"
        for norm, told in (("1e-6", {"q8_0", "int8", "h2o+q8_0", "quest+int8", "fp8"}), ("1e5", {"fp8"}), ("8", set())):
            with self.subTest(norm=norm):
                self.ok("synth", "-o", self.path("norm.h5"), "--tokens", 256, "--prompt-tokens", 192, "--layers", 1,
                        "--key-norm", norm)
                made = rows(self.ok("replay", self.path("norm.h5"), "-m", every, "-b", "90%mem", "--rows", "trace"))
                self.assertEqual({row["status"] for row in made}, {"ok"})
                noted = {row["method"] for row in made if "less than half or more than twice" in row["reason"]}
                self.assertEqual(noted, told)
