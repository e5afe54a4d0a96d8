# SPDX-License-Identifier: Apache-2.0
"""kvbench-choose: from a model, texts and a size of the cache to a configuration, and the evidence for it.

A part of each text is recorded with probes, or without PyTorch with sketches of W_O; every family and the best budgets
by layer are predicted from it. The best few then race in the model on the other part, document by document, until one
is known to be better or the time is over. Everything is a file in the output folder; a run that was stopped goes on
from there."""

import importlib.util
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from . import _choose_answer as answer
from ._arguments import Parser, positive, threads
from ._choose_documents import documents_of, record
from ._choose_model import answered, bytes_of, measure, rows_of, set_budget
from ._commands import _core
from ._error import Error, check_regular, first_line, require
from ._files import check_not_input, held, read_text, sha256_of_file
from ._progress import tell
from ._race import Race
from .dump_hf import model_files, stop_by_signals

METHODS = ("sink,h2o,snapkv,chelsea,bsm,kmeans,int,kivi4,kivi2,turboquant,h2o+q8_0,h2o+q5_1,h2o+q4_0,snapkv+q8_0,"
           "snapkv+q5_1,snapkv+kivi4,kmeans+int8,snapkv@kvpress,llama.cpp,vllm")
MENU = "h2o,h2o+q8_0,h2o+q5_1,snapkv,snapkv+q8_0,snapkv+q5_1,q8_0,q5_1,q4_0"


def parser():
    made = Parser(prog="kvbench-choose", allow_abbrev=False,
                  description="Choose a KV-cache compression for a model and texts: predict, then measure.")
    add = made.add_argument
    add("--model", required=True, metavar="MODEL", help="GGUF model file, folder of save_pretrained(), or hub name")
    add("--text", nargs="+", action="extend", required=True, metavar="FILE",
        help="text files of the kinds that the model will read")
    add("--memory", default="25%", metavar="SIZE",
        help="size of the cache, a share of the full one, or with --context-length such as 3.5GB; default: 25%%")
    add("--context-length", type=positive, metavar="N", help="tokens of context for which the answer states sizes")
    add("-o", "--output", required=True, metavar="FOLDER", help="folder of the answer and of what it follows from")
    add("--context", type=positive, default=1024, metavar="N", help="tokens that are compressed; default: 1024")
    add("--score", type=positive, default=64, metavar="N", help="scored tokens after them; default: 64")
    add("--documents", type=positive, default=6, metavar="N", help="documents that are recorded; default: 6")
    add("--probes", type=positive, metavar="R", help="probes of each of them; default: 8")
    add("--without-gradients", action="store_true",
        help="rank by errors in the residual stream, which kvdump records from a GGUF file without PyTorch; so where "
        "PyTorch is not installed")
    add("--methods", default=METHODS, metavar="LIST", help="configurations to predict; default: %(default)s")
    add("--menu", default=MENU, metavar="LIST", help="what a plan may give a layer or head; default: %(default)s")
    add("--runs-in", choices=("llama.cpp", "vllm", "kvpress"),
        help="only configurations that this engine has today, and no plan, because none has budgets by layer; in place "
        "of --methods and --menu")
    add("--by", choices=("layer", "head"),
        help="what a plan gives a budget of its own; default: head, and layer without gradients")
    add("--race", type=positive, default=4, metavar="N", help="configurations that are measured; default: 4")
    add("--error", type=float, default=0.05, metavar="P",
        help="probability that the race drops a configuration in favour of one that is not better; default: 0.05")
    add("--task", default="", metavar="LIST",
        help="also count the answers that the configurations lose which are left after the race, in tasks of kveval "
        "such as passkey,lines; for a GGUF file")
    add("--minutes", type=float, default=20.0, metavar="M", help="time of the race; default: 20")
    add("--programs", metavar="FOLDER", help="folder of kvbench and kveval; default: PATH, then build/release")
    add("--weights", choices=("f32", "f16", "bf16"), default="f32",
        help="type in which a model that is no GGUF file runs; default: f32")
    add("--device", choices=("cpu", "cuda"), default="cpu", help="where it runs; default: cpu")
    add("--threads", type=threads, metavar="N", help="number of threads; default: all processors")
    add("-q", "--quiet", action="store_true", help="print nothing but the answer")
    return made


