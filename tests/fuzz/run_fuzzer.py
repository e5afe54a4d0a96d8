# SPDX-License-Identifier: Apache-2.0
"""run_fuzzer.py FUZZER FOUND CORPUS...: fuzzes for KVBENCH_FUZZ_SECONDS, or 5, and evaluates the findings.

Tokens of the format, where TARGET.dict beside this script has some, are inserted by the mutations; the tables of eval
have those of csv. FUZZER is fuzz_TARGET.

HDF5 1.10 itself reads out of bounds on some hostile metadata. For this reason the reader of traces checks a file in a
child process first (lib/kvbench/trace/guard/untrusted_file.hpp). The fuzzers are built without this guard and continue
after a crash. Each crash is repeated: a crash whose innermost frame is in the HDF5 library is counted and stored, a
crash in the code of kvbench fails the test."""
import os
import pathlib
import re
import subprocess
import sys

SECONDS = os.environ.get("KVBENCH_FUZZ_SECONDS", "5")
FLAGS = ["-timeout=10", "-rss_limit_mb=2048", "-detect_leaks=0"]


def innermost_frame(log):
    """The first frame in the HDF5 library or in kvbench; sanitizer and C library frames above it belong to its
    calls."""
    frames = re.findall(r"^\s+#\d+ 0x[0-9a-f]+ (.*)$", log, re.M)
    return next((frame for frame in frames if "libhdf5" in frame or "kvbench::" in frame), "")


def main():
    fuzzer, found, *corpora = sys.argv[1:]
    corpora = [folder for folder in corpora if pathlib.Path(folder).is_dir()]
    target = pathlib.Path(fuzzer).name.removeprefix("fuzz_")
    dictionary = pathlib.Path(__file__).with_name({"eval": "csv"}.get(target, target) + ".dict")
    tokens = [f"-dict={dictionary}"] if dictionary.exists() else []
    found = pathlib.Path(found)
    found.mkdir(parents=True, exist_ok=True)
    run = subprocess.run([fuzzer, "-seed=1", f"-max_total_time={SECONDS}", "-max_len=131072", "-fork=1",
                          "-ignore_crashes=1", "-ignore_timeouts=1", "-ignore_ooms=1", f"-artifact_prefix={found}/",
                          *FLAGS, *tokens, str(found), *corpora], capture_output=True, text=True, errors="replace")
    executed = [int(n) for n in re.findall(r"^#(\d+):", run.stderr, re.M)]
    if not executed:
        sys.exit(f"the fuzzer did not run:\n{run.stderr[-3000:]}")
    ours, theirs = [], []
    for artifact in sorted(found.glob("crash-*")) + sorted(found.glob("timeout-*")) + sorted(found.glob("oom-*")):
        again = subprocess.run([fuzzer, *FLAGS, str(artifact)], capture_output=True, text=True, errors="replace")
        if again.returncode == 0:
            continue
        (theirs if "libhdf5" in innermost_frame(again.stderr) else ours).append((artifact, again.stderr))
    print(f"{executed[-1]} inputs; {len(theirs)} crashes inside the HDF5 library, {len(ours)} in kvbench")
    for artifact, log in ours:
        print(f"\n{artifact}\n{log[-6000:]}")
    sys.exit(1 if ours else 0)


main()
