# SPDX-License-Identifier: Apache-2.0
"""kvbench-bundle, kvbench-verify, kvbench-cite, kvbench-claim and kvbench-report, which commands of kvbench start."""

import functools
import os
import sys
from collections.abc import Callable

from .._error import Error, printable, require
from ..choosing.settings import program
from ..dump_hf.command import stop_by_signals
from ..files.access import check_not_input, check_replaceable, write_atomically
from ..program.arguments import Parser, positive, whole_number
from ..program.progress import ended, tell
from . import bundle as bundles
from . import claims, page, verify
from .forms import FORMS, cited
from .inputs import Places
from .recompute import DIRTY
from .tables import KINDS, counted, wholes_of

CODES = "Exit codes: 0 {}, 1 {}, 2 bad usage or bad input, 3 input/output or memory failure, 4 {}, 130 interrupted."
VERSION_HELP = "folder of kvbench and kveval; default: that of this program, PATH, then build/release"


def bundle_parser() -> Parser:
    made = Parser(prog="kvbench-bundle", allow_abbrev=False, description="Put tables of kvbench replay, sweep or eval "
                  "into one file, with all that `kvbench verify` needs to recompute any cell of them.",
                  epilog="Give the flags that the run had, but methods, budgets, --rows and --protocol, which rows "
                  "have. " + CODES.format("done", "a recomputed cell differs", "a drawn cell could not be recomputed"))
    made.add_argument("tables", nargs="+", metavar="TABLE.csv", help="tables, all of runs with the same flags")
    made.add_argument("-o", "--output", required=True, metavar="FILE", help="the bundle, such as result.kvb.zip")
    _add_common(made)
    made.add_argument("--sample", type=whole_number(0, 10**6), default=1, metavar="N", help="cells of each kind that "
                      "are recomputed before the bundle is written; default: 1, 0: none")
    takes: dict[str, tuple[str | None, list[str]]] = {}
    for kind in KINDS:
        for name, pattern in kind.settings.items():
            takes.setdefault(name, (pattern, []))[1].append(kind.command)
    for name, (pattern, commands) in takes.items():
        how = {"action": "store_true", "default": None} if pattern is None else {"metavar": "VALUE"}
        made.add_argument(f"--{name}", help=f"as the run had it ({' and '.join(commands)})", **how)
    return made


def verify_parser() -> Parser:
    made = Parser(prog="kvbench-verify", allow_abbrev=False, description="Recompute cells of a bundle, and say exactly "
                  "what was checked and what was not.",
                  epilog=CODES.format("every drawn cell was recomputed and agrees", "something differs",
                                      "nothing differs, and not every drawn cell could be recomputed"))
    made.add_argument("bundle", metavar="BUNDLE", help="a file of kvbench bundle, whoever made it")
    _add_common(made)
    made.add_argument("--sample", type=positive, default=3, metavar="N", help="cells that are recomputed, drawn by the "
                      "digest of the bundle; default: 3")
    made.add_argument("--seed", default="", metavar="TEXT", help="any text of yours, which draws other cells: those "
                      "that the digest draws are known to the author of the bundle")
    made.add_argument("--whole", action="store_true", help="recompute whole runs in place of a sample, and so also the "
                      "columns that compare rows with each other")
    return made


def cite_parser() -> Parser:
    made = Parser(prog="kvbench-cite", allow_abbrev=False, description="Write the results of a bundle in a form that "
                  "others ask for. Nothing is recomputed; kvbench verify does that.",
                  epilog="Exit codes: those of kvbench-verify, without 4.")
    made.add_argument("bundle", metavar="BUNDLE", help="a file of kvbench bundle, whoever made it")
    made.add_argument("--as", dest="form", required=True, choices=list(FORMS), metavar="FORM", help=", ".join(FORMS))
    made.add_argument("--fact", action="append", default=[], metavar="NAME=VALUE", help="what the form needs and no "
                      "bundle has, which it names; repeat for several")
    made.add_argument("-o", "--output", metavar="FILE", help="default: standard output")
    return made


def _add_common(made: Parser) -> None:
    made.add_argument("--input", action="append", default=[], metavar="PATH", help="a trace, model, text or plan of "
                      "the rows, or a folder that has them; repeat for several. They are also looked for by name in "
                      "the folder of the file, in this one and in traces")
    made.add_argument("--programs", metavar="FOLDER", help=VERSION_HELP)


