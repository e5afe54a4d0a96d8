# SPDX-License-Identifier: Apache-2.0
"""Parameters of methods in Python, and their values as texts: "sinks=4;name=a%2Cb"."""

import dataclasses
import enum
import numbers
import os
import re
import types
import typing
from typing import Any

from .._error import Error
from .._kinds import TRUTHS
from .method import Scorer

_RESERVED = re.compile("[,;\\[\\]\x00-\x1f\x7f]|%(?=[0-9A-Fa-f]{2})")  # what separates settings, and control characters
_WANTED = {bool: "true or false", int: "an integer", float: "a number"}


@dataclasses.dataclass
class Parameter:
    name: str
    annotation: object
    default: object
    doc: str

    @property
    def kind(self) -> str:
        """What `kvbench methods` says about its values; the program looks for files where it says "FILE"."""
        choices, kinds = _choices(self.annotation), _alternatives(self.annotation)
        if any(map(_is_path, kinds)):
            return "none|FILE" if type(None) in kinds else "FILE"
        return "|".join(choices) if choices else getattr(self.annotation, "__name__", str(self.annotation))


def parameters_of(method: Any) -> list[Parameter]:
    """The parameters of a method with their defaults: the fields of its dataclass, or the arguments of a scorer's
    function."""
    if isinstance(method, Scorer):
        annotations = typing.get_type_hints(method.function)
        return [Parameter(name, annotations.get(name, type(p.default)), p.default, "")
                for name, p in method.parameters.items()]
    cls = method if isinstance(method, type) else type(method)
    if not dataclasses.is_dataclass(cls):
        return []
    annotations = typing.get_type_hints(cls)
    return [Parameter(f.name, annotations[f.name], default_of(f), str(f.metadata.get("doc", "")))
            for f in dataclasses.fields(cls) if f.init]


def default_of(field: dataclasses.Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """The types of `A | B`, or the one that it is."""
    union = isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union
    return typing.get_args(kind) if union else (kind,)


def _is_path(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, os.PathLike)


def _choices(annotation: Any) -> list[Any]:
    """The texts of a parameter that has a list of values; empty where it has none."""
    if typing.get_origin(annotation) is typing.Literal:
        return [written(value) for value in typing.get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return [member.name for member in annotation]
    return []


def written(value: Any) -> str | None:
    """A value as results print it; None for one that no text can give."""
    try:
        if isinstance(value, TRUTHS):
            return "true" if value else "false"
        if isinstance(value, enum.Enum):
            return value.name
        if isinstance(value, numbers.Integral):
            return str(int(value))
        if isinstance(value, numbers.Real):
            return repr(float(value)).removesuffix(".0")
        text = "none" if value is None else os.fspath(value)
        text.encode()
        return _RESERVED.sub(lambda found: f"%{ord(found[0]):02X}", text)
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None


def value_of(parameter: Parameter, text: str, where: str) -> Any:
    """The value that a setting means."""
    kinds = _alternatives(parameter.annotation)
    if type(None) in kinds and text == "none":
        return None
    kind = next(one for one in kinds if one is not type(None))
    try:
        if kind is bool:
            return {"true": True, "false": False}[text]
        if kind in (int, float):
            return kind(text)
        if kind is str or _is_path(kind):
            plain = re.sub("%([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), text)
            return plain if kind in (str, os.PathLike) else kind(plain)
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return kind[text]
        if choices := _choices(kind):
            return typing.get_args(kind)[choices.index(text)]
    except (KeyError, ValueError):
        wanted = _WANTED.get(kind, f"one of {parameter.kind}")
        raise Error(f"parameter '{where}.{parameter.name}' is '{text}'; it must be {wanted}") from None
    raise Error(f"parameter '{where}.{parameter.name}' is of type {parameter.kind}, which no text can give; "
                "call kvbench.replay() with a method that has it")


def changed_settings(method: Any) -> list[tuple[str, str]]:
    """The settings of a method that differ from its defaults, as pairs of texts. Those that no text can give are left
    out."""
    if isinstance(method, type):
        return []
    if isinstance(method, Scorer):
        pairs = [(name, written(value)) for name, value in method.settings.items()]
    else:
        pairs = [(p.name, written(getattr(method, p.name))) for p in parameters_of(method)
                 if written(getattr(method, p.name)) != written(p.default)]
    return [(name, text) for name, text in pairs if text is not None]
