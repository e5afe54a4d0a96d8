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
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, overload

from .._error import Error, check_text, require
from .._kinds import TRUTHS, FilePath, checked, is_list, of_kind
from ..files.access import read_text
from ..files.trace import Trace
from ..methods import lookup
from ..methods.parameters import written
from ..results.rows import Rows, load_csv, save_csv
from .progress import notebook_bar

if TYPE_CHECKING:
    import numpy as np


def _core() -> Any:
    try:
        from .. import _core  # type: ignore[attr-defined]
    except ImportError as missing:
        raise Error("kvbench was installed without its program, as `pip install ./python` does, so that it cannot "
                    f"compute ({missing}); run `pip install .` in a clone of kvbench.") from None
    atexit.unregister(_core.wait_for_worker)
    atexit.register(_core.wait_for_worker)
    return _core


_calls = threading.Lock()  # the program has one set of messages, signals and progress: calls wait for each other


@contextlib.contextmanager
def _call(function: str) -> Iterator[Any]:
    """The extension, for one call. Methods run on threads of kvbench, one each: more threads below them would be in
    each other's way, and how a product is divided among threads decides its last bits."""
    from threadpoolctl import threadpool_limits
    core = _core()
    if core.in_method():
        raise Error(f"{function}() is called by a method, or by its file while kvbench reads it, and would wait for "
                    "itself; call it elsewhere, in a file below `if __name__ == \"__main__\":`")
    with _calls, threadpool_limits(1, user_api="blas"):
        yield core


def _run(command: str, files: Iterable[str], flags: Mapping[str, Any], output: str) -> Any:
    """Runs a command. A file is no flag, even if its name begins with -."""
    arguments = [os.path.join(".", file) if file.startswith("-") else file for file in files]
    arguments += [*_flags(flags), *_flags({"output": output})]
    for argument in arguments:
        require("\0" not in argument and written(argument) is not None, command,
                f"the argument {ascii(argument[:100])} has a NUL character or is not UTF-8 text; choose another text")
    with _call(command.replace("-", "_")) as core, notebook_bar() as show:
        return core.run_command([command, *arguments], show)


def test_contract(method: Any) -> list[tuple[str, str, str]]:
    """What each property demands, whether it "holds", is "broken" or "not tested" with this method, and why."""
    with _call("check") as core, only_choice(method, "check") as choice, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of keys of zero, say, which NumPy divides by
        return list(core.test_contract(choice))


def _items(value: Any) -> list[str]:
    """A value, or the items of a list, as texts."""
    return [os.fspath(item) if isinstance(item, os.PathLike) else str(item)
            for item in (value if is_list(value) else [value])]


def _flags(options: Mapping[str, Any]) -> list[str]:
    """Keyword arguments as flags: kv_dtype="f32" is --kv-dtype=f32, standalone=True is --standalone. A flag and its
    value are one word, so that a value which is empty or begins with - is no other flag."""
    flags = []
    for name, value in options.items():
        if value is None or (isinstance(value, TRUTHS) and not value):
            continue
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, TRUTHS):
            flags.append(flag)
            continue
        items = _items(value)
        if name == "seeds" and len(items) == 1 and is_list(value):
            items = [f"{items[0]}-{items[0]}"]  # a list of one seed; one number is the number of seeds
        flags.append(f"{flag}={','.join(items)}")
    return flags


@contextlib.contextmanager
def named(methods: Any, function: str) -> Iterator[list[str]]:
    """Methods as --method takes them: names, and methods in Python, which the program knows as long as the with
    statement lasts."""
    items = list(methods) if isinstance(methods, (list, tuple)) else [methods]
    if not items:
        raise Error(f"{function}(): no method is given")
    with lookup.known([item for item in items if not isinstance(item, str)]) as names:
        labels: dict[str, Any] = {}
        for item in items:
            label = item if isinstance(item, str) else lookup.label(item)
            check_text(label, f"{function}(): a method")
            if labels.setdefault(label, item) is not item and not isinstance(item, str):
                raise Error(f"{function}(): two methods are called {label}; give them other classes, or parameters "
                            "that are numbers, texts or choices.")
        left = iter(names)
        yield [item if isinstance(item, str) else next(left) for item in items]


