# SPDX-License-Identifier: Apache-2.0
"""The files that rows were computed from: traces, models, texts and plans. A bundle has their digests, and not them."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from .._error import Error, check_regular
from ..files.access import parts_of_gguf, sha256_of_gguf

FOLDERS = (".", "traces")  # where files are looked for by name, beside the folder of the bundle or table


@dataclass(frozen=True, order=True)
class Input:
    """`name`: as rows have it. A split model has the digest that rows have, and the bytes of all its parts."""

    kind: str
    name: str
    sha256: str
    bytes: int


@dataclass
class Places:
    """Where files are looked for. `given`: files, and folders whose files count whatever their names are."""

    given: list[str]
    beside: str
    _digests: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in self.given:
            if not os.path.isdir(path):
                check_regular(path)

    def find(self, wanted: Input) -> str:
        """The file of this size and digest; empty if there is none."""
        return next((path for path in self._candidates(wanted.name, any_name=True)
                     if _size(path) == wanted.bytes and self.sha256(path) == wanted.sha256), "")

    def named(self, kind: str, name: str, start: str) -> Input:
        """The file of this name whose digest begins with `start`. Raises Error if there is none."""
        others = []
        for path in self._candidates(name):
            digest = self.sha256(path)
            if digest.startswith(start):
                return Input(kind, name, digest, _size(path))
            others.append(f"{path} is another one (SHA-256 {digest[:12]}...)")
        begins = f" with SHA-256 {start}..." if start else ""
        raise Error(f"there is no {kind} {name}{begins} in the folders {', '.join(dict.fromkeys(self._folders()))}"
                    f"{''.join('; ' + other for other in others)}. Name it or its folder with --input.")

    def sha256(self, path: str) -> str:
        if path not in self._digests:
            self._digests[path] = sha256_of_gguf(path)
        return self._digests[path]

    def _folders(self) -> list[str]:
        return [*filter(os.path.isdir, self.given), self.beside, *FOLDERS]

    def _candidates(self, name: str, any_name: bool = False) -> Iterator[str]:
        """Files, the most likely first. Only the last part of a name counts, so that no name leads elsewhere."""
        name = os.path.basename(name)
        paths = [os.path.join(folder, name) for folder in self._folders() if name]
        files = [path for path in self.given if os.path.isfile(path)]
        paths += files if any_name else [path for path in files if os.path.basename(path) == name]
        if any_name:
            paths += [file.path for folder in filter(os.path.isdir, self.given)
                      for file in sorted(os.scandir(folder), key=lambda file: file.name) if file.is_file()]
        for path in dict.fromkeys(paths):
            if os.path.isfile(path):
                yield path


def _size(path: str) -> int:
    return sum(map(os.path.getsize, parts_of_gguf(path)))
