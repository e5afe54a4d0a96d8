# SPDX-License-Identifier: Apache-2.0
"""The error of this package, and how it is raised."""

import os
import stat
from typing import Any


class Error(ValueError):
    """A file, an argument, or data to be written is not what it must be. The message names the file or argument, the
    object and the remedy."""


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
