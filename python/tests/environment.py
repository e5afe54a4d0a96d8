# SPDX-License-Identifier: Apache-2.0
"""Finding a Python that has what a test imports."""
import importlib
import os
import pathlib
import sys

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "kvbench"


def use(modules, variable, environment, command):
    """Goes on in the Python that $<variable> names, or in the environment below the cache that `command` made, where this Python lacks
    one of the modules; skips where that one lacks it too."""
    try:
        for module in modules:
            importlib.import_module(module)
        return
    except ImportError as error:
        missing = error
    other = os.environ.get(variable) or str(CACHE / environment / "bin" / "python")
    if os.path.exists(other) and os.environ.get("KVBENCH_TEST_ENVIRONMENT") != other:
        os.environ["KVBENCH_TEST_ENVIRONMENT"] = other
        os.execv(other, [other, *sys.argv])
    print(f"skipped: {missing}; {command} installs {', '.join(modules)}; or set {variable} to a python that has them")
    sys.exit(77)
