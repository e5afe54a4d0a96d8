# SPDX-License-Identifier: Apache-2.0
"""Drives the real kveval on the real model of scripts/fetch-model, or on its first LAYERS layers.

Usage: kveval_test.py KVDUMP PRINT_ARRAY KVEVAL KVBENCH"""

import csv
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time

from eval_harness import KVBENCH, KVEVAL, close, evaluate, harness, kveval, number, rows, text_file

harness.use_environment()
import tiny_model  # noqa: E402

WHOLE, LAYERS = harness.MODEL, 4
harness.MODEL = tiny_model.first_layers(WHOLE, LAYERS)
CONTEXT, SCORE = 320, 24
SMALL = ["--context", CONTEXT, "--score", SCORE]  # of one document of ids
SMALL_TEXT = [*SMALL, "--documents", 1]
SMALL_QUESTIONS = ["--context", CONTEXT, "--documents", 1]  # whose answers are scored
EVERY_METHOD = "all"


def ids_file(folder):
    return harness.write_ids(folder / "ids", CONTEXT + SCORE)


def by_layer(table):
    return {(r["method"], r["params"], int(r["layer"])): r
            for r in table if r["layer"] not in ("", "all") and r["status"] == "ok"}


def whole(table):
    return [r for r in table if r["layer"] == "all"]


def test_exact_equals_the_unmodified_model(folder):
    [row] = evaluate("--text", text_file(folder), "--method", "exact", "--budget", "100%", "--context", 300, "--score",
                     40, "--documents", 1, model=WHOLE)
    assert row["status"] == "ok" and abs(number(row, "nll_diff")) < 1e-5 and number(row, "kl_p99") < 1e-6, row
    assert number(row, "top1") == 1 and number(row, "drift") < 1e-4, row


def test_errors_of_layers_equal_replay(folder):
    """Without injection those of every layer; with it those of the first, which receives the same numbers."""
    ids = ids_file(folder)
    methods = ["--method", "snapkv,h2o,quest,chelsea,uniform,sink", "--budget", "25%", "--seeds", "1"]
    harness.kvdump("--ids", ids, "--ctx", CONTEXT + SCORE, "--prompt-tokens", CONTEXT, "--f32", "-o", folder / "t.h5",
                   model=WHOLE)
    replayed = subprocess.run([KVBENCH, "replay", folder / "t.h5", "--protocol", "decode", "--format", "csv", *methods],
                              capture_output=True, text=True, check=True).stdout
    expected = by_layer(rows(replayed))
    for inject in "none", "all":
        table = evaluate("--ids", ids, *SMALL, *methods, "--inject", inject, "--per-layer", model=WHOLE)
        found = by_layer(table)
        assert len(found) == len(expected) == 6 * 30, (len(found), len(expected))
        for key, row in found.items():
            if inject == "all" and key[2] > 0:
                continue
            for metric in "rel_err_mean", "mass_err_mean", "recall_mean":
                if expected[key][metric]:
                    # Rounding may swap two tokens with nearly equal scores.
                    right = number(expected[key], metric)
                    assert abs(number(row, metric) - right) < 2e-2 * right + 1e-6, (key, metric)
        for row in whole(table):
            assert (number(row, "kl_mean") < 1e-12) == (inject == "none"), row
        if inject == "none":  # kveval has W_O itself, the trace of kvdump a sketch of it
            for name in {key[0] for key in found}:
                ratios = [number(expected[key], "residual_err_mean") / number(found[key], "residual_err")
                          for key in found if key[0] == name]
                assert abs(sum(ratios) / len(ratios) - 1) < 0.03, (name, ratios)
    first = [key for key in expected if key[2] == 0]
    for key in first:
        close(number(found[key], "rel_err_mean"), number(expected[key], "rel_err_mean"), 1e-4)


