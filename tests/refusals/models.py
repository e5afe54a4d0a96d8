# SPDX-License-Identifier: Apache-2.0
"""What kveval and kvdump refuse before they load a model. Rows: table.py."""
DUMP = "kvdump none.gguf --text a.txt -o x.h5"
DUMP_IDS = "kvdump none.gguf --ids a.ids"
TOKENS = f"{DUMP} --tokens-only"
EVAL = "kveval none.gguf --ids a.ids --sweep new.toml"
DEFAULTS = '[defaults]\ntraces = ["absent.h5"]\nlayers = [0, 3]\nprotect = [2, 4]\nseeds = [5]\n'
A, B = '[[run]]\nname = "a"\nmethods = ["sink"]\n', '[[run]]\nname = "b"\nmethods = ["sink"]\n'

KVDUMP = (
    ("kvdump", "--model is required"),
    ("kvdump none.gguf --text a.txt", "--output is required"),
    ("kvdump none.gguf -o x.h5", "no prompt was given"),
    ("kvdump model.gguf --text a.txt -o x.h5", "is not a GGUF model"),
    (f"{DUMP} --nonsense", "there is no flag --nonsense"),
    *((f"{DUMP} --ctx {value}", f"--ctx: '{value}' is not a whole number of at least 2") for value in ("-4", "x", "1")),
    (f"{DUMP} --seed -1", "--seed: '-1' is not a whole number from 0 to"),
    (f"{DUMP} --dtype f64", "--dtype f64: expected f32, f16 or bf16"),
    (f"{DUMP} --queries first:3", "expected last:N, all, every:N or decode:N"),
    (f"{DUMP} --queries decode:4 --prompt-tokens 9", "omit --prompt-tokens"),
    (f"{DUMP} --chat", "--chat has no effect without --transcripts"),
    (f"{DUMP_IDS} -o x.h5 --tokens-only", "--tokens-only writes the token ids of --text alone"),
    *((f"kvdump none.gguf --transcripts t -o x.h5 {flag}", "leave out --ctx, --prompt-tokens and --queries decode:N")
      for flag in ("--ctx 9", "--prompt-tokens 9", "--queries decode:2")),
    *((f"{TOKENS} {flag}", f"{flag.split()[0]} has no effect beside --tokens-only") for flag in (
        "--ctx 9", "--layers 0", "--queries all", "--prompt-tokens 9", "--seed 1", "--dtype f16", "--pre-rope",
        "--speculated", "--attention-output", "--compress", "--column-sums", "--sketch", "--check")),
    (f"{DUMP_IDS} other.txt -o x.h5", "'other.txt' has no place behind --ids"),
    (f"{DUMP_IDS} -o kept.csv", "--force"),
    (f"{DUMP_IDS} -o folder", "is a folder"),
    (f"{DUMP_IDS} -o none/x.h5", 3, "create it first"),
    (f"{DUMP_IDS} -o /dev/null --force", 3, "a device"),
    (f"{DUMP_IDS} -o a.ids --force", "name another file"),
)

KVEVAL = (
    ("kveval none.gguf -m sink", "--text", "--ids"),
    ("kveval a.txt --text a.txt -m sink", "a.txt: is not a GGUF model"),
    ("kveval none.gguf --text a.txt -m snapvk", "there is no method 'snapvk'"),
    ("kveval none.gguf --text a.txt -m sink --task confusible", "Did you mean 'confusable'?"),
    ("kveval none.gguf --text a.txt -m sink --task rules --score 9", "--score has no effect on tasks with questions"),
    ("kveval none.gguf --text a.txt -m sink --task confusable --generate 9", "or leave --generate out"),
    ("kveval none.gguf --text a.txt -m sink --task json", "--task json: free answers are judged", "give --generate"),
    ("kveval none.gguf --text a.txt -m sink --task text,json --chat --generate 9", "none.gguf"),
    ("kveval none.gguf --text 'a\nb.txt' -m sink", "file a\\x0ab.txt has a control character"),
    ("kveval none.gguf --transcripts 'a\tb.jsonl' -m sink", "file a\\x09b.jsonl has a control character"),
    ("kveval none.gguf --text a.txt -m sink --isa sse", "'sse' is not one of scalar, avx2, avx512"),
    *((f"kveval none.gguf --text a.txt -m sink --context {lengths}", f"--context: {says}") for lengths, says in (
        ("0", "'0' is not a whole number of at least 2"), ("64,x", "'x' is not a whole number"),
        ("64,,9", "'64,,9' has an empty item"), ("64,128,64", "64 is named twice"),
        ("64,128 --task text,passkey", "documents of task passkey ask for what stands anywhere"),
        ("64,128 --task pairs", "documents of task pairs"))),
    ("kveval none.gguf --text a.txt -m sink --context 64,128 --generate 9",
     "--generate: the full cache has another answer behind each length of --context"),
    *((EVAL, {"new.toml": DEFAULTS + runs}, *says) for runs, *says in (
        (f"{A}{B}layers = [1]\n", "new.toml: the runs 'a' and 'b' differ in 'layers'"),
        (f"{A}{B}protect_outside = [2, 4]\n", "the runs 'a' and 'b' differ in 'protect'"),
        (f"{A}{B}dense_layers = 1\n", "the runs 'a' and 'b' differ in 'dense_layers'"),
        (f'{A}zip = ["layers", "budgets"]\nbudgets = [20, 40]\n', "'zip' joins in run 'a' differ in 'layers'"),
        ('[[run]]\nmeasure = ["clusterability"]\n', "new.toml: has no run with methods"),
        ('[[run]]\nmethods = ["snapvk"]\n', "new.toml:7", "snapvk"))),
    *((f"{EVAL} {flag}", {"new.toml": DEFAULTS + A}, f"{flag.split()[0]}: the file of --sweep gives what it sets")
      for flag in ("--method sink", "--seeds 2", "--layers 0", "--protect 1,1", "--dense-layers 0", "--set a.b=1")),
    (f"{EVAL} --budget 30%", {"new.toml": DEFAULTS + A}, "--budget 30%: the runs of new.toml have 25%"),
    (f"{EVAL} -o new.toml", {"new.toml": DEFAULTS + A}, "new.toml", "name another file"),
    ("kveval none.gguf --ids a.ids --sweep absent.toml", "absent.toml"),
)

ROWS = (*KVDUMP, *KVEVAL)
