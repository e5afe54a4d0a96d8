#!/usr/bin/env python3
"""Follows docs/add-a-method.md: its C++ files and its row of the registry are added to a copy of the library's sources,
and its test runs.

    add_a_method_test.py SOURCE_TREE COMPILE_COMMANDS LIBRARY...
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

PAGE = "docs/add-a-method.md"


def blocks(text):
    """Path: contents of each file that the page shows in full, and the lines that its diff adds."""
    files = dict(re.findall(r"`([\w/.]+\.[ch]pp)`:\n\n```cpp\n(.*?)```", text, re.S))
    added = re.findall(r"^\+(?!\+)(.*)$", "\n".join(re.findall(r"```diff\n(.*?)```", text, re.S)), re.M)
    return files, added


def with_lines(text, added):
    """The registry with the page's lines: an include beside the others, a row before the end of the table."""
    include, row = added
    text = text.replace("#include <kvbench/methods/eviction/exact.hpp>",
                        f"{include}\n#include <kvbench/methods/eviction/exact.hpp>", 1)
    return text.replace("      random_method(),\n", f"      random_method(),\n{row}\n", 1)


def flags(commands):
    """How a test of the methods is compiled."""
    words = next(shlex.split(c["command"])
                 for c in json.loads(commands.read_text()) if c["file"].endswith("unit/methods/snapkv.cpp"))
    compiler = next(at for at, word in enumerate(words) if re.search(r"(\+\+|g\+\+-\d+|clang\+\+-\d+)$", word))
    kept = [word for word in words[compiler:] if word.startswith(("-I", "-D", "-std", "-W", "-fsanitize"))]
    isystem = [part for at, word in enumerate(words) if word == "-isystem" for part in words[at:at + 2]]
    return [words[compiler], *kept, *isystem, "-O0"]


def main():
    tree, commands, *libraries = map(pathlib.Path, sys.argv[1:])
    files, added = blocks((tree / PAGE).read_text())
    assert len(files) == 3 and len(added) == 2, f"{PAGE} shows {sorted(files)} and adds {added}"
    compile_ = flags(commands)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, contents in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(contents)
        registry = tree / "lib/kvbench/methods/registry.cpp"
        changed = with_lines(registry.read_text(), added)
        assert changed.count("knorm") == 2, f"{PAGE}: its lines do not fit {registry.name}"
        (root / "registry.cpp").write_text(changed)
        (root / "main.cpp").write_text("#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\n")
        sources = [root / "main.cpp", root / "registry.cpp", *(root / path for path in files if path.endswith(".cpp"))]
        # The changed registry takes the place of the library's.
        command = [*compile_, f"-I{root / 'lib'}", *sources, "-o", root / "test", "-Wl,--allow-multiple-definition",
                   "-Wl,--start-group", *libraries, "-Wl,--end-group", "-fopenmp",
                   *(["-lfmt"] if "-DFMT_SHARED" in compile_ else [])]
        subprocess.run(list(map(str, command)), check=True)
        out = subprocess.run([root / "test"], capture_output=True, text=True)
        print(out.stdout)
        return 0 if out.returncode == 0 and "test cases: 1 | 1 passed" in out.stdout else 1


if __name__ == "__main__":
    sys.exit(main())
