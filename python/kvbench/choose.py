# SPDX-License-Identifier: Apache-2.0
"""kvbench-choose: from a model, texts and a size of the cache to a configuration, and the evidence for it.

A part of each text is recorded with probes, or without PyTorch with sketches of W_O; every family and the best budgets
by layer are predicted from it. The formats of engines and the best few configurations are then measured in the model on
the other part, document by document, until one is known to be better or the time is over. Everything is a file in the
output folder, which answers other questions about the same model and texts too; a run that was stopped goes on from
there."""

import importlib.util
import json
import math
import os
import re
import shutil
import sys
import time

from . import _choose_answer as answer
from ._arguments import Parser, positive, threads
from ._choose_documents import documents_of, record
from ._choose_engines import FULL, measure_settings
from ._choose_folder import Work, parts_of, plain_path
from ._choose_model import answered, bytes_of, is_measured, measured, set_budget
from ._choose_rank import Predictions, candidates
from ._commands import _core
from ._error import Error, check_regular, first_line, require
from ._files import held, read_text, sha256_of_file
from ._progress import tell
from ._race import Race
from .dump_hf import stop_by_signals
from .results import rows_of

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
        help="size of the cache, a share of the full one such as 25%% or 0.25, or with --context-length such as 3.5GB; "
        "default: 25%%")
    add("--context-length", type=positive, metavar="N", help="tokens of context for which the answer states sizes")
    add("-o", "--output", required=True, metavar="FOLDER",
        help="folder of the recording, the measurements and the answers; another question about the same model and "
        "texts in the same folder records nothing again")
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
        help="only configurations that this engine has today, and no plan, because plans here use what it lacks; in "
        "place of --methods and --menu")
    add("--by", choices=("layer", "head"),
        help="what a plan gives a budget of its own; default: head, and layer without gradients")
    add("--race", type=positive, default=4, metavar="N", help="configurations that are measured; default: 4")
    add("--error", type=float, default=0.05, metavar="P",
        help="probability that the race drops a configuration in favour of one that is not better; default: 0.05")
    add("--task", default="", metavar="LIST",
        help="also count the answers that the configurations lose which are left after the race, in tasks of kveval "
        "such as passkey,lines; for a GGUF file")
    add("--minutes", type=float, default=20.0, metavar="M", help="time of what is measured in the model; default: 20")
    add("--programs", metavar="FOLDER", help="folder of kvbench and kveval; default: PATH, then build/release")
    add("--weights", choices=("f32", "f16", "bf16"), default="f32",
        help="type in which a model that is no GGUF file runs; default: f32")
    add("--device", choices=("cpu", "cuda"), default="cpu", help="where it runs; default: cpu")
    add("--threads", type=threads, metavar="N", help="number of threads; default: all processors")
    add("-q", "--quiet", action="store_true", help="print nothing but the answer")
    return made


def check(options):
    if decimal := re.fullmatch(r"(0?\.[0-9]{1,6})\s?(?:mem|memory)?", options.memory):  # as --budget takes it
        options.memory = f"{float(decimal[1]) * 100:.6g}%"
    share = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s?%\s?(?:mem|memory)?", options.memory)
    options.bytes = bytes_of(options.memory)
    if options.bytes is None and (not share or not 0 < float(share[1]) < 100):
        raise Error(f"--memory {options.memory}: give a share of the full cache between 0 and 100 %, such as 25%, or "
                    "its size, such as 3.5GB or 800MiB.")
    if options.bytes is not None and options.context_length is None:
        raise Error(f"--memory {options.memory}: how much of the cache that is depends on the context; add "
                    "--context-length N, the tokens that it shall hold.")
    options.memory = f"{share[1]}%" if share else options.memory  # one question however it is written
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
    parts_of(options.model)
    plain_path(options.output)
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


def program(name, folder):
    places = [folder] if folder else [*os.environ.get("PATH", "").split(os.pathsep), "build/release"]
    found = shutil.which(name, path=os.pathsep.join(places))
    if not found:
        raise Error(f"there is no program {name} in {folder or 'PATH or build/release'}; build it (docs/eval.md), and "
                    "name its folder with --programs.")
    return os.path.abspath(found)


