# SPDX-License-Identifier: Apache-2.0
"""HDF5 helpers for reading and writing: element types, slabs, groups, attributes."""

import contextlib
import math
from collections.abc import Iterator
from typing import Any, TypeVar, cast

import h5py
import numpy as np
from h5py import h5d, h5g, h5p, h5s, h5t

from .._error import Error, require
from .._kinds import FilePath
from .schema import check_name

Kind = TypeVar("Kind", int, float, str)


def element_type(dtype: str) -> Any:
    """The HDF5 type of f32, f16, bf16 or i8. numpy has no bfloat16, so that the type is constructed as in the C++
    writer."""
    made = h5t.STD_I8LE.copy() if dtype == "i8" else h5t.IEEE_F32LE.copy()
    if dtype in ("f32", "i8"):
        return made
    exponent, mantissa, bias = (5, 10, 15) if dtype == "f16" else (8, 7, 127)
    made.set_fields(15, mantissa, exponent, 0, mantissa)
    made.set_size(2)
    made.set_ebias(bias)
    return made


def narrowed(values: np.ndarray, dtype: str) -> np.ndarray:
    """float32 values as the words that a file of `dtype` stores; bf16 is rounded to nearest, ties to even."""
    values = np.ascontiguousarray(values, np.float32)
    if dtype == "f32":
        return values
    if dtype == "f16":
        return values.astype(np.float16)
    words = values.view(np.uint32)
    return ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)


def lost_row(values: np.ndarray, dtype: str) -> int | None:
    """The first row [rows, dim] that is not zero and whose numbers a narrower type rounds coarsely, or None. The C++
    writer says why such rows are refused."""
    least = 2.0**-17 if dtype == "f16" else 2.0**-126 if dtype == "bf16" or values.dtype.itemsize > 4 else 0
    largest = np.abs(values).reshape(-1, values.shape[-1]).max(-1, initial=0)
    lost = np.flatnonzero((largest > 0) & (largest < least))
    return int(lost[0]) if len(lost) else None


