# SPDX-License-Identifier: Apache-2.0
"""The folder of kvbench-choose: several questions, runs that were stopped, and files of others."""
import os
import pathlib
import shutil
import subprocess
from unittest import mock

from choose_programs import PLAN, TRUE, ChooseTest, Programs
from kvbench import Error
from kvbench.files import access as _files
from kvbench.choosing import choose
from kvbench.choosing import folder as folder_module
from kvbench.choosing import documents as documents_module


class Folder(ChooseTest):
    def test_a_second_run_computes_nothing(self):
        text = self.choose(Programs())
        again = Programs()
        self.assertEqual((self.choose(again), again.made), (text, []))

    def test_it_goes_on_where_it_stopped(self):
        first = Programs()
        self.choose(first, documents=3)
        second = Programs()
        self.choose(second)
        self.assertNotIn("probes.h5", second.made)
        self.assertEqual(second.made[0], "3.0.csv")

    def test_formats_predicted_beside_the_methods(self):
        """As version 0.1 had them, in one table."""
        text = self.choose(Programs())
        folder, = pathlib.Path(self.path("out")).glob("answer-*")
        formats = (folder / "formats.csv").read_text().splitlines()[1:]
        with open(folder / "predicted.csv", "a") as file:
            file.write("\n".join(formats) + "\n")
        (folder / "formats.csv").unlink()
        again = Programs()
        self.assertEqual((self.choose(again), again.made), (text, []))

    def test_other_questions_of_one_recording(self):
        """Another size, another engine and a longer list record nothing, and measure what was not measured yet."""
        self.choose(Programs())
        wider = Programs()
        self.choose(wider, "--race", "5")
        self.assertEqual(wider.raced[0], ["q8_0"])  # the fifth; the others were measured on this document
        sizes = (["--memory", size] for size in ("12.5%", "0.125", ".125mem", "12.5 % memory"))
        for flags in (*sizes, ["--runs-in", "llama.cpp"], ["--menu", "h2o"]):
            again = Programs()
            self.choose(again, *flags)
            self.assertEqual({"probes.h5", "order.csv"} & {*again.made}, set(), flags)
        self.assertEqual(len(list(pathlib.Path(self.path("out")).glob("answer-*/answer.md"))), 5)

    def test_other_recordings_in_the_same_folder(self):
        text = self.choose(Programs(), documents=2)
        for flags, words in ((["--context", "99"], "--context: not as"),
                             (["--probes", "3"], "gradients (--probes): not as"),
                             (["--documents", "3", "--score", "8"], "--score, --documents: not as")):
            self.assertIn(words, self.choose(Programs(), *flags, code=2))
        self.assertEqual(self.choose(Programs(), documents=2), text)

    def test_other_weights_of_the_same_size(self):
        """At the same path, of the same size and time: only the digest differs. The same for a text."""
        for name, words in (("model.gguf", "the model: not as"), ("text.txt", "the texts: not as")):
            self.choose(Programs(), documents=2)
            kept = os.stat(self.path(name))
            pathlib.Path(self.path(name)).write_text("y")
            os.utime(self.path(name), ns=(kept.st_atime_ns, kept.st_mtime_ns))
            self.assertIn(words, self.choose(Programs(), documents=2, code=2))
            pathlib.Path(self.path(name)).write_text("x")
            self.choose(Programs(), documents=2)  # written again, and equal

    def test_other_weights_in_any_part(self):
        """Of split GGUF files, of links to them, and of folders: which files decide."""
        for number in (1, 2):
            pathlib.Path(self.path(f"m-0000{number}-of-00002.gguf")).write_text("x")
        os.symlink(self.path("m-00001-of-00002.gguf"), self.path("link.gguf"))
        folder = pathlib.Path(self.path("hf"))
        folder.mkdir()
        for name in ("model-00001-of-00002.safetensors", "config.json", "tokenizer.json", "README.md"):
            (folder / name).write_text("x")
        digests = lambda model: [digest for _, digest, _ in folder_module.digests_of(  # noqa: E731
            folder_module.parts_of(self.path(model)))]
        for model, changed, decides in (("m-00001-of-00002.gguf", "m-00002-of-00002.gguf", True),
                                        ("link.gguf", "m-00002-of-00002.gguf", True), ("hf", "hf/config.json", True),
                                        ("hf", "hf/model-00001-of-00002.safetensors", True),
                                        ("hf", "hf/tokenizer.json", True), ("hf", "hf/README.md", False)):
            with self.subTest(model=model, changed=changed):
                before = digests(model)
                pathlib.Path(self.path(changed)).write_text("y")
                self.assertEqual(digests(model) != before, decides)
                pathlib.Path(self.path(changed)).write_text("x")
        os.remove(self.path("m-00002-of-00002.gguf"))
        self.assertIn("m-00002-of-00002.gguf is missing; fetch it", self.choose(
            Programs(), "--model", self.path("m-00001-of-00002.gguf"), code=2))

    def test_a_digest_is_computed_once(self):
        self.choose(Programs(), documents=2)
        read = mock.Mock(side_effect=folder_module.sha256_of_file)
        with mock.patch.object(folder_module, "sha256_of_file", read):
            self.choose(Programs(), documents=2)
        self.assertEqual([call.args[0] for call in read.call_args_list], [self.path("text.txt")])

    def test_files_that_are_damaged(self):
        for name in ("recording.json", "cache-*.json"):
            self.sized()
            found, = pathlib.Path(self.path("out")).glob(name)
            found.write_text("{")
            name = found.name
            self.assertIn(f"{name}: is damaged", self.sized(code=2))
            shutil.rmtree(self.path("out"))

    def test_names_of_folders(self):
        """Lists of methods, in which plans of the folder are named, give a meaning to some characters."""
        os.makedirs(self.path("a,b"))
        for name in ("a b(c)+d@e;f=g'h\"i", "c#d{e}]f", "ä"):
            programs = Programs(plan=PLAN)
            self.choose(programs, "-o", self.path(name))
            self.assertTrue(programs.raced[0][-1].startswith("plan-"), name)
        for name in ("a,b/out", "a[b", "a\nb", "a\tb", "a\udc80b"):
            self.assertIn("a comma, '[', a line end or", self.choose(Programs(), "-o", self.path(name), code=2))
            self.assertFalse(os.path.exists(self.path(name)))
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.path("a,b"))  # a relative path has no comma
        self.choose(Programs(plan=PLAN), "-o", "out")

    def test_a_folder_that_was_moved(self):
        programs = Programs(plan=PLAN)
        programs.true = {**TRUE, "plan": 0.001}
        text = self.choose(programs)
        os.rename(self.path("out"), self.path("moved"))
        again = Programs()
        self.assertEqual((self.choose(again, "-o", self.path("moved")), again.made), (text, []))

    def test_a_finished_folder_is_only_read(self):
        """Nothing in it is written, nor its folder, as one that is only read demands."""
        text = self.choose(Programs(plan=PLAN))
        state = lambda: {path: os.stat(path).st_mtime_ns for path in [  # noqa: E731
            pathlib.Path(self.path("out")), *pathlib.Path(self.path("out")).rglob("*")]}
        before = state()
        self.assertEqual((self.choose(Programs()), state()), (text, before))
        with mock.patch.object(choose.os, "access", lambda *_: False):  # formats that were measured count without time
            self.assertEqual((self.choose(Programs()), state()), (text, before))
        self.choose(Programs(), "--memory", "12.5%", documents=3)  # undecided, and more documents are there
        again = Programs()
        with mock.patch.object(choose.os, "access", lambda *_: False):
            self.assertIn("these are 3; give more --minutes", self.choose(again, "--memory", "12.5%"))
        self.assertEqual(again.made, [])

    def test_a_damaged_table(self):
        self.choose(Programs(), documents=2)
        for found in pathlib.Path(self.path("out")).glob("[am]*/*.csv"):
            whole = found.read_text()
            for text in ("", '{"a', whole[:len(whole) // 2], whole.splitlines()[0] + "\n"):
                with self.subTest(name=found.name, text=text[:20]):
                    found.write_text(text)
                    self.assertIn(f"{found}: ", said := self.choose(Programs(), documents=2, code=2))
                    self.assertIn("; remove it, and the same command makes it again.", said)
                    found.unlink()
                    self.choose(Programs(), documents=2)

    def test_what_a_killed_run_leaves(self):
        """Temporary files neither block a folder nor stay in it; files of others do and do."""
        left = ["recording.json.tmp.1", "probes.h5.tmp.host.17", "answer-25%-01234567/answer.md.tmp.3",
                "measured/0.0.csv.tmp.host.9"]
        os.makedirs(self.path("out"))
        pathlib.Path(self.path(f"out/{left[0]}")).write_text("x")
        self.choose(Programs(), documents=2)
        for name in left:
            os.makedirs(os.path.dirname(self.path(f"out/{name}")), exist_ok=True)
            pathlib.Path(self.path(f"out/{name}")).write_text("x")
        mine = ["out/mine.tmp.txt", "out/mine/a.csv.tmp.1", "other/measured/a.csv.tmp.1", "other/a.csv.tmp.1"]
        for name in mine:
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            pathlib.Path(self.path(name)).write_text("x")
        self.choose(Programs(), documents=2)
        self.assertIn("none of this command", self.choose(Programs(), "-o", self.path("other"), code=2))
        self.assertEqual([name for name in left if os.path.exists(self.path(f"out/{name}"))], [])
        self.assertTrue(all(os.path.exists(self.path(name)) for name in mine))

    def test_a_program_holds_the_lock(self):
        """A run that is killed leaves its program behind, whose folder is not free."""
        os.makedirs(self.path("out"))
        with _files.held(self.path("out")) as lock:
            child = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
        self.assertIn("another run works in this folder", self.choose(Programs(), code=2))
        child.kill()
        child.wait()
        self.choose(Programs(), documents=2)

    def test_a_refused_text_leaves_the_folder_free(self):
        documents = mock.Mock(side_effect=Error("the text is too short"))
        with mock.patch.object(documents_module, "tokens_of_texts", documents):
            with mock.patch.object(ChooseTest, "SPLIT", False):
                self.assertIn("too short", self.choose(Programs(), "--context", "77", code=2))
        self.assertIn("of the 4 configurations", self.choose(Programs(), documents=2))

    def test_a_folder_of_other_files(self):
        os.mkdir(self.path("out"))
        pathlib.Path(self.path("out/mine.txt")).write_text("mine")
        self.assertIn("has files and none of this command, such as mine.txt; give", self.choose(Programs(), code=2))
