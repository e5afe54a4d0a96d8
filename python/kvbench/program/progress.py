# SPDX-License-Identifier: Apache-2.0
"""Progress: a bar in notebooks, where the program draws none, and the messages of kvbench-dump-hf."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

from .._error import printable

STAGES = "KVBENCH_STAGES"  # environment variable of a program that reads the stages of this one, as lines


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return shell is not None and hasattr(shell, "kernel")


@contextlib.contextmanager
def notebook_bar() -> Iterator[Callable[[float, float, str], None] | None]:
    """A function show(done, total, unit) that draws a bar as long as the with statement lasts; None outside of
    notebooks."""
    if not _in_notebook():
        yield None
        return
    from IPython.display import HTML, display
    handle = None

    def show(done: float, total: float, unit: str) -> None:
        nonlocal handle
        bar = HTML(f'<progress value="{done}" max="{total}" style="width: 20em"></progress> {done:.1f}/{total} {unit}')
        if handle is None:
            handle = display(bar, display_id=True)
        else:
            handle.update(bar)

    try:
        yield show
    finally:
        if handle is not None:
            handle.update(HTML(""))


def tell(text: str) -> None:
    """Writes to stderr. Where it is closed or full, a message is lost, and no result."""
    with contextlib.suppress(AttributeError, OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def ended(program: str, code: int, reason: object) -> int:
    """Says on stderr why a program ends. Returns its exit code."""
    if isinstance(reason, OSError) and reason.filename is not None and reason.strerror:
        reason = f"{os.fsdecode(reason.filename)}: {reason.strerror}"
    tell(f"{program}: {' '.join(printable(str(reason)).split())}\n")
    return code


class Progress:
    """Messages on stderr, and a progress line that overwrites itself if stderr is a terminal. `part`: what stages are
    about, such as "document 2 of 6, "."""

    def __init__(self, quiet: bool) -> None:
        self._live = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self.part = ""

    def stage(self, text: str) -> None:
        if os.environ.get(STAGES):
            tell(f"{STAGES}: {self.part}{text}\n" if text else "")
        elif self._live:
            tell(f"\r\x1b[Kkvbench-dump-hf: {self.part}{text}" if text else "\r\x1b[K")

    def say(self, sentence: str) -> None:
        tell(("\r\x1b[K" if self._live else "") + f"kvbench-dump-hf: {sentence}\n")
