# SPDX-License-Identifier: Apache-2.0
"""Methods written in Python, by name: found, described and configured for the extension (python/extension)."""

import dataclasses
import enum
import importlib.util
import inspect
import os
import sys
import typing

from ._error import Error
from .method import Scorer

# The facts about a method, which are attributes of its class, with what they are where it does not say.
FACTS = {"kind": "eviction", "granularity": "kv_head", "needs": (), "streaming": False, "seeded": False,
         "observes": False, "windowed": False, "calibrates": False, "whole_context": False, "trace_sha256": ""}
MAKERS = ("make", "prepare")
KINDS = ("eviction", "sampling", "merging", "retrieval")
GRANULARITIES = ("kv_head", "query_head", "layer")
PARTS = ("observed_queries", "column_sums", "keys_pre_rope", "speculated_queries")

_defined = {}  # by name: the class or scorer, and the methods of define() by their settings


def define(method):
    """Makes a method known, and returns its name with its settings: "py:NAME[a=1]"."""
    check(method, repr(method))
    name, text, base = name_of(method), settings_text(method), base_of(method)
    if name not in _defined or _defined[name][0] is not base:
        _defined[name] = (base, {})
    if not isinstance(method, type):
        _defined[name][1][text] = method
    return f"py:{name}" + (f"[{text.replace(';', ',')}]" if text else "")


def base_of(method):
    """The class of a method, or the scorer without settings."""
    if isinstance(method, Scorer):
        return method.base
    return method if isinstance(method, type) else type(method)


def name_of(method):
    return base_of(method).__name__


def find(file, name):
    """The class or scorer of this name in a file; with file "" one of define()."""
    if not file:
        if name not in _defined:
            raise Error(f"py:{name} is not defined in this Python; write FILE.py:{name}")
        return _defined[name][0]
    method = getattr(_module(file), name, None)
    if method is None:
        raise Error(f"{file} defines no '{name}'")
    check(method, f"{file}:{name}")
    return method


_modules = {}  # by path: what identifies the state of the file, and the module


def _module(file):
    """The module of a file, which runs as if Python had been started in its folder, once until the file changes."""
    path = os.path.realpath(file)
    try:
        about = os.stat(path)
    except OSError:
        raise Error(f"{file}: there is no such file") from None
    state = (about.st_mtime_ns, about.st_size)
    if path not in _modules or _modules[path][0] != state:
        _modules[path] = (state, _run(path))
    return _modules[path][1]


def _run(path):
    spec = importlib.util.spec_from_file_location(f"kvbench.methods.{path}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if os.path.dirname(path) not in sys.path:
        sys.path.insert(0, os.path.dirname(path))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


def check(method, where):
    """Raises Error, which begins with `where`, unless this can be a method."""
    if not isinstance(method, Scorer) and not any(callable(getattr(method, name, None)) for name in MAKERS):
        raise Error(f"{where} is no method: it has neither make(budget, seed) nor prepare(head) that returns what has "
                    "it, and was not made by @kvbench.scorer")
    for fact, accepted in (("kind", KINDS), ("granularity", GRANULARITIES)):
        if fact_of(method, fact) not in accepted:
            raise Error(f"{where}: {fact} is {fact_of(method, fact)!r}; it must be one of {', '.join(accepted)}")
    needs = fact_of(method, "needs")
    unknown = {needs} if isinstance(needs, str) else set(needs) - set(PARTS)
    if unknown:
        raise Error(f"{where}: needs has {sorted(unknown)}; it is a list of some of {', '.join(PARTS)}")


def fact_of(method, fact):
    return getattr(method, fact, FACTS[fact])


def describe(method):
    """What the extension states about a method, as a dict."""
    doc = inspect.getdoc(method) or ""
    return {**{fact: fact_of(method, fact) for fact in FACTS}, "needs": list(fact_of(method, "needs")),
            "full_budget_exact": bool(getattr(method, "full_budget_exact", fact_of(method, "kind") != "sampling")),
            "summary": doc.split("\n\n")[0].replace("\n", " ").strip().rstrip("."),
            "paper": str(getattr(method, "paper", "")), "scorer": isinstance(method, Scorer),
            "selection": [(name, _written(value)) for name, value in getattr(method, "selection", {}).items()],
            "parameters": [(p.name, p.kind, _written(p.default), p.doc) for p in parameters_of(method)]}


@dataclasses.dataclass
class Parameter:
    name: str
    annotation: object
    default: object
    doc: str

    @property
    def kind(self):
        choices = _choices(self.annotation)
        return "|".join(choices) if choices else getattr(self.annotation, "__name__", str(self.annotation))


def parameters_of(method):
    """The parameters of a method with their defaults: the fields of its dataclass, or the arguments of a scorer's
    function."""
    if isinstance(method, Scorer):
        annotations = typing.get_type_hints(method.function)
        return [Parameter(name, annotations.get(name, type(p.default)), p.default, "")
                for name, p in method.parameters.items()]
    cls = base_of(method)
    if not dataclasses.is_dataclass(cls):
        return []
    annotations = typing.get_type_hints(cls)
    return [Parameter(f.name, annotations[f.name], _default_of(f), str(f.metadata.get("doc", "")))
            for f in dataclasses.fields(cls) if f.init]


def _default_of(field):
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default


def _choices(annotation):
    """The texts of a parameter that has a list of values; empty where it has none."""
    if typing.get_origin(annotation) is typing.Literal:
        return [str(value) for value in typing.get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return [member.name for member in annotation]
    return []


def _written(value):
    """A value as results print it; "" for one that no text can give."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return str(value) if isinstance(value, (int, str)) else ""


def _value(parameter, text, where):
    """The value that a setting means."""
    kind = parameter.annotation
    try:
        if kind is bool:
            return {"true": True, "false": False}[text]
        if kind in (int, float, str):
            return kind(text)
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return kind[text]
        if choices := _choices(kind):
            return typing.get_args(kind)[choices.index(text)]
    except (KeyError, ValueError):
        wanted = {bool: "true or false", int: "an integer", float: "a number"}.get(kind, f"one of {parameter.kind}")
        raise Error(f"parameter '{where}.{parameter.name}' is '{text}'; it must be {wanted}") from None
    raise Error(f"parameter '{where}.{parameter.name}' is of type {parameter.kind}, which no text can give; "
                "call kvbench.replay() with a method that has it")


def settings_text(method):
    """The settings of a method that differ from its defaults: "a=1;b=true"."""
    if isinstance(method, type):
        return ""
    if isinstance(method, Scorer):
        changed = method.settings.items()
    else:
        changed = [(p.name, getattr(method, p.name)) for p in parameters_of(method)
                   if _written(getattr(method, p.name)) != _written(p.default)]
    return ";".join(f"{name}={_written(value)}" for name, value in changed)


def configure(method, name, settings):
    """The method with these settings, pairs of texts, in place of its defaults, and their text."""
    parameters = {p.name: p for p in parameters_of(method)}
    values = {}
    for key, text in settings:
        if key not in parameters:
            raise Error(f"method '{name}' has no parameter '{key}'. It has: {', '.join(parameters) or 'none'}.")
        values[key] = _value(parameters[key], text, name)
    if isinstance(method, Scorer):
        made = method(**values)
    elif not values and not isinstance(method, type):
        made = method  # an object in a file, as it is
    else:
        try:
            made = base_of(method)(**values)
        except TypeError as fault:
            raise Error(f"method '{name}' cannot be made with these parameters: {fault}") from None
    text = settings_text(made)
    _, known = _defined.get(name.removeprefix("py:"), (None, {})) if name.startswith("py:") else (None, {})
    return known.get(text, made), text
