# SPDX-License-Identifier: Apache-2.0
"""kvbench.choose(): from a model, texts and a size of the cache to a configuration, and the evidence for it
(docs/choose.md)."""

import json
import os
import pathlib
import time
from dataclasses import dataclass

from .._error import Error, require
from ..files.access import held
from . import answer
from .documents import documents_of, record
from .engines import is_format, measure_settings, predict_formats
from .folder import Work, rows_made
from .model import answered, is_measured, measured
from .names import configuration, own_plan
from .plans import Plan
from .race import Race, bootstrap_interval
from .rank import Predictions, candidates
from .run import NothingFits
from .settings import ChooseSettings, question_of
from .sizes import target_of


@dataclass(frozen=True)
class Worse:
    """A configuration that is known to be worse than another one.

    Attributes
    ----------
    configuration, than : str
        The two.
    ratio : float
        Geometric mean of the ratio of its KL to that of `than`, over the documents of both.
    documents : int
        Documents after which this was known.
    """

    configuration: str
    than: str
    ratio: float
    documents: int


@dataclass(frozen=True)
class ChooseResult:
    """The answer of `kvbench.choose()`. A notebook shows its text.

    Configurations are METHOD[PARAMETERS], as methods are given to `kvbench.replay()`; a plan that was made is
    ``plan:plan-DIGEST.toml``, and the attribute `plan` has its path.

    Attributes
    ----------
    configuration : str or None
        The configuration that changes the output least, or leads; None: there was no time to measure one.
    decided : bool
        Whether all others are known to be worse.
    budget : str
        The size of the cache as a budget, such as ``"25%mem"``.
    kl : float or None
        KL divergence from the full cache, in nats per token: geometric mean over `documents`.
    kl_interval : tuple of two floats, or None
        95 % bootstrap interval of `kl` over documents; None for fewer than two. It does not know that the race ended
        when it was decided: `worse` has the statements that do.
    documents : int
        Documents that `configuration` was measured on.
    raced : tuple of str
        All configurations of the race, the most promising one by prediction first.
    worse : tuple of Worse
        What was told: these are worse, in the order in which it became known.
    not_told : tuple of str
        The other configurations: those that are not known to be worse.
    text : str
        The answer in sentences, as Markdown.
    folder, answer : pathlib.Path
        The folder of this question, and the file of the text in it.
    plan : pathlib.Path or None
        The file of the plan, if one raced.
    """

    configuration: str | None
    decided: bool
    budget: str
    kl: float | None
    kl_interval: tuple[float, float] | None
    documents: int
    raced: tuple[str, ...]
    worse: tuple[Worse, ...]
    not_told: tuple[str, ...]
    text: str
    folder: pathlib.Path
    answer: pathlib.Path
    plan: pathlib.Path | None

    def _repr_markdown_(self) -> str:
        return self.text


def choose(settings: ChooseSettings) -> ChooseResult:
    """Choose a compression of the KV cache for a model and texts, as ``kvbench-choose`` does (docs/choose.md).

    Parameters
    ----------
    settings : ChooseSettings
        The model, the texts, the output folder and the size of the cache.

    Returns
    -------
    ChooseResult
        The configuration, its KL and the evidence for it. The same call again returns the same result and computes
        nothing; a call that was interrupted goes on where it stopped.

    Raises
    ------
    Error
        If the settings contradict the model, the texts, the folder or each other, or if nothing fits in the memory.
        The message names settings by their flags.
    OSError, MemoryError
        If a file cannot be written, or a program ended for lack of memory.

    Examples
    --------
    >>> found = kvbench.choose(kvbench.ChooseSettings("model.gguf", ["mine.txt"], "choice", memory="25%"))
    >>> found.configuration, found.kl, found.kl_interval
    """
    question = question_of(settings)
    with held(question.output) as lock:
        work = Work(question, lock)
        try:
            return choose_in(work)
        finally:
            work.release()


def choose_in(work: Work) -> ChooseResult:
    """The steps of choose() in a folder."""
    question = work.question
    recorded, raced = documents_of(work)
    target = target_of(work) if question.gradients else None
    trace = record(work, recorded)
    target = target or target_of(work, trace)
    predictions, plan = predict(work, target.budget, trace)
    names = chosen(work, target.budget, predictions, trace, work.add_plan(plan.text) if plan else None)
    work.write(work.in_answer("raced.json"), json.dumps({"budget": target.budget, "configurations": names}) + "\n")
    deadline = time.monotonic() + (60 * question.minutes if os.access(work.folder, os.W_OK) else 0)
    work.say(f"measuring {', '.join(map(answer.short, names))} on up to {len(raced)} documents")
    contest = Race(names, question.error)
    rows: dict[str, list[dict[str, str]]] = {name: [] for name in names}
    race(work, target.budget, contest, rows, raced, deadline, max(1, contest.least_documents))
    found = answer.Found(question, target, contest, rows, predictions, [], len(recorded), len(raced), [], plan)
    tell_first(work, found)
    found.settings = measure_settings(work, predictions, trace, raced, deadline)
    race(work, target.budget, contest, rows, raced, deadline, len(raced))
    asked = answered(work, contest.alive, target.budget) if question.task and contest.documents else []
    found.asked = [row for row in asked if configuration(row) in contest.alive]
    text = answer.paragraphs(found)
    work.write(work.in_answer("answer.md"), text)
    work.say(f"the answer is {work.own('answer.md')}")
    return result_of(work, target.budget, contest, text)


