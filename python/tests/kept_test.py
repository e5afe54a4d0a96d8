# SPDX-License-Identifier: Apache-2.0
"""Files of own entries, and raw results, which hold the entries of a method."""
import os
import subprocess
import sys

from support import PACKAGE, SAMPLE, KVBENCH, PackageTest, kvbench, main, run
import h5py
import numpy as np

# Recall is left out: it counts the tokens that a method may drop, which a file does not state.
COLUMNS = ("rel_err_mean", "rel_err_max", "log_z_err_mean", "kept_tokens")


class Kept(PackageTest):
    def scored(self, trace, *flags):
        """The rows of file:kept.h5."""
        return self.replay(trace, "-m", "file:" + self.path("kept.h5"), *flags)

    def close(self, ours, theirs):
        self.assertEqual(len(ours), len(theirs))
        for a, b in zip(ours, theirs):
            self.assertEqual((a["status"], b["status"]), ("ok", "ok"), a["reason"])
            for column in COLUMNS:
                self.assertAlmostEqual(a[column], b[column], delta=1e-5 * abs(b[column]) + 1e-6, msg=column)

    def test_the_example_equals_sink(self):
        """select() of the example keeps the tokens of the built-in sink, so that its rows agree except for the name."""
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE))
        for trace, budget in ((SAMPLE, "512"), (self.synth("t.h5"), "48")):
            command = [sys.executable, PACKAGE / "examples" / "score_a_method.py", trace, "--kvbench", KVBENCH,
                       "--budget", budget]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = [line.split() for line in done.stdout.splitlines()]
            ours, theirs = lines[0::2], lines[1::2]
            self.assertEqual({line[0] for line in ours} | {line[0] for line in theirs}, {"select()", "sink"})
            self.assertGreater(len(ours), 2)
            for a, b in zip(ours, theirs, strict=True):
                self.assertEqual(a[1:5], b[1:5])  # layer, kept
                self.assertAlmostEqual(float(a[-1]), float(b[-1]), delta=1e-5 * float(b[-1]))
                self.assertGreater(float(b[-1]), 0.01)

    def test_another_choice_scores_differently(self):
        trace = self.synth("t.h5")
        with kvbench.Trace(trace) as opened:
            kvbench.write_kept(self.path("kept.h5"), opened, lambda layer, kv_head: np.arange(0, 192, 4))
        (ours,) = self.scored(trace, "--protocol", "prefill", "--rows", "trace")
        (sink,) = self.replay(trace, "-m", "sink", "-b", 48, "--protocol", "prefill", "--rows", "trace")
        self.assertEqual((ours["kept_tokens"], sink["kept_tokens"]), (48, 48))
        self.assertGreater(abs(ours["rel_err_mean"] / sink["rel_err_mean"] - 1), 0.01)

    def test_entries_of_a_method_written_again_score_as_the_method(self):
        """Raw and KeptWriter preserve weights, own keys and values, and tables per head and per query."""
        trace = self.synth("t.h5")
        flags = ("-b", 48, "--seeds", 1, "--protocol", "prefill", "--no-times")
        methods = ("snapkv", "subgen", "chelsea", "oracle-topk")
        own = self.replay(trace, "-m", ",".join(methods), *flags, "--raw", self.path("raw.h5"), "--raw-outputs",
                          "--rows", "trace")
        with (kvbench.Raw(self.path("raw.h5")) as raw, kvbench.Trace(trace) as opened,
              kvbench.KeptWriter(self.path("kept.h5")) as out):
            self.assertEqual([(c.method, c.budget, c.seed) for c in raw.cells], [(m, "48", 0) for m in methods])
            kinds = set()
            for head in raw.heads:
                layer = opened.prompts[head.prompt].layers[head.layer]
                for cell in range(len(methods)):
                    tables, positions = head.entries(cell)
                    kinds |= {(t.per_head, t.per_query, t.weight_num is not None, t.own_keys is not None)
                              for t in tables}
                    out.head(layer, head.kv_head, tables, cell, positions)
            self.assertEqual([max(flags) for flags in zip(*kinds)], [True] * 4)  # each of the four occurred
        for cell, row in enumerate(own):
            self.close(self.scored(trace, "--set", f"file.cell={cell}", *flags, "--rows", "trace"), [row])

    def test_entries_of_a_full_cache_in_fewer_bits_are_refused(self):
        trace = self.synth("t.h5")
        flags = ("-b", 64, "--protocol", "prefill")
        self.replay(trace, "-m", "quest+int8", *flags, "--raw", self.path("kept.h5"), "--raw-outputs")
        with kvbench.Raw(self.path("kept.h5")) as raw:
            self.assertEqual(raw.heads[0].output().shape, (2, 64, 12))
            with self.refuses("fewer bits"):
                raw.heads[0].entries()
        with self.assertRaisesRegex(AssertionError, "stored in fewer bits"):
            self.scored(trace, *flags)

    def test_raw_metrics_are_those_of_the_csv(self):
        trace = self.synth("t.h5")
        rows = self.replay(trace, "-m", "sink", "--protocol", "prefill", "--raw", self.path("raw.h5"), "--raw-outputs",
                           "--rows", "head")
        rows = {(r["layer"], r["head"]): r for r in rows if r["head"] not in ("all", None) and r["head"] == r["head"]}
        self.assertEqual(len(rows), 2 * 4)
        with kvbench.Raw(self.path("raw.h5")) as raw:
            self.assertEqual((raw.model, raw.cells[0].method, len(raw.trace_sha256)),
                             ("synthetic-gaussian", "sink", 64))
            for head in raw.heads:
                errors = head.metric("rel_err")
                self.assertEqual((errors.shape, head.output().shape), ((2, 64), (2, 64, 12)))
                self.assertEqual((head.status(), head.reason(), head.budget_tokens()), ("ok", "", 48))
                for g in range(2):
                    mean = rows[head.layer, 2 * head.kv_head + g]["rel_err_mean"]
                    self.assertAlmostEqual(float(errors[g].mean()), mean, places=5)
            self.assertIs(raw.head("0", 1, 1).metric("recall").dtype, np.dtype(np.float32))
            with self.refuses("no metric 'x'", "rel_err"):
                raw.heads[0].metric("x")
            with self.refuses("nothing for prompt '0', layer 7"):
                raw.head("0", 7, 0)
            with self.refuses("no cell 1"):
                raw.heads[0].output(1)

    def test_strings_of_raw_files_are_text(self):
        """h5py returns the strings of a file as bytes; Raw returns all of them as text."""
        trace = self.synth("tr\u00e4ce.h5")
        self.replay(trace, "-m", "sink,snapkv", "-b", "8,25%mem", "--set", "sink.sinks=2", "--raw", self.path("raw.h5"))
        stored = {}

        def collect(name, thing):
            for key, value in thing.attrs.items():
                if isinstance(value, (bytes, str)):
                    self.assertIsInstance(value, bytes, f"{name}: {key}")
                    stored.setdefault(key, set()).add(value.decode())

        with h5py.File(self.path("raw.h5")) as file:
            collect("/", file)
            file.visititems(collect)
        with kvbench.Raw(self.path("raw.h5")) as raw:
            read = {name: {getattr(raw, name)} for name in stored.keys() & vars(raw).keys() - {"metrics"}}
            read |= {"metrics": {",".join(raw.metrics)}, "kvbench_raw": {"1.0"}}
            for name in ("method", "params", "budget"):
                read[name] = {getattr(cell, name) for cell in raw.cells}
            for name in ("prompt", "protocol", "tokens_sha256"):
                read[name] = {getattr(head, name) for head in raw.heads}
            for name in ("status", "reason"):
                read[name] = {getattr(head, name)(cell) for head in raw.heads for cell in range(len(raw.cells))}
        read["reason"] -= {""}
        self.assertIn("träce.h5", next(iter(stored["trace"])))
        self.assertEqual(read, {"reason": set(), **stored})

    def test_outputs_and_entries_are_written_on_request_only(self):
        trace = self.synth("t.h5")
        self.replay(trace, "-m", "sink", "--raw", self.path("raw.h5"))
        with kvbench.Raw(self.path("raw.h5")) as raw:
            self.assertEqual(raw.heads[0].metric("rel_err").shape, (2, 64))
            for part in (raw.heads[0].output, raw.heads[0].entries):
                with self.refuses("--raw-outputs"):
                    part()

    # The trace has d = 16 and dv = 12, which take 56 bytes per token; the full cache holds 256 tokens after the last
    # query.
    TOKEN, FULL = 56, 256 * 56

    def rows_held(self, trace, *flags, **parts):
        """The row over all layers where every kv head has this table."""
        with kvbench.Trace(trace) as opened, kvbench.KeptWriter(self.path("kept.h5")) as out:
            for layer in opened.prompts["0"].layers.values():
                for kv_head in range(2):
                    out.head(layer, kv_head, kvbench.Table(**parts), positions=np.arange(192, 256))
        (row,) = self.scored(trace, "--rows", "trace", *flags)
        return row

    def test_bytes_are_those_that_a_table_declares(self):
        trace = self.synth("t.h5")
        window = np.arange(192, 256)[:, None] - np.arange(8)  # query i reads the 8 tokens that end with its own
        by_query = dict(ids=window, per_query=True)
        columns = ("kv_bytes", "meta_bytes", "fast_bytes", "slow_bytes", "bytes_read", "full_bytes")

        def held(**parts):
            row = self.rows_held(trace, **parts)
            self.assertEqual((row["status"], row["kept_tokens"]), ("ok", 8), row["reason"])
            return tuple(row[column] for column in columns)

        token, full = self.TOKEN, self.FULL
        # nothing is declared: any token may be read
        self.assertEqual(held(**by_query), (full, 0, 0, full, 8 * token, full))
        self.assertEqual(held(**by_query, held=window), (8 * token, 0, 8 * token, 0, 8 * token, full))
        growing = np.where(np.arange(64)[:, None] < 60, -1, np.arange(5))  # the last 4 queries hold 5 further tokens
        self.assertEqual(held(**by_query, held=np.hstack([window, growing])),
                         (13 * token, 0, 13 * token, 0, 8 * token, full))
        self.assertEqual(held(**by_query, held=np.arange(185, 256), meta_bytes=30),
                         (71 * token, 30, 71 * token + 30, 0, 8 * token + 30, full))
        self.assertEqual(held(**by_query, held=np.arange(250, 256), held_slow=np.arange(256)),
                         (262 * token, 0, 6 * token, full, 8 * token, full))
        # two query heads that hold the same tokens: once for both, or each of them
        per_head = np.vstack([window, window])
        self.assertEqual(held(ids=per_head, per_head=True, per_query=True, held=np.arange(185, 256))[0], 71 * token)
        self.assertEqual(held(ids=per_head, per_head=True, per_query=True, held=per_head)[0], 16 * token)

    def test_an_entry_that_is_not_held_is_refused(self):
        trace = self.synth("t.h5")
        with self.refuses("kept.h5", "layer 0, kv head 0", "held", "row 3 of the ids", r"\[9\]"):
            self.rows_held(trace, ids=np.where(np.arange(64) == 3, 9, 5)[:, None], per_query=True, held=[5])
        with self.refuses("held", "2 rows", "1 or 64"):
            self.rows_held(trace, ids=np.full((64, 1), 5), per_query=True, held=[[5], [5]])
        self.rows_held(trace, ids=np.full((64, 1), 5), per_query=True, held=[5], held_slow=[6])
        with h5py.File(self.path("kept.h5"), "r+") as file:  # a file that another program wrote
            file["heads/0-1-0/0/entries/0/held"][0] = 7
        done = subprocess.run([KVBENCH, "replay", trace, "-m", "file:" + self.path("kept.h5"), "--rows", "trace"],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        for words in ("kept.h5", "token 5", "'held'", "'held_slow'"):
            self.assertIn(words, done.stderr)

    def test_one_file_holds_a_curve(self):
        """The entries of `sink` at three budgets in one file: one row per budget, equal to those of sink."""
        trace, budgets = self.synth("t.h5"), ("24", "25%", "37.5%")
        tokens = dict(zip(budgets, (24, 48, 72)))
        with kvbench.Trace(trace) as opened:
            kvbench.write_kept(self.path("kept.h5"), opened,
                               lambda layer, kv_head, budget: np.union1d(
                                   np.arange(4), np.arange(196 - tokens[budget], 192)), budgets)
        flags = ("--protocol", "prefill", "--rows", "trace")
        sink = self.replay(trace, "-m", "sink", "--set", "sink.reposition=false", "-b", ",".join(budgets), *flags)
        ours = self.scored(trace, *flags)  # without --budget: those of the file
        self.assertEqual([row["budget"] for row in ours], list(budgets))
        self.close(ours, sink)
        self.assertEqual([row["total_bytes"] for row in ours], [self.TOKEN * tokens[budget] for budget in budgets])
        half, given = self.scored(trace, *flags, "-b", "50%,37.5%")  # in the order asked for
        self.assertEqual((half["status"], given["status"], given["budget"]), ("skipped", "ok", "37.5%"))
        self.assertIn("budget 50%; it has 24, 25%, 37.5%", half["reason"])
        (one,) = self.scored(trace, *flags, "--set", "file.cell=2")
        self.assertEqual((one["budget"], one["kept_tokens"]), ("37.5%", 72))

    def test_budgets_are_those_of_the_program(self):
        trace = self.synth("t.h5")
        refused = ("abc", "0%mem", "101%mem", "100.000001%", "0", "-1", "+5", "25 %", "1e3", "1.5", "٣", "0.5B",
                   "1.2345678%", "%", ".5%", "5%disk", "9" * 30, "1" * 5000, "inf", "nan%", "2000000000GB", "", "1.0",
                   "0.0", "0.1234567", "0.5.1", "k", "0k", "1.5k", "2k%")
        taken = ("1", "192", "25%", "12.5%mem", "100%", "0.000001%fast", "25.%read", "8KiB", "5.5KB", "70B", "0.5",
                 "0.000001")
        with kvbench.Trace(trace) as opened:
            def write(*budgets):
                kvbench.write_kept(self.path("kept.h5"), opened, lambda layer, kv_head, budget: [0], budgets)

            write("0.25", "2k", "1K")
            with h5py.File(self.path("kept.h5")) as file:
                self.assertEqual([cell.attrs["budget"] for cell in file["cells"].values()], [b"25%", b"2048", b"1024"])
            write(*taken)
            for budget in refused:
                with self.subTest(budget=budget), self.refuses("no budget"):
                    write(budget)
            with self.refuses("'25%' is listed twice"):
                write("25%", "25%")
        for budget in (*refused, *taken):
            done = subprocess.run([KVBENCH, "replay", trace, "-m", "sink", f"--budget={budget}", "--layers", "0"],
                                  capture_output=True, text=True)
            with self.subTest(budget=budget):  # 1: a row is infeasible
                self.assertIn(done.returncode, (0, 1) if budget in taken else (2,), done.stderr)

    def test_a_cost_budget_limits_the_mean_over_heads_and_layers(self):
        """A quarter of the 192 tokens of the context is 48. Heads may hold more if others hold less."""
        trace = self.synth("t.h5")

        def curve(most):
            with kvbench.Trace(trace) as opened:
                kvbench.write_kept(self.path("kept.h5"), opened,
                                   lambda layer, kv_head, budget: np.arange(
                                       most if (layer.index, kv_head) == (1, 1) else 40), ["25%mem", "50%mem"])
            return self.scored(trace, "--protocol", "prefill")

        rows = curve(192 - 3 * 40)  # 192 tokens in 4 heads
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        whole = rows[0]
        self.assertEqual((whole["budget"], whole["total_bytes"] / whole["full_bytes"], whole["budget_tokens"]),
                         ("25%mem", 0.25, 48))
        rows = curve(192 - 3 * 40 + 4)
        self.assertEqual({(row["budget"], row["status"]) for row in rows}, {("25%mem", "infeasible"), ("50%mem", "ok")})
        self.assertIn("25.52 % of the full cache; the budget is 25 %", rows[0]["reason"])

    def test_entries_of_another_trace_are_refused(self):
        """A file names the trace and the tokens for which its entries were made."""
        trace, other = self.synth("t.h5"), self.synth("other.h5", "--seed", 1)
        flags = ("--protocol", "prefill", "--rows", "trace")
        with kvbench.Trace(trace) as opened, kvbench.Trace(other) as another:
            kvbench.write_kept(self.path("kept.h5"), opened, lambda layer, kv_head: np.arange(48))
            digests = opened.sha256, another.sha256
            with self.refuses("another trace than .*other.h5"), kvbench.KeptWriter(self.path("two.h5")) as out:
                out.head(opened.prompts["0"].layers[0], 0, [0])
                out.head(another.prompts["0"].layers[0], 1, [0])
        (row,) = self.scored(trace, *flags)
        self.assertEqual((row["sha256"], row["status"]), (digests[0][:12], "ok"))
        with self.assertRaises(AssertionError) as refused:
            self.scored(other, *flags)
        for word in (*digests, "kept.h5", "other.h5", "--set file.any_trace=true"):
            self.assertIn(word, str(refused.exception))
        (row,) = self.scored(other, *flags, "--set", "file.any_trace=true")
        self.assertEqual((row["status"], row["params"]), ("ok", "any_trace=true"))

    def test_a_file_that_names_no_trace_is_accepted_with_a_note(self):
        trace = self.synth("t.h5")
        with kvbench.Trace(trace) as opened:
            kvbench.write_kept(self.path("kept.h5"), opened, lambda layer, kv_head: np.arange(48))
        command = [KVBENCH, "replay", trace, "-m", "file:" + self.path("kept.h5"), "--protocol", "prefill"]
        self.assertEqual(subprocess.run(command, capture_output=True, text=True, timeout=300).stderr, "")
        with h5py.File(self.path("kept.h5"), "a") as file:
            del file.attrs["trace_sha256"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 1))
        self.assertIn("does not say for which trace", done.stderr)

    def test_entries_that_cannot_be_used_are_refused(self):
        trace, ids = self.synth("t.h5"), np.arange(6)
        table = kvbench.Table
        with kvbench.Trace(trace) as opened:
            for words, entries in (
                    (["ids", r"\[0, 256\)"], np.array([0, 256])),
                    (["ids", r"\[0, 256\)"], np.array([-2])),
                    (["ids", "integers"], np.array([0.5])),
                    (["1 rows", "per_head=True", "require 2"], table(ids=ids, per_head=True)),
                    (["2 rows", "require 1"], ids.reshape(2, 3)),
                    (["95 rows", "per_query=True require 96"], table(ids=np.zeros((95, 1), int), per_query=True)),
                    (["weight_den", r"\[5\]", r"\[1, 6\]"], table(ids=ids, weight_den=np.ones(5))),
                    (["own_values", r"\[1, 6, 12\]"], table(ids=ids, own_values=np.ones((6, 16)))),
                    (["own_keys", "finite"], table(ids=ids, own_keys=np.full((6, 16), np.inf)))):
                with self.subTest(words=words), self.refuses("kept.h5", "layer 0, kv head 0", *words):
                    kvbench.write_kept(self.path("kept.h5"), opened, lambda layer, kv_head: entries)
            with self.refuses("2 kv heads"), kvbench.KeptWriter(self.path("kept.h5")) as out:
                out.head(opened.prompts["0"].layers[0], 2, ids)
            with self.refuses("cell 0 was written already"), kvbench.KeptWriter(self.path("kept.h5")) as out:
                out.head(opened.prompts["0"].layers[0], 0, ids)
                out.head(opened.prompts["0"].layers[0], 0, ids)
            with self.refuses("budget 8 was written already"), kvbench.KeptWriter(self.path("kept.h5")) as out:
                out.head(opened.prompts["0"].layers[0], 0, ids, budget="8")
                out.head(opened.prompts["0"].layers[0], 0, ids, budget="8")
            with self.refuses("consecutive"), kvbench.KeptWriter(self.path("kept.h5")) as out:
                out.head(opened.prompts["0"].layers[0], 0, ids, positions=[160, 162])
            with self.refuses("no head"), kvbench.KeptWriter(self.path("kept.h5")):
                pass
        self.assertEqual(os.listdir(self.folder), ["t.h5"])
        with self.refuses("t.h5", "kvbench_raw"):
            kvbench.Raw(trace)


main()
