# SPDX-License-Identifier: Apache-2.0
"""Files of plans (docs/allocate.md), as kvbench-choose reads and writes them."""

from .._error import Error
from .._kinds import FilePath
from ..files.access import as_toml, read_text

PLACE = ("layer", "kv_head")


class Plan:
    """A file with a plan for one budget. `text`: its contents; `confirmed`: False if `kvbench allocate` says of its
    plan that held-out documents do not confirm it; `settings`: what one types in the engine that it is for; `beside`:
    sentences on other plans."""

    def __init__(self, path: FilePath) -> None:
        self.text = read_text(path)
        try:
            plan, = as_toml(path, self.text)["plans"]
            self._given = [{name: value for name, value in line.items() if name not in PLACE}
                           for line in plan["layers"]]
        except (Error, KeyError, TypeError, ValueError, AttributeError):
            raise Error(f"{path}: is no file of a plan; remove it, and the same command makes it again.") from None
        self.confirmed = plan.get("confirmed", True)
        self.settings, self.beside = plan.get("settings", []), plan.get("beside", [])

    @property
    def has_a_choice(self) -> bool:
        """Whether it does not give all of its places one thing, as it does if nothing differs."""
        return any(given != self._given[0] for given in self._given)


def text_of(model: str, model_layers: int, trace: str, budget: str, methods: dict[int, str]) -> str:
    """The text of a plan that gives layers these methods, {layer: method}. `trace`: digest of the trace that it was
    made from."""
    lines = "".join(f"  {{ layer = {layer}, method = {quoted(method)}, budget = {quoted(budget)} }},\n"
                    for layer, method in methods.items())
    return (f"model = {quoted(model)}\nmodel_layers = {model_layers}\ntraces = [{quoted(trace)}]\n\n[[plans]]\n"
            f"budget = {quoted(budget)}\nlayers = [\n{lines}]\n")


def quoted(text: str) -> str:
    """A text as TOML has it."""
    escaped = "".join(f"\\{c}" if c in '\\"' else c for c in text)
    return f'"{escaped}"'
