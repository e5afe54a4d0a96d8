# SPDX-License-Identifier: Apache-2.0
"""GGUF models of other architectures with seeded random weights: their graphs are real, their text would be noise. And
the first layers of a real model."""

import os
import pathlib

import gguf
import numpy

EMBD, HEADS, KV_HEADS, D, FF, VOCAB = 64, 4, 2, 32, 96, 500  # D differs from EMBD / HEADS, as in gemma

NORMS = ["attn_norm", "ffn_norm"]
ATTENTION = {"attn_q": (HEADS * D, EMBD), "attn_k": (KV_HEADS * D, EMBD), "attn_v": (KV_HEADS * D, EMBD),
             "attn_output": (EMBD, HEADS * D)}
FFN = {"ffn_gate": (FF, EMBD), "ffn_up": (FF, EMBD), "ffn_down": (EMBD, FF)}
QK_NORMS = {"attn_q_norm": (D,), "attn_k_norm": (D,)}
LLAMA = ATTENTION | FFN | {name: (EMBD,) for name in NORMS}
GEMMA = LLAMA | {"post_attention_norm": (EMBD,), "post_ffw_norm": (EMBD,)}
FUSED = {"attn_qkv": ((HEADS + 2 * KV_HEADS) * 16, EMBD), "attn_output": (EMBD, HEADS * 16), "ffn_down": (EMBD, FF)}


def write(path, arch, tensors, layers=2, extra=(), top=("output_norm",), biased=(), types=None, file_type=None,
          **split):
    """biased: the tensors that have a bias.
    tensors: {name: shape} of each layer, or a list of them for the layers in turn; row-major (outputs, inputs).
    extra: metadata below the architecture's name.
    types: element types of matrices that are not F32, by their names without a layer. file_type: what the metadata
    states. split: arguments of GGUFWriter that make several files."""
    random = numpy.random.default_rng(7)
    writer = gguf.GGUFWriter(path, arch, **split)
    if file_type is not None:
        writer.add_file_type(file_type)
    of_layer = tensors if isinstance(tensors, list) else [tensors] * layers
    layers = len(of_layer)
    head_dim = 16 if "attn_qkv" in of_layer[0] else D
    metadata = {"context_length": 512, "embedding_length": EMBD, "block_count": layers, "feed_forward_length": FF,
                "vocab_size": VOCAB, "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS,
                "attention.key_length": head_dim, "attention.value_length": head_dim, "rope.dimension_count": head_dim}
    for name, value in (metadata | dict(extra)).items():
        if not name.startswith("attention.layer_norm"):
            add = (writer.add_bool if isinstance(value, bool) else
                   writer.add_array if isinstance(value, list) else
                   writer.add_float32 if isinstance(value, float) else writer.add_uint32)
            add(f"{arch}.{name}", value)
    for name in "attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon":
        writer.add_float32(f"{arch}.{name}", 1e-5)
    writer.add_string("tokenizer.ggml.model", "no_vocab")

    def add(name, shape):
        scale = shape[-1] ** -0.5 * 1.5
        values = random.normal(1, 0.3, shape) if len(shape) == 1 else random.normal(0, scale, shape)
        if name.endswith("ssm_a"):
            values = -abs(values)  # the state decays
        stored = gguf.GGMLQuantizationType[(types or {}).get(name.split(".")[-2], "F32")]
        values = gguf.quants.quantize(values.astype(numpy.float32), stored)
        writer.add_tensor(name, values, raw_dtype=stored)

    add("token_embd.weight", (VOCAB, EMBD))
    for name in top:
        add(name + ".weight", {"position_embd": (512, EMBD), "output": (VOCAB, EMBD)}.get(name, (EMBD,)))
        if name in biased:
            add(name + ".bias", (EMBD,))
    for layer, own in enumerate(of_layer):
        for name, shape in own.items():
            if name != "ssm_dt" or len(shape) > 1:  # that of Mamba 2 is a bias alone
                add(f"blk.{layer}.{name}" + ("" if name in ("ssm_a", "ssm_d") else ".weight"), shape)
            if name in biased:
                add(f"blk.{layer}.{name}.bias", shape[:1])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return str(path)


def windowed(path):
    """Layer 5 of 6 sees all tokens, the others the last 16."""
    return write(path, "gemma3", GEMMA | QK_NORMS, 6,
                 {"attention.sliding_window": 16, "rope.freq_base": 1e6, "rope.freq_base_swa": 1e4})


def hybrid(path):
    """Attention in layers 1 and 3 of 4; the others are of Mamba 2."""
    inner, state, heads, norms = 2 * EMBD, 16, 4, {name: (EMBD,) for name in NORMS}
    recurrent = norms | FFN | {"ssm_in": (2 * inner + 2 * state + heads, EMBD), "ssm_conv1d": (inner + 2 * state, 4),
                               "ssm_dt": (heads,), "ssm_a": (heads, 1), "ssm_d": (heads, 1),
                               "ssm_norm": (1, inner), "ssm_out": (EMBD, inner)}
    sizes = {"conv_kernel": 4, "inner_size": inner, "state_size": state, "time_step_rank": heads, "group_count": 1}
    return write(path, "granitehybrid", [recurrent, LLAMA] * 2,
                 extra={f"ssm.{name}": value for name, value in sizes.items()} |
                 {"attention.head_count_kv": [0, KV_HEADS] * 2, "rope.freq_base": 1e4},
                 biased=("ssm_conv1d", "ssm_dt"))


def first_layers(model, layers=4):
    """The path of a copy, beside the model, with its first layers alone, which runs in a fraction of the time."""
    path = pathlib.Path(model).with_suffix(f".{layers}-layers.gguf")
    if path.exists():
        return str(path)
    reader, new = gguf.GGUFReader(model), f"{path}.{os.getpid()}"
    arch = reader.get_field("general.architecture").contents()
    writer = gguf.GGUFWriter(new, arch)
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            value = layers if name == f"{arch}.block_count" else field.contents()
            writer.add_key_value(name, value, field.types[0], sub_type=field.types[-1])
    for tensor in reader.tensors:
        number = tensor.name.split(".")[1]
        if not number.isdigit() or int(number) < layers:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(new, path)
    return str(path)
