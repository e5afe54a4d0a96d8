# SPDX-License-Identifier: Apache-2.0
"""Methods written in Python: what a method is given, what it returns, and what it raises. docs/python.md describes the
contract, which is that of lib/kvbench/methods/contract/method.hpp with the same names.

n tokens of the context, d and dv dimensions of keys and values, G query heads that share a kv head. All arrays are
float32 and read-only; those of the trace are views without copies. None: the trace does not hold the array."""

import functools
import inspect
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, overload

import numpy as np

from .._error import Error, require


class Unavailable(Exception):
    """The trace lacks what the method needs: its row gets the status `skipped` and this reason."""


class Infeasible(Exception):
    """A limit of the method is exceeded, or it cannot meet the budget: its row gets the status `infeasible` and this
    reason."""


@dataclass(kw_only=True, frozen=True, eq=False)
class Rope:
    """Rotary embedding of the trace, without scaling.

    Attributes
    ----------
    theta : float
    interleaved : bool
    """

    theta: float
    interleaved: bool


@dataclass(kw_only=True, frozen=True, eq=False)
class HeadPrompt:
    """What a method sees of one kv head: its context. No evaluated query is among the observed ones.

    Attributes
    ----------
    prompt : str
        Name of the prompt in the trace.
    layer : int
    kv_head : int
    num_layers : int
        Of the model.
    num_caches : int
        Layers of the model that have a cache of their own, over which budgets are divided.
    depth : int
        Index of this layer among them.
    num_kv_heads : int
        Of the layer.
    group : int
        G.
    window : int
        Sliding window of the layer; 0: none.
    scale : float
        Logits are scale * <q, k>.
    keys : np.ndarray
        [n, d] after RoPE.
    values : np.ndarray
        [n, dv].
    observed : np.ndarray | None
        [G, n_obs, d] queries inside the context.
    observed_positions : np.ndarray
        [n_obs] increasing; a position >= n is that of a token that the harness keeps outside this context.
    fixed_log_sum_exp : np.ndarray | None
        [G, n_obs] ln of the sum of exp(logit) over the tokens that an observed query sees and the harness keeps
        outside this context (--protect); None: there are none.
    rope : Rope | None
        None: the model's RoPE is scaled or missing.
    column_sums : np.ndarray | None
        [G, n] attention mass from all queries of the context.
    keys_pre_rope : np.ndarray | None
        [n, d].
    calibration_keys : np.ndarray | None
        [n', d] of the stream, where the context is empty.
    calibration : HeadPrompt | None
        The same head on the text of --calibrate.
    """

    prompt: str
    layer: int
    kv_head: int
    num_layers: int
    num_caches: int = 1
    depth: int = 0
    num_kv_heads: int
    group: int
    window: int
    scale: float
    keys: np.ndarray
    values: np.ndarray
    observed: np.ndarray | None = None
    observed_positions: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))
    fixed_log_sum_exp: np.ndarray | None = None
    rope: Rope | None = None
    column_sums: np.ndarray | None = None
    keys_pre_rope: np.ndarray | None = None
    calibration_keys: np.ndarray | None = None
    calibration: "HeadPrompt | None" = None

    @property
    def tokens(self) -> int:
        """n, the number of tokens of the context."""
        return len(self.keys)

    def generator(self, seed: int) -> np.random.Generator:
        """A generator of random numbers that depends on the seed, the prompt, the layer and the kv head alone, so that
        results do not depend on the order in which heads are computed."""
        return np.random.default_rng([seed, self.layer, self.kv_head, zlib.crc32(self.prompt.encode())])


@dataclass(eq=False, slots=True)
class QueryBlock:
    """The queries of one position, which entries() answers.

    Attributes
    ----------
    queries : np.ndarray
        [G, d] after RoPE.
    position : int
    first : int
        These queries see the tokens first, ..., last - 1.
    last : int
    speculated : np.ndarray | None
        [G, d] queries predicted from the layer before (InfiniGen).
    """

    queries: np.ndarray
    position: int
    first: int
    last: int
    speculated: np.ndarray | None = None


@dataclass(kw_only=True, eq=False)
class Array:
    """An array that a deployment of a method would hold in memory, for footprint().

    Attributes
    ----------
    name : str
    rows : int
        One per entry where read="with_entry".
    cols : int
    element : str
        Kv: the type of the cache (16 bits); f32, f16, i32, u8; b1 to b7: packed codes.
    content : str
        Keys, values, or meta: weights, counts, ids, centroids, bounds.
    tier : str
        Slow: the memory that holds the full cache of retrieval methods.
    read : str
        With_entry: only the rows of entries that answer the query; never.
    """

    name: str
    rows: int
    cols: int = 1
    element: str = "kv"
    content: str = "meta"
    tier: str = "fast"
    read: str = "every_query"


@dataclass(eq=False)
class Kept:
    """A fixed selection of tokens of the context, to which decoded tokens are added exactly.

    Attributes
    ----------
    ids : np.ndarray
        [width], or [G, width] for a selection per query head; -1 = unused slot.
    weights : np.ndarray | None
        As ids, in both sums of the softmax average; None: 1.
    sinks : int
        The first tokens and the last ones that are always among them: recall does not count these.
    recent : int
    """

    ids: np.ndarray
    weights: np.ndarray | None = None
    sinks: int = 0
    recent: int = 0


