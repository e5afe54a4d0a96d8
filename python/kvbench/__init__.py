# SPDX-License-Identifier: Apache-2.0
"""kvbench from Python: traces (Trace, TraceWriter), raw results (Raw), entries of your own (write_kept), result CSVs
(load_csv). docs/python.md describes the package."""

from ._schema import Error, Header, LayerInfo, PromptInfo
from .kept import KeptWriter, Table, write_kept
from .raw import Raw
from .results import load_csv
from .trace import Layer, Prompt, Trace
from .trace_writer import TraceWriter

__all__ = ["Error", "Header", "KeptWriter", "Layer", "LayerInfo", "Prompt", "PromptInfo", "Raw", "Table", "Trace",
           "TraceWriter", "load_csv", "write_kept"]
