# SPDX-License-Identifier: Apache-2.0
"""What kvbench-choose is asked: flags, settings and what is refused."""
import dataclasses
import pathlib
import sys
from unittest import mock

from choose_programs import ChooseTest, Programs
import kvbench
from kvbench.files import access as _files
from kvbench.choosing import command, settings


class Settings(ChooseTest):
    def test_flags_without_effect_are_notes(self):
        for flags, note in ((["--runs-in", "llama.cpp", "--by", "head", "--error", "0"], "--by has no effect beside"),
                            (["--without-gradients", "--probes", "4", "--by", "head"], "--probes has no effect")):
            self.assertIn(f"kvbench-choose: {note}", self.choose(Programs(), *flags, code=2))
        for flags in (["--by", "head"], ["--runs-in", "llama.cpp"], ["--probes", "4"]):
            self.assertNotIn("no effect", self.choose(Programs(), *flags, "--error", "0", code=2))

    def test_a_model_of_the_hub_without_the_program(self):
        self.assertIn("installed without its program", self.choose(Programs(), "--model", "hub/name", code=2))

    def test_a_name_that_a_trace_cannot_hold(self):
        said = self.choose(Programs(), "--model", self.write("x", "m\nodel.gguf"), code=2)
        self.assertIn("--model: has a control character", said)

    def test_the_model_without_its_flag(self):
        for words in ("m.gguf --text a b -o x", "--text a -o x m.gguf", "-q --text=a m.gguf -ox",
                      "-o x m.gguf --text a"):
            with self.subTest(words):
                self.assertEqual(command.parser().parse_args(words.split()).model, "m.gguf")

    def test_texts_of_sizes(self):
        for text, count in (("3.5GB", 3_500_000_000), ("800 MiB", 800 * 2**20), ("1kb", 1000), ("7B", 7), ("0GB", None),
                            ("3G", None), ("GB", None), ("-1GB", None), ("1iB", None), ("25%", None), ("1e3MB", None)):
            with self.subTest(text):
                self.assertEqual(settings.bytes_of(text), count)
        self.assertEqual([_files.size_text(n) for n in (7, 999, 1000, 98304, 3.5e9, 2e15)],
                         ["7 B", "999 B", "1 kB", "98.3 kB", "3.5 GB", "2e+03 TB"])

    def test_streams_that_are_closed(self):
        with mock.patch.object(command, "choose"), mock.patch.multiple(sys, stdout=None, stderr=None):
            self.assertEqual(command.main(["--model", "m", "--text", "t", "-o", "out"]), 3)

    def test_settings_are_kept_as_values(self):
        given = kvbench.ChooseSettings(pathlib.Path("m.gguf"), "a.txt", pathlib.Path("out"), methods=["h2o", "sink"],
                                       minutes=1)
        self.assertEqual((given.model, given.text, given.output, given.methods, given.minutes),
                         ("m.gguf", ("a.txt",), "out", "h2o,sink", 1.0))
        self.assertEqual(dataclasses.replace(given, memory="12.5%").text, ("a.txt",))
        self.assertEqual(given, kvbench.ChooseSettings("m.gguf", ["a.txt"], "out", methods="h2o,sink", minutes=1.0))
        with self.assertRaises(dataclasses.FrozenInstanceError):
            given.memory = "50%"

    def test_flags_have_the_defaults_of_settings(self):
        parsed = command.parser().parse_args("--model m --text t -o out".split())
        self.assertEqual(kvbench.ChooseSettings(**vars(parsed)), kvbench.ChooseSettings("m", "t", "out"))

    def test_wrong_kinds(self):
        for wrong, words in (({"context": "1024"}, "context. must be an integer"), ({"race": 0}, "race.: is 0"),
                             ({"threads": 4097}, "threads.: is 4097"), ({"by": "token"}, "one of layer, head"),
                             ({"runs_in": 3}, "runs_in. must be text"),
                             ({"quiet": 1}, "quiet. must"),
                             ({"device": None}, "one of cpu, cuda"), ({"methods": [1]}, "methods. must be text"),
                             ({"text": []}, "text.: there is no text"), ({"model": 3}, "model. must be the path"),
                             ({"error": None}, "error. must be a number")):
            with self.subTest(wrong=wrong), self.refuses("ChooseSettings", words):
                kvbench.ChooseSettings(**{"model": "m", "text": "t", "output": "o", **wrong})
