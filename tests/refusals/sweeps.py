# SPDX-License-Identifier: Apache-2.0
"""Sweep files: what is wrong in them is named with its place. Rows: table.py, with the text of new.toml."""
HUGE = 2**63 - 1
RUN = '[[run]]\nmethods = "sink"\n'
ON = RUN + 'name = "r"\ntraces = "t.h5"\n'  # whose next line is the fifth


def sweeps(*rows):
    """Rows of texts and what is said of them."""
    return [("kvbench sweep new.toml -o x.csv", {"new.toml": text}, *says) for text, *says in rows]


KEYS = sweeps(
    ('nam = "x"\n' + RUN, "new.toml:1:1: a sweep file has no key 'nam'.", "Did you mean 'name'?"),
    ("[defaults]\nseeds = 1\n  buget = 3\n", "new.toml:3:3: a run has no key 'buget'. Did you mean 'budgets'?"),
    ('[[run]]\nmethod = "exact"\n', "Did you mean 'methods'?"),
    ('[[runs]]\nmethods = "exact"\n', "Did you mean 'run'?"),
    ("[[run]]\nzzz = 1\n", "It has traces, methods"),
    ("", "new.toml: has no run; add a block [[run]]"),
    ("# only words\n", "has no run"),
    ('[run]\nmethods = "exact"\n', "new.toml:1:1: write each run as a block [[run]]"),
    ("run = [1]\n", "write each run as a block [[run]]"),
    ("run = []\n", "empty"),
    ("defaults = 3\n", "[defaults]"),
    ('[[run]]\ntraces = "t.h5"\n', "run '1' has neither methods nor measures"),
    ((RUN + 'name = "a"\n') * 2, "new.toml:4:1: the run at "),
    (RUN, "new.toml:1:1: run '1' has no traces", "with --trace"),
)

VALUES = sweeps(*((f"{RUN}{line}\n", *says) for line, *says in (
    ('seeds = "five"', "new.toml:3:9: 'seeds' takes a number of seeds, or a list of them, not the text 'five'"),
    ("seeds = 0", "new.toml:3:9: 'seeds' is 0; give a number of seeds from 1 to 100000"),
    ("seeds = 100001", "'seeds' is 100001"),
    ("seeds = []", "at least one seed"),
    ("seeds = [1, -1]", "new.toml:3:13: "),
    ("seeds = [4294967296]", "4294967296"),
    ("seeds = nan", "new.toml:3:9", "nan is not a number"),
    ("budgets = 0.25", "not the number 0.25"),
    ('budgets = ["30%", "0%"]', "new.toml:3:19: budget '0%' keeps nothing"),
    ("budgets = []", "not a list"),
    ('layers = [0, "1-3"]', "new.toml:3:14: 'layers' takes numbers of layers, not the text '1-3'"),
    ("layers = [-1]", "-1"),
    ("window = 0", "at least 1"),
    ("window = true", "not true"),
    ("window = inf", "new.toml:3:"),
    ('protocol = "prefil"', "Did you mean 'prefill'? It takes auto, decode, prefill, stream."),
    ("protocol = 3", "not the number 3"),
    ("protect = [1]", "new.toml:3:11: 'protect': give two numbers"),
    ("protect_outside = [1]", "new.toml:3:19: 'protect_outside': give two numbers"),
    ("protect = 4", "[first, last]"),
    ("protect = [1, 2]\nprotect_outside = [1, 2]", "not both"),
    ("recall_sinks = 1", "true or false"),
    ("traces = 1", "paths of traces"),
    ("traces = 1979-05-27", "dates"),
    ("seeds = 07:32:00", "new.toml:3:9: a sweep file has no dates"),
    ('measure = "clusterabilty"', "Did you mean 'clusterability'?"),
    ("name = 3", "'name' takes a text"),
    ('exclude = ["sink"]', "new.toml:3:12: 'exclude' takes tables"),
    ('exclude = [{ method = ["sink"] }]', "not a list"),
)), ('[[run]]\nmethods = [{ name = "snapkv", window = +inf }]\n', "new.toml:2:40", "inf is not a number"))

