# SPDX-License-Identifier: Apache-2.0
"""The ZIP file of a bundle. A stranger may have made it: nothing is unpacked to the disk, and every size has a limit
before it is read."""

import io
import os
import re
import stat
import zipfile
import zlib
from typing import BinaryIO

from .._error import Error, check_regular, require
from ..files.access import check_not_input, check_replaceable, size_text, write_atomically

MANIFEST = "manifest.json"
MEMBER = re.compile(r"manifest\.json|rows/[1-9][0-9]?\.csv")
MOST_MEMBERS = 100
MOST_BYTES = {"of the file": 64 << 20, "of the manifest": 1 << 20, "of a table": 32 << 20, "of all tables": 128 << 20}
END = 22  # bytes of the record at the end of a ZIP file without a comment
DIRECTORY = 1 << 16  # bytes of its list of members


def write(path: str, members: dict[str, bytes], inputs: list[str]) -> None:
    """Writes the members under their names in order. Equal members give equal bytes: there are no times, and no owners.
    The file has a temporary name until it is complete and on disk."""
    check_replaceable(path)
    check_not_input(path, inputs)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            file.writestr(info, members[name], zipfile.ZIP_DEFLATED, 9)
    require(len(buffer.getvalue()) <= MOST_BYTES["of the file"], path, "would be larger than a bundle may be, "
            f"{size_text(MOST_BYTES['of the file'])}; bundle fewer tables, or without --rows query.")
    write_atomically(path, buffer.getvalue())


def read(path: str) -> dict[str, bytes]:
    """The members by their names. Raises Error for what no bundle has: other names, which are those with paths and
    links, members that are there twice, encrypted or too large, and lists of members that are too long."""
    check_regular(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        require(size <= MOST_BYTES["of the file"], path, f"has {size_text(size)}; a bundle has at most "
                f"{size_text(MOST_BYTES['of the file'])}.")
        _check_end(file, size, path)
        try:
            with zipfile.ZipFile(file) as members:
                _check_members(members.infolist(), path)
                return _contents(members, path)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError,
                OverflowError) as failure:
            if isinstance(failure, Error):
                raise
            raise Error(f"{path}: is damaged ({failure}); fetch it again.") from None


def _check_end(file: BinaryIO, size: int, path: str) -> None:
    """Raises Error unless the file ends as a small ZIP file without a comment does. zipfile would read a list of
    members of any length."""
    file.seek(max(0, size - END - 20))
    tail = file.read()
    end = tail[-END:]
    require(end[:4] == b"PK\5\6" and end[20:] == b"\0\0", path, "is no bundle, which `kvbench bundle` writes.")
    require(tail[:4] != b"PK\6\7", path, "is a ZIP64 file, which no bundle is.")
    count, length = int.from_bytes(end[10:12], "little"), int.from_bytes(end[12:16], "little")
    require(0 < count <= MOST_MEMBERS and length <= DIRECTORY, path, f"has {count} members in a list of {length} bytes;"
            f" a bundle has at most {MOST_MEMBERS} in {DIRECTORY}.")


def _check_members(members: list[zipfile.ZipInfo], path: str) -> None:
    names: set[str] = set()
    for member in members:
        where = f"{path}: member {member.orig_filename!r}"
        require(MEMBER.fullmatch(member.orig_filename) is not None, where, "is none of a bundle, which has "
                f"{MANIFEST} and rows/1.csv, rows/2.csv, ...; do not unpack this file.")
        require(member.filename not in names, where, "is there twice.")
        names.add(member.filename)
        kind = stat.S_IFMT(member.external_attr >> 16)
        require(kind in (0, stat.S_IFREG), where, "is a link or another file that has no contents of its own.")
        require(not member.flag_bits & 1, where, "is encrypted.")
        require(member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED), where,
                "is compressed in a way that no bundle uses.")
    require(MANIFEST in names, path, f"has no {MANIFEST}, so that it is no bundle.")
    expected = {f"rows/{number}.csv" for number in range(1, len(names))}
    require(names == {MANIFEST} | expected and len(names) > 1, path, "its tables are not rows/1.csv, rows/2.csv, ...")


def _contents(members: zipfile.ZipFile, path: str) -> dict[str, bytes]:
    """What members are, whatever sizes the archive says that they have."""
    left, found = MOST_BYTES["of all tables"], {}
    for name in sorted(members.namelist()):
        limit = "of the manifest" if name == MANIFEST else "of a table"
        most = min(MOST_BYTES[limit], left)
        with members.open(name) as member:
            data = member.read(most + 1)
        require(len(data) <= most, f"{path}: member {name!r}", f"unpacks to more than {size_text(most)}, the limit "
                f"{limit if most < left else 'of all tables'}.")
        left -= len(data)
        found[name] = data
    return found