def test_a_configuration_does_not_see_the_ones_before_it(folder):
    arguments = ["--ids", ids_file(folder), *SMALL, "--budget", "25%", "--per-layer"]
    alone = kveval(*arguments, "--no-times", "--method", "h2o")
    after = kveval(*arguments, "--no-times", "--method", "snapkv,quest,h2o,sink")
    assert set(alone.splitlines()[1:]) <= set(after.splitlines()), (alone, after)


def test_threads_do_not_change_a_byte(folder):
    text = text_file(folder)
    arguments = ["--text", text, *SMALL_TEXT, "--no-times", "--method", "snapkv,h2o,uniform", "--budget", "25%mem",
                 "--per-layer"]
    outputs = {kveval(*arguments, "--threads", threads) for threads in (1, 2, 3)}
    assert len(outputs) == 1


def test_one_at_a_time_equals_the_batch(folder):
    arguments = ["--ids", ids_file(folder), "--context", 96, "--score", 4, "--method", EVERY_METHOD, "--budget", "40%",
                 "--seeds", "1"]
    batch, steps = evaluate(*arguments), evaluate(*arguments, "--one-at-a-time")
    assert len(batch) == len(steps) > 20
    ran = 0
    for a, b in zip(batch, steps):
        assert (a["method"], a["params"], a["status"]) == (b["method"], b["params"], b["status"]), (a, b)
        if a["status"] != "ok":
            continue
        ran += 1
        for name in "nll", "kl_mean", "drift":
            error = abs(number(a, name) - number(b, name))
            # A number of the model that differs in its last bit may get another code, a whole step away.
            allowed = 1e-2 if "+" in a["method"] else 1e-3
            assert error < allowed * abs(number(a, name)) + 1e-6, (a["method"], a["params"], name, a[name], b[name])
    assert ran > 20, ran


def test_a_stream_reads_the_context_through_the_cache(folder):
    """In two batches of the context (512 tokens and the rest), whatever runs beside it."""
    ids, methods = harness.write_ids(folder / "ids", 560 + 8), "exact,sink,snapkv,q8_0,q8_0[queries=q8_0],q4_0"
    common = ["--ids", ids, "--context", 560, "--score", 8, "--budget", "100%mem", "--cells", folder / "cells"]
    decoded = evaluate(*common, "--method", methods, model=WHOLE)
    streamed = evaluate(*common, "--method", methods, "--protocol", "stream", "--resume", model=WHOLE)
    assert {row["protocol"] for row in decoded} == {""} and {row["protocol"] for row in streamed} == {"stream"}
    exact, _, snapkv, q8_0, rounded, _ = streamed
    assert number(exact, "kl_mean") < 1e-6, exact
    assert snapkv["status"] == "skipped" and "not a streaming algorithm" in snapkv["reason"], snapkv
    for row, before in zip(streamed, decoded):
        if row["method"] in ("q8_0", "q4_0"):  # errors of the context reach deeper layers
            assert number(row, "kl_mean") > 1.1 * number(before, "kl_mean"), (row, before)
            for name in "total_bytes", "full_bytes", "budget_tokens", "kept_tokens":
                assert row[name] == before[name], (name, row, before)
    assert number(rounded, "kl_mean") > 1.1 * number(q8_0, "kl_mean"), (rounded, q8_0)
    brief = ["--ids", ids, "--context", 120, "--score", 8, "--budget", "100%mem", "--method", "q4_0,sink",
             "--protocol", "stream"]
    for row, other in zip(evaluate(*brief), evaluate(*brief, "--one-at-a-time"), strict=True):
        close(number(row, "kl_mean"), number(other, "kl_mean"), 1e-2)