ZIP = '[[run]]\nmethods = "sink"\ntraces = ["t.h5", "other.h5"]\n'
TWO = ZIP.replace('"sink"', '["sink", "exact"]') + 'protocol = ["prefill", "decode"]\nbudgets = [48, 96]\n'
LISTS = sweeps(
    (ZIP + 'budgets = [8]\nzip = ["traces", "budgets"]\n',
     "new.toml:5:7: run '1' joins lists of different lengths: 2 items of 'traces', 1 of 'budgets'"),
    (ZIP + 'zip = ["traces", "layers"]\n', "joins 'layers', which is not a list"),
    (ZIP + 'zip = ["trace"]\n', "new.toml:4:8: 'zip' cannot join 'trace'. Did you mean 'traces'?"),
    *((f"{TWO}exclude = [{exclusion}]\n", *says) for exclusion, *says in (
        ('{ method = "mesh" }', "new.toml:6:12: no configuration of run '1' matches this exclusion"),
        ('{ method = "snik" }', "Did you mean 'sink'?"),
        ('{ metod = "sink" }', "'metod'", "Did you mean 'method'?"),
        ('{ method = "sink" }, { method = "exact" }', "removes every configuration of run '1'"))),
)

# What does not fit a trace has the place of the key in the run or in [defaults], else that of the run.
TRACES = sweeps(
    (ON.replace('"t.h5"', '["t.h5", "none.h5"]'), "new.toml:4:19: none.h5"),
    (ON.replace("t.h5", "new.toml"), "new.toml:4:10: "),
    *((ON + line + "\n", f"new.toml:{place}: run 'r' on t.h5: {words}") for line, place, words in (
        ("budgets = [8, 193]", "5:11", "'budgets': 193 is larger than the context of 192 tokens"),
        ('budgets = "3B"', "5:11", "'budgets': 3B is less than the 64 bytes"),
        ("layers = 7", "5:10", "'layers': the trace has no layer 7"),
        (f"layers = [{HUGE}]", "5:10", f"'layers': the trace has no layer {HUGE}"),
        ("heads = [0, 2]", "5:9", "'heads': there is no kv head 2"),
        ('prompts = "x"', "5:11", "'prompts': the trace has no prompt 'x'"),
        ("protect = [96, 96]", "5:11", "'protect': 96 + 96 tokens are the whole context"),
        (f"protect = [{HUGE}, {HUGE}]", "5:11", "'protect': "),
        ("protect_outside = [96, 96]", "5:19", "'protect_outside': 96 + 96 tokens are the whole context"),
        ('protocol = "prefill"\nwindow = 256', "6:10", "'window' is 256, which leaves no context"),
        ('decoded = "keep"\nprotocol = "stream"', "5:11",
         "'decoded' is keep, which would leave no tokens to the method"))),
    (ON + 'budgets = "1MiB"\n', "use at most 12288B"),
    ('[defaults]\nlayers = [7]\ntraces = "t.h5"\n' + RUN, "new.toml:2:10: run '1' on "),
    (f'[defaults]\nlayers = [7]\n{RUN}traces = "t.h5"\nlayers = 8\n', "new.toml:6:10: run '1' on "),
    (ON.replace("sink", "infinigen") + 'calibrate = "t.h5"\n',
     "new.toml:5:13: run 'r' on", "'calibrate': t.h5, prompt '0' is the text of the evaluated prompt"),
    (ON.replace("sink", "infinigen") + 'calibrate = "other.h5:5"\n', "has no prompt '5'"),
    (ON + 'calibrate = "other.h5"\n', "no method that is replayed calibrates"),
)
TRACES += [("kvbench sweep s.toml --memory 1M", "s.toml:1:1: run 'a' on", "--memory allows", "raise --memory")]

# Heads of a trace that a run replays twice.
TWICE = sweeps(
    (RUN + 'traces = ["t.h5", "other.h5", "t.h5"]\n', "new.toml:3:31: run '1': "),
    (RUN + 'traces = ["t.h5", "./t.h5"]\n', "are the same trace; name it once"),
    (RUN + 'traces = ["t.h5", "copy.h5"]\n', "copy.h5 are the same trace; name it once"),
    *((f"{ON}{line}\n", says) for line, says in (
        ('protocol = ["prefill", "prefill"]', "'protocol' names the same protocol twice"),
        ('protocol = ["auto", "decode"]', "'protocol' names the same protocol twice"),
        ('device = ["cpu", "cpu"]', "'device' names the same device twice"),
        ("seeds = [3, 3]", "'seeds': 3 is given twice"),
        ('measure = ["clusterability", "clusterability"]', "'clusterability' is given twice"))),
)

