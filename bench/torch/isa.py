# SPDX-License-Identifier: Apache-2.0
"""The instruction set of a comparison: kvbench gets it by --isa, PyTorch by variables that its libraries read when they
are loaded. With avx2, PyTorch computes what it computes on a processor without AVX-512."""
import os
import sys

VARIABLES = {
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    "best": {},
}


def add_flag(parser):
    parser.add_argument("--isa", choices=VARIABLES, default="best",
                        help="instruction set of both sides (default: the best of the processor)")


def flags(isa):
    """Flags of kvbench and kvbench_bench."""
    return [] if isa == "best" else ["--isa", isa]


def environment(isa):
    return {**os.environ, **VARIABLES[isa]}


def restart_with(isa):
    """Starts this script again where the variables are not set, because PyTorch has been imported without them."""
    if environment(isa) != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.argv], environment(isa))


def described(isa):
    """How PyTorch was limited, as a clause."""
    limits = ", ".join(f"{name}={value}" for name, value in VARIABLES[isa].items())
    return f"PyTorch limited by {limits}" if limits else "PyTorch not limited"
