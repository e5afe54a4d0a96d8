# SPDX-License-Identifier: Apache-2.0
"""The page of results, of bundles, of claims and of rows that are in no bundle; and --registered."""
import os
import pathlib
import re
import subprocess
import sys
import unittest
from unittest import mock

import bundles_test
import claims_test
import kvbench
from bundles_test import PROGRAMS
from kvbench.bundles import bundle, claims, command, page, tables
from support import KVBENCH, run

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "cli"))
import browser  # noqa: E402


class Page(bundles_test.BundlesTest):
    rows = claims_test.Claims.rows

    def setUp(self):
        super().setUp()
        os.makedirs(self.path("res/claims"))
        self.claim = self.write(claims_test.CLAIM, "res/claims/claim.toml")
        self.columns = [line.split()[0] for line in run("eval", "--columns").splitlines()]
        self.html = self.path("index.html")

    def report(self, *words, code=0):
        return self.call(command.report_main, code, *words, "-o", self.html, "--programs", PROGRAMS)

    def folder_of_results(self):
        """A bundle of four methods at two budgets, and the rows of another trace in no bundle."""
        self.out = self.path("res/b.kvb.zip")
        self.bundle(self.table())
        os.rename(self.table("run.csv", "--seeds", 2), self.path("res/loose.csv"))
        return self.path("res")

    def read(self):
        return pathlib.Path(self.html).read_text()

    def test_what_the_page_says(self):
        self.report(self.folder_of_results())
        text, (one,) = self.read(), page.sources([self.path("res")], None).bundles.values()
        for part in (one.digest, f"kvbench verify {self.out}", '<a href="res/b.kvb.zip">b.kvb.zip</a>',
                     '<a href="res/claims/claim.toml">claim</a>', "not measured", "h2o has the lower KL.",
                     "knows no repository", "not tested", one.tables[0].rows[0]["commit"]):
            self.assertTrue(part in text, part)
        rows = re.findall(r"<tr data-m[^\n]*in no bundle[^\n]*", text)
        self.assertEqual(len(rows), 4)  # the others have no result; each cell is grey
        self.assertEqual({row.count("<td") + 1 - row.count('class="dim') for row in rows}, {0})
        inputs = text[text.index(">Inputs<"):]
        self.assertIn("b.kvb.zip rows 1.csv", inputs)
        self.assertNotIn("loose", inputs)  # nor do figures and answers have its rows
        self.assertEqual(text.count("lowest</td>"), 2)

    def test_predictions_that_do_not_hold_say_so(self):
        abouts = iter(("30 layers, from 5; large", "outside: layer 0, error 0.64 of the stream; 30 layers"))

        def predict(row):
            if row["status"] == "ok" and row["layer"] == "all":
                row.update(kl_predicted="0.5", kl_about=next(abouts, "30 layers, from 5"))
        path = self.table()
        self.rewritten(path, predict)
        self.report(path)
        for figure in ("predicted KL, large", "predicted KL, outside", "predicted KL"):
            self.assertIn(f">{figure}</td>", self.read())

    @unittest.skipUnless(browser.PROGRAM, "no chromium; scripts/setup page installs it")
    def test_in_a_browser(self):
        self.report(self.folder_of_results())
        shown = browser.Browser()
        self.addCleanup(shown.close)
        for width in (390, 1280):
            shown.open(self.html, width)
            self.assertEqual(shown.complaints(), [])
            self.assertLessEqual(shown.evaluate("document.scrollingElement.scrollWidth"), width)
        results = "[...document.querySelectorAll('table.sortable')].find(t => t.innerText.includes('in no bundle'))"
        grey = f"[...{results}.tBodies[0].rows].filter(r => !r.hidden && r.querySelectorAll('.dim').length > 8).length"
        self.assertEqual(shown.evaluate(grey), 4)
        self.assertNotEqual(*(shown.evaluate(f"getComputedStyle({results}.querySelector('td{which}')).color")
                              for which in (".dim", ":not(.dim)")))
        shown.evaluate(f"""(() => {{ const input = {results}.closest('.box').previousElementSibling.firstElementChild;
            input.value = 'no bundle 50%mem'; input.dispatchEvent(new Event('input')); }})()""")
        self.assertEqual(shown.evaluate(grey), 3)
        self.assertEqual(shown.evaluate(f"[...{results}.tBodies[0].rows].filter(r => !r.hidden).length"), 3)
        self.assertEqual(shown.evaluate("[...document.links].map(a => a.href).filter(a => a.endsWith('.zip'))"),
                         [pathlib.Path(self.out).resolve().as_uri()])

    def test_the_page_of_this_repository(self):
        self.report(bundles_test.KEPT.parent)
        for part in ("not settled", "predicted KL, large", "q8_0-lossless-here</a>", "holds</td>", "not measured</td>"):
            self.assertTrue(part in self.read(), part)

    def test_claims_that_bundles_answer(self):
        def state(change=lambda row: None, ratios=(2, 2)):
            path = self.rows(change, ratios)
            table = tables.table_of("e.csv", pathlib.Path(path).read_bytes(), {})
            found = page.Sources(bundles={"b.kvb.zip": bundle.Bundle([table], [], {})})
            one = claims.read(self.claim)
            row = page._results(found, KVBENCH)[0]
            self.assertEqual((row["bundle"], row["bytes/full"]), ("b.kvb.zip", "0.41"))
            return page._state(one, found, KVBENCH)
        verdict, tests = state()
        self.assertEqual((verdict, len(tests)), ("holds", 2))
        self.assertRegex(tests[0], r"a.txt, text: snapkv minus h2o\[rotate=1\] -.*\], snapkv is better")
        self.assertEqual(state(ratios=(2, 0.5))[0], "refuted")
        self.assertEqual(state(lambda row: row.update(text="c.txt")), ("not measured", []))
        self.assertIn("not measured in full: ", state(lambda row: row["document"] == "3")[0])

    def test_rows_of_a_stranger(self):
        change = {"kl_mean": "much", "total_bytes": "", "full_bytes": "0", "context_tokens": "</table>"}
        path = self.rows(lambda row: row.update(change))
        table = tables.table_of("e.csv", pathlib.Path(path).read_bytes(), {})
        for row in page._rows(table, KVBENCH, "b"):
            self.assertEqual([row[name] for name in ("bytes", "bytes/full", "value")], ["", "", ""])
            self.assertEqual(row["against the lowest"], "not tested")

    def test_a_claim_against_several(self):
        worse = 'worse = ["h2o[rotate=1]", "tova"]'
        self.write(claims_test.CLAIM.replace('worse = "h2o[rotate=1]"', worse).replace(
            '"snapkv", "h2o', '"snapkv", "tova", "h2o'), "res/claims/claim.toml")
        one = claims.read(self.claim)
        better = [{"verdict": "a better"}]
        self.assertEqual([claims.verdict(one, better * n) for n in (2, 4)], ["cannot tell", "holds"])
        self.assertEqual(claims.verdict(one, [*better * 3, {"verdict": "b better"}]), "refuted")

    def test_a_report_of_a_claim_alone(self):
        found = self.report(self.rows(), "--registered", self.claim)
        self.assertIn("knows no repository", found)
        self.assertIn("holds</td>", self.read())
        self.assertIn("e.csv", self.read()[self.read().index(">Inputs<"):])
        os.remove(self.html)
        found = self.report(self.rows(lambda row: row.update(text="c.txt")), "--registered", self.claim, code=2)
        self.assertIn("registers a.txt, b.txt", found)
        self.assertIn(f"{self.claim} registers m.gguf", self.report(self.table(), "--registered", self.claim, code=2))
        self.assertIn("7 of 8", self.report(self.rows(lambda row: row["document"] == "3"), "--registered", self.claim,
                                            code=2))
        self.assertFalse(os.path.exists(self.html))

    def test_refusals(self):
        folder = self.folder_of_results()
        os.makedirs(self.path("none"))
        os.makedirs(self.path("other"))
        other = bundles_test.repacked(self.out, self.path("other/b.kvb.zip"))
        for words, says in (([self.path("none")], "has no bundle"), ([folder, other], "have the same name"),
                            ([self.path("res/none.csv")], "no such file"),
                            ([self.claim, "--title", ""], "the value is empty")):
            with self.subTest(says):
                self.assertRegex(self.report(*words, code=2), says)
        for self.html, says in ((self.out, "must not replace"), (self.path("x.pdf"), "ends with .html or .md"),
                                (self.path("no/x.md"), "no such folder")):
            self.assertIn(says, self.report(folder, code=2))
        self.html = self.path("index.html")
        bundles_test.repacked(self.out, self.path("res/c.kvb.zip"), lambda name, data: data.replace(b"h2o", b"tova", 1))
        self.assertIn("changed after", self.report(folder, code=1))
        os.remove(self.path("res/c.kvb.zip"))

    def program(self, name, body):
        path = self.write(f"#!/bin/sh\n{body}\n", name)
        os.chmod(path, 0o755)
        return path

    def test_kvbench_hands_bundles_and_claims_over(self):
        os.symlink(KVBENCH, self.path("kvbench"))
        self.write("", "res/b.kvb.zip")
        for name in ("kvbench-report", "kvbench-claim"):
            self.program(name, f'echo {name} "$@"')

        def said(*words, path=self.folder):
            return subprocess.run([KVBENCH, *words], capture_output=True, text=True, cwd=self.folder,
                                  env={**os.environ, "PATH": path})
        for words in (["res", "-o", "a.html"], ["b.kvb.zip"], ["a.csv", "--registered", "c.toml"]):
            self.assertEqual(said("report", *words).stdout.split(), ["kvbench-report", *words])
        for words in (["m.gguf", "--registered", "c.toml", "-q"], ["--registered=c.toml", "m.gguf", "-q"]):
            self.assertEqual(said("eval", *words).stdout.split(), [
                "kvbench-claim", "c.toml", "--run", "eval", "m.gguf", "-q"])
        self.assertEqual(said("sweep", "-o", "a.csv", "--registered", "c.toml").stdout.split(), [
            "kvbench-claim", "c.toml", "--run", "sweep", "-o", "a.csv"])
        self.assertIn("--registered: the value is empty", said("eval", "m.gguf", "--registered").stderr)
        self.assertIn("kvbench-report, which is neither beside", said("report", "res", path="/none").stderr)

    def test_python_is_not_replaced_by_the_program(self):
        folder = self.folder_of_results()
        for tables, flags in ((folder, {}), ([self.out], {}), (self.path("res/loose.csv"), {"registered": self.claim})):
            with self.assertRaisesRegex(kvbench.Error, "kvbench-report"):
                kvbench.report(tables, self.html, **flags)

    def test_what_a_claim_measures(self):
        table = self.rows()
        self.program("kveval", f'echo "$@" >{self.path("words")}; [ -z "$FAIL" ] || exit 1')

        def measure(*words, code=0, out=table):
            words = (self.claim, "--programs", self.folder, "--run", "eval", *words, "-o", out)
            return self.call(command.claim_main, code, *words)
        self.assertIn("knows no repository", measure("m.gguf", "--text", "x/a.txt", "-q"))
        self.assertEqual(pathlib.Path(self.path("words")).read_text().split(), [
            "m.gguf", "--text", "x/a.txt", "-q", "-o", table, "--task=text", "--context=4096", "--document-seed=0",
            "--budget=25%mem,50%mem", "--method=snapkv,h2o[rotate=1]", "--documents=8", "--per-document"])
        os.remove(self.path("words"))
        for words, says in ((["n.gguf"], "model n.gguf: is not registered"), (["--text=c.txt"], "text c.txt: is not"),
                            (["-m", "mesh"], "-m: is no choice"), (["-b25%"], "is no choice"),
                            (["--documents=4"], "is no choice"), (["--sweep", "s.toml"], "is no choice")):
            self.assertIn(says, measure(*words, code=2))
        self.assertIn("must not replace", measure("m.gguf", code=2, out=self.claim))
        self.assertFalse(os.path.exists(self.path("words")))
        with mock.patch.dict(os.environ, FAIL="1"):
            measure("m.gguf", code=1)
        self.assertIn("registers a.txt", measure("m.gguf", out=self.rows(lambda row: row.update(text="c.txt")), code=2))

    def test_sweeps_that_register_claims(self):
        self.program("kvbench", f'echo "$@" >{self.path("words")}; exit 5')
        text = (pathlib.Path(__file__).resolve().parents[2] / "configs/vs-snapkv.toml").read_text()

        def measure(*words, code=2, text=text, by="sweep"):
            return self.call(command.claim_main, code, self.write(text, "s.toml"), "--programs", self.folder, "--run",
                             by, *words)
        self.assertRegex(measure("-o", "a.csv", code=5), "s.toml: git .*knows no repository")
        self.assertEqual(pathlib.Path(self.path("words")).read_text().split(), [
            "sweep", self.path("s.toml"), "-o", "a.csv"])
        os.remove(self.path("words"))
        for words in (["--trace", "b.h5"], ["--trace=b.h5"], ["--kv-dtype=f16"]):
            self.assertIn("is no choice: ", measure(*words))
        self.assertIn("kvbench sweep --registered", measure("m.gguf", "-o", "a.csv", by="eval"))
        self.assertIn("kvbench eval --registered", measure(text=pathlib.Path(self.claim).read_text()))
        self.assertIn("registers no claim", measure(text=text.replace("[[published]]", "[[other]]")))
        self.assertFalse(os.path.exists(self.path("words")))
