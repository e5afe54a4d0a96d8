# SPDX-License-Identifier: Apache-2.0
"""Commands of kvbench as functions. They need the extension that `pip install .` builds."""

import atexit
import os
import tempfile

from ._error import Error
from ._kinds import checked
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


@checked
def replay(trace: os.PathLike | Trace, methods, budgets=None, *, output: os.PathLike | None = None, **flags):
    """Replays methods on a trace, as `kvbench replay` does: the rows of the CSV, as load_csv() returns them.

    trace: the path of a trace, or a Trace. methods: a name with or without settings, such as "snapkv[window=32]", or a
    list of these. budgets: such as "25%mem" or 256, or a list; None: 25%. output: a file that gets the CSV. All other
    flags of `kvbench replay` are keywords, with _ in place of -: seeds=3, layers=[2, 5], rows="head",
    protect_outside=(4, 64), no_times=True. Ctrl-C ends it within 1.5 seconds."""
    path = trace.path if isinstance(trace, Trace) else trace
    with tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
        rows = output or os.path.join(folder, "rows.csv")
        given = {"budget": budgets, "format": "csv", **flags}
        _core().run_command(["replay", path, f"--method={_listed(methods)}", *_flags(given), "-o", rows])
        return load_csv(rows)
