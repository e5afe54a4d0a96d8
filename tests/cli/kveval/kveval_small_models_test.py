# SPDX-License-Identifier: Apache-2.0
"""A forward pass in NumPy with compressed caches gives the same figures; layers with sliding windows stay exact; what
kvdump refuses is refused with the same message.

Usage: kveval_small_models_test.py KVDUMP PRINT_ARRAY KVEVAL KVBENCH"""

import os
import shutil
import subprocess

import eval_harness
from eval_harness import evaluate, harness, kveval, number

harness.use_environment()
import h5py  # noqa: E402
import numpy  # noqa: E402
import tiny_model as tiny  # noqa: E402
from float_reference import Llama  # noqa: E402

SMALL = ["--context", 80, "--score", 16, "--budget", "25%", "--method", "sink", "--per-layer", "--no-f32"]


def ids_file(folder):
    path = folder / "ids"
    path.write_text(" ".join(str((i * i * 31 + i * 7) % tiny.VOCAB) for i in range(100)))
    return path


class SinkLlama(Llama):
    """Queries after the context see the first `sinks` and the last `recent` tokens in every layer."""

    def __init__(self, path, context, sinks, recent):
        super().__init__(path)
        self.context, self.sinks, self.recent = context, sinks, recent

    def attend(self, q, k, v):
        n = q.shape[1]
        row, column = numpy.indices((n, n))
        seen = (column <= row) & ((row < self.context) | (column < self.sinks) | (column > row - self.recent))
        group = self.heads // self.kv_heads
        logits = q @ k.repeat(group, 0).transpose(0, 2, 1) / numpy.sqrt(q.shape[-1])
        weights = numpy.where(seen, numpy.exp(logits), 0)
        return weights / weights.sum(-1, keepdims=True) @ v.repeat(group, 0)


def test_a_forward_pass_in_numpy_with_compressed_caches(folder):
    model = tiny.write(folder / "m.gguf", "llama", tiny.LLAMA, 2, {"rope.freq_base": 1e4})
    context, score, budget = 80, 16, 20
    ids = ids_file(folder)
    tokens = [int(t) for t in ids.read_text().split()][:context + score]
    [row] = evaluate("--ids", ids, "--context", context, "--score", score, "--budget", budget, "--no-f32",
                     "--method", "sink[sinks=3,reposition=false]", "--raw", folder / "raw.h5", model=model)
    full = SinkLlama(model, context, 0, context + score).log_probabilities(tokens, 2)[context:-1]
    short = SinkLlama(model, context, 3, budget - 3).log_probabilities(tokens, 2)[context:-1]
    true = tokens[context + 1:]
    expected = {"nll_full": -full[range(score - 1), true].mean(), "nll": -short[range(score - 1), true].mean(),
                "kl_mean": (numpy.exp(full) * (full - short)).sum(-1).mean(),
                "tv": numpy.abs(numpy.exp(full) - numpy.exp(short)).sum(-1).mean() / 2}
    for name, value in expected.items():
        assert abs(number(row, name) - value) < 1e-5 * max(1, abs(value)), (name, row[name], value)
    assert expected["kl_mean"] > 1e-3, expected
    with h5py.File(folder / "raw.h5") as raw:   # the same per token
        [result], [document] = raw["results"].values(), raw["documents"].values()
        assert document["scored"][:].tolist() == tokens[context:], dict(raw.attrs)
        assert raw["cells/0"].attrs["method"].decode() == "sink", dict(raw.attrs)
        for name, values in {"nll_full": -full[range(score - 1), true], "nll": -short[range(score - 1), true],
                             "kl": (numpy.exp(full) * (full - short)).sum(-1)}.items():
            assert numpy.abs(result[name][:] - values).max() < 1e-4, (name, result[name][:], values)
        assert (result["same_top"][:] == (full.argmax(-1) == short.argmax(-1))).all()
        assert (result["right_full"][:] == (full.argmax(-1) == true)).all() and result["layers"][:].tolist() == [0, 1]
        metric = raw.attrs["metrics"].decode().split(",").index("rel_err")
        assert abs(result["metrics"][:, metric].mean() - number(row, "rel_err_mean")) < 1e-6


