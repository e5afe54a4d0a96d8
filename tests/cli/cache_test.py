# SPDX-License-Identifier: Apache-2.0
"""kvbench cache: what it lists of the fp32 copies of models, and what it removes."""
import os
import subprocess

from support import CliTest, run


class Cache(CliTest):
    def setUp(self):
        super().setUp()
        self.home = self.path("cache")
        for number, name in ((1, "small.gguf"), (2, "large.gguf")):
            path = os.path.join(self.home, "kvbench", "f32", f"{number:064x}.gguf")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.truncate(number << 29)
            self.write(f"{0:064x}  {number:064x}.gguf\n# {name}\n", path + ".sha256")
            os.utime(path + ".sha256", (number * 86400, number * 86400))
        with open(os.path.join(self.home, "kvbench", "old-0123456789abcdef-f32.gguf"), "wb") as file:
            file.truncate(1 << 28)

    def cache(self, *args, **variables):
        return run("cache", *args, env={**os.environ, "XDG_CACHE_HOME": self.home, **variables})

    def copies(self):
        return sorted(name for _, _, names in os.walk(self.home) for name in names if name.endswith(".gguf"))

    def test_list(self):
        done = self.cache(TZ="UTC")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn("0.25 GiB", lines[0])
        self.assertIn("(unknown model)", lines[0])
        self.assertIn("1.00 GiB  last used 1970-01-03  large.gguf  ", lines[1])
        self.assertIn("0.50 GiB  last used 1970-01-02  small.gguf  ", lines[2])
        self.assertTrue(lines[3].startswith("3 fp32 copies of models, 1.75 of 50 GiB, in "), lines[3])
        self.assertIn("of 7 GiB", self.cache(KVBENCH_CACHE_GIB="7").stdout)

    def test_remove(self):
        self.assertEqual(self.cache("--remove", "small.gguf").returncode, 0)
        self.assertEqual(self.copies(), [f"{2:064x}.gguf", "old-0123456789abcdef-f32.gguf"])
        self.assertFalse(os.path.exists(os.path.join(self.home, "kvbench", "f32", f"{1:064x}.gguf.sha256")))
        self.assertEqual(self.cache("--remove", "old-0123456789abcdef-f32.gguf").returncode, 0)
        self.assertEqual(self.copies(), [f"{2:064x}.gguf"])
        self.assertEqual(self.cache("--clear").returncode, 0)
        self.assertEqual(self.copies(), [])
        self.assertIn("0 fp32 copies", self.cache("--clear").stdout)

    def test_what_is_no_copy(self):
        """Folders and broken links are neither counted nor removed; a copy without its digest is, and so is a link."""
        folder = os.path.join(self.home, "kvbench", "f32")
        before = self.cache().stdout.splitlines()
        os.mkdir(os.path.join(folder, "folder.gguf"))
        os.mkdir(os.path.join(self.home, "kvbench", "folder-f32.gguf"))
        os.symlink("nowhere", os.path.join(folder, "broken.gguf"))
        os.symlink("circle.gguf", os.path.join(folder, "circle.gguf"))
        os.mkfifo(os.path.join(folder, "pipe.gguf"))
        self.assertEqual(self.cache().stdout.splitlines(), before)
        with open(os.path.join(folder, "empty.gguf"), "w"):
            os.remove(os.path.join(folder, f"{1:064x}.gguf.sha256"))
        os.mkdir(os.path.join(folder, f"{1:064x}.gguf.sha256"))
        lines = self.cache().stdout.splitlines()
        self.assertTrue(lines[-1].startswith("4 fp32 copies of models, 1.75 of 50 GiB, in "), lines)
        done = self.cache("--clear")
        self.assertEqual((done.returncode, done.stdout.split()[0]), (0, "0"), done.stderr)
        self.assertEqual(sorted(os.listdir(folder)),
                         ["broken.gguf", "circle.gguf", "folder.gguf", "pipe.gguf"], done.stderr)

    def test_a_copy_from_the_future_is_listed_and_removed(self):
        stamp = os.path.join(self.home, "kvbench", "f32", f"{1:064x}.gguf.sha256")
        os.utime(stamp, (99999999999, 99999999999))  # beyond the clock of C++
        self.assertIn("3 fp32 copies", self.cache().stdout)
        self.cache("--clear")
        self.assertEqual(self.copies(), [])

    def test_names_cannot_command_a_terminal(self):
        folder = os.path.join(self.home, "kvbench", "f32")
        with open(os.path.join(folder, f"{1:064x}.gguf.sha256"), "w") as file:
            file.write(f"{0:064x}  {1:064x}.gguf\n# \x1b[31mred\x07\u009b\n")
        with open(os.path.join(folder, "\x1b[2J.gguf"), "w"):
            pass
        done = self.cache()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(r"\x1b[31mred\x07\xc2\x9b", done.stdout)
        self.assertIn(r"\x1b[2J.gguf", done.stdout)
        self.assertNotRegex(done.stdout.replace("\n", ""), "[\x00-\x1f\x7f-\x9f]")

    def test_a_relative_cache_is_ignored(self):
        """As the XDG specification says, by the program and by the script that fills the cache."""
        script = os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "fetch-model")
        for value, used in (("cache", "HOME/.cache"), ("", "HOME/.cache"), ("/x", "/x")):
            variables = {**os.environ, "XDG_CACHE_HOME": value, "HOME": self.path("home")}
            folder = used.replace("HOME", self.path("home")) + "/kvbench"
            with self.subTest(value=value):
                self.assertIn(f" in {folder}/f32", run("cache", env=variables, cwd=self.folder).stdout)
                done = subprocess.run([script, "--folder"], env=variables, capture_output=True, text=True)
                self.assertEqual(done.stdout, folder + "\n")

    def test_refusals(self):
        for args, variables, words in ((("--remove", "none.gguf"), {}, "has no such copy"),
                                       (("--clear", "--remove", "small.gguf"), {}, "--clear"),
                                       ((), {"KVBENCH_CACHE_GIB": "many"}, "KVBENCH_CACHE_GIB is 'many'"),
                                       ((), {"KVBENCH_CACHE_GIB": "-1"}, "KVBENCH_CACHE_GIB is '-1'"),
                                       ((), {"XDG_CACHE_HOME": "cache", "HOME": ""}, "XDG_CACHE_HOME")):
            with self.subTest(args=args, variables=variables):
                done = self.cache(*args, **variables)
                self.assertEqual(done.returncode, 2)
                self.assertIn(words, done.stderr)
        self.assertEqual(len(self.copies()), 3)
