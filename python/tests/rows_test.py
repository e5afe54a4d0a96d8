# SPDX-License-Identifier: Apache-2.0
"""What takes rows takes a data frame, a list of dicts, a file, or a list of these, with and without pandas; anything
else is refused by a sentence."""
import subprocess
import sys

import numpy as np
from support import PackageTest, kvbench

WITHOUT_PANDAS = """
import sys
sys.modules["pandas"] = None
sys.path.insert(0, {package!r})
import kvbench
kvbench.__path__.append({extension!r})
rows = kvbench.replay({trace!r}, ["sink", "snapkv", "random"], [24, 48], rows="query", layers=0)
assert type(rows) is kvbench.Rows and type(rows[0]) is dict, type(rows)
compared = kvbench.compare(rows, a="snapkv")
print(*kvbench.sentences(compared), sep="\\n")
print(len(kvbench.report(rows).text) == len(kvbench.report([rows]).text))
"""


class Rows(PackageTest):
    def setUp(self):
        super().setUp()
        self.trace = self.synth("t.h5")
        self.file = self.path("rows.csv")
        self.rows = kvbench.replay(self.trace, ["sink", "snapkv", "random"], [24, 48], rows="query", layers=0,
                                   output=self.file)

    def test_forms_of_rows(self):
        expected = kvbench.sentences(kvbench.compare(self.file, a="snapkv"))
        self.assertEqual(len(expected), 2)
        frame = self.rows.to_pandas()
        for rows in (self.rows, list(self.rows), frame, [self.rows], [frame], (self.file,), [self.file]):
            compared = kvbench.compare(rows, a="snapkv")
            self.assertIs(type(compared), kvbench.Rows)
            self.assertEqual(kvbench.sentences(compared), expected)
            self.assertEqual(kvbench.sentences(compared.to_pandas()), expected)
        pages = [kvbench.report(rows).text.count("<table") for rows in (frame, self.rows, self.file, [self.rows])]
        self.assertEqual(pages, pages[:1] * 4)
        self.assertGreater(pages[0], 0)
        halves = [[row for row in self.rows if (row["method"] == "sink") == first] for first in (True, False)]
        self.assertEqual(kvbench.sentences(kvbench.compare(halves, a="snapkv")), expected)

    def test_without_pandas(self):
        package, extension = kvbench.__path__[0].removesuffix("/kvbench"), kvbench.__path__[-1]
        script = WITHOUT_PANDAS.format(package=package, extension=extension, trace=self.trace)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[:2], kvbench.sentences(kvbench.compare(self.file, a="snapkv")))
        self.assertEqual(done.stdout.splitlines()[2:], ["True"])

    def test_what_is_no_rows(self):
        wrong = self.rows[:1] + [{"method": "sink"}]
        for function in (kvbench.compare, kvbench.report):
            name = function.__name__
            for given in (3, None, [3], object(), [None], {"a": 1}, np.arange(3), [[]], wrong, [wrong], [{}],
                          self.path("no")):
                with self.subTest(name, given=str(given)[:40]), self.assertRaises(kvbench.Error) as raised:
                    function(given)
                self.assertRegex(str(raised.exception), f"{name}|no such file|no column|csv|table|result")
        for given in (3, None, "abc", [3], [{}], object(), [{"a": 1}], self.rows[:1]):
            with self.subTest("sentences", given=str(given)[:40]), self.refuses("sentences", "compare", "verdict"):
                kvbench.sentences(given)
        self.assertEqual(kvbench.sentences([]), [])
        with self.refuses("argument 'trace'"):
            kvbench.replay(3, "sink")
