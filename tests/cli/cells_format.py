# SPDX-License-Identifier: Apache-2.0
"""Files of cells as values in Python and back, written from the declarations of lib/kvbench/store and
lib/kvbench/sweep/codec.cpp. Frames get the checksums of their contents, as anybody can compute them."""
import hashlib
import struct

SIGNATURE = b"kvcells1"
LAYOUT, CELLS, MEASURES = 1, 2, 3
HEADER = struct.Struct("<QII64s")

# A type is a format of struct, "s" for a text, [type] for a list, or a dictionary of members.
BYTES = dict.fromkeys(("kv", "meta", "fast", "slow", "read", "full"), "d")
HEAD = {"prompt": "Q", "layer_index": "Q", "kv_head": "q", "layer": "q", "positions": ["i"]}
ENTRY = {"key": "s", "method": "I", "heads": ["I"]}
FRAME = {"trace": "s", "sha256": "s", "model": "s", "model_layers": "q", "group": "q",
         "prompts": [{"id": "s", "protocol": "I", "context_tokens": "q", "scored_tokens": "q"}],
         "methods": [{"name": "s", "params": "s", "seeded": "B"}], "budgets": ["s"],
         "configurations": [{"method": "Q", "budget": "Q", "seed": "I"}], "device": "s", "isa": "s",
         "standalone": "B"}
RELATION = {"kind": "I", "run": "s", "a": "s", "b": "s", "number": "d", "within": "d", "by": "I"}
TYPES = {
    LAYOUT: {"name": "s", "version": "s", "commit": "s",
             "steps": [{"run": "s", "frame": FRAME, "heads": [HEAD], "cells": [ENTRY], "measured": [HEAD],
                        "measures": [ENTRY]}],
             "claims": [{"id": "s", "text": "s", "metric": "I", "relations": [RELATION], "untestable": "s"}]},
    CELLS: [[{"status": "I", "reason": "s", "notes": [{"text": "s", "count": "d"}], "dense": "B",
              "budget_tokens": "q", "kept_tokens": "d", "bytes": BYTES, "peak_bytes": "d", "compress_flops": "d",
              "attend_flops": "d", "compress_s": "d", "attend_s": "d", "exact_s": "d", "rel_err_fro": ["f"],
              "probe_sums": ["d"],
              "rows": "Q", "present": "I", "values": ["f"]}]],
    MEASURES: [{"trace": "s", "sha256": "s", "model": "s", "prompt": "s", "layer": "q", "kv_head": "q",
                "measure": "I", "array": "s", "x": "q", "value": "d", "count": "q"}]}


class Raw(bytes):
    """Bytes that stand for an encoded value, whatever its type."""


def encode(kind, value):
    if isinstance(value, Raw):
        return bytes(value)
    if kind == "s":
        text = value if isinstance(value, bytes) else value.encode()
        return struct.pack("<Q", len(text)) + text
    if isinstance(kind, list):
        return struct.pack("<Q", len(value)) + b"".join(encode(kind[0], item) for item in value)
    if isinstance(kind, dict):
        return b"".join(encode(member, value[name]) for name, member in kind.items())
    return struct.pack("<" + kind, value)


def decode(kind, data):
    """The whole of `data`."""
    at = 0

    def number(form):
        nonlocal at
        value, = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return value

    def get(kind):
        nonlocal at
        if kind == "s":
            size = number("Q")
            at += size
            return data[at - size:at].decode()
        if isinstance(kind, list):
            return [get(kind[0]) for _ in range(number("Q"))]
        if isinstance(kind, dict):
            return {name: get(member) for name, member in kind.items()}
        return number(kind)

    value = get(kind)
    assert at == len(data), (at, len(data))
    return value


class Frame:
    def __init__(self, kind, key, value):
        self.kind, self.key, self.value = kind, key, value
        self.length = None  # in place of the length of the payload

    def bytes(self):
        payload = encode(TYPES.get(self.kind), self.value)
        length = len(payload) if self.length is None else self.length
        header = HEADER.pack(length, self.kind, 0, self.key.encode()[:64])
        return header + hashlib.sha256(header + payload).hexdigest().encode() + payload


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    assert data.startswith(SIGNATURE)
    frames, at = [], len(SIGNATURE)
    while at < len(data):
        length, kind, _, key = HEADER.unpack_from(data, at)
        at += HEADER.size + 64
        frames.append(Frame(kind, key.decode(), decode(TYPES[kind], data[at:at + length])))
        at += length
    assert write(frames) == data, "a file that is read and written must stay the same"
    return frames


def write(frames):
    return SIGNATURE + b"".join(frame.bytes() for frame in frames)
