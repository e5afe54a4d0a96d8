# SPDX-License-Identifier: Apache-2.0
"""Tests other architectures than that of the bundled model: recorded layers must pass the self check, unsupported ones
are refused."""

import harness

harness.use_environment()
from harness import Trace, difference, kvdump, run_tests  # noqa: E402
import gguf  # noqa: E402
import h5py  # noqa: E402
import numpy  # noqa: E402
import tiny_model as tiny  # noqa: E402
from float_reference import Llama  # noqa: E402

N = 100

# Architectures whose query heads make up the model's width.
SQUARE = {"attn_q": (tiny.EMBD, tiny.EMBD), "attn_k": (tiny.KV_HEADS * 16, tiny.EMBD),
          "attn_v": (tiny.KV_HEADS * 16, tiny.EMBD), "attn_output": (tiny.EMBD, tiny.EMBD)}
SQUARE_SIZES = {"attention.key_length": 16, "attention.value_length": 16, "rope.dimension_count": 16,
                "rope.freq_base": 1e4}


def dump(folder, model, *arguments, expect=0):
    ids = folder / "ids"
    ids.write_text(" ".join(str((i * i * 31 + i * 7) % tiny.VOCAB) for i in range(N)))
    message = kvdump("--ids", ids, "-o", folder / "t.h5", "--queries", "all", *arguments, model=model, expect=expect)
    return message if expect else Trace(folder / "t.h5")


def layers_of(trace):
    return trace.info["prompts"][0]


def test_gemma2_windows_and_softcap(folder):
    """Layers alternate between a sliding window and full attention; logits are capped; queries are scaled outside the
    softmax."""
    model = tiny.write(folder / "m.gguf", "gemma2", tiny.GEMMA, 4,
                       {"attention.sliding_window": 24, "attn_logit_softcapping": 5.0})
    layers = layers_of(dump(folder, model))
    assert layers["windows"] == [24, 0, 24, 0]
    assert layers["softcap"] == 5 and abs(layers["scale"] - tiny.D**-0.5) < 1e-6, layers


def test_gemma3_windows_norms_and_bases(folder):
    model = tiny.write(folder / "m.gguf", "gemma3", tiny.GEMMA | tiny.QK_NORMS, 6,
                       {"attention.sliding_window": 16, "rope.freq_base": 1e6, "rope.freq_base_swa": 1e4})
    trace = dump(folder, model, "--pre-rope")
    layers = layers_of(trace)
    assert layers["windows"] == [16] * 5 + [0] and layers["thetas"] == [1e4] * 5 + [1e6]
    assert layers["softcap"] == 0 and abs(layers["scale"] - tiny.D**-0.5) < 1e-6
    assert trace.info["rope_layout"] == "half"
    for layer, theta in (0, 1e4), (5, 1e6):
        rotated = rotate_halves(trace.array("keys_pre_rope", layer), theta)
        assert difference(rotated, trace.array("keys", layer)) < 1e-5


def rotate_halves(rows, theta):
    x = numpy.array(rows, dtype=numpy.float64).reshape(-1, N, tiny.D)
    half = tiny.D // 2
    angle = numpy.arange(N)[:, None] * theta ** (-numpy.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half:]) * numpy.exp(1j * angle)
    return numpy.concatenate([turned.real, turned.imag], axis=-1).reshape(-1)


def test_short_prompts_share_the_window_of_long_ones(folder):
    model = tiny.write(folder / "m.gguf", "gemma2", tiny.GEMMA, 2,
                       {"attention.sliding_window": 24, "attn_logit_softcapping": 5.0})
    (folder / "short").write_text("1 2 3 4 5 6 7 8")
    trace = dump(folder, model, "--ids", folder / "short")
    assert [p["windows"] for p in trace.info["prompts"]] == [[24, 0], [24, 0]]


def test_windows_hold_across_batches_and_decode_steps(folder):
    model = tiny.write(folder / "m.gguf", "gemma2", tiny.GEMMA, 2,
                       {"attention.sliding_window": 24, "attn_logit_softcapping": 5.0})
    batch = dump(folder, model).array("values", 1)
    kvdump("--ids", folder / "ids", "-o", folder / "t.h5", "--force", "--queries", "decode:60", model=model)
    assert difference(Trace(folder / "t.h5").array("values", 1), batch) < 1e-5


