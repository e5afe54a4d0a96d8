# SPDX-License-Identifier: Apache-2.0
"""Loads a Hugging Face model and derives attributes of a trace from its configuration."""

import os

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from ._schema import Error

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def quiet():
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


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


def first_line(failure):
    text = str(failure).strip().split("\n")[0]
    return f"{type(failure).__name__}: {text}"[:300]


def loaded(name, what, load, **options):
    """Calls `load`, and turns whatever transformers raises into an Error that names the model."""
    try:
        return load(**source_of(name), **options)
    except Error:
        raise
    except (torch.OutOfMemoryError, MemoryError):
        raise MemoryError(f"{name}: no memory for its weights; give --weights bf16, or a smaller model") from None
    except Exception as failure:
        raise Error(f"{name}: transformers cannot load its {what} ({first_line(failure)}).") from None


def refuse_unsupported(name, config):
    text = config.get_text_config()
    if config.is_encoder_decoder:
        raise Error(f"{name}: architecture '{config.model_type}' has an encoder; a trace holds the attention of "
                    "decoder-only models.")
    if getattr(text, "kv_lora_rank", None):
        raise Error(f"{name}: architecture '{config.model_type}' uses latent attention (MLA): its cache holds no keys "
                    "and values per head.")


def rope_of(config, layer):
    """(theta, type) of a layer according to the configuration; (0, "none") if it names no rotary embedding."""
    parameters = getattr(config, "rope_parameters", None) or {}
    kinds = getattr(config, "layer_types", None)
    if kinds and isinstance(parameters.get(kinds[layer]), dict):
        parameters = parameters[kinds[layer]]
    theta = parameters.get("rope_theta")
    return (float(theta), parameters.get("rope_type", "default")) if theta else (0.0, "none")


class Model:
    """A causal language model and its attributes in a trace."""

    def __init__(self, name, weights="f32", device="cpu"):
        quiet()
        if device == "cuda" and not torch.cuda.is_available():
            raise Error("--device cuda: PyTorch finds no CUDA device; leave --device out to run on the CPU.")
        self.name, self.weights = name, weights
        gguf = "gguf_file" in source_of(name)
        # checked before gigabytes are loaded; the configuration of a GGUF file takes as long as its weights
        if not gguf:
            config = loaded(name, "configuration", AutoConfig.from_pretrained)
            refuse_unsupported(name, config)
        self.model = loaded(name, "weights", AutoModelForCausalLM.from_pretrained,
                            dtype=TYPES[weights]).eval().to(device)
        refuse_unsupported(name, self.model.config)
        self.stored = gguf_type(name) if gguf else stored_type(config)
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

    def tokenizer(self):
        tokenizer = loaded(self.name, "tokenizer; give token ids with --ids", AutoTokenizer.from_pretrained)
        if 2 * len(tokenizer) < self.vocabulary:  # some versions return such a tokenizer for a folder without one
            raise Error(f"{self.name}: its tokenizer knows {len(tokenizer)} of {self.vocabulary} tokens; give token "
                        "ids with --ids.")
        return lambda text: tokenizer(text, split_special_tokens=True, verbose=False)["input_ids"]

    def rope(self, layer):
        return rope_of(self.config, layer)

    def hidden(self, ids, **options):
        """Last hidden states [n, width] of these tokens. The language-model head, whose output is n times the
        vocabulary, does not run."""
        given = torch.tensor([ids], device=self.model.device)
        return self.model.get_decoder()(input_ids=given, **options)[0][0]

    def greedy(self, ids, count, chunk=512):
        """Up to `count` tokens decoded greedily after `ids`; fewer if the model ends its text."""
        # without the configuration, so that layers with a sliding window keep all tokens too
        cache = transformers.DynamicCache()
        ends = self.model.generation_config.eos_token_id
        ends = set(ends if isinstance(ends, list) else [ends])
        generated, feed = [], list(ids)
        while len(generated) < count:
            for first in range(0, len(feed), chunk):
                given = torch.tensor([feed[first:first + chunk]], device=self.model.device)
                logits = self.model(input_ids=given, past_key_values=cache, use_cache=True).logits
            feed = [int(logits[0, -1].argmax())]
            if feed[0] in ends:
                break
            generated += feed
        return generated


def gguf_type(path):
    """Quantisation of a GGUF file: Q4_1, F16, ...; empty if the file does not state it."""
    from gguf import GGUFReader, LlamaFileType
    field = GGUFReader(path).fields.get("general.file_type")
    return LlamaFileType(int(field.contents())).name.removeprefix("MOSTLY_").removeprefix("ALL_") if field else ""


def stored_type(config):
    """Element type of the stored weights: BF16, GPTQ, ...; empty if the configuration does not state it."""
    method = getattr(config, "quantization_config", None) or {}
    method = method.get("quant_method", "") if isinstance(method, dict) else getattr(method, "quant_method", "")
    names = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
    return str(method).upper() or names.get(str(getattr(config, "dtype", "")).removeprefix("torch."), "")
