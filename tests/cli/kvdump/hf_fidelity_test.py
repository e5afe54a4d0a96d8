# SPDX-License-Identifier: Apache-2.0
"""kvdump and kvbench-dump-hf on the same tokens of the same GGUF file: llama.cpp against transformers.

With fp32 weights both compute the same numbers, which checks the dumpers. With the file as it is, llama.cpp rounds what it multiplies its
weights with, and how far that leads is derived here and compared, which checks what docs/kvdump.md says of quantised models."""

import os
import pathlib
import subprocess
import sys

import harness

harness.use_environment()
from harness import CACHE, MODEL, kvdump, run_tests, skip, write_ids  # noqa: E402
import gguf  # noqa: E402
import numpy  # noqa: E402

PACKAGE = pathlib.Path(__file__).resolve().parents[3] / "python"
PYTHON = os.environ.get("KVBENCH_TORCH_PYTHON") or str(CACHE / "torch" / "bin" / "python")
TOKENS, LAYERS = 200, (0, 1, 15, 29)
HEADS, KV_HEADS, D, SCALE = 9, 3, 64, 0.125
ARRAYS = ("queries", "keys", "values", "attention_output", "queries_pre_rope", "keys_pre_rope", "speculated_queries", "column_sums")
DUMP = ("--layers", ",".join(map(str, LAYERS)), "--queries", "all", "--pre-rope", "--speculated", "--column-sums", "--attention-output")


def check_environment():
    if not os.path.exists(PYTHON):
        skip(f"there is no {PYTHON}; scripts/fetch-model --hf makes it, or set KVBENCH_TORCH_PYTHON")
    done = subprocess.run([PYTHON, "-c", "import torch, transformers, accelerate, gguf, h5py"], capture_output=True, text=True)
    if done.returncode != 0:
        skip(f"{done.stderr.strip().splitlines()[-1]} in {PYTHON}; scripts/fetch-model --hf installs it")
    try:
        import h5py  # noqa: F401
    except ImportError as error:
        skip(f"{error}; scripts/fetch-model installs h5py")


check_environment()
sys.path.insert(0, str(PACKAGE))
import kvbench  # noqa: E402


def dump_hf(ids, output):
    paths = os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([PYTHON, "-m", "kvbench.dump_hf", "--model", MODEL, "--ids", ids, "-o", str(output), *DUMP],
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})
    assert done.returncode == 0 and done.stderr.count("\n") == 1, done.stderr


def halves(name, array):
    """GGUF files of arch llama pair adjacent channels; the original model, which transformers restores, pairs halves."""
    return array if name in ("values", "attention_output", "column_sums") else numpy.concatenate([array[..., 0::2], array[..., 1::2]], -1)


def read(path, layout):
    """{layer: {array: fp64 [heads, ...]}} in the channel order of transformers."""
    with kvbench.Trace(path) as trace:
        assert (trace.rope_type, trace.rope_layout) == ("default", layout), (trace.rope_type, trace.rope_layout)
        layers = trace.prompts["0"].layers
        assert list(layers) == list(LAYERS)
        for layer in layers.values():
            assert (layer.scale, layer.rope_theta, layer.window, layer.softcap) == (SCALE, 1e5, 0, 0)
        return {index: {name: (halves(name, layer.array(name)) if layout == "interleaved" else layer.array(name)).astype(numpy.float64)
                        for name in ARRAYS if name in layer.arrays} for index, layer in layers.items()}


