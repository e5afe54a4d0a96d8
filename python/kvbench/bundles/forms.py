# SPDX-License-Identifier: Apache-2.0
"""The forms in which `kvbench cite` writes a bundle. docs/bundles.md says where the names of fields were read."""

import json
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .._error import known_names, require
from ..results.rows import plain
from .bundle import Bundle, command_of
from .figures import BITS, FIGURES, Figure, Result, results
from .tables import counted

Facts = dict[str, str]


@dataclass(frozen=True)
class Form:
    """lacks: what a user may add. facts: what it needs, with what each is and what it may be."""

    write: Callable[[Bundle, list[Result], Facts], str]
    lacks: str
    facts: dict[str, tuple[str, str]] = field(default_factory=dict)


def cited(bundle: Bundle, name: str, facts: Facts) -> tuple[str, list[str]]:
    """The bundle in a form, and what was left out. Raises Error for facts that are missing or wrong."""
    form, where = FORMS[name], f"--as {name}"
    found, left_out = ([], []) if form.write is bibtex else results(bundle, name)
    for fact, value in facts.items():
        require(fact in form.facts, f"--fact {fact}", f"is no fact of {where}.{known_names(fact, form.facts)}")
        what, pattern = form.facts[fact]
        require(re.fullmatch(pattern, value, re.ASCII), f"--fact {fact}", f"is {ascii(value)[:60]}; give {what}.")
    missing = [f"{fact} ({what})" for fact, (what, _) in form.facts.items() if fact not in facts]
    require(not missing, where, f"needs what no bundle has: {'; '.join(missing)}. Give each with --fact NAME=VALUE.")
    return form.write(bundle, found, facts), [*left_out, f"{form.lacks}: no bundle has them"]


def engines(bundle: Bundle) -> str:
    return "; ".join(dict.fromkeys(f"kvbench {row['version']} ({row['commit']}), {row['device']} {row['isa']}"
                                   for table in bundle.tables for row in table.rows))


def bibtex(bundle: Bundle, _: list[Result], __: Facts) -> str:
    """An entry @misc, whose fields all are optional."""
    models = dict.fromkeys(plain(cell.rows[0].get("model") or cell.rows[0]["trace"]) for cell in bundle.cells)
    methods = list(dict.fromkeys(cell.methods[0] for cell in bundle.cells))
    named = ", ".join(methods) if len(methods) < 4 else f"{len(methods)} methods"
    rows = [f"{counted(len(table.rows), 'row')} of kvbench {table.kind.command}" for table in bundle.tables]
    inputs = [f"{one.kind} {one.name} (SHA-256 {one.sha256[:12]})" for one in bundle.inputs]
    fields = {"title": f"KV-cache compression of {', '.join(models)}: {named}",
              "howpublished": "Bundle of results, which kvbench verify recomputes",
              "note": f"{'; '.join([*rows, engines(bundle), *inputs])}; SHA-256 of the manifest {bundle.digest}"}
    lines = [f"  {name} = {{{_tex(text)}}},\n" for name, text in fields.items()]
    return f"@misc{{kvbench-{bundle.digest[:12]},\n{''.join(lines)}}}\n"


def _tex(text: str) -> str:
    """Plain text in TeX. Braces have names, because BibTeX counts them, escaped or not."""
    names = {"\\": "backslash", "{": "braceleft", "}": "braceright", "~": "asciitilde", "^": "asciicircum"}
    return re.sub(r"[\\{}~^&%$#_]", lambda found: f"{{\\text{names[found[0]]}}}" if found[0] in names
                  else "\\" + found[0], text)


def llama_cpp(bundle: Bundle, found: list[Result], _: Facts) -> str:
    """Tables in Markdown, one for each model, text and setting."""
    tables: dict[tuple[str, str], list[Result]] = {}
    for one in found:
        tables.setdefault((one.text("model"), one.about), []).append(one)
    methods, exact = {one.text("method") for one in found}, any(one.text("protocol") != "stream" for one in found)
    return "".join(map(_llama_table, tables.values())) + (
        "PPL(base) is that of the full cache, which nothing rounds. [a, b]: 95 % interval over documents. bits/value: "
        f"all that is held, for each value of the full cache in kv_dtype. {_md(engines(bundle))}; bundle "
        f"{bundle.digest}, which `kvbench verify` recomputes."
        f"{'' if 'q8_0' in methods and len(methods) > 2 else ' llama.cpp asks for q8_0 and the sizes next to it, too.'}"
        f"{' The context was read exactly: in llama.cpp KL is larger (--protocol stream).' if exact else ''}\n")


LLAMA_COLUMNS = ("KV cache", "budget", "bits/value", "Mean PPL(Q)", "Mean PPL(Q)/PPL(base)", "Mean KLD", "99.0% KLD",
                 "Same top p")  # as llama-perplexity --kl-divergence names them


def _llama_table(rows: list[Result]) -> str:
    first = rows[0]
    lines = [["full", "", f"{BITS[first.row['kv_dtype']]}", _perplexity(first, "nll_full"), *[""] * 4]]
    lines += [[_md(one.method), _md(one.text("budget")), f"{one.bits:.2f}" if one.bits else "", _perplexity(one, "nll"),
               *(_with_interval(one, FIGURES[name]) for name in ("ppl_ratio", "kl_mean", "kl_p99", "top1"))]
              for one in sorted(rows, key=lambda one: -(one.bits or 0))]
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in (LLAMA_COLUMNS, ["---", *["---:"] * 7], *lines))
    return f"**{_md(first.text('model'))}**, {_md(first.about)}\n\n{table}\n"


