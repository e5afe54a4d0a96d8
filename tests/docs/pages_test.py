#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What holds for pages whatever they say: names of files exist, links into pages find their heading, pictures exist and
are small, long pages begin with links to their sections, every page of docs/ links to the glossary, and
scripts/wrap_pages.py changes nothing but the ends of lines.
    pages_test.py SOURCE_TREE"""
import importlib.machinery
import importlib.util
import pathlib
import re
import sys
import tomllib
import unittest
import xml.etree.ElementTree

TREE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(TREE / "scripts"))
sys.dont_write_bytecode = True
from wrap_pages import wrapped  # noqa: E402 (the path comes first)

FOLDERS = [path.name for path in TREE.iterdir() if path.is_dir() and path.name not in ("build", "out", ".git")]
FILES = [path.relative_to(TREE).as_posix() for folder in FOLDERS for path in (TREE / folder).rglob("*")]
FILES += [path.name for path in TREE.iterdir()]
ENDINGS = "cpp|hpp|cu|cuh|h|in|py|md|toml|cmake|txt|json|css|js"
READMES = [path for folder in FOLDERS if folder != "docs" for path in (TREE / folder).rglob("README.md")]
PAGES = [*TREE.glob("*.md"), *(TREE / "docs").rglob("*.md"), *READMES]


def without_code(page):
    """The text of a page without fenced code."""
    return re.sub(r"^```.*?^```$", "", page, flags=re.M | re.S)


def named_paths(page):
    """The words in `code` of a page that look like paths: they end like a file, or begin with a folder of the
    repository. Left out are those with a part that the reader chooses, such as <name>."""
    for code in re.findall(r"`([^`\n]+)`", without_code(page)):
        if re.search(r"[\s<>()]", code):
            continue
        if re.search(rf"[\w}}]\.({ENDINGS})$", code) or ("/" in code and code.split("/")[0] in FOLDERS):
            yield code.rstrip("/")


def exists(name):
    """Whether a file has this path, without its first folders too; it may have alternatives ({a,b}) and wildcards."""
    alternatives = re.sub(r"\\\{(.*?)\\\}", lambda m: "(" + m.group(1).replace(",", "|") + ")", re.escape(name))
    pattern = re.compile("(.*/)?" + alternatives.replace(r"\*", "[^/]*"))
    return any(pattern.fullmatch(path) for path in FILES)


def anchors(page):
    """What links into a page may name: its headings in lower case, with hyphens for blanks and without punctuation."""
    page = re.sub(r"\[([^]\n]*)\]\([^)\n]*\)", r"\1", without_code(page))   # links as their texts
    headings = re.findall(r"^#+ (.*)$", page.lower(), re.M)
    return {re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in headings}


class FirstScreen(unittest.TestCase):
    """What a reader of README.md alone must find."""

    def setUp(self):
        self.lines = (TREE / "README.md").read_text().splitlines()

    def test_is_short_and_begins_with_what_to_type(self):
        self.assertLessEqual(len(self.lines), 110)
        commands = [number for number, line in enumerate(self.lines, 1) if line.startswith("    kvbench ")]
        self.assertLess(commands[0], 40)
        first = next(number for number, line in enumerate(self.lines, 1) if line.startswith("    make run "))
        self.assertLess(first, commands[0])

    def test_output_fits_a_screen(self):
        first, last = (self.lines.index(line) for line in ("<!-- begin run: make run -->", "<!-- end run -->"))
        shown = self.lines[first + 1:last]
        self.assertIn(len(shown), range(8, 13))
        self.assertEqual([line for line in shown if len(line) > 104], [])  # 100 columns, indented


class Release(unittest.TestCase):
    def test_versions_and_names_agree(self):
        version, = re.findall(r"^project\(kvbench VERSION (\S+)", (TREE / "CMakeLists.txt").read_text(), re.M)
        first, second = (tomllib.loads((TREE / folder / "pyproject.toml").read_text())["project"]
                         for folder in ("", "python"))
        self.assertEqual((second["version"], second["name"]), (version, first["name"]))
        for page in ((TREE / name).read_text() for name in ("CITATION.cff", "README.md")):
            self.assertIn(first["name"], page)
        self.assertIn(f"\nversion: {version}\n", (TREE / "CITATION.cff").read_text())


class TestsOfFolders(unittest.TestCase):
    """The tests of rooms.toml, which `make test T=FOLDER` runs."""

    def setUp(self):
        loader = importlib.machinery.SourceFileLoader("scripts_test", str(TREE / "scripts/test"))
        self.script = importlib.util.module_from_spec(importlib.util.spec_from_loader("scripts_test", loader))
        loader.exec_module(self.script)
        self.rows = self.script.tests_of()

    def test_every_folder_of_the_library_has_tests(self):
        for folder in (path for path in (TREE / "lib/kvbench").iterdir() if path.is_dir()):
            self.assertIn(folder.name, self.rows)
        self.assertEqual(self.script.row_of("lib/kvbench/methods/eviction/", self.rows), "methods")
        self.assertEqual(self.script.row_of("methods/merging", self.rows), "methods/merging")
        self.assertIsNone(self.script.row_of("nowhere", self.rows))

    def test_named_tests_exist(self):
        listed = "\n".join(path.read_text() for path in (TREE / "tests").rglob("CMakeLists.txt"))
        for folder, names in self.rows.items():
            for name in names:
                word = re.sub(r"^(cli|python|extension|fuzz|docs|bench)_", "", name.replace("*", ""))
                with self.subTest(folder=folder, test=name):
                    self.assertIn(word, listed)


class Folders(unittest.TestCase):
    def test_every_folder_says_its_purpose(self):
        """In a room of rooms.toml or a README, of its own or of the folder above it."""
        rooms = tomllib.loads((TREE / "tests/architecture/rooms.toml").read_text())
        rows = {name for name, room in rooms.items() if "holds" in room}
        self.assertGreater(len(rows), 60)
        silent = []
        for top in FOLDERS:
            for folder in (TREE / top, *(path for path in (TREE / top).rglob("*") if path.is_dir())):
                parts = folder.relative_to(TREE).parts
                hidden = any(part.startswith((".", "__")) or part == "build" for part in parts)
                above = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
                said = any(name in rows or name.removeprefix("lib/kvbench/") in rows
                           or (TREE / name / "README.md").exists() for name in above)
                holds_folders = any(row.startswith(above[-1] + "/") for row in rows)
                if not (hidden or said or holds_folders or above[-1] in ("lib", "lib/kvbench")):
                    silent.append(above[-1])
        self.assertEqual(silent, [])


class Pages(unittest.TestCase):
    def test_named_files_exist(self):
        page = "`a/b.cpp`, `lib/kvbench`, `sink`, `<kvbench/a.hpp>`, `docs/x`, `{a,b}.hpp` and `replay(x.csv)`"
        self.assertEqual(list(named_paths(page)), ["a/b.cpp", "lib/kvbench", "docs/x", "{a,b}.hpp"])
        self.assertTrue(exists("sweep/run.{cpp,hpp}") and exists("lib/kvbench") and exists("core/err*.hpp"))
        self.assertFalse(exists("sweep/no_such.cpp") or exists("un.cpp") or exists("lib/kvbenc"))
        pages = [TREE / "HACKING.md", *READMES, *(TREE / "docs/theory").glob("*.md")]
        names = [(page.name, name) for page in pages for name in named_paths(page.read_text())]
        self.assertGreater(len(names), 100)
        self.assertEqual([(page, name) for page, name in names if not exists(name)], [])

    def test_links_find_their_heading(self):
        self.assertEqual(anchors("# A `b`: c?\n```\n# d\n```\n## [E](f.md) g\n"), {"a-b-c", "e-g"})
        for page in PAGES:
            for target, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)#([^)\s]+)\)", without_code(page.read_text())):
                with self.subTest(page=page.name, target=target, anchor=anchor):
                    self.assertIn(anchor, anchors((page.parent / target if target else page).read_text()))

    def test_pictures_exist_and_are_small(self):
        pictures = [(page, target) for page in PAGES
                    for target in re.findall(r"!\[[^]]*\]\(([^)\s]+)\)", without_code(page.read_text()))]
        self.assertIn("docs/figures/damage-against-bytes.svg", [target for _, target in pictures])
        for page, target in pictures:
            with self.subTest(page=page.name, target=target):
                picture = page.parent / target
                self.assertTrue(picture.is_file(), "draw it with the command that the page states")
                self.assertLess(picture.stat().st_size, 60_000)
                self.assertTrue(xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg"))

    def test_long_pages_begin_with_links_to_their_sections(self):
        long = [page for page in PAGES if page.read_text().count("\n") > 250]
        self.assertIn("damage.md", [page.name for page in long])
        for page in long:
            opening, *sections = re.split(r"^(?=## )", without_code(page.read_text()), flags=re.M)
            headings = set().union(*(anchors(section.splitlines()[0]) for section in sections))
            with self.subTest(page=page.name):
                self.assertEqual(headings - set(re.findall(r"\]\(#([^)\s]+)\)", opening)), set())

    def test_pages_of_docs_link_to_the_glossary(self):
        pages = [page for page in (TREE / "docs").rglob("*.md") if page.name != "glossary.md"]
        self.assertEqual([page.name for page in pages if "glossary.md" not in page.read_text()], [])

    def test_installation_names_every_package(self):
        groups = (TREE / "scripts/setup").read_text()
        packages = re.search(r"\[build\]=\"([^\"]*)\"", groups).group(1).split()
        self.assertGreater(len(packages), 10)
        page = (TREE / "docs/guide.md").read_text().split("### Without root")[1].split("\n## ")[0]
        cells = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
        named = [row[column].strip(" `") for column in (1, 3) for row in cells]
        self.assertEqual(sorted(name for name in named if name), sorted(packages))
        self.assertIn("RUN scripts/setup build\n", (TREE / "Containerfile").read_text())

    def test_wrapping(self):
        words = "word " * 30
        code = "    " + words.strip()
        self.assertEqual(wrapped(words), "word " * 23 + "word\n" + "word word word word word word\n")
        self.assertEqual(wrapped(f"- {words}\n").splitlines()[1][:6], "  word")
        for same in (f"# {words}\n", f"| {words}|\n", f"> {words}\n", f"text\n\n{code}\n", f"```\n{words}\n```\n",
                     f"<!-- {words}\n{words} -->\n", f"1. a\n\n       {words}\n"):
            self.assertEqual(wrapped(same), same)
        for opening in ("-", "+", "1.", "#", "| a |", "="):   # would begin something else
            self.assertFalse([line for line in wrapped(f"{opening} ".join([words] * 9)).splitlines()
                              if line.startswith(opening)])
        self.assertIn("`a b`", wrapped("x" * 116 + " `a b` c"))
        for page in PAGES:
            text = page.read_text()
            self.assertEqual(wrapped(text).split(), text.split(), page.name)


if __name__ == "__main__":
    unittest.main()
