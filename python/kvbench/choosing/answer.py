# SPDX-License-Identifier: Apache-2.0
"""The answer of kvbench-choose in sentences."""

import dataclasses
import math
import re

from ..files.access import size_text
from .engines import BREAKS, DOCUMENTS, LARGE, Setting, share_of
from .race import Race, geometric_mean
from .names import configuration, own_plan, parts_of
from .plans import Plan
from .rank import Predictions
from .settings import Question
from .sizes import CacheSizes, Target

# What a method asks of an engine, by the method before a +.
MERGED = "merged keys and values with weights inside the softmax"
NEEDS = {"h2o": "sums of the attention weights of every step, which FlashAttention kernels do not return, and a list "
                "of tokens for each kv head",
         "snapkv": "the attention weights of the last prompt tokens once, and a list of tokens for each kv head",
         "sink": "a window of recent tokens beside the first ones", "chelsea": MERGED, "bsm": MERGED, "kmeans": MERGED}


@dataclasses.dataclass
class Found:
    """What an answer is about."""
    question: Question
    target: Target
    contest: Race
    rows: dict[str, list[dict[str, str]]]  # those of kveval by configuration, each of one document
    predictions: Predictions
    settings: list  # of engines: engines.Setting
    recorded: int  # documents
    raced: int  # documents that there are to measure on
    asked: list  # rows of tasks
    plan: Plan | None  # that raced


def short(name: str) -> str:
    """A configuration in a sentence: a plan without its digest."""
    return "plan" if own_plan(name) else name


def number(value: float) -> str:
    return f"{value:.3g}"


def average(rows: list[dict[str, str]], column: str) -> float:
    """Mean of a column over rows of one document each."""
    return math.fsum(float(row[column]) for row in rows) / len(rows)


def share(rows: list[dict[str, str]]) -> float:
    return math.fsum(float(row["total_bytes"]) for row in rows) / math.fsum(float(row["full_bytes"]) for row in rows)


def percent(budget: str) -> float:
    """25 of "25%mem"."""
    return float(budget.split("%")[0])


def layers(row: dict[str, str]) -> tuple[int, int]:
    """The numbers of layers in which the configurations run, and of all."""
    return int(row["compressed_layers"]), int(row["model_layers"])


def bytes_held(found: Found, best: str) -> str:
    """How much of the bytes of the full cache the configuration has: of all layers, and of those in which it runs."""
    rows = found.rows[best]
    some, every = layers(rows[0])
    text = f"{100 * share(rows):.1f} % of the bytes of the full cache"
    if some == every:
        return text
    row = found.predictions.row_of(best, found.target.budget)
    inside = 100 * share([row]) if row else percent(found.target.budget)
    return f"{text}, {inside:.1f} % in the {some} of {every} layers in which methods run"


def total(cache: CacheSizes | None, rows: list[dict[str, str]]) -> str:
    """The bytes of the configuration at --context-length, by the CacheSizes. `rows`: its own; they count layers in
    which no method runs too, kveval each of them as a full one. A format runs in all layers."""
    if not cache:
        return ""
    apart = cache.apart
    if apart is None:
        apart = 1 - float(rows[0]["compressed_layers"]) / float(rows[0]["model_layers"])
    some, every = layers(rows[0])
    held = (cache.full * share(rows) if some == every else
            cache.whole + (cache.full - cache.whole) * (share(rows) - apart) / (1 - apart))
    return (f"After {cache.tokens} tokens it holds {size_text(held)} of the {size_text(cache.full)} of the full cache, "
            f"{held / cache.tokens:.0f} of {cache.full / cache.tokens:.0f} bytes per token.")


def times(contest: Race, name: str, best: str) -> str:
    """A configuration beside a better one, on the documents of both."""
    return f"{short(name)} ({number(contest.ratio(name, best))} times the KL of {short(best)})"


NOT_YET = "\nFormats of engines were not measured yet: the run has not ended, or was stopped.\n"


def told(contest: Race) -> str:
    """What a race knows so far, as a clause."""
    best, others, known = short(contest.leader), len(contest.names) - 1, len(contest.dropped)
    if not others:
        return f"{best} was measured"
    return f"{best} leads, and {known} of the {others} others {'is' if known == 1 else 'are'} known to be worse"


def headline(found: Found, best: str) -> str:
    own, contest = found.rows[best], found.contest
    leads = "changes the output least" if contest.decided else "leads, undecided,"
    place = f"{leads} of the {len(contest.names)} configurations that were measured"
    if len(contest.names) == 1:
        place = "is the only configuration that was measured"
    text = (f"**{short(best)}** {place}: KL "
            f"{number(contest.mean(best))} nats per token (geometric mean over {len(own)} documents that nothing was "
            f"chosen on), perplexity x {number(average(own, 'ppl_ratio'))}, the same most probable token in "
            f"{100 * average(own, 'top1'):.1f} % of the predictions, with {bytes_held(found, best)}.")
    worst = max(float(row["kl_mean"]) for row in own)
    if worst >= BREAKS:
        text += f" It breaks the model: on one document its KL is {number(worst)}. Give it more memory."
    return text


