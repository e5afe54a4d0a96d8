# SPDX-License-Identifier: Apache-2.0
"""The command `kvbench` of an installation by `pip install .`: the program, inside this process."""

import os
import signal
import sys


def main():
    """Runs the program with the arguments of this process and ends with its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the program waits for it (apps/common/stop_signals.cpp)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it; `kvbench ... | head` should end at once
    for library in ("OPENBLAS", "MKL", "BLIS"):  # methods run on threads of kvbench, one each (commands.py)
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    os.environ.setdefault("KVBENCH_INTERPRETER", sys.executable)  # which kvbench doctor asks for packages
    from .. import _core
    sys.stdout = sys.stderr  # what a method prints is no result
    sys.exit(_core.run_program([os.fsencode(argument) for argument in ("kvbench", *sys.argv[1:])]))


if __name__ == "__main__":
    main()
