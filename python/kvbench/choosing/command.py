# SPDX-License-Identifier: Apache-2.0
"""kvbench-choose: flags to settings, and the answer printed."""

import functools
import sys

from .._error import Error, first_line
from ..dump_hf.command import stop_by_signals
from ..program.arguments import Parser, positive, threads
from ..program.progress import ended
from .choose import choose
from .settings import ChooseSettings, choices_of


def parser():
    made = Parser(prog="kvbench-choose", allow_abbrev=False,
                  description="Choose a KV-cache compression for a model and texts: predict, then measure.")

    def add(*flags, default=None, **how):
        name = flags[-1].lstrip("-").replace("-", "_")
        made.add_argument(*flags, default=getattr(ChooseSettings, name, default), **how)
    add("--model", required=True, metavar="MODEL", help="GGUF model file, folder of save_pretrained(), or hub name")
    add("--text", nargs="+", action="extend", required=True, metavar="FILE",
        help="text files of the kinds that the model will read")
    add("--memory", metavar="SIZE",
        help="size of the cache, a share of the full one such as 25%% or 0.25, or with --context-length such as 3.5GB; "
        "default: 25%%")
    add("--context-length", type=positive, metavar="N", help="tokens of context for which the answer states sizes")
    add("-o", "--output", required=True, metavar="FOLDER",
        help="folder of the recording, the measurements and the answers; another question about the same model and "
        "texts in the same folder records nothing again")
    add("--context", type=positive, metavar="N", help="tokens that are compressed; default: 1024")
    add("--score", type=positive, metavar="N", help="scored tokens after them; default: 64")
    add("--documents", type=positive, metavar="N", help="documents that are recorded; default: 6")
    add("--probes", type=positive, metavar="R", help="probes of each of them; default: 8")
    add("--without-gradients", action="store_true",
        help="rank by errors in the residual stream, which kvdump records from a GGUF file without PyTorch; so where "
        "PyTorch is not installed")
    add("--methods", metavar="LIST", help="configurations to predict; default: %(default)s")
    add("--menu", metavar="LIST", help="what a plan may give a layer or head; default: %(default)s")
    add("--runs-in", metavar="ENGINE",
        help="only configurations that this engine has today, such as llama.cpp, and a plan in the shape that it can "
        "set; in place of --methods and --menu")
    add("--by", choices=choices_of("by"),
        help="what a plan gives a budget of its own; default: head, and layer without gradients")
    add("--race", type=positive, metavar="N", help="configurations that are measured; default: 4")
    add("--error", type=float, metavar="P",
        help="probability that the race drops a configuration in favour of one that is not better; default: 0.05")
    add("--task", metavar="LIST",
        help="also count the answers that the configurations lose which are left after the race, in tasks of kveval "
        "such as passkey,lines; for a GGUF file")
    add("--minutes", type=float, metavar="M", help="time of what is measured in the model; default: 20")
    add("--programs", metavar="FOLDER", help="folder of kvbench and kveval; default: PATH, then build/release")
    add("--weights", choices=choices_of("weights"),
        help="type in which a model that is no GGUF file runs; default: f32")
    add("--device", choices=choices_of("device"), help="where it runs; default: cpu")
    add("--threads", type=threads, metavar="N", help="number of threads; default: all processors")
    add("-q", "--quiet", action="store_true", help="print nothing but the answer")
    return made


fail = functools.partial(ended, "kvbench-choose")


def main(arguments=None):
    """Returns the exit code: 0 done; 2 bad usage or input; 3 input/output or memory; 130 interrupted."""
    stop_by_signals()
    try:
        text = choose(ChooseSettings(**vars(parser().parse_args(arguments)))).text
        if sys.stdout is None:
            raise OSError("the standard output is closed; the answer is in the file answer.md.")
        sys.stdout.write(text)
        sys.stdout.flush()
        return 0
    except KeyboardInterrupt:
        return fail(130, "interrupted; what was computed stays, and the same command goes on")
    except (OSError, MemoryError) as failure:
        return fail(3, failure)
    except Error as failure:
        return fail(2, failure)
    except Exception as failure:
        return fail(2, f"the model's code fails ({first_line(failure)}); what was computed stays.")
