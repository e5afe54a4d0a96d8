# SPDX-License-Identifier: Apache-2.0
"""Parameters of methods in Python and flags of calls: each value reaches the method, or is refused by a reason."""
import enum
import math
import os
import pathlib
import re
from dataclasses import dataclass, field
from typing import Literal, Optional

import numpy as np
from support import PackageTest, kvbench
from kvbench import _core
from kvbench.choosing import names

OK = ()


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Own:
    text: str = ""
    whole: int = 1
    number: float = 0.5
    truth: bool = False
    items: list = field(default_factory=list)
    choice: Literal[True, 1, "b"] = "b"
    maybe: Optional[int] = None
    either: int | None = 3
    file: pathlib.Path = pathlib.Path(".")
    perhaps: pathlib.Path | None = None
    colour: Colour = Colour.RED
    seen = []

    def make(self, budget, seed):
        self.seen.append(self)
        return np.arange(budget)


# What an object is given, and the parameters of its row: a text where they are not the value itself.
OBJECTS = [
    *({"text": text} for text in ("x=y", "25%mem", "x+y", " x ", "é", "a@b", "none", "#", "100%")),
    *(({"text": text}, f"text={shown}") for text, shown in (
        ("x,y", "x%2Cy"), ("x;y", "x%3By"), ("x[1]", "x%5B1%5D"), ("a\nb", "a%0Ab"), ("%2C", "%252C"),
        ("a,b;c", "a%2Cb%3Bc"))),
    *(({"whole": value}, "whole=3") for value in (3, np.int64(3), np.int32(3), np.uint8(3))),
    ({"whole": 2.5}, "whole=2.5"), ({"whole": True}, "whole=true"), ({"whole": 10**400}, "whole=" + str(10**400)),
    ({"number": np.float32(0.25)}, "number=0.25"), ({"number": np.float64(0.1)}, "number=0.1"),
    ({"number": 3}, "number=3"),
    ({"number": math.nan}, "number=nan"), ({"number": math.inf}, "number=inf"), ({"number": 1e22}, "number=1e+22"),
    ({"truth": np.bool_(True)}, "truth=true"), ({"truth": True}, "truth=true"), ({"choice": True}, "choice=true"),
    ({"choice": 1}, "choice=1"), ({"maybe": 3}, "maybe=3"), ({"either": None}, "either=none"),
    ({"file": pathlib.Path("a,b.txt")}, "file=a%2Cb.txt"), ({"colour": Colour.BLUE}, "colour=BLUE"),
    ({"items": [1, 2]}, None), ({"items": np.arange(3)}, None), ({"text": "\udc80"}, None), ({"text": ["a"]}, None),
    ({"whole": 5, "items": [7]}, "whole=5"),
]
# Settings as texts, and what the method has then; or words of the refusal.
TEXTS = [
    ("whole=3", 3), ("number=0.25", 0.25), ("number=nan", math.nan), ("truth=true", True), ("text=x%2Cy", "x,y"),
    ("text=25%mem", "25%mem"), ("text=%252C", "%2C"), ("text=", ""), ("text=é", "é"), ("choice=true", True),
    ("choice=1", 1), ("choice=b", "b"), ("maybe=3", 3), ("maybe=none", None), ("either=none", None),
    ("file=a%2Cb", pathlib.Path("a,b")),
    ("colour=BLUE", Colour.BLUE),
    ("whole=two", ("Own.whole", "'two'", "an integer")), ("whole=", ("Own.whole", "''", "an integer")),
    ("whole=2.5", ("an integer",)), ("truth=1", ("Own.truth", "true or false")), ("choice=c", ("one of true|1|b",)),
    ("maybe=x", ("Own.maybe", "an integer")), ("colour=GREEN", ("RED|BLUE",)), ("items=1", ("no text can give",)),
    ("colours=1", ("no parameter 'colours'", "It has: text, whole")), ("@=1", ("no parameter '@'",)),
]
SELECTION = ("sinks", "recent", "kernel", "pooling", "per", "reduce", "order")


