# SPDX-License-Identifier: Apache-2.0
"""The notebook of python/examples runs from its first cell to its last, and prints what is stored in it."""
import os
import pathlib
import re

import environment

environment.use(["h5py", "numpy", "pandas", "threadpoolctl", "nbclient", "ipykernel"], "KVBENCH_PYTHON", "venv",
                "scripts/fetch-model --python")
from support import PACKAGE, PackageTest  # noqa: E402
import nbclient  # noqa: E402
import nbformat  # noqa: E402

EXAMPLES = PACKAGE / "examples"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def texts(cell):
    """What a cell has printed and shown, as texts without drawings and progress bars."""
    shown = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", [])]
    return "".join(text for text in shown if not re.search(r" at 0x|HTML object", text))


def same(stored, found):
    """Whether two texts have the same words, and numbers that differ by no more than instruction sets let them."""
    if re.sub(r"[\s.]+", " ", NUMBER.sub("#", stored)) != re.sub(r"[\s.]+", " ", NUMBER.sub("#", found)):
        return False
    pairs = zip(map(float, NUMBER.findall(stored)), map(float, NUMBER.findall(found)))
    return all(abs(a - b) <= 0.02 * abs(a) + 2e-3 for a, b in pairs)


class Notebook(PackageTest):
    def install(self):
        """The package as `pip install .` lays it out, in a folder of its own."""
        package = pathlib.Path(self.path("kvbench"))
        package.mkdir()
        for folder in (PACKAGE / "kvbench", pathlib.Path(os.environ["KVBENCH_EXTENSION"])):
            for file in folder.iterdir():
                (package / file.name).symlink_to(file)
        os.environ["PYTHONPATH"] = self.folder

    def test_it_prints_what_it_shows(self):
        self.install()
        for path in sorted(EXAMPLES.glob("*.ipynb")):
            stored = nbformat.read(path, as_version=4)
            run = nbformat.read(path, as_version=4)
            nbclient.NotebookClient(run, timeout=400, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
            for before, after in zip(stored.cells, run.cells):
                if "PyTorch and transformers, which" in texts(after):  # the cells that need them print nothing
                    break
                with self.subTest(path.name, cell=before.source.strip().split("\n")[0]):
                    self.assertTrue(same(texts(before), texts(after)), texts(after))
