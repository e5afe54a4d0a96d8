# SPDX-License-Identifier: Apache-2.0
"""Members of a file from a stranger: what a dataset claims is compared with the file before a value is read, as in
lib/kvbench/trace/guard/storage.cpp."""

import itertools
import math
import zlib
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5z

from .._error import Error, require
from .hdf5 import text_of
from .schema import integers

MOST_INFLATION = 1032  # deflate compresses by at most this factor
# Chunks up to this size need no relation to that of a head, nor compressed datasets to that of the file.
SMALL_CHUNK, SMALL_WHOLE = 2**25, 2**26
REFERENCE = 16  # bytes that a file stores for a string of variable length, beside its heap
SHUFFLE, DEFLATE = h5z.FILTER_SHUFFLE, h5z.FILTER_DEFLATE


def bytes_of(dataset: Any) -> int:
    """What the values of a dataset take in memory."""
    text = h5py.check_string_dtype(dataset.dtype)
    element = REFERENCE if text and text.length is None else dataset.id.get_type().get_size()
    return math.prod((element, *dataset.shape))


class Storage:
    """The groups and datasets of one file of `length` bytes."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._stored = self._whole = 0  # bytes that the datasets claim so far: of the file, and of memory
        self._opened = set()

    def group(self, parent: Any, where: str, name: str) -> Any:
        made = self._member(parent, where, name)
        require(isinstance(made, h5py.Group), f"{where}/{name}", "is not a group.")
        return made

    def dataset(self, parent: Any, where: str, name: str, part: bool = False) -> Any:
        """A dataset whose bytes are all in this file, and no more than it can hold. `part`: of which one slab of the
        first dimension (a head) is read at a time."""
        made, where = self._member(parent, where, name), f"{where}/{name}"
        require(isinstance(made, h5py.Dataset) and made.shape is not None, where, "is not a dataset.")
        if where not in self._opened:
            self._check(made, where, part)
            self._opened.add(where)
        return made

    def integers(self, parent: Any, where: str, name: str, most: int, limited_by: str) -> np.ndarray:
        """All elements of a dataset of at most so many integers, int64 [length]."""
        made, where = self.dataset(parent, where, name), f"{where}/{name}"
        require(made.ndim == 1, where, f"has {made.ndim} dimensions; it must have one.")
        require(len(made) <= most, where, f"has {len(made)} entries; {limited_by} {most}.")
        require(made.dtype.kind in "iu" and not h5py.check_enum_dtype(made.dtype), where,
                f"holds {made.dtype}; it must hold integers.")
        return integers(self.whole(made, where), where)

    @staticmethod
    def whole(dataset: Any, where: str) -> np.ndarray:
        """All values of a dataset that was opened here."""
        check_inflated(dataset, where)
        return dataset[()]

    def text(self, parent: Any, where: str, name: str) -> str:
        """A string."""
        made, where = self.dataset(parent, where, name), f"{where}/{name}"
        check_inflated(made, where)
        return text_of(made, where)

    def _member(self, parent: Any, where: str, name: str) -> Any:
        require(name in parent, where, f"'{name}' is missing.")
        link = parent.get(name, getlink=True)
        require(isinstance(link, h5py.HardLink), f"{where}/{name}",
                "is a link to another place or file; copy what it links to into this file.")
        return parent[name]

    def _check(self, dataset: Any, where: str, part: bool) -> None:
        size, properties = bytes_of(dataset), dataset.id.get_create_plist()
        require(size // MOST_INFLATION <= self._length, where, f"claims {size} bytes, more than a file of "
                f"{self._length} bytes can hold; it is damaged.")
        layout, stored = properties.get_layout(), dataset.id.get_storage_size()
        require(properties.get_external_count() == 0 and layout != h5d.VIRTUAL, where,
                "is stored in another file; copy it into this file with h5repack.")
        require(layout in (h5d.CONTIGUOUS, h5d.CHUNKED), where,
                "has an unsupported storage layout; copy it with h5repack -l CONTI.")
        if layout == h5d.CHUNKED:
            head = size // dataset.shape[0] if part and dataset.ndim > 1 and dataset.shape[0] else size
            _check_chunks(dataset, where, properties, head)
        elif size > 0:
            begin = dataset.id.get_offset()
            require(begin is not None, where, "was never written; the file is incomplete.")
            require(stored == size and begin + size <= self._length, where,
                    f"its {size} bytes extend beyond the end of the file; it is truncated or damaged.")
        self._count(where, stored, 0 if part else size)

    def _count(self, where: str, stored: int, whole: int) -> None:
        limit = max(self._length, SMALL_WHOLE)
        require(self._stored + stored <= self._length, where, "the datasets up to this one claim more bytes than the "
                "file has; it is damaged, or has several names for one dataset.")
        require(self._whole + whole <= limit, where, f"is compressed, and takes {whole} bytes in memory; with the "
                f"datasets before it that is more than {limit}. Copy the file with h5repack -f NONE.")
        self._stored += stored
        self._whole += whole


def _check_chunks(dataset: Any, where: str, properties: Any, head: int | None) -> None:
    """`head`: bytes of what is read at a time."""
    filters = [properties.get_filter(number)[0] for number in range(properties.get_nfilters())]
    require(filters in ([], [DEFLATE], [SHUFFLE], [SHUFFLE, DEFLATE]), where, f"stored with HDF5 filter "
            f"{', '.join(map(str, filters))}; only shuffle and deflate are read, once and in this order. Copy it with "
            "h5repack -f NONE.")
    size, limit = math.prod((dataset.id.get_type().get_size(), *dataset.chunks)), max(head, SMALL_CHUNK)
    require(size <= limit, where, f"its chunks hold {size} bytes, and kvbench reads chunks of up to {limit}; copy it "
            "with h5repack -f NONE, or with smaller chunks.")
    expected = math.prod(-(-length // chunk) for length, chunk in zip(dataset.shape, dataset.chunks))
    written = dataset.id.get_num_chunks() if expected else 0
    require(written == expected, where, f"{written} of {expected} chunks were written; the file is incomplete.")


def check_inflated(dataset: Any, where: str, head: int | None = None) -> None:
    """Raises Error for chunks of a dataset, or of one slab of its first dimension, that inflate to another size than
    theirs: the library inflates a chunk to its end, however far that is, and reads what is not there."""
    if dataset.compression != "gzip":
        return
    size = math.prod((dataset.id.get_type().get_size(), *dataset.chunks))
    grid = [range(0, length, chunk) for length, chunk in zip(dataset.shape, dataset.chunks)]
    if head is not None:
        grid[0] = range(head - head % dataset.chunks[0], head + 1, dataset.chunks[0])
    for place in itertools.product(*grid):
        skipped, data = dataset.id.read_direct_chunk(place)
        try:
            inflated = size if skipped else len(zlib.decompressobj().decompress(data, size + 1))
        except zlib.error as failure:
            raise Error(f"{where}: a chunk cannot be inflated ({failure}); it is damaged.") from None
        require(inflated == size, where, f"a chunk does not inflate to its {size} bytes; it is damaged.")