class Parameters(PackageTest):
    def setUp(self):
        super().setUp()
        self.trace = self.synth("t.h5")
        Own.seen.clear()

    def rows(self, methods, budget=24, **flags):
        return kvbench.replay(self.trace, methods, budget, **{"rows": "trace", "layers": 0, **flags})

    def test_objects(self):
        for one in OBJECTS:
            given, params = one if isinstance(one, tuple) else (one, ";".join(f"{k}={v}" for k, v in one.items()))
            with self.subTest(given):
                method = Own(**given)
                row, = self.rows(method)
                self.assertEqual((row["status"], row["method"], row["params"]), ("ok", "py:Own", params), row["reason"])
                self.assertTrue(all(vars(seen).keys() >= given.keys() for seen in Own.seen))
                for name, value in given.items():
                    self.assertTrue(all(getattr(seen, name) is value for seen in Own.seen))
                Own.seen.clear()

    def test_texts(self):
        kvbench.replay(self.trace, Own, 24, layers=0)  # which defines py:Own
        for text, wanted in TEXTS:
            with self.subTest(text):
                Own.seen.clear()
                if isinstance(wanted, tuple):
                    with self.refuses(*map(re.escape, wanted)):
                        self.rows(f"py:Own[{text}]")
                    continue
                self.rows(f"py:Own[{text}]")
                value = getattr(Own.seen[0], text.split("=")[0])
                self.assertTrue(value == wanted or value != value and wanted != wanted, value)
                self.assertIs(type(value), type(wanted))

    def test_objects_beside_settings_for_all(self):
        for given, flag, wanted in ((Own(items=[7]), "Own.whole=9", (9, [7])), (Own(whole=5), "Own.whole=9", (5, [])),
                                    (Own, "Own.whole=9", (9, []))):
            Own.seen.clear()
            self.rows(given, set=flag)
            self.assertEqual((Own.seen[0].whole, Own.seen[0].items), wanted)

    def test_two_objects_of_one_name(self):
        for pair in ((Own(items=[1]), Own(items=[2])), (Own(), Own()), (Own, Own()), ("py:Own", Own())):
            with self.refuses("replay", "two methods are called py:Own"):
                self.rows(list(pair))
        for same in ([Own, Own], ["sink", "sink"], [Own, "py:Own"]):
            self.assertEqual(len(self.rows(same)), 1)

    def test_arguments_of_scorers(self):
        for name in SELECTION:
            with self.refuses(r"f\(\)", f"'{name}'", "every scorer has"):
                kvbench.scorer(define(f"head, {name}=3"))
        for arguments, word in (("head, *rest", r"\*rest"), ("head, **rest", r"\*\*rest"),
                                ("head, power", "no default"),
                                ("head, x=1, /", "x")):
            with self.refuses(r"f\(\)", word):
                kvbench.scorer(define(arguments))
        for wrong in (3, "text", np.arange(3)):
            with self.refuses("scorer", "no function"):
                kvbench.scorer(wrong)
        page = kvbench.scorer(define("head, power=2"))
        self.rows([page])
        with self.refuses("no parameter 'colour'", *SELECTION):
            self.rows(page(colour=3))
        with self.refuses("recent is", "whole number"):
            page(recent=[3])
        seen = []

        @kvbench.scorer(recent=np.int64(4))
        def own(of_head, head=3, *, table=None):
            seen.append((head, table))
            return np.zeros(of_head.tokens)
        row, = self.rows(own(recent=np.int32(8), head=5, table=[1]))
        self.assertEqual((row["params"], set(map(str, seen))), ("head=5;recent=8", {"(5, [1])"}))

    def test_flags(self):
        seeds = {row["seed"] for row in self.rows("random", seeds=[7], rows="head")}
        self.assertEqual(seeds - {"all"}, {7})
        for given, count in ((3, 3), (np.int64(3), 3), ([3], 1), ((3, 4), 2), (np.array([7]), 1), (range(2), 2),
                             ("3", 3)):
            seeds = {row["seed"] for row in self.rows("random", seeds=given, rows="head")} - {"all"}
            self.assertEqual(len(seeds), count, given)
        for budgets in ([24, 32], (24, 32), np.array([24, 32]), {24, 32}, (b for b in (24, 32)), "24,32"):
            self.assertEqual(sorted(row["budget"] for row in self.rows("sink", budgets)), ["24", "32"])
        for layers in (np.array([0, 1]), range(2), "0-1"):
            self.assertEqual({row["layer"] for row in self.rows("sink", layers=layers, rows="head")} - {"all"}, {0, 1})
        for no_times, timed in ((np.bool_(True), False), (True, False), (np.bool_(False), True), (None, True)):
            row, = self.rows("sink", no_times=no_times)
            self.assertEqual(row.get("compress_s") is not None, timed)
        for flags, words in (({"rows": "a\0b"}, ["NUL"]),
                             ({"rows": "\udc80"}, ["UTF-8"]),
                             ({"seeds": []}, ["seeds"]), ({"seeds": 2.5}, ["seeds", "2.5"]),
                             *(({flag: ""}, [f"--{flag}: the value is empty"]) for flag in ("prompts", "set", "raw")),
                             ({"prompts": "-q"}, ["no prompt '-q'"]), ({"kv_dtype": "--help"}, ["'--help'"]),
                             ({"no_times": "x"}, ["--no-times takes no value"])):
            with self.subTest(flags), self.refuses(*words):
                self.rows("sink", **flags)
        for methods, budget, words in (
                ([""], 24, "--method: the value is empty"), ("", 24, "--method: the value is empty"),
                ("sink", [], "--budget: the value is empty"), ("sink", "-b", "budget '-b'"),
                ("-sink", 24, "'-sink' leaves out nothing")):
            with self.subTest(methods, budget=budget), self.refuses(words):
                self.rows(methods, budget)
        for methods in ([], None, 3, [None], object()):
            with self.refuses("no method"):
                self.rows(methods)

    def test_the_names_that_kvbench_choose_reads(self):
        """It reads names of rows without the extension, by the same grammar."""
        for name in ("snapkv", "h2o+q8_0", "adakv(snapkv)+int8", "turboquant@vllm", "scores:a+b.h5",
                     "scores:a+b.h5+int8", "a+b/mine.py:Mine", "a+b/mine.py:Mine+kivi4", "py:Mine+kivi4",
                     "plan:a+b.toml"):
            found = _core.parse_method(name)
            with self.subTest(name):
                chosen = f"{found.wrapper}({found.base})" if found.wrapper else found.base
                self.assertEqual(names.parts_of(name), (chosen, found.quantiser or ""))

    def test_files_that_are_named_like_a_flag(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        os.symlink(self.trace, "--help")
        rows = kvbench.replay("--help", "sink,h2o", 24, rows="query", output="-o.csv", raw="-r.h5", no_times=True)
        self.assertEqual(sorted(set(os.listdir()) & {"-o.csv", "-r.h5"}), ["-o.csv", "-r.h5"])
        self.assertEqual(kvbench.compare("-r.h5"), kvbench.compare(rows))
        self.assertEqual(kvbench.report("-o.csv", "-p.html"), "-p.html")

    def test_files_that_are_named_like_a_value(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        pathlib.Path("2").write_text("")
        os.mkfifo("3")
        kvbench.replay(self.trace, ["sink[sinks=2]", "sink[sinks=3]", Own(whole=2), Own(text="3")], 24, output="2",
                       rows="trace")
        self.assertEqual(len(kvbench.load_csv("2")), 4)
        pathlib.Path("table").write_text("")
        for name in ("file", "perhaps"):
            with self.refuses("table", "would be replaced"):
                kvbench.replay(self.trace, Own(**{name: pathlib.Path("table")}), 24, output="table")
        kept = self.path("kept,1.npz")  # a parameter that is a file
        np.savez(kept, **{f"{p}/{l}/{h}": np.arange(3) for p in "0" for l in (0, 1) for h in (0, 1)})
        row, = self.rows(kvbench.entries(kept), prompts=0)
        self.assertEqual(row["status"], "ok", row["reason"])
        with self.refuses("same file", "reads"):
            kvbench.replay(self.trace, kvbench.entries(kept), 24, output=kept)


def define(arguments):
    names = {}
    exec(f"def f({arguments}):\n    return head.keys[:, 0]", names)
    return names["f"]
