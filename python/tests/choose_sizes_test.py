# SPDX-License-Identifier: Apache-2.0
"""Sizes of caches in kvbench-choose, and budgets that follow from bytes."""
import shutil
import struct
import types
from unittest import mock

from choose_programs import ChooseTest, Programs
import h5py

from kvbench.choosing import sizes


class Sizes(ChooseTest):
    def test_sizes(self):
        text = self.sized("--memory", "40 MB")
        self.assertEqual(self.programs.budgets - {"100%mem"}, {"25%mem"})  # (40 - 20) / 80
        # the rows hold 25 of 100, of which 20 are two of ten layers
        self.assertIn("After 100000 tokens it holds 25 MB of the 100 MB of the full cache, 250 of 1000 bytes per token",
                      text)
        self.assertEqual(self.read("answer.md"), text)

    def test_a_share_with_a_length(self):
        """Rows of a model in PyTorch, which count a tenth as apart where kveval counts a fifth."""
        self.assertIn("it holds 33.3 MB of the 100 MB", self.sized(apart=0.1))
        self.assertEqual(self.programs.budgets - {"100%mem"}, {"25%mem"})

    def test_a_format_in_layers_with_windows(self):
        """Rows that hold 25 of 100 over all layers: none is apart."""
        with mock.patch.object(Programs, "row", lambda *_: {"compressed_layers": 10}):
            self.assertIn("it holds 25 MB of the 100 MB", self.sized())

    def test_sizes_of_a_trace(self):
        """Two layers of 2 kv heads with 16 channels of keys and 12 of values, in 2 bytes: 112 bytes of a token in each.
        A window of 100 tokens holds 11,200; capped logits take a layer from methods, and not its bytes."""
        question = types.SimpleNamespace(context_length=1000)
        for change, expected in (({}, (224_000, 0)), ({"window": 100}, (123_200, 11_200)),
                                 ({"softcap": 30.0}, (224_000, 112_000)), ({"window": 5000}, (224_000, 112_000))):
            with self.subTest(change):
                path = self.synth("sketches.h5")
                with h5py.File(path, "a") as file:
                    for name, value in change.items():
                        group = file[next(iter(file["prompts"].values())).name + "/layers/1"]
                        group.attrs[name] = type(group.attrs[name])(value)
                found = sizes.sizes_in_trace(question, path)
                self.assertEqual((found.full, found.whole, found.tokens), (*expected, 1000))
        with h5py.File(path, "a") as file:
            del file[next(iter(file["prompts"].values())).name + "/layers/1"]
        with self.refuses("--context-length 1000", "lacks layers .1.", "give --memory as a share"):
            sizes.sizes_in_trace(question, path)

    def test_windows_that_a_trace_does_not_show(self):
        """A trace of 256 tokens shows a window of 255, and a cache of 1000 is not changed by one of 1000."""
        path = self.synth("sketches.h5")
        for window, tokens, known in ((0, 1000, True), (255, 1000, True), (256, 1000, False), (999, 1000, False),
                                      (1000, 1000, True), (512, 300, True)):
            with self.subTest(window=window, tokens=tokens):
                question = types.SimpleNamespace(context_length=tokens)
                if known:
                    self.assertEqual(sizes.sizes_in_trace(question, path, window).full, 224 * tokens)
                else:
                    with self.refuses(f"--context-length {tokens}", f"window of {window} tokens", "documents of 256",
                                      f"give a --context above {window}"):
                        sizes.sizes_in_trace(question, path, window)

    def test_windows_in_headers(self):
        def text(value):
            return struct.pack("<Q", len(value)) + value.encode()
        window = text("gemma3.attention.sliding_window") + struct.pack("<II", 4, 512)
        arch = text("general.architecture") + struct.pack("<I", 8) + text("gemma3")
        arrays = (text("a") + struct.pack("<IIQ", 9, 8, 2) + text("x") + text("yz") +
                  text("b") + struct.pack("<IIQ", 9, 6, 3) + bytes(12) + text("c") + struct.pack("<I?", 7, True))
        for fields, count, expected in ((arch + window, 2, 512), (window + arrays + arch, 5, 512), (arch, 1, 0),
                                        (arch.replace(b"gemma3", b"gemma2") + window, 2, 0)):
            with open(self.path("w.gguf"), "wb") as file:
                file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, count) + fields)
            self.assertEqual(sizes.window_of(self.path("w.gguf")), expected)
        self.assertEqual(sizes.window_of(self.write("text", "w.gguf")), 0)

    def test_sizes_without_gradients_come_from_the_trace(self):
        found = sizes.CacheSizes(tokens=100_000, full=100_000_000, whole=20_000_000, apart=None)
        programs = Programs()
        with mock.patch.object(sizes, "sizes_in_trace", lambda question, path, window: found):
            text = self.choose(programs, "--without-gradients", "--memory", "40MB", "--context-length", "100000")
        self.assertIn("After 100000 tokens it holds 25 MB of the 100 MB of the full cache", text)
        self.assertEqual(programs.budgets, {"25%mem", "100%mem"})

    def test_a_context_beyond_that_of_the_training(self):
        """As with gradients, where the configuration says it."""
        for known, code in ((4096, 2), (100_000, 0)):
            with mock.patch.object(sizes, "metadata", lambda model: {
                    "general.architecture": "llama", "llama.context_length": known}), mock.patch.object(
                    sizes, "sizes_in_trace", lambda *_: sizes.CacheSizes(100_000, 100_000_000, 0, None)):
                text = self.choose(Programs(), "--without-gradients", "--context-length", "100000", code=code)
            self.assertEqual("was trained on 4096 tokens; give at most that number" in text, code == 2, text)

    def test_sizes_are_measured_once_for_all_questions(self):
        self.sized("--memory", "40MB")
        with mock.patch.object(sizes, "sizes", side_effect=AssertionError):
            self.choose(self.programs, "--context-length", "100000", "--memory", "50MB")

    def test_sizes_that_are_no_choice(self):
        for memory, words in (("100MB", "takes 100 MB, which fits without compression"),
                              ("20MB", "of which 20 MB are in layers with a sliding window")):
            self.assertIn(words, self.sized("--memory", memory, code=2))
            shutil.rmtree(self.path("out"))