def logits(arrays):
    """[q_heads, n (n + 1) / 2]: of every query with every key that it sees."""
    products = arrays["queries"] @ arrays["keys"].repeat(HEADS // KV_HEADS, 0).transpose(0, 2, 1)
    return SCALE * products[:, numpy.tri(TOKENS, dtype=bool)]


def differences(a, b):
    """Relative, of each head."""
    axes = tuple(range(1, a.ndim))
    return numpy.sqrt(((a - b) ** 2).sum(axes) / (b ** 2).sum(axes))


def test_float_weights_agree(folder):
    """Both round products to fp32 (2e-7 in layer 0) and angles of up to 200 radians too (2e-6): below 1e-5 of each head, and by the product
    rule below twice that in the logits."""
    ours, theirs = read(folder / "hf.h5", "half"), read(folder / "f32.h5", "interleaved")
    for layer in LAYERS:
        assert set(ours[layer]) == set(theirs[layer]) == set(ARRAYS) - ({"speculated_queries"} if layer == 0 else set())
        for name, array in ours[layer].items():
            error = differences(array, theirs[layer][name]).max()
            assert error < 1e-5, f"layer {layer} {name}: {error:.2e}"
        error = differences(logits(ours[layer]), logits(theirs[layer])).max()
        assert error < 2e-5, f"layer {layer} logits: {error:.2e}"
        print(f"fp32 weights, layer {layer}: logits differ by {error:.1e}")


def test_quantised_activations_explain_layer_0(folder):
    """llama.cpp rounds the input x of a product with Q4_1 weights to blocks of 32 (Q8_1): whole multiples of u = max|x| / 127, an error
    spread evenly over +- u / 2, of variance u^2 / 12. An output sum_j W_ij x_j then has the variance sum_j W_ij^2 u_j^2 / 12, and a
    logit scale q.k that of q times the keys and of k times the queries. Into layer 0 goes the same input in both programs, so those
    are the differences; 200 tokens and 576 channels of independent errors find them within a tenth, and we allow a fifth."""
    ours, theirs = read(folder / "hf.h5", "half")[0], read(folder / "q4_1.h5", "interleaved")[0]
    variance = {name: predicted_variance(weight, heads) for name, weight, heads in
                (("queries_pre_rope", "attn_q", HEADS), ("keys_pre_rope", "attn_k", KV_HEADS), ("values", "attn_v", KV_HEADS))}
    for name, expected in variance.items():
        measured = ((ours[name] - theirs[name]) ** 2).sum((1, 2))
        ratio = numpy.sqrt(measured / expected.sum((1, 2)))
        relative = numpy.sqrt(expected.sum((1, 2)) / (ours[name] ** 2).sum((1, 2)))
        print(f"Q4_1, layer 0 {name}: derived {relative.max():.1e}, measured {ratio.min():.2f} to {ratio.max():.2f} of it")
        assert 0.8 < ratio.min() and ratio.max() < 1.2, (name, ratio)
    # The rotation spreads the variance of a pair evenly over its two channels, on average over positions.
    vq, vk = (pair_means(variance[name]) for name in ("queries_pre_rope", "keys_pre_rope"))
    vk, k = (x.repeat(HEADS // KV_HEADS, 0).transpose(0, 2, 1) for x in (vk, ours["keys"]))
    expected = SCALE**2 * (vq @ k**2 + ours["queries"]**2 @ vk)[:, numpy.tri(TOKENS, dtype=bool)].sum(1)
    ratio = numpy.sqrt(((logits(ours) - logits(theirs)) ** 2).sum(1) / expected)
    print(f"Q4_1, layer 0 logits: measured {ratio.min():.2f} to {ratio.max():.2f} of what is derived")
    assert 0.7 < ratio.min() and ratio.max() < 1.3, ratio


def pair_means(variance):
    mean = (variance[..., :D // 2] + variance[..., D // 2:]) / 2
    return numpy.concatenate([mean, mean], -1)


def predicted_variance(weight, heads):
    """[heads, n, d] of the error of layer 0's product with this weight."""
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(MODEL).tensors}
    values = lambda name: gguf.quants.dequantize(tensors[name].data, tensors[name].tensor_type).astype(numpy.float64)  # noqa: E731
    assert tensors[f"blk.0.{weight}.weight"].tensor_type == gguf.GGMLQuantizationType.Q4_1
    x = values("token_embd.weight")[[int(item) for item in write_ids_text()]]
    x = x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * values("blk.0.attn_norm.weight")
    unit = abs(x.reshape(TOKENS, -1, 32)).max(-1) / 127
    squares = (values(f"blk.0.{weight}.weight") ** 2).reshape(heads * D, -1, 32).sum(-1)
    variance = ((unit**2 / 12) @ squares.T).reshape(TOKENS, heads, D).transpose(1, 0, 2)
    return halves("values" if weight == "attn_v" else "queries", variance)


def write_ids_text():
    return IDS.read_text().split()


def test_quantised_activations_bound_the_other_layers(folder):
    """Rounding a block of 32 loses at most sqrt(32) / (127 sqrt(12)) = 1.3 % of its norm (rms; all of it in one channel). Four products a
    layer (q k v; output; gate and up; down) each add as much independently, and a product whose terms cancel shows up to twice as
    much relative to its result: 2 * 1.3 % * sqrt(1 + 4 layer). Measured: a fifth to a half of that."""
    ours, theirs = read(folder / "hf.h5", "half"), read(folder / "q4_1.h5", "interleaved")
    for layer in LAYERS:
        bound = 2 * 32**0.5 / (127 * 12**0.5) * (1 + 4 * layer) ** 0.5
        errors = {name: differences(ours[layer][name], theirs[layer][name]).max() for name in ("queries", "keys", "values")}
        errors["logits"] = differences(logits(ours[layer]), logits(theirs[layer])).max()
        print(f"Q4_1, layer {layer}: at most {bound:.3f};", ", ".join(f"{name} {error:.4f}" for name, error in errors.items()))
        for name, error in errors.items():
            assert error < (2 if name == "logits" else 1) * bound, (layer, name, error, bound)


def with_dumps(tests):
    """The three dumps once, for all tests."""
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        global IDS
        IDS = pathlib.Path(write_ids(folder / "ids", TOKENS))
        dump_hf(str(IDS), folder / "hf.h5")
        kvdump("--ids", IDS, "-o", folder / "q4_1.h5", "--quiet", *DUMP)
        kvdump("--ids", IDS, "-o", folder / "f32.h5", "--quiet", "--f32", *DUMP)
        run_tests([named(test, folder) for test in tests])


def named(test, folder):
    def run(_):
        test(folder)
    run.__name__ = test.__name__
    return run


if __name__ == "__main__":
    with_dumps([test for name, test in list(globals().items()) if name.startswith("test_")])