def test_a_stream_answers_each_token_of_methods_that_observe(folder):
    """Whatever runs beside them. With room for nearly all tokens h2o changes little."""
    ids = harness.write_ids(folder / "ids", 120 + 8)
    common = ["--ids", ids, "--context", 120, "--score", 8, "--protocol", "stream", "--no-times"]
    alone = kveval(*common, "--method", "h2o", "--budget", "50%").splitlines()
    beside = kveval(*common, "--method", "q8_0,h2o", "--budget", "100%,50%").splitlines()
    assert alone[1] in beside[1:], (alone, beside)
    whole = [row for row in rows("\n".join(beside)) if row["method"] == "h2o" and row["budget"] == "100%"]
    assert number(whole[0], "kl_mean") < 0.02 * number(rows("\n".join(alone))[0], "kl_mean"), beside


def with_bytes(folder, name, old, new):
    """A copy of the model in which one place of its metadata is changed."""
    model = pathlib.Path(harness.MODEL).read_bytes()
    assert len(old) == len(new) and model.count(old) == 1, (old, model.count(old))
    path = folder / name
    path.write_bytes(model.replace(old, new))
    return path


def test_chat_templates(folder):
    arguments = ["--text", text_file(folder), "--task", "passkey,multikey", *SMALL_QUESTIONS, "--questions", 2,
                 "--method", "sink,snapkv", "--budget", "25%", "--layers", "0", "--no-f32"]
    raw, chat = evaluate(*arguments), evaluate(*arguments, "--chat")
    assert [(r["task"], r["method"], r["answers"]) for r in raw] == [(r["task"], r["method"], r["answers"])
                                                                     for r in chat] and len(chat) == 4, chat
    assert all(r["status"] == "ok" for r in chat) and all(a["nll_full"] != b["nll_full"]
                                                          for a, b in zip(raw, chat)), (raw, chat)
    # The BOS token of this model is the one that ChatML begins with; where the tokenizer adds it, there is still one.
    key = b"tokenizer.ggml.add_bos_token" + struct.pack("<I", 7)
    adds_bos = with_bytes(folder, "adds_bos.gguf", key + b"\0", key + b"\1")
    same = lambda rows: [{k: v for k, v in r.items() if k not in ("model", "sha256")} for r in rows]
    assert same(evaluate(*arguments, "--chat", model=adds_bos)) == same(chat)


def test_tasks_whose_statements_are_nearly_equal(folder):
    common = ["--text", text_file(folder), "--documents", 1, "--method", "sink", "--budget", 20, "--layers", "0",
              "--no-f32", "--questions"]
    for form in [2], [1, "--question", "inside"], [2, "--chat"]:
        table = evaluate(*common, *form, "--task", "rules,confusable", "--context", CONTEXT)
        assert [(row["task"], row["status"], row["answers"]) for row in table] == [
            (task, "ok", str(form[0])) for task in ("rules", "confusable")], table
    for task in "rules", "confusable":
        small = kveval(*common, 1, "--task", task, "--context", 60, expect=2)
        assert "--context 60: is too small for the task, which needs at least " in small, small
        least = int(small.split("at least ")[1].split(";")[0])   # which is true
        kveval(*common, 1, "--task", task, "--context", least - 1, expect=2)
        kveval(*common, 1, "--task", task, "--context", least)


def test_what_heads_hold_of_the_needles(folder):
    """sink keeps the first 4 tokens of 320 and the last 188, the same in each head. Of four documents the needle of
    number i begins in the i-th part of the first 288 tokens."""
    table = evaluate("--text", text_file(folder), "--task", "passkey", "--context", CONTEXT, "--documents", 4,
                     "--layers", "0,3", "--no-f32", "--per-document", "--method", "sink,h2o,quest,kmeans,exact",
                     "--budget", 192)
    held = {(row["method"], row["document"]): [row["needle_kept"], row["needle_lost"]] for row in table}
    of = lambda *place: held[place]
    assert [of("sink", f"passkey-{i}") for i in (0, 2, 3)] == [["0", "1"], ["1", "0"], ["1", "0"]], held
    assert of("exact", "all") == ["1", "0"] and of("quest", "all") == of("kmeans", "all") == ["", ""], held
    kept, lost = map(float, of("h2o", "all"))
    assert 0 < kept < 1 and lost < 1 - kept, held


