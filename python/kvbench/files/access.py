# SPDX-License-Identifier: Apache-2.0
"""Files that are open for reading, and new files that are written atomically."""

import contextlib
import fcntl
import hashlib
import io
import math
import os
import re
import shutil
import socket
import sys
import warnings
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import h5py
from h5py import h5f, h5fd, h5p

from .._error import Error, check_regular, first_line, require
from .._kinds import FilePath, checked
from .hdf5 import reading, untimed
from .storage import Storage

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PREFIXES = ("", "k", "M", "G", "T")  # of bytes
Own = TypeVar("Own")
_inputs = weakref.WeakSet()  # each InputFile
_outputs = weakref.WeakSet()  # each OutputFile


def _identity(path: FilePath) -> tuple[int, int] | None:
    """What a file is, under whatever name or link: device and inode. None if there is no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def check_not_input(path: FilePath, inputs: Iterable[FilePath] = ()) -> None:
    """Raises Error if `path` is one of the files `inputs`, or is open as an input in this process. Everything that
    creates or replaces a file calls it."""
    itself = _identity(path)
    found = [other for other in inputs if itself and _identity(other) == itself]
    found += [file.path for file in list(_inputs) if itself and file.file and file.identity == itself]
    require(not found, path, f"is the input {found[0] if found else ''}, which an output must not replace; choose "
            "another name for the output.")


def check_replaceable(path: FilePath) -> None:
    """Raises Error if `path` names something that a file cannot replace."""
    require(not os.path.isdir(path), path, "is a directory; choose another file name.")
    require(os.path.isfile(path) or not os.path.exists(path), path,
            "is a device, a pipe or a socket, which cannot be replaced by a file; name a regular file.")
    require(os.path.isdir(os.path.dirname(os.path.realpath(path))), path, "there is no such folder; create it first.")


@contextlib.contextmanager
def held(folder: FilePath) -> Iterator[int]:
    """Makes an output folder, which no other process that calls this uses meanwhile. Yields the file descriptor of its
    lock, which programs hold too that get it (pass_fds)."""
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise Error(f"-o {folder}: this is no folder; give the name of one.")
    os.makedirs(folder, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise Error(f"-o {folder}: another run works in this folder; wait for it, or give another "
                    "folder.") from None
    except OSError:
        pass  # a file system without locks: the lock is a precaution
    try:
        yield lock
    finally:
        os.close(lock)


def size_text(count: float) -> str:
    """A number of bytes to three digits, in decimal units."""
    power = min(4, int(math.log10(count) / 3)) if count >= 1 else 0
    return f"{count / 1000**power:.3g} {PREFIXES[power]}B"


def bytes_of(text: str) -> int | None:
    """The number of bytes of a text such as 3.5GB or 800 MiB; None where it is none."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s?(?:([kmgt])(i?))?b", text.lower())
    if found is None or float(found[1]) == 0:
        return None
    power = [prefix.lower() for prefix in PREFIXES].index(found[2] or "")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** power)


def write_atomically(path: FilePath, data: bytes) -> None:
    """Writes a file under a temporary name, NAME.tmp.HOST.PID, until it is complete and on disk, and renames it.
    Symbolic links are followed."""
    target = os.path.realpath(path)
    prefix = f"{target}.tmp.{socket.gethostname()}."
    _remove_left_files(prefix)
    temporary = f"{prefix}{os.getpid()}"
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as failure:
        if isinstance(failure, OSError):  # about the file that was asked for, not the temporary one, or none
            failure.filename, failure.filename2 = os.fspath(path), None
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder_of(target)


def _sync_folder_of(path: str) -> None:
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_text(path: FilePath) -> str:
    """The contents of a regular file of UTF-8 text."""
    check_regular(path)
    with open(path, "rb") as file:
        return as_text(path, file.read())


def as_text(path: FilePath, data: bytes) -> str:
    """The bytes of a file as UTF-8 text."""
    try:
        return data.decode()
    except UnicodeDecodeError as failure:
        raise Error(f"{path}: byte {failure.start} is not UTF-8 text; convert the file to UTF-8.") from None


