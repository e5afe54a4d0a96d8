# SPDX-License-Identifier: Apache-2.0
"""The folder of kvbench-choose: one recording of a model and texts, what was measured in the model on these texts, and
a folder `answer-...` for each question that was asked of them.

    recording.json          what was recorded: digests of the model and the texts, lengths, the documents
    documents/T-I.ids       token ids of piece I of text T
    probes.h5, sketches.h5  the trace
    cache-TOKENS.json       bytes of the full cache after so many tokens
    measured/T-I.K.csv      tables of kveval, each of one document
    plans/plan-DIGEST.toml  plans that were measured
    answer-NAME/            of one question: question.json, predicted.csv, plan.toml (no-plan.json: why there is none),
                            raced.json, formats.csv, answer.md

Names in these files are relative, so that the folder can be moved."""

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .._error import Error, require
from .._kinds import FilePath
from ..dump_hf.command import model_files
from ..files.access import (check_not_input, complete_gguf, read_text, sha256_of_file, size_text,
                            write_atomically)
from ..results.rows import rows_of
from .names import own_plan
from .run import Run

if TYPE_CHECKING:
    from .settings import Question

OURS = re.compile(r"(recording\.json|texts\.ids|order\.csv|probes\.h5|sketches\.h5|cache-.*\.json|documents|"
                  r"measured|plans|answer-.*)")
LEFT = re.compile(r".*\.(json|ids|csv|h5|toml|md)\.tmp\..*", re.DOTALL)  # temporary files
TRACES = ("probes.h5", "sketches.h5")
PARTS = re.compile(r".*\.(safetensors|bin|pt|gguf|py)|config\.json|(tokenizer|vocab|merges).*", re.DOTALL)
QUESTION = ("memory", "context_length", "methods", "menu", "by", "race", "error", "runs_in", "task")


def parts_of(model: str) -> list[str]:
    """The files that decide what a model computes: all shards of a GGUF file; of a folder or a hub name the weights,
    the configuration and the tokenizer. Raises Error if a shard is missing."""
    if not os.path.isfile(model):
        files = model_files(model)
        snapshots = [path for path in files if f"{os.sep}snapshots{os.sep}" in path]  # of a hub name; others are blobs
        return sorted(path for path in snapshots or files if PARTS.fullmatch(os.path.basename(path)))
    return complete_gguf(model)


def stamp(path: FilePath) -> list[int]:
    """What changes if a file is replaced or written, even if its time is set back."""
    found = os.stat(path)
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def digests_of(paths: Iterable[FilePath], known: Iterable[Any] = ()) -> list[Any]:
    """Name, SHA-256 and stamp() of each file. `known`: earlier results; a file with one of their stamps is not read."""
    earlier = {tuple(when): digest for _, digest, when in known}
    return [[os.path.basename(path), earlier.get(tuple(stamp(path))) or sha256_of_file(path), stamp(path)]
            for path in paths]


def plain_path(folder: str) -> str:
    """This folder as lists of methods can name it. Commas and brackets have a meaning there. Raises Error if it
    cannot be named."""
    for path in (os.path.abspath(folder), os.path.relpath(folder)):
        if not re.search(r"[,\[\x00-\x1f\x7f\ud800-\udfff]", path):
            return path
    raise Error(f"-o {folder}: plans in this folder are named in lists of methods, and a comma, '[', a line end or "
                "what is not UTF-8 in its name cannot be written there; give a folder without them, or change into the "
                "folder above it.")


class LoadedModel:
    """The model of a Question in PyTorch, which is loaded when it is asked for."""

    def __init__(self, question: "Question") -> None:
        self._question, self._loaded = question, None

    def get(self) -> Any:
        if self._loaded is None:
            import torch
            from ..models.loading import Model
            if self._question.threads:
                torch.set_num_threads(self._question.threads)
            self._loaded = Model(self._question.model, self._question.weights, self._question.device)
        return self._loaded

    def drop(self) -> None:
        """Frees its memory, as before a recording, which loads the model itself."""
        self._loaded = None


def rows_made(path: FilePath, needed: Iterable[str], is_not: str) -> list[dict[str, str]]:
    """rows_of() a file that a program wrote into the folder, which may be damaged since."""
    try:
        rows = rows_of(path, needed, is_not)
        require(rows, path, "has no rows.")
        return rows
    except Error as why:
        raise Error(f"{str(why).rstrip('.')}; remove it, and the same command makes it again.") from None


