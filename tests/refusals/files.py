# SPDX-License-Identifier: Apache-2.0
"""Files that are read or written: of another kind, missing, no regular ones, in place of each other. Rows: table.py."""
SINK = "kvbench replay t.h5 -m sink"
PROBES = "kvbench allocate probes.h5 --menu h2o"
CHOOSE = "kvbench-choose --model model.gguf --text a.txt -o out"
FORMATS = "xlsx XLS ods tsv jsonl parquet h5 html tex pdf svg png csv.gz".split()


def commands_of(names, file, more=""):
    """Commands that take a file, by name."""
    return [{"replay": f"kvbench replay {file} -m sink", "report": f"kvbench report {file} -o x.html"}.get(
        name, f"kvbench {name} {file}") + more for name in names.split()]


KINDS = (
    *((command, file, f"{words}") for file, words, names in (
        ("model.gguf", "kvdump", "replay info report compare sweep merge"),
        ("hf", "kvbench-dump-hf --model", "replay info"),
        ("raw.h5", "kvbench compare", "replay info report"),
        ("s.cells", "kvbench merge", "replay info"),
        ("rows.csv", "kvbench report", "replay info merge"),
        ("s.toml", "kvbench sweep", "replay info"),
        ("t.h5", "kvbench replay", "report merge sweep")) for command in commands_of(names, file)),
    ("kvbench compare t.h5", "t.h5 has no attribute kvbench_raw, so it holds no raw results; see docs/results.md. It "
     "is a trace: `kvbench replay --raw` makes raw results from it."),
    ("kvbench merge s.toml", "is not a file of cells"),
    ("kvbench sweep s.toml --resume --cells two.toml -o x.csv", "two.toml: is not a file of cells"),
    ("kvbench sweep s.toml --overwrite --cells a.txt -o x.csv", "not a file of cells"),
    ("kvbench compare rows.csv", "--rows query"),
    ("kvbench compare raw.h5 --a snapkv --b h2o", "--a: 'snapkv' matches 2 configurations",
     "snapkv[window=8], snapkv[window=16]"),
    ("kvbench compare raw.h5 --a snik", "Did you mean 'sink'?"),
    ("kvbench compare raw.h5 --metric recal", "Did you mean 'recall'?"),
    ("kvbench compare raw.h5 --metric kl", "'kl' per query", "rel_err"),
    ("kvbench compare none.csv --a snapkv --b h2o --metric kl", "none.csv: there is no such file"),
    ("kvbench compare raw.h5 --metric kl_predicted", "--probes"),
    ("kvbench compare queries.csv --metric kl_predicted", "--raw"),
    ("kvbench compare queries.csv --metric residual_err", "--raw"),
    ("kvbench compare probed.h5 --metric kl_predicted --by head", "--by head"),
    ("kvbench compare probed.h5 --metric residual_err --by head", "--by head"),
    ("kvbench compare s.cells --sweep s.toml --a sink", "--sweep"),
    ("kvbench report rows.csv --raw t.h5 -o x.html", "t.h5"),
    ("kvbench report rows.csv --trace t.h5 -o x.html", "add --raw"),
    ("kvbench report rows.csv --raw raw.h5 --trace other.h5 -o x.html",
     "other.h5: no row of the tables is from this trace"),
    ("kvbench report rows.csv --method snapvk -o x.html",
     "--method snapvk: no row is of this method. Did you mean 'snapkv'?"),
    ("kvbench report cmp.csv -o x.html", "cmp.csv: is a table of kvbench compare, of which there is no report; ",
     "give the table of the replay or evaluation that it compares"),
    ("kvbench report curve.csv -o x.html", "is a table of kvbench allocate --curve", "--figure of allocate"),
    ("kvbench report rounding.csv -o x.html", "is a table of kvbench info --rounding", "--trace of report"),
    ("kvbench report info.csv -o x.html", "is a table of kvbench info, ",
     {"info.csv": "sha256,model,query_heads\na,m,4\n"}),
    ("kvbench report names.csv -o x.html", "is a table of kvbench methods, ",
     {"names.csv": "method,compress_n\nh2o,1\n"}),
    *((f"kvbench report val.csv --figure {name}", f"--figure {name}: val.csv has no figures; write the page")
      for name in ("list", "coverage")),
    ("kvbench report rows.csv -o x.doc", "end it with .html or .md"),
    ("kvbench report rows.csv -o x.pdf", "name it with --figure"),
    ("kvbench report rows.csv --figure cost -o x.html", "give -o FILE.svg or -o FILE.pdf"),
    ("kvbench report rows.csv --figure coast -o x.svg", "there is no such figure; the figures are error-by-method/"),
    ("kvbench report l.csv -o x.html", "l.csv: has no column to show", {"l.csv": "listing,about\na,b\n"}),
    *(("kvbench report l.csv -o x.html", "l.csv:2: column 'link'", "not a relative path",
       {"l.csv": f"method,link,listing\nh2o,{link},a\n"})
      for link in ("javascript:alert(1)", "//there/x", "/etc/passwd", "\\\\there")),
    ("kvbench replay t.h5 other.h5 -m sink --raw x.h5", "--raw", "one trace"),
    ("kvbench sweep both.toml", "-o OUT.csv"),
)