@dataclass(kw_only=True, eq=False)
class Table:
    """Entries of one kv head: tokens with weights of their own, or keys and values in place of theirs. An array
    [width] is one row for all query heads.

    Attributes
    ----------
    ids : np.ndarray
        [rows, width] tokens, -1 = unused slot; rows: 1, or one per query head.
    weight_num : np.ndarray | None
        [rows, width] in the numerator of the softmax average; None: 1.
    weight_den : np.ndarray | None
        [rows, width] in its denominator; None: 1.
    own_keys : np.ndarray | None
        [rows, width, d] instead of the keys of the tokens.
    own_values : np.ndarray | None
        [rows, width, dv] instead of their values.
    per_head : bool
        Of raw results, which have a row for each (query head, query) that differs.
    per_query : bool
    """

    ids: np.ndarray
    weight_num: np.ndarray | None = None
    weight_den: np.ndarray | None = None
    own_keys: np.ndarray | None = None
    own_values: np.ndarray | None = None
    per_head: bool = False
    per_query: bool = False


# Parameters of every scorer, by which kvbench selects tokens.
SELECTION = ("sinks", "recent", "kernel", "pooling", "per", "reduce", "order")


class Scorer:
    """A score-only method, made by scorer()."""

    __name__: str

    def __init__(self, function: Callable[..., Any], facts: Mapping[str, Any], selection: Mapping[str, Any],
                 settings: Any = (), base: "Scorer | None" = None) -> None:
        functools.update_wrapper(self, function)
        for name, value in {**selection, **dict(settings)}.items():
            require(name not in SELECTION or isinstance(value, (str, Integral)), f"scorer(): {self.__name__}()",
                    f"{name} is {value!r}; it must be a whole number, or one of its texts")
        vars(self).update(facts)
        self.function, self.facts = function, facts
        self.selection = selection  # its defaults of the selection
        self.settings = dict(settings)  # that differ from the defaults of selection and function
        self.base = base or self  # the one without settings

    def __call__(self, head: Any = None, /, **settings: Any) -> Any:
        """With a head, or a list of heads: the scores. Without: the method with these settings, as knorm(recent=16)."""
        if head is None:
            return Scorer(self.function, self.facts, self.selection, {**self.settings, **settings}, self.base)
        return self.function(head, **{name: value for name, value in self.settings.items() if name in self.parameters})

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters of the function after the head, by name."""
        return dict(list(inspect.signature(self.function).parameters.items())[1:])

    def check_parameters(self) -> None:
        """Raises Error where an argument of the function cannot be a parameter of the method."""
        where = f"scorer(): {self.__name__}()"
        for name, argument in self.parameters.items():
            require(argument.kind in (argument.POSITIONAL_OR_KEYWORD, argument.KEYWORD_ONLY), where,
                    f"no setting can give the argument '{argument}'; arguments after the head have names and defaults")
            require(argument.default is not argument.empty, where, f"the argument '{name}' has no default; give it one")
            require(name not in SELECTION, where, f"the argument '{name}' would never get its value, because every "
                    f"scorer has a parameter of this name ({', '.join(SELECTION)}); give it another name")


@overload
def scorer(function: Callable[..., Any], *, needs: Sequence[str] = ..., granularity: str = ..., windowed: bool = ...,
           calibrates: bool = ..., **selection: Any) -> Scorer: ...
@overload
def scorer(function: None = None, *, needs: Sequence[str] = ..., granularity: str = ..., windowed: bool = ...,
           calibrates: bool = ..., **selection: Any) -> Callable[[Callable[..., Any]], Scorer]: ...
def scorer(function: Callable[..., Any] | None = None, *, needs: Sequence[str] = (), granularity: str = "kv_head",
           windowed: bool = False, calibrates: bool = False, **selection: Any) -> Any:
    """Make a method of a function that gives every token of the context a score. The tokens with the highest scores are
    kept.

    Reduction over the query group, pooling, protected tokens, decoding and bytes are those of the built-in methods of
    this kind. Arguments of the function after the head are parameters of the method.

    Parameters
    ----------
    function : callable
        Gets a `HeadPrompt` and returns scores [n], or [G, n] for one per query head. Tokens at the end of the context
        that have no score are kept before all others. With ``granularity="layer"`` it gets the list of all kv heads of
        a layer, and returns one array for each.
    needs, granularity, windowed, calibrates
        Facts about the method (docs/python.md).
    **selection
        Defaults of sinks, recent, kernel, pooling (none, max, mean), per (kv_head, query_head), reduce (mean, max, sum)
        and order (reduce_first, pool_first).

    Returns
    -------
    Scorer
        The method; without a function what makes it of one, as a decorator with arguments does.

    Raises
    ------
    Error
        If an argument of the function cannot be a parameter.

    Examples
    --------
    >>> @kvbench.scorer(recent=32, pooling="max", kernel=7)
    ... def knorm(head):
    ...     return -np.linalg.norm(head.keys, axis=1)
    """
    facts = {"needs": needs, "granularity": granularity, "windowed": windowed, "calibrates": calibrates}
    if function is None:
        return functools.partial(scorer, **facts, **selection)
    if not callable(function) or not hasattr(function, "__name__"):
        raise Error(f"scorer(): {function!r} is no function with a name")
    made = Scorer(function, facts, {"per": "kv_head", **selection})
    made.check_parameters()
    return made
