# SPDX-License-Identifier: Apache-2.0
"""Loads Hugging Face models, and refuses those whose files do not hold their weights."""

import contextlib
import json
import os
from typing import Any

import torch
import transformers
from transformers import (AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig,
                          modeling_gguf_pytorch_utils)

from .._error import Error, first_line
from ..files.gguf import element_types, one_gguf, read_once
from .measure import body_of

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def quiet():
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    modeling_gguf_pytorch_utils.tqdm = lambda tensors, **_: tensors  # a bar of its own


def source_of(name):
    """Arguments with which transformers finds a model: a folder, a hub name, or the folder and name of a GGUF file."""
    if name.endswith(".gguf") or os.path.isfile(name):
        if not os.path.isfile(name):
            raise Error(f"{name}: there is no such model file; check the name.")
        folder, file = os.path.split(os.path.abspath(name))
        return {"pretrained_model_name_or_path": folder, "gguf_file": file}
    if os.path.isdir(name) and not os.path.isfile(os.path.join(name, "config.json")):
        raise Error(f"{name}: this folder holds no config.json; give a folder that save_pretrained() made, a hub name "
                    "or a GGUF file.")
    return {"pretrained_model_name_or_path": name}


def loaded(name, what, load, **options):
    """Calls `load`, and turns whatever transformers raises into an Error that names the model."""
    try:
        is_gguf = "gguf_file" in source_of(name)
        with one_gguf(name) if is_gguf else contextlib.nullcontext(name) as found, \
                read_once() if is_gguf else contextlib.nullcontext():
            return load(**source_of(found), **options)
    except Error:
        raise
    except (torch.OutOfMemoryError, MemoryError):
        raise MemoryError(f"{name}: no memory for its weights; give --weights bf16, or a smaller model") from None
    except Exception as failure:
        raise Error(f"{name}: transformers cannot load its {what} ({first_line(failure)}).") from None


def value_of(config, name):
    """An attribute of a configuration; where it differs between layers, that of the first layer that has it."""
    try:
        return getattr(config, name, None)
    except Exception:  # of a type of its own
        layers = getattr(config, "per_layer_config", None) or {}
        values = [getattr(layer, name, None) for layer in (layers.values() if isinstance(layers, dict) else layers)]
        return next((value for value in values if value), None)


def refuse_unsupported(name, config, latent=False):
    text = config.get_text_config()
    if config.is_encoder_decoder:
        raise Error(f"{name}: architecture '{config.model_type}' has an encoder; a trace holds the attention of "
                    "decoder-only models.")
    if value_of(text, "kv_lora_rank") and not latent:
        raise Error(f"{name}: architecture '{config.model_type}' uses latent attention (MLA): its cache holds no keys "
                    "and values per head.")


def check_shards(name):
    """Raises Error if files are missing that the index of a folder's weights names."""
    for index in ("model.safetensors.index.json", "pytorch_model.bin.index.json"):
        path = os.path.join(name, index)
        if not os.path.isfile(path) or os.path.exists(os.path.join(name, index.removesuffix(".index.json"))):
            continue
        with open(path, encoding="utf-8") as file:
            files = sorted(set(json.load(file)["weight_map"].values()))
        missing = [file for file in files if not os.path.exists(os.path.join(name, file))]
        if missing:
            raise Error(f"{name}: {listed(missing)} of the {len(files)} files that {index} names are missing; fetch "
                        "them, or the model would have random weights.")


def listed(names):
    """The first three names, and how many others there are."""
    names = sorted(names)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} others" if len(names) > 3 else "")


def check_weights(name, model, info):
    """Raises Error unless the files of a model hold exactly its tensors: what `info` of from_pretrained(...,
    output_loading_info=True) reports. Tensors that are tied to another one need no place in a file, and buffers that
    transformers computes may have one."""
    tied = getattr(model, "all_tied_weights_keys", None) or {}
    missing = {key for key in info["missing_keys"] if tied.get(key, key) in info["missing_keys"]}
    missing |= {key for key, tensor in model.named_parameters() if tensor.is_meta}
    mismatched = {key[0] if isinstance(key, tuple) else key for key in info["mismatched_keys"]}
    unused = set(info["unexpected_keys"]) - {key for key, _ in model.named_buffers()}
    if missing:
        raise Error(f"{name}: its files lack {len(missing)} tensors of the model, which would be random: "
                    f"{listed(missing)}" + (f"; and they hold {len(unused)} that it does not use: {listed(unused)}"
                                            if unused else "") + ". Fetch the whole model.")
    if mismatched:
        raise Error(f"{name}: {len(mismatched)} tensors have other shapes than config.json says: {listed(mismatched)}.")
    if unused:
        raise Error(f"{name}: its files hold {len(unused)} tensors that the model of its config.json does not use: "
                    f"{listed(unused)}. The configuration is of another model, or tensors were renamed.")
    if info.get("error_msgs"):
        raise Error(f"{name}: transformers cannot load its weights ({' '.join(map(str, info['error_msgs']))[:300]}).")


