# SPDX-License-Identifier: Apache-2.0
"""Traces: Python and kvbench read each other's files and find the same contents."""
import gc
import os
import resource
import socket
import stat
import subprocess
import sys
import time

from support import PACKAGE, SAMPLE, kvbench, run
import numpy as np
from traces import TraceTest, header, small


def copy(source, target, **options):
    with kvbench.Trace(source) as trace, kvbench.TraceWriter(target, trace, **options) as out:
        for prompt in trace.prompts.values():
            out.prompt(prompt.id, prompt)
            for index, layer in prompt.layers.items():
                out.layer(prompt.id, index, layer, **{name: layer.array(name) for name in layer.arrays})


class Traces(TraceTest):
    def same(self, a, b):
        """Asserts that two traces have the same contents, to the bit of each number."""
        with kvbench.Trace(a) as a, kvbench.Trace(b) as b:
            for name in kvbench.Header.__dataclass_fields__:
                self.assertEqual(getattr(a, name), getattr(b, name), name)
            self.assertEqual(list(a.prompts), list(b.prompts))
            for p, q in zip(a.prompts.values(), b.prompts.values()):
                for name in ("name", "prompt_tokens", "answer_start", "answer_end", "text"):
                    self.assertEqual(getattr(p, name), getattr(q, name), name)
                np.testing.assert_array_equal(p.tokens, q.tokens)
                self.assertEqual(list(p.layers), list(q.layers))
                for x, y in zip(p.layers.values(), q.layers.values()):
                    for name in ("scale", "window", "rope_theta", "softcap", "column_sums_end", "arrays"):
                        self.assertEqual(getattr(x, name), getattr(y, name), name)
                    np.testing.assert_array_equal(x.query_positions, y.query_positions)
                    for name in x.arrays:
                        np.testing.assert_array_equal(x.array(name), y.array(name), name)

    def test_a_copy_is_the_same_trace_to_python_and_to_kvbench(self):
        for dtype in ("f32", "f16", "bf16"):
            for flags, options in ((["--compress"], {}), ([], {"compress": True})):
                source = self.synth("a.h5", "--dtype", dtype, "--speculated", 0.3, "--prompts", 2, *flags)
                copy(source, self.path("b.h5"), **options)
                self.same(source, self.path("b.h5"))
                flags = ("-m", "infinigen,h2o", "--rows", "head", "--set", "infinigen.query=speculated")
                for ours, theirs in zip(self.replay(self.path("b.h5"), *flags), self.replay(source, *flags),
                                        strict=True):
                    for column in ("status", "rel_err_mean", "mass_recall_mean", "kept_tokens"):
                        self.assertEqual(str(ours[column]), str(theirs[column]), (dtype, column))

    def test_the_bundled_trace(self):
        """Its contents are those that `kvbench info` prints."""
        with kvbench.Trace(SAMPLE) as trace:
            self.assertEqual((trace.model, trace.group, trace.dtype), ("SmolLM2-135M-Instruct.Q4_1", 3, "f16"))
            prompt = trace.prompts["0"]
            self.assertEqual((prompt.name, prompt.num_tokens, prompt.prompt_tokens), ("genesis", 1072, 1024))
            self.assertEqual(list(prompt.layers), [2, 8, 14, 20, 26])
            layer = prompt.layers[8]
            self.assertEqual((layer.scale, layer.window, layer.column_sums_end), (0.125, 0, 1024))
            self.assertEqual(layer.query_positions.tolist(), list(range(944, 1072)))
            self.assertEqual((layer.kv_head_of(5), list(layer.query_heads_of(1))), (1, [3, 4, 5]))
            self.assertEqual((layer.keys(2).shape, layer.keys(2).dtype), ((1072, 64), np.float32))
            # The column sums of a head add up to the number of queries of the context, 1024, each with an attention
            # mass of 1.
            self.assertAlmostEqual(float(layer.array("column_sums", 5).sum()), 1024, delta=1)

    def test_exact_attention_in_numpy_is_that_of_kvbench(self):
        """The output of `exact` for each query is softmax(scale q k^T) v over the tokens up to the query, computed here
        in double precision."""
        trace = self.synth("t.h5", "--dtype", "bf16")
        run("replay", trace, "-m", "exact", "--raw", self.path("raw.h5"), "--raw-outputs", "-o", self.path("rows.csv"))
        with kvbench.Trace(trace) as trace, kvbench.Raw(self.path("raw.h5")) as raw:
            for result in raw.heads:
                layer = trace.prompts[result.prompt].layers[result.layer]
                rows = np.searchsorted(layer.query_positions, result.positions)
                for g, head in enumerate(layer.query_heads_of(result.kv_head)):
                    logits = layer.scale * layer.queries(head)[rows].astype(np.float64) @ layer.keys(result.kv_head).T
                    logits[np.arange(256) > result.positions[:, None]] = -np.inf
                    weights = np.exp(logits - logits.max(1, keepdims=True))
                    expected = weights @ layer.values(result.kv_head) / weights.sum(1, keepdims=True)
                    np.testing.assert_allclose(result.output()[g], expected, rtol=1e-4, atol=1e-5)

    def test_every_field_survives(self):
        sums = np.arange(20.0).reshape(4, 5)
        named = header(arch="a", created="2020-01-01T00:00:00Z", rope_layout="interleaved")
        with kvbench.TraceWriter(self.path("t.h5"), named) as out:
            out.prompt("x", kvbench.PromptInfo(name="ü", tokens=[9, 8, 7], prompt_tokens=2, answer_start=1,
                                               answer_end=3, text="täxt"))
            out.layer("x", 3, kvbench.LayerInfo(scale=2, query_positions=[0], window=2, rope_theta=1e4, softcap=5),
                      keys=np.ones((2, 3, 3)), values=np.ones((2, 3, 2)), queries=np.ones((4, 1, 3)))
            arrays = small(out, prompt="2", column_sums=sums, column_sums_end=4, attention_output=np.ones((4, 2, 2)))
            small(out, prompt="10")
        with kvbench.Trace(self.path("t.h5")) as trace:
            self.assertEqual(list(trace.prompts), ["2", "10", "x"])  # numbers by value, then names
            self.assertEqual((trace.arch, trace.created, trace.rope_layout),
                             ("a", "2020-01-01T00:00:00Z", "interleaved"))
            p, layer = trace.prompts["x"], trace.prompts["x"].layers[3]
            self.assertEqual((p.name, p.tokens.tolist(), p.text), ("ü", [9, 8, 7], "täxt"))
            self.assertEqual((p.prompt_tokens, p.answer_start, p.answer_end), (2, 1, 3))
            self.assertEqual((layer.scale, layer.window, layer.rope_theta, layer.softcap), (2, 2, 1e4, 5))
            layer = trace.prompts["2"].layers[1]
            self.assertEqual(layer.arrays, ("keys", "values", "queries", "column_sums", "attention_output"))
            np.testing.assert_array_equal(layer.array("column_sums", 1), sums[1])
            np.testing.assert_array_equal(layer.keys(1), arrays["keys"][1].astype(np.float32))
        text = run("info", self.path("t.h5"))
        for word in ("interleaved", "prompt x", "4 query, 2 kv; head size 3 (values 2)", "column sums to 4"):
            self.assertIn(word, text)
        own = text[text.index("prompt 2 (p)"):text.index("prompt 10 (p)")]  # what the other prompts do not have
        self.assertIn("column sums to 4", own)
        self.assertIn("tokens     5", own)

    def test_narrow_types_round_to_nearest_even(self):
        # bf16 has 8 bits of significand: 1 + 2^-8 lies halfway and is rounded to the even 1, 1 + 3 * 2^-8 to 1 + 2^-6;
        # a value slightly above the first halfway point is rounded up to 1 + 2^-7. f16 has 11 bits: 1 + 2^-11 is
        # rounded to 1.
        given = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 1 + 2**-11, -3.0, 0.0])
        for dtype, expected in (("bf16", [1, 1 + 2**-6, 1 + 2**-7, 1, -3, 0]),
                                ("f16", [*given[:2], 1 + 2**-8, 1, -3, 0])):
            self.write_small(header=header(dtype=dtype), queries=np.concatenate([given, np.zeros(18)]).reshape(4, 2, 3))
            with kvbench.Trace(self.path("t.h5")) as trace:
                np.testing.assert_array_equal(trace.prompts["0"].layers[1].queries().ravel()[:6], np.float32(expected))

    def test_equal_content_gives_equal_bytes(self):
        for name in ("a.h5", "b.h5"):
            self.write_small(name, header=header(created="x"))
            time.sleep(1.1)  # HDF5 stores times in whole seconds
        with open(self.path("a.h5"), "rb") as a, open(self.path("b.h5"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_all_or_nothing(self):
        with self.assertRaises(KeyboardInterrupt), kvbench.TraceWriter(self.path("t.h5"), header()) as out:
            small(out)
            self.assertEqual(os.listdir(self.folder), [f"t.h5.tmp.{socket.gethostname()}.{os.getpid()}"])
            raise KeyboardInterrupt
        self.assertEqual(os.listdir(self.folder), [])
        with self.refuses("no prompt"), kvbench.TraceWriter(self.path("t.h5"), header()):
            pass
        with self.refuses("no layers"), kvbench.TraceWriter(self.path("t.h5"), header()) as out:
            out.prompt("0", kvbench.PromptInfo(name="p", tokens=[1]))
        self.assertEqual(os.listdir(self.folder), [])

    def test_files_of_killed_processes_are_removed(self):
        """Those of the same output and host, whose process has ended."""
        program = ("import sys, kvbench\nout = kvbench.TraceWriter('t.h5', kvbench.Header(model='m', num_layers=1, "
                   "num_query_heads=1, num_kv_heads=1, head_dim=1, value_dim=1, rope_type='none'))\n"
                   "print(flush=True)\nsys.stdin.read()\n")
        with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              cwd=self.folder, env={**os.environ, "PYTHONPATH": str(PACKAGE)}) as killed:
            killed.stdout.readline()
            left = os.listdir(self.folder)
            self.write_small("t.h5")
            self.assertEqual(sorted(os.listdir(self.folder)), sorted(["t.h5", *left]))  # it runs
            killed.kill()
        others = [name.replace(*change) for name in left for change in (("t.h5", "s.h5"), (".tmp.", ".tmp.other."))]
        for name in others:
            self.write("", name)
        self.write_small("t.h5")
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(["t.h5", *others]))

    def test_what_was_not_committed_is_removed_with_a_warning(self):
        out = kvbench.TraceWriter(self.path("t.h5"), header())
        small(out)
        with self.assertWarnsRegex(RuntimeWarning, "t.h5: nothing was written"):
            out.close()
        self.assertEqual(os.listdir(self.folder), [])
        with self.refuses("finished already"):
            out.commit()
        out = kvbench.TraceWriter(self.path("t.h5"), header())
        small(out)
        with self.assertWarnsRegex(ResourceWarning, "t.h5: nothing was written"):
            del out
            gc.collect()
        self.assertEqual(os.listdir(self.folder), [])
        program = ("import os, kvbench\n"
                   "out = kvbench.TraceWriter('t.h5', kvbench.Header(model='m', num_layers=1, num_query_heads=1, "
                   "num_kv_heads=1, head_dim=1, value_dim=1, rope_type='none'))\n"
                   "if os.fork() == 0: raise SystemExit\n"
                   "os.wait()\nprint(os.listdir())\n")
        done = subprocess.run([sys.executable, "-W", "default", "-c", program], capture_output=True, text=True,
                              cwd=self.folder, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("t.h5.tmp.", done.stdout)  # a child that ends leaves it to its parent
        self.assertEqual(done.stderr.count("ResourceWarning: t.h5: nothing was written"), 1, done.stderr)
        self.assertEqual(os.listdir(self.folder), [])
        out = kvbench.TraceWriter(self.path("t.h5"), header())
        small(out)
        out.commit()
        out.close()
        self.assertEqual(os.listdir(self.folder), ["t.h5"])

    def test_traces_that_are_dropped_are_closed(self):
        self.write_small()
        for _ in range(3):
            self.assertEqual(kvbench.Trace(self.path("t.h5")).num_layers, 4)
        gc.collect()
        open_files = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
        self.assertNotIn(os.path.realpath(self.path("t.h5")), open_files)

    def test_a_layer_that_was_refused_is_not_there(self):
        """Where the caller goes on, a part of a layer is in no trace, and the layer can be written again."""
        with kvbench.TraceWriter(self.path("t.h5"), header()) as out:
            with self.refuses("values", "finite"):
                small(out, values=np.full((2, 5, 2), np.nan))
            info = kvbench.LayerInfo(scale=0.5, query_positions=[3, 4])
            arrays = {"keys": np.ones((2, 5, 3)), "values": np.ones((2, 5, 2)), "queries": np.ones((4, 2, 3))}
            out.layer("0", 2, info, **arrays)
            out.layer("0", 1, info, **arrays)
        with kvbench.Trace(self.path("t.h5")) as trace:
            self.assertEqual(sorted(trace.prompts["0"].layers), [1, 2])
        run("replay", self.path("t.h5"), "-m", "exact")

    def test_links_are_followed_and_modes_kept_and_devices_refused(self):
        with open(self.path("real.h5"), "w"):
            os.chmod(self.path("real.h5"), 0o640)
        os.symlink("real.h5", self.path("link.h5"))
        self.write_small("link.h5")
        self.assertTrue(os.path.islink(self.path("link.h5")))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("real.h5")).st_mode), 0o640)
        with kvbench.Trace(self.path("real.h5")) as trace:
            self.assertEqual(list(trace.prompts), ["0"])
        with self.refuses("a device"):
            kvbench.TraceWriter("/dev/null", header())

    def test_a_full_disk_is_an_error_and_leaves_nothing(self):
        """The limit takes effect while the arrays are written, or when HDF5 closes the file."""
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.write_small("whole.h5")
        size = os.path.getsize(self.path("whole.h5"))
        for limit in (10, size // 4, size // 2, size - 1):
            with self.assertRaisesRegex(OSError, "free some space.*t.h5"):
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
                try:
                    self.write_small()
                finally:
                    resource.setrlimit(resource.RLIMIT_FSIZE, before)
            self.assertEqual(os.listdir(self.folder), ["whole.h5"])
