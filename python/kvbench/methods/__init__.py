# SPDX-License-Identifier: Apache-2.0
"""Methods written in Python, and what the extension asks of them.

    method.py       what a method may return and raise: Kept, Table, HeadPrompt, scorer, ...
    lookup.py       methods by name: found, described, configured
    source.py       their files
    parameters.py   their parameters as text
    entries.py      the entries that they return
    caches.py       what is asked of them before their caches are made
    given.py        entries(): entries that were computed elsewhere
    scores.py       write_scores(): scores that were computed elsewhere
    kvpress.py      from_kvpress(): presses of NVIDIA kvpress"""
