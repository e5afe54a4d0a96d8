# SPDX-License-Identifier: Apache-2.0
"""Output of kvbench info, methods and replay."""
import os

from support import SAMPLE, CliTest, main, rows, run


class Replay(CliTest):
    def replay(self, *flags):
        done = run("replay", self.trace, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return rows(done.stdout)

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
        listed = [line.split()[0] for line in lines.splitlines()]
        table = self.replay("-m", "all", "--rows", "trace")
        listed.remove("oracle-error")  # a ceiling that takes seconds per head
        compositions = ["snapkv+kivi4", "h2o+q5_1", "kmeans+int8"]
        self.assertEqual([r["method"] for r in table if not r["params"]], listed + compositions)
        also = [f"{r['method']}[{r['params']}]" for r in table if r["params"]] + compositions
        self.assertEqual(" ".join(variants.split()),
                         f"--method all leaves out oracle-error, and also replays {', '.join(also)}.")
        for method in ("h2o", "snapkv", "pyramidkv"):
            self.assertIn(f"{method}[per=query_head]", also)
        for r in table:
            if r["method"] in self.quantisers():
                self.assertEqual(r["status"], "infeasible", r["method"])
                self.assertIn("a budget in tokens does not apply", r["reason"])
                continue
            self.assertIn(r["status"], ("ok", "skipped"))
            self.assertTrue(r["status"] == "ok" or r["reason"])
        for name in listed:
            self.assertEqual(run("methods", name).returncode, 0)

    def quantisers(self):
        lines = run("methods").stdout.split("\n\n")[0].splitlines()
        return [line.split()[0] for line in lines if line.split()[1] == "quantisation"]

    def test_every_quantiser_and_composition_runs(self):
        full = os.path.join(self.folder, "wide.h5")
        run("synth", "-o", full, "--tokens", "512", "--prompt-tokens", "448", "--queries", "512", "--layers", "1",
            "--query-heads", "2", "--kv-heads", "1", "--head-dim", "64", "--value-dim", "64")
        for protocol in ("prefill", "decode", "stream"):
            methods = self.quantisers() + ["snapkv+kivi4", "h2o+q5_1", "kmeans+int8"] * (protocol != "stream")
            done = run("replay", full, "-m", ",".join(methods), "-b", "100%mem", "--protocol", protocol,
                       "--seeds", "1", "--rows", "trace")
            self.assertEqual(done.returncode, 0, done.stderr)
            for r in rows(done.stdout):
                if r["method"] == "kvquant-nofisher":
                    self.assertEqual(r["status"], "skipped")
                    self.assertIn("this trace has no unscaled RoPE", r["reason"])
                    continue
                self.assertEqual(r["status"], "ok", (protocol, r["method"], r["reason"]))
                self.assertLessEqual(float(r["total_bytes"]), float(r["full_bytes"]))
        os.remove(full)

    def test_a_full_cache_in_fewer_bits(self):
        full = self.synth("full.h5", "--speculated", "0.3", queries=256)
        for budget, protocol in (("25%", "prefill"), ("48", "decode")):
            methods = "quest,quest+kivi4,clusterkv,clusterkv+int4,infinigen,infinigen+int8"
            done = run("replay", full, "-m", methods, "-b", budget, "--set", "quest.page=4", "--set",
                       "quest+kivi4.page=4", "--protocol", protocol, "--seeds", "1", "--rows", "trace")
            self.assertEqual(done.returncode, 0, done.stderr)
            table = {r["method"]: r for r in rows(done.stdout)}
            for method, stored, tier in (("quest", "quest+kivi4", "fast"), ("clusterkv", "clusterkv+int4", "slow"),
                                         ("infinigen", "infinigen+int8", "slow")):
                alone, both = table[method], table[stored]
                self.assertEqual((alone["status"], both["status"]), ("ok", "ok"), both["reason"])
                self.assertIn(f"stores the full cache in {tier} memory", both["reason"])
                self.assertEqual(both["kept_tokens"], alone["kept_tokens"])
                self.assertEqual(both["meta_bytes"], alone["meta_bytes"])
                self.assertLess(float(both["kv_bytes"]), 0.9 * float(alone["kv_bytes"]))
                self.assertLess(float(both["bytes_read"]), float(alone["bytes_read"]))
                self.assertNotEqual(both["rel_err_mean"], alone["rel_err_mean"])
        os.remove(full)

    def test_every_method_runs_where_the_trace_has_all_it_needs(self):
        full = self.synth("full.h5", "--speculated", "0.3", queries=256)
        streaming = {"exact", "sink", "h2o", "cam", "subgen", "balancekv", "quest", "chelsea", "bsm", "mesh",
                     "oracle-topk"}
        for protocol in ("prefill", "decode", "stream"):
            done = run("replay", full, "-m", "all", "-b", "25%", "--protocol", protocol, "--seeds", "2",
                       "--rows", "trace", "--set", "infinigen.query=speculated", "--set", "snapkv.window=8", "--set",
                       "pyramidkv.window=8")
            self.assertEqual(done.returncode, 0, done.stderr)
            for r in rows(done.stdout):
                if r["method"] in self.quantisers() or "+" in r["method"]:
                    continue
                if protocol == "stream" and r["method"] not in streaming:
                    self.assertEqual(r["status"], "skipped", r["method"])
                    self.assertIn("streaming", r["reason"])
                    continue
                self.assertEqual(r["status"], "ok", (protocol, r["method"], r["reason"]))
                self.assertGreater(float(r["kept_tokens"]), 0)
                self.assertGreater(float(r["total_bytes"]), 0)
                self.assertNotIn("upper bound", r["reason"])
        os.remove(full)

    def test_exact_is_the_noise_floor_and_full_budgets_are_exact(self):
        for protocol in ("prefill", "decode"):
            for r in self.replay("-m", "exact,uniform,random,snapkv,oracle-topk", "-b", "100%", "--protocol", protocol):
                if r["method"] == "oracle-topk" and protocol == "decode":
                    continue  # its budget is the size of the context, and decoded tokens compete with the context
                self.assertLess(float(r["rel_err_max"]), 1e-5, r["method"])
                self.assertAlmostEqual(float(r["log_z_err_mean"]), 0, places=5)
            for r in self.replay("-m", "exact", "-b", "25%,50%", "--protocol", protocol):
                self.assertGreater(float(r["rel_err_mean"]), 1e-9)
                self.assertLess(float(r["rel_err_mean"]), 1e-6)
                self.assertEqual(float(r["recall_mean"]), 1)

    def test_the_noise_floor_is_that_of_a_sample(self):
        table = self.replay("-m", "exact,sink", "-b", "25%", "--rows", "query")
        queries = {r["query"] for r in table} - {"all"}
        self.assertGreater(len(queries), 16)
        whole = {r["method"]: r for r in table if r["layer"] == "all"}
        self.assertEqual(int(whole["exact"]["query_rows"]), 2 * 4 * 16)
        self.assertEqual(int(whole["sink"]["query_rows"]), 2 * 4 * len(queries))
        for r in table:
            sampled = r["rel_err_mean"] != ""
            self.assertEqual(sampled, int(r["query_rows"]) > 0)
            self.assertEqual(sampled, "sample" not in r["reason"])
            self.assertTrue(sampled or r["method"] == "exact")

    def test_oracle_has_full_recall_and_random_has_its_share(self):
        table = {r["method"]: r for r in self.replay("-m", "oracle-topk,random", "-b", "25%", "--protocol", "prefill",
                                                     "--rows", "trace", "--seeds", "20")}
        self.assertEqual(float(table["oracle-topk"]["recall_mean"]), 1)
        self.assertEqual(float(table["oracle-topk"]["mass_recall_mean"]), 1)
        self.assertAlmostEqual(float(table["random"]["recall_mean"]), 0.25, delta=0.02)

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

    def test_bytes(self):
        table = {r["method"]: r for r in self.replay("-m", "exact,sink,snapkv,h2o[per=query_head],oracle-topk", "-b",
                                                     "48", "--protocol", "prefill", "--rows", "trace", "--set",
                                                     "sink.reposition=false")}
        token = 2 * (16 + 16)  # bf16 keys and values
        self.assertEqual(float(table["exact"]["total_bytes"]), 192 * token)
        self.assertEqual(float(table["sink"]["kv_bytes"]), 48 * token)
        self.assertEqual(float(table["snapkv"]["kv_bytes"]), 48 * token)
        self.assertEqual(float(table["h2o"]["kv_bytes"]), 2 * 48 * token)  # one selection for each of two query heads
        self.assertEqual(float(table["oracle-topk"]["slow_bytes"]), 192 * token)
        self.assertEqual(float(table["sink"]["compression"]), 4)

    def test_one_replay_has_several_sets_of_parameters(self):
        table = self.replay("-m", "snapkv[window=16,kernel=5],snapkv,snapkv[per=query_head]", "--set",
                            "snapkv.window=8", "--rows", "trace")
        self.assertEqual([r["params"] for r in table], ["window=16;kernel=5", "window=8", "window=8;per=query_head"])
        self.assertEqual(len({r["rel_err_mean"] for r in table}), 3)

    def test_budget_rules(self):
        (row,) = self.replay("-m", "sink", "-b", "10%", "--protocol", "prefill", "--rows", "trace")
        self.assertEqual(float(row["budget_tokens"]), 19)  # 19.2
        (row,) = self.replay("-m", "random", "-b", "50%", "--protocol", "prefill", "--rows", "trace",
                             "--protect-outside", "32,32", "--seeds", "1")
        self.assertEqual([float(row[c]) for c in ("budget_tokens", "kept_tokens", "context_tokens", "kept_fraction")],
                         [128, 64, 128, 0.5])
        (row,) = self.replay("-m", "random", "-b", "96", "--protocol", "prefill", "--rows", "trace", "--protect",
                             "32,32", "--seeds", "1")
        self.assertEqual((float(row["budget_tokens"]), float(row["kept_tokens"])), (96, 32))
        (row,) = self.replay("-m", "random", "-b", "60", "--protocol", "prefill", "--rows", "trace", "--protect",
                             "32,32")
        self.assertEqual(row["status"], "infeasible")
        self.assertIn("protected", row["reason"])

    def test_decoded_keep_equals_prefill(self):
        flags = ("-m", "snapkv,uniform,sink", "--rows", "head", "--no-times")
        keep = self.replay(*flags, "--protocol", "decode", "--decoded", "keep")
        prefill = self.replay(*flags, "--protocol", "prefill")
        for a, b in zip(keep, prefill):
            self.assertEqual(a["rel_err_mean"], b["rel_err_mean"])

    def test_dense_layers_stay_out_of_the_sum(self):
        table = self.replay("-m", "random", "--dense-layers", "1")
        self.assertEqual([r["dense"] for r in table], ["0", "1", "0"])
        self.assertEqual(table[0]["rel_err_mean"], table[2]["rel_err_mean"])
        self.assertLess(float(table[1]["rel_err_mean"]), 1e-5)

    def test_what_a_trace_lacks_is_a_skipped_row(self):
        bare = self.synth("bare.h5", queries=64)  # no query inside the context
        done = run("replay", bare, "-m", "snapkv,exact", "--rows", "trace")
        self.assertEqual(done.returncode, 0)
        self.assertEqual([r["status"] for r in rows(done.stdout)], ["skipped", "ok"])
        self.assertIn("--queries", rows(done.stdout)[0]["reason"])
        os.remove(bare)

    def test_formats_and_files(self):
        out = os.path.join(self.folder, "o.csv")
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
        os.remove(out)
        self.assertIn("| sink |", run("replay", self.trace, "-m", "sink", "--format", "md").stdout)
        self.assertNotIn("attend_s", run("replay", self.trace, "-m", "sink", "--no-times").stdout.splitlines()[0])

    def test_grains(self):
        self.assertEqual(len(self.replay("-m", "sink", "--rows", "trace")), 1)
        self.assertEqual(len(self.replay("-m", "sink", "--rows", "head")), 3 + 2 * 4)
        self.assertEqual(len(self.replay("-m", "sink", "--rows", "query")), 3 + 2 * 4 * (1 + 64))

    def test_standalone_changes_only_times(self):
        flags = ("-m", "sink,snapkv,oracle-topk", "--rows", "trace", "--no-times")
        for a, b in zip(self.replay(*flags), self.replay(*flags, "--standalone")):
            self.assertAlmostEqual(float(a["rel_err_mean"]), float(b["rel_err_mean"]), places=5)

    def test_speculated_queries_of_a_trace_are_used(self):
        """A speculated query in the trace replaces the query; a better guess gives a smaller error."""
        errors = []
        for share in (0, 0.5, 4):
            trace = self.synth("guess.h5", "--speculated", share, "--key-norm", 12)
            done = run("replay", trace, "-m", "infinigen", "--set", "infinigen.ratio=1", "-b", "25%", "--rows", "trace")
            (row,) = rows(done.stdout)
            self.assertEqual((row["status"], row["reason"]), ("ok", "calibrated on the evaluated context"))
            errors.append(float(row["rel_err_mean"]))
        self.assertLess(errors[0], 0.7 * errors[1])
        self.assertLess(errors[1], 0.7 * errors[2])
        done = run("replay", trace, "-m", "infinigen", "--set", "infinigen.ratio=1", "--set", "infinigen.query=true",
                   "-b", "25%", "--rows", "trace")
        self.assertAlmostEqual(float(rows(done.stdout)[0]["rel_err_mean"]), errors[0], places=6)
        os.remove(trace)

        (row,) = self.replay("-m", "infinigen", "-b", "25%", "--rows", "trace")
        self.assertIn("query=true (upper bound)", row["reason"])
        (row,) = self.replay("-m", "infinigen", "--set", "infinigen.query=speculated", "-b", "25%", "--rows", "trace")
        self.assertEqual(row["status"], "skipped")
        self.assertIn("--speculated", row["reason"])

    def test_kvquant_calibrates_on_another_text_and_stores_tokens_only(self):
        def replayed(methods, *flags):
            done = run("replay", SAMPLE, "-m", methods, "-b", "100%mem", "--prompts", "0", "--layers", "14",
                       "--rows", "trace", *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            return rows(done.stdout)

        text = ("--calibrate", SAMPLE + ":1")
        own, other = replayed("kvquant-nofisher")[0], replayed("kvquant-nofisher", *text)[0]
        self.assertEqual(own["reason"], "calibrated on the evaluated context; kvquant-nofisher: 4 bits")
        self.assertIn("calibrated on smollm2-135m.h5, prompt '1'", other["reason"])
        self.assertNotEqual(own["total_bytes"], other["total_bytes"])  # other thresholds have other outliers
        self.assertLess(float(own["rel_err_mean"]), float(other["rel_err_mean"]))
        self.fails(2, "is the text of the evaluated prompt '0'",
                   args=("replay", SAMPLE, "-m", "kvquant-nofisher", "--calibrate", SAMPLE + ":0"))
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
            done = run("replay", both, "-m", "infinigen", "-b", "25%", "--prompts", "0", "--rows", "trace", *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            return rows(done.stdout)[0]
        own, other = calibrated(), calibrated("--calibrate", both + ":1")
        self.assertIn("calibrated on the evaluated context", own["reason"])
        self.assertIn("calibrated on both.h5, prompt '1'", other["reason"])
        self.assertNotEqual(own["recall_mean"], other["recall_mean"])
        for flags, words in ((("--calibrate", both),
                              ("--calibrate: both.h5, prompt '0' is the text of the evaluated prompt",)),
                             (("--calibrate", both + ":2"), ("has no prompt '2'", "It has: 0, 1"))):
            self.fails(2, *words, args=["replay", both, "-m", "infinigen", "--prompts", "0", *flags])
        self.fails(2, "no method that is replayed calibrates",
                   args=["replay", both, "-m", "sink", "--prompts", "0", "--calibrate", both + ":1"])
        os.remove(both)

    def test_raw(self):
        raw = os.path.join(self.folder, "raw.h5")
        flags = ("-m", "sink,subgen,oracle-topk", "--seeds", "2", "--raw", raw)
        self.replay(*flags)
        with open(raw, "rb") as file:
            self.assertEqual(file.read(8), b"\x89HDF\r\n\x1a\n")
        metrics = os.path.getsize(raw)
        self.replay(*flags, "--raw-outputs")
        outputs = 2 * 2 * (2 * 64 * 16) * 4 * 4  # layers, kv heads, [G, m, dv] fp32, cells
        self.assertGreater(os.path.getsize(raw), metrics + outputs)
        os.remove(raw)
        self.fails(2, "--raw-outputs", "--raw", args=["replay", self.trace, "-m", "sink", "--raw-outputs"])

    def test_backends_agree(self):
        flags = ("-m", "sink,snapkv,oracle-topk,subgen,uniform", "--rows", "trace", "--no-times", "--seeds", "2")
        for a, b in zip(self.replay(*flags), self.replay(*flags, "--device", "ref")):
            self.assertAlmostEqual(float(a["rel_err_mean"]), float(b["rel_err_mean"]),
                                   delta=1e-3 * float(b["rel_err_mean"]) + 1e-6)

    def test_info(self):
        text = run("info", self.trace).stdout
        for word in ("synthetic-gaussian", "context 192", "subgen", "sha256"):
            self.assertIn(word, text)
        # Queries of all positions but no column sums, of the last positions only, and a context that ends before the
        # column sums do.
        other = os.path.join(self.folder, "other.h5")
        for flags in (("--queries", 256, "--column-sums", "false"), ("--queries", 96, "--column-sums", "false"),
                      ("--queries", 144, "--prompt-tokens", 256)):
            made = run("synth", "-o", other, "--tokens", 256, "--layers", 1, "--head-dim", 32, "--value-dim", 32,
                       *(("--prompt-tokens", 192) if "--prompt-tokens" not in flags else ()), *flags)
            self.assertEqual(made.returncode, 0, made.stderr)
            runs, lacks = (set(line.split(maxsplit=skip)[skip].split(", ")) for line, skip in
                           zip(run("info", other).stdout.splitlines()[-2:], (1, 3)))
            table = rows(run("replay", other, "-m", "all", "--rows", "trace", "--seeds", "1").stdout)
            self.assertEqual({r["method"] for r in table if r["status"] == "skipped"}, lacks)
            self.assertEqual({r["method"] for r in table}, runs | lacks)
            os.remove(other)


main()
