# SPDX-License-Identifier: Apache-2.0
"""Files of methods in Python. A module is compiled from the bytes whose digest is stored with results, never from
bytecode of an earlier state, and modules of its folder are its own: another file that imports one of the same name gets
another module."""

import builtins
import functools
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import os
import sys

from .._error import Error, check_regular

PREFIX = "_kvbench_method"  # of the names of packages, which a number follows
_numbers = itertools.count(1)
_by_path, _by_name = {}, {}  # the latest Source of a file; each Source by the name of its package


def source_of(file):
    """The Source of a file, which runs again where it or a module of its folder that it imported has changed."""
    path = os.path.realpath(file)
    check_regular(path)
    if path not in _by_path or not _by_path[path].is_current():
        _by_path[path] = Source(path)
    return _by_path[path]


def digest_of(file):
    """The digest of the state of a file that has run; "" where none has."""
    source = _by_path.get(os.path.realpath(file))
    return source.sha256 if source else ""


class Source:
    """A file of methods that has run, and the modules of its folder that it imports: a package whose names are found as
    if Python had been started in this folder."""

    def __init__(self, path):
        self._name = f"{PREFIX}{next(_numbers)}"
        self._folder, file = os.path.split(path)
        self._digests = {}  # by path: of the bytes that have run
        self._own = {}  # by name: whether a module is one of the folder
        self.builtins = {**vars(builtins), "__import__": self._import}
        _by_name[self._name] = self
        package = importlib.machinery.ModuleSpec(self._name, None, is_package=True)
        package.submodule_search_locations.append(self._folder)
        sys.modules[self._name] = importlib.util.module_from_spec(package)
        try:
            self.module = self._run(f"{self._name}.{file.removesuffix('.py').replace('.', '_')}", path)
        except BaseException:
            for name in [name for name in sys.modules if name.partition(".")[0] == self._name]:
                del sys.modules[name]
            raise
        digests = sorted(f"{os.path.relpath(one, self._folder)} {sha}" for one, sha in self._digests.items())
        self.sha256 = self._digests[path] if len(digests) == 1 else hashlib.sha256(repr(digests).encode()).hexdigest()

    def is_current(self):
        """Whether the files hold the bytes that have run."""
        try:
            return all(_digest(_bytes(path)) == sha for path, sha in self._digests.items())
        except (Error, OSError):
            return False

    def read(self, path):
        data = _bytes(path)
        self._digests[path] = _digest(data)
        return data

    def find(self, fullname, folders):
        kinds = ((functools.partial(_Loader, self), importlib.machinery.SOURCE_SUFFIXES),
                 (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES))
        found = (importlib.machinery.FileFinder(folder, *kinds).find_spec(fullname) for folder in folders)
        return next((spec for spec in found if spec), None)

    def _run(self, fullname, path):
        spec = importlib.util.spec_from_file_location(fullname, path, loader=_Loader(self, fullname, path))
        module = sys.modules[fullname] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def _import(self, name, globals=None, locals=None, fromlist=(), level=0):
        """The function behind import statements of these modules."""
        top = name.partition(".")[0]
        if level > 0 or not self._owns(top):
            return builtins.__import__(name, globals, locals, fromlist, level)
        package = builtins.__import__(f"{self._name}.{name}", globals, locals, fromlist, 0)
        return package if fromlist else sys.modules[f"{self._name}.{top}"]

    def _owns(self, name):
        if name not in self._own:
            spec = self.find(f"{self._name}.{name}", [self._folder])
            elsewhere = name == "kvbench" or name in sys.builtin_module_names
            folder_alone = spec is not None and spec.loader is None  # which any module goes before
            self._own[name] = spec is not None and not elsewhere and not (
                folder_alone and importlib.util.find_spec(name) is not None)
        return self._own[name]


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles a module from the bytes that are hashed, and gives it the imports of its Source."""

    def __init__(self, source, fullname, path):
        super().__init__(fullname, path)
        self._source = source

    def get_code(self, fullname):
        return self.source_to_code(self._source.read(self.path), self.path)

    def exec_module(self, module):
        vars(module)["__builtins__"] = self._source.builtins
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of packages of Sources."""

    def find_spec(self, fullname, path, target=None):
        source = _by_name.get(fullname.partition(".")[0])
        return source.find(fullname, path) if source and path is not None else None


sys.meta_path.insert(0, _Finder())


def _bytes(path):
    check_regular(path)
    with open(path, "rb") as file:
        return file.read()


def _digest(data):
    return hashlib.sha256(data).hexdigest()
