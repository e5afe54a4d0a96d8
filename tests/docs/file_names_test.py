#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every file and folder that HACKING.md and docs/theory name in `code` exists.
    file_names_test.py SOURCE_TREE
A path may leave out its first folders (`sweep/run.cpp`), and have alternatives ({a,b}) and wildcards (*). Names with a
part that the reader chooses (<name>) are not checked."""
import pathlib
import re
import sys
import unittest

TREE = pathlib.Path(sys.argv.pop(1))
FOLDERS = [path.name for path in TREE.iterdir() if path.is_dir() and path.name not in ("build", "out", ".git")]
FILES = [path.relative_to(TREE).as_posix() for folder in FOLDERS for path in (TREE / folder).rglob("*")]
FILES += [path.name for path in TREE.iterdir()]
ENDINGS = "cpp|hpp|cu|cuh|h|in|py|md|toml|cmake|txt|json|css|js"


def named_paths(page):
    """The words in `code` of a page that look like paths: they have the ending of a file, or begin with a folder of the
    repository."""
    for code in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", page, flags=re.M | re.S)):
        first = code.split("/")[0]
        if re.search(r"[\s<>()]", code):
            continue
        if re.search(rf"[\w}}]\.({ENDINGS})$", code) or ("/" in code and first in FOLDERS):
            yield code.rstrip("/")


def exists(name):
    alternatives = re.sub(r"\\\{(.*?)\\\}", lambda m: "(" + m.group(1).replace(",", "|") + ")", re.escape(name))
    pattern = re.compile("(.*/)?" + alternatives.replace(r"\*", "[^/]*"))
    return any(pattern.fullmatch(path) for path in FILES)


class FileNames(unittest.TestCase):
    def test_paths_are_found(self):
        page = "`a/b.cpp`, `lib/kvbench`, `sink`, `<kvbench/a.hpp>`, `docs/x`, `{a,b}.hpp` and `replay(x.csv)`"
        self.assertEqual(list(named_paths(page)), ["a/b.cpp", "lib/kvbench", "docs/x", "{a,b}.hpp"])
        self.assertTrue(exists("sweep/run.{cpp,hpp}") and exists("lib/kvbench") and exists("core/err*.hpp"))
        self.assertFalse(exists("sweep/no_such.cpp") or exists("un.cpp") or exists("lib/kvbenc"))

    def test_pages(self):
        pages = [TREE / "HACKING.md", *sorted((TREE / "docs/theory").glob("*.md"))]
        names = [(page.name, name) for page in pages for name in named_paths(page.read_text())]
        self.assertGreater(len(names), 100)
        self.assertEqual([(page, name) for page, name in names if not exists(name)], [])


if __name__ == "__main__":
    unittest.main()
