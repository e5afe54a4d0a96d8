# SPDX-License-Identifier: Apache-2.0
"""What functions of methods in Python return: each value has a right row, or is refused by a reason that names the
function."""
import math
import sys

import numpy as np
from support import PACKAGE, PackageTest, kvbench

sys.path.insert(0, str(PACKAGE / "tests" / "methods"))
from faults import Cache, Fixed  # noqa: E402



class Says2(list):
    """A list that says that it has two items."""
    def __len__(self):
        return 2


OK = ()  # of a value that is right; else words of the reason
B, N, D, DV = 24, 192, 32, 32  # budget, tokens of the context, dimensions
A = kvbench.Array


def arrays(cols=(D, DV), rows=B, **named):
    return [A(name=name, rows=rows, cols=width, content=name, **named) for name, width in zip(("keys", "values"), cols)]


def plus(**named):
    return [*arrays(), A(name="more", **{"element": "u8", **named})]


COUNT = "a whole number from 0 to "
ENDS, LOST = np.r_[:4, N - B + 4:N], "token 4 answers no query"
NO_COUNT = {math.nan: "nan", math.inf: "inf", 24.0: "24.0", 24.7: "24.7", np.float32(24): "24.0", -1: "-1",
            2**62: "4611", 2**64: "1844", True: "True", None: "None", "24": "'24'", np.bool_(True): "True", 1j: "1j"}