def evidence(found: Found, best: str) -> str:
    contest = found.contest
    lost = sorted(contest.dropped, key=lambda name: contest.dropped[name][1])
    sentences = []
    if lost:
        each = [f"{times(contest, name, contest.dropped[name][0])} after {contest.dropped[name][1]} documents"
                for name in lost]
        sentences.append("Known to be worse on pieces of these texts, more often or by more than chance allows if "
                         f"neither were better, at an error rate of {100 * found.question.error:g} % for all of these "
                         f"statements together: {'; '.join(each)}.")
    others = sorted((name for name in contest.alive if name != best), key=lambda name: contest.ratio(name, best))
    rest = [times(contest, name, best) for name in others]
    if rest and contest.documents < contest.least_documents:
        sentences.append(f"Not yet told from it: {', '.join(rest)}. A clear difference between {len(contest.names)} "
                         f"configurations takes {contest.least_documents} documents, and these are "
                         f"{contest.documents}{more(found)}.")
    elif rest:
        why = "the documents ended" if contest.documents == found.raced else "the time was over"
        sentences.append(f"Not told from it when {why}: {', '.join(rest)}.")
    return " ".join(sentences)


def more(found: Found) -> str:
    """What brings more documents."""
    if found.contest.documents < found.raced:
        return "; give more --minutes"
    fewer = ""
    if len(found.contest.names) > 2:
        fewer = f", or --race 2 ({Race(['a', 'b'], found.question.error).least_documents} documents)"
    return f", all that these texts have; give longer texts or a smaller --context{fewer}"


def prediction(found: Found, best: str) -> str:
    if own_plan(best):
        return ("Held-out documents did not confirm that it is better than equal budgets; the race measured it all the "
                "same.") if found.plan and not found.plan.confirmed else ""
    row = found.predictions.row_of(best, found.target.budget)
    if row is None:
        return ""
    outside = found.predictions.outside(row)
    if outside:
        return f"Its damage could not be predicted ({outside}): it was measured as one of its kind."
    if not found.question.gradients:
        return (f"It was chosen to be measured by its error in the residual stream on {found.recorded} other "
                f"documents, {number(found.predictions.damage(row))}; no KL was predicted.")
    low, high = float(row["kl_predicted_lo"] or 0), float(row["kl_predicted_hi"] or math.inf)
    between = f"{number(low)} to {number(high)}" if high < 1000 * low else "and they are too few for an interval"
    return (f"From {found.recorded} other documents KL {number(float(row['kl_predicted']))} had been predicted for it, "
            f"{between} (mean; if tokens are dropped, predictions tend to be too small).")


def lost_answers(asked: list[dict[str, str]]) -> str:
    """What the configurations lose of the answers that the full cache has right, task by task."""
    sentences = []
    for task in dict.fromkeys(row["task"] for row in asked):
        rows = [row for row in asked if row["task"] == task and row["match_full"]]
        right = round(float(rows[0]["match_full"]) * float(rows[0]["answers"])) if rows else 0
        if not right:
            sentences.append(f"In {task} the full cache has no answer to lose.")
            continue
        each = [f"{short(configuration(row))} {round(float(row['harmful']) * float(row['answers']))}"
                for row in rows]
        sentences.append(f"Of the {right} answers that the full cache has right in {task} these are lost: "
                         f"{', '.join(each)}.")
    return " ".join(sentences)


def needs(found: Found, best: str) -> str:
    """What the configuration asks of an engine, and where it runs."""
    if own_plan(best) and found.question.runs_in:
        return f"The plan is plans/{own_plan(best)}, in a shape that {found.question.runs_in} can set."
    if own_plan(best):
        places = "layer" if found.question.by == "layer" else "kv head of each layer"
        return (f"The plan is plans/{own_plan(best)}; it asks an engine for caches of another size in each "
                f"{places}, and for what its methods ask.")
    runs_in = [row["runs_in"] for row in found.predictions.rows if configuration(row) == best and row["runs_in"]]
    if runs_in:
        late = " There contexts pass through the cache; KL is often larger." if "llama.cpp" in runs_in[0] else ""
        if "compression_ratio=" in runs_in[0]:
            dropped = 1 - percent(found.target.budget) / 100
            late = (f" The ratio is that of contexts of {found.question.context} tokens and {found.question.score} "
                    f"after them; in longer contexts it nears {dropped:.3g}.")
        return f"It runs today: {runs_in[0]}.{late}"
    method, stored = parts_of(found.rows[best][0]["method"])
    asked = NEEDS.get(method)
    rounded = f"rows stored as {stored}" if stored else ""
    asked = ", ".join(filter(None, [asked, rounded]))
    return f"It asks an engine for {asked}." if asked else ""


