# SPDX-License-Identifier: Apache-2.0
"""What kvbench-choose asks of a model: to measure configurations on a document, by kveval if it is a GGUF file and
otherwise in this process."""

import os
from collections.abc import Iterable

from .._error import require
from ..files.access import read_text
from ..files.trace import Trace
from .folder import Work, rows_made
from .names import configuration

TASK_DOCUMENTS = 8  # of each task


def channel_order(work: Work, document: str) -> list[str]:
    """The flag that records channels in the order in which llama.cpp has them for this model, as kveval says."""
    if not work.question.gguf:
        return []  # that of the model's code
    made = work.path("order.csv")
    work.run(made, work.question.commands["kveval"], work.question.model, "--ids", document, "--context", 16, "--score",
             2, "-m", "exact", "-b", "100%mem", "--no-times", "-q", "-o", made, *work.threads())
    order = rows_made(made, ("rope_layout",), "a table of kveval")[0]["rope_layout"]
    return ["--rope-layout", order] if order else []


def tables_of(work: Work, document: str) -> tuple[list[str], str]:
    """The tables of kveval of a document, in the order in which they were made, and the name of the next one."""
    stem, tables = os.path.splitext(os.path.basename(document))[0], []
    while os.path.exists(work.path("measured", f"{stem}.{len(tables)}.csv")):
        tables.append(work.path("measured", f"{stem}.{len(tables)}.csv"))
    return tables, work.path("measured", f"{stem}.{len(tables)}.csv")


def rows_in(table: str) -> dict[tuple[str, str, str], dict[str, str]]:
    """{(configuration, budget, protocol): row} of a table of kveval of one document."""
    rows = rows_made(table, ("kl_mean", "method", "params", "budget", "sha256"), "a table of kveval")
    return {(configuration(row), row["budget"], row.get("protocol") or "decode"): {**row, "table": table}
            for row in rows if row["layer"] == "all" and row["document"] == "all"}


def is_measured(work: Work, document: str, names: Iterable[str], budget: str, protocol: str = "decode") -> bool:
    found = {key for table in tables_of(work, document)[0] for key in rows_in(table)}
    return all((name, budget, protocol) in found for name in names)


def measured(work: Work, document: str, names: list[str], budget: str,
             protocol: str = "decode") -> dict[str, dict[str, str]]:
    """The rows of kveval of these configurations on a document, by name. What was measured for another question is not
    measured again. Raises Error if one did not run, or ran in another model."""
    tables, made = tables_of(work, document)
    found = {key: row for table in tables for key, row in rows_in(table).items()}
    missing = [name for name in names if (name, budget, protocol) not in found]
    if missing:
        measure(work, made, missing, budget, document, protocol)
        found.update(rows_in(made))
    for name in names:
        require((name, budget, protocol) in found, made, f"has no row of {name}; remove this file, and the same "
                "command measures it again.")
    rows = {name: found[name, budget, protocol] for name in names}
    models = {row["sha256"]: row["table"] for row in found.values()}
    require(len(models) == 1, next(reversed(models.values())), f"this model is another one than that of "
            f"{next(iter(models.values()))}; give another folder with -o, or remove this one.")
    for name, row in rows.items():
        require(row["status"] == "ok", row["table"], f"{name} did not run ({row['reason']}); leave it out with "
                "--methods or --menu.")
    return rows


def measure(work: Work, made: str, names: list[str], budget: str, document: str, protocol: str) -> None:
    """Makes a table of kveval of these configurations on a document."""
    question, names = work.question, [work.named(name) for name in names]
    if question.gguf:
        work.run(made, question.commands["kveval"], question.model, "--ids", document, "--context", question.context,
                 "--score", question.score, "-m", ",".join(names), "-b", budget, "--protocol", protocol, "--no-times",
                 "-q", "-o", made, *work.threads())
        return
    from ..models.evaluate import Evaluation, digest_of
    model = work.model.get()
    if not hasattr(model, "sha256"):
        model.sha256 = digest_of(model.model)
    with Trace(work.path("probes.h5")) as trace:  # predictions are of channels in this order
        layout = trace.rope_layout if trace.rope_type not in ("none", "unknown") else None
    name = os.path.splitext(os.path.basename(document))[0]
    os.makedirs(os.path.dirname(made), exist_ok=True)
    run = Evaluation(model.model, names, budget, made, context=question.context, score=question.score,
                     name=model.title, sha256=model.sha256, text=os.path.basename(document), rope_layout=layout,
                     threads=question.threads or 0, protocol=protocol)
    run.read(name, [int(token) for token in read_text(document).split()])
    run.finish(per_document=False, times=False)


def answered(work: Work, names: list[str], budget: str) -> list[dict[str, str]]:
    """The rows of kveval about the tasks of --task, of these configurations and, if a shorter race had left more, of
    others."""
    question, made = work.question, work.own("answers.csv")
    work.say(f"counting answers of {question.task}")
    work.run(made, question.commands["kveval"], question.model, "--text", question.text[0], "--task", question.task,
             "--documents", TASK_DOCUMENTS, "--context", question.context, "--score", question.score, "-m",
             ",".join(map(work.named, names)), "-b", budget, "--no-times", "-q", "-o", made, *work.threads())
    rows = rows_made(made, ("task", "answers", "match_full", "harmful"), "a table of kveval")
    return [row for row in rows if row["layer"] == row["document"] == "all" and row["status"] == "ok"]