def test_free_answers_as_json(folder):
    common = ["--text", text_file(folder), "--task", "json", "--documents", 1, "--context", 300, "--no-f32",
              "--generate"]
    names = "json_full", "json", "json_cut", "json_verdict"
    [exact] = evaluate(*common, 100, "--method", "exact", "--budget", "100%", model=WHOLE)
    assert [exact[name] for name in names] == ["1", "1", "0", "undecided"], exact
    [brief] = evaluate(*common, 2, "--method", "sink", "--layers", "0")
    assert [brief[name] for name in names] == ["0", "0", "1", "cannot discriminate"], brief
    assert "only 0 are valid JSON, and 1 have too few tokens to end" in brief["verdict_reason"], brief


def test_models_and_tasks_without_a_chat_form(folder):
    arguments = ["--text", text_file(folder), *SMALL_QUESTIONS, "--method", "sink", "--chat"]
    model, key = pathlib.Path(harness.MODEL).read_bytes(), b"tokenizer.chat_template" + struct.pack("<I", 8)
    begin = model.index(key) + len(key) + 8
    template = model[begin:begin + struct.unpack_from("<Q", model, begin - 8)[0]]
    unknown = with_bytes(folder, "unknown.gguf", template, b"{{ messages }}".ljust(len(template)))
    absent = with_bytes(folder, "absent.gguf", b"tokenizer.chat_template", b"tokenizer.chat_absence_")
    for model, task, message in [
        (absent, "passkey", "has no chat template; leave out --chat"),
        (unknown, "passkey", "llama.cpp does not know its chat template; leave out --chat"),
        (None, "text",
         "--chat: task text has no questions, and so no form as a chat; leave --chat out, or choose among passkey, "),
    ]:
        given = kveval(*arguments, "--task", task, model=model, expect=2)
        assert message in given and given.count("\n") == 1, given


def test_instruction_sets(folder):
    arguments = ["--ids", ids_file(folder), *SMALL, "--no-f32", "--method", "snapkv", "--budget", "25%", "--layers",
                 "0"]
    [scalar], [best] = evaluate(*arguments, "--isa", "scalar"), evaluate(*arguments)
    assert scalar["isa"] == "scalar", scalar["isa"]
    close(number(scalar, "kl_mean"), number(best, "kl_mean"), 1e-2)


def sweep_file(folder, *runs):
    path = folder / "s.toml"
    path.write_text('[defaults]\ntraces = ["absent.h5"]\nlayers = [0, 3]\nprotect = [2, 4]\nseeds = [5]\n' +
                    "".join(f"[[run]]\n{run}\n" for run in runs))
    return path


def test_sweep_files(folder):
    arguments = ["--ids", ids_file(folder), *SMALL, "--no-f32"]
    path = sweep_file(folder, 'methods = ["uniform", "sink"]\nbudgets = ["25%", 40]\nexclude = [{ method = "sink", '
                      'budget = 40 }]\ndevice = ["cuda", "cpu"]', 'measure = ["clusterability"]\nlayers = [2]',
                      'methods = [{ name = "sink", sinks = 2 }, "uniform"]\nbudgets = [40]\nprotocol = "stream"')
    given = ["--layers", "3,0", "--protect", "2,4", "--seeds", "5-5"]
    expected = [row for methods, budget in (("uniform", "25%,40"), ("sink", "25%"), ("sink[sinks=2]", "40"))
                for row in kveval(*arguments, "--no-times", *given, "--method", methods, "--budget",
                                  budget).splitlines()[1:]]
    assert kveval(*arguments, "--no-times", "--sweep",
                  path).splitlines()[1:] == expected and len(expected) == 4, expected
    column = list(csv.reader(expected[:1]))[0].index("25%")
    quarter = [row for row in expected if next(csv.reader([row]))[column] == "25%"]
    assert len(quarter) == 2 and kveval(*arguments, "--no-times", "--sweep", path, "--budget",
                                        "25%").splitlines()[1:] == quarter, expected


