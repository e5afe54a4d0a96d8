# SPDX-License-Identifier: Apache-2.0
"""Property tests of a method: kvbench.check(MyMethod). They are those of the built-in methods, in the program."""

from . import _commands, _methods


class Report:
    """What check() has found. It is true where nothing fails."""

    def __init__(self, method, findings):
        self.method = method
        self.passed = [demand for demand, found, _ in findings if found == "holds"]  # properties that hold
        self.skipped = [f"{demand}: {reason}" for demand, found, reason in findings if found == "not tested"]
        self.failures = [f"{demand}: {fault}" for demand, found, fault in findings if found == "broken"]  # sentences

    def __bool__(self):
        return not self.failures

    def __repr__(self):
        verdict = "holds the contract" if self else f"breaks the contract in {len(self.failures)} of " \
            f"{len(self.failures) + len(self.passed)} properties"
        return "\n".join([f"{self.method} {verdict}.", *(f"  passed: {name}" for name in self.passed),
                          *(f"  FAILED: {sentence}" for sentence in self.failures)])


def check(method):
    """Tests whether a method holds the contract of methods, on random heads: one in Python (a class, an object of it,
    or a scorer), or the name of a built-in one. The Report says in sentences what fails, and is true where nothing
    does. It takes a few seconds."""
    name = method if isinstance(method, str) else _methods.name_of(method)
    return Report(name, _commands.test_contract(method))
