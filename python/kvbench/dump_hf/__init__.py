# SPDX-License-Identifier: Apache-2.0
"""kvbench-dump-hf: traces from models of transformers (docs/python.md).

    command.py   the command
    plan.py      which tokens and queries of a prompt are recorded
    record.py    runs the model and records its layers
    check.py     compares a recording with the attention of the model
    sketch.py    what the output of a layer adds to the residual stream
    anchors.py   standard configurations, measured in the model"""