def rounded(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float32 rows as int8 multiples of 1/127 of the largest value of each row, and these steps [...] in float32."""
    values = np.asarray(values, np.float32)
    scales = np.abs(values).max(-1) / np.float32(127)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(scales[..., None] > 0, values / scales[..., None], 0)
    return np.rint(steps).astype(np.int8), scales


def widened(words: np.ndarray, dtype: str) -> np.ndarray:
    """The words of a file as float32, without loss."""
    if dtype == "bf16":
        return (words.astype(np.uint32) << 16).view(np.float32)
    return words.astype(np.float32)


def read_slab(dataset: Any, dtype: str, head: int | None = None) -> np.ndarray:
    """float32 [rows, ...] of one head, or [heads, rows, ...] of all heads, for any stored type."""
    word = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i8": np.int8}[dtype]
    shape = dataset.shape if head is None else (1, *dataset.shape[1:])
    words = np.empty(shape, word)
    space = dataset.id.get_space()
    if head is not None:
        space.select_hyperslab((head,) + (0,) * (len(shape) - 1), shape)
    dataset.id.read(h5s.create_simple(shape), space, words, element_type(dtype))
    return widened(words if head is None else words[0], dtype)


def untimed(kind: Any) -> Any:
    """Creation properties without times, so that equal content gives equal bytes."""
    properties = h5p.create(kind)
    properties.set_obj_track_times(False)
    return properties


def create_group(parent: Any, name: str) -> Any:
    return h5py.Group(h5g.create(parent.id, name.encode(), gcpl=untimed(h5p.GROUP_CREATE)))


def create_array(parent: Any, name: str, shape: tuple[int, ...], dtype: str, compress: bool) -> Any:
    """A dataset to be written head by head: contiguous, or in chunks of whole heads, as many as 32 KiB hold: small
    chunks compress worse."""
    properties = untimed(h5p.DATASET_CREATE)
    properties.set_fill_time(h5d.FILL_TIME_NEVER)
    if compress:
        at = min(1, len(shape) - 1)  # the dimension of the rows
        row = element_type(dtype).get_size() * int(np.prod(shape[at + 1:]))
        rows = min(shape[at], max(1, (2**32 - 1) // row))  # chunks end below 4 GiB
        heads = min(shape[0], max(1, 2**15 // (row * max(1, shape[1])))) if at else 1
        properties.set_chunk((*(heads,) * at, rows, *shape[at + 1:]))
        properties.set_shuffle()
        properties.set_deflate(4)
    return h5py.Dataset(h5d.create(parent.id, name.encode(), element_type(dtype), h5s.create_simple(shape),
                                   properties))


def write_head(dataset: Any, dtype: str, head: int, words: np.ndarray) -> None:
    """Writes the words of a head, or all of an array without heads."""
    shape = (*(1,) * (len(dataset.shape) - words.ndim), *words.shape)
    space = dataset.id.get_space()
    space.select_hyperslab((head,) + (0,) * (len(shape) - 1), shape)
    dataset.id.write(h5s.create_simple(shape), space, np.ascontiguousarray(words).reshape(shape), element_type(dtype))


def fixed_string(encoded: bytes) -> Any:
    """The type of a UTF-8 string of fixed length."""
    return h5py.string_dtype("utf-8", max(1, len(encoded)))


def set_text(at: Any, name: str, value: str) -> None:
    """Writes a string attribute of fixed length: it is then part of the metadata, which have checksums. The heap of
    strings of variable length has none."""
    encoded = value.encode()
    at.attrs.create(name, np.bytes_(encoded), dtype=fixed_string(encoded))


def write_whole(parent: Any, name: str, values: np.ndarray) -> None:
    """Writes a small array of little-endian numbers."""
    parent.create_dataset(name, data=values, dtype=values.dtype, track_times=False)


def write_text(parent: Any, name: str, text: str) -> None:
    """Writes a string of fixed length, as kvbench does."""
    encoded = text.encode()
    parent.create_dataset(name, data=np.bytes_(encoded), dtype=fixed_string(encoded), track_times=False)


@contextlib.contextmanager
def reading(path: FilePath) -> Iterator[None]:
    """Turns what h5py raises for a damaged file, or for one of another structure, into Error."""
    try:
        yield
    except Error:
        raise
    except (OSError, RuntimeError) as failure:  # of the HDF5 library
        raise Error(f"{path}: cannot be read ({failure}); it is damaged: copy or write it again.") from failure
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as failure:
        raise Error(f"{path}: a group, dataset or attribute is not of the kind that its schema requires ({failure}); "
                    "write it again.") from failure


def attribute(at: Any, where: str, name: str, kind: type[Kind], otherwise: Kind | None = None) -> Kind:
    """The attribute as `kind` (int, float or str). If it is missing, returns `otherwise`, or raises Error if that is
    None."""
    if name not in at.attrs:
        require(otherwise is not None, where, f"attribute '{name}' is missing; see docs/traces.md.")
        return cast(Kind, otherwise)
    with reading(f"{where}: attribute '{name}'"):
        require(math.prod(at.attrs.get_id(name).shape) == 1, where, f"attribute '{name}' must be a single value.")
        value = at.attrs[name]
    if isinstance(value, np.ndarray) and value.dtype.kind in "OSU":
        value = value.item()
    if kind is str:
        require(isinstance(value, (bytes, str)), where, f"attribute '{name}' must be a string.")
        text = value if isinstance(value, str) else value.decode(errors="surrogateescape")
        check_name(text, f"{where}: attribute '{name}'")
        return cast(Kind, text)
    array = np.asarray(value)
    allowed = "iu" if kind is int else "iuf"
    require(array.dtype.kind in allowed and not h5py.check_enum_dtype(at.attrs.get_id(name).dtype), where,
            f"attribute '{name}' must be {'an integer' if kind is int else 'a number'}.")
    return kind(array.reshape(())[()])


def text_of(dataset: Any, where: str) -> str:
    """A dataset that is one string."""
    require(isinstance(dataset, h5py.Dataset) and dataset.shape == () and h5py.check_string_dtype(dataset.dtype), where,
            "must be one string.")
    try:
        return dataset.asstr()[()]
    except UnicodeDecodeError:
        raise Error(f"{where}: is not UTF-8 text; write it again.") from None


def check_schema(file: Any, path: str, name: str, supported: str) -> None:
    """Raises Error for files without the version attribute `name`, and for versions whose first number differs from
    that of `supported`."""
    require(name in file.attrs, path,
            f"this HDF5 file has no root attribute '{name}', so it is not a file of this kind.")
    version = attribute(file, path, name, str)
    major = version.partition(".")[0]
    require(major.isdigit(), path,
            f"attribute '{name}' is '{version[:100]}'; expected a version such as '{supported}'.")
    require(major == supported.partition(".")[0], path,
            f"its schema is {name} {version}, and this package reads {supported}; install a newer package, or write "
            "the file again.")
