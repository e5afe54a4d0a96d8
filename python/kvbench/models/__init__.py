# SPDX-License-Identifier: Apache-2.0
"""Methods inside models of transformers, and what is measured there. These modules need PyTorch.

    loading.py       models and tokenizers from files
    measure.py       what the attention of a model is: layers, heads, scale, mask, rotation (rotation.py)
    examination.py   measured once per model
    attention.py     the attention that a model calls in place of its own
    compressed.py    compressed(): methods in place of the cache
    sequences.py     a layer of a sequence inside compressed()
    scored.py        methods there whose scores need the model
    continued.py     tokens that are read from the cache of a context
    passes.py        documents with full and with compressed caches
    evaluate.py      evaluate(): rows of kvbench eval
    lm_eval.py       lm_eval_model(): lm-evaluation-harness
    probes.py        gradients of the scored tokens
    repeated.py      KVzip and KVgrad, which have a context read again
    scores.py        scores that need the model"""
