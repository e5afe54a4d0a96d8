# SPDX-License-Identifier: Apache-2.0
"""The program of the extension, its commands as functions, and what command lines share.

    commands.py    replay(), compare(), report(), method_scores()
    check.py       check(): the property tests of a method
    golden.py      golden(), verify_golden(): golden rows
    main.py        the command kvbench
    arguments.py   command lines of kvbench-dump-hf and kvbench-choose
    progress.py    bars and messages"""