FOOTPRINT = [
    *((value, ("footprint()", shown, COUNT)) for value, shown in NO_COUNT.items() if not isinstance(value, str)),
    (B, OK), (np.int64(B), OK), (np.array(B), OK), (np.array([B]), ("footprint()", COUNT)),
    ("24", ("footprint()", "kvbench.Array")), ({}, ("footprint() holds 0 rows",)), ([3], ("kvbench.Array",)),
    ([{"name": "keys", "rows": 1}], ("kvbench.Array",)), (A(name="keys", rows=1), ("footprint()",)),
    (arrays(), OK), (tuple(arrays()), OK), (arrays(cols=(D, DV), element="f32"), OK), (arrays(element="b4"), OK),
    (arrays(cols=(1, 1)), ("footprint() holds 24 numbers of keys", "32 numbers each")),
    (arrays(cols=(D, 1)), ("footprint() holds 24 numbers of values", "32 numbers each")),
    (arrays(cols=(1, 1), element="f16"), ("footprint() holds 24 numbers",)),
    (arrays(cols=(0, 0)), ("footprint()", "'keys' has 24 rows without columns")),
    (arrays(cols=(0, 0), element="b4"), ("footprint()", "without columns")),
    (arrays(rows=B - 1), ("footprint() holds 23 rows of keys",)), (plus(rows=0, cols=0), OK), (plus(rows=3), OK),
    (plus(rows=2**62), ("footprint()", "rows of the array 'more'", COUNT)),
    (plus(rows=2**40, cols=2**40), ("footprint()", "more than 2^48 numbers")),
    (plus(rows=1, cols=-3), ("footprint()", "cols of the array 'more' is -3")),
    (plus(rows=2.5), ("footprint()", "rows of the array 'more' is 2.5")),
    (plus(rows=np.float32(2)), ("footprint()", "rows of the array 'more'")), (plus(rows=np.uint8(2)), OK),
    (plus(rows=None), ("footprint()", "rows of the array 'more' is None")),
    ([*arrays(), *[A(name="more", rows=2**47, element="u8")] * 3], ("footprint()", "2^48")),
    (plus(rows=1) + [A(name="more", rows=1, element="u8")] * 1000, ("footprint()", "more than 1000 arrays")),
    ([A(name=3, rows=1)], ("footprint()", "name", "text")), (plus(rows=1, element=None), ("footprint()", "element")),
    (plus(rows=1, element="f8"), ("element", "'f8'", "b4", "kv")),
    (plus(rows=1, tier="ram"), ("footprint()", "tier", "'ram'", "fast, slow")),
    (plus(rows=1, read=3), ("the read of a kvbench.Array is 3",)),
]
PROTECTED = [
    *(((value, 0), ("protected_tokens(): sinks", shown, COUNT)) for value, shown in NO_COUNT.items() if value != 2**62),
    ((0, 2**63 - 1), ("protected_tokens(): recent", COUNT)), ((2**63 - 1, 2**63 - 1), ("protected_tokens(): sinks",)),
    ((4, 4), OK), ([4, 4], OK), ((4, 4, True), OK), (np.array([4, 4]), OK), ((np.int32(4), np.uint8(4)), OK),
    ((2**31 - 1, 2**31 - 1), ("protected_tokens()", LOST)), ((5, 0), (LOST,)),
    ((0, 21, True), ("token 171 answers",)), ((4,), ("protected_tokens()", "2 to 3")), (4, ("2 to 3",)),
    (None, ("2 to 3",)), ("44", ("2 to 3",)), ((1, 2, True, 3), ("2 to 3",)), ({4: 4}, ("2 to 3",)),
    ((4, 4, 1), ("protected_tokens(): decoded is 1", "True or False")), ((4, 4, None), ("True or False",)),
]
RETRIEVABLE = [
    *(((0, value), ("retrievable(): count", shown, COUNT)) for value, shown in NO_COUNT.items()),
    ((-1, 5), ("retrievable(): first",)), ((0.5, 5), ("retrievable(): first",)), ((2**62, 2**62), ("first",)),
    ((0, 1000), ("retrievable(): count is 1000",)), ((100, 200), ("retrievable(): count is 200",)),
    ((0, N), OK), ([0, np.int64(N)], OK), ((0, 100), ("more rows than tokens",)), (None, ("retrievable()", "2 to 2")),
    ((3,), ("2 to 2",)), ((1, 2, 3), ("2 to 2",)),
]
IDS = [
    (np.arange(B), OK), (range(B), OK), (list(range(B)), OK), (np.arange(B, dtype=np.uint16), OK), ([], OK), ([-1], OK),
    (np.ma.masked_array(np.arange(B)), OK),
    (np.ma.masked_equal(np.arange(B), 3), ("ids are a masked array",)), (np.tile(np.arange(B), (2, 1)), OK),
    (np.empty(0), OK),
    (np.arange(B, dtype=np.float32), ("ids must be integers", "float32")), (np.ones(N, bool), ("bool",)),
    ([None] * B, ("object",)), (["1"], ("ids must be integers",)), ([1j], ("complex",)), ("abc", ("integers",)),
    (b"abc", ("integers",)), ({1: 2}, ("integers",)), (set(range(B)), ("integers",)),
    (5, ("integers", "shape []")), (np.zeros((1, 1, B), int), ("[1, 1, 24]",)),
    ([[1, 2], [3]], ("cannot be an array",)),
    (np.zeros((3, 8), int), ("[3, 8]",)), ([2**70], ("ids must be integers",)), ([N + 100], ("returned the id 292",)),
    (np.array([2**63], np.uint64), ("no token 9223372036854775808",)), (np.array([-2**63]), ("no token -9223",)),
    ([2**31 - 1], ("no token 2147483647",)), ([2**31 - 2], ("returned the id 2147483646",)), ([-2], ("no token -2",)),
    (kvbench.Table(ids=None), ("integers",)), ([kvbench.Table(ids=[])], OK), (None, ("integers",)),
    ([kvbench.Table(ids=[0])] * 3, ("twice",)), (kvbench.Table(ids=[0], per_query=True), ("per_query",)),
    (kvbench.Table(ids=[0, 1], per_head=True), ("[2]", "[2, width]")),
    (kvbench.Table(ids=[0], per_head="no"), ("per_head",)),
    (kvbench.Table(ids=[0], own_keys=np.ones((1, 3))), ("own_keys", "[1, 3]", "[1, 1, 32]")),
    (kvbench.Table(ids=np.arange(3), own_keys=np.ones((D, 3))), ("own_keys", "[32, 3]")),
    (kvbench.Table(ids=[0], own_values=[["a"] * DV]), ("own_values", "numbers")),
    (kvbench.Table(ids=[0], own_values=[[None] * DV]), ("own_values", "numbers")),
    (kvbench.Table(ids=[0], weight_num=[1j]), ("weight_num", "complex")),
    (kvbench.Table(ids=[0], weight_num=[math.nan]), ("not finite",)),
    (kvbench.Table(ids=[0], weight_num=[1e300]), ("not finite",)),
    (kvbench.Table(ids=[0], weight_num=["1"]), ("numbers",)),
    (kvbench.Table(ids=[0], weight_num=1.0), ("weight_num has the shape []",)),
]
KEPT = [
    *(({"sinks": value}, ("make(): sinks", shown, COUNT)) for value, shown in NO_COUNT.items()),
    *(({"recent": value}, ("make(): recent", shown, COUNT)) for value, shown in NO_COUNT.items()),
    ({"sinks": 4, "recent": np.int64(4)}, OK), ({"sinks": 2**31 - 1, "recent": 2**31 - 1}, ("make()", LOST)),
    ({"weights": np.ones(B)}, OK), ({"weights": np.ones(B, np.float32)}, OK), ({"weights": np.ones(B, bool)}, OK),
    ({"weights": 2}, ("make(): weights has the shape []",)), ({"weights": [1, 2, 3]}, ("weights has the shape [3]",)),
    ({"weights": ["1"] * B}, ("make(): weights", "numbers")), ({"weights": [None] * B}, ("weights", "numbers")),
    ({"weights": np.full(B, math.nan)}, ("not finite",)), ({"weights": np.full(B, 1e300)}, ("not finite",)),
]
APPENDED = [(value, ("append()", shown, COUNT)) for value, shown in NO_COUNT.items() if value is not None] + [
    (1, OK), (np.int64(1), OK), (np.array(1), OK), (0, ("append() of 1 tokens returned 0",)), (2, ("returned 2",))]
