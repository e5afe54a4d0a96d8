# SPDX-License-Identifier: Apache-2.0
"""Every decoder that the installed transformers offers, with tiny random weights, and what refusals say."""
import inspect

import torch
import transformers
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

import hf_models

LAYERS = 4
# What a configuration knows of these is set.
SMALL = {
    "vocab_size": 97, "bos_token_id": 1, "eos_token_id": 96, "pad_token_id": 0, "hidden_size": 64, "d_model": 64,
    "n_embd": 64, "intermediate_size": 64, "ffn_dim": 64, "d_ff": 64, "num_hidden_layers": LAYERS, "n_layer": LAYERS,
    "n_layers": LAYERS, "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "max_position_embeddings": 512, "n_positions": 512, "sliding_window": 8, "num_experts": 4, "num_local_experts": 4,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
    # latent attention and what is built from it
    "kv_lora_rank": 16, "q_lora_rank": 24, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16,
    "index_n_heads": 2, "index_head_dim": 16, "index_topk": 16, "rotary_dim": 8,
    "unpadded_vocab_size": 97, "n_group": 1, "topk_group": 1,
    # state-space and linear-attention layers
    "mamba_d_state": 16, "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_expand": 2, "mamba_d_ssm": 128,
    "mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 16, "n_groups": 1, "mamba_n_groups": 1,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
}
# What layers of Granite are called, which differs between versions.
STATE_SPACE = CONFIG_MAPPING["granitemoehybrid"]().layer_types[0]
# Beyond that, by type of model. None: the default is left as it is.
OWN = {
    "bamba": {"attn_layer_indices": [1, 3]}, "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "falcon": {"head_dim": None, "num_kv_heads": 2, "new_decoder_architecture": True},
    "dbrx": {"attn_config": {"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 8.0},
             "ffn_config": {"hidden_size": 64, "ffn_hidden_size": 64, "moe_num_experts": 4, "moe_top_k": 2}},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]], "window_size": 8, "num_layers": 4, "num_heads": 4},
    "gemma3n_text": {"num_kv_shared_layers": 2, "layer_types": ["sliding_attention", "full_attention"] * 2,
                     "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 97, "laurel_rank": 8,
                     "altup_num_inputs": 2, "activation_sparsity_pattern": [0.0] * 4},
    "gemma4_text": {"head_dim": 16, "global_head_dim": 16, "num_kv_shared_layers": 2,
                    "layer_types": ["sliding_attention", "full_attention"] * 2, "hidden_size_per_layer_input": 8,
                    "vocab_size_per_layer_input": 97, "num_global_key_value_heads": None},
    "granitemoehybrid": {"layer_types": [STATE_SPACE, {"mamba": "attention"}.get(STATE_SPACE, "full_attention")] * 2,
                         "position_embedding_type": "rope"},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "longcat_flash": {"num_hidden_layers": None, "num_layers": LAYERS // 2, "ffn_hidden_size": 64,
                      "expert_ffn_hidden_size": 32, "moe_topk": 2, "zero_expert_num": 2},
    "dots1": {"n_shared_experts": 1}, "dots3_note_text": {"num_key_value_heads": 4}, "zaya": {"num_experts_per_tok": 1},
    "dory": {"sliding_window": 64},
    "qwen4_exp_text": {"indexer_budget": 16, "indexer_compress_ratio": 4, "indexer_n_heads": 2,
                       "indexer_kv_heads": 1, "indexer_head_dim": 16},
    "zamba": {"use_mamba_kernels": False, "attn_layer_period": 2, "attn_layer_offset": 1, "attention_head_dim": 32},
    "zamba2": {"layers_block_type": ["mamba", "hybrid"] * 2},
    "cohere_compass_text": {"layer_types": ["full_attention"] * 4, "rope_parameters":
                            {"full_attention": {"rope_type": "default", "rope_theta": 1e4}}},
}
LEFT_OUT = {
    "an encoder, or the decoder of an encoder-decoder model": """bart bert bert-generation big_bird bigbird_pegasus
        blenderbot blenderbot-small camembert data2vec-text electra ernie git marian mbart megatron-bert mvp pegasus
        plbart prophetnet rembert roberta roberta-prelayernorm roc_bert roformer trocr whisper xlm xlm-roberta
        xlm-roberta-xl xmod moshi musicgen musicgen_melody speech_to_text""",
    "the text model of it is in the table": """fuyu gemma3 gemma3n gemma4 gemma4_unified gemma4_assistant
        gemma4_unified_assistant got_ocr2 llama4 mllama emu3 moss_transcribe_diarize phi4_multimodal qwen3_5
        qwen3_5_moe qwen4_exp gpt-sw3 dots3_note gemma4_unified_text""",
    "no attention over a cache of keys and values": "falcon_mamba mamba mamba2 rwkv xlstm reformer xlnet blt",
}
# A refusal must hold one of these.
REFUSALS = (
    "does not use the attention interface", "uses latent attention", "has an encoder", "has attention sinks",
    "position bias", "its mask is an array", "attends in both directions", "passes no `scaling`", "has no mask",
    "runs twice per pass", "do not fit", "layers differ in their numbers of heads", "is not a sliding window",
    "computes with its attention mask", "attends to the cache of layer",
    "has no eager attention for it", "repeats the heads of its cache", "does not know the number of its layer",
)


