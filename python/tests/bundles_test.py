# SPDX-License-Identifier: Apache-2.0
"""kvbench bundle and kvbench verify: what is recomputed and found, and archives that someone made with bad intent."""
import contextlib
import csv
import io
import json
import os
import pathlib
import shutil
import unittest
import warnings
import zipfile
from unittest import mock

from support import KVBENCH, SAMPLE, PackageTest, replaced, run
import kvbench
from kvbench.bundles import archive, bundle, command, inputs, recompute, tables, verify

PROGRAMS = os.path.dirname(os.path.abspath(KVBENCH))
MANIFEST = "manifest.json"
KEPT = pathlib.Path(__file__).resolve().parents[2] / "results" / "smollm2-answer.kvb.zip"


def repacked(source, target, change=lambda name, data: data, names=lambda name: name, **info):
    """The archive with other contents, names or attributes of its members."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            member = zipfile.ZipInfo(names(name), (1980, 1, 1, 0, 0, 0))
            member.external_attr = 0o100644 << 16
            for attribute, value in info.items():
                setattr(member, attribute, value)
            new.writestr(member, change(name, old.read(name)))
    return target


class BundlesTest(PackageTest):
    made = {}  # bytes of the trace, and of tables by their flags

    def setUp(self):
        super().setUp()
        self.trace = self.once("t.h5", lambda: self.synth("t.h5"), "t.h5")
        self.out = self.path("b.kvb.zip")
        clean = mock.patch.object(recompute, "DIRTY", "-changed")  # whatever the build is
        clean.start()
        self.addCleanup(clean.stop)

    def once(self, key, make, name):
        """The file that make() has written in one of the tests."""
        if key not in self.made:
            make()
            self.made[key] = pathlib.Path(self.path(name)).read_bytes()
        pathlib.Path(self.path(name)).write_bytes(self.made[key])
        return self.path(name)

    def table(self, name="run.csv", *flags):
        words = ["-m", "h2o,snapkv[window=8],random,kivi4", "-b", "25%mem,50%mem", "--rows", "layer"]
        words = ["-q", *replaced(words, flags), "-o", self.path(name)]
        return self.once((name, *flags), lambda: run("replay", self.trace, *words), name)

    def rewritten(self, path, change):
        """The CSV after change(row) of each row."""
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            change(row)
        with open(path, "w", newline="") as file:
            table = csv.DictWriter(file, rows[0], lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
        return path

    def call(self, main, code, *words):
        """What a program prints, on both streams, which ends with this exit code."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            found = main([*map(str, words)])
        self.assertEqual(found, code, out.getvalue())
        return out.getvalue()

    def bundle(self, *words, code=0):
        return self.call(command.bundle_main, code, *words, "-o", self.out, "--programs", PROGRAMS)

    def verify(self, *words, code=0, path=None):
        return self.call(command.verify_main, code, path or self.out, "--programs", PROGRAMS, *words)


