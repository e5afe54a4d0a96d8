# SPDX-License-Identifier: Apache-2.0
"""What the scripts that write docs/findings.md share: the tables of scripts/findings, read and written.
A script that imports this module is called with the folder of the tables and the path of kvbench."""
import csv
import functools
import pathlib
import re
import subprocess
import sys

FOLDER, KVBENCH = pathlib.Path(sys.argv[1]), sys.argv[2]
MODELS = {"smollm2": "SmolLM2-135M", "gemma3": "gemma3-270m"}
TEXTS = ["prose", "licences", "code"]
QUARTER, EIGHTH = "25%mem", "12.5%mem"


def path(model, text, form):
    return FOLDER / f"{model}-{text}-{form}.csv"


def rows(model, text, form, budget=QUARTER):
    """The rows over all documents and layers that are ok, by method with its parameters."""
    with path(model, text, form).open() as file:
        return {(row["method"] + " " + row["params"]).strip(): row for row in csv.DictReader(file)
                if row["document"] == row["layer"] == "all" and row["status"] == "ok" and row["budget"] == budget}


def tables(*files):
    """The tables of a report, by title; each a list of dictionaries. Of equal column names the first counts."""
    text = subprocess.run([KVBENCH, "report", *map(str, files), "--format", "md", "-o", "-"], check=True,
                          capture_output=True, text=True).stdout
    found, title, header = {}, None, None
    for line in text.splitlines():
        heading = re.fullmatch(r"\*\*(.+)\*\*|<details><summary>(.+)</summary>", line)
        if heading and heading.group(1):
            title = heading.group(1)
        if not line.startswith("| "):
            header = None
            continue
        cells = [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if header is None:
            header = cells
        elif not set(cells[0]) <= set("-: "):
            found.setdefault(title, []).append({name: value for name, value in reversed(list(zip(header, cells)))})
    return found


def titled(found, start):
    return next((table for title, table in found.items() if title.startswith(start)), [])


def number(text):
    return float(re.match(r"[-0-9.e+]+", text).group())


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def short(value):
    return f"{value:.3g}"


def percent(share):
    return f"{100 * share:.0f} %"


def ranks(values):
    """1 for the smallest; equal values have equal ranks."""
    return {name: 1 + sum(other < value for other in values.values()) for name, value in values.items()}


def table(header, body, numbers_from=1):
    lines = ["| " + " | ".join(header) + " |",
             "|" + "|".join("---" if i < numbers_from else "---:" for i in range(len(header))) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in body])


def code(name):
    return f"`{name}`"


def listing(names):
    names = [code(name) for name in names]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def interval(row, column):
    return f"{short(float(row[column]))} [{short(float(row[column + '_lo']))}, {short(float(row[column + '_hi']))}]"


def right_answers_of(row):
    return round(float(row["match"]) * int(row["answers"]))


@functools.cache
def kind(name):
    text = subprocess.run([KVBENCH, "methods", name.partition(" ")[0]], check=True, capture_output=True, text=True)
    return re.search(r"^ *kind +(\w+)", text.stdout, re.M).group(1)


def rounds(name):
    """Whether a method stores entries in fewer bits: a quantiser, or a composition with one."""
    return "+" in name or kind(name) == "quantisation"


def differ(file, a, b, budget):
    """Whether paired tests over documents find that one of two methods has the lower KL: "a", "b" or ""."""
    flags = [part for flag, name in (("--a", a), ("--b", b))
             for part in (flag, f"{name.partition(' ')[0]}[{name.partition(' ')[2]}]@{budget}")]
    out = subprocess.run([KVBENCH, "compare", str(file), *flags, "--metric", "kl", "--format", "csv"], check=True,
                         capture_output=True, text=True).stdout
    [row] = csv.DictReader(out.splitlines())
    return row["verdict"][0] if row["verdict"] in ("a better", "b better") else ""
