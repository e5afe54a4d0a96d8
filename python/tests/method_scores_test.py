# SPDX-License-Identifier: Apache-2.0
"""kvbench.method_scores(), and what scores:FILE.h5 keeps by them."""

import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import time
import warnings

from support import PACKAGE, SAMPLE, PackageTest, kvbench, run
import h5py
import numpy as np

LAYERS = (2, 8, 14, 20, 26)
SPINS = """
import sys, time
sys.path.insert(0, {0!r})
import kvbench
kvbench.__path__.append({1!r})
@kvbench.scorer
def slow(head):
    while True:
        pass
print("begin", flush=True)
try:
    kvbench.method_scores(sys.argv[1], slow)
except KeyboardInterrupt:
    print(time.monotonic())
print(len(kvbench.method_scores(sys.argv[1], "knorm", prompts=0)["0"]))
"""


@kvbench.scorer
def broken(head):
    return [1 / (head.layer - 14)] * head.tokens


@kvbench.scorer
def nested(head):
    return kvbench.method_scores(SAMPLE, "knorm")["0"][2][0]


def scores_of(method, **named):
    return kvbench.method_scores(SAMPLE, method, prompts=0, **named)


def best(scores, count):
    """Ties to the lower token."""
    return sorted(np.argsort(-scores, kind="stable")[:count].tolist())


@kvbench.scorer
def near(head):
    return 1e9 + np.sin(np.arange(head.tokens))


@kvbench.scorer
def apart(head):
    return np.sin(np.arange(head.tokens))