@contextlib.contextmanager
def only_choice(method: Any, function: str) -> Iterator[Any]:
    """The one method that this is, as a Choice of the extension: what it is now, whatever becomes of files that it
    names, such as plans."""
    require(not isinstance(method, (list, tuple)) or not method, f"{function}()", "takes one method, not a list.")
    with named(method, function) as names:
        try:
            found = _core().choices(names[0])
        except Error as refused:  # of a list of methods, as others take
            raise Error(str(refused).replace("`methods`", "`method`")) from None
        require(len(found) == 1, function + "()", f"'{names[0]}' names {len(found)} methods; it takes one method.")
        yield found[0]


def _is_rows(given: Any) -> bool:
    """Whether these are Rows, a data frame, or a list of rows as dicts."""
    return isinstance(given, Rows) or hasattr(given, "to_csv") or (isinstance(given, list) and len(given) > 0
                                        and all(isinstance(row, dict) for row in given))


def _paths(given: Any, folder: str, where: str) -> list[str]:
    """Files by their names; rows as CSV files in this folder."""
    items = [given] if _is_rows(given) or not isinstance(given, (list, tuple)) else given
    paths: list[str] = []
    for item in items:
        if _is_rows(item):
            path = os.path.join(folder, f"rows{len(paths)}.csv")
            save_csv(item, path, where)
        else:
            given_path = item.path if isinstance(item, Trace) else item
            if not isinstance(given_path, (str, os.PathLike)):
                raise Error(f"{where} takes data frames, lists of rows as dicts, and paths of files; it was given a "
                            f"value of type {type(item).__name__}.")
            path = of_kind(given_path, os.PathLike, where)
        paths.append(path)
    return paths


def _rows_of(command: str, arguments: Any, flags: dict[str, Any]) -> Rows:
    """The rows that a command writes as JSON."""
    with tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
        path = os.path.join(folder, "rows.json")
        _run(command, _paths(arguments, folder, f"{command.replace('-', '_')}()"), {**flags, "format": "json"}, path)
        return Rows(json.loads(read_text(path)))


def check_table(output: FilePath | None, function: str) -> None:
    """Raises Error where the name of an output ends as files of other formats than CSV do."""
    if output is not None:
        check_text(os.fsdecode(output), f"{function}: argument 'output'")
        implied = _core().implied_format(output)
        require(implied in ("", "csv"), function, f"output={output} gets CSV, not {implied}; end its name with .csv.")


@checked
def replay(trace: FilePath | Trace, methods: Any, budgets: Any = None, *, output: FilePath | None = None,
           **flags: Any) -> Rows:
    """Replay methods on a trace, as ``kvbench replay`` does.

    Parameters
    ----------
    trace : path or Trace
        The trace.
    methods : method, or list of methods
        Names, with or without settings, such as ``"snapkv[window=32]"`` or ``"mine.py:MyMethod"``, and methods in
        Python: classes, their objects, scorers.
    budgets : str, int, or list, optional
        Such as ``"25%mem"``, a share of the memory, or 256, a number of tokens; None: 25%.
    output : path, optional
        A file that gets the rows as CSV.
    **flags
        Those of ``kvbench replay``, such as ``seeds=3``, ``layers=[2, 5]`` or ``raw="run.h5"``.

    Returns
    -------
    Rows
        The rows of the CSV, with the columns of ``kvbench replay --columns``.

    Raises
    ------
    Error
        If an argument or the trace is not what it must be. What a method raises is the status of its rows.
    """
    path = trace.path if isinstance(trace, Trace) else os.fspath(trace)
    check_table(output, "replay()")
    require("format" not in flags, "replay()", "format has no effect: rows are returned, and output= gets the CSV.")
    with tempfile.TemporaryDirectory(prefix="kvbench-") as folder, named(methods, "replay") as names:
        rows = os.path.abspath(output or os.path.join(folder, "rows.csv"))  # a method may change the folder
        _run("replay", [path], {"method": names, "budget": budgets, "format": "csv", **flags}, rows)
        return load_csv(rows)


