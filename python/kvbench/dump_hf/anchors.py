# SPDX-License-Identifier: Apache-2.0
"""Anchors of a trace: the KL divergences of standard configurations, measured in the model on the scored tokens of the
probes, beside what a replay of the trace predicts for them (docs/damage.md)."""

import math
import os
import tempfile
from dataclasses import replace

import numpy as np

from .._error import Error, NoCache
from ..files.schema import Anchor, Anchors
from ..models.continued import in_single_precision
from ..models.examination import check_model, examination
from ..models.passes import Passes
from ..program.commands import _core
from ..program.commands import replay as replayed
from ..results.damage import PLAIN, ROTATED, ROTATION, STANDARD, outside_by
from ..results.rows import rows_of


def check_possible():
    """Raises Error, before a model is loaded, if nothing can be measured and replayed here."""
    try:
        _core()
        import threadpoolctl  # noqa: F401, which replay() needs
    except Error as missing:
        raise Error(f"--anchors: {missing}") from None
    except ImportError as missing:
        raise Error(f"--anchors: replaying the trace needs threadpoolctl ({missing}); install it with pip install "
                    "threadpoolctl.") from None


class Measurer:
    """Measures the anchors of prompts. `model`: a Model; `recorder`: a Recorder that examined it; `header`: of the
    trace, whose order of channels methods see. Raises Error for models that compressed() refuses."""

    def __init__(self, model, recorder, header, threads, stage, say):
        self._model, self._recorder, self._stage, self._say = model, recorder, stage, say
        layout = header.rope_layout if header.rope_type not in ("none", "unknown") else None
        self.pulse = lambda: None
        self._passes = Passes(model.model, layout, threads, lambda: self.pulse())
        self._said = set()  # configurations and reasons for which they were left out
        try:
            check_model(model.model, type(model.model).__name__)
            self._found = examination(model.model)
            self.layers = self._passes.compression("exact", "100%", 0, 2, 1).layers
        except Error as refusal:
            raise Error(f"--anchors: {str(refusal).rstrip('.')}; leave out --anchors.") from None
        self._check_layers(header)
        sizes = {size for layer in self.layers for size in self._found.layers[layer].shape[2:]}
        self._coarse = PLAIN if any(size % ROTATION for size in sizes) else ROTATED

    def _check_layers(self, header):
        """Raises Error unless methods run in the model where they do in a replay."""
        if not self.layers:
            raise Error(f"--anchors: every layer of {self._model.name} has a sliding window or capped logits, where no "
                        "method runs; leave out --anchors.")
        replayed_layers = self.replayed()
        wrong = [layer for layer in replayed_layers if layer not in self.layers]
        if wrong:
            raise Error(f"--anchors: layer {wrong[0]} has a sliding window that no prompt reaches, so that a replay "
                        "compresses it, and the model in use does not; give longer prompts, or leave out --anchors.")
        mixed = [layer for layer in self.layers if self._found.layers[layer].rotation.channels]
        if header.rope_type == "unknown" and mixed:
            raise Error(f"--anchors: the order of the channels of some layers was not measured, and that of layer "
                        f"{mixed[0]} was; leave out --anchors.")

    def replayed(self):
        """Numbers of the recorded layers in which methods run in a replay."""
        recorder = self._recorder
        return [layer for layer in recorder.layers if not recorder.windows[layer] and not recorder.facts[layer].softcap]

    def cost(self, plans, pace):
        """What is said before anchors are measured. `pace`: seconds per token of a forward pass."""
        count = len(STANDARD) + 1 + len(self.layers)
        tokens = sum(2 * len(plan.tokens) + count * (len(plan.tokens) - plan.prompt_tokens) for plan in plans)
        return f"Up to {count} anchors: about {pace * tokens:.0f} s, and a replay of the trace at the end."

    def run(self, plan):
        """The anchors of a prompt, without predictions."""
        context, scored = plan.tokens[:plan.prompt_tokens], plan.tokens[plan.prompt_tokens:]
        with in_single_precision(self._model.model):
            self._stage(f"{plan.name}: context of the anchors")
            try:
                full, begun = self._passes.exact(context, scored)
            except Error as refusal:
                raise Error(f"--anchors: prompt '{plan.name}': {str(refusal).rstrip('.')}; leave out "
                            "--anchors.") from None
            found = []
            for one in STANDARD:
                found += self._measured(plan.name, *one, None, context, scored, full, begun)
            coarse = self._measured(plan.name, *self._coarse, None, context, scored, full, begun)
            for layer in self.layers if coarse else ():
                coarse += self._measured(plan.name, *self._coarse, layer, context, scored, full, begun)
        return found + coarse

    def _measured(self, name, method, budget, layer, context, scored, full, begun):
        """A list with the anchor of a configuration; an empty one if it has no cache for this context, which is
        said."""
        where = "" if layer is None else f", layer {layer} alone"
        self._stage(f"{name}: {method} at {budget}{where}")
        try:
            run = self._passes.compression(method, budget, 0, len(context), len(scored),
                                           None if layer is None else [layer])
            logits = self._passes.compressed(run, context, scored, begun)
            whole = [f"layer {number}: {held.whole}" for number, held in run.present.items() if held.whole]
            if whole:
                raise NoCache("skipped", whole[0])
            kl = float(np.mean(_core().divergences(full, logits)))
            if not math.isfinite(kl):
                raise Error("its KL divergence is not finite")
        except (NoCache, Error) as reason:
            if (method, budget, where, str(reason)) not in self._said:
                self._said.add((method, budget, where, str(reason)))
                self._say(f"prompt '{name}': no anchor {method} at {budget}{where}: {reason}")
            return []
        return [Anchor(method=method, budget=budget, layer=layer, kl=kl)]


def predicted(path, measured, threads):
    """The Anchors of each prompt, with what a replay of the trace at `path` predicts (None: it has no layer to replay).
    `measured`: by prompt, what Measurer.run() returned. No prediction where that of a replay is not about the same
    layers."""
    kl = {}
    for budget in () if path is None else dict.fromkeys(one.budget for anchors in measured.values() for one in anchors):
        methods = list(dict.fromkeys(one.method for anchors in measured.values() for one in anchors
                                     if one.budget == budget))
        kl |= {(key[0], budget, *key[1:]): value for key, value in predictions(path, methods, budget, threads).items()}
    return {id: Anchors(version=_core().version, list=[
        replace(one, predicted=kl.get((one.method, one.budget, id, one.layer))) for one in anchors])
        for id, anchors in measured.items() if anchors}


def predictions(path, methods, budget, threads):
    """kl_predicted by method, prompt and layer (None: all) of a replay. What is outside the region of predictions has
    none: it says nothing about how far others are off."""
    names = {(choice.name, choice.params): method for method in methods for choice in _core().choices(method)}
    with tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
        table = os.path.join(folder, "rows.csv")
        replayed(path, methods, budget, output=table, rows="layer", quiet=True, threads=threads or None)
        rows = rows_of(table, ("method", "params", "prompt", "layer", "kl_predicted", "kl_about"),
                       "a result of kvbench replay")
    found = {}
    for row in rows:
        layer = None if row["layer"] == "all" else int(row["layer"])
        about = row["kl_about"]
        alone = layer is None and "the replayed layers alone" in about
        known = row["kl_predicted"] and math.isfinite(float(row["kl_predicted"]))
        if known and not alone and not outside_by(about):
            found[names[row["method"], row["params"]], row["prompt"], layer] = float(row["kl_predicted"])
    return found
