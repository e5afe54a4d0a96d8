# SPDX-License-Identifier: Apache-2.0
"""Runs of kvbench-dump-hf: their options, passes and messages, and what stops them."""
import contextlib
import io
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
from unittest import mock

import environment

environment.use_torch()
from support import PACKAGE, run  # noqa: E402
import hf_models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from dumps import OpenedDumpTest  # noqa: E402
from kvbench.models import attention as _attention  # noqa: E402
from kvbench.dump_hf import command as dump_hf  # noqa: E402

sys.path.insert(0, str(PACKAGE.parent / "tests" / "refusals"))
import table  # noqa: E402


VERSIONS = """
import importlib, sys
import transformers
sys.path.insert(0, "{}")
import kvbench
for version in {}:
    transformers.__version__ = version
    for use in (lambda: kvbench.load_model, lambda: importlib.import_module("kvbench.models.attention")):
        for name in [name for name in sys.modules if name.startswith("kvbench._")]:
            if name != "kvbench._error":
                del sys.modules[name]
        vars(kvbench).pop("load_model", None)
        try:
            use()
            print()
        except kvbench.Error as refusal:
            print(refusal)
"""


class IdsTest(OpenedDumpTest):
    def ids(self, count=48, seed=0, name="ids"):
        return super().ids(hf_models.token_ids(count, seed), name)


class Passes(IdsTest):
    def setUp(self):
        super().setUp()
        self.model = hf_models.save(self.path("m"), "gemma2")

    def arrays(self, prompt="0", layer=1):
        trace = self.trace()
        layer = trace.prompts[prompt].layers[layer]
        return {name: layer.array(name) for name in layer.arrays}

    def test_blocks_of_queries_do_not_show(self):
        """The same arrays whether attention runs in one block or in blocks of three queries."""
        arguments = ("--ids", self.ids(), "--queries", "all", "--column-sums", "--attention-output", "--force")
        self.dump(self.path("m"), *arguments)
        whole = self.arrays()
        most, _attention.MOST_WEIGHTS = _attention.MOST_WEIGHTS, 4 * 48 * 3
        self.addCleanup(setattr, _attention, "MOST_WEIGHTS", most)
        self.dump(self.path("m"), *arguments)
        for name, array in self.arrays().items():
            np.testing.assert_allclose(array, whole[name], rtol=1e-4, atol=1e-5, err_msg=name)

    def test_decoding_is_greedy_and_recorded(self):
        self.dump(self.path("m"), "--ids", self.ids(20), "--decode", 6)
        prompt = self.trace().prompts["0"]
        self.assertEqual((prompt.num_tokens, prompt.prompt_tokens), (26, 20))
        self.assertEqual(prompt.layers[0].query_positions.tolist(), list(range(26)))
        self.model.set_attn_implementation("eager")
        with torch.no_grad():
            for n in range(20, 26):
                logits = self.model(torch.tensor([prompt.tokens[:n].tolist()]), use_cache=False).logits[0, -1]
                self.assertEqual(int(logits.argmax()), prompt.tokens[n])

    def test_decoding_stops_where_the_model_ends_its_text(self):
        self.dump(self.path("m"), "--ids", self.ids(20), "--decode", 6)
        third = int(self.trace().prompts["0"].tokens[22])
        self.model.generation_config.eos_token_id = third
        self.model.save_pretrained(self.path("m"))
        said = self.dump(self.path("m"), "--ids", self.ids(20), "--decode", 6, "--force")
        prompt = self.trace().prompts["0"]
        self.assertIn(f"ended its text {26 - prompt.num_tokens} tokens before", said)
        self.assertNotIn(third, prompt.tokens[20:])
        self.assertLessEqual(prompt.num_tokens, 22)

    def test_prompts_and_options(self):
        said = self.dump(self.path("m"), "--ids", self.ids(), self.ids(30, 5, "more"), "--layers", "1", "--queries",
                         "last:4", "--dtype", "f16")
        self.assertRegex(said, r"t.h5: 78 tokens, 1 layers; largest difference .*e-0[678]")
        trace = self.trace()
        self.assertEqual([(p.name, p.num_tokens, p.prompt_tokens) for p in trace.prompts.values()],
                         [("ids", 48, 36), ("more", 30, 23)])
        self.assertEqual((list(trace.prompts["1"].layers), trace.dtype, trace.arch, trace.quantisation),
                         ([1], "f16", "gemma2", "F32"))
        self.assertEqual(trace.prompts["1"].layers[1].query_positions.tolist(), [26, 27, 28, 29])
        second = self.arrays("1")
        self.dump(self.path("m"), "--ids", self.path("more"), "--queries", "last:4", "--dtype", "f16", "--quiet",
                  "--force")
        for name, array in self.arrays().items():
            np.testing.assert_array_equal(array, second[name])

    def test_short_prompts_share_the_window_of_long_ones(self):
        self.dump(self.path("m"), "--ids", self.ids(6, name="short"), self.ids())
        self.assertEqual([[layer.window for layer in p.layers.values()] for p in self.trace().prompts.values()],
                         [[8, 0], [8, 0]])

    def test_half_weights(self):
        self.dump(self.path("m"), "--ids", self.ids(), "--weights", "bf16", "--queries", "all")
        trace = self.trace()
        self.assertEqual((trace.quantisation, trace.rope_type, trace.rope_layout), ("BF16 from F32", "default", "half"))
        keys = trace.prompts["0"].layers[1].keys()
        np.testing.assert_array_equal(keys, torch.tensor(keys).bfloat16().float().numpy())

    def test_kvbench_replays_it(self):
        hf_models.save(self.path("q"), "qwen3")
        self.dump(self.path("q"), "--ids", self.ids(300), "--column-sums", "--speculated", "--pre-rope")
        self.assertIn("qwen3, F32", run("info", self.path("t.h5")))
        rows = self.replay(self.path("t.h5"), "--method", "all", "--budget", "25%")
        self.assertGreater(len(rows), 15)
        # Quantisers have no budget in tokens, blocks of ggml no heads of 16 channels, lagkv no 225 tokens, wildcat no
        # budget of 56, and compactor no queries before the last ones.
        expected = ("keeps every token in fewer bits|no multiple of the 32|lagkv never drops|compactor needs the "
                    "queries|wildcat keeps 32 sinks")
        for row in rows:
            if row["status"] != "ok":
                self.assertRegex(row["reason"], expected)