def load_model(name: str, dtype: torch.dtype = torch.float32, latent: bool = False,
               **options: Any) -> transformers.PreTrainedModel:
    """A causal language model of transformers, whose files hold all of its weights.

    Parameters
    ----------
    name : str
        A folder of ``save_pretrained()``, a hub name or a GGUF file.
    dtype : torch.dtype
        The type of its weights.
    latent : bool
        Also take architectures whose attention has latents (MLA).
    **options
        Those of ``from_pretrained()``.

    Returns
    -------
    transformers.PreTrainedModel
        The model in evaluation mode.

    Raises
    ------
    Error
        Where ``from_pretrained()`` only warns: for weights that the files lack, which would be random, for tensors that
        the model does not use, and for architectures whose attention kvbench does not know.
    MemoryError
        If there is no memory for its weights.
    """
    gguf = "gguf_file" in source_of(name)
    if not gguf:
        # checked before gigabytes are loaded; the configuration of a GGUF file takes as long as its weights
        refuse_unsupported(name, loaded(name, "configuration", AutoConfig.from_pretrained), latent)
        check_shards(name)
    options = {"ignore_mismatched_sizes": True, **options}  # which check_weights() refuses by name
    model, info = loaded(name, "weights", AutoModelForCausalLM.from_pretrained, dtype=dtype, output_loading_info=True,
                         **options)
    check_weights(name, model, info)
    refuse_unsupported(name, model.config, latent)
    return model.eval()


def token_ids(tokenizer, text, **options):
    """The ids of a text, in which names of special tokens are text too."""
    return tokenizer(text, split_special_tokens=True, verbose=False, **options)["input_ids"]


class Model:
    """A causal language model and its attributes in a trace."""

    def __init__(self, name, weights="f32", device="cpu", latent=False):
        quiet()
        if device == "cuda" and not torch.cuda.is_available():
            raise Error("--device cuda: PyTorch finds no CUDA device; leave --device out to run on the CPU.")
        self.name, self.weights = name, weights
        self.model = load_model(name, TYPES[weights], latent).to(device).requires_grad_(False)
        self.stored = element_types(name) if "gguf_file" in source_of(name) else \
            stored_type(loaded(name, "configuration", AutoConfig.from_pretrained))
        self.config = self.model.config.get_text_config()

    @property
    def title(self):
        base = os.path.basename(os.path.normpath(self.name)) if os.path.exists(self.name) else self.name
        return base.removesuffix(".gguf")

    @property
    def arch(self):
        return self.model.config.model_type

    @property
    def quantisation(self):
        ran = self.weights.upper()
        return ran if self.stored in ("", ran) else f"{ran} from {self.stored}"

    @property
    def num_layers(self):
        return self.config.num_hidden_layers

    @property
    def vocabulary(self):
        return self.config.vocab_size

    @property
    def longest(self):
        """Context length of the model's training."""
        return getattr(self.config, "max_position_embeddings", None) or 2**31

    def tokenizer(self, remedy="give token ids with --ids", **options):
        """A function from texts to ids. `remedy`: what an Error says; `options`: as for a tokenizer of transformers."""
        tokenizer = self.own_tokenizer(remedy)
        return lambda text: token_ids(tokenizer, text, **options)

    def own_tokenizer(self, remedy):
        """That of transformers."""
        tokenizer = loaded(self.name, f"tokenizer; {remedy}", AutoTokenizer.from_pretrained)
        if 2 * len(tokenizer) < self.vocabulary:  # some versions return such a tokenizer for a folder without one
            raise Error(f"{self.name}: its tokenizer knows {len(tokenizer)} of {self.vocabulary} tokens; {remedy}.")
        return tokenizer

    def hidden(self, ids, **options):
        """Last hidden states [n, width] of these tokens."""
        given = torch.tensor([ids], device=self.model.device)
        return body_of(self.model)(input_ids=given, **options)[0][0]

    def greedy(self, ids, count):
        """Up to `count` tokens decoded greedily after `ids` by the model's own generate(), with the cache that it
        chooses; fewer if the model ends its text."""
        ends = self.model.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        # Without the model's own settings, which may be sampling, penalties, or a cache of a fixed length.
        self.model.generation_config = GenerationConfig(eos_token_id=ends if None not in ends else None, pad_token_id=0)
        given = torch.tensor([ids], device=self.model.device)
        made = self.model.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=count, do_sample=False)
        generated = made[0, len(ids):].tolist()
        return generated[:min([generated.index(end) for end in ends if end in generated], default=count)]


def stored_type(config):
    """Element type of the stored weights: BF16, GPTQ, ...; empty if the configuration does not state it."""
    method = getattr(config, "quantization_config", None) or {}
    method = method.get("quant_method", "") if isinstance(method, dict) else getattr(method, "quant_method", "")
    names = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
    return str(method).upper() or names.get(str(getattr(config, "dtype", "")).removeprefix("torch."), "")
