# SPDX-License-Identifier: Apache-2.0
"""kvbench.lm_eval_model(): models with compressed caches in lm-evaluation-harness."""

from ._compressed import compressed


def lm_eval_model(model, tokenizer, method="snapkv", budget="25%mem", *, seed=0, **options):
    """A model of lm-evaluation-harness (an HFLM with these options) whose answers come from a compressed cache: in
    tasks that generate and in those that compare likelihoods, the context but for its last token is compressed, so that
    every token of the answer is predicted from the compressed cache.

        lm_eval.simple_evaluate(kvbench.lm_eval_model(model, tokenizer, "h2o", "25%mem"), tasks=["gsm8k"])

    Requests run one at a time."""
    from lm_eval.models.huggingface import HFLM

    class CompressedLM(HFLM):
        def _loglikelihood_tokens(self, requests, disable_tqdm=False, override_bs=None):
            answers = []
            for request in requests:
                _, context, continuation = request
                cut = max(0, len(context) + len(continuation) - self.max_length - 1)  # from the left, by HFLM
                with self._compressed(context=len(context) - cut - 1):
                    answers += super()._loglikelihood_tokens([request], True, 1)
            return answers

        def _model_generate(self, *arguments, **named):
            with self._compressed(context=-1):
                return super()._model_generate(*arguments, **named)

        def _compressed(self, context):
            return compressed(self.model, method, budget, seed=seed, context=context)

    return CompressedLM(pretrained=model, tokenizer=tokenizer, **{"batch_size": 1, **options})
