# SPDX-License-Identifier: Apache-2.0
"""Methods written in Python, by name: found, described and configured for the extension (python/extension)."""

import contextlib
import inspect
import itertools
import re
from collections.abc import Iterator
from typing import Any

from .._error import Error, known_names, require
from .._kinds import TRUTHS
from .method import SELECTION, Scorer
from .parameters import changed_settings, parameters_of, value_of, written
from .source import source_of

KINDS = ("eviction", "sampling", "merging", "retrieval")
GRANULARITIES = ("kv_head", "query_head", "layer")
PARTS = ("observed_queries", "column_sums", "keys_pre_rope", "speculated_queries")
# The facts about a method, which are attributes of its class: what they are where it does not say, and what they may
# be.
FACTS = {"kind": ("eviction", KINDS), "granularity": ("kv_head", GRANULARITIES), "needs": ((), list),
         **{fact: (False, bool) for fact in ("streaming", "seeded", "observes", "windowed", "calibrates",
                                             "whole_context")},
         "trace_sha256": ("", str), "paper": ("", str), "full_budget_exact": (True, bool)}
MAKERS = ("make", "prepare")

_latest = {}  # by name: the class or scorer that was last given to a call
_given = {}  # by number: what was given to calls that run
_numbers = itertools.count(1)


@contextlib.contextmanager
def known(methods: Any) -> Iterator[list[str]]:
    """Makes methods known to the program as long as the with statement lasts: their names, as --method takes them."""
    numbers, names = [], []
    try:
        for method in methods:
            check(method, name_of(method) if base_of(method) is method else f"{type(method).__name__} object")
            number, name = next(_numbers), name_of(method)
            numbers.append(number)
            _given[number] = method
            _latest[name] = base_of(method)
            names.append(f"py:{name}@{number}" + ("" if method is base_of(method) else f"[@={number}]"))
        yield names
    finally:
        for number in numbers:
            del _given[number]


def label(method: Any) -> str:
    """The name of a method in rows, with its settings."""
    settings = changed_settings(method)
    return f"py:{name_of(method)}" + (f"[{','.join(map('='.join, settings))}]" if settings else "")


def base_of(method: Any) -> Any:
    """The class of a method, or the scorer without settings."""
    if isinstance(method, Scorer):
        return method.base
    return method if isinstance(method, type) else type(method)


def name_of(method: Any) -> str:
    return getattr(base_of(method), "__name__", None)


def find(file, name):
    """The class, object or scorer of this name in a file; without a name Error says which there are. With file "" one
    that was given to a call; NAME@NUMBER is one of a call that runs."""
    if file:
        module = source_of(file).module
        method = getattr(module, name, None)
        if method is None:
            methods = [own for own, value in vars(module).items() if not own.startswith("_") and is_method(value)]
            fault = f"defines no '{name}'." if name else f"is a file; name a method in it, as {file}:NAME."
            raise Error(f"{file} {fault}{known_names(name, methods)}")
        check(method, f"{file}:{name}")
        return method
    plain, _, number = name.partition("@")
    method = _object(number) if number else _latest.get(plain)
    if method is None:
        raise Error(f"py:{plain} is not defined in this Python; write FILE.py:{plain}")
    return base_of(method)


def _object(number):
    """What was given to a call that runs; None where there is no such call."""
    return _given.get(int(number)) if number.isdecimal() else None


def is_method(value):
    return isinstance(value, Scorer) or any(callable(getattr(value, name, None)) for name in MAKERS)


def check(method, where):
    """Raises Error, which begins with `where`, unless this can be a method."""
    if not is_method(method):
        raise Error(f"{where} is no method: it has neither make(budget, seed) nor prepare(head) that returns what has "
                    "it, and was not made by @kvbench.scorer")
    name = name_of(method)
    require(isinstance(name, str) and re.fullmatch(r"[^\W\d]\w*|<lambda>", name), where,
            f"{name!r} is not the name of a class or function, by which rows could name it")
    for fact, (_, accepted) in FACTS.items():
        _check_fact(fact, fact_of(method, fact), accepted, where)
    base = base_of(method)
    for fact in () if isinstance(method, (type, Scorer)) else FACTS:
        require(fact_of(method, fact) == fact_of(base, fact), where,
                f"{fact} is a fact about all objects of {base.__name__}; set it in the class, or in a class of its own")


def _check_fact(fact, value, accepted, where):
    if accepted is bool:
        require(isinstance(value, TRUTHS), where, f"{fact} is {value!r}; it must be True or False")
    elif accepted is str:
        require(isinstance(value, str) and written(value) is not None, where, f"{fact} is {value!r}; it must be text")
    elif accepted is list:
        listed = isinstance(value, (list, tuple, set, frozenset))
        unknown = [part for part in value if part not in PARTS] if listed else [value]
        require(not unknown, where, f"{fact} has {unknown}; it is a list of some of {', '.join(PARTS)}")
    else:
        require(value in accepted, where, f"{fact} is {value!r}; it must be one of {', '.join(accepted)}")


def fact_of(method, fact):
    default = FACTS[fact][0] if fact != "full_budget_exact" else fact_of(method, "kind") != "sampling"
    return getattr(method, fact, default)


def describe(method):
    """What the extension states about a method, as a dict."""
    doc = inspect.getdoc(method) or ""
    facts = {fact: fact_of(method, fact) for fact in FACTS}
    return {**{fact: bool(value) if FACTS[fact][1] is bool else value for fact, value in facts.items()},
            "needs": sorted(facts["needs"]), "name": name_of(method),
            "summary": doc.split("\n\n")[0].replace("\n", " ").strip().rstrip("."),
            "scorer": isinstance(method, Scorer),
            "selection": [(name, written(value) or "") for name, value in getattr(method, "selection", {}).items()],
            "parameters": [(p.name, p.kind, written(p.default) or "", p.doc) for p in parameters_of(method)]}


def configure(method, name, settings):
    """The method with these settings, pairs of texts, in place of its defaults; the text of those of them that differ
    from the defaults; and those of its selection. A setting @ is the number of an object that was given to a call."""
    settings = dict(settings)
    given = _object(settings.get("@", ""))
    if given is not None:
        del settings["@"]
        method = given
    parameters = {p.name: p for p in parameters_of(method)}
    values = {}
    for key, text in settings.items():
        if key not in parameters:
            more = SELECTION if isinstance(method, Scorer) else ()
            raise Error(f"method '{name}' has no parameter '{key}'.{known_names(key, [*parameters, *more])}")
        if given is None or key not in dict(changed_settings(given)):  # which the object has itself
            values[key] = value_of(parameters[key], text, name)
    made = _with_values(method, values, name)
    changed = changed_settings(made)
    own = ";".join(f"{key}={text}" for key, text in changed if key in parameters)
    return made, own, [(key, text) for key, text in changed if key not in parameters]


def _with_values(method, values, name):
    if not values and not isinstance(method, type):
        return method  # an object, as it is
    if isinstance(method, Scorer):
        return method(**values)
    kept = {} if isinstance(method, type) else {p.name: getattr(method, p.name) for p in parameters_of(method)}
    try:
        return base_of(method)(**{**kept, **values})
    except TypeError as fault:
        raise Error(f"method '{name}' cannot be made with these parameters: {fault}") from None