class Honest(BundlesTest):
    def test_every_cell_has_the_bytes_of_the_whole_run(self):
        self.bundle(self.table())
        found = self.verify("--sample", 1000)
        cells = 4 * 3  # methods; rows over layers, and of each of two
        self.assertIn(f"Verified: {cells} cells recomputed, {cells} with the same bytes", found)
        self.assertNotIn("not drawn", found)
        self.assertIn("Not checked:\n  times: compress_s, attend_s, exact_s.\n  columns that compare rows", found)

    def test_a_whole_run_has_the_columns_that_compare_too(self):
        self.bundle(self.table())
        found = self.verify("--whole")
        self.assertIn("Verified: 1 cell recomputed, 1 with the same bytes", found)
        self.assertNotIn("columns that compare", found)
        table = self.rewritten(self.path("run.csv"), lambda row: row.update(best="kivi4[bits=1]"))
        self.bundle(table)
        self.verify("--sample", 1000)
        self.assertIn("best at", self.verify("--whole", code=1))

    def test_finer_rows_and_flags_of_the_run(self):
        flags = ["--seeds", "3,5", "--protect", "4,8", "--layers", 1, "--kv-dtype", "f32"]
        for grain in ("trace", "head", "query"):
            self.bundle(self.table(f"{grain}.csv", *flags, "--rows", grain, "--isa", "scalar"), *flags)
            self.assertIn("0 (", self.verify("--sample", 30).splitlines()[1])
        flags = ["--protocol", "prefill", "--window", 40]
        self.bundle(self.table("p.csv", *flags), "--window", 40)
        self.verify("--sample", 30)

    def test_flags_that_are_missing_are_found_before_a_bundle_is_written(self):
        for flags in (["--seeds", 2], ["--protect", "8,8"], ["--kv-dtype", "f32"]):
            with self.subTest(flags):
                found = self.bundle(self.table("run.csv", *flags), code=1)
                self.assertIn("Did the run have flags that are missing here", found)
                self.assertFalse(os.path.exists(self.out))
                self.bundle(self.path("run.csv"), *flags)
                os.remove(self.out)

    def test_equal_tables_give_equal_bytes_whenever_and_wherever(self):
        table = self.table()
        self.bundle(table)
        first = pathlib.Path(self.out).read_bytes()
        os.utime(table, (0, 0))
        moved = self.path("other")
        os.mkdir(moved)
        shutil.move(table, moved)
        self.bundle(os.path.join(moved, "run.csv"), "--input", self.trace, "--sample", 0)
        self.assertEqual(pathlib.Path(self.out).read_bytes(), first)
        self.assertEqual([name for name in os.listdir(self.folder) if ".tmp." in name], [])

    def test_the_draw_follows_from_digest_and_seed(self):
        self.bundle(self.table())
        read = bundle.read(self.out)
        one, three = (verify.drawn(read.cells, count, read.digest, "") for count in (1, 3))
        self.assertEqual(one, three[:1])
        others = [verify.drawn(read.cells, 1, read.digest, str(seed))[0] for seed in range(200)]
        results = {cell.id for cell in read.cells if "ok" in [row["status"] for row in cell.rows]}
        self.assertEqual({cell.id for cell in others}, results)  # before the cells of kivi4, which has none
        self.assertEqual(len(results), 9)
        self.assertNotEqual(verify.drawn(read.cells, 20, "0" * 64, ""), verify.drawn(read.cells, 20, read.digest, ""))

    def test_several_tables_and_runs_of_a_sweep(self):
        with open(self.path("s.toml"), "w") as file:
            file.write(f'[defaults]\ntraces = ["{self.trace}"]\nbudgets = ["25%", 64]\nmethods = ["h2o", "snapkv"]\n'
                       'protocol = ["decode", "prefill"]\n[[run]]\nname = "a"\n[[run]]\nname = "b"\n'
                       'methods = ["sink"]\n')
        run("sweep", self.path("s.toml"), "-q", "-o", self.path("s.csv"))
        said = self.bundle(self.path("s.csv"), self.table())
        self.assertIn("rows/2.csv, run.csv", said)
        self.verify("--sample", 100)
        self.assertIn("Verified: 5 cells", self.verify("--whole"))

    def test_a_plan_is_found_by_its_digest(self):
        plan, probed = self.path("mine.toml"), self.synth("p.h5", "--probes", 2)
        run("allocate", probed, "--menu", "h2o,int8", "-b", "70%mem", "-q", "-o", plan)
        table = self.path("p.csv")
        run("replay", probed, "-m", f"plan:{plan},h2o", "-b", "70%mem", "--rows", "trace", "-q", "-o", table)
        self.bundle(table)
        os.rename(plan, self.path("other, name.toml"))
        self.assertIn(f"1 cell: plan {plan} (SHA-256", self.verify())
        found = self.verify("--input", self.path("other, name.toml"), "--sample", 9)
        self.assertIn("2 with the same bytes", found)
        self.assertIn("a method of a file, a plan among them", self.verify("--whole", code=4))

    def test_the_bundles_of_this_repository(self):
        """A cell of each. Without the model that the rows are of, that is what is said."""
        models = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "kvbench/model"
        inputs = [word for path in (SAMPLE, KEPT.parents[1] / "LICENSE", models) if os.path.exists(path)
                  for word in ("--input", path)]
        for path in KEPT.parent.glob("*.kvb.zip"):
            of_trace = {one.kind for one in bundle.read(path).inputs} == {"trace"}
            can = of_trace or (models.exists() and os.path.exists(os.path.join(PROGRAMS, "kveval")))
            with self.subTest(path.name):
                found = self.verify(*inputs, "--sample", 1, path=path, code=0 if can else 4)
                self.assertIn("Verified: 1 cell recomputed" if can else "Not verified", found)
                self.assertLess(path.stat().st_size, 30_000)


