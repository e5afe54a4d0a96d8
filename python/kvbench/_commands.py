# SPDX-License-Identifier: Apache-2.0
"""Commands of kvbench as functions. They need the extension that `pip install .` builds.

All flags of a command are keywords, with _ in place of -: seeds=3, layers=[2, 5], rows="head", protect_outside=(4, 64),
no_times=True. Ctrl-C ends a command within 1.5 seconds."""

import atexit
import contextlib
import html
import json
import os
import tempfile
import warnings

from . import _methods
from ._error import Error
from ._files import read_text
from ._kinds import checked
from ._progress import notebook_bar
from .results import load_csv
from .trace import Trace


def _core():
    try:
        from . import _core
    except ImportError as missing:
        raise Error("kvbench was installed without its program, as `pip install ./python` does, so that it cannot "
                    f"compute ({missing}); run `pip install .` in a clone of kvbench.") from None
    atexit.unregister(_core.wait_for_worker)
    atexit.register(_core.wait_for_worker)
    return _core


@contextlib.contextmanager
def _one_thread_each():
    """Methods run on threads of kvbench, one each: more threads below them would be in each other's way, and how a
    product is divided among threads decides its last bits."""
    from threadpoolctl import threadpool_limits
    with threadpool_limits(1, user_api="blas"):
        yield


def _run(*arguments):
    core = _core()
    with notebook_bar() as show, _one_thread_each():
        return core.run_command(list(arguments), show)


def test_contract(method):
    """What each property demands, whether it "holds", is "broken" or "not tested" with this method, and why."""
    core = _core()
    with _one_thread_each(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of keys of zero, say, which NumPy divides by
        return core.test_contract(method)


def _listed(value):
    """A value, or the items of a list, as flags take them: with commas."""
    items = value if isinstance(value, (list, tuple, range)) else [value]
    return ",".join(str(item) for item in items)


def _flags(named):
    """Keyword arguments as flags: kv_dtype="f32" is --kv-dtype f32, standalone=True is --standalone."""
    flags = []
    for name, value in named.items():
        if value is None or value is False:
            continue
        flags += [f"--{name.replace('_', '-')}"] + ([] if value is True else [_listed(value)])
    return flags


def _method_names(methods):
    """Methods as --method takes them: names, and methods in Python, which become known to the program."""
    items = methods if isinstance(methods, (list, tuple)) else [methods]
    names = [item if isinstance(item, str) else _methods.define(item) for item in items]
    for name in names:
        same = [item for item, own in zip(items, names) if own == name and not isinstance(item, str)]
        if any(item is not same[0] for item in same):
            raise Error(f"replay(): two methods are called {name}; give them other classes, or parameters that are "
                        "numbers, texts or choices.")
    return names


def _paths(given, folder):
    """Files of results by their names; data frames as CSV files in this folder."""
    items = given if isinstance(given, (list, tuple)) else [given]
    paths = []
    for item in items:
        if hasattr(item, "to_csv"):
            path = os.path.join(folder, f"rows{len(paths)}.csv")
            item.to_csv(path, index=False)
        else:
            path = os.fspath(item)
        paths.append(path)
    return paths


def _rows_of(command, arguments, flags):
    """The rows that a command writes as JSON: a data frame, or without pandas a list of dicts."""
    with tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
        path = os.path.join(folder, "rows.json")
        _run(command, *_paths(arguments, folder), *_flags({**flags, "format": "json"}), "-o", path)
        rows = json.loads(read_text(path))
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


@checked
def replay(trace: os.PathLike | Trace, methods, budgets=None, *, output: os.PathLike | None = None, **flags):
    """Replays methods on a trace, as `kvbench replay` does: the rows of the CSV, as load_csv() returns them.

    trace: the path of a trace, or a Trace. methods: one or a list of names, with or without settings, such as
    "snapkv[window=32]" or "mine.py:MyMethod", and of methods in Python: classes, their objects, scorers. budgets: such
    as "25%mem" or 256, or a list; None: 25%. output: a file that gets the CSV. flags: those of `kvbench replay`, such
    as seeds=3, layers=[2, 5] or raw="run.h5"."""
    path = trace.path if isinstance(trace, Trace) else trace
    with tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
        rows = output or os.path.join(folder, "rows.csv")
        given = {"budget": budgets, "format": "csv", **flags}
        _run("replay", path, f"--method={_listed(_method_names(methods))}", *_flags(given), "-o", rows)
        return load_csv(rows)


def compare(results, a=None, b=None, **flags):
    """Tests which differences between methods are significant, as `kvbench compare` does: one row per comparison.

    results: a file of replay(..., raw="run.h5"), the rows of replay(..., rows="query"), or a list of these. a, b:
    configurations such as "snapkv@25%mem"; without them, all against the best one. flags: by, metric, sweep."""
    return _rows_of("compare", results, {"a": a, "b": b, **flags})


def validate(trace=None, **flags):
    """Tests the papers' theorems and claims, as `kvbench validate` does: one row per check and head."""
    return _rows_of("validate", [] if trace is None else trace, flags)


class Page:
    """A page or a figure of report(), which notebooks show."""

    def __init__(self, text, figure):
        self.text = text
        self._figure = figure

    def save(self, path):
        with open(path, "x", encoding="utf-8") as file:
            file.write(self.text)

    def _repr_html_(self):
        if self._figure:
            return self.text
        return f'<iframe srcdoc="{html.escape(self.text)}" style="width: 100%; height: 40em; border: 0"></iframe>'


def report(tables, output=None, **flags):
    """Makes a page with answers, figures and tables, as `kvbench report` does: a Page, which a notebook shows; with
    figure="bytes-held" that figure alone. tables: results of replay(), files of results, or a list of these. output: a
    file that gets the page instead (.html, .md, .tex, .svg, .pdf); its path is returned."""
    with tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
        figure = flags.get("figure") is not None
        path = output or os.path.join(folder, "report.svg" if figure else "report.html")
        _run("report", *_paths(tables, folder), *_flags(flags), "-o", os.fspath(path))
        return path if output else Page(read_text(path), figure)