def test_a_hybrid_model_in_numpy(folder):
    """Its recurrent layers go on from their state behind the context in each pass, whatever passed before."""
    model = tiny.hybrid(folder / "m.gguf")
    context, score, budget = 80, 16, 20
    ids = ids_file(folder)
    tokens = [int(t) for t in ids.read_text().split()][:context + score]
    flags = ["--ids", ids, "--context", context, "--no-f32"]
    scored = ["--score", score]
    methods = "q4_0,sink[sinks=3;reposition=false],exact,sink[sinks=2;reposition=false]"
    table = evaluate(*flags, *scored, "--budget", budget, "--budget", "100%mem", "--method", methods, model=model)
    rows = {(row["params"], row["budget"]): row for row in table if row["method"] == "sink"}
    full = SinkLlama(model, context, 0, context + score).log_probabilities(tokens, 4)[context:-1]
    for sinks in 3, 2:
        short = SinkLlama(model, context, sinks, budget - sinks).log_probabilities(tokens, 4)[context:-1]
        [row] = [row for (params, size), row in rows.items() if f"sinks={sinks}" in params and size == str(budget)]
        assert (row["status"], row["compressed_layers"], row["method_layers"]) == ("ok", "2", "1,3"), row
        kl = (numpy.exp(full) * (full - short)).sum(-1).mean()
        assert kl > 1e-3 and abs(number(row, "kl_mean") - kl) < 1e-5, (row, kl)
        # the bytes are those of layers with attention alone
        assert number(row, "full_bytes") == (context + score) * 2 * 2 * tiny.D, row
    assert max(number(row, "kl_mean") for row in table if row["method"] == "exact") < 1e-6
    for more in [*scored, "--protocol", "stream"], ["--generate", 16]:
        rows = {row["method"]: row for row in evaluate(*flags, "-b", "100%mem", "-m", "q8_0,exact", *more, model=model)}
        assert {row["status"] for row in rows.values()} == {"ok"}, rows
        assert number(rows["exact"], "kl_mean") < 1e-6 < number(rows["q8_0"], "kl_mean"), (more, rows)
    message = kveval(*flags, *scored, "-b", budget, "-m", "sink", "--layers", "0,1", model=model, expect=2)
    assert "layer 0 of this hybrid model is recurrent" in message and "layers 1,3" in message, message


def windowed_model(folder):
    return tiny.windowed(folder / "m.gguf")


def test_formats_round_window_layers_too(folder):
    model, q8_0 = windowed_model(folder), (1 + 2 / 32) / 2
    flags = ["--ids", ids_file(folder), "--context", 80, "--score", 16, "--budget", "100%mem", "--no-f32"]
    for protocol in "decode", "stream":
        table = evaluate(*flags, "--method", "q8_0,q4_0,sink,sink+q8_0", "--protocol", protocol, "--per-layer",
                         model=model)
        rows = {row["method"]: row for row in table if row["layer"] == "all"}
        assert {row["status"] for row in rows.values()} == {"ok"}, rows
        assert {row["method_layers"] for row in rows.values()} == {"5"}, rows
        compressed = {method: int(row["compressed_layers"]) for method, row in rows.items()}
        assert compressed == {"q8_0": 6, "q4_0": 6, "sink": 1, "sink+q8_0": 6}, compressed
        full = (5 * 16 + 96) / 6 * 2 * 2 * tiny.D   # of a kv head: in five layers the tokens of the window
        assert abs(number(rows["q8_0"], "full_bytes") - full) < 1e-6, (rows["q8_0"], full)
        assert abs(number(rows["q8_0"], "total_bytes") - q8_0 * full) < 1e-6, (rows["q8_0"], q8_0 * full)
        assert number(rows["sink"], "full_bytes") == 96 * 2 * 2 * tiny.D, rows["sink"]
        errors = {row["layer"]: number(row, "rel_err_mean") for row in table if row["method"] == "q8_0"}
        assert all(0 < error < 0.02 for error in errors.values()) and len(errors) == 7, errors
        assert number(rows["q8_0"], "kl_mean") < number(rows["q4_0"], "kl_mean") / 10, rows
        [one] = evaluate(*flags, "--method", "q4_0", "--protocol", protocol, "--layers", 5, model=model)
        assert number(one, "kl_mean") < 0.9 * number(rows["q4_0"], "kl_mean"), (one, rows["q4_0"])