def test_qwen3_norms_queries_and_keys_before_rope(folder):
    model = tiny.write(folder / "m.gguf", "qwen3", tiny.LLAMA | tiny.QK_NORMS, 2, {"rope.freq_base": 1e4})
    trace = dump(folder, model, "--pre-rope")
    assert difference(rotate_halves(trace.array("keys_pre_rope", 1), 1e4), trace.array("keys", 1)) < 1e-5


def test_the_attention_layers_of_a_hybrid_model(folder):
    """Layers 1 and 3 of 4: they have the keys that a forward pass in NumPy gives them."""
    model = tiny.hybrid(folder / "m.gguf")
    trace = dump(folder, model)
    with h5py.File(folder / "t.h5") as file:
        assert file["cache_layers"][:].tolist() == [1, 3] and file.attrs["num_layers"] == 4, dict(file.attrs)
    tokens = [int(token) for token in (folder / "ids").read_text().split()]
    for index, (_, k, v, _, _) in enumerate(Llama(model).layers(tokens, 4)):
        assert difference(trace.array("keys", 2 * index + 1), k.reshape(-1)) < 1e-5, index
        assert difference(trace.array("values", 2 * index + 1), v.reshape(-1)) < 1e-5, index
    keys = trace.array("keys", 3)
    kvdump("--ids", folder / "ids", "-o", folder / "t.h5", "--force", "--layers", "3", "--queries", "decode:60",
           model=model)
    assert difference(Trace(folder / "t.h5").array("keys", 3), keys) < 1e-5
    assert "layer 0 of this hybrid model is recurrent" in dump(folder, model, "--layers", "0-1", "--force", expect=2)


def test_phi3_projects_q_k_v_at_once(folder):
    """Values are a strided view into a fused projection."""
    norms = {name: (tiny.EMBD,) for name in tiny.NORMS}
    model = tiny.write(folder / "m.gguf", "phi3", tiny.FUSED | norms | {"ffn_up": (2 * tiny.FF, tiny.EMBD)})
    assert dump(folder, model).info["rope_layout"] == "half"


def silence_layer_0(path):
    """Layer 0 adds nothing and both layers normalise alike, so that layer 1 has the input of layer 0 and its speculated
    query is exact."""
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    with open(path, "r+b") as file:
        def put(name, data):
            file.seek(int(tensors[name].data_offset))
            file.write(data.astype(numpy.float32).tobytes())

        for name in "blk.0.attn_output.weight", "blk.0.ffn_down.weight":
            put(name, numpy.zeros_like(tensors[name].data))
        put("blk.1.attn_norm.weight", tensors["blk.0.attn_norm.weight"].data)
    return path


def test_speculated_queries(folder):
    """Bias (qwen2), norm (qwen3, gemma3), scaled RoPE, a fused projection (phi3): speculated queries use the operations
    of the queries."""
    norms = {name: (tiny.EMBD,) for name in tiny.NORMS}
    models = [
        ("llama", tiny.LLAMA, {"rope.freq_base": 1e4}, ()),
        ("qwen2", tiny.LLAMA | SQUARE, SQUARE_SIZES, ("attn_q", "attn_k", "attn_v")),
        ("qwen3", tiny.LLAMA | tiny.QK_NORMS, {"rope.freq_base": 1e4}, ()),
        ("gemma3", tiny.GEMMA | tiny.QK_NORMS,
         {"attention.sliding_window": 16, "rope.freq_base": 1e6, "rope.freq_base_swa": 1e6}, ()),
        ("phi3", tiny.FUSED | norms | {"ffn_up": (2 * tiny.FF, tiny.EMBD)}, {"rope.scaling.factor": 4.0}, ()),
    ]
    for arch, tensors, extra, biased in models:
        model = tiny.write(folder / f"{arch}.gguf", arch, tensors, 2, extra, biased=biased)
        trace = dump(folder, model, "--speculated", "--force")
        guess, query = trace.array("speculated_queries", 1), trace.array("queries", 1)
        assert len(guess) == len(query) and difference(guess, query) > 0.05, arch
        assert trace.info["rope_type"] == ("linear" if arch == "phi3" else "default")
        trace = dump(folder, silence_layer_0(model), "--speculated", "--force")
        assert difference(trace.array("speculated_queries", 1), trace.array("queries", 1)) < 1e-5, arch

