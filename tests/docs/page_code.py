"""What the tests of pages share: the code that a page shows, and how tests of the library are compiled."""
import json
import re
import shlex


def files_of(text):
    """Path: contents of each C++ file that the page shows in full."""
    return dict(re.findall(r"`([\w/.]+\.[ch]pp)`:\n\n```cpp\n(.*?)```", text, re.S))


def diffs_of(text):
    """The lines of all diffs of the page."""
    return "\n".join(re.findall(r"```diff\n(.*?)```", text, re.S))


def patched(path, text, diff):
    """The text of a file with the added lines of each hunk and without the removed ones, which must occur once together
    with those around them."""
    for hunk in re.split(r"^@@.*\n", diff, flags=re.M)[1:]:
        lines = [(line[:1], line[1:] + "\n") for line in hunk.splitlines() if line]
        known = "".join(line for kind, line in lines if kind in " -")
        assert text.count(known) == 1, f"{path} has {text.count(known)} times:\n{known}"
        text = text.replace(known, "".join(line for kind, line in lines if kind in " +"))
    return text


def compiler_of(commands, test):
    """The compiler and the flags by which the test, a path below tests/, is compiled."""
    words = next(shlex.split(c["command"]) for c in json.loads(commands.read_text()) if c["file"].endswith(test))
    compiler = next(at for at, word in enumerate(words) if re.search(r"(\+\+|g\+\+-\d+|clang\+\+-\d+)$", word))
    kept = [word for word in words[compiler:] if word.startswith(("-I", "-D", "-std", "-W", "-fsanitize"))]
    isystem = [part for at, word in enumerate(words) if word == "-isystem" for part in words[at:at + 2]]
    return words[compiler], [*kept, *isystem, "-O0"]


MAIN = "#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\n"
