# SPDX-License-Identifier: Apache-2.0
"""The answer of kvbench-choose in sentences."""

import math

from ._files import size_text

# What a method asks of an engine, by the method before a +.
MERGED = "merged keys and values with weights inside the softmax"
NEEDS = {"h2o": "sums of the attention weights of every step, which FlashAttention kernels do not return, and a list "
                "of tokens for each kv head",
         "snapkv": "the attention weights of the last prompt tokens once, and a list of tokens for each kv head",
         "sink": "a window of recent tokens beside the first ones", "chelsea": MERGED, "bsm": MERGED, "kmeans": MERGED}


def configuration(row, plans=False):
    """METHOD[PARAMETERS] of a row; for a plan its file alone, where `plans`, since its parameter is a digest."""
    if not row["params"] or (plans and row["method"].startswith("plan:")):
        return row["method"]
    return f"{row['method']}[{row['params'].replace(';', ',')}]"


def number(value):
    return f"{value:.3g}"


def average(rows, column):
    """Mean of a column over rows of one document each."""
    return math.fsum(float(row[column]) for row in rows) / len(rows)


def share(rows):
    return math.fsum(float(row["total_bytes"]) for row in rows) / math.fsum(float(row["full_bytes"]) for row in rows)


def predicted(predictions, options, best):
    """The rows of the replay of a configuration; a plan has none."""
    return [row for row in predictions if row["budget"] == options.budget and configuration(row) == best]


def layers(row):
    """The numbers of layers in which the configurations run, and of all."""
    return int(row["compressed_layers"]), int(row["model_layers"])


def bytes_held(predictions, options, rows, best):
    """How much of the bytes of the full cache the configuration has: of all layers, and of those in which it runs."""
    some, every = layers(rows[0])
    text = f"{100 * share(rows):.1f} % of the bytes of the full cache"
    if some == every:
        return text
    found = predicted(predictions, options, best)
    inside = 100 * share(found) if found else float(options.budget.split("%")[0])
    return f"{text}, {inside:.1f} % in the {some} of {every} layers in which methods run"


def total(options, rows):
    """The bytes of the configuration at --context-length. `rows`: its own; they count layers in which no method runs
    too, kveval each of them as a full one."""
    cache = options.cache
    if not cache:
        return ""
    apart = cache["apart"]
    if apart is None:
        apart = 1 - float(rows[0]["compressed_layers"]) / float(rows[0]["model_layers"])
    held = cache["whole"] + (cache["full"] - cache["whole"]) * (share(rows) - apart) / (1 - apart)
    return (f"After {cache['tokens']} tokens it holds {size_text(held)} of the {size_text(cache['full'])} of the full "
            f"cache, {held / cache['tokens']:.0f} of {cache['full'] / cache['tokens']:.0f} bytes per token.")


def times(contest, name, best):
    """A configuration beside a better one, on the documents of both."""
    return f"{name} ({number(contest.ratio(name, best))} times the KL of {best})"


def headline(contest, predictions, options, rows, best):
    own = rows[best]
    text = (f"**{best}** changes the output least of the {len(contest.names)} configurations that were measured: KL "
            f"{number(contest.mean(best))} nats per token (geometric mean over {len(own)} documents that nothing was "
            f"chosen on), perplexity x {number(average(own, 'ppl_ratio'))}, the same most probable token in "
            f"{100 * average(own, 'top1'):.1f} % of the predictions, with "
            f"{bytes_held(predictions, options, own, best)}.")
    return text if contest.decided else text.replace("changes the output least", "leads, undecided,")


def evidence(contest, options, best, documents):
    lost = sorted(contest.dropped, key=lambda name: contest.dropped[name][1])
    sentences = []
    if lost:
        each = [f"{times(contest, name, contest.dropped[name][0])} after {contest.dropped[name][1]} documents"
                for name in lost]
        sentences.append(f"Known to be worse, at an error rate of {100 * options.error:g} % for all of these "
                         f"statements together: {'; '.join(each)}.")
    rest = [name for name in contest.alive if name != best]
    if rest:
        why = "the documents ended" if contest.documents == documents else "the time was over"
        sentences.append(f"Not told from it when {why}: {', '.join(times(contest, name, best) for name in rest)}.")
    return " ".join(sentences)


