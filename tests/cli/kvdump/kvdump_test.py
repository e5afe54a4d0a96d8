# SPDX-License-Identifier: Apache-2.0
"""Drives the real kvdump on the real model of scripts/fetch-model, or on its first LAYERS layers."""

import json
import math
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time

import harness
from harness import KVDUMP, Trace, difference, kvdump, run_tests, token_ids, write_ids

harness.use_environment()
import numpy  # noqa: E402
import tiny_model  # noqa: E402

D, QUERY_HEADS, KV_HEADS = 64, 9, 3  # of the model
GROUP = QUERY_HEADS // KV_HEADS
WHOLE, LAYERS = harness.MODEL, 4
harness.MODEL = tiny_model.first_layers(WHOLE, LAYERS)


def dump(folder, name, *arguments, tokens=64, layers="0", model=None):
    """A small dump of generated token ids."""
    ids = write_ids(folder / f"ids{tokens}", tokens)
    output = folder / f"{name}.h5"
    kvdump("--ids", ids, "--layers", layers, "-o", output, *arguments, model=model)
    return Trace(output)


def test_shapes_and_description(folder):
    trace = dump(folder, "t", tokens=512, layers="0,29", model=WHOLE)
    info, prompt = trace.info, trace.info["prompts"][0]
    assert (info["arch"], info["quantisation"], info["num_layers"], info["dtype"]) == ("llama", "Q4_1, Q8_0", 30, "f32")
    assert (info["query_heads"], info["kv_heads"], info["d"], info["dv"]) == (QUERY_HEADS, KV_HEADS, D, D)
    assert (info["rope_type"], info["rope_layout"]) == ("default", "interleaved")
    assert prompt["layers"] == [0, 29] and prompt["n"] == 512 and prompt["prompt_tokens"] == 384
    assert prompt["tokens"] == token_ids(512)
    assert prompt["positions"] == list(range(256, 512))
    assert prompt["scale"] == 0.125 and prompt["theta"] == 100000 and prompt["window"] == 0 and prompt["softcap"] == 0
    for layer in 0, 29:
        assert len(trace.array("keys", layer)) == len(trace.array("values", layer)) == KV_HEADS * 512 * D
        assert len(trace.array("queries", layer)) == QUERY_HEADS * 256 * D
    assert difference(trace.array("keys", 0), trace.array("keys", 29)) > 0.1


def test_queries_option(folder):
    expected = {"last:5": range(59, 64), "all": range(64), "every:20": (3, 23, 43, 63), "decode:4": range(64)}
    for number, (spec, positions) in enumerate(expected.items()):
        trace = dump(folder, str(number), "--queries", spec)
        assert trace.info["prompts"][0]["positions"] == list(positions), spec
    everything, last = Trace(folder / "1.h5").array("queries"), Trace(folder / "0.h5").array("queries")
    for head in range(QUERY_HEADS):
        rows = everything[(head * 64 + 59) * D : (head + 1) * 64 * D]
        assert rows == last[head * 5 * D : (head + 1) * 5 * D]
    trace = dump(folder, "prompt", "--prompt-tokens", 200, tokens=256)
    assert trace.info["prompts"][0]["positions"] == list(range(72, 256))


