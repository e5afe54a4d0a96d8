# SPDX-License-Identifier: Apache-2.0
"""kvbench bundle, verify, cite, claim and report: results in one file that others recompute in part (docs/bundles.md).

    archive.py    the ZIP file: written with the same bytes always, read with suspicion
    tables.py     which tables are bundled, what a cell of them is, and the command that computes it alone
    inputs.py     traces, models, texts and plans, found by their digests
    bundle.py     Bundle: tables, inputs and the manifest that describes them
    recompute.py  runs kvbench for a cell, and compares rows
    verify.py     draws cells, recomputes them, and says what was found
    figures.py    the rows and scores that are cited
    forms.py      BibTeX, and the forms of llama.cpp, Every Eval Ever and Hugging Face
    claims.py     claims that were registered before they were measured
    page.py       the page of results: bundles, tables and claims as tables of kvbench report
    command.py    the command lines"""
