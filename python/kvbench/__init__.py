# SPDX-License-Identifier: Apache-2.0
"""kvbench from Python: methods of your own (scorer, and classes with make()), the commands of the program (replay,
compare, sentences, report), models with compressed caches (compressed) and what these do to their output (evaluate),
traces (Trace, TraceWriter), raw results (Raw), entries and scores (entries, write_scores, method_scores), result CSVs
(load_csv) and golden rows (golden, verify_golden). docs/python.md describes the package."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same for type checkers, which do not run __getattr__
    from .program.check import check as check
    from .program.commands import (
        compare as compare, method_scores as method_scores, replay as replay, report as report)
    from .models.compressed import compressed as compressed
    from ._error import Error as Error
    from .models.evaluate import evaluate as evaluate
    from .methods.given import entries as entries
    from .program.golden import GoldenRow as GoldenRow, golden as golden, verify_golden as verify_golden
    from .methods.kvpress import from_kvpress as from_kvpress, lukv_curve as lukv_curve
    from .models.lm_eval import lm_eval_model as lm_eval_model
    from .models.loading import load_model as load_model
    from .files.schema import (
        Anchor as Anchor, Anchors as Anchors, Header as Header, LayerInfo as LayerInfo, Probes as Probes,
        PromptInfo as PromptInfo, Span as Span)
    from .results.sentences import sentences as sentences
    from .choosing.choose import ChooseResult as ChooseResult, Worse as Worse, choose as choose
    from .choosing.settings import ChooseSettings as ChooseSettings
    from .methods.method import (
        Array as Array, HeadPrompt as HeadPrompt, Infeasible as Infeasible, Kept as Kept, QueryBlock as
        QueryBlock, Rope as Rope, Table as Table, Unavailable as Unavailable, scorer as scorer)
    from .results.raw import Raw as Raw
    from .results.rows import Rows as Rows, load_csv as load_csv
    from .methods.scores import write_scores as write_scores
    from .files.trace import Layer as Layer, Prompt as Prompt, Trace as Trace
    from .files.trace_writer import TraceWriter as TraceWriter

# Loaded when they are first used: the command `kvbench` starts without numpy and h5py.
_NAMES = {
    "_error": "Error",
    "files.schema": "Anchor Anchors Header LayerInfo Probes PromptInfo Span",
    "files.trace": "Layer Prompt Trace",
    "files.trace_writer": "TraceWriter",
    "results.raw": "Raw",
    "methods.scores": "write_scores",
    "results.rows": "Rows load_csv",
    "program.check": "check",
    "choosing.choose": "choose ChooseResult Worse",
    "choosing.settings": "ChooseSettings",
    "models.compressed": "compressed",
    "models.evaluate": "evaluate",
    "methods.kvpress": "from_kvpress lukv_curve",
    "models.lm_eval": "lm_eval_model",
    "methods.given": "entries",
    "models.loading": "load_model",
    "program.commands": "compare method_scores replay report",
    "program.golden": "GoldenRow golden verify_golden",
    "results.sentences": "sentences",
    "methods.method": "Array HeadPrompt Infeasible Kept QueryBlock Rope Table Unavailable scorer",
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