class Work(Run):
    """The output folder of a Question, and the model while it is loaded. `lock`: what held() yields. A step whose file
    is there is done."""

    def __init__(self, question: "Question", lock: int) -> None:
        super().__init__(question.quiet, question.threads, lock, question.commands.get("kveval"))
        self.question, self.model = question, LoadedModel(question)
        self.folder, self.plans_in = question.output, plain_path(question.output)
        check_not_input(self.path("recording.json"), [*model_files(question.model), *question.text])
        self._remove_temporaries(os.listdir(self.folder))
        self.documents = self._settle()  # names of those that are recorded, and of those that race; None: not known yet
        self._answer = self._settle_answer()  # the folder of this question

    def path(self, *names: str) -> str:
        return os.path.join(self.folder, *names)

    def own(self, name: str) -> str:
        """A file of this question."""
        return self.path(self._answer, name)

    def in_answer(self, name: str) -> str:
        """The same in the folder, as write() and read() take it."""
        return os.path.join(self._answer, name)

    def named(self, name: str) -> str:
        """A method as programs take it, which find plans of this folder by their paths."""
        own = own_plan(name)
        return f"plan:{os.path.join(self.plans_in, 'plans', own)}" if own else name

    def add_plan(self, text: str) -> str:
        """Keeps a plan under the name of its digest, by which rows know it. Returns its name as a method. Files that
        it names are relative to its folder, and `plans` is as deep as that of an answer."""
        name = f"plan-{hashlib.sha256(text.encode()).hexdigest()[:12]}.toml"
        self.write(os.path.join("plans", name), text)
        return f"plan:{name}"

    def _remove_temporaries(self, names: Iterable[str]) -> None:
        """Removes what a run that was killed has left. None of its programs is alive: they would hold the lock. In a
        folder that is not known to be ours that is at most the first file."""
        known = "recording.json" in names
        folders = ["", *(name for name in names if known and OURS.fullmatch(name) and os.path.isdir(self.path(name)))]
        for name in (os.path.join(folder, name) for folder in folders for name in os.listdir(self.path(folder))):
            if LEFT.fullmatch(os.path.basename(name)) and (known or name.startswith("recording.json.tmp.")):
                with contextlib.suppress(OSError):  # a folder that is only read
                    os.unlink(self.path(name))

    def _settle(self) -> Any:
        """Compares the recording of the folder with what is asked for. Returns its documents. A model or a text that
        was refused, so that nothing was recorded, leaves the folder free."""
        names, where, found = sorted(os.listdir(self.folder)), f"-o {self.folder}", {"settings": {}, "documents": None}
        if "recording.json" in names:
            found = self.read("recording.json", lambda found: isinstance(found, dict) and found.keys() >= {"settings",
                                                                                                           "documents"})
        else:
            require(not names, where, f"this folder has files and none of this command, such as {''.join(names[:1])}; "
                    "give a new one.")
        self._settings = self._of_recording(found["settings"])
        differs = [name for name in {**self._settings, **found["settings"]}
                   if of(found["settings"], name) != of(self._settings, name)]
        if not differs:
            return found["documents"]
        what = ", ".join(differs).replace("gradients", "gradients (--probes)")
        require(not set(TRACES) & set(names), where, what + ": not as recorded in this folder (see recording.json); "
                "give another folder, or remove this one.")
        for name in filter(OURS.fullmatch, names):
            path = self.path(name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        self.settle_documents(None)
        return None

    def _of_recording(self, found: dict[str, Any]) -> dict[str, Any]:
        question, files = self.question, parts_of(self.question.model)
        if not files:  # a hub name that was not fetched yet
            self.model.get().tokenizer()
            self.model.drop()
            files = parts_of(self.question.model)
        if not found:
            self.say(f"reading the model ({size_text(sum(map(os.path.getsize, files)))}) to know it by its digest")
        made = {"the model": digests_of(files, found.get("the model", ())), "the texts": digests_of(question.text)}
        made["gradients"] = question.probes if question.gradients else 0
        for name in ("context", "score", "documents") + (() if question.gguf else ("weights", "device")):
            made[f"--{name}"] = getattr(question, name)
        return made

    def settle_documents(self, documents: list[list[str]] | None) -> None:
        """Says what is recorded here, and where it is known which documents, names of files."""
        self.documents = documents
        found = {"settings": self._settings, "documents": self.documents}
        self.write("recording.json", json.dumps(found, indent=1) + "\n")

    def _settle_answer(self) -> str:
        """Makes the folder of the answer."""
        asked = {name: getattr(self.question, name) for name in QUESTION}
        text = json.dumps(asked, indent=1) + "\n"
        name = "-".join(filter(None, ["answer", re.sub(r"\s", "", asked["memory"]), asked["runs_in"],
                                      hashlib.sha256(text.encode()).hexdigest()[:8]]))
        self.write(os.path.join(name, "question.json"), text)
        return name

    def write(self, name: str, text: str) -> None:
        """Writes a file, unless it has this text: a finished folder may be one that is only read."""
        path = self.path(name)
        if os.path.exists(path) and read_text(path) == text:
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_atomically(path, text.encode())

    def read(self, name: str, fits: Callable[[Any], bool]=lambda found: True) -> Any:
        """What write() has written as JSON, of which fits() is true."""
        try:
            found = json.loads(read_text(self.path(name)))
        except json.JSONDecodeError:
            found = None
        require(found is not None and fits(found), self.path(name), "is damaged; give another folder with -o, or "
                "remove this one.")
        return found


def of(settings: dict[str, Any], name: str) -> Any:
    """A value of recording.json as it is compared: files by their digests."""
    value = settings.get(name)
    return [digest for _, digest, _ in value] if name in ("the model", "the texts") and value else value