class Added:
    """What the attention outputs of layer 0 of a tiny model add to the residual stream, in NumPy."""

    def __init__(self, path, factor):
        self.weights = {tensor.name: tensor.data.astype(numpy.float64) for tensor in gguf.GGUFReader(path).tensors}
        self.factor = factor

    def __call__(self, z):
        y = z @ self.weights["blk.0.attn_output.weight"].T
        norm = self.weights.get("blk.0.post_attention_norm.weight")
        if norm is not None:
            y = y / numpy.sqrt((y * y).mean(-1, keepdims=True) + 1e-5) * norm
        return self.factor * y


# Of each architecture: tensors, metadata, what embeddings and what attention adds are multiplied with.
ADDED = {
    "llama": (tiny.LLAMA, {"rope.freq_base": 1e4}, 1, 1),
    "qwen2": (tiny.LLAMA | SQUARE, SQUARE_SIZES, 1, 1),
    "granite": (tiny.LLAMA, {"rope.freq_base": 1e4, "residual_scale": 0.25, "embedding_scale": 2.0,
                             "attention.scale": 0.2, "logit_scale": 4.0}, 2, 0.25),
    "gemma2": (tiny.GEMMA, {"attention.sliding_window": 24, "attn_logit_softcapping": 5.0}, 8, 1),
    "gemma3": (tiny.GEMMA | tiny.QK_NORMS,
               {"attention.sliding_window": 16, "rope.freq_base": 1e6, "rope.freq_base_swa": 1e6}, 8, 1),
}


def test_sketches_of_what_attention_adds(folder):
    """|dz' S| / residual_norm is |J dz| / |x| in the mean over queries, with finite differences for J dz; also on a
    prompt from which the sketch was not made, as it is of the longest one."""
    random = numpy.random.default_rng(3)
    (folder / "short").write_text(" ".join(str((i * i * 17 + i * 5) % tiny.VOCAB) for i in range(60)))
    for arch, (tensors, extra, embedded, factor) in ADDED.items():
        biased = ("attn_q", "attn_k", "attn_v") if arch == "qwen2" else ()
        model = tiny.write(folder / f"{arch}.gguf", arch, tensors, 2, extra, biased=biased)
        added, ratios = Added(model, factor), {"0": [], "1": []}
        for seed in range(4):
            dump(folder, model, "--ids", folder / "short", "--attention-output", "--force", "--seed", seed)
            with h5py.File(folder / "t.h5") as trace:
                for prompt in ratios:
                    layer, tokens = trace[f"prompts/{prompt}/layers/0"], trace[f"prompts/{prompt}/tokens"][:]
                    sketch, size = layer["output_sketch"], layer["residual_norm"][:]
                    assert sketch.attrs["seed"] == seed and (sketch.attrs["misfit"] > 0.02) == ("gemma" in arch), arch
                    z = layer["attention_output"][:].astype(float).transpose(1, 0, 2).reshape(len(tokens), -1)
                    stream = numpy.linalg.norm(embedded * added.weights["token_embd.weight"][tokens], axis=1)
                    dz = random.normal(size=z.shape)
                    moved = (added(z + 1e-4 * dz) - added(z - 1e-4 * dz)) / 2e-4
                    found = numpy.linalg.norm(dz @ sketch[:].reshape(-1, 64), axis=1) / size
                    expected = numpy.linalg.norm(moved, axis=1) / stream
                    ratios[prompt].append(found.mean() / expected.mean())
                    assert abs(numpy.log(found / expected)).mean() < 0.1, arch  # 64 columns: 0.07
                    if "gemma" not in arch:
                        assert abs(size / stream - 1).max() < 1e-5, arch
        for of_prompt in ratios.values():
            assert abs(numpy.mean(of_prompt) - 1) < 0.05, (arch, ratios)


def test_sketches_that_are_not_known_are_left_out(folder):
    """olmo2 has no norm before attention, so that its stream is not found; --no-sketch asks for none."""
    norms = {name: (tiny.EMBD,) for name in ("post_attention_norm", "post_ffw_norm", "attn_q_norm")}
    shapes = SQUARE | tiny.FFN | norms | {"attn_k_norm": (tiny.KV_HEADS * 16,)}
    unknown = tiny.write(folder / "o.gguf", "olmo2", shapes, 2, SQUARE_SIZES, top=("output_norm", "output"))
    known = tiny.write(folder / "m.gguf", "llama", tiny.LLAMA, 2)
    for model, flags, note in (unknown, (), True), (unknown, ("--no-sketch",), False), (known, ("--no-sketch",), False):
        (folder / "ids").write_text(" ".join(map(str, range(N))))
        said = kvdump("--ids", folder / "ids", "-o", folder / "t.h5", "--force", *flags, model=model)
        assert ("was not found in layer 0, 1" in said) == note, said
        with h5py.File(folder / "t.h5") as trace:
            assert not {"output_sketch", "residual_norm"} & set(trace["prompts/0/layers/1"])


