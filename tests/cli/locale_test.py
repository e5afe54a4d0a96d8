# SPDX-License-Identifier: Apache-2.0
"""In a locale with a decimal comma, every command prints and writes the same bytes."""
import os
import pathlib

from comma import comma_environment
from support import CliTest, run

TRACE = pathlib.Path(__file__).resolve().parents[2] / "traces/smollm2-135m.h5"
SWEEP = """
[[run]]
name = "a"
traces = "t.h5"
methods = ["uniform", {name = "snapkv", window = 8}]
budgets = ["12.5%", "12.5%mem"]
seeds = 2
measure = "similarity-by-distance"
"""

# In this order: later commands read what earlier ones write.
COMMANDS = [
    ["synth", "-o", "t.h5", "--tokens", 256, "--prompt-tokens", 192, "--queries", 32, "--layers", 2, "--query-heads", 4,
     "--kv-heads", 2, "--head-dim", 16, "--value-dim", 16, "--pattern", "clusters", "--spread", "0.25"],
    ["synth", "-o", "p.h5", "--tokens", 128, "--prompt-tokens", 96, "--queries", 32, "--layers", 2, "--prompts", 2,
     "--head-dim", 16, "--value-dim", 16, "--probes", 4],
    ["allocate", "p.h5", "--menu", "sink,h2o", "-o", "p.toml", "--curve", "p.csv"],
    ["info", "t.h5"],
    ["methods"], ["methods", "subgen"],
    ["replay", "t.h5", "-m", "uniform,snapkv", "-b", "12.5%,12.5%mem,1.5KiB", "--seeds", 3, "--no-times", "-o",
     "r.csv"],
    ["replay", "t.h5", "-m", "uniform,snapkv", "-b", "12.5%", "--rows", "query", "--no-times", "-o", "q.csv"],
    ["replay", "t.h5", "-m", "subgen[delta=1.5]", "-b", "12.5%", "--format", "md"],
    ["sweep", "s.toml", "--shard", "1/1", "--cells", "s.cells"],
    ["sweep", "s.toml", "--no-times", "-o", "s.csv"],
    ["merge", "s.cells", "--no-times", "-o", "m.csv"],
    ["compare", "q.csv", "--format", "csv"], ["compare", "s.cells", "--metric", "rel_err"],
    ["validate", "--synthetic", "--claim", "subgen", "--seeds", 20, "-o", "v.csv"],
    ["report", "r.csv", "m.csv", "m.measures.csv", "-o", "r.html"], ["report", "v.csv", "-o", "v.md"],
    ["validate", "golden", TRACE, "-m", "snapkv", "--format", "csv"],
    ["eval", "--columns"], ["eval", "--list-tasks"],
    ["cache"], ["completion", "bash"], ["man"], ["doctor"],
]
TIMES = ("s.cells",)  # holds times


class DecimalComma(CliTest):
    def results(self, name, environment):
        """Stdout of each command, and the files."""
        folder = self.path(name)
        os.mkdir(folder)
        self.write(SWEEP, os.path.join(folder, "s.toml"))
        found = {}
        for command in COMMANDS:
            done = run(*command, cwd=folder, env={**environment, "SOURCE_DATE_EPOCH": "1234567",
                                                  "XDG_CACHE_HOME": folder})
            self.assertIn(done.returncode, (0, 1), done.stderr)
            found[" ".join(map(str, command))] = done.stdout.replace(folder, "")
        for file in os.listdir(folder):
            if file not in TIMES:
                with open(os.path.join(folder, file), "rb") as opened:
                    found[file] = opened.read()
        return found

    def test_nothing_depends_on_the_locale(self):
        comma = comma_environment(self.folder)
        plain = self.results("plain", {**os.environ, "LC_ALL": "C"})
        self.assertEqual(sorted(plain), sorted(found := self.results("comma", comma)))
        for name, content in plain.items():
            with self.subTest(name):
                self.assertEqual(found[name], content)
        # Every command takes part that is no program of the Python package.
        listed = run("--help").stdout.partition("Subcommands:\n")[2].partition("\n\n")[0]
        commands = {line.split()[0] for line in listed.splitlines()
                    if line.startswith("  ") and line[2] != " "}
        self.assertEqual(commands - {"bundle", "verify", "cite", "claim"}, {command[0] for command in COMMANDS})