# Two names of one thing.
TWICE = (
    ("kvbench replay t.h5 copy.h5 -m sink", "t.h5 and copy.h5 are the same trace"),
    ("kvbench allocate probes.h5 probes.h5 --menu h2o", "same trace"),
    ("kvbench report rows.csv rows.csv -o x.html", "rows.csv and rows.csv are the same table; name it once"),
    ("kvbench report rows.csv ./rows.csv -o x.html", "rows.csv and ./rows.csv are the same table; name it once"),
    ("kvbench report rows.csv link.csv -o x.html", "rows.csv and link.csv are the same table; name it once"),
    ("kvbench-choose --model model.gguf --text a.txt a.txt -o out", "are one text"),
)

MISSING = (
    *((command, "none.h5", "no such file") for command in
      commands_of("replay info compare", "none.h5") + ["kvbench info none.h5 --rounding"]),
    ("kvbench replay -m sink none.h5", "kvbench: none.h5: no such file"),
    ("kvbench compare none.csv", "none.csv: there is no such file"),
    ("kvbench report none.csv -o x.html", "none.csv: there is no such file"),
    ("kvbench merge none.cells -o x.csv", "none.cells: there is no such file"),
    ("kvbench sweep none.toml", "none.toml: there is no such file"),
    ("kvbench sweep s.toml --trace none.h5", "--trace: none.h5"),
    *((command, "none.gguf: there is no such model file") for command in (
        "kveval none.gguf --text a.txt -m sink --task passkey --question inside",
        "kveval none.gguf --text a.txt -m sink --task text,lines --questions 2",
        "kveval none.gguf --text a.txt -m sink --format table --label sink=Ours",
        "kveval --model none.gguf --text a.txt -m sink",
        "kveval --text a.txt --text a.ids -m eviction none.gguf",
        "kvdump --model none.gguf --text a.txt -o x.h5",
        "kvdump -m none.gguf --text a.txt --text a.ids -o x.h5")),
    ("kvbench-choose --model none.gguf --text a.txt -o out", "there is no such file"),
    ("kvbench-choose --model model.gguf --text none -o out", "there is no such file"),
    ("kvbench-choose --model model.gguf --text folder -o out", "is a folder"),
)

