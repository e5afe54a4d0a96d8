# SPDX-License-Identifier: Apache-2.0
"""kveval --context with several lengths, on a small model: the same tokens are scored behind each, rows are those of
runs with one length, and the verdict is the one that follows from the rows.

Usage: kveval_lengths_test.py KVDUMP PRINT_ARRAY KVEVAL KVBENCH"""

import csv
import math
import statistics
import subprocess

from eval_harness import KVBENCH, evaluate, harness, kveval, number, rows

harness.use_environment()
import tiny_model as tiny  # noqa: E402

LENGTHS, SCORE, DOCUMENTS = (32, 64, 128), 16, 3
FLAGS = ["--score", SCORE, "--method", "sink,h2o,q4_0,random", "--budget", "40%mem,24", "--seeds", 2, "--no-f32",
         "--no-times", "--per-document"]
TOO_FEW_BITS = "q4_0", "24"   # formats hold all tokens: infeasible at every length
STUDENT_2 = 4.302652729911275   # 97.5 % quantile with two degrees of freedom


def model_of(folder):
    return tiny.write(folder / "m.gguf", "llama", tiny.LLAMA, 2, {"rope.freq_base": 1e4})


def ids_files(folder, tokens=LENGTHS[-1] + SCORE):
    """Flags that name the files of documents."""
    folder.mkdir(exist_ok=True)
    for number_of in range(DOCUMENTS):
        ids = ((i * i * 31 + i * (7 + number_of) + 97 * number_of) % tiny.VOCAB for i in range(tokens))
        (folder / f"text{number_of}.ids").write_text(" ".join(map(str, ids)))
    return [word for path in sorted(folder.iterdir()) for word in ("--ids", path)]


def listed(lengths=LENGTHS):
    return ["--context", ",".join(map(str, lengths))]


def test_each_length_has_the_rows_of_a_run_with_its_documents(folder):
    model, ids = model_of(folder), ids_files(folder / "ids")
    table = kveval(*FLAGS, *ids, *listed(), model=model)
    lines = list(csv.reader(table.splitlines()))
    context = lines[0].index("context_tokens")
    for length in LENGTHS:
        short = folder / str(length)
        short.mkdir()
        for path in ids[1::2]:
            kept = path.read_text().split()[LENGTHS[-1] - length:]
            (short / path.name).write_text(" ".join(kept))
        flags = [word for path in sorted(short.iterdir()) for word in ("--ids", path)]
        alone = kveval(*FLAGS, *flags, "--context", length, model=model)
        # tokens, digests and the full model's probabilities too
        assert [line for line in lines[1:] if line[context] == str(length)] == list(
            csv.reader(alone.splitlines()))[1:], length
    assert kveval(*FLAGS, *ids, *listed(LENGTHS[::-1]), model=model) == table   # in any order
    by_document = {}
    for row in rows(table):
        by_document.setdefault(row["document"], set()).add(row["scored_sha256"])
    assert by_document.pop("all") == {""}
    assert all(len(digests) == 1 for digests in by_document.values()) and len(by_document) == DOCUMENTS, by_document
    assert len(set.union(*by_document.values())) == DOCUMENTS, by_document


def test_the_verdict_follows_from_the_rows(folder):
    """Slopes of ln KL over log2 of the length by the normal equations, and Student's t of three of them."""
    model, out = model_of(folder), folder / "e.csv"
    kveval(*FLAGS, *ids_files(folder / "ids"), *listed(), "-o", out, model=model)
    page = folder / "e.md"
    subprocess.run([KVBENCH, "report", out, "-o", page], check=True, capture_output=True)
    text = " ".join(page.read_text().split())
    curves = {}
    for row in rows(out.read_text()):
        if row["document"] != "all" and (row["method"], row["budget"]) != TOO_FEW_BITS:
            name = row["method"] + (f" {row['params']}" if row["params"] else "")
            curve = curves.setdefault((name, row["budget"]), {}).setdefault(row["document"], {})
            curve[math.log2(number(row, "context_tokens"))] = math.log(number(row, "kl_mean"))
    assert len(curves) == 7, curves.keys()
    verdicts = set()
    for (name, budget), documents in curves.items():
        slopes = []
        for curve in documents.values():
            x, y = list(curve), list(curve.values())
            middle = statistics.mean(x)
            slopes.append(sum((a - middle) * b for a, b in zip(x, y)) / sum((a - middle)**2 for a in x))
        half = STUDENT_2 * statistics.stdev(slopes) / math.sqrt(DOCUMENTS)
        factor, lo, hi = (math.exp(statistics.mean(slopes) + end) for end in (0, -half, half))
        verdict = ("grows" if lo > 1 else "shrinks" if hi < 1 else "does not grow" if hi <= 1.1 else "cannot tell")
        verdicts.add(verdict)
        line = next(one for one in page.read_text().splitlines()
                    if one.startswith(f"| {name} | {budget} |") and one.count("|") == 8)
        interval, said = (cell.strip() for cell in line.split("|")[-3:-1])
        assert said == verdict, (line, verdict)
        for a, b in zip(interval.replace("[", "").replace(",", "").replace("]", "").split(), (factor, lo, hi)):
            assert abs(float(a) - b) < 6e-3 * b, (line, factor, lo, hi)
    assert "per doubling of the context" in text and len(verdicts) > 1, verdicts


def test_a_run_is_resumed_with_more_lengths(folder):
    model, ids, cells = model_of(folder), ids_files(folder / "ids"), folder / "cells"
    expected = kveval(*FLAGS, *ids, *listed(), model=model)
    two = kveval(*FLAGS, *ids, *listed(LENGTHS[1:]), "--cells", cells, model=model)
    size = cells.stat().st_size
    assert kveval(*FLAGS, *ids, *listed(), "--cells", cells, "--resume", model=model) == expected
    grown = cells.stat().st_size
    assert grown > size and set(two.splitlines()) <= set(expected.splitlines())
    assert kveval(*FLAGS, *ids, *listed(LENGTHS[:1] + LENGTHS[2:]), "--cells", cells, "--resume",
                  model=model).count("\n") > 1
    assert cells.stat().st_size == grown   # nothing was computed again


def test_lengths_beyond_the_models_training_are_skipped(folder):
    """The model was trained on 512 tokens; the other lengths have their rows, and the verdict is about them."""
    model, ids = model_of(folder), ids_files(folder / "ids", 512 + SCORE)
    table = evaluate(*FLAGS, *ids, "--context", "64,128,512", model=model)
    for row in table:
        long = row["context_tokens"] == "512"
        fits = (row["method"], row["budget"]) != TOO_FEW_BITS
        assert row["status"] == ("skipped" if long else "ok" if fits else "infeasible"), row
        assert ("528 tokens, and the model was trained on 512" in row["reason"]) == long, row
    text = kveval(*FLAGS, *ids, "--context", "64,128,512", "--format", "table", model=model)
    assert "64 to 128 tokens, 3 documents" in " ".join(text.split()), text
    refused = kveval(*FLAGS, *ids, "--context", "512,600", model=model, expect=2)
    assert "--context 512 and --score 16" in refused and "trained on 512 tokens" in refused, refused


harness.run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