def as_toml(path: FilePath, text: str) -> dict[str, Any]:
    """The contents of a file as TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise Error(f"{path}: is no TOML ({first_line(fault)}).") from None


def sha256_of_file(path: FilePath) -> str:
    """SHA-256 of the bytes of a file, in lower-case hex."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def shards_of_gguf(path: str) -> list[str]:
    """The names of all parts of the split model (-00001-of-00003.gguf) to which a GGUF file belongs, by its name or
    that of the file to which it is a link; none if it is a whole one."""
    found = next(filter(None, (re.fullmatch("(.*)-[0-9]{5}-of-([0-9]{5})\\.gguf", name, re.DOTALL)
                               for name in (path, os.path.realpath(path)))), None)
    return [f"{found[1]}-{part:05}-of-{found[2]}.gguf" for part in range(1, int(found[2]) + 1)] if found else []


def complete_gguf(path: str) -> list[str]:
    """The names of all files of a model, of which a GGUF file is one. Raises Error if one is missing."""
    shards = shards_of_gguf(path) or [path]
    missing = [name for name in shards if not os.path.isfile(name)]
    require(not missing, path, f"this is one of {len(shards)} files of a model, and {', '.join(missing[:3])} is "
            "missing; fetch it.")
    return shards


def parts_of_gguf(path: str) -> list[str]:
    """A GGUF file, or the parts that exist of the split model to which it belongs, as apps/common/model_files.hpp."""
    return [name for name in shards_of_gguf(path) if name == path or os.path.exists(name)] or [path]


def sha256_of_gguf(path: str) -> str:
    """What rows know a model by, as apps/common/model_files.hpp: the SHA-256 of its file; of several parts, that of
    the lines with theirs."""
    parts = [sha256_of_file(part) for part in parts_of_gguf(path)]
    return parts[0] if len(parts) == 1 else hashlib.sha256("".join(f"{part}\n" for part in parts).encode()).hexdigest()


class InputFile:
    """A file that is open for reading; close() or the end of a with statement closes it, and at the latest the end of
    the object. A subclass reads and checks the contents in _read()."""

    @checked
    def __init__(self, path: FilePath) -> None:
        self.path: str = os.fspath(path)
        try:
            check_regular(path)
            self.file = h5py.File(path, "r")
            self.identity = _identity(path)
            self.storage = Storage(os.path.getsize(path))
        except BlockingIOError:
            raise Error(f"{path}: another program holds the file open for writing; wait until it has "
                        "finished.") from None
        except OSError as failure:
            raise Error(f"{path}: cannot be opened as HDF5 ({failure}); check that it is complete.") from None
        _inputs.add(self)
        try:
            with reading(path):
                self._read()
        except BaseException:
            self.close()
            raise

    def check_open(self) -> None:
        require(self.file, self.path, "was closed; read from it before the end of its with statement.")

    def close(self) -> None:
        self.file.close()

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Disk(io.FileIO):
    """The file object that HDF5 writes to. The library crashes where a write or flush fails, for example on a full
    disk. Therefore this object reports success to the library and keeps the failure for check()."""

    failure = None

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        try:
            while self.failure is None and len(left) > 0:
                left = left[super().write(left):]
        except OSError as failure:
            self.failure = failure
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as failure:
            self.failure = self.failure or failure
            return size

    def check(self, path: FilePath) -> None:
        if self.failure is not None:
            raise OSError(self.failure.errno, f"{self.failure.strerror}; free some space or write to another disk",
                          path)


def _discard(file: Any, disk: _Disk, temporary: str, process: int) -> bool:
    """Closes and removes an output that was not committed. Returns whether there was one."""
    if disk.closed or os.getpid() != process:  # a child has a copy of the object, not the file
        return False
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    file.close()
    disk.close()
    return True