def test_free_answers_with_windows(folder):
    """Caches that lack nothing say what the full cache says; formats round all layers in their answers too."""
    model = windowed_model(folder)
    flags = ["--ids", ids_file(folder), "--context", 80, "--generate", 16, "--no-f32"]
    for protocol in "decode", "stream":
        table = evaluate(*flags, "--method", "exact,sink,q8_0", "-b", "100%,100%mem", "--protocol", protocol,
                         model=model)
        rows = {row["method"]: row for row in table if row["status"] == "ok"}
        assert {"exact", "sink", "q8_0"} <= rows.keys(), table
        assert [rows[name]["compressed_layers"] for name in ("sink", "q8_0")] == ["1", "6"], rows
        assert rows["exact"]["same_answer"] == rows["sink"]["same_answer"] == "1", rows
        assert number(rows["q8_0"], "answer_tokens") > 1, rows


def test_a_model_all_of_whose_layers_have_a_window(folder):
    model = windowed_model(folder)
    table = evaluate("--ids", ids_file(folder), "--context", 80, "--score", 16, "--budget", "100%mem", "--no-f32",
                     "--method", "q8_0,sink", "--layers", "0-4", model=model)
    assert [(row["status"], row["method_layers"]) for row in table] == [("ok", "0-4"), ("skipped", "0-4")], table
    assert "only methods that round run" in table[1]["reason"], table


def test_methods_that_evict_leave_window_layers_exact(folder):
    model = windowed_model(folder)
    table = evaluate("--ids", ids_file(folder), *SMALL, model=model)
    assert [r["layer"] for r in table] == ["all", "5"], table
    assert table[0]["status"] == "ok" and number(table[0], "kl_mean") > 1e-6, table
    # What a layer adds is normalised after the projection, so its error is of the size of the change that it causes.
    assert 0.2 < number(table[1], "residual_err") / number(table[1], "drift") < 10, table[1]
    exact = evaluate("--ids", ids_file(folder), *SMALL, "--method", "exact[]", "--budget", "100%", model=model)
    assert max(number(r, "kl_mean") for r in exact if r["method"] == "exact" and r["layer"] == "all"
               and r["budget"] == "100%") < 1e-6


def test_capped_layers_stay_exact(folder):
    model = tiny.write(folder / "m.gguf", "gemma2", tiny.GEMMA, 4,
                       {"attention.sliding_window": 24, "attn_logit_softcapping": 5.0})
    message = kveval("--ids", ids_file(folder), *SMALL, model=model, expect=2)
    assert "caps its logits" in message, message


MATRICES = [name for name, shape in tiny.LLAMA.items() if len(shape) == 2] + ["token_embd"]
F32, F16, Q4_0, Q4_K_M = 0, 1, 2, 15   # numbers of general.file_type
# element types of matrices, file_type, the types that a trace states, the column `weights`
STORED = [
    ({}, F32, "F32", "f32"), ({}, None, "F32", "f32"), ({}, Q4_0, "F32", "f32"),
    (dict.fromkeys(MATRICES, "Q4_0"), F32, "Q4_0", "file"), (dict.fromkeys(MATRICES, "Q4_0"), None, "Q4_0", "file"),
    (dict.fromkeys(MATRICES, "F16"), F32, "F16", "file"), ({"ffn_down": "Q4_0"}, F32, "F32, Q4_0", "file"),
    (dict.fromkeys(MATRICES, "Q4_0") | {"token_embd": "Q8_0"}, Q4_K_M, "Q4_0, Q8_0", "file"),
]
SPLITS = [{}, {"split_max_tensors": 6}, {"split_max_tensors": 6, "small_first_shard": True}]


def test_types_of_weights_are_those_of_the_tensors(folder):
    ids = ids_file(folder)
    for types, file_type, stated, column in STORED:
        for split in SPLITS:
            for old in folder.glob("m*.gguf"):
                old.unlink()
            tiny.write(folder / "m.gguf", "llama", tiny.LLAMA, 2, types=types, file_type=file_type, **split)
            files = sorted(folder.glob("m*.gguf"))
            assert len(files) > 1 or not split, files
            model = str(files[0])
            harness.kvdump("--ids", ids, "-o", folder / "t.h5", "--force", model=model)
            assert harness.Trace(folder / "t.h5").info["quantisation"] == stated, (types, file_type, split)
            [row] = evaluate("--ids", ids, *SMALL, "--no-f32", model=model)[:1]
            assert row["weights"] == column, (types, file_type, split, row)


