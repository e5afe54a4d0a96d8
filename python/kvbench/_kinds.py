# SPDX-License-Identifier: Apache-2.0
"""The kinds of arguments and fields. Whatever has the wrong type or does not fit its type becomes an Error here, by the
annotations of functions and dataclasses, and nowhere else."""

import dataclasses
import functools
import inspect
import operator
import os
import types
import typing
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from ._error import Error, check_text

TRUTHS = (bool, np.bool_)
FilePath = str | os.PathLike[str]  # the annotation of an argument that names a file or folder
Function = typing.TypeVar("Function", bound=Callable[..., Any])


def is_list(value: Any) -> bool:
    """Whether a value is a list of what a user may give one of: what can be iterated, and is no text and no path."""
    if isinstance(value, (str, bytes, os.PathLike)):
        return False
    try:
        iter(value)
    except TypeError:  # as of an array without dimensions
        return False
    return True


def _integer(value: Any) -> int:
    if isinstance(value, TRUTHS):
        raise TypeError
    number = operator.index(value)
    if not -2**63 <= number < 2**63:
        raise OverflowError
    return number


def _real(value: Any) -> float:
    if isinstance(value, TRUTHS) or not isinstance(value, Real):
        raise TypeError
    return float(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, TRUTHS):
        raise TypeError
    return bool(value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def _path(value: Any) -> str:
    path = os.fsdecode(value)
    if not path or b"\0" in os.fsencode(path):
        raise ValueError
    return path


# What converts a value, or raises TypeError, ValueError or OverflowError; and the name of the kind.
KINDS = {int: (_integer, "an integer of 64 bits"), float: (_real, "a number"), bool: (_truth, "True or False"),
         str: (_string, "text (str)"), os.PathLike: (_path, "the path of a file")}


def _instance(kind: Any) -> tuple[Callable[[Any], Any], str]:
    kind = typing.get_origin(kind) or kind

    def same(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError
        return value
    return same, "None" if kind is types.NoneType else f"a kvbench.{kind.__name__}"


def _described(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"the number {value}" if value.bit_length() < 64 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, str):
        return f"the text {ascii(value[:40])}"
    return "None" if value is None else f"a value of type {type(value).__name__}"


def kinds_of(annotation: Any) -> tuple[Any, ...]:
    """The kinds of an annotation such as int, `str | None` or FilePath."""
    kinds = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    if os.PathLike[str] in kinds:
        return os.PathLike, *(kind for kind in kinds if kind not in (str, os.PathLike[str]))
    return kinds


def is_checked(annotation: Any) -> bool:
    """Whether each kind of an annotation is a class that an argument can be converted to or compared with. Any,
    sequences and the like are checked by the function that takes them."""
    return all(kind in KINDS or isinstance(kind, type) and (kind is types.NoneType or kind.__module__.startswith(
        __package__)) for kind in kinds_of(annotation))


def of_kind(value: Any, annotation: Any, where: str) -> Any:
    """`value` as one of the kinds of an annotation such as int or `str | None`. Raises Error that begins with
    `where`."""
    kinds = kinds_of(annotation)
    rules = [KINDS.get(kind) or _instance(kind) for kind in kinds]
    for convert, _ in rules:
        try:
            return convert(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise Error(f"{where} must be {' or '.join(name for _, name in rules)}; it is {_described(value)}.")


def checked(function: Function) -> Function:
    """A public function that converts its arguments to the kinds of their annotations. Arguments of which is_checked()
    is false are checked by the function itself."""
    signature = inspect.signature(function)
    kinds = {name: parameter.annotation for name, parameter in signature.parameters.items()
             if parameter.annotation is not inspect.Parameter.empty and is_checked(parameter.annotation)}

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        title = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
        try:
            given = signature.bind(*args, **named)
        except TypeError as wrong:
            raise TypeError(f"{title}(): {wrong}") from None
        for name in kinds.keys() & given.arguments.keys():
            given.arguments[name] = of_kind(given.arguments[name], kinds[name], f"{title}(): argument '{name}'")
        return function(*given.args, **given.kwargs)
    return typing.cast(Function, call)


def check_fields(record: Any, where: str) -> None:
    """Raises Error where a field of a dataclass is not of the kind of its annotation, or is text that UTF-8 cannot
    represent. Arrays are checked by what uses them, which knows their shapes."""
    for field in dataclasses.fields(record):
        parts = getattr(field.type, "__args__", (field.type,))
        if np.ndarray not in parts:
            value = of_kind(getattr(record, field.name), field.type, f"{where}: attribute '{field.name}'")
            if isinstance(value, str):
                check_text(value, f"{where}: attribute '{field.name}'")