class Usage(IdsTest):
    def test_bad_input_is_named(self):
        """The rows of tests/refusals/table.py, with the files that they name."""
        self.enterContext(contextlib.chdir(self.folder))
        hf_models.save("llama", "llama")
        self.ids(name="a.ids")
        os.mkdir("folder")
        for name, text in (("word", "1 x2"), ("large", "1 97"), ("one", "4"), ("nul", "1 2\0"), ("kept.h5", "old")):
            self.write(text, name)
        before, rows = sorted(os.listdir()), [row for row in table.ROWS if row.words[0] == "kvbench-dump-hf"]
        self.assertGreater(len(rows), 30)
        for row in rows:
            for name, text in row.files.items():
                self.write(text, name)
            with self.subTest(row.words), contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(dump_hf.main(row.words[1:]), row.code, said.getvalue())
                for part in row.says:
                    self.assertIn(part, said.getvalue())
                self.assertEqual(said.getvalue().count("\n"), 1, said.getvalue())
                self.assertEqual(sorted({*os.listdir()} - {*row.files}), before)
            for name in row.files:
                os.unlink(name)
        self.assertEqual(pathlib.Path("kept.h5").read_text(), "old")
        if not torch.cuda.is_available():
            self.assertIn("no CUDA device", self.dump("llama", "--ids", "a.ids", "--device", "cuda", code=2))

    def test_conversations(self):
        """Of texts and of ids, and of texts in a chat template, which has the ids 91 and 92 around each."""
        hf_models.save(self.path("m"), "llama")
        tokenizer = hf_models.small_tokenizer([*map(str, range(97))])
        messages = [{"role": "user", "content": "1 2 3"}, {"role": "assistant", "span": "own", "content": "4 5"},
                    {"role": "user", "content": [6]}, {"role": "assistant", "content": "7 8"}]
        for template, content, tokens, context, spans in (
                (None, [6], [*range(1, 9)], 6, [(0, 3), (3, 5), (5, 6)]),
                ("{% for one in messages %}91 {{ one['content'] }} 92 {% endfor %}", "6",
                 [91, 1, 2, 3, 92, 91, 4, 5, 92, 91, 6, 92, 91, 7, 8, 92], 13, [(0, 5), (5, 9), (9, 12)]),
                ("{{ messages[-1]['content'] }}", "6", None, None, None)):  # forgets what was said before
            tokenizer.chat_template, messages[2]["content"] = template, content
            tokenizer.save_pretrained(self.path("m"))
            talk = self.write(json.dumps({"messages": messages}) + "\n\n" + json.dumps(messages), "talk.jsonl")
            said = self.dump(self.path("m"), "--transcripts", talk, "--force", *["--chat"] * bool(template),
                             code=0 if tokens else 2)
            if not tokens:
                self.assertIn("message 2: the chat template changes it", said)
                continue
            self.assertEqual([prompt.name for prompt in self.trace().prompts.values()], ["talk-0", "talk-1"])
            for prompt in self.trace().prompts.values():
                self.assertEqual((prompt.tokens.tolist(), prompt.prompt_tokens), (tokens, context))
                self.assertEqual([(one.name, one.begin, one.end) for one in prompt.spans],
                                 [(name, *span) for name, span in zip(("user", "own", "user"), spans)])

    def test_without_torch_one_sentence_says_what_to_install(self):
        for name in ("torch", "transformers"):
            hidden = sys.modules[name]
            self.addCleanup(sys.modules.__setitem__, name, hidden)
            sys.modules[name] = None
            said = self.dump("m", "--ids", "x", code=2)
            sys.modules[name] = hidden
            self.assertIn("pip install './python[hf]'", said)

    def test_transformers_that_is_too_old(self):
        """By the versions that the projects' files accept, whatever is used first."""
        stated = {re.search(r'"transformers>=([0-9.]+)"', (folder / "pyproject.toml").read_text())[1]
                  for folder in (PACKAGE, PACKAGE.parent)}
        self.assertEqual(len(stated), 1, stated)
        [oldest] = stated
        major, minor = map(int, oldest.split("."))
        versions = {"4.57.6": False, "5.0.0": False, f"{major}.{minor - 1}.4": False, f"{oldest}.0": True,
                    f"{major}.{minor + 94}.0": True, "6.0.0.dev0": True}
        said = subprocess.run([sys.executable, "-c", VERSIONS.format(PACKAGE, list(versions))], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.splitlines()
        refusal = "transformers {} is too old; install {} or later with pip install -U transformers."
        self.assertEqual(said, [line for version, accepted in versions.items()
                                for line in 2 * ["" if accepted else refusal.format(version, oldest)]])

    def test_messages_that_cannot_be_written(self):
        hf_models.save(self.path("m"), "llama")
        for closed in (None, open("/dev/full", "w")):
            with mock.patch.object(sys, "stderr", closed):
                code = dump_hf.main(["--model", self.path("m"), "--ids", self.ids(20), "-o", self.path("t.h5"),
                                     "--force"])
            self.assertEqual(code, 0)

    def test_signals_leave_nothing(self):
        hf_models.save(self.path("m"), "llama")
        prompts = [self.ids(500, seed, f"p{seed}") for seed in range(200)]
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            process = subprocess.Popen([sys.executable, "-m", "kvbench.dump_hf", "--model", self.path("m"),
                                        "-o", self.path("t.h5"), "--ids", *prompts], stderr=subprocess.PIPE, text=True,
                                       env={**os.environ, "PYTHONPATH": os.pathsep.join(
                                            [str(PACKAGE), *sys.path])})
            deadline = time.time() + 120
            while not os.path.exists(self.path(f"t.h5.tmp.{socket.gethostname()}.{process.pid}")):
                self.assertIsNone(process.poll(), "ended before the trace was begun")
                self.assertLess(time.time(), deadline)
                time.sleep(0.01)
            process.send_signal(number)
            said = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, 130, said)
            self.assertIn("interrupted; nothing was written", said)
            self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("t.h5")])