def tell_first(work: Work, found: answer.Found) -> None:
    """Writes what is told before formats of engines are measured, which the answer then lacks."""
    if found.contest.documents and not os.path.exists(work.own("answer.md")):
        work.write(work.in_answer("answer.md"), answer.paragraphs(found) + answer.NOT_YET)
        work.say(f"{answer.told(found.contest)}; {work.own('answer.md')} has the answer without formats of engines")


def result_of(work: Work, budget: str, contest: Race, text: str) -> ChooseResult:
    """The ChooseResult of a race."""
    best = contest.leader if contest.documents else None
    damage = contest.damage(best) if best else []
    plan = next(filter(None, map(own_plan, contest.names)), None)
    return ChooseResult(
        configuration=best, decided=best is not None and contest.decided, budget=budget,
        kl=contest.mean(best) if best else None,
        kl_interval=bootstrap_interval(damage) if len(damage) > 1 else None, documents=len(damage),
        raced=tuple(contest.names),
        worse=tuple(Worse(name, than, contest.ratio(name, than), documents)
                    for name, (than, documents) in sorted(contest.dropped.items(), key=lambda item: item[1][1])),
        not_told=tuple(name for name in contest.alive if name != best), text=text, folder=pathlib.Path(work.own("")),
        answer=pathlib.Path(work.own("answer.md")), plan=pathlib.Path(work.path("plans", plan)) if plan else None)


def predict(work: Work, budget: str, trace: str) -> tuple[Predictions, Plan | None]:
    """Replays every configuration at the budget, and finds a plan. Returns the Predictions and the Plan; None if it has
    no choice."""
    question, rows = work.question, work.own("predicted.csv")
    if not os.path.exists(rows):
        work.say("predicting what every configuration does")
    work.run(rows, question.commands["kvbench"], "replay", trace, "-m", question.methods, "-b", budget,
             "--rows", "layer", "--no-times", "-q", "-o", rows, *work.threads())
    plan = divide(work, budget, trace)
    found = Predictions(rows_made(rows, (question.figure,), "a replay"), question.figure)
    return found, plan if plan and plan.has_a_choice else None


def chosen(work: Work, budget: str, predictions: Predictions, trace: str, plan: str | None) -> list[str]:
    """The names of the configurations that race: those of candidates(), and the plan, which a race measures whether or
    not held-out documents confirmed it."""
    question = work.question
    names = candidates(predictions, budget, question.race - bool(plan))
    if not predictions.ranked(budget):
        if question.runs_in and any(map(is_format, predictions.rows)):
            predict_formats(work, predictions, trace)
            raise Error(f"--memory {question.memory}: {answer.smallest(question.runs_in, budget, predictions)}")
        reason = next((row["reason"] for row in predictions.rows if row["reason"]), "nothing fits")
        raise Error(f"--memory {question.memory}: no configuration has a prediction at this size ({reason}).")
    return names + ([plan] if plan else [])


def race(work: Work, budget: str, contest: Race, rows: dict[str, list[dict[str, str]]], documents: list[str],
         deadline: float, until: int) -> None:
    """Measures the configurations in the model, one document after the other, until so many of the documents have been
    measured. Adds to the race, and to the rows of kveval by configuration, each of one document."""
    for document in documents[contest.documents:until]:
        late = time.monotonic() >= deadline and not is_measured(work, document, contest.alive, budget)
        if (contest.decided and contest.documents) or late:
            break
        found = measured(work, document, contest.alive, budget)
        for name in contest.alive:
            rows[name].append(found[name])
        contest.add({name: float(found[name]["kl_mean"]) for name in contest.alive})
        left = max(0, deadline - time.monotonic()) / 60
        work.say(f"document {contest.documents} of {len(documents)}: {answer.short(contest.leader)} leads, "
                 f"{len(contest.alive)} in the race, {left:.0f} of {work.question.minutes:g} minutes left")


def divide(work: Work, budget: str, trace: str) -> Plan | None:
    """The Plan. There is none if nothing of the menu that can be predicted fits this size."""
    question, plan, none = work.question, work.own("plan.toml"), work.in_answer("no-plan.json")
    if os.path.exists(work.path(none)):
        return None
    if not os.path.exists(plan):
        work.say(f"dividing the memory among the {question.by}s")
    menu = ["--for", question.runs_in] if question.runs_in else ["--menu", question.menu, "--by", question.by]
    try:
        work.run(plan, question.commands["kvbench"], "allocate", trace, *menu, "-b", budget, "-q", "-o", plan,
                 *work.threads())
    except NothingFits as why:
        work.say(f"there is no plan: {why}")
        work.write(none, json.dumps(str(why)) + "\n")
        return None
    return Plan(plan)