@checked
def method_scores(trace: FilePath | Trace, method: Any, *, prompts: Any = None, layers: Any = None,
                  calibrate: FilePath | None = None) -> "dict[str, dict[int, np.ndarray]]":
    """The scores by which a method ranks the tokens of each context in a replay.

    Parameters
    ----------
    trace : path or Trace
        The trace.
    method : method
        A name, with or without settings, or a scorer.
    prompts : str, int, or list, optional
        Prompts of the trace; None: all.
    layers : int, or list of int, optional
        Layers; None: all in which methods run.
    calibrate : path, optional
        A trace of another text, for methods that use it.

    Returns
    -------
    dict
        ``{prompt: {layer: array}}`` of float32 arrays [kv heads, context tokens], as `write_scores()` takes them;
        larger is better. First and last tokens that the method keeps whatever their scores, such as the window of
        snapkv, have the score inf.

    Raises
    ------
    Error
        If the method has no scores, or cannot run in a layer, with the reason that rows state.
    """
    import numpy as np
    numbers = [] if layers is None else layers if is_list(layers) else [layers]
    numbers = [of_kind(number, int, "method_scores(): argument 'layers', or an item of it,") for number in numbers]
    found: dict[str, dict[int, list[np.ndarray]]] = {}
    with _call("method_scores") as core, only_choice(method, "method_scores") as choice, notebook_bar() as show:
        heads = core.method_scores(choice, trace.path if isinstance(trace, Trace) else trace,
                                   [] if prompts is None else _items(prompts), numbers, calibrate or "", show)
    for prompt, layer, scores in heads:
        found.setdefault(prompt, {}).setdefault(layer, []).append(np.frombuffer(scores, np.float32))
    return {prompt: {layer: np.array(rows) for layer, rows in of.items()} for prompt, of in found.items()}


def compare(results: Any, a: str | None = None, b: str | None = None, **flags: Any) -> Rows:
    """Test which differences between methods are significant, as ``kvbench compare`` does.

    Parameters
    ----------
    results : path, Rows, data frame, or list of these
        A file of ``replay(..., raw="run.h5")``, or the rows of ``replay(..., rows="query")``.
    a, b : str, optional
        Configurations such as ``"snapkv@25%mem"``; None: all against the best one.
    **flags
        `by`, `metric` and `sweep`, as flags of the command.

    Returns
    -------
    Rows
        One row per comparison, which `sentences()` puts in words.

    Raises
    ------
    Error
        If these are no results, or nothing in them can be compared.
    """
    return _rows_of("compare", results, {"a": a, "b": b, **flags})


class Page:
    """A page or a figure of report(), which notebooks show. `text`: HTML, or the SVG of a figure."""

    def __init__(self, text: str, figure: bool) -> None:
        self.text = text
        self._figure = figure

    def save(self, path: FilePath) -> None:
        """Writes the text to a new file."""
        with open(path, "x", encoding="utf-8") as file:
            file.write(self.text)

    def _repr_html_(self) -> str:
        if self._figure:
            return self.text
        return f'<iframe srcdoc="{html.escape(self.text)}" style="width: 100%; height: 40em; border: 0"></iframe>'


@overload
def report(tables: Any, output: None = None, **flags: Any) -> Page: ...
@overload
def report(tables: Any, output: FilePath, **flags: Any) -> FilePath: ...
def report(tables: Any, output: FilePath | None = None, **flags: Any) -> Page | FilePath:
    """Make a page with answers, figures and tables, as ``kvbench report`` does.

    Parameters
    ----------
    tables : path, Rows, data frame, or list of these
        Results of `replay()` or `evaluate()`, or files of results.
    output : path, optional
        A file that gets the page (.html, .md, .tex, .svg, .pdf).
    **flags
        Those of the command; ``figure="bytes-held"`` makes that figure alone.

    Returns
    -------
    Page or path
        The page, which a notebook shows; with `output` its path.

    Raises
    ------
    Error
        If these are no results, or the figure does not exist.
    """
    with tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
        figure = flags.get("figure") is not None
        path = output or os.path.join(folder, "report.svg" if figure else "report.html")
        paths = [os.fspath(each) for each in _paths(tables, folder, "report()")]
        for each in paths:  # kvbench becomes kvbench-report there, in place of this Python
            files = os.listdir(each) if os.path.isdir(each) else [each]
            require(not any(name.endswith(".kvb.zip") for name in files), each, "report() takes tables; the program "
                    "kvbench-report makes a page of bundles.")
        require(flags.get("registered") is None, "registered", "report() has no claims; kvbench-report has.")
        _run("report", paths, flags, os.fspath(path))
        return path if output else Page(read_text(path), figure)