START = RUN + '[[published]]\nclaim = "c"\n'
SHOWN = ('[[run]]\nname = "r"\nbudgets = "25%"\nmeasure = "clusterability"\nmethods = ["sink", '
         '{ name = "chelsea", ratio = 0.3, decay = 0.125 }, "chelsea"]\nprompts = ["a", "b"]\nlayers = [2, 8]\n'
         'protocol = ["decode", "stream"]\n[[run]]\nmethods = "sink"\n[[published]]\nclaim = "c"\n'
         'metric = "m"\nuntestable = "u"\nrows = [{')
RELATED = ('[[run]]\nname = "r"\nmethods = ["sink", "clusterkv", { name = "clusterkv", distance = "l2" }, '
           '{ name = "quest", page = [8, 4] }]\n'
           '[[published]]\nid = "x.y"\nclaim = "c"\nmetric = "recall_mean"\n')
BY_METRIC = ('[[run]]\nmethods = ["sink", "snapkv"]\n[[published]]\nid = "a"\nclaim = "c"\nmetric = %s\n'
             'relations = [{ a = "snapkv", is = "lower", b = "sink"%s }]\n')
PUBLISHED = sweeps(
    (START, "new.toml:3:1: a block [[published]] needs 'claim' and 'metric'"),
    (START + 'metric = "recall_mean"\n', "needs either 'relations'"),
    (START + 'metric = "recall_mean"\nuntestable = "x"\n', "without relations needs 'rows'"),
    (START + 'metrics = "x"\n', "Did you mean 'metric'?"),
    (START + "rows = 3\n", "'rows' takes a list of tables, not the number 3"),
    (RUN + 2 * '[[published]]\nid = "a"\nclaim = "c"\nmetric = "m"\nuntestable = "u"\nrows = [{ run = "1" }]\n',
     "also has the id 'a'"),
    *((f"{SHOWN} {row} }}]\n", says) for row, says in (
        ('method = "h2o"', "new.toml:15:20: no run has the method 'h2o' here; there is 'chelsea', 'sink'"),
        ('method = "chelsea", params = "ratio=0.4"', "no run has the params 'ratio=0.4' here; there is"),
        ('method = "chelsea", params = "ratio"', "is not PARAMETER=VALUE"),
        ('params = "ratio=0.3"', "beside the 'method'"),
        ('method = "sink", budget = "50%"', "no run has the budget '50%' here; there is '25%'"),
        ('run = "q", method = "sink"', "there is no run 'q'"),
        ('measure = "similarity-by-distance"', "no run has the measure 'similarity-by-distance'"),
        ('method = "sink", measure = "clusterability"', "leave one of them out"),
        ('methd = "sink"', "a row has no key 'methd'. Did you mean 'method'?"),
        ("protocol = 'auto'", "15:22: 'protocol' takes 'prefill', 'decode' or 'stream', not the text 'auto'"),
        ("run = 'r', protocol = 'prefill'", "no run has the protocol 'prefill' here; there is 'decode', 'stream'"),
        ("device = 'gpu'", "'device' takes 'cpu', 'ref' or 'cuda', not"),
        ("layer = 'two'", "'layer' takes a whole number or 'all', not the text 'two'"),
        ("layer = -1", "'layer' takes"),
        ("run = 'r', layer = 3", "no run has the layer '3' here; there is '2', '8'"),
        ("run = 'r', prompt = 'c'", "no run has the prompt 'c' here; there is 'a', 'b'"),
        ("array = 'queries'", "'array' takes 'keys'"))),
    *((f"{RELATED}relations = [{{ {relation} }}]\n", says) for relation, says in (
        ('a = "snk", is = "lower", b = "sink"', "new.toml:8:20: a: there is no method 'snk'"),
        ('a = "sink", is = "lower", b = "quest"', "matches 2 configurations"),
        ('a = "sink@50%", is = "lower", b = 1', "there is no budget '50%'"),
        ('run = "q", a = "sink", is = "lower", b = 1', "there is no run 'q'"),
        ('a = "sink", is = "below", b = 1', 'takes one of "lower", "higher", "at least", "equal"'),
        ('a = "sink", is = "equal", b = 1', "'within'"),
        ('a = "sink", is = "lower"', "needs 'a', 'is' and 'b'"),
        ('a = "sink", is = "lower", b = 1, tokens = 96', "stand together"),
        ('a = "sink", is = "lower", b = 1, tokens = 0.5, below = "x"', "number of tokens"),
        ('a = "2:sink", is = "lower", b = 1', "'2:sink' has the number of a file"),
        ('a = "sink", than = 1', "a relation has no key 'than'"))),
    (RELATED + 'untestable = "x"\nrelations = [{ a = "sink", is = "lower", b = 1 }]\n', "either"),
    *((BY_METRIC % given, says) for given, says in (
        (('"kl_predicted"', ', by = "layer"'), "of all layers of a text together"),
        (('"kl_predicted_mean"', ""), "not 'kl_predicted_mean'"),
        (('"rel_err"', ""), "not 'rel_err'"),
        (("[]", ""), "new.toml:6:10: 'metric' is an empty list"),
        (('["rel_err_mean", 3]', ""), "'metric' takes a text, not the number 3"),
        (('["rel_err_mean", "rel_err_mean"]', ""), "also has the id 'a.rel_err_mean'"))),
)

