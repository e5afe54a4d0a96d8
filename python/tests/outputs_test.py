# SPDX-License-Identifier: Apache-2.0
"""No output replaces an input, under whatever name or link."""
import contextlib
import io
import os
import subprocess
import sys
import unittest.mock

from support import PACKAGE, PackageTest, kvbench, run
from kvbench.dump_hf import command as dump_hf


def contents(folder):
    """Every regular file below a folder, with its bytes."""
    found = {}
    for below, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(below, name), "rb") as file:
                found[os.path.join(below, name)] = file.read()
    return found


class Outputs(PackageTest):
    def setUp(self):
        super().setUp()
        self.trace = self.synth("t.h5")
        run("replay", self.trace, "-m", "sink", "--raw", self.path("raw.h5"), "-o", self.path("rows.csv"))

    def names_of(self, path, descriptor):
        """Names that reach the same file."""
        links = [self.path(name) for name in ("symbolic", "hard", "chain")]
        os.symlink(path, links[0])
        os.link(path, links[1])
        os.symlink(links[0], links[2])
        os.symlink(self.folder, self.path("folder"))
        return [path, *links, os.path.relpath(path), os.path.join(self.path("folder"), os.path.basename(path)),
                os.fsencode(path), f"/dev/fd/{descriptor}", f"/proc/self/fd/{descriptor}"]

    def copy(self, path, trace):
        """A writer of the first layer of a trace."""
        with kvbench.TraceWriter(path, trace) as out:
            out.prompt("0", trace.prompts["0"])
            layer = trace.prompts["0"].layers[0]
            out.layer("0", 0, layer, **{name: layer.array(name) for name in layer.arrays})

    def test_no_writer_replaces_an_open_input(self):
        for name, kind in (("t.h5", kvbench.Trace), ("raw.h5", kvbench.Raw)):
            with (self.subTest(input=name), kvbench.Trace(self.trace) as trace, kind(self.path(name)),
                  open(self.path(name), "rb") as held):
                names = self.names_of(self.path(name), held.fileno())
                before = contents(self.folder)
                for output in names:
                    with self.subTest(output=output), self.refuses("is the input", "another name"):
                        kvbench.TraceWriter(output, trace)
                self.assertEqual(contents(self.folder), before)
            for link in ("symbolic", "hard", "chain", "folder"):
                os.unlink(self.path(link))

    def test_an_input_that_is_opened_after_the_output(self):
        before = contents(self.folder)
        with kvbench.Trace(self.trace) as trace, self.refuses("is the input"):
            with kvbench.TraceWriter(self.path("raw.h5"), trace) as out, kvbench.Raw(self.path("raw.h5")) as raw:
                out.prompt("0", trace.prompts["0"])
                layer = trace.prompts["0"].layers[0]
                out.layer("0", 0, layer, **{name: layer.array(name) for name in layer.arrays})
                held = kvbench.Raw(self.path("raw.h5"))
                self.addCleanup(held.close)
                self.assertTrue(raw.heads)
        self.assertEqual(contents(self.folder), before)

    def test_a_closed_input_may_be_replaced(self):
        with kvbench.Raw(self.path("raw.h5")):
            pass
        with kvbench.Trace(self.trace) as trace:
            self.copy(self.path("raw.h5"), trace)
        with kvbench.Trace(self.path("raw.h5")) as copy:
            self.assertEqual(list(copy.prompts["0"].layers), [0])

    def test_two_writers_of_one_file(self):
        os.symlink("copy.h5", self.path("link"))
        with kvbench.Trace(self.trace) as trace:
            writer = kvbench.TraceWriter(self.path("copy.h5"), trace)
            for name in ("copy.h5", "link"):
                with self.refuses("is being written already"):
                    kvbench.TraceWriter(self.path(name), trace)
            writer.abandon()
        self.assertFalse(os.path.exists(self.path("copy.h5")))

    def dump(self, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            code = dump_hf.main([*arguments, "--force"])
        return code, said.getvalue()

    def test_dump_hf_refuses_its_inputs_before_it_runs(self):
        for folder in ("model", "huggingface/hub/models--a--b/blobs", "huggingface/hub/models--a--b/snapshots/1"):
            os.makedirs(self.path(folder))
        files = [self.path(name) for name in ("text", "ids", "m.gguf", "model/config.json", "model/w.safetensors",
                                              "huggingface/hub/models--a--b/blobs/0")]
        for path in files:
            with open(path, "w") as file:
                file.write("1 2 3")
        os.symlink("../../blobs/0", self.path("huggingface/hub/models--a--b/snapshots/1/config.json"))
        os.symlink(files[0], self.path("link"))
        os.link(files[4], self.path("hard"))
        before = contents(self.folder)
        cache = unittest.mock.patch.dict(os.environ, {"HF_HUB_CACHE": "", "HF_HOME": "", "XDG_CACHE_HOME": self.folder})
        cache.start()
        self.addCleanup(cache.stop)
        text, ids, gguf, config, weights, blob = files
        for model, output in ((gguf, gguf), (gguf, text), (gguf, ids), (gguf, self.path("link")),
                              (self.path("model"), config), (self.path("model"), weights),
                              (self.path("model"), self.path("hard")), ("a/b", blob),
                              ("a/b", self.path("huggingface/hub/models--a--b/snapshots/1/config.json"))):
            with self.subTest(model=model, output=output):
                code, said = self.dump("--model", model, "--text", text, "--ids", ids, "-o", output)
                self.assertEqual((code, said.count("\n")), (2, 1), said)
                self.assertIn("is the input", said)
        self.assertEqual(contents(self.folder), before)
        for output, word in (("", "the value is empty"), ("/dev/null", "a device"), (self.folder, "folder")):
            code, said = self.dump("--model", gguf, "--text", text, "-o", output)
            self.assertEqual((code, word in said), (2, True), said)
        _, said = self.dump("--model", gguf, "--text", text, "-o", self.path("new"))
        self.assertNotIn("is the input", said)

    def test_the_example_refuses_its_input(self):
        os.link(self.path("rows.csv"), self.path("rows.png"))
        before = contents(self.folder)
        done = subprocess.run([sys.executable, PACKAGE / "examples" / "draw_figure.py", self.path("rows.csv"),
                               self.path("rows.png")], capture_output=True, text=True,
                              env=dict(os.environ, PYTHONPATH=str(PACKAGE)))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("choose another name for the figure", done.stderr)
        self.assertEqual(contents(self.folder), before)
