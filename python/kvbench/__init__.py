# SPDX-License-Identifier: Apache-2.0
"""kvbench from Python: methods of your own (scorer, and classes with make()), the commands of the program (replay,
compare, sentences, validate, report), models with compressed caches (compressed) and
what these do to their output (evaluate), traces (Trace, TraceWriter), raw
results (Raw), entries and scores (entries, write_scores, method_scores), result CSVs
(load_csv) and golden rows (golden). docs/python.md describes the package."""

import importlib

# Loaded when they are first used: the command `kvbench` starts without numpy and h5py.
_NAMES = {
    "_error": "Error",
    "_schema": "Anchor Anchors Header LayerInfo Probes PromptInfo",
    "trace": "Layer Prompt Trace",
    "trace_writer": "TraceWriter",
    "raw": "Raw",
    "scores": "write_scores",
    "results": "Rows load_csv",
    "_check": "check",
    "choosing.choose": "choose ChooseResult Worse",
    "choosing.settings": "ChooseSettings",
    "_compressed": "compressed",
    "_evaluate": "evaluate",
    "_kvpress": "from_kvpress",
    "_lm_eval": "lm_eval_model",
    "_given": "entries",
    "_models": "load_model",
    "_commands": "compare method_scores replay report validate",
    "_golden": "GoldenRow golden verify_golden",
    "_sentences": "sentences",
    "method": "Array HeadPrompt Infeasible Kept QueryBlock Rope Table Unavailable scorer",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = list(_MODULES)


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module 'kvbench' has no attribute '{name}'")
    globals()[name] = value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    return value


def __dir__():
    return sorted({*globals(), *__all__})
