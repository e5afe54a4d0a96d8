# SPDX-License-Identifier: Apache-2.0
"""What kvbench-dump-hf refuses, of a small model and of texts of token ids. Rows: table.py, but the files are those of
python/tests/dump_hf_runs_test.py, which has PyTorch and the model."""
DUMP = "kvbench-dump-hf --model llama -o x.h5"
IDS = f"{DUMP} --ids a.ids"

TALK = f"{DUMP} --transcripts talk"
ANSWER = '{"role": "assistant", "content": [1]}'


ROWS = (
    (DUMP, "no prompt was given", "--text, --ids or --transcripts FILE"),
    (f"{IDS} --chat", "--chat has no effect without --transcripts"),
    (f"{TALK} --decode 9", "leave out --ctx, --prompt-tokens and --decode"),
    *((TALK, {"talk": text}, *says) for text, *says in (
        ("\n", "talk: there is no conversation"),
        ("\n[", "talk:2: it is no JSON"),
        ("[1]", "talk:1: it has no list \"messages\""),
        ('[{"role": "user", "content": [true]}]', "message 1: give a \"role\""),
        (f"[{ANSWER}]", "behind at least one other message"),
        (f'[{{"role": "user", "content": [97]}}, {ANSWER}]', "message 1: [97] is not a token"),
        (f'[{{"role": "gpt", "content": [7]}}, {ANSWER}]', "message 1: its role is 'gpt'", "choose among system"),
        (f'[{{"role": "user", "span": "a, b", "content": [7]}}, {ANSWER}]', "is '0 1 a, b'", "no comma"),
        (f'[{{"role": "user", "content": "Hi"}}, {ANSWER}]', "lists of token ids as contents"),
        (f'[{{"role": "user", "content": {[1] * 512}}}, {ANSWER}]', "it has 513 tokens", "trained on 512"))),
    (f"{DUMP} --ids nowhere", "there is no such file"),
    (f"{DUMP} --ids word", "'x2' (item 2) is not a token id"),
    (f"{DUMP} --ids nul", r"'2\x00' (item 2) is not"),
    (f"{DUMP} --ids large", "'97' (item 2) is not a token id"),
    (f"{DUMP} --ids one", "1 tokens are too few"),
    (f"{DUMP} --ids one --ids a.ids", "1 tokens are too few"),
    (f"{IDS} --ctx 0", "'0' is not a whole number"),
    (f"{IDS} --ctx 1", "'1' is not a whole number from 2"),
    (f"{IDS} --ctx 64", "--ctx 64 asks for more than its 48 tokens"),
    (f"{IDS} --ctx 513", "was trained on 512 tokens"),
    (f"{IDS} --ctx 40 --decode 500", "was trained on 512 tokens"),
    (f"{IDS} --prompt-tokens 49", "--prompt-tokens 49 lies beyond the 48"),
    (f"{IDS} --prompt-tokens 9 --decode 2", "contradicts it"),
    (f"{IDS} --layers 0,2", "there is no layer 2"),
    (f"{IDS} --layers x", "'x' is not a layer"),
    (f"{IDS} --queries last:0", "expected last:N, all or every:N"),
    (f"{DUMP} --texts a.ids", "there is no flag --texts (did you mean --text?);"),
    (f"{IDS} --no_sketch", "there is no flag --no_sketch (did you mean --no-sketch?)"),
    (f"{IDS} --layers 2 8, 9", "write --layers 2,8,9;"),
    (f"{IDS} --scores=kvzip kvgrad", "write --scores kvzip,kvgrad;"),
    (f"{IDS} --context=9", "there is no flag --context (did you mean --ctx?)"),
    (f"{IDS} '-\x1b[31m'", r"there is no flag -\x1b[31m;"),
    (f"{IDS} --scores ''", "--scores: the value is empty"),
    (f"{IDS} --queries=", "--queries: the value is empty"),
    (f"{IDS} --pre-rope=", "--pre-rope takes no value; write --pre-rope alone"),
    (f"{IDS} --sketch=no", "--sketch takes no value; write --sketch alone"),
    ("kvbench-dump-hf -o x.h5 --ids a.ids --ctx 64 -- llama", "--ctx 64 asks for more than its 48 tokens"),
    (f"{IDS} --ctx 8 --ctx 9", "--ctx is given twice"),
    (f"{IDS} --sketch --no-sketch", "--no-sketch is given twice"),
    (f"{DUMP} --text a.ids", "give token ids with --ids"),
    ("kvbench-dump-hf --model folder -o x.h5 --ids a.ids", "no config.json"),
    ("kvbench-dump-hf --model x.gguf -o x.h5 --ids a.ids", "no such model file"),
    ("kvbench-dump-hf --model llama --ids a.ids -o folder", "this is a folder"),
    ("kvbench-dump-hf --model llama --ids a.ids --layers -o x.h5", "--layers needs a value; -o behind it is a flag"),
    ("kvbench-dump-hf --model llama --ids a.ids -o none/x.h5", 3, "none/x.h5"),
    ("kvbench-dump-hf --model llama --ids a.ids -o 'no\x1b[31mne/x.h5'", 3, r"no\x1b[31mne/x.h5"),
    ("kvbench-dump-hf --model llama --ids a.ids -o kept.h5", "--force"),
)