NOTES = [
    (["a", ("b", 2)], OK), ((), OK), ([("x", np.float32(2))], OK), ([("x", 0.5)], OK), (["x" * 130000], OK),
    (["a\0b"], OK),
    (["a\nb"], OK), (["\udc80"], OK), ([["x", 1]], OK),
    ([("x", math.nan)], ("notes()", "nan", "finite")), ([("x", -1)], ("notes()", "-1")), ([("x", math.inf)], ("inf",)),
    ([("x", "1")], ("notes()", "'1'")), ([3], ("notes(): a note is 3",)), (None, ("notes()",)), ("abc", ("notes()",)),
    ([(3, 1)], ("notes()", "text")), ([("x",)], ("2 to 2",)), ([("x", 1, 2)], ("2 to 2",)), (3, ("notes()",)),
    ([str(i) for i in range(100000)], ("notes()", "0 to 100")),
]
SCORES = [
    (np.arange(N), OK), (np.arange(N) > 5, OK), ([0.5] * N, OK), (np.zeros((2, N)), OK), (np.zeros(3), OK), ([], OK),
    (np.full(N, math.inf), OK), (np.full(N, -math.inf), OK), (np.full(N, 1e300), OK),
    (np.full(N, math.nan), ("scores()", "NaN for token 0")), (["1"] * N, ("scores()", "numbers")), (None, ("numbers",)),
    (np.ones(N) * 1j, ("scores()", "complex")), ([2**70] * N, ("numbers",)), ({}, ("numbers",)), (1.0, ("shape []",)),
    (np.zeros(N + 1), ("scores()", "[193]", "[192]")), (np.zeros((N, 2)), ("[192, 2]",)), ([None] * N, ("numbers",)),
    (np.zeros((1, 2, N)), ("[1, 2, 192]",)), ([[0.0], [0.0, 1.0]], ("cannot be an array",)),
]
MAKERS = [(None, ("ids must be integers",)), (3, ("prepare()", "no make")), ("abc", ("prepare()", "of type str"))]


def of_cache(**parts):
    facts = {name: parts.pop(name) for name in ("kind",) if name in parts}
    cache = type("", (Cache,), parts)
    return type("", (Fixed,), {**facts, "make": lambda self, budget, seed: cache(self.head, budget)})


def of_make(result):
    return type("", (Fixed,), {"make": lambda self, budget, seed: result})


def scorer_of(value):
    def scores(head):
        return value
    return kvbench.scorer(scores)


