# SPDX-License-Identifier: Apache-2.0
"""The attention that transformers calls while kvbench runs a model, to record it (kvbench-dump-hf) or to replace it
(kvbench.compressed): float32 on one block of queries at a time, by the model's own eager code with a mask whose rows
are computed when they are needed, or by two products where that code does nothing else. No array grows with the square
of the tokens."""

import contextlib
import functools
import sys
import threading
import weakref
from dataclasses import dataclass, replace

import torch

from .measure import attention_modules  # first: it refuses versions of transformers without what follows
from .._error import Error, require
from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

NAME = "kvbench"
MOST_WEIGHTS = 2**24  # attention weights per block: 64 MiB in float32, of which the eager code holds several copies
MOST_PLAIN = 2**20  # the same without that code: 4 MiB, which caches of processors hold
FEW_QUERIES = 8  # of a call for which the eager code is not compared


class MaskInUse(AttributeError, Error):
    """The code of a model does more with its mask than give it to its attention."""


class LazyMask:
    """The mask of a model, some rows at a time. The rows come from the functions with which transformers makes the
    masks of its other attention implementations."""
    ndim = 4  # by which transformers knows masks that are ready

    def __init__(self, arguments, skipped=0):
        self._arguments = {**arguments, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
        padding = arguments.get("attention_mask")
        if torch.is_tensor(padding) and bool(padding.all()):  # hides nothing, but sdpa_mask() hides all beyond its end
            self._arguments["attention_mask"] = None
        self._skipped = skipped  # rows of the call that this mask lacks at its beginning
        self._causal = {}  # what is_causal() has answered, as layers share a mask

    def __getattr__(self, name):
        raise MaskInUse(f"this model cannot be run by kvbench: it computes with its attention mask ({name}) instead of "
                        "giving it to its attention, so that what a query sees is known to its own code alone; or this "
                        "call goes on after the with statement in which it began.")

    @classmethod
    def __torch_function__(cls, function, *_):
        return cls.__getattr__(None, function.__name__)

    def __add__(self, *_):
        return self.__getattr__("arithmetic")

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __invert__ = __add__  # Python looks for these in the class

    def __getitem__(self, index):
        """The mask of the last queries, mask[:, :, -k:] or mask[:, :, -k:, :]: of layers whose other outputs nothing
        depends on (Gemma 4)."""
        if not (isinstance(index, tuple) and len(index) in (3, 4) and isinstance(index[2], slice)
                and all(of == slice(None) for of in (*index[:2], *index[3:]))):
            return self.__getattr__("a part of it")  # it selects tokens
        given = self._arguments
        return LazyMask(given, self._skipped + index[2].indices(given["q_length"] - self._skipped)[0])

    def rows(self, first, last, keys):
        """bool [last - first, keys]: which of the first `keys` tokens the queries first .. last - 1 attend to. Queries
        are numbered from the first one of the call, and may lie beyond its last one."""
        given, first, last = self._arguments, first + self._skipped, last + self._skipped
        return sdpa_mask(**{**given, "q_length": last - first, "q_offset": given.get("q_offset", 0) + first,
                            "kv_length": keys})[0, 0]

    def is_causal(self, t, n, window=0):
        """Whether each of the first t queries, the last of n tokens, sees all tokens up to its own, or the last
        `window` (0: all) of them."""
        if (t, n, window) not in self._causal:
            step = max(1, 2**24 // n)
            self._causal[t, n, window] = all(self._are_causal(first, min(t, first + step), n - t, n, window or n)
                                             for first in range(0, t, step))
        return self._causal[t, n, window]

    def _are_causal(self, first, last, before, n, window):
        seen = self.rows(first, last, n)
        own = torch.arange(before + first, before + last, device=seen.device)[:, None]
        token = torch.arange(n, device=seen.device)
        return torch.equal(seen, (token <= own) & (token > own - window))


@dataclass
class Call:
    """One call of the attention of one layer. Tensors have the element type of the model and no batch dimension."""

    module: torch.nn.Module
    query: torch.Tensor  # [q_heads, t, d]
    key: torch.Tensor  # [kv_heads, n, d], n - t of the keys are from earlier calls
    value: torch.Tensor  # [kv_heads, n, dv]
    mask: LazyMask
    scale: float
    options: dict  # further arguments of the model's attention: softcap, ...
    pulse: object  # called before each block
    latent: bool = False  # MLA in absorbed form: the values are the first channels of the keys

    @property
    def where(self):
        return f"layer {self.module.layer_idx}"

    @property
    def sinks(self):
        """Learned logits without a token, [q_heads], which take part in each softmax; None: there are none."""
        return self.options.get("s_aux")

    @property
    def softcap(self):
        return float(self.options.get("softcap") or 0)

    def blocks(self, most=MOST_WEIGHTS):
        """Blocks of queries, as pairs (first, last)."""
        heads, t, _ = self.query.shape
        rows = max(1, most // (heads * self.key.shape[1]))
        return [(first, min(t, first + rows)) for first in range(0, t, rows)]

    def run(self, each=None):
        """Attention output [t, q_heads, dv] in the element type of the model. each(first, output [q_heads, rows, dv],
        weights [q_heads, rows, keys]) is called for each block, in float32."""
        if self._is_plain():
            return self._run_plain(each)
        q, k, v = (x[None].float() for x in (self.query, self.key, self.value))
        before = k.shape[2] - q.shape[2]
        whole = torch.empty(q.shape[2], q.shape[1], v.shape[3], dtype=self.query.dtype, device=q.device)
        for first, last in self.blocks():
            self.pulse()
            keys = before + last
            hidden = ~self.mask.rows(first, last, keys)
            bias = torch.zeros(hidden.shape, device=q.device).masked_fill_(hidden, torch.finfo(torch.float32).min)
            output, weights = self._eager(q[:, :, first:last], k[:, :, :keys], v[:, :, :keys], bias)
            whole[first:last] = output[0]
            if each is not None:
                each(first, output[0].transpose(0, 1), weights[0])
        return whole

    def _eager(self, q, k, v, bias):
        return sys.modules[type(self.module).__module__].eager_attention_forward(
            self.module, q, k, v, bias[None, None], scaling=self.scale, **self.options)

    def _is_plain(self):
        """Whether the attention is softmax(scale q k^T) v under a causal mask, on a processor: so say the options, the
        mask, and what the model's code answers to the last query."""
        (_, t, _), n = self.query.shape, self.key.shape[1]
        if t <= FEW_QUERIES or torch.is_grad_enabled() or self.query.device.type != "cpu" or self.softcap \
                or self.sinks is not None or self.latent or not self.mask.is_causal(t, n):
            return False
        last = replace(self, query=self.query[:, -1:])
        q, k, v = (x[None].float() for x in (last.query, self.key, self.value))
        output, weights = self._eager(q, k, v, torch.zeros(1, n))
        found = []
        last._run_plain(lambda _, *block: found.extend(block))
        return weights is not None and torch.allclose(found[1], weights[0], 1e-3, 1e-6) and \
            bool((found[0].transpose(0, 1) - output[0]).norm() <= 1e-4 * output.norm())

    def _run_plain(self, each=None):
        """As run(), without the code of the model."""
        (heads, t, d), kv_heads, before = self.query.shape, len(self.key), self.key.shape[1] - self.query.shape[1]
        q, k, v = self.query.float() * self.scale, self.key.float(), self.value.float()
        whole = torch.empty(t, heads, v.shape[2], dtype=self.query.dtype)
        for first, last in self.blocks(MOST_PLAIN):
            self.pulse()
            rows, keys = last - first, before + last
            logits = (q[:, first:last].reshape(kv_heads, -1, d) @ k[:, :keys].mT).view(heads, rows, keys)
            logits[:, :, before + first:].masked_fill_(torch.ones(rows, rows, dtype=torch.bool).triu(1), -torch.inf)
            weights = logits.softmax(-1)
            output = (weights.view(kv_heads, -1, keys) @ v[:, :keys]).view(heads, rows, -1)
            whole[first:last] = output.transpose(0, 1)
            if each is not None:
                each(first, output, weights)
        return whole


def absorbed(module, query, latents, rotary):
    """MLA as attention to what a cache holds, [latent | rotary key] by token with the latents as values. A module makes
    keys and values of these by expand_kv(), which is linear: the images of unit vectors give queries of as many
    channels, and the map from outputs [t, q_heads, r] to those of the module. query [1, q_heads, t, d], latents [1, 1,
    n, r], rotary [1, 1, n, dr] -> query, key, value, map."""
    r, d = latents.shape[3], latents.shape[3] + rotary.shape[3]
    units = torch.eye(d + 1, d, dtype=query.dtype, device=query.device)[None, None]  # the last row: zeros
    keys, values = (x[0].float() for x in type(module).expand_kv(module, units[..., :r], units[..., r:]))
    if bool(keys[:, d].any()) or bool(values[:, d].any()):
        raise Error(f"layer {module.layer_idx} of this model cannot be recorded: it adds a bias to the keys or values "
                    "that it makes of latents (MLA).")
    def expand(output):
        return torch.einsum("thr,hrv->thv", output.float(), values[:, :r]).to(query.dtype)
    return query.float() @ keys[None, :, :d].mT, torch.cat((latents, rotary), 3), latents, expand


class Peeked(Exception):
    """Ends the run of an attention module when its queries and keys are known."""

    def __init__(self, query, key):
        super().__init__()
        self.query, self.key = query[0], key[0]


def refuse_unknown(module, mask, scaling, options, done):
    """Raises Error for attention that softmax(scale q k^T) v under a causal mask does not describe. `done`: what cannot
    be done with it then, such as "recorded"."""
    if not isinstance(number := getattr(module, "layer_idx", None), int) or number < 0:
        raise Error(f"this model's attention does not know the number of its layer (layer_idx); it cannot be {done}.")
    where = f"layer {number} of this model cannot be {done}"
    if scaling is None:
        raise Error(f"{where}: it passes no `scaling` to its attention, so that the factor of its logits is unknown.")
    sinks = options.get("s_aux")
    if done == "recorded" and sinks is not None:
        raise Error(f"{where}: it has attention sinks, which take attention mass without a token.")
    if getattr(module, "sinks", None) is not sinks:
        raise Error(f"{where}: it has attention sinks that it does not pass to its attention.")
    if options.get("position_bias") is not None:
        raise Error(f"{where}: a position bias is added to its logits.")
    if options.get("is_causal") is False or getattr(module, "is_causal", True) is False:
        raise Error(f"{where}: it attends in both directions; kvbench is about causal attention.")
    if mask is None:
        raise Error(f"{where}: its attention has no mask; nor has a call that had begun when the with statement did.")
    if not isinstance(mask, LazyMask):
        raise Error(f"{where}: its mask is an array of the caller or of the model's own code (ALiBi or another "
                    "position bias), which transformers' mask functions do not describe; or the call had begun when "
                    "the with statement did.")
    if not hasattr(sys.modules[type(module).__module__], "eager_attention_forward"):
        raise Error(f"{where}: transformers has no eager attention for it, with which its own could be computed.")


# By module: the interfaces in whose `with` statement it is, the innermost last. What runs is decided by the module that
# is called and by the thread that calls it: any number of models, of interfaces in each other, and of threads with
# statements of their own may be active at a time.
_attached = weakref.WeakKeyDictionary()
_attaching = threading.Lock()
_turns = weakref.WeakKeyDictionary()  # by model: a lock, which alone_with() holds


class _Entry:
    """An interface in a `with` statement of this thread; `shared`: it answers other threads too. `before`: the
    configurations of the model, with the implementations that they had before the first statement."""

    def __init__(self, interface, model, shared):
        self.interface, self.thread, self._modules = interface, threading.get_ident(), list(model.modules())
        self._model, self.shared, self.before = model, shared, []

    def attach(self):
        with _attaching:
            first = next((other for module in self._modules for other in _attached.get(module, ())), None)
            self.before = first.before if first else \
                [(config, config._attn_implementation) for config in _configurations(self._model)]
            for module in self._modules:
                _attached[module] = [*_attached.get(module, ()), self]
            if first:
                return
            self._model.set_attn_implementation(NAME)
            for module in attention_modules(self._model):  # whose configuration may be a copy
                if hasattr(module, "config"):
                    module.config._attn_implementation_internal = NAME

    def detach(self):
        """May be called again, wherever it was interrupted."""
        with _attaching:
            if all(other is self for module in self._modules for other in _attached.get(module, ())):
                for config, implementation in self.before:
                    config._attn_implementation_internal = implementation
            for module in self._modules:
                _attached[module] = [other for other in _attached.get(module, ()) if other is not self]


def _turn_of(model):
    with _attaching:
        return _turns.setdefault(model, threading.RLock())


@contextlib.contextmanager
def alone_with(model, function):
    """A context in which no other thread enters a `with` statement of the model: they wait until it ends. Raises Error
    where the model is in one already, as waiting for the other's end could take for ever."""
    with _turn_of(model):
        require(not any(map(_attached.get, model.modules())), function, f"{type(model).__name__} is inside a with "
                "statement of kvbench.compressed(), in this thread or another one; end it before, or give a copy of "
                "the model (copy.deepcopy).")
        yield


def _dispatch(module, *arguments, **named):
    if not _attached.get(module):
        raise Error("a model that shares its configuration with one that kvbench runs was called beside it; give each "
                    "a configuration of its own (copy.deepcopy).")
    return _interface_of(module).attend(module, *arguments, **named)


def _interface_of(module):
    """The innermost one of this thread; in a thread without a statement of its own, the innermost shared one of the
    first thread that has one. Raises Error where there is none."""
    entries, mine = _attached[module], threading.get_ident()
    usable = [entry for entry in entries if entry.thread == mine] or [entry for entry in entries if entry.shared]
    require(usable, "kvbench", "another thread measures this model, for evaluate(), a dump or its first compressed(); "
            "call it after that, or give each thread a copy of the model (copy.deepcopy).")
    return next(entry.interface for entry in reversed(usable) if entry.thread == usable[0].thread)


AttentionInterface.register(NAME, _dispatch)
AttentionMaskInterface.register(NAME, lambda **arguments: LazyMask(arguments))


def _configurations(model):
    """The configurations of a model and its parts, each once."""
    parts = [part for part in model.modules() if isinstance(part, PreTrainedModel)]
    found, open_ones = {}, [getattr(part, "config", None) for part in (*parts, *attention_modules(model))]
    while open_ones:
        config = open_ones.pop()
        if config is not None and id(config) not in found:
            found[id(config)] = config
            open_ones += [getattr(config, name, None) for name in getattr(config, "sub_configs", {})]
    return list(found.values())


class Interface:
    """The attention of a model, inside `with interface.attached(model)`. `on_call(Call)` returns the output of each
    call, [t, q_heads, dv]. `pulse` is called often and may raise. `done`: as refuse_unknown(). `latent`: attention with
    latents (MLA) is called in absorbed form."""

    def __init__(self, done="recorded", latent=False):
        self._latent = latent
        self._latents = {}  # by module: what it gave to expand_kv() last
        self.on_call = Call.run
        self.pulse = lambda: None
        self._done = done
        self._peeking = False
        self.answer = None  # what answering() was given

    @contextlib.contextmanager
    def attached(self, model, shared=False):
        """`shared`: other threads without a statement of their own have this one."""
        entry = _Entry(self, model, shared)
        watched = [module for module in model.modules() if self._latent and hasattr(module, "expand_kv")]
        try:  # twice, because Ctrl-C may come within the first end
            try:
                with _turn_of(model):
                    entry.attach()
                for module in watched:
                    module.expand_kv = functools.partial(self._expand, module)
                yield self
            finally:
                self._detach(entry, watched)
        finally:
            self._detach(entry, watched)

    def _detach(self, entry, watched):
        entry.detach()
        for module in watched:
            vars(module).pop("expand_kv", None)
            self._latents.pop(module, None)

    def _expand(self, module, latents, rotary):
        self._latents[module] = latents, rotary
        return type(module).expand_kv(module, latents, rotary)

    def attend(self, module, query, key, value, attention_mask, scaling=None, **options):
        latent, expand = module in self._latents, lambda output: output
        if latent:
            query, key, value, expand = absorbed(module, query, *self._latents[module])
        if self._peeking:
            raise Peeked(query, key)
        if self.answer is not None:
            return expand(self.answer)[None], None
        refuse_unknown(module, attention_mask, scaling, options, self._done)
        if len(query) != 1:
            raise Error(f"a batch of {len(query)} sequences cannot be {self._done}; run them one at a time.")
        call = Call(module, query[0], key[0], value[0], attention_mask, float(scaling), {"dropout": 0.0, **options},
                    self.pulse, latent)
        return expand(self.on_call(call))[None].contiguous(), None  # as the code of models expects

    @contextlib.contextmanager
    def answering(self, output):
        """A context in which attention gives this output [t, q_heads, dv], whatever is asked."""
        self.answer = output
        try:
            yield
        finally:
            self.answer = None

    def peek(self, module, args, kwargs):
        """The rotated queries and keys that an attention module computes from these arguments: [heads, t, d] each."""
        self._peeking = True
        try:
            module.forward(*args, **kwargs)
        except Peeked as seen:
            return seen.query, seen.key
        finally:
            self._peeking = False
        raise Error(f"layer {module.layer_idx}: its attention did not reach transformers' attention interface.")
