# SPDX-License-Identifier: Apache-2.0
"""Raw results: metrics, outputs and entries of every query."""
from support import PackageTest, SAMPLE, kvbench
import h5py
import numpy as np

class Raw(PackageTest):
    def test_entries_of_a_full_cache_in_fewer_bits_are_refused(self):
        trace = self.synth("t.h5")
        self.replay(trace, "-m", "quest+int8", "-b", 64, "--protocol", "prefill", "--raw", self.path("raw.h5"),
                    "--raw-outputs")
        with kvbench.Raw(self.path("raw.h5")) as raw:
            self.assertEqual(raw.heads[0].output().shape, (2, 64, 12))
            with self.refuses("fewer bits"):
                raw.heads[0].entries()
        with self.refuses("t.h5", "kvbench_raw"):
            kvbench.Raw(trace)

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
            with self.refuses("must be text", "it is the number 0"):
                raw.heads[0].metric(0)
            with self.refuses("nothing for prompt '0', layer 7"):
                raw.head("0", 7, 0)
            with self.refuses("no cell 1"):
                raw.heads[0].output(1)

    def test_sums_of_probes_give_the_predicted_kl(self):
        rows = self.replay(SAMPLE, "-m", "sink", "-b", "25%mem", "--layers", 2, "--prompts", "0", "--raw",
                           self.path("raw.h5"))
        with kvbench.Raw(self.path("raw.h5")) as raw:
            self.assertEqual(len(raw.heads), 3)  # kv heads of the layer
            kl = np.mean(sum(head.probe_sums() for head in raw.heads) ** 2) / (2 * raw.heads[0].scored_tokens)
        self.assertAlmostEqual(kl / float(rows[0]["kl_predicted"]), 1, places=3)
        self.replay(self.synth("t.h5"), "-m", "sink", "--raw", self.path("none.h5"))
        with kvbench.Raw(self.path("none.h5")) as raw, self.refuses("no probes"):
            raw.heads[0].probe_sums()

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
