# SPDX-License-Identifier: Apache-2.0
"""The error of this package, and how it is raised."""


class Error(ValueError):
    """A file, an argument, or data to be written is not what it must be. The message names the file or argument, the
    object and the remedy."""


def require(holds, where, fault):
    if not holds:
        raise Error(f"{where}: {fault}")


def check_text(text, where):
    """Raises Error for text that UTF-8 or a string of HDF5 cannot represent."""
    require("\0" not in text, where, "has a control character (NUL), at which strings in HDF5 end; remove it.")
    require(not any(0xD800 <= ord(c) < 0xE000 for c in text), where, "is not UTF-8 text; choose another text.")
