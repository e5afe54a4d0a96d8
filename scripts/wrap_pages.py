#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wraps the paragraphs and list items of pages at 120 columns.
    wrap_pages.py FILE.md ...     rewrites the files (make format calls it for all pages)
Headings, tables, quotations, code and HTML comments stay as they are. Lines end at blanks outside of `code`, and never
where the next line would begin a list, a table, a heading or a quotation."""
import pathlib
import re
import sys
import textwrap

FENCE = re.compile(r"\s*(```|~~~)")
ITEM = re.compile(r" *([-*+]|\d+[.)]) +")
VERBATIM = re.compile(r" {0,3}[#|>]")
KEPT_BLANK = "\0"   # a blank at which no line ends


def filled(text, first):
    """The lines of a paragraph or list item; `first` is what its first line begins with."""
    text = re.sub(r"`[^`]*`", lambda code: code.group().replace(" ", KEPT_BLANK), text)
    text = re.sub(r" (?=([-*+=]|\d+[.)])( |$)|[#>|<])", KEPT_BLANK, text)
    lines = textwrap.wrap(text, 120, initial_indent=first, subsequent_indent=" " * len(first), break_long_words=False,
                          break_on_hyphens=False)
    return [line.replace(KEPT_BLANK, " ") for line in lines]


def wrapped(page):
    """The page with its paragraphs and list items wrapped."""
    out, paragraph, first, indent = [], [], "", 0
    verbatim = None   # how the fenced code or the comment that a line is in ends

    def end_paragraph():
        if paragraph:
            out.extend(filled(" ".join(paragraph), first))
        paragraph.clear()

    for line in page.splitlines():
        depth = len(line) - len(line.lstrip())
        item = ITEM.match(line)
        if line and depth < indent and not paragraph and not item:
            indent = 0   # the list has ended
        if verbatim is None and (FENCE.match(line) or line.startswith("<!--")):
            end_paragraph()
            verbatim = "```" if FENCE.match(line) else "-->"
            out.append(line)
            if verbatim in line[depth + 3:]:
                verbatim = None
        elif verbatim:
            out.append(line)
            if verbatim in line:
                verbatim = None
        elif not line or VERBATIM.match(line):
            end_paragraph()
            indent = 0 if line and depth == 0 else indent
            out.append(line)
        elif item and depth < indent + 4:
            end_paragraph()
            first, indent = item.group(), item.end()
            paragraph.append(line[item.end():])
        elif paragraph:
            paragraph.append(line.strip())
        elif depth >= indent + 4:   # code
            out.append(line)
        else:
            first = " " * depth
            paragraph.append(line.strip())
    end_paragraph()
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    for path in map(pathlib.Path, sys.argv[1:]):
        page = path.read_text()
        if wrapped(page) != page:
            path.write_text(wrapped(page))
