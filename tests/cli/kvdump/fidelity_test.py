# SPDX-License-Identifier: Apache-2.0
"""kvdump --f32 against an independent float implementation of the model; and a model that the self check must
refuse."""

import hashlib
import os
import resource
import shutil
import signal
import subprocess

import harness

harness.use_environment()
from harness import CACHE, Trace, difference, kvdump, run_tests, token_ids, write_ids  # noqa: E402
import numpy  # noqa: E402
from float_reference import Llama  # noqa: E402
import tiny_model  # noqa: E402

TOKENS, LAYERS = 200, 4
SHORT = tiny_model.first_layers(harness.MODEL, LAYERS)


def converted_model():
    """The conversion that kvdump --f32 has left in the cache."""
    return CACHE / "f32" / f"{sha256(harness.MODEL)}.gguf"


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def test_f32_equals_a_float_implementation(folder):
    ids, output = write_ids(folder / "ids", TOKENS), folder / "t.h5"
    kvdump("--ids", ids, "--f32", "--layers", f"0-{LAYERS - 1}", "--queries", "all", "--attention-output",
           "--speculated", "-o", output)
    trace = Trace(output)
    assert trace.info["quantisation"] == "F32 from Q4_1, Q8_0"
    for layer, expected in enumerate(Llama(converted_model()).layers(token_ids(TOKENS), LAYERS)):
        for name, array in zip(("queries", "keys", "values", "attention_output", "speculated_queries"), expected):
            if array is None:
                continue
            stored = numpy.array(trace.array(name, layer)).reshape(array.shape)
            for head in range(len(array)):
                error = numpy.linalg.norm(stored[head] - array[head]) / numpy.linalg.norm(array[head])
                assert error < 1e-5, f"layer {layer} {name} head {head}: {error:.2e}"


def first_conversion(folder):
    """Arguments of a dump, an environment with a cache of its own (other tests change the shared one meanwhile), and
    the copy that this dump has left in it."""
    dump, own = ("--ids", write_ids(folder / "ids", 32), "--f32", "--layers", "0"), {"XDG_CACHE_HOME": str(folder)}
    kvdump(*dump, "-o", folder / "a.h5", model=SHORT, environment=own)
    copy, = folder.rglob("f32/*.gguf")
    return dump, own, copy


def test_f32_is_converted_once(folder):
    """A copy belongs to the content of a model, not to its path or time."""
    dump, own, copy = first_conversion(folder)
    before = copy.stat()
    shutil.copy(SHORT, folder / "other.gguf")
    for model in (SHORT, folder / "other.gguf"):
        kvdump(*dump, "-o", folder / "b.h5", "--force", model=model, environment=own)
        after = copy.stat()
        assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert sorted(copy.parent.iterdir()) == [copy, copy.with_name(f"{copy.name}.sha256")]


def test_a_damaged_copy_is_converted_again(folder):
    dump, own, copy = first_conversion(folder)
    good, beside = sha256(copy), copy.with_name(f"{copy.name}.sha256")
    assert beside.read_text().startswith(f"{good}  {copy.name}\n")

    def flip(file):
        file.seek(copy.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    for damage in (flip, lambda file: file.truncate(copy.stat().st_size - 4096)):
        times = copy.stat().st_atime_ns, copy.stat().st_mtime_ns
        with open(copy, "r+b") as file:
            damage(file)
        os.utime(copy, ns=times)
        assert sha256(copy) != good
        kvdump(*dump, "-o", folder / "b.h5", "--force", model=SHORT, environment=own)
        assert sha256(copy) == good
    # A copy that is touched is read again, one that is not touched is not: another digest beside it goes unnoticed.
    for touch in (lambda: os.utime(copy), lambda: beside.write_text(beside.read_text().replace(good, "0" * 64))):
        before = beside.read_text()
        touch()
        kvdump(*dump, "-o", folder / "b.h5", "--force", model=SHORT, environment=own)
        assert sha256(copy) == good and beside.read_text() != before
    assert beside.read_text().startswith("0" * 64)


def test_a_cache_without_room(folder):
    """A failure of the disk (exit code 3) or the limit of the cache (2), and no part of a copy is left."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    command = [harness.KVDUMP, SHORT, "--ids", write_ids(folder / "ids", 32), "--f32", "-o", folder / "t.h5"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    for code, word, options in ((3, "f32", {"preexec_fn": limit, "env": environment}),
                                (2, "KVBENCH_CACHE_GIB", {"env": {**environment, "KVBENCH_CACHE_GIB": "0"}})):
        done = subprocess.run(command, capture_output=True, text=True, **options)
        assert done.returncode == code and word in done.stderr, done.stderr
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["ids"]


def test_quantised_weights_move_the_keys(folder):
    """Why --f32 exists: a difference of percents, not of rounding."""
    ids = write_ids(folder / "ids", 64)
    kvdump("--ids", ids, "--layers", "1", "-o", folder / "q.h5")
    kvdump("--ids", ids, "--layers", "1", "-o", folder / "f.h5", "--f32")
    moved = difference(Trace(folder / "q.h5").array("values", 1), Trace(folder / "f.h5").array("values", 1))
    assert 1e-3 < moved < 0.1, moved


def test_failed_self_check_leaves_no_trace(folder):
    """One weight of layer 1 is NaN: its attention is not what the captured numbers say, and no trace may hold it."""
    spoilt = folder / "spoilt.gguf"
    shutil.copyfile(converted_model(), spoilt)
    offset = int(Llama(spoilt).weights["blk.1.attn_q.weight"].data_offset)
    numpy.memmap(spoilt, numpy.float32, "r+", offset, (1,))[0] = numpy.nan
    ids, output = write_ids(folder / "ids", 64), folder / "t.h5"
    message = kvdump("--ids", ids, "-o", output, "--layers", "0,1", model=str(spoilt), expect=1)
    assert "self check failed" in message and "layer 1, query head 0" in message, message
    assert not list(folder.glob("t.h5*"))
    kvdump("--ids", ids, "-o", output, "--layers", "0,1", "--no-check", model=str(spoilt), expect=2)
    assert not list(folder.glob("t.h5*"))
    kvdump("--ids", ids, "-o", output, "--layers", "0", model=str(spoilt))
    assert output.exists()


if __name__ == "__main__":
    run_tests([test for name, test in list(globals().items()) if name.startswith("test_")])