def test_wrong_file_types_are_converted_all_the_same(folder):
    model = tiny.write(folder / "m.gguf", "llama", tiny.LLAMA, 2, types=dict.fromkeys(MATRICES, "Q4_0"), file_type=F32)
    ids = ids_file(folder)
    [as_stored] = evaluate("--ids", ids, *SMALL, model=model)[:1]
    cache = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder)   # where the conversion is kept
    try:
        [converted] = evaluate("--ids", ids, *[x for x in SMALL if x != "--no-f32"], model=model)[:1]
        harness.kvdump("--ids", ids, "-o", folder / "t.h5", "--f32", model=model)
    finally:
        os.environ.pop("XDG_CACHE_HOME") if cache is None else os.environ.update(XDG_CACHE_HOME=cache)
    assert (as_stored["weights"], converted["weights"]) == ("file", "f32"), (as_stored, converted)
    assert as_stored["nll_full"] != converted["nll_full"], converted
    assert harness.Trace(folder / "t.h5").info["quantisation"] == "F32 from Q4_0"


def continued(model, tokens, first, most):
    """A greedy answer of a SinkLlama, whose first token may be given."""
    answer = list(first)
    while len(answer) < most:
        answer.append(int(model.log_probabilities(tokens + answer, 2)[-1].argmax()))
    return answer


def test_free_answers_in_numpy(folder):
    """Of a model without end tokens; answers, and the figures about them, whatever the threads and the chunks of work.
    The scored tokens are the answer of the full cache."""
    model = tiny.write(folder / "m.gguf", "llama", tiny.LLAMA, 2, {"rope.freq_base": 1e4})
    context, most, budget = 80, 32, 20
    ids = ids_file(folder)
    tokens = [int(t) for t in ids.read_text().split()][:context]
    full = continued(SinkLlama(model, context, 0, 999), tokens, [], most)
    short = continued(SinkLlama(model, context, 3, budget - 3), tokens, full[:1], most)
    same = [a == b for a, b in zip(full, short)]
    assert not all(same), full
    found = []
    for threads in (1, 4):
        [row] = evaluate("--ids", ids, "--context", context, "--generate", most, "--budget", budget, "--no-f32", "-j",
                         threads, "--method", "sink[sinks=3,reposition=false]", "--raw", folder / "raw.h5", model=model)
        with h5py.File(folder / "raw.h5") as raw:
            [result], [document] = raw["results"].values(), raw["documents"].values()
            assert document["scored"][:].tolist() == full, (document["scored"][:], full)
            assert result["answer"][:].tolist() == short, (result["answer"][:], short)
            assert raw.attrs["generate"].decode() == "32 greedy", dict(raw.attrs)
            first = [i + 1 for i, right in enumerate(result["right"][:]) if not right][0]
        assert number(row, "first_differs") == same.index(False) == first, (row["first_differs"], same, first)
        assert abs(number(row, "alike_32") - sum(same) / most) < 1e-6, row["alike_32"]
        assert (row["alike_64"], row["same_answer"], row["answer_tokens"]) == ("", "0", "32"), row
        found.append(row)
    assert found[0] == found[1], found


def test_samples_are_common_random_numbers(folder):
    """At a temperature so high that logits hardly matter, the same numbers give the same tokens to all caches."""
    model = tiny.write(folder / "m.gguf", "llama", tiny.LLAMA, 2, {"rope.freq_base": 1e4})
    flags = ["--ids", ids_file(folder), "--context", 80, "--generate", 32, "--no-f32", "-b", "25%", "-m", "sink"]
    greedy, [hot], [other] = [evaluate(*flags, *more, model=model) for more in (
        (), ("--temperature", 100), ("--temperature", 100, "--sample-seed", 1))]
    assert number(hot, "alike_32") > 0.5 > number(greedy[0], "alike_32"), (hot["alike_32"], greedy[0]["alike_32"])
    assert (hot["generate"], other["generate"]) == ("32 at 100 seed 0", "32 at 100 seed 1"), (hot, other)
    assert len({row["documents_sha256"] for row in (greedy[0], hot, other)}) == 3


