# SPDX-License-Identifier: Apache-2.0
"""What kvbench.choose() is asked. ChooseSettings are what a user says; a Question is what follows from them."""

import importlib.util
import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal, get_args, get_origin

from .._error import Error, check_regular, known_names, require
from .._kinds import of_kind
from ..files.access import bytes_of, sha256_of_file
from ..files.schema import check_name
from ..program.commands import _core
from ..program.progress import tell
from .folder import parts_of, plain_path
from .run import ENDED

METHODS = ("sink,h2o,snapkv,chelsea,bsm,kmeans,int,kivi4,kivi2,turboquant,h2o+q8_0,h2o+q5_1,h2o+q4_0,snapkv+q8_0,"
           "snapkv+q5_1,snapkv+kivi4,kmeans+int8,snapkv@kvpress,llama.cpp,vllm")
MENU = "h2o,h2o+q8_0,h2o+q5_1,snapkv,snapkv+q8_0,snapkv+q5_1,q8_0,q5_1,q4_0"

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class ChooseSettings:
    """What `kvbench.choose()` is asked: the flags of ``kvbench-choose`` as values.

    Parameters
    ----------
    model : path or str
        GGUF model file, folder of ``save_pretrained()``, or hub name.
    text : path, or sequence of paths
        Text files of the kinds that the model will read.
    output : path
        Folder of the recording, the measurements and the answers.
    memory : str
        Size of the cache: a share of the full one such as ``"25%"`` or ``"0.25"``, or with `context_length` a number of
        bytes such as ``"3.5GB"``.
    context_length : int, optional
        Tokens of context for which the answer states sizes.
    context, score : int
        Tokens of a document that are compressed, and tokens after them that are scored.
    documents : int
        Documents that are recorded, at most.
    probes : int, optional
        Gradients of each of them; None: 8.
    without_gradients : bool
        Rank by errors in the residual stream, which ``kvdump`` records from a GGUF file without PyTorch. So does a
        Python without PyTorch.
    methods, menu : str or sequence of str
        Configurations to predict, and what a plan may give a layer or head, as ``--method`` takes them.
    runs_in : str, optional
        Only configurations and plans that this engine has, such as ``"llama.cpp"``, in place of `methods` and `menu`.
    by : {"layer", "head"}, optional
        What a plan gives a budget; None: head, and layer without gradients.
    race : int
        Configurations that are measured, at most.
    error : float
        Probability, between 0 and 1, that the race drops a configuration in favour of one that is not better.
    task : str or sequence of str
        Tasks of kveval whose lost answers are counted, for a GGUF file.
    minutes : float
        Time of what is measured in the model, in minutes.
    programs : path, optional
        Folder of the programs; None: PATH, then ``build/release``.
    weights : {"f32", "f16", "bf16"}
        Type in which a model that is no GGUF file runs.
    device : {"cpu", "cuda"}
        Where it runs.
    threads : int, optional
        Number of threads; None: all processors.
    quiet : bool
        Print no progress on stderr.

    Raises
    ------
    Error
        If a value is of another kind, or none of its choices. What does not fit the model or the texts is found by
        `kvbench.choose()`.

    Examples
    --------
    >>> settings = kvbench.ChooseSettings("model.gguf", "mine.txt", "choice")
    >>> smaller = dataclasses.replace(settings, memory="12.5%")    # another question of the same recording
    """

    model: Path
    text: Path | Sequence[Path]
    output: Path
    _: KW_ONLY
    memory: str = "25%"
    context_length: int | None = None
    context: int = 1024
    score: int = 64
    documents: int = 6
    probes: int | None = None
    without_gradients: bool = False
    methods: str | Sequence[str] = METHODS
    menu: str | Sequence[str] = MENU
    runs_in: str | None = None
    by: Literal["layer", "head"] | None = None
    race: int = 4
    error: float = 0.05
    task: str | Sequence[str] = ""
    minutes: float = 20.0
    programs: Path | None = None
    weights: Literal["f32", "f16", "bf16"] = "f32"
    device: Literal["cpu", "cuda"] = "cpu"
    threads: int | None = None
    quiet: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name in ChooseSettings.__dataclass_fields__:
                object.__setattr__(self, field.name, _kept(field.name, field.type, getattr(self, field.name)))


PATHS, LISTS = ("model", "output", "programs"), ("methods", "menu", "task")
COUNTS = ("context_length", "context", "score", "documents", "probes", "race", "threads")


def choices_of(name: str) -> tuple[str, ...]:
    """The values of a setting that has a list of them."""
    kind: Any = ChooseSettings.__dataclass_fields__[name].type
    literal = kind if get_origin(kind) is Literal else get_args(kind)[0]
    return tuple(get_args(literal))