def check(options):
    share = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s?%(?:mem)?", options.memory)
    options.bytes = bytes_of(options.memory)
    if options.bytes is None and (not share or not 0 < float(share[1]) < 100):
        raise Error(f"--memory {options.memory}: give a share of the full cache between 0 and 100 %, such as 25%, or "
                    "its size, such as 3.5GB or 800MiB.")
    if options.bytes is not None and options.context_length is None:
        raise Error(f"--memory {options.memory}: how much of the cache that is depends on the context; add "
                    "--context-length N, the tokens that it shall hold.")
    options.budget = f"{share[1]}%mem" if share else None  # else by set_budget()
    options.gguf = os.path.isfile(options.model) or options.model.endswith(".gguf")
    if options.gguf and (options.weights, options.device) != ("f32", "cpu"):
        raise Error("--weights and --device are for models that run in PyTorch, and the race of a GGUF file runs in "
                    "llama.cpp; leave them out.")
    if options.runs_in:
        for flag, default in (("methods", METHODS), ("menu", MENU)):
            require(getattr(options, flag) == default, "--runs-in", f"it says which configurations there are; leave "
                    f"--{flag} out.")
        options.methods = options.runs_in  # the family of this name
        if options.by:
            tell("kvbench-choose: --by has no effect beside --runs-in, which makes no plan\n")
    if not 0 < options.error < 1:
        raise Error(f"--error {options.error}: give a probability between 0 and 1.")
    if not 0 <= options.minutes < math.inf:
        raise Error(f"--minutes {options.minutes}: give a number of minutes.")
    if options.context < 2:
        raise Error(f"--context {options.context}: give at least 2 tokens.")
    if options.score < 2 or options.score > 512:
        raise Error(f"--score {options.score}: kveval scores from 2 to 512 tokens.")
    for path in [options.model][:options.gguf] + options.text:
        check_regular(path)
    if len(set(map(sha256_of_file, options.text))) < len(options.text):
        raise Error("--text: two of the files are one text; give it once.")
    options.gradients = not options.without_gradients and all(map(importlib.util.find_spec, ("torch", "transformers")))
    if options.probes and not options.gradients:
        tell("kvbench-choose: --probes has no effect without gradients\n")
    options.probes = options.probes or 8
    options.figure = "kl_predicted" if options.gradients else "residual_err_rms"
    options.by = options.by or ("head" if options.gradients else "layer")
    if options.task and not options.gguf:
        raise Error(f"--task {options.task}: tasks are measured by kveval, which runs GGUF files; leave it out.")
    if not options.gradients:
        needs_torch(options)
    if not options.gguf:
        _core()  # in which a folder is measured: said before anything is recorded
    wanted = ["kvbench"] + ["kveval"] * options.gguf + ["kvdump"] * (not options.gradients)
    options.programs = {name: program(name, options.programs) for name in wanted}


def needs_torch(options):
    """Refuses what is done in PyTorch."""
    why = "without gradients" if options.without_gradients else "without PyTorch and transformers (kvbench[hf])"
    if not options.gguf:
        raise Error(f"--model {options.model}: {why} only a GGUF file can be run; give one.")
    if options.by == "head":
        raise Error(f"--by head: {why} there is the error of a layer alone, not of its heads; leave it out.")
    if options.context_length is not None:
        raise Error(f"--context-length: the size of the cache is not known {why}; give --memory as a share.")


def program(name, folder):
    places = [folder] if folder else [*os.environ.get("PATH", "").split(os.pathsep), "build/release"]
    found = shutil.which(name, path=os.pathsep.join(places))
    if not found:
        raise Error(f"there is no program {name} in {folder or 'PATH or build/release'}; build it (docs/eval.md), and "
                    "name its folder with --programs.")
    return os.path.abspath(found)


