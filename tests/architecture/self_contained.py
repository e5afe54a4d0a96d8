#!/usr/bin/env python3
"""Checks that every public header compiles on its own, with the flags of a source that lies in the same library.

    self_contained.py SOURCE_TREE COMPILE_COMMANDS

The headers of the standard library are precompiled once, or they would be parsed for every header. That a header
includes those which declare what it names is therefore checked in its text.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

# Standard header: names that it declares (regular expressions after "std::").
STANDARD = {
    "algorithm": r"(?:min|max|clamp|copy_n|fill_n|"
                 r"ranges::(?:sort|find|min_element|max_element|count_if|any_of|copy|transform))",
    "any": r"any(?:_cast)?", "array": r"array", "atomic": r"atomic", "bit": r"bit_cast|bit_width", "chrono": r"chrono",
    "cmath": r"(?:sqrt|exp|log|isnan|isfinite|pow|floor|ceil)", "cstddef": r"size_t",
    "cstdint": r"u?int(?:8|16|32|64)_t", "exception": r"exception(?:_ptr)?", "functional": r"function",
    "future": r"future", "iterator": r"back_inserter", "limits": r"numeric_limits", "map": r"map",
    "memory": r"(?:unique_ptr|shared_ptr|make_unique|make_shared)", "mutex": r"(?:mutex|lock_guard)",
    "new": r"bad_alloc", "optional": r"(?:optional|nullopt)", "span": r"span",
    "stdexcept": r"(?:runtime_error|logic_error)", "string": r"(?:string|to_string)", "string_view": r"string_view",
    "tuple": r"(?:tuple|tie)", "type_traits": r"(?:is_same_v|remove_const_t)", "typeindex": r"type_index",
    "utility": r"(?:move|pair|exchange|forward|as_const)", "variant": r"(?:variant|visit)", "vector": r"vector",
}
# Declared by these too.
ALSO = {"cstddef": {"cstdint", "vector", "string", "span", "memory", "string_view"},
        "utility": {"vector", "map", "string", "memory", "functional"}, "string_view": {"string"},
        "cstdint": {"string", "vector"}, "exception": {"stdexcept"}, "iterator": {"vector", "string"},
        "type_traits": {"memory", "vector", "utility"}, "limits": {"algorithm"}, "new": {"memory", "vector"}}


def flags(commands):
    """Library or "kernels": how one of its sources is compiled, without what is to be compiled."""
    found = {}
    for entry in commands:
        parts = pathlib.Path(entry["file"]).parts
        for root in ("lib", "kernels"):
            if root in parts:
                found.setdefault(parts[parts.index(root) + 2] if root == "lib" else "kernels", entry)
        if "unity" in entry["file"].lower():  # .../lib/kvbench/NAME/CMakeFiles/kvbench_NAME.dir/Unity/unity_0_cxx.cxx
            found.setdefault(parts[parts.index("CMakeFiles") - 1], entry)
    return {name: compiler(entry) for name, entry in found.items()}


def compiler(entry):
    words = shlex.split(entry["command"])
    words = [word for word in words if not word.endswith("ccache")]
    kept = [words[0]] + [w for w in words[1:] if w.startswith(("-I", "-D", "-std", "-f", "-m"))]
    for at, word in enumerate(words):
        if word == "-isystem":
            kept += [word, words[at + 1]]
    return [*kept, "-w", "-O0", "-fsyntax-only", "-x", "c++", "-"]


def included(header, files, seen):
    """Standard headers that this one includes, itself or through headers of kvbench."""
    found = set()
    if header in seen or header not in files:
        return found
    seen.add(header)
    for name in re.findall(r"#\s*include\s*[<\"]([^>\"]+)[>\"]", files[header].read_text(encoding="utf-8")):
        found |= included(name, files, seen) if name.startswith("kvbench/") else {name}
    return found


def missing_standard(header, files):
    text = re.sub(r"//.*", "", files[header].read_text(encoding="utf-8"))
    has = included(header, files, set())
    for name, pattern in STANDARD.items():
        if re.search(rf"\bstd::{pattern}\b", text) and not has & ({name} | ALSO.get(name, set())):
            yield f"{header} names what <{name}> declares, and includes it nowhere"


def check(header, command):
    done = subprocess.run(command, input=f"#include <{header}>\n", text=True, capture_output=True)
    return None if done.returncode == 0 else f"{header} does not compile on its own:\n{done.stderr}"


def precompile(command, folder):
    """The command with the standard headers precompiled for it."""
    header = folder / "standard.hpp"
    header.write_text("".join(f"#include <{name}>\n" for name in (*STANDARD, "numeric", "ranges", "fmt/format.h")))
    words = [word for word in command if word != "-fsyntax-only"][:-1]
    words[words.index("-x") + 1] = "c++-header"
    done = subprocess.run([*words, header, "-o", header.with_suffix(".hpp.gch")], capture_output=True)
    return [*command[:-1], "-include", str(header), "-"] if done.returncode == 0 else command


def main():
    tree = pathlib.Path(sys.argv[1])
    of = flags(json.loads(pathlib.Path(sys.argv[2]).read_text()))
    files = {file.relative_to(root).as_posix(): file
             for root in (tree / "lib", tree / "kernels" / "include") for file in sorted(root.rglob("*.hpp"))}
    failures = [fault for header in files for fault in missing_standard(header, files)]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        folders = {name: pathlib.Path(folder) / name for name in of}
        for path in folders.values():
            path.mkdir()
        ready = dict(zip(of, pool.map(lambda name: precompile(of[name], folders[name]), of)))
        failures += filter(None, pool.map(lambda header: check(header, ready[header.split("/")[1]]), files))
    for fault in failures:
        print(fault)
    print(f"{len(files)} headers, {len(failures)} faults")
    return 1 if failures or not files else 0


if __name__ == "__main__":
    sys.exit(main())