def test_a_sweep_file_with_a_layer_that_is_not_there(folder):
    message = kveval("--ids", ids_file(folder), *SMALL, "--sweep", sweep_file(
        folder, 'methods = ["sink"]\nlayers = [99]'), expect=2)
    assert message.startswith(f"kveval: {folder}/s.toml: there is no layer 99"), message


def test_injection_modes(folder):
    arguments = ["--ids", ids_file(folder), *SMALL, "--method", "sink", "--budget", "25%", "--layers", "0,3"]
    everything = whole(evaluate(*arguments))
    one = whole(evaluate(*arguments, "--inject", "one"))
    upto = whole(evaluate(*arguments, "--inject", "upto"))
    assert [r["inject_layer"] for r in one] == [r["inject_layer"] for r in upto] == ["0", "3"]
    assert one[0]["kl_mean"] == upto[0]["kl_mean"] and everything[0]["kl_mean"] == upto[1]["kl_mean"]
    assert one[1]["kl_mean"] not in (everything[0]["kl_mean"], one[0]["kl_mean"])


def test_a_scaled_error_does_damage_by_its_square(folder):
    """KL / eps^2 has a limit as eps falls, from which it is far at 1."""
    arguments = ["--ids", ids_file(folder), *SMALL, "--method", "sink", "--budget", "25%"]
    limit = {}
    for scale in (1, 0.1, 0.05):
        row, = whole(evaluate(*arguments, "--inject-scale", scale))
        assert number(row, "inject_scale") == scale
        limit[scale] = number(row, "kl_mean") / scale**2
    assert abs(limit[0.05] / limit[0.1] - 1) < 0.1, limit
    assert abs(limit[1] / limit[0.05] - 1) > 0.15, limit
    same, = whole(evaluate(*arguments))
    assert number(same, "kl_mean") == limit[1]


def test_layers_that_are_not_compressed_are_held(folder):
    arguments = ["--ids", ids_file(folder), *SMALL, "--no-f32", "--method", "exact,snapkv", "--budget", "25%"]
    for flags, layers, compressed in [([], "0-3", 4), (["--layers", "0-1,3"], "0-1,3", 3),
                                      (["--layers", "0-2", "--dense-layers", 2], "2", 1)]:
        exact, snapkv = evaluate(*arguments, *flags)
        full, all_layers = number(exact, "full_bytes"), 26624   # of snapkv where it compresses every layer
        assert number(exact, "total_bytes") == number(exact, "bytes_read") == full, exact
        held = (compressed * all_layers + (LAYERS - compressed) * full) / LAYERS
        close(number(snapkv, "total_bytes"), held, 1e-9)
        close(number(snapkv, "bytes_read"), held, 1e-9)
        assert [snapkv[key] for key in ("method_layers", "compressed_layers", "model_layers")] == [
            layers, str(compressed), str(LAYERS)], snapkv
    none = evaluate(*arguments, "--layers", "0,2", "--dense-layers", 3)
    assert all(row["status"] == "skipped" and "kept whole" in row["reason"] for row in none), none


