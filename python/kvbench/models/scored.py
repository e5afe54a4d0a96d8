# SPDX-License-Identifier: Apache-2.0
"""Methods inside kvbench.compressed() that keep tokens by scores which need the model (docs/scores.md)."""

import threading
from types import SimpleNamespace

import numpy as np
import torch

from .._error import Error, require
from ..program.commands import _core
from ..results.damage import VOTE_PROBES
from .attention import Interface
from .continued import STOCK_TOLERANCE
from .measure import numbers
from .repeated import CHUNKS
from .scores import SCORERS


def is_scored(method):
    """Whether a method has scores of the model: NAME of SCORERS, with settings and a quantiser or without."""
    found = _core().parse_method(method) if isinstance(method, str) else None
    return found is not None and not found.wrapper and found.base in SCORERS


def parts_of(text):
    """The name of a method of which is_scored() is true, with its quantiser, its Scorer, and its settings: those that
    are given, and those of the scorer."""
    found = _core().parse_method(text)
    scorer = SCORERS[found.base]
    settings = {**scorer.settings, **{name.lower(): value for name, value in found.settings}}
    return found.name, scorer, ",".join(map("=".join, settings.items()))


def described(text):
    """The name and the parameters of such a method in rows: those that are not its own."""
    name, scorer, settings = parts_of(text)
    own = set(map("=".join, scorer.settings.items()))
    params = _core().scored_choice(name, settings, {}).params
    return name, ";".join(item for item in params.split(";") if item not in own)


class Scored:
    """The scores of the contexts of a model. `text`: a method, of which is_scored() is true; `found`: the Examination;
    `numbers`: of the layers in which it runs."""

    def __init__(self, model, text, found, numbers, seed):
        self._name, self._scorer, self._settings = parts_of(text)
        scorer = self._scorer.name
        require(scorer not in CHUNKS, "compressed()", f"{scorer} asks the model for a repetition, which needs a "
                f"tokenizer; write its scores for a trace by kvbench-dump-hf --scores {scorer}.")
        self._model = model
        shapes = {number: found.layers[number].shape for number in numbers}
        self._wanted = SimpleNamespace(model=SimpleNamespace(model=model, name=type(model).__name__),
                                       shapes=shapes, probes=VOTE_PROBES, seed=seed,
                                       stage=lambda text: None, remedy="give another method")
        self.choice = self._choice({number: np.zeros((shape[1], 1)) for number, shape in shapes.items()})
        self._called = {}  # by thread: tokens of the present call of the model
        self._runs = set()  # threads in which the scorer runs it

    def _choice(self, scores):
        given = {layer: np.ascontiguousarray(values, np.float32) for layer, values in scores.items()}
        return _core().scored_choice(self._name, self._settings, given)

    def note(self, body, args, kwargs):
        """Called before each call of the model."""
        if (thread := threading.get_ident()) not in self._runs:
            given = kwargs.get("input_ids", args[0] if args else None)
            self._called[thread] = given[0].tolist() if torch.is_tensor(given) and given.dim() == 2 else None

    def read(self, first, t):
        """Called when the first Layer of a sequence reads t tokens."""
        called = self._called.get(threading.get_ident())
        require(called is not None and len(called) == t, "compressed()", f"{self._name} reads the context once more, "
                "and the model was called without its tokens; give input_ids.")
        first.ids += called

    def of(self, first, context, number, outputs):
        """The method with the scores of the context of a sequence, whose first Layer this is. Raises Error unless
        those of Layer.outputs, of layer `number`, are those that the scorer has seen."""
        if first.scored is None:
            interface = Interface("compressed")
            self._runs.add(threading.get_ident())
            try:
                # torch.inference_mode() around the call would forbid the gradients that a scorer takes.
                with torch.inference_mode(False), interface.attached(self._model):
                    wanted = SimpleNamespace(**vars(self._wanted), interface=interface)
                    kept, scores = self._scorer.scores(wanted, first.ids[:context], "context", 0)
            finally:
                self._runs.discard(threading.get_ident())
            first.scored = self._choice(scores), kept
        choice, kept = first.scored
        positions = np.arange(context - len(outputs), context)
        difference = kept.difference(number, positions, numbers(outputs.transpose(0, 1)))
        if not difference <= STOCK_TOLERANCE.get(self._model.dtype, 1e-3):
            raise Error(f"layer {number}: where tokens continue from a cache, attention outputs differ by "
                        f"{difference:.2g} from those of the context, so that {self._name} would have gradients of "
                        "another computation; give another method.")
        return choice