def test_speculation_that_is_not_known_is_refused_by_name(folder):
    """olmo2 projects the output of the previous layer without a norm between them."""
    norms = {name: (tiny.EMBD,) for name in ("post_attention_norm", "post_ffw_norm", "attn_q_norm")}
    shapes = SQUARE | tiny.FFN | norms
    model = tiny.write(folder / "m.gguf", "olmo2", shapes | {"attn_k_norm": (tiny.KV_HEADS * 16,)}, 2, SQUARE_SIZES,
                       top=("output_norm", "output"))
    message = dump(folder, model, "--speculated", expect=2)
    for words in ("layer 1: its queries cannot be speculated", "attn_norm", "--speculated"):
        assert words in message, message
    dump(folder, model)


def test_layers_without_rope_are_refused_one_by_one(folder):
    model = tiny.write(folder / "m.gguf", "smollm3", tiny.LLAMA, 4)
    message = dump(folder, model, expect=2)
    for words in ("layer 3 of this model cannot be recorded", "(RoPE)", "--layers"):
        assert words in message, message
    assert layers_of(dump(folder, model, "--layers", "0-2"))["layers"] == [0, 1, 2]


def test_other_attention_is_refused_by_name(folder):
    latent = {"attn_q": (tiny.HEADS * tiny.D, tiny.EMBD), "attn_kv_a_mqa": (24 + 16, tiny.EMBD),
              "attn_kv_a_norm": (24,), "attn_kv_b": (tiny.HEADS * (16 + tiny.D), 24),
              "attn_output": (tiny.EMBD, tiny.HEADS * tiny.D), "ffn_down": (tiny.EMBD, tiny.FF),
              "ffn_up": (tiny.FF, tiny.EMBD), "attn_norm": (tiny.EMBD,), "ffn_norm": (tiny.EMBD,)}
    plm = tiny.write(folder / "plm.gguf", "plm", latent, 1, {"attention.kv_lora_rank": 24, "rope.dimension_count": 16})
    assert "latent attention (MLA)" in dump(folder, plm, expect=2)

    norms = {name: (tiny.EMBD,) for name in tiny.NORMS}
    gpt2 = tiny.write(folder / "gpt2.gguf", "gpt2", tiny.FUSED | norms | {"ffn_up": (tiny.FF, tiny.EMBD)}, 1,
                      top=("output_norm", "position_embd"),
                      biased=("output_norm", "attn_qkv", "attn_output", "attn_norm", "ffn_norm", "ffn_up", "ffn_down"))
    assert "'gpt2' has no rotary position embedding" in dump(folder, gpt2, expect=2)

    inner = 2 * tiny.EMBD
    state = {"attn_norm": (tiny.EMBD,), "ssm_in": (2 * inner, tiny.EMBD), "ssm_conv1d": (inner, 4),
             "ssm_x": (4 + 32, inner), "ssm_dt": (inner, 4), "ssm_a": (inner, 16), "ssm_d": (inner,),
             "ssm_out": (tiny.EMBD, inner)}
    mamba = tiny.write(folder / "mamba.gguf", "mamba", state, 1,
                       {"ssm.conv_kernel": 4, "ssm.inner_size": inner, "ssm.state_size": 16, "ssm.time_step_rank": 4},
                       biased=("ssm_conv1d", "ssm_dt"))
    assert "'mamba' is recurrent" in dump(folder, mamba, expect=2)


def test_text_needs_a_tokenizer(folder):
    model = tiny.write(folder / "m.gguf", "qwen3", tiny.LLAMA | tiny.QK_NORMS, 1)
    (folder / "text").write_text("some words")
    message = kvdump("--text", folder / "text", "-o", folder / "t.h5", model=model, expect=2)
    assert "no tokenizer" in message and "--ids" in message, message


if __name__ == "__main__":
    run_tests([test for name, test in list(globals().items()) if name.startswith("test_")])
