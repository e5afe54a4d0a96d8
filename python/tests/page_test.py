# SPDX-License-Identifier: Apache-2.0
"""The Python of docs/python.md and README.md, as a reader would run it."""
import contextlib
import io
import os
import re

import environment

environment.use(["h5py", "numpy", "pandas", "threadpoolctl"], "KVBENCH_PYTHON", "venv", "scripts/fetch-model --python")
from support import PACKAGE, SAMPLE, PackageTest  # noqa: E402

ROOT = PACKAGE.parent


def blocks(page, heading):
    """The Python of the section of a page."""
    section = (ROOT / page).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


class Pages(PackageTest):
    def setUp(self):
        super().setUp()
        os.symlink(os.path.dirname(SAMPLE), self.path("traces"))
        os.chdir(self.folder)
        self.addCleanup(os.chdir, ROOT)

    def printed(self, page, heading, count=1):
        """What the first blocks of the section print, in a folder with the bundled trace."""
        out, self.names = io.StringIO(), {"__name__": "page"}
        with contextlib.redirect_stdout(out):
            exec("".join(blocks(page, heading)[:count]), self.names)
        return out.getvalue()

    def test_ten_lines(self):
        for page, heading in (("docs/python.md", "A method in ten lines"), ("README.md", "A method of your own")):
            with self.subTest(page):
                said = self.printed(page, heading)
                self.assertRegex(said, r"At 25%mem py:knorm, with a geometric mean kl_predicted of 0\.53, is .*"
                                       r"snapkv 0\.0901")
        self.assertTrue(os.path.getsize(self.path("run.html")) > 10000)

    def test_entries_of_your_own(self):
        said = self.printed("docs/python.md", "Entries of your own", 2)
        self.assertRegex(said, r"(?s)py:entries +256\.0 .* sink +256\.0 ")
        rows = self.names["rows"]
        self.assertEqual({(row["method"], row["status"]) for row in rows}, {("py:entries", "ok")})

    def test_a_method_with_state(self):
        self.assertIn("Recent holds the contract.", self.printed("docs/python.md", "A method with state"))
