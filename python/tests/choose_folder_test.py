# SPDX-License-Identifier: Apache-2.0
"""kvbench-choose on a small Hugging Face folder, whose race runs in this process."""
import contextlib
import fcntl
import io
import os
import pathlib
import random
import types
from unittest import mock

import environment

environment.use_torch("threadpoolctl")
from support import KVBENCH, PackageTest, replaced  # noqa: E402
import architectures  # noqa: E402
import hf_models  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from kvbench import ChooseSettings  # noqa: E402
from kvbench.models import evaluate as _evaluate  # noqa: E402
from kvbench.dump_hf import command as dump_hf  # noqa: E402
from kvbench.choosing import choose, command, folder, plans, sizes  # noqa: E402


class Folder(PackageTest):
    def setUp(self):
        super().setUp()
        hf_models.save(self.path("model"), "llama")
        words = [*map(str, range(97))]
        hf_models.small_tokenizer(words).save_pretrained(self.path("model"))
        chosen = random.Random(3)
        self.write(" ".join(chosen.choices(words[1:96], k=48 * 7)), "text.txt")

    def run_it(self, *flags, code=0, out="out"):
        """What the command says. The recording runs in this process too, where PyTorch is loaded."""
        def run(work, made, *command):
            if "kvbench.dump_hf" in command:
                self.assertFalse(os.path.exists(made))
                self.assertEqual(dump_hf.main([str(word) for word in command[3:]]), 0)
            else:
                self.assertNotIn("kveval", os.path.basename(command[0]))
                started(work, made, *command)
        started, said = choose.Work.run, io.StringIO()
        with mock.patch.object(choose.Work, "run", run), contextlib.redirect_stdout(said), \
                contextlib.redirect_stderr(said):
            got = command.main(replaced([
                "--model", self.path("model"), "--text", self.path("text.txt"), "-o", self.path(out), "--programs",
                os.path.dirname(os.path.abspath(KVBENCH)), "--context", "40", "--score", "8", "--documents", "2",
                "--probes", "2", "--methods", "sink,h2o,int8[group=16]", "--menu", "h2o,sink", "--race", "2",
                "--memory", "60%", "--quiet"], flags))
        self.assertEqual(got, code, said.getvalue())
        return said.getvalue()

    def files(self, out="out"):
        """The measurements of the race, and the answers."""
        folder = pathlib.Path(self.path(out))
        return {str(path.relative_to(folder)): path.read_bytes() for pattern in ("measured/*", "answer-*/answer.md")
                for path in sorted(folder.glob(pattern))}

    def test_a_failure_of_the_disk_names_the_file(self):
        full = OSError(28, "No space left on device", "out/answer.md")
        with contextlib.redirect_stderr(io.StringIO()) as said, mock.patch.object(command, "choose", side_effect=full):
            self.assertEqual(command.main(["--model", "m.gguf", "--text", "a.txt", "-o", "out"]), 3)
        self.assertEqual(said.getvalue(), "kvbench-choose: out/answer.md: No space left on device\n")

    def test_two_at_once_do_not_share_a_folder(self):
        os.makedirs(self.path("out"))
        other = os.open(self.path("out"), os.O_RDONLY)
        fcntl.flock(other, fcntl.LOCK_EX)
        self.assertIn("another run works in this folder", self.run_it(code=2))
        self.assertEqual(os.listdir(self.path("out")), [])
        os.close(other)

    def test_from_a_folder_to_an_answer(self):
        text = self.run_it("--minutes", "1", "--context-length", "100")
        self.assertRegex(text, r"^\*\*(sink|h2o|int8\[group=16\])\*\* (changes the output least|leads, undecided,) of "
                               r"the 2 configurations that were measured: KL [0-9.e-]+ nats")
        self.assertRegex(text, r"After 100 tokens it holds [0-9.]+ kB of the 51\.2 kB of the full cache, \d+ of 512 ")
        made = self.files()
        self.assertEqual(len(made), 1 + 4)  # four documents of the second half, none of which decides
        answer, = pathlib.Path(self.path("out")).glob("answer-*/answer.md")
        # A second run computes nothing, also if no plan fits, so that the folder may be one that is only read. What is
        # missing is computed again to the same bytes, at any thread count.
        with mock.patch.object(folder.LoadedModel, "get", side_effect=AssertionError), \
                mock.patch.object(choose.Work, "_run", side_effect=AssertionError):
            self.assertEqual(self.run_it("--minutes", "1", "--context-length", "100"), text)
        documents = sorted(pathlib.Path(self.path("out/measured")).iterdir())
        for path in (documents[1], documents[3], answer):
            os.remove(path)
        self.run_it("--minutes", "1", "--context-length", "100", "--threads", "2")
        self.assertEqual(self.files(), made)
        # Another size of the same recording: nothing but its own configurations is computed.
        recorded = os.stat(self.path("out/probes.h5")).st_mtime_ns
        self.run_it("--minutes", "1", "--memory", "50%")
        self.assertEqual(os.stat(self.path("out/probes.h5")).st_mtime_ns, recorded)
        # A text or weights of the same size as those of the recording, which then is not theirs.
        flags = ["--minutes", "1", "--context-length", "100"]
        words = pathlib.Path(self.path("text.txt")).read_text()
        pathlib.Path(self.path("text.txt")).write_text(" ".join(reversed(words.split(" "))))
        self.assertIn("the texts: not as", self.run_it(*flags, code=2))
        pathlib.Path(self.path("text.txt")).write_text(words)
        model = transformers.AutoModelForCausalLM.from_pretrained(self.path("model"))
        model.lm_head.weight.data.neg_()
        model.save_pretrained(self.path("model"))
        self.assertIn("the model: not as", self.run_it(*flags, code=2))

    def test_plans_and_formats_in_a_folder_with_odd_names(self):
        """A plan races, and formats of engines are measured, in a folder that is then moved."""
        flags = ["--minutes", "1", "--menu", "h2o,sink,int8[group=16]", "--documents", "3", "--methods",
                 "sink,h2o,int8[group=16],fp8", "--memory", "60%"]
        plan = plans.text_of("model", 2, "x", "60%mem", {0: "h2o", 1: "sink"})
        made = types.SimpleNamespace(text=plan, has_a_choice=True, confirmed=True, settings=[], beside=[])
        with mock.patch.object(choose, "divide", lambda *_: made):
            text = self.run_it(*flags, out="a b (c)")
            self.assertRegex(text, r"\| vLLM --kv-cache-dtype fp8 \| 5\d\.\d % \| [0-9.e-]+ "
                                   r"\([0-9.e-]+ to [0-9.e-]+\) \|")
            self.assertRegex(text, r"plan")
            os.rename(self.path("a b (c)"), self.path("moved"))
            with mock.patch.object(folder.LoadedModel, "get", side_effect=AssertionError):
                self.assertEqual(self.run_it(*flags, out="moved"), text)

    def test_a_layer_in_sixteen_bits(self):
        """Keys of layer 1 of some thousands, and queries as much smaller: the model computes the same, and fp8, whose
        largest number is 448, breaks it. With that layer in 16 bits it does not."""
        model = transformers.AutoModelForCausalLM.from_pretrained(self.path("model"))
        layer = model.model.layers[1].self_attn
        times = 3000 / float(layer.k_proj.weight.data.norm(dim=1).max())
        layer.k_proj.weight.data *= times
        layer.q_proj.weight.data *= 20 / times
        model.save_pretrained(self.path("model"))
        text = self.run_it("--minutes", "9", "--methods", "sink,fp8", "--memory", "70%")
        self.assertRegex(text, r"\| vLLM --kv-cache-dtype fp8 \| 50.0 % \| [0-9.e-]+ \([0-9.e-]+ to [0-9.e-]+\) \| "
                               r"(large|breaks the model); with layer 1 in 16 bits "
                               r"\(--kv-cache-dtype-skip-layers 1\) [0-9.e-]+ \([0-9.e-]+ to [0-9.e-]+\) at 75.0 % \|")

    def test_one_document_to_predict_from(self):
        flags = ["--documents", "1", "--race", "1", "--methods", "int8[group=16]", "--memory", "70%"]
        self.assertIn("From 1 other documents KL", self.run_it(*flags))

    def test_a_model_that_cannot_race_is_not_recorded(self):
        """And leaves the folder free for another one."""
        hf_models.save(self.path("model"), "deepseek_v3")
        self.assertIn("latent attention", self.run_it(code=2))
        self.assertFalse(os.path.exists(self.path("out/probes.h5")))
        hf_models.save(self.path("model"), "llama")
        self.run_it()

    def test_interrupted(self):
        done = []

        def read(run, name, ids):
            if len(done) == 2:
                raise KeyboardInterrupt
            done.append(name)
            return kept(run, name, ids)
        kept = _evaluate.Evaluation.read
        with mock.patch.object(_evaluate.Evaluation, "read", read):
            self.assertIn("the same command goes on", self.run_it(code=130))
        before = self.files()
        self.assertEqual(len(before), 2)
        self.run_it()
        after = self.files()
        self.assertEqual({name: after[name] for name in before}, before)
        self.run_it(out="again")
        self.assertEqual(self.files("again"), after)

    def test_a_configuration_that_does_not_run(self):
        wrong = mock.Mock(return_value=None, side_effect=_evaluate.NoCache("infeasible", "no room"))
        with mock.patch.object(_evaluate.Evaluation, "_add_pass", wrong):
            self.assertIn("did not run (no room)", self.run_it(code=2))


