# SPDX-License-Identifier: Apache-2.0
"""How kvbench-choose runs the programs of kvbench and says what they do."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

from .._error import Error
from ..files.access import read_text, size_text
from ..program.progress import STAGES, tell


class NothingFits(Error):
    """A program ran and says that nothing fits the budget."""


DONE = re.compile(r"done (\d+)")  # what kveval --commands says at the end of a command
ENDED = {1: NothingFits, 3: OSError}  # by exit code, which docs/commands.md lists


def copies() -> dict[str, int]:
    """The fp32 copies of GGUF files that kveval and kvdump keep, and their sizes."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    folder = os.path.join(cache if cache.startswith("/") else os.path.expanduser("~/.cache"), "kvbench", "f32")
    with contextlib.suppress(OSError):
        return {file.path: file.stat().st_size for file in os.scandir(folder) if file.name.endswith(".gguf")}
    return {}


def stop(child: "subprocess.Popen[bytes]") -> None:
    """Ends a program, which removes what it has not finished."""
    child.terminate()
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        child.kill()


class Run:
    """Runs programs. `lock`: the file descriptor of a lock that they hold too, so that a folder is not taken for free
    as long as a program works in it whose parent was killed. `kept`: the path of a program that takes `--commands`: it
    is started for the first of its commands, and keeps its model for the next ones until release()."""

    def __init__(self, quiet: bool, threads: int | None = None, lock: int | None = None,
                 kept: str | None = None) -> None:
        self._quiet, self._threads, self._lock, self._kept = quiet, threads, lock, kept
        self._child: subprocess.Popen[bytes] | None = None  # of `kept`
        self.started, self._copies = time.monotonic(), copies()
        self._said, self._first = "", self.started

    def say(self, sentence: str, end: str = "\n") -> None:
        if not self._quiet:
            clear = "\r\x1b[K" if live() else ""
            tell(f"{clear}kvbench-choose: [{time.monotonic() - self.started:4.0f} s] {sentence}{end}")

    def show(self, stage: str) -> None:
        """Progress of a program, such as "document 2 of 6, probe 3 of 8": a line that overwrites itself on a terminal,
        elsewhere a line for each document."""
        part = re.match(r"(document (\d+) of (\d+))(.*)", stage)
        if not part:
            return self.say(stage, end="") if live() else None
        number, count = int(part[2]), int(part[3])
        if number == 1 and part[1] != self._said:
            self._first = time.monotonic()
        each = (time.monotonic() - self._first) / max(1, number - 1)
        left = f", about {each * (count - number + 1):.0f} s left" if number > 1 else ""
        if live():
            self.say(part[1] + part[4] + left, end="")
        elif part[1] != self._said:
            self.say(part[1] + left)
        self._said = part[1]

    def threads(self, flag: str = "-j") -> list[Any]:
        return [flag, self._threads] if self._threads else []

    def run(self, made: str, *command: Any) -> None:
        """Runs a program that makes this file, unless it is there. Its messages are shown if it fails."""
        if os.path.exists(made):
            return
        os.makedirs(os.path.dirname(made), exist_ok=True)
        code, messages = self._run([str(word) for word in command])
        if code in (130, -signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP):
            raise KeyboardInterrupt
        program = os.path.basename(str(command[0]))
        if code < 0:
            raise OSError(f"{program} was ended by {signal.Signals(-code).name}"
                          f"{', as when memory is short' if code == -signal.SIGKILL else ''}; the same command goes on "
                          "from there.")
        if not os.path.exists(made):  # exit code 1 with a file: some rows failed, and the others are there
            last = (messages or [f"exit code {code}"])[-1].removeprefix(f"{program}: ")
            raise ENDED.get(code, Error)(f"{program} failed: {last}")
        self._say_copies({os.path.basename(str(word)) for word in command})

    def _run(self, command: list[str]) -> tuple[int, list[str]]:
        """The exit code of a program, and its messages."""
        if command[0] == self._kept:
            return self._ask(command[1:])
        with self._started(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE) as child:
            try:
                messages, _ = self._read(child.stderr)
                return child.wait(), messages
            except BaseException:  # a signal
                stop(child)
                raise

    def _started(self, command: list[str], **streams: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(command, pass_fds=() if self._lock is None else (self._lock,),
                                env={**os.environ, STAGES: "1"}, **streams)

    def _read(self, stream: Any) -> tuple[list[str], int | None]:
        """The messages of a program up to the end of its stream, or to the end of a command, and the exit code of
        that."""
        messages = []
        for line in stream:
            text = line.decode(errors="replace").strip()
            stage = text.partition(f"{STAGES}: ")[2]
            if done := DONE.fullmatch(text):
                return messages, int(done[1])
            if stage:
                self.show(stage)
            elif text:
                messages.append(text)
        return messages, None

    def _ask(self, words: list[str]) -> tuple[int, list[str]]:
        """The same of a command of the program that is kept."""
        if self._child is None:
            self._child = self._started([self._kept, "--commands"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        child = self._child
        try:
            with contextlib.suppress(BrokenPipeError):  # its messages say why
                child.stdin.write(b"".join(os.fsencode(word) + b"\0" for word in [*words, ""]))
                child.stdin.flush()
            messages, code = self._read(child.stdout)
            if code is None:  # it has ended
                code = child.wait()
                self.release()
            return code, messages
        except BaseException:  # a signal
            stop(child)
            self.release()
            raise

    def release(self) -> None:
        """Ends the program that is kept, and frees its memory. It has no command."""
        child, self._child = self._child, None
        if child is not None:
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()
            child.stdout.close()
            child.wait()

    def _say_copies(self, words: set[str]) -> None:
        """Names a copy that was made, unless its model is none of these words: another process made it."""
        now = copies()
        for path in now.keys() - self._copies.keys():
            with contextlib.suppress(OSError):
                if read_text(f"{path}.sha256").partition("\n# ")[2].partition("\n")[0] in words:
                    self.say(f"{path} is a copy of the model with fp32 weights ({size_text(now[path])}), which later "
                             "runs use; kvbench cache lists and removes such copies")
        self._copies = now


def live() -> bool:
    return getattr(sys.stderr, "isatty", bool)()
