# SPDX-License-Identifier: Apache-2.0
"""Results, and what they mean.

    rows.py        Rows and load_csv(): result CSVs
    columns.py     types of their columns; written by scripts/docs
    raw.py         Raw: files of --raw
    damage.py      limits and standard configurations of docs/damage.md
    sentences.py   sentences(): what comparisons decide"""
