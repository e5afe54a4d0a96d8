# SPDX-License-Identifier: Apache-2.0
"""A locale with a decimal comma, for tests that nothing depends on it."""
import os
import subprocess
import unittest

NAME = "de_DE.UTF-8"


def comma_environment(folder):
    """The environment of a program in this locale, which is made below `folder`. Skips the test without localedef or
    the sources of locales (package `locales`)."""
    try:
        subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(folder, NAME)], capture_output=True)
    except FileNotFoundError:
        raise unittest.SkipTest("there is no localedef") from None
    if not os.path.isdir(os.path.join(folder, NAME)):
        raise unittest.SkipTest(f"localedef cannot make {NAME}; install the package locales")
    comma = {**os.environ, "LC_ALL": NAME, "LANG": NAME, "LOCPATH": folder}
    shown = subprocess.run(["locale", "decimal_point"], env=comma, capture_output=True, text=True).stdout
    if shown != ",\n":
        raise unittest.SkipTest(f"programs do not use {NAME}: their decimal point is {shown!r}")
    return comma
