# SPDX-License-Identifier: Apache-2.0
"""kvbench-dump-hf records a trace from a Hugging Face model through the attention interface of transformers. See
docs/python.md."""

import contextlib
import functools
import importlib.metadata
import os
import signal

from .._error import Error, first_line
from .._kinds import of_kind
from ..files.access import check_not_input, check_replaceable, parts_of_gguf
from ..files.schema import MOST_PROBES, PromptInfo, check_spans
from ..methods.scores import write_scores
from ..program.arguments import Parser, Whether, positive, threads, whole_number
from ..program.progress import Progress, ended, tell
from ..results.damage import VOTE_PROBES
from . import plan
from .transcripts import read_transcripts, tokens_of


def parser():
    made = Parser(prog="kvbench-dump-hf",
                  description="Run a Hugging Face model and write its queries, keys and values as a trace for kvbench.",
                  allow_abbrev=False)
    add = made.add_argument
    add("--model", required=True, help="folder of save_pretrained(), hub name, or GGUF file")
    add("--text", nargs="+", action="extend", default=[], metavar="FILE", help="text files, one prompt each")
    add("--ids", nargs="+", action="extend", default=[], metavar="FILE",
        help="files of whitespace-separated token ids, one prompt each")
    add("--transcripts", nargs="+", action="extend", default=[], metavar="FILE",
        help="files of conversations, as of kveval: each message before the last answer is a span of the context")
    add("--chat", action="store_true", help="put --transcripts into the model's chat template")
    add("-o", "--output", required=True, metavar="FILE", help="trace to write")
    add("--ctx", type=whole_number(2, 2**31 - 1), metavar="N",
        help="use the first N tokens of each prompt; default: all, up to the model's training context")
    add("--decode", type=positive, default=0, metavar="N",
        help="decode up to N tokens greedily after each prompt and record them too")
    add("--prompt-tokens", type=positive, metavar="N",
        help="tokens of the context; default: all tokens before --decode, else all but the last 256 (at most a "
        "quarter)")
    add("--queries", default="", metavar="SPEC",
        help="positions whose queries are stored: last:N, all or every:N; default: 128 before the end of the context "
        "and all after it")
    add("--layers", default="all", metavar="LIST", help="layers to record, such as 0,1,8 or 0-3; default: all")
    add("--dtype", choices=("f32", "f16", "bf16"), default="f32", help="element type of the trace; default: f32")
    add("--weights", choices=("f32", "f16", "bf16"), default="f32", help="type in which the model runs; default: f32")
    add("--device", choices=("cpu", "cuda"), default="cpu", help="where the model runs; default: cpu")
    add("--pre-rope", action="store_true", help="also store queries and keys before RoPE")
    add("--rope-layout", choices=("half", "interleaved"),
        help="which channels of keys and queries form a rotary pair: half (i and i + d/2) or interleaved (2i and 2i + "
        "1, as in llama.cpp for many models); default: as in the model's code")
    add("--column-sums", action=Whether, default=True,
        help="whether to store the attention mass of each key, summed over the queries of the context")
    add("--speculated", action="store_true",
        help="also store the queries that each layer would compute from the attention input of the layer before it")
    add("--attention-output", action="store_true", help="also store the model's own attention outputs")
    add("--sketch", action=Whether, default=True,
        help="whether to store norms of the residual stream and a sketch of W_O, which say how large an error is there")
    add("--probes", type=positive, metavar="R",
        help="also record R gradients of the tokens after the context, from which a replay predicts KL divergences")
    add("--anchors", action="store_true",
        help="with --probes: also measure in the model what standard configurations do to these tokens, which says how "
        "far predictions are to be trusted here")
    add("--scores", default="", metavar="LIST",
        help="also write scores of each token that need the model, beside the trace: damage-votes, kvzip, "
        "kvgrad")
    add("--vote-probes", type=positive, metavar="R",
        help=f"gradients of damage-votes; default: {VOTE_PROBES}")
    add("--seed", type=whole_number(0, 2**31 - 1), metavar="N",
        help="seed of sketches and probes; default: 0")
    add("--no-check", dest="check", action="store_false", help="skip the comparison with the model's own attention")
    add("--compress", action="store_true", help="write a compressed file, which is smaller and slower to read")
    add("--force", action="store_true", help="replace an existing output")
    add("-q", "--quiet", action="store_true", help="print no progress")
    add("--threads", type=threads, metavar="N", help="number of threads; default: that of PyTorch")
    return made


