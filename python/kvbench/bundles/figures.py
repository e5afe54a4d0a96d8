# SPDX-License-Identifier: Apache-2.0
"""What is cited of a bundle: rows of `kvbench eval` over all documents, and their scores."""

import math
from dataclasses import dataclass

from .._error import require
from ..results.rows import plain
from .bundle import Bundle
from .tables import EVAL, Cell, Row, counted

BITS = {"f32": 32, "f16": 16, "bf16": 16}  # of a value of the exact cache, by the column kv_dtype
LOG_NORMAL, BOOTSTRAP = "log-normal over documents (modified Cox)", "bootstrap over documents and seeds"
CONDITIONS = ("text task question context_tokens documents document_seed documents_sha256 protocol generate weights "
              "kv_dtype protect decoded method_layers").split()


@dataclass(frozen=True)
class Figure:
    """interval: how its 95 % interval is computed, if it has one. full: column of the score of the full cache."""

    column: str
    name: str
    unit: str
    lower_is_better: bool
    interval: str = ""
    full: str = ""


FIGURES = {one.column: one for one in (
    Figure("kl_mean", "mean KL divergence from the full cache", "nats", True, LOG_NORMAL),
    Figure("kl_p99", "99 % quantile of the KL divergence", "nats", True),
    Figure("top1", "tokens with the same most probable token", "proportion", False, BOOTSTRAP),
    Figure("tv", "total variation from the full cache", "proportion", True, BOOTSTRAP),
    Figure("sure_changed", "sure tokens that change", "proportion", True, BOOTSTRAP),
    Figure("nll", "negative log-likelihood", "nats", True, full="nll_full"),
    Figure("ppl_ratio", "perplexity relative to the full cache", "ratio", True, LOG_NORMAL),
    Figure("match", "exact match", "proportion", False, full="match_full"),
    Figure("same_answer", "answers that stay the same", "proportion", False, BOOTSTRAP))}


@dataclass(frozen=True)
class Result:
    cell: Cell
    row: Row

    def text(self, column: str) -> str:
        return plain(self.row.get(column, ""))

    def number(self, column: str) -> float | None:
        """None if there is none, or it is not finite."""
        try:
            value = float(self.row.get(column, ""))
        except ValueError:
            return None
        return value if math.isfinite(value) else None

    def interval(self, figure: Figure) -> tuple[float, float] | None:
        low, high = self.number(f"{figure.column}_lo"), self.number(f"{figure.column}_hi")
        return (low, high) if figure.interval and low is not None and high is not None else None

    @property
    def method(self) -> str:
        """METHOD[PARAMETERS]."""
        return self.cell.methods[0]

    @property
    def bits(self) -> float | None:
        """All that the cache holds, for each value of the exact one."""
        held, full = self.number("total_bytes"), self.number("full_bytes")
        return BITS[self.row["kv_dtype"]] * held / full if held is not None and full else None

    @property
    def conditions(self) -> dict[str, str]:
        """What figures depend on beside model, method and budget."""
        return {name: self.text(name) for name in CONDITIONS if self.text(name)}

    @property
    def about(self) -> str:
        return ", ".join(f"{name} {text}" for name, text in self.conditions.items())


def results(bundle: Bundle, form: str) -> tuple[list[Result], list[str]]:
    """The results that a form can have, and what is said of other rows. Raises Error if there are none."""
    rows = [Result(cell, row) for cell in bundle.cells for row in cell.rows]
    evaluated = [one for one in rows if one.cell.table.kind is EVAL]
    whole = [one for one in evaluated if (one.row["document"], one.row["layer"], one.row["inject"]) == ("all",) * 3
             and one.row["inject_scale"] in ("", "1")]
    found = [one for one in whole if one.row["status"] == "ok"]
    require(evaluated, f"--as {form}", "needs KL and perplexity of the model itself, and this bundle has rows of "
            "kvbench replay, which measures attention without running the model. Bundle rows of kvbench eval; --as "
            "bibtex cites any bundle.")
    require(found, f"--as {form}", "no row over all documents and layers has a result; bundle rows whose status is ok.")
    return found, [f"{counted(count, 'row')} {which}" for count, which in (
        (len(rows) - len(evaluated), "of kvbench replay, which does not run the model"),
        (len(evaluated) - len(whole), "of single documents or layers, or of errors injected in part"),
        (len(whole) - len(found), "without a result")) if count]
