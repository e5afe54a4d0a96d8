# SPDX-License-Identifier: Apache-2.0
"""The Python of docs/python.md, README.md, docs/add-a-method.md and docs/allocate.md, as a reader would run it."""
import contextlib
import io
import math
import os
import re
import tomllib

import environment

environment.use(["h5py", "numpy", "pandas", "threadpoolctl"], "KVBENCH_PYTHON", "venv", "scripts/fetch-model --python")
import h5py  # noqa: E402
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
        for page, heading in (("docs/python.md", "A method in ten lines"), ("README.md", "A method of your own"),
                              ("docs/guide.md", "Your own method")):
            with self.subTest(page):
                said = self.printed(page, heading)
                self.assertRegex(said, r"At 25%mem py:knorm, with a geometric mean kl_predicted of 0\.53, is .*"
                                       r"snapkv 0\.0901")
        self.assertTrue(os.path.getsize(self.path("run.html")) > 10000)

    def test_add_a_method(self):
        self.assertIn("py:knorm", self.printed("docs/add-a-method.md", "In Python"))

    def test_entries_of_your_own(self):
        said = self.printed("docs/python.md", "Entries of your own", 2)
        self.assertRegex(said, r"(?s)py:entries +256\.0 .* sink +256\.0 ")
        rows = self.names["rows"]
        self.assertEqual({(row["method"], row["status"]) for row in rows}, {("py:entries", "ok")})

    def test_a_method_with_state(self):
        self.assertIn("Recent holds the contract.", self.printed("docs/python.md", "A method with state"))

    def test_shares_by_entropy(self):
        entropies = [0, 0]
        with h5py.File(self.synth("train.h5")) as trace:
            for i in range(8):
                layer, head = trace[f"prompts/0/layers/{i // 4}"], i % 4
                for at, q in zip(range(160, 192), layer["queries"][head]):  # the first is that of token 160
                    w = [math.exp(layer.attrs["scale"] * float(q @ k)) for k in layer["keys"][head // 2][:at + 1]]
                    entropies[i // 4] -= sum(x / sum(w) * math.log(x / sum(w)) for x in w[:160])
        self.printed("docs/allocate.md", "Shares by entropy")
        with open("entropy.toml", "rb") as file:
            lines = tomllib.load(file)["plans"][0]["layers"]
        for line, entropy in zip(lines, entropies):
            self.assertAlmostEqual(float(line["budget"][:-4]), 50 * entropy / sum(entropies), delta=0.002)
        self.replay("train.h5", "--method", "plan:entropy.toml", "--budget", "25%mem")