def model_files(name):
    """The files of a model: all parts of a GGUF model, those of a folder, or those of a hub name in the hub's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # as the hub reads it
    home = os.environ.get("HF_HOME") or os.path.join(cache, "huggingface")
    hub = os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    folder = name if os.path.exists(name) else os.path.join(hub, f"models--{name.replace('/', '--')}")
    found = [os.path.join(below, file) for below, _, files in os.walk(folder) for file in files]
    return parts_of_gguf(name) if os.path.isfile(name) else found


def scores_path(options, scorer):
    """The file of scores beside a trace: t.kvzip.h5 for t.h5."""
    return f"{os.path.splitext(options.output)[0]}.{scorer}.h5"


def check_output(path, options):
    """Checks that an output can be written, and replaces no input, before the model runs for minutes."""
    force = options.force
    check_not_input(path, [*options.text, *options.ids, *options.transcripts, *model_files(options.model)])
    folder = os.path.dirname(os.path.realpath(path))  # which a link may name
    if os.path.isdir(path):
        raise Error(f"-o {path}: this is a folder; give the name of a file.")
    if not os.path.isdir(folder):
        raise OSError(f"-o {path}: there is no folder {folder}; create it first.")
    check_replaceable(path)
    if os.path.exists(path) and not force:
        raise Error(f"-o {path}: this file exists; pass --force to replace it, or another name.")
    if not os.access(folder, os.W_OK):
        raise OSError(f"-o {path}: the folder {folder} is not writable.")


def own_version():
    """Version of the installed package; empty if the package is used without being installed."""
    try:
        return importlib.metadata.version("kvbench")
    except importlib.metadata.PackageNotFoundError:
        return ""


def check_installed():
    """Returns the versions of the programs that record a trace. Raises Error if PyTorch or transformers is missing or
    too old."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # the only way to turn off all progress bars of transformers
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        import torch
        import transformers

        from ..models import measure  # noqa: F401  refuses versions that are too old
    except ImportError as missing:
        if not isinstance(missing, ModuleNotFoundError):  # for want of memory, say
            raise OSError(f"PyTorch and transformers are installed and cannot be loaded ({missing})") from None
        raise Error(f"{missing}: dumping a model needs PyTorch and transformers; install them with pip install "
                    "'./python[hf]'.") from None
    return f"{own_version()} (torch {torch.__version__}, transformers {transformers.__version__})".strip()


def read_prompts(options, model):
    if not (options.text or options.ids or options.transcripts):
        raise Error("no prompt was given; pass --text, --ids or --transcripts FILE.")
    most = model.longest - options.decode
    if most < 2 or (options.ctx or 0) > most:
        raise Error(f"--ctx {options.ctx or ''} and --decode {options.decode}: {model.name} was trained on "
                    f"{model.longest} tokens and is undefined beyond; give fewer.")
    texts = [(path, plan.read_text(path)) for path in options.text]
    tokenize = model.tokenizer() if texts else None
    prompts = [plan.make_plan(path, tokenize(text), options, most) for path, text in texts]
    prompts += [plan.make_plan(path, plan.read_ids(path, model.vocabulary), options, most) for path in options.ids]
    return prompts + read_conversations(options, model)


def read_conversations(options, model):
    talks = [(path, *one) for path in options.transcripts for one in read_transcripts(path)]
    with_text = any(isinstance(one["content"], str) for _, _, messages in talks for one in messages)
    tokenizer = model.own_tokenizer("give lists of token ids as contents") if with_text or options.chat else None
    prompts = []
    for path, where, messages in talks:
        tokens, context, spans = tokens_of(messages, tokenizer, model.vocabulary, options.chat, where)
        if len(tokens) > model.longest:
            raise Error(f"{where}: it has {len(tokens)} tokens, and {model.name} was trained on {model.longest}.")
        check_spans(spans, context, where)
        name = f"{os.path.splitext(os.path.basename(path))[0]}-{len(prompts)}"
        prompts.append(plan.Plan(name, tokens, context, options.queries, spans))
    return prompts


