# SPDX-License-Identifier: Apache-2.0
"""kvbench.lm_eval_model(): tasks of lm-evaluation-harness whose answers come from compressed caches."""
import json
import os
import warnings

import environment

environment.use_torch("lm_eval", "threadpoolctl")
from support import PackageTest, kvbench  # noqa: E402
import hf_models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

os.environ["HF_DATASETS_OFFLINE"] = os.environ["HF_HUB_OFFLINE"] = "1"
import lm_eval  # noqa: E402
from lm_eval.api.instance import Instance  # noqa: E402
from lm_eval.models.huggingface import HFLM  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402

YAML = """task: {name}
dataset_path: json
dataset_kwargs:
  data_files: {{test: {data}}}
test_split: test
output_type: {output}
doc_to_text: "{{{{text}}}}"
{answers}
metric_list:
  - metric: {metric}
"""


class Harness(PackageTest):
    """A task of lm-evaluation-harness without a download: numbers that a text states, as tokens of a small model."""

    @classmethod
    def setUpClass(cls):
        torch.set_grad_enabled(False)
        cls.model = hf_models.build(*hf_models.MODELS["llama"][:2])

    def task(self, name, output, answers, metric):
        self.write(YAML.format(name=name, data=self.path("keys.jsonl"), output=output, answers=answers, metric=metric),
                   f"{name}.yaml")

    def test_tasks_that_generate_and_that_compare(self):
        model, tokenizer = self.model, small_tokenizer()
        with open(self.path("keys.jsonl"), "w") as file:
            for i in range(3):
                text = " ".join(f"w{(7 * j + i) % 80}" for j in range(40)) + f" key w{i} what is the key"
                file.write(json.dumps({"text": text, "choices": [f" w{i}", f" w{i + 1} w{i}"], "label": 0}) + "\n")
        self.task("writes", "generate_until", 'doc_to_target: "{{choices[0]}}"\ngeneration_kwargs: {until: ["."], '
                  "max_gen_toks: 3, do_sample: false}", "exact_match")
        self.task("chooses", "multiple_choice", 'doc_to_choice: choices\ndoc_to_target: label\ntarget_delimiter: ""',
                  "acc")
        manager = TaskManager(include_path=self.folder, include_defaults=False)

        def samples(own):
            found = lm_eval.simple_evaluate(own, tasks=["writes", "chooses"], task_manager=manager, bootstrap_iters=0)
            return [sample["filtered_resps"] for task in ("writes", "chooses") for sample in found["samples"][task]]
        plain = samples(HFLM(pretrained=model, tokenizer=tokenizer, batch_size=1))
        exact = samples(kvbench.lm_eval_model(model, tokenizer, "exact", "100%"))
        less = samples(kvbench.lm_eval_model(model, tokenizer, "snapkv[window=4]", 6))
        self.assertEqual(plain[:3], exact[:3])
        for a, b, c in zip(plain[3:], exact[3:], less[3:]):
            np.testing.assert_allclose([x[0] for x in a], [x[0] for x in b], rtol=1e-3)
            self.assertGreater(max(abs(x[0] - y[0]) for x, y in zip(a, c)), 1e-3)

    def test_short_requests_stay_whole_and_are_counted(self):
        """A budget above the context, an empty context, one token, and rolling perplexity end no evaluation."""
        words = " ".join(f"w{7 * j % 80}" for j in range(40))
        pairs = [(words, " w1 w2"), ("", "w3 w4"), ("w5", " w6"), ("w7 w8 w9", " w1"), (words, " w3")]
        requests = {"loglikelihood": [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)],
                    "loglikelihood_rolling": [Instance("loglikelihood_rolling", {}, (words,), 0)],
                    "generate_until": [Instance("generate_until", {}, (text, {"until": ["."], "max_gen_toks": 3}), i)
                                       for i, text in enumerate(("w1", words))]}
        plain = HFLM(pretrained=self.model, tokenizer=small_tokenizer(), batch_size=1)
        own = kvbench.lm_eval_model(self.model, small_tokenizer(), "snapkv[window=4]", 12)
        for kind, given in requests.items():
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                got, expected = (getattr(one, kind)(given) for one in (own, plain))
            self.assertEqual(len(got), len(given))
            self.assertTrue(any("stayed whole" in str(one.message) for one in seen))
            if kind == "loglikelihood":  # the first and last were compressed
                differ = [abs(a[0] - b[0]) > 1e-3 for a, b in zip(got, expected)]
                self.assertEqual(differ, [True, False, False, False, True])
                self.assertEqual((own.contexts, sum(own.whole.values())), (5, 3))
        self.assertEqual((own.contexts, sum(own.whole.values())), (8, 5))
        self.assertTrue(any("larger than the context" in reason for reason in own.whole), own.whole)

    def test_batches_are_refused(self):
        with self.refuses("batch_size=8", "one at a time"):
            kvbench.lm_eval_model(self.model, small_tokenizer(), batch_size=8)

    def test_what_would_be_ignored_is_refused(self):
        for name, value in (("dtype", "float16"), ("device", "cuda"), ("peft", "x"), ("max_lenght", 9)):
            with self.refuses(f"{name} has no effect"):
                kvbench.lm_eval_model(self.model, small_tokenizer(), "sink", 8, **{name: value})
        for model in (None, "HuggingFaceTB/SmolLM2-135M"):
            with self.refuses("give a loaded model", type(model).__name__):
                kvbench.lm_eval_model(model, small_tokenizer())
        self.assertEqual(kvbench.lm_eval_model(self.model, small_tokenizer(), max_length=32).max_length, 32)


def small_tokenizer():
    """Words w0 to w87 and some others, as the vocabulary of the small models."""
    return hf_models.small_tokenizer(["<unk>", "<s>", "<pad>", "key", "what", "is", "the", ".",
                                      *(f"w{i}" for i in range(88)), "</s>"])
