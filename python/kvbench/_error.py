# SPDX-License-Identifier: Apache-2.0
"""The error of this package, and how it is raised."""

import difflib
import os
import re
import stat
from collections.abc import Iterable
from typing import Any


def printable(text: str) -> str:
    """The text as terminals can show it, as programs print it: what is not UTF-8, and control characters other than the
    end of a line, as \\xHH."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return re.sub("[\x00-\x09\x0b-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", text)


class Error(ValueError):
    """A file, an argument, or data to be written is not what it must be. The message names the file or argument, the
    object and the remedy; it is printable, whatever the names and values are."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*(printable(part) if isinstance(part, str) else part for part in parts))


class NoCache(Error):
    """A method has no cache for a context. status: infeasible or skipped, as in rows."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def first_line(failure: BaseException) -> str:
    """The type and first line of an exception of other code, for a sentence."""
    text = str(failure).strip().split("\n")[0]
    return f"{type(failure).__name__}: {text}"[:300].rstrip(".")


def require(holds: Any, where: Any, fault: str) -> None:
    if not holds:
        raise Error(f"{where}: {fault}")


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that a misspelt one is like, without case; empty if there is none."""
    by_lower = {one.lower(): one for one in known}
    return next((by_lower[one] for one in difflib.get_close_matches(name.lower(), by_lower, 1)), "")


def known_names(name: str, known: Iterable[str], which: str = "It has") -> str:
    """What follows the refusal of a name: " Did you mean 'window'? It has: window, sinks."."""
    names = list(known)
    meant = nearest(name, names)
    return (f" Did you mean '{meant}'?" if meant else "") + f" {which}: {', '.join(names) or 'none'}."


def check_text(text: str, where: str) -> None:
    """Raises Error for text that UTF-8 or a string of HDF5 cannot represent."""
    require("\0" not in text, where, "has a control character (NUL), at which strings in HDF5 end; remove it.")
    require(not any(0xD800 <= ord(c) < 0xE000 for c in text), where, "is not UTF-8 text; choose another text.")


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raises Error unless `path` is a regular file: a pipe can block for ever, and a device need not end."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise Error(f"{path}: there is no such file; check the name.") from None
    require(not stat.S_ISDIR(mode), path, "is a folder; name a file in it.")
    require(stat.S_ISREG(mode), path, "is a device, a pipe or a socket; copy its contents into a regular file.")