class Deferred:
    """In a with statement, SIGINT, SIGTERM and SIGHUP take effect only in check(), so that they never interrupt HDF5
    while it writes."""

    def __enter__(self):
        self._seen = False
        self._before = {number: signal.signal(number, self._note)
                        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
                        if signal.getsignal(number) != signal.SIG_IGN}
        return self

    def _note(self, *_):
        self._seen = True

    def check(self):
        if self._seen:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def at_once(self):
        """In a with statement, where nothing is written, they take effect at once."""
        self.check()
        for number, handler in self._before.items():
            signal.signal(number, handler)
        try:
            yield
        finally:
            for number in self._before:
                signal.signal(number, self._note)

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)


def set_draws(options, scorers):
    """Sets the seed and the number of gradients of damage votes. Raises Error, or says it, where none is used."""
    if options.vote_probes and "damage-votes" not in scorers:
        raise Error("--vote-probes has no effect without --scores damage-votes.")
    if options.seed is not None and not (options.sketch or options.probes or scorers):
        tell("kvbench-dump-hf: --seed has no effect beside --no-sketch, without --probes and --scores\n")
    options.seed, options.vote_probes = options.seed or 0, options.vote_probes or VOTE_PROBES


def dump(options):
    check_output(of_kind(options.output, os.PathLike, "-o"), options)
    plan.check_queries(options.queries)
    if options.transcripts and (options.ctx or options.prompt_tokens or options.decode):
        raise Error("--transcripts says where contexts and answers end; leave out --ctx, --prompt-tokens and --decode.")
    if options.chat and not options.transcripts:
        raise Error("--chat has no effect without --transcripts.")
    for flag, count in (("--probes", options.probes or 0), ("--vote-probes", options.vote_probes or 0)):
        if count > MOST_PROBES:
            raise Error(f"{flag} {count} is too many; give at most {MOST_PROBES}.")
    if options.anchors and not options.probes:
        raise Error("--anchors needs --probes R: anchors are measured on the scored tokens of probes.")
    versions = check_installed()
    import torch
    if options.anchors:
        from .anchors import check_possible
        check_possible()
    from ..models.loading import Model
    from ..models.scores import parse_scorers
    scorers = parse_scorers(options.scores)
    set_draws(options, scorers)
    for scorer in scorers:
        check_output(scores_path(options, scorer), options)
    if options.threads:
        torch.set_num_threads(options.threads)
    progress = Progress(options.quiet)
    progress.stage("loading the model")
    with torch.no_grad():
        write(options, Model(options.model, options.weights, options.device, latent=True), versions, scorers, progress)


def write(options, model, versions, scorers, progress):
    from .anchors import Measurer
    from ..models.probes import Prober, check_plan
    from .record import Recorder
    from ..models.scores import Scores
    layers = plan.parse_layers(options.layers, model.num_layers)
    prompts = read_prompts(options, model)
    recorder = Recorder(model, layers, options, progress.say)
    longest = max(prompts, key=lambda prompt: len(prompt.tokens))
    for prompt in prompts if options.probes else ():
        check_plan(prompt.extended([0] * options.decode))
    progress.stage("examining the layers")
    stock = recorder.examine(longest.tokens, len(longest.tokens) + options.decode)
    header = recorder.header(model=model.title, arch=model.arch, quantisation=model.quantisation, dtype=options.dtype,
                             source_tool="kvbench-dump-hf", source_version=versions)
    prober = options.probes and Prober(model, recorder.interface, recorder.layers, options.probes, options.seed,
                                       progress.stage)
    anchors = Measurer(model, recorder, header, options.threads or 0, progress.stage,
                       progress.say) if options.anchors else None
    scores = Scores(scorers, model, recorder, prompts, options.vote_probes, options.seed, progress.stage)
    if prober and not options.quiet:
        expected = [prompt.extended([0] * options.decode) for prompt in prompts]
        costs = [prober.cost(recorder.facts, expected, recorder.pace)]
        costs += [anchors.cost(expected, recorder.pace)] if anchors else []
        progress.say(" ".join(costs))
    if scorers and not options.quiet:
        progress.say(scores.cost(prompts))
    with Deferred() as signals:
        count = record(options, header, prompts, recorder, prober, anchors, scores, signals, progress)
        for scorer, found in scores.found.items():
            write_scores(scores_path(options, scorer), found, trace=options.output)
    if options.quiet:
        return
    checked = (f"largest difference from the model's own attention {recorder.largest:.1e}, "
               f"from its hidden states {stock:.1e}")
    progress.say(f"{options.output}: {count} tokens, {len(recorder.layers)} layers; "
                 + (checked if options.check else "not checked against the model's own attention"))
    for scorer in scorers:
        progress.say(f"{scores_path(options, scorer)}: keep tokens by these scores with --method "
                     f"\"{scores.method(scorer, scores_path(options, scorer))}\".")