def test_conversations(folder):
    """The last answer follows the context, in which each message is a span; a line break stands behind each text."""
    def message(role, content, **more):
        return dict(role=role, content=content, **more)

    question, answer = token_ids(40), token_ids(9, 1)
    (folder / "talk.jsonl").write_text(json.dumps([message("user", "Hi there"), message("user", question, span="own"),
                                                   message("assistant", answer)]))
    (folder / "t").write_text("Hi there\n")
    kvdump("--text", folder / "t", "--tokens-only", "-o", folder / "ids")
    text = [*map(int, (folder / "ids").read_text().split())]
    flags = ["--layers", "0", "-q"]
    kvdump("--transcripts", folder / "talk.jsonl", *flags, "-o", folder / "t.h5")
    trace, context = Trace(folder / "t.h5"), len(text) + 40
    prompt = trace.info["prompts"][0]
    assert (prompt["name"], prompt["prompt_tokens"]) == ("talk-0", context), prompt
    assert prompt["tokens"] == [*text, *question, *answer], prompt
    assert prompt["spans"] == [f"0 {len(text)} user", f"{len(text)} {context} own"], prompt
    (folder / "ids").write_text(" ".join(map(str, prompt["tokens"])))
    kvdump("--ids", folder / "ids", "--prompt-tokens", context, *flags, "-o", folder / "ids.h5")
    same = Trace(folder / "ids.h5")
    assert not same.info["prompts"][0]["spans"]
    for array in "keys", "queries":
        assert trace.array(array) == same.array(array), array
    for last, says in ((message("user", [1]), "its last message must be an answer"),
                       (message("assistant", [1], span="a, b"), "'a, b' of a span")):
        (folder / "talk.jsonl").write_text(json.dumps([message("user", question), last]))
        assert says in kvdump("--transcripts", folder / "talk.jsonl", *flags, "-o", folder / "x.h5", expect=2), says
    messages = [message("user", question), message("assistant", answer)] * 2
    (folder / "talk.jsonl").write_text(json.dumps(messages))
    kvdump("--transcripts", folder / "talk.jsonl", "--chat", *flags, "-o", folder / "chat.h5")
    prompt, IM_START, IM_END = Trace(folder / "chat.h5").info["prompts"][0], 1, 2   # ChatML
    spans = [[*map(int, span.split()[:2])] for span in prompt["spans"]]
    assert prompt["tokens"][0] == IM_START and prompt["tokens"][prompt["prompt_tokens"]:] == answer, prompt
    assert len(spans) == 3 and all(prompt["tokens"][begin] == IM_END for begin, _ in spans[1:]), prompt
    assert [prompt["tokens"][:end][-len(one):] for (_, end), one in zip(spans, (question, answer, question))] \
        == [question, answer, question], prompt
    (folder / "talk.jsonl").write_text(json.dumps([message("user", question), *messages]))
    says = kvdump("--transcripts", folder / "talk.jsonl", "--chat", *flags, "-o", folder / "x.h5", expect=2)
    assert "do not alternate" in says, says


def test_speculated_queries(folder):
    """The layer before need not be recorded, layer 0 has none before it, and batches and steps do not matter."""
    batch = dump(folder, "batch", "--queries", "all", "--speculated", tokens=96, layers="0,3")
    assert batch.info["prompts"][0]["speculated"] == [False, True], batch.info["prompts"][0]
    guess, query = batch.array("speculated_queries", 3), batch.array("queries", 3)
    assert len(guess) == len(query) and 0.05 < difference(guess, query) < 0.9, difference(guess, query)
    steps = dump(folder, "steps", "--queries", "decode:16", "--speculated", tokens=96, layers="3")
    assert difference(steps.array("speculated_queries", 3), guess) < 1e-4
    plain = dump(folder, "plain", "--queries", "all", tokens=96, layers="0,3")
    assert plain.info["prompts"][0]["speculated"] == [False, False]
    assert plain.array("queries", 3) == query


def test_decode_steps_equal_the_batch(folder):
    batch = dump(folder, "batch", "--queries", "all", tokens=96, layers="0,3")
    steps = dump(folder, "steps", "--queries", "decode:16", tokens=96, layers="0,3")
    assert steps.info["prompts"][0]["prompt_tokens"] == 80
    assert batch.info["prompts"][0]["positions"] == steps.info["prompts"][0]["positions"]
    for layer in 0, 3:
        for name in "keys", "values", "queries":
            assert difference(steps.array(name, layer), batch.array(name, layer)) < 1e-4, (layer, name)


def test_prompts_longer_than_a_batch(folder):
    whole = dump(folder, "whole", "--queries", "last:8", tokens=600)
    assert len(whole.array("keys")) == KV_HEADS * 600 * D
    again = dump(folder, "again", "--queries", "decode:8", tokens=600)
    assert difference(again.array("keys"), whole.array("keys")) < 1e-4


def test_pre_rope_rotates_to_post_rope(folder):
    trace = dump(folder, "t", "--pre-rope", "--queries", "every:9")
    positions = trace.info["prompts"][0]["positions"]
    assert difference(rotated(trace.array("keys_pre_rope"), range(64)), trace.array("keys")) < 1e-6
    assert difference(rotated(trace.array("queries_pre_rope"), positions), trace.array("queries")) < 1e-6


