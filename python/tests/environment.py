# SPDX-License-Identifier: Apache-2.0
"""Finds a Python that has the modules that a test imports."""
import importlib
import os
import pathlib
import subprocess
import sys

FETCH = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "fetch-model"
CACHE = pathlib.Path(subprocess.check_output([FETCH, "--folder"], text=True).strip())


def use(modules, variable, environment, command):
    """If this Python lacks one of the modules, continues in the Python that $<variable> names, or in the environment
    that `command` made below the cache. Skips the test if that Python lacks it too."""
    try:
        for module in modules:
            importlib.import_module(module)
        return
    except ImportError as error:
        missing = error
    other = os.environ.get(variable) or str(CACHE / environment / "bin" / "python")
    if os.path.exists(other) and os.environ.get("KVBENCH_TEST_ENVIRONMENT") != other:
        os.environ["KVBENCH_TEST_ENVIRONMENT"] = other
        os.execv(other, [other, *sys.orig_argv[1:]])
    print(f"skipped: {missing}; {command} installs {', '.join(modules)}; or set {variable} to a Python that has them")
    sys.exit(77)


def use_torch(*others):
    """The same for PyTorch and transformers, beside others."""
    use(["h5py", "numpy", "torch", "transformers", *others], "KVBENCH_TORCH_PYTHON", "torch",
        "scripts/fetch-model --hf")