def predict(work, trace):
    """Replays every configuration, and finds a plan. Returns the Predictions and the plan as a method; None if it gives
    all of its places one thing, as it does if nothing differs."""
    options, kvbench = work.options, work.options.programs["kvbench"]
    rows, plan = work.own("predicted.csv"), work.own("plan.toml")
    if not os.path.exists(rows):
        work.say("predicting what every configuration does")
    work.run(rows, kvbench, "replay", trace, "-m", options.methods, "-b", f"{options.budget},{FULL}", "--rows",
             "layer", "--no-times", "-q", "-o", rows, *work.threads())
    if not options.runs_in:
        divide(work, trace, plan)
    table = rows_of(rows, (options.figure,), "a replay")
    several = any(row["prompt"] == "all" for row in table)
    found = Predictions(table, options.figure, "all" if several else "0")
    return found, work.add_plan(read_text(plan)) if has_a_choice(plan) else None


def has_a_choice(plan):
    if not os.path.exists(plan):
        return False
    return len(set(re.findall(r"(method = .*?) }", read_text(plan)))) > 1


def chosen(options, predictions, plan):
    """The names of the configurations that race: those of candidates(), and the plan, which a race measures whether or
    not held-out documents confirmed it."""
    names = candidates(predictions, options.budget, options.race - bool(plan))
    if not predictions.ranked(options.budget):
        require(not options.runs_in, f"--memory {options.memory}", answer.smallest(options, predictions))
        reason = next((row["reason"] for row in predictions.rows if row["reason"]), "nothing fits")
        raise Error(f"--memory {options.memory}: no configuration has a prediction at this size ({reason}).")
    return names + ([plan] if plan else [])


def race(work, names, documents, deadline):
    """Measures the configurations in the model, document by document. Returns the race and the rows of kveval by
    configuration, each of one document."""
    options, contest, rows = work.options, Race(names, work.options.error), {name: [] for name in names}
    for number, document in enumerate(documents):
        late = time.monotonic() >= deadline and not is_measured(work, document, contest.alive, options.budget)
        if (contest.decided and number) or late:
            break
        found = measured(work, document, contest.alive, options.budget)
        for name in contest.alive:
            rows[name].append(found[name])
        contest.add({name: float(found[name]["kl_mean"]) for name in contest.alive})
        left = max(0, deadline - time.monotonic()) / 60
        work.say(f"document {number + 1} of {len(documents)}: {answer.short(contest.leader)} leads, "
                 f"{len(contest.alive)} in the race, {left:.0f} of {options.minutes:g} minutes left")
    return contest, rows


def choose(options):
    check(options)
    with held(options.output) as lock:
        return choose_in(Work(options, lock))


def choose_in(work):
    options = work.options
    recorded, raced = documents_of(work)
    if options.gradients:
        set_budget(work)
    trace = record(work, recorded)
    if not options.gradients:
        set_budget(work, trace)
    predictions, plan = predict(work, trace)
    names = chosen(options, predictions, plan)
    work.write(work.in_question("raced.json"), json.dumps({"budget": options.budget, "configurations": names}) + "\n")
    deadline = time.monotonic() + (60 * options.minutes if os.access(work.folder, os.W_OK) else 0)
    settings = measure_settings(work, predictions, raced, deadline)
    work.say(f"measuring {', '.join(map(answer.short, names))} on up to {len(raced)} documents")
    contest, rows = race(work, names, raced, deadline)
    asked = [row for row in (answered(work, contest.alive) if options.task and contest.documents else [])
             if answer.configuration(row) in contest.alive]
    text = answer.paragraphs(answer.Found(options, contest, rows, predictions, settings, len(recorded), len(raced),
                                          asked, plan and not_confirmed(work)))
    work.write(work.in_question("answer.md"), text)
    work.say(f"the answer is {work.own('answer.md')}")
    return text


def divide(work, trace, plan):
    """Makes the plan. There is none if no configuration of the menu can be predicted at this size in all layers."""
    options = work.options
    if not os.path.exists(plan):
        work.say(f"dividing the memory among the {options.by}s")
    try:
        work.run(plan, options.programs["kvbench"], "allocate", trace, "--menu", options.menu, "--by", options.by, "-b",
                 options.budget, "-q", "-o", plan, *work.threads())
    except Error as why:
        if "none of its configurations fits" not in str(why):
            raise
        work.say(f"there is no plan: {why}")


def not_confirmed(work):
    """Whether `kvbench allocate` says of its plan that held-out documents do not confirm it."""
    return "confirmed = false" in read_text(work.own("plan.toml"))


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
