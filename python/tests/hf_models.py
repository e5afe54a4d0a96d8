# SPDX-License-Identifier: Apache-2.0
"""Small models with seeded random weights, one for each architecture with its own form of attention: 4 query heads on 2
kv heads of 16 channels."""
import numpy as np
import torch
import transformers
from transformers import AutoModelForCausalLM

transformers.utils.logging.disable_progress_bar()
SMALL = {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 512, "bos_token_id": 1,
         "eos_token_id": 96, "pad_token_id": 0}
WIDE = {**SMALL, "hidden_size": 64}  # for models where d must be hidden_size / num_attention_heads


def rope(theta=1e4, **more):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta, **more}}


# MLA: a latent of 32 channels and a rotary key of 8; 16 channels of a query and 12 of a value beside it
LATENT = {**WIDE, "num_key_value_heads": 4, "head_dim": 8, "kv_lora_rank": 32, "q_lora_rank": 24, "qk_rope_head_dim": 8,
          "qk_nope_head_dim": 16, "v_head_dim": 12, "n_routed_experts": 4, "n_group": 1, "topk_group": 1,
          "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1}
GEMMA = {**SMALL, "sliding_window": 8, "query_pre_attn_scalar": 24,
         "layer_types": ["sliding_attention", "full_attention"]}
# name: (config class, its arguments, expected attributes of the trace: windows, thetas, rope_type, rope_layout, scale,
# softcap)
MODELS = {
    "llama": ("LlamaConfig", {**SMALL, **rope(), "attention_bias": True},
              ([0, 0], [1e4, 1e4], "default", "half", 0.25, 0)),
    "llama3": ("LlamaConfig", {**SMALL, **rope(5e5, rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                                               high_freq_factor=4.0, original_max_position_embeddings=64)},
               ([0, 0], [5e5, 5e5], "llama3", "half", 0.25, 0)),
    "yarn": ("Qwen2Config", {**WIDE, **rope(1e4, rope_type="yarn", factor=4.0, original_max_position_embeddings=128)},
             ([0, 0], [1e4, 1e4], "yarn", "half", 0.25, 0)),
    "qwen2": ("Qwen2Config", {**WIDE, **rope(1e6), "use_sliding_window": True, "sliding_window": 10,
                              "max_window_layers": 1, "layer_types": ["full_attention", "sliding_attention"]},
              ([0, 10], [1e6, 1e6], "default", "half", 0.25, 0)),
    "qwen3": ("Qwen3Config", {**SMALL, **rope(1e6)}, ([0, 0], [1e6, 1e6], "default", "half", 0.25, 0)),
    "gemma2": ("Gemma2Config", {**GEMMA, **rope(), "attn_logit_softcapping": 2.0},
               ([8, 0], [1e4, 1e4], "default", "half", 24**-0.5, 2)),
    "gemma3": ("Gemma3TextConfig",
               {**GEMMA, "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
                                             "full_attention": {"rope_type": "default", "rope_theta": 1e6}}},
               ([8, 0], [1e4, 1e6], "default", "half", 24**-0.5, 0)),
    "phi3": ("Phi3Config", {**WIDE, **rope(), "sliding_window": 12},
             ([12, 12], [1e4, 1e4], "default", "half", 0.25, 0)),
    "mistral": ("MistralConfig", {**SMALL, **rope(), "sliding_window": 400},
                ([0, 0], [1e4, 1e4], "default", "half", 0.25, 0)),
    "phi": ("PhiConfig", {**WIDE, **rope(partial_rotary_factor=0.5)}, ([0, 0], [1e4, 1e4], "partial", "half", 0.25, 0)),
    "cohere": ("CohereConfig", {**WIDE, **rope()}, ([0, 0], [1e4, 1e4], "default", "interleaved", 0.25, 0)),
    "olmo2": ("Olmo2Config", {**WIDE, **rope()}, ([0, 0], [1e4, 1e4], "default", "half", 0.25, 0)),
    "smollm3": ("SmolLM3Config", {**WIDE, **rope(), "no_rope_layers": [1, 0]},
                ([0, 0], [1e4, 0], "default", "half", 0.25, 0)),
    "deepseek_v2": ("DeepseekV2Config", {**LATENT, **rope(), "q_lora_rank": None},
                    ([0, 0], [1e4, 1e4], "partial", "interleaved", 24**-0.5, 0)),
    "deepseek_v3": ("DeepseekV3Config", {**LATENT, **rope()}, ([0, 0], [1e4, 1e4], "partial", "half", 24**-0.5, 0)),
    "gpt2": ("GPT2Config", {"vocab_size": 97, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 512,
                            "bos_token_id": 1, "eos_token_id": 96}, ([0, 0], [0, 0], "none", "half", 0.25, 0)),
}


# those that can be recorded: older versions make keys of latents without expand_kv()
RECORDED = MODELS if hasattr(transformers.models.deepseek_v3.modeling_deepseek_v3.DeepseekV3Attention, "expand_kv") \
    else {name: model for name, model in MODELS.items() if "deepseek" not in name}


def config(kind, **arguments):
    return getattr(transformers, kind)(**arguments)


def build(kind, arguments, seed=3):
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config(kind, **arguments))
    with torch.no_grad():
        # large enough that attention differs between tokens, and biases and norms have an effect
        for name, weight in model.named_parameters():
            weight.normal_(1 if "norm" in name and "gemma" not in kind.lower() else 0, 0.3)
    return model.eval()


def save(folder, name):
    """Saves one of MODELS to the folder; returns the model."""
    kind, arguments, _ = MODELS[name]
    model = build(kind, arguments)
    model.save_pretrained(folder)
    return model


def token_ids(count, seed=0):
    return [(seed * 31 + i * i * 29 + i * 7 + 3) % 95 + 1 for i in range(count)]


def small_tokenizer(words):
    """A tokenizer of words between spaces, numbered in their order; the first one stands for all others."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=words[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token=words[0], pad_token=words[0],
                                                eos_token=words[-1])


def own_attention(model, ids):
    """Attention probabilities [layer][q_heads, n, n] of the model's own eager attention."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        return [a[0].double().numpy() for a in model(torch.tensor([ids]), output_attentions=True,
                                                     use_cache=False).attentions]


def probabilities(layer, keys="keys", queries="queries"):
    """Attention probabilities softmax(cap(scale q k^T) + mask) [q_heads, m, n], as the trace describes them."""
    n = layer.prompt.num_tokens
    k = layer.array(keys).astype(np.float64).repeat(layer.prompt.trace.group, 0)
    logits = layer.scale * layer.array(queries).astype(np.float64) @ k.transpose(0, 2, 1)
    if layer.softcap:
        logits = layer.softcap * np.tanh(logits / layer.softcap)
    behind = layer.query_positions[:, None] - np.arange(n)
    logits[:, (behind < 0) | ((behind >= layer.window) & (layer.window > 0))] = -np.inf
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def turned(x, theta, layout):
    """x [heads, n, 16] at positions 0 .. n - 1, rotated."""
    if not theta:
        return x
    order = np.arange(16) if layout == "half" else np.concatenate([np.arange(0, 16, 2), np.arange(1, 16, 2)])
    x = x[..., order].astype(np.float64)
    z = (x[..., :8] + 1j * x[..., 8:]) * np.exp(1j * np.arange(x.shape[1])[:, None] * theta ** (-np.arange(8) / 8))
    out = np.empty_like(x)
    out[..., order] = np.concatenate([z.real, z.imag], -1)
    return out