class Faults(BundlesTest):
    def test_a_row_that_was_changed_before_bundling(self):
        def change(row):
            if row["method"] == "h2o" and row["layer"] == "1":
                row["rel_err_mean"] = repr(float(row["rel_err_mean"]) * 0.999)
        self.bundle(self.rewritten(self.table(), change), "--sample", 0)
        found = self.verify("--sample", 1000, code=1)
        self.assertRegex(found, r"DIFFERS +h2o at .*layer 1")
        self.assertRegex(found, "rel_err_mean at .* and comes out as")
        self.assertIn("of 12 drawn cells 1 not as in the bundle", found)

    def test_rows_and_columns_that_do_not_come_out(self):
        def other(row):
            row["seed"] = {"all": "7"}.get(row["seed"], row["seed"])
        self.bundle(self.rewritten(self.table(), other), "--sample", 0)
        self.assertIn("of its rows do not come out", self.verify("--sample", 1000, code=1))
        self.bundle(self.rewritten(self.table(), lambda row: row.update(kl_mine="0")), "--sample", 0)
        self.assertIn("columns that do not come out: kl_mine", self.verify(code=1))
        lines = pathlib.Path(self.table()).read_text().splitlines(True)
        self.write("".join([*lines, lines[1]]), "run.csv")
        self.bundle(self.path("run.csv"), "--sample", 0)
        self.assertIn("two of its rows are about the same", self.verify("--sample", 1000, code=1))

    def test_what_was_changed_inside_the_archive(self):
        self.bundle(self.table())
        changed = self.path("c.kvb.zip")
        for name, old, new, says in (("rows/1.csv", b"h2o", b"tova", "changed after bundling"),
                                     (MANIFEST, b'"settings": {}', b'"settings": {"seeds": "9"}', "changed after"),
                                     (MANIFEST, b"--budget=25%mem", b"--budget=12%mem", "changed after it was written"),
                                     (MANIFEST, b'"rows": ', b'"rows": 1', "changed after it was written"),
                                     (MANIFEST, b'"isa": "', b'"isa": "x', "changed after it was written")):
            def change(member, data):
                if member == name:
                    self.assertIn(old, data)
                return data.replace(old, new, 1) if member == name else data
            with self.subTest(new):
                self.assertIn(says, self.verify(path=repacked(self.out, changed, change), code=1))

    def test_a_trace_that_is_missing_or_another_one(self):
        self.bundle(self.table())
        data = bytearray(pathlib.Path(self.trace).read_bytes())
        os.remove(self.trace)
        for other in (None, bytes(data[:-1]) + bytes([data[-1] ^ 1])):
            if other:
                pathlib.Path(self.trace).write_bytes(other)
            found = self.verify(code=4)
            self.assertRegex(found, "12 cells: trace t.h5 .SHA-256 [0-9a-f]{64}. not found; name")
            self.assertIn("Not verified: nothing could be recomputed", found)
        self.assertIn("is another one", self.bundle(self.path("run.csv"), code=2))
        os.mkdir(self.path("store"))
        pathlib.Path(self.path("store/any-name")).write_bytes(data)
        self.verify("--input", self.path("store"))

    def test_methods_of_files_are_bundled_and_never_run(self):
        mine = self.write(f"open({self.path('ran')!r}, 'w')\n", "mine.py")
        for name in (f"{mine}:Mine", "scores:s.h5", f"h2o,{mine}:Mine", f"h2o+{mine}:Mine"):
            table = self.rewritten(self.table(), lambda row: row.update(method=name, params=""))
            with self.subTest(name):
                self.assertIn("that nobody can recompute: methods of files", self.bundle(table))
                self.assertIn("methods of files", self.verify(code=4))
                self.assertFalse(os.path.exists(self.path("ran")))

    def test_without_the_program(self):
        self.bundle(self.table())
        self.assertIn("there is no program kvbench", self.call(command.verify_main, 4, self.out, "--programs",
                                                               self.folder))

    def test_another_instruction_set_has_the_documented_drift(self):
        table = self.table("run.csv", "--isa", "scalar")
        _, (columns, *rows) = kvbench.results.rows.csv_rows(table, (), "")
        whole = tables.table_of(table, pathlib.Path(table).read_bytes(), {})
        cell = next(cell for cell in tables.cells_of(whole) if cell.methods == ["h2o"] and cell.place[1] == "1")

        def outcome(isa, **changes):
            fresh = [{**row, "isa": isa, **{name: repr(float(row[name]) * by) for name, by in changes.items()}}
                     for row in cell.rows]
            return recompute.compared(cell, fresh).verdict
        self.assertEqual(outcome("avx2"), "same")
        for name, near, far in (("rel_err_mean", 1 + 1e-6, 1 + 1e-3), ("rel_err_p99", 1 + 1e-6, 1.01)):
            self.assertEqual(outcome("avx2", **{name: near}), "close")
            self.assertEqual(outcome("scalar", **{name: near}), "differs")
            self.assertEqual(outcome("avx2", **{name: far}), "differs")
        self.assertEqual(outcome("avx2", total_bytes=1.1), "differs")
        for row in cell.rows:
            row["commit"] = cell.alike["commit"] = "0123456789-changed"
        self.assertEqual(outcome("scalar", rel_err_mean=1 + 1e-6), "close")

    def test_a_processor_without_the_instruction_set(self):
        self.bundle(self.table("run.csv", "--isa", "scalar"))
        program = self.write(f'#!/bin/sh\ncase "$*" in *--isa=scalar*) echo "kvbench: --isa scalar: this processor has '
                             f'none" >&2; exit 2;; esac\nexec {PROGRAMS}/kvbench "$@" --isa=avx2\n', "kvbench")
        os.chmod(program, 0o755)
        found = self.call(command.verify_main, 0, self.out, "--programs", self.folder, "--sample", 20)
        self.assertRegex(found, "within drift|same bytes")
        self.assertIn("Verified: 12 cells", found)


