# SPDX-License-Identifier: Apache-2.0
"""The command lines of kvbench-dump-hf and kvbench-choose."""

import argparse
import os
import re
import sys

from .._error import Error, nearest


def whole_number(least, most):
    """The type of an argument."""
    def read(text):
        if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {least} to {most}")
        return int(text)
    return read


positive, threads = whole_number(1, 2**31 - 1), whole_number(1, 4096)


class Once:
    """An action of a flag with one value, which would otherwise be that of the last of several."""

    def __call__(self, parser, namespace, values, option_string=None):
        if self.dest in parser.given:
            parser.error(f"{option_string} is given twice; it takes one value")
        parser.given.add(self.dest)
        super().__call__(parser, namespace, values, option_string)


class Value(Once, argparse._StoreAction):
    pass


class Whether(Once, argparse.BooleanOptionalAction):
    pass


# What users of other programs write, without dashes, and the flag that is meant where there is one.
SLIPS = [*((word, "--model") for word in ("m", "hf-model", "gguf")),
         *((word, "--text") for word in ("f", "i", "file", "input", "prompt", "prompt-file", "dataset")),
         *((word, "--output") for word in ("out", "outfile", "save", "folder")), ("context", "--ctx"), ("c", "--ctx"),
         ("c", "--context"), ("max-length", "--ctx"), ("max-length", "--context"),
         *((word, "--threads") for word in ("j", "t", "jobs", "workers")),
         *((word, "--device") for word in ("gpu", "cuda", "cpu")), ("limit", "--documents"), ("engine", "--runs-in"),
         *((word, "--memory") for word in ("b", "budget", "ratio", "keep", "size")), ("gradients", "--probes"),
         ("time", "--minutes"), ("timeout", "--minutes")]


class Parser(argparse.ArgumentParser):
    def __init__(self, **options):
        super().__init__(**options)
        self.given = set()
        self.register("action", None, Value)

    def parse_args(self, args=None, namespace=None):
        """Flags that do not exist come first: what is missing is often what they were meant to be. An empty text, as of
        an unset variable of a script, is no value. Words behind -- are files, also where they begin with a dash."""
        known, words = list(self._option_string_actions), list(sys.argv[1:] if args is None else args)
        mark = words.index("--") if "--" in words else len(words)
        for before, word in zip(["", *words], words[:mark + 1]):
            flag, is_given, value = word.partition("=")
            action, takes = self._option_string_actions.get(flag), self._option_string_actions.get(before)
            if action is not None and action.nargs == 0 and is_given:
                self.error(f"{flag} takes no value; write {flag} alone")
            if word == "" or (is_given and not value):
                self.error(f"{flag or before}: the value is empty; give one, or leave the flag out")
            if takes is not None and takes.nargs != 0 and flag in (*known, "--"):
                self.error(f"{before} needs a value; {word} behind it is a flag")
            if word == "--":
                break
            if re.match("-[^0-9.]", word) and flag not in known and word[:2] not in known:
                plain = flag.lower().replace("_", "-")
                near = [name for slip, name in SLIPS if slip == plain.strip("-") and name in known]
                near += filter(None, [nearest(plain, known)])
                meant = f" (did you mean {near[0]}?)" if near else ""
                self.error(f"there is no flag {ascii(flag)[1:-1]}{meant}")
        files = [os.path.join(".", word) if word.startswith("-") else word for word in words[mark + 1:]]
        return super().parse_args(self._placed(files + words[:mark]), namespace)

    def _placed(self, words):
        """The words, in which one that belongs to no flag is the model, as in kvdump and kveval; refuses lists with
        spaces between their values, `--layers 2 8`."""
        loose = []
        for flag, values, attached in self._by_flag(words):
            action = self._option_string_actions.get(flag)
            takes = {"+": 1 if attached else len(values), None: 1}.get(action.nargs, 0) if action else 0
            loose += values[takes:]
            if values[takes:] and action and action.metavar == "LIST":
                given = ",".join(value.strip(",") for value in values)
                self.error(f"'{values[takes]}' has no place behind {flag} {values[0]}; write {flag} {given}")
        has_model = any(flag == "--model" for flag, _, _ in self._by_flag(words))
        if len(loose) != 1 or has_model or "--model" not in self._option_string_actions:
            return words
        first = words.index(loose[0])
        return ["--model", loose[0], *words[:first], *words[first + 1:]]

    def _by_flag(self, words):
        """Each flag with the words up to the next one, and whether the first is a part of its own; "" with those before
        the first."""
        groups = [("", [], False)]
        for word in words:
            if not re.match("-[^0-9.]", word):
                groups[-1][1].append(word)
                continue
            flag, _, value = word.partition("=")
            if flag not in self._option_string_actions:  # -oFILE
                flag, value = word[:2], word[2:]
            groups.append((flag, [value] if value else [], bool(value)))
        return groups

    def error(self, message):
        raise Error(f"{message}; see {self.prog} --help")