INVALID, BRACKETS, DOTS = "this is not valid TOML", "more than 16 brackets are open here", "a key has more than 16 dots"
HOSTILE = sweeps(
    ("[[run]\n", "new.toml:1:7", INVALID),
    ('[[run]]\nmethods = ["exact"\n', f"new.toml:2:20: {INVALID}"),
    ("a = 1\na = 2\n", "new.toml:2:"),
    ("\na" + ".a" * 15000 + " = 1\n", f"new.toml:2:34: {DOTS}"),
    ("[a" + " . a" * 10000 + "]\n", DOTS),
    ("[a" + '."a"' * 10000 + "]\n", DOTS),
    ("a = " + "[" * 30000, f"new.toml:1:21: {BRACKETS}"),
    ("a = " + "{a=" * 10000, BRACKETS),
    ("a = " + "[{a.a=" * 5000, BRACKETS),
    # strings that end where they seem not to, and the other way round
    *((f"a = [{text}, " + "[" * 10000, BRACKETS) for text in (
        '""""""', r'"\""', "''''''", r"'\'", r'"""\""""""', '"#"', "'''\n#'''''", '"""a""""')),
    ("a = 99999999999999999999\n", f"new.toml:1:25: {INVALID}"),
    ("a = 0x" + "f" * 100_000 + "\n", INVALID),
    ("a = 1" + "0" * 100_000 + "e1\n", "new.toml:1:"),
    (b'name = "\xc3\x28"\n', "new.toml:1:"),
    ('name = "a\0b"\n', "new.toml:1:"),
    ('a = "' + "x" * 500_000, "new.toml:1:"),
    ('a = """' + "\n" * 500_000, INVALID),
    ("defaults = 1979-05-27\n", "new.toml:1:12: a sweep file has no dates or times"),
    ("#" * 2**20 + "\n", "new.toml: has 1048577 bytes, more than the 1048576"),
    ("".join(f"k{n} = 1\n" for n in range(70_000)), "new.toml:1:1: "),
    # no text commands a terminal or breaks a line
    *((text, *says) for bad in (r"\u001b[31m", r"\n", r"\u009b1m") for text, *says in (
        (f'name = "a{bad}"\n{RUN}', "new.toml:1:", "this text has a control character"),
        (f'description = "a{bad}"\n{RUN}', "new.toml:1:", "this text has a control character"),
        (f'{RUN}name = "a{bad}"\n', "new.toml:3:8: this text has a control character"),
        (f'"a{bad}" = 1\n{RUN}', "this key has a control character"))),
)

ROWS = (*KEYS, *VALUES, *LISTS, *TRACES, *TWICE, *PUBLISHED, *HOSTILE)
