# SPDX-License-Identifier: Apache-2.0
"""The attention of models in which methods run (kvbench.compressed(), kvbench.evaluate()), measured once."""

import weakref

import torch

from .._error import require
from .attention import Interface
from .loading import refuse_unsupported
from .measure import Examination, attention_modules

PROBE = [7 * i + 3 for i in range(48)]  # tokens of the short run that measures the model's attention

_examined = weakref.WeakKeyDictionary()  # by model: its modules of attention, and the Examination


def check_model(model, function):
    known = ("config", "set_attn_implementation", "get_decoder")
    require(isinstance(model, torch.nn.Module) and all(hasattr(model, name) for name in known), function,
            f"{type(model).__name__} is no model of transformers.")
    require(not model.training, function, "the model is in training mode; call model.eval() before.")
    compiled = hasattr(model, "_orig_mod") or getattr(model, "_compiled_call_impl", None) is not None
    require(not compiled, function, "the attention of a compiled model cannot be replaced; give the model without "
            "torch.compile().")


def examination(model):
    """The attention of a model, measured once, unless its modules are replaced."""
    modules = attention_modules(model)
    if _examined.get(model, (None,))[0] != modules:
        refuse_unsupported(type(model).__name__, model.config)
        vocabulary = model.config.get_text_config().vocab_size
        interface = Interface("compressed")
        with interface.attached(model):
            found = Examination(model, interface, [token % vocabulary for token in PROBE], "compressed")
        _examined[model] = modules, found
    return _examined[model][1]
