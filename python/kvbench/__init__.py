# SPDX-License-Identifier: Apache-2.0
"""kvbench from Python: traces (Trace, TraceWriter), raw results (Raw), entries of your own (write_kept), result CSVs
(load_csv), and replays (replay). docs/python.md describes the package."""

import importlib

# Loaded when they are first used: the command `kvbench` starts without numpy and h5py.
_MODULES = {
    "Error": "_error", "Header": "_schema", "KeptWriter": "kept", "Layer": "trace", "LayerInfo": "_schema",
    "Prompt": "trace", "PromptInfo": "_schema", "Raw": "raw", "Table": "kept", "Trace": "trace",
    "TraceWriter": "trace_writer", "load_csv": "results", "replay": "_replay",
    "write_kept": "kept",
}
__all__ = list(_MODULES)


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module 'kvbench' has no attribute '{name}'")
    globals()[name] = value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    return value


def __dir__():
    return sorted({*globals(), *__all__})