class Evaluations(BundlesTest):
    """Tables of kveval, which needs a model: what is asked of it, and what is made of its answer."""
    ROW = dict.fromkeys(tables.EVAL.needed, "") | {
        "model": "m.gguf", "sha256": "0123456789ab", "text": "a.txt", "task": "passkey", "document": "all",
        "question": "inside (chat)", "inject": "all", "inject_scale": "0.5", "layer": "all", "device": "cpu",
        "method": "h2o", "budget": "25%mem", "status": "ok", "weights": "file", "kv_dtype": "f16", "protect": "4,64",
        "document_seed": "7", "documents": "4", "isa": "avx2", "protocol": "stream", "decoded": "method",
        "kl_mean": "0.1", "total_bytes": "4096", "top1": "0.9", "turn": ""}

    def cell(self, settings, *rows):
        text = io.StringIO()
        table = csv.DictWriter(text, self.ROW, lineterminator="\n")
        table.writeheader()
        table.writerows({**self.ROW, **row} for row in rows)
        return tables.cells_of(tables.table_of("e.csv", text.getvalue().encode(), settings))[0]

    def test_the_command_has_what_rows_and_flags_say(self):
        cell = self.cell({"context": "256", "threads": "2"}, {}, {"document": "passkey-1", "documents": "1"},
                         {"budget": "50%mem"})
        words = recompute.words_of(cell, {"model": "/m.gguf", "text": "/a.txt"}, self.folder)
        self.assertEqual(words[:2], ["/m.gguf", "--text=/a.txt"])
        self.assertEqual(set(words[2:]), {
            "--method=h2o", "--budget=25%mem,50%mem", "--task=passkey", "--documents=4", "--document-seed=7",
            "--inject=all", "--kv-dtype=f16", "--protect=4,64", "--protocol=stream", "--inject-scale=0.5",
            "--question=inside", "--chat", "--no-f32", "--per-document", "--context=256", "--threads=2", "--quiet",
            "--format=csv", f"--output={self.path('rows.csv')}"})
        self.assertEqual([*tables.inputs_of(cell)], [("model", "m.gguf", "0123456789ab"), ("text", "a.txt", "")])

    def test_rows_without_a_result_have_no_number_of_documents(self):
        none = self.cell({}, {"method": "q8_0", "status": "infeasible", "documents": ""}, {})
        words = recompute.words_of(none, {"model": "/m.gguf", "text": "/a.txt"}, self.folder)
        self.assertIn("--method=q8_0", words)
        self.assertIn("--documents=4", words)

    def test_a_split_model_has_the_digest_and_bytes_of_all_parts(self):
        for part in (1, 2):
            pathlib.Path(self.path(f"m-0000{part}-of-00002.gguf")).write_text("abc")
        places = inputs.Places([], self.folder)
        # printf '%s\n%s\n' D D | sha256sum, D being the digest of abc
        found = places.named("model", "m-00001-of-00002.gguf", "ed9453257140")
        self.assertEqual(found.bytes, 6)
        self.assertTrue(places.find(found))
        pathlib.Path(self.path("m-00002-of-00002.gguf")).write_text("abd")
        self.assertEqual(inputs.Places([], self.folder).find(found), "")

    def test_conversations(self):
        """Their file is no text, and documents are drawn from none; rows of turns are apart."""
        talk = {"text": "t.jsonl", "task": "text", "document_seed": "", "protect": "0,0", "protocol": "compress 64"}
        turns = [{**talk, "document": "transcript-0", "documents": "1", "turn": str(turn)} for turn in (2, 3)]
        cell = self.cell({}, {**talk, "documents": "2"}, *turns)
        self.assertEqual(cell.cannot, "")
        words = recompute.words_of(cell, {"model": "/m.gguf", "text": "/t.jsonl"}, self.folder)
        self.assertEqual(words[:2], ["/m.gguf", "--transcripts=/t.jsonl"])
        self.assertEqual(set(words[2:]), {
            "--method=h2o", "--budget=25%mem", "--compress=64", "--inject=all", "--kv-dtype=f16", "--inject-scale=0.5",
            "--question=inside", "--chat", "--no-f32", "--quiet", "--format=csv", f"--output={self.path('rows.csv')}"})
        self.assertEqual(recompute.compared(cell, [*cell.rows]).verdict, "same")
        self.assertEqual(recompute.compared(cell, cell.rows[:2]).verdict, "differs")

    def test_what_kveval_cannot_be_asked_for(self):
        for change, says in (({"model": "hub/name"}, "no GGUF files"), ({"weights": "bf16"}, "no GGUF files"),
                             ({"document_seed": ""}, "--ids"), ({"protect": "4,0 outside"}, "a sweep file"),
                             ({"decoded": "keep"}, "a sweep file")):
            self.assertIn(says, self.cell({}, change).cannot)

    def test_the_drift_of_a_model(self):
        cell = self.cell({}, {})

        def outcome(isa, **changes):
            return recompute.compared(cell, [{**cell.rows[0], "isa": isa, **changes}]).verdict
        self.assertEqual([outcome("avx2"), outcome("scalar"), outcome("avx2", kl_mean="0.101")],
                         ["same", "same", "differs"])
        self.assertEqual([outcome("scalar", kl_mean=value) for value in ("0.12", "0.08", "0.126", "0.079")],
                         ["close", "close", "differs", "differs"])  # a fifth of the larger one: 4 documents
        self.assertEqual(outcome("scalar", top1="0.7"), "close")
        self.assertEqual(outcome("scalar", total_bytes="4097"), "differs")