def _remove_left_files(prefix: str) -> None:
    """Removes temporary files of an output that processes of this host left when they were killed, as
    lib/kvbench/core/atomic_file.cpp does. `prefix`: their names without the number of the process."""
    folder, start = os.path.split(prefix)
    with contextlib.suppress(OSError):  # a folder that cannot be listed
        for name in os.listdir(folder):
            process = re.fullmatch(re.escape(start) + r"([0-9]{1,9})(\..*)?", name)
            if process and _has_ended(int(process[1])):
                os.unlink(os.path.join(folder, name))


def _has_ended(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # of someone else
        pass
    return False


def _discard_and_warn(path: FilePath, output: list[Any], category: type[Warning] = ResourceWarning) -> None:
    if _discard(*output):
        warnings.warn(f"{path}: nothing was written, because commit() was not called; write it in a with statement",
                      category, stacklevel=3)


class OutputFile:
    """A new file that is named NAME.tmp.HOST.PID until commit(), which syncs it to the disk and renames it. Symbolic
    links are followed, and the mode of a replaced file is kept. A with statement commits at its end, or removes the
    file if the statement ended in an exception. What was not committed is removed with a warning by close(), and
    with a ResourceWarning at the end of the object or of the program. `aligned`: arrays begin at multiples of 4096
    bytes, which wastes 2 KB of each chunk of a compressed array."""

    @checked
    def __init__(self, path: FilePath, aligned: bool = True) -> None:
        self.path: str = os.fspath(path)
        check_replaceable(path)
        self._target = os.path.realpath(self.path)
        check_not_input(path)
        require(all(other._target != self._target for other in list(_outputs) if other.file), path,
                "is being written already in this process; choose another name.")
        prefix = f"{self._target}.tmp.{socket.gethostname()}."
        _remove_left_files(prefix)
        self._temporary = f"{prefix}{os.getpid()}"
        self._disk = _Disk(self._temporary, "w+")
        self._aligned = aligned
        name = os.fsencode(self._temporary)
        self.file = h5py.File(h5f.create(name, h5f.ACC_TRUNC, untimed(h5p.FILE_CREATE), self._access()))
        self._output = [self.file, self._disk, self._temporary, os.getpid()]
        weakref.finalize(self, _discard_and_warn, path, self._output)
        _outputs.add(self)

    def _access(self) -> Any:
        """How HDF5 opens the file. It is not kept: the library frees such a list, if one is left, after Python has
        ended, and crashes."""
        access = h5p.create(h5p.FILE_ACCESS)
        access.set_libver_bounds(h5f.LIBVER_V110, h5f.LIBVER_V110)  # checksums on metadata, readable by HDF5 1.10
        if self._aligned:
            access.set_alignment(4096, 4096)
        access.set_fclose_degree(h5f.CLOSE_STRONG)
        access.set_fileobj_driver(h5fd.fileobj_driver, self._disk)
        return access

    def _check_complete(self) -> None:
        """Raises Error if required parts have not been written."""

    def check_open(self) -> None:
        require(self.file, self.path, "was finished already; write before the end of its with statement.")

    def check_disk(self) -> None:
        """Raises OSError if a write so far has failed."""
        self._disk.check(self.path)

    @contextlib.contextmanager
    def complete(self) -> Iterator[str]:
        """In a with statement, the name under which the file, to which all required parts were written, can be read;
        nothing can be written meanwhile."""
        self.check_open()
        self._check_complete()
        self.file.close()
        self.check_disk()
        yield self._temporary
        self.file = self._output[0] = h5py.File(h5f.open(os.fsencode(self._temporary), h5f.ACC_RDWR, self._access()))

    def commit(self) -> None:
        self.check_open()
        try:
            self._check_complete()
            self.file.close()
            self.check_disk()
            check_not_input(self.path)
            os.fsync(self._disk.fileno())
            if os.path.exists(self._target):
                shutil.copymode(self._target, self._temporary)
            os.replace(self._temporary, self._target)
        except BaseException:
            self.abandon()
            raise
        self._disk.close()
        _sync_folder_of(self._target)

    def abandon(self) -> None:
        """Removes the temporary file."""
        _discard(*self._output)

    def close(self) -> None:
        _discard_and_warn(self.path, self._output, RuntimeWarning)

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.abandon()
