# SPDX-License-Identifier: Apache-2.0
"""An independent implementation of the first layers of a llama model, or of a hybrid one with layers of Mamba 2, in
NumPy (fp64), reading an fp32 GGUF file."""

import gguf
import numpy


def silu(x):
    return x / (1 + numpy.exp(-x))


class Llama:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.weights = {tensor.name: tensor for tensor in reader.tensors}
        self.fields = reader.fields
        self.heads = self.field("attention.head_count")
        self.kv_heads = numpy.max(self.field("attention.head_count_kv"))  # 0 in layers without attention
        self.epsilon = self.field("attention.layer_norm_rms_epsilon")
        self.theta = self.field("rope.freq_base")

    def field(self, name):
        return self.fields[f'{self.fields["general.architecture"].contents()}.{name}'].contents()

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
            if block + "ssm_in.weight" in self.weights:
                x = x + self.recurrent(block, h)
            else:
                split = lambda name, heads, h=h: (
                    h @ self.weight(block + name).T).reshape(len(tokens), heads, -1).transpose(1, 0, 2)
                q, k = self.rotate(split("attn_q", self.heads)), self.rotate(split("attn_k", self.kv_heads))
                v = split("attn_v", self.kv_heads)
                z = self.attend(q, k, v)
                yield q, k, v, z, None if before is None else self.rotate(split("attn_q", self.heads, before))
                x = x + z.transpose(1, 0, 2).reshape(len(tokens), -1) @ self.weight(block + "attn_output").T
            before = h
            h = self.norm(x, block + "ffn_norm")
            x = x + (silu(h @ self.weight(block + "ffn_gate").T) * (h @ self.weight(block + "ffn_up").T)
                     ) @ self.weight(block + "ffn_down").T
        self.stream = x

    def recurrent(self, block, h):
        """Mamba 2 with one group (Dao and Gu 2024, section 7): a state [heads, channels, state size] that decays."""
        raw = lambda name: self.weights[block + name].data.astype(numpy.float64)
        heads, state, inner = (self.field(f"ssm.{name}") for name in ("time_step_rank", "state_size", "inner_size"))
        z, mixed, step = numpy.split(h @ self.weight(block + "ssm_in").T, [inner, 2 * inner + 2 * state], axis=1)
        kernel = self.weight(block + "ssm_conv1d")
        padded = numpy.pad(mixed, [(kernel.shape[1] - 1, 0), (0, 0)])
        mixed = silu(sum(padded[i:i + len(h)] * kernel[:, i] for i in range(kernel.shape[1])) + raw("ssm_conv1d.bias"))
        x, b, c = numpy.split(mixed, [inner, inner + state], axis=1)
        step = numpy.log1p(numpy.exp(step + raw("ssm_dt.bias")))
        held, out = numpy.zeros((heads, inner // heads, state)), []
        for t in range(len(h)):
            of_heads = x[t].reshape(heads, -1)
            held = held * numpy.exp(step[t][:, None] * raw("ssm_a"))[:, :, None]
            held = held + (step[t][:, None] * of_heads)[:, :, None] * b[t]
            out.append((held @ c[t] + raw("ssm_d") * of_heads).reshape(-1))
        y = numpy.array(out) * silu(z)
        y = y / numpy.sqrt((y * y).mean(-1, keepdims=True) + self.epsilon) * self.weight(block + "ssm_norm")
        return y @ self.weight(block + "ssm_out").T

    def attend(self, q, k, v):
        group = self.heads // self.kv_heads
        logits = q @ k.repeat(group, 0).transpose(0, 2, 1) / numpy.sqrt(q.shape[-1])
        logits[:, ~numpy.tri(q.shape[1], dtype=bool)] = -numpy.inf
        weights = numpy.exp(logits - logits.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v.repeat(group, 0)

    def log_probabilities(self, tokens, layers):
        for _ in self.layers(tokens, layers):
            pass
        logits = self.norm(self.stream, "output_norm") @ self.weight("token_embd").T
        return logits - numpy.log(numpy.exp(logits).sum(-1, keepdims=True))