def prediction(predictions, options, best, recorded):
    found = [row for row in predicted(predictions, options, best) if row[options.figure]]
    if not found:
        return ""
    row = found[0]
    if not options.gradients:
        return (f"It was chosen to be measured by its error in the residual stream on {recorded} other documents, "
                f"{number(float(row[options.figure]))}; no KL was predicted.")
    return (f"From {recorded} other documents KL {number(float(row['kl_predicted']))} had been predicted for it, "
            f"{number(float(row['kl_predicted_lo']))} to {number(float(row['kl_predicted_hi']))} (mean; where tokens "
            "are dropped, predictions are up to twice too small).")


def lost_answers(asked):
    """What the configurations lose of the answers that the full cache has right, task by task."""
    sentences = []
    for task in dict.fromkeys(row["task"] for row in asked):
        rows = [row for row in asked if row["task"] == task and row["match_full"]]
        right = round(float(rows[0]["match_full"]) * float(rows[0]["answers"])) if rows else 0
        if not right:
            sentences.append(f"In {task} the full cache has no answer to lose.")
            continue
        each = [f"{configuration(row, plans=True)} {round(float(row['harmful']) * float(row['answers']))}"
                for row in rows]
        sentences.append(f"Of the {right} answers that the full cache has right in {task} these are lost: "
                         f"{', '.join(each)}.")
    return " ".join(sentences)


def needs(predictions, options, best):
    """What the configuration asks of an engine, and where it runs."""
    if best.startswith("plan:"):
        places = "layer" if options.by == "layer" else "kv head of each layer"
        return (f"The plan is {best.removeprefix('plan:')}; it asks an engine for caches of another size in each "
                f"{places}, and for what its methods ask.")
    runs_in = [row["runs_in"] for row in predictions if configuration(row) == best and row["runs_in"]]
    if runs_in:
        return f"It runs today: {runs_in[0]}."
    method, _, stored = best.split("[")[0].partition("+")
    asked = NEEDS.get(method)
    rounded = f"rows stored as {stored}" if stored else ""
    asked = ", ".join(filter(None, [asked, rounded]))
    return f"It asks an engine for {asked}." if asked else ""


def smallest(options, predictions):
    """What an engine has nearest to a size below all that it has."""
    fits = [row for row in predictions if row["budget"] == "100%mem" and row["status"] == "ok"]
    if not fits:
        return f"nothing of {options.runs_in} has a prediction; leave --runs-in out."
    row = min(fits, key=lambda row: float(row["total_bytes"]) / float(row["full_bytes"]))
    held, asked = 100 * float(row["total_bytes"]) / float(row["full_bytes"]), float(options.budget.split("%")[0])
    return (f"{options.runs_in} has nothing as small; nearest is {configuration(row)} ({row['runs_in']}) with "
            f"{held:.1f} % of the full cache. Give --memory {math.ceil(held)}%, or a context "
            f"{100 * (1 - asked / held):.0f} % shorter.")


def engines(predictions, options, measured):
    """What staying with the formats that engines have costs, at the bytes that they take. `measured`: a row of a
    configuration that raced."""
    lines = []
    for row in predictions:
        held = float(row["total_bytes"]) / float(row["full_bytes"]) if row["status"] == "ok" else 1
        if row["budget"] == "100%mem" and row["runs_in"] and held < 0.99 and row[options.figure]:
            damage = number(float(row[options.figure]))
            if options.gradients:
                damage += f" ({number(float(row['kl_predicted_lo']))} to {number(float(row['kl_predicted_hi']))})"
            lines.append((held, f"| {row['runs_in']} | {100 * held:.1f} % | {damage} |"))
    if not lines:
        return ""
    table = "\n".join(line for _, line in sorted(lines))
    some, every = layers(measured)
    where = "" if some == every else f" in these {some} layers; engines round the others too"
    return (f"\nWhat engines run today, at the bytes that it takes{where} (not measured in the model):\n\n"
            f"| setting | bytes / full | {'predicted KL' if options.gradients else 'residual error'} |\n"
            f"| --- | --- | --- |\n{table}\n")


def paragraphs(options, contest, rows, predictions, recorded, raced, asked):
    """The whole answer. `rows`: those of kveval by configuration, of one document each; `asked`: of tasks."""
    if contest.documents == 0:
        return (f"Nothing was measured in {options.minutes:g} minutes. By prediction from {recorded} documents the "
                f"best configurations at {options.memory} of the memory are, in this order: "
                f"{', '.join(contest.names)}.\n")
    best = contest.leader
    sentences = [headline(contest, predictions, options, rows, best), total(options, rows[best]),
                 evidence(contest, options, best, raced),
                 prediction(predictions, options, best, recorded), lost_answers(asked),
                 needs(predictions, options, best)]
    return " ".join(filter(None, sentences)) + "\n" + engines(predictions, options, rows[best][0])
