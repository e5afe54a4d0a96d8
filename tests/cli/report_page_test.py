# SPDX-License-Identifier: Apache-2.0
"""The HTML report in a browser. Skipped (exit code 77) where there is no Chromium (scripts/setup page)."""
import sys

import browser
from support import SAMPLE, CliTest, rows

if browser.PROGRAM is None:
    print("skipped: no chromium; scripts/setup page installs it")
    sys.exit(77)

WIDTH = 390  # px, of a phone
# Elements that reach beyond the page, unless a box around them scrolls.
CUT_OFF = """[...document.querySelectorAll('body *')].filter(e => !e.closest('.box') && e.getClientRects().length
    && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.outerHTML.slice(0, 80))"""

# Open figures with a label that reaches beyond them: the reader would have to scroll to see it, or could not.
LABELS_CUT = """[...document.querySelectorAll('figure .box')].filter(box => [...box.querySelectorAll('text')].some(
    text => { const a = text.getBoundingClientRect(), b = box.getBoundingClientRect();
    return a.right > b.right + 1 || a.left < b.left - 1; })).map(box => box.innerText)"""


class Page(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.csv, raw, cls.page = (cls.path(name) for name in ("run.csv", "raw.h5", "report.html"))
        cls.ok("replay", cls.trace, "-m", "exact,sink,snapkv,cam,chelsea,quest,random", "-b", "12.5%mem,25%mem",
               "--seeds", 2, "--rows", "head", "--raw", raw, "-q", "-o", cls.csv)
        cls.ok("report", cls.csv, "-o", cls.page)
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        super().tearDownClass()

    def open(self, width=WIDTH, path=None, **options):
        self.browser.open(path or self.page, width, **options)
        return self.browser

    def spoiled(self, old, new):
        """The page with a fault."""
        path = self.path("spoiled.html")
        with open(self.page) as source, open(path, "w") as file:
            text = source.read()
            self.assertIn(old, text)
            file.write(text.replace(old, new, 1))
        return path

    def scroll_width(self):
        return self.browser.evaluate("document.scrollingElement.scrollWidth")

    def test_no_errors_no_requests_nothing_cut_off(self):
        for scripts in (True, False):
            for width in (WIDTH, 1280):
                with self.subTest(scripts=scripts, width=width):
                    page = self.open(width, scripts=scripts)
                    self.assertEqual(page.complaints(), [])
                    self.assertLessEqual(self.scroll_width(), width)
                    self.assertEqual(page.evaluate(CUT_OFF), [])

    def test_no_label_of_an_open_figure_is_cut(self):
        for width in (500, 1280):
            with self.subTest(width=width):
                self.assertEqual(self.open(width).evaluate(LABELS_CUT), [])

    def test_a_long_name_leaves_the_labels_of_axes_whole(self):
        table, path = self.path("long.csv"), self.path("long.html")
        self.ok("replay", SAMPLE, "-m", "adakv@kvpress(expected-attention)[epsilon=0.02]", "-b", "25%,50%",
                "--layers", 2, "--prompts", 0, "-q", "-o", table)
        self.ok("report", table, "-o", path)
        page = self.open(1280, path)
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        self.assertEqual(page.evaluate(LABELS_CUT), [])

    def test_the_checks_above_find_faults(self):
        page = self.open(path=self.spoiled("<main>", "<main><p style='width:600px'>wide</p>"))
        self.assertGreater(self.scroll_width(), WIDTH)
        self.assertEqual(len(page.evaluate(CUT_OFF)), 1)
        for fault in ("console.error('x')", "throw new Error('x')", "fetch('http://127.0.0.1:9/')"):
            with self.subTest(fault):
                self.assertNotEqual(self.open(path=self.spoiled("'use strict';", fault + ";")).complaints(), [])
        self.assertNotEqual(self.open(path=self.spoiled("<main>",
                                                        "<main><img src='http://127.0.0.1:9/'>")).complaints(), [])

    def test_the_first_words_are_the_answer(self):
        page = self.open(scripts=False)
        text = page.evaluate("document.body.innerText")
        self.assertLess(text.index("At 25 % of the memory, "), 300)
        table = rows(self.read(self.csv))
        best = min((r for r in table if r["layer"] == "all" and r["budget"] == "25%mem" and r["status"] == "ok"
                    and r["method"] not in ("exact", "random")), key=lambda r: float(r["rel_err_mean"]))
        # 64 queries are 4 blocks, too few for a test.
        self.assertIn(f"At 25 % of the memory, this trace cannot tell which method has the lowest error: "
                      f"{best['method']} (", text)

    def column(self, title):
        return self.browser.evaluate(f"""(() => {{
            const table = document.querySelector('table.sortable'), heads = [...table.tHead.rows[0].cells];
            const at = heads.findIndex(head => head.textContent === '{title}');
            return [...table.tBodies[0].rows].filter(row => !row.hidden).map(row => row.cells[at].textContent);
        }})()""")

    def click(self, title):
        self.browser.evaluate("[...document.querySelectorAll('table.sortable th button')].find(b => b.textContent === "
                              f"'{title}').click()")

    def test_headers_sort_numbers_as_numbers(self):
        self.open()
        texts = self.column("error")
        self.click("error")
        self.assertEqual(self.column("error"), sorted(texts, key=float))
        self.click("error")
        self.assertEqual(list(map(float, self.column("error"))), sorted(map(float, texts), reverse=True))
        texts = self.column("recall")
        numbers = [t for t in texts if t]
        self.assertLess(len(numbers), len(texts))  # chelsea has no recall; rows without a number stay last
        self.click("recall")
        self.assertEqual(self.column("recall")[len(numbers):], [""] * (len(texts) - len(numbers)))

    def test_rows_without_results_are_listed_once(self):
        page = self.open(1280)
        self.assertNotIn("infeasible", page.evaluate("document.querySelector('table.sortable').innerText"))
        self.assertEqual(page.evaluate("[...document.querySelectorAll('td')].filter(cell => cell.textContent === "
                                       "'infeasible').length"), 3)
        # those that hold too much at both budgets, and quest at each: its advice names the budget
        self.assertIn("exact, snapkv, random", page.evaluate("document.body.textContent"))

    def test_boxes_that_scroll_have_a_cue(self):
        """The shadow at the right edge is drawn where the contents reach beyond it."""
        page = self.open()
        self.assertTrue(page.evaluate("[...document.querySelectorAll('.box')].some(b => b.scrollWidth > b.clientWidth "
                                      "&& getComputedStyle(b).backgroundImage.includes('gradient'))"))

    def test_the_filter_and_the_names(self):
        page = self.open()
        page.evaluate("""(() => { const input = document.querySelector('.filter input');
            input.value = 'chelsea'; input.dispatchEvent(new Event('input')); })()""")
        self.assertEqual(set(self.column("method")), {"chelsea"})
        self.click("chelsea")
        self.assertEqual(page.evaluate("[...new Set([...document.querySelectorAll('svg .picked')].map(e => "
                                       "e.dataset.m))]"), ["chelsea"])
        self.assertGreater(page.evaluate("document.querySelectorAll('svg .faded').length"), 0)
        self.click("chelsea")
        self.assertEqual(page.evaluate("document.querySelectorAll('svg .faded').length"), 0)
