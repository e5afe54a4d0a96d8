# SPDX-License-Identifier: Apache-2.0
"""Property tests of a method: kvbench.check(MyMethod). They are those of the built-in methods, in the program."""

from collections.abc import Iterable
from typing import Any

from ..methods import lookup
from . import commands


class Report:
    """What check() has found. It is true where nothing fails.

    Attributes
    ----------
    method : str
        The name of the method.
    passed, skipped, failures : list of str
        Properties that hold; those that were not tested, with the reason; and what fails, in sentences.
    """

    def __init__(self, method: str, findings: Iterable[tuple[str, str, str]]) -> None:
        findings = list(findings)
        self.method = method
        self.passed = [demand for demand, found, _ in findings if found == "holds"]
        self.skipped = [f"{demand}: {reason}" for demand, found, reason in findings if found == "not tested"]
        self.failures = [f"{demand}: {fault}" for demand, found, fault in findings if found == "broken"]

    def __bool__(self) -> bool:
        return not self.failures

    def __repr__(self) -> str:
        verdict = "holds the contract" if self else f"breaks the contract in {len(self.failures)} of " \
            f"{len(self.failures) + len(self.passed)} properties"
        return "\n".join([f"{self.method} {verdict}.", *(f"  passed: {name}" for name in self.passed),
                          *(f"  FAILED: {sentence}" for sentence in self.failures)])


def check(method: Any) -> Report:
    """Test whether a method holds the contract of methods, on random heads. It takes a few seconds.

    Parameters
    ----------
    method : method
        One in Python (a class, an object of it, or a scorer), or the name of a built-in one.

    Returns
    -------
    Report
        What fails, in sentences. It is true where nothing does.

    Raises
    ------
    Error
        If this is no method.
    """
    name = method if isinstance(method, str) else lookup.name_of(method)
    return Report(name, commands.test_contract(method))
