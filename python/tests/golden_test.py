# SPDX-License-Identifier: Apache-2.0
"""kvbench.golden(): rows as arrays, against raw results and NumPy; the code of docs/golden.md; with the extension
kvbench.verify_golden() of methods in Python."""
import hashlib
import os
import pathlib
import re
import sys
import unittest

from support import PACKAGE, SAMPLE, PackageTest, kvbench, run

import numpy as np

PAGE = PACKAGE.parent / "docs" / "golden.md"
METHODS = {"h2o": "", "snapkv": "per=query_head", "uniform": "", "quest": "", "kmeans": "", "kivi4": ""}


def rows_of(method, params="", **where):
    return [row for row in kvbench.golden() if (row.method, row.params) == (method, params)
            and all(getattr(row, name) == value for name, value in where.items())]


def blocks_of_page():
    """The Python blocks of docs/golden.md."""
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


@unittest.skipIf(os.environ.get("KVBENCH_EXTENSION"), "they need no extension: python_golden")
class Rows(PackageTest):
    def test_all_rows(self):
        rows = kvbench.golden()
        self.assertGreater(len(rows), 250)
        digest = hashlib.sha256(pathlib.Path(SAMPLE).read_bytes()).hexdigest()
        self.assertEqual({row.sha256 for row in rows}, {digest[:16]})
        for row in rows:
            self.assertEqual(row.query_heads.tolist(), [3 * row.kv_head + g for g in range(3)])
            self.assertEqual([ids.dtype for ids in row.ids], [np.int32] * 3)
            for figures in (row.weight_num, row.weight_den, row.rel_err, row.rel_err_last, row.recall):
                self.assertTrue(figures is None or figures.shape == (3,))
            self.assertTrue(set(row.backends) <= {"ref", "scalar", "avx2", "avx512"})
        self.assertEqual(repr(rows_of("snapkv", "per=query_head")[0]),
                         "<GoldenRow snapkv[per=query_head] at 128, decode, prompt 0, layer 2, kv head 0>")

    def test_rows_are_those_of_a_replay(self):
        """Ids, weights and figures, from the file of raw results, which the program writes by other code."""
        names = ",".join(f"{method}[{params}]" if params else method for method, params in METHODS.items())
        for protocol, prompt, layer in (("decode", 0, 2), ("prefill", 1, 14)):
            path = self.path(f"{protocol}.h5")
            run("replay", SAMPLE, "-m", names, "-b", "128,25%mem,40%read,60%mem", "--prompts", prompt, "--layers",
                layer, "--protocol", protocol, "--seeds", 1, "--raw", path, "--raw-outputs", "-o", os.devnull)
            with kvbench.Raw(path) as raw:
                for cell, of in enumerate(raw.cells):
                    for row in rows_of(of.method, of.params, budget=of.budget, layer=layer):
                        self.compare(row, raw.head(prompt, layer, row.kv_head), cell)

    def compare(self, row, head, cell):
        tables, positions = head.entries(cell)
        ids, weights = [], np.zeros((2, 3))
        for g in range(3):
            of_head = []
            for table in tables:
                rows = np.asarray(table.ids).reshape((3 if table.per_head else 1,
                                                      len(positions) if table.per_query else 1, -1))
                at = (g if table.per_head else 0, -1)
                of_head.append(rows[at])
                used = rows[at] >= 0
                for sums, values in zip(weights, (table.weight_num, table.weight_den)):
                    sums[g] += np.ones(rows.shape)[at][used].sum() if values is None else \
                        np.asarray(values, float).reshape(rows.shape)[at][used].sum()
            ids.append(np.concatenate(of_head))
        found = {"budget_tokens": head.budget_tokens(cell), "rel_err": head.metric("rel_err", cell).mean(1),
                 "rel_err_last": head.metric("rel_err", cell)[:, -1]}
        if row.weight_num is not None:
            found.update(weight_num=weights[0], weight_den=weights[1])
        if row.recall is not None:
            found.update(recall=head.metric("recall", cell).mean(1))
        self.assertEqual(row.differences(ids=ids, **found), [], row)

    def test_code_of_the_page(self):
        digest, snapkv = blocks_of_page()
        names = {}
        exec(digest, names)
        row = rows_of("snapkv", "per=query_head")[0]
        self.assertEqual(names["digest"](row.ids), row.ids_sha256)
        self.assertIn('"traces/smollm2-135m.h5"', snapkv)
        exec(snapkv.replace('"traces/smollm2-135m.h5"', repr(SAMPLE)), names)
        with self.assertRaises(AssertionError):   # another width of pooling
            exec(snapkv.replace('"traces/smollm2-135m.h5"', repr(SAMPLE)).replace("kernel=7", "kernel=5"), names)

    def test_differences(self):
        row = rows_of("uniform")[0]
        same = {name: getattr(row, name) for name in ("ids", "weight_num", "rel_err", "rel_err_last", "recall",
                                                      "budget_tokens", "total_bytes", "bytes_read")}
        self.assertEqual(row.differences(**same), [])
        self.assertEqual(row.differences(rel_err=row.rel_err * (1 + 5e-6)), [])
        self.assertEqual(row.differences(ids=np.append(row.ids[0][::-1], -1)), [])   # one list, in another order
        other = [ids.copy() for ids in row.ids]
        added = next(id for id in range(1024) if id not in other[1])
        lost, other[1][0] = other[1][0], added
        self.assertEqual(row.differences(ids=other), [f"query head 1 answers the last query by {len(other[1])} "
                                                      f"entries: {added} in place of {lost}"])
        self.assertEqual(row.differences(ids=[*row.ids[:2], row.ids[2][1:]]),
                         [f"query head 2 answers the last query by {len(row.ids[2]) - 1} entries, expected "
                          f"{len(row.ids[2])}: none in place of {row.ids[2][0]}"])
        self.assertEqual(row.differences(total_bytes=1), [f"total_bytes is 1, expected {row.total_bytes}"])
        self.assertRegex(*row.differences(rel_err=row.rel_err * [1, 1.001, 1]), "^rel_err of query head 1 is .*, expec")
        self.assertEqual(len(row.differences(weight_num=np.nan)), 3)
        self.assertEqual(len(rows_of("sink")[0].differences(weight_num=1)), 1)
        with self.refuses("seed is not compared", "rel_err_last"):
            row.differences(seed=1)
        with self.refuses("2 lists", "3 query heads"):
            row.differences(ids=row.ids[:2])

    def test_other_files(self):
        text = (PACKAGE / "kvbench" / "golden.csv").read_text()
        header, first, *_ = text.splitlines(keepends=True)
        path = pathlib.Path(self.path("golden.csv"))
        path.write_text(header + first)
        row, = kvbench.golden(path)
        self.assertEqual(row.method, "exact")
        for old, new, words in (("0+1071", "0+1070", ["row 2", "edited"]), ("0+1071", "a-b", ["row 2", "write"]),
                                (",decode,0,2,", ",decode,0,x,", ["row 2", "'x'"]),
                                (row.ids_sha256, "0" * 16, ["row 2", "edited"]),
                                *(("1e-05,5e-06", numbers, ["row 2", "tolerance"])
                                  for numbers in ("-1,5e-06", "1e-05,inf", "nan,0", "1,0", "1e-05,-0.1")),
                                ("0+1071", "0+999999999999", ["row 2", "ids"]),
                                 ("0+1071", "/".join(["0+1048575"] * 99), ["row 2", "ids"]),
                                ("0+1071", "1" * 5000, ["row 2"]), ("1072 1072 1072", "", ["row 2", "entries"]),
                                ("1072 1072 1072", "9" * 30, ["row 2"])):
            path.write_text(header + first.replace(old, new))
            with self.refuses(str(path), *words):
                kvbench.golden(path)
        path.write_text("method,budget\nsink,128\n")
        with self.refuses("has no column 'trace' and", "not a table of golden rows"):
            kvbench.golden(path)
        with self.refuses("nowhere.csv"):
            kvbench.golden(self.path("nowhere.csv"))

    def test_without_the_program(self):
        with self.refuses("pip install .", "clone"):
            kvbench.verify_golden(SAMPLE)


