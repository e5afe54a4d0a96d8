# SPDX-License-Identifier: Apache-2.0
"""GGUF files, which may be parts of a split model: what transformers lacks to read them."""

import collections
import contextlib
import functools
import math
import os
import re
import struct
import tempfile

from .._error import require
from .access import complete_gguf


def parts(path):
    """The names of all files of a model, of which `path` is one. Raises Error if one is missing, or if the names do not
    tell the others."""
    found = complete_gguf(path)
    count = int(metadata(path).get("split.count", 0))
    require(count < 2 or count == len(found), path, f"this is one of {count} files of a model; name them as they were "
            f"made, as in model-00001-of-{count:05}.gguf, by which the others are found.")
    return found


# Formats of struct by the number of a type of metadata; 8 is a text, 9 an array of a type.
_FORMATS = dict(enumerate(("B", "b", "H", "h", "I", "i", "f", "?"))) | {10: "Q", 11: "q", 12: "d"}


def metadata(path):
    """The scalars and texts in the header of a GGUF file by name, without the package gguf; none of another file."""
    return _header(path)[0]


def _header(path):
    """What metadata() returns, and (dimensions, number of the element type) of each tensor. GGUFReader reads the same
    in seconds, because it keeps each word of a vocabulary as an array."""
    with open(path, "rb") as file:
        def one(form):
            return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))[0]

        def value(kind):
            if kind == 8:
                return file.read(one("Q")).decode(errors="replace")
            if kind == 9:
                items, count = one("I"), one("Q")
                if items in _FORMATS:
                    file.seek(count * struct.calcsize("<" + _FORMATS[items]), os.SEEK_CUR)
                else:
                    for _ in range(count):
                        value(items)
                return None
            return one(_FORMATS[kind])
        if file.read(4) != b"GGUF":
            return {}, []
        one("I")  # version
        count, tensors = one("Q"), []
        found = {value(8): value(one("I")) for _ in range(one("Q"))}
        for _ in range(count):
            value(8)  # its name
            tensors.append(([one("Q") for _ in range(one("I"))], one("I")))
            one("Q")  # where its data are
    return {name: held for name, held in found.items() if held is not None}, tensors


def element_types(path):
    """Element types of the matrices in a GGUF file and its other parts, the type with most weights first: "F32", "Q4_1,
    Q8_0", as kvdump states them. The file_type of the metadata may be missing or wrong."""
    from gguf import GGMLQuantizationType
    weights = collections.Counter()
    for part in parts(path):
        for shape, number in _header(part)[1]:
            name = GGMLQuantizationType(number).name
            if len(shape) > 1 and not re.fullmatch("I[0-9]+", name):
                weights[name] += math.prod(shape)
    return ", ".join(sorted(weights, key=lambda name: (-weights[name], name)))


@contextlib.contextmanager
def read_once():
    """In a with statement the package gguf reads a file once. transformers reads its header, which takes seconds, for
    the configuration and for the weights, and makes the list of names of tensors once for each module."""
    import gguf
    before = {name: getattr(gguf, name) for name in ("GGUFReader", "get_tensor_name_map")}
    try:
        for name, made in before.items():
            setattr(gguf, name, functools.cache(made))
        yield
    finally:
        for name, made in before.items():
            setattr(gguf, name, made)


@contextlib.contextmanager
def one_gguf(path):
    """The name of one GGUF file with all that the parts of a model hold, as transformers reads no other: the file
    itself, or for the time of the context a temporary one."""
    files = parts(path)
    if len(files) == 1:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
        whole = os.path.join(folder, "model.gguf")
        _write_whole(whole, files)
        yield whole


def _write_whole(path, files):
    from gguf import GGUFReader, GGUFValueType, GGUFWriter
    readers = [GGUFReader(file) for file in files]
    fields = readers[0].fields
    writer = GGUFWriter(path, fields["general.architecture"].contents())
    for name, field in fields.items():
        if name.startswith(("GGUF.", "split.")) or name in ("general.architecture", "general.alignment"):
            continue
        items = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), field.types[0], sub_type=items)
    tensors = [tensor for reader in readers for tensor in reader.tensors]
    for tensor in tensors:
        writer.add_tensor_info(tensor.name, tensor.data.shape, tensor.data.dtype, tensor.data.nbytes,
                               tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in tensors:  # mapped, not in memory
        writer.write_tensor_data(tensor.data)
    writer.close()