class Returned(PackageTest):
    def setUp(self):
        super().setUp()
        self.trace = self.synth("t.h5", d=D, dv=DV)

    def rows(self, methods, stored=False):
        """The rows of these methods, which are called M0, M1, ...; `stored` with their tokens in 8 bits."""
        for number, method in enumerate(methods):
            if isinstance(method, type):
                method.__name__ = f"M{number}"
        rows = kvbench.replay(self.trace, methods, B, rows="trace", layers=0)
        return rows if not stored else kvbench.replay(
            self.trace, [f"py:M{number}+int8" for number in range(len(methods))], B, rows="trace", layers=0)

    def check(self, table, method_of, stored=False):
        if method_of is scorer_of:  # all of one name
            rows = [self.rows([method_of(value)])[0] for value, _ in table]
        else:
            rows = self.rows([method_of(value) for value, _ in table], stored)
        self.assertEqual(len(rows), len(table))
        for row, (value, words) in zip(rows, table):
            with self.subTest(repr(value)[:200]):
                reason = row["reason"] or ""
                self.assertEqual(row["status"], "failed" if words else "ok", reason)
                for word in words:
                    self.assertIn(word, reason)
                for foreign in ("std::", "bad_cast", "nanobind", "vector", "Traceback"):
                    self.assertNotIn(foreign, reason)

    def test_footprint(self):
        self.check(FOOTPRINT, lambda value: of_cache(footprint=lambda self: value))

    def test_footprint_beside_decoded_tokens(self):
        class Keeps:
            def __init__(self, rows):
                self.footprint = lambda: rows

            def entries(self, queries):
                return np.arange(B)
        self.check([(B, OK), (B - 5, (f"{B - 5} rows of keys", f"{B} different entries"))],
                   lambda rows: type("", (Fixed,), {"make": lambda self, budget, seed: Keeps(rows)}))

    def test_footprint_from_a_generator(self):
        self.check([(None, OK)], lambda _: of_cache(footprint=lambda self: (array for array in arrays())))

    def test_protected_tokens(self):
        """Recall does not count them, so that they must be among the entries."""
        self.check(PROTECTED, lambda value: of_cache(protected_tokens=lambda self: value,
                                                     entries=lambda self, queries: ENDS))

    def test_retrievable(self):
        stored = arrays(rows=N, tier="slow", read="with_entry")
        self.check(RETRIEVABLE, lambda value: of_cache(kind="retrieval", retrievable=lambda self: value,
                                                       footprint=lambda self: stored), stored=True)

    def test_lists_with_an_item_for_each_head(self):
        class Heads(Cache):
            def entries(self, queries):
                return [np.arange(B)] * 2

            def footprint(self):
                return [B] * 2
        for name, item in (("entries", np.arange(B)), ("footprint", B), ("protected_tokens", (0, 0))):
            for given in ([item], [item] * 3, Says2([item] * 9), Says2([]), None, 3):
                cache = type("C", (Heads,), {name: lambda self, *_, given=given: given})
                method = type("", (Fixed,), {"granularity": "layer",
                                             "make": lambda self, budget, seed, cache=cache: cache(self.head, budget)})
                row = self.rows([method])[0]
                self.assertEqual(row["status"], "failed", (name, given))
                self.assertIn(f"{name}() must return a list with one item for each of the 2 kv heads", row["reason"])

    def test_ids(self):
        late = {("twice",), ("not finite",)}  # what the harness finds, as in the entries of all methods
        for name, method_of in (("make()", of_make), ("entries()", lambda value: of_cache(
                entries=lambda self, queries: value, footprint=lambda self: plus(rows=1, element="f32")))):
            self.check([(value, (name, *words) if words and words not in late else words) for value, words in IDS],
                       method_of)

    def test_kept(self):
        self.check(KEPT, lambda named: of_make(kvbench.Kept(ENDS, **named)))

    def test_append(self):
        self.check(APPENDED, lambda value: of_cache(append=lambda self, *given: value))

    def test_notes(self):
        self.check(NOTES, lambda value: of_cache(notes=lambda self: value))

    def test_scores(self):
        self.check(SCORES, scorer_of)

    def test_prepare(self):
        self.check(MAKERS[1:], lambda value: type("", (Fixed,), {"prepare": lambda self, head: value}))