def smallest(engine: str | None, budget: str, predictions: Predictions) -> str:
    """What an engine has nearest to a budget below all that it has."""
    fits = [row for row in predictions.rows if row["budget"] == "100%mem" and row["status"] == "ok"]
    if not fits:
        return f"nothing of {engine} has a prediction; leave --runs-in out."
    row = min(fits, key=share_of)
    held, asked = 100 * float(row["total_bytes"]) / float(row["full_bytes"]), percent(budget)
    return (f"{engine} has nothing as small; nearest is {configuration(row)} ({row['runs_in']}) with "
            f"{held:.1f} % of the full cache. Give --memory {math.ceil(held)}%, or a context "
            f"{100 * (1 - asked / held):.0f} % shorter.")


def verdict(kl: list[float]) -> str:
    """What the KL on some documents is called."""
    return "breaks the model" if max(kl) >= BREAKS else "large" if max(kl) >= LARGE else ""


def line(setting: Setting) -> str:
    measured, words = "not measured", ""
    if setting.kl:
        measured = f"{number(geometric_mean(setting.kl))} ({number(min(setting.kl))} to {number(max(setting.kl))})"
        words = verdict(setting.kl)
    if setting.better:
        whole = setting.whole_kl
        words += (f"; with {layer_names(setting.whole)} in 16 bits{flags(setting)} {number(geometric_mean(whole))} "
                  f"({number(min(whole))} to {number(max(whole))}) at {100 * setting.whole_share:.1f} %")
    return f"| {setting.engine} | {100 * setting.share:.1f} % | {measured} | {words} |"


def layer_names(whole: list[int]) -> str:
    return f"layer{'s' if len(whole) > 1 else ''} {', '.join(map(str, whole))}"


def flags(setting: Setting) -> str:
    """How an engine is told to leave these layers in 16 bits. vLLM 0.21 has a list, ik_llama.cpp (from its pull request
    1626 on) the first and last ones."""
    if setting.engine.startswith("vLLM"):
        return f" (--kv-cache-dtype-skip-layers {' '.join(map(str, setting.whole))})"
    count = len(setting.whole)
    if "llama.cpp" in setting.engine and setting.whole == [*range(count)]:
        return f" (ik_llama.cpp: -ctk-first f16,{count} -ctv-first f16,{count})"
    return ""


def engines(found: Found) -> str:
    """What staying with the formats that engines have costs, at the bytes that they take."""
    if not found.settings:
        return ""
    measured = [setting for setting in found.settings if setting.kl]
    rows = next(iter(found.rows.values()), [])
    where = ""
    if rows and layers(rows[0])[0] != layers(rows[0])[1]:
        where = f" in these {layers(rows[0])[0]} layers; engines round the others too"
    # generate_step() of mlx-lm; _prefill_attention() of vLLM's turboquant_attn.py
    late = any(re.match("mlx-lm|vLLM.* turboquant", setting.engine) for setting in measured)
    blocks = ", though mlx-lm and TurboQuant in vLLM read a block of a prompt in 16 bits" if late else ""
    how = (f"KL in the model on {DOCUMENTS} documents, whose contexts pass through the cache{blocks}: geometric mean, "
           "least and largest" if measured else
           f"not measured: that takes {DOCUMENTS} documents" + (" and more --minutes" if found.raced >= DOCUMENTS else
                                                               "; give longer texts, or a smaller --context"))
    table = "\n".join(map(line, found.settings))
    text = (f"\nWhat engines run today, at the bytes that it takes{where} ({how}):\n\n"
            f"| setting | bytes / full | KL | |\n| --- | --- | --- | --- |\n{table}\n")
    if any(setting.kl and max(setting.kl) >= LARGE for setting in measured):
        text += (f"\nLarge: {LARGE:g} nats or more on one of the documents. Breaks the model: {BREAKS:g} or more.\n")
    of_llama = [setting for setting in found.settings if setting.engine.startswith("llama.cpp")]
    if any(setting.better for setting in of_llama):
        text += "\nllama.cpp itself has one type for all layers.\n"
    return text


def typed(found: Found) -> str:
    """How an engine is told the plan that raced for it, and what other plans are worth."""
    if not found.plan or not found.plan.settings:
        return ""
    lines = "".join(f"    {line}\n" for line in found.plan.settings)
    beside = " ".join(found.plan.beside).replace("this answer", "the plan")
    return f"\nThe plan in {found.question.runs_in}:\n\n{lines}" + (f"\n{beside}\n" if beside else "")


def paragraphs(found: Found) -> str:
    """The whole answer."""
    question, contest = found.question, found.contest
    if contest.documents == 0:
        memory = " of the memory" if question.share else ""
        return (f"None of the configurations at {question.memory}{memory} was measured in {question.minutes:g} "
                f"minutes. By prediction from {found.recorded} documents these are to be measured, the most promising "
                f"first: {', '.join(map(short, contest.names))}.\n" + typed(found) + engines(found))
    best = contest.leader
    sentences = [headline(found, best), total(found.target.cache, found.rows[best]), evidence(found, best),
                 prediction(found, best), lost_answers(found.asked), needs(found, best)]
    return " ".join(filter(None, sentences)) + "\n" + typed(found) + engines(found)