class Sizes(PackageTest):
    # name: bytes of each layer after 100 tokens of the length (100), in bf16
    ROW = 2 * (16 + 16) * 2  # kv heads, channels, bytes
    MODELS = {"llama": ("llama", 2 * 100 * ROW, 0), "gemma3": ("gemma3", (8 + 100) * ROW, 8 * ROW),
              "phi3": ("phi3", 2 * 12 * ROW, 2 * 12 * ROW), "lfm2": (None, 2 * 100 * ROW, 0),
              "granitemoehybrid": (None, 2 * 100 * ROW, 0), "gemma3n_text": (None, (8 + 100) * ROW, 8 * ROW)}

    def sizes(self, model, tokens, gguf=False, **settings):
        given = ChooseSettings(self.path(model), "t", "o", context_length=tokens, **settings)
        question = types.SimpleNamespace(**vars(given), gguf=gguf)
        return sizes.sizes(question, folder.LoadedModel(question))

    def test_layers_with_windows_without_attention_and_that_share(self):
        for name, (known, full, whole) in self.MODELS.items():
            with self.subTest(name):
                model = hf_models.build(*hf_models.MODELS[known][:2]) if known else architectures.build(name)
                model.to(torch.bfloat16).save_pretrained(self.path(name))
                found = self.sizes(name, 100, context=24, score=8)
                self.assertEqual((found.full, found.whole, found.tokens), (full, whole, 100))
                tokens = 32
                expected = {"gemma3": 8 / 40, "gemma3n_text": 8 / 40, "phi3": 1}.get(name, 0)
                self.assertEqual(found.apart, expected, tokens)
                with self.refuses("--context-length 513", "trained on 512"):
                    self.sizes(name, 513)

    def test_float32_and_gguf(self):
        hf_models.save(self.path("model"), "llama")
        for gguf, element in ((False, 4), (True, 2)):
            self.assertEqual(self.sizes("model", 100, gguf).full, 2 * 100 * 64 * element)
