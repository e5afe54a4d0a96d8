#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kvbench validate golden: the golden rows hold on every back end of this machine, and faults planted into them are
found."""
import csv
import hashlib
import json
import os
import pathlib
import re

from support import SAMPLE, CliTest, run, rows

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "python" / "kvbench" / "golden.csv"
FEW = "sink,uniform,clusterkv-repo"  # which differs between ref and cpu
BACKENDS = {"scalar": ["--isa", "scalar"], "avx2": ["--isa", "avx2"], "avx512": ["--isa", "avx512"],
            "ref": ["--device", "ref"]}


def golden_rows():
    """Those of the file; an empty cell of these columns means that of the row above."""
    table = rows(GOLDEN.read_text())
    for above, row in zip(table, table[1:]):
        row.update({name: row[name] or above[name] for name in (
            "trace", "sha256", "backends", "rtol", "atol", "ids_sha256", "ids")})
    return table


def available():
    return {name: flags for name, flags in BACKENDS.items()
            if "is not available" not in run("replay", SAMPLE, "-m", "sink", "--prompts", "9", *flags).stderr}


def digest_of(ids, group):
    """As docs/golden.md describes it."""
    lists = [ids_of(one) for one in ids.split("/")]
    digest = hashlib.sha256()
    for one in lists if len(lists) > 1 else lists * group:
        digest.update(b"".join(n.to_bytes(4, "little") for n in [len(one), *one]))
    return digest.hexdigest()[:16]


def ids_of(text):
    ids = []
    for part in text.split():
        distance, _, more = part.partition("+")
        first = (ids[-1] if ids else 0) + int(distance)
        ids += range(first, first + int(more or 0) + 1)
    return ids


class Golden(CliTest):
    def golden(self, name, change):
        """A copy of the golden rows of FEW after change(rows), a list of dicts."""
        kept = [row for row in golden_rows() if row["method"] in FEW.split(",") and not row["params"]]
        change(kept)
        path = self.path(name)
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, kept[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(kept)
        return path

    def verify(self, code, *flags, method=FEW):
        done = run("validate", "golden", SAMPLE, "-m", method, "--format", "table", *flags)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done.stdout

    def differs(self, change, *words):
        """Asserts that one row differs after this change of the golden ones, with these words, and returns the text."""
        text = self.verify(1, "--golden", self.golden("changed.csv", change))
        self.assertRegex(text, r"^1 of \d+ golden rows differ on \w+:\n")
        for word in words:
            self.assertIn(word, text)
        return text

    def refused(self, change, *words):
        path = self.golden("changed.csv", change)
        self.fails(2, path, *words, args=["validate", "golden", SAMPLE, "--golden", path, "-m", FEW])

    def test_every_back_end_of_this_machine(self):
        """All rows on the fast one; a few on the others, which tests/agreement compares with it on all methods.
        KVBENCH_GOLDEN=all: all rows on each."""
        back_ends = available()
        fast = [name for name in back_ends if name != "ref"][-1]
        whole = {fast} if os.environ.get("KVBENCH_GOLDEN") != "all" else set(back_ends)
        for name, backend in back_ends.items():
            flags = [] if name in whole and not os.environ.get("KVBENCH_SANITIZE") else ["-m", FEW]
            with self.subTest(backend=name):
                done = run("validate", "golden", SAMPLE, *flags, *backend, "--format", "table")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, rf"^All \d+ golden rows are the same on {name}\. The largest difference "
                                              "of a figure is [0-9.e-]+ of its tolerance \(.*\)\.\n$")

    def test_the_same_on_any_number_of_threads(self):
        flags = ["validate", "golden", SAMPLE, "-m", FEW, "--format", "csv"]
        one, three = (run(*flags, "--threads", n).stdout for n in (1, 3))
        self.assertEqual(one, three)

    def test_every_method_has_rows(self):
        table = run("methods", "--format", "csv").stdout
        self.assertEqual({row["method"] for row in rows(table)} - {row["method"] for row in golden_rows()},
                         {"compactor", "duo", "duo@kvpress"})  # which need more than the bundled trace

    def test_the_file(self):
        golden = golden_rows()
        self.assertLess(GOLDEN.stat().st_size, 1_000_000)
        self.assertEqual({row["sha256"] for row in golden},
                         {hashlib.sha256(pathlib.Path(SAMPLE).read_bytes()).hexdigest()[:16]})
        for row in golden:
            self.assertEqual(row["ids_sha256"], digest_of(row["ids"], len(row["entries"].split())))
        self.assertEqual({(row["protocol"], row["prompt"]) for row in golden},
                         {("decode", "0"), ("prefill", "1")})

    def test_another_id(self):
        def change(golden):
            self.assertEqual(golden[0]["ids"], "0+3 945+123")
            golden[0]["ids"] = "0+3 944 2+122"
            golden[0]["ids_sha256"] = digest_of(golden[0]["ids"], 3)

        self.differs(change, "query head 0 answers the last query by 128 entries: 948 in place of 947 (3 query heads "
                     "differ)")

    def test_rows_of_single_back_ends(self):
        def change(golden):
            golden.append({**golden[0], "backends": "scalar", "bytes_read": "1"})
            golden[0]["backends"] = golden[0]["backends"].replace("scalar ", "")

        path = self.golden("single.csv", change)
        self.assertIn("bytes_read is 32768, expected 1", self.verify(1, "--golden", path, "--isa", "scalar"))
        self.verify(0, "--golden", path, "--device", "ref")

    def test_files_that_contradict_themselves(self):
        self.refused(lambda golden: golden[0].update(ids="0+3 944 2+122"), ":2: column 'ids_sha256'",
                     "the digest of the ids")
        self.refused(lambda golden: golden[1].update(ids_sha256="0" * 64), ":3: column 'ids_sha256'")
        self.refused(lambda golden: golden[0].update(entries="128 128 127"), ":2: column 'entries' holds '128 128 127'")
        self.refused(lambda golden: golden[0].update(entries="128 128  128"), ":2: column 'entries'", "single blanks")
        self.refused(lambda golden: golden[0].update(ids="0-3"), ":2: column 'ids' holds '0-3'", "such as 0+3 4 2")
        self.refused(lambda golden: golden[0].update(ids="0/1"), ":2: column 'ids'", "each of the 3 query heads")
        self.refused(lambda golden: golden[0].update(rel_err="0.1 x 0.2"), ":2: column 'rel_err' holds 'x'")
        for name in ("rtol", "atol"):
            for value in ("-1e-5", "inf", "nan", "1", "1e9"):
                self.refused(lambda golden: golden[1].update({name: value}), f":3: column '{name}' holds '{value}'")
        many = {"ids": "0+1048575", "entries": "1048576 1048576 1048576", "ids_sha256": "0" * 64}
        self.refused(lambda golden: [row.update(many) for row in golden], ":2: column 'ids_sha256'")
        self.refused(lambda golden: golden[0].update(ids="0+1048576"), ":2: column 'ids'")
        self.refused(lambda golden: golden[1].update(sha256="0" * 64), ":3: column 'sha256'", "about one trace")
        for digest in ("", "d", "dba4f5391b8f2ea"):  # which begin that of every trace, or of one in sixteen
            self.refused(lambda golden: [row.update(sha256=digest) for row in golden], ":2: column 'sha256'",
                         "16 digits")
        self.refused(lambda golden: [row.pop("recall") for row in golden], "lacks the column 'recall'")

    def test_another_trace(self):
        self.fails(2, self.trace, "another trace", "smollm2-135m.h5", hashlib.sha256(
            pathlib.Path(self.trace).read_bytes()).hexdigest(), args=["validate", "golden", self.trace])

    def test_where_the_trace_is_found(self):
        few = ["-m", "sink", "--format", "table"]
        os.makedirs(self.path("clone", "traces"))
        os.symlink(SAMPLE, self.path("clone", "traces", "smollm2-135m.h5"))
        self.ok("validate", "golden", *few, cwd=self.path("clone"))

    def test_formats(self):
        header = GOLDEN.read_text().splitlines()[0].split(",")
        text = run("validate", "golden", SAMPLE, "-m", "sink", "--format", "csv").stdout
        found = rows(text)
        self.assertEqual(text.splitlines()[0].split(",")[:len(header)], header)
        self.assertEqual({row["outcome"] for row in found}, {"same"})
        self.assertEqual(found[0]["ids"], "0+3 945+123")
        self.assertTrue(all(0 <= float(row["deviation"]) <= 1 for row in found))
        listed = json.loads(run("validate", "golden", SAMPLE, "-m", "sink", "--format", "json").stdout)
        self.assertEqual([row["ids"] for row in listed], [row["ids"] for row in found])
        self.assertEqual(listed[0]["kv_head"], 0)
        out = self.path("rows.csv")
        done = run("validate", "golden", SAMPLE, "-m", "sink", "-o", out, "--summary")
        self.assertEqual(rows(pathlib.Path(out).read_text()), found)
        self.assertTrue(done.stdout.startswith("All 4 golden rows are the same on "))

    def test_a_port(self):
        self.assertIn("All 4 golden rows", self.verify(0, "--port", "sink[sinks=4]", method="sink"))
        text = self.verify(1, "--port", "sink[sinks=3]", method="sink")
        self.assertIn("4 of 4 golden rows differ", text)
        self.assertIn("sink at 128, decode, prompt 0, layer 2, kv head 0: query head 0 answers the last query "
                      "by 128 entries: 947 in place of 3 (3 query heads differ)", text)

    def test_writing(self):
        if available().keys() != BACKENDS.keys():
            self.skipTest("this processor lacks an instruction set")
        out = self.path("new.csv")
        done = self.succeeds("validate", "golden", SAMPLE, "-m", FEW, "--write", out)
        self.assertIn("golden rows; where back ends share one, the largest difference of a figure is ", done.stdout)
        same = self.golden("same.csv", lambda golden: None)
        self.assertEqual(
            re.findall(r"^  (.*): a row of its own for (.*)$", done.stdout, re.M),
            [("{method} at {budget}, {protocol}, prompt {prompt}, layer {layer}, kv head {kv_head}".format(**row),
              row["backends"]) for row in rows(pathlib.Path(same).read_text())
             if len(row["backends"].split()) < len(BACKENDS)])
        for flags in BACKENDS.values():
            self.verify(0, "--golden", out, *flags)
        self.assertEqual(self.golden_keys(out), self.golden_keys(GOLDEN), "other methods keep their rows")

    @staticmethod
    def golden_keys(path):
        return [tuple(row.values())[:15] for row in rows(pathlib.Path(path).read_text())]
