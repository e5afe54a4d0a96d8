# SPDX-License-Identifier: Apache-2.0
"""What kvbench-choose says of the formats that engines have today: measured in the model, or nothing. The context
passes through the cache, as in most engines. Where a format does much damage it also tries to leave the layers in 16
bits that the format hurts most."""

import dataclasses
import time

from .._error import Error
from ..files.trace import Trace
from ..results.damage import LARGE, REGION
from .documents import trace_of
from .folder import Work, rows_made
from .model import is_measured, measured
from .names import configuration
from .plans import text_of
from .race import geometric_mean
from .rank import Predictions

DOCUMENTS = 3  # on fewer a format is not judged
FULL = "100%mem"  # the budget of these rows: what a format takes is its own affair
BREAKS = 0.5  # nats per token on one of the documents


@dataclasses.dataclass
class Setting:
    name: str
    engine: str  # and its flags
    share: float  # of the bytes of the full cache
    kl: list = dataclasses.field(default_factory=list)  # by document; empty: not measured on enough of them
    whole: list = dataclasses.field(default_factory=list)  # layers that are left in 16 bits, and what then holds:
    whole_share: float = 0
    whole_kl: list = dataclasses.field(default_factory=list)

    @property
    def better(self) -> bool:
        """Whether leaving out the layers `whole` takes away most of the damage."""
        return bool(self.whole_kl) and geometric_mean(self.whole_kl) < 0.5 * geometric_mean(self.kl)


def share_of(row: dict[str, str]) -> float:
    return float(row["total_bytes"]) / float(row["full_bytes"])


def is_format(row: dict[str, str]) -> bool:
    """Whether what an engine runs rounds all tokens. A press of kvpress takes a budget; at the full one it does
    nothing."""
    return bool(row["runs_in"]) and not row["runs_in"].startswith("kvpress ")


def settings_of(predictions: Predictions) -> list[Setting]:
    """The formats of engines that a replay has rows of, the smallest first."""
    found = [Setting(configuration(row), row["runs_in"], share_of(row)) for row in predictions.rows
             if row["budget"] == FULL and row["status"] == "ok" and is_format(row) and share_of(row) < 0.99]
    return sorted(found, key=lambda setting: setting.share)


def predict_formats(work: Work, predictions: Predictions, trace: str) -> None:
    """Replays the formats of engines at the size that they take, and adds these rows to the predictions."""
    question, made = work.question, work.own("formats.csv")
    names = dict.fromkeys(configuration(row) for row in predictions.rows if is_format(row))
    if not names or any(row["budget"] == FULL for row in predictions.rows):  # as a folder of version 0.1 has them
        return
    work.run(made, question.commands["kvbench"], "replay", trace, "-m", ",".join(names), "-b", FULL, "--rows", "layer",
             "--no-times", "-q", "-o", made, *work.threads())
    predictions.add(rows_made(made, (question.figure,), "a replay"))


def measure_settings(work: Work, predictions: Predictions, trace: str, documents: list[str],
                     deadline: float) -> list[Setting]:
    """The settings of engines, measured on DOCUMENTS documents, unless the first shows that the time is too short."""
    predict_formats(work, predictions, trace)
    settings = settings_of(predictions)
    if not settings or len(documents) < DOCUMENTS:
        return settings
    names, kl = [setting.name for setting in settings], {setting.name: [] for setting in settings}
    for number, document in enumerate(documents[:DOCUMENTS]):
        started, known = time.monotonic(), is_measured(work, document, names, FULL, "stream")
        if started >= deadline and not known:
            return settings
        work.say(f"measuring {len(names)} formats of engines on document {number + 1} of {DOCUMENTS}")
        for name, row in measured(work, document, names, FULL, "stream").items():
            kl[name].append(float(row["kl_mean"]))
        if number == 0 and not known and started + DOCUMENTS * (time.monotonic() - started) > deadline:
            return settings
    for setting in settings:
        setting.kl = kl[setting.name]
    leave_layers(work, predictions, settings, documents[:DOCUMENTS], deadline)
    return settings


def leave_layers(work: Work, predictions: Predictions, settings: list[Setting], documents: list[str],
                 deadline: float) -> None:
    """Measures the settings of large damage with the layers in 16 bits that they hurt most, if there is time."""
    tried = {}
    for setting in settings:
        row = predictions.row_of(setting.name, FULL)
        errors = predictions.layers(row)
        setting.whole = worst_layers(errors) if max(setting.kl) >= LARGE else []
        if setting.whole:
            methods = {layer: "exact" if layer in setting.whole else setting.name for layer in sorted(errors)}
            plan = text_of(row["model"], layers_of(work), row["sha256"], FULL, methods)
            tried[work.add_plan(plan)] = setting
    if not tried:
        return None
    try:
        rows = []
        for number, document in enumerate(documents):
            if time.monotonic() >= deadline and not is_measured(work, document, tried, FULL, "stream"):
                return None
            work.say(f"measuring {len(tried)} of them with single layers in 16 bits on document {number + 1} of "
                     f"{len(documents)}")
            rows.append(measured(work, document, list(tried), FULL, "stream"))
    except Error as why:  # of a model whose layers a plan cannot name
        return work.say(f"single layers are not left in 16 bits: {why}")
    for name, setting in tried.items():
        setting.whole_kl = [float(of[name]["kl_mean"]) for of in rows]
        setting.whole_share = share_of(rows[0][name])
    return None


def layers_of(work: Work) -> int:
    with Trace(trace_of(work)) as trace:
        return trace.num_layers


def worst_layers(errors: dict[int, float]) -> list[int]:
    """The layers whose error is outside of what can be predicted, if they are few; otherwise the worst one."""
    if len(errors) < 2:
        return []
    outside = sorted(layer for layer, error in errors.items() if error > REGION)
    return outside if 1 <= len(outside) <= max(1, len(errors) // 8) else [max(errors, key=errors.get)]
