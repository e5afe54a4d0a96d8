# SPDX-License-Identifier: Apache-2.0
"""kvbench.lm_eval_model(): models with compressed caches in lm-evaluation-harness."""

import collections
import contextlib
import warnings
from typing import Any

import torch

from .._error import Error, require
from .compressed import compressed

# Options of HFLM that concern more than the loading of a model; it ignores the others, and those that it does not know.
OPTIONS = ("add_bos_token", "backend", "batch_size", "chat_template_args", "enable_thinking", "logits_cache",
           "max_length", "mixed_precision_dtype", "prefix_token_id", "revision", "softmax_dtype", "subfolder",
           "think_end_token", "truncation", "trust_remote_code", "use_fast_tokenizer")
TOO_SHORT = "the context has no token before its last one, which is decoded"


def lm_eval_model(model: Any, tokenizer: Any, method: Any = "snapkv", budget: Any = "25%mem", *, seed: int = 0,
                  decode: int | None = None, **options: Any) -> Any:
    """A model of lm-evaluation-harness whose answers come from a compressed cache.

    In tasks that generate and in those that compare likelihoods, the context but for its last token is compressed, so
    that every token of the answer is predicted from the compressed cache. Requests run one at a time.

    Parameters
    ----------
    model, tokenizer
        Those of transformers.
    method, budget, seed, decode
        As for `kvbench.compressed()`.
    **options
        Those of ``HFLM`` that concern more than the loading of a model.

    Returns
    -------
    lm_eval.models.huggingface.HFLM
        Contexts that the method cannot shrink to the budget, such as short ones and those of rolling perplexity, stay
        whole: `contexts` counts all, `whole` the whole ones by the reason, and a warning names them.

    Raises
    ------
    Error
        If lm-evaluation-harness is not installed, or an option has no effect.

    Examples
    --------
    >>> lm_eval.simple_evaluate(kvbench.lm_eval_model(model, tokenizer, "h2o", "25%mem"), tasks=["gsm8k"])
    """
    try:
        from lm_eval.models.huggingface import HFLM
    except ImportError as failure:
        raise Error(f"lm_eval_model(): {failure}; install lm-evaluation-harness: pip install 'lm_eval[hf]'.") from None

    require(isinstance(model, torch.nn.Module), "lm_eval_model()", "give a loaded model, such as "
            f"AutoModelForCausalLM.from_pretrained(NAME), not {type(model).__name__}.")
    for name in options:
        require(name in OPTIONS, "lm_eval_model()", f"{name} has no effect on a model that is loaded already; leave it "
                f"out, or load the model with it. Options are {', '.join(OPTIONS)}.")
    if str(options.setdefault("batch_size", 1)) != "1":
        raise Error(f"lm_eval_model(): batch_size={options['batch_size']}; requests run one at a time, with "
                    "batch_size=1.")

    class CompressedLM(HFLM):
        contexts = 0
        whole = collections.Counter()

        def _loglikelihood_tokens(self, requests, disable_tqdm=False, override_bs=None):
            answers = []
            for request in requests:
                _, context, continuation = request
                cut = max(0, len(context) + len(continuation) - self.max_length - 1)  # from the left, by HFLM
                with self._compressed(len(context) - cut - 1):
                    answers += super()._loglikelihood_tokens([request], True, 1)
            return answers

        def _model_generate(self, context, *arguments, **named):
            with self._compressed(context.shape[1] - 1):
                return super()._model_generate(context, *arguments, **named)

        @contextlib.contextmanager
        def _compressed(self, context):
            self.contexts += 1
            if context < 1:
                self.whole[TOO_SHORT] += 1
                yield
                return
            with compressed(self.model, method, budget, seed=seed, context=context, decode=decode, whole=True) as run:
                yield
            self.whole += run.whole

        def loglikelihood(self, *arguments, **named):
            with self._counted():
                return super().loglikelihood(*arguments, **named)

        def loglikelihood_rolling(self, *arguments, **named):
            with self._counted():
                return super().loglikelihood_rolling(*arguments, **named)

        def generate_until(self, *arguments, **named):
            with self._counted():
                return super().generate_until(*arguments, **named)

        @contextlib.contextmanager
        def _counted(self):
            """Warns of the contexts that stayed whole in these requests."""
            contexts, whole = self.contexts, collections.Counter(self.whole)
            yield
            for reason, count in (self.whole - whole).items():
                warnings.warn(f"{count} of {self.contexts - contexts} contexts stayed whole, and these answers are "
                              f"those of the full cache: {reason}.", stacklevel=4)

    made = CompressedLM(pretrained=model, tokenizer=tokenizer, **options)
    made.whole = collections.Counter()
    return made
