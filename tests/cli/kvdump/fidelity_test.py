# SPDX-License-Identifier: Apache-2.0
"""kvdump --f32 against an independent float implementation of the model; and a model that the self check must
refuse."""

import os
import pathlib
import shutil

import harness

harness.use_environment()
from harness import CACHE, Trace, difference, kvdump, run_tests, token_ids, write_ids  # noqa: E402
import numpy  # noqa: E402
from float_reference import Llama  # noqa: E402

TOKENS, LAYERS = 200, 4


def converted_model():
    """The conversion that kvdump --f32 has left in the cache."""
    return max(CACHE.glob(f"{pathlib.Path(harness.MODEL).stem}-*-f32.gguf"), key=os.path.getmtime)


def test_f32_equals_a_float_implementation(folder):
    ids, output = write_ids(folder / "ids", TOKENS), folder / "t.h5"
    kvdump("--ids", ids, "--f32", "--layers", f"0-{LAYERS - 1}", "--queries", "all", "--attention-output",
           "--speculated", "-o", output)
    trace = Trace(output)
    assert trace.info["quantisation"] == "F32 from Q4_1"
    for layer, expected in enumerate(Llama(converted_model()).layers(token_ids(TOKENS), LAYERS)):
        for name, array in zip(("queries", "keys", "values", "attention_output", "speculated_queries"), expected):
            if array is None:
                continue
            stored = numpy.array(trace.array(name, layer)).reshape(array.shape)
            for head in range(len(array)):
                error = numpy.linalg.norm(stored[head] - array[head]) / numpy.linalg.norm(array[head])
                assert error < 1e-5, f"layer {layer} {name} head {head}: {error:.2e}"


def test_f32_is_converted_once(folder):
    ids = write_ids(folder / "ids", 32)
    kvdump("--ids", ids, "--f32", "--layers", "0", "-o", folder / "a.h5")
    before = converted_model().stat()
    kvdump("--ids", ids, "--f32", "--layers", "0", "-o", folder / "b.h5")
    after = converted_model().stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert not list(CACHE.glob("*-f32.gguf.tmp.*"))


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