def record(options, header, prompts, recorder, prober, anchors, scores, signals, progress):
    """Writes the trace, and computes scores. Returns the number of tokens."""
    from ..files.trace_writer import TraceWriter
    count, measured = 0, {}
    with TraceWriter(options.output, header, options.compress) as out:
        recorder.interface.pulse = signals.check
        for number, prompt in enumerate(prompts):
            progress.part = f"document {number + 1} of {len(prompts)}, " if len(prompts) > 1 else ""
            if options.decode:
                progress.stage("decoding")
                prompt = recorder.decode(prompt, options.decode)
                missing = prompt.prompt_tokens + options.decode - len(prompt.tokens)
                if missing:
                    progress.say(f"prompt '{prompt.name}': the model ended its text {missing} tokens before --decode "
                                 f"{options.decode}.")
            probes = None
            if prober:
                with recorder.attached():
                    probes = prober.run(prompt, number)
            if anchors:
                anchors.pulse = signals.check
                measured[str(number)] = anchors.run(prompt)
            scored = scores.run(prompt, number)
            out.prompt(number, PromptInfo(name=prompt.name, tokens=prompt.tokens, prompt_tokens=prompt.prompt_tokens,
                                          probes=probes and probes.info, spans=prompt.spans))

            def each(layer, info, arrays, number=number, prompt=prompt):
                progress.stage(f"{prompt.name}: layer {layer} of {header.num_layers}")
                out.layer(number, layer, info, **arrays)

            recorder.record(prompt, each, probes, scored)
            count += len(prompt.tokens)
        if anchors:
            write_anchors(out, measured, anchors, options.threads or 0, signals, progress)
        signals.check()
    return count


def write_anchors(out, measured, anchors, threads, signals, progress):
    """Adds the anchors of all prompts to a trace, with what a replay of it predicts."""
    from .anchors import predicted
    progress.stage("replaying the trace for its anchors")
    with out.complete() as path, signals.at_once():
        found = predicted(path if anchors.replayed() else None, measured, threads)
    for id, one in found.items():
        out.anchors(id, one)


fail = functools.partial(ended, "kvbench-dump-hf")


def stop_by_signals():
    """SIGTERM and, unless it is ignored (nohup), SIGHUP end the program as Ctrl-C does."""
    def stop(*_):
        raise KeyboardInterrupt
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)


def main(arguments=None):
    """Returns the exit code: 0 done; 1 a self check failed; 2 bad usage or input; 3 input/output or memory; 130
    interrupted."""
    stop_by_signals()
    try:
        dump(parser().parse_args(arguments))
        return 0
    except KeyboardInterrupt:
        return fail(130, "interrupted; nothing was written")
    except MemoryError as failure:
        return fail(3, failure)
    except OSError as failure:
        return fail(3, failure)
    except Error as failure:
        return fail(2, failure)
    except Exception as failure:
        return failed_run(failure)


def failed_run(failure):
    """Exit code of an exception of PyTorch, of the model's code, or of a self check."""
    if type(failure).__name__ == "CheckFailed":
        return fail(1, failure)
    text = str(failure)
    if "out of memory" in text or "not enough memory" in text:
        return fail(3, "out of memory: the activations of one layer must fit into memory. Give a smaller --ctx, fewer "
                    "--queries, or --weights bf16.")
    return fail(2, f"the model's code fails ({first_line(failure)}); nothing was written.")