def rotated(rows, positions):
    """Rotary embedding on adjacent pairs, as rope_layout = interleaved says."""
    z = numpy.reshape(rows, (-1, len(positions), D // 2, 2)) @ [1, 1j]
    z *= numpy.exp(1j * numpy.outer(positions, 1e5 ** (-numpy.arange(0, D, 2) / D)))
    return numpy.stack([z.real, z.imag], -1).ravel()


def softmax_rows(trace, layer, head, n):
    """Attention weights of every query (stored with --queries all) of one head."""
    keys, queries = trace.array("keys", layer), trace.array("queries", layer)
    k = [keys[((head // GROUP) * n + j) * D :][:D] for j in range(n)]
    for i in range(n):
        q = queries[(head * n + i) * D :][:D]
        weights = [math.exp(0.125 * sum(x * y for x, y in zip(q, k[j]))) for j in range(i + 1)]
        total = sum(weights)
        yield [weight / total for weight in weights]


def test_column_sums_and_attention_output(folder):
    n, end, head = 64, 48, 4
    trace = dump(folder, "t", "--queries", "all", "--attention-output", layers="0,3")
    assert trace.info["prompts"][0]["column_sums_end"] == end
    assert dump(folder, "bare", "--no-column-sums").info["prompts"][0]["column_sums_end"] == -1
    for layer in 0, 3:
        sums, output = [0.0] * n, []
        values = trace.array("values", layer)
        for i, weights in enumerate(softmax_rows(trace, layer, head, n)):
            for j, weight in enumerate(weights):
                sums[j] += weight if i < end else 0
            base = (head // GROUP) * n
            output += [sum(w * values[(base + j) * D + c] for j, w in enumerate(weights)) for c in range(D)]
        stored = trace.array("column_sums", layer)
        assert len(stored) == QUERY_HEADS * n
        assert difference(stored[head * n : (head + 1) * n], sums) < 1e-5
        assert all(x == 0 for x in stored[head * n + end : (head + 1) * n])
        for h in range(QUERY_HEADS):
            assert abs(sum(stored[h * n : (h + 1) * n]) - end) < 1e-3
        stored = trace.array("attention_output", layer)
        assert difference(stored[head * n * D : (head + 1) * n * D], output) < 1e-5


def test_element_types(folder):
    exact = dump(folder, "f32").array("keys")
    half = dump(folder, "f16", "--dtype", "f16")
    assert half.info["dtype"] == "f16"
    assert list(half.array("keys")) == [struct.unpack("e", struct.pack("e", x))[0] for x in exact]
    brain = dump(folder, "bf16", "--dtype", "bf16").array("keys")
    assert max(abs(x - y) / abs(y) for x, y in zip(brain, exact) if y) <= 2**-8
    squeezed = dump(folder, "packed", "--compress")
    assert squeezed.array("keys") == exact


def test_several_prompts_and_text(folder):
    text = folder / "story.txt"
    text.write_text("In the beginning was the word. " * 9)
    kvdump("--ids", write_ids(folder / "a", 40, 1), "--ids", write_ids(folder / "b", 80, 2), "--text", text, "--layers",
           "2", "-o", folder / "all.h5")
    kvdump("--ids", folder / "a", "--layers", "2", "-o", folder / "a.h5")
    trace = Trace(folder / "all.h5")
    assert [p["name"] for p in trace.info["prompts"]] == ["story", "a", "b"]
    assert [p["n"] for p in trace.info["prompts"]] == [64, 40, 80]
    assert trace.array("keys", 2, 1) == Trace(folder / "a.h5").array("keys", 2)


def test_tokens_without_a_run(folder):
    texts = [folder / "one", folder / "two"]
    for number, text in enumerate(texts, 9):
        text.write_text("In the beginning was the word.\n" * number)
    flags = [word for text in texts for word in ("--text", text)]
    kvdump(*flags, "--tokens-only", "-o", folder / "tokens")
    kvdump(*flags, "--layers", "0", "-o", folder / "t.h5")
    for flag in ["--f32"], ["--threads", 1], ["--no-column-sums"], ["--no-sketch"], ["--no-check"]:
        said = kvdump(*flags, *flag, "--tokens-only", "--force", "-o", folder / "tokens")
        assert f"{flag[0]} has no effect beside --tokens-only" in said, said
    lines = [[int(item) for item in line.split()] for line in (folder / "tokens").read_text().splitlines()]
    assert lines == [prompt["tokens"] for prompt in Trace(folder / "t.h5").info["prompts"]], lines


def test_same_command_same_bytes(folder):
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    first = pathlib.Path(dump(folder, "first", "--threads", 1).path).read_bytes()
    second = pathlib.Path(dump(folder, "second", "--threads", 2).path).read_bytes()
    del os.environ["SOURCE_DATE_EPOCH"]
    assert first == second


def test_bad_input_is_named(folder):
    ids, output = write_ids(folder / "ids", 32), folder / "t.h5"
    (folder / "word").write_text("12 x3 4")
    (folder / "large").write_text("1 2 999999")
    (folder / "empty").write_text("")
    cases = [
        ("there is no such file", ["--text", "nowhere.txt"]),
        ("is a folder; name a text file", ["--text", folder]),
        ("'x3' (item 2) is not a token id", ["--ids", folder / "word"]),
        ("'999999' (item 3) is not a token id", ["--ids", folder / "large"]),
        ("a prompt of 0 tokens is too short", ["--ids", folder / "empty"]),
        ("--ctx 64 is more than its 32 tokens", ["--ids", ids, "--ctx", 64]),
        ("was trained on 8192 tokens", ["--ids", ids, "--ctx", 9000]),
        ("--prompt-tokens 33 exceeds the 32 tokens", ["--ids", ids, "--prompt-tokens", 33]),
        ("there is no layer 4; this model has layers 0 to 3", ["--ids", ids, "--layers", "0,4"]),
        ("which leaves no context", ["--ids", ids, "--queries", "decode:32"]),
        ("there is no such file", ["--text", "nowhere.txt", "--tokens-only"]),
    ]
    for sentence, arguments in cases:
        message = kvdump(*arguments, "-o", output, expect=2)
        assert sentence in message and message.count("\n") == 1, message
        assert not output.exists() and not list(folder.glob("*.tmp.*"))


def test_output_is_guarded(folder):
    ids, output = write_ids(folder / "ids", 32), folder / "t.h5"
    output.write_text("precious")
    assert "--force" in kvdump("--ids", ids, "-o", output, expect=2)
    assert output.read_text() == "precious"
    kvdump("--ids", ids, "--layers", "0", "-o", output, "--force")
    assert Trace(output).info["prompts"][0]["n"] == 32
    os.link(ids, folder / "linked")
    assert "name another file" in kvdump("--ids", ids, "-o", folder / "linked", "--force", expect=2)
    if os.path.isdir("/proc"):
        kvdump("--ids", ids, "--layers", "0", "-o", "/proc/t.h5", expect=3)


def start_long_dump(folder):
    """Starts a dump of two prompts, and waits until the trace is begun: after the first, longer prompt, while the
    second is decoded."""
    arguments = ["--ids", write_ids(folder / "a", 300), "--ids", write_ids(folder / "b", 290), "--queries",
                 "decode:250"]
    command = [KVDUMP, harness.MODEL, *arguments, "--no-check", "--layers", "0", "-o", str(folder / "t.h5")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.time() + 300
    while not list(folder.glob("t.h5.tmp.*")):
        assert process.poll() is None, "the dump ended before the trace was begun: " + process.stderr.read()
        assert time.time() < deadline
        time.sleep(0.01)
    return process


def test_signals_leave_nothing(folder):
    for number in signal.SIGINT, signal.SIGTERM:
        process = start_long_dump(folder)
        process.send_signal(number)
        message = process.communicate(timeout=60)[1]
        assert process.returncode == 130 and "interrupted" in message, (process.returncode, message)
        assert not list(folder.glob("t.h5*")), list(folder.iterdir())


def test_kill_leaves_no_final_file(folder):
    process = start_long_dump(folder)
    process.kill()
    process.communicate(timeout=60)
    assert not (folder / "t.h5").exists()
    assert [p.name for p in folder.glob("t.h5*")] == [f"t.h5.tmp.{socket.gethostname()}.{process.pid}"]


def test_quiet_where_nobody_watches(folder):
    ids = write_ids(folder / "ids", 32)
    line = kvdump("--ids", ids, "--layers", "0", "-o", folder / "a.h5")
    assert line.count("\n") == 1 and "\r" not in line and "largest difference" in line, line
    assert kvdump("--ids", ids, "--layers", "0", "-o", folder / "b.h5", "--quiet") == ""


if __name__ == "__main__":
    run_tests([test for name, test in list(globals().items()) if name.startswith("test_")])
