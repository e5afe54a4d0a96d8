# SPDX-License-Identifier: Apache-2.0
"""kvbench.entries(): entries that were computed elsewhere, as a method."""

import environment

environment.use(["h5py", "numpy", "threadpoolctl"], "KVBENCH_PYTHON", "venv", "scripts/fetch-model --python")
from support import PackageTest, kvbench  # noqa: E402
import numpy as np  # noqa: E402

# Recall is left out: it counts the tokens that a method may drop, which entries do not state.
COLUMNS = ("status", "budget_tokens", "kept_tokens", "total_bytes", "rel_err_mean", "rel_err_max", "log_z_err_mean")
PREFILL = {"protocol": "prefill", "rows": "trace", "no_times": True}


def of_all(made, layers=(0, 1)):
    """The same entries for every kv head of the synthetic trace."""
    return {("0", layer, kv_head): made for layer in layers for kv_head in (0, 1)}


class Entries(PackageTest):
    """On a trace of two layers, each with 2 kv heads of 2 query heads, d = 16, dv = 12, and 192 tokens of context."""

    def setUp(self):
        super().setUp()
        self.trace = self.synth("t.h5")

    def row(self, method, budget=48, **flags):
        (row,) = kvbench.replay(self.trace, method, budget, **{**PREFILL, **flags})
        return row

    def same(self, ours, theirs, columns=COLUMNS):
        """Errors agree as far as sums in another order do."""
        for column in columns:
            if isinstance(theirs[column], float):
                self.assertAlmostEqual(ours[column], theirs[column], delta=1e-5 * abs(theirs[column]), msg=column)
            else:
                self.assertEqual(ours[column], theirs[column], f"{column}: {ours['reason']}")

    def test_tokens_of_sink_give_its_row(self):
        ids = [0, 1, 2, 3, *range(148, 192)]
        sink = self.row("sink[reposition=false]")
        for made in (ids, np.array(ids), [ids, ids], kvbench.Kept(ids), [kvbench.Table(ids=ids)]):
            with self.subTest(type(made)):
                self.same(self.row(kvbench.entries(of_all(made))), sink, COLUMNS[:3] + COLUMNS[4:])
        self.same(self.row(kvbench.entries(of_all(ids))), sink)
        decoded = {"protocol": "decode", "decoded": "keep"}
        self.same(self.row(kvbench.entries(of_all(ids)), **decoded), self.row("sink[reposition=false]", **decoded))

    def test_another_choice_scores_differently(self):
        sink, ours = self.row("sink"), self.row(kvbench.entries(of_all(np.arange(0, 192, 4))))
        self.assertEqual(ours["kept_tokens"], 48)
        self.assertGreater(abs(ours["rel_err_mean"] / sink["rel_err_mean"] - 1), 0.01)

    def test_entries_of_raw_results_score_as_the_method_that_wrote_them(self):
        """Weights, keys and values of their own, and entries per query head, through arrays and through a file."""
        methods, flags = ("snapkv[per=query_head]", "subgen", "chelsea"), {**PREFILL, "seeds": 1}
        own = kvbench.replay(self.trace, list(methods), 48, raw=self.path("raw.h5"), raw_outputs=True, **flags)
        kinds, files = set(), 0
        for cell, row in enumerate(own):
            with kvbench.Raw(self.path("raw.h5")) as raw:
                tables = {(head.prompt, head.layer, head.kv_head): head.entries(cell)[0] for head in raw.heads}
            parts = [(table, (*key, name)) for key, listed in tables.items() for table in listed
                     for name in ("weight_num", "weight_den", "own_keys", "own_values")]
            kinds |= {name[-1] for table, name in parts if getattr(table, name[-1]) is not None}
            given_as = [tables]
            if all(len(listed) == 1 for listed in tables.values()):  # a file holds one table of a head
                arrays = {"/".join(map(str, key)): listed[0].ids for key, listed in tables.items()}
                arrays |= {"/".join(map(str, name)): getattr(table, name[-1]) for table, name in parts
                           if getattr(table, name[-1]) is not None}
                np.savez(self.path("kept.npz"), trace_sha256=raw.trace_sha256, **arrays)
                given_as.append(self.path("kept.npz"))
                files += 1
            for given in given_as:
                with self.subTest(row["method"], given=type(given)):
                    ours = self.row(kvbench.entries(given, trace=self.trace), seeds=1)
                    self.same(ours, row, ("status", "kept_tokens", *COLUMNS[4:]))
        self.assertEqual((len(kinds), files), (4, 2))

    def test_a_file_of_python_names_entries_for_the_command(self):
        np.savez(self.path("kept.npz"), **{"/".join(map(str, key)): ids for key, ids in of_all(np.arange(48)).items()})
        with open(self.path("mine.py"), "w") as file:
            file.write(f"import kvbench\nmine = kvbench.entries({self.path('kept.npz')!r})\n")
        named = self.row(f"{self.path('mine.py')}:mine")
        self.same(named, self.row(kvbench.entries(of_all(np.arange(48)))))
        self.assertEqual(named["params"], f"file={self.path('kept.npz')}")  # whose digest is in the key of stored cells
        with self.refuses("kept.npz", "name another file"):
            kvbench.replay(self.trace, f"{self.path('mine.py')}:mine", 48, output=self.path("kept.npz"))

    def test_budgets(self):
        """Heads of a layer may share what they hold; a layer above its budget is infeasible."""
        uneven = kvbench.entries({("0", layer, head): np.arange(24 + 48 * head) for layer in (0, 1) for head in (0, 1)})
        self.assertEqual([self.row(uneven, budget)["status"] for budget in ("25%", "25%mem", "24%")],
                         ["ok", "ok", "infeasible"])
        self.assertIn("96 entries are given for 2 kv heads of the layer; a budget of 46 tokens allows 92",
                      self.row(uneven, "24%")["reason"])
        self.assertIn("costs at least 25 % of the full cache", self.row(uneven, "24%mem")["reason"])

    def test_several_in_one_replay(self):
        one, other = (kvbench.entries(of_all(np.arange(n)), name=name) for n, name in ((8, "one"), (16, "other")))
        rows = kvbench.replay(self.trace, [one, other, "sink"], 48, **PREFILL)
        self.assertEqual([(row["method"], row["kept_tokens"]) for row in rows],
                         [("py:one", 8), ("py:other", 16), ("sink", 48)])

    def test_heads_without_entries_are_skipped(self):
        one = kvbench.entries(of_all([0, 1], layers=[1]))
        self.assertEqual(self.row(one)["layers"], 1)
        row = self.row(one, layers=0)
        self.assertEqual((row["status"], row["reason"]),
                         ("skipped", "there are no entries for prompt '0', layer 0, kv head 0"))
        self.assertEqual(self.row(one, protect=(4, 4))["status"], "skipped")

    def test_another_trace_is_refused(self):
        other = self.synth("other.h5", "--seed", 1)
        with kvbench.Trace(self.trace) as trace:
            digest, bound = trace.sha256, kvbench.entries(of_all([0, 1]), trace=trace)
        self.assertEqual(self.row(bound)["status"], "ok")
        with self.refuses("py:entries", digest, "other.h5", "on its own trace"):
            kvbench.replay(other, bound, 48)
        np.savez(self.path("kept.npz"), trace_sha256=digest, **{"0/0/0": [0, 1]})
        with self.refuses("py:entries", digest, "other.h5"):
            kvbench.replay(other, kvbench.entries(self.path("kept.npz")), 48)
        with self.refuses("kept.npz", digest, "other.h5"):
            kvbench.entries(self.path("kept.npz"), trace=other)

    def test_entries_that_do_not_fit(self):
        """Refused at once where the trace is named, else in the reason of the row: sentences that name the head."""
        ids, table = np.arange(6), kvbench.Table
        for words, made in ((["no token 256 among 256"], [0, 256]),
                            (["no token -2"], [-2]),
                            (["integers"], [0.5]),
                            (["ids", r"\[3, 2\]", r"\[2, width\]"], ids.reshape(3, 2)),
                            (["token 3 answers a query twice"], [3, 1, 3]),
                            (["token 4"], [[0, 1], [4, 4]]),
                            (["token 5", "twice"], [table(ids=[1, 5]), table(ids=[5])]),
                            (["token 3", "twice"], table(ids=[3, 3], weight_den=[0, 1])),
                            (["weight_den", r"\[5\]", r"\[1, 6\]"], table(ids=ids, weight_den=np.ones(5))),
                            (["own_values", r"\[1, 6, 12\]"], table(ids=ids, own_values=np.ones((6, 16)))),
                            (["own_keys", "finite"], table(ids=ids, own_keys=np.full((6, 16), np.inf))),
                            (["per_query"], table(ids=ids, per_query=True)),
                            ([], [[0, 1], [2]]), ([], "abc"), ([], None)):
            heads = {**of_all([0, 1]), ("0", 1, 1): made}
            with self.subTest(made=made):
                with self.refuses("entries", "prompt '0', layer 1, kv head 1", *words):
                    kvbench.entries(heads, trace=self.trace)
                row = self.row(kvbench.entries(heads), layers=1)
                self.assertEqual(row["status"], "failed")
                self.assertRegex(row["reason"], "entries.*prompt '0', layer 1, kv head 1")
        self.assertIn("no token 200 among 192", self.row(kvbench.entries(of_all([200])), layers=1)["reason"])
        twice = table(ids=[3, 3, -1, -1], weight_num=[1, 0, 1, 1], weight_den=[0, 1, 1, 1])  # in one sum each
        self.assertEqual(self.row(kvbench.entries(of_all(twice), trace=self.trace))["status"], "ok")

    def test_arguments_that_are_no_entries(self):
        np.savez(self.path("name.npz"), **{"0/0": [1]})
        np.savez(self.path("ids.npz"), **{"0/0/1/weight_num": [1]})
        np.savez(self.path("zeros.npz"), **{"0/0/1": [1], "0/00/1": [2]})
        np.save(self.path("array.npy"), np.arange(3))
        self.write("no arrays", "text.npz")
        for words, given, named in ((["dict", "path"], [1, 2], {}), (["no entries"], {}, {}),
                                    (["key", "prompt, layer, kv head"], {(0, 1): [1]}, {}),
                                    (["key"], {("0", 1.5, 1): [1]}, {}),
                                    (["prompt '0', layer 0, kv head 1", "twice"], {("0", 0, 1): [1], (0, 0, 1): [2]},
                                     {}),
                                    (["zeros.npz", "'0/00/1'"], self.path("zeros.npz"), {}),
                                    (["name of a class"], of_all([0]), {"name": "a b"}),
                                    (["layer 2, kv head 0", "t.h5", "no such head"], {("0", 2, 0): [0]},
                                     {"trace": self.trace}),
                                    (["none.npz"], self.path("none.npz"), {}), ([self.folder], self.folder, {}),
                                    (["text.npz", "savez"], self.path("text.npz"), {}),
                                    (["array.npy", "savez"], self.path("array.npy"), {}),
                                    (["name.npz", "'0/0'", "PROMPT/LAYER/KV_HEAD"], self.path("name.npz"), {}),
                                    (["ids.npz", "layer 0, kv head 1"], self.path("ids.npz"), {})):
            with self.subTest(words=words), self.refuses(*words):
                kvbench.entries(given, **named)
