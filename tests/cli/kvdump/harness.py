# SPDX-License-Identifier: Apache-2.0
"""What the tests of kvdump share: the program, the model, temporary folders, and traces read through the project's
reader."""

import array
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

KVDUMP, PRINT_ARRAY = sys.argv[1:3]
FETCH = pathlib.Path(__file__).resolve().parents[3] / "scripts" / "fetch-model"
CACHE = pathlib.Path(subprocess.check_output([FETCH, "--folder"], text=True).strip())
SKIPPED = 77


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def find_model():
    if "KVBENCH_MODEL" in os.environ:
        return os.environ["KVBENCH_MODEL"]
    settings = CACHE / "env.sh"
    if settings.exists():
        for line in settings.read_text().splitlines():
            name, _, value = line.partition("=")
            if name == "KVBENCH_MODEL" and pathlib.Path(value).exists():
                return value
    skip("no model: run scripts/fetch-model, or set KVBENCH_MODEL to the model that it fetches")


MODEL = find_model()


def token_ids(count, seed=0):
    """Token ids without a pattern that the model could know; any tokenizer gives others, ids do not."""
    return [(seed * 977 + i * i * 7919 + i * 104729 + 13) % 48000 + 100 for i in range(count)]


def use_environment():
    """Goes on in the Python environment of scripts/fetch-model, which has numpy and gguf; skips where neither has
    them."""
    environment = CACHE / "venv" / "bin" / "python"
    if environment.exists() and "KVDUMP_TEST_ENVIRONMENT" not in os.environ:
        os.environ["KVDUMP_TEST_ENVIRONMENT"] = "1"
        os.execv(environment, [str(environment), *sys.argv])
    try:
        import gguf, numpy  # noqa: F401, E401
    except ImportError as error:
        skip(f"{error}; scripts/fetch-model installs numpy and gguf in {CACHE / 'venv'}")


def write_ids(path, count, seed=0):
    pathlib.Path(path).write_text("\n".join(map(str, token_ids(count, seed))) + "\n")
    return str(path)


def kvdump(*arguments, model=None, expect=0, environment=()):
    """Runs kvdump, with `environment` in addition to that of this process; returns its stderr."""
    done = subprocess.run([KVDUMP, model or MODEL, *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **dict(environment)})
    assert done.returncode == expect, f"exit code {done.returncode}, expected {expect}: {done.stderr}"
    assert done.stdout == "", done.stdout
    return done.stderr


class Trace:
    def __init__(self, path):
        self.path = str(path)
        self.info = json.loads(subprocess.run([PRINT_ARRAY, self.path], capture_output=True, check=True).stdout)

    def array(self, name, layer=0, prompt=0):
        """All numbers of an array, heads first, as a flat array of floats."""
        command = [PRINT_ARRAY, self.path, str(prompt), str(layer), name]
        numbers = array.array("f")
        numbers.frombytes(subprocess.run(command, capture_output=True, check=True).stdout)
        return numbers


def difference(a, b):
    """Relative difference in the Frobenius norm."""
    assert len(a) == len(b) > 0, (len(a), len(b))
    return (sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b)) ** 0.5


def run_tests(tests):
    failed = 0
    for test in tests:
        with tempfile.TemporaryDirectory() as folder:
            begin = time.monotonic()
            try:
                test(pathlib.Path(folder))
                print(f"ok     {test.__name__}, {time.monotonic() - begin:.1f} s", flush=True)
            except Exception:
                failed += 1
                print("FAILED", test.__name__)
                traceback.print_exc()
    sys.exit(1 if failed else 0)