def _programs(folder: str | None) -> Callable[[str], str]:
    """Finds kvbench and kveval: those of the installation of this program come before others on PATH."""
    def find(name: str) -> str:
        own = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), name)
        return own if folder is None and os.access(own, os.X_OK) and os.path.isfile(own) else program(name, folder)
    return functools.cache(find)


def bundle(arguments: list[str] | None) -> int:
    given = bundle_parser().parse_args(arguments)
    known = {name for kind in KINDS for name in kind.settings}
    settings = {name: "" if value is True else value for name in known
                if (value := getattr(given, name.replace("-", "_"))) is not None}
    places = Places(given.input, os.path.dirname(os.path.abspath(given.tables[0])))
    made = bundles.make(given.tables, settings, places)
    found = verify.checkable(made, places, made.cells)
    sorts = dict.fromkeys(cell.sort for cell, _ in found.cells)
    outcomes = [outcome for sort in sorts for outcome in verify.check(
        made, verify.Checkable([pair for pair in found.cells if pair[0].sort == sort]), given.sample, "",
        _programs(given.programs), tell) if given.sample]
    if found.cells and given.sample:
        sentence, code = verify.verdict(outcomes)
        if code:
            tell(sentence + "No bundle was written. Did the run have flags that are missing here (kvbench bundle "
                 "--help lists them)? Rows of --calibrate are not bundled; --sample 0 writes a bundle unchecked.\n")
            return code
    made.write(given.output, [*given.tables, *given.input])
    said = f"{given.output}: {verify.opening(made)}"
    for why, count in found.others.items():
        said += f"{counted(count, 'cell')} that nobody can recompute: {why}.\n"
    if any(DIRTY in row["commit"] for table in made.tables for row in table.rows):
        said += "Rows are of a kvbench with changes that were not committed, which nobody else can build.\n"
    return _print(said + (verify.verdict(outcomes)[0] if outcomes else "No cell was recomputed.\n"))


def verified(arguments: list[str] | None) -> int:
    given = verify_parser().parse_args(arguments)
    try:
        read = bundles.read(given.bundle)
    except bundles.Changed as fault:
        return ended("kvbench-verify", verify.DIFFERS, fault)
    places = Places(given.input, os.path.dirname(os.path.abspath(given.bundle)))
    wholes = [whole for table in read.tables for whole in wholes_of(table)]
    found = verify.checkable(read, places, wholes if given.whole else read.cells)
    _print(f"{given.bundle}: {verify.opening(read)}")
    count = len(wholes) if given.whole else given.sample
    outcomes = verify.check(read, found, count, given.seed, _programs(given.programs), _print)
    sentence, code = verify.verdict(outcomes)
    _print(verify.left_out(read, found, outcomes) + sentence)
    return code


def cite(arguments: list[str] | None) -> int:
    given = cite_parser().parse_args(arguments)
    facts: dict[str, str] = {}
    for word in given.fact:
        name, is_given, value = word.partition("=")
        require(is_given and value.isprintable(), f"--fact {word}", "is no fact; write NAME=VALUE.")
        require(name not in facts, f"--fact {name}", "is given twice; it takes one value.")
        facts[name] = value
    try:
        text, lacks = cited(bundles.read(given.bundle), given.form, facts)
    except bundles.Changed as fault:
        return ended("kvbench-cite", verify.DIFFERS, fault)
    if given.output is None:
        _print(text)
    else:
        check_replaceable(given.output)
        check_not_input(given.output, [given.bundle])
        write_atomically(given.output, text.encode())
    tell("".join(f"Left out: {printable(one)}.\n" for one in lacks))
    return 0


def report_parser() -> Parser:
    made = Parser(prog="kvbench-report", allow_abbrev=False, description="Make a page of results from bundles: figures "
                  "and answers, which claims are settled, all rows in one table, and how to verify them.",
                  epilog="Exit codes: those of kvbench-verify, without 4.")
    made.add_argument("files", nargs="+", metavar="FILE", help="bundles; tables that are in none, whose rows are grey; "
                      "folders of both, with claims in their folder claims")
    made.add_argument("-o", "--output", required=True, metavar="FILE", help="the page: .html or .md")
    made.add_argument("--title", default="Results", metavar="TEXT", help="title of the page; default: Results")
    made.add_argument("--registered", metavar="CLAIM.toml", help="refuse rows that this claim does not register, and "
                      "show its verdict")
    made.add_argument("--programs", metavar="FOLDER", help=VERSION_HELP)
    return made


