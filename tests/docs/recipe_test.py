#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows pages that say how to add something: their files and their changes of other files fit the sources, and with
KVBENCH_RECIPES=FOLDER (make nightly) they are made in a copy of the sources there, and the commands of the pages run in
it as they stand. FOLDER may keep a build folder from before; everything else in it is replaced.
    recipe_test.py SOURCE_TREE PAGE..."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

TREE, *PAGES = sys.argv[1:]
TREE = pathlib.Path(TREE).resolve()


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def files_of(text):
    """Path: contents of each C++ file that the page shows in full."""
    return dict(re.findall(r"`([\w/.]+\.[ch]pp)`:\n\n```cpp\n(.*?)```", text, re.S))


def changes_of(text):
    """(path, lines) of each diff of the page."""
    diffs = "\n".join(re.findall(r"```diff\n(.*?)```", text, re.S))
    for change in re.split(r"^--- a/.*\n", diffs, flags=re.M)[1:]:
        first, lines = change.split("\n", 1)
        yield first.removeprefix("+++ b/"), lines


def commands_of(text):
    """The indented lines of the page, of which \\ joins two."""
    lines = re.findall(r"^    (.*)$", without_code(text), re.M)
    return "\n".join(lines).replace("\\\n", "").splitlines()


def patched(path, text, diff):
    """The text of a file with the added lines of each hunk and without the removed ones, which must occur once together
    with those around them."""
    for hunk in re.split(r"^@@.*\n", diff, flags=re.M)[1:]:
        lines = [(line[:1], line[1:] + "\n") for line in hunk.splitlines() if line]
        known = "".join(line for kind, line in lines if kind in " -")
        new = "".join(line for kind, line in lines if kind in " +")
        assert text.count(known) == 1, f"{path} has {text.count(known)} times:\n{known}"
        assert new not in text, f"{path} has already:\n{new}"
        text = text.replace(known, new)
    return text


def followed(pages):
    """Path: contents of all files that the pages add or change."""
    files = {}
    for page in pages:
        for path, contents in files_of(page).items():
            assert not (TREE / path).exists() and path not in files, f"{path} exists"
            files[path] = contents
        for path, lines in changes_of(page):
            files[path] = patched(path, files.get(path) or (TREE / path).read_text(), lines)
    return files


def copied(folder):
    """The sources in the folder, whose build folder stays; unchanged files keep their time, for the next build."""
    hidden = shutil.ignore_patterns("build", ".git", "out", "__pycache__")
    for old in folder.iterdir() if folder.exists() else ():
        if old.name != "build":
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    shutil.copytree(TREE, folder, ignore=hidden, dirs_exist_ok=True)


class Recipes(unittest.TestCase):
    def setUp(self):
        self.pages = {page: (TREE / page).read_text() for page in PAGES}

    def test_fit_the_sources(self):
        for name, page in self.pages.items():
            with self.subTest(page=name):
                added = [path for path in followed([page]) if not (TREE / path).exists()]
                self.assertTrue(any(path.startswith("tests/unit/") for path in added), added)
                self.assertTrue(any("ctest" in command for command in commands_of(page)))
        self.assertGreater(len(followed(self.pages.values())), 2 * len(PAGES))

    def test_a_change_that_does_not_fit_is_found(self):
        lines = "@@\n a\n+b\n"
        self.assertEqual(patched("x", "a\nc\n", lines), "a\nb\nc\n")
        for text in ("c\n", "a\na\n", "a\nb\n"):
            with self.assertRaises(AssertionError):
                patched("x", text, lines)

    def test_run_the_tests_that_they_write(self):
        for name, page in self.pages.items():
            patterns = [re.search(r"-R '?([^' ]+)", command) for command in commands_of(page)]
            for path in files_of(page):
                if path.startswith("tests/unit/"):
                    test = "unit_" + path.split("/")[-2]
                    with self.subTest(page=name, test=test):
                        self.assertTrue(any(found and re.search(found[1], test) for found in patterns))

    @unittest.skipUnless(os.environ.get("KVBENCH_RECIPES"), "KVBENCH_RECIPES names no folder to follow them in")
    def test_hold_to_the_letter(self):
        folder = pathlib.Path(os.environ["KVBENCH_RECIPES"])
        copied(folder)
        for path, contents in followed(self.pages.values()).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(contents)
        for name, page in self.pages.items():
            for command in commands_of(page):
                with self.subTest(page=name, command=command):
                    ran = subprocess.run(["bash", "-c", command], cwd=folder, text=True, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT)
                    self.assertEqual(ran.returncode, 0, ran.stdout[-4000:])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
