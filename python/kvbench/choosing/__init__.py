# SPDX-License-Identifier: Apache-2.0
"""kvbench.choose() and the command kvbench-choose: from a model, texts and a size of the cache to a configuration, and
the evidence for it (docs/choose.md).

    settings.py   what is asked: ChooseSettings, and the Question that follows from them
    command.py    the command: flags to settings, the answer printed
    choose.py     the steps from a question to a ChooseResult
    documents.py  pieces of the texts, and the recording of some of them
    names.py      names of configurations
    rank.py       what a replay predicts, and which configurations race
    race.py       evidence that may be looked at after each document
    model.py      what is measured in the model
    sizes.py      the size of its cache
    plans.py      files of plans
    engines.py    formats that engines have
    answer.py     sentences
    folder.py     the output folder
    run.py        programs and their progress"""
