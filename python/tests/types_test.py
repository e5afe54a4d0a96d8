# SPDX-License-Identifier: Apache-2.0
"""Types and descriptions of the public names of kvbench, for readers and for type checkers."""
import ast
import inspect
import pathlib
import re
import subprocess
import sys
import unittest

from support import PACKAGE, PackageTest, kvbench

try:
    import torch
    import transformers
except ImportError:
    torch = transformers = None
try:
    import mypy
except ImportError:
    mypy = None

NEEDS_TORCH = {"compressed", "evaluate", "from_kvpress", "lm_eval_model", "load_model", "lukv_curve"}
# Whose whole contents `mypy --strict` accepts. Those that run models have types of public names alone.
STRICT = [f"kvbench/{name}.py" for name in (
    "__init__ _error _kinds files/schema files/trace files/trace_writer results/raw results/rows results/sentences "
    "methods/method methods/given methods/scores program/check program/commands program/golden choosing/choose "
    "choosing/settings bundles/archive bundles/tables bundles/inputs bundles/bundle bundles/recompute "
    "bundles/verify bundles/figures bundles/forms bundles/claims").split()]
# Subpackages, each of which imports from those before it alone.
ORDER = ["_error", "_kinds", "files", "methods", "results", "program", "models", "dump_hf", "choosing", "bundles"]
USE = '''
import kvbench

rows = kvbench.replay("t.h5", ["snapkv"], "25%mem", seeds=3)
reveal_type(rows)
reveal_type(rows[0])
reveal_type(kvbench.compare(rows, a="snapkv"))
reveal_type(kvbench.report(rows))
reveal_type(kvbench.report(rows, "page.html"))
with kvbench.Trace("t.h5") as trace:
    reveal_type(trace.prompts["0"].layers[3].keys(0))
    kvbench.write_scores("s.h5", {"0": {3: trace.prompts["0"].tokens}}, trace=trace)
settings = kvbench.ChooseSettings("m.gguf", ["a.txt"], "out", by="layer")
reveal_type(kvbench.choose(settings).kl_interval)
reveal_type(kvbench.golden()[0].ids)
kvbench.load_csv(3)
kvbench.ChooseSettings("m.gguf", "a.txt", "out", by="token")
kvbench.nothing()
'''
SAID = ["kvbench.results.rows.Rows", "dict[str, Any]", "kvbench.results.rows.Rows", "kvbench.program.commands.Page",
        "str | os.PathLike[str]", "ndarray", "tuple[float, float] | None", "tuple[numpy.ndarray"]


def public():
    """The public names with their values; without PyTorch those alone that do without it."""
    return {name: getattr(kvbench, name) for name in kvbench.__all__ if torch or name not in NEEDS_TORCH}


def upward(package):
    """Imports within a package that do not follow ORDER: (file, subpackage)."""
    for path in sorted(package.rglob("*.py")):
        above, *inside = path.relative_to(package).with_suffix("").parts
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == len(inside) + 1 and above != "__init__":
                for name in [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]:
                    if name != "_core" and ORDER.index(name) > ORDER.index(above):
                        yield f"{above}/{path.name}", name


def functions_of(value):
    """A function itself; of a class what makes an object, and its public methods."""
    if not inspect.isclass(value):
        yield value
        return
    for name, member in vars(value).items():
        member = member.fget if isinstance(member, property) else member
        if inspect.isfunction(member) and (not name.startswith("_") or name == "__init__"):
            yield member


def section(doc, heading):
    """The text below a heading of numpydoc."""
    found = re.search(rf"\n{heading}\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", inspect.cleandoc(doc), re.DOTALL)
    return found[1] if found else ""


class Types(PackageTest):
    def test_all_public_functions_have_types(self):
        for name, value in public().items():
            for function in functions_of(value):
                given = inspect.signature(function)
                missing = [one.name for one in given.parameters.values()
                           if one.annotation is one.empty and one.name != "self"]
                with self.subTest(name, function=function.__name__):
                    self.assertEqual(missing, [])
                    if not function.__module__ == "dataclasses" and function.__qualname__ != "__create_fn__":
                        self.assertIsNot(given.return_annotation, given.empty)

    def test_all_public_names_are_described(self):
        for name, value in public().items():
            with self.subTest(name):
                doc = value.__doc__
                self.assertTrue(doc and doc[0].isupper() or name == "Error", doc)
                if inspect.isclass(value):
                    continue
                described = re.findall(r"^([\w*][\w*, ]*?)(?: :.*)?$", section(doc, "Parameters"), re.MULTILINE)
                described = {one.strip("* ") for line in described for one in line.split(",")}
                self.assertEqual(described, {*inspect.signature(value).parameters})
                self.assertTrue(section(doc, "Returns") or name == "write_scores")
                self.assertTrue(section(doc, "Raises"))

    def test_type_checkers_see_the_names_of_the_table(self):
        tree = ast.parse((PACKAGE / "kvbench" / "__init__.py").read_text())
        seen = {alias.asname: f"{one.module}" for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)
                for alias in one.names if alias.asname}
        self.assertEqual(seen, kvbench._MODULES)

    def checked(self, *arguments):
        return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", self.path("cache"),
                               "--follow-imports", "silent", "--ignore-missing-imports", *arguments],
                              capture_output=True, text=True, cwd=PACKAGE, timeout=500).stdout

    def test_subpackages_import_from_those_before_them(self):
        self.assertEqual(list(upward(PACKAGE / "kvbench")), [])
        (planted := pathlib.Path(self.folder) / "files").mkdir()
        (planted / "trace.py").write_text("def f():\n    from ..models.loading import x\n    from ..results import y\n")
        (planted / "schema.py").write_text("from .._error import Error\nfrom .storage import integers\n")
        self.assertEqual(list(upward(pathlib.Path(self.folder))), [("files/trace.py", "models"),
                                                                   ("files/trace.py", "results")])

    @unittest.skipUnless(mypy, "mypy is not installed; scripts/fetch-model --python installs it")
    def test_mypy(self):
        self.assertRegex(self.checked(*STRICT), "^Success: no issues found")
        path = pathlib.Path(self.write(USE, "use.py"))
        said = self.checked("--config-file", self.write("[mypy]\nmypy_path = " + str(PACKAGE), "mypy.ini"), str(path))
        revealed = re.findall(r'Revealed type is "(.*)"', said)
        self.assertEqual(len(revealed), len(SAID), said)
        for found, expected in zip(revealed, SAID):
            self.assertIn(expected, found.replace("builtins.", ""))
        self.assertEqual(len(re.findall("error: ", said)), 3, said)
        for fault in ('"load_csv" has incompatible type "int"', '"ChooseSettings" has incompatible type', "nothing"):
            self.assertIn(fault, said)