@unittest.skipUnless(os.environ.get("KVBENCH_EXTENSION"), "needs kvbench._core")
class Ports(PackageTest):
    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, str(PACKAGE / "tests" / "methods"))
        import numpy_methods
        cls.methods = numpy_methods

    def test_methods_of_the_program(self):
        rows = kvbench.verify_golden(SAMPLE, ["sink", "snapkv[per=query_head]"], isa="scalar")
        self.assertEqual([(row["outcome"], row["backend"]) for row in rows], [("same", "scalar")] * 8)
        with kvbench.Trace(SAMPLE) as trace:
            self.assertEqual(len(kvbench.verify_golden(trace, "sink")), 4)

    def test_a_port_in_python(self):
        for port in (self.methods.snapkv, f"{self.methods.__file__}:snapkv"):
            self.assertEqual({row["outcome"] for row in kvbench.verify_golden(SAMPLE, "snapkv", port=port)},
                             {"same"})
        other = kvbench.verify_golden(SAMPLE, "snapkv", port=self.methods.snapkv(window=8))
        self.assertEqual({row["outcome"] for row in other}, {"differs"})
        self.assertIn("answers the last query by", other[0]["difference"])

    def test_a_port_that_does_not_declare_what_it_always_keeps(self):
        rows = kvbench.verify_golden(SAMPLE, "h2o", port=self.methods.H2O)
        self.assertEqual({row["outcome"] for row in rows}, {"same"})
        other = kvbench.verify_golden(SAMPLE, "h2o", port=self.methods.H2O(heavy=0.49))
        self.assertEqual({row["outcome"] for row in other}, {"differs"})