# A pipe without a writer blocks for ever, and /dev/zero does not end.
SPECIAL = (
    *((command, file, words) for file, words in (("pipe", "is a pipe"), ("/dev/zero", "a device"),
                                                 ("folder", "is a folder"))
      for command in (*commands_of("report compare merge", file), f"kvbench sweep {file} --dry-run",
                      f"kvbench replay t.h5 -m chelsea --set chelsea.outliers={file}")),
    # the ending of a folder says nothing of what it is
    ("kvbench replay t.h5 -m plan:folder.toml", "folder.toml", "is a folder; name a plan"),
    ("kvbench sweep folder.toml", "folder.toml", "is a folder; name a sweep file"),
    ("kvbench report folder.csv -o x.html", "folder.csv", "is a folder; name a CSV file"),
    ("kvbench merge folder.cells", "folder.cells", "is a folder; name "),
    *((command, f"folder.{ending}", "folder") for ending in ("toml", "csv", "cells")
      for command in commands_of("info replay compare", f"folder.{ending}")),
)

WRITTEN = (
    (f"{SINK} -o none/x.csv", 3, "none/x.csv", "create the folder first"),
    (f"{SINK} --raw none/x.h5", 3, "none/x.h5", "create the folder first"),
    (f"{SINK} -o folder", 3, "folder"),
    (f"{SINK} -o /dev/full", 3, "space"),
    ("kvbench synth -o none/x.h5 --tokens 64 --prompt-tokens 48 --queries 24", 3, "none"),
    ("kvbench report rows.csv -o none/x.html", 3, "none"),
    ("kvbench sweep s.toml -o none/x.csv", 3, "none"),
    ("kvbench sweep s.toml --shard 1/3 --cells none/x.cells", 3, "none"),
    *((f"{command} -o x.{ending}", f"-o x.{ending}: no table is written in this format: ") for ending in FORMATS
      for command in (SINK, "kvbench validate --synthetic", "kvbench compare none.h5")),
    ("kvbench info t.h5 --rounding -o x.md", "end the name with .csv or .json"),
    ("kvbench info t.h5 --rounding -o x.xlsx", "-o"),
    (f"{PROBES} --figure a.png", "end it with .svg or .pdf"),
    ("kvbench replay t.h5 -m nothing -o kept.csv", "'nothing'"),
)

# Outputs in place of inputs and of each other, whatever name or link they have.
REPLACED = (
    *((command, "name another file") for command in (
        f"{SINK} -o t.h5 --format csv", f"{SINK} -o link", f"{SINK} -o hard",
        "kvbench replay link -m sink --raw t.h5", f"{SINK} -o x --raw ./x",
        "kvbench merge a.cells b.cells -o a.cells", "kvbench sweep s.toml -o s.toml",
        "kvbench sweep s.toml -o t.h5 --format csv", "kvbench sweep s.toml -o x --cells x",
        "kvbench sweep s.toml -o x --cells s.toml --overwrite", "kvbench sweep s.toml --shard 1/2 --cells t.h5",
        "kvbench report rows.csv -o rows.csv --format md", "kvbench report rows.csv --raw raw.h5 -o raw.h5 --format md",
        "kvbench compare raw.h5 -o raw.h5 --format csv",
        "kvbench validate t.h5 --claim chelsea -o t.h5 --format csv",
        # files that no flag names: those of parameters, and the digest beside a trace
        "kvbench replay t.h5 -m 'chelsea[outliers=heads.txt]' -b 25% -o heads.txt",
        "kvbench replay t.h5 -m 'chelsea[outliers=heads.txt]' -b 25% --raw heads.txt",
        "kvbench replay probes.h5 -m sink -o probes.h5.sha256",
        "kvbench replay probes.h5 -m sink --raw probes.h5.sha256",
        "kvbench allocate probes.h5 --menu 'chelsea[outliers=heads.txt]' -o heads.txt",
        "kvbench replay probes.h5 --method plan:plan.toml --budget 25%mem -o plan.toml")),
    ("kvbench info t.h5 --rounding -o t.h5", "-o"),
    (f"{PROBES} -o probes.h5", "the trace"),
    (f"{PROBES} -o x.toml --curve x.toml", "--curve"),
    (f"{PROBES} --figure probes.h5", "which would be replaced"),
)

ROWS = (*KINDS, *TWICE, *MISSING, *SPECIAL, *WRITTEN, *REPLACED)