class MethodScores(PackageTest):
    def write(self, scores, trace=SAMPLE):
        kvbench.write_scores(self.path("s.h5"), scores, trace=trace)
        return "scores:" + self.path("s.h5")

    def kept(self, *methods, budgets=(3, 40, 300), layers=(14,), flags=()):
        """By layer and kv head of prompt 0: the tokens of the context that each method holds at each budget, of which
        the smaller ones are below what some methods always keep."""
        run("replay", SAMPLE, "--method", ",".join(methods), "--budget", ",".join(map(str, budgets)), "--prompts", 0,
            "--layers", ",".join(map(str, layers)), "--protocol", "prefill", "--raw", self.path("r.h5"),
            "--raw-outputs", "-o", self.path("rows.csv"), *flags)
        found = {}
        with kvbench.Raw(self.path("r.h5")) as raw:
            for head in raw.heads:
                ids = [np.hstack([table.ids.ravel() for table in head.entries(cell)[0]]) for cell in
                       range(len(raw.cells))]
                found[head.layer, head.kv_head] = [sorted(one[one < 1024].tolist()) for one in ids]
        return found

    def test_scores_that_float32_merges_are_told(self):
        with self.assertWarnsRegex(UserWarning, r"near\(\): scores that differ are equal in float32"):
            scores_of(near, layers=14)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scores_of(apart, layers=14)

    def test_a_file_keeps_what_the_method_keeps(self):
        """Every method of the registry with scores. pyramidkv has those of snapkv, and budgets by the depth of a
        layer, whatever the scores are."""
        with self.assertRaises(kvbench.Error) as refused:
            scores_of("adakv(h2o)")
        methods = str(refused.exception).split("adakv wraps ")[1].split(", ")
        methods.remove("pyramidkv")
        np.testing.assert_array_equal(scores_of("pyramidkv")["0"][14], scores_of("snapkv")["0"][14])
        for method in (*methods, "snapkv[window=16;kernel=1]", "knorm[sinks=2;recent=1]"):
            with self.subTest(method):
                for ids in self.kept(method, self.write(scores_of(method))).values():
                    self.assertEqual([len(one) for one in ids], [3, 40, 300] * 2)
                    self.assertEqual(ids[:3], ids[3:])

    def test_a_text_to_calibrate_on(self):
        text = f"{SAMPLE}:1"
        scores = kvbench.method_scores(SAMPLE, "triattention", prompts=["genesis", 2], layers=LAYERS, calibrate=text)
        found = self.kept(self.write(scores))
        self.assertEqual(found, self.kept("triattention", flags=["--calibrate", text]))
        self.assertNotEqual(found, self.kept("triattention"))

    def test_a_budget_over_the_model(self):
        """Heads keep their windows of 32, and beside them the best tokens of all layers."""
        scores = scores_of("snapkv")
        found = self.kept(self.write(scores) + "[scope=model]", budgets=[100], layers=LAYERS)
        inside = np.array([scores["0"][layer][:, :-32] for layer in LAYERS])
        won = (inside >= np.sort(inside.ravel())[-68 * 15]).sum((1, 2))
        self.assertGreater(np.ptp(won), 100)
        for layer, expected in zip(LAYERS, won):
            ids = [found[layer, head][0] for head in range(3)]
            self.assertEqual([one[-32:] for one in ids], [[*range(992, 1024)]] * 3)
            self.assertLessEqual(abs(sum(map(len, ids)) - 96 - expected), 3)  # rounded to tokens by layer
        self.assertEqual(sum(len(ids) for ids, in found.values()), 15 * 100)

    def released(self, layer, keys, queries, positions):
        """z-scores for a query head, as in WeianMao/triattention. Channels lie in pairs side by side."""
        turn = layer.rope_theta ** (-np.arange(32) / 32)
        key, query = (rows.astype(float).reshape(len(rows), 32, 2) @ (1, 1j) * np.exp(-1j * turn * at[:, None])
                      for rows, at in ((keys, np.arange(1024)), (queries, positions)))
        mean, size, scores = query.mean(0), np.abs(query).mean(0), np.zeros(1024)
        for token in range(1024):
            product = mean * key[token].conj()
            ahead = [(np.abs(product) * np.cos((1024 - token + 2 ** k) * turn + np.angle(product))).sum()
                     for k in range(17)]
            scores[token] = np.mean(ahead) + ((size - np.abs(mean)) * np.abs(key[token])).sum()
        return (scores - scores.mean()) / scores.std()

    def test_triattention_over_all_layers(self):
        """The example of docs/scores.md: a kv head keeps the same tokens in all layers, by the mean over them of the
        largest z-score of its query group."""
        mean = np.zeros((3, 1024))
        with kvbench.Trace(SAMPLE) as trace:
            for layer in trace.prompts["0"].layers.values():
                positions = np.array(layer.query_positions)
                seen = positions < 1024
                for head in range(3):
                    mean[head] += np.max([self.released(layer, layer.keys(head)[:1024], layer.queries(query)[seen],
                                                        positions[seen])
                                          for query in range(3 * head, 3 * head + 3)], axis=0)
        page = (PACKAGE.parent / "docs/scores.md").read_text()
        (example,) = re.findall(r"```python\n([^`]*method_scores.*?)```", page, re.S)
        exec(re.sub(r'"([\w-]+\.h5)"', lambda name: repr(SAMPLE if name[1] == "t.h5" else self.path(name[1])), example))
        found = self.kept("scores:" + self.path("all-layers.h5"), budgets=[256], layers=LAYERS)
        self.assertEqual(found, {(layer, head): [best(mean[head], 256)] for layer in LAYERS for head in range(3)})

    def test_what_is_refused(self):
        short = self.path("short.h5")
        run("synth", "-o", short, "--tokens", 256, "--prompt-tokens", 192, "--queries", 64)
        for trace, method, named, *words in (
                (SAMPLE, "snapvk", {}, "no method 'snapvk'"), (SAMPLE, ["knorm"], {}, "one method, not a list"),
                (SAMPLE, 3, {}, "no method"), (SAMPLE, "adakv(snapkv)", {}, "does not rank"),
                (SAMPLE, "snapkv[per=query_head]", {}, "layer 2 of prompt '0'", "per=kv_head"),
                (SAMPLE, "keydiff[block=128]", {}, "layer 2 of prompt '0'", "block=0"),
                (SAMPLE, "snapkv[window=90]", {}, "layer 2 of prompt '0'", "934 .. 1023"),
                (SAMPLE, broken, {}, "broken: layer 14 of prompt '0'", "division by zero"),
                (SAMPLE, nested, {}, "is called by a method"),
                (SAMPLE, "knorm", {"prompts": "exodus"}, "no prompt 'exodus'", "genesis"),
                (SAMPLE, "knorm", {"layers": [2, 3]}, "no layer 3", "2, 8, 14"),
                (SAMPLE, "knorm", {"layers": "last"}, "'layers'", "integer", "text 'last'"),
                (SAMPLE, "knorm", {"layers": [2, 2**63]}, "'layers'", "integer of 64 bits"),
                (SAMPLE, "knorm", {"calibrate": SAMPLE}, "no method that is replayed calibrates"),
                (self.path("none.h5"), "knorm", {}, "none.h5"), (__file__, "knorm", {}, "not an HDF5 file"),
                (short, "snapkv", {}, "snapkv: layer 0 of prompt '0': there are no queries inside the context")):
            with self.subTest(method, named=named), self.refuses(*words):
                kvbench.method_scores(trace, method, **named)

    def test_layers_with_a_sliding_window(self):
        trace = self.synth("t.h5")
        with h5py.File(trace, "r+") as file:
            file["prompts/0/layers/1"].attrs["window"] = np.int64(64)
        found = kvbench.method_scores(trace, "snapkv")
        self.assertEqual([*found["0"]], [0])
        self.write(found, trace)  # which needs no others
        for layers in ([0, 1], 1):
            with self.refuses("snapkv: layer 1 of prompt '0'", "sliding window of 64 tokens"):
                kvbench.method_scores(trace, "snapkv", layers=layers)

    def test_two_threads_and_ctrl_c(self):
        names = ("knorm", "snapkv")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for name, found in zip(names, pool.map(scores_of, names)):
                np.testing.assert_array_equal(found["0"][8], scores_of(name, layers=8)["0"][8])
        process = subprocess.Popen([sys.executable, "-c", SPINS.format(str(PACKAGE), os.environ["KVBENCH_EXTENSION"]),
                                    SAMPLE], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "begin\n")
        time.sleep(2)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        interrupted, layers = process.communicate(timeout=60)[0].split()
        self.assertLess(float(interrupted) - begin, 1.5)
        self.assertEqual(layers, "5")