def report(arguments: list[str] | None) -> int:
    given = report_parser().parse_args(arguments)
    try:
        found = page.sources(given.files, given.registered)
    except bundles.Changed as fault:
        return ended("kvbench-report", verify.DIFFERS, fault)
    page.write(found, given.output, given.title, _programs(given.programs))
    return _print("".join(claims.announced(claim.path) for claim in found.claims) if given.registered else "")


def claim_parser(run: bool = False) -> Parser:
    made = Parser(prog="kvbench-claim", allow_abbrev=False, description="Test a claim that a file registers on rows of "
                  "kvbench eval --per-document, and refuse all other rows.",
                  epilog=CODES.format("the claim holds", "it is refuted", "the rows cannot tell"))
    made.add_argument("claim", metavar="CLAIM.toml", help="what was registered (docs/bundles.md)")
    made.add_argument("tables", nargs="*" if run else "+", metavar="TABLE.csv", help="all rows that it registers, and "
                      "no others; or --run and the words of kvbench eval or sweep --registered, which measures them")
    made.add_argument("--programs", metavar="FOLDER", help=VERSION_HELP)
    return made


def claim(arguments: list[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    if "--run" in words:  # behind it: eval or sweep, and its words
        at = words.index("--run")
        given = claim_parser(run=True).parse_args(words[:at])
        programs, behind = _programs(given.programs), words[at + 2:]
        if words[at + 1:at + 2] == ["sweep"]:
            return claims.swept(given.claim, behind, programs)
        return claims.measured(claims.read(given.claim), behind, programs)
    given = claim_parser().parse_args(arguments)
    asked = claims.read(given.claim)
    rows = claims.rows_for(asked, given.tables)
    tests = claims.compared(asked, rows, _programs(given.programs)("kvbench"))
    builds = dict.fromkeys(f"kvbench {row['version']} ({row['commit']})" for row in rows)
    said = f"Question: {asked.question}\nClaim: {given.claim}, SHA-256 {asked.sha256}\n"
    said += "".join(f"  {sentence}.\n" for sentence in claims.registered(given.claim))
    said += f"Rows: {len(rows)} of documents, as registered; {', '.join(builds)}.\n"
    said += f"Test: {asked.metric} of {asked.better} against {', '.join(asked.worse)} at {asked.budget}, paired over " \
        "documents.\n"
    said += "".join(f"  {claims.test_text(test)}\n" for test in tests)
    verdict = claims.verdict(asked, tests)
    _print(f"{said}Refuted by: {asked.refuted_by}\nVerdict: {verdict}.\n")
    return {"holds": 0, "refuted": verify.DIFFERS}.get(verdict, verify.UNCHECKED)


def _print(text: str) -> int:
    require(sys.stdout is not None, "standard output", "is closed.")
    try:
        sys.stdout.write(printable(text))
        sys.stdout.flush()
    except OSError as failure:
        raise OSError(f"standard output: cannot be written: {failure.strerror}; free some space, or write to another "
                      "file.") from None
    return 0


def _main(name: str, run: Callable[[list[str] | None], int], arguments: list[str] | None) -> int:
    stop_by_signals()
    try:
        return run(arguments)
    except KeyboardInterrupt:
        return ended(name, 130, "interrupted")
    except (OSError, MemoryError) as failure:
        return ended(name, 3, failure)
    except Error as failure:
        return ended(name, 2, failure)


def bundle_main(arguments: list[str] | None = None) -> int:
    return _main("kvbench-bundle", bundle, arguments)


def verify_main(arguments: list[str] | None = None) -> int:
    return _main("kvbench-verify", verified, arguments)


def cite_main(arguments: list[str] | None = None) -> int:
    return _main("kvbench-cite", cite, arguments)


def report_main(arguments: list[str] | None = None) -> int:
    return _main("kvbench-report", report, arguments)


def claim_main(arguments: list[str] | None = None) -> int:
    return _main("kvbench-claim", claim, arguments)
