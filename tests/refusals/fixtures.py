# SPDX-License-Identifier: Apache-2.0
"""The files that rows of refusals name."""
import hashlib
import os
import shutil
import subprocess

SWEEP = '[[run]]\nname = "a"\ntraces = "t.h5"\nmethods = ["sink"]\n'
MINE = """import dataclasses
import numpy, kvbench
@kvbench.scorer
def long_keys(head, power=2):
    return numpy.linalg.norm(head.keys, axis=1)
@dataclasses.dataclass
class First:
    sinks: int = 4
    def prepare(self, head):
        return self
    def make(self, budget, seed):
        return numpy.arange(budget)
"""
TEXTS = {"s.toml": SWEEP, "two.toml": SWEEP, "both.toml": SWEEP + 'measure = "clusterability"\n', "heads.txt": "0 0\n",
         "a.txt": "words " * 999, "a.ids": "7 " * 999, "kept.csv": "old\n", "model.gguf": "GGUF" + "\0" * 200,
         "hf/config.json": "{}", "mine.py": MINE}
TRACES = {"t.h5": "", "other.h5": "--seed 1", "two.h5": "--prompts 2 --seed 2",
          "probes.h5": "--probes 4 --prompts 4 --pattern heavy-hitters"}
COMMANDS = ("replay t.h5 -m sink,h2o,snapkv[window=8],snapkv[window=16] --raw raw.h5 -o rows.csv",
            "replay probes.h5 -m sink,h2o --rows query --raw probed.h5 -o queries.csv",
            "sweep s.toml --cells s.cells -o /dev/null", "sweep s.toml --shard 1/2 --cells a.cells",
            "sweep s.toml --shard 2/2 --cells b.cells",
            "allocate probes.h5 --menu h2o -o plan.toml --curve curve.csv -q",
            "compare raw.h5 --a sink --b h2o -o cmp.csv", "info t.h5 --rounding -o rounding.csv -q",
            "validate --synthetic --claim subgen.lemma2 -o val.csv -q")


def make(folder, kvbench):
    """Writes them into a folder that is empty."""
    path = lambda name: os.path.join(folder, name)
    for name in ("hf", "folder", "folder.toml", "folder.csv", "folder.cells"):
        os.mkdir(path(name))
    for name, text in TEXTS.items():
        with open(path(name), "w") as file:
            file.write(text)
    run = lambda *words: subprocess.run(words, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    for name, more in TRACES.items():
        run(kvbench, *(f"synth -o {name} --tokens 256 --prompt-tokens 192 --queries 96 --layers 2 --query-heads 4 "
                       f"--kv-heads 2 --head-dim 16 --value-dim 16 -q {more}").split())
    for command in COMMANDS:
        run(kvbench, *command.split())
    shutil.copy(path("t.h5"), path("copy.h5"))
    os.link(path("t.h5"), path("hard"))
    os.symlink("t.h5", path("link"))
    os.symlink("rows.csv", path("link.csv"))
    os.mkfifo(path("pipe"))
    with open(path("probes.h5"), "rb") as trace, open(path("probes.h5.sha256"), "w") as file:
        file.write(f"{hashlib.sha256(trace.read()).hexdigest()}  probes.h5\n")
