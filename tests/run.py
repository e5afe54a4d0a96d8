#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of a Python file, to which the arguments behind its name are its own.

    run.py FILE ARGUMENT...
"""
import pathlib
import sys
import unittest

if __name__ == "__main__":
    file = pathlib.Path(sys.argv.pop(1)).resolve()
    sys.argv[0], sys.path[0] = str(file), str(file.parent)
    unittest.main(module=file.stem, argv=sys.argv[:1])