def _perplexity(one: Result, column: str) -> str:
    nll = one.number(column)
    return f"{math.exp(nll):.4f}" if nll is not None and nll < 700 else ""


def _with_interval(one: Result, figure: Figure) -> str:
    by, digits, unit = (100, ".3f", " %") if figure.unit == "proportion" else (1, ".6f", "")
    value, ends = one.number(figure.column), one.interval(figure)
    between = f" [{ends[0] * by:{digits}}, {ends[1] * by:{digits}}]" if ends else ""
    return "" if value is None else f"{value * by:{digits}}{between}{unit}"


def _md(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", text)


def every_eval_ever(bundle: Bundle, found: list[Result], facts: Facts) -> str:
    """A record about one model: a result for each score of each row."""
    models = list(dict.fromkeys((one.text("model"), one.row["sha256"]) for one in found))
    require(len(models) == 1, "--as every-eval-ever", "a record is about one model, and these rows are about "
            f"{', '.join(name for name, _ in models)}; bundle them apart.")
    (model, start), now = models[0], f"{time.time():.3f}"
    version = ", ".join(dict.fromkeys(one.text("version") for one in found))
    record = {
        "schema_version": "0.3.0", "evaluation_id": f"kvbench/{facts['model']}/{now}", "retrieved_timestamp": now,
        "source_metadata": {"source_type": "evaluation_run", "source_organization_name": facts["organization"],
                            "evaluator_relationship": facts["relationship"],
                            "additional_details": {"bundle_manifest_sha256": bundle.digest, **bundle.machine}},
        "eval_library": {"name": "kvbench", "version": version, "additional_details": {"builds": engines(bundle)}},
        "model_info": {"name": model, "id": facts["model"],
                       "inference_engine": {"name": "llama.cpp" if model.endswith(".gguf") else "transformers"},
                       "additional_details": {"deployment_type": "self_deployed", "model_availability": "unknown",
                                              "file_sha256": bundle.sha256_of("model", model, start)}},
        "evaluation_results": [_evaluation(bundle, one, figure, value) for one in found for figure in FIGURES.values()
                               if (value := one.number(figure.column)) is not None]}
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def _evaluation(bundle: Bundle, one: Result, figure: Figure, value: float) -> dict[str, Any]:
    ends, full, digest = one.interval(figure), one.number(figure.full), bundle.sha256_of("text", one.row["text"])
    score: dict[str, Any] = {"score": value} if full is None else {"score": value, "details": {"full_cache": str(full)}}
    if ends:
        score["uncertainty"] = {"num_samples": int(one.row["documents"]), "confidence_interval": {
            "lower": ends[0], "upper": ends[1], "confidence_level": 0.95, "method": figure.interval}}
    return {
        "evaluation_name": f"kvbench {one.text('task')}",
        "source_data": {"dataset_name": one.text("text"), "source_type": "other",
                        "additional_details": {"sha256": digest} if digest else {}},
        "metric_config": {"metric_id": f"kvbench.{figure.column}", "metric_name": figure.name,
                          "metric_unit": figure.unit, "lower_is_better": figure.lower_is_better,
                          "score_type": "continuous", "min_score": 0,
                          "max_score": 1 if figure.unit == "proportion" else "Infinity"},
        "score_details": score,
        "generation_config": {"generation_args": {"execution_command": command_of(one.cell)},
                              "additional_details": {"kv_cache_method": one.method, "budget": one.text("budget"),
                                                     **({"bits_per_value": str(one.bits)} if one.bits else {}),
                                                     **one.conditions}}}


def eval_results(bundle: Bundle, found: list[Result], facts: Facts) -> str:
    """A list with an entry for each row. Texts are JSON, which YAML reads."""
    figure, entries = FIGURES[facts["metric"]], []
    for one in found:
        value = one.number(figure.column)
        notes = (f"{figure.name} ({figure.unit}) with KV cache {one.method} at {one.text('budget')}; {one.about}; "
                 f"kvbench {one.text('version')} ({one.text('commit')}), bundle {bundle.digest}")
        if value is not None:
            entries.append(f"- dataset:\n    id: {_yaml(facts['dataset'])}\n    task_id: {_yaml(facts['task'])}\n"
                           f"  value: {_yaml(value)}\n  notes: {_yaml(notes)}\n")
    require(entries, "--fact metric", f"no row has {figure.column}, the {figure.name}.")
    return "".join(entries)


def _yaml(value: str | float) -> str:
    """YAML 1.1 takes 1e-05 for a text, and 1.0e-05 for a number."""
    return re.sub(r"^(-?[0-9]+)(e[-+][0-9]+)$", r"\1.0\2", json.dumps(value))


RELATIONS = "first_party|third_party|collaborative|other"
FORMS = {
    "bibtex": Form(bibtex, "author, year and url"),
    "llama.cpp": Form(llama_cpp, "a model file, and the speed on a processor, which llama-bench measures"),
    "every-eval-ever": Form(every_eval_ever, "evaluation_timestamp", {
        "model": ("its name on Hugging Face, such as HuggingFaceTB/SmolLM2-135M", r"\S+"),
        "organization": ("who evaluated it", ".+"),
        "relationship": (f"of the evaluator to the model: {RELATIONS}", RELATIONS)}),
    "eval-results": Form(eval_results, "date and source", {
        "dataset": ("benchmark on Hugging Face, as ORGANISATION/NAME", r"[\w.-]+/[\w.-]+"),
        "task": ("id in the eval.yaml of the dataset", ".+"),
        "metric": (f"column that ranks there: {', '.join(FIGURES)}", "|".join(FIGURES))})}