def _kept(name: str, kind: Any, value: Any) -> Any:
    """A setting as it is kept: paths as texts, lists with commas. Raises Error for a value of another kind."""
    where = f"ChooseSettings(): argument '{name}'"
    if name == "text":
        several = [value] if isinstance(value, (str, os.PathLike)) or not isinstance(value, Sequence) else value
        require(several, where, "there is no text; give at least one file.")
        return tuple(of_kind(one, os.PathLike, where) for one in several)
    if value is None and type(None) in get_args(kind):
        return None
    if name in PATHS:
        return of_kind(value, os.PathLike, where)
    if name in LISTS:
        items = [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
        return ",".join(of_kind(item, str, where) for item in items)
    if name in ("by", "weights", "device"):
        require(value in choices_of(name), where, f"is {value!r}; it is one of {', '.join(choices_of(name))}.")
        return value
    if name in COUNTS:
        number, most = of_kind(value, int, where), 4096 if name == "threads" else 2**31 - 1
        require(1 <= number <= most, where, f"is {number}; it is from 1 to {most}.")
        return number
    return of_kind(value, kind, where)


@dataclass(frozen=True)
class Question(ChooseSettings):
    """Settings that were checked, in which what depends on the model and this computer is known."""

    model: str
    text: tuple[str, ...]
    output: str
    _: KW_ONLY
    methods: str  # with runs_in the family of this name
    menu: str
    task: str
    by: Literal["layer", "head"]
    probes: int
    share: str | None  # the size of the cache as a budget, such as 25%mem; None: it has a size in bytes,
    bytes: int | None  # which is this
    gguf: bool  # the model is a GGUF file
    gradients: bool  # the recording has probes
    commands: dict[str, str]  # paths of programs by their names

    @property
    def figure(self) -> str:
        """The column of a replay by which configurations are ranked."""
        return "kl_predicted" if self.gradients else "residual_err_rms"


def question_of(settings: ChooseSettings) -> Question:
    """Checks settings before anything is computed or written. Raises Error, which names a setting by its flag."""
    gguf = os.path.isfile(settings.model) or str(settings.model).endswith(".gguf")
    memory = memory_of(settings)
    if gguf and (settings.weights, settings.device) != ("f32", "cpu"):
        raise Error("--weights and --device are for models that run in PyTorch, and the race of a GGUF file runs in "
                    "llama.cpp; leave them out.")
    given = {**vars(settings), **memory, **engine_of(settings)}
    check_numbers(settings)
    check_files(settings, gguf)
    gradients = not settings.without_gradients and all(map(importlib.util.find_spec, ("torch", "transformers")))
    if settings.probes and not gradients:
        tell("kvbench-choose: --probes has no effect without gradients\n")
    given["probes"] = settings.probes or 8
    given["by"] = given["by"] or ("head" if gradients else "layer")
    if settings.task and not gguf:
        raise Error(f"--task {settings.task}: tasks are measured by kveval, which runs GGUF files; leave it out.")
    if not gradients:
        check_without_gradients(settings, gguf, given["by"])
    if not gguf:
        _core()  # in which a folder is measured: said before anything is recorded
    wanted = ["kvbench"] + ["kveval"] * gguf + ["kvdump"] * (not gradients)
    commands = {name: program(name, settings.programs) for name in wanted}
    check_names(given, commands)
    return Question(**given, gguf=gguf, gradients=gradients, commands=commands)


def memory_of(settings: ChooseSettings) -> dict[str, Any]:
    """The setting `memory`, one text however it is written, as a share or a number of bytes."""
    memory = settings.memory
    if decimal := re.fullmatch(r"(0?\.[0-9]{1,6})\s?(?:mem|memory)?", memory):  # as --budget takes it
        memory = f"{float(decimal[1]) * 100:.6g}%"
    share = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s?%\s?(?:mem|memory)?", memory)
    size = bytes_of(memory)
    if size is None and (not share or not 0 < float(share[1]) < 100):
        raise Error(f"--memory {memory}: give a share of the full cache between 0 and 100 %, such as 25%, or its size, "
                    "such as 3.5GB or 800MiB.")
    if size is not None and settings.context_length is None:
        raise Error(f"--memory {memory}: how much of the cache that is depends on the context; add --context-length N, "
                    "the tokens that it shall hold.")
    if share:
        return {"memory": f"{share[1]}%", "share": f"{share[1]}%mem", "bytes": None}
    return {"memory": re.sub(r"\s", "", memory), "share": None, "bytes": size}


def engine_of(settings: ChooseSettings) -> dict[str, Any]:
    """What `runs_in` takes the place of."""
    if not settings.runs_in:
        return {}
    for flag, default in (("methods", METHODS), ("menu", MENU)):
        require(getattr(settings, flag) == default, "--runs-in", f"it says which configurations there are; leave "
                f"--{flag} out.")
    if settings.by:
        tell("kvbench-choose: --by has no effect beside --runs-in: engines have budgets by layer\n")
    return {"methods": settings.runs_in, "by": "layer"}


def check_numbers(settings: ChooseSettings) -> None:
    if not 0 < settings.error < 1:
        raise Error(f"--error {settings.error}: give a probability between 0 and 1.")
    if not 0 <= settings.minutes < math.inf:
        raise Error(f"--minutes {settings.minutes}: give a number of minutes.")
    if settings.context < 2:
        raise Error(f"--context {settings.context}: give at least 2 tokens.")
    if settings.score < 2 or settings.score > 512:
        raise Error(f"--score {settings.score}: kveval scores from 2 to 512 tokens.")


def check_files(settings: ChooseSettings, gguf: bool) -> None:
    """Raises Error unless the files are there, and the folder can be named in lists of methods."""
    texts: Any = settings.text
    for path in [*[settings.model][:gguf], *texts]:
        check_regular(path)
    check_name(os.path.basename(os.path.normpath(settings.model)), "--model")  # by which a trace knows it
    parts_of(str(settings.model))
    plain_path(str(settings.output))
    if len(set(map(sha256_of_file, texts))) < len(texts):
        raise Error("--text: two of the files are one text; give it once.")


def check_without_gradients(settings: ChooseSettings, gguf: bool, by: str) -> None:
    """Raises Error for what is done in PyTorch."""
    why = "without gradients" if settings.without_gradients else "without PyTorch and transformers (kvbench[hf])"
    if not gguf:
        raise Error(f"--model {settings.model}: {why} only a GGUF file can be run; give one.")
    if by == "head":
        raise Error(f"--by head: {why} there is the error of a layer alone, not of its heads; leave it out.")


def check_names(given: dict[str, Any], commands: dict[str, str]) -> None:
    """Raises Error for lists of methods and tasks that the programs would refuse after the recording, which takes
    minutes."""
    named = ["--runs-in", given["runs_in"]] if given["runs_in"] else [given["methods"], given["menu"]]
    said(commands["kvbench"], "methods", *named)
    if not given["runs_in"] and given["menu"] != MENU:
        check_menu(given["menu"], given["by"], commands["kvbench"])
    if given["task"]:
        known = [line for line in said(commands["kveval"], "--list-tasks").splitlines() if not line.startswith(" ")]
        for task in map(str.strip, given["task"].split(",")):
            require(task in known, "--task", f"there is no task '{task}'.{known_names(task, known, 'The tasks are')}")


def check_menu(menu: str, by: str, kvbench: str) -> None:
    """Raises Error for a menu that `kvbench allocate` refuses whatever the model is. What it refuses because of what a
    trace has is left to the recorded one."""
    methods = json.loads(said(kvbench, "methods", menu, "--format", "json"))
    for one in methods:
        require(one["alone"] != "model", "--menu", f"{one['method']} divides its budget among layers itself; leave it "
                "out.")
        require(by != "head" or one["alone"] == "head", "--by head", f"{one['method']} needs all kv heads of a layer "
                "at once; leave it out.")
        require(one["kind"] != "retrieval" or float(one["memory_n"]) < 1, "--menu", f"{one['method']} runs at no "
                "budget: it keeps every token; leave it out.")
    require({one["kind"] for one in methods} != {"exact"}, "--menu", "no plan of its configurations fits in less than "
            "the full cache; add a method that keeps fewer tokens or bits.")


def said(program: str, *words: str) -> str:
    """What a program prints. Raises Error with the last line of its messages if it refuses the words."""
    done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"{program} failed with exit code {done.returncode}"])[-1]
        raise ENDED.get(done.returncode, Error)(last.removeprefix(f"{os.path.basename(program)}: "))
    return done.stdout


def program(name: str, folder: Path | None) -> str:
    """The path of a program of kvbench."""
    places = [str(folder)] if folder else [*os.environ.get("PATH", "").split(os.pathsep), "build/release"]
    found = shutil.which(name, path=os.pathsep.join(places))
    if not found:
        raise Error(f"there is no program {name} in {folder or 'PATH or build/release'}; build it (docs/eval.md), and "
                    "name its folder with --programs.")
    return os.path.abspath(found)
