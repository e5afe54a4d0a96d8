# SPDX-License-Identifier: Apache-2.0
"""kvbench from Python: methods of your own (scorer, and classes with make()), the commands of the program (replay,
compare, sentences, report), models with compressed caches (compressed) and what these do to their output (evaluate),
traces (Trace, TraceWriter), raw results (Raw), entries and scores (entries, write_scores, method_scores), result CSVs
(load_csv) and golden rows (golden, verify_golden). docs/python.md describes the package."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same for type checkers, which do not run __getattr__
    from ._check import check as check
    from ._commands import (
        compare as compare, method_scores as method_scores, replay as replay, report as report)
    from ._compressed import compressed as compressed
    from ._error import Error as Error
    from ._evaluate import evaluate as evaluate
    from ._given import entries as entries
    from ._golden import GoldenRow as GoldenRow, golden as golden, verify_golden as verify_golden
    from ._kvpress import from_kvpress as from_kvpress
    from ._lm_eval import lm_eval_model as lm_eval_model
    from ._models import load_model as load_model
    from ._schema import (
        Anchor as Anchor, Anchors as Anchors, Header as Header, LayerInfo as LayerInfo, Probes as Probes,
        PromptInfo as PromptInfo)
    from ._sentences import sentences as sentences
    from .choosing.choose import ChooseResult as ChooseResult, Worse as Worse, choose as choose
    from .choosing.settings import ChooseSettings as ChooseSettings
    from .method import (
        Array as Array, HeadPrompt as HeadPrompt, Infeasible as Infeasible, Kept as Kept, QueryBlock as
        QueryBlock, Rope as Rope, Table as Table, Unavailable as Unavailable, scorer as scorer)
    from .raw import Raw as Raw
    from .results import Rows as Rows, load_csv as load_csv
    from .scores import write_scores as write_scores
    from .trace import Layer as Layer, Prompt as Prompt, Trace as Trace
    from .trace_writer import TraceWriter as TraceWriter

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
    "_commands": "compare method_scores replay report",
    "_golden": "GoldenRow golden verify_golden",
    "_sentences": "sentences",
    "method": "Array HeadPrompt Infeasible Kept QueryBlock Rope Table Unavailable scorer",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = list(_MODULES)


if not TYPE_CHECKING:  # for which any name would exist
    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'kvbench' has no attribute '{name}'")
        globals()[name] = value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