class Refused(BundlesTest):
    def test_tables_of_other_commands(self):
        run("replay", self.trace, "-m", "h2o,sink", "-q", "--raw", self.path("raw.h5"), "-o", self.path("run.csv"))
        run("compare", self.path("raw.h5"), "-o", self.path("compared.csv"))
        self.table("json.json")
        self.write("", "empty.csv")
        self.write(pathlib.Path(self.path("run.csv")).read_text().split("\n")[0] + "\n", "header.csv")
        for name, says in (("compared.csv", "no column"), ("raw.h5", "not UTF-8|NUL"), ("json.json", "no column|CSV"),
                           ("empty.csv", "no column"), ("header.csv", "no rows"), ("none.csv", "no such file")):
            with self.subTest(name):
                self.assertRegex(self.bundle(self.path(name), code=2), says)
        self.assertIn("is no setting of rows of kvbench", self.bundle(self.path("run.csv"), "--score", 3, code=2))
        self.assertIn("which it does not take", self.bundle(self.path("run.csv"), "--seeds", "1;2", code=2))
        self.assertIn("two of the tables are equal", self.bundle(*[self.path("run.csv")] * 2, code=2))

    def test_an_output_that_is_an_input_or_has_no_folder(self):
        table = self.table()
        for out, says in ((table, "must not replace"), (self.folder, "is a directory"),
                          (self.path("no/b.zip"), "there is no such folder")):
            self.assertIn(says, self.call(command.bundle_main, 2, table, "--sample", 0, "-o", out))
        self.assertTrue(pathlib.Path(table).read_text().startswith("run,"))

    def test_other_versions_and_manifests(self):
        self.bundle(self.table())
        text = zipfile.ZipFile(self.out).read(MANIFEST).decode()
        found, replace = json.loads(text), lambda name, data: new.encode() if name == MANIFEST else data
        first = found["tables"][0]
        for new, says in ((text.replace('"kvbench_bundle": "1.0"', '"kvbench_bundle": "2.0"'),
                           "is a bundle of schema 2.0, and this kvbench reads 1.0"),
                          ("[" * 100_000, "no JSON"), ("{", "no JSON"), ("[]", "of no bundle"), ("{}", "no bundle"),
                          ("\xff\xfe", "no bundle|no JSON"), ('{"kvbench_bundle": 1}', "no bundle"),
                          (json.dumps({**found, "tables": 3}), "not one that kvbench writes"),
                          (json.dumps({**found, "tables": []}), "describes 0 tables"),
                          (json.dumps({**found, "machine": {"a": "\x1b[2J"}}), "control characters"),
                          (json.dumps({**found, "inputs": [{**found["inputs"][0], "bytes": "many"}]}), "as no file is"),
                          (json.dumps({**found, "inputs": found["inputs"] * 300}), "more than 200 files"),
                          (json.dumps({**found, "tables": [{**first, "settings": {"raw": "/x"}}]}),
                           "is no setting"),
                          (json.dumps({**found, "tables": [{**first, "settings": {"seeds": "1 --raw=x"}}]}),
                           "which it does not take")):
            with self.subTest(says):
                self.assertRegex(self.verify(path=repacked(self.out, self.path("v.zip"), replace), code=2), says)

    def test_cells_of_tables(self):
        """Values that become words of a command line, and control characters."""
        for column, value, says in (("budget", "25% --raw=x", "does not write there"),
                                    ("budget", "25%;rm -rf", "does not write there"),
                                    ("layer", "1 -o x", "does not write there"), ("sha256", "xyz", "does not write"),
                                    ("protocol", "--raw=x", "does not write there"), ("isa", "a b", "does not write"),
                                    ("reason", "a\x1b[31mb", "control char"), ("prompt_name", "\u202eb", "control"),
                                    ("reason", "x" * 5000, "more than 4000 characters")):
            table = self.rewritten(self.table(), lambda row: row.update({column: value}))
            with self.subTest(column=column, value=value[:20]):
                self.assertIn(says, self.bundle(table, code=2))

    def test_archives_with_bad_intent(self):
        self.bundle(self.table())
        data = pathlib.Path(self.out).read_bytes()
        bad, before = self.path("bad.zip"), set(os.listdir(self.folder)) | {"bad.zip"}

        def named(name):
            return lambda: repacked(self.out, bad, names=lambda old: name if old == MANIFEST else old)

        def added(name, contents=b"", times=1, **info):
            def make():
                repacked(self.out, bad)
                with zipfile.ZipFile(bad, "a", zipfile.ZIP_DEFLATED) as file:
                    for number in range(times):
                        member = zipfile.ZipInfo(name.format(number + 2))
                        member.compress_type = zipfile.ZIP_DEFLATED
                        for attribute, value in info.items():
                            setattr(member, attribute, value)
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")  # of a name that is there twice
                            file.writestr(member, contents)
            return make

        def lies():
            """Sizes in the list of members that are not those of the contents."""
            added("rows/2.csv", b"0" * (40 << 20))()
            raw = pathlib.Path(bad).read_bytes()
            size = (40 << 20).to_bytes(4, "little")
            self.assertIn(size, raw)
            pathlib.Path(bad).write_bytes(raw.replace(size, (100).to_bytes(4, "little")))

        def large(name, old):
            return b" " * (2 << 20) if name == MANIFEST else old

        raw = lambda new: lambda: pathlib.Path(bad).write_bytes(new)
        archives = {
            "/etc/passwd": (named("/etc/passwd"), "is none of a bundle"), "../up": (named("../up"), "none of a bundle"),
            "rows/../../up": (added("rows/../../up"), "none of a bundle"), "rows/": (added("rows/"), "none of a bun"),
            "C:": (added("C:\\x"), "none of a bundle"), "name": (added("run.sh"), "none of a bundle"),
            "NUL": (lambda: named("manifest.jsonXbad")() and raw(pathlib.Path(bad).read_bytes().replace(
                b"jsonXbad", b"json\0bad"))(), "none of a bundle|damaged"),
            "link": (added("rows/2.csv", b"/etc/passwd", external_attr=0o120777 << 16), "is a link"),
            "pipe": (added("rows/2.csv", external_attr=0o010644 << 16), "is a link or another file"),
            "twice": (added("rows/1.csv"), "is there twice"), "gap": (added("rows/5.csv"), "its tables are not"),
            "bomb": (added("rows/2.csv", b"0" * (200 << 20)), "unpacks to more than"),
            "manifest": (lambda: repacked(self.out, bad, large), "unpacks to more than"),
            "lies": (lies, "damaged|unpacks|describes"), "many": (added("rows/{}.csv", times=150), "has 152 members"),
            "bytes": (lambda: repacked(self.out, bad, compress_type=zipfile.ZIP_BZIP2), "in a way that no bundle uses"),
            "encrypted": (raw(data.replace(b"PK\1\2\x14\x03\x14\0\0\0", b"PK\1\2\x14\x03\x14\0\1\0")), "is encrypted"),
            "comment": (raw(data[:-2] + b"\5\0hello"), "is no bundle"), "cut": (raw(data[:-30]), "is no bundle"),
            "ZIP64": (raw(data[:-22] + b"PK\6\7" + bytes(16) + data[-22:]), "ZIP64"), "empty": (raw(b""), "no bundle"),
            "noise": (raw(bytes(range(256)) * 9), "no bundle"), "damaged": (raw(data[:200] + b"!!!!" + data[204:]),
                                                                               "damaged|changed"),
            "headless": (raw(data[:-22] + data[-22:-6] + b"\0\0\0\0\0\0"), "damaged|no bundle|no manifest"),
            "count": (raw(data[:-12] + b"\xff\xff" + data[-10:]), "65535 members")}
        for name, (make, says) in archives.items():
            with self.subTest(name):
                make()
                self.assertRegex(self.verify(path=bad, code=2), says)
                self.assertLessEqual(set(os.listdir(self.folder)), before)
        for path in (self.folder, "/dev/zero", self.path("none")):
            self.assertRegex(self.verify(path=path, code=2), "is a folder|is a device|no such file")

    def test_too_many_fields(self):
        self.bundle(self.table())
        with mock.patch.object(tables, "MOST_FIELDS", 100):
            self.assertIn("has more than 100 fields", self.verify(code=2))
        with mock.patch.dict(archive.MOST_BYTES, {"of the file": 1000}):
            self.assertIn("a bundle has at most 1 kB", self.verify(code=2))
