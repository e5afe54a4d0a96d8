# SPDX-License-Identifier: Apache-2.0
"""What the attention output of a layer adds to the residual stream, measured: a layer is run again on a few of its
tokens up to the point where attention's output has been added to the stream, and random directions are taken back
through what lies between (W_O, and in some models a norm). No name of a module matters."""

from dataclasses import dataclass

import numpy as np
import torch

from ..models.measure import TOLERANCE, hooked, input_of, numbers, with_input

COLUMNS = 64  # of a sketch: the norm of one vector within 9 %, a mean over queries within a few per cent
FEW, MORE = 4, 16  # queries at which the map is measured: whether it is the same at all, and its mean where it is not
GAIN_COLUMNS = 8  # directions by which the gain of each query is measured
MOST_ROWS = 4096  # rows of one run


class NotFound(Exception):
    """The residual stream of a layer has another form."""


@dataclass
class Sketch:
    matrix: np.ndarray  # [q_heads, dv, s]
    norms: np.ndarray  # [m] norm of the residual stream before the layer, over the gain of the query
    misfit: float


def layers_around(model, modules):
    """By module of attention: the layer that it belongs to, which is the innermost element of a list of modules."""
    found, wanted = {}, set(modules)
    for part in model.modules():
        if isinstance(part, torch.nn.ModuleList):
            found.update({inner: layer for layer in part for inner in layer.modules() if inner in wanted})
    return found


def at_rows(value, rows, n):
    """An argument of a layer for some of its n tokens."""
    if torch.is_tensor(value) and value.dim() > 1 and value.shape[1] == n:
        return value[:, rows]
    if torch.is_tensor(value) and value.dim() == 1 and len(value) == n:
        return value[rows]
    return type(value)(at_rows(x, rows, n) for x in value) if type(value) in (tuple, list) else value


class _Reached(Exception):
    def __init__(self, stream):
        super().__init__()
        self.stream = stream


def _stream(interface, layer, attention, args, kwargs, stream, output):
    """The residual stream [1, rows, width] after attention of a layer with the input `stream` and the attention output
    `output`, both of which require gradients: the first input of a module that depends on both, else the output of the
    layer (where attention and MLP run side by side)."""
    inside = set(attention.modules())
    others = [part for part in layer.modules() if part not in inside and attention not in set(part.modules())]

    def cut(module, args, kwargs):  # gates inside attention are constants
        return (tuple(x.detach() if torch.is_tensor(x) else x for x in args),
                {name: x.detach() if torch.is_tensor(x) else x for name, x in kwargs.items()})

    def look(module, args, kwargs):
        for x in (*args, *kwargs.values()):
            if torch.is_tensor(x) and x.shape[-1:] == stream.shape[-1:] and x.numel() == stream.numel() and \
                    x.requires_grad:
                slopes = torch.autograd.grad(x.sum(), (stream, output), retain_graph=True, allow_unused=True)
                if all(slope is not None for slope in slopes):
                    raise _Reached(x.reshape(stream.shape))
    args, kwargs = with_input(args, kwargs, stream)
    with hooked(others, look), hooked([attention], cut), interface.answering(output):
        try:
            made = layer.forward(*args, **kwargs)
        except _Reached as reached:
            return reached.stream
    made = made[0] if isinstance(made, tuple) else made
    if not torch.is_tensor(made) or made.shape != stream.shape or not made.requires_grad:
        raise NotFound
    return made


class Layer:
    """A layer that is being run: its arguments, and the attention output [n, q_heads, dv] that it computes."""

    def __init__(self, interface, layer, attention, arguments, output):
        self._interface, self._layer, self._attention = interface, layer, attention
        self._args, self._kwargs = arguments
        self._input, self._output = input_of(*arguments), output
        if not torch.is_tensor(self._input) or self._input.dim() != 3 or len(self._input) != 1:
            raise NotFound

    @property
    def width(self):
        return self._input.shape[2]

    def norms(self, positions):
        return numbers(self._input[0, torch.as_tensor(positions)].float().norm(dim=1))

    def maps(self, positions, directions):
        """Directions [s, width] taken back to the attention output of each position: [positions, q_heads, dv, s]."""
        n, s = self._input.shape[1], len(directions)
        rows = torch.as_tensor(np.repeat(positions, s), device=self._input.device)
        with torch.enable_grad():
            stream = self._input[:, rows].detach().requires_grad_()
            output = self._output[rows].detach().requires_grad_()
            args, kwargs = at_rows(self._args, rows, n), {k: at_rows(x, rows, n) for k, x in self._kwargs.items()}
            made = _stream(self._interface, self._layer, self._attention, args, kwargs, stream, output)
            weights = torch.as_tensor(directions, device=made.device, dtype=made.dtype).repeat(len(positions), 1)
            slope, = torch.autograd.grad(made, output, weights[None], allow_unused=True)
        if slope is None:
            raise NotFound
        return np.moveaxis(numbers(slope).reshape(len(positions), s, *slope.shape[1:]), 1, -1)


def _norms(maps):
    return np.sqrt((maps.astype(np.float64)**2).reshape(len(maps), -1).sum(1))


def _mean_map(maps):
    """The mean of maps [q, ...] divided by their norms, with norm 1, and the root mean square of their distance from
    it."""
    scaled = maps / _norms(maps).reshape(-1, *(1,) * (maps.ndim - 1))
    mean = scaled.mean(0)
    mean /= np.sqrt((mean**2).sum())
    return mean, float(np.sqrt(((scaled - mean)**2).reshape(len(maps), -1).sum(1).mean()))


def _spread(positions, count):
    return np.asarray(positions)[np.unique(np.linspace(0, len(positions) - 1, count).astype(int))]


def sketch_of(layer, positions, seed, number):
    """The Sketch of layer `number` at these positions of its queries. Raises NotFound where the residual stream cannot
    be found."""
    philox = np.random.Philox(key=seed, counter=[0, 0, number, 1])
    directions = np.random.Generator(philox).standard_normal((COLUMNS, layer.width)) / COLUMNS**0.5
    few = layer.maps(_spread(positions, FEW), directions)
    if not (_norms(few) > 0).all():
        raise NotFound
    whole, norms = few.mean(0), layer.norms(positions)
    if np.abs(few - whole).max() <= TOLERANCE[layer._output.dtype] * np.abs(whole).max():
        return _checked(whole, norms, 0.0)
    mean, misfit = _mean_map(layer.maps(_spread(positions, MORE), directions))
    step, part = MOST_ROWS // GAIN_COLUMNS, directions[:GAIN_COLUMNS]
    gains = np.concatenate([_norms(layer.maps(positions[first:first + step], part))
                            for first in range(0, len(positions), step)]) / _norms(mean[None, ..., :GAIN_COLUMNS])
    typical = np.sqrt((gains**2).mean())
    return _checked(mean * typical, norms * typical / np.maximum(gains, np.finfo(np.float32).tiny), misfit)


def _checked(matrix, norms, misfit):
    if not (np.isfinite(matrix).all() and np.isfinite(norms).all() and (norms > 0).all()):
        raise NotFound
    return Sketch(matrix.astype(np.float32), norms.astype(np.float32), misfit)
