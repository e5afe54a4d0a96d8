# SPDX-License-Identifier: Apache-2.0
"""kvbench report: one self-contained file of figures and tables from the CSV files of replay, sweep and validate."""
import csv
import html.parser
import io
import os
import re
import resource
import shutil
import subprocess
import time
import unittest
import xml.etree.ElementTree

from support import CliTest, KVBENCH, rows, run

VOID = {"meta", "br", "hr", "img", "link", "input"}


def three_digits(number):
    """As reports write numbers below 100."""
    return format(float(number), "#.3g") if number else ""


class Page(html.parser.HTMLParser):
    """Collects text and attributes, and fails if tags are not properly nested."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.words, self.texts = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, text):
        self.words.append(text.strip())
        self.texts.append(text)


class Report(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.csv = cls.path("run.csv")
        cls.ok("replay", cls.trace, "-m", "exact,sink,snapkv,cam,chelsea,quest,random", "-b", "12.5%,25%", "--seeds", 2,
               "-q", "-o", cls.csv)

    def report(self, *args, name="report.html"):
        done = run("report", *args, "-o", self.path(name))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        return self.read(self.path(name))

    def test_well_formed_and_self_contained(self):
        text = self.report(self.csv)
        page = Page(text)
        self.assertEqual(page.tags.count("script"), 1)
        for tag in ("link", "img", "iframe", "object", "image", "use"):
            self.assertNotIn(tag, page.tags)
        for key, value in page.attributes:
            self.assertNotIn(key, ("src", "srcset", "xlink:href"))
            self.assertFalse(key.startswith("on"), key)
            if key == "href":
                self.assertTrue(value.startswith("#"), value)
        for word in ("http:", "https:", "url(", "@import", "//"):
            self.assertNotIn(word, text)
        self.assertLess(text.index("At 25 % of the tokens, "), text.index("<main>"))
        drawings = re.findall(r"<svg .*?</svg>", text, re.S)
        self.assertGreaterEqual(len(drawings), 4)
        for drawing in drawings:
            svg = xml.etree.ElementTree.fromstring(drawing)
            self.assertTrue(svg.get("aria-label"))
            self.assertTrue(svg.findtext("desc"))
            for node in svg.iter():
                for key in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy"):
                    if node.get(key) is not None:
                        self.assertTrue(-1e4 < float(node.get(key)) < 1e4, node.attrib)
        ids = [value for key, value in page.attributes if key == "id"]
        self.assertEqual(len(ids), len(set(ids)))

    def test_every_method_and_number_of_the_rows_over_all_layers(self):
        page = Page(self.report(self.csv))
        words = set(page.words)
        table = [r for r in rows(self.read(self.csv)) if r["layer"] == "all"]
        self.assertEqual(len(table), 14)
        for row in table:
            self.assertTrue(any(row["method"] in word for word in words), row["method"])
            for key in ("rel_err_mean", "rel_err_p50", "recall_mean"):
                if row["status"] == "ok" and row[key]:
                    self.assertIn(three_digits(row[key]), words, key)

    def test_rows_by_layer_are_in_the_numbers_of_the_heat_map(self):
        words = set(Page(self.report(self.csv)).words)
        for row in rows(self.read(self.csv)):
            if row["status"] == "ok":
                self.assertTrue(any(three_digits(row["rel_err_mean"]) in word for word in words), row)

    def test_the_same_bytes_again(self):
        self.assertEqual(self.report(self.csv), self.report(self.csv, name="again.html"))

    def test_markdown_has_the_same_numbers(self):
        text = self.report(self.csv, name="report.md")
        self.assertNotIn("<svg", text)
        for row in rows(self.read(self.csv)):
            if row["layer"] == "all":
                self.assertIn(row["method"], text)
                self.assertIn(three_digits(row["rel_err_mean"]), text)
        self.assertEqual(run("report", self.csv, "-o", "-", "--format", "md").stdout, text)

    def test_one_figure_alone(self):
        names = run("report", self.csv, "--figure", "list").stdout.split()
        self.assertIn("error-by-layer/budget-25", names)
        for name in names:
            svg = xml.etree.ElementTree.fromstring(self.report(self.csv, "--figure", name, name="one.svg"))
            self.assertEqual(svg.tag, "{http://www.w3.org/2000/svg}svg")
            self.assertTrue(all(node.get("class") is None for node in svg.iter()))
            words = " ".join(node.text or "" for node in svg.iter())
            budgets = "12.5 %, 25 %" if "and-cost" in name else "12.5 %" if "budget-12.5" in name else "25 %"
            for part in ("; " + os.path.basename(self.trace), "tokens", f"; decode; {budgets} of the tokens."):
                self.assertIn(part, words)  # it stands alone
        self.assertIn("snapkv", {node.text for node in svg.iter("{http://www.w3.org/2000/svg}text")})
        done = run("report", self.csv, "--figure", "error-by-method", "-o", self.path("one.pdf"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        time.sleep(1.1)  # a date in the file would differ
        self.ok("report", self.csv, "--figure", "error-by-method", "-o", self.path("two.pdf"))
        self.assertEqual(self.read_bytes("one.pdf"), self.read_bytes("two.pdf"))

    @unittest.skipUnless(shutil.which("pdffonts"), "scripts/setup page installs poppler-utils")
    def test_pdf_files_embed_their_fonts(self):
        for name in ("error-by-method", "error-by-layer/budget-25", "held"):
            done = run("report", self.csv, "--figure", name, "-o", self.path("one.pdf"))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            shown = subprocess.run(["pdffonts", self.path("one.pdf")], capture_output=True, text=True).stdout
            fonts = shown.split("\n")[2:-1]
            self.assertGreaterEqual(len(fonts), 2)  # regular and bold
            for font in fonts:
                self.assertRegex(font, r"\w{6}\+\S.* yes yes yes +\d+ +0$")  # embedded, a subset, with its characters
            words = subprocess.run(["pdftotext", self.path("one.pdf"), "-"], capture_output=True, text=True).stdout
            self.assertIn("snapkv", words)

    def test_some_of_the_methods(self):
        text = self.report(self.csv, "--method", "snapkv,sink", "-m", "cam")
        self.assertEqual(set(re.findall('<tr data-m="([^"]*)">', text)), {"snapkv", "sink", "cam"})
        self.assertEqual(set(re.findall('<g class="[^"]*" data-m="([^"]*)">', text)), {"snapkv", "sink", "cam"})
        text = self.report(self.csv, "--method", "merging,quest")
        self.assertEqual(set(re.findall('<tr data-m="([^"]*)">', text)), {"cam", "chelsea", "quest"})

    def test_tables_for_latex(self):
        text = self.report(self.csv, name="table.tex")
        self.assertEqual(text.count("\\begin{table}"), text.count("\\end{table}"))
        body = re.search(r"\\caption\{Methods: error and cost[ (].*?\\midrule\n(.*?)\\bottomrule", text, re.S).group(1)
        results = [r for r in rows(self.read(self.csv)) if r["layer"] == "all" and r["status"] == "ok"]
        self.assertEqual(len(body.strip().split("\n")), len(results))
        self.assertRegex(body, r"snapkv & 25\\% & [\d.]+ & [\d.]+ to [\d.]+ & ")

    def test_raw_results_and_the_trace_add_figures_of_queries(self):
        table, raw = self.path("queries.csv"), self.path("queries.h5")
        self.ok("replay", self.trace, "-m", "sink,snapkv,quest", "-b", "25%", "--rows", "head", "--raw", raw, "-q",
                "-o", table)
        words = Page(self.report(table)).words
        self.assertIn("Layers and heads of snapkv at 25%", words)
        self.assertNotIn("Errors of single queries at 25%", words)
        words = Page(self.report(table, "--raw", raw)).words
        self.assertIn("Errors of single queries at 25%", words)
        text = self.report(table, "--raw", raw, "--trace", self.trace)
        best = min((r for r in rows(self.read(table)) if r["layer"] == "all"), key=lambda r: float(r["rel_err_mean"]))
        self.assertIn(f"Attention of the head on which {best['method']} has its largest error", text)
        self.assertIn("Rounding the keys: t.h5", text)
        self.assertIn("Cannot tell what rounding keys by token does to this model: keys have 16 channels", text)
        heads = [r for r in rows(self.read(table)) if r["head"] != "all" and r["method"] == best["method"]]
        worst = max(heads, key=lambda r: float(r["rel_err_mean"]))
        self.assertIn(f"Layer {worst['layer']}, query head {worst['head']}, budget 25%", text)

    def test_checks_measures_and_runs_together(self):
        checks = self.path("checks.csv")
        self.ok("validate", self.trace, "--claim", "subgen.lemma1,chelsea.obs1", "--seeds", 20, "-q", "-o", checks)
        sweep = self.write('[defaults]\ntraces = "t.h5"\n[[run]]\nname = "first"\nmethods = "sink"\n'
                           '[[run]]\nname = "second"\nmethods = ["sink", "h2o"]\nbudgets = ["10%", 64]\n'
                           '[[run]]\nname = "third"\nmeasure = "clusterability"\n')
        swept = self.path("swept.csv")
        self.ok("sweep", sweep, "-q", "-o", swept)
        words = Page(self.report(self.csv, checks, swept, self.path("swept.measures.csv"))).words
        for word in ("Replay: t.h5, decode", "Run first: t.h5, decode", "Run second: t.h5, decode", "Bounds and claims",
                     "Measures of keys and values", "subgen.lemma1", "covering radius / spread", "run.csv",
                     "swept.measures.csv"):
            self.assertIn(word, words)

    def test_names_of_any_kind(self):
        """What replay and sweep write is read again, whatever the names of files and runs hold."""
        swept, title = self.path("names.csv"), b"\x01\xfftitle"
        sweep = self.write('[[run]]\nname = "=1+1\\""\ntraces = "t.h5"\nmethods = ["sink", "quest"]\n')
        self.ok("sweep", sweep, "-q", "-o", swept)
        self.assertTrue(self.read(swept).split("\n")[1].startswith("\"'=1+1\"\"\""))
        page = subprocess.run([KVBENCH, "report", swept, "-o", self.path("names.html"), "--title", title],
                              capture_output=True)
        self.assertEqual(page.returncode, 0, page.stderr)
        text = self.read("names.html")
        Page(text)
        self.assertIn("\\x01\\xfftitle", text)
        self.assertIn("Run =1+1", text)

    def test_few_queries_have_no_interval(self):
        short = self.synth("short.h5", queries=16)
        self.ok("replay", short, "-m", "sink,random,quest", "-q", "-o", self.path("short.csv"))
        for row in rows(self.read(self.path("short.csv"))):
            self.assertEqual([row[c] for c in ("rel_err_lo", "rel_err_hi", "diff_best_lo", "diff_best_hi")], [""] * 4)
            self.assertIn("no interval of the mean: it takes two blocks of 16 neighbouring queries", row["reason"])
        self.assertIn("too few queries", run("replay", short, "-m", "sink", "-q", "--format", "table").stdout)
        self.assertIn("too few queries", self.report(self.path("short.csv")))
        raw = self.path("short.raw.h5")
        run("replay", short, "-m", "sink,random,quest", "-q", "--raw", raw)
        compared = self.succeeds("compare", raw)
        self.assertEqual({r["diff_lo"] + r["ratio_hi"] for r in rows(compared.stdout)}, {""})

    def many(self, name, count, **changes):
        """A table with `count` copies of the row of sink over all layers, in which columns have these values; %d is
        the number of the row."""
        head, *body = csv.reader(io.StringIO(self.read(self.csv)))
        at = {column: i for i, column in enumerate(head)}
        row = next(r for r in body if r[at["method"]] == "sink" and r[at["layer"]] == "all")
        table = [head]
        for number in range(count):
            table.append(list(row))
            for column, value in changes.items():
                table[-1][at[column]] = value.replace("%d", str(number))
        return self.write("".join(",".join(r) + "\n" for r in table), name)

    def seconds_of(self, table):
        out, begin = self.path("many.html"), time.monotonic()
        self.ok("report", table, "-o", out)
        return time.monotonic() - begin

    def test_huge_and_tiny_figures(self):
        """Finite figures of any size end in a page at once, with numbers that can be read."""
        for value in ("1e300", "1.7e308", "1e-300", "5e-324"):
            for column in ("rel_err_mean", "total_bytes", "bytes_read", "attend_s"):
                with self.subTest(column=column, value=value):
                    self.assertLess(self.seconds_of(self.many("figures.csv", 4, params="n=%d", **{column: value})), 5)
        page = self.report(self.many("figures.csv", 4, params="n=%d", rel_err_mean="1e300"))
        self.assertNotRegex(page, r"\d{30}")

    def test_tables_of_another_kind(self):
        out = ("-o", self.path("never.html"))
        lacks = self.write(self.read(self.csv).replace("rel_err_lo", "rel_err_low", 1), "column.csv")
        self.fails(2, "column.csv: lacks the column 'rel_err_lo'", args=["report", lacks, *out])
        other = self.write("a,b\n1,2\n", "other.csv")
        self.fails(2, "other.csv", "is not a table of kvbench", args=["report", other, *out])
        self.assertFalse(os.path.exists(self.path("never.html")))


class LargeTables(CliTest):
    def test_a_table_of_24_megabytes_takes_seconds(self):
        path = self.path("large.csv")
        text = run("replay", self.trace, "-m", "sink,uniform,snapkv", "-b", "16,32,64", "--rows", "head",
                   "--no-times").stdout
        header, *lines = csv.reader(io.StringIO(text))
        prompt = header.index("prompt")
        with open(path, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            for number in range(10**6):
                if file.tell() > 24_000_000:
                    break
                for line in lines:
                    line[prompt] = str(number)
                    writer.writerow(line)
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.monotonic()
        self.ok("report", path, "-o", self.path("large.html"))
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"24 MB of rows: {time.monotonic() - began:.1f} s, at most {used.ru_maxrss // 1024} MiB")
        if not os.environ.get("KVBENCH_SANITIZE"):
            self.assertLess(used.ru_utime - before, 15)  # of the processor
            self.assertLess(used.ru_maxrss, 1 << 20)  # KiB