class Work:
    """The output folder: what a step has made stays, and belongs to these options."""

    def __init__(self, options):
        self.options, self.folder = options, options.output
        self.started = time.monotonic()
        check_not_input(self.path("settings.json"), [*model_files(options.model), *options.text])
        self._settle()

    def _settle(self):
        kept = ("model", "text", "budget", "context", "score", "documents", "probes", "methods", "menu", "by", "race",
                "error")
        settings = {name: getattr(self.options, name) for name in kept}
        settings["budget"] = settings["budget"] or f"{self.options.bytes} B"
        settings["figure"] = self.options.figure
        for name in ("context_length", "weights", "device", "task", "runs_in"):
            if getattr(self.options, name) != parser().get_default(name):
                settings[name] = getattr(self.options, name)
        files = model_files(settings["model"])
        settings["model"] = os.path.abspath(settings["model"]) if os.path.exists(settings["model"]) else \
            settings["model"]
        settings["text"] = [os.path.abspath(path) for path in settings["text"]]
        settings["size"] = sum(map(os.path.getsize, filter(os.path.isfile, files)))
        settings["sha256"] = list(map(sha256_of_file, settings["text"]))
        if os.path.exists(self.path("settings.json")):
            if self.read("settings.json") != settings:
                raise Error(f"-o {self.folder}: this folder holds the answer to other options or other texts (see "
                            "settings.json in it); give another folder, or remove this one.")
        elif os.listdir(self.folder):
            raise Error(f"-o {self.folder}: this folder has files and none of this command; give a new one.")
        else:
            self.write("settings.json", json.dumps(settings, indent=1) + "\n")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        temporary = self.path(f"{name}.tmp.{os.getpid()}")
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path(name))

    def read(self, name, fits=lambda found: True):
        """What write() has written as JSON, of which fits() is true."""
        try:
            found = json.loads(read_text(self.path(name)))
        except json.JSONDecodeError:
            found = None
        require(found is not None and fits(found), self.path(name), "is damaged; give another folder with -o, or "
                "remove this one.")
        return found

    def say(self, sentence):
        if not self.options.quiet:
            tell(f"kvbench-choose: [{time.monotonic() - self.started:4.0f} s] {sentence}\n")

    def run(self, made, *command):
        """Runs a program that makes this file, unless it is there. Its messages are shown where it fails."""
        if os.path.exists(made):
            return
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode in (130, -signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP):
            raise KeyboardInterrupt
        if done.returncode < 0:
            raise OSError(f"{os.path.basename(str(command[0]))} was ended by {signal.Signals(-done.returncode).name}"
                          f"{', as where memory is short' if done.returncode == -signal.SIGKILL else ''}; the same "
                          "command goes on from there.")
        if not os.path.exists(made):  # exit code 1: some rows failed, and the others are there
            last = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            failure = OSError if done.returncode == 3 else Error
            raise failure(f"{os.path.basename(str(command[0]))} failed: {last[-1]}")

    def threads(self, flag="-j"):
        return [flag, self.options.threads] if self.options.threads else []


def predict(work, recorded):
    """Records the trace, replays every configuration, and finds a plan. Returns the rows of the replay over all texts,
    and whether held-out documents confirm the plan."""
    options, kvbench = work.options, work.options.programs["kvbench"]
    trace, rows, plan = record(work, recorded), work.path("predicted.csv"), work.path("plan.toml")
    work.say("predicting what every configuration does")
    work.run(rows, kvbench, "replay", trace, "-m", options.methods, "-b", f"{options.budget},100%mem", "--rows",
             "trace", "--no-times", "-q", "-o", rows, *work.threads())
    if len(recorded) > 1 and not options.runs_in:
        work.say(f"dividing the memory among the {options.by}s")
        work.run(plan, kvbench, "allocate", trace, "--menu", options.menu, "--by", options.by, "-b", options.budget,
                 "-q", "-o", plan, *work.threads())
    table = rows_of(rows, (options.figure,), "a replay")
    every = "all" if len(recorded) > 1 else "0"  # of one prompt
    return [row for row in table if row["prompt"] == every and row["layer"] == "all"], has_a_choice(plan)