def test_models_without_a_tokenizer_and_refused_models(folder):
    model = tiny.write(folder / "m.gguf", "llama", tiny.LLAMA, 2)
    text = eval_harness.text_file(folder)
    message = kveval("--text", text, *SMALL, model=model, expect=2)
    theirs = harness.kvdump("--text", text, "-o", folder / "t.h5", model=model, expect=2)
    assert "has no tokenizer; give token ids with --ids" in message, message
    assert message.split(":", 1)[1] == theirs.split(":", 1)[1], (message, theirs)


def test_what_is_wrong_with_a_split_model_is_said(folder):
    tiny.write(folder / "m.gguf", "llama", tiny.LLAMA, 2, split_max_tensors=6)
    first, second, *_ = map(str, sorted(folder.glob("m-*.gguf")))
    flags = ["--ids", ids_file(folder), *SMALL]
    assert f"Name the first part of the model, {first}." in kveval(*flags, model=second, expect=2)
    os.remove(second)
    assert second in kveval(*flags, model=first, expect=2)


class Commands:
    """kveval --commands."""

    def __init__(self):
        self.process = subprocess.Popen([eval_harness.KVEVAL, "--commands"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, *words):
        """The messages of a command, and its exit code."""
        self.process.stdin.write(b"".join(os.fsencode(str(word)) + b"\0" for word in [*words, ""]))
        self.process.stdin.flush()
        messages = []
        while not (line := self.process.stdout.readline().decode()).startswith("done "):
            assert line, messages
            messages.append(line)
        return "".join(messages), int(line.split()[1])

    def maps(self, path):
        """Whether the process has this file in its memory, and whether it has a file that was there and is not."""
        with open(f"/proc/{self.process.pid}/maps") as file:
            lines = [line.rstrip("\n") for line in file]
        return tuple(any(line.endswith(end) for line in lines) for end in (str(path), f"{path} (deleted)"))


def test_a_model_is_loaded_once_for_many_commands(folder):
    """A copy of the same bytes in its place is not loaded, other weights are. Tables are those of single runs."""
    model, other, table, ids = folder / "m.gguf", folder / "other.gguf", folder / "t.csv", ids_file(folder)
    tiny.write(model, "llama", tiny.LLAMA, 2)
    tiny.write(other, "llama", tiny.LLAMA, 2, types=dict.fromkeys(MATRICES, "Q4_0"))
    flags = ["--ids", ids, *SMALL, "--no-times", "-q"]
    commands = Commands()

    def same():
        assert commands.run(model, *flags, "-o", table) == ("", 0)
        assert table.read_text() == kveval(*flags, model=str(model))

    same()
    shutil.copy(model, folder / "copy")
    os.replace(folder / "copy", model)
    message, code = commands.run(model, *flags, "--context", 99, "-o", table)
    assert code == 2 and "need 115; give more ids" in message, message
    same()
    assert commands.maps(model) == (False, True)
    assert commands.run(other, *flags, "-o", table) == ("", 0)
    assert commands.maps(model) == (False, False)
    same()
    os.replace(other, model)
    same()
    written = model.stat().st_mtime_ns
    assert commands.run(model, *flags, "-o", model)[1] == 2 and model.stat().st_mtime_ns == written
    commands.process.stdin.close()
    assert commands.process.wait(60) == 0


def test_commands_that_are_refused(folder):
    commands = Commands()
    for words, said in (([], "no model was given"), (["--commands"], "leave it out"),
                        ([folder / "m.gguf", "--ids", ids_file(folder), *SMALL], "give -o FILE"),
                        ([folder / "m.gguf", "--ids", ids_file(folder), *SMALL, "-o", folder / "t"], "no such model")):
        message, code = commands.run(*words)
        assert code == 2 and said in message, (words, message)
    commands.process.stdin.write(b"m.gguf")
    commands.process.stdin.close()
    assert b"standard input ends inside a command" in commands.process.stdout.read()
    assert commands.process.wait(60) == 2
    done = subprocess.run([eval_harness.KVEVAL, "--commands", "-q"], capture_output=True, text=True)
    assert done.returncode == 2 and "no effect beside other flags" in done.stderr, done.stderr


harness.run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