def left_out():
    return {name for names in LEFT_OUT.values() for name in names.split()}


def names():
    return [name for name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES if name not in left_out()]


def config(name, longest=None):
    """A configuration of four layers of each kind in turn. `longest`: the context of its training, if not that of the
    table."""
    kind = CONFIG_MAPPING[name]
    text = kind().get_text_config()
    kind, own = type(text), OWN.get(name, {})
    accepted = set(inspect.signature(kind.__init__).parameters) | set(getattr(kind, "__dataclass_fields__", {})) | \
        set(getattr(kind, "attribute_map", {}))
    small = SMALL | dict.fromkeys(("max_position_embeddings", "n_positions"), longest or SMALL["n_positions"])
    given = {key: value for key, value in small.items() if key in accepted}
    kinds = list(dict.fromkeys(getattr(text, "layer_types", None) or ()))
    kinds_name = getattr(kind, "attribute_map", {}).get("layer_types", "layer_types")
    if kinds and "layer_types" in accepted and not isinstance(getattr(kind, kinds_name, None), property):
        given["layer_types"] = [kinds[i % len(kinds)] for i in range(LAYERS)]
    if "kv_lora_rank" in given:
        given["num_key_value_heads"] = SMALL["num_attention_heads"]
        given |= {"head_dim": SMALL["qk_rope_head_dim"]} if "head_dim" in given else {}
    given |= own
    for alias, target in getattr(kind, "attribute_map", {}).items():
        if alias in given and target in given:
            del given[alias]
    return kind(**{key: value for key, value in given.items() if value is not None})


def build(name, seed=3, longest=None):
    """A model of this type whose attention differs between tokens; `longest` as for config()."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config(name, longest))
    with torch.no_grad():
        for weight_name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(0, min(0.3, 2 / weight.shape[-1]**0.5))
    model.generation_config = transformers.GenerationConfig(eos_token_id=96, pad_token_id=0)
    return model.eval()


def held(model, ids):
    """(keys, values) [kv heads, tokens, channels] in the cache that a model fills with these tokens, by layer; None for
    code that returns no cache (RecurrentGemma)."""
    output = model(torch.tensor([ids]), use_cache=True)
    cache = next((output[name] for name in ("cache", "past_key_values") if output.get(name) is not None), None)
    if cache is None:
        return None
    pairs = [(getattr(layer, "keys", None), getattr(layer, "values", None)) for layer in cache.layers] \
        if hasattr(cache, "layers") else list(zip(cache.key_cache, cache.value_cache))
    return {number: tuple(tensor[0].float().numpy() for tensor in pair) for number, pair in enumerate(pairs)
            if all(torch.is_tensor(tensor) and tensor.dim() == 4 and tensor.numel() for tensor in pair)}


__all__ = ["REFUSALS", "build", "config", "held", "hf_models", "left_out", "names"]