def has_a_choice(plan):
    """Whether a plan gives its places different things: allocate writes equal budgets where it confirms nothing."""
    if not os.path.exists(plan):
        return False
    return len(set(re.findall(r"(method = .*?) }", read_text(plan)))) > 1


def candidates(options, rows, plan):
    """The names of the configurations that race: those of the least predicted damage at the budget, and the plan."""
    ranked = sorted((row for row in rows if row["status"] == "ok" and row["budget"] == options.budget
                     and row[options.figure]), key=lambda row: float(row[options.figure]))
    if not ranked:
        if options.runs_in:
            raise Error(f"--memory {options.memory}: {answer.smallest(options, rows)}")
        reason = next((row["reason"] for row in rows if row["reason"]), "nothing fits")
        raise Error(f"--memory {options.memory}: no configuration has a prediction at this size ({reason}).")
    names = [answer.configuration(row) for row in ranked[:options.race - bool(plan)]]
    return names + ([f"plan:{plan}"] if plan else [])


def race(work, names, documents):
    """Measures the configurations in the model, document by document. Returns the race and the rows of kveval by
    configuration, each of one document."""
    options, contest, rows = work.options, Race(names, work.options.error), {name: [] for name in names}
    deadline, models = time.monotonic() + 60 * options.minutes, set()
    for number, document in enumerate(documents):
        made = work.path(f"measured-{number:03}.csv")
        if (contest.decided and number) or not (os.path.exists(made) or time.monotonic() < deadline):
            break
        measure(work, made, contest.alive, document)
        table = rows_of(made, ("kl_mean", "method", "params", "sha256"), "a table of kveval")
        measured = {answer.configuration(row, plans=True): row for row in table
                    if row["layer"] == "all" and row["document"] == "all"}
        for name in contest.alive:
            require(name in measured, made, f"has no row of {name}; remove this file, and the same command measures it "
                    "again.")
            require(measured[name]["status"] == "ok", made, f"{name} did not run ({measured[name]['reason']}); leave "
                    "it out with --methods or --menu.")
            models.add(measured[name]["sha256"])
        require(len(models) == 1, made, f"this model is another one than that of {work.path('measured-000.csv')}; "
                "give another folder with -o, or remove this one.")
        for name in contest.alive:
            rows[name].append(measured[name])
        contest.add({name: float(measured[name]["kl_mean"]) for name in contest.alive})
        work.say(f"document {number + 1} of {len(documents)}: {contest.leader} leads, {len(contest.alive)} in the race")
    return contest, rows


def choose(options):
    check(options)
    with held(options.output):
        return choose_in(Work(options))


def choose_in(work):
    options = work.options
    recorded, raced = documents_of(work)
    set_budget(work)
    predictions, confirmed = predict(work, recorded)
    names = candidates(options, predictions, os.path.abspath(work.path("plan.toml")) if confirmed else None)
    work.say(f"measuring {', '.join(names)} on up to {len(raced)} documents")
    contest, rows = race(work, names, raced)
    asked = [row for row in (answered(work, contest.alive) if options.task and contest.documents else [])
             if answer.configuration(row, plans=True) in contest.alive]
    text = answer.paragraphs(options, contest, rows, predictions, len(recorded), len(raced), asked)
    work.write("answer.md", text)
    return text


def fail(code, message):
    tell(f"kvbench-choose: {' '.join(str(message).split())}\n")
    return code


def main(arguments=None):
    """Returns the exit code: 0 done; 2 bad usage or input; 3 input/output or memory; 130 interrupted."""
    stop_by_signals()
    try:
        text = choose(parser().parse_args(arguments))
        if sys.stdout is None:
            raise OSError("the standard output is closed; the answer is in the file answer.md.")
        sys.stdout.write(text)
        sys.stdout.flush()
        return 0
    except KeyboardInterrupt:
        return fail(130, "interrupted; what was computed stays, and the same command goes on")
    except (OSError, MemoryError) as failure:
        return fail(3, failure)
    except Error as failure:
        return fail(2, failure)
    except Exception as failure:
        return fail(2, f"the model's code fails ({first_line(failure)}); what was computed stays.")


if __name__ == "__main__":
    sys.exit(main())
