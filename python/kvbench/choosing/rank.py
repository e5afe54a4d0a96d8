# SPDX-License-Identifier: Apache-2.0
"""Which configurations kvbench-choose measures, by what a replay says of them."""

import math

from ..results.damage import REGION, outside_by
from .names import configuration, parts_of

# Methods that round each channel over tokens, or whole vectors, and not a token's channels in blocks.
BY_VECTOR = ("kivi4", "kivi2", "kvquant-nofisher", "turboquant", "turboquant@vllm", "qjl")


def number_of(row: dict[str, str], column: str) -> float | None:
    """The number in a column; None if it is empty or missing."""
    return float(row[column]) if row.get(column) else None


class Predictions:
    """The rows of replays over all texts, or of the only one. `figure`: kl_predicted, or residual_err_rms of a trace
    without probes."""

    def __init__(self, rows: list[dict[str, str]], figure: str) -> None:
        self.figure, self.rows, self._layers = figure, [], {}
        self.add(rows)

    def add(self, rows: list[dict[str, str]]) -> None:
        """Adds the rows of a replay of the same trace."""
        several = any(row["prompt"] == "all" for row in rows)
        of = [row for row in rows if row["prompt"] == ("all" if several else "0")]
        self.rows += [row for row in of if row["layer"] == "all"]
        for row in of:
            error = number_of(row, "stream_err_rms")
            if row["layer"] != "all" and row["status"] == "ok" and error is not None:
                self._layers.setdefault(key_of(row), {})[int(row["layer"])] = error

    def layers(self, row: dict[str, str]) -> dict[int, float]:
        """{layer: root mean square of stream_err} of the configuration of a row over layers."""
        return self._layers.get(key_of(row), {})

    def outside(self, row: dict[str, str]) -> str:
        """Why this row cannot be predicted: what a replay says of it, and without probes the worst layer; empty if it
        can."""
        if reason := outside_by(row.get("kl_about") or ""):
            return reason
        worst = max(self.layers(row).items(), key=lambda of: of[1], default=(0, 0))
        if self.figure == "kl_predicted" or worst[1] <= REGION:
            return ""
        return f"layer {worst[0]}, error {worst[1]:.2g} of the stream"

    def damage(self, row: dict[str, str]) -> float:
        """What rows are ranked by: the predicted KL, or where there is none the root mean square of stream_err over
        layers. A layer whose exact output is many times the stream before it would rule residual_err."""
        layers = self.layers(row)
        if layers and (self.figure != "kl_predicted" or not row[self.figure]):
            return math.sqrt(math.fsum(error**2 for error in layers.values()) / len(layers))
        return float(row[self.figure] or row.get("residual_err_rms") or math.inf)

    def ranked(self, budget: str) -> list[dict[str, str]]:
        """The rows of a budget: those that can be predicted first, the best first."""
        found = [row for row in self.rows if row["status"] == "ok" and row["budget"] == budget
                 and (row[self.figure] or self.outside(row))]
        return sorted(found, key=lambda row: (bool(self.outside(row)), self.damage(row)))

    def row_of(self, name: str, budget: str) -> dict[str, str] | None:
        """The row of a configuration; None for a plan, and for what was not replayed."""
        return next((row for row in self.rows if row["budget"] == budget and configuration(row) == name), None)


def key_of(row: dict[str, str]) -> tuple[str, str, str]:
    return row["method"], row["params"], row["budget"]


def kind_of(row: dict[str, str]) -> str:
    """What a configuration does to a cache. Configurations of one kind fail together."""
    method, stored = parts_of(row["method"])
    if stored:
        return "tokens dropped, and rounded"
    if method in BY_VECTOR:
        return "rounded by channel or vector"
    kept = number_of(row, "kept_fraction")
    return "rounded by token" if kept is not None and kept > 0.999 else "tokens dropped or merged"


def candidates(predictions: Predictions, budget: str, count: int) -> list[str]:
    """The names of `count` configurations to measure, the most promising one first. Those of the least predicted KL,
    where it can be predicted; then, and without gradients, the best one of each kind before the second ones: what ranks
    them orders a kind better than it compares kinds."""
    ranked, firsts, seconds, kinds = predictions.ranked(budget), [], [], set()
    for row in ranked:
        trusted = predictions.figure == "kl_predicted" and not predictions.outside(row)
        (firsts if trusted or kind_of(row) not in kinds else seconds).append(row)
        kinds.add(kind_of(row))
    return [configuration(row) for row in (firsts + seconds)[:count]]