def test_bad_input_is_named(folder):
    text, short = text_file(folder), text_file(folder, "short.txt", lines=3)
    arguments = ["--method", "sink", "--score", 8]
    few = folder / "few.ids"
    few.write_text("1 2 3")
    latin = folder / "latin.txt"
    latin.write_bytes(b"one\ncaf\xe9\n")
    for words, given in [
        (["there is no such file"], ["--text", folder / "none.txt"]),
        (["trained on 8192 tokens", "--context"], ["--text", text, "--context", 9000]),
        (["short.txt"], ["--text", short, "--context", 2000]),
        (["--protocol prefill", "give decode or stream"], ["--text", text, "--protocol", "prefill"]),
        (["--protect must be left out"], ["--text", text, "--context", 64, "--documents", 1, "--protocol", "stream",
                                          "--protect", "4,4"]),
        ([f"there is no layer {LAYERS}"], ["--text", text, "--layers", LAYERS]),
        (["--memory allows"], ["--text", text, "--memory", "100M"]),
        (["is not a token id"], ["--ids", short]),
        (["has 3 token ids"], ["--ids", few]),
        (["latin.txt:2: byte 8 of the file (0xe9) is not UTF-8 text"], ["--text", latin]),
    ]:
        message = kveval(*arguments, *given, expect=2)
        assert message.startswith("kveval: ") and message.count("\n") == 1, message
        for word in words:
            assert word in message, (word, message)
    assert "/dev/full" in kveval("--text", text, *arguments, "--context", 64, "-o", "/dev/full", expect=3)
    assert sorted(p.name for p in folder.iterdir()) == ["book.txt", "few.ids", "latin.txt", "short.txt"]


def test_signals_leave_finished_cells_alone(folder):
    out = folder / "out"
    out.mkdir()
    command = [KVEVAL, WHOLE, "--text", text_file(folder), "--method", "h2o", "--context", "3000", "-o",
               out / "e.csv", "--overwrite"]
    for delay in 1, 4:
        process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=60)
        assert process.returncode == 130 and "interrupted" in message, (process.returncode, message)
        left = [path.name for path in out.iterdir()]
        assert left == (["e.csv.cells"] if "--resume" in message else []), (left, message)


def test_a_killed_run_is_resumed(folder):
    """The output is that of a run without interruption, and finished cells are not computed again."""
    out, cells = folder / "e.csv", folder / "e.csv.cells"
    arguments = ["--text", text_file(folder), "--context", 320, "--score", 24, "--documents", 2, "--method",
                 "sink,h2o,uniform,chelsea", "--budget", "25%,12.5%", "--seeds", 2, "--per-document", "--per-layer",
                 "--no-times"]
    expected = kveval(*arguments)
    process = subprocess.Popen(list(map(str, [KVEVAL, harness.MODEL, *arguments, "-o", out])), stderr=subprocess.PIPE,
                               text=True)
    while process.poll() is None and (not cells.exists() or cells.stat().st_size < 30000):
        time.sleep(0.05)
    process.kill()
    process.communicate()
    finished = cells.stat().st_size
    assert not out.exists() and finished > 20000, finished
    assert "--resume" in kveval(*arguments, "-o", out, expect=2)
    with cells.open("ab") as file:   # the kill came in the middle of a frame
        file.write(b"half a frame")
    log = kveval(*arguments, "-o", out, "--resume", "--cells", cells)
    assert out.read_text() == expected, log
    assert cells.stat().st_size > finished
    start = time.monotonic()
    kveval(*arguments, "-o", folder / "again.csv", "--resume", "--cells", cells)
    again = time.monotonic() - start
    assert (folder / "again.csv").read_text() == expected and again < 10, again


def test_kvbench_eval_runs_it(folder):
    listed = subprocess.run([KVBENCH, "eval", "--list-tasks"], capture_output=True, text=True)
    assert listed.returncode == 0 and "passkey" in listed.stdout, listed
    failed = subprocess.run([KVBENCH, "eval", folder / "none.gguf", "--text", "x", "--method", "sink"],
                            capture_output=True, text=True)
    assert failed.returncode == 2 and failed.stderr.startswith("kveval: "), failed
    alone = folder / "kvbench"
    shutil.copy(KVBENCH, alone)
    absent = subprocess.run([alone, "eval", "m.gguf"], capture_output=True, text=True,
                            env=os.environ | {"PATH": "/nowhere"})
    assert absent.returncode == 2 and "scripts/fetch-model" in absent.stderr, absent


harness.run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
