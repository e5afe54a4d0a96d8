# SPDX-License-Identifier: Apache-2.0
"""An independent implementation of the first layers of a llama model in NumPy (fp64), reading an fp32 GGUF file."""

import gguf
import numpy


class Llama:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.weights = {tensor.name: tensor for tensor in reader.tensors}
        self.fields = reader.fields
        self.heads = self.field("llama.attention.head_count")
        self.kv_heads = self.field("llama.attention.head_count_kv")
        self.epsilon = self.field("llama.attention.layer_norm_rms_epsilon")
        self.theta = self.field("llama.rope.freq_base")

    def field(self, name):
        return self.fields[name].contents()

    def weight(self, name):
        tensor = self.weights[name + ".weight"]
        assert tensor.tensor_type == gguf.GGMLQuantizationType.F32, (name, tensor.tensor_type)
        return tensor.data.astype(numpy.float64)

    def norm(self, x, name):
        return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * self.weight(name)

    def rotate(self, x):
        """x [heads, n, d]: rotary embedding of adjacent pairs, the layout of GGUF llama weights."""
        d = x.shape[-1]
        angle = numpy.arange(x.shape[1])[:, None] * self.theta ** (-numpy.arange(0, d, 2) / d)
        turned = (x[..., 0::2] + 1j * x[..., 1::2]) * numpy.exp(1j * angle)
        return numpy.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)

    def layers(self, tokens, count):
        """Yields (q [heads, n, d], k, v, attention output [heads, n, d], speculated q) of the first `count` layers, q
        and k post-RoPE. Speculated queries are those that the layer would have of the layer before's input; None in
        layer 0."""
        x = self.weight("token_embd")[tokens]
        before = None
        for layer in range(count):
            block = f"blk.{layer}."
            h = self.norm(x, block + "attn_norm")
            split = lambda name, heads, h=h: (
                h @ self.weight(block + name).T).reshape(len(tokens), heads, -1).transpose(1, 0, 2)
            q, k = self.rotate(split("attn_q", self.heads)), self.rotate(split("attn_k", self.kv_heads))
            v = split("attn_v", self.kv_heads)
            z = self.attend(q, k, v)
            yield q, k, v, z, None if before is None else self.rotate(split("attn_q", self.heads, before))
            before = h
            x = x + z.transpose(1, 0, 2).reshape(len(tokens), -1) @ self.weight(block + "attn_output").T
            h = self.norm(x, block + "ffn_norm")
            gate, up = h @ self.weight(block + "ffn_gate").T, h @ self.weight(block + "ffn_up").T
            x = x + (gate / (1 + numpy.exp(-gate)) * up) @ self.weight(block + "ffn_down").T

    def attend(self, q, k, v):
        group = self.heads // self.kv_heads
        logits = q @ k.repeat(group, 0).transpose(0, 2, 1) / numpy.sqrt(q.shape[-1])
        logits[:, ~numpy.tri(q.shape[1], dtype=bool)] = -numpy.inf
        weights = numpy.exp(logits - logits.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v.repeat(group, 0)

    def log_probabilities(self, tokens, layers):
        x = self.weight("token_embd")[tokens]
        for layer, (_, _, _, z, _) in enumerate(self.layers(tokens, layers)):
            block = f"blk.{layer}."
            x = x + z.transpose(1, 0, 2).reshape(len(tokens), -1) @ self.weight(block + "attn_output").T
            h = self.norm(x, block + "ffn_norm")
            gate, up = h @ self.weight(block + "ffn_gate").T, h @ self.weight(block + "ffn_up").T
            x = x + (gate / (1 + numpy.exp(-gate)) * up) @ self.weight(block + "ffn_down").T
        logits = self.norm(x, "output_norm") @ self.weight("token_embd").T
        return logits - numpy.log(numpy.exp(logits).sum(-1, keepdims=True))
